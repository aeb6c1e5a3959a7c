"""The run of a backtest: hide, evaluate, keep what is needed; the same numbers for any number of processes."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.accepted import ArrayLike, LabelValue, RngLike
from darkmetrics.backtesting.result import Backtest
from darkmetrics.backtesting.scores import Scores
from darkmetrics.backtesting.setups import Ground, Setup
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import check_finite, check_length, read_labels
from darkmetrics.distribution import MetricDistribution
from darkmetrics.evaluating import rows_asked_of
from darkmetrics.exceptions import (
    CalibrationWarning,
    InputError,
    MissingnessWarning,
    UndefinedMetricWarning,
    reference_from,
)
from darkmetrics.label_models.base import LabelModelLike
from darkmetrics.label_models.score_table import ReferenceLike
from darkmetrics.mechanisms import Masked, Mechanism, MechanismLike, mechanism_from
from darkmetrics.methods.base import MethodLike, check_n_resamples
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.processes import generators_from, jobs_from, run_each
from darkmetrics.question import Question


@dataclass(frozen=True, eq=False)
class _Task:
    """What every repeat needs."""

    y: BoolArray
    score: FloatArray
    mechanism: Mechanism
    setups: Mapping[str, Setup]
    # What is asked of the rows in each of the setups.
    questions: Mapping[str, Question]
    truth: Mapping[str, float]
    threshold: float | None


class _Found(NamedTuple):
    """What a repeat found: centre, low, high and PIT by setup and metric; a note; why setups failed."""

    laws: dict[tuple[str, str], tuple[float, ...]]
    note: str
    failures: dict[str, str]


def backtest(
    y_true: ArrayLike,
    y_score: ArrayLike,
    *,
    mechanism: MechanismLike = 0.3,
    metrics: MetricsLike = DEFAULT_METRICS,
    label_models: LabelModelLike | Sequence[LabelModelLike] | Mapping[str, LabelModelLike] = "auto",
    methods: MethodLike | Sequence[MethodLike] | Mapping[str, MethodLike] = "auto",
    n_repeats: int = 100,
    threshold: float | None = None,
    reference: ReferenceLike | None = None,
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    confidence_level: float = 0.9,
    rng: RngLike = None,
    n_jobs: int = 1,
    progress: bool | None = None,
    calibration: ReferenceLike | None = None,
) -> Backtest:
    """Would the intervals have held on data like mine? Hides known labels, evaluates, and compares with the truth.

    Use it before you rely on a label model: the figures say how often intervals hold the truth, how wide they are and
    whether the whole law is right, if labels go missing as you name it.

    Parameters
    ----------
    y_true : array-like
        Labels. Rows whose label is missing are left out: only known labels can be hidden.
    y_score : array-like
        Scores of the classifier.
    mechanism : float or Mechanism
        How labels are hidden: `mechanisms.MCAR(0.3)` (a plain fraction means this), `mechanisms.ByScore(0.3)`,
        `mechanisms.ByLabel(0.3, prevalence=0.6)`.
    metrics
        As in `evaluate`.
    label_models, methods : one, a list or a dictionary with names
        What to try, every label model with every method. Words are those of `evaluate`; "stated" is the label model
        that is told how labels went missing. Probabilities and features are those of the labelled rows.
    n_repeats : int
        How often labels are hidden. Time, and accuracy: 100 repeats tell a coverage to about 5 points.
    threshold, reference, pos_label, missing_label, confidence_level
        As in `evaluate`; `reference` goes to label models that are given as words and learn from labels.
    rng : None, int or numpy Generator
        Source of randomness; a seed makes all of it repeatable, whatever `n_jobs`.
    n_jobs : int
        Processes, -1 for one per core. Metrics and label models of your own must then be found by their module, not
        defined on the fly.
    progress : bool, optional
        Show a progress bar (needs the package rich); by default where standard error is a terminal.
    calibration
        An older word for `reference`, with a FutureWarning.

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
    >>> result = dm.backtest(y_true, y_score, label_models="calibrated", metrics="recall", n_repeats=20, rng=1)
    >>> result
    <Backtest of 1 setup on 500 rows, 20 repeats>
    >>> 0.7 <= result["recall"].coverage.value <= 1.0
    True
    """
    y, score, names, n_given = _labelled_rows(y_true, y_score, pos_label, missing_label)
    hidden_by = mechanism_from(mechanism)
    asked = Question.of(metrics=metrics, confidence_level=confidence_level)
    repeats, jobs = check_n_resamples(n_repeats, "n_repeats"), jobs_from(n_jobs)
    complete = EvaluationSet(y.astype(np.float64), score, threshold=threshold)
    ground = Ground(hidden_by, pos_label, missing_label, complete, n_given, names)
    setups = ground.setups(label_models, methods, reference_from(reference, calibration))
    truth = {metric.name: metric.value(complete, metric.undefined_as) for metric in asked.metrics}
    questions = {
        name: replace(asked, model=setup.model, method=setup.method, believes=False) for name, setup in setups.items()
    }
    task = _Task(y, score, hidden_by, setups, questions, truth, complete.threshold)
    found = run_each(partial(_repeat, task), generators_from(rng, repeats), jobs, progress, "Backtest")
    scores = {setup: {name: _collected(found, setup, name, truth[name]) for name in truth} for setup in setups}
    notes = _notes(found, setups, truth)
    if not any(of_metric.n for of_setup in scores.values() for of_metric in of_setup.values()):
        where = "1 repeat" if repeats == 1 else f"any of {repeats:,} repeats"
        reasons = " ".join(notes) or "Every metric is undefined."
        raise InputError(f"label_models: no law of any metric in {where}. {reasons}")
    return Backtest(scores, str(hidden_by), y.size, repeats, asked.confidence_level, notes)


def _labelled_rows(
    y_true: Any, y_score: Any, pos_label: Any, missing_label: Any
) -> tuple[BoolArray, FloatArray, frames.RowNames | None, int]:
    """Labels, scores and names (if any) of the rows that have a label, and how many rows there are in all."""
    labels, missing = frames.label_column(y_true, "y_true")
    score = frames.number_column(y_score, "y_score")
    check_length(labels, "y_true", score.size)
    names = frames.row_names(y_true=y_true, y_score=y_score)
    positive, missing, _ = read_labels(labels, missing, pos_label, missing_label, "y_true")
    # Rows without a label take no part, but count where a bad one is named by its place.
    check_finite(np.where(missing, 0.0, score), "y_score", "Scores must be finite; drop or fill those rows.")
    y, known = positive[~missing], score[~missing]
    if not 0 < int(y.sum()) < y.size:
        raise InputError(
            f"y_true: {int(y.sum()):,} positives and {int((~y).sum()):,} negatives are labelled. A backtest hides "
            "known labels, and needs some of both."
        )
    return y, known, None if names is None else names.at(~missing), score.size


def _repeat(task: _Task, rng: np.random.Generator) -> _Found:
    """Hide, evaluate in every setup, compare."""
    masked = _checked(task.mechanism.mask(task.y, task.score, rng), task)
    # Drawn before any setup draws, and once: setups are compared on the same ground, and not changed by each other.
    within = float(rng.random())
    partly = np.where(masked.missing, np.nan, task.y.astype(np.float64))
    found = _Found({}, masked.note, {})
    for name, setup in task.setups.items():
        try:
            with warnings.catch_warnings():
                for category in (MissingnessWarning, CalibrationWarning, UndefinedMetricWarning):
                    warnings.simplefilter("ignore", category)
                rows = rows_asked_of(setup.model, setup.label_model, partly, task.score, threshold=task.threshold)
                laws = task.questions[name].answer(rows, rng)
        except InputError as error:
            found.failures[name] = str(error)
            continue
        for metric, truth in task.truth.items():
            law = laws[metric]
            low, high = law.interval(laws.confidence_level)
            found.laws[name, metric] = (law.mean(), low, high, _pit(law, truth, within))
    return found


def _checked(masked: Any, task: _Task) -> Masked:
    """What a mechanism returned, which may be the user's own."""
    name = type(task.mechanism).__name__
    if not isinstance(masked, Masked):
        raise InputError(f"mechanism: {name}.mask returned {type(masked).__name__}. It must return Masked(missing).")
    missing: Any = masked.missing
    if not isinstance(missing, np.ndarray) or missing.dtype != np.bool_ or missing.shape != task.y.shape:
        raise InputError(f"mechanism: {name}.mask must return an array with True or False for each row.")
    return masked


def _pit(law: MetricDistribution, truth: float, within: float) -> float:
    """F(t-) + within (F(t) - F(t-)): uniform for a law that is right, even if it jumps at the truth."""
    middle = law.pit(truth)
    return float(np.clip(middle + (2.0 * within - 1.0) * (law.cdf(truth) - middle), 0.0, 1.0))


def _collected(found: list[_Found], setup: str, metric: str, truth: float) -> Scores:
    rows = np.array([repeat.laws.get((setup, metric), (np.nan,) * 4) for repeat in found])
    kept = np.isfinite(rows).all(axis=1) & np.isfinite(truth)
    centre, low, high, pit = rows[kept].T
    return Scores(np.full(centre.size, truth), centre, low, high, pit, n_failed=int((~kept).sum()))


def _notes(found: list[_Found], setups: Mapping[str, Setup], truth: Mapping[str, float]) -> tuple[str, ...]:
    """What had to be given up: rows to hide, metrics that are 0/0 with all labels, setups that gave no law."""
    notes = list(dict.fromkeys(repeat.note for repeat in found if repeat.note))
    undefined = [name for name, value in truth.items() if not np.isfinite(value)]
    notes += [f"{name} is undefined with all labels: there is nothing to compare with." for name in undefined]
    for setup in setups:
        reasons = [repeat.failures[setup] for repeat in found if setup in repeat.failures]
        if reasons:
            count = f"{len(reasons):,} of {len(found):,} {'repeat' if len(found) == 1 else 'repeats'}"
            notes.append(f"{setup!r} gave no law in {count}. {reasons[0]}")
    return tuple(notes)
