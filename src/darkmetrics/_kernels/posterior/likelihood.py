"""The one likelihood of labels and their absence (mathematics, section 7), as a log posterior with its derivatives.

With `p(s) = P(Y=1 | s)` and `a_y(s) = P(missing | Y=y, s)`, a row with a label contributes `p_y (1 - a_y)`, a row
without `p a_1 + (1 - p) a_0`, and a row of the reference set `p_y`. Both curves are logistic: `logit p = X theta`,
`logit a_1 = Z c + D d/2` and `logit a_0 = Z c - D d/2`, so that d = 0 says that the label plays no part.
"""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit, log_expit

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import posterior_mode
from darkmetrics._kernels.posterior.logistic import LITTLE, TOGETHER, chance, cut_odds, log_chance, product_1p
from darkmetrics._kernels.posterior.summary import Along

# Draws are evaluated in portions of at most this many numbers, which stay in the processor's cache.
_PORTION = 1 << 16


class _Bundles(NamedTuple):
    """Scores in bundles of as many rows and missing rows each: first all first ones, then all second.

    Minus their columns of X, rows and missing rows of each score; how many bundles have a first score, a second, ...
    """

    columns: FloatArray
    counts: FloatArray
    missing: FloatArray
    sizes: list[int]


class _Prior(NamedTuple):
    """Minus the log density at the mean, of each parameter and of all, and their variances.

    `precision` has one over these on its diagonal; `heavy` has place, mean and squared scale of the Cauchy ones.
    """

    level: FloatArray
    total: float
    variance: FloatArray
    precision: FloatArray
    heavy: list[tuple[int, float, float]]


class Expansion(NamedTuple):
    """A log posterior at one point, to second order; `precision` is minus its Hessian."""

    value: float
    gradient: FloatArray
    precision: FloatArray


@dataclass(frozen=True, eq=False)
class LabelLikelihood:
    """Tables of counts and the prior; parameters are `theta`, then `c` and `d` if missingness is modelled.

    `Z` is None where it is not: then rows without a label say nothing and are left out, and labelled rows count like
    those of the reference set. `D` is `Z` where it is None. A `Z` of one column means that the chance of being missing
    does not depend on the score.
    """

    X: FloatArray
    Z: FloatArray | None
    positives: FloatArray
    negatives: FloatArray
    missing: FloatArray
    # The reference set, perhaps without rows.
    X_reference: FloatArray
    positives_reference: FloatArray
    negatives_reference: FloatArray
    prior_mean: FloatArray
    prior_scale: FloatArray
    # Which parameters have a Cauchy prior in place of a Gaussian one: small ones are pulled to the mean, large ones are
    # left alone.
    heavy: BoolArray | None = None
    D: FloatArray | None = None
    # The power that the likelihood is raised to: below 1, what the data say is believed in part.
    credit: float = 1.0
    # The table, where the columns of X follow a line.
    along: Along | None = None
    # Sums of the columns of X over positive and over negative rows, where these are no longer told apart by row.
    sums: tuple[FloatArray, FloatArray] | None = None

    def log_posterior(self, parameters: FloatArray) -> FloatArray:
        """Log of likelihood times prior density, for each row of `parameters`."""
        size = max(1, _PORTION // max(1, self.X.shape[0]))
        portions = [self._log_likelihood(parameters[i : i + size]) for i in range(0, len(parameters), size)]
        result: FloatArray = self.credit * np.concatenate(portions) + self._log_prior(parameters)
        return result

    def _log_prior(self, parameters: FloatArray) -> FloatArray:
        """Log of the prior density, for each row of `parameters`."""
        prior = self._prior
        square = ((parameters - self.prior_mean) / self.prior_scale) ** 2
        each = -0.5 * square - prior.level
        for place, _, _ in prior.heavy:
            each[:, place] = -np.log1p(square[:, place]) - prior.level[place]
        result: FloatArray = each.sum(axis=1)
        return result

    @cached_property
    def _prior(self) -> "_Prior":
        places = [] if self.heavy is None else np.flatnonzero(self.heavy).tolist()
        scale, height = self.prior_scale, np.full(self.prior_scale.size, np.sqrt(2.0 * np.pi))
        height[places] = np.pi
        variance, level = scale**2, np.log(height * scale)
        heavy = [(place, float(self.prior_mean[place]), float(variance[place])) for place in places]
        return _Prior(level, float(level.sum()), variance, np.diag(1.0 / variance), heavy)

    def _expand_prior(self, parameters: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The log prior density at one point, its gradient, and minus its second derivatives."""
        prior, off = self._prior, parameters - self.prior_mean
        gradient, precision = -off / prior.variance, prior.precision
        value = 0.5 * float(off @ gradient) - prior.total
        if prior.heavy:
            precision = precision.copy()
        for place, mean, variance in prior.heavy:  # plain numbers, as there is hardly ever more than one
            far = float(parameters[place]) - mean
            square = far * far
            reach = variance + square
            value += 0.5 * square / variance - math.log1p(square / variance)
            gradient[place] = -2.0 * far / reach
            precision[place, place] = 2.0 * (variance - square) / (reach * reach)
        return value, gradient, precision

    def _log_likelihood(self, parameters: FloatArray) -> FloatArray:
        theta, c, d = self._parts(parameters)
        if self._alike is None:
            return self._by_score(theta, c, d)
        if self.Z is None:
            return self._by_bundle(self._alike, theta)
        up, down = self._log_odds_of_missing(c, d)
        gone, gone0 = log_chance(up), log_chance(down)
        near = np.abs(gone - gone0)[:, 0] <= LITTLE
        if not near.all():
            result = np.empty(len(parameters))
            result[near] = self._log_likelihood(parameters[near])
            result[~near] = self._by_score(theta[~near], c[~near], d[~near])
            return result
        positives, negatives, missing = self._totals
        result = self._by_bundle(self._alike, theta, np.exp(gone0 - gone))
        result += (gone * missing + (gone - up) * positives)[:, 0]
        result += ((gone0 - down) * negatives)[:, 0]
        return result

    @cached_property
    def _is_alike(self) -> bool:
        """Whether the absence of rows does not depend on the score, and there are no reference rows."""
        constant = self.Z is None or (self.Z.shape[1] == 1 and self.D is None)
        some = self._labelled.any() or (self.Z is not None and self.missing.any())
        return bool(constant and some and not self.positives_reference.size)

    @cached_property
    def _alike(self) -> "list[_Bundles] | None":
        """The scores with missing rows, and those without, where the absence of rows does not depend on the score."""
        if not self._is_alike:
            return None
        missing = np.zeros(len(self.X)) if self.Z is None else self.missing
        counts = self._labelled + missing
        if self.sums is not None:  # few rows that stand for many, hardly two of them for as many
            rows = [np.flatnonzero(some) for some in (missing > 0.0, (missing <= 0.0) & (counts > 0.0))]
            return [_Bundles(-self.X[some], counts[some], missing[some], [some.size]) for some in rows if some.size]
        order = np.lexsort([missing, counts])[np.count_nonzero(counts <= 0.0) :]
        gone = missing[order] > 0.0
        return [self._bundled(some, counts, missing) for some in (order[gone], order[~gone]) if some.size]

    def _bundled(self, order: IntArray, counts: FloatArray, missing: FloatArray) -> "_Bundles":
        new = np.diff(counts[order], prepend=0.0) + 1j * np.diff(missing[order], prepend=0.0) != 0.0
        place = np.arange(order.size)
        member = (place - np.maximum.accumulate(np.where(new, place, 0))) % TOGETHER
        bundle = np.cumsum(member == 0) - 1
        order = order[np.lexsort([bundle, -np.bincount(bundle)[bundle], member])]
        sizes = np.bincount(member, minlength=1).tolist()
        return _Bundles(-self.X[order], counts[order], missing[order], sizes)

    @cached_property
    def _of_negatives(self) -> FloatArray:
        """Sums of the columns of X over negative rows."""
        return np.asarray(self.X.T @ self.negatives) if self.sums is None else self.sums[1]

    @cached_property
    def _of_positives(self) -> FloatArray:
        """The same over positive rows."""
        return np.asarray(self.X.T @ self.positives) if self.sums is None else self.sums[0]

    @cached_property
    def short(self) -> "LabelLikelihood":
        """The same likelihood to many digits on a table of a hundred rows or so, where this one has many more.

        Only where absence does not depend on the score: then all that is summed over rows is smooth along the line, but
        for labels themselves, whose sums are kept as they are.
        """
        constant = self.Z is None or (self.Z.shape[1] == 1 and self.D is None)
        few = self.along.few if constant and self.along is not None else None
        if few is None:
            return self
        share = float(self.positives.sum()) / max(1.0, float(few.labelled.sum()))
        return replace(
            self,
            X=few.columns,
            Z=None if self.Z is None else np.ones((few.bins.size, 1)),
            positives=share * few.labelled,
            negatives=(1.0 - share) * few.labelled,
            missing=few.missing,
            along=None,
            sums=(self.X.T @ self.positives, self.X.T @ self.negatives),
        )

    def _by_bundle(self, parts: "list[_Bundles]", theta: FloatArray, ratio: FloatArray | None = None) -> FloatArray:
        """`sum log p_y` over the rows, and `-log w` of missing ones; `ratio` is `a_0 / a_1`. Same as `_by_score`.

        With e the odds of being negative these are the logarithms of `1 + e` and `1 + e a_0 / a_1`: factors that are
        multiplied before a logarithm is taken.
        """
        result: FloatArray = -(theta @ self._of_negatives)
        for rows in parts:
            odds, large, more = cut_odds(theta @ rows.columns.T)
            missing, counts = rows.missing[: rows.sizes[0]], rows.counts[: rows.sizes[0]]
            gone = None if ratio is None or not missing[0] else product_1p(odds * ratio, rows.sizes)
            factors = product_1p(odds, rows.sizes)
            if gone is not None and np.array_equal(missing, counts):  # missing rows alone: one logarithm for both
                np.divide(factors, gone, out=factors)
            elif gone is not None:  # each has missing rows, or none has
                result += np.log(gone, out=gone) @ missing
            result -= np.log(factors, out=factors) @ counts
            if large.size:  # beyond the cut both logarithms grow like the log odds
                result += more @ (rows.missing - rows.counts)[large]
        return result

    def _by_score(self, theta: FloatArray, c: FloatArray, d: FloatArray) -> FloatArray:
        log_odds = theta @ self.X.T
        yes = log_chance(log_odds)
        rows = self.positives + self.negatives
        if self.Z is not None:
            rows = rows + self.missing
        # log(1 - p) = log p - logit p, and the sum of the log odds of negative rows is linear in theta.
        result: FloatArray = yes @ rows - theta @ self._of_negatives
        if self.Z is not None:
            up, down = self._log_odds_of_missing(c, d)
            gone, gone0 = log_chance(up), log_chance(down)
            result += _weighted(gone - up, self.positives) + _weighted(gone0 - down, self.negatives)
            # log(p a_1 + (1 - p) a_0) = log p + log a_1 - log w, with w the chance that a missing row is positive.
            some = self._with_missing
            moved = gone - gone0
            log_odds = log_odds[:, some] + (moved if moved.shape[1] == 1 else moved[:, some])
            result += _weighted(gone, self.missing) - log_chance(log_odds) @ self.missing[some]
        if self.positives_reference.size:
            yes = log_chance(theta @ self.X_reference.T)
            result += yes @ (self.positives_reference + self.negatives_reference)
            result -= theta @ (self.X_reference.T @ self.negatives_reference)
        return result

    @cached_property
    def _with_missing(self) -> IntArray | slice:
        """The rows of the table that hold missing ones."""
        rows = np.flatnonzero(self.missing)
        return rows if rows.size < self.missing.size else slice(None)

    def _parts(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Parameters as theta, c and d (both empty where missingness is not modelled)."""
        width = self.X.shape[1]
        columns = 0 if self.Z is None else self.Z.shape[1]
        return parameters[..., :width], parameters[..., width : width + columns], parameters[..., width + columns :]

    @property
    def difference(self) -> FloatArray:
        """Columns of the difference between the classes."""
        columns = self.Z if self.D is None else self.D
        assert columns is not None
        return columns

    @cached_property
    def _halves(self) -> tuple[FloatArray, FloatArray]:
        """Derivatives of `logit a_1` and `logit a_0` in c and d."""
        assert self.Z is not None
        return np.hstack([self.Z, 0.5 * self.difference]), np.hstack([self.Z, -0.5 * self.difference])

    def _log_odds_of_missing(self, c: FloatArray, d: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`logit a_1` and `logit a_0` on each row of the table."""
        assert self.Z is not None
        Z, D = self.Z, self.difference
        if Z.shape[1] == 1 and self.D is None:
            Z, D = Z[:1], D[:1]  # where no column depends on the score, one number stands for all rows
        common, half = c @ Z.T, 0.5 * (d @ D.T)
        return common + half, common - half

    def expand(self, parameters: FloatArray) -> Expansion:
        """The log posterior at one point, with gradient and curvature in closed form."""
        theta, c, d = self._parts(parameters)
        if self._is_alike:
            alike = self._expand_curve(theta) if self.Z is None else self._expand_alike(theta, float(c[0]), float(d[0]))
            value, gradient, hessian = alike
            return self._with_prior(parameters, self.credit * value, gradient, hessian)
        p = chance(self.X @ theta)
        labelled = self.positives + self.negatives
        slope = self.positives - labelled * p
        curve = -labelled * p * (1.0 - p)
        size, width = parameters.size, theta.size
        gradient, hessian = np.zeros(size), np.zeros((size, size))
        if self.Z is not None:
            up, down = self._log_odds_of_missing(c, d)
            gone, stay = chance(up), chance(-up)
            gone0, stay0 = chance(down), chance(-down)
            w = self.share(parameters)
            slope = slope + self.missing * (w - p)
            # With w the chance that a missing row is positive: its derivatives carry all that the two curves share.
            positive = self.missing * w
            negative = self.missing - positive
            spread = positive * (1.0 - w)
            curve = curve + spread - self.missing * p * (1.0 - p)
            of_up, of_down = positive * stay - self.positives * gone, negative * stay0 - self.negatives * gone0
            up_up = spread * stay**2 - (positive + self.positives) * gone * stay
            down_down = spread * stay0**2 - (negative + self.negatives) * gone0 * stay0
            up_down = -spread * stay * stay0
            halves = self._halves
            along, along0 = self.X.T * (spread * stay), self.X.T * (spread * stay0)
            gradient[width:] = halves[0].T @ of_up + halves[1].T @ of_down
            mixed = (halves[0].T * up_down) @ halves[1]
            hessian[width:, width:] = (
                (halves[0].T * up_up) @ halves[0] + (halves[1].T * down_down) @ halves[1] + mixed + mixed.T
            )
            of_theta = along @ halves[0] - along0 @ halves[1]
            hessian[:width, width:], hessian[width:, :width] = of_theta, of_theta.T
        gradient[:width] = self.X.T @ slope
        if self.sums is not None:
            gradient[:width] += self._of_positives - self.X.T @ self.positives
        hessian[:width, :width] = (self.X.T * curve) @ self.X
        if self.positives_reference.size:
            p = chance(self.X_reference @ theta)
            total = self.positives_reference + self.negatives_reference
            gradient[:width] += self.X_reference.T @ (self.positives_reference - total * p)
            hessian[:width, :width] -= (self.X_reference.T * (total * p * (1.0 - p))) @ self.X_reference
        value = float(self._log_likelihood(parameters[None, :])[0])
        return self._with_prior(parameters, self.credit * value, gradient, hessian)

    @cached_property
    def mode(self) -> tuple[FloatArray, FloatArray]:
        """The parameters that are likeliest, found from the mean of the prior, and the precision there."""
        return posterior_mode(self.expand, self.prior_mean)

    def _with_prior(self, parameters: FloatArray, value: float, gradient: FloatArray, hessian: FloatArray) -> Expansion:
        of_prior, slope, precision = self._expand_prior(parameters)
        return Expansion(value + of_prior, self.credit * gradient + slope, precision - self.credit * hessian)

    def _expand_curve(self, theta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The log likelihood of labels alone, with its derivatives."""
        log_p = log_chance(self.X @ theta)
        p = np.exp(log_p)
        expected = self._labelled * p
        value = float(log_p @ self._labelled - theta @ self._of_negatives)
        return value, self._of_positives - self.X.T @ expected, -(self.X.T * (expected * (1.0 - p))) @ self.X

    def _expand_alike(self, theta: FloatArray, c: float, d: float) -> tuple[float, FloatArray, FloatArray]:
        """The log likelihood where absence does not depend on the score, with its derivatives: few numbers per row."""
        assert self.Z is not None
        z, (positives, negatives, missing) = float(self.Z[0, 0]), self._totals
        up, down = z * (c + 0.5 * d), z * (c - 0.5 * d)
        gone, gone0, stay, stay0 = expit([up, down, -up, -down]).tolist()
        log_gone, log_gone0 = log_expit([up, down]).tolist()
        log_odds = self.X @ theta
        log_p, log_w = log_chance(log_odds), log_chance(log_odds + (log_gone - log_gone0))
        p, w = np.exp(log_p), np.exp(log_w)
        found = self.missing * w
        spread = found * (1.0 - w)
        positive, open_ = float(found.sum()), float(spread.sum())
        of_up, of_down = positive * stay - positives * gone, (missing - positive) * stay0 - negatives * gone0
        up_up = open_ * stay**2 - (positive + positives) * gone * stay
        down_down = open_ * stay0**2 - (missing - positive + negatives) * gone0 * stay0
        both = 2.0 * open_ * stay * stay0
        rows, width = self._rows, theta.size
        gradient, hessian = np.empty(width + 2), np.empty((width + 2, width + 2))
        gradient[:width] = self._of_positives + self.X.T @ (found - rows * p)
        gradient[width:] = z * (of_up + of_down), 0.5 * z * (of_up - of_down)
        hessian[:width, :width] = (self.X.T * (spread - rows * p * (1.0 - p))) @ self.X
        along = z * (self.X.T @ spread)
        hessian[:width, width], hessian[:width, width + 1] = (stay - stay0) * along, 0.5 * (stay + stay0) * along
        hessian[width:, :width] = hessian[:width, width:].T
        hessian[width, width + 1] = hessian[width + 1, width] = 0.5 * z**2 * (up_up - down_down)
        hessian[width, width] = z**2 * (up_up + down_down - both)
        hessian[width + 1, width + 1] = 0.25 * z**2 * (up_up + down_down + both)
        value = float(log_p @ rows - theta @ self._of_negatives - log_w @ self.missing)
        value += missing * log_gone + positives * (log_gone - up) + negatives * (log_gone0 - down)
        return value, gradient, hessian

    @cached_property
    def _labelled(self) -> FloatArray:
        return self.positives + self.negatives

    @cached_property
    def _rows(self) -> FloatArray:
        return self._labelled + self.missing

    @cached_property
    def _totals(self) -> tuple[float, float, float]:
        return float(self.positives.sum()), float(self.negatives.sum()), float(self.missing.sum())

    @property
    def _bent(self) -> bool:
        """Whether the posterior is a bent ridge: missingness by label alone, and no reference rows to tell it."""
        return self.Z is not None and self.Z.shape[1] == 1 and not self.positives_reference.size

    def bend(self, straight: FloatArray) -> FloatArray:
        """Parameters at coordinates in which the posterior is close to Gaussian, for one or many of them.

        What labelled rows tell is their own log odds, `X theta + log(1 - a_1) - log(1 - a_0)`, and the odds of being
        missing, `pi a_1 / (1 - a_1) + (1 - pi) a_0 / (1 - a_0)` with pi the share of positives among them. Scores that
        hardly tell the classes apart leave `d` open, and theta and c follow it in a curve. These coordinates hold both
        fixed as `d` moves. Each is a parameter plus a function of later ones, so that volumes stay the same.
        """
        if not self._bent:
            return straight
        result = straight.copy()
        width = self.X.shape[1]
        d = straight[..., width + 1]
        result[..., width] -= self._rise(d)
        result[..., 0] -= _stay_ratio(result[..., width], d)
        return result

    def straighten(self, parameters: FloatArray) -> FloatArray:
        """The coordinates that `bend` takes to these parameters."""
        if not self._bent:
            return parameters
        result = parameters.copy()
        width = self.X.shape[1]
        c, d = parameters[..., width], parameters[..., width + 1]
        result[..., 0] += _stay_ratio(c, d)
        result[..., width] += self._rise(d)
        return result

    def bend_slope(self, parameters: FloatArray) -> FloatArray:
        """Derivative of `bend` at the coordinates of one set of parameters: a row for each parameter."""
        slope = np.eye(parameters.size)
        if self._bent:
            width = self.X.shape[1]
            c, d = parameters[width], parameters[width + 1]
            gone, gone0 = expit(c + 0.5 * d), expit(c - 0.5 * d)
            slope[width, width + 1] = 0.5 - expit(self._log_odds_labelled + d)
            slope[0, width] = gone - gone0
            slope[0, width + 1] = 0.5 * (gone + gone0) + (gone - gone0) * slope[width, width + 1]
        return slope

    @cached_property
    def _log_odds_labelled(self) -> float:
        positives, negatives, _ = self._totals
        return float(np.log(positives + 0.5) - np.log(negatives + 0.5))

    def _rise(self, d: FloatArray) -> FloatArray:
        """Log of `pi exp(d/2) + (1 - pi) exp(-d/2)`."""
        odds = self._log_odds_labelled
        return np.asarray(np.logaddexp(log_expit(odds) + 0.5 * d, log_expit(-odds) - 0.5 * d))

    def of_rows(self, rows: IntArray | slice) -> "LabelLikelihood":
        """The same on some rows of the table, of which `share` is asked."""
        Z, D = (None if columns is None else columns[rows] for columns in (self.Z, self.D))
        return replace(self, X=self.X[rows], Z=Z, D=D)

    def share(self, parameters: FloatArray) -> FloatArray:
        """P(positive | score, missing) on each row of the table, for one or many sets of parameters."""
        theta, c, d = self._parts(parameters)
        log_odds = theta @ self.X.T
        if self.Z is not None:
            up, down = self._log_odds_of_missing(c, d)
            log_odds += log_chance(up) - log_chance(down)
        return chance(log_odds)

    def expected_positives(self, parameters: FloatArray, counts: FloatArray) -> FloatArray:
        """Sums of `share` over missing rows, counted by each column of `counts`, for many sets of parameters."""
        rows = self._with_missing
        open_ = self.of_rows(rows)  # only these take part, and they may be few
        size = max(1, _PORTION // max(1, open_.X.shape[0]))
        each = [open_.share(parameters[i : i + size]) @ counts[rows] for i in range(0, len(parameters), size)]
        return np.concatenate(each)


def _stay_ratio(c: FloatArray, d: FloatArray) -> FloatArray:
    """Log of `(1 - a_1) / (1 - a_0)`."""
    return np.asarray(log_expit(-c - 0.5 * d) - log_expit(0.5 * d - c))


def _weighted(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Sum over rows of values times counts, where one column may stand for all rows."""
    result: FloatArray = values[:, 0] * counts.sum() if values.shape[1] == 1 else values @ counts
    return result
