"""diagnose(): from labels and scores to what they say about the missing labels."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from darkmetrics.argument_types import ArrayLike, FrameLike, LabelValue
from darkmetrics.calls import suggest_call
from darkmetrics.data.arguments import evaluation_set_from
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.diagnosis.mechanisms import MECHANISMS, estimate_mechanism
from darkmetrics.diagnosis.result import Diagnosis
from darkmetrics.diagnosis.scores import mixture_check, score_difference
from darkmetrics.exceptions import CalibrationWarning
from darkmetrics.metrics import DEFAULT_METRICS, Metric, metrics_from
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.missingness.arrival_curves import arrival_of
from darkmetrics.missingness.base import MissingnessLike
from darkmetrics.missingness.checks import (
    AbsentError,
    calibration_check,
    overlap_check,
    raw_check,
    reference_check,
    run_check,
)
from darkmetrics.missingness.choice import mechanism_from
from darkmetrics.missingness.delayed import Delayed
from darkmetrics.missingness.fit_data import FitData
from darkmetrics.missingness.reference import Reference, reference_set
from darkmetrics.posterior import Posterior

# Name of each part and the function that computes it.
_CHECKS: dict[str, Callable[[FitData], Any]] = {
    "score_difference": score_difference,
    "mixture": mixture_check,
    "calibration": calibration_check,
    "raw_scores": raw_check,
    "reference": reference_check,
    "overlap": overlap_check,
}


@suggest_call("It is one of evaluate, whose result has a diagnosis too.")
def diagnose(
    y_true: ArrayLike | str | EvaluationSet,
    y_score: ArrayLike | str | None = None,
    *,
    data: FrameLike | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    missingness: MissingnessLike | Reference = None,
    threshold: float | None = None,
    y_pred: ArrayLike | str | None = None,
    sample_weight: ArrayLike | str | None = None,
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    score_bins: str | int = "auto",
) -> Diagnosis:
    """Why are labels missing, and does it matter?

    Says what the data show (do missing rows have other scores, can they be a mixture of the labeled classes, does the
    calibration fit, do the labels agree with reference rows), what each mechanism would mean for the metrics, and
    what no data can tell.

    Parameters
    ----------
    y_true, y_score, data, threshold, y_pred, sample_weight, pos_label, missing_label, score_bins
        As in `evaluate`: arrays, columns of a table, or an EvaluationSet as the only data.
    missingness : object of `dm.missing`, optional
        `dm.missing.Reference(...)`: fully labeled rows to compare with, such as the test set of the model.
        `dm.missing.Delayed(...)`: the diagnosis shows when labels arrive.
    metrics : str, Metric, callable, or a sequence or mapping of these
        The metrics whose movement between the mechanisms is reported.

    Returns
    -------
    Diagnosis
        Print it for words; `.verdict`, `.missingness` and the parts one by one; `to_dict()` for plain numbers.

    Notes
    -----
    Tests are at the 5% level and count rows, whatever their weight. A diagnosis runs several, so that some perfectly
    ordinary data sets show something.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(2000)
    >>> y = rng.random(2000) < y_score**2
    >>> y_true = np.where(rng.random(2000) < np.where(y, 0.5, 0.1), np.nan, y)  # positives are missing more often
    >>> diagnosis = dm.diagnose(y_true, y_score)
    >>> diagnosis.missingness
    'by score or by label'
    >>> {name: round(mechanism.prevalence.mean, 2) for name, mechanism in diagnosis.mechanisms.items()}
    {'by score': 0.4, 'by label': 0.71}
    """
    given = dict(locals())
    chosen, mechanism = metrics_from(metrics), mechanism_from(missingness)
    settings = {name: value for name, value in given.items() if name not in ("metrics", "missingness")}
    rows = evaluation_set_from(**settings, missingness=mechanism)
    reference = getattr(mechanism, "reference", None)
    if reference is not None:
        reference = reference_set(reference, rows.pos_label, missing_label)
    return diagnosis_of(rows, reference, chosen)


def diagnosis_of(
    data: EvaluationSet,
    reference: Any = None,
    metrics: Sequence[Metric] = tuple(metrics_from(DEFAULT_METRICS)),
    fills: Mapping[str, float] | None = None,
    stated: str | None = None,
    groups: int = 0,
    late: tuple[Arrival, Posterior] | None = None,
) -> Diagnosis:
    """The diagnosis of a set, with reference rows if there are some.

    `fills`: what a 0/0 of a metric counts as; `stated`: what has already been said about why labels are missing.
    `groups`: the set is the sum of so many with label models of their own. No model is then fitted to all of them,
    which would contradict theirs. `late`: what ages of the rows have said already, with the probabilities that follow.
    """
    fills = {metric.name: metric.undefined_as for metric in metrics} if fills is None else fills
    fit_data = FitData.of(data, reference)
    absent: dict[str, str] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CalibrationWarning)  # the verdict says how few labels there are
        checks = {name: run_check(name, absent, check, fit_data) for name, check in _CHECKS.items()}
        mechanisms = {
            name: run_check(name, absent, estimate_mechanism, name, fit_data, metrics, fills)
            for name in MECHANISMS
            if not groups
        }
        if late is None and data.cells.age is not None and not groups:
            late = run_check("late", absent, _late, data)
        if late is not None:
            mechanisms["late"] = run_check(
                "late", absent, estimate_mechanism, "late", fit_data, metrics, fills, late[1]
            )
    labeled = data.n_labeled > 0
    return Diagnosis(
        counts=data.counts(),
        n_reference=0 if fit_data.reference is None else int(fit_data.reference.labeled.sum()),
        mechanisms={name: estimate for name, estimate in mechanisms.items() if estimate is not None},
        labeled_only={metric.name: metric.value(data, fills[metric.name]) if labeled else np.nan for metric in metrics},
        absent=absent | dict.fromkeys(MECHANISMS if groups else (), "the groups have label models of their own."),
        stated=stated,
        groups=groups,
        arrival=None if late is None else late[0],
        **checks,
    )


def _late(data: EvaluationSet) -> tuple[Arrival, Posterior]:
    if not data.n_missing:
        raise AbsentError("no label is missing.")
    learned, posterior = Delayed().learn(data)
    return arrival_of(learned, data), posterior
