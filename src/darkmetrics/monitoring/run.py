"""evaluate_by(): segments and periods of a table in one pass."""

import datetime as dt
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from darkmetrics import frames
from darkmetrics._text import counted
from darkmetrics.argument_types import (
    FrameLike,
    LabelValue,
    RngLike,
    Scope,
    ZeroDivision,
)
from darkmetrics.call_as_code import arguments_given
from darkmetrics.calls import suggest_call
from darkmetrics.data.ages import table_times
from darkmetrics.data.building import column_names
from darkmetrics.data.class_building import find_score_columns
from darkmetrics.data.evaluation_set import EvaluationSet, sets_from_counted
from darkmetrics.data.rules import check_label_values, decided_from
from darkmetrics.evaluating import evaluate, question_of
from darkmetrics.exceptions import (
    AssumptionWarning,
    CalibrationWarning,
    InputError,
    MissingnessWarning,
    UndefinedMetricWarning,
    level_of_caller,
    record_warnings,
)
from darkmetrics.footnotes import warn_of_default_threshold
from darkmetrics.methods.base import MethodLike, seed_from
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missing import Delayed
from darkmetrics.missingness.base import Mechanism, MissingnessLike
from darkmetrics.missingness.delay_groups import fit_groups
from darkmetrics.missingness.fixed import has_probabilities
from darkmetrics.missingness.reference import Reference
from darkmetrics.monitoring.groups import in_order, named
from darkmetrics.monitoring.result import GroupedEvaluation
from darkmetrics.monitoring.tasks import Group, GroupResult, Notes, Task
from darkmetrics.processes import generators_from, jobs_from, run_each

# What each kind of warning says of a group, in a phrase.
PHRASES = {
    MissingnessWarning: "the estimates depend on why labels are missing",
    AssumptionWarning: "the rows contradict what was assumed about missing labels",
    CalibrationWarning: "there are few labels to learn from, or hardly any where labels are missing",
    UndefinedMetricWarning: "a metric may be undefined (0/0)",
}


@suggest_call("It is one of evaluate, which answers for all rows at once.")
def evaluate_by(
    y_true: str,
    y_score: str,
    *,
    data: FrameLike,
    by: str | Sequence[str] | None = None,
    time: str | None = None,
    period: str | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    missingness: MissingnessLike | Reference = None,
    threshold: float | None = None,
    y_pred: str | None = None,
    sample_weight: str | None = None,
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    scope: Scope = "rows",
    method: MethodLike = "auto",
    zero_division: ZeroDivision = "warn",
    confidence_level: float = 0.9,
    rng: RngLike = None,
    score_bins: str | int = "auto",
    n_jobs: int = 1,
) -> GroupedEvaluation:
    """How good is this classifier in each segment and period?

    The table's own engine counts all groups in one pass. Each group is then evaluated by itself, as `evaluate`
    would evaluate its rows, with a label model of its own: one that all groups shared would hide the very change that
    monitoring looks for. All rows together (`total`) are the sum of the groups: the law of the metrics on all rows when
    the missing labels of each group follow that group's model. Late labels are the exception: when labels come is
    learned from all groups at once, and each group has a level of its own, so that the newest month, with hardly a
    label, has an answer too.

    Parameters
    ----------
    y_true, y_score : str
        Columns of `data` with labels (missing ones null or NaN) and scores.
    data : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths
        Table, as in `evaluate`.
    by : str or list of str, optional
        Columns whose values make the groups; null is a value of its own. Not needed if `time` is passed.
    time, period : str, optional
        Column with dates or times, and how it is cut into periods: "hour", "day", "week", "month", "quarter" or "year".
        Without `period` each value of the column is a period.
    metrics
        As in `evaluate`.
    missingness, threshold, y_pred, sample_weight, pos_label, missing_label, method, zero_division, confidence_level
        As in `evaluate`, for each group.
    scope : {"rows", "population"}
        Whether intervals and alerts are about the rows of each group, or about the population that they are a
        random sample of.
    score_bins : {"auto", "exact"} or int
        As in `evaluate`. Beyond a million rows "auto" counts scores in 1,024 to 65,536 bins per group, fewer if there
        are more groups; metrics of predictions stay exact, and alerts allow for what bins can do to other metrics.
    rng : None, int or numpy Generator
        Source of randomness for Monte Carlo. Results do not depend on the order of groups or on `n_jobs`.
    n_jobs : int
        Processes, -1 for one per core.

    Returns
    -------
    GroupedEvaluation
        A mapping from the key of a group, a tuple with a value per column, to its `Evaluation`.

    Notes
    -----
    A group with fewer than five labeled positives or negatives is too small to judge: its mechanism depends on a prior,
    and one label more or less moves its metrics by a fifth. It is marked (`too_small`); its bounds (`lowest_possible`,
    `highest_possible`) are right all the same. `GroupedEvaluation.alerts` says which groups miss a target.

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
    >>> print(result)
    3 groups by country: 3,000 rows, 2,067 labeled, 933 missing (31.1%)
    <BLANKLINE>
    country    rows   missing                precision                   recall
    all       3,000     31.1%   0.743 (0.633 to 0.812)   0.682 (0.608 to 0.736)
    DE        1,000     32.4%   0.726 (0.619 to 0.795)   0.736 (0.659 to 0.787)
    FR        1,000     31.1%   0.795 (0.678 to 0.862)   0.576 (0.503 to 0.636)
    IT        1,000     29.8%   0.725 (0.613 to 0.798)   0.733 (0.658 to 0.781)
    <BLANKLINE>
    In brackets: 90% intervals for the rows of each group, which has a label model of its own; all is their sum.
    >>> result["IT"]["precision"]
    <Discrete: mean 0.7255, 90% interval 0.6133 to 0.7983, exact>
    >>> result.alerts({"recall": 0.72})
    <Alerts: 1 of 3 groups by country misses recall >= 0.72>
    """
    given = dict(locals())
    if find_score_columns(y_score) is not None:
        raise InputError("y_score: evaluate_by is for two classes so far. Evaluate the rows of each group alone.")
    names = _names(by, time, period)
    jobs = jobs_from(n_jobs)
    check_label_values(pos_label, missing_label)
    cut = decided_from(threshold, None if y_pred is None else "y_pred")
    question = question_of(given)
    values = _columns_of_mechanism(question.model)
    times = table_times(*(values.pop(name, None) for name in ("scored_at", "labeled_at", "as_of", "maturity")))
    timed = {name: getattr(question.model, name, None) for name in ("scored_at", "labeled_at")}
    rows = {"y_true": y_true, "y_score": y_score, "y_pred": y_pred, "sample_weight": sample_weight}
    columns = column_names(**rows, **values, **timed)
    question = replace(question, model=question.model.without_rows())
    task = Task(
        question=question,
        arguments=arguments_given(
            evaluate,
            {name: given[name] for name in _OF_EVALUATE}
            | {"missingness": missingness if isinstance(missingness, str | None) else question.model},
        ),
        n_draws=getattr(question.method, "n_resamples", 1),
        n_groups=1,
        expected=has_probabilities(question.model) or getattr(question.model, "reference", None) is not None,
        names={
            "y_true": columns.title("label"),
            "y_score": columns.title("score"),
            "Fixed(y_score)": f"Fixed({y_score!r})",
        },
    )
    with record_warnings() as said:
        cells = frames.count_cells(
            data,
            columns,
            threshold=cut,
            pos_label=pos_label,
            missing_label=missing_label,
            score_bins=score_bins,
            by=names if period is None else names[:-1],
            time=None if period is None else time,
            period=period,
            **times,
        )
        name = columns.title("label")
        sets = sets_from_counted(cells, threshold=cut, pos_label=pos_label, missing_label=missing_label, label=name)
        warn_of_default_threshold(sets, question.metrics)
    keys = list(zip(*(cells.keys[name] for name in names), strict=True))
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
    results: list[GroupResult] = run_each(task.summarised, pieces, jobs, None, "Groups")
    notes = Notes()
    arguments = arguments_given(evaluate_by, given)
    total = task.added_up(pieces, results, seed_of_total, arguments, notes)
    total = replace(total, warnings=tuple(dict.fromkeys([*said, *total.warnings])))
    _warn(results, notes)
    return GroupedEvaluation(
        names=names,
        time=time,
        period=period,
        groups={result.summary.key: result.summary for result in results},
        total=total,
        metrics={metric.name: metric for metric in question.metrics},
        confidence_level=total.confidence_level,
        evaluated_on=_today() if times["as_of"] is None else frames.AsOf.of(times["as_of"]).date,
        arguments=arguments,
        total_notes=(*(one.message for one in said), *notes.texts),
        remarks=tuple(phrase for kind, phrase in PHRASES.items() if _warned(kind, results)),
        evaluations={result.summary.key: result.evaluation for result in results if result.evaluation is not None},
        task=task,
        pieces={piece.key: piece for piece in pieces},
        n_jobs=jobs,
    )


# What is asked of each group as `evaluate` would be asked.
_OF_EVALUATE = ("metrics", "method", "zero_division", "confidence_level", "scope")


def _columns_of_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    """Return the columns that a mechanism names, which the engine of the table counts by."""
    values = mechanism.row_values()
    for name in ("age", "delay"):
        if name in values:
            raise InputError(f"{name}: for arrays. Name columns of times with dm.missing.Delayed(scored_at=...).")
    if hasattr(mechanism, "X"):
        raise InputError(
            "missingness: Covariates belong to rows, and a table is counted where it is. Evaluate each group with "
            "evaluate, which takes labels and scores."
        )
    return values


def _names(by: Any, time: str | None, period: str | None) -> tuple[str, ...]:
    """Return the grouping columns, time last."""
    if period is not None and time is None:
        raise InputError(f"period: {period!r}, but there is no time column to cut into periods. Name it with time=.")
    given = [] if by is None else [by] if isinstance(by, str) else by
    if not isinstance(given, (list, tuple)) or not all(isinstance(name, str) for name in given):
        found = f"values ({type(by).__name__})" if hasattr(by, "dtype") else repr(by)
        raise InputError(f"by: expected a column name or a list of them, got {found}.")
    frames.check_name("time", time)
    names = (*given, *([] if time is None else [time]))
    if not names:
        raise InputError("by: no grouping column. Name at least one, or a time column with time= and period=.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"by: {twice!r} is named twice.")
    return names


def _models(task: Task, sets: Sequence[EvaluationSet]) -> Sequence[Mechanism | None]:
    """The label model of each group where one is learned from all groups, as late labels are; else nothing."""
    chosen = map(task.question.model_of, sets)
    late = next((model for model in chosen if isinstance(model, Delayed)), None)
    if late is None:
        return [None] * len(sets)
    with task.naming("all rows together"):
        return fit_groups(late, sets)


def _today() -> dt.date:
    """The day on the clock of whoever runs it."""
    return dt.date.today()


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
