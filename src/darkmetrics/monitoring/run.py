"""Evaluate segments and periods of a table in one pass."""

import datetime as dt
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from darkmetrics import frames
from darkmetrics._text import counted
from darkmetrics.argument_types import ArrayLike, FrameLike, LabelValue, RngLike, Scope, ZeroDivision
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
from darkmetrics.monitoring.arrays import table_from_arrays
from darkmetrics.monitoring.groups import describe_key, sort_keys
from darkmetrics.monitoring.result import GroupedEvaluation
from darkmetrics.monitoring.tasks import Group, GroupResult, Notes, Task
from darkmetrics.processes import generators_from, jobs_from, run_each
from darkmetrics.wording import Message, code, setting

# Phrase for each kind of warning of a group.
PHRASES = {
    MissingnessWarning: "the estimates depend on why labels are missing",
    AssumptionWarning: "the rows contradict what was assumed about missing labels",
    CalibrationWarning: "there are few labels to learn from, or hardly any where labels are missing",
    UndefinedMetricWarning: "a metric may be undefined (0/0)",
}


@suggest_call("It is one of evaluate, which answers for all rows at once.")
def evaluate_by(
    y_true: ArrayLike | str,
    y_score: ArrayLike | str,
    *,
    data: FrameLike | None = None,
    by: ArrayLike | str | Sequence[str] | Mapping[str, ArrayLike] | None = None,
    time: ArrayLike | str | None = None,
    period: str | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    missingness: MissingnessLike | Reference = None,
    threshold: float | None = None,
    y_pred: ArrayLike | str | None = None,
    sample_weight: ArrayLike | str | None = None,
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
    """Estimate classifier metrics in each segment and period of a table.

    The table's engine counts all groups in one pass. Each group is then evaluated as `evaluate` evaluates its rows,
    with its own label model, because a model shared by all groups would hide changes between them. `total` is the
    evaluation of all rows together, where the missing labels of each group follow the model of that group. Delayed
    labels are an exception: delays are learned from all groups at once, and each group has its own level, so that the
    newest month has a result although few of its labels have arrived.

    Parameters
    ----------
    y_true, y_score : array-like or str
        Labels (missing ones null or NaN) and scores, or the names of their columns of `data`.
    data : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths, optional
        Table, as in `evaluate`. Without a table, all values per row are arrays.
    by : str, list of str, array-like, or mapping from str to array-like, optional
        Grouping columns; null is a value like others. Without a table, an array of groups or several by name. Not
        needed if `time` is passed.
    time, period : array-like or str, optional
        Column or array with dates or times, and the length of a period: "hour", "day", "week", "month", "quarter" or
        "year". Without `period` each value of the column is a period.
    metrics
        As in `evaluate`.
    missingness, threshold, y_pred, sample_weight, pos_label, missing_label, method, zero_division, confidence_level
        As in `evaluate`, for each group.
    scope : {"rows", "population"}
        Whether intervals and alerts are for the rows of each group or for the population that they are a random
        sample of.
    score_bins : {"auto", "exact"} or int
        As in `evaluate`. Beyond a million rows "auto" counts scores in 1,024 to 65,536 bins per group, fewer if there
        are more groups. Metrics of predictions stay exact, and alerts allow for the binning error of other metrics.
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
    A group with fewer than five labeled positives or negatives is marked as too small to judge (`too_small`). Its
    mechanism depends on a prior, and one label more or less moves its metrics by a fifth. Its bounds
    (`lowest_possible`, `highest_possible`) are right. `GroupedEvaluation.alerts` lists groups that miss a target.

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
    arguments = dict(locals())
    if find_score_columns(y_score) is not None:
        finding = "evaluate_by is for two classes so far"
        raise InputError("y_score", finding, "", "Evaluate the rows of each group alone.")
    if data is None:
        return evaluate_by(**table_from_arrays(arguments))
    time_name: Any = time
    names = _grouping_columns(by, time_name, period)
    jobs = jobs_from(n_jobs)
    check_label_values(pos_label, missing_label)
    cut = decided_from(threshold, None if y_pred is None else "y_pred")
    question = question_of(arguments)
    values = _columns_of_mechanism(question.model)
    times = table_times(*(values.pop(name, None) for name in ("scored_at", "labeled_at", "as_of", "maturity")))
    time_columns = {name: getattr(question.model, name, None) for name in ("scored_at", "labeled_at")}
    rows = {"y_true": y_true, "y_score": y_score, "y_pred": y_pred, "sample_weight": sample_weight}
    columns = column_names(**rows, **values, **time_columns)
    question = replace(question, model=question.model.without_rows())
    task = Task(
        question=question,
        arguments=arguments_given(
            evaluate,
            {name: arguments[name] for name in _EVALUATE_ARGUMENTS}
            | {"missingness": missingness if isinstance(missingness, str | None) else question.model},
        ),
        n_draws=getattr(question.method, "n_resamples", 1),
        n_groups=1,
        expected=has_probabilities(question.model) or getattr(question.model, "reference", None) is not None,
        names={
            "y_true": columns.title("label"),
            "y_score": columns.title("score"),
            "dm.missing.Fixed(y_score)": f"dm.missing.Fixed({y_score!r})",
        },
    )
    with record_warnings() as recorded:
        cells = frames.count_cells(
            data,
            columns,
            threshold=cut,
            pos_label=pos_label,
            missing_label=missing_label,
            score_bins=score_bins,
            by=names if period is None else names[:-1],
            time=None if period is None else time_name,
            period=period,
            **times,
        )
        name = columns.title("label")
        sets = sets_from_counted(cells, threshold=cut, pos_label=pos_label, missing_label=missing_label, label=name)
        warn_of_default_threshold(sets, question.metrics)
    keys = list(zip(*(cells.keys[name] for name in names), strict=True))
    # Without rng=, the results of a group are those of `evaluate` for its rows.
    n_seeds = len(keys) + 1
    generators = generators_from(rng, n_seeds) if rng is not None else [question.rng]
    *seeds, seed_of_total = (list(map(seed_from, generators)) * n_seeds)[:n_seeds]
    order = sort_keys(keys)
    models = _fit_shared_delays(task, [sets[i] for i in order])
    groups = [
        Group(keys[i], f"the group {describe_key(names, keys[i])}", sets[i], seed, model)
        for i, seed, model in zip(order, seeds, models, strict=True)
    ]
    # With delayed labels, expected labels count: a month is judged before its labels have arrived.
    task = replace(task, n_groups=len(groups), expected=task.expected or any(models))
    results: list[GroupResult] = run_each(task.summarize, groups, jobs, None, "Groups")
    notes = Notes()
    call = arguments_given(evaluate_by, arguments)
    total = task.combine(groups, results, seed_of_total, call, notes)
    total = replace(total, warnings=tuple(dict.fromkeys([*recorded, *total.warnings])))
    _warn(results, notes)
    return GroupedEvaluation(
        names=names,
        time=time_name,
        period=period,
        groups={result.summary.key: result.summary for result in results},
        total=total,
        metrics={metric.name: metric for metric in question.metrics},
        confidence_level=total.confidence_level,
        evaluated_on=_today() if times["as_of"] is None else frames.AsOf.of(times["as_of"]).date,
        arguments=call,
        total_notes=(*(warning.message for warning in recorded), *notes.texts),
        remarks=tuple(phrase for kind, phrase in PHRASES.items() if _count_warned(kind, results)),
        evaluations={result.summary.key: result.evaluation for result in results if result.evaluation is not None},
        judged={result.summary.key: result.judged for result in results if result.judged is not None},
        task=task,
        pieces={group.key: group for group in groups},
        n_jobs=jobs,
    )


_EVALUATE_ARGUMENTS = ("metrics", "method", "zero_division", "confidence_level", "scope")


def _columns_of_mechanism(mechanism: Mechanism) -> dict[str, Any]:
    """Return the columns of a mechanism, by which the engine of the table counts rows."""
    values = mechanism.row_values()
    for name in ("age", "delay"):
        if name in values:
            fix = f"Name columns of times with {code('dm.missing.Delayed(scored_at=...)', 'missing.Delayed')}."
            raise InputError(name, "for arrays", "", fix)
    if hasattr(mechanism, "X"):
        raise InputError(
            "missingness",
            "Covariates belong to rows, and a table is counted where it is",
            "",
            "Evaluate each group with evaluate, which takes labels and scores.",
        )
    return values


def _grouping_columns(by: Any, time: str | None, period: str | None) -> tuple[str, ...]:
    """Return the names of the grouping columns, time last."""
    if period is not None and time is None:
        finding = f"{period!r}, but there is no time column to cut into periods"
        raise InputError("period", finding, "", f"Name it with {setting('time')}.")
    columns = [] if by is None else [by] if isinstance(by, str) else by
    if not isinstance(columns, (list, tuple)) or not all(isinstance(name, str) for name in columns):
        text = f"values ({type(by).__name__})" if hasattr(by, "dtype") else repr(by)
        raise InputError("by", f"expected a column name or a list of them, got {text}")
    frames.check_name("time", time)
    names = (*columns, *([] if time is None else [time]))
    if not names:
        fix = f"Name at least one, or a time column with {setting('time')} and {setting('period')}."
        raise InputError("by", "no grouping column", "", fix)
    duplicate = next((name for name in names if names.count(name) > 1), None)
    if duplicate is not None:
        raise InputError("by", f"{duplicate!r} is named twice")
    return names


def _fit_shared_delays(task: Task, sets: Sequence[EvaluationSet]) -> Sequence[Mechanism | None]:
    """Return the label model of each group if delays are learned from all groups; else None for each."""
    delayed = next((model for model in map(task.question.model_of, sets) if isinstance(model, Delayed)), None)
    if delayed is None:
        return [None] * len(sets)
    with task.locate_errors("all rows together"):
        return fit_groups(delayed, sets)


def _today() -> dt.date:
    """Return the current date; tests replace it."""
    return dt.date.today()


def _count_warned(kind: type[Warning], results: Sequence[GroupResult]) -> int:
    """Count the groups with such a warning that are not too small."""
    return sum(kind in result.warning_kinds and not result.summary.too_small for result in results)


def _warn(results: Sequence[GroupResult], total: Notes) -> None:
    """Issue one warning for all groups that are not too small, and the total."""
    texts, category = [], None
    for kind, phrase in PHRASES.items():
        number = _count_warned(kind, results)
        if number or kind in total.kinds:
            category = category or kind
            rows = [f"in {number:,} of {counted(len(results), 'group')}"] if number else []
            rows += ["for all rows together"] if kind in total.kinds else []
            texts.append(f"{' and '.join(rows)} {phrase}")
    if category is not None:
        text = "; ".join(texts)
        details = code("The notes of each group (groups[key].notes) and of the result have details.", "notes of groups")
        warnings.warn(Message(f"{text[0].upper()}{text[1:]}. {details}"), category, stacklevel=level_of_caller())
