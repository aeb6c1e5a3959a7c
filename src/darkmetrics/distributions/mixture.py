"""Mixture: the law of a metric when the probabilities of the labels are uncertain too; whence its spread comes."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

from darkmetrics._kernels.arrays import LEVEL_ROUNDING, FloatArray
from darkmetrics._kernels.sums.normal_mixture import OF_BRACKET, PART
from darkmetrics.certificate import Certificate, mixture_certificate
from darkmetrics.distributions.base import MetricDistribution, NodeMoments, slack
from darkmetrics.distributions.kinds import Discrete, Normal, Undefined

# Laws of atoms are joined into one list up to this many in all; sorting more takes longer than asking each law.
_MOST_ATOMS = 1 << 20
# Places tried at once when a quantile is bracketed: asking a component for 31 places costs hardly more than for one.
_PLACES = 31
# Levels of Gaussian components that are found at once.
_AT_ONCE = 1 << 18
# A standard deviation that is this small against the values of a law is rounding; of 1e12 rows it would be 1e-6.
_ROUNDING = 1e-8


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Mixture(MetricDistribution):
    """A weighted mixture of laws, one for each case of what the probabilities are."""

    components: Sequence[MetricDistribution]
    weight: FloatArray

    def __post_init__(self) -> None:
        if self.by_node is None:
            moments = np.array([(law.mean(), law.var()) for law in self.components])
            object.__setattr__(self, "by_node", NodeMoments.of(self.weight, moments[:, 0], moments[:, 1]))

    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        level: FloatArray = np.zeros(t.shape)
        bells, others = self._kinds
        for weight, law in others:
            level += weight * law._cdf(t, left=left)
        if bells is not None:
            rows = max(1, _AT_ONCE // bells.weight.size)
            for start in range(0, t.size, rows):
                level[start : start + rows] += bells.cdf(t[start : start + rows], left=left)
        return np.minimum(level, 1.0)

    @cached_property
    def _kinds(self) -> tuple["_Bells | None", list[tuple[float, MetricDistribution]]]:
        """The Gaussian components with spread, which are asked all at once, and the others with their weights."""
        bells, others = [], []
        for weight, law in zip(self.weight.tolist(), self.components, strict=True):
            if isinstance(law, Normal) and law.scale > 0.0:
                bells.append((weight, law.loc, law.scale, *law.bounds))
            else:
                others.append((weight, law))
        return _Bells(*np.array(bells).T) if bells else None, others

    def _ppf(self, q: FloatArray) -> FloatArray:
        if q.size == 0:
            return q
        # Below every component's quantile no component has reached q, and at the largest all have.
        ends = np.array([law._ppf(q) for law in self.components])
        a, b = ends.min(axis=0), ends.max(axis=0)
        result: FloatArray = np.where(q <= 0.0, a, b)
        inside = np.flatnonzero((q > 0.0) & (q < 1.0) & (a < b))
        if inside.size:
            result[inside] = self._search(q[inside] - LEVEL_ROUNDING, a[inside], b[inside])
        return result

    def _search(self, q: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
        """Smallest value at which the cdf reaches q, known to lie in [a, b]."""
        done = self._cdf(a, left=False) >= q
        a, b = a.copy(), np.where(done, a, b)
        share = np.arange(1, _PLACES + 1) / (_PLACES + 1)
        least = OF_BRACKET * np.maximum(np.abs(a), np.abs(b))
        # Each until it is found, and no further: a quantile must not depend on what others are asked for beside it.
        while (rows := np.flatnonzero(b - a > np.maximum(PART * np.maximum(np.abs(a), np.abs(b)), least))).size:
            low, high = a[rows], b[rows]
            places = low[:, None] + (high - low)[:, None] * share
            reached = self._cdf(places.ravel(), left=False).reshape(places.shape) >= q[rows, None]
            first, each = reached.argmax(axis=1), np.arange(rows.size)
            none = ~reached.any(axis=1)
            below = np.where(none, _PLACES, first) - 1
            b[rows] = np.where(none, high, places[each, first])
            a[rows] = np.where(below >= 0, places[each, np.maximum(below, 0)], low)
            if np.array_equal(a[rows], low) and np.array_equal(b[rows], high):  # no number lies in between
                break
        return self._nearest_atom(q, a, b)

    def _nearest_atom(self, q: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
        """The atom at which the cdf jumps over q, as its component has it; else b.

        The cdf has all of an atom a little below it already, and so b may lie there.
        """
        margin = 2.0 * slack(b, self.noise)
        found: FloatArray = np.full(b.shape, np.inf)
        for law in self.components:
            if isinstance(law, Discrete):
                level = law._cdf(b + margin, left=False)
                jump = np.flatnonzero(level > law._cdf(a - margin, left=True))
                found[jump] = np.minimum(found[jump], law._ppf(level[jump]))
        atom = np.where(np.isfinite(found), found, b)
        return np.where(self._cdf(atom, left=False) >= q, atom, b)

    def _moments(self) -> tuple[float, float]:
        assert self.by_node is not None
        return self.by_node.total()

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: Any = None) -> Any:
        generator = np.random.default_rng(rng)
        chosen = np.searchsorted(np.cumsum(self.weight), np.atleast_1d(generator.random(size)), side="right")
        chosen = np.minimum(chosen, self.weight.size - 1)
        draws = np.empty(chosen.shape)
        for node in np.unique(chosen).tolist():
            draws[chosen == node] = self.components[node].rvs(int(np.sum(chosen == node)), generator)
        return float(draws[0]) if size is None else draws


class _Bells(NamedTuple):
    """Gaussian components; what they have beyond their bounds lies at them."""

    weight: FloatArray
    loc: FloatArray
    scale: FloatArray
    low: FloatArray
    high: FloatArray

    def cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        """Their part of the cdf of the mixture."""
        t = t[:, None]
        level = np.asarray(ndtr((t - self.loc) / self.scale))
        level[t <= self.low if left else t < self.low] = 0.0
        level[t > self.high if left else t >= self.high] = 1.0
        return np.asarray(np.einsum("ij,j->i", level, self.weight))


def mix(
    laws: Sequence[MetricDistribution], weight: FloatArray, *, given_defined: bool, **about: Any
) -> MetricDistribution:
    """The mixture of the laws at the nodes.

    `given_defined`: each law is conditional on the metric being defined, and then so is the mixture: a node counts the
    more the likelier the metric is defined there.
    """
    undefined = np.array([law.undefined for law in laws])
    share = weight * (1.0 - undefined) if given_defined else weight.copy()
    share[[isinstance(law, Undefined) for law in laws]] = 0.0
    facts: dict[str, Any] = {
        **about,
        "undefined": min(1.0, float(weight @ undefined)),
        "given_defined": given_defined,
    }
    if not share.sum() > 0.0:
        return Undefined(**{**facts, "undefined": 1.0, "given_defined": True})
    share = share / share.sum()
    inside = np.flatnonzero(share > 0.0).tolist()
    kept = [laws[node] for node in inside]
    moments = np.array([(law.mean(), law.var()) for law in laws])
    by_node = NodeMoments.of(share, moments[:, 0], moments[:, 1])
    if facts.get("method") != "exact":
        facts["certify"] = partial(
            _weighted_certificate, kept, share[inside], 0.5 * float(np.abs(share - weight).sum())
        )
    atoms = [law for law in kept if isinstance(law, Discrete)]
    if len(atoms) == len(kept) and sum(law.atoms.size for law in atoms) <= _MOST_ATOMS:
        values = np.concatenate([law.atoms for law in atoms])
        masses = np.concatenate([share[node] * law.masses for node, law in zip(inside, atoms, strict=True)])
        return replace(
            Discrete.from_atoms(values, masses, np.nan, noise=facts.get("noise", 0.0)), by_node=by_node, **facts
        )
    return Mixture(components=kept, weight=share[inside], by_node=by_node, **facts)


def _weighted_certificate(
    laws: Sequence[MetricDistribution], weight: FloatArray, moved: float, law: MetricDistribution
) -> Certificate | None:
    """What is proven of a mixture, if something is of each of its laws."""
    proofs = [part.certificate for part in laws]
    known = [proof for proof in proofs if proof is not None]
    if len(known) < len(proofs):
        return None
    return mixture_certificate(known, weight, moved, law._cdf, law.atoms if isinstance(law, Discrete) else None)


def variance_shares(law: MetricDistribution, shift: FloatArray | None) -> dict[str, float]:
    """Shares of the variance of a law: of the labels, of the calibration, and of the prevalence (`shift` by node)."""
    parts = law.by_node
    # What a law of one value leaves of its variance is rounding, and says nothing about where it is from.
    largest = max(abs(end) for end in law.bounds)
    rounding = _ROUNDING * (largest if np.isfinite(largest) else abs(law.mean()))
    if parts is None or not law.std() > rounding:
        return {"labels": 1.0, "calibration": 0.0, "prevalence": 0.0}
    within, between = float(parts.weight @ parts.var), float(parts.weight @ (parts.mean - law.mean()) ** 2)
    explained = 0.0
    if shift is not None and np.ptp(shift) > 0.0 and between > 0.0:
        # What a smooth function of the shift tells about the mean is due to the prevalence, the rest to calibration.
        shift = (shift - shift.mean()) / shift.std()
        root = np.sqrt(parts.weight)
        curve = np.column_stack([np.ones(shift.size), shift, shift**2]) * root[:, None]
        fitted = curve @ np.linalg.lstsq(curve, root * parts.mean, rcond=None)[0]
        left = float(((root * parts.mean - fitted) ** 2).sum())
        explained = max(0.0, between - left)
    total = within + between
    return {
        "labels": within / total,
        "calibration": (between - explained) / total,
        "prevalence": explained / total,
    }
