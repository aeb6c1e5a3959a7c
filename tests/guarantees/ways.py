"""Ways from a sample to the laws of its metrics: the library as it may be used, and what else people do."""

import warnings
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import darkmetrics as dm
from guarantees.scenarios import METRICS, Way


def with_true_chances(sample):
    """What a model would find that knows everything but the labels."""
    return dm.evaluate(sample.y, sample.score, missingness=dm.missing.Fixed(sample.chance))


# Mechanisms, by the name under which their figures are kept.
MECHANISMS: dict[str, Callable[..., Any]] = {
    "auto": dm.missing.Unknown,
    "calibrated": dm.missing.ByScore,
    "label_shift": dm.missing.ByLabel,
    "selection": dm.missing.ByScoreAndLabel,
    "half": partial(dm.missing.Fixed, 0.5),
}


@cache
def with_model(name, metrics=METRICS):
    """The model on the evaluation set alone."""
    return lambda sample: _evaluate(sample, missingness=MECHANISMS[name](), metrics=metrics)


@cache
def with_reference(name):
    """The model on the evaluation set and the reference rows."""
    return lambda sample: _evaluate(
        sample, missingness=MECHANISMS[name](reference=dm.missing.Reference(*sample.reference))
    )


def from_reference_alone(sample):
    """What monitoring tools do: calibrate on the reference, then believe the scores of the rows at hand."""
    labels, scores = sample.reference
    probability = dm.calibrators.Beta().fit(scores, labels).predict(sample.score)
    return dm.paper.confidence_based(
        dm.EvaluationSet(sample.y, sample.score, missingness=dm.missing.Fixed(probability))
    )


def _evaluate(sample, **settings):
    with warnings.catch_warnings():
        # That the mechanism is in doubt is true of most of these sets, and what is asked here is whether the law holds.
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        warnings.simplefilter("ignore", dm.CalibrationWarning)
        return dm.evaluate(sample.y, sample.score, **settings)


# By the name under which their figures are kept.
WAYS: dict[str, Way] = {
    "true chances": with_true_chances,
    "reference alone": from_reference_alone,
    **{model: with_model(model) for model in ("calibrated", "label_shift", "auto", "half")},
    **{f"{model}, reference": with_reference(model) for model in ("label_shift", "selection", "auto")},
}
