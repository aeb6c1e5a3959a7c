"""change(): two evaluations of different rows."""

from typing import Any

from darkmetrics.calls import suggest_call
from darkmetrics.changes.result import EvaluationChange
from darkmetrics.changes.several_sets import SeveralSets
from darkmetrics.class_evaluation import refuse_classes
from darkmetrics.distributions import check_level
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError


@suggest_call("change takes two results of evaluate, in which all is settled.")
def compare_evaluations(
    after: Evaluation,
    before: Evaluation,
    *,
    names: tuple[str, str] = ("after", "before"),
    confidence_level: float | None = None,
) -> EvaluationChange:
    """Did it get worse? The law of each metric's difference between two evaluations of different rows.

    June against May, one segment against another, a new version on new rows against the old one on old rows. The
    answer is about these rows: how far the metrics differ on them, once all their labels were known; where both were
    evaluated with scope="population", about the populations that the rows came from. What is open about
    the labels of both is counted once where it is one and the same: the reason why labels are missing where none was
    stated, delays that `evaluate_by` has learned from both, reference rows that both have learned from.

    Two models on the same rows are another question, because they share their missing labels. Customers of `groups=`
    that have rows in both are taken as unrelated: each set learns about them from its own rows.

    Parameters
    ----------
    after, before : Evaluation
        What `evaluate` or `evaluate_frame` returned, or `result[key]` of `evaluate_by`. Metrics that both have are
        compared.
    names : (str, str)
        What to call the two in print.
    confidence_level : float, optional
        Of intervals in print; that of `after` unless given.

    Returns
    -------
    EvaluationChange
        A mapping from metric to the `MetricDistribution` of the difference, after less before; `probability_decreased`,
        `probability_increased` and
        `worse` have its chances.

    Notes
    -----
    Given the probabilities of the labels, the two sets are independent. The difference is exact where there are at most
    2^21 combinations of values of the two metrics. Otherwise 2^16 values of both are drawn ("monte carlo"), and the cdf
    is within 0.01. Their seed is fixed: `rng` of an evaluation sets the draws of `evaluate`, not those of a
    difference. In the population each metric has the distribution that `evaluate` computes.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> may = dm.evaluate(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.5]), metrics="accuracy"
    ... )
    >>> june = dm.evaluate(
    ...     [1, None, 1, 0], [0.9, 0.3, 0.4, 0.8], missingness=dm.missing.Fixed([0.5]), metrics="accuracy"
    ... )
    >>> found = dm.compare_evaluations(june, may)
    >>> (
    ...     found["accuracy"].mean(),
    ...     found.probability_decreased("accuracy"),
    ...     found.probability_decreased("accuracy", by=0.25),
    ... )
    (-0.25, 0.75, 0.25)
    """
    for argument, given in (("after", after), ("before", before)):
        _check_evaluation(argument, given)
    refuse_classes("compare_evaluations", after, before)
    if after.data is before.data:
        raise InputError(
            "before: the same rows as after. A change is one between different rows; two models on the same rows share "
            "their missing labels, and their difference is another question."
        )
    if after.data.compared is not None and after.data.compared is before.data.compared:
        raise InputError(
            "before: a model of the same comparison as after, on the same rows. They share their missing labels: ask "
            "the comparison for difference(metric, model, other)."
        )
    if after.scope != before.scope:
        raise InputError(
            f"before: about the {before.scope}, and after is about the {after.scope}. Evaluate both with the "
            "same scope=."
        )
    level = after.confidence_level if confidence_level is None else check_level(confidence_level)
    common = [name for name in after if name in before.distributions]
    if not common:
        raise InputError(
            f"after: it has no metric in common with before ({', '.join(after)}; {', '.join(before)}). Evaluate both "
            "with the same metrics=."
        )
    sets = SeveralSets([after, before])
    metrics = {name: after.metrics[name] for name in common}
    return EvaluationChange(
        after=after,
        before=before,
        distributions={name: sets.add_up(metric, (1.0, -1.0)) for name, metric in metrics.items()},
        names=_two_names(names),
        together=sets.pairing.describe().replace("all of them at once", "both at once"),
        confidence_level=level,
        metrics=metrics,
    )


def _check_evaluation(argument: str, given: Any) -> None:
    if isinstance(given, Evaluation):
        return
    hint = "Give what evaluate() returned"
    if hasattr(given, "groups") and hasattr(given, "total"):
        hint = "It has many groups: use its own change(after, before), or give result[key] of a group"
    raise InputError(f"{argument}: expected an Evaluation, got {type(given).__name__}. {hint}.")


def _two_names(names: Any) -> tuple[str, str]:
    if (
        isinstance(names, str)
        or not hasattr(names, "__len__")
        or len(names) != 2
        or not all(isinstance(name, str) and name.strip() for name in names)
    ):
        raise InputError(f"names: {names!r}. Give two texts: what to call after, and what to call before.")
    after, before = names
    if after == before:
        raise InputError(f"names: {after!r} twice. Give two different ones, which tell after and before apart.")
    return after, before
