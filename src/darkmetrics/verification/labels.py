"""The labels that have come since an evaluation: which of its missing rows they belong to, and when they came."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.age_grid import without_delays
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.data import merging
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import check_length
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.delayed import Delayed
from darkmetrics.wording import named, setting

# Labels of more times than this are taken together with their neighbours: to look less often costs hardly anything.
_MOST_BATCHES = 200


@dataclass(frozen=True, eq=False)
class Batch:
    """Labels that came together: how many positive and negative ones at places among the set's `missing_cells`."""

    place: IntArray
    positives: IntArray
    negatives: IntArray
    # Time since the evaluation when the last of them came, if times are known as that.
    until: float | None = None


def batches_of(
    before: EvaluationSet, after: Any, y_score: Any, time: Any, age: Any, as_of: date | None = None
) -> list[Batch]:
    """The labels that came since `before`, in the order in which they came as far as it is known.

    `as_of`: the day or moment of `before`, if it is known, up to which ages were counted.
    """
    open_ = _Open.of(before)
    if age is not None:
        age = open_.ages(as_of, age)
    if isinstance(after, (EvaluationSet, Mapping)):
        for name, value in (("y_score", y_score), ("time", time), ("age", age)):
            if value is not None:
                rule = "An EvaluationSet already has its rows."
                raise InputError(name, "passed with an EvaluationSet", rule, f"Leave {named(name)} out.")
    if isinstance(after, EvaluationSet):
        open_.check(after)
        try:
            return [open_.batch(_came(before, after), None)]
        except InputError as error:
            raise _unmatched(error, before) from None
    if isinstance(after, Mapping):
        return _of_sets(open_, after, as_of)
    if y_score is None:
        raise InputError("y_score", "missing", "", "Pass the scores of the labels, or an EvaluationSet of the rows.")
    if time is None:
        rows = _rows(before, after, y_score, age)
        open_.check(rows)
        return [open_.batch(_came(before, rows), None)]
    return _of_rows(open_, after, y_score, time, age, as_of)


def _of_sets(open_: "_Open", after: Mapping[Any, Any], as_of: date | None) -> list[Batch]:
    if not after or not all(isinstance(one, EvaluationSet) for one in after.values()):
        rule = "A mapping must lead from times to EvaluationSets of the rows whose labels arrived then."
        raise InputError("after", "a mapping with other keys or values", rule)
    sets = list(after.values())
    number, until = _ordered(list(after), len(sets), partial(open_.since, as_of))
    if np.any(number < 0):
        raise InputError(
            "after",
            f"a time that is missing, or before {named('as_of')}",
            f"Each set of labels needs a time after {named('as_of')}.",
        )
    cells = [one.labeled().cells for one in sets]
    found = []
    for numbers in _groups(number):
        for one in np.flatnonzero(numbers):
            open_.check(sets[one])
        own = [cells[one] for one in np.flatnonzero(numbers)]
        found.append(open_.batch(own[0] if len(own) == 1 else _joined(own), _last(until, numbers)))
    open_.check_all(found)
    return found


def _of_rows(open_: "_Open", after: Any, y_score: Any, time: Any, age: Any, as_of: date | None) -> list[Batch]:
    labels, missing = frames.label_column(after, "after")
    score = frames.number_column(y_score, "y_score")
    check_length(labels, "after", score.size)
    number, until = _ordered(time, score.size, partial(open_.since, as_of))
    # A row that has its label, and no time, had it before.
    number = np.where(missing, -1, number)
    found = []
    for own in _groups(number):
        rows = _rows(open_.data, np.asarray(labels)[own], score[own], None if age is None else age[own])
        open_.check(rows)
        found.append(open_.batch(rows.labeled().cells, _last(until, own)))
    open_.check_all(found)
    return found


def _rows(before: EvaluationSet, labels: Any, score: Any, age: Any) -> EvaluationSet:
    """Rows decided and read as those of the earlier set."""
    if before.threshold is None:
        raise InputError(
            "after",
            f"arrays, but the earlier rows have predictions ({named('y_pred')})",
            "Arrays of labels and scores have none.",
            "Pass an EvaluationSet of the rows.",
        )
    try:
        missingness = None if age is None else Delayed(age=age)
        settings = {"threshold": before.threshold, "pos_label": before.pos_label}
        rows = EvaluationSet(labels, score, missingness=missingness, **settings)
    except InputError as error:
        _check_written(before, labels)
        raise error.worded_for({"y_true": "after"}) from None
    if not rows.cells.positives.any():
        _check_written(before, labels)
    return rows


def _check_written(before: EvaluationSet, labels: Any) -> None:
    """Labels among which none is positive may be written in another way than those of the earlier set."""
    values, missing = frames.label_column(labels, "after")
    found = sorted(set(np.asarray(values)[~missing].tolist()), key=str)
    wrong = found and before.pos_label not in found
    if wrong and (len(found) == 2 or isinstance(found[0], str) is not isinstance(before.pos_label, str)):
        raise InputError(
            "after",
            f"labels are {' and '.join(map(repr, found))}, but {before.pos_label!r} was positive in the earlier "
            "evaluation",
            "",
            "Pass labels as they were written then.",
        ) from None


def _came(before: EvaluationSet, after: EvaluationSet) -> Cells:
    """The labels in a set that are new: all of them, or, where it has the same rows, those that were not there."""
    if after.n_rows != before.n_rows:
        return after.labeled().cells
    whole, score_bins = _by_age(after.cells), after.score_bins
    if whole is not after.cells:
        whole = merging.merged([whole], score_bins, after.threshold)[0]
    part = _by_age(before.labeled().cells)
    if before.score_bins is None and score_bins is None:
        whole = merging.each_once(whole)
    try:
        left = merging.without(whole, part, score_bins, after.threshold)
    except InputError as error:
        raise InputError("after", "as many rows as before, but not the same ones", f"{error.finding}.") from None
    return EvaluationSet.from_cells(left).labeled().cells


@dataclass(frozen=True, eq=False)
class _Open:
    """The cells of a set that miss labels, with ages alone if there are ages and delays."""

    data: EvaluationSet
    cells: Cells
    # The place of each cell among the `missing_cells`; -1 for rows of weight zero, on which nothing depends.
    place: IntArray

    @classmethod
    def of(cls, data: EvaluationSet) -> "_Open":
        kept = np.flatnonzero(data.cells.missing)
        place = np.full(data.cells.score.size, -1)
        place[data.missing_cells] = np.arange(data.missing_cells.size)
        return cls(data, _by_age(data.cells.take(kept)), place[kept])

    def since(self, as_of: date | None, days: FloatArray) -> FloatArray | None:
        """Days since 1970 as time since the evaluation, negative before it; None if its day is not known."""
        ages = self.data.cells.ages
        if as_of is None or ages is None or not ages.days:
            return None
        start = float(frames.time_column([as_of], "as_of").number[0])
        if ages.whole:  # counted from day to day
            return np.asarray(np.floor(days) - np.floor(start), dtype=np.float64)
        # Of a date, ages were counted up to its end.
        since = days - (start if isinstance(as_of, datetime) else start + 1.0)
        # To the microsecond, which is what times have.
        return np.asarray(np.round(since * 86_400e6) / 86_400e6, dtype=np.float64)

    def ages(self, as_of: date | None, age: Any) -> Any:
        """The ages that rows had in the evaluation, of which dates are when they were scored."""
        try:
            return frames.duration_column(age, "age")[0]
        except InputError:
            scored = _dates_of(age, "age")
            since = None if scored is None else self.since(as_of, scored.number)
            if scored is None or since is None:
                raise
            if (since > 0.0).any():
                row = int(np.argmax(since > 0.0))
                raise InputError(
                    "age",
                    f"row {row} was scored on {scored.shown(float(scored.number[row]))}, after the earlier "
                    f"evaluation ({as_of})",
                    "Rows must belong to the earlier evaluation.",
                    "Pass the rows that were scored by then.",
                ) from None
            return -since

    def check(self, late: EvaluationSet) -> None:
        """The other set is decided, counted and told apart in the same way."""
        own = self.data
        if late.score_bins != own.score_bins:
            raise InputError(
                "after",
                "its scores are counted in other bins than those of the earlier set",
                "Rows are matched by their score bins.",
                "Count both sets in the same bins.",
            )
        if late.threshold != own.threshold or late.pos_label != own.pos_label:
            raise InputError(
                "after",
                "predictions or labels differ from those of the earlier set",
                "Both sets need one threshold and one positive label.",
                "Build it in the same way.",
            )
        for name in ("stratum", "age", "propensity", "probability"):
            mine, theirs = getattr(own.cells, name) is not None, getattr(late.cells, name) is not None
            if mine != theirs and (mine or name != "probability"):
                there = "it has none, but the earlier set has" if mine else "it has some, but the earlier set has not"
                raise InputError(
                    "after",
                    f"{name}: {there}",
                    f"Rows are matched by {name}.",
                    "Build it in the same way.",
                )

    def batch(self, late: Cells, until: float | None) -> Batch:
        """Labels by the cells that they belong to."""
        data = self.data
        try:
            at = self.place[merging.late_places(self.cells, _by_age(late), data.score_bins, data.threshold)]
        except InputError as error:
            raise error.worded_for({"late": "after"}) from None
        kept = at >= 0
        return Batch(at[kept], late.positives[kept].astype(np.int64), late.negatives[kept].astype(np.int64), until)

    def check_all(self, batches: list[Batch]) -> None:
        """No cell has more labels in all batches together than it was missing."""
        came = np.zeros(self.data.missing_cells.size, dtype=np.int64)
        for batch in batches:
            np.add.at(came, batch.place, batch.positives + batch.negatives)
        short = came > self.data.missing_counts
        if short.any():
            at = int(np.argmax(short))
            score = float(self.data.cells.score[self.data.missing_cells[at]])
            raise InputError(
                "after",
                f"{came[at]:,} labels for score {score!r}, where {self.data.missing_counts[at]:,} were missing",
                "",
                "Pass each label once, and none that was there before.",
            )


def _unmatched(error: InputError, before: EvaluationSet) -> InputError:
    """The error for rows that are not those of the earlier set, with why that may be where they have ages."""
    if before.cells.age is None:
        return error
    fix = (
        f"Rows are matched by their age in the earlier evaluation, and ages of a later {named('as_of')} are larger. "
        f"Pass labels and scores as arrays, with {setting('age')} (the age of each row then, or when it was scored) "
        f"and {setting('time')} (when its label arrived) or {setting('elapsed')}."
    )
    return error.replace(fix=" ".join(filter(None, [error.args[3], fix])))


def _by_age(cells: Cells) -> Cells:
    """Return the same cells without the delays of their labels, which are not matched."""
    return cells if cells.age is None else replace(cells, age=without_delays(cells.age))


def _joined(cells: list[Cells]) -> Cells:
    columns: dict[str, Any] = {}
    for name, array in cells[0].arrays().items():
        columns[name] = None if array is None else np.concatenate([getattr(one, name) for one in cells])
    return Cells(**columns)


def _dates_of(values: Any, name: str) -> frames.Times | None:
    """Dates and datetimes in days since 1970; None if they are none."""
    try:
        times = frames.time_column(values, name)
    except InputError:
        return None
    return times if times.days else None


def _ordered(time: Any, n: int, since: Callable[[FloatArray], FloatArray | None]) -> tuple[IntArray, FloatArray | None]:
    """The rank of each time, -1 where it is missing; and the times as numbers, if they are spans of time.

    Dates are spans where `since` makes them some, and what came before the evaluation has none.
    """
    try:
        values, _ = frames.duration_column(time, "time")
        spans = True
    except InputError:
        dates = _dates_of(time, "time")
        if dates is None:
            rule = "Times of arrival must be numbers, timedeltas or dates."
            raise InputError("time", "values of another type", rule) from None
        passed = since(dates.number)
        values, spans = (dates.number, False) if passed is None else (np.where(passed > 0.0, passed, np.nan), True)
    check_length(values, "time", n)
    known = ~np.isnan(values)
    if spans and np.any(values[known] < 0.0):
        raise InputError(
            "time",
            f"{values[known].min():g}",
            "Labels arrive after the evaluation, so no time is negative.",
        )
    if not known.any():
        raise InputError("time", "all missing", "", f"Pass when each label arrived, or leave {named('time')} out.")
    _, rank = np.unique(values[known], return_inverse=True)
    number = np.full(n, -1)
    number[known] = rank
    return number, values if spans else None


def _groups(number: IntArray) -> list[BoolArray]:
    """Which rows belong to each batch: one for each time, or for neighbouring ones where there are many."""
    n = int(number.max(initial=-1)) + 1
    if n == 0:
        raise InputError("after", "no label with a time", "At least one label must have arrived.")
    rows = np.bincount(number[number >= 0], minlength=n)
    batch = np.arange(n) if n <= _MOST_BATCHES else (np.cumsum(rows) - 1) * _MOST_BATCHES // int(rows.sum())
    own = np.where(number >= 0, batch[number], -1)
    return [own == one for one in np.unique(own[own >= 0])]


def _last(until: FloatArray | None, own: BoolArray) -> float | None:
    return None if until is None else float(until[own].max())
