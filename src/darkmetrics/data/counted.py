"""What an engine has counted, as cells: a table per group, or one in which rows that go together stay apart."""

from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, FloatArray, IntArray
from darkmetrics.data.ages import settled
from darkmetrics.data.cells import COUNTS, KINDS, Cells, count_type, group_rows

_COLUMNS = ("score", "decision", *COUNTS, "weight", "probability", "low", "high", *KINDS)


def cells_by_group(counted: frames.Counted) -> list[Cells]:
    """The cells of each group."""
    columns = {name: getattr(counted, name) for name in _COLUMNS}
    group = _group_of(counted)
    if np.any((counted.score[1:] <= counted.score[:-1]) & (group[1:] == group[:-1])):
        # Ties in the order that arrays lead to, so that the same rows make the same table.
        chance = None if counted.buckets else _nan_first(counted.probability)
        keys = [counted.propensity, counted.stratum, counted.decision, counted.weight, chance]
        order = np.lexsort([*(key for key in keys if key is not None), counted.score, group])
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


def _weight(weight: AnyArray | None) -> AnyArray | None:
    """Weights that are all one are none."""
    return None if weight is None or bool(np.all(weight == 1.0)) else weight


def _nan_first(chance: FloatArray | None) -> FloatArray | None:
    return None if chance is None else np.where(np.isnan(chance), -1.0, chance)
