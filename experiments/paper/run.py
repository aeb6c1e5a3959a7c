"""The run: one file per fold, written when the fold is finished and never computed twice."""

import csv
import io
import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import darkmetrics as dm
from experiments.paper.algorithms import algorithms
from experiments.paper.config import Config
from experiments.paper.problems import fold_of, problems_of

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
    "centre",
    "low",
    "high",
    "pit",
)


def run(config: Config, folder: Path, n_jobs: int = 2) -> list[Path]:
    """All folds that are not there yet; the files of all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {(name, number): folder / f"{name}-{number}.csv" for name in config.sets for number in range(config.folds)}
    todo = [key for key, path in files.items() if not path.exists()]
    started = time.monotonic()
    with ProcessPoolExecutor(n_jobs) as pool:
        futures = {
            pool.submit(_fold, config, name, number, files[name, number]): (name, number) for name, number in todo
        }
        for done, future in enumerate(as_completed(futures), 1):
            future.result()
            left = (time.monotonic() - started) / done * (len(todo) - done) / 60.0
            name, number = futures[future]
            sys.stderr.write(f"{name} fold {number + 1}: {done} of {len(todo)}, about {left:.0f} min left\n")
    return list(files.values())


def _metrics(config: Config) -> dict[str, dm.Metric]:
    return {metric.name: metric for metric in dm.metrics.metrics_from(config.metrics)}


def _fold(config: Config, name: str, number: int, path: Path) -> None:
    """One fold: every mask, every algorithm, every metric; the file appears when all is in it."""
    fold = fold_of(config, name, number)
    complete = dm.EvaluationSet(fold.y, fold.score)
    truth = {name: metric.value(complete, 0.0) for name, metric in _metrics(config).items()}
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEADER)
    for problem in problems_of(config, name, number, fold):
        masked = int((problem.labels != problem.labels).sum())
        for algorithm, laws_of in algorithms(config).items():
            with warnings.catch_warnings():
                for category in (dm.MissingnessWarning, dm.CalibrationWarning, dm.UndefinedMetricWarning):
                    warnings.simplefilter("ignore", category)
                laws = laws_of(config, problem)
            for metric in config.metrics:
                law = laws[metric]
                figures = (truth[metric], law.mean(), *law.interval(config.confidence_level), law.pit(truth[metric]))
                key = (name, number, problem.half, problem.missing, problem.mechanism, masked, algorithm, metric)
                table.writerow((*key, *(f"{float(x):.12g}" for x in figures)))
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    unfinished.write_text(text.getvalue())
    unfinished.replace(path)
