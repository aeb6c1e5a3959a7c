"""`python -m experiments.late`: how often 90% intervals hold the truth where labels come late.

Pieces that are on file under build/late are not run again: delete that folder after a change of laws.
"""

import argparse
import csv
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from experiments.late.answers import answers
from experiments.late.problems import problems

ROOT = Path(__file__).parents[2]
WORK, RESULTS = ROOT / "build" / "late", ROOT / "experiments" / "results" / "late.csv"
COLUMNS = ("kind", "problem", "told", "metric", "seed", "truth", "low", "high", "mean")
# How many seeds of each kind, and in how many of them those who do not know the ages are asked too.
SEEDS = {"simulated": (200, 20), "survival": (40, 10), "file order": (40, 20)}
_PIECE = 10


class Piece(NamedTuple):
    """Some seeds of a kind of problem."""

    kind: str
    first: int


def measured(piece: Piece) -> Path:
    """The file of a piece, made now if it is not there."""
    path = WORK / f"{piece.kind.replace(' ', '_')}-{piece.first}.csv"
    if not path.exists():
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        with fresh.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            for seed in range(piece.first, piece.first + _PIECE):
                for name, rows in problems(piece.kind, seed):
                    own = {"kind": piece.kind, "problem": name, "seed": seed}
                    found = answers(rows, seed=seed, others=seed < SEEDS[piece.kind][1])
                    writer.writerows(own | answer for answer in found)
        fresh.replace(path)
    return path


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per problem, what was told and metric: intervals, how many held the truth, median width, mean error."""
    table = table[table["truth"].notna()].copy()
    table["held"] = (table["low"] - 1e-9 <= table["truth"]) & (table["truth"] <= table["high"] + 1e-9)
    table["width"] = table["high"] - table["low"]
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
    WORK.mkdir(parents=True, exist_ok=True)
    pieces = [Piece(kind, first) for kind in chosen.kinds for first in range(0, SEEDS[kind][0], _PIECE)]
    with ProcessPoolExecutor(chosen.jobs) as pool:
        done = list(pool.map(measured, pieces))
    found = summary(pd.concat([pd.read_csv(path) for path in done], ignore_index=True))
    if chosen.kinds == list(SEEDS):
        found.to_csv(RESULTS, index=False)
    shown = found.assign(coverage=100.0 * found["held"] / found["intervals"])
    print(shown.pivot_table(index=["problem", "told"], columns="metric", values="coverage").round(0).to_string())
    print(shown.pivot_table(index=["problem", "told"], columns="metric", values="width").round(3).to_string())


if __name__ == "__main__":
    main()
