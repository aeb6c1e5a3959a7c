"""What follows from each mechanism of missing labels: how many missing rows are positive, and the metrics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from darkmetrics.methods import method_from
from darkmetrics.metrics import Metric
from darkmetrics.missing import Posterior
from darkmetrics.missingness.base import Estimate, missing_prevalence
from darkmetrics.missingness.by_label import fit_by_label
from darkmetrics.missingness.by_score import fit_by_score
from darkmetrics.missingness.by_score_and_label import fit_by_score_and_label
from darkmetrics.missingness.checks import AbsentError, need_missing
from darkmetrics.missingness.fit_data import FitData


@dataclass(frozen=True)
class MechanismEstimate:
    """What follows if labels are missing by one mechanism.

    Attributes
    ----------
    prevalence : Estimate
        Share of positives among the missing rows.
    metrics : mapping from name to Estimate
        The metrics on all rows.
    """

    prevalence: Estimate
    metrics: Mapping[str, Estimate]


def _by_score_and_label(fit_data: FitData) -> Posterior:
    if fit_data.reference is None:
        raise AbsentError("no reference rows were passed (dm.missing.Reference).")
    return fit_by_score_and_label(fit_data)


# Name of each mechanism and its probabilities of the missing labels; reference rows are used where there are some.
MECHANISMS: dict[str, Callable[[FitData], Posterior]] = {
    "by score": lambda fit_data: fit_by_score(fit_data, "'by score'"),
    "by label": lambda fit_data: fit_by_label(fit_data).posterior,
    "by score and label": _by_score_and_label,
}


def estimate_mechanism(
    name: str, fit_data: FitData, metrics: Sequence[Metric], fills: Mapping[str, float], late: Posterior | None = None
) -> MechanismEstimate:
    """The prevalence of the missing rows and the metrics under one mechanism; `late`: as ages say."""
    data = fit_data.data
    need_missing(fit_data)
    if data.missing_cells.size == 0:
        raise AbsentError("no row without a label has any weight.")
    posterior = MECHANISMS[name](fit_data) if late is None else late
    rows, cases = posterior.without_strata(data)
    functionals = (metric.bind(rows, fills[metric.name]) for metric in metrics)
    # Any fixed seed, for the few metrics that need random labelings: the same data get the same diagnosis.
    distributions = method_from("auto").distributions(functionals, cases, rng=0)
    values = {
        metric.name: Estimate(distribution.mean(), *distribution.interval(0.9))
        for metric, distribution in zip(metrics, distributions, strict=True)
    }
    return MechanismEstimate(missing_prevalence(data, posterior), values)
