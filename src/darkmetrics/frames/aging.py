"""Ages of rows and delays of labels in a query, as they were at one point in time."""

from dataclasses import replace
from math import ceil, floor, log2
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.age_grid import AGE, DAYS, LOWEST, MATURE, NO_DELAY, STEPS, WHOLE, age_bin
from darkmetrics.exceptions import InputError, MissingnessWarning, warn
from darkmetrics.frames.collecting import collected, numbers
from darkmetrics.frames.engines import looked_up, looks_up
from darkmetrics.frames.labels import MARK, Labeled
from darkmetrics.frames.moments import DAY, AsOf, Moments
from darkmetrics.frames.roles import ColumnNames
from darkmetrics.wording import named, setting

_SCORED, _CAME = nw.col("scored_at"), nw.col("labeled_at")
# So many days, a quarter of a century, make a list that a query can hold.
_MOST_LISTED = 2**13
# A microsecond is more than this power of two of a day.
_LOWEST_OCTAVE = -37


def aged(source: Labeled, columns: ColumnNames, as_of: Any, maturity: float | None) -> Labeled:
    """Return the rows that had been scored at `as_of`, with the labels that had come by then.

    The column "age" holds the number of the bins of age and delay (see `_kernels.age_grid`). If one column has dates
    alone, ages and delays are whole days. `maturity` is in days.
    """
    clocks = dict(source.rows.moments)
    if "labeled_at" in clocks and not clocks["labeled_at"].known:
        clocks["labeled_at"] = clocks["scored_at"]
    scored = clocks["scored_at"]
    ends = _ends(source.frame, columns, clocks, maturity)
    if as_of is None:
        newest = max(ends[part] for part in ("newest", "latest") if ends[part] == ends[part])
        raise InputError(
            "as_of",
            "missing",
            "Ages of rows are counted up to the day on which the table was taken.",
            f"Pass that day; the newest date in the table is {setting('as_of', scored.shown(newest))}.",
        )
    last = AsOf.of(as_of).last(scored)
    if ends["oldest"] > last:
        raise InputError(
            "as_of",
            f"{_shown(as_of)}, but the oldest row was scored on {scored.shown(ends['oldest'])} "
            f"({columns.title('scored_at')})",
            "At least one row must be scored by then.",
            "Pass a later date.",
        )
    if ends["newest"] > last and "labeled_at" not in clocks:
        warn(
            f"as_of: {_shown(as_of)}, but the newest row was scored on {scored.shown(ends['newest'])} "
            f"({columns.title('scored_at')}). Rows scored after {named('as_of')} are left out. Labels that arrived "
            "after it stay, so the estimates may use labels that were not known then. Pass "
            f"{setting('labeled_at')} to hide them, or the table of that day.",
            MissingnessWarning,
        )
    by_day = _by_day(clocks, ends)
    # A day is over when its last microsecond is; ages up to a moment are ages at that moment.
    whole_day = AsOf.of(as_of).day is not None
    now = last - last % DAY if by_day else last + whole_day
    frame = source.frame.filter(last >= _SCORED) if ends["newest"] > last else source.frame
    if "labeled_at" in clocks:
        if _in_doubt(ends, maturity):
            _check(source.frame, columns, clocks, by_day=by_day, maturity=maturity)
        frame = _hidden(frame, last) if ends["latest"] > last else frame
    days = {part: _day(nw.col(part)) if by_day and not one.dates else nw.col(part) for part, one in clocks.items()}
    frame = frame.with_columns(age=now - days["scored_at"])
    if "labeled_at" in days:
        frame = frame.with_columns(delay=days["labeled_at"] - days["scored_at"])
    whole = by_day or _are_whole(frame, "labeled_at" in days)
    oldest = now - ends["oldest"] + DAY
    parts = ["age", "delay"] if "labeled_at" in days else ["age"]
    if by_day and oldest <= _MOST_LISTED * DAY and looks_up(frame):
        frame = _with_listed_bins(frame, parts, oldest, maturity)
    else:
        frame = _with_bins(frame, parts, oldest, maturity, by_day=by_day)
    age = nw.col("age") + nw.col("delay") if "delay" in parts else nw.col("age")
    # Whole numbers: PyArrow's hashes of whole floats collide.
    frame = frame.with_columns(age=age.cast(nw.Int32) + (DAYS + whole * WHOLE))
    return replace(source, frame=frame)


def _ends(frame: Any, columns: ColumnNames, clocks: dict[str, Moments], maturity: float | None) -> dict[str, float]:
    """The first and last times of a table, how many have a time of day, and what `_check` looks at: all in one pass."""
    wanted = {
        "rows": nw.len(),
        "blank": _count(_SCORED.is_null()),
        "oldest": _SCORED.min(),
        "newest": _SCORED.max(),
    }
    if "labeled_at" in clocks:
        took = _CAME - _SCORED
        wanted |= {"latest": _CAME.max(), "shortest": took.min(), "longest": took.max()}
        wanted |= {key: _count(rule) for key, rule in _wrongly_timed(maturity).items()}
    for part, one in clocks.items():
        if one.has_days and not one.dates:
            wanted[f"clock {part}"] = _count(~_is_midnight(nw.col(part)) & ~nw.col(part).is_null())
    found = {"latest": float("nan")} | _answered(frame, wanted)
    if not found["rows"]:
        raise InputError("data", "no rows", "At least one row is needed.")
    if found["blank"]:
        share = f"{int(found['blank']):,} of {int(found['rows']):,} values {'is' if found['blank'] == 1 else 'are'}"
        raise InputError(
            columns.title("scored_at"),
            f"{share} missing (null)",
            "Every row needs the time when it was scored.",
        )
    return found


def _by_day(clocks: dict[str, Moments], ends: dict[str, float]) -> bool:
    """Whether some column has dates alone: by its type, or because all of its times are at midnight."""
    there = [part for part in clocks if part == "scored_at" or ends["latest"] == ends["latest"]]
    plain = [part for part in there if clocks[part].has_days and not ends.get(f"clock {part}")]
    return all(one.has_days for one in clocks.values()) and (bool(plain) or any(one.dates for one in clocks.values()))


def _wrongly_timed(maturity: float | None) -> dict[str, nw.Expr]:
    """Rows that have a time of arrival and no label, or a label and no time."""
    # With a maturity, negatives need no time: the maturity declares them.
    known = nw.col("missing").is_null()
    needed = known if maturity is None else ~nw.col("positive").is_null()
    return {"unlabeled": ~_CAME.is_null() & ~known, "lacking": _CAME.is_null() & needed}


def _in_doubt(ends: dict[str, float], maturity: float | None) -> bool:
    """Whether another pass over the table is needed to tell if its times are right: by day they are moved by a day."""
    late = maturity is not None and ends["longest"] + DAY > maturity * DAY
    return bool(late or ends["shortest"] < 0.0 or ends["unlabeled"] or ends["lacking"])


def _check(
    frame: Any, columns: ColumnNames, clocks: dict[str, Moments], *, by_day: bool, maturity: float | None
) -> None:
    """Labels come after scoring, all that are there have come, and none after the maturity."""
    name, other = columns.title("labeled_at"), columns.title("scored_at")
    days = {part: _day(nw.col(part)) if by_day and not one.dates else nw.col(part) for part, one in clocks.items()}
    took = days["labeled_at"] - days["scored_at"]
    wanted = {"early": took < 0.0, **_wrongly_timed(maturity)}
    found = _answered(frame, {key: _count(rule) for key, rule in wanted.items()} | {"longest": took.max()})

    def first(key: str) -> dict[str, str]:
        row = collected(frame.filter(wanted[key]).select("scored_at", "labeled_at").head(1))
        times = {part: float(numbers(row, part)[0]) for part in clocks}
        return {part: clocks[part].shown(time) for part, time in times.items() if time == time}

    if found["early"]:
        times = first("early")
        raise InputError(
            name,
            f"{_number(found['early'], 'label')} came before scoring (such as {times['labeled_at']} for a row with "
            f"{times['scored_at']} in {other})",
            "A label comes after its row is scored.",
            "Correct or drop such rows.",
        )
    if found["unlabeled"]:
        has = "has" if found["unlabeled"] == 1 else "have"
        raise InputError(
            name,
            f"{_number(found['unlabeled'], 'row')} {has} a date but no label (such as "
            f"{first('unlabeled')['labeled_at']})",
            "Rows without a label must have no date.",
        )
    if found["lacking"]:
        kind = "label" if maturity is None else "positive label"
        has = "has" if found["lacking"] == 1 else "have"
        raise InputError(
            name,
            f"{_number(found['lacking'], kind)} {has} no date (such as that of a row with "
            f"{first('lacking')['scored_at']} in {other})",
            f"Every {kind} needs the time when it arrived.",
            f"Pass that time, or leave {named('labeled_at')} out.",
        )
    if maturity is not None and found["longest"] > maturity * DAY:
        beyond = _answered(frame, {"late": _count(took > maturity * DAY), "timed": _count(~took.is_null())})
        late, timed = int(beyond["late"]), int(beyond["timed"])
        raise after_maturity(maturity, " days", late, timed, found["longest"] / DAY, name)


def after_maturity(maturity: float, unit: str, late: int, timed: int, longest: float, where: str) -> InputError:
    """The error for labels that took longer than the maturity: how many, how long, and what to do."""
    return InputError(
        "maturity",
        f"{maturity:g}{unit}, but {late:,} of {_number(timed, 'label')} took longer, up to {longest:g}{unit} ({where})",
        "Rows that are older than the maturity and have no label count as negative, so no label may arrive after it.",
        f"Pass {setting('maturity', ceil(longest))} or more, or drop rows that are errors.",
    )


def _hidden(frame: Any, last: float) -> Any:
    """The rows without the labels that came later than the last moment that counts."""
    later = last < _CAME
    there = ~later | _CAME.is_null()
    return frame.with_columns(
        missing=nw.when(later).then(MARK).otherwise(nw.col("missing")),
        positive=nw.when(there).then(nw.col("positive")),
        negative=nw.when(there).then(nw.col("negative")),
        labeled_at=nw.when(~later).then(_CAME),
    )


def _with_listed_bins(frame: Any, parts: list[str], oldest: float, maturity: float | None) -> Any:
    """The frame with ages and delays, which are whole days, as their parts of the number: looked up in a list."""
    days = np.arange(oldest // DAY + 1.0)
    mature = np.zeros(days.size, dtype=np.bool_) if maturity is None else days * DAY >= maturity * DAY
    listed = {"age": age_bin(days) * AGE + mature * MATURE, "delay": age_bin(days) + 1}
    for part in parts:
        frame = looked_up(frame.with_columns(nw.col(part) / DAY), part, listed[part])
    return frame.with_columns(nw.col("delay").fill_null(NO_DELAY)) if "delay" in parts else frame


def _with_bins(frame: Any, parts: list[str], oldest: float, maturity: float | None, *, by_day: bool) -> Any:
    """The same by arithmetic: of ages that are no whole days, or too many, and in every engine."""
    mature: nw.Expr = nw.lit(0.0)
    if maturity is not None:
        mature = nw.col("mature")
        frame = frame.with_columns(mature=_is(nw.col("age"), maturity * DAY) * float(MATURE))
    for part in parts:
        frame = _with_bin(frame, part, oldest, by_day=by_day)
    frame = frame.with_columns(age=nw.col("age") * float(AGE) + mature)
    if "delay" not in parts:
        return frame
    return frame.with_columns(delay=nw.when(_CAME.is_null()).then(float(NO_DELAY)).otherwise(nw.col("delay") + 1.0))


def _with_bin(frame: Any, column: str, longest: float, *, by_day: bool) -> Any:
    """The frame with the bin of a column of ages or delays in its place, as `_kernels.age_grid` has them.

    Halved until it is below two steps of the first octave, in ever smaller powers of two: no step rounds, and each is
    a column, since engines that do not look for common parts of expressions would repeat the work. Sums of truth values
    take DuckDB half as long as a choice between two columns.
    """
    age, octave, far = nw.col(column), nw.col("octave"), nw.col("far")
    # Of whole days, those below one are none; otherwise the smallest is a microsecond.
    first = 0 if by_day else _LOWEST_OCTAVE
    unit, below = DAY * 2.0**first, first - LOWEST
    octaves = max(floor(log2(longest / unit)), 0) if longest > unit else 0
    frame = frame.with_columns(octave=nw.lit(float(STEPS * below)))
    for power in reversed(range(octaves.bit_length())):
        many = 2**power
        frame = frame.with_columns(far=_is(age, unit * 2.0**many))
        frame = frame.with_columns(
            (age * (1.0 - far * (1.0 - 2.0**-many))).alias(column), octave=octave + far * float(STEPS * many)
        )
    steps = ((age - unit) * float(STEPS) / unit).floor()
    frame = frame.with_columns((_is(age, unit) * (octave + steps + 1.0)).alias(column))
    return frame.drop("octave", "far") if octaves else frame.drop("octave")


def _is(age: nw.Expr, edge: float) -> nw.Expr:
    """1 where an age is at an edge or beyond, else 0."""
    return (age >= edge).cast(nw.Float64)


def _are_whole(frame: Any, timed: bool) -> bool:
    """Whether all ages and delays are whole days."""
    wanted = {"age": _count(~_is_midnight(nw.col("age")))}
    if timed:
        wanted["delay"] = _count(~_is_midnight(nw.col("delay")) & ~nw.col("delay").is_null())
    return not any(_answered(frame, wanted).values())


def _is_midnight(moment: nw.Expr) -> nw.Expr:
    """Whether a number of microseconds is one of whole days, with nothing that engines would round differently."""
    return _nearest_day(moment) == moment


def _day(moment: nw.Expr) -> nw.Expr:
    """The midnight before a moment, or at it."""
    nearest = _nearest_day(moment)
    return nw.when(nearest > moment).then(nearest - DAY).otherwise(nearest)


def _nearest_day(moment: nw.Expr) -> nw.Expr:
    return (moment * (1.0 / DAY) + 0.5).floor().cast(nw.Float64) * DAY


def _count(rule: nw.Expr) -> nw.Expr:
    return nw.when(rule).then(MARK).count()


def _answered(frame: Any, wanted: dict[str, nw.Expr]) -> dict[str, float]:
    table = collected(frame.select(**wanted))
    return {name: float(numbers(table, name)[0]) for name in wanted}


def _number(count: float, kind: str) -> str:
    return f"{int(count):,} {kind}{'' if count == 1 else 's'}"


def _shown(as_of: Any) -> str:
    return as_of if isinstance(as_of, str) else str(as_of)
