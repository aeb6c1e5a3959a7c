"""Changes of metrics between two evaluations of different rows, as text, table and numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from darkmetrics._text import counted, short
from darkmetrics.calls import suggest_call
from darkmetrics.changes.mix import Split, effects_of_mix
from darkmetrics.changes.several_sets import SeveralSets
from darkmetrics.changes.wording import (
    check_amount,
    describe_assumptions,
    describe_clusters,
    describe_mechanisms,
    describe_move,
    describe_overlap,
    describe_undefined,
    describe_warnings,
    drop_negative_zero,
    probability_above,
    probability_below,
)
from darkmetrics.class_evaluation import refuse_classes
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import Metric
from darkmetrics.metrics.targets import name_in
from darkmetrics.result import Result
from darkmetrics.tables import chance_text, decimals_for, finite, interval_text, level_text, number_text
from darkmetrics.wording import named, setting

_UNKNOWN_MIX = (
    "Part of any change is the mix of rows: more rows that are hard to tell move a metric too. How much that is, these "
    "rows do not say."
)


class GroupCode(NamedTuple):
    """The call of `evaluate_by` and the keys of two groups that are compared, as code."""

    arguments: Mapping[str, str]
    after: str
    before: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EvaluationChange(Result, Mapping[str, MetricDistribution]):
    """The distribution of each metric's difference, after minus before: a mapping from metric name to distribution.

    The two evaluations have no row in common. With scope="rows" the differences are those on their rows, and the
    missing labels are uncertain. With scope="population" they are those of the populations that the rows came from, and
    the sampling of rows is uncertain too.

    Attributes
    ----------
    after, before : Evaluation
        The evaluations.
    names : (str, str)
        Names of `after` and `before` in print.
    distributions : mapping from metric name to MetricDistribution
        The differences.
    shared_uncertainty : str
        Sentence on uncertainty that is the same in both evaluations; empty if there is none.
    confidence_level : float
        Confidence level of printed intervals.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> p = rng.random(3000)
    >>> y = np.where(rng.random(3000) < 0.3, np.nan, rng.random(3000) < p)
    >>> may = dm.evaluate(y[:1500], p[:1500], missingness="random", metrics=["precision", "recall"])
    >>> june = dm.evaluate(y[1500:], p[1500:] ** 1.4, missingness="random", metrics=["precision", "recall"])
    >>> print(dm.compare_evaluations(june, may, names=("June", "May")))
    June (1,500 rows, 438 missing) against May (1,500 rows, 449 missing).
    Assumed: labels are missing at random or by score.
    recall fell from 0.748 to 0.607: by 0.141 (90%: 0.123 to 0.158). Probability that it fell: >99.9%.
    <BLANKLINE>
                  May    June   change       90% interval   P(fell)        method
    precision   0.764   0.811    0.048     0.026 to 0.068     <0.1%         exact
    recall      0.748   0.607   -0.141   -0.158 to -0.123    >99.9%   monte carlo
    <BLANKLINE>
    Intervals are for these rows. The two evaluations are taken to have no row in common.
    Of the change of -0.141 in recall, -0.089 is the mix of rows, more or fewer of them at each score, and -0.051 is the
    remainder: other probabilities at the same score. Both are estimates.
    """

    _plot: ClassVar[str] = "plotting.differences:plot_change"
    _report: ClassVar[str] = "report.changed:write_change_report"

    after: Evaluation
    before: Evaluation
    distributions: Mapping[str, MetricDistribution]
    names: tuple[str, str] = ("after", "before")
    shared_uncertainty: str = ""
    confidence_level: float = 0.9
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    of_groups: GroupCode | None = None

    def __post_init__(self) -> None:
        at_level = {name: value.at_level(self.confidence_level) for name, value in self.distributions.items()}
        object.__setattr__(self, "distributions", at_level)

    def __getitem__(self, name: str) -> MetricDistribution:
        return self.distributions[name_in(self.distributions, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.distributions)

    def __len__(self) -> int:
        return len(self.distributions)

    def __contains__(self, name: object) -> bool:
        return name in self.distributions

    @property
    def scope(self) -> str:
        """The "rows" of both evaluations, or the "population" that they came from."""
        return self.after.scope

    def probability_decreased(self, metric: str, by: float = 0.0) -> float:
        """Return the probability that a metric decreased by more than `by`; NaN where it is never defined.

        A loss that decreased got better; `probability_worse` accounts for the direction.
        """
        return probability_below(self[metric], -check_amount(by))

    def probability_increased(self, metric: str, by: float = 0.0) -> float:
        """Return the probability that a metric increased by more than `by`; NaN where it is never defined."""
        return probability_above(self[metric], check_amount(by))

    def probability_worse(self, metric: str, by: float = 0.0) -> float:
        """Return the probability that a metric got worse by more than `by`: lower, or higher if lower is better.

        A metric without a better direction raises an error.
        """
        metric = name_in(self.distributions, metric)
        better = self.metrics[metric].better
        if better == "neither":
            raise InputError(
                "metric",
                f"{metric!r} has no better side and cannot get worse",
                "",
                "Use probability_decreased() or probability_increased().",
            )
        return self.probability_increased(metric, by) if better == "lower" else self.probability_decreased(metric, by)

    @cached_property
    def _mix(self) -> dict[str, float]:
        return effects_of_mix(self.after, self.before)

    def split(self, metric: str) -> Split | None:
        """Split the expected change into the effect of the mix of rows and the remainder; None if it is unknown.

        `mix` is the change of the metric if later rows are as likely positive as earlier rows of the same score, so
        that only the number of rows at each score changes. `remainder` is due to other probabilities at the same score,
        and to chance. Both are estimates and add up to the mean of the change. A metric of predictions has a split only
        if both sets have the same threshold.

        Examples
        --------
        >>> import numpy as np
        >>> import darkmetrics as dm
        >>> rng = np.random.default_rng(0)
        >>> p = np.concatenate([rng.random(5000), rng.beta(3, 3, 5000)])  # later rows are harder to tell
        >>> y = (rng.random(10_000) < p).astype(float)
        >>> may, june = (dm.evaluate(y[m], p[m], metrics="accuracy") for m in (slice(5000), slice(5000, None)))
        >>> mix, remainder = dm.compare_evaluations(june, may).split("accuracy")
        >>> round(mix, 2), round(remainder, 2)
        (-0.1, 0.0)
        """
        metric = name_in(self.distributions, metric)
        distribution = self.distributions[metric]
        if metric not in self._mix or not np.isfinite(distribution.mean()):
            return None
        return Split(self._mix[metric], distribution.mean() - self._mix[metric])

    def _describe_mix(self) -> str:
        """Return how much of the change of the surest metric is due to the mix of rows."""
        split = self.split(self.surest)
        if split is None:
            return _UNKNOWN_MIX
        low, high = self[self.surest].interval(self.confidence_level)
        decimals = decimals_for(high - low)
        if abs(sum(split)) < 0.5 * 10.0**-decimals:
            return ""  # the change is too small for the printed digits
        total, mix, remainder = (number_text(drop_negative_zero(x), decimals) for x in (sum(split), *split))
        return (
            f"Of the change of {total} in {self.surest}, {mix} is the mix of rows, more or fewer of them at each "
            f"score, and {remainder} is the remainder: other probabilities at the same score. Both are estimates."
        )

    def sentence(self, metric: str) -> str:
        """Return a sentence on how a metric moved."""
        metric = name_in(self.distributions, metric)
        distribution = self.distributions[metric]
        means = self.before[metric].mean(), self.after[metric].mean()
        title = metric if self.scope == "rows" else f"{metric} in the population"
        texts = [describe_move(title, means, distribution, self.confidence_level)]
        if np.isfinite(distribution.mean()):
            texts += [
                describe_undefined("it", {short(name): x[metric].undefined}, x.fills[metric], scope=self.scope)
                for name, x in zip(self.names, self._pair, strict=True)
            ]
        return " ".join(filter(None, texts))

    @property
    def _pair(self) -> tuple[Evaluation, Evaluation]:
        return self.after, self.before

    def _words(self) -> list[str]:
        """Return the lines above the table: the sets, the assumptions and the surest metric."""
        sizes = [
            f"{short(name)} ({counted(x.data.n_rows, 'row')}, {x.data.n_missing:,} missing)"
            for name, x in zip(self.names, self._pair, strict=True)
        ]
        assumptions = describe_assumptions(self.names, self._pair)
        return [f"{sizes[0]} against {sizes[1]}.", *assumptions, self.sentence(self.surest)]

    @property
    def surest(self) -> str:
        """The metric that is most likely worse; if none is worse with probability 50%, most likely different."""
        judged = [name for name, metric in self.metrics.items() if metric.better != "neither"]
        worst = max(judged, key=lambda name: np.nan_to_num(self.probability_worse(name), nan=-1.0), default=None)
        if worst is not None and self.probability_worse(worst) > 0.5:
            return worst
        return max(
            self.distributions,
            key=lambda name: np.nan_to_num(
                max(self.probability_decreased(name), self.probability_increased(name)), nan=-1.0
            ),
        )

    @cached_property
    def same_rows(self) -> str:
        """Sentence if the two sets look like the same rows, or have rows in common; empty otherwise."""
        return describe_overlap(self.after, self.before)

    def warned(self) -> list[str]:
        """Return the first sentence of each warning about the two evaluations; `to_dict()` has the full text."""
        return describe_warnings(self.names, self._pair)

    def _notes(self) -> list[str]:
        """Return the lines below the table: scope, shared uncertainty, warnings and the mix of rows."""
        scope = "these rows" if self.scope == "rows" else "the populations that the rows came from"
        notes = [f"Intervals are for {scope}. The two evaluations are taken to have no row in common."]
        notes += filter(None, [self.same_rows])
        notes += describe_mechanisms(self.names, self._pair) + self.warned() + describe_clusters(self._pair)
        thresholds = [x.data.threshold for x in self._pair]
        if thresholds[0] != thresholds[1]:
            texts = ["as given" if t is None else f"score >= {t:g}" for t in thresholds]
            notes.append(f"Decisions differ: {texts[0]} ({short(self.names[0])}), {texts[1]} ({short(self.names[1])}).")
        left_out = [name for x in self._pair for name in x.distributions if name not in self.distributions]
        if left_out:
            notes.append(f"In one of the two alone, and left out: {', '.join(dict.fromkeys(left_out))}.")
        return [*notes, *filter(None, [self.shared_uncertainty, self._describe_mix()])]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table as text, one row per metric."""
        after, before = map(short, self.names)
        header = ["", before, after, "change", f"{level_text(self.confidence_level)} interval", "P(fell)", "method"]
        return header, [self._row(name) for name in self.distributions]

    def _row(self, name: str) -> list[str]:
        distribution = self.distributions[name]
        low, high = distribution.interval(self.confidence_level)
        decimals = decimals_for(high - low)
        return [
            name,
            number_text(self.before[name].mean(), decimals),
            number_text(self.after[name].mean(), decimals),
            number_text(drop_negative_zero(distribution.mean()), decimals),
            interval_text((low, high), decimals),
            chance_text(self.probability_decreased(name)),
            distribution.method,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text, ready for JSON (schema: `docs/reference/change.md`)."""
        sides = ("after", self.after), ("before", self.before)
        return {
            "schema": "darkmetrics.change/1",
            "names": list(self.names),
            "scope": self.scope,
            "counts": {side: x.data.counts() for side, x in sides},
            "assumption": {side: x.assumption for side, x in sides},
            "confidence_level": self.confidence_level,
            "warnings": {side: [warned._asdict() for warned in x.warnings] for side, x in sides},
            "notes": self._notes(),
            "metrics": {
                name: {
                    "better": self.metrics[name].better,
                    "before": finite(self.before[name].mean()),
                    "after": finite(self.after[name].mean()),
                    "probability_decreased": finite(self.probability_decreased(name)),
                    "probability_increased": finite(self.probability_increased(name)),
                    "mix": None if (split := self.split(name)) is None else finite(split.mix),
                    "remainder": None if split is None else finite(split.remainder),
                    **distribution.to_dict(self.confidence_level),
                }
                for name, distribution in self.distributions.items()
            },
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat record per metric, with its name and scope: the rows of `to_frame`."""
        return [{"metric": name, "scope": self.scope, **entry} for name, entry in self.to_dict()["metrics"].items()]

    def __repr__(self) -> str:
        return (
            f"<EvaluationChange from {short(self.names[1])} to {short(self.names[0])}: {', '.join(self.distributions)}>"
        )


@suggest_call("compare_evaluations takes two results of evaluate, which have all settings.")
def compare_evaluations(
    after: Evaluation,
    before: Evaluation,
    *,
    names: tuple[str, str] = ("after", "before"),
    confidence_level: float | None = None,
) -> EvaluationChange:
    """Compare the metrics of two evaluations of different rows, such as June against May.

    The differences are those of the metrics on these rows, as if all their labels were known. If both were evaluated
    with scope="population", they are those of the populations that the rows came from. Uncertainty that both sets share
    counts once: a mechanism that is not stated, delays that `evaluate_by` learned from both, and reference rows.

    Use `compare` for two models on the same rows, which share their missing labels. Clusters with rows in both sets are
    treated as unrelated.

    Parameters
    ----------
    after, before : Evaluation
        Results of `evaluate`, or `result[key]` of `evaluate_by`. Metrics that both have are compared.
    names : (str, str)
        Names of the two in print.
    confidence_level : float, optional
        Confidence level of printed intervals. Default: the level of `after`.

    Returns
    -------
    EvaluationChange
        A mapping from metric to the `MetricDistribution` of the difference, after minus before; see
        `probability_worse`, `probability_decreased` and `probability_increased`.

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
    >>> change = dm.compare_evaluations(june, may)
    >>> change["accuracy"].mean(), change.probability_worse("accuracy"), change.probability_worse("accuracy", by=0.25)
    (-0.25, 0.75, 0.25)
    """
    for argument, value in (("after", after), ("before", before)):
        _check_evaluation(argument, value)
    refuse_classes("compare_evaluations", after, before)
    if after.data is before.data:
        raise InputError(
            "before",
            f"the same rows as {named('after')}",
            "A change is one between different rows; two models on the same rows share their missing labels.",
            "Use compare for two models.",
        )
    if after.data.compared is not None and after.data.compared is before.data.compared:
        raise InputError(
            "before",
            f"a model of the same comparison as {named('after')}, on the same rows",
            "They share their missing labels.",
            "Ask the comparison for difference(metric, model, other).",
        )
    if after.scope != before.scope:
        finding = f"about the {before.scope}, and {named('after')} is about the {after.scope}"
        raise InputError("before", finding, "", f"Evaluate both with the same {setting('scope')}.")
    level = after.confidence_level if confidence_level is None else float(confidence_level)
    common = [name for name in after if name in before.distributions]
    if not common:
        finding = f"it has no metric in common with {named('before')} ({', '.join(after)}; {', '.join(before)})"
        raise InputError("after", finding, "", f"Evaluate both with the same {setting('metrics')}.")
    sets = SeveralSets([after, before])
    metrics = {name: after.metrics[name] for name in common}
    return EvaluationChange(
        after=after,
        before=before,
        distributions={name: sets.add_up(metric, (1.0, -1.0)) for name, metric in metrics.items()},
        names=_check_names(names),
        shared_uncertainty=sets.pairing.describe().replace("all of them at once", "both at once"),
        confidence_level=level,
        metrics=metrics,
    )


def _check_evaluation(argument: str, value: Any) -> None:
    if isinstance(value, Evaluation):
        return
    hint = "Give what evaluate() returned."
    if hasattr(value, "groups") and hasattr(value, "total"):
        hint = "It has many groups: call its compare(after, before), or pass result[key] of a group."
    raise InputError(argument, f"expected an Evaluation, got {type(value).__name__}", "", hint)


def _check_names(names: Any) -> tuple[str, str]:
    if (
        isinstance(names, str)
        or not hasattr(names, "__len__")
        or len(names) != 2
        or not all(isinstance(name, str) and name.strip() for name in names)
    ):
        raise InputError("names", repr(names), "", "Give two texts: what to call after, and what to call before.")
    after, before = names
    if after == before:
        raise InputError("names", f"{after!r} twice", "", "Give two different ones, which tell after and before apart.")
    return after, before
