"""Whether the metrics of an evaluation contradict the same metrics on its reference rows."""

import numpy as np

from darkmetrics._text import counted
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.problem import Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import ConfusionMetric, Metric
from darkmetrics.missingness.fixed import Fixed
from darkmetrics.missingness.reference import reference_set
from darkmetrics.population import Population
from darkmetrics.tables import interval_text, level_text

# A contradiction is a difference of more standard deviations, and of a larger fraction of the metric's range. By chance
# alone, a normal metric exceeds the former in 1 of 2,000 evaluations.
_MAX_SDS, _MIN_DIFFERENCE = 3.5, 0.02
# A warning that lists more metrics is not read.
_MAX_NAMED = 5


def contradiction_of_reference(evaluation: Evaluation) -> str:
    """Return a message that compares metrics on all rows with those on the reference rows; empty if they agree.

    The standard deviations are those of the population: both sets of rows are samples. Metrics that are functions of
    the user are not compared, nor are weighted or clustered rows.
    """
    reference = _reference_rows(evaluation)
    if reference is None:
        return ""
    texts = []
    for name, metric in evaluation.metrics.items():
        if type(metric).row_influence is Metric.row_influence:
            continue
        if isinstance(metric, ConfusionMetric) and reference.threshold != evaluation.data.threshold:
            continue
        here, there = evaluation[name], _distribution_on(evaluation, name, reference)
        if not _contradict(metric, here, there):  # the populations take longer to compute
            continue
        in_population = Population(evaluation.data, evaluation.posterior).distribution(metric, here)
        there = Population(reference, Fixed(0.5).posterior(reference)).distribution(metric, there)
        if _contradict(metric, in_population, there):
            values = [_in_words(distribution, evaluation.confidence_level) for distribution in (here, there)]
            texts.append(f"{name} is {' here and '.join(values)} there")
    if not texts:
        return ""
    return (
        f"The results contradict the metrics on the {counted(reference.n_rows, 'reference row')}: "
        f"{'; '.join(texts[:_MAX_NAMED])}. Sampling does not explain the difference. Either the relation between score "
        "and label has drifted since the reference rows were taken, or they come from another population, with other "
        "scores or another fraction of positives. In the first case results that use reference= are biased. Compare "
        "the scores of both sets, and take new reference rows or leave the reference rows out."
    )


def _reference_rows(evaluation: Evaluation) -> EvaluationSet | None:
    """Return the labeled reference rows with the evaluation's threshold if it has one; None if they do not compare."""
    data, rows = evaluation.data, evaluation.reference
    if rows is None or not data.n_missing or data.cells.weight is not None or data.groups is not None:
        return None
    reference = reference_set(rows, data.pos_label).labeled()
    if not reference.n_rows or reference.cells.weight is not None:
        return None
    if data.threshold is None or reference.threshold is None or data.threshold == reference.threshold:
        return reference
    try:
        return reference.with_threshold(data.threshold)
    except InputError:  # the threshold cuts a bucket of scores
        return reference


def _distribution_on(evaluation: Evaluation, name: str, reference: EvaluationSet) -> MetricDistribution:
    """Return the metric on reference rows, where nothing is random."""
    functional = evaluation.metrics[name].bind(reference, evaluation.fills[name])
    return evaluation.method.distribution(functional, Problem(Fixed(0.5).posterior(reference)))


def _contradict(metric: Metric, first: MetricDistribution, second: MetricDistribution) -> bool:
    """Return whether two independent distributions of a metric are further apart than chance and rounding explain."""
    difference = abs(first.mean() - second.mean())
    low, high = metric.range
    scale = high - low if np.isfinite([low, high]).all() else max(abs(first.mean()), abs(second.mean()))
    return bool(difference > max(_MAX_SDS * np.hypot(first.std(), second.std()), _MIN_DIFFERENCE * scale))


def _in_words(distribution: MetricDistribution, level: float) -> str:
    return f"{distribution.mean():.3f} ({level_text(level)}: {interval_text(distribution.interval(level), 3)})"
