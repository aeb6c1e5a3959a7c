"""Labels in a query: which rows are positive, negative and missing, and which labels there are."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics.frames.arrays import meaning_missing
from darkmetrics.frames.collecting import collected
from darkmetrics.frames.group_cells import Tally
from darkmetrics.frames.roles import Rows

# Labels that an error looks at, so that one is told of all odd ones at once and not of one after the other.
MOST_LABELS = 8
# What stands in a column of marks where a row has one.
MARK = nw.lit(1)


@dataclass(frozen=True)
class Labeled:
    """Rows with three more columns, "positive", "negative" and "missing": 1 where a row is that, else null.

    "negative" is where the label equals `expected`; what a row is that is none of the three shows in the counts.
    """

    rows: Rows
    frame: Any
    pos_label: Any
    expected: Any


def labeled(rows: Rows, pos_label: Any, missing_label: Any) -> Labeled:
    """The rows, each marked as positive, negative or missing; DuckDB counts marks quicker than it adds up numbers."""
    label = nw.col("label")
    positive = rows.label.stored(pos_label)
    also_missing = [rows.label.stored(one) for one in meaning_missing(missing_label)]
    gap = rows.label.gap(label)
    for one in also_missing:
        gap = gap if one is None else gap | (label == one)

    def marked(value: Any) -> nw.Expr:
        return nw.when(gap & ~gap if value is None else label == value).then(MARK)

    frame = rows.frame.with_columns(missing=nw.when(gap).then(MARK), positive=marked(positive))
    expected = _expected(rows, frame, positive, also_missing)
    frame = frame.with_columns(negative=marked(expected))
    return Labeled(rows, frame, pos_label, expected)


def classes_found(source: Labeled, tally: Tally) -> list[Any]:
    """The labels that occur: the first few, in their order, besides `pos_label`, and `pos_label` at the end."""
    count = {name: float(getattr(tally, name).sum()) for name in ("rows", "positive", "negative", "missing")}
    others = count["rows"] - count["positive"] - count["missing"]
    found = []
    if others > 0 and count["negative"] == others:
        found = [source.rows.label.original(source.expected)]
    elif others > 0:
        few = collected(_others(source.frame).select("label").unique().sort("label").head(MOST_LABELS))
        found = [source.rows.label.original(one) for one in few["label"].to_list()]
    return [*found, *([source.pos_label] if count["positive"] > 0 else [])]


def _expected(rows: Rows, frame: Any, positive: Any, also_missing: Sequence[Any]) -> Any:
    """The label that is probably the negative one. A wrong guess costs a second look at the rows, and no more."""
    kind = rows.label.kind
    if kind == "places":
        return next((float(p) for p in range(len(rows.label.places)) if p not in (positive, *also_missing)), None)
    if kind == "truth":
        return None if positive is None else 1.0 - positive
    if kind != "text" and positive == 1 and 0 not in also_missing:
        return rows.label.stored(0)
    first = collected(_others(frame).select("label").head(1))["label"].to_list()
    return rows.label.stored(rows.label.original(first[0])) if first else None


def _others(frame: Any) -> Any:
    return frame.filter(nw.col("missing").is_null() & nw.col("positive").is_null())
