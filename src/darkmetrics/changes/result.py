"""Change: the law of each metric's difference between two sets of rows, as words, table and numbers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from darkmetrics._text import counted, short
from darkmetrics.changes.assumed import assumed_in_words, customers_in_words, reasons_in_words, warned_in_words
from darkmetrics.changes.mix import Split, mix_of_rows
from darkmetrics.changes.same_rows import same_rows_in_words
from darkmetrics.changes.wording import (
    amount,
    chance_above,
    chance_below,
    check_amount,
    moved_text,
    zero_by_zero_text,
)
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import Metric
from darkmetrics.metrics.targets import name_in
from darkmetrics.result import Result
from darkmetrics.tables import (
    chance_text,
    decimals_for,
    finite,
    interval_text,
    level_text,
    number_text,
)

if TYPE_CHECKING:
    pass

SCHEMA = "darkmetrics.change/1"
_MIX = (
    "Part of any change is the mix of rows: more rows that are hard to tell move a metric too. How much that is, these "
    "rows do not say."
)


class OfGroups(NamedTuple):
    """Where two groups of one result are compared: the call of `evaluate_by`, and the keys of both, as code."""

    arguments: Mapping[str, str]
    after: str
    before: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EvaluationChange(Result, Mapping[str, MetricDistribution]):
    """Did it get worse? The law of each metric's difference, after less before: a mapping from metric name to law.

    Below zero the metric fell. The two evaluations have no row in common. With scope="rows" all of it is about their
    rows, and that missing labels are not known is what is left open; with scope="population" it is about the
    populations that the rows came from, and that the rows are a sample is left open too.

    Attributes
    ----------
    after, before : Evaluation
        What is compared.
    names : (str, str)
        What they are called in print: after, before.
    laws : mapping from metric name to MetricDistribution
        The differences.
    together : str
        What is open about both of them and taken to be the same, in a sentence; empty if nothing is.
    confidence_level : float
        Of the intervals in print.

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
    rest: other chances at the same score. Both are estimates.
    """

    _plot: ClassVar[str] = "plotting.changes:plot_change"
    _report: ClassVar[str] = "report.changed:write_change_report"

    after: Evaluation
    before: Evaluation
    distributions: Mapping[str, MetricDistribution]
    names: tuple[str, str] = ("after", "before")
    together: str = ""
    confidence_level: float = 0.9
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    of_groups: OfGroups | None = None

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
        """What it is about: the "rows" of both evaluations, or the "population" that each came from."""
        return self.after.scope

    def probability_decreased(self, metric: str, by: float = 0.0) -> float:
        """How likely is it that a metric fell, by more than `by`? NaN where it is never defined.

        Literally: a loss that fell got better; `worse` knows which way is which.
        """
        return chance_below(self[metric], -check_amount(by))

    def probability_increased(self, metric: str, by: float = 0.0) -> float:
        """How likely is it that a metric rose, by more than `by`? NaN where it is never defined."""
        return chance_above(self[metric], check_amount(by))

    def probability_worse(self, metric: str, by: float = 0.0) -> float:
        """How likely is it that a metric got worse, by more than `by`: fell, or rose where lower is better?

        A metric of which neither is better cannot get worse: that is an error.
        """
        metric = name_in(self.distributions, metric)
        better = self.metrics[metric].better
        if better == "neither":
            raise InputError(f"metric: {metric!r} has no better side and cannot get worse. Use fell() or rose().")
        return self.probability_increased(metric, by) if better == "lower" else self.probability_decreased(metric, by)

    @cached_property
    def _mix(self) -> dict[str, float]:
        return mix_of_rows(self.after, self.before)

    def split(self, metric: str) -> Split | None:
        """How much of the expected change is the mix of rows, and how much is the rest? None where that is not known.

        The mix is how far the metric moves where later rows are as likely positive as earlier rows of the same score:
        more or fewer rows at each score, and nothing else. The rest is that rows of one score are positive more or less
        often than before, and chance. Both are estimates and add up to the mean of the change. Rows that differ in what
        the score does not show count as the rest. A metric of decisions has a split only where both sets are decided at
        one threshold: other decisions are no other rows.

        Examples
        --------
        >>> import numpy as np
        >>> import darkmetrics as dm
        >>> rng = np.random.default_rng(0)
        >>> p = np.concatenate([rng.random(5000), rng.beta(3, 3, 5000)])  # later rows are harder to tell
        >>> y = (rng.random(10_000) < p).astype(float)
        >>> may, june = (dm.evaluate(y[own], p[own], metrics="accuracy") for own in (slice(5000), slice(5000, None)))
        >>> mix, rest = dm.compare_evaluations(june, may).split("accuracy")
        >>> round(mix, 2), round(rest, 2)
        (-0.1, 0.0)
        """
        metric = name_in(self.distributions, metric)
        distribution = self.distributions[metric]
        if metric not in self._mix or not np.isfinite(distribution.mean()):
            return None
        return Split(self._mix[metric], distribution.mean() - self._mix[metric])

    def _mix_in_words(self) -> str:
        """How much of what is surest is the mix of rows."""
        split = self.split(self.surest)
        if split is None:
            return _MIX
        low, high = self[self.surest].interval(self.confidence_level)
        decimals = decimals_for(high - low)
        if abs(sum(split)) < 0.5 * 10.0**-decimals:
            return ""  # nothing that could be shown has moved
        name = self.surest
        total, mix, rest = (number_text(amount(part), decimals) for part in (sum(split), *split))
        return (
            f"Of the change of {total} in {name}, {mix} is the mix of rows, more or fewer of them at each score, "
            f"and {rest} is the rest: other chances at the same score. Both are estimates."
        )

    def sentence(self, metric: str) -> str:
        """What happened to a metric, in words."""
        metric = name_in(self.distributions, metric)
        distribution = self.distributions[metric]
        means = self.before[metric].mean(), self.after[metric].mean()
        where = metric if self.scope == "rows" else f"{metric} in the population"
        words = [moved_text(where, means, distribution, self.confidence_level)]
        if np.isfinite(distribution.mean()):
            words += [
                zero_by_zero_text("it", {short(name): one[metric].undefined}, one.fills[metric], scope=self.scope)
                for name, one in zip(self.names, self._both, strict=True)
            ]
        return " ".join(filter(None, words))

    @property
    def _both(self) -> tuple[Evaluation, Evaluation]:
        return self.after, self.before

    def _words(self) -> list[str]:
        """What stands above the table: what is compared and assumed, and what is surest to have got worse, or moved."""
        sizes = [
            f"{short(name)} ({counted(one.data.n_rows, 'row')}, {one.data.n_missing:,} missing)"
            for name, one in zip(self.names, self._both, strict=True)
        ]
        assumed = assumed_in_words(self.names, self._both)
        return [f"{sizes[0]} against {sizes[1]}.", *assumed, self.sentence(self.surest)]

    @property
    def surest(self) -> str:
        """The metric that is surest to have got worse; where none is likely to, the surest to have moved."""
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
        """That the two look like the same rows, or as if they had rows in common; empty where they do not."""
        return same_rows_in_words(self.after, self.before)

    def warned(self) -> list[str]:
        """What was warned of when the two were evaluated, a sentence each; `to_dict()` has all of it."""
        return warned_in_words(self.names, self._both)

    def _notes(self) -> list[str]:
        """What stands below the table: what the intervals are for, what both share, what was warned of, and the mix."""
        what = "these rows" if self.scope == "rows" else "the populations that the rows came from"
        notes = [f"Intervals are for {what}. The two evaluations are taken to have no row in common."]
        notes += filter(None, [self.same_rows])
        notes += reasons_in_words(self.names, self._both) + self.warned() + customers_in_words(self._both)
        cuts = [one.data.threshold for one in self._both]
        if cuts[0] != cuts[1]:
            said = ["as given" if cut is None else f"score >= {cut:g}" for cut in cuts]
            notes.append(f"Decisions differ: {said[0]} ({short(self.names[0])}), {said[1]} ({short(self.names[1])}).")
        left = [name for one in self._both for name in one.distributions if name not in self.distributions]
        if left:
            notes.append(f"In one of the two alone, and left out: {', '.join(dict.fromkeys(left))}.")
        return [*notes, *filter(None, [self.together, self._mix_in_words()])]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text, one row per metric."""
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
            number_text(amount(distribution.mean()), decimals),
            interval_text((low, high), decimals),
            chance_text(self.probability_decreased(name)),
            distribution.method,
        ]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/change.md` has the schema)."""
        sides = ("after", self.after), ("before", self.before)
        return {
            "schema": SCHEMA,
            "names": list(self.names),
            "scope": self.scope,
            "counts": {side: one.data.counts() for side, one in sides},
            "assumption": {side: one.assumption for side, one in sides},
            "confidence_level": self.confidence_level,
            "warnings": {side: [warned._asdict() for warned in one.warnings] for side, one in sides},
            "notes": self._notes(),
            "metrics": {
                name: {
                    "better": self.metrics[name].better,
                    "before": finite(self.before[name].mean()),
                    "after": finite(self.after[name].mean()),
                    "fell": finite(self.probability_decreased(name)),
                    "rose": finite(self.probability_increased(name)),
                    "mix": None if (split := self.split(name)) is None else finite(split.mix),
                    "rest": None if split is None else finite(split.rest),
                    **distribution.to_dict(self.confidence_level),
                }
                for name, distribution in self.distributions.items()
            },
        }

    def to_records(self) -> list[dict[str, Any]]:
        """One flat record per metric, with its name and what it is about: the rows of `to_frame`."""
        return [{"metric": name, "scope": self.scope, **entry} for name, entry in self.to_dict()["metrics"].items()]

    def __repr__(self) -> str:
        return (
            f"<EvaluationChange from {short(self.names[1])} to {short(self.names[0])}: {', '.join(self.distributions)}>"
        )
