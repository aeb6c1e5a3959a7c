"""`python -m experiments.population`: how often 90% intervals hold the population's value (DARKMETRICS_DATA).

Pieces that are on file under build/population are not run again: delete that folder after a change of laws.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.pieces import measured, results_of, table_of, work_of
from experiments.population.problems import Piece, pieces, rows_of

KEY = ["arm", "set", "n", "share", "reason", "scope", "metric"]
ARMS = ("simulated", "groups", "real", "given", "differences")


def rows(piece: Piece) -> Iterator[dict[str, Any]]:
    """The rows of a piece's file."""
    return ({**piece._asdict(), **row} for row in rows_of(piece))


def summary(paths: list[Path]) -> pd.DataFrame:
    """Per kind of sample, scope and metric: intervals, how many held the population's value, and their median width."""
    grouped = table_of(paths).groupby(KEY, sort=True)
    return grouped.agg(intervals=("held", "size"), held=("held", "sum"), width=("width", "median")).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    chosen = parser.parse_args()
    asked = [piece for arm in chosen.arms for piece in pieces(arm, chosen.samples, chosen.size)]
    measured("population", [*KEY, "truth", "low", "high"], rows, asked, chosen.jobs)
    # Of everything on file: arms may have been run with different numbers of samples.
    found = summary(sorted(work_of("population").glob("*.csv")))
    if results_of("population").exists():  # arms of which nothing is on file stay as they were measured
        before = pd.read_csv(results_of("population"))
        kept = before[~before["arm"].isin(found["arm"])]
        found = pd.concat([kept, found], ignore_index=True).sort_values(KEY, ignore_index=True)
    found.to_csv(results_of("population"), index=False)
    shares = 100.0 * found["held"] / found["intervals"]
    print(shares.groupby([found[key] for key in KEY]).first().unstack().round(1).to_string())


if __name__ == "__main__":
    main()
