"""Metrics that "all" does not stand for: counts, and the distance of the classes; and other names of metrics."""

from dataclasses import dataclass
from functools import partial

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functional import ScenarioFunctional
from darkmetrics.metrics.confusion import FN, FP, TN, TP, ConfusionMetric
from darkmetrics.metrics.metric import UNIT, Metric

ALIASES = {
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "pr_auc": "average_precision",
    "auprc": "average_precision",
    "aucpr": "average_precision",
    "sensitivity": "recall",
    "tpr": "recall",
    "ppv": "precision",
    "tnr": "specificity",
    "hit_rate": "recall",
    "fall_out": "fpr",
    "ap": "average_precision",
    "auc_roc": "roc_auc",
    "aucroc": "roc_auc",
    "matthews_corrcoef": "mcc",
    "kappa": "cohen_kappa",
    "logloss": "log_loss",
    "acc": "accuracy",
    "selectivity": "specificity",
    "informedness": "youden_j",
}
_COUNT = (0.0, np.inf)
# Numbers in one array of distances.
_MAX_NUMBERS = 2**18


@dataclass(frozen=True, kw_only=True)
class SeparationMetric(Metric):
    """The largest distance between the scores of positives and negatives: that of their distribution functions."""

    def bind(self, data: EvaluationSet, fill: float) -> ScenarioFunctional:
        cells, missing = data.cells, data.missing_cells
        starts = np.arange(cells.score.size) if cells.tie_starts is None else cells.tie_starts
        mass = (cells.mass(counts) for counts in (cells.total, cells.positives))
        total, positive = (np.cumsum(np.add.reduceat(m, starts)) if starts.size else np.zeros(0) for m in mass)
        n_below = np.searchsorted(missing, np.append(starts[1:], cells.score.size))
        weight = np.ones(missing.size) if cells.weight is None else cells.weight[missing]
        return ScenarioFunctional(
            missing=data.missing_counts,
            fill=fill,
            range=self.range,
            call=partial(_compute_separation, total, positive, n_below, weight, data.dust),
            n_cells=starts.size + missing.size,
            is_undefined_at_corners=True,
        )

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        # Only between scores: rows of one score come together.
        counts = counts if cells.tie_starts is None else np.add.reduceat(counts, cells.tie_starts, axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            below = counts.cumsum(axis=-1) / counts.sum(axis=-1, keepdims=True)
        found: FloatArray = np.abs(below[1] - below[0]).max(axis=-1)
        return found


def _compute_separation(
    total: FloatArray, positive: FloatArray, n_below: IntArray, weight: FloatArray, dust: float, positives: IntArray
) -> FloatArray:
    """Return the largest distance for each label assignment (n x n_missing_cells: positive rows per cell).

    `total` and `positive` are the weights of all rows and of labeled positives up to each distinct score, `n_below` the
    number of missing cells up to it.
    """
    values = np.full(len(positives), np.nan)
    step = max(1, _MAX_NUMBERS // max(1, total.size))
    for start in range(0, len(positives) if total.size else 0, step):
        added = np.cumsum(positives[start : start + step] * weight, axis=1)
        below = positive + np.pad(added, ((0, 0), (1, 0)))[:, n_below]
        n_positive = below[:, -1:].copy()
        n_negative = total[-1] - n_positive
        with np.errstate(divide="ignore", invalid="ignore"):
            below *= 1.0 / n_positive + 1.0 / n_negative
            below -= total * (1.0 / n_negative)
        largest = np.maximum(below.max(axis=1), -below.min(axis=1))
        is_defined = np.minimum(n_positive, n_negative)[:, 0] > dust
        values[start : start + step][is_defined] = largest[is_defined]
    return values


METRICS_NOT_IN_ALL: tuple[Metric, ...] = (
    ConfusionMetric(
        name="tp",
        formula=TP,
        range=_COUNT,
        meaning="how many positives the classifier finds",
        direction=(1, 0),
    ),
    ConfusionMetric(
        name="fp",
        formula=FP,
        range=_COUNT,
        meaning="how many negatives raise a false alarm",
        better="lower",
        direction=(-1, 0),
    ),
    ConfusionMetric(
        name="fn",
        formula=FN,
        range=_COUNT,
        meaning="how many positives are missed",
        better="lower",
        direction=(0, 1),
    ),
    ConfusionMetric(
        name="tn",
        formula=TN,
        range=_COUNT,
        meaning="how many negatives are left alone",
        direction=(0, -1),
    ),
    SeparationMetric(
        name="ks",
        range=UNIT,
        meaning="largest distance between the distribution functions of the scores of positives and negatives",
    ),
)
