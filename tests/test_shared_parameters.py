"""A parameter that several public functions share has one meaning: one type in docstrings, and one default."""

import inspect
import re
from collections import defaultdict
from typing import Any

from public_callables import parameters_of, public_callables

# Classes that users make; those of results have fields.
MADE = ("EvaluationSet", "missing.", "methods.", "masks.", "calibrators.")
# Parameters with several types, by function or class, and why.
TYPES = {
    "age": "verify takes ages that an evaluation knows; a mechanism takes those of its rows",
    "as_of": "backtest replays several days; a mechanism knows one",
    "before": "one group of a plot, or one of two evaluations",
    "by": "an amount in methods of results, columns in evaluate_by",
    "calibrator": "mechanisms differ in the curves that they can fit",
    "curves": "a plot also takes an evaluation",
    "data": "a table; labels that a mechanism learns from; a set in the words of the paper",
    "estimator": "fitted on scores, or to be fitted on features",
    "evaluation": "a plot also takes evaluations of groups",
    "kind": "of a disparity, or of the columns of a posterior",
    "labels": "names of the classes in evaluate, known labels in a calibrator",
    "mean": "the paper's noise takes means of many rows, a prior one",
    "method": "curves have no settings for their methods",
    "metric": "a name of an evaluated metric, or a metric to register or to bound",
    "metrics": "a plot and a curve choose among evaluated metrics",
    "missingness": "functions differ in the mechanisms that they can use",
    "p": "the paper's probability, or those of all rows",
    "prior_sd": "a flexible curve needs a prior",
    "probability": "a confidence in curves, a probability of labels in Fixed",
    "result": "each plot draws results of its own kind",
    "rng": "checks of extensions take a seed",
    "sample_weight": "calibrators take columns, as scikit-learn has them",
    "scores": "calibrators take columns; compare takes those of models by name",
    "strata": "a combination of mechanisms uses the strata of the set",
    "threshold": "compare takes one for each model",
    "variance": "of one row, or of all rows",
    "y_score": "verify and backtest take arrays; reference rows may have several scores",
    "y_true": "backtest takes arrays; EvaluationSet and compare take no set",
}
# Parameters with several defaults, and why.
DEFAULTS = {
    "alpha": "a level of a test, or a parameter of the Beta distribution in the words of the paper",
    "by": "an amount in methods of results, columns in evaluate_by",
    "confidence_level": "results that compare evaluations keep their level",
    "data": "a table where rows may also be arrays; labels that a mechanism learns from",
    "metrics": "a plot and a curve choose among evaluated metrics",
    "most": "as many groups as a plot can show",
    "n_resamples": "as many as the accuracy of the computation needs",
    "probability": "a confidence in curves, a probability of labels in Fixed",
    "rng": "checks of extensions are repeatable",
    "scope": "methods of a result keep its scope",
    "segment": "a plot shows all segments unless one is passed, which may be None",
    "ties": "the paper counts ties in full",
}


def documented_types(function: Any) -> dict[str, str]:
    """Return the types of the parameters in a docstring, without whether they are optional."""
    text = inspect.getdoc(function) or ""
    _, _, section = text.partition("Parameters\n----------\n")
    lines: list[str] = []
    for line, after in zip(section.splitlines(), [*section.splitlines()[1:], ""], strict=False):
        if after.startswith("---"):
            break
        lines.append(line)
    found = (re.match(r"(\w+) : (.*)", line) for line in lines)
    return {match[1]: re.sub(r", (optional|default .*)$| or None$", "", match[2]) for match in found if match}


def test_a_shared_parameter_has_one_type():
    types = defaultdict(set)
    for _, function in public_callables():
        for parameter, text in documented_types(function).items():
            types[parameter].add(text)
    several = {parameter: texts for parameter, texts in types.items() if len(texts) > 1}
    assert {parameter: texts for parameter, texts in several.items() if parameter not in TYPES} == {}
    assert [parameter for parameter in TYPES if parameter not in several] == []


def test_a_shared_parameter_has_one_default():
    defaults = defaultdict(set)
    for name, function in public_callables():
        if isinstance(function, type) and not name.startswith(
            ("EvaluationSet", "missing.", "methods.", "calibrators.")
        ):
            continue
        for parameter, known in parameters_of(function).items():
            if known.default is not inspect.Parameter.empty:
                defaults[parameter].add(repr(known.default))
    several = {parameter: texts for parameter, texts in defaults.items() if len(texts) > 1}
    assert {parameter: texts for parameter, texts in several.items() if parameter not in DEFAULTS} == {}
    assert [parameter for parameter in DEFAULTS if parameter not in several] == []
