"""Quantiles of mixtures of Gaussians in one dimension: of a single mixture, or of many mixtures at once."""

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import LEVEL_ROUNDING, FloatArray

# Error of quantiles as a fraction of their size, or of the narrowest spread if that is larger. The width of the first
# bracket sets no scale, because one component may be a billion times as wide as another.
RELATIVE_TOLERANCE = 1e-13
# Near zero the search ends at this fraction of the first bracket.
BRACKET_TOLERANCE = 1e-30


def normal_mixture_quantile(q: float, weight: FloatArray, mean: FloatArray, sd: FloatArray) -> float:
    """Return the quantile at q (0 < q < 1), to a millionth of the smallest spread."""
    ends = mean + sd * float(ndtri(q))
    a, b = float(ends.min()), float(ends.max())
    has_spread = sd > 0.0
    scale = np.where(has_spread, sd, 1.0)
    min_width = 1e-6 * float(sd[has_spread].min()) if has_spread.any() else 0.0
    for _ in range(200):  # a double has fewer bits
        if b - a <= min_width:
            break
        middle = 0.5 * (a + b)
        level = np.where(has_spread, ndtr((middle - mean) / scale), middle >= mean)
        a, b = (middle, b) if float(weight @ level) < q else (a, middle)
    return 0.5 * (a + b)


def normal_mixture_quantiles(
    q: FloatArray, weight: FloatArray, mean: FloatArray, sd: FloatArray, *, tolerance: float = RELATIVE_TOLERANCE
) -> FloatArray:
    """Return quantiles of many mixtures (levels x mixtures): the smallest value at which the cdf reaches the level.

    `weight`, `mean` and `sd` are components x mixtures; a component without spread is an atom. The search makes Newton
    steps inside a proven bracket, and bisects where they do not help. The error is at most `tolerance` times the
    quantile, or times the narrowest spread if that is larger.
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
    min_width = np.maximum(tolerance * narrowest, BRACKET_TOLERANCE * size)
    rows = np.flatnonzero(b - a > np.maximum(tolerance * size, min_width))
    x = np.clip(guess, a, b)[rows]
    a, b, level, min_width = a[rows], b[rows], level[rows], min_width[rows]
    components = tuple(values[:, column[rows]] for values in (weight, mean, sd))
    for step in range(400):  # after the first steps every second step bisects, so at most 2 x 100 follow
        if not rows.size:
            break
        cdf, density = _levels(x, *components)
        reached = cdf >= level
        a, b = np.where(reached, a, x), np.where(reached, x, b)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            following = x + (level - cdf) / density
        halve = ~((following > a) & (following < b)) if step < 8 or step % 2 else np.ones(x.size, dtype=np.bool_)
        following = np.where(halve, 0.5 * (a + b), following)
        is_near = ~halve & (np.abs(following - x) <= np.maximum(tolerance * np.abs(following), min_width))
        is_closed = b - a <= np.maximum(tolerance * np.maximum(np.abs(a), np.abs(b)), min_width)
        result[rows] = np.where(is_closed, b, following)
        remaining = np.flatnonzero(~(is_near | is_closed))
        if remaining.size < rows.size:
            components = tuple(values[:, remaining] for values in components)
            a, b, level, min_width, rows = (
                a[remaining],
                b[remaining],
                level[remaining],
                min_width[remaining],
                rows[remaining],
            )
        x = following[remaining]
    return np.asarray(result.reshape(q.size, -1))


def _levels(x: FloatArray, weight: FloatArray, mean: FloatArray, sd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return cdf and density of each mixture (column) at its x; atoms have no density."""
    has_spread = sd > 0.0
    z = (x - mean) / np.where(has_spread, sd, 1.0)
    density = np.exp(-0.5 * z**2) / np.where(has_spread, sd, np.inf)
    cdf = np.asarray(ndtr(z))
    if not has_spread.all():
        cdf = np.where(has_spread, cdf, x >= mean)
    root = float(np.sqrt(2.0 * np.pi))
    return np.einsum("ij,ij->j", weight, cdf), np.einsum("ij,ij->j", weight, density) / root
