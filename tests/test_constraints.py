"""Constraints of parameters: declared once, kept by every public function and class that has the parameter."""

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np
import polars as pl
import pytest

import darkmetrics as dm
from darkmetrics.constraints import CONSTRAINTS, constraint_of, shortened
from public_callables import parameters_of, public_callables

RNG = np.random.default_rng(0)
Y = [1, 0] * 20
Y_MISSING = [*Y[:30], *[None] * 10]
P, Q = RNG.random(40), RNG.random(40)
TABLE = pl.DataFrame({"y": Y_MISSING, "p": P, "g": ["a", "b"] * 20})

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


@cache
def evaluation() -> dm.Evaluation:
    return dm.evaluate(Y_MISSING, P, missingness=dm.missing.Fixed(0.5))


@cache
def curves() -> dm.ThresholdCurves:
    return dm.threshold_curves(evaluation(), thresholds=[0.3, 0.5])


@cache
def grouped() -> dm.GroupedEvaluation:
    return dm.evaluate_by("y", "p", data=TABLE, by="g", missingness="random")


@cache
def comparison() -> dm.Comparison:
    return dm.compare(Y_MISSING, {"a": P, "b": Q}, missingness=dm.missing.Fixed(0.5))


class Constant:
    """A classifier that was fitted on scores."""

    def predict_proba(self, X: Any) -> Any:
        return np.full((len(X), 2), 0.5)


def fitted(kind: type[Any]) -> Callable[..., Any]:
    """Settings of calibrators are checked when they are fitted, as in scikit-learn."""
    return lambda **settings: kind(**settings).fit(P, Y)


def classes_of(module: Any, *names: str, **arguments: Any) -> dict[str, Callable[..., Any]]:
    package = module.__name__.rpartition(".")[2]
    return {f"{package}.{name}": partial(getattr(module, name), **arguments) for name in names}


# How each public function with a declared parameter is called, without that parameter.
CALLS: dict[str, Callable[..., Any]] = {
    "evaluate": partial(dm.evaluate, Y_MISSING, P),
    "bounds": partial(dm.bounds, Y_MISSING, P),
    "diagnose": partial(dm.diagnose, Y_MISSING, P),
    "compare": partial(dm.compare, Y_MISSING, {"a": P, "b": Q}),
    "backtest": partial(dm.backtest, Y, P),
    "evaluate_by": partial(dm.evaluate_by, "y", "p", data=TABLE, by="g"),
    "EvaluationSet": partial(dm.EvaluationSet, Y_MISSING, P),
    "EvaluationSet.with_threshold": lambda **given: evaluation().data.with_threshold(**given),
    "threshold_curves": lambda **given: dm.threshold_curves(evaluation(), **given),
    "compare_evaluations": lambda **given: dm.compare_evaluations(evaluation(), evaluation(), **given),
    "verify": lambda **given: dm.verify(evaluation(), Y, P, **given),
    "Evaluation.sensitivity": lambda **given: evaluation().sensitivity(**given),
    "Evaluation.report": lambda **given: evaluation().report("june.html", **given),
    "report.summarize": lambda **given: dm.report.summarize(evaluation(), **given),
    "MetricDistribution.interval": lambda **given: evaluation()["recall"].interval(**given),
    "MetricDistribution.to_dict": lambda **given: evaluation()["recall"].to_dict(**given),
    "MetricDistribution.rvs": lambda **given: evaluation()["recall"].rvs(3, **given),
    "ThresholdCurves.at": lambda **given: curves().at(**given),
    "ThresholdCurves.best_threshold": lambda **given: curves().best_threshold("recall", **given),
    "ThresholdCurves.threshold_for": lambda **given: curves().threshold_for({"recall": 0.5}, **given),
    "GroupedEvaluation.alerts": lambda **given: grouped().alerts({"recall": 0.5}, **given),
    "GroupedEvaluation.compare": lambda **given: grouped().compare("a", "b", **given),
    "GroupedEvaluation.disparity": lambda **given: grouped().disparity("recall", **given),
    "Comparison.difference": lambda **given: comparison().difference("recall", "a", "b", **given),
    "Comparison.probability_better": lambda **given: comparison().probability_better("recall", "a", "b", **given),
    "Comparison.better_range": lambda **given: comparison().better_range("recall", "a", "b", **given),
    "Comparison.probability_best": lambda **given: comparison().probability_best("recall", **given),
    "Comparison.rank_probabilities": lambda **given: comparison().rank_probabilities("recall", **given),
    "testing.check_metric": partial(dm.testing.check_metric, "recall"),
    "testing.check_mechanism": partial(dm.testing.check_mechanism, "random"),
    "testing.check_method": lambda method="auto", **given: dm.testing.check_method(method, **given),
    "methods.Auto": dm.methods.Auto,
    "methods.MonteCarlo": dm.methods.MonteCarlo,
    "methods.method_from": lambda **given: dm.evaluate(Y_MISSING, P, **given),
    "masks.MCAR": dm.masks.MCAR,
    "masks.mask_from": partial(dm.backtest, Y, P),
    "masks.ByScore": partial(dm.masks.ByScore, fraction=0.5),
    "masks.ByLabel": partial(dm.masks.ByLabel, fraction=0.5, prevalence=0.5),
    "paper.bootstrap": lambda **given: dm.paper.bootstrap(evaluation().data, "recall", **given),
    "paper.confidence_based": lambda **given: dm.paper.confidence_based(evaluation().data, "recall", **given),
    "paper.mcar_mask": lambda **given: dm.paper.mcar_mask(Y, 0.3, **given),
    "paper.mnar_mask": lambda **given: dm.paper.mnar_mask(Y, 0.3, 0.5, **given),
    "paper.pemi": lambda **given: dm.paper.pemi(evaluation().data, "recall", 0.5, **given),
    "paper.pemi_gauss": lambda **given: dm.paper.pemi_gauss(
        evaluation().data, "roc_auc", 0.5, **{"simulate_above": 1} | given
    ),
    "paper.scaling_binning": lambda **given: dm.paper.scaling_binning(Y, P, **given),
    "paper.theorem_4": lambda **given: dm.paper.theorem_4(evaluation().data, 0.5, metrics="recall", **given),
    "calibrators.Calibrator.draws": lambda **given: dm.calibrators.Platt().fit(P, Y).draws(P, **given),
    "calibrators.Fitted.draws": lambda **given: dm.calibrators.Fitted(Constant()).draws(P, **given),
    "calibrators.Isotonic.draws": lambda **given: dm.calibrators.Isotonic().fit(P, Y).draws(P, **given),
    "calibrators.ScalingBinning.draws": lambda **given: dm.calibrators.ScalingBinning().fit(P, Y).draws(P, **given),
    "calibrators.Beta": fitted(dm.calibrators.Beta),
    "calibrators.Platt": fitted(dm.calibrators.Platt),
    "calibrators.Flexible": fitted(dm.calibrators.Flexible),
    "calibrators.ScalingBinning": fitted(dm.calibrators.ScalingBinning),
    **classes_of(dm.missing, "Random", "ByScore", "ByLabel", "Unknown", "Fixed", "ExponentialTilt"),
    **classes_of(dm.missing, "ByScoreAndLabel", reference=(Y, P)),
    **classes_of(dm.missing, "Delayed", age=[1.0] * 40),
    **classes_of(dm.missing, "Propensity", propensity=[0.5] * 40),
    **classes_of(dm.missing, "Covariates", estimator=None, X=[[0.0]] * 40),
}
# Public names whose parameter of a declared name is not that parameter, with the reason.
OTHERWISE = {
    "paper.corollary_rate.alpha": "a parameter of the Beta distribution, as in the paper",
    "paper.theorem_3.alpha": "a parameter of the Beta distribution, as in the paper",
    "missing.Posterior.probability": "an array of draws",
    "missing.Posterior.split_columns.kind": "an array of numbers",
    "missing.Posterior.draw.rng": "engines draw with the generator of the caller",
    "methods.Method.distributions.rng": "engines draw with the generator or seed of the caller",
    "plotting.plot_groups.period": "a value of the time column",
}


OTHERWISE |= {f"masks.{kind}.mask.rng": "backtest draws" for kind in ("Mask", "MCAR", "ByScore", "ByLabel")}
# Classes that users make; results are made by functions, which have checked their arguments.
MADE = ("EvaluationSet", "missing.", "methods.", "masks.", "calibrators.")


def declared() -> Iterator[tuple[str, str]]:
    for name, function in public_callables():
        if isinstance(function, type) and not name.startswith(MADE):
            continue
        for parameter in parameters_of(function):
            if constraint_of(name.rpartition(".")[2], parameter) and f"{name}.{parameter}" not in OTHERWISE:
                yield name, parameter


def cases() -> list[Any]:
    found = []
    for name, parameter in declared():
        constraint = constraint_of(name.rpartition(".")[2], parameter)
        assert constraint is not None
        found += [pytest.param(name, parameter, bad, id=f"{name}-{parameter}-{bad!r}"[:80]) for bad in constraint.bad]
    return found


def test_every_constraint_belongs_to_a_public_parameter():
    used = {f"{name.rpartition('.')[2]}.{parameter}" for name, parameter in declared()}
    used |= {parameter for _, parameter in declared()}
    assert [name for name in CONSTRAINTS if name not in used] == []


@pytest.mark.parametrize(("name", "parameter", "bad"), cases())
def test_a_value_that_breaks_a_constraint_is_refused(name, parameter, bad):
    constraint = constraint_of(name.rpartition(".")[2], parameter)
    assert constraint is not None
    with pytest.raises(dm.InputError) as caught:
        CALLS[name](**{parameter: bad})
    error = caught.value
    assert error.argument == parameter
    if isinstance(bad, str) and constraint.choices:
        assert repr(bad) in error.finding
    else:
        assert (error.finding, error.rule) == (shortened(bad), constraint.rule)


@pytest.mark.parametrize("name", sorted(CONSTRAINTS))
def test_choices_are_accepted_and_bad_values_are_not(name):
    constraint = CONSTRAINTS[name]
    assert all(map(constraint.accepts, constraint.choices))
    assert not any(map(constraint.accepts, constraint.bad))
    assert constraint.rule.endswith(".")
