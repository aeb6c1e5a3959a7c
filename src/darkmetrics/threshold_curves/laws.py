"""Each threshold by itself: the law of every metric there, from the same probabilities of the missing labels.

Rows that no threshold of the grid tells apart are counted together first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray, merged_keys
from darkmetrics._kernels.sums.related_counts import LADDER_LIMIT, split_pmfs
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.methods import Exact, Method, Problem
from darkmetrics.methods.base import CountLaws
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.posterior import Posterior
from darkmetrics.threshold_curves.bands import Swept

# A law per threshold and metric takes milliseconds; more thresholds than this are not waited for.
MOST_LAWS = 2000


def sweep_by_laws(
    data: EvaluationSet,
    nodes: Posterior,
    metrics: Sequence[ConfusionMetric],
    fills: Sequence[float],
    thresholds: FloatArray,
    levels: FloatArray,
    method: Method,
) -> list[Swept]:
    """What `evaluate` would find at each threshold, for the same nodes."""
    if thresholds.size > MOST_LAWS:
        raise InputError(
            f"thresholds: {thresholds.size:,}, of which {metrics[0].name!r} by {method.name!r} takes each by itself: "
            f"{MOST_LAWS:,} are the most. Give fewer; method='gaussian' has no limit for ratios of counts."
        )
    data, nodes = thinned(data, nodes, thresholds)
    generator = np.random.default_rng(0)  # exact and Gaussian laws draw nothing
    shape = (len(metrics), thresholds.size)
    mean, low, high, undefined, labelled_only = (np.empty(shape) for _ in range(5))
    quantiles = np.empty((len(metrics), levels.size, thresholds.size))
    counts = _counts_at(data, nodes, thresholds) if isinstance(method, Exact) else repeat(None, thresholds.size)
    for j, (threshold, counted) in enumerate(zip(thresholds.tolist(), counts, strict=True)):
        # Not by `with_threshold`: a ROC curve ends at infinity.
        cells = replace(data.cells, decision=data.cells.score >= threshold)
        here = EvaluationSet.from_cells(cells, threshold=threshold, pos_label=data.pos_label)
        problem = Problem(nodes, counted)
        for i, (metric, fill) in enumerate(zip(metrics, fills, strict=True)):
            try:
                law = method.law(metric.bind(here, fill), problem, rng=generator)
            except MethodError as error:
                raise error.also(f"(metric: {metric.name!r}, threshold: {threshold:g})") from None
            mean[i, j], undefined[i, j] = law.mean(), law.undefined
            low[i, j], high[i, j] = law.support()
            quantiles[i, :, j] = law.ppf(levels)
            labelled_only[i, j] = metric.value(here, fill) if here.n_labelled else np.nan
    columns = zip(mean, quantiles, low, high, undefined, labelled_only, strict=True)
    return [Swept(*column) for column in columns]


def _counts_at(data: EvaluationSet, nodes: Posterior, thresholds: FloatArray) -> Iterator[CountLaws | None]:
    """The laws of the numbers of positives on either side of each threshold, each made of the one before.

    None where they are found from scratch: of very many rows, of rows with weights, and where nothing is random.
    """
    if data.missing_weight is not None or data.n_missing > LADDER_LIMIT or nodes.certain:
        yield from repeat(None, thresholds.size)
        return
    cuts = np.searchsorted(data.cells.score[data.missing_cells], thresholds)
    laws = split_pmfs(nodes.on_all_cells.probability, data.missing_counts, cuts)
    for cut, (below, above) in zip(cuts.tolist(), laws, strict=True):
        yield partial(_of_side, cut, below, above)


def _of_side(
    cut: int, below: tuple[int, FloatArray], above: tuple[int, FloatArray], rows: IntArray
) -> tuple[int, FloatArray]:
    """The law for the missing cells of one side of a threshold, of which there may be none."""
    if not rows.size:
        return 0, np.ones((below[1].shape[0], 1))
    return below if rows[0] < cut else above


def thinned(data: EvaluationSet, nodes: Posterior, thresholds: FloatArray) -> tuple[EvaluationSet, Posterior]:
    """A set with the same confusion matrix at each of the thresholds for every labeling, and nodes for its cells.

    Labelled rows between two thresholds become one cell, and so do missing ones of one column. Rows with weights stay
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
    of_missing, missing, column = block[data.missing_cells], data.missing_counts, nodes.bucket
    if column is not None:
        first, owner = merged_keys(of_missing, column)
        of_missing, column = of_missing[first], column[first]
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
    return small, replace(nodes, bucket=column)
