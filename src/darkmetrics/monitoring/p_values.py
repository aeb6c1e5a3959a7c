"""Probability that a target is missed, and the p-value of "the target is met"."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions import MetricDistribution, Mixture
from darkmetrics.evaluation import Evaluation
from darkmetrics.metrics import Metric

# Numbers in the distributions that are kept for alerts, of all groups together.
_MAX_KEPT = 2**25
# A probability that is not 0 or 1 keeps this distance from them: half a unit in the last place of 1.
_ROUNDING = 2.0**-53
# Variance between and beyond posterior draws, as a fraction of the variance between them. On 24 sets that played no
# part in choosing it, two to four standard deviations out, p-values from 64 draws were at least 0.59 of those from
# 1,024 draws (1.1 with the default model). Without it they fall to 0.02 of that (tests/test_monitoring_p_values.py has
# some of these sets).
_EXTRA_VARIANCE = 0.12
_POINTS, _POINT_WEIGHTS = np.polynomial.hermite_e.hermegauss(41)
_POINT_WEIGHTS = _POINT_WEIGHTS / _POINT_WEIGHTS.sum()


class Verdict(NamedTuple):
    """Probability that a target is missed, and the p-value of "it is met"; NaN if the metric has no value."""

    missed: float
    p_value: float


NO_VERDICT = Verdict(np.nan, np.nan)


class Judged(NamedTuple):
    """The distributions of a group that verdicts need, and the mechanism of each posterior draw."""

    distributions: Mapping[str, MetricDistribution]
    mechanism: IntArray | None

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Judged":
        """Return the distributions of an evaluation."""
        return cls(evaluation.distributions, evaluation.posterior.mechanism)

    def limit_memory(self, n_groups: int) -> "Judged":
        """Keep the smallest distributions of one of `n_groups` groups, as many as fit into memory."""
        kept, room = {}, _MAX_KEPT // n_groups
        for name, distribution in sorted(self.distributions.items(), key=lambda item: count_numbers(item[1])):
            room -= count_numbers(distribution)
            if room < 0:
                break
            if not isinstance(distribution, Mixture):  # its components can refer to the posterior
                kept[name] = replace(distribution, certify=None)  # so does the proof of its error
        return self._replace(distributions=kept)


def count_numbers(distribution: MetricDistribution) -> int:
    """Count the numbers that a distribution stores."""
    return sum(array.size for array in vars(distribution).values() if isinstance(array, np.ndarray))


def verdict(
    distribution: MetricDistribution,
    mechanism: IntArray | None,
    metric: Metric,
    target: float,
    *,
    fill: float | None,
    n_draws: int,
    binning_error: float = 0.0,
) -> Verdict:
    """Return the probability that a target is missed, and the p-value of "it is met".

    The p-value is the probability that the target is met, or a little more where that probability is less accurate: in
    the tails of a mixture over a few dozen posterior draws, or of a sample of `n_draws`. `mechanism` has the mechanism
    of each posterior draw. `fill` replaces 0/0; None: a 0/0 misses no target. `binning_error` is the largest distance
    by which score bins can have moved the metric. The p-value allows for it, and is NaN if it is unknown.
    """
    met = float(_met(distribution, np.array([target]), metric)[0])
    if np.isnan(met) or (fill is None and distribution.undefined >= 1.0):
        return NO_VERDICT
    low, high = distribution.support()
    reach = np.inf if np.isnan(binning_error) else binning_error
    # A probability is 0 or 1 only if no label assignment and no score within its bin can change the verdict.
    low, high = low - reach, high + reach
    undecided = low <= target < high if metric.better == "lower" else low < target <= high
    rounding = _ROUNDING if undecided else 0.0
    missed = float(np.clip(_missed(distribution, met, metric, target, fill), rounding, 1.0 - rounding))
    if np.isnan(binning_error):
        return Verdict(missed, np.nan)
    target = target + binning_error if metric.better == "lower" else target - binning_error
    met = float(_met(distribution, np.array([target]), metric)[0])
    p_value = 1.0 - float(np.clip(_missed(distribution, met, metric, target, fill), rounding, 1.0 - rounding))
    spread = _spread_of_draws(distribution, mechanism)
    if rounding and spread > 0.0:
        around = _met(distribution, target + np.sqrt(_EXTRA_VARIANCE) * spread * _POINTS, metric)
        p_value = max(p_value, 1.0 - _missed(distribution, float(_POINT_WEIGHTS @ around), metric, target, fill))
    if distribution.method == "monte carlo" and undecided:
        # If all imputations miss the target, the p-value is still above zero.
        p_value = max(p_value, ((1.0 - missed) * n_draws + 1.0) / (n_draws + 1.0))
    return Verdict(missed, min(p_value, 1.0))


def _met(distribution: MetricDistribution, targets: FloatArray, metric: Metric) -> FloatArray:
    """Return the probability that the metric meets each target; a metric equal to its target meets it."""
    at_most: FloatArray = distribution.cdf(targets)
    # P(X < t) is twice the PIT minus P(X <= t).
    return at_most if metric.better == "lower" else 1.0 - (2.0 * distribution.pit(targets) - at_most)


def _missed(distribution: MetricDistribution, met: float, metric: Metric, target: float, fill: float | None) -> float:
    """Return the probability of a miss, given the probability that the distribution assigns to meeting the target."""
    missed = 1.0 - met
    if fill is None and distribution.undefined > 0.0:
        counts_as = metric.undefined_as
        if np.isnan(counts_as) or distribution.given_defined:
            return missed * (1.0 - distribution.undefined)  # conditional on the metric being defined
        if counts_as > target if metric.better == "lower" else counts_as < target:
            missed -= distribution.undefined
    return max(missed, 0.0)


def _spread_of_draws(distribution: MetricDistribution, mechanism: IntArray | None) -> float:
    """Return the standard deviation of the metric's mean between the posterior draws of each mechanism."""
    moments = distribution.by_draw
    if moments is None:
        return 0.0
    mechanism = np.zeros(moments.weight.size, dtype=np.int64) if mechanism is None else mechanism
    weight = np.bincount(mechanism, moments.weight)
    mean = np.bincount(mechanism, moments.weight * moments.mean) / np.where(weight > 0.0, weight, 1.0)
    return float(np.sqrt(moments.weight @ (moments.mean - mean[mechanism]) ** 2))
