"""The run of a backtest: hide, evaluate, keep what is needed; the same numbers for any number of processes."""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.backtest.result import Backtest, Scores
from darkmetrics.columns import check_label_values, check_length, equals, positive_labels
from darkmetrics.distribution import check_level
from darkmetrics.evaluate import evaluate, generator_from
from darkmetrics.evaluation_set import EvaluationSet
from darkmetrics.exceptions import CalibrationWarning, InputError, MissingnessWarning, UndefinedMetricWarning
from darkmetrics.mechanisms import Mechanism, mechanism_from
from darkmetrics.methods.base import check_n_resamples
from darkmetrics.metrics import DEFAULT_METRICS, Metric, metrics_from


@dataclass(frozen=True)
class _Way:
    """One label model with one method."""

    label_model: Any
    method: Any


@dataclass(frozen=True, eq=False)
class _Task:
    """What every repeat needs."""

    y: BoolArray
    score: FloatArray
    mechanism: Mechanism
    ways: Mapping[str, _Way]
    truth: Mapping[str, float]
    metrics: list[Metric]
    settings: Mapping[str, Any]


def backtest(
    y_true: Any,
    y_score: Any,
    *,
    mechanism: Any = 0.3,
    metrics: Any = DEFAULT_METRICS,
    label_models: Any = "auto",
    methods: Any = "auto",
    n_repeats: int = 100,
    threshold: float = 0.5,
    calibration: Any = None,
    pos_label: Any = 1,
    missing_label: Any = None,
    confidence_level: float = 0.9,
    rng: Any = None,
    n_jobs: int = 1,
    progress: bool | None = None,
) -> Backtest:
    """Would the intervals have held on data like mine? Hides known labels, evaluates, and compares with the truth.

    Use it before you rely on a label model: the figures say how often intervals hold the truth, how wide they are and
    whether the whole law is right, if labels go missing in the way you name.

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
        that is told how labels went missing.
    n_repeats : int
        How often labels are hidden. Time, and accuracy: 100 repeats tell a coverage to about 5 points.
    threshold, calibration, pos_label, missing_label, confidence_level
        As in `evaluate`; `calibration` goes to label models that are given as words.
    rng : None, int or numpy Generator
        Source of randomness; a seed makes all of it repeatable, whatever `n_jobs`.
    n_jobs : int
        Processes. Metrics and label models of your own must then be found by their module, not defined on the fly.
    progress : bool, optional
        Show a progress bar (needs the package rich); by default where standard error is a terminal.

    Returns
    -------
    Backtest

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(500)
    >>> y_true = (rng.random(500) < y_score).astype(int)
    >>> result = dm.backtest(y_true, y_score, label_models="calibrated", metrics="recall", n_repeats=20, rng=1)
    >>> result
    <Backtest of 1 ways on 500 rows, 20 repeats>
    >>> 0.7 <= result["recall"].coverage.value <= 1.0
    True
    """
    y, score = _labelled_rows(y_true, y_score, pos_label, missing_label)
    hidden_by = mechanism_from(mechanism)
    ways = _ways(label_models, methods, hidden_by)
    chosen = metrics_from(metrics)
    repeats, jobs = check_n_resamples(n_repeats, "n_repeats"), check_n_resamples(n_jobs, "n_jobs")
    level = check_level(confidence_level)
    settings = {"threshold": threshold, "confidence_level": level, "calibration": calibration}
    complete = EvaluationSet(y.astype(np.float64), score, threshold=threshold)
    truth = {metric.name: metric.value(complete, metric.undefined_as) for metric in chosen}
    task = _Task(y, score, hidden_by, ways, truth, chosen, settings)
    sources = generator_from(rng).spawn(repeats)
    results = list(_shown(_map(partial(_repeat, task), sources, jobs), repeats, progress))
    notes = tuple(dict.fromkeys(note for _, note, _ in results if note))
    failures = [reason for _, _, reasons in results for reason in reasons.items()]
    scores = {way: {name: _collected(results, way, name, truth[name]) for name in truth} for way in ways}
    for way in ways:
        if not any(of_metric.n for of_metric in scores[way].values()):
            reason = next((text for failed, text in failures if failed == way), "every metric is 0/0.")
            raise InputError(f"label_models: {way!r} gave no law in any of {repeats:,} repeats. {reason}")
    described = f"{type(hidden_by).__name__}({', '.join(f'{k}={v:g}' for k, v in vars(hidden_by).items())})"
    return Backtest(scores, described, y.size, repeats, level, notes)


def _labelled_rows(y_true: Any, y_score: Any, pos_label: Any, missing_label: Any) -> tuple[BoolArray, FloatArray]:
    """Labels and scores of the rows that have a label."""
    check_label_values(pos_label, missing_label)
    labels, missing = frames.label_column(y_true, "y_true")
    score = frames.number_column(y_score, "y_score")
    check_length(labels, "y_true", score.size)
    missing = missing | equals(labels, missing, missing_label)
    positive, _ = positive_labels(labels, missing, pos_label, "y_true")
    y, known = positive[~missing], score[~missing]
    if not 0 < int(y.sum()) < y.size:
        raise InputError(
            f"y_true: {int(y.sum()):,} positives and {int((~y).sum()):,} negatives are labelled. A backtest hides "
            "known labels, and needs some of both."
        )
    return y, known


def _ways(label_models: Any, methods: Any, mechanism: Mechanism) -> dict[str, _Way]:
    models, how = _named(label_models, "label_models"), _named(methods, "methods")
    both = len(how) > 1
    return {
        f"{model}, {method}" if both else model: _Way(
            mechanism.missingness if isinstance(chosen, str) and chosen == "stated" else chosen, by
        )
        for model, chosen in models.items()
        for method, by in how.items()
    }


def _named(given: Any, argument: str) -> dict[str, Any]:
    """Choices by name: as given in a dictionary, else the word or the type."""
    if isinstance(given, Mapping):
        return {str(name): choice for name, choice in given.items()}
    choices = given if isinstance(given, (list, tuple)) else [given]
    names = [choice if isinstance(choice, str) else type(choice).__name__ for choice in choices]
    if not names or len(set(names)) < len(names):
        raise InputError(f"{argument}: {len(names)} choices, {len(set(names))} names. Give a dictionary with names.")
    return dict(zip(names, choices, strict=True))


def _repeat(
    task: _Task, rng: np.random.Generator
) -> tuple[dict[tuple[str, str], tuple[float, ...]], str, dict[str, str]]:
    """One repeat: for each way and metric centre, low, high and the law at the truth; a note; reasons of failures."""
    masked = task.mechanism.mask(task.y, task.score, rng)
    partly = np.where(masked.missing, np.nan, task.y.astype(np.float64))
    found: dict[tuple[str, str], tuple[float, ...]] = {}
    failed: dict[str, str] = {}
    for name, way in task.ways.items():
        by_word = isinstance(way.label_model, str)
        stated = by_word and way.label_model == task.mechanism.missingness
        settings = {**task.settings, "calibration": task.settings["calibration"] if by_word else None}
        model = {"missingness": way.label_model} if stated else {"label_model": way.label_model}
        try:
            with warnings.catch_warnings():
                for category in (MissingnessWarning, CalibrationWarning, UndefinedMetricWarning):
                    warnings.simplefilter("ignore", category)
                laws = evaluate(
                    partly, task.score, metrics=task.metrics, method=way.method, rng=rng, **model, **settings
                )
        except InputError as error:
            failed[name] = str(error)
            continue
        for metric in task.metrics:
            law = laws[metric.name]
            low, high = law.interval(task.settings["confidence_level"])
            found[name, metric.name] = (law.mean(), low, high, float(law.pit(task.truth[metric.name])))
    return found, masked.note, failed


def _collected(results: list[Any], way: str, metric: str, truth: float) -> Scores:
    rows = np.array([found.get((way, metric), (np.nan,) * 4) for found, _, _ in results])
    kept = np.isfinite(rows).all(axis=1) & np.isfinite(truth)
    centre, low, high, pit = rows[kept].T
    return Scores(np.full(centre.size, truth), centre, low, high, pit, n_failed=int((~kept).sum()))


def _map(function: Callable[[Any], Any], sources: list[np.random.Generator], jobs: int) -> Iterator[Any]:
    """The results in order, by one process or several."""
    if jobs == 1:
        yield from map(function, sources)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(function, sources, chunksize=max(1, len(sources) // (8 * jobs)))


def _shown(results: Iterable[Any], total: int, progress: bool | None) -> Iterable[Any]:
    """The same, with a progress bar on standard error where one is wanted."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return results
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        if progress:
            raise InputError("progress: needs the package rich; pip install 'darkmetrics[cli]'.") from None
        return results
    return track(results, "Backtest", total, console=Console(stderr=True))
