"""The likelihood of labels that come with time (mathematics, section 13), with its derivatives.

A row of class y has its label by the end of age bin k with chance `1 - S_y(k)`. A share `c_y` of the class never gets
one; of the others `exp(a_y(k))` have none yet, the product of `1 - h_{y,j}` over the bins before k times `1 - f_k
h_{y,k}`: rows of an age bin have passed a share f of what comes in it on average. So `S = c + (1 - c) exp(a)`.
A labelled row adds `p_y` and the chance of its delay, or of having a label at its age where the delay is not known; a
row without a label adds `p S_1 + (1 - p) S_0`. `logit p = X theta`, and `logit h = l_{y,j} + g_z` with z the zone of
the score; `logit c = n_y`.

The level of a group is how far its log odds of a positive lie from those of all groups. Given the curve and the delays
that all groups share, the level u of one of them has a posterior of its own: a labelled row adds `p_y(eta + u)`, a row
without a label `p(eta + u) S_1 + (1 - p(eta + u)) S_0`, and u is normal around 0 before.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import Expansion
from darkmetrics._kernels.posterior.logistic import chance, log_chance

# Hazards and log survivals nearer to 0 or 1 than this are taken as this: no label that came is impossible.
_LEAST = 1e-12
# Draws are evaluated in portions of at most this many numbers, which stay in the processor's cache.
_PORTION = 1 << 16


@dataclass(frozen=True, eq=False)
class ArrivalLikelihood:
    """Counts by score and age and by time of arrival, and a Gaussian prior; parameters are theta, l_1, l_0, n, g.

    Counts of labels have a row for each class (positive first), then a zone, then a bin: labels that came in a bin
    which rows of their age had passed (`full`), in the bin of their own age (`own`), at a time that is not known
    (`untimed`), and, without a bin, after all of them (`last`).
    """

    X: FloatArray
    # zone * bins + bin of the age, for each row of the table
    place: IntArray
    positives: FloatArray
    negatives: FloatArray
    missing: FloatArray
    full: FloatArray
    own: FloatArray
    untimed: FloatArray
    last: FloatArray
    # That share (class, bin).
    passed: FloatArray
    prior_mean: FloatArray
    prior_precision: FloatArray
    credit: float = 1.0
    # `map`, where it is another one.
    design: FloatArray | None = None

    @property
    def _shape(self) -> tuple[int, int, int]:
        return self.full.shape[0], self.full.shape[1], self.full.shape[2]

    @cached_property
    def map(self) -> FloatArray:
        """Log odds of hazards (class, zone, bin) and then of never, as sums of the parameters after theta."""
        if self.design is not None:
            return self.design
        classes, zones, bins = self._shape
        first = classes * (bins + 1)
        result = np.zeros((classes, zones, bins + 1, first + zones - 1))
        for y in range(classes):
            for j in range(bins):
                result[y, :, j, y * bins + j] = 1.0
            result[y, :, bins, classes * bins + y] = 1.0
        for z in range(1, zones):
            result[:, z, :bins, first + z - 1] = 1.0
        return result

    @cached_property
    def _by_place(self) -> tuple[IntArray, IntArray, FloatArray]:
        """The rows in order of their places, where each place starts among them, and their columns of X."""
        order = np.argsort(self.place, kind="stable")
        starts = np.flatnonzero(np.diff(self.place[order], prepend=-1))
        return order, starts, self.X[order]

    @cached_property
    def _prior_level(self) -> float:
        """Log density of the prior at its mean."""
        size = self.prior_mean.size
        return 0.5 * float(np.linalg.slogdet(self.prior_precision)[1]) - 0.5 * size * float(np.log(2.0 * np.pi))

    def hazards(self, parameters: FloatArray) -> FloatArray:
        """Chances to get the label in a bin, of those that have none before it and get one: (..., class, zone, bin).

        After the last bin stands the share that never gets one.
        """
        odds = np.tensordot(parameters[..., self.X.shape[1] :], self.map, axes=([-1], [3]))
        return np.clip(expit(odds), _LEAST, 1.0 - _LEAST)

    def log_survival(self, hazard: FloatArray) -> FloatArray:
        """Log of the chance to have no label yet, of rows with an age in each bin."""
        h = hazard[..., :-1]
        return _with_never(hazard[..., -1:], _before(h) + np.log1p(-self.passed[:, None] * h))

    def log_odds(self, parameters: FloatArray, X: FloatArray, place: IntArray) -> tuple[FloatArray, FloatArray]:
        """Log odds of a positive on rows with these columns and places, and what having no label yet adds to them.

        For many sets of parameters, one to a row.
        """
        log_survival = self.log_survival(self.hazards(parameters))
        moved = (log_survival[..., 0, :, :] - log_survival[..., 1, :, :]).reshape(*parameters.shape[:-1], -1)
        return parameters[..., : X.shape[1]] @ X.T, moved[..., place]

    def share(self, parameters: FloatArray, X: FloatArray, place: IntArray) -> FloatArray:
        """P(positive | score, age, no label) on rows with these columns and places, for many sets of parameters."""
        odds, moved = self.log_odds(parameters, X, place)
        return chance(odds + moved)

    def expected(
        self, parameters: FloatArray, X: FloatArray, place: IntArray, *counts: FloatArray
    ) -> tuple[FloatArray, ...]:
        """Sums of `share` over rows that are counted in several ways, for many sets of parameters."""
        held = np.flatnonzero(np.any(counts, axis=0))
        X, place, weights = X[held], place[held], np.stack(counts, axis=1)[held]
        size = max(1, _PORTION // max(1, held.size))
        parts = [self.share(parameters[i : i + size], X, place) @ weights for i in range(0, len(parameters), size)]
        return tuple(np.concatenate(parts).T)

    def log_share_coming(
        self, hazard: FloatArray, zone: IntArray, start: tuple[IntArray, FloatArray], end: tuple[IntArray, FloatArray]
    ) -> FloatArray:
        """Log of the share of rows of each class whose labels come between two ages: (..., class, row).

        An age is a bin and the share of it that has passed, for each row.
        """
        before = _before(hazard[..., :-1])

        def at(age: tuple[IntArray, FloatArray]) -> FloatArray:
            bin_, share = age
            left: FloatArray = before[..., zone, bin_] + np.log1p(-share * hazard[..., zone, bin_])
            return _with_never(hazard[..., zone, -1], left)

        here = at(start)
        gone = np.minimum(at(end) - here, -_LEAST)
        return np.asarray(here + np.log(-np.expm1(gone)), dtype=np.float64)

    def passed_slopes(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The slope of the log likelihood in the log odds of `passed`, and the sum of its squares over rows."""
        chances = self.hazards(parameters)
        h, f = chances[..., :-1], self.passed[:, None]
        left = self.log_survival(chances)
        flat = left.reshape(2, -1)[:, self.place]
        w = chance(self.X @ parameters[: self.X.shape[1]] + flat[0] - flat[1])
        # Log survival in the log odds of f, of all and not only of those that get a label.
        slope = -h * f * (1.0 - f) / (1.0 - f * h) * (1.0 - chances[..., -1:] * np.exp(-left))
        come = -np.expm1(np.minimum(left, -_LEAST))
        of_untimed = -slope * (1.0 - come) / come
        first = self.own * (1.0 - f) + self.untimed * of_untimed
        second = self.own * (1.0 - f) ** 2 + self.untimed * of_untimed**2
        for y, part in enumerate((w, 1.0 - w)):
            one, two = (np.bincount(self.place, self.missing * part**k, slope[y].size) for k in (1, 2))
            first[y] += one.reshape(slope[y].shape) * slope[y]
            second[y] += two.reshape(slope[y].shape) * slope[y] ** 2
        return first.sum(axis=1), second.sum(axis=1)

    def coarse(self, together: int) -> "ArrivalLikelihood":
        """The same with so many neighbours of a place as one row, which is close to it and takes less time."""
        order = np.argsort(self.place, kind="stable")
        place = self.place[order]
        first = np.searchsorted(place, place)  # where the rows of the place begin
        starts = np.flatnonzero((np.arange(place.size) - first) % together == 0)

        def total(values: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(values[order], starts, axis=0), dtype=np.float64)

        positives, negatives, missing = (total(part) for part in (self.positives, self.negatives, self.missing))
        rows = self.positives + self.negatives + self.missing
        X = total(self.X * rows[:, None]) / np.maximum(positives + negatives + missing, 1e-300)[:, None]
        return replace(self, X=X, place=place[starts], positives=positives, negatives=negatives, missing=missing)

    def log_posterior(self, parameters: FloatArray) -> FloatArray:
        """Log of likelihood times prior density, for each row of `parameters`."""
        return np.array([self.expand(row).value for row in parameters])

    def bend(self, straight: FloatArray) -> FloatArray:
        """The parameters themselves: nothing is bent here."""
        return straight

    def straighten(self, parameters: FloatArray) -> FloatArray:
        """The parameters themselves."""
        return parameters

    def bend_slope(self, parameters: FloatArray) -> FloatArray:
        """The identity."""
        return np.eye(parameters.size)

    def expand(self, parameters: FloatArray) -> Expansion:
        """The log posterior at one point, with gradient and curvature in closed form."""
        classes, zones, bins = self._shape
        width, size = self.X.shape[1], parameters.size
        eta = self.X @ parameters[:width]
        p = chance(eta)
        chances = self.hazards(parameters)
        h, never = chances[..., :-1], chances[..., -1]  # never: class, zone
        before, f = _before(h), self.passed[:, None]
        # Of those that get a label, and of all: at each bin, and at the end of the last (class, zone, place).
        waiting = np.concatenate([before + np.log1p(-f * h), (before + np.log1p(-h))[..., -1:]], axis=-1)
        log_left = _with_never(never[..., None], waiting)
        survival = log_left[..., :-1]
        flat = survival.reshape(classes, -1)
        moved = flat[0, self.place] - flat[1, self.place]
        w = chance(eta + moved)
        log_p = log_chance(eta)
        labelled = self.positives + self.negatives
        value = float(log_p @ labelled - eta @ self.negatives)
        # log(p S_1 + (1 - p) S_0) = log p + log S_1 - log w
        value += float(self.missing @ (log_p + flat[0, self.place] - log_chance(eta + moved)))
        slope = self.positives - labelled * p + self.missing * (w - p)
        spread = self.missing * w * (1.0 - w)
        curve = spread - (labelled + self.missing) * p * (1.0 - p)
        # First and second derivatives in log S, by class, zone and bin.
        of_rows = [np.bincount(self.place, self.missing * part, zones * bins) for part in (w, 1.0 - w)]
        first: FloatArray = np.array(of_rows, dtype=np.float64).reshape(classes, zones, bins)
        both: FloatArray = np.bincount(self.place, spread, zones * bins).reshape(zones, bins).astype(np.float64)
        second: FloatArray = np.repeat(both[None], classes, axis=0)
        come = -np.expm1(np.minimum(survival, -_LEAST))
        odds = (1.0 - come) / come
        value += float((self.untimed * np.log(come)).sum())
        first = first - self.untimed * odds
        second = second - self.untimed * odds * (1.0 + odds)
        # What labels of known delays say of the hazards themselves.
        events = self.full + self.own
        value += float((self.full * (before + np.log(h))).sum() + (self.own * (before + np.log(f * h))).sum())
        value += float((events.sum(axis=-1) * np.log1p(-never)).sum() + (self.last * log_left[..., -1]).sum())
        later = events[..., ::-1].cumsum(axis=-1)[..., ::-1] - events  # labels of rows that passed a bin
        inside = h * (1.0 - h)
        direct = events * (1.0 - h) - later * h
        bent = -(events + later) * inside
        first = np.append(first, self.last[..., None], axis=-1)
        second = np.append(second, np.zeros((classes, zones, 1)), axis=-1)
        # Log survival in that of those who get a label, and in the log odds of never.
        left, c = np.exp(log_left), never[..., None]
        wait = (1.0 - c) * np.exp(waiting - log_left)
        gone = (1.0 - wait) * (1.0 - left)
        gone_bent = (1.0 - wait) * (1.0 - 2.0 * c) * (1.0 - left) - gone**2
        # The former in the log odds of hazard i: -h_i for the bins before, and that of log(1 - f h) at k itself.
        rest = 1.0 - f * h
        at = -f * inside / rest
        at_bent = -f * inside * ((1.0 - 2.0 * h) * rest + f * inside) / rest**2
        pull = first * wait
        after = pull[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:]
        gradient_h = direct - h * after + at * pull[..., :-1]
        gradient_never = -events.sum(axis=-1) * never + (first * gone).sum(axis=-1)
        lower = np.tril(np.ones((bins, bins)), -1)
        J = np.empty((classes, zones, bins + 1, bins + 1))  # place k, then hazard i or never
        J[..., :bins, :bins] = -h[..., None, :] * lower + at[..., :, None] * np.eye(bins)
        J[..., bins, :bins] = -h
        bend = pull * (1.0 - wait)
        across = -np.einsum("yzk,yzki->yzi", pull * (c + gone), J[..., :bins])
        inner = (J[..., :bins].swapaxes(-1, -2) * bend[..., None, :]) @ J[..., :bins]
        J[..., :bins] *= wait[..., None]
        J[..., bins] = gone
        own_curve = bent - inside * after + at_bent * pull[..., :-1]
        of_never = -events.sum(axis=-1) * never * (1.0 - never) + (first * gone_bent).sum(axis=-1)
        hessian_h = np.zeros((classes, zones, bins + 1, classes, zones, bins + 1))
        for z in range(zones):
            for y in range(classes):
                block = (J[y, z].T * second[y, z]) @ J[y, z]
                block[:bins, :bins] += inner[y, z] + np.diag(own_curve[y, z])
                block[:bins, bins] += across[y, z]
                block[bins, :bins] += across[y, z]
                block[bins, bins] += of_never[y, z]
                hessian_h[y, z, :, y, z, :] = block
            cross = (J[0, z, :bins].T * -both[z]) @ J[1, z, :bins]
            hessian_h[0, z, :, 1, z, :], hessian_h[1, z, :, 0, z, :] = cross, cross.T
        gradient_h = np.append(gradient_h, gradient_never[..., None], axis=-1)
        M = self.map.reshape(classes * zones * (bins + 1), -1)
        flat_hessian = hessian_h.reshape(len(M), len(M))
        gradient, hessian = np.zeros(size), np.zeros((size, size))
        gradient[:width] = self.X.T @ slope
        gradient[width:] = M.T @ gradient_h.reshape(-1)
        hessian[:width, :width] = (self.X.T * curve) @ self.X
        hessian[width:, width:] = M.T @ flat_hessian @ M
        # theta and log S meet in w: by place, then through J with opposite signs for the classes.
        met: FloatArray = np.zeros((zones * bins, width))
        order, starts, columns = self._by_place
        met[self.place[order[starts]]] = np.add.reduceat(columns * spread[order, None], starts, axis=0)
        met = met.T.reshape(width, zones, bins)
        J = J[..., :bins, :]
        mixed = np.stack([np.einsum("qzk,zki->qzi", met, sign * J[y]) for y, sign in ((0, 1.0), (1, -1.0))], axis=1)
        hessian[:width, width:] = mixed.reshape(width, -1) @ M
        hessian[width:, :width] = hessian[:width, width:].T
        off = parameters - self.prior_mean
        back = self.prior_precision @ off
        value = self.credit * value - 0.5 * float(off @ back) + self._prior_level
        return Expansion(value, self.credit * gradient - back, self.prior_precision - self.credit * hessian)


def _before(hazard: FloatArray) -> FloatArray:
    """Log of the chance to have no label at the beginning of each bin, of those that get one."""
    logs = np.log1p(-hazard)
    return np.asarray(np.cumsum(logs, axis=-1) - logs, dtype=np.float64)


def _with_never(never: FloatArray, waiting: FloatArray) -> FloatArray:
    """Log of the chance to have no label, from that of those that get one and the share that never does."""
    return np.logaddexp(np.log(never), np.log1p(-never) + waiting)


_MOST_STEPS, _LONGEST, _SMALL = 50, 1.0, 1e-8


class Level(NamedTuple):
    """The Gaussian at the mode for each case, and the log evidence of the case against a group without rows."""

    mean: FloatArray
    sd: FloatArray
    log_evidence: FloatArray


def level_posterior(
    odds: FloatArray,
    moved: FloatArray,
    positives: FloatArray,
    negatives: FloatArray,
    missing: FloatArray,
    spread: FloatArray,
    credit: float,
) -> Level:
    """The posterior of the level in each of k cases, by Newton's method.

    `odds` and `moved` (k, rows) are log odds of all groups and `log S_1 - log S_0`; `spread` (k,) is the prior's.
    """
    labelled, rows, prior = positives + negatives, positives + negatives + missing, spread**-2.0
    level, bend = np.zeros(spread.size), prior
    for _ in range(_MOST_STEPS):
        here = odds + level[:, None]
        p, w = chance(here), chance(here + moved)
        slope = credit * (positives.sum() - p @ rows + w @ missing) - prior * level
        bend = credit * ((p * (1.0 - p)) @ rows - (w * (1.0 - w)) @ missing) + prior
        # Missing rows can bend it the wrong way, by chance; what labels alone say leads uphill all the same.
        bend = np.maximum(bend, credit * ((p * (1.0 - p)) @ labelled) * 0.5 + prior)
        step = np.clip(slope / bend, -_LONGEST, _LONGEST)
        level = level + step
        if np.abs(step).max() < _SMALL:
            break
    gain = _log_likelihood(odds + level[:, None], moved, positives, negatives, missing)
    gain -= _log_likelihood(odds, moved, positives, negatives, missing)
    log_evidence = credit * gain - 0.5 * prior * level**2 + 0.5 * np.log(prior / bend)
    return Level(level, bend**-0.5, log_evidence)


def _log_likelihood(
    odds: FloatArray, moved: FloatArray, positives: FloatArray, negatives: FloatArray, missing: FloatArray
) -> FloatArray:
    log_p, log_w = log_chance(odds), log_chance(odds + moved)
    # log(p S_1 + (1 - p) S_0) = log p + log S_1 - log w, up to log S_1, which no level moves
    result: FloatArray = log_p @ (positives + negatives + missing) - odds @ negatives - log_w @ missing
    return result
