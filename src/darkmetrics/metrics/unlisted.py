"""What users ask for by name and no list shows: other names of metrics, counts, and how far the classes are apart."""

from dataclasses import dataclass

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functional import ScenarioFunctional
from darkmetrics.metrics.confusion import FN, FP, TN, TP, ConfusionMetric
from darkmetrics.metrics.metric import UNIT, Metric
from darkmetrics.metrics.scoring import scenario_functional

OTHER_NAMES = {
    "auc": "roc_auc",
    "auroc": "roc_auc",
    "pr_auc": "average_precision",
    "auprc": "average_precision",
    "aucpr": "average_precision",
    "sensitivity": "recall",
    "tpr": "recall",
    "ppv": "precision",
    "tnr": "specificity",
}
_COUNT = (0.0, np.inf)


@dataclass(frozen=True, kw_only=True)
class SeparationMetric(Metric):
    """The largest distance between the scores of positives and negatives: that of their distribution functions."""

    def bind(self, data: EvaluationSet, fill: float) -> ScenarioFunctional:
        return scenario_functional(self, data, fill)

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        # Only between scores: rows of one score come together.
        counts = counts if cells.tie_starts is None else np.add.reduceat(counts, cells.tie_starts, axis=-1)
        with np.errstate(invalid="ignore", divide="ignore"):
            below = counts.cumsum(axis=-1) / counts.sum(axis=-1, keepdims=True)
        found: FloatArray = np.abs(below[1] - below[0]).max(axis=-1)
        return found


UNLISTED_METRICS: tuple[Metric, ...] = (
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
