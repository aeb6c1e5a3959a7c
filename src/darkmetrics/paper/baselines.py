"""Baselines: drop unlabeled rows, bootstrap the labeled rows, or ignore the labels."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import RngLike
from darkmetrics.data.cells import COUNTS, Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import Discrete, MetricDistribution
from darkmetrics.evaluating import evaluate
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.methods.base import check_n_resamples
from darkmetrics.metrics import DEFAULT_METRICS, ConfusionMetric, Metric, metrics_from
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missingness.base import MissingnessLike
from darkmetrics.missingness.fixed import Fixed
from darkmetrics.missingness.reference import Reference
from darkmetrics.paper.probabilities import check_set
from darkmetrics.question import generator_from

_CHUNK = 1 << 22


def complete_case(evaluation_set: EvaluationSet, metrics: MetricsLike = DEFAULT_METRICS) -> dict[str, float]:
    """Return metrics of the labeled rows only, NaN where a metric is 0/0.

    The values are unbiased only if labels are missing completely at random (MCAR), and have no interval.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, 1], [0.9, 0.8, 0.7, 0.1])
    >>> dm.paper.complete_case(data, ["precision", "recall"])
    {'precision': 0.5, 'recall': 0.5}
    """
    labeled = _labeled(evaluation_set)
    return {metric.name: metric.value(labeled) for metric in metrics_from(metrics)}


def bootstrap(
    evaluation_set: EvaluationSet,
    metrics: MetricsLike = DEFAULT_METRICS,
    *,
    n_resamples: int = 10_000,
    rng: RngLike = None,
) -> dict[str, MetricDistribution]:
    """Return bootstrap distributions of metrics of the labeled rows, the paper's baseline.

    Labeled rows are drawn with replacement. The spread is the sampling error of the labeled rows. The bias of dropping
    the unlabeled rows stays. The paper draws 10,000 resamples.

    Parameters
    ----------
    evaluation_set : EvaluationSet
        Its labeled rows are resampled.
    metrics
        As in `evaluate`; callables are called once per resample.
    n_resamples : int
        Number of resamples.
    rng : None, int or numpy Generator
        Source of randomness.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, 1, 1, 0], [0.9, 0.8, 0.7, 0.1, 0.6, 0.2])
    >>> distribution = dm.paper.bootstrap(data, "accuracy", n_resamples=1000, rng=0)["accuracy"]
    >>> distribution.method
    'bootstrap'
    """
    size = check_n_resamples(n_resamples)
    labeled = _labeled(evaluation_set)
    generator = generator_from(rng)
    distributions: dict[str, MetricDistribution] = {}
    for metric in metrics_from(metrics):
        # A confusion matrix has four counts: its resamples need no more than these.
        cells = _by_decision(labeled.cells) if isinstance(metric, ConfusionMetric) else labeled.cells
        values = _resampled_values(metric, cells, size, generator)
        masses = np.ones(values.size)
        distributions[metric.name] = Discrete.from_atoms(values, masses, metric.undefined_as, method="bootstrap")
    return distributions


def confidence_based(
    evaluation_set: EvaluationSet,
    metrics: MetricsLike = DEFAULT_METRICS,
    *,
    missingness: MissingnessLike | Reference = None,
    rng: RngLike = None,
) -> Evaluation:
    """Evaluate with the probabilities alone, as monitoring tools do: every label is treated as missing.

    The estimate is as good as the probabilities; the labels that arrived are not used.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.9, 0.4, 0.7]))
    >>> round(dm.paper.confidence_based(data, metrics="precision")["precision"].mean(), 9)
    0.8
    """
    return evaluate(check_set(evaluation_set).unlabeled(), missingness=missingness or Fixed(), metrics=metrics, rng=rng)


def _labeled(evaluation_set: EvaluationSet) -> EvaluationSet:
    if check_set(evaluation_set).n_labeled == 0:
        raise InputError("evaluation_set", "no labeled row", "Complete-case baselines need labels.")
    return evaluation_set.labeled()


def _by_decision(cells: Cells) -> Cells:
    """Return the counts without scores: one cell per prediction."""
    if cells.weight is not None:
        return cells
    sides = np.array([False, True])
    count = {f: np.array([getattr(cells, f)[cells.decision == side].sum() for side in sides]) for f in COUNTS}
    return Cells(score=sides.astype(np.float64), decision=sides, **count)


def _resampled_values(metric: Metric, cells: Cells, n_resamples: int, rng: np.random.Generator) -> FloatArray:
    counted = np.concatenate([cells.positives, cells.negatives])
    rows = int(counted.sum())
    weight = np.ones(cells.score.size) if cells.weight is None else cells.weight
    chunk = max(1, min(n_resamples, _CHUNK // counted.size))
    blocks = []
    for start in range(0, n_resamples, chunk):
        draws = rng.multinomial(rows, counted / rows, size=min(chunk, n_resamples - start))
        positives, negatives = draws[:, : weight.size] * weight, draws[:, weight.size :] * weight
        blocks.append(metric.of_counts(cells, np.stack([negatives, positives])))
    return np.concatenate(blocks)
