"""`python -m experiments.late`: how often 90% intervals hold the truth where labels come late.

Pieces that are on file under build/late are not run again: delete that folder after a change of laws.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

import pandas as pd

from experiments.late.answers import answers
from experiments.late.problems import problems
from experiments.pieces import measured, results_of, table_of

COLUMNS = ("kind", "problem", "told", "metric", "seed", "truth", "low", "high", "mean")
# How many seeds of each kind, and in how many of them those who do not know the ages are asked too.
SEEDS = {"simulated": (200, 20), "survival": (40, 10), "file order": (40, 20)}
_PIECE = 10


class Piece(NamedTuple):
    """Some seeds of a kind of problem."""

    kind: str
    first: int


def rows(piece: Piece) -> Iterator[dict[str, Any]]:
    """The rows of a piece's file."""
    for seed in range(piece.first, piece.first + _PIECE):
        for name, known in problems(piece.kind, seed):
            own = {"kind": piece.kind, "problem": name, "seed": seed}
            yield from (own | answer for answer in answers(known, seed=seed, others=seed < SEEDS[piece.kind][1]))


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per problem, what was told and metric: intervals, how many held the truth, median width, mean error."""
    table = table[table["truth"].notna()].copy()
    table["error"] = (table["mean"] - table["truth"]).abs()
    grouped = table.groupby(["kind", "problem", "told", "metric"], sort=True)
    found = grouped.agg(
        intervals=("held", "size"), held=("held", "sum"), width=("width", "median"), error=("error", "mean")
    )
    return found.round(5).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--kinds", nargs="*", choices=list(SEEDS), default=list(SEEDS))
    chosen = parser.parse_args()
    pieces = [Piece(kind, first) for kind in chosen.kinds for first in range(0, SEEDS[kind][0], _PIECE)]
    found = summary(table_of(measured("late", COLUMNS, rows, pieces, chosen.jobs)))
    if chosen.kinds == list(SEEDS):
        found.to_csv(results_of("late"), index=False)
    shown = found.assign(coverage=100.0 * found["held"] / found["intervals"])
    print(shown.pivot_table(index=["problem", "told"], columns="metric", values="coverage").round(0).to_string())
    print(shown.pivot_table(index=["problem", "told"], columns="metric", values="width").round(3).to_string())


if __name__ == "__main__":
    main()
