"""The shape of a law, as something to draw: a stem for each value where there are few, else a curve."""

from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distributions import Discrete, MetricDistribution

# More stems than these run into each other in a small picture; a curve is drawn instead.
_MOST_STEMS = 25
# Atoms less likely than this, next to the likeliest, would not be seen.
_SEEN = 1e-3
# Quantiles that show where a law is: the middle of every percent.
_LEVELS = (np.arange(100) + 0.5) / 100.0
# Beyond these quantiles nothing can be seen.
_ENDS = (1e-4, 1.0 - 1e-4)
# Bandwidth of the curve in standard deviations of a Gaussian law: it widens one by 1%, and hides single atoms.
_BANDWIDTH = 0.15
_PLACES = 300
_FINER = 20
# Bandwidth in gaps between atoms: the waves that evenly spaced atoms leave are then below 1%.
_LATTICE = 0.6


def few_atoms(distribution: MetricDistribution) -> tuple[FloatArray, FloatArray] | None:
    """Values and probabilities of a law that has few; None for one that has many, or none."""
    if distribution.std() == 0.0:
        return np.array([distribution.mean()]), np.ones(1)
    if not isinstance(distribution, Discrete):
        return None
    seen = np.flatnonzero(distribution.masses >= _SEEN * distribution.masses.max())
    return (distribution.atoms[seen], distribution.masses[seen]) if seen.size <= _MOST_STEMS else None


def density_curve(distribution: MetricDistribution) -> tuple[FloatArray, FloatArray]:
    """The density of a law, smoothed a little: how much of its mass there is per unit of the metric, and where."""
    from scipy.ndimage import gaussian_filter1d

    first, last = distribution.ppf(_ENDS)
    worst, best = distribution.support()
    margin = 0.1 * (last - first)
    # Nothing is drawn beyond what is possible, unless the law itself (a Gaussian) goes there.
    a = max(worst, first - margin) if first >= worst else first - margin
    b = min(best, last + margin) if last <= best else last + margin
    # The places of atoms are kept to a small part of the gaps between them, else the curve gets bumps of its own.
    finer = _FINER if isinstance(distribution, Discrete) else 1
    edges = np.linspace(a, b, finer * _PLACES + 1)
    level = distribution.cdf(edges)
    if a == worst:
        level[0] = 0.0  # an atom at the end belongs to the picture
    step = (b - a) / (finer * _PLACES)
    quantiles = np.interp(_LEVELS, level, edges)
    # The shortest quarter of the law tells the width of its highest peak; a Gaussian's is 0.637 standard deviations.
    peak = float(np.min(quantiles[25:] - quantiles[:-25])) / 0.637
    # A single heavy atom has no width; it is drawn as a narrow peak.
    bandwidth = max(_BANDWIDTH * max(peak, 0.1 * distribution.std()), _LATTICE * _gap(distribution))
    mass: Any = gaussian_filter1d(np.diff(level), bandwidth / step, mode="reflect")
    return edges[:-1][finer // 2 :: finer] + 0.5 * step, mass[finer // 2 :: finer] / step


def _gap(distribution: MetricDistribution) -> float:
    """How far apart atoms are in the middle of a law; zero for one without."""
    if not isinstance(distribution, Discrete):
        return 0.0
    low, high = distribution.interval(0.5)
    between = np.searchsorted(distribution.atoms, high) - np.searchsorted(distribution.atoms, low)
    return (high - low) / max(int(between), 1)
