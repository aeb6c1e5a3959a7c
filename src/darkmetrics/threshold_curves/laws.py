"""Each threshold by itself: the law of every metric there, from the same probabilities of the missing labels."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.methods import Method
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
    for j, threshold in enumerate(thresholds.tolist()):
        # Not by `with_threshold`: a ROC curve ends at infinity.
        cells = replace(data.cells, decision=data.cells.score >= threshold)
        here = EvaluationSet.from_cells(cells, threshold=threshold, pos_label=data.pos_label)
        functionals = (metric.bind(here, fill) for metric, fill in zip(metrics, fills, strict=True))
        laws = method.laws(functionals, nodes, rng=generator)
        for i, (metric, fill) in enumerate(zip(metrics, fills, strict=True)):
            try:
                law = next(laws)
            except MethodError as error:
                raise error.also(f"(metric: {metric.name!r}, threshold: {threshold:g})") from None
            mean[i, j], undefined[i, j] = law.mean(), law.undefined
            low[i, j], high[i, j] = law.support()
            quantiles[i, :, j] = law.ppf(levels)
            labelled_only[i, j] = metric.value(here, fill) if here.n_labelled else np.nan
    columns = zip(mean, quantiles, low, high, undefined, labelled_only, strict=True)
    return [Swept(*column) for column in columns]
