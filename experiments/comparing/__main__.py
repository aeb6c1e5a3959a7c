"""`python -m experiments.comparing`: seven models on real comments, few labels, against the truth (DARKMETRICS_DATA).

Each mask draws its own rows from the file and hides all labels but a few: at random, or with positives three times as
likely to keep theirs. Masks that are on file under build/comparing are not run again.
"""

import argparse
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import darkmetrics as dm
from experiments.comparing.docs import summary
from experiments.pieces import measured, results_of, table_of, work_of

ROWS = 2000
METRICS = ["accuracy", "f1", "roc_auc"]
LABELS = (20, 50, 100, 300, 1000)
REASONS = {"random": 1.0, "by_label": 3.0}
PAIRS = [("erm_seed2", "erm"), ("irm", "erm"), ("irm_seed1", "irm"), ("coral", "erm")]
KEY = ["reason", "labels", "mask", "kind", "metric", "who"]


def truth(y: np.ndarray, score: np.ndarray) -> dict[str, float]:
    """The metrics of one model with every label known."""
    decided, positives, n = score >= 0.5, float(y.sum()), y.size
    rank = pd.Series(score).rank().to_numpy()
    tp = float((decided & (y == 1)).sum())
    return {
        "accuracy": float((decided == y).mean()),
        "f1": 2.0 * tp / (decided.sum() + positives),
        "roc_auc": float((rank @ y - positives * (positives + 1.0) / 2.0) / (positives * (n - positives))),
    }


@cache
def _file() -> pd.DataFrame:
    return pd.read_csv(Path(os.environ["DARKMETRICS_DATA"]) / "civil_comments_scores.csv.gz")


def drawn(
    reason: str, labels: int, mask: int
) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray, np.random.Generator]:
    """The rows of a mask: labels, scores of each model, places of the labels that are kept, and the generator."""
    rng = np.random.default_rng([len(reason), labels, mask])
    data = _file()
    data = data.iloc[rng.choice(len(data), ROWS, replace=False)]
    y = data["label"].to_numpy(np.float64)
    odds = np.where(y == 1, REASONS[reason], 1.0)
    known = rng.choice(ROWS, labels, replace=False, p=odds / odds.sum())
    return y, {name: data[name].to_numpy() for name in data.columns if name != "label"}, known, rng


def rows(piece: tuple[str, int, int]) -> Iterator[dict[str, Any]]:
    """The rows of a mask's file."""
    reason, labels, mask = piece
    y, scores, known, _ = drawn(reason, labels, mask)
    y_true = np.full(ROWS, np.nan)
    y_true[known] = y[known]
    found = dm.compare(y_true, scores, missingness=reason, metrics=METRICS, zero_division=0, rng=mask)
    own = {"reason": reason, "labels": labels, "mask": mask}
    return (own | row for row in _rows(found, y, y_true, scores))


def _rows(found, y, y_true, scores):
    true = {name: truth(y, score) for name, score in scores.items()}
    known = ~np.isnan(y_true)
    for metric in METRICS:
        best, top = found.probability_best(metric), max(one[metric] for one in true.values())
        alone = sum(one[metric] == top for one in true.values()) == 1
        for name in scores:
            first = alone and true[name][metric] == top
            yield {"kind": "best", "metric": metric, "who": name, "answer": best[name], "truth": float(first)}
        for model, other in PAIRS:
            distribution = found.difference(metric, model, other)
            low, high = distribution.interval(0.9)
            apart = true[model][metric] - true[other][metric]
            who = f"{model} - {other}"
            ends = {"low": low, "high": high}
            yield {
                "kind": "difference",
                "metric": metric,
                "who": who,
                "answer": distribution.mean(),
                "truth": apart,
                **ends,
            }
    estimates = found.estimates("accuracy")
    for name, score in scores.items():
        value = true[name]["accuracy"]
        only = float(((score >= 0.5) == y)[known].mean())
        yield {"kind": "estimate", "metric": "accuracy", "who": name, "answer": estimates[name], "truth": value}
        yield {"kind": "labeled", "metric": "accuracy", "who": name, "answer": only, "truth": value}


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--masks", type=int, default=500)
    parser.add_argument("--first", type=int, default=0, help="the first mask, where several runs share the work")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="write the results of what is on file, measure nothing")
    chosen = parser.parse_args()
    if not chosen.write:
        pieces = [(r, labels, mask) for mask in range(chosen.first, chosen.masks) for labels in LABELS for r in REASONS]
        measured("comparing", [*KEY, "answer", "truth", "low", "high"], rows, pieces, chosen.jobs)
    found = summary(table_of(sorted(work_of("comparing").glob("*.csv"))))
    found.to_csv(results_of("comparing"), index=False)
    print(found.to_string())


if __name__ == "__main__":
    main()
