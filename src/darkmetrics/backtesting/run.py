"""The run of a backtest: hide, evaluate, keep what is needed; the same numbers for any number of processes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.argument_types import ArrayLike, Duration, LabelValue, ProgressLike, RngLike
from darkmetrics.backtesting.replay import history_from, replayed
from darkmetrics.backtesting.result import Backtest
from darkmetrics.backtesting.scores import Found, check_any, collected, notes_of
from darkmetrics.backtesting.setups import Ground, Setup
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
    # What is asked of the rows in each of the setups.
    questions: Mapping[str, Question]
    truth: Mapping[str, float]
    threshold: float | None


@suggest_call("It is one of evaluate, and backtest has none.")
def backtest(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    mask: MaskLike | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    missingness: Choice | Sequence[Choice] | Mapping[str, Choice] = None,
    methods: MethodLike | Sequence[MethodLike] | Mapping[str, MethodLike] = "auto",
    n_repeats: int = 100,
    threshold: float | None = None,
    as_of: ArrayLike | None = None,
    scored_at: ArrayLike | None = None,
    labeled_at: ArrayLike | None = None,
    maturity: Duration | None = None,
    window: Duration | None = None,
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    confidence_level: float = 0.9,
    rng: RngLike = None,
    n_jobs: int = 1,
    progress: ProgressLike = None,
) -> Backtest:
    """Would the intervals have held on data like mine? Hides known labels, evaluates, and compares with the truth.

    Use it before you rely on a label model: the figures say how often intervals hold the truth, how wide they are and
    whether the whole law is right, if labels go missing as you name it. With `as_of` nothing is hidden at will: history
    is replayed, and each date sees the labels that were known then.

    Parameters
    ----------
    y_true : array-like
        Labels. Rows whose label is missing are left out: only known labels can be hidden.
    y_score : array-like
        Scores of the classifier.
    mask : float or Mask, optional
        How labels are hidden: `masks.MCAR(0.3)` (a plain fraction means this; 0.3 unless given),
        `masks.ByScore(0.3)`, `masks.ByLabel(0.3, prevalence=0.6)`. Not with `as_of`.
    metrics
        As in `evaluate`.
    missingness, methods : one, a list or a dictionary with names
        What to try, every mechanism with every method. Words and objects are those of `evaluate`; "stated" is the
        mechanism by which labels are hidden, "dropping" what people do today: one number from the labeled rows, without
        an interval. Probabilities and covariates are those of the labeled rows.
    n_repeats : int
        How often labels are hidden. Time, and accuracy: 100 repeats tell a coverage to about 5 points. With `as_of`
        there is one repeat for each date.
    threshold, pos_label, missing_label, confidence_level
        As in `evaluate`.
    as_of : list of dates, datetimes, ISO texts or numbers, optional
        What would have been said then? Each date sees the rows scored until then with the labels that had come, and is
        compared with the labels known now; None is `missing.Delayed`. Rows without a label now take no part.
        A date is left out, with a note, while more than 5% of the labels of a class take longer than the time since.
    scored_at, labeled_at : array-like of dates, datetimes or numbers, optional
        When each row was scored, and when its label came (missing where there is none): needed by `as_of`.
    maturity : float or timedelta, optional
        With `as_of`, as in `evaluate`: only positives arrive, rows of this age without one are negative.
    window : float or timedelta, optional
        With `as_of`, ask only about the rows scored in so long a time before each date ("June, on the first of July").
        Late labels learn delays from all rows scored until then, other label models from these rows alone.
    rng : None, int or numpy Generator
        Source of randomness; a seed makes all of it repeatable, whatever `n_jobs`.
    n_jobs : int
        Processes, -1 for one per core. Metrics and label models of your own must then be found by their module, not
        defined on the fly, and a script needs its calls below `if __name__ == "__main__":`.
    progress : bool or callable, optional
        Show a progress bar (needs the package rich); by default where standard error is a terminal. Or a function,
        which is called with how many pieces are done and how many there are.

    Returns
    -------
    Backtest

    Notes
    -----
    Repeats share their rows and labels, so their PIT values are not independent: right laws show more distance to
    uniform than the floor, which is for rows of their own in every repeat (`docs/how-to/backtest.md`).

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
    asked = Question.of(metrics=metrics, confidence_level=confidence_level)
    repeats, jobs = check_n_resamples(n_repeats, "n_repeats"), jobs_from(n_jobs)
    given = _Given.of(y_true, y_score, pos_label, missing_label)
    timed = {"scored_at": scored_at, "labeled_at": labeled_at, "maturity": maturity, "window": window}
    if as_of is not None:
        if mask is not None:
            raise InputError(
                "mask",
                f"passed with {named('as_of')}",
                f"{named('as_of')} replays how labels arrived, and hides none.",
                "Pass one of the two.",
            )
        del timed["window"]
        history, known, dates = history_from(given.labels, given.score, **timed, dates=as_of)
        _check_both(history.y)
        complete = EvaluationSet(history.y.astype(np.float64), history.score, threshold=threshold)
        ground = Ground(None, pos_label, missing_label, complete, known.size, given.names_at(known))
        setups = ground.setups(missingness, methods)
        how: dict[str, Any] = {"window": window, "rng": rng, "jobs": jobs, "progress": progress}
        return replayed(asked, history, dates, ground, setups, **how)
    for name, value in timed.items():
        if value is not None:
            rule = f"It belongs to backtests with {setting('as_of')}."
            raise InputError(name, f"passed without {named('as_of')}", rule, "Pass both, or neither.")
    hidden_by = mask_from(_FRACTION if mask is None else mask)
    y, score, names = given.labeled()
    complete = EvaluationSet(y.astype(np.float64), score, threshold=threshold)
    ground = Ground(hidden_by, pos_label, missing_label, complete, given.score.size, names)
    setups = ground.setups(missingness, methods)
    truth = {metric.name: metric.value(complete, metric.undefined_as) for metric in asked.metrics}
    questions = {
        name: replace(asked, model=setup.model, method=setup.method, believes=False) for name, setup in setups.items()
    }
    task = _Task(y, score, hidden_by, setups, questions, truth, complete.threshold)
    found = run_each(partial(_repeat, task), generators_from(rng, repeats), jobs, progress, "Backtest")
    scores = {setup: {name: collected(found, setup, name) for name in truth} for setup in setups}
    notes = notes_of(found, setups)
    check_any(scores, notes, "1 repeat" if repeats == 1 else f"any of {repeats:,} repeats")
    return Backtest(scores, str(hidden_by), y.size, repeats, asked.confidence_level, tuple(notes))


@dataclass(frozen=True, eq=False)
class _Given:
    """Rows as they were given: positive, missing, scores and names (if any)."""

    labels: tuple[BoolArray, BoolArray]
    score: FloatArray
    names: frames.RowNames | None

    @classmethod
    def of(cls, y_true: Any, y_score: Any, pos_label: Any, missing_label: Any) -> "_Given":
        labels, missing = frames.label_column(y_true, "y_true")
        score = frames.number_column(y_score, "y_score")
        check_length(labels, "y_true", score.size)
        names = frames.row_names(y_true=y_true, y_score=y_score)
        positive, missing, _ = read_labels(labels, missing, pos_label, missing_label, "y_true")
        # Rows without a label take no part, but count where a bad one is named by its place.
        check_finite(np.where(missing, 0.0, score), "y_score", "Scores must be finite.", "Drop or impute those rows.")
        return cls((positive, missing), score, names)

    def names_at(self, rows: BoolArray) -> frames.RowNames | None:
        """The names of some rows."""
        return None if self.names is None else self.names.at(rows)

    def labeled(self) -> tuple[BoolArray, FloatArray, frames.RowNames | None]:
        """Labels, scores and names of the rows that have a label."""
        positive, missing = self.labels
        _check_both(positive[~missing])
        return positive[~missing], self.score[~missing], self.names_at(~missing)


def _check_both(y: BoolArray) -> None:
    """There are labels of both classes."""
    if not 0 < int(y.sum()) < y.size:
        raise InputError(
            "y_true",
            f"{int(y.sum()):,} positives and {int((~y).sum()):,} negatives are labeled",
            "A backtest hides known labels, and needs some of both.",
        )


def _repeat(task: _Task, rng: np.random.Generator) -> Found:
    """Hide, evaluate in every setup, compare."""
    masked = _checked(task.mask.mask(task.y, task.score, rng), task)
    # Drawn before any setup draws, and once: setups are compared on the same ground, and not changed by each other.
    within = float(rng.random())
    partly = np.where(masked.missing, np.nan, task.y.astype(np.float64))
    found = Found(task.truth, {}, {}, masked.note)
    for name, setup in task.setups.items():
        found.add(name, partial(_answer, task, name, setup, partly, rng), within)
    return found


def _answer(task: _Task, name: str, setup: Setup, partly: FloatArray, rng: np.random.Generator) -> Evaluation:
    rows = evaluation_set_from(partly, task.score, threshold=task.threshold, missingness=setup.mechanism)
    return task.questions[name].answer(setup.rows_of(rows), rng)


def _checked(masked: Any, task: _Task) -> Masked:
    """What a mechanism returned, which may be the user's own."""
    name = type(task.mask).__name__
    if not isinstance(masked, Masked):
        raise InputError("mask", f"{name}.mask returned {type(masked).__name__}", "It must return Masked(missing).")
    missing: Any = masked.missing
    if not isinstance(missing, np.ndarray) or missing.dtype != np.bool_ or missing.shape != task.y.shape:
        finding = f"{name}.mask returned something else than one truth value per row"
        raise InputError("mask", finding, "It must return an array with True or False for each row.")
    return masked
