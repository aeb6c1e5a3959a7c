"""One GROUP BY over rows with the scores of several models: cells alike in all of them, counted by label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.exceptions import InputError
from darkmetrics.frames.bucket_query import NO_BUCKET, with_bucket
from darkmetrics.frames.checks import check_weights
from darkmetrics.frames.collecting import collected, numbers
from darkmetrics.frames.counting import buckets_wanted
from darkmetrics.frames.group_cells import Tally
from darkmetrics.frames.labels import classes_found, labelled
from darkmetrics.frames.roles import ColumnNames, read_roles, title
from darkmetrics.frames.sources import are_text, files_given, lazy_frame, reading
from darkmetrics.frames.texts import read_text

# Rows whose scores are counted as they are; beyond that they go into buckets, which are fewer for more models.
_MOST_EXACT, _MOST_CELLS = 1 << 17, 1 << 22
_BUCKETS = {2: 512, 3: 128}
_FEWEST = 32


@dataclass(frozen=True)
class JointlyCounted:
    """Cells of several scores: models x cells where both count."""

    score: FloatArray
    decision: BoolArray
    positives: IntArray
    negatives: IntArray
    missing: IntArray
    weight: FloatArray | None
    labels: list[Any]
    buckets: int | None


def count_joint_cells(
    frame: Any,
    label: str,
    scores: Mapping[str, str],
    thresholds: tuple[float, ...],
    *,
    weight: str | None = None,
    pos_label: Any = 1,
    missing_label: Any = None,
    buckets: str | int = "auto",
) -> JointlyCounted:
    """The cells of a frame; `scores` has the column of each model.

    The engine that holds the rows counts them in one GROUP BY by label, decisions and scores: as they are where rows
    are few, else by a bucket of each, whose mean stands for it.
    """
    wanted = buckets_wanted(buckets)
    names = list(scores.values())
    columns = ColumnNames(label, names[0], weight=weight)
    files = files_given(frame)
    with reading(files):
        if files is not None and are_text(files):
            found = lazy_frame(read_text(files, columns, tuple(names[1:]), None, pos_label, missing_label))
        else:
            found = lazy_frame(frame if files is None else files, [*columns.given().values(), *names[1:]])
        try:
            rows = read_roles(found, columns, tuple(names[1:]), None, None)
        except InputError as error:  # in the word of the caller
            here = {title(part, name): title("scores", name) for part in ("score", "by") for name in names}
            raise error.renamed({"score": "scores", "by": "scores", **here}) from None
        if rows.count == 0:
            raise InputError("frame: no rows. A comparison needs at least one.")
        source = labelled(rows, pos_label, missing_label)
        frame = source.frame
        schema = frame.collect_schema()
        places = ["score", *(f"by {i}" for i in range(len(names) - 1))]
        for place, name in zip(places, names, strict=True):
            if place in rows.keys and (rows.keys[place][1] is not None or not schema[place].is_numeric()):
                raise InputError.about(title("scores", name), f"has type {schema[place]}. Expected numbers; cast it.")
        small = rows.count is not None and rows.count <= _MOST_EXACT
        number = wanted if isinstance(wanted, int) else None
        if wanted == "auto" and not small:
            number = _BUCKETS.get(len(names), _FEWEST)
        keys = [] if weight is None else ["weight"]
        sums: dict[str, Any] = {name: nw.col(name).sum() for name in ("positive", "negative", "missing")}
        for i, (place, cut) in enumerate(zip(places, thresholds, strict=True)):
            value = nw.col(place).cast(nw.Float64)
            frame = frame.with_columns(value.alias(f"value {i}"), (value >= cut).alias(f"decision {i}"))
            if number is not None:
                frame = with_bucket(frame.with_columns(score=nw.col(f"value {i}")), number)
                frame = frame.with_columns(nw.col("bucket").alias(f"bucket {i}")).drop("bucket")
                keys += [f"bucket {i}", f"decision {i}"]
                sums[f"value {i}"] = nw.col(f"value {i}").sum()
            else:
                keys += [f"value {i}", f"decision {i}"]
        aggregates = [value.alias(f"sum {name}") for name, value in sums.items()]
        table = collected(frame.group_by(*keys).agg(nw.len().alias("rows"), *aggregates).head(_MOST_CELLS + 1))
        if len(table) > _MOST_CELLS:
            raise InputError(
                f"buckets: more than {_MOST_CELLS:,} cells of all scores together. Say a smaller number of buckets."
            )
        count = numbers(table, "rows")
        marks = {name: numbers(table, f"sum {name}") for name in ("positive", "negative", "missing")}
        given = {} if weight is None else {"weight": numbers(table, "weight")}
        positive, negative, missing = marks.values()
        tally = Tally(given, {}, count, positive, negative, missing)
        if weight is not None:
            check_weights(columns, tally)
        score, decision = [], []
        for i, name in enumerate(names):
            own = numbers(table, f"bucket {i}" if number is not None else f"value {i}")
            bad = own == NO_BUCKET if number is not None else ~np.isfinite(own)
            if bad.any():
                raise InputError.about(
                    title("scores", name),
                    f"{int(count[bad].sum()):,} of {int(count.sum()):,} values are missing or not finite. Scores must "
                    "be finite; drop or fill those rows.",
                )
            decided = numbers(table, f"decision {i}") > 0.5
            if number is not None:
                # The mean of all rows of the bucket on this side of the threshold: they are ties.
                _, code = np.unique(2.0 * own + decided, return_inverse=True)
                own = (np.bincount(code, numbers(table, f"sum value {i}")) / np.bincount(code, count))[code]
            score.append(own)
            decision.append(decided)
        return JointlyCounted(
            score=np.stack(score),
            decision=np.stack(decision),
            positives=positive.astype(np.int64),
            negatives=negative.astype(np.int64),
            missing=missing.astype(np.int64),
            weight=given.get("weight"),
            labels=classes_found(source, tally),
            buckets=number,
        )
