"""Each threshold by itself: the law of every metric there, from the same probabilities of the missing labels."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import repeat

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.related_counts import LADDER_LIMIT, split_pmfs
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.methods import Exact, Method, Problem
from darkmetrics.methods.problem import CountLaws
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.nodes import Nodes
from darkmetrics.threshold_curves.bands import Swept
from darkmetrics.threshold_curves.thin import thinned

# A law per threshold and metric takes milliseconds; more thresholds than this are not waited for.
MOST_LAWS = 2000


def sweep_by_laws(
    data: EvaluationSet,
    nodes: Nodes,
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


def _counts_at(data: EvaluationSet, nodes: Nodes, thresholds: FloatArray) -> Iterator[CountLaws | None]:
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
