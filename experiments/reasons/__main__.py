"""`python -m experiments.reasons`: how often 90% intervals hold the truth on real data (DARKMETRICS_DATA).

Pieces that are on file under build/reasons are not run again: delete that folder after a change of laws.
"""

import argparse
import csv
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

from experiments.reasons.arms import ARMS, Piece, pieces

ROOT = Path(__file__).parents[2]
WORK, RESULTS = ROOT / "build" / "reasons", ROOT / "experiments" / "results" / "reasons.csv"
KEY = ["arm", "n", "reason", "set", "metric"]


def measured(piece: Piece) -> Path:
    """The file of a piece, made now if it is not there."""
    path = WORK / f"{'-'.join(map(str, piece))}.csv"
    if not path.exists():
        rows = [{"arm": piece.arm, "n": piece.n, "set": piece.set, **row} for row in ARMS[piece.arm](piece)]
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        with fresh.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*KEY, "truth", "low", "high"])
            writer.writeheader()
            writer.writerows(rows)
        fresh.replace(path)
    return path


def summary(paths: Iterator[Path]) -> pd.DataFrame:
    """Per arm, size, reason, set and metric: intervals, how many held the truth, and their median width."""
    table = pd.concat([pd.read_csv(path) for path in paths], ignore_index=True)
    table["held"] = (table["low"] - 1e-9 <= table["truth"]) & (table["truth"] <= table["high"] + 1e-9)
    table["width"] = (table["high"] - table["low"]).round(5)
    grouped = table.groupby(KEY, sort=True)
    return grouped.agg(intervals=("held", "size"), held=("held", "sum"), width=("width", "median")).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--arms", nargs="*", choices=list(ARMS), default=list(ARMS))
    chosen = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(chosen.jobs) as pool:
        done = list(pool.map(measured, [piece for arm in chosen.arms for piece in pieces(arm, chosen.splits)]))
    found = summary(iter(done))
    if chosen.arms == list(ARMS):
        found.to_csv(RESULTS, index=False)
    pooled = found.groupby(["arm", "n", "reason", "metric"])[["intervals", "held"]].sum()
    print((100.0 * pooled["held"] / pooled["intervals"]).unstack().round(1).to_string())


if __name__ == "__main__":
    main()
