"""evaluate_by(): segments and periods of a table in one pass."""

import datetime as dt
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from darkmetrics import frames
from darkmetrics._text import counted
from darkmetrics.argument_types import (
    Duration,
    FrameLike,
    LabelValue,
    Missingness,
    PathLike,
    PointInTime,
    ProgressLike,
    RngLike,
    Scope,
    ZeroDivision,
)
from darkmetrics.call_as_code import arguments_given
from darkmetrics.data.ages import table_times
from darkmetrics.data.evaluation_set import EvaluationSet, sets_from_counted
from darkmetrics.data.rules import check_label_values, decided_from, is_whole
from darkmetrics.evaluating import evaluate, question_of_table, strata_by_name, with_reference
from darkmetrics.exceptions import (
    CalibrationWarning,
    InputError,
    MissingnessWarning,
    RefutedWarning,
    UndefinedMetricWarning,
    heard,
    level_of_caller,
    reference_from,
    says_where,
)
from darkmetrics.footnotes import warn_of_default_threshold
from darkmetrics.label_models import LateLabels
from darkmetrics.methods.base import MethodLike, seed_from
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.metrics.targets import targets_from
from darkmetrics.missingness.base import LabelModel, LabelModelLike
from darkmetrics.missingness.delay_groups import fit_groups
from darkmetrics.missingness.score_table import ReferenceLike
from darkmetrics.monitoring.alerts import (
    Alert,
    Alerts,
    check_correction,
    check_rate,
    compared,
    earlier_alerts,
    q_values_of,
    side_of,
)
from darkmetrics.monitoring.groups import group_text, in_order, named, plain
from darkmetrics.monitoring.periods import PeriodLike, check_asked, watched_from
from darkmetrics.monitoring.result import GroupedEvaluation
from darkmetrics.monitoring.tasks import Group, GroupResult, Notes, Task
from darkmetrics.processes import generators_from, jobs_from, run_each
from darkmetrics.question import asked_in

# What each kind of warning says of a group, in a phrase.
PHRASES = {
    MissingnessWarning: "missing rows look different from labelled ones, and why they do changes the answer",
    RefutedWarning: "the rows contradict what is assumed about their missing labels",
    CalibrationWarning: "few labels to learn from, or hardly any where labels are missing",
    UndefinedMetricWarning: "a metric may be undefined (0/0)",
}


@says_where("It is one of evaluate and evaluate_frame, which answer for all rows at once.")
def evaluate_by(
    frame: FrameLike,
    by: str | Sequence[str] | None = None,
    *,
    label: str,
    score: str,
    time: str | None = None,
    every: str | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    targets: Mapping[str, float] | None = None,
    false_discovery_rate: float = 0.05,
    correction: str = "bh",
    min_labels: int = 5,
    since: PeriodLike | None = None,
    last: int | None = None,
    known: GroupedEvaluation | Mapping[str, Any] | PathLike | None = None,
    threshold: float | None = None,
    decision: str | None = None,
    probability: str | None = None,
    weight: str | None = None,
    propensity: str | None = None,
    strata: str | None = None,
    scored_at: str | None = None,
    labelled_at: str | None = None,
    as_of: PointInTime | None = None,
    maturity: Duration | None = None,
    buckets: str | int = "auto",
    label_model: LabelModelLike = "auto",
    missingness: Missingness = None,
    reference: ReferenceLike | FrameLike | None = None,
    method: MethodLike = "auto",
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    zero_division: ZeroDivision = "warn",
    rng: RngLike = None,
    confidence_level: float = 0.9,
    scope: Scope = "rows",
    n_jobs: int = 1,
    progress: ProgressLike = None,
    calibration: ReferenceLike | FrameLike | None = None,
) -> GroupedEvaluation:
    """How good is this classifier in each segment and period, and which of them miss their target?

    The table's own engine counts all groups in one pass. Each group is then evaluated by itself, as `evaluate_frame`
    would evaluate its rows, with a label model of its own: one that all groups shared would hide the very change that
    monitoring looks for. All rows together (`total`) are the sum of the groups: the law of the metrics on all rows when
    the missing labels of each group follow that group's model. Late labels are the exception: when labels come is
    learnt from all groups at once, and each group has a level of its own, so that the newest month, with hardly a
    label, has an answer too.

    Parameters
    ----------
    frame : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths
        As in `evaluate_frame`.
    by : str or list of str, optional
        Columns whose values make the groups; null is a value of its own. Not needed where `time` is given.
    label, score : str
        Names of the columns with labels (missing ones null or NaN) and scores.
    time, every : str, optional
        A column with dates or times, and how it is cut into periods: "hour", "day", "week", "month", "quarter" or
        "year". Without `every` each value of the column is a period.
    metrics
        As in `evaluate`; metrics that have a target are added.
    targets : mapping from metric to number, optional
        What to reach: at least the number, or at most where lower is better.
    false_discovery_rate : float
        How large a share of the alerts may be false, on average.
    correction : {"bh", "by"}
        How that is kept: Benjamini and Hochberg's procedure, proven for groups that are independent, with one target;
        or Benjamini and Yekutieli's, for any dependence (several targets, shared reference rows), with fewer alerts.
    min_labels : int
        A group with fewer labelled positives or negatives than this is too small to judge: its label model leans on a
        prior, and a label more or less moves its metrics by a fifth. It is marked (`too_small`), what is possible at
        all (`lowest_possible`, `highest_possible`) is right all the same, and it takes no part in the alerts. With
        `reference` rows, a `probability` column or late labels, positives expected among the missing rows count too.
    scored_at, labelled_at, as_of, maturity
        As in `evaluate_frame`: labels come with time. The column of `time` may be that of `scored_at`.
    since : str, date or number, optional
        Alerts look at this period ("2026-05", "2026-Q2", a date in it) and later ones alone. Earlier groups, and those
        without a date, are evaluated and shown as ever, but are not judged, and do not make alerts of others rarer.
    last : int, optional
        The same for so many of the newest periods that there are.
    known : GroupedEvaluation, dict or path, optional
        An earlier result, its `to_dict()`, or a file with that as JSON. An alert that it has too, with the same target,
        is not `new`, and has the day since when it is `known_since`; `gone` has those that are none any more.
    threshold, decision, probability, weight, propensity, strata, buckets
        As in `evaluate_frame`. Beyond a million rows scores are counted in 1,024 to 65,536 buckets per group, the more
        the fewer groups there are; decisions, and metrics of them, stay exact, and alerts allow for what buckets can
        do to other metrics.
    label_model, missingness, reference, method, pos_label, missing_label, zero_division, confidence_level
        As in `evaluate_frame`, for each group. A metric that is 0/0 misses no target unless `zero_division` says what
        it counts as.
    scope : {"rows", "population"}
        Whether intervals, targets and alerts are about the rows of each group, or about the population that these are
        a random sample of.
    rng : None, int or numpy Generator
        Source of randomness for Monte Carlo. Results do not depend on the order of groups or on `n_jobs`.
    n_jobs : int
        Processes, -1 for one per core.
    progress : bool or callable, optional
        Show a progress bar (needs the package rich); by default where standard error is a terminal. Or a function,
        which is called with how many pieces are done and how many there are.
    calibration
        An older word for `reference`, with a FutureWarning.

    Returns
    -------
    GroupedEvaluation
        A mapping from the key of a group, a tuple with a value per column, to its `Evaluation`.

    Notes
    -----
    An alert says that the target is missed on the rows of the group, not in the population that they come from, unless
    `scope` says so. Its
    p-value is the probability, given the data, that the target is met, and a little more in the tails of laws that are
    not known so well there. Where the target is truly met and the group's law is right, that is at most u with
    probability u at most. A law that rests on a wrong reason for missing labels
    gives wrong alerts, as it gives wrong intervals.

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
    >>> result = dm.evaluate_by(
    ...     table, "country", label="fraud", score="p", metrics=["precision", "recall"], targets={"recall": 0.72}
    ... )
    >>> print(result)
    3 groups by country: 3,000 rows, 2,067 labelled, 933 missing (31.1%)
    1 of 3 groups misses recall >= 0.72 (false-discovery rate 5%): FR (1).
    <BLANKLINE>
    country    rows   missing                precision                   recall   P(recall < 0.72)
    all       3,000     31.1%   0.743 (0.631 to 0.812)   0.682 (0.608 to 0.735)              0.892
    DE        1,000     32.4%   0.725 (0.615 to 0.795)   0.736 (0.659 to 0.787)              0.217
    FR        1,000     31.1%   0.795 (0.672 to 0.862)   0.576 (0.505 to 0.636)                  1   alert
    IT        1,000     29.8%   0.725 (0.613 to 0.798)   0.733 (0.660 to 0.781)              0.237
    <BLANKLINE>
    In brackets: 90% intervals for the rows of each group, which has a label model of its own; all is their sum.
    >>> result["IT"]["precision"]
    <Discrete: mean 0.7252, 90% interval 0.6133 to 0.7983, exact>
    """
    reference, calibration = reference_from(reference, calibration), None
    given = dict(locals())
    names = _names(by, time, every)
    check_asked(since, last)
    earlier = earlier_alerts(known, names, every)
    rate, procedure, least = check_rate(false_discovery_rate), check_correction(correction), _least(min_labels)
    jobs = jobs_from(n_jobs)
    check_label_values(pos_label, missing_label)
    cut = decided_from(threshold, None if decision is None else "decision")
    question = question_of_table(given)
    chosen, numbers = targets_from(targets, question.metrics)
    question = with_reference(replace(question, metrics=tuple(chosen)), given)
    with strata_by_name(strata):
        columns = frames.ColumnNames(
            label, score, decision, probability, weight, strata, propensity, scored_at, labelled_at
        )
    task = Task(
        question=question,
        arguments=arguments_given(evaluate, _asked_of_sets(given)),
        targets=numbers,
        min_labels=least,
        n_draws=getattr(question.method, "n_resamples", 1),
        n_groups=1,
        expected=probability is not None or getattr(question.model, "reference", None) is not None,
        names={
            "y_true": columns.title("label"),
            "y_score": columns.title("score"),
            "label_model=y_score": f"probability={score!r}",
        },
    )
    with heard() as said, strata_by_name(strata):
        cells = frames.count_cells(
            frame,
            columns,
            threshold=cut,
            pos_label=pos_label,
            missing_label=missing_label,
            buckets=buckets,
            by=names if every is None else names[:-1],
            time=None if every is None else time,
            every=every,
            **table_times(given),
        )
        name = columns.title("label")
        sets = sets_from_counted(cells, threshold=cut, pos_label=pos_label, missing_label=missing_label, label=name)
        warn_of_default_threshold(sets, chosen)
    keys = list(zip(*(cells.keys[name] for name in names), strict=True))
    watched = watched_from(since, last, names, time, every, keys)
    # Without rng=, a group has the numbers that `evaluate` has for its rows.
    n_seeds = len(keys) + 1
    generators = generators_from(rng, n_seeds) if rng is not None else [question.rng]
    *seeds, seed_of_total = (list(map(seed_from, generators)) * n_seeds)[:n_seeds]
    places = in_order(keys)
    models = _models(task, [sets[i] for i in places])
    pieces = [
        Group(keys[i], f"the group {named(names, keys[i])}", sets[i], seed, model)
        for i, seed, model in zip(places, seeds, models, strict=True)
    ]
    # Where labels are late, what is expected is what can be gone by: a month is judged before its labels are in.
    task = replace(task, n_groups=len(pieces), expected=task.expected or any(models))
    results: list[GroupResult] = run_each(task.summarised, pieces, jobs, progress, "Groups")
    notes = Notes()
    arguments = arguments_given(evaluate_by, given)
    total = task.added_up(pieces, results, seed_of_total, arguments, notes)
    total = replace(total, warnings=tuple(dict.fromkeys([*said, *total.warnings])))
    _warn(results, notes)
    looked_at = [one for one in results if watched is None or watched.has(one.summary.key)]
    q_values = q_values_of(looked_at, procedure) if numbers else {}
    groups = {result.summary.key: result.summary for result in results}
    metrics_by_name = {metric.name: metric for metric in chosen}
    today = _today() if as_of is None else frames.AsOf.of(as_of).date
    alerts = [
        Alert(
            key=key,
            metric=name,
            side=side_of(metrics_by_name[name]),
            target=numbers[name],
            probability=groups[key].chance_missed[name],
            q_value=q_value,
            group=group_text(names, key, time, every),
            known_since=today,
        )
        for (key, name), q_value in q_values.items()
        if q_value <= rate
    ]
    gone = None
    if earlier is not None:
        group_of = {tuple(map(plain, key)): (key, group_text(names, key, time, every)) for key in groups}
        alerts, gone = compared(alerts, earlier, group_of)
    return GroupedEvaluation(
        names=names,
        period=time,
        every=every,
        groups=groups,
        total=total,
        metrics=metrics_by_name,
        targets=numbers,
        alerts=Alerts(sorted(alerts, key=lambda alert: (alert.q_value, -alert.probability))),
        q_values=q_values,
        false_discovery_rate=rate,
        correction=procedure,
        confidence_level=total.confidence_level,
        min_labels=task.min_labels,
        evaluated_on=today,
        since=None if watched is None else watched.first,
        gone=gone,
        arguments=arguments,
        total_notes=(*(one.message for one in said), *notes.texts),
        remarks=tuple(phrase for kind, phrase in PHRASES.items() if _warned(kind, results)),
        evaluations={result.summary.key: result.evaluation for result in results if result.evaluation is not None},
        task=task,
        pieces={piece.key: piece for piece in pieces},
    )


def _asked_of_sets(given: Mapping[str, Any]) -> dict[str, Any]:
    """What is asked of a group's own set, which has what columns of the table say of its rows."""
    asked = asked_in(given)
    return asked | {name: True for name in ("propensity", "strata", "age") if asked[name] is not None}


def _names(by: Any, time: str | None, every: str | None) -> tuple[str, ...]:
    """The grouping columns, time last."""
    if every is not None and time is None:
        raise InputError(f"every: {every!r}, but there is no time column to cut into periods. Name it with time=.")
    given = [] if by is None else [by] if isinstance(by, str) else by
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
        found = f"values ({type(by).__name__})" if hasattr(by, "dtype") else repr(by)
        raise InputError(f"by: expected a column name or a list of them, got {found}.")
    frames.check_name("time", time)
    names = (*given, *([] if time is None else [time]))
    if not names:
        raise InputError("by: no grouping column. Name at least one, or a time column with time= and every=.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"by: {twice!r} is named twice.")
    return names


def _models(task: Task, sets: Sequence[EvaluationSet]) -> Sequence[LabelModel | None]:
    """The label model of each group where one is learnt from all groups, as late labels are; else nothing."""
    chosen = map(task.question.model_of, sets)
    late = next((model for model in chosen if isinstance(model, LateLabels)), None)
    if late is None:
        return [None] * len(sets)
    with task.naming("all rows together"):
        return fit_groups(late, sets)


def _today() -> dt.date:
    """The day on the clock of whoever runs it."""
    return dt.date.today()


def _least(min_labels: Any) -> int:
    if not is_whole(min_labels) or min_labels < 0:
        raise InputError(f"min_labels: {min_labels!r}. It must be a whole number of at least 0.")
    return int(min_labels)


def _warned(kind: type[Warning], results: Sequence[GroupResult]) -> int:
    """How many groups that are not too small gave such a warning."""
    return sum(kind in result.warned and not result.summary.too_small for result in results)


def _warn(results: Sequence[GroupResult], total: Notes) -> None:
    """One warning for all groups; those that are too small are marked as such and not counted."""
    parts, worst = [], None
    for kind, phrase in PHRASES.items():
        number = _warned(kind, results)
        if number or kind in total.kinds:
            worst = worst or kind
            where = [f"in {number:,} of {counted(len(results), 'group')}"] if number else []
            where += ["for all rows together"] if kind in total.kinds else []
            parts.append(f"{' and '.join(where)} {phrase}")
    if worst is not None:
        text = "; ".join(parts)
        warnings.warn(
            f"{text[0].upper()}{text[1:]}. The notes of each group (groups[key].notes) and of the result say more.",
            worst,
            stacklevel=level_of_caller(),
        )
