"""The number of successes among independent trials with unequal chances (mathematics, section 1)."""

from collections.abc import Sequence

import numpy as np
import scipy  # its parts are loaded when they are first used

from darkmetrics._kernels.arrays import ComplexArray, FloatArray, IntArray, dot

# Below this many trials one convolution per trial takes a few milliseconds and keeps every term positive, so even
# the tails have full relative accuracy; above it the characteristic function is faster.
CONVOLUTION_LIMIT = 1000
# Masses below exp(-LOG_TAIL), about 1e-18, are cut: far below the rounding error of a sum of the others.
LOG_TAIL = 41.5
# Convolution keeps masses down to here; their square roots still show in a standard deviation that is nearly zero.
FAINTEST = 1e-30
# In parts that are joined to others less may be cut, as it adds up.
PART_OF_LEAST = 1e-12
_DENORMAL = 1e-290
_TRIM_EVERY = 16
# A trial with a larger chance of failure is added by its odds, with one pass less over the masses, and that chance is
# made good later: so many of them do not overflow.
_LEAST_FAILURE = 1e-9
# Trials of a block at least, when many laws are found at once.
_BLOCK = 64
# Rows whose characteristic functions are found at once, and the least variance of one for that.
_TOGETHER, _MUCH_VARIANCE = 16, 64.0
_DIRECT_ROWS = 256
_MAX_SERIES_RATIO = 0.6


def tail_reach(variance: float, largest: float = 1.0) -> float:
    """Distance from the mean beyond which a sum of bounded independent terms has mass below 1e-18 (Bernstein)."""
    linear = LOG_TAIL * largest / 3.0
    return linear + float(np.sqrt(linear**2 + 2.0 * LOG_TAIL * variance))


def poisson_binomial_pmf(p: FloatArray, counts: IntArray | None = None) -> tuple[int, FloatArray]:
    """Offset and pmf of the number of successes among independent trials with chances `p`.

    `counts[i]` trials share the chance `p[i]`. The pmf is cut where it falls below 1e-18 (1e-30 for few trials); its
    length grows like the standard deviation, not like the number of trials. O(len(p)) for many trials.
    """
    counts = np.ones(p.shape, dtype=np.int64) if counts is None else counts
    offset = int(counts[p >= 1.0].sum())
    open_ = (p > 0.0) & (p < 1.0) & (counts > 0)
    if not open_.all():
        p, counts = p[open_], counts[open_]
    trials = int(counts.sum())
    if trials <= CONVOLUTION_LIMIT:
        pmf = _by_convolution(np.repeat(p, counts))
        low, least = 0, FAINTEST
    else:
        low, pmf = _by_characteristic_function(p, counts, trials)
        least = float(np.exp(-LOG_TAIL))
    inside = np.flatnonzero(pmf > least)
    first, last = int(inside[0]), int(inside[-1]) + 1
    pmf = pmf[first:last]
    return offset + low + first, pmf / pmf.sum()


def poisson_binomial_pmfs(p: FloatArray, counts: IntArray) -> tuple[int, FloatArray]:
    """Like `poisson_binomial_pmf` for each row of `p`, on one window: its first number, and the pmfs (rows x window).

    Few trials are added one at a time for all rows at once; many go by their characteristic functions.
    """
    if int(counts.sum()) <= CONVOLUTION_LIMIT:
        return shared_pmfs(np.repeat(p, counts, axis=1), FAINTEST)
    each: list[tuple[int, FloatArray]] = []
    for start in range(0, len(p), _TOGETHER):
        some = p[start : start + _TOGETHER]
        each += _together(some, counts) or [poisson_binomial_pmf(row, counts) for row in some]
    return _on_one_window(each)


def shared_pmfs(p: FloatArray, least: float) -> tuple[int, FloatArray]:
    """The pmfs of trials with the chances in each row of `p`, on one window; masses up to `least` may be cut."""
    # Trials are dealt out to blocks whose laws are much shorter, and found at once; then pairs of blocks are joined,
    # row by row, since rows have their mass in different places.
    rows, trials = p.shape
    part = least * PART_OF_LEAST
    blocks = 1 << max(0, (trials // _BLOCK).bit_length() - 1)
    each = -(-trials // blocks)
    dealt = np.zeros((each * blocks, rows))  # a trial too many has no chance
    dealt[:trials] = p.T
    offset, columns = add_trials((0, np.ones((1, blocks * rows))), dealt.reshape(each, blocks * rows), part)
    pmfs = np.ascontiguousarray(columns.T)
    while len(pmfs) > rows:
        half = len(pmfs) // 2
        first, end = _held(pmfs, part)
        inside = [pmf[a:b] for pmf, a, b in zip(pmfs, first.tolist(), end.tolist(), strict=True)]
        start, stop = first[:half] + first[half:], end[:half] + end[half:] - 1
        before = int(start.min())
        joined = np.zeros((half, int(stop.max()) - before))
        places = zip((start - before).tolist(), (stop - before).tolist(), strict=True)
        for row, (a, b), one, two in zip(joined, places, inside[:half], inside[half:], strict=True):
            # A convolution; numpy's own takes twice as long where both are short.
            row[a:b] = np.correlate(one, two[::-1], "full")
        offset, pmfs = 2 * offset + before, joined
    first, end = _held(pmfs, least)
    place = np.arange(int(first.min()), int(end.max()))
    held = (place >= first[:, None]) & (place < end[:, None])
    pmfs = np.where(held, pmfs[:, place[0] : place[-1] + 1], 0.0)
    return offset + int(place[0]), pmfs / pmfs.sum(axis=1, keepdims=True)


def _held(pmfs: FloatArray, least: float) -> tuple[IntArray, IntArray]:
    """Where the part of each row starts and ends that has mass worth keeping."""
    kept = pmfs > least
    return kept.argmax(axis=1), kept.shape[1] - kept[:, ::-1].argmax(axis=1)


def _on_one_window(each: Sequence[tuple[int, FloatArray]]) -> tuple[int, FloatArray]:
    low = min(offset for offset, _ in each)
    pmfs = np.zeros((len(each), max(offset + pmf.size for offset, pmf in each) - low))
    for row, (offset, pmf) in zip(pmfs, each, strict=True):
        row[offset - low : offset - low + pmf.size] = pmf / pmf.sum()  # the rest is memory that nothing has touched
    return low, pmfs


def add_trials(distribution: tuple[int, FloatArray], p: FloatArray, least: float) -> tuple[int, FloatArray]:
    """The law of a number of successes (first number, window x columns) after more trials: the rows of `p`.

    One trial after the other, for all columns at once; places where no column has more than `least` are cut.
    """
    first, before = distribution
    trials = p.shape[0]
    pmfs, spare = np.zeros((2, before.shape[0] + trials, p.shape[1]))
    low, high = 0, before.shape[0]  # places outside have no mass worth keeping at any column
    pmfs[:high] = before
    failure = 1.0 - p
    by_odds = failure.min(axis=1, initial=1.0) > _LEAST_FAILURE
    left_out = failure if by_odds.all() else np.where(by_odds[:, None], failure, 1.0)
    rises = p / left_out
    for k, (odds, whole) in enumerate(zip(rises, by_odds.tolist(), strict=True), start=1):
        here = pmfs[low:high]
        moved = np.multiply(here, odds, out=spare[: high - low])
        if not whole:
            here *= failure[k - 1]
        above = pmfs[low + 1 : high + 1]
        np.add(above, moved, out=above)
        high += 1
        if k % _TRIM_EVERY == 0 or k == trials:
            here = pmfs[low:high]
            here *= left_out[(k - 1) // _TRIM_EVERY * _TRIM_EVERY : k].prod(axis=0)
            here[here < _DENORMAL] = 0.0  # a processor takes a hundred times as long for those below
            kept = np.flatnonzero(here.max(axis=1) > least)
            pmfs[low : low + kept[0]] = 0.0
            pmfs[low + kept[-1] + 1 : high] = 0.0
            low, high = low + int(kept[0]), low + int(kept[-1]) + 1
    return first + low, pmfs[low:high]


def _by_convolution(p: FloatArray) -> FloatArray:
    pmf = np.zeros(p.size + 1)
    pmf[0] = 1.0
    for k, chance in enumerate(p.tolist()):
        success = pmf[: k + 1] * chance
        pmf[: k + 1] *= 1.0 - chance
        pmf[1 : k + 2] += success
    return pmf


def _by_characteristic_function(p: FloatArray, counts: IntArray, trials: int) -> tuple[int, FloatArray]:
    # Counting the rarer outcome of each trial keeps means and phases small, and with them their rounding errors.
    flip = p > 0.5
    turned = int(counts[flip].sum())
    sides = [(p[~flip], counts[~flip].astype(np.float64)), (1.0 - p[flip], counts[flip].astype(np.float64))]
    means = [float((c * rare).sum()) for rare, c in sides]  # pairwise sums: their error does not grow with the rows
    mean = means[0] - means[1]  # of the number of successes less `turned`
    variance = sum(float((c * rare * (1.0 - rare)).sum()) for rare, c in sides)
    reach = tail_reach(variance)
    low, high = max(-turned, int(np.floor(mean - reach))), min(trials - turned, int(np.ceil(mean + reach)))
    length = int(scipy.fft.next_fast_len(high - low + 1, real=True))
    t = 2.0 * np.pi * np.arange(length // 2 + 1) / length
    # |cf(t)| <= exp(-2 sin^2(t/2) sum v), so all frequencies beyond this one vanish in double precision.
    needed = np.sin(t / 2.0) ** 2 <= LOG_TAIL / (2.0 * variance)
    t = t[needed]
    log_cf: ComplexArray = np.zeros(t.size, dtype=np.complex128)
    for (rare, c), sign in zip(sides, (1.0, -1.0), strict=True):
        if rare.size:  # what is counted down has the conjugate characteristic function
            part = _centred_log_cf(rare, c, t)
            log_cf = log_cf + part.real + sign * 1j * part.imag
    spectrum = np.zeros(length // 2 + 1, dtype=np.complex128)
    spectrum[: t.size] = np.exp(log_cf + 1j * t * (mean - low))
    # irfft sums with exp(+itk); the pmf needs exp(-itk), that is the conjugate spectrum.
    pmf = scipy.fft.irfft(np.conj(spectrum), n=length)[: high - low + 1]
    return turned + low, np.maximum(pmf, 0.0)


def _together(p: FloatArray, counts: IntArray) -> list[tuple[int, FloatArray]] | None:
    """`_by_characteristic_function` for a few rows of `p` at once; None where one series will not do for each."""
    rows, trials = counts.astype(np.float64), int(counts.sum())
    mean, variance = p @ rows, (p * (1.0 - p)) @ rows
    if variance.min() < _MUCH_VARIANCE:
        return None
    linear = LOG_TAIL / 3.0
    reach = linear + np.sqrt(linear**2 + 2.0 * LOG_TAIL * variance)
    low, high = np.maximum(0.0, np.floor(mean - reach)), np.minimum(trials, np.ceil(mean + reach))
    length = int(scipy.fft.next_fast_len(int((high - low).max()) + 1, real=True))
    t = 2.0 * np.pi * np.arange(length // 2 + 1) / length
    t = t[np.sin(t / 2.0) ** 2 <= LOG_TAIL / (2.0 * variance.min())]
    centre = mean / trials
    z = np.exp(1j * t) - 1.0
    w = z / (1.0 + centre[:, None] * z)
    deviation = p - centre[:, None]
    spread = np.abs(deviation).max(axis=1)
    ratio = np.abs(w).max(axis=1) * spread
    if ratio.max() > _MAX_SERIES_RATIO:
        return None
    log_cf: ComplexArray = trials * _bernoulli_log_cf(centre, t)
    power, w_power = deviation.copy(), w.copy()
    for k in range(2, 200):
        power *= deviation
        w_power *= w
        log_cf += ((-1.0) ** (k + 1) / k * (power @ rows))[:, None] * w_power
        if np.max(variance * ratio**k) < 1e-17 * k:
            break
    spectrum = np.zeros((len(p), length // 2 + 1), dtype=np.complex128)
    spectrum[:, : t.size] = np.exp(log_cf + 1j * t * (mean - low)[:, None])
    # irfft sums with exp(+itk); the pmf needs exp(-itk), that is the conjugate spectrum.
    pmfs = scipy.fft.irfft(np.conj(spectrum), n=length, axis=1)
    each = []
    for i, first in enumerate(low.astype(np.int64).tolist()):
        inside = np.flatnonzero(pmfs[i, : int(high[i] - low[i]) + 1] > np.exp(-LOG_TAIL))
        pmf = pmfs[i, inside[0] : inside[-1] + 1]
        each.append((first + int(inside[0]), np.maximum(pmf, 0.0) / pmf.sum()))
    return each


def _centred_log_cf(p: FloatArray, counts: FloatArray, t: FloatArray) -> ComplexArray:
    """Centred log E exp(it(X - EX)): a power series about the mean chance, splitting the rows until it converges."""
    trials = float(counts.sum())
    centre = dot(counts, p) / trials
    modulus = -4.0 * np.sin(t / 2.0) ** 2
    base_abs2 = 1.0 + centre * (1.0 - centre) * modulus
    w_abs = np.sqrt(-modulus / np.maximum(base_abs2, 1e-300))
    spread = float(np.max(np.abs(p - centre)))
    ratio = float(np.max(w_abs)) * spread
    if ratio > _MAX_SERIES_RATIO:
        if p.size <= _DIRECT_ROWS:
            return _direct_log_cf(p, counts, t)
        middle = 0.5 * (float(p.min()) + float(p.max()))
        lower = p <= middle
        upper = ~lower
        return _centred_log_cf(p[lower], counts[lower], t) + _centred_log_cf(p[upper], counts[upper], t)
    log_cf: ComplexArray = trials * _bernoulli_log_cf(np.array([centre]), t)[0]
    if spread == 0.0:
        return log_cf
    z = np.exp(1j * t) - 1.0
    w = z / (1.0 + centre * z)
    deviation = p - centre
    power = deviation.copy()
    size = dot(counts, deviation**2) / spread**2
    w_power = w.copy()
    for k in range(2, 200):
        power *= deviation
        w_power = w_power * w
        log_cf = log_cf + ((-1.0) ** (k + 1) / k * dot(counts, power)) * w_power
        if size * ratio**k / k < 1e-17:
            break
    return log_cf


def _direct_log_cf(p: FloatArray, counts: FloatArray, t: FloatArray) -> ComplexArray:
    result: ComplexArray = counts @ _bernoulli_log_cf(p, t)
    return result


def _bernoulli_log_cf(p: FloatArray, t: FloatArray) -> ComplexArray:
    """The logarithm of E exp(it(Y - p)) for each p (rows) and t (columns), without complex cancellation."""
    half = np.sin(t / 2.0) ** 2
    column = p[:, None]
    with np.errstate(divide="ignore"):  # p = 1/2 at t = pi: a factor of zero, whose log is cut at exp(-1e4) = 0
        log_abs = np.maximum(0.5 * np.log1p(-4.0 * column * (1.0 - column) * half), -1e4)
    angle = np.arctan2(column * np.sin(t), 1.0 - 2.0 * column * half)
    result: ComplexArray = log_abs + 1j * (angle - column * t)
    return result
