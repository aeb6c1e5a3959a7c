"""Tables of cells that are added up, taken from each other, put into bins, and told which labels have arrived.

What an engine has counted becomes such tables here too: one for each group, or one in which rows that go together stay
apart.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics._kernels.bin_grid import MIN_BINS, bin_index, nested_number
from darkmetrics.data.ages import describe_age, settled
from darkmetrics.data.cells import COUNTS, KINDS, Cells, count_type, group_rows
from darkmetrics.exceptions import InputError
from darkmetrics.wording import named

_COLUMNS = ("score", "decision", *COUNTS, "weight", "probability", "low", "high", *KINDS)


def cells_by_group(counted: frames.Counted) -> list[Cells]:
    """The cells of each group."""
    columns = {name: getattr(counted, name) for name in _COLUMNS}
    # Ties in the order that arrays lead to, so that the same rows make the same table.
    chance = None if counted.score_bins else _nan_first(counted.probability)
    kinds = [*(getattr(counted, name) for name in reversed(KINDS)), counted.decision, counted.weight, chance]
    keys = [*(kind for kind in kinds if kind is not None), counted.score, _group_of(counted)]
    if not _in_order(keys):
        order = np.lexsort(keys)
        columns = {name: None if array is None else array[order] for name, array in columns.items()}
    columns["weight"] = _weight(columns["weight"])
    rows = np.add.reduceat(columns["positives"] + columns["negatives"] + columns["missing"], counted.starts[:-1])
    found = []
    for first, last, n in zip(counted.starts[:-1].tolist(), counted.starts[1:].tolist(), rows.tolist(), strict=True):
        own: dict[str, Any] = {name: None if a is None else a[first:last] for name, a in columns.items()}
        own |= {name: own[name].astype(count_type(n)) for name in COUNTS}
        found.append(settled(Cells(**own)) if counted.settled else Cells(**own))
    return found


def cells_of_clusters(counted: frames.Counted, *, split: bool) -> tuple[Cells, IntArray]:
    """The cells of all groups in one table, and the group of each: rows of different ones stay apart.

    `split`: decisions were given and are no function of the score.
    """
    own, columns = _group_of(counted), {name: getattr(counted, name) for name in _COLUMNS}
    cells, kept = group_rows(Cells(**columns | {"weight": _weight(columns["weight"])}), split=split, apart=own)
    return cells, own[kept]


def _group_of(counted: frames.Counted) -> IntArray:
    return np.repeat(np.arange(counted.starts.size - 1), np.diff(counted.starts))


def _in_order(keys: Sequence[AnyArray]) -> bool:
    """Whether entries are sorted by their keys, the last of which counts most; a look is quicker than sorting again."""
    tied = np.ones(max(keys[0].size - 1, 0), dtype=np.bool_)
    for key in reversed(keys):
        if np.any(tied & (key[1:] < key[:-1])):
            return False
        tied &= key[1:] == key[:-1]
    return True


def _weight(weight: AnyArray | None) -> AnyArray | None:
    """Weights that are all one are none."""
    return None if weight is None or bool(np.all(weight == 1.0)) else weight


def _nan_first(chance: FloatArray | None) -> FloatArray | None:
    return None if chance is None else np.where(np.isnan(chance), -1.0, chance)


_LABELED = {"positives": "positive", "negatives": "negative", "missing": "unlabeled"}


def check_no_groups(what: str, *groups: IntArray | None) -> None:
    """Sets whose rows belong to groups stay as they are: cells of two sets do not say which groups are the same."""
    if any(one is not None for one in groups):
        raise InputError(
            "clusters",
            f"a set with clusters cannot be {what}",
            "Counts do not store which clusters of two sets are the same.",
            f"Build one set from all rows, or leave {named('clusters')} out.",
        )


def bin_number(score_bins: Any) -> int:
    """A number of bins as given by a user: the power of two at or below it."""
    whole = isinstance(score_bins, (int, np.integer)) and not isinstance(score_bins, bool)
    if not whole or score_bins < MIN_BINS:
        raise InputError("score_bins", f"expected a whole number of at least {MIN_BINS}, got {score_bins!r}")
    return nested_number(score_bins)


def merged(
    tables: Sequence[Cells], score_bins: int | None, threshold: float | None, apart: IntArray | None = None
) -> tuple[Cells, IntArray]:
    """All rows of the tables in one: exactly, or with scores in so many bins.

    Cells with different numbers in `apart`, a number for each cell of the tables one after the other, stay apart. Also
    returns, for each cell of the one table, the place of one that went into it.
    """
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(table, name) for table in tables]) for name in ("score", "decision", *COUNTS)
    }
    fills: dict[str, float] = {"weight": 1.0, "probability": np.nan}
    for name, fill in fills.items():
        if any(getattr(table, name) is not None for table in tables):
            columns[name] = np.concatenate([_or_fill(getattr(table, name), table, fill) for table in tables])
    for name in tables[0].kinds():  # and so have the others
        columns[name] = np.concatenate([getattr(table, name) for table in tables])
    if score_bins is None:
        return group_rows(Cells(**columns), split=True, apart=apart)
    for i, name in enumerate(("low", "high")):
        columns[name] = np.concatenate([ends(table)[i] for table in tables])
    return _gridded(Cells(**columns), score_bins, threshold, apart)


def each_once(cells: Cells) -> Cells:
    """The same table with cells that are alike added up, which some tables keep apart."""
    new = first_of_a_kind(cells)
    return cells if new.all() else added_up(cells, new)


def first_of_a_kind(cells: Cells) -> BoolArray:
    """Whether each cell differs from the one before it in more than its counts."""
    new = np.zeros(cells.score.size, dtype=np.bool_)
    chance = None if cells.probability is None else np.where(np.isnan(cells.probability), -1.0, cells.probability)
    for key in (cells.score, cells.decision, cells.weight, chance, *cells.kinds().values()):
        if key is not None:
            new |= _changes(key)
    return new


def added_up(cells: Cells, new: BoolArray) -> Cells:
    """The same table, where each cell that is not `new` is added to the one before it."""
    starts = np.flatnonzero(new)
    counts: dict[str, Any] = {name: np.add.reduceat(getattr(cells, name), starts) for name in COUNTS}
    return replace(cells.take(starts), **counts)


def on_grid(cells: Cells, score_bins: int, threshold: float | None) -> Cells:
    """The same rows with their scores in bins; rows on different sides of the threshold stay apart.

    The score of a bin is the mean over its rows, its probability the mean over those that miss their label.
    """
    return _gridded(cells, score_bins, threshold, None)[0]


def _gridded(cells: Cells, score_bins: int, threshold: float | None, apart: IntArray | None) -> tuple[Cells, IntArray]:
    """Cells on the grid, and for each of them the place of one that went into it."""
    if not cells.score.size:
        return replace(cells, low=cells.score, high=cells.score), np.zeros(0, dtype=np.int64)
    keys = [] if apart is None else [apart]
    keys += _keys(cells, score_bins, threshold, weighted=cells.weight is not None)
    order = np.lexsort(keys)
    place = keys[-1][order]
    changes = _changes(place)
    new = changes.copy()
    for key in keys[:-1]:
        new |= _changes(key[order])
    first, starts = np.flatnonzero(changes), np.flatnonzero(new)
    low, high = (end[order] for end in ends(cells))
    lowest, highest = np.minimum.reduceat(low, first), np.maximum.reduceat(high, first)
    mean = np.clip(_means(cells.score[order], cells.total[order], first), lowest, highest)
    rows = int(cells.total.sum(dtype=np.int64))
    counts = {name: np.add.reduceat(getattr(cells, name)[order], starts, dtype=count_type(rows)) for name in COUNTS}
    probability = None
    if cells.probability is not None:
        missing = cells.missing[order]
        chance = np.where(missing > 0, cells.probability[order], 0.0)
        probability = np.where(counts["missing"] > 0, _means(chance, missing, starts), np.nan)
    bin_id = (np.cumsum(changes) - 1)[starts]
    on_grid = Cells(
        score=mean[bin_id],
        decision=cells.decision[order][starts],
        **counts,
        weight=None if cells.weight is None else cells.weight[order][starts],
        probability=probability,
        low=lowest[bin_id],
        high=highest[bin_id],
        **{name: kind[order][starts] for name, kind in cells.kinds().items()},
    )
    return on_grid, order[starts]


def ends(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Smallest and largest score in each cell."""
    return (cells.score, cells.score) if cells.low is None or cells.high is None else (cells.low, cells.high)


def without(whole: Cells, part: Cells, score_bins: int | None, threshold: float | None) -> Cells:
    """The rows of the first table that are not in the second; both exact, or both on the grid of the bins.

    What the ends of a bin are without the rows taken away is not known: they stay, and hold what is left.
    """
    place = _match(part, whole, score_bins, threshold)
    gone = {name: _at(place, getattr(part, name), whole) for name in COUNTS}
    for name in COUNTS:
        short = _at(place, getattr(part, name), whole, unmatched=True) > np.append(getattr(whole, name), 0)
        if short.any():
            _refuse_too_many(whole, part, place, name, short)
    left = {name: getattr(whole, name) - gone[name] for name in COUNTS}
    score, probability = whole.score, whole.probability
    if score_bins is not None:
        # As distances from the means, which are small: sums of the largest floats would overflow.
        distance = part.total * (part.score - np.append(whole.score, 0.0)[place])
        score = _scores_left(whole, _at(place, part.total, whole), _at(place, distance, whole))
        if probability is not None:
            chance = np.zeros(part.score.size) if part.probability is None else np.nan_to_num(part.probability)
            m, taken = whole.missing, _at(place, part.missing * chance, whole)
            mean = (m * np.nan_to_num(probability) - taken) / np.maximum(left["missing"], 1)
            probability = np.where(gone["missing"] > 0, np.clip(mean, 0.0, 1.0), probability)
            probability = np.where(left["missing"] > 0, probability, np.nan)
    table = replace(whole, score=score, probability=probability, **_typed(left))
    return table.take(np.flatnonzero(table.total))


def _scores_left(whole: Cells, gone: IntArray, distance: FloatArray) -> FloatArray:
    """The mean score of each bin without the rows that go: so many for each cell, so far from its mean in all."""
    starts = np.arange(whole.score.size) if whole.tie_starts is None else whole.tie_starts
    if not starts.size:
        return whole.score
    left = np.add.reduceat(whole.total - gone, starts)
    mean = np.clip(whole.score[starts] - np.add.reduceat(distance, starts) / np.maximum(left, 1), *whole.tie_ends)
    touched = (np.add.reduceat(gone, starts) > 0) & (left > 0)
    return np.repeat(np.where(touched, mean, whole.score[starts]), np.diff(starts, append=whole.score.size))


def with_late_labels(whole: Cells, late: Cells, score_bins: int | None, threshold: float | None) -> Cells:
    """The first table after labels have arrived: the labeled rows of the second were missing theirs in the first."""
    if whole.age is not None:
        raise InputError(
            "late",
            "the rows of the set have ages",
            "Rows are older when their labels have arrived.",
            f"Count the rows again, with a later {named('as_of')}.",
        )
    place = late_places(whole, late, score_bins, threshold)
    positives, negatives = (_at(place, labels, whole) for labels in (late.positives, late.negatives))
    counts = {
        "positives": whole.positives + positives,
        "negatives": whole.negatives + negatives,
        "missing": whole.missing - positives - negatives,
    }
    return replace(whole, **_typed(counts))


def late_places(whole: Cells, late: Cells, score_bins: int | None, threshold: float | None) -> IntArray:
    """The cell of the first table that each cell of the second belongs to, whose labeled rows were missing theirs."""
    place = _match(late, whole, score_bins, threshold)
    arrived = _at(place, late.positives + late.negatives, whole, unmatched=True)
    short = arrived > np.append(whole.missing, 0)
    if short.any():
        at = int(np.argmax(short))
        there = 0 if at == whole.score.size else int(whole.missing[at])
        table, cell = (whole, at) if at < whole.score.size else (late, _first_stranger(late, place))
        n = int(arrived[at]) if at < whole.score.size else int((late.positives + late.negatives)[cell])
        raise InputError(
            "late",
            f"{n:,} {'label' if n == 1 else 'labels'} for {_where(table, cell)}, where {there:,} "
            f"{'is' if there == 1 else 'are'} missing",
            "Labels that arrive belong to rows of this set that had none.",
        )
    return place


def _keys(cells: Cells, score_bins: int | None, threshold: float | None, *, weighted: bool) -> list[AnyArray]:
    """What tells cells apart, in the order in which tables are sorted: the last key first."""
    weight = [_or_fill(cells.weight, cells, 1.0)] if weighted else []
    kinds = reversed(cells.kinds().values())
    if score_bins is None:
        probability = _or_fill(cells.probability, cells, np.nan)
        return [*kinds, cells.decision, *weight, np.where(np.isnan(probability), -1.0, probability), cells.score]
    low = ends(cells)[0]
    place = bin_index(low, score_bins)
    # A threshold makes the decisions; without one they tell rows of a bin apart, but not scores.
    sides = [cells.decision, *weight, place] if threshold is None else [*weight, 2 * place + (low >= threshold)]
    return [*kinds, *sides]


def _match(part: Cells, whole: Cells, score_bins: int | None, threshold: float | None) -> IntArray:
    """The cell of `whole` that each cell of `part` belongs to; the number of cells where there is none."""
    n = whole.score.size
    weighted = whole.weight is not None or part.weight is not None
    pairs = (_keys(cells, score_bins, threshold, weighted=weighted) for cells in (whole, part))
    keys = [np.concatenate(pair) for pair in zip(*pairs, strict=True)]
    order = np.lexsort(keys)  # stable: of equal cells the one of `whole` comes first
    new = np.zeros(order.size, dtype=np.bool_)
    for key in keys:
        new |= _changes(key[order])
    first = order[np.flatnonzero(new)][np.cumsum(new) - 1]
    found = np.empty(order.size, dtype=np.int64)
    found[order] = first
    return np.minimum(found[n:], n)


def _at(place: IntArray, values: AnyArray, whole: Cells, *, unmatched: bool = False) -> AnyArray:
    """Sums of the values over the cells that belong to each cell of `whole`, and over those that belong to none."""
    result = np.zeros(whole.score.size + 1, dtype=np.float64 if values.dtype.kind == "f" else np.int64)
    np.add.at(result, place, values)
    return result if unmatched else result[:-1]


def _refuse_too_many(whole: Cells, part: Cells, place: IntArray, name: str, short: BoolArray) -> None:
    at = int(np.argmax(short))
    cell = int(np.flatnonzero((place == at) & (getattr(part, name) > 0))[0])
    there = 0 if at == whole.score.size else int(getattr(whole, name)[at])
    n = int(getattr(part, name)[cell])
    raise InputError(
        "cells",
        f"{n:,} {_LABELED[name]} {'row' if n == 1 else 'rows'} to take away at {_where(part, cell)}, where the set "
        f"has {there:,}",
        "Only rows that are in a set can be taken out of it.",
    )


def _first_stranger(late: Cells, place: IntArray) -> int:
    labeled = (late.positives + late.negatives) > 0
    return int(np.argmax(labeled & (place == place.max())))


def _where(cells: Cells, cell: int) -> str:
    low, high = (float(end[cell]) for end in ends(cells))
    text = f"score {low!r}" if low == high else f"scores from {low!r} to {high!r}"
    if cells.weight is not None:
        text += f" and weight {float(cells.weight[cell]):g}"
    if cells.stratum is not None:
        text += f" in stratum {frames.stratum_name(int(cells.stratum[cell]))}"
    if cells.ages is not None:
        text += f" {describe_age(cells.ages, cell)}"
    return text if cells.propensity is None else f"{text} with propensity {float(cells.propensity[cell]):g}"


def _typed(counts: dict[str, AnyArray]) -> dict[str, AnyArray]:
    rows = sum(int(count.sum(dtype=np.int64)) for count in counts.values())
    return {name: count.astype(count_type(rows)) for name, count in counts.items()}


def _means(values: FloatArray, counts: AnyArray, starts: IntArray) -> FloatArray:
    """Means over stretches, weighted by counts; a stretch of equal values has that value to the last bit."""
    n = np.add.reduceat(counts, starts, dtype=np.float64)
    share = counts / np.repeat(np.maximum(n, 1.0), np.diff(starts, append=values.size))
    mean = np.add.reduceat(share * values, starts)
    # Values without a count say nothing, but must not hide that the others are equal.
    least = np.minimum.reduceat(np.where(counts > 0, values, np.inf), starts)
    most = np.maximum.reduceat(np.where(counts > 0, values, -np.inf), starts)
    return np.where(n > 0.0, np.where(least == most, least, mean), values[starts])


def _changes(key: AnyArray) -> BoolArray:
    new = np.ones(key.size, dtype=np.bool_)
    new[1:] = key[1:] != key[:-1]
    return new


def _or_fill(values: FloatArray | None, cells: Cells, fill: float) -> FloatArray:
    return np.full(cells.score.size, fill) if values is None else values
