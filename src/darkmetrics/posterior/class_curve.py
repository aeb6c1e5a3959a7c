"""The calibration curve of several classes: log weights of the classes of a row, linear in the parameters.

The log weight of class k of row i is

    eta_ik = l_ik + x_ik . theta_k,   x_ik = (1, l_ik - center_k, hinges of l_ik, d_ik, d_ik r_i, further columns)

with l_ik the log of the normalized score (bent below -10), d_ik = 1 if k is predicted, and r_i the rank of the
predicted score from -1 to 1. With theta = 0 the scores are right. Beyond 30 classes the rare ones share parameters.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.data.class_set import ClassSet
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.posterior.draws import Posterior

# Classes with parameters of their own; all others share theirs.
MAX_GROUPS = 30
# Levels of the quantiles of a class's log scores at which its curve may turn. Half of the weight is that of the rows,
# the other half is in proportion to p (1 - p).
_KNOTS = (0.2, 0.4, 0.6, 0.8)
# Scores are cut at half of the smallest positive score, within these limits.
_CLIPS = 1e-300, 1e-3
# Below this log score, a log score turns into the log of a log score: scores of 1e-30 are seldom meant.
_FLOOR, _BEND = -10.0, 5.0
# Knots are found from at most this many cells.
_MAX_CELLS = 20_000
_MIN_WEIGHT, _MIN_SPREAD = 1e-6, 0.1
# Numbers that are computed at once: they fit into the processor's cache.
_BATCH = 1 << 17
# Draws that are computed together when one is asked for: the next ones usually follow.
_DRAWS_AT_ONCE = 8
# A mechanism of less weight is refuted.
_MIN_MECHANISM = 0.01
# exp of larger numbers overflows.
_MAX_EXPONENT = 500.0
# Prior standard deviations of bias, slope, hinges, step and further columns: common to all classes, and of one class.
_COMMON_SD = {"bias": 0.0, "slope": 1.0, "hinge": 0.5, "step": 0.7, "trend": 1.0, "more": 0.0, "more step": 0.7}
_CLASS_SD = {"bias": 1.5, "slope": 0.5, "hinge": 0.5, "step": 0.7, "trend": 0.3, "more": 1.5, "more step": 0.7}
# Number of quantiles that ranks of predicted scores are found from.
_LEVELS = 512


@dataclass(frozen=True, eq=False)
class ClassCurve:
    """Columns of the curve, learned from the scores of a set.

    Attributes
    ----------
    group : array of int (K,)
        Group of each class; classes of a group share parameters.
    center, spread : array (K,)
        Mean and standard deviation of the log scores where the class is likely.
    knots : array (K, n_knots)
        Log scores at which the curve may turn.
    levels : array (n_levels,)
        Sorted log scores of predicted classes, from which ranks are found.
    clip : float
        Smallest score that is not cut.
    n_more : int
        Number of further columns, such as the log odds of a propensity.
    """

    group: IntArray
    center: FloatArray
    spread: FloatArray
    knots: FloatArray
    levels: FloatArray
    clip: float
    n_more: int = 0

    @classmethod
    def of(cls, data: ClassSet, n_more: int = 0) -> "ClassCurve":
        """Return the columns for the scores of a set."""
        score = data.cells.score[:: max(1, len(data.cells.score) // _MAX_CELLS)]
        p = score / score.sum(axis=1, keepdims=True)
        clip, n_classes = float(np.clip(0.5 * p[p > 0.0].min(initial=1.0), *_CLIPS)), score.shape[1]
        center, spread, knots = np.empty(n_classes), np.empty(n_classes), np.empty((n_classes, len(_KNOTS)))
        levels = np.empty(min(_LEVELS, len(score)))
        curve = cls(_group_classes(data.label_counts), center, spread, knots, levels, clip, n_more)
        log_score = curve.log_score(score)
        decision = data.cells.decision[:: max(1, len(data.cells.score) // _MAX_CELLS)]
        predicted = np.sort(np.take_along_axis(log_score, decision[:, None], axis=1)[:, 0])
        levels[:] = predicted[np.linspace(0, predicted.size - 1, levels.size).astype(np.int64)]
        for members in curve.members:
            values, line = p[:, members].ravel(), log_score[:, members].ravel()
            weight = values * (1.0 - values) + _MIN_WEIGHT
            weight /= weight.sum()
            order = np.argsort(line)
            level = np.cumsum(0.5 * weight[order] + 0.5 / weight.size)
            knots[members] = line[order[np.minimum(np.searchsorted(level, _KNOTS), order.size - 1)]]
            mean = float(weight @ line)
            center[members] = mean
            spread[members] = max(_MIN_SPREAD, float(np.sqrt(weight @ (line - mean) ** 2)))
        return curve

    @cached_property
    def members(self) -> list[IntArray]:
        """Classes of each group."""
        return [np.flatnonzero(self.group == g) for g in range(int(self.group.max()) + 1)]

    @property
    def kinds(self) -> list[str]:
        """Kind of each column."""
        return [
            "bias",
            "slope",
            *["hinge"] * self.knots.shape[1],
            "step",
            "trend",
            *["more"] * self.n_more,
            *["more step"] * self.n_more,
        ]

    @property
    def shape(self) -> tuple[int, int]:
        """Number of groups, and of columns."""
        return len(self.members), len(self.kinds)

    @cached_property
    def prior_precision(self) -> FloatArray:
        """Precision of the parameters (groups x columns, flattened): deviations of classes from a common value."""
        n_groups, width = self.shape
        covariance = np.zeros((n_groups, width, n_groups, width))
        for f, kind in enumerate(self.kinds):
            covariance[:, f, :, f] = _COMMON_SD[kind] ** 2 + _CLASS_SD[kind] ** 2 * np.eye(n_groups)
        return np.asarray(np.linalg.inv(covariance.reshape(n_groups * width, -1)))

    def log_score(self, score: FloatArray) -> FloatArray:
        """Return the logs of normalized scores, small ones bent."""
        line = score / score.sum(axis=1, keepdims=True)
        np.log(np.maximum(line, self.clip, out=line), out=line)
        small = line < _FLOOR
        line[small] = _FLOOR - _BEND * np.log1p((_FLOOR - line[small]) / _BEND)
        return np.asarray(line)

    def rank(self, line: FloatArray, decision: IntArray) -> FloatArray:
        """Return the rank of the predicted score of each row, from -1 to 1."""
        predicted = np.take_along_axis(line, decision[:, None], axis=1)[:, 0]
        below = np.searchsorted(self.levels, predicted, "left") + np.searchsorted(self.levels, predicted, "right")
        return np.asarray(below / self.levels.size - 1.0)

    def columns(
        self, line: FloatArray, decision: IntArray, rank: FloatArray, more: FloatArray | None = None
    ) -> FloatArray:
        """Return the columns (K, width, n) of rows with log scores (n x K), predictions and ranks of these."""
        n, n_classes = line.shape
        x, by_class = np.empty((n_classes, self.shape[1], n)), line.T
        n_knots = self.knots.shape[1]
        x[:, 0] = 1.0
        np.subtract(by_class, self.center[:, None], out=x[:, 1])
        for j in range(n_knots):
            np.maximum(by_class - self.knots[:, j, None], 0.0, out=x[:, 2 + j])
        x[:, 2 + n_knots] = decision == np.arange(n_classes)[:, None]
        np.multiply(x[:, 2 + n_knots], rank, out=x[:, 3 + n_knots])
        if more is not None:
            x[:, 4 + n_knots : 4 + n_knots + self.n_more] = more.T
            np.multiply(x[:, 2 + n_knots, None], more.T, out=x[:, 4 + n_knots + self.n_more :])
        return x


def _group_classes(label_counts: IntArray) -> IntArray:
    """Return the group of each class: the most frequent classes are groups of their own, and the others share one."""
    group = np.arange(label_counts.size)
    if label_counts.size > MAX_GROUPS:
        group = np.full(label_counts.size, MAX_GROUPS - 1)
        group[np.argsort(-label_counts, kind="stable")[: MAX_GROUPS - 1]] = np.arange(MAX_GROUPS - 1)
    return group


def softmax(x: FloatArray) -> FloatArray:
    """Return exponentials divided by their sum over the first axis; `x` is overwritten."""
    if max(x.max(initial=0.0), -x.min(initial=0.0)) > _MAX_EXPONENT:
        x -= x.max(axis=0)
    np.exp(x, out=x)
    x /= x.sum(axis=0)
    return x


class CurvePosterior(ClassPosterior):
    """Draws of a curve, with the log probabilities of not having a label, by class and bin of the row.

    Parameters
    ----------
    curve : ClassCurve
        The curve.
    data : ClassSet
        The set whose missing cells have the probabilities.
    theta : array (n_draws, n_groups, width)
        Draws of the parameters.
    weight : array (n_draws,)
        Weights of the draws; sum to one.
    log_missing : array (n_draws, K, n_bins), optional
        Log probability of a missing label; None if it does not depend on the label.
    bins : array of int (n_missing_cells,), optional
        Bin of each missing cell.
    more : array (n_missing_cells, n_more), optional
        Further columns.
    """

    def __init__(
        self,
        curve: ClassCurve,
        data: ClassSet,
        theta: FloatArray,
        weight: FloatArray,
        log_missing: FloatArray | None = None,
        bins: IntArray | None = None,
        more: FloatArray | None = None,
        mechanism: IntArray | None = None,
        mechanisms: tuple[str, ...] = (),
    ) -> None:
        self.curve, self.data, self.theta, self.weight = curve, data, theta, weight
        self.log_missing, self.bins, self.more = log_missing, bins, more
        self.mechanism, self.mechanisms = mechanism, mechanisms
        self._block: tuple[int, FloatArray] = (0, np.empty((0, 0, 0)))

    @cached_property
    def _line(self) -> FloatArray:
        """Log scores of the missing cells."""
        return self.curve.log_score(self.data.cells.score[self.data.missing_cells])

    @cached_property
    def _rank(self) -> FloatArray:
        """Ranks of the predicted scores of the missing cells."""
        return self.curve.rank(self._line, self.data.cells.decision[self.data.missing_cells])

    def of_mechanism(self, mechanism: int) -> "CurvePosterior | None":
        draws = np.flatnonzero((self.mechanism == mechanism) & (self.weight > 0.0))
        total = float(self.weight[draws].sum())
        if not total > _MIN_MECHANISM:
            return None
        log_missing = None if self.log_missing is None else self.log_missing[draws]
        return CurvePosterior(
            self.curve, self.data, self.theta[draws], self.weight[draws] / total, log_missing, self.bins, self.more
        )

    def of_draw(self, draw: int) -> FloatArray:
        first, block = self._block
        if not first <= draw < first + len(block):
            n_cells, n_classes = self.data.missing_cells.size, self.data.n_classes
            draws = np.arange(draw, min(draw + _DRAWS_AT_ONCE, len(self)))
            block = np.empty((draws.size, n_classes, n_cells))
            for cells, probability in self._batches(draws):
                block[:, :, cells] = np.moveaxis(probability, 0, 1)
            first, self._block = draw, (draw, block)
        return np.asarray(block[draw - first].T)

    def of_events(self, events: Sequence[BoolArray]) -> list[Posterior]:
        tables = [np.empty((len(self), self.data.missing_cells.size)) for _ in events]
        for cells, probability in self._batches(np.arange(len(self))):
            for table, members in zip(tables, events, strict=True):
                rows, labels = np.nonzero(members[cells])
                if np.array_equal(rows, np.arange(probability.shape[2])):  # one label per row
                    table[:, cells] = probability[labels, :, rows].T
                else:
                    np.einsum("ksi,ik->si", probability, members[cells], out=table[:, cells])
        return [
            Posterior(self.weight, np.minimum(table, 1.0), None, self.shift, self.mechanism, self.mechanisms)
            for table in tables
        ]

    def _batches(self, draws: IntArray) -> Iterator[tuple[slice, FloatArray]]:
        """Iterate over the missing cells, with their probabilities (K x draws x cells)."""
        rows, cells, line = self.data.missing_cells, self.data.cells, self._line
        theta = np.moveaxis(self.theta[draws], 0, 1)  # groups x draws x width
        size = max(1, _BATCH // (self.data.n_classes * max(draws.size, self.curve.shape[1])))
        for start in range(0, rows.size, size):
            batch = slice(start, min(start + size, rows.size))
            more = None if self.more is None else self.more[batch]
            columns = self.curve.columns(line[batch], cells.decision[rows[batch]], self._rank[batch], more)
            eta = evaluate_curve(self.curve, line[batch], columns, theta)
            if self.log_missing is not None:
                bins = np.zeros(1, dtype=np.int64) if self.bins is None else self.bins[batch]
                eta += np.moveaxis(self.log_missing[draws][:, :, bins], 0, 1)
            yield batch, softmax(eta)


def evaluate_curve(curve: ClassCurve, line: FloatArray, columns: FloatArray, theta: FloatArray) -> FloatArray:
    """Return the log weights (K x n_draws x n) for parameters of shape (groups, n_draws, width)."""
    n_classes, _, n = columns.shape
    eta = np.empty((n_classes, theta.shape[1], n))
    for g, members in enumerate(curve.members):
        if members.size == 1:
            np.matmul(theta[g], columns[members[0]], out=eta[members[0]])
        else:
            eta[members] = theta[g] @ columns[members]
    eta += line.T[:, None]
    return eta
