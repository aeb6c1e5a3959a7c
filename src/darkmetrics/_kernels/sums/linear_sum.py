"""The law of a weighted sum of independent Bernoulli variables (mathematics, section 4).

Three ways, by what the weights are like. Equal or commensurate weights: the sum lives on a lattice, and the law is
exact. Many rows of comparable weight: the characteristic function from twelve cumulants, inverted by one FFT. A few
rows that dominate: convolution on a lattice of up to 2,048 steps per standard deviation.
"""

import math
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import ComplexArray, FloatArray, IntArray, dot
from darkmetrics._kernels.sums.enumeration import all_labelings, number_of_labelings
from darkmetrics._kernels.sums.poisson_binomial import LOG_TAIL, chernoff_reach, poisson_binomial_pmf, tail_reach
from darkmetrics._kernels.sums.smooth import sum_cumulants

_STEPS_PER_SD = 2048.0
_MAX_STEPS = 32768
_MAX_LEVEL = 4096
_LINEAR = 100.0
_FEW_LABELINGS = 2**12
# A row is lone when its weight exceeds this many standard deviations; its chance is then below 1/400.
_LONE_SHARE = 20.0
_MOST_LONE = 6
_DP_BUDGET = 2e8
_ORDERS = 12
_SMALL_SHARE = 1.0 / 12.0
_GRID = 8192


class Lattice(NamedTuple):
    """Mass `pmf[k]` at `origin + k * step`; `exact` when these are the true atoms, not a fine approximation.

    A few atoms that lie on no lattice are listed in `places` instead.
    """

    origin: float
    step: float
    pmf: FloatArray
    exact: bool
    places: FloatArray | None = None
    # The masses stand for a density between the places, not for atoms.
    smooth: bool = False

    def values(self) -> FloatArray:
        """The places that carry the masses."""
        if self.places is not None:
            return self.places
        return self.origin + self.step * np.arange(self.pmf.size, dtype=np.float64)


def linear_sum_law(weights: FloatArray, p: FloatArray, counts: IntArray, *, apart: bool = True) -> Lattice:
    """The law of sum w_i Y_i, with `counts[i]` rows that share weight `weights[i]` and chance `p[i]`.

    `apart`: a few rows of huge weight are taken out first and put back last.
    """
    base = dot(counts[p >= 1.0], weights[p >= 1.0])
    open_ = (p > 0.0) & (p < 1.0) & (counts > 0) & (weights != 0.0)
    w, p, counts = weights[open_], p[open_], counts[open_]
    if w.size == 0:
        return Lattice(base, 1.0, np.ones(1), exact=True)
    if np.all(w == w[0]):
        offset, pmf = poisson_binomial_pmf(p, counts)
        step = float(w[0])
        if step < 0.0:
            return Lattice(base + step * (offset + pmf.size - 1), -step, pmf[::-1], exact=True)
        return Lattice(base + step * offset, step, pmf, exact=True)
    # Counting the rarer outcome of each row puts the largest atom at `base`, where no rounding can move it.
    flip = p > 0.5
    base += float((counts * w)[flip].sum())
    w, p = np.where(flip, -w, w), np.where(flip, 1.0 - p, p)
    variance = dot(counts, w**2 * p * (1.0 - p))
    unit = common_unit(w)  # before anything is set apart: a lattice is exact whatever the weights
    if unit is not None:
        lattice = _by_convolution(base, w, p, counts, variance, unit, exact=True)
        if lattice is not None:
            return lattice
    if number_of_labelings(counts) <= _FEW_LABELINGS:
        positives, mass = all_labelings(counts, p)
        places = base + positives @ w
        order = np.argsort(places)
        return Lattice(float(places[order[0]]), math.nan, mass[order], exact=True, places=places[order])
    lone = np.flatnonzero((np.abs(w) > _LONE_SHARE * math.sqrt(variance)) & (counts == 1))
    if apart and 0 < lone.size <= _MOST_LONE:
        rest = np.delete(np.arange(w.size), lone)
        return _with_lone_rows(linear_sum_law(w[rest], p[rest], counts[rest], apart=False), base, w[lone], p[lone])
    sd = math.sqrt(variance)
    small = np.abs(w) <= _SMALL_SHARE * sd
    small_variance = float((counts * w**2 * p * (1.0 - p))[small].sum())
    if small_variance >= 0.5 * variance:
        return _by_characteristic_function(base, w, p, counts, variance, small)
    step = max(sd / _STEPS_PER_SD, 2.0 * chernoff_reach(w, p, counts.astype(np.float64)) / _MAX_STEPS)
    lattice = _by_convolution(base, w, p, counts, variance, step, exact=False)
    assert lattice is not None  # the coarse lattice has no budget to exceed
    return lattice


def common_unit(w: FloatArray) -> float | None:
    """The largest u with every weight a whole multiple of it, or None when there is none worth using."""
    distinct = np.unique(np.abs(w))
    if distinct.size > 512:
        return None
    largest = float(distinct[-1])
    unit = 0.0
    for value in distinct.tolist():
        a, b = value, unit
        while b > largest / (2.0 * _MAX_LEVEL):
            a, b = b, math.fmod(a, b)
            if a - b < 1e-9 * largest:  # fmod of nearly equal numbers may leave one whole divisor
                b = 0.0
        unit = a
    if largest / unit > _MAX_LEVEL:
        return None
    level = distinct / unit
    return unit if bool(np.all(np.abs(level - np.rint(level)) < 1e-13 * np.maximum(level, 1.0))) else None


def _with_lone_rows(rest: Lattice, base: float, w: FloatArray, p: FloatArray) -> Lattice:
    """Rows of huge weight (and so of tiny chance) put back: the law of the rest, once with and once without each."""
    places, mass = base + rest.values(), rest.pmf
    for weight, chance in zip(w.tolist(), p.tolist(), strict=True):
        places = np.concatenate([places, places + weight])
        mass = np.concatenate([(1.0 - chance) * mass, chance * mass])
        kept = mass > math.exp(-LOG_TAIL)
        places, mass = places[kept], mass[kept]
    order = np.argsort(places)
    return Lattice(float(places[order[0]]), math.nan, mass[order] / mass.sum(), rest.exact, places[order])


def _by_convolution(
    base: float, w: FloatArray, p: FloatArray, counts: IntArray, variance: float, step: float, *, exact: bool
) -> Lattice | None:
    mean = dot(counts, w * p)
    reach = chernoff_reach(w, p, counts.astype(np.float64))
    low = max(mean - reach, float((counts * w)[w < 0.0].sum()))
    high = min(mean + reach, float((counts * w)[w > 0.0].sum()))
    parts = _of_weights(w, p, counts, step, exact=exact)
    # Sharing mass between neighbours moves a sum by up to one step per part.
    margin = 1 if exact else 1 + len(parts)
    first = math.floor(low / step) - margin
    length = math.ceil(high / step) + 1 + margin - first
    if exact and length * sum(pmf.size for _, _, pmf in parts) > _DP_BUDGET:
        return None
    # Positions are kept modulo `length`: what falls outside the window has mass below 1e-18 and wraps around unseen.
    mass = np.zeros(length)
    mass[0] = 1.0
    for weight, offset, pmf in parts:
        new = np.zeros(length)
        for k, chance in enumerate(pmf.tolist(), start=offset):
            place = k * weight / step
            whole = round(place) if exact else math.floor(place)
            part = 0.0 if exact else place - whole
            new += chance * (1.0 - part) * np.roll(mass, whole % length)
            if part > 0.0:  # share the mass between two neighbours so that the mean stays right
                new += chance * part * np.roll(mass, (whole + 1) % length)
        mass = new
    pmf = np.roll(mass, -(first % length))
    return Lattice(base + step * first, step, pmf / pmf.sum(), exact)


def weight_levels(w: FloatArray, step: float) -> IntArray:
    """A number that nearly equal weights share: steps of `step` up to a hundred of them, of one per cent above."""
    place = w / step
    size = np.abs(place)
    far = _LINEAR * (1.0 + np.log(np.maximum(size, _LINEAR) / _LINEAR))
    level: IntArray = np.rint(np.sign(place) * np.where(size <= _LINEAR, size, far)).astype(np.int64)
    return level


def _of_weights(
    w: FloatArray, p: FloatArray, counts: IntArray, step: float, *, exact: bool
) -> list[tuple[float, int, FloatArray]]:
    """Rows of (nearly) equal weight, with the law of how many of them are positive."""
    level = np.rint(w / step).astype(np.int64) if exact else weight_levels(w, step)
    order = np.argsort(level, kind="stable")
    starts = np.flatnonzero(np.diff(level[order], prepend=level[order[0]] - 1))
    parts = []
    for rows in np.split(order, starts[1:]):
        expected = counts[rows] * p[rows]
        weight = float(level[rows[0]]) * step if exact else dot(expected, w[rows]) / float(expected.sum())
        offset, pmf = poisson_binomial_pmf(p[rows], counts[rows])
        parts.append((weight, offset, pmf))
    return parts


def _by_characteristic_function(
    base: float, w: FloatArray, p: FloatArray, counts: IntArray, variance: float, small: np.ndarray
) -> Lattice:
    sd = math.sqrt(variance)
    mean = dot(counts, w * p)
    reach = tail_reach(variance, float(np.max(np.abs(w))))
    step = 2.0 * reach / _GRID
    # Rows of small weight alone damp the characteristic function below 1e-17 beyond t = 13 / sd.
    t = np.arange(_GRID // 2 + 1) * (2.0 * np.pi / (_GRID * step))
    t = t[t <= 13.0 / sd]
    cumulants = sum_cumulants(w[small], p[small], counts[small].astype(np.float64), _ORDERS)
    log_cf: ComplexArray = np.zeros(t.size, dtype=np.complex128)
    for order in range(2, _ORDERS + 1):
        log_cf += cumulants[order - 1] * (1j * t) ** order / math.factorial(order)
    large = np.flatnonzero(~small)
    for chunk in np.array_split(large, max(1, large.size * t.size // 2_000_000)):
        phase = np.exp(1j * np.multiply.outer(w[chunk], t))
        log_cf += counts[chunk] @ (
            np.log(1.0 + p[chunk, None] * (phase - 1.0)) - 1j * np.multiply.outer(w[chunk] * p[chunk], t)
        )
    spectrum: ComplexArray = np.zeros(_GRID // 2 + 1, dtype=np.complex128)
    spectrum[: t.size] = np.exp(log_cf + 1j * t * reach)
    pmf = np.maximum(scipy.fft.irfft(np.conj(spectrum), n=_GRID), 0.0)
    return Lattice(base + mean - reach, step, pmf / pmf.sum(), exact=False, smooth=True)
