"""The columns of a frame by the part they play: checked, renamed, and of types that every engine compares alike."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import AnyArray
from darkmetrics._text import NUMBER
from darkmetrics.exceptions import InputError
from darkmetrics.frames.arrays import (
    DATE_RULE,
    is_container,
    is_missing,
    label_column,
    number_column,
    value_column,
)
from darkmetrics.frames.calendar import check_time_type, period_number, period_start
from darkmetrics.frames.collecting import collected, in_order
from darkmetrics.frames.engines import addressable, on_wall_clock, type_name, with_plain_floats
from darkmetrics.frames.moments import Moments, check_zones, local_days, read_moments
from darkmetrics.wording import named

# The parts that columns of dates or datetimes play.
TIMES = ("scored_at", "labeled_at")
_SHOWN = 12
# Types of Spark that narwhals has no name for.
_NESTED = ("map", "variant")


@dataclass(frozen=True)
class ColumnNames:
    """Which column of a frame plays which part."""

    label: str
    score: str
    decision: str | None = None
    probability: str | None = None
    weight: str | None = None
    stratum: str | None = None
    propensity: str | None = None
    scored_at: str | None = None
    labeled_at: str | None = None
    more_scores: tuple[str, ...] = ()  # further models on the same rows; thresholds decide, not a column

    def __post_init__(self) -> None:
        for part, name in self.given().items():
            check_name(part, name)

    def given(self) -> dict[str, str]:
        """The names by part, without those that are not given; further scores are "score 1", "score 2", ..."""
        parts = {part.name: getattr(self, part.name) for part in fields(self) if part.name != "more_scores"}
        parts |= {numbered("score", i): name for i, name in enumerate(self.more_scores, 1)}
        return {part: name for part, name in parts.items() if name is not None}

    @property
    def scores(self) -> list[str]:
        """The parts that are scores."""
        return [numbered("score", i) for i in range(1 + len(self.more_scores))]

    def title(self, part: str) -> str:
        """How messages name a column."""
        return title(part, self.given()[part])


def numbered(name: str, i: int) -> str:
    """Return the name of a column that belongs to score `i` in a query."""
    return f"{name} {i}" if i else name


def check_name(argument: str, name: Any) -> None:
    """Refuse values where the name of a column belongs: comparing them with names would fail without a word."""
    if is_container(type(name)) and not isinstance(name, tuple):
        raise InputError(argument, f"values ({type(name).__name__})", "It must be the name of a column of the table.")


# The arguments that name the columns.
_ARGUMENTS = {
    "label": "y_true",
    "score": "y_score",
    "decision": "y_pred",
    "weight": "sample_weight",
    "stratum": "strata",
}


def argument_of(part: str) -> str:
    """Return the argument that names the column of a part; that of every score is y_score."""
    word = part.split(maxsplit=1)[0]
    return _ARGUMENTS.get(word, word)


def part_of(argument: str) -> str:
    """Return the part of the column that an argument names."""
    return next((part for part, word in _ARGUMENTS.items() if word == argument), argument)


def title(part: str, name: str) -> str:
    """Return what messages call a column: its argument and its name."""
    return named(argument_of(part), name)


@dataclass(frozen=True)
class Values:
    """How the values of a column are held in a query: as numbers, as text, or as places in a list."""

    kind: str  # "number", "whole", "truth", "text" or "places"
    places: Sequence[Any] = ()

    def stored(self, value: Any) -> Any:
        """What to compare the column with to find `value`; None when nothing in it can equal that.

        Text never equals a number, and True equals 1.
        """
        if is_missing(value):
            return None
        if isinstance(value, np.generic):
            value = value.item()
        if self.kind == "places":
            return next((float(place) for place, known in enumerate(self.places) if known == value), None)
        if self.kind == "text":
            return value if isinstance(value, str) else None
        if isinstance(value, (str, bytes)):
            return None
        try:
            number = int(value) if self.kind == "whole" else float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        return number if number == value and abs(number) < 2**63 else None

    def original(self, value: Any) -> Any:
        """The value as the user's frame has it."""
        if is_missing(value):
            return None
        if self.kind == "places":
            return self.places[int(value)]
        if self.kind == "text":
            return str(value)
        return bool(value) if self.kind == "truth" else int(value) if self.kind == "whole" else float(value)

    def gap(self, column: nw.Expr) -> nw.Expr:
        """Where a value is missing: null or NaN. The one definition for queries."""
        return column.is_null() | column.is_nan() if self.kind in ("number", "truth", "places") else column.is_null()


@dataclass(frozen=True)
class Rows:
    """A query for the rows: columns named by part, and keys named "by 0", "by 1", ... (no part has such a name)."""

    frame: Any
    count: int | None  # None: only a pass would tell
    label: Values
    decision: Values | None
    stratum: Values | None
    keys: Mapping[str, tuple[str, Values | str | None]]  # by key: the user's name; how to read it (text: a period)
    moments: Mapping[str, Moments] = field(default_factory=dict)  # of the columns of times, by part

    def key_value(self, key: str, value: Any) -> Any:
        """The value of a key as the user's frame has it; null and NaN are None."""
        how = self.keys[key][1]
        if is_missing(value):
            return None
        if isinstance(how, str):
            return period_start(value, how)
        if how is not None:
            return how.original(value)
        value = value.item() if isinstance(value, np.generic) else value
        return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


def read_roles(frame: Any, columns: ColumnNames, by: Sequence[str], time: str | None, period: str | None) -> Rows:
    """The rows of a narwhals frame with their columns in order; what cannot play its part is refused by name."""
    frame, found = addressable(frame)
    parts = columns.given()
    _check_names(found, parts, by, time)
    inside = dict(zip(found, frame.collect_schema().names(), strict=True))
    schema = dict(zip(found, frame.collect_schema().values(), strict=True))
    wanted = {part: nw.col(inside[name]) for part, name in parts.items()}
    types = {part: schema[name] for part, name in parts.items()}
    titles = {part: title(part, name) for part, name in parts.items()}
    names = [*by, *([] if time is None else [time])]
    for place, name in enumerate(names):
        key = f"by {place}"
        wanted[key], types[key] = nw.col(inside[name]), schema[name]
        titles[key] = title("time" if place == len(by) else "by", name)
    frame = frame.select(**wanted)
    held: dict[str, Values] = {}
    moments: dict[str, Moments] = {}
    timed = [part for part in wanted if part in TIMES]
    frame, local = local_days(frame, timed) if timed else (frame, None)
    for part in wanted:
        if part in TIMES:
            frame, read = read_moments(frame, part, nw.Datetime() if local else types[part], titles[part])
            moments[part] = replace(read, zone=local, local=True) if local else read
            continue
        frame, held[part], types[part] = _readable(
            frame, part, types[part], titles[part], time is not None and part == f"by {len(by)}"
        )
    check_zones(titles, moments)
    keys: dict[str, tuple[str, Values | str | None]] = {}
    for place, name in enumerate(names):
        key = f"by {place}"
        if place == len(by) and period is not None:
            check_time_type(types[key], type_name(frame, key, types[key]), period, titles[key])
            frame = frame.with_columns(period_number(nw.col(key), period).alias(key))
            keys[key] = (name, period)
        else:
            keys[key] = (name, held[key] if held[key].kind == "places" else None)
    count = len(frame) if isinstance(frame, nw.DataFrame) else None
    if isinstance(frame, nw.DataFrame) and frame.implementation.is_polars():
        frame = frame.lazy()  # in batches, which takes less memory
    return Rows(frame, count, held["label"], held.get("decision"), held.get("stratum"), keys, moments)


def unknown_column(argument: str, name: Any, columns: Sequence[str]) -> InputError:
    """Return the error for a column that a table does not have, with the nearest one."""
    lower = {str(column).lower(): column for column in columns}
    near = difflib.get_close_matches(str(name).lower(), lower, n=1, cutoff=0.5)
    more = len(columns) - _SHOWN
    shown = ", ".join(map(repr, columns[:_SHOWN])) + (f" and {more:,} more" if more > 0 else "")
    hint = f"Did you mean {lower[near[0]]!r}?" if near else f"It has {shown or 'no columns'}."
    if {"format_version", "checksum"} <= set(columns):
        hint = "It holds the counts of a stored set, which EvaluationSet.from_parquet reads."
    return InputError(argument, f"data has no column {name!r}", "", hint)


def _check_names(schema: Sequence[str], parts: Mapping[str, str], by: Sequence[str], time: str | None) -> None:
    wanted = [*parts.items(), *(("by", name) for name in by), *([] if time is None else [("time", time)])]
    for part, name in wanted:
        if name not in schema:
            raise unknown_column(argument_of(part), name, schema)
        if schema.count(name) > 1:
            raise InputError(
                argument_of(part),
                f"data has {schema.count(name)} columns {name!r}",
                "",
                "Rename or drop all but one.",
            )
    seen: dict[str, str] = {}
    for part, name in parts.items():
        # A score that is a probability may well be named as both.
        if name in seen and {part, seen[name]} != {"score", "probability"}:
            raise InputError(
                argument_of(part),
                f"column {name!r} is also {named(argument_of(seen[name]))}",
                "Each needs a column of its own.",
            )
        seen[name] = part
    keys = [*by, *([] if time is None else [time])]
    twice = next((name for place, name in enumerate(keys) if name in keys[:place]), None)
    if twice is not None:
        raise InputError("by", f"column {twice!r} is named twice", "", "Name it once.")


def _readable(frame: Any, part: str, dtype: Any, name: str, is_time: bool) -> tuple[Any, Values, Any]:
    """The frame with one column in a type that can be queried, how its values are held, and the type."""
    column = nw.col(part)
    eager = isinstance(frame, nw.DataFrame)
    # Columns in memory can be of any type, also of several at a time.
    loose = eager and not frame.implementation.is_polars()
    if part == "stratum" and not _is_number(dtype):
        if loose or (eager and dtype in (nw.Object, nw.Unknown)):
            return _placed(frame, part, name)
        if dtype in (nw.String, nw.Categorical, nw.Enum):
            return frame.with_columns(column.cast(nw.String)), Values("text"), nw.String()
        called = type_name(frame, part, dtype)
        raise InputError(name, f"has type {called}", "Expected whole numbers or text.", "Cast it first.")
    if part.split(maxsplit=1)[0] in ("score", "weight", "probability", "stratum", "propensity"):
        # PyArrow turns the decimal 0.7 into a float that is not the nearest one.
        if eager and (
            frame.implementation.is_pandas_like() or not _is_number(dtype) or (loose and dtype == nw.Decimal)
        ):
            numbers = number_column(frame[part], name)
            return _replaced(frame, part, numbers), Values("number"), nw.Float64()
        if not _is_number(dtype):
            _refuse_no_numbers(frame, part, dtype, name)
        return frame.with_columns(column.cast(nw.Float64)), Values("number"), nw.Float64()
    if is_time:
        if loose and dtype == nw.Object:
            return _with_times(frame, part)
        if dtype == nw.Unknown:
            frame, dtype = on_wall_clock(frame, part)
        return frame, Values("number"), dtype
    odd = dtype in (nw.Object, nw.Unknown) or (loose and dtype == nw.Categorical)
    if part in ("label", "decision"):
        odd = odd or (loose and dtype == nw.Decimal) or (eager and frame.implementation.is_pandas_like())
    if eager and odd and dtype != nw.String:
        return _placed(frame, part, name)
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return frame.with_columns(column.cast(nw.String)), Values("text"), nw.String()
    if part.startswith("by "):
        called = type_name(frame, part, dtype)
        if dtype.is_nested() or called.startswith(_NESTED):
            raise InputError(name, f"has type {called}", "A key needs one value per row.")
        return with_plain_floats(frame, part) if dtype.is_float() else frame, Values("number"), dtype
    if dtype == nw.Boolean:
        return frame.with_columns(column.cast(nw.Float64)), Values("truth"), nw.Float64()
    if dtype.is_integer() and dtype not in (nw.Int128, nw.UInt128):
        return frame, Values("whole"), dtype
    called = type_name(frame, part, dtype)
    # A column of nothing but nulls may have no type.
    if _is_number(dtype) or (dtype == nw.Unknown and not called.startswith(_NESTED)):
        return frame.with_columns(column.cast(nw.Float64)), Values("number"), nw.Float64()
    rule = DATE_RULE if dtype.is_temporal() else "Expected booleans, numbers or text; cast it first."
    raise InputError(name, f"has type {called}", rule)


def _refuse_no_numbers(frame: Any, part: str, dtype: Any, name: str) -> NoReturn:
    """Says what is wrong with a column of a query that has no numbers; of text, the first value that is none."""
    if dtype == nw.String and (frame.implementation.is_polars() or frame.implementation.is_duckdb()):
        words = frame.select(part)
        if not len(collected(words.head(1))):
            raise InputError("data", "no rows", "At least one row is needed.")
        odd = collected(words.filter(~nw.col(part).str.contains(NUMBER)).head(1))[part].to_list()
        if odd:
            raise InputError(name, f"{odd[0]!r} is text", "Expected numbers.", "Correct or drop such rows.")
    called = type_name(frame, part, dtype)
    raise InputError(name, f"has type {called}", "Expected numbers.", "Cast it first.")


def _is_number(dtype: Any) -> bool:
    return bool(dtype.is_numeric() or dtype == nw.Boolean)


def _replaced(frame: Any, part: str, values: AnyArray | Sequence[Any], dtype: Any = None) -> Any:
    return frame.with_columns(nw.new_series(part, values, dtype, backend=frame.implementation))


def _placed(frame: Any, part: str, name: str) -> tuple[Any, Values, Any]:
    """A column in memory as numbers, as text, or, if its values are neither, as places in a list of them."""
    if part.startswith("by ") and frame.schema[part] in (nw.Object, nw.Unknown):
        held = next((item for item in frame[part].to_list() if is_container(type(item))), None)
        if held is not None:
            raise InputError(name, f"has values of type {type(held).__name__}", "A key needs one value per row.")
    read = label_column if part in ("label", "decision") else value_column
    array, missing = read(frame[part], name)
    if array.dtype.kind in "iu" and not missing.any():
        return _replaced(frame, part, array), Values("whole"), nw.Int64()  # beyond 2**53 floats would be the same
    if array.dtype.kind in "fiub":
        numbers = np.where(missing, np.nan, array.astype(np.float64)) if missing.any() else array.astype(np.float64)
        return _replaced(frame, part, numbers), Values("truth" if array.dtype.kind == "b" else "number"), nw.Float64()
    items = [None if gap else item for item, gap in zip(array.tolist(), missing.tolist(), strict=True)]
    if all(item is None or type(item) is str for item in items) and items.count(None) < len(items):
        return _replaced(frame, part, items, nw.String), Values("text"), nw.String()
    known = in_order(list(set(items) - {None}))
    place = {item: float(code) for code, item in enumerate(known)}
    codes = np.array([np.nan if item is None else place[item] for item in items])
    return _replaced(frame, part, codes), Values("places", known), nw.Float64()


def _with_times(frame: Any, part: str) -> tuple[Any, Values, Any]:
    """A column of Python dates or datetimes as one that knows calendar fields; text stays what it is."""
    items: list[Any] = [None if is_missing(item) else item for item in frame[part].to_list()]
    if not all(item is None or hasattr(item, "toordinal") for item in items):
        return frame, Values("number"), nw.Object()
    plain = [item if getattr(item, "tzinfo", None) is None else item.replace(tzinfo=None) for item in items]
    hours = any(hasattr(item, "hour") for item in plain)
    frame = _replaced(frame, part, np.array(plain, dtype="datetime64[us]"))
    return frame, Values("number"), nw.Datetime() if hours else nw.Date()
