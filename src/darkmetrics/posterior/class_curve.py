"""The calibration curve of several classes: log weights of the classes of a row, linear in the parameters.

The log weight of class k of row i is

    eta_ik = l_ik + x_ik . theta_k,   x_ik = (1, l_ik - center_k, hinges of l_ik, 1 if k is predicted, further columns)

with l_ik the log of the normalized score: with theta = 0 the scores are right. Beyond 30 classes the rare ones share
their parameters.
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
# Levels of the quantiles of a class's log scores at which its curve may turn.
_KNOTS = (0.25, 0.5, 0.75)
# Log scores are cut at half of the smallest positive score, within these limits.
_CLIPS = 1e-12, 1e-3
# Knots are found from at most this many cells.
_MAX_CELLS = 20_000
# Numbers that are computed at once: they fit into the processor's cache.
_BATCH = 1 << 17
# Prior standard deviations of bias, slope, hinges, step and further columns: common to all classes, and of one class.
_COMMON_SD = {"bias": 0.0, "slope": 1.0, "hinge": 0.5, "step": 0.7, "more": 0.7}
_CLASS_SD = {"bias": 1.5, "slope": 0.5, "hinge": 0.5, "step": 0.7, "more": 0.7}


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
    clip : float
        Smallest score that is not cut.
    n_more : int
        Number of further columns, such as the log odds of a propensity.
    """

    group: IntArray
    center: FloatArray
    spread: FloatArray
    knots: FloatArray
    clip: float
    n_more: int = 0

    @classmethod
    def of(cls, data: ClassSet, n_more: int = 0) -> "ClassCurve":
        """Return the columns for the scores of a set."""
        score = data.cells.score[:: max(1, len(data.cells.score) // _MAX_CELLS)]
        p = score / score.sum(axis=1, keepdims=True)
        positive = p[p > 0.0]
        clip = float(np.clip(0.5 * positive.min(initial=1.0), *_CLIPS))
        group, n_classes = _group_classes(data.label_counts), score.shape[1]
        center, spread, knots = np.empty(n_classes), np.empty(n_classes), np.empty((n_classes, len(_KNOTS)))
        for g in range(int(group.max()) + 1):
            members = group == g
            values = p[:, members].ravel()
            weight, line = values * (1.0 - values) + 1e-6, np.log(np.maximum(values, clip))
            order = np.argsort(line)
            level = np.cumsum(weight[order]) / weight.sum()
            knots[members] = line[order[np.minimum(np.searchsorted(level, _KNOTS), order.size - 1)]]
            mean = float(weight @ line / weight.sum())
            center[members] = mean
            spread[members] = max(0.1, float(np.sqrt(weight @ (line - mean) ** 2 / weight.sum())))
        return cls(group, center, spread, knots, clip, n_more)

    @cached_property
    def members(self) -> list[IntArray]:
        """Classes of each group."""
        return [np.flatnonzero(self.group == g) for g in range(int(self.group.max()) + 1)]

    @property
    def kinds(self) -> list[str]:
        """Kind of each column."""
        return ["bias", "slope", *["hinge"] * self.knots.shape[1], "step", *["more"] * self.n_more]

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
        """Return the logs of normalized scores."""
        p = score / score.sum(axis=1, keepdims=True)
        return np.asarray(np.log(np.maximum(p, self.clip, out=p), out=p))

    def columns(self, line: FloatArray, decision: IntArray, more: FloatArray | None = None) -> FloatArray:
        """Return the columns (K, n, width) of rows with given log scores and predictions."""
        n, n_classes = line.shape
        x = np.empty((n_classes, n, self.shape[1]))
        x[:, :, 0] = 1.0
        x[:, :, 1] = line.T - self.center[:, None]
        n_knots = self.knots.shape[1]
        for j in range(n_knots):
            np.maximum(line.T - self.knots[:, j, None], 0.0, out=x[:, :, 2 + j])
        x[:, :, 2 + n_knots] = decision[None, :] == np.arange(n_classes)[:, None]
        if more is not None:
            x[:, :, 3 + n_knots :] = more
        return x


def _group_classes(label_counts: IntArray) -> IntArray:
    """Return the group of each class: the most frequent classes are groups of their own, and the others share one."""
    group = np.arange(label_counts.size)
    if label_counts.size > MAX_GROUPS:
        group = np.full(label_counts.size, MAX_GROUPS - 1)
        group[np.argsort(-label_counts, kind="stable")[: MAX_GROUPS - 1]] = np.arange(MAX_GROUPS - 1)
    return group


def softmax(x: FloatArray, axis: int) -> FloatArray:
    """Return the exponentials of `x`, which they overwrite, divided by their sum."""
    x -= x.max(axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=axis, keepdims=True)
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
        reason: IntArray | None = None,
        reasons: tuple[str, ...] = (),
    ) -> None:
        self.curve, self.data, self.theta, self.weight = curve, data, theta, weight
        self.log_missing, self.bins, self.more = log_missing, bins, more
        self.reason, self.reasons = reason, reasons

    def of_draw(self, draw: int) -> FloatArray:
        n_cells, n_classes = self.data.missing_cells.size, self.data.n_classes
        result = np.empty((n_cells, n_classes))
        for cells, probability in self._batches(np.array([draw]), max(1, _BATCH // n_classes)):
            result[cells] = probability[:, :, 0].T
        return result

    def of_events(self, events: Sequence[BoolArray]) -> list[Posterior]:
        n_cells, draws = self.data.missing_cells.size, np.arange(len(self))
        tables = [np.empty((draws.size, n_cells)) for _ in events]
        size = max(1, _BATCH // (self.data.n_classes * draws.size))
        for cells, probability in self._batches(draws, size):
            for table, members in zip(tables, events, strict=True):
                selected = members[cells].T
                if selected.sum() == selected.shape[1]:  # one label per row
                    k, i = np.nonzero(selected.T)[::-1]
                    table[:, cells] = probability[k, i].T
                else:
                    np.einsum("kis,ki->si", probability, selected, out=table[:, cells])
        return [
            Posterior(self.weight, np.minimum(table, 1.0), None, self.shift, self.reason, self.reasons)
            for table in tables
        ]

    def _batches(self, draws: IntArray, size: int) -> Iterator[tuple[slice, FloatArray]]:
        """Iterate over the missing cells, with their probabilities (K x cells x draws)."""
        rows, cells = self.data.missing_cells, self.data.cells
        theta = np.moveaxis(self.theta[draws], 0, -1)  # groups x width x draws
        for start in range(0, rows.size, size):
            batch = slice(start, min(start + size, rows.size))
            line = self.curve.log_score(cells.score[rows[batch]])
            more = None if self.more is None else self.more[batch]
            eta = evaluate_curve(self.curve, line, self.curve.columns(line, cells.decision[rows[batch]], more), theta)
            if self.log_missing is not None:
                of_rows = self.log_missing[draws][:, :, 0 if self.bins is None else self.bins[batch]]
                eta += np.moveaxis(np.atleast_3d(of_rows), 0, -1)
            yield batch, softmax(eta, axis=0)


def evaluate_curve(curve: ClassCurve, line: FloatArray, columns: FloatArray, theta: FloatArray) -> FloatArray:
    """Return the log weights (K x n x n_draws) for parameters of shape (groups, width, n_draws)."""
    n_classes, n, width = columns.shape
    eta = np.empty((n_classes, n, theta.shape[2]))
    for g, members in enumerate(curve.members):
        if members.size == 1:
            np.matmul(columns[members[0]], theta[g], out=eta[members[0]])
        else:
            eta[members] = (columns[members].reshape(-1, width) @ theta[g]).reshape(members.size, n, -1)
    eta += line.T[:, :, None]
    return eta
