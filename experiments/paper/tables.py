"""From single predictions to figures: what every mask gave, pooled over data sets, folds and halves as in the paper."""

import csv
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from darkmetrics.backtesting import Scores
from experiments.paper.files import read_rows, write_whole
from experiments.paper.run import BOUNDS

MEASURES = ("w1", "ks", "mae", "rmse", "coverage", "width")
SUMMARY = ("p_m", "mechanism", "algorithm", "metric", "repeats", "measure", "value", "ci90_low", "ci90_high")
WIDTHS = ("p_m", "set", "kind", "metric", "width")
CENTRE = ("folds", "metric", "repeats", "ours", "pemi_gauss", "difference", "ci90_low", "ci90_high")
PITS = ("p_m", "mechanism", "algorithm", "metric", "pit")
# PIT values are kept where they are drawn.
DRAWN = ("ours,calibrated", "ours,label_shift", "ours,auto", "pemi_gauss,calibrated", "bootstrap")

# Whose centres are compared on the same masks: ours where labels are missing at random, and the paper's.
PAIR = ("ours,calibrated", "pemi_gauss,calibrated")

Key = tuple[str, str, str, str]


def scores_of(files: Iterable[Path]) -> dict[Key, Scores]:
    """All predictions by share missing, mechanism, algorithm and metric."""
    rows = defaultdict(list)
    for row in _rows(files):
        if not row["algorithm"].startswith(BOUNDS):
            key = row["p_m"], row["mechanism"], row["algorithm"], row["metric"]
            rows[key].append([float(row[name]) for name in ("truth", "centre", "low", "high", "pit")])
    found = {}
    for key, values in rows.items():
        table = np.array(values)
        kept = np.isfinite(table).all(axis=1)
        truth, centre, low, high, pit = table[kept].T
        found[key] = Scores(truth, centre, low, high, pit, n_failed=int((~kept).sum()))
    return found


def write_tables(files: Sequence[Path], folder: Path) -> list[Path]:
    """summary.csv (every figure with its 90% interval), widths.csv of the bounds, pit.csv."""
    scores = dict(sorted(scores_of(files).items()))
    share = max(key[0] for key in scores)
    return [
        _write(folder / "summary.csv", SUMMARY, _figures(scores)),
        _write(folder / "widths.csv", WIDTHS, _widths(files)),
        _write(folder / "pit.csv", PITS, _pits({key: score for key, score in scores.items() if key[0] == share})),
    ]


def write_other_choices(files: Sequence[Path], folder: Path) -> Path:
    """other_choices.csv: the figures of the run with two choices made the other way."""
    return _write(folder / "other_choices.csv", SUMMARY, _figures(dict(sorted(scores_of(files).items()))))


def write_centre(seeds: Mapping[str, Sequence[Sequence[Path]]], folder: Path) -> Path:
    """centre.csv: mean absolute errors of two algorithms on the same masks, over several seeds."""
    return _write(folder / "centre.csv", CENTRE, (row for way, runs in seeds.items() for row in _centre(way, runs)))


def _centre(way: str, runs: Sequence[Sequence[Path]]) -> Iterator[tuple[Any, ...]]:
    """The interval is that of a mean over seeds: masks of one seed share their folds."""
    found = [scores_of(files) for files in runs]
    for metric in dict.fromkeys(key[3] for key in found[0]):
        errors = np.array([[_mean_error(scores, name, metric) for name in PAIR] for scores in found])
        difference = errors[:, 0] - errors[:, 1]
        n = difference.size
        reach = t.ppf(0.95, n - 1) * difference.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        repeats = sum(score.n for scores in found for key, score in scores.items() if key[2:] == (PAIR[0], metric))
        figures = *errors.mean(axis=0), difference.mean(), difference.mean() - reach, difference.mean() + reach
        yield way, metric, repeats, *(f"{x:.6g}" for x in figures)


def _mean_error(scores: Mapping[Key, Scores], algorithm: str, metric: str) -> float:
    (score,) = (score for key, score in scores.items() if key[2:] == (algorithm, metric))
    assert score.n_failed == 0, "both algorithms are compared on the same masks"
    return float(np.abs(score.centre - score.truth).mean())


def _figures(scores: dict[Key, Scores]) -> Iterator[tuple[Any, ...]]:
    for key, score in scores.items():
        for measure in MEASURES:
            yield (*key, score.n, measure, *(f"{x:.6g}" for x in getattr(score, measure)))


def _widths(files: Iterable[Path]) -> Iterator[tuple[Any, ...]]:
    """Widths of the bounds under MCAR: they do not depend on which labels are missing, only on where."""
    for row in _rows(files):
        if row["algorithm"].startswith(BOUNDS) and row["mechanism"] == "mcar":
            width = float(row["high"]) - float(row["low"])
            yield row["p_m"], row["set"], row["algorithm"].split(",")[1], row["metric"], f"{width:.5g}"


def _pits(scores: dict[Key, Scores]) -> Iterator[tuple[Any, ...]]:
    for key, score in scores.items():
        if key[2] in DRAWN:
            yield (*key, " ".join(f"{pit:.3g}" for pit in np.sort(score.pit)))


def _rows(files: Iterable[Path]) -> Iterator[dict[str, str]]:
    for path in sorted(files):
        yield from read_rows(path)


def _write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> Path:
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return write_whole(path, text.getvalue())
