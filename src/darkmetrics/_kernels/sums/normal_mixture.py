"""Mixtures of Gaussians in one dimension: one, as a first guess for laws that are nearly one, or many at once."""

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import LEVEL_ROUNDING, FloatArray

# Quantiles are found to this part of their own size, or of the narrowest spread: a Newton step leaves no more of it.
# Where the bracket of a search began says nothing of that, and one component may be a billion times as wide as another.
PART = 1e-13
# Next to zero a value has no size, and this part of the bracket ends the search.
OF_BRACKET = 1e-30


def normal_mixture_quantile(q: float, weight: FloatArray, mean: FloatArray, sd: FloatArray) -> float:
    """Place where the cdf reaches q, to a millionth of the smallest spread; 0 < q < 1."""
    ends = mean + sd * float(ndtri(q))
    a, b = float(ends.min()), float(ends.max())
    wide = sd > 0.0
    scale = np.where(wide, sd, 1.0)
    enough = 1e-6 * float(sd[wide].min()) if wide.any() else 0.0
    for _ in range(200):  # more halvings than a double has bits
        if b - a <= enough:
            break
        middle = 0.5 * (a + b)
        level = np.where(wide, ndtr((middle - mean) / scale), middle >= mean)
        a, b = (middle, b) if float(weight @ level) < q else (a, middle)
    return 0.5 * (a + b)


def normal_mixture_quantiles(
    q: FloatArray, weight: FloatArray, mean: FloatArray, sd: FloatArray, *, tolerance: float = PART
) -> FloatArray:
    """Quantiles of many mixtures at once (levels x mixtures): the smallest place where the cdf reaches the level.

    `weight`, `mean` and `sd` are components x mixtures; a component without spread is an atom. Newton steps inside a
    bracket that is proven, and halvings of it where they do not help. The error is at most `tolerance` times the
    quantile, or times the narrowest spread if that is more.
    """
    if mean.shape[0] == 1:
        return mean + sd * np.asarray(ndtri(q))[:, None]
    ends = mean + sd * np.asarray(ndtri(q))[:, None, None]
    a, b = ends.min(axis=1).ravel(), ends.max(axis=1).ravel()
    result: FloatArray = b.copy()
    centre = (weight * mean).sum(axis=0)
    spread = np.sqrt((weight * (sd**2 + (mean - centre) ** 2)).sum(axis=0))
    guess = (centre + spread * np.asarray(ndtri(q))[:, None]).ravel()
    level, column = np.repeat(q - LEVEL_ROUNDING, centre.size), np.tile(np.arange(centre.size), q.size)
    narrowest = np.where(sd > 0.0, sd, np.inf).min(axis=0)
    narrowest = np.where(np.isfinite(narrowest), narrowest, 0.0)[column]
    size = np.maximum(np.abs(a), np.abs(b))
    least = np.maximum(tolerance * narrowest, OF_BRACKET * size)
    rows = np.flatnonzero(b - a > np.maximum(tolerance * size, least))
    x = np.clip(guess, a, b)[rows]
    a, b, level, least = a[rows], b[rows], level[rows], least[rows]
    parts = tuple(part[:, column[rows]] for part in (weight, mean, sd))
    for step in range(400):  # after the first steps every other one halves, so that at most 2 x 100 follow
        if not rows.size:
            break
        cdf, density = _levels(x, *parts)
        reached = cdf >= level
        a, b = np.where(reached, a, x), np.where(reached, x, b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            following = x + (level - cdf) / density
        halve = ~((following > a) & (following < b)) if step < 8 or step % 2 else np.ones(x.size, dtype=np.bool_)
        following = np.where(halve, 0.5 * (a + b), following)
        near = ~halve & (np.abs(following - x) <= np.maximum(tolerance * np.abs(following), least))
        closed = b - a <= np.maximum(tolerance * np.maximum(np.abs(a), np.abs(b)), least)
        result[rows] = np.where(closed, b, following)
        left = np.flatnonzero(~(near | closed))
        if left.size < rows.size:
            parts = tuple(part[:, left] for part in parts)
            a, b, level, least, rows = a[left], b[left], level[left], least[left], rows[left]
        x = following[left]
    return np.asarray(result.reshape(q.size, -1))


def _levels(x: FloatArray, weight: FloatArray, mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cdf and density of each mixture (column) at its x; atoms have no density."""
    wide = sd > 0.0
    z = (x - mean) / np.where(wide, sd, 1.0)
    bell = np.exp(-0.5 * z**2) / np.where(wide, sd, np.inf)
    cdf = np.asarray(ndtr(z))
    if not wide.all():
        cdf = np.where(wide, cdf, x >= mean)
    root = float(np.sqrt(2.0 * np.pi))
    return np.einsum("ij,ij->j", weight, cdf), np.einsum("ij,ij->j", weight, bell) / root
