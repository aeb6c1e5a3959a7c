"""How likely is a target missed, and how surprising would the data be if it were met?"""

from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distributions import MetricDistribution
from darkmetrics.metrics import Metric
from darkmetrics.posterior import Posterior

# A probability that is not 0 or 1 keeps this distance from them: half a unit in the last place of 1.
_ROUNDING = 2.0**-53
# Variance that stands for what lies between and beyond the nodes of a posterior, as a share of the variance between
# them. Two to four standard deviations out, on 24 sets that played no part in choosing it, p-values from 64 nodes were
# at least 0.59 of what 1,024 nodes say (1.1 with the default model); without it they fall to 0.02 of that
# (tests/test_monitoring_p_values.py has some of these sets).
_BETWEEN = 0.12
_PLACES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()


class Verdict(NamedTuple):
    """Probability that a target is missed, and the p-value of "it is met"; NaN where there is nothing to miss."""

    missed: float
    p_value: float


NOTHING = Verdict(np.nan, np.nan)


def verdict(
    distribution: MetricDistribution,
    posterior: Posterior,
    metric: Metric,
    target: float,
    *,
    fill: float | None,
    n_draws: int,
    binning_error: float = 0.0,
) -> Verdict:
    """What a law says about a target.

    The p-value is the probability that the target is met, or a little more where that probability is not known well:
    in the tails of a law that is mixed over a few dozen nodes, or that is a sample of `n_draws`. `fill` is what a 0/0
    counts as; None: it misses no target. `binning_error` is how far score buckets can have moved the metric: the
    p-value is that of a target which is so much easier, and NaN where it is not known.
    """
    met = float(_met(distribution, np.array([target]), metric)[0])
    if np.isnan(met) or (fill is None and distribution.undefined >= 1.0):
        return NOTHING
    low, high = distribution.support()
    reach = np.inf if np.isnan(binning_error) else binning_error
    # Certain is only what holds for every labeling, wherever in their buckets scores are; at the target it is met.
    low, high = low - reach, high + reach
    undecided = low <= target < high if metric.better == "lower" else low < target <= high
    rounding = _ROUNDING if undecided else 0.0
    missed = float(np.clip(_missed(distribution, met, metric, target, fill), rounding, 1.0 - rounding))
    if np.isnan(binning_error):
        return Verdict(missed, np.nan)
    target = target + binning_error if metric.better == "lower" else target - binning_error
    met = float(_met(distribution, np.array([target]), metric)[0])
    p_value = 1.0 - float(np.clip(_missed(distribution, met, metric, target, fill), rounding, 1.0 - rounding))
    spread = _spread_of_nodes(distribution, posterior)
    if rounding and spread > 0.0:
        sides = _met(distribution, target + np.sqrt(_BETWEEN) * spread * _PLACES, metric)
        p_value = max(p_value, 1.0 - _missed(distribution, float(_WEIGHTS @ sides), metric, target, fill))
    if distribution.method == "monte carlo" and undecided:
        # Draws that all miss do not make a p-value of zero.
        p_value = max(p_value, ((1.0 - missed) * n_draws + 1.0) / (n_draws + 1.0))
    return Verdict(missed, min(p_value, 1.0))


def _met(distribution: MetricDistribution, targets: FloatArray, metric: Metric) -> FloatArray:
    """The probability that the metric meets each target; one that is just the target meets it."""
    at_most: FloatArray = distribution.cdf(targets)
    # P(X < t) is twice the PIT less P(X <= t).
    return at_most if metric.better == "lower" else 1.0 - (2.0 * distribution.pit(targets) - at_most)


def _missed(distribution: MetricDistribution, met: float, metric: Metric, target: float, fill: float | None) -> float:
    """The probability of a miss, given that of a hit among all that the law counts."""
    missed = 1.0 - met
    if fill is None and distribution.undefined > 0.0:
        counts_as = metric.undefined_as
        if np.isnan(counts_as) or distribution.given_defined:
            return missed * (1.0 - distribution.undefined)  # the law is that of the metric given that it is defined
        if counts_as > target if metric.better == "lower" else counts_as < target:
            missed -= distribution.undefined
    return max(missed, 0.0)


def _spread_of_nodes(distribution: MetricDistribution, posterior: Posterior) -> float:
    """Return the standard deviation of the metric's mean between draws, within each mechanism if several are mixed."""
    parts = distribution.by_draw
    if parts is None:
        return 0.0
    mechanism = np.zeros(parts.weight.size, dtype=np.int64) if posterior.mechanism is None else posterior.mechanism
    weight = np.bincount(mechanism, parts.weight)
    mean = np.bincount(mechanism, parts.weight * parts.mean) / np.where(weight > 0.0, weight, 1.0)
    return float(np.sqrt(parts.weight @ (parts.mean - mean[mechanism]) ** 2))
