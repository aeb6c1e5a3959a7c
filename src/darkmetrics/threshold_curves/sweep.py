"""From an evaluation and thresholds to bands: which way they are computed, and for which metrics there are any."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError, unknown_name
from darkmetrics.methods import Exact, Gaussian
from darkmetrics.metrics import ConfusionMetric, Metric, metrics_from
from darkmetrics.posterior import Posterior
from darkmetrics.threshold_curves.bands import Swept
from darkmetrics.threshold_curves.laws import MOST_LAWS, sweep_by_laws
from darkmetrics.threshold_curves.sums import Blocks, sweep_by_sums

# Thresholds x metrics x missing rows x root of nodes up to which exact laws take some three seconds.
_QUICK = 2**21
# With unequal weights each law takes a third of a second as soon as labelings are too many to go through.
_QUICK_WEIGHTED = 12
METHODS = ("auto", "exact", "gaussian")


def sweep(
    evaluation: Evaluation,
    metrics: Sequence[ConfusionMetric],
    thresholds: FloatArray,
    levels: FloatArray,
    method: str,
) -> tuple[str, list[Swept]]:
    """The method used, and mean, quantiles, bounds and the rest of each metric at each threshold."""
    if method not in METHODS:
        raise unknown_name("method", "method", str(method), METHODS)
    evaluation.nodes.check_independent("curves need")
    fills = [fill_of(evaluation, metric) for metric in metrics]
    arguments = evaluation.data, evaluation.nodes, metrics, fills, thresholds, levels
    if method == "auto":
        try:
            if quick(evaluation, thresholds.size, len(metrics)):
                return "exact", sweep_by_laws(*arguments, Exact())
        except MethodError:  # a formula of the user's that has no exact law of this size
            pass
        method = "gaussian"
    if method == "exact":
        return method, sweep_by_laws(*arguments, Exact())
    return method, [swept.within_bounds() for swept in _gaussian(*arguments)]


def _gaussian(
    data: EvaluationSet,
    nodes: Posterior,
    metrics: Sequence[ConfusionMetric],
    fills: Sequence[float],
    thresholds: FloatArray,
    levels: FloatArray,
) -> list[Swept]:
    """All thresholds at once where that is possible, and the others one by one."""
    p = nodes.probability[:, nodes.used]
    # Nodes that are sure of different labelings make a law of atoms, which has nothing Gaussian.
    possible = nodes.certain or bool(np.any((p > 0.0) & (p < 1.0)))
    ratios = [i for i in range(len(metrics)) if possible and metrics[i].bind(data, fills[i]).ratio is not None]
    found: dict[int, Swept] = {}
    left = {i: np.ones(thresholds.size, dtype=np.bool_) for i in range(len(metrics))}
    if ratios:
        blocks = Blocks(data, nodes, thresholds)
        by_sums = sweep_by_sums(blocks, [metrics[i] for i in ratios], [fills[i] for i in ratios], levels)
        for i, (swept, one_by_one) in zip(ratios, by_sums, strict=True):
            found[i], left[i] = swept, one_by_one
    for i, one_by_one in left.items():
        if one_by_one.any():
            (rest,) = sweep_by_laws(data, nodes, [metrics[i]], [fills[i]], thresholds[one_by_one], levels, Gaussian())
            found[i] = _put(found[i], one_by_one, rest) if i in found else rest
    return [found[i] for i in range(len(metrics))]


def _put(swept: Swept, where: BoolArray, rest: Swept) -> Swept:
    columns = [np.array(column) for column in swept]
    for column, values in zip(columns, rest, strict=True):
        column[..., where] = values
    return Swept(*columns)


def quick(evaluation: Evaluation, thresholds: int, metrics: int, *, patience: float = 1.0) -> bool:
    """Whether exact laws at so many thresholds take seconds, or `patience` times as long.

    By size and not by clock, so that the answer is always the same.
    """
    if evaluation.data.unequal_weights and evaluation.data.n_missing > _QUICK_WEIGHTED:
        return False
    effort = thresholds * metrics * evaluation.data.n_missing * float(np.sqrt(len(evaluation.nodes)))
    return thresholds <= MOST_LAWS and effort <= patience * _QUICK


def curve_metrics(evaluation: Evaluation, metrics: Any) -> list[ConfusionMetric]:
    """The metrics that a user names; names that the evaluation knows mean what they mean there."""
    if isinstance(metrics, str):
        metrics = [metrics]
    if not isinstance(metrics, Metric) and isinstance(metrics, Sequence):
        metrics = [evaluation.metrics.get(name, name) if isinstance(name, str) else name for name in metrics]
    chosen = []
    for metric in metrics_from(metrics):
        if not isinstance(metric, ConfusionMetric):
            raise InputError(
                f"metrics: {metric.name!r} does not depend on the threshold. Curves are for metrics of the confusion "
                "matrix, such as 'precision', 'recall' or metrics.expected_cost(1, 10)."
            )
        chosen.append(metric)
    return chosen


def fill_of(evaluation: Evaluation, metric: Metric) -> float:
    """What a 0/0 counts as: as in the evaluation, and for a metric that is not in it as for the others there."""
    if metric.name in evaluation.fills:
        return evaluation.fills[metric.name]
    for name, fill in evaluation.fills.items():
        own = evaluation.metrics[name].undefined_as
        if fill != own and not (np.isnan(fill) and np.isnan(own)):
            return fill  # the evaluation was told what a 0/0 is
    return metric.undefined_as
