"""Certificates of approximate distributions: proven bounds on the distance to the exact distribution.

The theorem depends on the kind of metric and on the probabilities of its missing labels. A certificate applies a
theorem to a distribution on these data.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, singledispatch
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels import cdf_bounds
from darkmetrics._kernels.arrays import FloatArray, dot
from darkmetrics._kernels.auc.cdf_bounds import auc_cdf_bounds, auc_line, auc_sums
from darkmetrics._kernels.cdf_bounds import (
    CdfBounds,
    Line,
    bent_cdf_bounds,
    concave_curve,
    dkw_radius,
    gaps_between,
    stratified_radius,
    sum_cdf_bounds,
    third_moment,
)
from darkmetrics.certificate import Assumption, Certificate, Together, mixture_certificate
from darkmetrics.distributions import Discrete, MetricDistribution, Normal, Tabulated
from darkmetrics.distributions.base import slack
from darkmetrics.distributions.drawing import Draws
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.functionals import BentForm, CountFunctional, LinearFunctional
from darkmetrics.distributions.problem import Problem
from darkmetrics.distributions.rank_functionals import RankFunctional
from darkmetrics.posterior import Posterior

# Tail bounds can improve on the Berry-Esseen bound only if it is larger than this.
_MIN_SEARCHED = 0.1

Bounds: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]

INDEPENDENT = Assumption("missing labels are independent, with the probabilities that the label model gives", None)


class Proof(NamedTuple):
    """Proven bounds on the exact distribution of a functional, for any approximation."""

    theorem: str
    assumptions: tuple[Assumption, ...]
    # Bounds on the probability of an event that differs from {metric <= t} only where the metric is 0/0.
    bounds: Bounds
    undefined: float
    # Distance to the Gaussian of the same mean and variance, if the theorem bounds it for all t.
    uniform: float | None = None
    # The event as a function that is linear in t, which bounds the distance to any Gaussian between two points.
    line: Line | None = None


@singledispatch
def _proof(functional: Functional, p: FloatArray) -> Proof:
    return _no_proof("no theorem covers this kind of metric")


def _no_proof(explanation: str) -> Proof:
    """Return trivial bounds; only the extremes over all label assignments limit the distribution."""

    def bounds(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        return np.zeros(t.shape), np.ones(t.shape)

    return Proof("none", (Assumption(explanation, False),), bounds, 0.0, uniform=1.0)


@_proof.register
def _(functional: LinearFunctional, p: FloatArray) -> Proof:
    rows, spread = functional.missing, functional.spread
    mean = functional.total + dot(rows, functional.weight * p)
    variance = dot(rows, functional.weight**2 * p * (1.0 - p))
    third = dot(rows, np.abs(functional.weight) * functional.weight**2 * third_moment(p))
    largest = float(np.abs(functional.weight).max(initial=0.0))
    rounding = 1e-12 * (abs(functional.total) + dot(rows, np.abs(functional.weight)))
    if spread is not None:
        variance += dot(p * (1.0 - p), spread.second)
        third = float((np.cbrt(third) + np.cbrt(dot(third_moment(p), spread.third))) ** 3)
        largest += spread.largest
    facts = [np.array(x) for x in (variance, third, largest, rounding)]
    assumptions = (
        INDEPENDENT,
        Assumption("the metric is a constant plus a weighted sum of the missing labels", True),
        Assumption(f"the sum varies: its standard deviation is {np.sqrt(variance):.3g}", variance > 0.0),
    )

    def bounds(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        return sum_cdf_bounds(t - mean, *facts)

    uniform = _uniform(variance, third) if spread is None else None
    line = Line(1.0, mean, lambda t: np.full(t.shape, variance), lambda t: np.full(t.shape, third), mean)
    return Proof("Berry-Esseen", assumptions, bounds, float(functional.undefined_mass(p[None])[0]), uniform, line)


@_proof.register
def _(functional: RankFunctional, p: FloatArray) -> Proof:
    sums = auc_sums(functional.data, p, functional.spread)
    undefined = float(functional.undefined_mass(p[None])[0])

    def bounds(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        lower, upper = auc_cdf_bounds(sums, (t - functional.shift) / functional.scale)
        return (lower, upper) if functional.scale > 0.0 else (1.0 - upper, 1.0 - lower)

    present = min(sums.mean_p, sums.total - sums.mean_p)
    assumptions = (
        INDEPENDENT,
        Assumption(f"both classes are expected: the smaller one has a weight of {present:.6g}", present > 0.0),
        Assumption(f"one class is absent with probability {undefined:.3g}, which the bound includes", True),
    )
    line = auc_line(sums, functional.scale, functional.shift) if functional.scale > 0.0 else None
    return Proof("Berry-Esseen at every t, with Bernstein", assumptions, bounds, undefined, line=line)


class GroupMoments(NamedTuple):
    """Mean, variance, third absolute moment and largest weight of the positives of each group.

    `none_positive` and `all_positive` are the probabilities that no row, or every row, of the group is positive.
    """

    mean: FloatArray
    variance: FloatArray
    third: FloatArray
    largest: FloatArray
    none_positive: FloatArray
    all_positive: FloatArray


def _group_moments(functional: CountFunctional, p: FloatArray) -> GroupMoments:
    w = np.ones(p.size) if functional.split.weight is None else functional.split.weight
    result = []
    with np.errstate(divide="ignore"):
        for rows in functional.split.groups:
            n, row_weight, probability = functional.missing[rows], w[rows], p[rows]
            v = probability * (1.0 - probability)
            result.append(
                (
                    dot(n * row_weight, probability),
                    dot(n * row_weight**2, v),
                    dot(n * row_weight**3, v * (1.0 - 2.0 * v)),
                    float(row_weight.max(initial=0.0)),
                    float(np.exp((n * np.log1p(-probability)).sum())),
                    float(np.exp((n * np.log(probability)).sum())),
                )
            )
    return GroupMoments(*np.array(result).reshape(-1, 6).T)


@_proof.register
def _proof_of_counts(functional: CountFunctional, p: FloatArray) -> Proof:
    sums = _group_moments(functional, p)
    if functional.bent is not None:
        return _proof_of_bent(functional, functional.bent, sums)
    if functional.ratio is None:
        return _no_proof("no theorem covers a formula that is not a ratio of sums")
    if not functional.denominator_keeps_its_sign():
        return _no_proof("no theorem covers a denominator that may change its sign")
    means, variances, thirds, largest, none_positive, all_positive = sums
    means_with_constant = np.concatenate(([1.0], means + functional.offset))
    sign = 1.0 if dot(functional.ratio.denominator, means_with_constant) > 0.0 else -1.0
    numerator, denominator = sign * functional.ratio.numerator, sign * functional.ratio.denominator
    size_n, size_d = (
        dot(np.abs(numerator), np.abs(means_with_constant)),
        dot(np.abs(denominator), np.abs(means_with_constant)),
    )

    mean_n, mean_d = dot(numerator, means_with_constant), dot(denominator, means_with_constant)

    def coefficients(t: FloatArray) -> FloatArray:
        # metric <= t if and only if numerator - t denominator <= 0, a sum with these coefficients
        return np.abs(numerator[1:, None] - t * denominator[1:, None])

    def bounds(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        rounding, k = 1e-12 * (size_n + np.abs(t) * size_d), coefficients(t)
        facts = variances @ k**2, thirds @ k**3, (k * largest[:, None]).max(axis=0), rounding
        return sum_cdf_bounds(t * mean_d - mean_n, *facts)

    change = denominator[1:] * functional.totals
    start = float(denominator[0] + denominator[1:] @ functional.offset)
    low, high = start + float(change[change < 0.0].sum()), start + float(change[change > 0.0].sum())
    undefined = 0.0
    if low <= 1e-9 * size_d:
        # 0/0 occurs only for the label assignment that minimizes the denominator.
        moving = [
            float((all_positive if step < 0.0 else none_positive)[i]) for i, step in enumerate(change) if step != 0.0
        ]
        undefined = float(np.prod(moving))
    constant = not change.any()
    uniform = (
        _uniform(dot(variances, numerator[1:] ** 2), dot(thirds, np.abs(numerator[1:]) ** 3)) if constant else None
    )
    assumptions = (
        INDEPENDENT,
        Assumption("numerator and denominator are weighted sums of the missing labels", True),
        Assumption(
            f"the denominator is {high:.6g} whatever the labels"
            if constant
            else f"the denominator is nowhere negative: it lies between {low:.6g} and {high:.6g}",
            True,
        ),
        Assumption(f"0/0 has probability {undefined:.3g}, which the bound includes", True),
    )
    theorem = "Berry-Esseen" if constant else "Berry-Esseen at every t, with the Geary-Hinkley gap"
    curve = dot(variances, denominator[1:] ** 2)
    vertex = dot(variances, numerator[1:] * denominator[1:]) / curve if curve > 0.0 else 0.0
    of_t = (lambda t: variances @ coefficients(t) ** 2), (lambda t: thirds @ coefficients(t) ** 3)
    line = Line(mean_d, mean_n / mean_d, *of_t, vertex) if mean_d > 0.0 else None
    return Proof(theorem, assumptions, bounds, undefined, uniform, line)


def _proof_of_bent(functional: CountFunctional, form: BentForm, sums: GroupMoments) -> Proof:
    means, variances, thirds, largest, none_positive, all_positive = sums
    expected, offset = means + functional.offset, float(np.sum(functional.offset))
    totals = np.array(functional.totals)
    mean_p = float(expected.sum())
    if not 0.0 < mean_p < form.total or form.factor <= 0.0:
        return _no_proof("both classes and both decisions have to be there")
    ends = offset, offset + float(totals.sum())
    # If a class is absent, another formula applies, or 0/0.
    absent = float(none_positive.prod()) if ends[0] <= 1e-9 * form.total else 0.0
    absent += float(all_positive.prod()) if ends[1] >= (1.0 - 1e-9) * form.total else 0.0
    curve = concave_curve(form.factor, form.power, form.total, mean_p, ends)
    mean = float(form.numerator[0] + form.numerator[1:] @ expected)
    size = abs(mean) + float(np.abs(form.numerator[1:]) @ expected)
    reach_p = float(max(means.sum(), (totals - means).sum()))

    def bounds(t: FloatArray) -> tuple[FloatArray, FloatArray]:
        # metric <= t if and only if sum <= t g(P), and the concave g lies below its tangent
        t = (t - form.shift) / form.scale
        k = form.numerator[1:, None] - t * curve.slope
        facts = variances @ k**2, thirds @ np.abs(k) ** 3, (np.abs(k) * largest[:, None]).max(axis=0)
        rounding = 1e-12 * (size + np.abs(t) * (curve.value + abs(curve.slope) * mean_p))
        facts_p = float(variances.sum()), float(largest.max()), reach_p
        return bent_cdf_bounds(t * curve.value - mean, t, curve.bend, (*facts, rounding), facts_p)

    assumptions = (
        INDEPENDENT,
        Assumption("the metric is a weighted sum of the labels over a concave function of their number", True),
        Assumption(f"one class is absent with probability {absent:.3g}, which the bound includes", True),
    )
    return Proof("Berry-Esseen at every t, with Bernstein", assumptions, bounds, min(1.0, absent))


def _uniform(variance: float, third: float) -> float | None:
    """Return the Berry-Esseen bound for all t; None if a search over t could find a smaller bound."""
    # Variances close to the smallest float, as of probabilities of 1e-200, cannot be divided by.
    error = cdf_bounds.CONSTANT * third / variance**1.5 if variance > 1e-200 else 1.0
    return error if error < _MIN_SEARCHED else None


# First points of a bound, in standard deviations: quantiles, and the tails up to negligible mass.
_TAIL = np.arange(2.75, 7.0, 0.25)
_POINTS = np.concatenate([-_TAIL[::-1], ndtri(np.arange(1, 256) / 256.0), _TAIL])
# With more atoms, the bound starts from quantiles.
_MAX_ATOMS = 1 << 12
# Sums of a billion rows have a rounding error of 1e-12 of their size, which is 1e-7 standard deviations.
_ROUNDING = 1e-7
# Confidence of a Monte Carlo band.
_DKW_CONFIDENCE = 0.999


@dataclass(frozen=True, eq=False)
class Prover:
    """Certificates of distributions of a functional; cells are merged on first use, to save memory."""

    functional: Functional
    posterior: Posterior

    @cached_property
    def _merged(self) -> tuple[Functional, FloatArray]:
        merged, cells = Problem(self.posterior).cells(self.functional)
        return merged, cells.probability

    def __call__(self, distribution: MetricDistribution, draw: int | None = None) -> Certificate:
        """Return the certificate of the distribution over all posterior draws, or at a single draw."""
        functional, probability = self._merged
        points = _coarse_grid(distribution)
        if draw is not None:
            return _certify_draw(functional, _proof(functional, probability[draw]), distribution, points)
        certificates = [_certify_draw(functional, _proof(functional, p), distribution, points) for p in probability]
        if len(certificates) == 1:
            return certificates[0]
        # The bounds of the draws include 0/0, so the weights of the draws need no further term.
        return mixture_certificate(certificates, self.posterior.weight, 0.0, distribution._cdf, points)


def _certify_draw(
    functional: Functional, proof: Proof, distribution: MetricDistribution, points: FloatArray
) -> Certificate:
    enclosure = _Enclosure(functional, proof)
    ks_bound = None
    if proof.uniform is not None and (isinstance(distribution, Normal) or proof.uniform >= 1.0):
        ks_bound = proof.uniform + proof.undefined + _ROUNDING
    if not np.isfinite(points).all():
        ks_bound = 1.0
    if ks_bound is None and points.size < 2:
        point = enclosure(points)
        ks_bound = float(max(point.below[0], 1.0 - point.lower[0]))
    between = None
    if proof.line is not None and isinstance(distribution, Normal) and distribution.scale > 0.0:
        between = _Between(proof, proof.line, distribution)
    # A finer search is too slow for mixtures.
    tolerance = 0.0 if isinstance(distribution, (Normal, Discrete, Tabulated)) else 1.0
    facts = proof.theorem, proof.assumptions, distribution._cdf, enclosure, points
    return Certificate(*facts, known=ks_bound, between=between, tolerance=tolerance)


@dataclass(frozen=True, eq=False)
class _Between(Together):
    """Bounds on the distance to a Gaussian distribution between points."""

    proof: Proof
    line: Line
    distribution: Normal

    def __call__(self, t: FloatArray) -> FloatArray:
        return self.weighted([self], np.ones(1), t)

    @classmethod
    def weighted(cls, parts: Sequence["_Between"], weight: FloatArray, t: FloatArray) -> FloatArray:
        loc, scale, undefined = np.array(
            [(part.distribution.loc, part.distribution.scale, part.proof.undefined) for part in parts]
        ).T
        gaps = gaps_between([part.line for part in parts], t, loc, scale)
        return np.asarray(weight @ (gaps + undefined[:, None] + _ROUNDING))


def _grid(distribution: MetricDistribution) -> FloatArray:
    """Return an increasing grid of points with most of the mass."""
    if isinstance(distribution, Normal):
        return (
            distribution.loc + distribution.scale * _POINTS
            if distribution.scale > 0.0
            else np.array([distribution.loc])
        )
    if isinstance(distribution, Discrete):
        return distribution.atoms
    if isinstance(distribution, Tabulated):
        return np.unique(distribution._ppf(np.asarray(ndtr(_POINTS))))
    # The cdf of a mixture is slow at every point.
    return distribution.mean() + distribution.std() * _POINTS[::8]


def _coarse_grid(distribution: MetricDistribution) -> FloatArray:
    """Return the grid, or quantiles if there are very many atoms; the search for the bound refines it."""
    points = _grid(distribution)
    if points.size <= _MAX_ATOMS:
        return points
    return np.unique(np.concatenate([points[[0, -1]], distribution._ppf(np.asarray(ndtr(_POINTS)))]))


@dataclass(frozen=True, eq=False)
class _Enclosure(Together):
    """Bounds on the exact cdf: bounds of the theorem, widened by the mass of 0/0, and 0 or 1 beyond the extremes.

    With A = P(metric <= t and defined), the cdf conditional on the metric being defined is A / (1 - u). With a value
    for 0/0 the cdf is A or A + u. The event of the theorem has a probability between A and A + u.
    """

    functional: Functional
    proof: Proof

    def __call__(self, t: FloatArray) -> CdfBounds:
        return CdfBounds(*self.weighted([self], np.ones(1), t))

    @classmethod
    def weighted(cls, parts: Sequence["_Enclosure"], weight: FloatArray, t: FloatArray) -> FloatArray:
        functional = parts[0].functional  # the same at all draws
        low, high, _ = functional.extremes
        with np.errstate(over="ignore", invalid="ignore", under="ignore"):
            lower, upper = np.stack([part.proof.bounds(t) for part in parts], axis=1)
        undefined = np.array([part.proof.undefined for part in parts])[:, None]
        lower = weight @ np.nan_to_num(np.maximum(lower - undefined, 0.0), nan=0.0)
        upper = weight @ np.nan_to_num(np.minimum(upper + undefined, 1.0), nan=1.0)
        # The ends may differ in size, so each has its margin, which is narrower than the distribution.
        width, total = 1e-6 * (high - low), float(weight.sum())
        at_low, at_high = (np.minimum(slack(np.array(end), functional.noise), width) for end in (low, high))
        is_below, is_above = t < low - at_low, t >= high - at_high
        below = np.where(t <= low + at_low, 0.0, np.where(t > high + at_high, total, upper))
        lower = np.where(is_above, total, np.where(is_below, 0.0, lower))
        return np.stack([lower, np.where(is_below, 0.0, np.where(is_above, total, upper)), below])


def sampled_certificate(
    functional: Functional, draws: Draws, posterior: Posterior, distribution: MetricDistribution
) -> Certificate:
    """Return the confidence band around a distribution of draws.

    The assignment without a flip is not drawn. Its mass is exact, and the band covers the remaining mass.
    """
    random = draws.mass[: draws.mass.size - draws.n_fixed]
    drawn = float(random.sum())
    n = max(1, round(drawn**2 / max(float((random**2).sum()), 1e-300)))
    values = np.asarray(draws.values)
    defined = np.isfinite(values) | (not functional.given_defined)
    weight = posterior.weight / posterior.weight.sum()
    if weight.size == 1 and not draws.n_fixed:
        radius, theorem = dkw_radius(n, _DKW_CONFIDENCE), "Dvoretzky-Kiefer-Wolfowitz"
    else:  # flips are drawn in strata, too
        radius, theorem = stratified_radius(n, _DKW_CONFIDENCE), "Hoeffding's inequality over the strata of the draws"
    # Imputations are allocated in whole numbers.
    shares = np.bincount(draws.draw, draws.mass, weight.size)
    radius = radius * drawn + 0.5 * float(np.abs(shares - weight).sum())
    if not defined.all():
        if weight.size == 1 and not draws.n_fixed:
            # The defined draws are a sample of the distribution conditional on the metric being defined.
            radius = dkw_radius(max(1, int(defined.sum())), _DKW_CONFIDENCE)
        else:  # excluding draws changes numerator and denominator
            radius *= 2.0 / max(float(draws.mass[defined].sum()), 1e-300)
    n_defined = int(defined.sum())
    return band(distribution, min(1.0, radius), theorem, n_defined, independent=posterior.independent)


def band(distribution: MetricDistribution, radius: float, theorem: str, n: int, *, independent: bool) -> Certificate:
    """Return the certificate of an empirical distribution of n draws with a band of this radius."""

    def enclosure(t: FloatArray) -> CdfBounds:
        level, before = distribution._cdf(t, left=False), distribution._cdf(t, left=True)
        return CdfBounds(
            np.maximum(level - radius, 0.0), np.minimum(level + radius, 1.0), np.minimum(before + radius, 1.0)
        )

    labels = INDEPENDENT if independent else Assumption("missing labels are as the label model draws them", None)
    assumptions = (labels, Assumption(f"the distribution is that of {n:,} random label assignments", True))
    return Certificate(
        theorem, assumptions, distribution._cdf, enclosure, _grid(distribution), _DKW_CONFIDENCE, known=radius
    )
