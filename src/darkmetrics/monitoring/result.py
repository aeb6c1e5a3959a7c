"""GroupedEvaluation: what evaluate_by found in every group, as words, table and numbers."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from darkmetrics import frames
from darkmetrics._text import counted, printable
from darkmetrics.argument_types import GroupLike, PathLike
from darkmetrics.call_as_code import arguments_given
from darkmetrics.calls import suggest_call
from darkmetrics.changes import Disparity, EvaluationChange, Trend
from darkmetrics.constraints import checked
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics import Metric
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.monitoring.alerts import SCHEMA, Alerts, alerts_of, asked_from
from darkmetrics.monitoring.comparing import change_of_groups, disparity_of_groups, trend_of_groups
from darkmetrics.monitoring.groups import (
    MIN_LABELS,
    GroupSummary,
    Key,
    group_text,
    key_text,
    listed,
    make_room,
    named,
    plain,
)
from darkmetrics.monitoring.periods import PeriodLike, as_known
from darkmetrics.monitoring.tasks import Group, Notes, Task, arrival_in
from darkmetrics.monitoring.wording import GroupTexts, records_of, rows_of
from darkmetrics.tables import plain_numbers

# Letters of a key that an error shows.
_TYPED = 120


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class GroupedEvaluation(GroupTexts, Mapping[Any, Evaluation]):
    """Segments and periods, each evaluated by itself: a mapping from the key of a group to its `Evaluation`.

    `groups` has the numbers of every group, and `result[key]` its evaluation, which is computed again if those of all
    groups do not fit into memory. With one grouping column, the value is a key; dates may be text ("2026-04").

    Attributes
    ----------
    names : tuple of str
        The grouping columns; keys have one value for each.
    time : str or None
        The one among them that is time; it comes last.
    period : str or None
        How long a period is, if time was cut into periods here: "hour", "day", ..., "year".
    groups : mapping from key to GroupSummary
        The numbers, sorted by key.
    total : Evaluation
        All rows together: the sum of the groups, each with its own label model, and never a fit that contradicts them.
    metrics : mapping from name to Metric
        What was evaluated.
    confidence_level : float
        Of the intervals.
    evaluated_on : date
        The day of this evaluation.
    total_notes : tuple of str
        What the evaluation of all rows warned of.
    remarks : tuple of str
        What groups warned of, in a phrase each.
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
    # Evaluations that were kept, and what the other groups are evaluated from again.
    evaluations: Mapping[Key, Evaluation] = field(default_factory=dict, repr=False)
    task: Task = field(repr=False)
    pieces: Mapping[Key, Group] = field(repr=False)
    n_jobs: int = 1
    _kept: dict[Key, Evaluation] = field(default_factory=dict, init=False)

    @cached_property
    def arrival(self) -> Arrival | None:
        """When labels come (`Evaluation.arrival`), learned from the rows of all groups; None unless they have ages."""
        return arrival_in(list(self.pieces.values()), self.evaluated_on)

    def __getitem__(self, key: GroupLike) -> Evaluation:
        key = self.key_of(key)
        if key not in self.evaluations and key not in self._kept:
            summary = self.groups[key]
            if all(metric.method == "bounds" for metric in summary.metrics.values()):
                raise InputError(
                    f"{named(self.names, key)}: {summary.too_small}, so there is nothing to learn from. groups[key] "
                    "has what any labels can make of the metrics; dm.missing.Reference (fully labeled rows) would tell "
                    "more."
                )
            with Notes().taken():  # they are among the notes of the group already
                evaluation = self.task.evaluated(self.pieces[key])
            make_room(self._kept)
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
        """The key of a group that there is; one value will do where there is one column."""
        whole = key if isinstance(key, tuple) else (key,)
        try:
            if whole in self.groups:
                return whole
            if len(whole) == len(self.names):
                meant = tuple(
                    as_known(value, {known[i]: None for known in self.groups}, self._period_of(name))
                    for i, (name, value) in enumerate(zip(self.names, whole, strict=True))
                )
                if meant in self.groups:
                    return meant
        except TypeError:  # a list, say, which is no key of anything
            pass
        first = next(iter(self.groups))
        typed = repr(first if len(first) > 1 else first[0])
        # A value that is a page long is described.
        shown = typed if len(typed) <= _TYPED else f"that of the first group ({named(self.names, first)})"
        raise MissingGroupError(
            f"key: {key!r} is not among the {counted(len(self.groups), 'group')}. Give the value of "
            f"{listed([repr(name) for name in self.names])}, such as {shown}."
        )

    def _period_of(self, name: str) -> str | None:
        return self.period if name == self.time else None

    def label(self, key: GroupLike) -> str:
        """A group in words, fit to be shown: its values, with periods as short as they can be."""
        return group_text(self.names, self.key_of(key), self.time, self.period)

    @property
    def _view(self) -> Alerts:
        """Itself as alerts without a target, which is what is printed and drawn."""
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
        """Which groups miss a target? With few false alerts among all of them.

        Parameters
        ----------
        targets : mapping from metric to number
            What to reach: at least the number, or at most if lower is better. The metrics must have been evaluated.
        false_discovery_rate : float
            Largest expected fraction of false alerts among all alerts.
        correction : {"bh", "by"}
            Benjamini and Hochberg's procedure, proven for groups that are independent, with one target; or Benjamini
            and Yekutieli's, for any dependence (several targets, shared reference rows), with fewer alerts.
        min_labels : int
            A group with fewer labeled positives or negatives is too small to judge and takes no part in the alerts.
            With reference rows, a column of probabilities or delayed labels, positives expected among the missing rows
            count too.
        since : str, date or number, optional
            Only this period ("2026-05", "2026-Q2", a date in it) and later ones are judged. Earlier groups, and those
            without a date, are shown, and do not make alerts of others rarer.
        last_periods : int, optional
            The same for this number of newest periods.
        known_alerts : Alerts, dict or path, optional
            Earlier alerts, their `to_dict()`, or a file with that as JSON. An alert that is there too, with the same
            target, is not `new`, and has the day since when it is `known_since`; `gone` has those that are none any
            more.

        Returns
        -------
        Alerts
            A sequence of `Alert`, the surest first. Groups with an evaluation that was too large to keep are evaluated
            again, for the metrics that have a target.

        Notes
        -----
        An alert says that the target is missed on the rows of the group, not in the population that they come from,
        unless `evaluate_by(scope=...)` says so. Its p-value is the probability, given the data, that the target is met,
        and a little more in the tails of distributions that are not known so well there. Where the target is truly met
        and the group's distribution is right, that is at most u with probability u at most. A wrong reason for missing
        labels gives wrong alerts, as it gives wrong intervals. A metric that is 0/0 misses no target unless
        `evaluate_by(zero_division=...)` sets its value.

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
        given = dict(locals())
        del given["self"]
        if not targets:
            raise InputError("targets: there is none. Pass a mapping such as {'recall': 0.8}.")
        settings = {name: value for name, value in given.items() if name != "targets"}
        asked = asked_from(targets, self.metrics.values(), self.names, self.period, **settings)
        return alerts_of(self, asked, arguments_given(GroupedEvaluation.alerts, given))

    @checked
    def compare(
        self, after: GroupLike, before: GroupLike, *, confidence_level: float | None = None
    ) -> EvaluationChange:
        """Did it get worse from one group to another? The law of each metric's difference, after less before.

        What is open about the labels of both groups is counted once, as in `compare_evaluations`: delays of labels that
        were learned from all groups, a reason that was not stated, reference rows.

        Parameters
        ----------
        after, before
            Keys of two groups, such as "2026-06" and "2026-05".
        confidence_level : float, optional
            Of intervals in print; that of the result unless given.

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
        """Is a metric falling over the periods? The law of the slope of a straight line through them.

        Periods with too few labels (`too_small`) are left out, unless none of their labels is missing.

        Parameters
        ----------
        metric : str
            One of the metrics.
        segment : optional
            Whose periods, where there are grouping columns besides time: their value, or a tuple with a value for each.

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
        """Do groups differ? The law of how far they are apart in a metric.

        With no label missing it is what fairlearn's `MetricFrame` has: `difference()`, `ratio()` and
        `equalized_odds_difference`. Groups with too few labels (`too_small`) are left out, unless none of their labels
        is missing. It is the gap of these rows: among groups of few rows it is larger than that of the populations.
        With scope="population" it is that of the populations.

        Parameters
        ----------
        metric : str, optional
            One of the metrics; not needed for equalized odds, which are those of "recall" and "fpr".
        kind : {"difference", "ratio", "equalized_odds"}
            Largest less smallest; smallest over largest; the larger of the differences in true and in false positive
            rate, which is for scope="rows" alone.
        groups : list of keys, optional
            The groups to compare; all of them unless given, 256 at most.

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
        """Everything as plain numbers and text, ready for JSON (`docs/reference/monitoring.md` has the schema)."""
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
                    "key": list(map(plain, key)),
                    "counts": dict(group.counts),
                    "too_small": group.too_small,
                    "notes": list(group.notes),
                    "warnings": [warned._asdict() for warned in group.warnings],
                    "metrics": {name: plain_numbers(asdict(one)) for name, one in group.metrics.items()},
                }
                for key, group in self.groups.items()
            ],
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per group and metric, as a pandas, Polars or PyArrow frame (the first one installed, unless named).

        Grouping columns come first, as text where the engine has no such values; numbers called like one end in "_".
        """
        rows = rows_of(self._view, judged=False)
        return frames.to_native_frame({name: [row[name] for row in rows] for name in rows[0]}, backend)

    def to_records(self) -> list[dict[str, Any]]:
        """The rows of `to_frame` as plain numbers and text, ready for JSON or CSV."""
        return records_of(self._view, judged=False)

    def __repr__(self) -> str:
        names = listed([key_text(name) for name in self.names])
        return (
            f"<GroupedEvaluation of {counted(len(self.groups), 'group')} by {names}, "
            f"{counted(self.total.data.n_rows, 'row')}: {', '.join(self.metrics)}>"
        )


class MissingGroupError(KeyError):
    """A KeyError, as mappings raise, whose message is printed as it is written."""

    def __str__(self) -> str:
        return printable(str(self.args[0]), keep="\n")
