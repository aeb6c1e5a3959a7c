"""Certificates of laws that are approximations: how far they can be from the true law on these data."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.bounds.gaps import CdfBounds, dkw_radius, stratified_radius
from darkmetrics._kernels.bounds.stretches import Line, gaps_between
from darkmetrics.certificate import Assumption, Certificate, mixture_certificate
from darkmetrics.distribution import Discrete, MetricDistribution, Normal, Tabulated
from darkmetrics.distribution.base import slack
from darkmetrics.functional import Functional
from darkmetrics.methods.problem import Problem
from darkmetrics.methods.proofs import INDEPENDENT, Proof, proof_maker
from darkmetrics.nodes import Nodes

# Where a bound is evaluated first, in standard deviations: quantiles, and the tails up to where nothing is left.
_TAIL = np.arange(2.75, 7.0, 0.25)
_PLACES = np.concatenate([-_TAIL[::-1], ndtri(np.arange(1, 256) / 256.0), _TAIL])
# Sums of a billion rows are right to 1e-12 of their size, that is to 1e-7 of their standard deviation.
_ROUNDING = 1e-7
# A Monte Carlo band is missed with this chance at most.
_DKW_CONFIDENCE = 0.999

Certifier: TypeAlias = Callable[[MetricDistribution], Certificate]


def certifier(functional: Functional, problem: Problem) -> Certifier:
    """What makes the certificate of a law that stands for that of the functional, when it is asked for."""
    makers = [proof_maker(functional, one) for one in problem.each]
    return partial(_certificate, functional, makers, problem.nodes.weight)


def certificate_on_cells(functional: Functional, nodes: Nodes, law: MetricDistribution) -> Certificate:
    """What is proven of a law; cells are merged when it is asked for, as a probability for each takes much memory."""
    return certifier(*Problem(nodes).on_cells(functional))(law)


def _certificate(
    functional: Functional, makers: Sequence[Callable[[], Proof]], weight: FloatArray, law: MetricDistribution
) -> Certificate:
    proofs, points = [make() for make in makers], _grid(law)
    parts = [_of_one_node(functional, proof, law, points) for proof in proofs]
    if len(parts) == 1:
        return parts[0]
    # What holds of 0/0 at each node holds of the mixture: nothing is to be added for the weights of its nodes.
    return mixture_certificate(parts, weight, 0.0, law._cdf, points)


def _of_one_node(functional: Functional, proof: Proof, law: MetricDistribution, points: FloatArray) -> Certificate:
    enclosure = partial(_enclosure, functional, proof)
    known = None
    if proof.uniform is not None and (isinstance(law, Normal) or proof.uniform >= 1.0):
        known = proof.uniform + proof.undefined + _ROUNDING
    if not np.isfinite(points).all():
        known = 1.0
    if known is None and points.size < 2:
        point = enclosure(points)
        known = float(max(point.below[0], 1.0 - point.lower[0]))
    between = None
    if proof.line is not None and isinstance(law, Normal) and law.scale > 0.0:
        between = partial(_between, proof, proof.line, law)
    # A law that is summed on demand is not worth a finer search.
    tolerance = 0.0 if isinstance(law, (Normal, Discrete, Tabulated)) else 1.0
    facts = proof.theorem, proof.assumptions, law._cdf, enclosure, points
    return Certificate(*facts, known=known, between=between, tolerance=tolerance)


def _between(proof: Proof, line: Line, law: Normal, points: FloatArray) -> FloatArray:
    return gaps_between(line, points, law.loc, law.scale) + proof.undefined + _ROUNDING


def _grid(law: MetricDistribution) -> FloatArray:
    """A rising grid that follows the law."""
    if isinstance(law, Normal):
        return law.loc + law.scale * _PLACES if law.scale > 0.0 else np.array([law.loc])
    if isinstance(law, Discrete):
        return law.atoms
    if isinstance(law, Tabulated):
        return np.unique(law._ppf(np.asarray(ndtr(_PLACES))))
    # Laws that are summed on demand take their time for every place.
    return law.mean() + law.std() * _PLACES[::8]


def _enclosure(functional: Functional, proof: Proof, t: FloatArray) -> CdfBounds:
    """Bounds on the true cdf: those of the theorem, widened by the mass of 0/0, and what the extremes leave no doubt.

    With A = P(metric <= t and defined), the law given that the metric is defined has the cdf A / (1 - u), the law with
    a value in place of 0/0 has A or A + u, and the event of the theorem a probability between A and A + u.
    """
    low, high, _ = functional.extremes
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        lower, upper = proof.bounds(t)
    lower = np.nan_to_num(np.maximum(lower - proof.undefined, 0.0), nan=0.0)
    upper = np.nan_to_num(np.minimum(upper + proof.undefined, 1.0), nan=1.0)
    # Each end has a margin of its own: the two may be of very different size.
    # Neither may be as wide as the law.
    width = 1e-6 * (high - low)
    at_low, at_high = (np.minimum(slack(np.array(end), functional.noise), width) for end in (low, high))
    none, every = t < low - at_low, t >= high - at_high
    below = np.where(t <= low + at_low, 0.0, np.where(t > high + at_high, 1.0, upper))
    return CdfBounds(
        lower=np.where(every, 1.0, np.where(none, 0.0, lower)),
        upper=np.where(none, 0.0, np.where(every, 1.0, upper)),
        below=below,
    )


def sampled_certificate(
    n: int, given: int, shares: FloatArray, weight: FloatArray, blur: float, independent: bool, law: MetricDistribution
) -> Certificate:
    """The band around a law of n draws, `given` of them (one at least) defined and counted, shared out over nodes.

    Each draw may be up to `blur` away from its true value.
    """
    if weight.size == 1:
        # Given which draws are defined, these are draws from the law given that the metric is.
        radius, theorem = dkw_radius(given, _DKW_CONFIDENCE), "Dvoretzky-Kiefer-Wolfowitz"
    else:
        radius, theorem = stratified_radius(n, _DKW_CONFIDENCE), "Hoeffding's inequality over the nodes"
        # Labelings are shared out over the nodes in whole numbers; leaving draws out moves numerator and denominator.
        radius = (radius + 0.5 * float(np.abs(shares - weight).sum())) * (1.0 if given == n else 2.0 * n / given)
    radius = min(1.0, radius)

    def enclosure(t: FloatArray) -> CdfBounds:
        lower, upper = (law._cdf(t + sign * blur, left=False) for sign in (-1.0, 1.0))
        before = law._cdf(t + blur, left=True)
        return CdfBounds(
            np.maximum(lower - radius, 0.0), np.minimum(upper + radius, 1.0), np.minimum(before + radius, 1.0)
        )

    grid, known = _grid(law), radius
    labels = INDEPENDENT if independent else Assumption("missing labels are as the label model draws them", None)
    assumptions = [labels, Assumption(f"the law is that of {given:,} random labelings, drawn independently", True)]
    if blur > 0.0:
        assumptions.append(Assumption(f"the metric of each is found to within {blur:.1g}", True))
        # No stretch as long as the error holds more of the draws than this.
        known += float((law._cdf(grid + blur, left=False) - law._cdf(grid, left=True)).max())
    facts = theorem, tuple(assumptions), law._cdf, enclosure, grid, _DKW_CONFIDENCE
    return Certificate(*facts, known=min(1.0, known), stepwise=blur == 0.0)
