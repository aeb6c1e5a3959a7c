"""From the rows of a GROUP BY to the cells of each group: engines may tell apart what is one key (0.0 and -0.0)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics.frames.collecting import coded, numbers
from darkmetrics.frames.roles import Rows, numbered
from darkmetrics.frames.strata import stratum_number


@dataclass(frozen=True)
class Counted:
    """Cells as the engine counted them, sorted by group and then by score.

    With several score columns, `score`, `decision`, `low` and `high` have a row for each column.

    In bins, `score` is the mean score of the rows of a bin on one side of the threshold, and `low` and `high` are
    the smallest and the largest of these scores: the same for all cells that differ only in weight, stratum, age or
    given decision.
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
    age: IntArray | None = None
    propensity: FloatArray | None = None
    score_bins: int | None = None
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
    spreads: Sequence[Spread] = ()  # of each score; none: scores are keys
    chance: FloatArray | None = None
    bad: FloatArray | None = None

    @property
    def one_score_each(self) -> bool:
        """Whether bins have lost nothing: one score in each cell, and no probabilities that were averaged."""
        if len(self.spreads) > 1:
            return False  # other cells of a bin may hold other scores
        return not self.spreads or (self.chance is None and np.array_equal(self.spreads[0].low, self.spreads[0].high))


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
        elif key == "stratum" and rows.stratum is not None and rows.stratum.kind in ("text", "places"):
            codes, strata = coded(table[key])
            arrays[key] = np.array([stratum_number(rows.stratum.original(value)) for value in strata])[codes]
        else:
            arrays[key] = numbers(table, key)
    sums = {name.removeprefix("sum "): numbers(table, name) for name in table.columns if name.startswith("sum ")}
    spreads = [
        Spread(*(sums.pop(numbered(name, i)) for name in ("low", "high", "total")))
        for i in range(sum(key.startswith("bin") for key in keys))
    ]
    return Tally(keys=arrays, values=values, rows=numbers(table, "rows"), spreads=spreads, **sums)


def merged(
    tally: Tally, decisions: Sequence[BoolArray], score_bins: int | None, rows: Rows, labels: list[Any], *, split: bool
) -> Counted:
    """Return the cells of all groups; `split` if predictions are given and do not follow from the score."""
    n_scores = len(decisions)
    if tally.spreads and tally.one_score_each:
        exact = {key: values for key, values in tally.keys.items() if key != "bin"} | {"score": tally.spreads[0].low}
        tally = replace(tally, keys=exact, spreads=())
    binned = bool(tally.spreads)
    group, group_keys = _groups(tally, rows)
    positions: list[AnyArray] = [
        tally.keys[numbered("bin", i)].astype(np.int64) if binned else tally.keys[numbered("score", i)] + 0.0
        for i in range(n_scores)
    ]
    weight = tally.keys.get("weight")
    if weight is not None and bool(np.all(weight == 1.0)):
        weight = None
    chance = tally.keys.get("probability")
    integer_keys = ("stratum", "age")
    kinds: dict[str, Any] = {name: tally.keys[name].astype(np.int64) for name in integer_keys if name in tally.keys}
    kinds |= {"propensity": tally.keys["propensity"]} if "propensity" in tally.keys else {}
    ties: list[AnyArray] = list(reversed(kinds.values()))
    ties += decisions if split else []
    ties += [] if weight is None else [weight]
    ties += [] if chance is None else [np.where(np.isnan(chance), -1.0, chance)]
    # A bin that the threshold cuts becomes two cells.
    sides = [[decision] if binned and not split else [] for decision in decisions]
    for side, position in zip(reversed(sides), reversed(positions), strict=True):
        ties += [*side, position]
    keys = _joined([*ties, group])
    order = _order(keys)
    starts = np.flatnonzero(_changes([key[order] for key in keys]))

    def added(values: AnyArray) -> AnyArray:
        return np.add.reduceat(values[order], starts)

    first = order[starts]
    positives, missing, total = (
        np.rint(added(v)).astype(np.int64) for v in (tally.positive, tally.missing, tally.rows)
    )
    cells = Counted(
        score=_stacked([position[first].astype(np.float64) for position in positions]),
        decision=_stacked([decision[first] for decision in decisions]),
        positives=positives,
        negatives=total - positives - missing,
        missing=missing,
        weight=None if weight is None else weight[first],
        probability=None if chance is None else chance[first],
        **{name: kind[first] for name, kind in kinds.items()},
        score_bins=score_bins if binned else None,
        labels=labels,
        keys=group_keys,
        starts=np.append(np.searchsorted(group[first], np.arange(group.max() + 1)), first.size),
    )
    if not binned:
        return cells
    if tally.chance is not None:
        with np.errstate(invalid="ignore"):
            cells = replace(cells, probability=np.minimum(added(tally.chance) / missing, 1.0))
    ends = []
    for side, position, spread in zip(sides, positions, tally.spreads, strict=True):
        sorted_keys = [key[order] for key in _joined([*side, position, group])]
        sorted_spread = Spread(*(values[order] for values in (spread.low, spread.high, spread.total)))
        ends.append([values[starts] for values in _summarize_ties(sorted_keys, sorted_spread, tally.rows[order])])
    score, low, high = (_stacked(columns) for columns in zip(*ends, strict=True))
    if tally.chance is None and np.array_equal(low, high):
        return replace(cells, score=score, score_bins=None)
    return replace(cells, score=score, low=low, high=high)


def _summarize_ties(
    keys: Sequence[AnyArray], spread: Spread, rows: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the mean, smallest and largest score of all rows that share the keys of each entry."""
    order = _order(keys)
    starts = np.flatnonzero(_changes([key[order] for key in keys]))
    low, high = np.minimum.reduceat(spread.low[order], starts), np.maximum.reduceat(spread.high[order], starts)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = np.add.reduceat(spread.total[order], starts) / np.add.reduceat(rows[order], starts)
    mean = np.where(np.isfinite(mean), mean, low / 2.0 + high / 2.0)  # sums of the largest floats
    tie = np.empty(rows.size, dtype=np.int64)
    tie[order] = np.repeat(np.arange(starts.size), np.diff(starts, append=rows.size))
    return (np.clip(mean, low, high) + 0.0)[tie], (low + 0.0)[tie], (high + 0.0)[tie]


def _stacked(columns: Sequence[AnyArray]) -> AnyArray:
    """Return a row for each score column, or the only one as it is."""
    return columns[0] if len(columns) == 1 else np.stack(columns)


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
