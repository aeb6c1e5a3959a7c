"""Mixture: distribution of a metric over several posterior draws, and the sources of its variance."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import LEVEL_ROUNDING, FloatArray
from darkmetrics._kernels.sums.normal_mixture import BRACKET_TOLERANCE, RELATIVE_TOLERANCE
from darkmetrics.certificate import Certificate, mixture_certificate
from darkmetrics.distributions.base import DrawMoments, MetricDistribution, slack
from darkmetrics.distributions.kinds import Discrete, Normal, Undefined

# Discrete components are joined if they have at most this many atoms; sorting more is slower than a cdf of each.
_MAX_JOINED_ATOMS = 1 << 20
# Points per step of the search for a quantile: a component's cdf at 31 points takes hardly longer than at one.
_N_POINTS = 31
# Values of the cdf of Gaussian components that are computed at a time.
_BATCH = 1 << 18
# A standard deviation below this fraction of a distribution's values is a rounding error; with 1e12 rows it is 1e-6.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Mixture(MetricDistribution):
    """A weighted mixture of distributions, one for each posterior draw."""

    components: Sequence[MetricDistribution]
    weight: FloatArray

    def __post_init__(self) -> None:
        if self.by_draw is None:
            moments = np.array([(component.mean(), component.var()) for component in self.components])
            object.__setattr__(self, "by_draw", DrawMoments.of(self.weight, moments[:, 0], moments[:, 1]))

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        level: FloatArray = np.zeros(t.shape)
        gaussians, others = self._kinds
        for weight, component in others:
            level += weight * component._cdf(t, left=left)
        if gaussians is not None:
            n_levels = max(1, _BATCH // gaussians.weight.size)
            for start in range(0, t.size, n_levels):
                level[start : start + n_levels] += gaussians.cdf(t[start : start + n_levels], left=left)
        return np.minimum(level, 1.0)

    @cached_property
    def _kinds(self) -> tuple["_Gaussians | None", list[tuple[float, MetricDistribution]]]:
        """Gaussian components with spread, as one table, and the other components with their weights."""
        gaussians, others = [], []
        for weight, component in zip(self.weight.tolist(), self.components, strict=True):
            if isinstance(component, Normal) and component.scale > 0.0:
                gaussians.append((weight, component.loc, component.scale, *component.bounds))
            else:
                others.append((weight, component))
        return _Gaussians(*np.array(gaussians).T) if gaussians else None, others

    def _ppf(self, q: FloatArray) -> FloatArray:
        if q.size == 0:
            return q
        # The quantile lies between the smallest and the largest quantile of the components.
        ends = np.array([component._ppf(q) for component in self.components])
        a, b = ends.min(axis=0), ends.max(axis=0)
        result: FloatArray = np.where(q <= 0.0, a, b)
        inside = np.flatnonzero((q > 0.0) & (q < 1.0) & (a < b))
        if inside.size:
            result[inside] = self._search(q[inside] - LEVEL_ROUNDING, a[inside], b[inside])
        return result

    def _search(self, q: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the smallest value at which the cdf reaches q; it lies in [a, b]."""
        done = self._cdf(a, left=False) >= q
        a, b = a.copy(), np.where(done, a, b)
        fraction = np.arange(1, _N_POINTS + 1) / (_N_POINTS + 1)
        min_width = BRACKET_TOLERANCE * np.maximum(np.abs(a), np.abs(b))
        # Each search stops on its own: a quantile must not depend on which other quantiles are computed.
        while (
            rows := np.flatnonzero(b - a > np.maximum(RELATIVE_TOLERANCE * np.maximum(np.abs(a), np.abs(b)), min_width))
        ).size:
            low, high = a[rows], b[rows]
            points = low[:, None] + (high - low)[:, None] * fraction
            reached = self._cdf(points.ravel(), left=False).reshape(points.shape) >= q[rows, None]
            first, row_index = reached.argmax(axis=1), np.arange(rows.size)
            is_none = ~reached.any(axis=1)
            below = np.where(is_none, _N_POINTS, first) - 1
            b[rows] = np.where(is_none, high, points[row_index, first])
            a[rows] = np.where(below >= 0, points[row_index, np.maximum(below, 0)], low)
            if np.array_equal(a[rows], low) and np.array_equal(b[rows], high):  # no float lies in between
                break
        return self._nearest_atom(q, a, b)

    def _nearest_atom(self, q: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
        """Return the component's atom at which the cdf jumps over q; b if there is none.

        The tolerance of `slack` lets the cdf jump slightly below an atom, so b may lie there.
        """
        margin = 2.0 * slack(b, self.noise)
        nearest: FloatArray = np.full(b.shape, np.inf)
        for component in self.components:
            if isinstance(component, Discrete):
                level = component._cdf(b + margin, left=False)
                jump = np.flatnonzero(level > component._cdf(a - margin, left=True))
                nearest[jump] = np.minimum(nearest[jump], component._ppf(level[jump]))
        atom = np.where(np.isfinite(nearest), nearest, b)
        return np.where(self._cdf(atom, left=False) >= q, atom, b)

    def _moments(self) -> tuple[float, float]:
        assert self.by_draw is not None
        return self.by_draw.total()

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: Any = None) -> Any:
        generator = np.random.default_rng(rng)
        chosen = np.searchsorted(np.cumsum(self.weight), np.atleast_1d(generator.random(size)), side="right")
        chosen = np.minimum(chosen, self.weight.size - 1)
        draws = np.empty(chosen.shape)
        for component in np.unique(chosen).tolist():
            draws[chosen == component] = self.components[component].rvs(int(np.sum(chosen == component)), generator)
        return float(draws[0]) if size is None else draws


class _Gaussians(NamedTuple):
    """Gaussian components; their mass beyond the bounds lies at the bounds."""

    weight: FloatArray
    loc: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray

    def cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        """Return the weighted sum of the cdfs of the components."""
        t = t[:, None]
        level = np.asarray(ndtr((t - self.loc) / self.scale))
        level[t <= self.low if left else t < self.low] = 0.0
        level[t > self.high if left else t >= self.high] = 1.0
        return np.asarray(np.einsum("ij,j->i", level, self.weight))


def mix(
    components: Sequence[MetricDistribution], weight: FloatArray, *, given_defined: bool, **facts: Any
) -> MetricDistribution:
    """Return the mixture of the distributions at the posterior draws.

    `given_defined`: every component is conditional on the metric being defined, and so is the mixture. A draw then
    counts in proportion to the probability that the metric is defined.
    """
    undefined = np.array([component.undefined for component in components])
    draw_weight = weight * (1.0 - undefined) if given_defined else weight.copy()
    draw_weight[[isinstance(component, Undefined) for component in components]] = 0.0
    facts |= {"undefined": min(1.0, float(weight @ undefined)), "given_defined": given_defined}
    if not draw_weight.sum() > 0.0:
        return Undefined(**{**facts, "undefined": 1.0, "given_defined": True})
    draw_weight = draw_weight / draw_weight.sum()
    draws = np.flatnonzero(draw_weight > 0.0).tolist()
    used = [components[draw] for draw in draws]
    moments = np.array([(component.mean(), component.var()) for component in components])
    by_draw = DrawMoments.of(draw_weight, moments[:, 0], moments[:, 1])
    if facts.get("method") != "exact":
        facts["certify"] = partial(
            _weighted_certificate, used, draw_weight[draws], 0.5 * float(np.abs(draw_weight - weight).sum())
        )
    atoms = [component for component in used if isinstance(component, Discrete)]
    if len(atoms) == len(used) and sum(component.atoms.size for component in atoms) <= _MAX_JOINED_ATOMS:
        values = np.concatenate([component.atoms for component in atoms])
        masses = np.concatenate(
            [draw_weight[draw] * component.masses for draw, component in zip(draws, atoms, strict=True)]
        )
        return replace(
            Discrete.from_atoms(values, masses, np.nan, noise=facts.get("noise", 0.0)), by_draw=by_draw, **facts
        )
    return Mixture(components=used, weight=draw_weight[draws], by_draw=by_draw, **facts)


def _weighted_certificate(
    components: Sequence[MetricDistribution], weight: FloatArray, moved: float, distribution: MetricDistribution
) -> Certificate | None:
    """Return the certificate of a mixture; None if a component has no certificate."""
    proofs = [component.certificate for component in components]
    proven = [proof for proof in proofs if proof is not None]
    if len(proven) < len(proofs):
        return None
    return mixture_certificate(
        proven, weight, moved, distribution._cdf, distribution.atoms if isinstance(distribution, Discrete) else None
    )


def variance_shares(distribution: MetricDistribution, shift: FloatArray | None) -> dict[str, float]:
    """Return the fractions of the variance due to labels, calibration and prevalence (`shift` of each draw)."""
    at_draws = distribution.by_draw
    # The variance of a distribution with one value is a rounding error and has no source.
    largest = max(abs(end) for end in distribution.bounds)
    rounding = _ROUNDING * (largest if np.isfinite(largest) else abs(distribution.mean()))
    if at_draws is None or not distribution.std() > rounding:
        return {"labels": 1.0, "calibration": 0.0, "prevalence": 0.0}
    within, between = (
        float(at_draws.weight @ at_draws.var),
        float(at_draws.weight @ (at_draws.mean - distribution.mean()) ** 2),
    )
    explained = 0.0
    if shift is not None and np.ptp(shift) > 0.0 and between > 0.0:
        # Prevalence causes the variance that a smooth function of the shift explains, calibration the remainder.
        shift = (shift - shift.mean()) / shift.std()
        root = np.sqrt(at_draws.weight)
        curve = np.column_stack([np.ones(shift.size), shift, shift**2]) * root[:, None]
        fitted = curve @ np.linalg.lstsq(curve, root * at_draws.mean, rcond=None)[0]
        residual = float(((root * at_draws.mean - fitted) ** 2).sum())
        explained = max(0.0, between - residual)
    total = within + between
    return {
        "labels": within / total,
        "calibration": (between - explained) / total,
        "prevalence": explained / total,
    }
