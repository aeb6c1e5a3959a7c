"""Tests of what the data say: distances of samples, fits of mixtures and curves, and bets on labels as they come.

A mixture: a bin holds `P`, `N` and `M` positive, negative and missing rows. If a positive is missing with chance `a1`
and a negative with chance `a0`, whatever the bin, then its rows are expected to be `(1 - a1) E1`, `(1 - a0) E0` and
`a1 E1 + a0 E0`, with `E1 + E0` rows in all. For given chances the most likely `E1 = P + M w` follows from a quadratic
equation in `w`, the share of positives among the missing rows of the bin; what is left is a search over two numbers.

Bets are test martingales for probabilities that were said beforehand (how-to, verify). The probabilities of labels that
are to come are a mixture over nodes. A better moves the log odds of all nodes by a tilt, and multiplies the capital by
the chance that the tilted mixture gives to what came, over the chance that the mixture gives. Averaged over tilts that
are fixed beforehand the capital is a martingale if the mixture is right, and grows where some tilt fits better.
"""

from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used
from scipy.special import chdtrc, expit, kolmogorov, logsumexp, ndtr, rel_entr

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray


class Comparison(NamedTuple):
    """How the values of a second sample compare with those of a first."""

    effect: float  # P(second > first) + P(tie) / 2
    p_location: float  # Mann-Whitney, ties corrected
    distance: float  # largest difference of the two distribution functions
    p_shape: float  # Kolmogorov-Smirnov


def compared(first: FloatArray, second: FloatArray) -> Comparison:
    """Mann-Whitney and Kolmogorov-Smirnov tests of two samples with these counts of each value, lowest value first.

    Both have rows. Ties need no care: they are in the variance of the first test, and the second is conservative then.
    """
    n, m = float(first.sum()), float(second.sum())
    below = np.cumsum(first)
    effect = float(second @ (below - 0.5 * first)) / (n * m)
    together, rows = first + second, n + m
    # What ties leave of the variance of the ranks; nothing but rounding where all values are equal.
    spread = 1.0 - float(np.sum((together / rows) ** 3))
    variance = n * m / 12.0 * rows * (rows / (rows - 1.0)) * spread
    off = max(abs(effect - 0.5) * n * m - 0.5, 0.0)  # half a step, because the statistic moves in steps
    p_location = min(1.0, 2.0 * float(ndtr(-off / np.sqrt(variance)))) if spread > 1e-12 else 1.0
    distance = float(np.abs(below / n - np.cumsum(second) / m).max())
    return Comparison(effect, p_location, distance, float(kolmogorov(np.sqrt(n / rows * m) * distance)))


def w1_to_uniform(values: FloatArray) -> FloatArray:
    """Wasserstein-1 distance of the empirical law of each row of sorted values to the uniform law.

    The integral of |F(x) - x| over [0, 1]: between two values F is constant, so each piece is a triangle or two.
    """
    n = values.shape[-1]
    edges = np.concatenate([np.zeros((*values.shape[:-1], 1)), values, np.ones((*values.shape[:-1], 1))], axis=-1)
    level = np.arange(n + 1) / n
    low, high = edges[..., :-1] - level, edges[..., 1:] - level
    crossing = (low < 0.0) & (high > 0.0)
    whole = 0.5 * np.abs(high**2 - low**2)
    return np.asarray(np.where(crossing, 0.5 * (high**2 + low**2), whole).sum(axis=-1))


def ks_to_uniform(values: FloatArray) -> FloatArray:
    """Kolmogorov-Smirnov distance of the empirical law of each row of sorted values to the uniform law."""
    n = values.shape[-1]
    steps = np.arange(n + 1) / n
    return np.asarray(np.maximum(steps[1:] - values, values - steps[:-1]).max(axis=-1))


def floors(n: int) -> tuple[float, float]:
    """Mean W1 and KS distance of n independent uniform values; NaN if there are none.

    The limits are the mean of the integral and of the maximum of the absolute value of a Brownian bridge. W1 is there
    soon (1.5% below the mean at n = 5); KS comes in from below by 0.2 / sqrt(n), and with that is within 1% from n = 2.
    """
    if n == 0:
        return np.nan, np.nan
    root = np.sqrt(n)
    return float(np.sqrt(np.pi / 32.0) / root), float(np.sqrt(np.pi / 2.0) * np.log(2.0) / (root + 0.2))


# Chances closer to 0 and 1 than this are 0 and 1.
_EDGE = 1e-9
# Fewest bins of a test, and fewest rows of each class per bin: with fewer, tests stray from their level.
_FEWEST_BINS, _ROWS_PER_BIN = 4, 3
LEAST_ROWS = _FEWEST_BINS * _ROWS_PER_BIN
_MOST_BINS = 8


class MixtureFit(NamedTuple):
    """Pearson's statistic, its degrees of freedom, and the share of positives among the missing rows."""

    statistic: float
    dof: int
    share: float

    @property
    def p_value(self) -> float:
        """Chance of a statistic as large, if the missing rows are a mixture."""
        return float(chdtrc(self.dof, self.statistic))


def mixture_test(positives: FloatArray, negatives: FloatArray, missing: FloatArray) -> MixtureFit | None:
    """The fit on up to eight bins that hold equally much of all three; counts are sorted by score.

    None where there are fewer than LEAST_ROWS of one of them, or scores too few to tell histograms apart.
    """
    groups = (positives, negatives, missing)
    totals = [float(group.sum()) for group in groups]
    most = n_bins(min(totals), _MOST_BINS)
    if most == 0:
        return None
    bins = equal_bins(positives / totals[0] + negatives / totals[1] + missing / totals[2], most)
    return None if bins[-1] < 2 else mixture_fit(*(per_bin(bins, group) for group in groups))


def mixture_fit(positives: FloatArray, negatives: FloatArray, missing: FloatArray) -> MixtureFit:
    """How far the missing rows are from any mixture of the positives and the negatives; no bin is empty.

    If they are one, the statistic is nearly chi-square: each bin brings two numbers and takes one for its share, and
    the chances take two. At the edge, where all missing rows are of one class, one of the chances fitted nothing.
    """
    from scipy.optimize import minimize

    seen = np.stack([positives, negatives, missing])
    rows, total = float(seen.sum()), float(missing.sum())

    def loss(chances: FloatArray) -> tuple[float, FloatArray]:
        a1, a0 = chances
        w = _share(positives, negatives, missing, a1, a0)
        found = float(missing @ w)
        # What the w add to the gradient cancels, because they are the best for these chances.
        gradient = [
            float(positives.sum()) / (1.0 - a1) - found / a1,
            float(negatives.sum()) / (1.0 - a0) - (total - found) / a0,
        ]
        return float(rel_entr(seen, _expected(seen, w, a1, a0)).sum()) / rows, np.array(gradient) / rows

    best = minimize(
        loss,
        np.full(2, total / rows),  # missing at random
        jac=True,
        method="L-BFGS-B",
        bounds=[(_EDGE, 1.0 - _EDGE)] * 2,
        options={"ftol": 1e-14, "gtol": 1e-9},
    )
    a1, a0 = best.x
    w = _share(positives, negatives, missing, a1, a0)
    fit = _expected(seen, w, a1, a0)
    statistic = float(np.sum((seen - fit)[fit > 0.0] ** 2 / fit[fit > 0.0]))
    share = float(missing @ w) / total
    edge = min(share, 1.0 - share) < 1e-6
    return MixtureFit(statistic, missing.size - 2 + edge, share)


def _share(P: FloatArray, N: FloatArray, M: FloatArray, a1: float, a0: float) -> FloatArray:
    """The root in [0, 1] of `M (a1 - a0) w^2 + (a1 (P - M) + a0 (N + M)) w - a1 P`: <= 0 at 0, >= 0 at 1."""
    square, linear, constant = M * (a1 - a0), a1 * (P - M) + a0 * (N + M), a1 * P
    root = np.sqrt(np.maximum(linear**2 + 4.0 * square * constant, 0.0))
    up = linear > 0.0
    # Whichever of the two forms adds numbers of one sign.
    top, bottom = np.where(up, 2.0 * constant, root - linear), np.where(up, linear + root, 2.0 * square)
    w = np.divide(top, bottom, out=np.zeros_like(P), where=bottom > 0.0)
    result: FloatArray = np.clip(w, 0.0, 1.0)
    return result


def _expected(seen: FloatArray, w: FloatArray, a1: float, a0: float) -> FloatArray:
    """Expected positive, negative and missing rows of each bin."""
    P, N, M = seen
    E1, E0 = P + M * w, N + M * (1.0 - w)
    return np.stack([(1.0 - a1) * E1, (1.0 - a0) * E0, a1 * E1 + a0 * E0])


def equal_bins(weight: FloatArray, most: int) -> IntArray:
    """The bin of each row of a table, sorted by score: bins of nearly equal weight, counted from 0, none empty."""
    middle = (np.cumsum(weight) - 0.5 * weight) / weight.sum()
    raw = np.minimum((most * middle).astype(np.int64), most - 1)
    return np.asarray(np.unique(raw, return_inverse=True)[1], dtype=np.int64)


def per_bin(bins: IntArray, values: FloatArray) -> FloatArray:
    """Sums over the rows of each bin."""
    return np.asarray(np.bincount(bins, weights=values), dtype=np.float64)


def n_bins(rows: float, most: int) -> int:
    """How many bins the smallest class allows, at most `most`; 0 if too few to test anything."""
    bins = min(most, int(rows) // _ROWS_PER_BIN)
    return bins if bins >= _FEWEST_BINS else 0


class ScoreTest(NamedTuple):
    """A statistic that is chi-square with `dof` degrees of freedom if the added columns do nothing."""

    statistic: float
    dof: int

    @property
    def p_value(self) -> float:
        """Chance of a larger statistic if they do nothing."""
        return float(chdtrc(self.dof, self.statistic)) if self.dof else 1.0


def logistic_score_test(
    X: FloatArray, Z: FloatArray, positives: FloatArray, negatives: FloatArray, beta: FloatArray
) -> ScoreTest:
    """The test of columns `Z` added to a regression on `X` with coefficients near `beta`, from one fit without them.

    With bins for `Z` it is the goodness-of-fit test of Tsiatis (1980). The fit may have had a weak prior: what its
    residuals say about `X` is taken out of what they say about `Z`.
    """
    p = expit(X @ beta)
    rows = positives + negatives
    residual, weight = positives - rows * p, rows * p * (1.0 - p)
    XtW = X.T * weight
    # What of each added column the columns of X cannot do.
    own = Z - X @ np.linalg.lstsq(XtW @ X, XtW @ Z, rcond=None)[0]
    score, covariance = own.T @ residual, (own.T * weight) @ own
    scale = np.sqrt(np.maximum(np.diag((Z.T * weight) @ Z), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(covariance / np.outer(scale, scale))
    kept = values > 1e-6
    part = vectors[:, kept].T @ (score / scale)
    return ScoreTest(float(np.sum(part**2 / values[kept])), int(kept.sum()))


# How far the log odds are moved, each as likely beforehand: from a quarter more odds to seven times as many.
TILTS: FloatArray = np.array([0.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0])
# Of one tilt for rows that are flagged and one for the others.
_LOG_PAIRS = 2.0 * float(np.log(TILTS.size))
# Tilts are computed with log odds within this limit. Beyond it, probabilities are 0 or 1 to the last bit.
FARTHEST = 36.0


class Capital:
    """What has become of a stake of 1 put against a mixture of probabilities, after each batch of labels.

    Tilts are chosen apart for rows that are flagged and for those that are not.
    """

    def __init__(self, weight: FloatArray) -> None:
        self._log_weight = np.log(np.maximum(weight, 1e-300))
        self._possible = weight > 0.0
        self._likelihood = np.zeros((2, weight.size, TILTS.size))

    def add(self, log_odds: FloatArray, flagged: BoolArray, positives: IntArray, negatives: IntArray) -> None:
        """A batch of labels: so many positive and negative ones in each column of `log_odds` (nodes x columns)."""
        self._possible &= allows_labels(log_odds, positives, negatives)
        log_odds = np.clip(log_odds, -FARTHEST, FARTHEST)
        for side, own in enumerate((flagged, ~flagged)):
            if own.any():
                eta, yes, labels = log_odds[:, own], positives[own], (positives + negatives)[own]
                for at, tilt in enumerate(TILTS.tolist()):
                    tilted = eta + tilt
                    self._likelihood[side, :, at] += tilted @ yes - np.logaddexp(0.0, tilted) @ labels

    @property
    def log_value(self) -> float:
        """The logarithm of the capital; infinite once the labels have probability zero under the mixture."""
        if not self._possible.any():
            return np.inf
        log_weight, likelihood = self._log_weight[self._possible], self._likelihood[:, self._possible]
        null = likelihood[:, :, 0].sum(axis=0)
        bet = logsumexp(likelihood, axis=2).sum(axis=0) - _LOG_PAIRS
        return float(logsumexp(log_weight + bet) - logsumexp(log_weight + null))


def allows_labels(log_odds: FloatArray, positives: IntArray, negatives: IntArray) -> BoolArray:
    """Whether the labels have a positive probability at each node: no probability of 0 or 1 contradicts one."""
    contradicted = ((log_odds == -np.inf) & (positives > 0)) | ((log_odds == np.inf) & (negatives > 0))
    return np.asarray(~contradicted.any(axis=1), dtype=np.bool_)


def log_moments(weight: FloatArray, log_odds: FloatArray, flagged: BoolArray, rows: IntArray) -> FloatArray:
    """Logs of E exp(c A + d B) for each pair of tilts: A and B are the positives among flagged and other rows."""
    sides = []
    log_odds = np.clip(log_odds, -FARTHEST, FARTHEST)
    for own in (flagged, ~flagged):
        eta, count = log_odds[:, own], rows[own]
        none = np.logaddexp(0.0, eta) @ count
        sides.append(np.stack([np.logaddexp(0.0, eta + tilt) @ count - none for tilt in TILTS.tolist()]))
    both = sides[0][:, None, :] + sides[1][None, :, :]
    return np.asarray(logsumexp(both + np.log(np.maximum(weight, 1e-300)), axis=2), dtype=np.float64)


def least_log_capital(moments: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Log of the least of the mean over tilts of exp(c A + d B) / E exp(c A + d B), for A and B in a box.

    The logarithm is convex in (A, B): the tangent plane at a point near its minimum bounds it from below in the box,
    and the least of that plane is returned, so that an error of the search only makes it smaller.
    """

    def value(place: FloatArray) -> tuple[float, FloatArray]:
        terms = TILTS[:, None] * place[0] + TILTS[None, :] * place[1] - moments
        top = float(logsumexp(terms))
        share = np.exp(terms - top)
        return top - _LOG_PAIRS, np.array([share.sum(axis=1) @ TILTS, share.sum(axis=0) @ TILTS])

    width = high - low

    def scaled(u: FloatArray) -> tuple[float, FloatArray]:
        at, slope = value(low + u * width)
        return at, slope * width

    u = scipy.optimize.minimize(scaled, np.full(2, 0.5), jac=True, bounds=[(0.0, 1.0)] * 2, method="L-BFGS-B").x
    at, slope = scaled(u)
    return at + float(np.minimum(-slope * u, slope * (1.0 - u)).sum())
