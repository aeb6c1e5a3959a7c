"""Late labels in groups: delays and the curve are learnt from all groups at once, and each has a level of its own.

A month with hardly a label has nothing to learn delays from, and needs those of the months before. But a curve that all
groups share would hide the very change that one looks for: so the log odds of each group may lie above or below it, as
far as its own rows say. How far groups differ is learnt from all of them, and is what a group without a label may be
off by.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.arrival import Level, level_posterior
from darkmetrics._kernels.posterior.logistic import chance
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.label_models.late import Arrivals, LateLabels
from darkmetrics.missingness.base import LabelModel
from darkmetrics.posterior import Posterior

# Standard deviations of levels between groups that are tried, and the scale of their prior, a half normal.
_SPREADS, _SCALE = np.array([0.05, 0.1, 0.2, 0.4, 0.8]), 0.3
_SEED = 17


class _Group(NamedTuple):
    """The rows of a group as the likelihood of all groups sees them, and the row of each missing cell."""

    arrivals: Arrivals
    X: FloatArray
    place: IntArray
    counts: tuple[FloatArray, FloatArray, FloatArray]
    column: IntArray

    @classmethod
    def of(cls, arrivals: Arrivals, data: EvaluationSet) -> "_Group":
        rows = arrivals.rows(data)
        counts = (rows.positives, rows.negatives, rows.missing)
        return cls(arrivals, rows.X, rows.place, counts, rows.of_cell[data.missing_cells])

    def log_odds(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log odds of a positive without a level, and what having no label adds, for each row of parameters."""
        return self.arrivals.likelihood.log_odds(parameters, self.X, self.place)

    def level(self, odds: FloatArray, moved: FloatArray, spread: FloatArray) -> Level:
        return level_posterior(odds, moved, *self.counts, spread, self.arrivals.likelihood.credit)


@dataclass(frozen=True, eq=False)
class GroupArrivals(LabelModel):
    """The label model of one group among several, with the delays and the curve of all and a level of its own.

    Nodes of different groups belong together, one by one: what is open about delays is open in all of them.
    """

    arrivals: Arrivals
    # Standard deviation of levels, at each node.
    spread: FloatArray
    number: int

    def nodes(self, data: EvaluationSet) -> Posterior:
        size = self.spread.size
        group = _Group.of(self.arrivals, data)
        odds, moved = group.log_odds(self.arrivals.draws[self.arrivals.chosen])
        level = group.level(odds, moved, self.spread)
        # The same in every run and for any number of processes, and not the same in two groups.
        place = np.random.default_rng([_SEED, self.number]).permutation(size)
        drawn = level.mean + level.sd * ndtri((place + 0.5) / size)
        p = chance(odds + moved + drawn[:, None])
        return Posterior(np.full(size, 1.0 / size), p, bucket=group.column)

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        return self.arrivals.describe(data, nodes)


def fit_groups(model: LateLabels, sets: Sequence[EvaluationSet]) -> list[LabelModel]:
    """The label model of each group, learnt from all of them; one group alone is its own model."""
    arrivals = model.fit(EvaluationSet.merged(sets))
    if len(sets) == 1:
        return [arrivals]
    middle = arrivals.draws[arrivals.chosen].mean(axis=0)[None]
    evidence = np.zeros(_SPREADS.size)
    for data in sets:
        group = _Group.of(arrivals, data)
        odds, moved = (np.repeat(part, _SPREADS.size, axis=0) for part in group.log_odds(middle))
        evidence += group.level(odds, moved, _SPREADS).log_evidence
    weight = _SPREADS * np.exp(evidence - evidence.max() - 0.5 * (_SPREADS / _SCALE) ** 2)
    size = arrivals.chosen.size
    place = np.random.default_rng(_SEED).permutation(size)
    spread = _SPREADS[np.searchsorted(np.cumsum(weight) / weight.sum(), (place + 0.5) / size)]
    # The curve was learnt as if groups had no levels: those of n groups have moved it by an n-th of their variance.
    spread = spread * np.sqrt(1.0 + 1.0 / len(sets))
    return [GroupArrivals(arrivals, spread, number) for number in range(len(sets))]
