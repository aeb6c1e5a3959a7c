"""One GROUP BY over rows with the scores of several models: cells alike in all of them, counted by label."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.bucket_grid import FEWEST_BUCKETS
from darkmetrics.exceptions import InputError
from darkmetrics.frames.bucket_query import NO_BUCKET, with_bucket
from darkmetrics.frames.checks import check_weights
from darkmetrics.frames.collecting import collected, numbers
from darkmetrics.frames.counting import MOST_EXACT, buckets_wanted
from darkmetrics.frames.group_cells import Spread, Tally
from darkmetrics.frames.labels import Labelled, classes_found, labelled
from darkmetrics.frames.roles import ColumnNames, read_roles, title
from darkmetrics.frames.sources import are_text, files_given, lazy_frame, reading
from darkmetrics.frames.texts import read_text

# Cells that this process holds at most. That many rows fit in any buckets; of more rows, scores are told apart as
# finely as fits, from so many buckets of two models, three, or more on.
_MOST_CELLS = 1 << 22
_FINE = 1 << 16
_BUCKETS, _BUCKETS_OF_MORE = {2: 1 << 13, 3: 1 << 10}, 1 << 8
# Where distinct scores are counted to guess how many there are in all: so many stretches of so many buckets.
_STRETCHES, _STRETCH = 6, 3


@dataclass(frozen=True)
class JointlyCounted:
    """Cells of several scores: models x cells where both count.

    In buckets, `score` is the mean score of the rows of a bucket on one side of the threshold, and `low` and `high` are
    the smallest and the largest of these scores.
    """

    score: FloatArray
    decision: BoolArray
    positives: IntArray
    negatives: IntArray
    missing: IntArray
    weight: FloatArray | None
    labels: list[Any]
    buckets: int | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None


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

    The engine that holds the rows counts them in one GROUP BY by label, decisions and scores: as they are where there
    are at most as many rows as `count_cells` takes as they are, else by a bucket of each, whose mean stands for it.
    Where distinct scores seem to fit after all, or buckets do not, there is another.
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
        counter = _Counter(source, columns, names, places, thresholds)
        if wanted == "exact":
            return counter.result(counter.exact(_MOST_CELLS), None)
        if isinstance(wanted, int):
            return counter.result(counter.bucketed(wanted), wanted)
        number = counter.rows()
        if number <= MOST_EXACT:
            return counter.result(counter.exact(_MOST_CELLS), None)
        buckets = _FINE if number <= _MOST_CELLS else _BUCKETS.get(len(names), _BUCKETS_OF_MORE)
        table = counter.bucketed(buckets, or_none=True)
        while table is None:
            buckets //= 2
            table = counter.bucketed(buckets, or_none=buckets > FEWEST_BUCKETS)
        if counter.exact_fits(table):
            exact = counter.exact(MOST_EXACT, or_none=True)
            if exact is not None:
                return counter.result(exact, None)
        return counter.result(table, buckets)


class _Counter:
    """The passes over one frame."""

    def __init__(
        self,
        source: Labelled,
        columns: ColumnNames,
        names: list[str],
        places: list[str],
        thresholds: tuple[float, ...],
    ) -> None:
        self.source, self.columns, self.names = source, columns, names
        self.frame = source.frame
        self.keys = [] if columns.weight is None else ["weight"]
        for i, (place, cut) in enumerate(zip(places, thresholds, strict=True)):
            value = nw.col(place).cast(nw.Float64)
            self.frame = self.frame.with_columns(value.alias(f"value {i}"), (value >= cut).alias(f"decision {i}"))
            self.keys.append(f"decision {i}")

    @property
    def values(self) -> list[str]:
        """The columns of the scores."""
        return [f"value {i}" for i in range(len(self.names))]

    def rows(self) -> int:
        """How many rows there are; it takes a query, though no GROUP BY, where the engine has not said it."""
        known = self.source.rows.count
        return int(numbers(collected(self.frame.select(nw.len().alias("rows"))), "rows")[0]) if known is None else known

    def exact(self, most: int, *, or_none: bool = False) -> Any:
        """Cells of distinct scores; None, or an error, if there are more than `most`."""
        return self._counted(self.frame, self.values, {}, most, or_none)

    def bucketed(self, buckets: int, *, or_none: bool = False) -> Any:
        """Cells of a bucket of each score; None, or an error, if there are too many."""
        frame, found = self.frame, []
        sums: dict[str, Any] = {}
        for i, name in enumerate(self.values):
            frame = with_bucket(frame.with_columns(score=nw.col(name)), buckets)
            frame = frame.with_columns(nw.col("bucket").alias(f"bucket {i}")).drop("bucket")
            found.append(f"bucket {i}")
            value = nw.col(name)
            sums |= {f"low {i}": value.min(), f"high {i}": value.max(), f"total {i}": value.sum()}
        return self._counted(frame, found, sums, _MOST_CELLS, or_none)

    def _counted(self, frame: Any, keys: list[str], more: dict[str, Any], most: int, or_none: bool) -> Any:
        sums = {name: nw.col(name).count() for name in ("positive", "negative", "missing")} | more
        aggregates = [value.alias(f"sum {name}") for name, value in sums.items()]
        query = frame.group_by(*self.keys, *keys).agg(nw.len().alias("rows"), *aggregates)
        table = collected(query.head(most + 1))
        if len(table) <= most:
            return table
        if or_none:
            return None
        raise InputError(f"buckets: more than {most:,} cells of all scores together. Say a smaller number of buckets.")

    def exact_fits(self, table: Any) -> bool:
        """Whether cells of distinct scores are few enough, as far as a look into a few buckets of the first tells."""
        if len(table) > MOST_EXACT:
            return False
        place, low, high = (numbers(table, name) for name in ("bucket 0", "sum low 0", "sum high 0"))
        filled = np.unique(place)
        value = nw.col("value 0")
        condition, looked_at = None, 0
        places = (np.arange(_STRETCHES) + 0.5) / _STRETCHES * filled.size
        for first in np.unique(places.astype(np.int64)):
            stretch = filled[first : first + _STRETCH]
            inside = (place >= stretch[0]) & (place <= stretch[-1])
            within = (value >= float(low[inside].min())) & (value <= float(high[inside].max()))
            condition = within if condition is None else condition | within
            looked_at += int(inside.sum())
        sample = self.frame.filter(condition).group_by(*self.keys, *self.values).agg(nw.len().alias("rows"))
        found = len(collected(sample.head(MOST_EXACT + 1)))
        return found / looked_at * len(table) <= MOST_EXACT

    def result(self, table: Any, buckets: int | None) -> JointlyCounted:
        """What the caller gets, in an order that does not depend on the engine."""
        count = numbers(table, "rows")
        if not count.size:
            raise InputError("frame: no rows. A comparison needs at least one.")
        positive, negative, missing = (numbers(table, f"sum {name}") for name in ("positive", "negative", "missing"))
        given = {} if self.columns.weight is None else {"weight": numbers(table, "weight")}
        tally = Tally(given, {}, count, positive, negative, missing)
        if self.columns.weight is not None:
            check_weights(self.columns, tally)
        scores, lows, highs, decisions = [], [], [], []
        for i, name in enumerate(self.names):
            own = numbers(table, f"value {i}" if buckets is None else f"bucket {i}")
            bad = ~np.isfinite(own) if buckets is None else own == NO_BUCKET
            if bad.any():
                raise InputError.about(
                    title("scores", name),
                    f"{int(count[bad].sum()):,} of {int(count.sum()):,} values are missing or not finite. Scores must "
                    "be finite; drop or fill those rows.",
                )
            decided = numbers(table, f"decision {i}") > 0.5
            decisions.append(decided)
            if buckets is None:
                scores.append(own + 0.0)  # -0.0 and 0.0 are one score
                continue
            spread = Spread(*(numbers(table, f"sum {name} {i}") for name in ("low", "high", "total")))
            mean, low, high = _of_ties(2.0 * own + decided, spread, count)
            scores.append(mean)
            lows.append(low)
            highs.append(high)
        weight = given.get("weight")
        order = np.argsort(scores[0])
        if np.any(np.diff(scores[0][order]) == 0.0):
            order = np.lexsort([*([] if weight is None else [weight]), *reversed(scores)])
        # If every bucket turns out to hold one score, scores are exact after all.
        apart = bool(lows) and not np.array_equal(lows, highs)
        return JointlyCounted(
            score=np.stack([one[order] for one in scores]),
            decision=np.stack([one[order] for one in decisions]),
            positives=positive[order].astype(np.int64),
            negatives=negative[order].astype(np.int64),
            missing=missing[order].astype(np.int64),
            weight=None if weight is None else weight[order],
            labels=classes_found(self.source, tally),
            buckets=buckets if apart else None,
            low=np.stack([one[order] for one in lows]) if apart else None,
            high=np.stack([one[order] for one in highs]) if apart else None,
        )


def _of_ties(place: FloatArray, spread: Spread, count: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean, smallest and largest score of all rows at the place of each cell: these are ties."""
    _, code = np.unique(place, return_inverse=True)
    order = np.argsort(code, kind="stable")
    starts = np.flatnonzero(np.diff(code[order], prepend=-1))
    low, high = np.minimum.reduceat(spread.low[order], starts), np.maximum.reduceat(spread.high[order], starts)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.bincount(code, spread.total) / np.bincount(code, count)
    mean = np.where(np.isfinite(mean), mean, low / 2.0 + high / 2.0)  # sums of the largest floats
    return (np.clip(mean, low, high) + 0.0)[code], (low + 0.0)[code], (high + 0.0)[code]
