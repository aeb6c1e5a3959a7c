"""How much of a change is the mix of rows: more or fewer rows at each score, each as likely positive as before."""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.calibrators import Flexible
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.confusion import ConfusionMetric

# Rows of either class that a curve has to be learned from, and the share of later rows that may lie beyond its scores.
_FEWEST, _BEYOND = 5.0, 0.05
# Cells that the curve is learned from; of more, neighbours are taken together.
_MOST = 1 << 12


class Split(NamedTuple):
    """A change in two parts that add up to it: what other rows at the same chances make, and the rest."""

    mix: float
    rest: float


def mix_of_rows(after: Evaluation, before: Evaluation) -> dict[str, float]:
    """For each metric of both, how far it moves where later rows are as likely positive as earlier ones of their score.

    The curve from score to chance is learned from the earlier rows, missing labels at their chances; the metric is that
    of later rows under this curve less that of earlier rows under it. Empty where the earlier rows do not say. Metrics
    of decisions are left out unless both are decided at one threshold: other decisions are no other rows.
    """
    cuts = after.data.threshold, before.data.threshold
    decided_alike = cuts[0] is not None and cuts[0] == cuts[1]
    curve = _Curve.of(before)
    if curve is None or not curve.reaches(after):
        return {}
    found = {}
    for name in (name for name in after.distributions if name in before.distributions):
        metric = after.metrics[name]
        if isinstance(metric, ConfusionMetric) and not decided_alike:
            continue
        moved = [float(metric.of_counts(one.data.cells, curve.expected(one))[0]) for one in (after, before)]
        if np.isfinite(moved).all():
            found[name] = moved[0] - moved[1]
    return found


class _Curve(NamedTuple):
    """The chance of a positive at each score, and the scores that it was learned from."""

    fitted: Flexible
    low: float
    high: float

    @classmethod
    def of(cls, one: Evaluation) -> "_Curve | None":
        """Learned from the rows of an evaluation; None where one class hardly occurs among them."""
        cells, places = one.data.cells, one.data.missing_cells
        chance = one.posterior.weight @ one.posterior.on_all_cells.probability
        positives, negatives = cells.positives.astype(np.float64), cells.negatives.astype(np.float64)
        positives[places] += one.data.missing_counts * chance
        negatives[places] += one.data.missing_counts * (1.0 - chance)
        if min(float(positives.sum()), float(negatives.sum())) < _FEWEST:
            return None
        score = cells.score
        low, high = float(score[0]), float(score[-1])
        if score.size > _MOST:
            rows = positives + negatives
            block = np.minimum((np.cumsum(rows) - 0.5 * rows) / rows.sum() * _MOST, _MOST - 1).astype(np.int64)
            block = np.cumsum(np.diff(block, prepend=block[:1]) > 0)
            score = np.bincount(block, score * rows) / np.bincount(block, rows)
            positives, negatives = (np.bincount(block, c).astype(np.float64) for c in (positives, negatives))
        try:
            fitted = Flexible(threshold=one.data.threshold).fit_counts(score, positives, negatives)
        except InputError:  # scores that no curve goes through
            return None
        return cls(fitted, low, high)

    def reaches(self, one: Evaluation) -> bool:
        """Whether nearly all rows have scores among those that the curve was learned from."""
        cells = one.data.cells
        beyond = (cells.score < self.low) | (cells.score > self.high)
        return bool(cells.total[beyond].sum() <= _BEYOND * one.data.n_rows)

    def expected(self, one: Evaluation) -> FloatArray:
        """The weight of negatives and positives that the curve expects in each cell."""
        cells = one.data.cells
        rows = cells.mass(cells.total)
        chance = self.fitted.predict(np.clip(cells.score, self.low, self.high))
        return np.stack([rows * (1.0 - chance), rows * chance])[:, None, :]
