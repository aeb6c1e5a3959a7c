"""The effect of the mix of rows on a change: more or fewer rows at each score, each as likely positive as before."""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.calibrators import Flexible
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.confusion import ConfusionMetric

# Minimum number of rows of either class for a curve, and maximum fraction of later rows outside its scores.
_MIN_ROWS, _MAX_OUTSIDE = 5.0, 0.05
# Cells that the curve is fitted to; more cells are merged with their neighbors.
_MAX_CELLS = 1 << 12


class Split(NamedTuple):
    """Effect of the mix of rows on a change, and the remainder; they add up to the change."""

    mix: float
    remainder: float


def effects_of_mix(after: Evaluation, before: Evaluation) -> dict[str, float]:
    """Return the change of each metric if later rows are as likely positive as earlier rows of the same score.

    The curve from score to probability is fitted to the earlier rows, with missing labels at their probabilities. The
    effect is the metric of later rows under this curve minus that of earlier rows. Empty if the earlier rows do not
    determine the curve. Metrics of predictions are left out unless both sets have the same threshold.
    """
    thresholds = after.data.threshold, before.data.threshold
    has_one_threshold = thresholds[0] is not None and thresholds[0] == thresholds[1]
    curve = _Curve.of(before)
    if curve is None or not curve.covers(after):
        return {}
    effects = {}
    for name in (name for name in after.distributions if name in before.distributions):
        metric = after.metrics[name]
        if isinstance(metric, ConfusionMetric) and not has_one_threshold:
            continue
        values = [float(metric.of_counts(x.data.cells, curve.expected(x))[0]) for x in (after, before)]
        if np.isfinite(values).all():
            effects[name] = values[0] - values[1]
    return effects


class _Curve(NamedTuple):
    """The probability of a positive at each score, and the range of scores that it was fitted to."""

    fitted: Flexible
    low: float
    high: float

    @classmethod
    def of(cls, evaluation: Evaluation) -> "_Curve | None":
        """Fit the curve to the rows of an evaluation; None if one class has too few of them."""
        data, posterior = evaluation.data, evaluation.posterior
        cells, index = data.cells, data.missing_cells
        probability = posterior.weight @ posterior.on_all_cells.probability
        positives, negatives = cells.positives.astype(np.float64), cells.negatives.astype(np.float64)
        positives[index] += data.missing_counts * probability
        negatives[index] += data.missing_counts * (1.0 - probability)
        if min(float(positives.sum()), float(negatives.sum())) < _MIN_ROWS:
            return None
        score = cells.score
        low, high = float(score[0]), float(score[-1])
        if score.size > _MAX_CELLS:
            rows = positives + negatives
            middle = (np.cumsum(rows) - 0.5 * rows) / rows.sum()
            block = np.minimum(middle * _MAX_CELLS, _MAX_CELLS - 1).astype(np.int64)
            block = np.cumsum(np.diff(block, prepend=block[:1]) > 0)
            score = np.bincount(block, score * rows) / np.bincount(block, rows)
            positives, negatives = (np.bincount(block, c).astype(np.float64) for c in (positives, negatives))
        try:
            fitted = Flexible(threshold=data.threshold).fit_counts(score, positives, negatives)
        except InputError:  # no curve fits these scores
            return None
        return cls(fitted, low, high)

    def covers(self, evaluation: Evaluation) -> bool:
        """Return whether nearly all scores of an evaluation are in the range of the curve."""
        cells = evaluation.data.cells
        outside = (cells.score < self.low) | (cells.score > self.high)
        return bool(cells.total[outside].sum() <= _MAX_OUTSIDE * evaluation.data.n_rows)

    def expected(self, evaluation: Evaluation) -> FloatArray:
        """Return the weight of negatives and positives that the curve expects in each cell."""
        cells = evaluation.data.cells
        rows = cells.mass(cells.total)
        probability = self.fitted.predict(np.clip(cells.score, self.low, self.high))
        return np.stack([rows * (1.0 - probability), rows * probability])[:, None, :]
