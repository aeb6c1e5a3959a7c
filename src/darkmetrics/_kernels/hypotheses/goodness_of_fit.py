"""Goodness of fit: is one histogram a mixture of two others, and would more columns improve a logistic regression?

A bin holds `P`, `N` and `M` positive, negative and missing rows. If a positive is missing with chance `a1` and a
negative with chance `a0`, whatever the bin, then its rows are expected to be `(1 - a1) E1`, `(1 - a0) E0` and
`a1 E1 + a0 E0`, with `E1 + E0` rows in all. For given chances the most likely `E1 = P + M w` follows from a quadratic
equation in `w`, the share of positives among the missing rows of the bin; what is left is a search over two numbers.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, expit, rel_entr

from darkmetrics._kernels.arrays import FloatArray, IntArray

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
