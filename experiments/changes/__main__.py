"""`python -m experiments.changes`: how often a metric fell where P(fell) says so.

Pieces that are on file under build/changes are not run again: delete that folder after a change of laws.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

import darkmetrics as dm
from experiments.changes.months import DROPS, LATE, TOLD, answers
from experiments.pieces import measured, results_of, table_of

COLUMNS = ("how", "drop", "told", "seed", "metric", "truth", "fell", "fell_by_1", "mean", "low", "high")
_PIECE = 10


class Piece(NamedTuple):
    """Some seeds of a problem."""

    how: str
    drop: str
    first: int


def _found(piece: Piece) -> Iterator[dict[str, Any]]:
    for seed in range(piece.first, piece.first + _PIECE):
        for told, earlier, later, before, after in answers(piece.how, piece.drop, seed):
            change = dm.compare_evaluations(after, before)
            for name, distribution in change.items():
                metric = change.metrics[name]
                truth = metric.value(later.truth, 0.0) - metric.value(earlier.truth, 0.0)
                low, high = distribution.interval(0.9)
                yield {
                    "how": piece.how,
                    "drop": piece.drop,
                    "told": told,
                    "seed": seed,
                    "metric": name,
                    "truth": truth,
                    "fell": change.probability_decreased(name),
                    "fell_by_1": change.probability_decreased(name, by=0.01),
                    "mean": distribution.mean(),
                    "low": low,
                    "high": high,
                }


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per problem, what was told, metric and tenth of P(fell): how many, how many fell, and intervals that held."""
    table = table.copy()
    table["tenth"] = (10.0 * table["fell"]).astype(int).clip(0, 9)
    table["did"], table["rose"] = table["truth"] < -1e-12, table["truth"] > 1e-12
    table["said"], table["said_rose"] = table["fell"] >= 0.95, table["fell"] <= 0.05
    table["wrong"], table["wrong_rose"] = table["said"] & ~table["did"], table["said_rose"] & ~table["rose"]
    table["did_by_1"] = table["truth"] < -0.01 - 1e-12
    grouped = table.groupby(["how", "drop", "told", "metric", "tenth"], sort=True)
    found = grouped.agg(
        pairs=("did", "size"),
        p_fell=("fell", "sum"),
        did=("did", "sum"),
        rose=("rose", "sum"),
        said=("said", "sum"),
        wrong=("wrong", "sum"),
        said_rose=("said_rose", "sum"),
        wrong_rose=("wrong_rose", "sum"),
        p_fell_by_1=("fell_by_1", "sum"),
        did_by_1=("did_by_1", "sum"),
        held=("held", "sum"),
        width=("width", "sum"),
    )
    return found.round(4).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=200)
    chosen = parser.parse_args()
    starts = range(0, chosen.seeds, _PIECE)
    pieces = [Piece(how, drop, first) for first in starts for how in (*TOLD, LATE) for drop in DROPS]
    found = summary(table_of(measured("changes", COLUMNS, _found, pieces, chosen.jobs)))
    found.to_csv(results_of("changes"), index=False)
    sums = found.groupby(["told", "how"])[["pairs", "did", "said", "wrong", "held"]].sum()
    print(sums.to_string())


if __name__ == "__main__":
    main()
