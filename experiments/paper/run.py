"""The run: one file per fold, written when the fold is finished and never computed twice."""

import csv
import io
import math
import os
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context, parent_process
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import darkmetrics as dm
from darkmetrics.argument_types import ProgressLike
from darkmetrics.processes import shown
from experiments.paper.algorithms import algorithms
from experiments.paper.config import Config
from experiments.paper.files import write_whole
from experiments.paper.problems import Problem, fold_of, problems_of

# Rows that have bounds, not a prediction.
BOUNDS = "bounds"
HEADER = (
    "set",
    "fold",
    "half",
    "p_m",
    "mechanism",
    "masked",
    "algorithm",
    "metric",
    "truth",
    "center",
    "low",
    "high",
    # The predicted cdf at the truth, and just below it: they differ if the truth is an atom.
    "pit",
    "pit_below",
)


def run(config: Config, folder: Path, n_jobs: int = 2, progress: ProgressLike = None) -> list[Path]:
    """Compute all folds that are not there yet, with a bar on a terminal; return the files of all folds."""
    return run_each([(config, folder)], n_jobs, progress)


def run_each(runs: Iterable[tuple[Config, Path]], n_jobs: int = 2, progress: ProgressLike = None) -> list[Path]:
    """Do the same for several runs, each with its own folder, in the same processes: starting one takes seconds."""
    tasks = []
    for config, folder in runs:
        folder.mkdir(parents=True, exist_ok=True)
        tasks += [(config, name, number, folder) for name in config.sets for number in range(config.folds)]
    files = [folder / f"{name}-{number}.csv" for _, name, number, folder in tasks]
    todo = [(task, path) for task, path in zip(tasks, files, strict=True) if not path.exists()]
    started = time.monotonic()
    # Fresh processes: one that is forked after XGBoost has started its threads waits for them for ever.
    with ProcessPoolExecutor(n_jobs, mp_context=get_context("spawn"), initializer=_die_with_parent) as pool:
        futures = {pool.submit(_fold, *task[:3], path): task for task, path in todo}
        for done, future in enumerate(shown(as_completed(futures), len(todo), progress, "Folds"), 1):
            future.result()
            minutes = (time.monotonic() - started) / done * (len(todo) - done) / 60.0
            _, name, number, _ = futures[future]
            if not sys.stderr.isatty():  # a terminal has a bar
                sys.stderr.write(f"{name} fold {number + 1}: {done} of {len(todo)}, about {minutes:.0f} min left\n")
    return files


def _die_with_parent() -> None:
    """A run that is killed takes its workers with it; else they would go on, and the next run compute folds twice."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            wait([parent.sentinel])
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _metrics(config: Config) -> dict[str, dm.metrics.Metric]:
    return {metric.name: metric for metric in dm.metrics.metrics_from(config.metrics)}


def _fold(config: Config, name: str, number: int, path: Path) -> None:
    """Compute one fold: every mask, every algorithm, every metric; the file appears when it is complete."""
    # Runs that differ in their masks and algorithms alone share their classifiers.
    fold = fold_of(config, name, number, path.parents[1] / "folds")
    complete = dm.EvaluationSet(fold.y, fold.score)
    truth = {name: metric.value(complete, 0.0) for name, metric in _metrics(config).items()}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEADER)
    for problem in problems_of(config, name, number, fold):
        masked = int((problem.labels != problem.labels).sum())
        for algorithm, metric, *figures in _predictions(config, problem, truth):
            key = (name, number, problem.half, problem.missing, problem.mechanism, masked, algorithm, metric)
            table.writerow((*key, *(f"{float(x):.12g}" for x in (truth[metric], *figures))))
    write_whole(path, text.getvalue())


def _predictions(config: Config, problem: Problem, truth: Mapping[str, float]) -> Iterator[Any]:
    """Yield algorithm, metric, center, ends of the interval and PIT; then bounds, which have ends only."""
    for algorithm, predict in algorithms(config).items():
        with warnings.catch_warnings():
            for category in (dm.MissingnessWarning, dm.CalibrationWarning, dm.UndefinedMetricWarning):
                warnings.simplefilter("ignore", category)
            distributions = predict(config, problem)
        for metric in config.metrics:
            distribution = distributions[metric]
            pit = dm.paper.pit(distribution, truth[metric])
            pit_below = 2.0 * distribution.pit(truth[metric]) - pit
            interval = distribution.interval(config.confidence_level)
            yield algorithm, metric, distribution.mean(), *interval, pit, pit_below
    if config.algorithms:
        return
    data = dm.EvaluationSet(problem.labels, problem.fold.score)
    sharp, oracle = dm.bounds(data, metrics=config.metrics), dm.paper.oracle_bounds(data, config.metrics)
    for metric in config.metrics:
        extremes = sharp[metric].lowest_possible, sharp[metric].highest_possible
        for kind, (low, high) in (("sharp", extremes), ("oracle", oracle[metric])):
            yield f"{BOUNDS},{kind}", metric, math.nan, low, high, math.nan, math.nan
