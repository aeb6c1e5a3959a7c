"""How late labels tell scores and ages apart: bins of ages, zones of scores, times at which a drift may turn."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.age_grid import Ages, bin_start
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missingness.score_table import score_table

# At most so many bins of ages; neighbours with the fewest labels are joined.
_MOST_BINS = 30
# At how many times a drift may turn.
_KNOTS = 20


def grid_of(data: EvaluationSet, ages: Ages, calibrator: LogisticCalibrator) -> "Grid":
    """The grid that fits the rows of a set."""
    return Grid(
        calibrator,
        starts=_bins(ages, data),
        cuts=_cuts(data),
        whole=ages.whole,
        maturity=_maturity(ages, data),
        oldest=float(bin_start(ages.age.max() + 1)),
        knots=_knots(ages, data),
        spread=_scores_at(data, (0.1, 0.5, 0.9)),
        rows_at=np.bincount(ages.age, data.cells.total).astype(np.float64),
    )


def _bins(ages: Ages, data: EvaluationSet) -> IntArray:
    """The first bins of the grid of ages in each bin of the model."""
    cells = data.cells
    labels = cells.positives + cells.negatives
    size = int(ages.age.max()) + 1
    rows = np.bincount(ages.age, cells.total, size)
    events = np.bincount(ages.delay[ages.timed], labels[ages.timed], size)
    weight = rows + events
    starts = np.flatnonzero(weight)
    starts[0] = 0
    held = np.add.reduceat(weight, starts)
    while starts.size > _MOST_BINS:
        at = int(np.argmin(held[1:] + held[:-1])) + 1
        held[at - 1] += held[at]
        starts, held = np.delete(starts, at), np.delete(held, at)
    return starts


def _cuts(data: EvaluationSet) -> FloatArray:
    """Scores at which the hazard may change: the middle one, and the threshold."""
    cells = data.cells
    middle = _scores_at(data, (0.5,))
    cuts = np.unique(middle if data.threshold is None else np.append(middle, data.threshold))
    return np.asarray(cuts[(cuts > cells.score[0]) & (cuts <= cells.score[-1])], dtype=np.float64)


def _scores_at(data: EvaluationSet, shares: tuple[float, ...]) -> FloatArray:
    """Scores that such shares of the rows lie below."""
    before = np.cumsum(data.cells.total)
    return np.asarray(data.cells.score[np.searchsorted(before, before[-1] * np.array(shares))], dtype=np.float64)


def _knots(ages: Ages, data: EvaluationSet) -> FloatArray:
    """Ages at which the curve of drift may turn: equally many rows lie between them."""
    order = np.argsort(-ages.age, kind="stable")
    before = np.cumsum(data.cells.total[order])
    at = np.searchsorted(before, np.linspace(0.0, 1.0, _KNOTS) * before[-1])
    ends = ages.age[order][np.minimum(at, order.size - 1)]
    return np.unique(0.5 * (bin_start(ends) + bin_start(ends + 1)))[::-1].copy()


def _maturity(ages: Ages, data: EvaluationSet) -> float | None:
    """About the age at which rows without a label count as negative, by how many rows of its bin have passed it."""
    if not ages.mature.any():
        return None
    first = ages.age[ages.mature].min()
    here = ages.age == first
    young = float(data.cells.total[here & ~ages.mature].sum()) / float(data.cells.total[here].sum())
    low, high = bin_start(np.array([first, first + 1])).tolist()
    return float(low + young * (high - low))


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows of a table by score and age: what the likelihood needs to know of them."""

    X: FloatArray
    place: IntArray
    positives: FloatArray
    negatives: FloatArray
    missing: FloatArray
    decided: FloatArray
    # The row of each cell of the set.
    of_cell: IntArray


class Day(NamedTuple):
    """A day on which labels of a class come at once: its bin, and the share of the rows there that have passed it."""

    class_: int
    bin_: int
    passed: float


@dataclass(frozen=True, eq=False)
class Grid:
    """How scores and ages are told apart, for the set that was fitted and for parts of it."""

    calibrator: LogisticCalibrator
    # First bin of the grid of ages in each bin of the model.
    starts: IntArray
    cuts: FloatArray
    whole: bool
    # About the age from which on rows are negative where no positive came.
    maturity: float | None
    oldest: float
    # Ages at which the curve of drift may turn, from the oldest on.
    knots: FloatArray
    # Scores that a tenth, half and nine tenths of the rows lie below.
    spread: FloatArray
    # How many rows each bin of the grid of ages has.
    rows_at: FloatArray
    days: tuple[Day, ...] = ()

    @property
    def bins(self) -> int:
        """How many bins of ages there are."""
        return self.starts.size

    @property
    def zones(self) -> int:
        """How many zones of scores there are."""
        return self.cuts.size + 1

    def bin_of(self, age: IntArray) -> IntArray:
        """The bin of the model for bins of the grid of ages."""
        # Looked up and not searched for: there may be many ages, and the grid has few bins.
        found: IntArray = np.searchsorted(self.starts, np.arange(int(age.max(initial=0)) + 1), side="right") - 1
        return found[age]

    def zone_of(self, score: FloatArray) -> IntArray:
        """The zone of scores, from 0 on."""
        return np.searchsorted(self.cuts, score, side="right")

    @cached_property
    def edges(self) -> FloatArray:
        """The ages at which bins begin, and the end of the last one."""
        return np.append(bin_start(self.starts), self.oldest)

    @cached_property
    def passed(self) -> FloatArray:
        """The share of its bin that a row has passed on average, if ages fill bins of the grid evenly.

        Of whole days the last is seen whole.
        """
        fine = np.arange(self.rows_at.size)
        low, high = bin_start(fine), bin_start(fine + 1)
        if self.whole:
            low, high = np.ceil(low) + 1.0, np.ceil(high)
        bin_ = self.bin_of(fine)
        start, width = self._ends[bin_], np.maximum(np.diff(self._ends), 1e-300)[bin_]
        share = np.bincount(bin_, self.rows_at * (0.5 * (low + high) - start) / width, self.bins)
        rows = np.bincount(bin_, self.rows_at, self.bins)
        return np.clip(np.where(rows > 0.0, share / np.maximum(rows, 1.0), 0.5), 1e-3, 1.0)

    @property
    def passed_by_class(self) -> FloatArray:
        """The share of its bin that a row has passed, or of what comes in it where that is on one day (class, bin)."""
        result = np.tile(self.passed, (2, 1))
        for day in self.days:
            result[day.class_, day.bin_] = day.passed
        return result

    @cached_property
    def _ends(self) -> FloatArray:
        """The ages at which bins begin, and the end of the last one, as rows pass them: whole days are passed whole."""
        return np.ceil(self.edges) if self.whole else self.edges

    def later(self, bin_: IntArray, time: float) -> tuple[IntArray, FloatArray, BoolArray]:
        """Where rows of an age bin are after some time: bin, share of it that has passed, and whether there is one."""
        width = np.maximum(np.diff(self._ends), 1e-300)
        age = self._ends[bin_] + self.passed[bin_] * width[bin_] + time
        at = np.clip(np.searchsorted(self._ends, age, side="left") - 1, 0, self.bins - 1)
        return at, np.clip((age - self._ends[at]) / width[at], 0.0, 1.0), age <= self._ends[-1]

    @cached_property
    def drift(self) -> FloatArray:
        """Columns for the time of scoring (a row for each bin of ages): lines between knots, 0 at the oldest one."""
        middle = 0.5 * (self.edges[1:] + self.edges[:-1])
        return np.column_stack([np.interp(-middle, -self.knots, unit) for unit in np.eye(self.knots.size)])[:, 1:]

    def _tilt(self, score: FloatArray) -> FloatArray:
        """The score on the calibrator's line, from -1 to 1 around its middle: what the drift may grow or fall with."""
        line = self.calibrator.line(score)
        low, middle, high = self.calibrator.line(self.spread)
        return np.asarray(np.clip((line - middle) / max(float(high - low) / 2.0, 1e-300), -1.0, 1.0), dtype=np.float64)

    def rows(self, data: EvaluationSet, level: IntArray | None = None) -> Rows:
        """The table of a set by score, zone and age; `level` has the row of its score table for each cell, if known."""
        cells = data.cells
        assert cells.ages is not None
        bin_ = self.bin_of(cells.ages.age)
        place = self.zone_of(cells.score) * self.bins + bin_
        level = score_table(data).place if level is None else level
        key = level * (self.bins * self.zones) + place
        # Counted and not sorted: there are few keys, and there may be many cells.
        held = np.bincount(key) > 0
        code, of_cell = np.flatnonzero(held), (np.cumsum(held) - 1)[key]
        place = code % (self.bins * self.zones)

        def total(values: FloatArray | IntArray) -> FloatArray:
            return np.asarray(np.bincount(of_cell, values, code.size), dtype=np.float64)

        count = total(cells.total)
        score = np.clip(total(cells.total * cells.score) / count, cells.score[0], cells.score[-1])
        drift = self.drift[place % self.bins]
        X = np.hstack([self.calibrator.design(score), drift, self._tilt(score)[:, None] * drift])
        return Rows(
            X,
            place,
            total(cells.positives),
            total(cells.negatives),
            total(cells.missing),
            total(cells.missing * cells.decision),
            of_cell,
        )
