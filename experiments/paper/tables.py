"""From single predictions to figures: the results of every mask, pooled over data sets, folds and halves."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import t

from darkmetrics.backtesting import Scores
from experiments.paper.cells import SWAPPED
from experiments.paper.files import read_rows, write_table
from experiments.paper.run import BOUNDS

MEASURES = ("w1", "ks", "mae", "rmse", "coverage", "width")
SUMMARY = ("p_m", "mechanism", "algorithm", "metric", "repeats", "measure", "value", "ci90_low", "ci90_high")
WIDTHS = ("p_m", "set", "kind", "metric", "width")
CENTER = ("folds", "metric", "repeats", "ours", "pemi_gauss", "difference", "ci90_low", "ci90_high")
PITS = ("p_m", "mechanism", "algorithm", "metric", "pit")
RUN = ("run", "set", "folds", "commits")
# Sorted PIT values are stored where they are drawn.
DRAWN = ("ours,calibrated", "ours,label_shift", "ours,auto", "pemi_gauss,calibrated", "bootstrap")
# The centers of these algorithms are compared on the same masks: labels missing at random stated, and the paper's.
PAIR = ("ours,calibrated", "pemi_gauss,calibrated")

Key = tuple[str, str, str, str]


def scores_of(files: Iterable[Path], *, middle: bool = False) -> dict[Key, Scores]:
    """Return all predictions by fraction missing, mechanism, algorithm and metric.

    The PIT is the cdf at the truth; with `middle`, half of the probability of the truth itself is left out.
    """
    rows = defaultdict(list)
    for row in _rows(files):
        if not row["algorithm"].startswith(BOUNDS):
            key = row["p_m"], row["mechanism"], row["algorithm"], row["metric"]
            values = [float(row[name]) for name in ("truth", "center", "low", "high", "pit")]
            if middle:
                values[-1] = 0.5 * (values[-1] + float(row["pit_below"]))
            rows[key].append(values)
    result = {}
    for key, listed in rows.items():
        table = np.array(listed)
        is_defined = np.isfinite(table).all(axis=1)
        truth, center, low, high, pit = table[is_defined].T
        result[key] = Scores(truth, center, low, high, pit, n_failed=int((~is_defined).sum()))
    return result


def write_tables(files: Sequence[Path], folder: Path) -> list[Path]:
    """Write summary.csv (every figure with its 90% interval), widths.csv of the bounds, and pit.csv."""
    scores = dict(sorted(scores_of(files).items()))
    middle = scores_of(files, middle=True)
    p_m = max(key[0] for key in scores)
    drawn = {key: score for key, score in scores.items() if key[0] == p_m and key[2] in DRAWN}
    return [
        write_table(folder / "summary.csv", SUMMARY, _figures(scores, middle)),
        write_table(folder / "widths.csv", WIDTHS, _widths(files)),
        write_table(folder / "pit.csv", PITS, _pits(drawn)),
    ]


def write_swapped_classes(main: Sequence[Path], swapped: Sequence[Path], folder: Path) -> Path:
    """Write swapped_classes.csv: the figures under MCAR with the classes of two sets swapped."""
    files = [path for path in main if _set_of(path) not in SWAPPED]
    files += [path for path in swapped if _set_of(path) in SWAPPED]
    algorithms = {row["algorithm"] for row in _rows(swapped)}
    scores = {key: score for key, score in scores_of(files).items() if key[1] == "mcar" and key[2] in algorithms}
    return write_table(folder / "swapped_classes.csv", SUMMARY, _figures(dict(sorted(scores.items()))))


def write_center(runs: Mapping[str, Sequence[Sequence[Path]]], folder: Path) -> Path:
    """Write center.csv: mean absolute errors of two algorithms on the same masks, over several seeds."""
    rows = (row for way, files in runs.items() for row in _center(way, files))
    return write_table(folder / "center.csv", CENTER, rows)


def write_run(runs: Mapping[str, Sequence[Path]], sets: Sequence[str], folder: Path) -> Path:
    """Write run.csv: the finished folds of each set, and the commits at which they were computed."""
    rows = []
    for run, folders in runs.items():
        notes = (path / "commits.txt" for path in folders)
        commits = dict.fromkeys(line for note in notes if note.exists() for line in note.read_text().splitlines())
        for name in sets:
            folds = sum(len(list(path.glob(f"{name}-*.csv"))) for path in folders)
            rows.append((run, name, folds, " ".join(commits) if folds else ""))
    return write_table(folder / "run.csv", RUN, rows)


def _set_of(path: Path) -> str:
    return path.stem.rpartition("-")[0]


def _center(way: str, runs: Sequence[Sequence[Path]]) -> Iterator[tuple[Any, ...]]:
    """Yield rows; the interval is that of a mean over seeds, as masks of one seed share their folds."""
    by_seed = [scores_of(files) for files in runs]
    for metric in dict.fromkeys(key[3] for key in by_seed[0]):
        errors = np.array([[_mean_error(scores, name, metric) for name in PAIR] for scores in by_seed])
        difference = errors[:, 0] - errors[:, 1]
        n = difference.size
        reach = t.ppf(0.95, n - 1) * difference.std(ddof=1) / np.sqrt(n) if n > 1 else np.nan
        repeats = sum(score.n for scores in by_seed for key, score in scores.items() if key[2:] == (PAIR[0], metric))
        figures = *errors.mean(axis=0), difference.mean(), difference.mean() - reach, difference.mean() + reach
        yield way, metric, repeats, *(f"{x:.6g}" for x in figures)


def _mean_error(scores: Mapping[Key, Scores], algorithm: str, metric: str) -> float:
    (score,) = (score for key, score in scores.items() if key[2:] == (algorithm, metric))
    assert score.n_failed == 0, "both algorithms are compared on the same masks"
    return score.mae.value


def _figures(scores: Mapping[Key, Scores], middle: Mapping[Key, Scores] | None = None) -> Iterator[tuple[Any, ...]]:
    for key, score in scores.items():
        figures = {measure: getattr(score, measure) for measure in MEASURES}
        if middle is not None:
            figures["w1_middle"] = replace(score, pit=middle[key].pit).w1
        for measure, estimate in figures.items():
            yield (*key, score.n, measure, *(f"{x:.6g}" for x in estimate))


def _widths(files: Iterable[Path]) -> Iterator[tuple[Any, ...]]:
    """Yield widths of the bounds under MCAR: they do not depend on which labels are missing, only on where."""
    for row in _rows(files):
        if row["algorithm"].startswith(BOUNDS) and row["mechanism"] == "mcar":
            width = float(row["high"]) - float(row["low"])
            yield row["p_m"], row["set"], row["algorithm"].split(",")[1], row["metric"], f"{width:.5g}"


def _pits(scores: Mapping[Key, Scores]) -> Iterator[tuple[Any, ...]]:
    for key, score in scores.items():
        yield (*key, " ".join(f"{pit:.3g}" for pit in np.sort(score.pit)))


def _rows(files: Iterable[Path]) -> Iterator[dict[str, str]]:
    for path in sorted(files):
        yield from read_rows(path)
