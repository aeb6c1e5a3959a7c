"""`python -m experiments.classes`: coverage and width of 90% intervals with several classes.

Pieces that are on file under build/classes are not run again: delete that folder after a change of distributions.
"""

import argparse
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import darkmetrics as dm
from experiments.classes.problems import FRACTIONS, MISSING, SETS, ScoredRows, draw_missing, draw_rows
from experiments.pieces import measured, results_of, table_of

COLUMNS = ("set", "missing", "fraction", "stated", "metric", "seed", "truth", "low", "high", "mean", "seconds")
METRICS = ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc_ovr", "log_loss")
_STATED = {"random": "by_score", "by score": "by_score", "by label": "by_label"}
_PIECE, _N_BOOTSTRAP = 5, 200


class Piece(NamedTuple):
    """Some seeds of a set, a way in which labels are missing, and a fraction."""

    name: str
    missing: str
    fraction: float
    first: int


def measure_piece(piece: Piece) -> Iterator[dict[str, Any]]:
    """Yield a row for each seed, statement and metric."""
    for seed in range(piece.first, piece.first + _PIECE):
        rows = draw_rows(piece.name, seed)
        missing = draw_missing(rows, piece.missing, piece.fraction, seed)
        own = {"set": piece.name, "missing": piece.missing, "fraction": piece.fraction, "seed": seed}
        yield from (own | row for row in _measure(rows, missing, _STATED[piece.missing], seed))


def _measure(rows: ScoredRows, missing: Any, stated: str, seed: int) -> Iterator[dict[str, Any]]:
    names = [*METRICS, *(f"recall[{k}]" for k in range(rows.score.shape[1]))]
    classes = list(range(rows.score.shape[1]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        complete = dm.evaluate(rows.label, rows.score, labels=classes, metrics=names)
        truth = {name: complete[name].mean() for name in names}
        label = np.where(missing, np.nan, rows.label)
        for word in (stated, None):
            result = dm.evaluate(label, rows.score, labels=classes, metrics=names, missingness=word, rng=seed)
            for name in names:
                low, high = result[name].interval(0.9)
                yield _row(word or "not stated", name, truth, low, high, result[name].mean())
        yield from _controls(rows, missing, names, truth, classes, seed)


def _controls(
    rows: ScoredRows, missing: Any, names: list[str], truth: dict[str, float], classes: list[int], seed: int
) -> Iterator[dict[str, Any]]:
    """Yield labeled rows alone with a bootstrap, and scores taken as the probabilities of the missing labels."""
    own, rng, drawn = np.flatnonzero(~missing), np.random.default_rng((seed, 7)), []
    for _ in range(_N_BOOTSTRAP if seed % 10 == 0 else 0):
        sample = rng.choice(own, own.size)
        drawn.append([_accuracy(rows, sample)])
    if drawn:
        low, high = np.quantile(np.array(drawn)[:, 0], [0.05, 0.95])
        yield _row("labeled rows alone", "accuracy", truth, low, high, _accuracy(rows, own))
    score = rows.score[missing] / rows.score[missing].sum(axis=1, keepdims=True)
    fixed = dm.missing.Fixed(score)
    label = np.where(missing, np.nan, rows.label)
    result = dm.evaluate(label, rows.score, labels=classes, metrics=names[: len(METRICS)], missingness=fixed)
    for name in METRICS:
        low, high = result[name].interval(0.9)
        yield _row("scores as probabilities", name, truth, low, high, result[name].mean())


def _accuracy(rows: ScoredRows, selected: Any) -> float:
    return float(np.mean(rows.score[selected].argmax(axis=1) == rows.label[selected]))


def _row(stated: str, metric: str, truth: dict[str, float], low: float, high: float, mean: float) -> dict[str, Any]:
    return {"stated": stated, "metric": metric, "truth": truth[metric], "low": low, "high": high, "mean": mean}


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Return intervals, coverage, median width and mean error by set, mechanism, statement and metric."""
    table = table[table["truth"].notna() & table["low"].notna()].copy()
    table["error"] = (table["mean"] - table["truth"]).abs()
    table["metric"] = table["metric"].where(~table["metric"].str.startswith("recall["), "recall of each class")
    grouped = table.groupby(["set", "missing", "fraction", "stated", "metric"], sort=False)
    return grouped.agg(
        intervals=("held", "size"), covered=("held", "sum"), width=("width", "median"), error=("error", "mean")
    ).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=60)
    parser.add_argument("--sets", nargs="*", choices=list(SETS), default=list(SETS))
    chosen = parser.parse_args()
    pieces = [
        Piece(name, kind, fraction, first)
        for first in range(0, chosen.seeds, _PIECE)
        for name in chosen.sets
        for kind in MISSING
        for fraction in FRACTIONS
    ]
    summary = summarize(table_of(measured("classes", COLUMNS, measure_piece, pieces, chosen.jobs)))
    summary.round(5).to_csv(results_of("classes"), index=False)
    shown = summary.assign(coverage=100.0 * summary["covered"] / summary["intervals"])
    index = ["set", "missing", "fraction", "stated"]
    print(shown.pivot_table(index=index, columns="metric", values="coverage", sort=False).round(0).to_string())


if __name__ == "__main__":
    main()
