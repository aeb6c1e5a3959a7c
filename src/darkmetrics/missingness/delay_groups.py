"""Delayed labels in groups: delays and curve are learned from all groups at once, and each group has its own level.

A month with hardly a label has nothing to learn delays from. A curve common to all groups would hide the very change
that one looks for, so the log odds of each group may differ by a level. The sd of levels is learned from all groups.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.log_odds import chance, log_chance
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.delay_fit import compute_log_odds
from darkmetrics.missingness.delayed import Delayed, FittedDelays
from darkmetrics.posterior import Posterior

# Candidates for the sd of levels, and the scale of their half-normal prior.
_SPREADS, _SCALE = np.array([0.05, 0.1, 0.2, 0.4, 0.8]), 0.3
_MAX_STEPS, _MAX_MOVE, _MIN_MOVE = 50, 1.0, 1e-8
_SEED = 17


class Level(NamedTuple):
    """Gaussian approximation of the level in each of k cases, and the log evidence against a group without rows."""

    mean: FloatArray
    sd: FloatArray
    log_evidence: FloatArray


def level_posterior(
    odds: FloatArray,
    moved: FloatArray,
    positives: FloatArray,
    negatives: FloatArray,
    missing: FloatArray,
    spread: FloatArray,
    credit: float,
) -> Level:
    """Return the posterior of the level of a group in k cases.

    Parameters
    ----------
    odds, moved : array (k, n_rows)
        Log odds of a positive without a level, and what having no label adds to them.
    positives, negatives, missing : array (n_rows,)
        Numbers of rows.
    spread : array (k,)
        Prior sd of the level.
    credit : float
        Exponent of the likelihood.
    """
    labels, rows, prior = positives + negatives, positives + negatives + missing, spread**-2.0
    level, bend = np.zeros(spread.size), prior
    for _ in range(_MAX_STEPS):
        shifted = odds + level[:, None]
        p, w = chance(shifted), chance(shifted + moved)
        slope = credit * (positives.sum() - p @ rows + w @ missing) - prior * level
        bend = credit * ((p * (1.0 - p)) @ rows - (w * (1.0 - w)) @ missing) + prior
        # Missing rows can bend it the wrong way; the curvature of the labels alone leads uphill.
        bend = np.maximum(bend, credit * ((p * (1.0 - p)) @ labels) * 0.5 + prior)
        step = np.clip(slope / bend, -_MAX_MOVE, _MAX_MOVE)
        level = level + step
        if np.abs(step).max() < _MIN_MOVE:
            break

    def log_likelihood(log_odds: FloatArray) -> FloatArray:
        # log(p S_1 + (1 - p) S_0) = log p + log S_1 - log w, up to log S_1, which no level changes
        log_p, log_w = log_chance(log_odds), log_chance(log_odds + moved)
        return np.asarray(log_p @ rows - log_odds @ negatives - log_w @ missing)

    gain = log_likelihood(odds + level[:, None]) - log_likelihood(odds)
    return Level(level, bend**-0.5, credit * gain - 0.5 * prior * level**2 + 0.5 * np.log(prior / bend))


class _Group(NamedTuple):
    """Rows of a group: log odds at each draw, what having no label adds, counts, and the row of each missing cell."""

    odds: FloatArray
    moved: FloatArray
    counts: tuple[FloatArray, FloatArray, FloatArray]
    column: IntArray

    @classmethod
    def of(cls, fitted: FittedDelays, data: EvaluationSet) -> "_Group":
        table = fitted.grid.table(data, fine=True)
        odds, moved = compute_log_odds(fitted.grid, fitted.draws, table)
        return cls(odds, moved, (table.positives, table.negatives, table.missing), table.of_cell[data.missing_cells])


@dataclass(frozen=True, eq=False)
class GroupDelays(Mechanism):
    """Label model of one group among several: delays and curve of all groups, and a level of its own.

    Draws of different groups belong together, one by one, because delays are common to all groups.

    Attributes
    ----------
    arrivals : FittedDelays
        What all groups show.
    spread : array (n_draws,)
        Sd of levels at each draw.
    number : int
        Number of the group.
    """

    arrivals: FittedDelays
    spread: FloatArray
    number: int

    def posterior(self, data: EvaluationSet) -> Posterior:
        size, group = self.spread.size, _Group.of(self.arrivals, data)
        level = level_posterior(group.odds, group.moved, *group.counts, self.spread, self.arrivals.data.credit)
        # The same in every run and for any number of processes, and different in each group.
        order = np.random.default_rng([_SEED, self.number]).permutation(size)
        drawn = level.mean + level.sd * ndtri((order + 0.5) / size)
        p = chance(group.odds + group.moved + drawn[:, None])
        return Posterior(np.full(size, 1.0 / size), p, column=group.column)

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return self.arrivals.describe(data, posterior)


def fit_groups(model: Delayed, sets: Sequence[EvaluationSet]) -> list[Mechanism]:
    """Return the label model of each group, learned from all groups."""
    fitted = model.fit(EvaluationSet.concat(sets))
    if len(sets) == 1:
        return [fitted]
    evidence = np.zeros(_SPREADS.size)
    for data in sets:
        group = _Group.of(fitted, data)
        odds, moved = (np.repeat(values.mean(axis=0)[None], _SPREADS.size, axis=0) for values in group[:2])
        evidence += level_posterior(odds, moved, *group.counts, _SPREADS, fitted.data.credit).log_evidence
    weight = _SPREADS * np.exp(evidence - evidence.max() - 0.5 * (_SPREADS / _SCALE) ** 2)
    size = len(fitted.draws.curve)
    order = np.random.default_rng(_SEED).permutation(size)
    spread = _SPREADS[np.searchsorted(np.cumsum(weight) / weight.sum(), (order + 0.5) / size)]
    # The curve was learned without levels: those of n groups have moved it by a fraction 1/n of their variance.
    spread = spread * np.sqrt(1.0 + 1.0 / len(sets))
    return [GroupDelays(fitted, spread, number) for number in range(len(sets))]
