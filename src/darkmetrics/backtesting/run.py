"""The run of a backtest: hide, evaluate, keep what is needed; the same numbers for any number of processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.argument_types import ArrayLike, Duration, FrameLike, LabelValue, ProgressLike, RngLike
from darkmetrics.backtesting.replay import history_from, replayed
from darkmetrics.backtesting.result import Backtest
from darkmetrics.backtesting.scores import Found, check_any, collected, notes_of
from darkmetrics.backtesting.setups import Ground, Setup
from darkmetrics.backtesting.tables import columns_or_arrays, mechanisms_of_table
from darkmetrics.calls import suggest_call
from darkmetrics.data.arguments import evaluation_set_from
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import check_finite, check_length, read_labels
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.masks import Mask, Masked, MaskLike, mask_from
from darkmetrics.methods.base import MethodLike, check_n_resamples
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missingness.base import MissingnessLike
from darkmetrics.missingness.reference import Reference
from darkmetrics.processes import generators_from, jobs_from, run_each
from darkmetrics.question import Question
from darkmetrics.wording import named, setting

# Fraction of labels that are hidden if no mask is passed.
_FRACTION = 0.3
Choice: TypeAlias = MissingnessLike | Reference


@dataclass(frozen=True, eq=False)
class _Task:
    """What every repeat needs."""

    y: BoolArray
    score: FloatArray
    mask: Mask
    setups: Mapping[str, Setup]
    # What is evaluated in each setup.
    questions: Mapping[str, Question]
    truth: Mapping[str, float]
    threshold: float | None


@suggest_call("It is one of evaluate, and backtest has none.")
def backtest(
    y_true: ArrayLike | str,
    y_score: ArrayLike | str,
    *,
    data: FrameLike | None = None,
    mask: MaskLike | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    missingness: Choice | Sequence[Choice] | Mapping[str, Choice] = None,
    methods: MethodLike | Sequence[MethodLike] | Mapping[str, MethodLike] = "auto",
    n_repeats: int = 100,
    threshold: float | None = None,
    as_of: ArrayLike | None = None,
    scored_at: ArrayLike | str | None = None,
    labeled_at: ArrayLike | str | None = None,
    maturity: Duration | None = None,
    window: Duration | None = None,
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    confidence_level: float = 0.9,
    rng: RngLike = None,
    n_jobs: int = 1,
    progress: ProgressLike = None,
) -> Backtest:
    """Hide known labels, evaluate, and compare the intervals with the truth.

    Use it before you rely on a mechanism: the result shows how often intervals cover the truth, how wide they are, and
    whether whole distributions are right, if labels go missing as `mask` hides them. With `as_of` history is replayed
    instead: each date sees the labels that were known then.

    Parameters
    ----------
    y_true : array-like or str
        Labels, or the name of a column of `data`. Rows whose label is missing are left out: only known labels can be
        hidden.
    y_score : array-like or str
        Scores of the classifier.
    data : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths, optional
        Table whose columns the other arguments and mechanisms name, as in `evaluate`. These columns are read into
        memory.
    mask : float or Mask, optional
        How labels are hidden: `masks.MCAR(0.3)` (a plain fraction means this; 0.3 by default), `masks.ByScore(0.3)`,
        `masks.ByLabel(0.3, prevalence=0.6)`. Not with `as_of`.
    metrics
        As in `evaluate`.
    missingness, methods : one, a list or a dictionary with names
        What to try, every mechanism with every method. Words and objects are those of `evaluate`; "stated" is the
        mechanism by which labels are hidden, "dropping" the metric of the labeled rows, without an interval. Arrays of
        probabilities and covariates are those of the labeled rows.
    n_repeats : int
        Number of times that labels are hidden: 100 repeats measure a coverage to about 5 points. With `as_of` there is
        one repeat for each date.
    threshold, pos_label, missing_label, confidence_level
        As in `evaluate`.
    as_of : list of dates, datetimes, ISO texts or numbers, optional
        Dates to replay. Each date sees the rows scored until then with the labels that had arrived, and is compared
        with the labels known now; None is `missing.Delayed`. Rows without a label now are left out. A date is left out,
        with a note, while more than 5% of the labels of a class take longer than the time since.
    scored_at, labeled_at : array-like of dates, datetimes or numbers, or str, optional
        When each row was scored, and when its label arrived (missing where there is none): needed by `as_of`.
    maturity : float or timedelta, optional
        With `as_of`, as in `evaluate`: only positives arrive, rows of this age without one are negative.
    window : float or timedelta, optional
        With `as_of`, evaluate only the rows scored in that much time before each date. `missing.Delayed` learns delays
        from all rows scored until then, other mechanisms from these rows alone.
    rng : None, int or numpy Generator
        Source of randomness; a seed makes all of it repeatable, whatever `n_jobs`.
    n_jobs : int
        Processes, -1 for one per core. Metrics and mechanisms of your own must then be defined in a module, and a
        script needs its calls below `if __name__ == "__main__":`.
    progress : bool or callable, optional
        Show a progress bar (needs the package rich); by default if standard error is a terminal. Or a function that is
        called with the numbers of finished and of all repeats.

    Returns
    -------
    Backtest

    Notes
    -----
    Repeats share their rows and labels, so their PIT values are not independent: even right distributions are further
    from uniform than the floor, which assumes new rows in every repeat (`docs/how-to/backtest.md`).

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(500)
    >>> y_true = (rng.random(500) < y_score).astype(int)
    >>> result = dm.backtest(y_true, y_score, missingness="by_score", metrics="recall", n_repeats=20, rng=1)
    >>> result
    <Backtest of 1 setup on 500 rows, 20 repeats>
    >>> 0.7 <= result["recall"].coverage.value <= 1.0
    True
    """
    question = Question.of(metrics=metrics, confidence_level=confidence_level)
    repeats, jobs = check_n_resamples(n_repeats, "n_repeats"), jobs_from(n_jobs)
    columns = {"y_true": y_true, "y_score": y_score, "scored_at": scored_at, "labeled_at": labeled_at}
    columns = columns_or_arrays(data, columns)
    rows = _Rows.of(columns["y_true"], columns["y_score"], pos_label, missing_label)
    times = {name: columns[name] for name in ("scored_at", "labeled_at")} | {"maturity": maturity}
    if as_of is not None:
        if mask is not None:
            raise InputError(
                "mask",
                f"passed with {named('as_of')}",
                f"{named('as_of')} replays how labels arrived, and hides none.",
                "Pass one of the two.",
            )
        history, known, dates = history_from(rows.labels, rows.score, **times, dates=as_of)
        _check_both(history.y)
        complete = EvaluationSet(history.y.astype(np.float64), history.score, threshold=threshold)
        ground = Ground(None, pos_label, missing_label, complete, known.size, rows.names_at(known))
        setups = ground.setups(mechanisms_of_table(missingness, data, known), methods)
        settings: dict[str, Any] = {"window": window, "rng": rng, "jobs": jobs, "progress": progress}
        return replayed(question, history, dates, ground, setups, **settings)
    for name, value in {**times, "window": window}.items():
        if value is not None:
            rule = f"It belongs to backtests with {setting('as_of')}."
            raise InputError(name, f"passed without {named('as_of')}", rule, "Pass both, or neither.")
    hidden_by = mask_from(_FRACTION if mask is None else mask)
    y, score, names = rows.labeled()
    complete = EvaluationSet(y.astype(np.float64), score, threshold=threshold)
    ground = Ground(hidden_by, pos_label, missing_label, complete, rows.score.size, names)
    setups = ground.setups(mechanisms_of_table(missingness, data, ~rows.labels[1]), methods)
    truth = {metric.name: metric.value(complete, metric.undefined_as) for metric in question.metrics}
    questions = {
        name: replace(question, model=setup.model, method=setup.method, believes=False)
        for name, setup in setups.items()
    }
    task = _Task(y, score, hidden_by, setups, questions, truth, complete.threshold)
    results = run_each(partial(_repeat, task), generators_from(rng, repeats), jobs, progress, "Backtest")
    scores = {setup: {name: collected(results, setup, name) for name in truth} for setup in setups}
    notes = notes_of(results, setups)
    check_any(scores, notes, "1 repeat" if repeats == 1 else f"any of {repeats:,} repeats")
    return Backtest(scores, str(hidden_by), y.size, repeats, question.confidence_level, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Rows:
    """Rows as they were passed: positive, missing, scores and names (if any)."""

    labels: tuple[BoolArray, BoolArray]
    score: FloatArray
    names: frames.RowNames | None

    @classmethod
    def of(cls, y_true: Any, y_score: Any, pos_label: Any, missing_label: Any) -> "_Rows":
        labels, missing = frames.label_column(y_true, "y_true")
        score = frames.number_column(y_score, "y_score")
        check_length(labels, "y_true", score.size)
        names = frames.row_names(y_true=y_true, y_score=y_score)
        positive, missing, _ = read_labels(labels, missing, pos_label, missing_label, "y_true")
        # Rows without a label are left out, but count where a bad one is named by its position.
        check_finite(np.where(missing, 0.0, score), "y_score", "Scores must be finite.", "Drop or impute those rows.")
        return cls((positive, missing), score, names)

    def names_at(self, rows: BoolArray) -> frames.RowNames | None:
        """Return the names of some rows."""
        return None if self.names is None else self.names.at(rows)

    def labeled(self) -> tuple[BoolArray, FloatArray, frames.RowNames | None]:
        """Return labels, scores and names of the rows that have a label."""
        positive, missing = self.labels
        _check_both(positive[~missing])
        return positive[~missing], self.score[~missing], self.names_at(~missing)


def _check_both(y: BoolArray) -> None:
    """Refuse labels of one class."""
    if not 0 < int(y.sum()) < y.size:
        raise InputError(
            "y_true",
            f"{int(y.sum()):,} positives and {int((~y).sum()):,} negatives are labeled",
            "A backtest hides known labels, and needs some of both classes.",
        )


def _repeat(task: _Task, rng: np.random.Generator) -> Found:
    """Hide, evaluate in every setup, compare."""
    masked = _checked(task.mask.mask(task.y, task.score, rng), task)
    # Drawn once, before any setup draws: setups are compared on the same masks, and do not change each other.
    within = float(rng.random())
    partly = np.where(masked.missing, np.nan, task.y.astype(np.float64))
    result = Found(task.truth, {}, {}, masked.note)
    for name, setup in task.setups.items():
        result.add(name, partial(_evaluate, task, name, setup, partly, rng), within)
    return result


def _evaluate(task: _Task, name: str, setup: Setup, partly: FloatArray, rng: np.random.Generator) -> Evaluation:
    rows = evaluation_set_from(partly, task.score, threshold=task.threshold, missingness=setup.mechanism)
    return task.questions[name].answer(setup.rows_of(rows), rng)


def _checked(masked: Any, task: _Task) -> Masked:
    """Return what a mask returned, which may be the user's own."""
    name = type(task.mask).__name__
    if not isinstance(masked, Masked):
        raise InputError("mask", f"{name}.mask returned {type(masked).__name__}", "It must return Masked(missing).")
    missing: Any = masked.missing
    if not isinstance(missing, np.ndarray) or missing.dtype != np.bool_ or missing.shape != task.y.shape:
        finding = f"{name}.mask returned something else than one truth value per row"
        raise InputError("mask", finding, "It must return an array with True or False for each row.")
    return masked
