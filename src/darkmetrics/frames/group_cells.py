"""From the rows of a GROUP BY to the cells of each group: engines may tell apart what is one key (0.0 and -0.0)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics.frames.collecting import coded, numbers
from darkmetrics.frames.roles import Rows


@dataclass(frozen=True)
class Counted:
    """Cells as the engine counted them, sorted by group and then by score.

    In buckets, `score` is the mean score of the rows of a bucket on one side of the threshold, and `low` and `high` are
    the smallest and the largest of these scores: the same for all cells that differ only in weight, stratum or given
    decision.
    """

    score: FloatArray
    decision: BoolArray
    positives: IntArray
    negatives: IntArray
    missing: IntArray
    weight: FloatArray | None = None
    probability: FloatArray | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None
    stratum: IntArray | None = None
    propensity: FloatArray | None = None
    buckets: int | None = None
    settled: bool = False  # only positives arrive, and rows that are older than the maturity are negative
    labels: list[Any] = field(default_factory=list)
    keys: Mapping[str, list[Any]] = field(default_factory=dict)
    starts: IntArray = field(default_factory=lambda: np.zeros(1, dtype=np.int64))


@dataclass(frozen=True)
class Spread:
    """Scores of the rows that went into one entry: the smallest, the largest, and their sum."""

    low: FloatArray
    high: FloatArray
    total: FloatArray


@dataclass(frozen=True)
class Tally:
    """What a pass found, one entry per row of its answer: keys, and sums under their names."""

    keys: Mapping[str, AnyArray]
    values: Mapping[str, list[Any]]  # of keys that are places in a list
    rows: FloatArray
    positive: FloatArray
    negative: FloatArray
    missing: FloatArray
    spread: Spread | None = None  # None: the score is a key
    chance: FloatArray | None = None
    bad: FloatArray | None = None

    @property
    def one_score_each(self) -> bool:
        """Whether buckets have lost nothing: one score in each cell, and no probabilities that were averaged."""
        return self.spread is None or (self.chance is None and np.array_equal(self.spread.low, self.spread.high))


def tallied(table: Any, rows: Rows, keys: list[str]) -> Tally:
    """The answer of an engine as arrays."""
    arrays: dict[str, AnyArray] = {}
    values: dict[str, list[Any]] = {}
    for key in keys:
        if key in rows.keys:
            arrays[key], values[key] = coded(table[key])
        elif key == "decision" and rows.decision is not None:
            arrays[key], found = coded(table[key])
            values[key] = [rows.decision.original(value) for value in found]
        else:
            arrays[key] = numbers(table, key)
    sums = {name.removeprefix("sum "): numbers(table, name) for name in table.columns if name.startswith("sum ")}
    spread = Spread(*(sums.pop(name) for name in ("low", "high", "total"))) if "low" in sums else None
    return Tally(keys=arrays, values=values, rows=numbers(table, "rows"), spread=spread, **sums)


def merged(
    tally: Tally, decision: BoolArray, buckets: int | None, rows: Rows, labels: list[Any], *, split: bool
) -> Counted:
    """The cells of all groups; `split` when decisions were given and are no function of the score."""
    if tally.spread is not None and tally.one_score_each:
        exact = {key: values for key, values in tally.keys.items() if key != "bucket"} | {"score": tally.spread.low}
        tally = replace(tally, keys=exact, spread=None)
    spread = tally.spread
    if spread is None:
        buckets = None
    group, group_keys = _groups(tally, rows)
    place = tally.keys["score"] + 0.0 if spread is None else tally.keys["bucket"].astype(np.int64)
    weight = tally.keys.get("weight")
    if weight is not None and bool(np.all(weight == 1.0)):
        weight = None
    chance = tally.keys.get("probability")
    stratum = tally.keys["stratum"].astype(np.int64) if "stratum" in tally.keys else None
    propensity = tally.keys.get("propensity")
    ties: list[AnyArray] = [kind for kind in (propensity, stratum) if kind is not None]
    ties += [decision] if split else []
    ties += [] if weight is None else [weight]
    ties += [] if chance is None else [np.where(np.isnan(chance), -1.0, chance)]
    ties += [] if split or spread is None else [decision]
    keys = _joined([*ties, place, group])
    order = _order(keys)
    starts = np.flatnonzero(_changes([key[order] for key in keys]))

    def added(values: AnyArray) -> AnyArray:
        return np.add.reduceat(values[order], starts)

    first = order[starts]
    positives, missing, total = (
        np.rint(added(v)).astype(np.int64) for v in (tally.positive, tally.missing, tally.rows)
    )
    cells = Counted(
        score=place[first].astype(np.float64),
        decision=decision[first],
        positives=positives,
        negatives=total - positives - missing,
        missing=missing,
        weight=None if weight is None else weight[first],
        probability=None if chance is None else chance[first],
        stratum=None if stratum is None else stratum[first],
        propensity=None if propensity is None else propensity[first],
        buckets=buckets,
        labels=labels,
        keys=group_keys,
        starts=np.append(np.searchsorted(group[first], np.arange(group.max() + 1)), first.size),
    )
    if spread is None:
        return cells
    if tally.chance is not None:
        with np.errstate(invalid="ignore"):
            cells = replace(cells, probability=np.minimum(added(tally.chance) / missing, 1.0))
    ties_of_cells = np.flatnonzero(_changes([*([] if split else [cells.decision]), cells.score, group[first]]))
    tie, size = starts[ties_of_cells], np.diff(np.append(ties_of_cells, starts.size))
    low, high = np.minimum.reduceat(spread.low[order], tie), np.maximum.reduceat(spread.high[order], tie)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.add.reduceat(spread.total[order], tie) / np.add.reduceat(tally.rows[order], tie)
    mean = np.where(np.isfinite(mean), mean, low / 2.0 + high / 2.0)  # sums of the largest floats
    mean = np.clip(mean, low, high) + 0.0
    return replace(cells, score=np.repeat(mean, size), low=np.repeat(low + 0.0, size), high=np.repeat(high + 0.0, size))


def _groups(tally: Tally, rows: Rows) -> tuple[IntArray, dict[str, list[Any]]]:
    """The group of each entry, numbered in the order of the keys, and the keys of each group."""
    group = np.zeros(tally.rows.size, dtype=np.int64)
    if not rows.keys:
        return group, {}
    for key in rows.keys:
        # Numbered anew after each key, so that the numbers stay small.
        group = _renumbered(group * len(tally.values[key]) + tally.keys[key])
    first = np.empty(group.max() + 1, dtype=np.int64)
    first[group] = np.arange(group.size)  # some entry of each group: all have the same keys
    found = {}
    for key, (name, _) in rows.keys.items():
        values = [rows.key_value(key, value) for value in tally.values[key]]
        found[name] = [values[code] for code in tally.keys[key][first]]
    return group, found


def _renumbered(codes: IntArray) -> IntArray:
    """The same order with numbers 0, 1, ... that all occur."""
    if int(codes.max()) < 2**24:  # counting is quicker than sorting
        found = np.bincount(codes) > 0
        return (np.cumsum(found) - 1)[codes]
    return np.unique(codes, return_inverse=True)[1]


def distinct(codes: IntArray) -> IntArray:
    """The numbers that occur, in order; for numbers that are close together, since counting is quicker than sorting."""
    first = int(codes.min(initial=0))
    return np.flatnonzero(np.bincount(codes - first)) + first


def _joined(keys: Sequence[AnyArray]) -> list[AnyArray]:
    """Sort keys, the last of which counts most, with neighbours that are whole numbers made one: that sorts quicker.

    Whole numbers are counted from 0.
    """
    joined: list[AnyArray] = []
    for key in keys:
        whole = key.dtype.kind in "bi"
        number = key.astype(np.int64) - int(key.min()) if whole else key
        if whole and joined and joined[-1].dtype.kind == "i":
            span = int(joined[-1].max()) + 1
            if (int(number.max()) + 1) * span < 2**62:
                joined[-1] = number * span + joined[-1]
                continue
        joined.append(number)
    return joined


def _order(keys: Sequence[AnyArray]) -> IntArray:
    """The order of entries by their keys, the last of which counts most; those that are alike stay as they are.

    A single key of whole numbers has none below 0 (`_joined`).
    """
    if len(keys) > 1 or keys[0].dtype.kind != "i":
        return np.lexsort(keys)
    # NumPy counts numbers of 16 bits and compares longer ones, which takes three times as long.
    order, rest = np.argsort(keys[0].astype(np.uint16), kind="stable"), keys[0] >> 16
    while rest.any():
        order = order[np.argsort(rest[order].astype(np.uint16), kind="stable")]
        rest = rest >> 16
    return order


def _changes(columns: Sequence[AnyArray]) -> BoolArray:
    """Where an entry differs from the one before it; the first does."""
    new = np.zeros(columns[0].size, dtype=np.bool_)
    new[0] = True
    for column in columns:
        new[1:] |= column[1:] != column[:-1]
    return new
