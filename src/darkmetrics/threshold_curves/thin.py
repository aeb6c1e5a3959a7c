"""The same set with fewer cells: rows that no threshold of a grid tells apart are counted together."""

from dataclasses import replace

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.functional import merged_keys
from darkmetrics.nodes import Nodes


def thinned(data: EvaluationSet, nodes: Nodes, thresholds: FloatArray) -> tuple[EvaluationSet, Nodes]:
    """A set with the same confusion matrix at each of the thresholds for every labeling, and nodes for its cells.

    Labelled rows between two thresholds become one cell, and so do missing ones of one bucket. Rows with weights stay
    as they are: which laws are exact depends on how many different weights there are.
    """
    cells = data.cells
    if cells.weight is not None:
        return data, nodes
    block = np.searchsorted(thresholds, cells.score, side="right")
    starts = np.flatnonzero(np.diff(block, prepend=-1))
    labelled = {
        name: np.add.reduceat(getattr(cells, name), starts, dtype=np.int64) for name in ("positives", "negatives")
    }
    of_missing, missing, bucket = block[data.missing_cells], data.missing_counts, nodes.bucket
    if bucket is not None:
        first, owner = merged_keys(of_missing, bucket)
        of_missing, bucket = of_missing[first], bucket[first]
        missing = np.bincount(owner, missing, first.size).astype(np.int64)
    # Labelled rows first and then the missing ones, in the order of the blocks; a block has one score.
    order = np.argsort(np.concatenate((block[starts], of_missing)), kind="stable")
    lowest = np.empty(thresholds.size + 1)
    lowest[block[starts]] = cells.score[starts]
    score = lowest[np.concatenate((block[starts], of_missing))][order]
    none, nothing = np.zeros(of_missing.size, dtype=np.int64), np.zeros(starts.size, dtype=np.int64)
    table = Cells(
        score=score,
        decision=score >= (np.inf if data.threshold is None else data.threshold),
        **{name: np.concatenate((counts, none))[order] for name, counts in labelled.items()},
        missing=np.concatenate((nothing, missing))[order],
    )
    small = EvaluationSet.from_cells(table, threshold=data.threshold, pos_label=data.pos_label)
    return small, replace(nodes, bucket=bucket)
