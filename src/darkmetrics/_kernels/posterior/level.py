"""The level of a group: how far its log odds of a positive lie from those of all groups (mathematics, section 13).

Given the curve and the delays that all groups share, the level u of one of them has a posterior of its own. A labelled
row adds `p_y(eta + u)`, a row without a label `p(eta + u) S_1 + (1 - p(eta + u)) S_0`, and u is normal around 0 before.
"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.posterior.log_odds import chance, log_chance

_MOST_STEPS, _LONGEST, _SMALL = 50, 1.0, 1e-8


class Level(NamedTuple):
    """The Gaussian at the mode for each case, and the log evidence of the case against a group without rows."""

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
    """The posterior of the level in each of k cases, by Newton's method.

    `odds` and `moved` (k, rows) are log odds of all groups and `log S_1 - log S_0`; `spread` (k,) is the prior's.
    """
    labelled, rows, prior = positives + negatives, positives + negatives + missing, spread**-2.0
    level, bend = np.zeros(spread.size), prior
    for _ in range(_MOST_STEPS):
        here = odds + level[:, None]
        p, w = chance(here), chance(here + moved)
        slope = credit * (positives.sum() - p @ rows + w @ missing) - prior * level
        bend = credit * ((p * (1.0 - p)) @ rows - (w * (1.0 - w)) @ missing) + prior
        # Missing rows can bend it the wrong way, by chance; what labels alone say leads uphill all the same.
        bend = np.maximum(bend, credit * ((p * (1.0 - p)) @ labelled) * 0.5 + prior)
        step = np.clip(slope / bend, -_LONGEST, _LONGEST)
        level = level + step
        if np.abs(step).max() < _SMALL:
            break
    gain = _log_likelihood(odds + level[:, None], moved, positives, negatives, missing)
    gain -= _log_likelihood(odds, moved, positives, negatives, missing)
    log_evidence = credit * gain - 0.5 * prior * level**2 + 0.5 * np.log(prior / bend)
    return Level(level, bend**-0.5, log_evidence)


def _log_likelihood(
    odds: FloatArray, moved: FloatArray, positives: FloatArray, negatives: FloatArray, missing: FloatArray
) -> FloatArray:
    log_p, log_w = log_chance(odds), log_chance(odds + moved)
    # log(p S_1 + (1 - p) S_0) = log p + log S_1 - log w, up to log S_1, which no level moves
    result: FloatArray = log_p @ (positives + negatives + missing) - odds @ negatives - log_w @ missing
    return result
