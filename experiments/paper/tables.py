"""From single predictions to figures: one row per share missing, mechanism, algorithm, metric and measure."""

import csv
import io
import os
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from darkmetrics.backtest import Scores

MEASURES = ("w1", "ks", "mae", "rmse", "coverage", "width")
COLUMNS = ("p_m", "mechanism", "algorithm", "metric", "repeats", "measure", "value", "ci90_low", "ci90_high")


def scores_of(files: Iterable[Path]) -> dict[tuple[str, str, str, str], Scores]:
    """All predictions, pooled over data sets, folds and halves as in the paper."""
    rows = defaultdict(list)
    for path in sorted(files):
        with path.open() as file:
            for row in csv.DictReader(file):
                key = row["p_m"], row["mechanism"], row["algorithm"], row["metric"]
                rows[key].append([float(row[name]) for name in ("truth", "centre", "low", "high", "pit")])
    found = {}
    for key, values in rows.items():
        table = np.array(values)
        kept = np.isfinite(table).all(axis=1)
        truth, centre, low, high, pit = table[kept].T
        found[key] = Scores(truth, centre, low, high, pit, n_failed=int((~kept).sum()))
    return found


def summarise(files: Iterable[Path], path: Path) -> Path:
    """Write every figure with its 90% bootstrap interval; the file appears when all is in it."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    for key, scores in sorted(scores_of(files).items()):
        for measure in MEASURES:
            table.writerow((*key, scores.n, measure, *(f"{x:.6g}" for x in getattr(scores, measure))))
    unfinished = path.with_suffix(f".{os.getpid()}.tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished.write_text(text.getvalue())
    unfinished.replace(path)
    return path
