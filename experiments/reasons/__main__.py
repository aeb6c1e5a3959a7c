"""`python -m experiments.reasons`: how often 90% intervals hold the truth on real data (DARKMETRICS_DATA).

Pieces that are on file under build/reasons are not run again: delete that folder after a change of laws.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.pieces import measured, results_of, table_of
from experiments.reasons.arms import ARMS, Piece, pieces

KEY = ["arm", "n", "reason", "set", "metric"]


def rows(piece: Piece) -> Iterator[dict[str, Any]]:
    """The rows of a piece's file."""
    return ({"arm": piece.arm, "n": piece.n, "set": piece.set, **row} for row in ARMS[piece.arm](piece))


def summary(paths: list[Path]) -> pd.DataFrame:
    """Per arm, size, reason, set and metric: intervals, how many held the truth, and their median width."""
    grouped = table_of(paths).groupby(KEY, sort=True)
    return grouped.agg(intervals=("held", "size"), held=("held", "sum"), width=("width", "median")).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--arms", nargs="*", choices=list(ARMS), default=list(ARMS))
    chosen = parser.parse_args()
    asked = [piece for arm in chosen.arms for piece in pieces(arm, chosen.splits)]
    found = summary(measured("reasons", [*KEY, "truth", "low", "high"], rows, asked, chosen.jobs))
    if chosen.arms == list(ARMS):
        found.to_csv(results_of("reasons"), index=False)
    pooled = found.groupby(["arm", "n", "reason", "metric"])[["intervals", "held"]].sum()
    print((100.0 * pooled["held"] / pooled["intervals"]).unstack().round(1).to_string())


if __name__ == "__main__":
    main()
