"""Messages of the library in the words of the command line: columns and options instead of arguments."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from darkmetrics._text import printable
from darkmetrics.exceptions import QUOTED, InputError

# Columns by the argument that takes their values.
_ROLES = {"y_true": "label", "y_score": "score", "y_pred": "pred", "sample_weight": "weight"}
# The option for each argument, where the two have different names.
_OTHERS = {
    "after": "FILE",
    "age": "--scored-at",
    "before": "BEFORE",
    "decision": "--pred",
    "false_discovery_rate": "--fdr",
    "metric": "--best",
    "n_jobs": "--jobs",
    "probability": "--prob",
    "rng": "--seed",
    "scores": "--score",
    "stratum": "--strata",
    "targets": "--target",
    **{argument: f"--{role}" for argument, role in _ROLES.items()},
}
_SAME = (
    *("alpha", "arrival", "as_of", "buckets", "by", "confidence_level", "correction", "elapsed", "every", "groups"),
    *("known", "label", "label_model", "labelled_at", "last", "maturity", "method", "min_labels", "missing_label"),
    *("missingness", "pos_label", "propensity", "reference", "risk", "scope", "score", "scored_at", "since"),
    *("strata", "threshold", "thresholds", "time", "weight", "zero_division"),
)
_OPTIONS = _OTHERS | {argument: f"--{argument.replace('_', '-')}" for argument in _SAME}
# What the library says in Python alone. A test holds that it does.
PHRASES = {
    "Give age= to evaluate or when building the EvaluationSet, or scored_at= and as_of= for a table.": (
        "Give --scored-at and --as-of."
    ),
    "Give it to the label model itself, such as label_models.Calibrated(reference=(labels, scores)), "
    "or leave label_model out": "Leave one out",
    "; if it is the same, and not that of probabilities, say so: "
    "label_models.Selection((labels, scores), calibrator='platt')": "",
    "; or state the share of positives, such as label_models.Tilted('calibrated', prevalence=0.1)": "",
    "label_models.Prevalence(0.1)": "--label-model 0.1",
    "metrics.expected_cost(1, 10)": "'expected_cost(1, 10)'",
    "Give what evaluate_by returned, its to_dict(), or a file with that as JSON": "Give what --format json wrote",
    "no result of evaluate_by": "no result of this command",
    "reference=(labels, scores)": "--reference with a file",
    "Give one per row, or one per missing row.": "Give one per row.",
    "label_model=y_score": "--prob with the score column",
    "; see to_frame().": "; --format csv has them.",
    "list_metrics() shows": "`darkmetrics metrics` shows",
    "See .diagnosis.": "`darkmetrics diagnose` says more.",
    "y_pred already": "--pred already",
    "decision already": "--pred already",
    "label_model already gives": "--prob already gives",
    "The notes of each group (groups[key].notes) and of the result say more": "--format json has the notes",
    ": groups[key].notes.": "; --format json has the notes.",
}
# Quotes come first, so that nothing inside them is found. Then a setting as code, `name='value'` or two values with
# "or" between them; last a name that has an underscore, which no plain word has.
_NAMES = "|".join(_OPTIONS)
_PYTHON = re.compile(
    rf"{QUOTED}|(?P<phrase>{'|'.join(map(re.escape, PHRASES))})"
    rf"|\b(?P<name>{_NAMES})=(?P<value>\[(?:{QUOTED}|[-\w., ])+\]|{QUOTED}(?: or (?:(?P=name)=)?'\w+')?|-?\w[\w.]*)?"
    rf"|(?<![-\w])(?P<word>{'|'.join(name for name in _OPTIONS if '_' in name)})\b"
)


class WordedError(InputError):
    """An error that is already in the words of the command line."""


@contextmanager
def worded() -> Iterator[None]:
    """Errors about files and columns, which are said in the user's own words and stay as they are."""
    try:
        yield
    except WordedError:
        raise
    except InputError as error:
        raise WordedError(str(error)) from error


def for_the_command_line(
    said: InputError | str, names: Mapping[str, str] | None = None, metrics: str = "--metric"
) -> str:
    """The message with options for arguments and, where `names` has them (by role), columns.

    `metrics` is the option that the metrics came from. What stands in quotes is left as it is.
    """
    names = names or {}
    error = said if isinstance(said, InputError) else InputError(said)
    columns = {role: f"column {name!r} (--{role})" for role, name in names.items()}
    called = {argument: columns[role] for argument, role in _ROLES.items() if role in names}
    options = _OPTIONS | called

    def in_options(found: re.Match[str]) -> str:
        if found["phrase"] is not None:
            return PHRASES[found["phrase"]]
        if found["word"] is not None:
            return options[found["word"]]
        if found["name"] is None:
            return found[0]
        if (found["value"] or "").startswith("["):  # several are given by naming the option again
            each = [one[0] for one in re.finditer(rf"{QUOTED}|[-\w.]+", found["value"])]
            texts = [str(ast.literal_eval(one)) if one[0] in "'\"" else one for one in each]
            return " ".join(f"{_OPTIONS[found['name']]} {shlex.quote(text)}" for text in texts)
        # In code a text has quotes, on the command line it need not.
        values = (found["value"] or "").replace(f"{found['name']}=", "").split(" or ")
        return " ".join(filter(None, [_OPTIONS[found["name"]], " or ".join(value.strip("'\"") for value in values)]))

    head = (options | {"metrics": metrics}).get(error.argument, error.argument)
    part, is_column, name = error.argument.partition(" column ")
    if is_column and part in _OPTIONS:
        head = f"column {name} ({_OPTIONS[part]})"
    elif error.argument == "label_model":
        head = columns.get("prob", head)
    return head + _PYTHON.sub(in_options, error.args[0][len(error.argument) :])


def one_line(text: str) -> str:
    """The text on one line, with signs that steer a terminal written out."""
    return printable(" ".join(text.split()))
