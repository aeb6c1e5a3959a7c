"""GroupedEvaluation: results of evaluate_by for every group, as text, table and numbers."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from darkmetrics import frames
from darkmetrics._text import counted, join_words
from darkmetrics.argument_types import GroupLike, PathLike
from darkmetrics.call_as_code import arguments_given
from darkmetrics.calls import suggest_call
from darkmetrics.changes import Disparity, EvaluationChange, Trend
from darkmetrics.constraints import checked
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import Metric
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.monitoring.alerts import SCHEMA, Alerts, alerts_of, check_settings
from darkmetrics.monitoring.comparing import change_of_groups, disparity_of_groups, trend_of_groups
from darkmetrics.monitoring.groups import (
    MIN_LABELS,
    GroupSummary,
    Key,
    MissingGroupError,
    describe_key,
    group_text,
    key_text,
    plain_value,
)
from darkmetrics.monitoring.p_values import Judged
from darkmetrics.monitoring.periods import PeriodLike, match_period
from darkmetrics.monitoring.tasks import Group, Notes, Task, count_kept, fit_arrival
from darkmetrics.monitoring.wording import GroupTexts, records_of, rows_of
from darkmetrics.tables import plain_numbers

# Maximum number of letters of a key in an error.
_MAX_LETTERS = 120
# Numbers in the evaluations of groups that were evaluated again and are kept.
_MAX_KEPT_AGAIN = 2**22


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupedEvaluation(GroupTexts, Mapping[Any, Evaluation]):
    """Evaluations of segments and periods: a mapping from the key of a group to its `Evaluation`.

    `groups` has the numbers of every group. `result[key]` has its evaluation, which is computed again if the
    evaluations of all groups do not fit into memory. With one grouping column its value is a key; dates may be text
    ("2026-04").

    Attributes
    ----------
    names : tuple of str
        The grouping columns; keys have a value for each column.
    time : str or None
        The time column; it comes last.
    period : str or None
        Length of a period, if time was cut into periods: "hour", "day", ..., "year".
    groups : mapping from key to GroupSummary
        The numbers, sorted by key.
    total : Evaluation
        All rows together, where the missing labels of each group follow the label model of that group.
    metrics : mapping from name to Metric
        The metrics that were evaluated.
    confidence_level : float
        Confidence level of the intervals.
    evaluated_on : date
        The day of this evaluation.
    total_notes : tuple of str
        Warnings about all rows together.
    remarks : tuple of str
        A phrase for each kind of warning of groups.
    arguments : mapping from argument to code
        The call that made it, without arguments that are defaults.

    Examples
    --------
    >>> import pandas as pd
    >>> import darkmetrics as dm
    >>> labels, scores = [1, 0, 1, 0, None, None] * 20, [0.9, 0.2, 0.4, 0.7, 0.8, 0.3] * 20
    >>> table = pd.DataFrame({"shop": ["app", "web"] * 60, "fraud": labels, "p": scores})
    >>> result = dm.evaluate_by(
    ...     "fraud", "p", data=table, by="shop", missingness=dm.missing.Fixed(0.5), metrics="accuracy"
    ... )
    >>> result
    <GroupedEvaluation of 2 groups by shop, 120 rows: accuracy>
    >>> {key: round(group.metrics["accuracy"].mean, 3) for key, group in result.groups.items()}
    {('app',): 0.5, ('web',): 0.5}
    >>> result["web"]["accuracy"]
    <Discrete: mean 0.5, 90% interval 0.4333 to 0.5667, exact>
    """

    names: tuple[str, ...]
    time: str | None
    period: str | None
    groups: Mapping[Key, GroupSummary]
    total: Evaluation
    metrics: Mapping[str, Metric]
    confidence_level: float
    evaluated_on: dt.date
    total_notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    arguments: Mapping[str, str] = field(default_factory=dict)
    # Evaluations and distributions that were kept, and what groups are evaluated from again.
    evaluations: Mapping[Key, Evaluation] = field(default_factory=dict, repr=False)
    judged: Mapping[Key, Judged] = field(default_factory=dict, repr=False)
    task: Task = field(repr=False)
    pieces: Mapping[Key, Group] = field(repr=False)
    n_jobs: int = 1
    _kept: dict[Key, Evaluation] = field(default_factory=dict, init=False)

    @cached_property
    def arrival(self) -> Arrival | None:
        """When labels arrive (`Evaluation.arrival`), learned from the rows of all groups; None without ages."""
        return fit_arrival(list(self.pieces.values()), self.evaluated_on)

    def __getitem__(self, key: GroupLike) -> Evaluation:
        key = self.key_of(key)
        if key not in self.evaluations and key not in self._kept:
            summary = self.groups[key]
            if all(metric.method == "bounds" for metric in summary.metrics.values()):
                raise InputError(
                    describe_key(self.names, key),
                    f"{summary.too_small}, so there is nothing to learn from",
                    "groups[key] has what any labels can make of the metrics.",
                    "Pass missingness=dm.missing.Reference(labels, scores) of fully labeled rows.",
                )
            with Notes().collect():  # the summary of the group has them
                evaluation = self.task.evaluate(self.pieces[key])
            while self._kept and sum(map(count_kept, self._kept.values())) > _MAX_KEPT_AGAIN:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = evaluation
        return self.evaluations.get(key) or self._kept[key]

    def __contains__(self, key: object) -> bool:
        try:
            self.key_of(key)
        except KeyError:
            return False
        return True

    def __iter__(self) -> Iterator[Key]:
        return iter(self.groups)

    def __len__(self) -> int:
        return len(self.groups)

    def key_of(self, key: GroupLike) -> Key:
        """Return the key of an existing group; with one grouping column, its value suffices."""
        values = key if isinstance(key, tuple) else (key,)
        try:
            if values in self.groups:
                return values
            if len(values) == len(self.names):
                columns = zip(self.names, values, zip(*self.groups, strict=True), strict=True)
                values = tuple(
                    match_period(value, dict.fromkeys(column), self.period if name == self.time else None)
                    for name, value, column in columns
                )
                if values in self.groups:
                    return values
        except TypeError:  # a list is no key
            pass
        first = next(iter(self.groups))
        example = repr(first if len(first) > 1 else first[0])
        if len(example) > _MAX_LETTERS:
            example = f"that of the first group ({describe_key(self.names, first)})"
        names = join_words([repr(name) for name in self.names])
        raise MissingGroupError(
            f"{key!r} is not among the {counted(len(self.groups), 'group')}",
            "",
            f"Give the value of {names}, such as {example}.",
        )

    def label(self, key: GroupLike) -> str:
        """Return a group as printable text: its values, with periods as short as possible."""
        return group_text(self.names, self.key_of(key), self.time, self.period)

    @property
    def _view(self) -> Alerts:
        return Alerts(grouped=self)

    @suggest_call()
    def alerts(
        self,
        targets: Mapping[str, float],
        *,
        false_discovery_rate: float = 0.05,
        correction: str = "bh",
        min_labels: int = MIN_LABELS,
        since: PeriodLike | None = None,
        last_periods: int | None = None,
        known_alerts: Alerts | Mapping[str, Any] | PathLike | None = None,
    ) -> Alerts:
        """Find the groups that miss a target, with few false alerts among them.

        Parameters
        ----------
        targets : mapping from metric to number
            Value to reach: at least the number, or at most if lower is better. The metrics must have been evaluated.
        false_discovery_rate : float
            Largest expected fraction of false alerts among all alerts.
        correction : {"bh", "by"}
            The procedure of Benjamini and Hochberg is proven for independent groups with one target. The procedure of
            Benjamini and Yekutieli holds under any dependence (several targets, shared reference rows), with fewer
            alerts.
        min_labels : int
            A group with fewer labeled positives or negatives is too small and not judged. With reference rows, a column
            of probabilities or delayed labels, positives expected among the missing rows count too.
        since : str, date or number, optional
            Judge only this period ("2026-05", "2026-Q2", a date in it) and later periods. Earlier groups and groups
            without a date are shown, but do not make other alerts rarer.
        last_periods : int, optional
            Judge only this number of newest periods.
        known_alerts : Alerts, dict or path, optional
            Earlier alerts, their `to_dict()`, or a file with that as JSON. An alert that they contain, with the same
            target, is not `new`, and `known_since` has its first day; `resolved` has earlier alerts that are none now.

        Returns
        -------
        Alerts
            A sequence of `Alert`, by increasing q-value. Groups with distributions that were too large to keep are
            evaluated again, for the metrics that have a target.

        Notes
        -----
        An alert means that the target is missed on the rows of the group; with `evaluate_by(scope="population")`, in
        the population that they come from. Its p-value is the probability, given the data, that the target is met, and
        a little more in tails that are less accurate. If the target is met and the group's distribution is right, the
        p-value is at most u with probability at most u. A wrong missingness mechanism gives wrong alerts, as it gives
        wrong intervals. A metric that is 0/0 misses no target unless `evaluate_by(zero_division=...)` sets its value.

        Examples
        --------
        >>> import numpy as np
        >>> import pandas as pd
        >>> import darkmetrics as dm
        >>> rng = np.random.default_rng(0)
        >>> p = rng.random(3000)
        >>> y = (rng.random(3000) < p).astype(float)
        >>> country = np.repeat(["DE", "FR", "IT"], 1000)
        >>> p[country == "FR"] **= 1.5  # scores have become too low in France
        >>> y[rng.random(3000) < 0.3] = np.nan
        >>> table = pd.DataFrame({"country": country, "fraud": y, "p": p})
        >>> result = dm.evaluate_by("fraud", "p", data=table, by="country", metrics=["precision", "recall"])
        >>> print(result.alerts({"recall": 0.72}))
        3 groups by country: 3,000 rows, 2,067 labeled, 933 missing (31.1%)
        1 of 3 groups misses recall >= 0.72 (false-discovery rate 5%): FR (1).
        <BLANKLINE>
                country    rows   missing                   recall   P(recall < 0.72)
                all       3,000     31.1%   0.682 (0.608 to 0.736)              0.890
                DE        1,000     32.4%   0.736 (0.659 to 0.787)              0.220
        alert   FR        1,000     31.1%   0.576 (0.503 to 0.636)                  1
                IT        1,000     29.8%   0.733 (0.658 to 0.781)              0.240
        <BLANKLINE>
        In brackets: 90% intervals for the rows of each group, which has a label model of its own; all is their sum.
        Not in the table, which has the metrics with a target: precision; see .grouped.
        """
        arguments = {name: value for name, value in locals().items() if name != "self"}
        if not targets:
            raise InputError("targets", "there is none", "", "Pass a mapping such as {'recall': 0.8}.")
        options = {name: value for name, value in arguments.items() if name != "targets"}
        settings = check_settings(targets, self.metrics.values(), self.names, self.period, **options)
        return alerts_of(self, settings, arguments_given(GroupedEvaluation.alerts, arguments))

    @checked
    def compare(
        self, after: GroupLike, before: GroupLike, *, confidence_level: float | None = None
    ) -> EvaluationChange:
        """Compare two groups: the distribution of each metric's difference, after minus before.

        Uncertainty that both groups share counts once, as in `compare_evaluations`: delays that were learned from all
        groups, a mechanism that is not stated, reference rows.

        Parameters
        ----------
        after, before
            Keys of two groups, such as "2026-06" and "2026-05".
        confidence_level : float, optional
            Confidence level of printed intervals. Default: the level of the result.

        Examples
        --------
        >>> import pandas as pd
        >>> import darkmetrics as dm
        >>> table = pd.DataFrame({"day": ["2026-06-01"] * 60 + ["2026-05-01"] * 60})
        >>> table["y"], table["p"] = [1, 0, 1, 0, None, None] * 20, [0.9, 0.2, 0.4, 0.7, 0.8, 0.3] * 20
        >>> result = dm.evaluate_by(
        ...     "y", "p", data=table, by="day", missingness=dm.missing.Fixed(0.5), metrics="accuracy"
        ... )
        >>> round(result.compare("2026-06-01", "2026-05-01").probability_decreased("accuracy"), 3)
        0.437
        """
        return change_of_groups(self, after, before, confidence_level)

    def trend(self, metric: str, segment: GroupLike = None) -> Trend:
        """Compute the slope of a straight line through the periods of a metric, with its distribution.

        Periods with too few labels (`too_small`) are left out, unless none of their labels is missing.

        Parameters
        ----------
        metric : str
            Name of an evaluated metric.
        segment : optional
            Value of the grouping column next to time, or a tuple with a value for each such column.

        Examples
        --------
        >>> import pandas as pd
        >>> import darkmetrics as dm
        >>> rows = [("2026-04", 1, 0.9), ("2026-04", 0, 0.1), ("2026-05", 1, 0.9), ("2026-05", 0, 0.1)]
        >>> rows += [("2026-06", 1, 0.9), ("2026-06", 0, 0.7)]
        >>> table = pd.DataFrame(rows, columns=["month", "y", "p"])
        >>> result = dm.evaluate_by("y", "p", data=table, by="month", metrics="accuracy")
        >>> print(str(result.trend("accuracy")).splitlines()[0])
        accuracy falls by 0.2500 per period over 3 periods, 2026-04 to 2026-06, for certain. Probability that it is
        falling: 100%.
        """
        return trend_of_groups(self, metric, segment)

    @checked
    def disparity(
        self, metric: str | None = None, kind: str = "difference", *, groups: Sequence[Any] | None = None
    ) -> Disparity:
        """Compute how much a metric differs between groups, with its distribution.

        Without missing labels, the results are those of fairlearn's `MetricFrame`: `difference()`, `ratio()` and
        `equalized_odds_difference`. Groups with too few labels (`too_small`) are left out, unless none of their labels
        is missing. The disparity is that of these rows, which is larger in small groups than that of the populations.
        With scope="population" it is that of the populations.

        Parameters
        ----------
        metric : str, optional
            Name of an evaluated metric; not needed for equalized odds, which use "recall" and "fpr".
        kind : {"difference", "ratio", "equalized_odds"}
            Largest minus smallest; smallest divided by largest; the larger of the differences in true and in false
            positive rate, which is for scope="rows" only.
        groups : list of keys, optional
            The groups to compare, 256 at most. Default: all groups.

        Examples
        --------
        >>> import pandas as pd
        >>> import darkmetrics as dm
        >>> rows = [("app", 1, 0.9), ("app", 1, 0.8), ("web", 1, 0.9), ("web", 1, 0.2), ("web", 0, 0.6)]
        >>> table = pd.DataFrame(rows, columns=["shop", "y", "p"])
        >>> result = dm.evaluate_by("y", "p", data=table, by="shop", metrics="recall")
        >>> result.disparity("recall")
        <Disparity, difference in recall, over 2 groups: 0.5, 90% 0.5 to 0.5>
        >>> result.disparity("recall", kind="ratio").distribution.mean()
        0.5
        """
        return disparity_of_groups(self, metric, kind, groups)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text, ready for JSON (schema: `docs/reference/monitoring.md`)."""
        return {
            "schema": SCHEMA,
            "names": list(self.names),
            "time": self.time,
            "period": self.period,
            "confidence_level": self.confidence_level,
            "scope": self.total.scope,
            "notes": self._notes(),
            "evaluated_on": self.evaluated_on.isoformat(),
            "total": self.total.to_dict(),
            "groups": [
                {
                    "key": list(map(plain_value, key)),
                    "counts": dict(group.counts),
                    "too_small": group.too_small,
                    "notes": list(group.notes),
                    "warnings": [warned._asdict() for warned in group.warnings],
                    "metrics": {name: plain_numbers(asdict(summary)) for name, summary in group.metrics.items()},
                }
                for key, group in self.groups.items()
            ],
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """Return one row per group and metric, as a pandas, Polars or PyArrow frame (the first installed, or named).

        Grouping columns come first, as text where the engine has no such values. Numbers with the name of a grouping
        column end in "_".
        """
        rows = rows_of(self._view, judged=False)
        return frames.to_native_frame({name: [row[name] for row in rows] for name in rows[0]}, backend)

    def to_records(self) -> list[dict[str, Any]]:
        """Return the rows of `to_frame` as plain numbers and text, ready for JSON or CSV."""
        return records_of(self._view, judged=False)

    def __repr__(self) -> str:
        names = join_words([key_text(name) for name in self.names])
        return (
            f"<GroupedEvaluation of {counted(len(self.groups), 'group')} by {names}, "
            f"{counted(self.total.data.n_rows, 'row')}: {', '.join(self.metrics)}>"
        )
