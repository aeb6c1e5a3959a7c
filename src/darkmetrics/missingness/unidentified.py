"""Missing by score and label (MNAR) without reference rows: an effect of the label that data cannot identify.

In a likelihood, the assumed shape of the curve would determine the effect. It therefore keeps its prior, and only moves
the log odds of the missing rows, which are predicted and not fitted.
"""

from dataclasses import replace

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.sobol import normal_points
from darkmetrics.missingness.fit_data import FitData
from darkmetrics.posterior import Posterior

# Prior of the log odds ratio between being missing and being positive, at equal scores: standard deviation, correlation
# between rows predicted positive and rows predicted negative, and standard deviation of its slope along the rank.
_SD, _CORRELATION, _SLOPE = 1.5, 0.7, 0.8
# Log odds beyond these are those of 0 and 1.
_MAX_LOG_ODDS = 35.0
_SEED = 11


def add_unidentified_effect(by_score: Posterior, fit_data: FitData, n_draws: int) -> Posterior:
    """Shift the log odds of the missing rows by draws of the effect from its prior.

    By Bayes' rule, the odds of a missing row are those of a labeled row with the same score times the odds ratio,
    however the missing rate depends on the score. Every set has the same effects in the same order, so that draws of
    several sets can be paired.
    """
    table, (rows, _) = fit_data.table, fit_data.table.with_missing
    points = normal_points(n_draws, 3, _SEED)
    above, slope = points[:, :1], points[:, 2:3]
    below = _CORRELATION * above + np.sqrt(1.0 - _CORRELATION**2) * points[:, 1:2]
    threshold = fit_data.data.threshold
    is_above = 2.0 * table.decided >= table.missing if threshold is None else table.score >= threshold
    shift = _SD * np.where(is_above[rows], above, below) + _SLOPE * slope * table.rank[rows]
    p = by_score.probability[np.arange(n_draws) % len(by_score)]
    with np.errstate(divide="ignore"):
        log_odds = np.clip(np.log(p) - np.log1p(-p), -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    return replace(
        by_score,
        weight=np.full(n_draws, 1.0 / n_draws),
        probability=expit(log_odds + shift),
        shift=shift @ table.missing[rows] / max(1.0, float(table.missing.sum())),
    )
