"""`python -m experiments.population`: how often 90% intervals hold the population's value (DARKMETRICS_DATA).

Pieces that are on file under build/population are not run again: delete that folder after a change of laws.
"""

import argparse
import csv
import os
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

from experiments.population.problems import Piece, pieces, rows_of

ROOT = Path(__file__).parents[2]
WORK, RESULTS = ROOT / "build" / "population", ROOT / "experiments" / "results" / "population.csv"
KEY = ["arm", "set", "n", "share", "reason", "scope", "metric"]
ARMS = ("simulated", "groups", "real", "given")


def measured(piece: Piece) -> Path:
    """The file of a piece, made now if it is not there."""
    path = WORK / f"{'-'.join(map(str, piece)).replace(' ', '_')}.csv"
    if not path.exists():
        rows = [{**piece._asdict(), **row} for row in rows_of(piece)]
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        with fresh.open("w", newline="") as file:
            writer = csv.DictWriter(file, [*KEY, "truth", "low", "high"], extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        fresh.replace(path)
    return path


def summary(paths: list[Path]) -> pd.DataFrame:
    """Per kind of sample, scope and metric: intervals, how many held the population's value, and their median width."""
    table = pd.concat([pd.read_csv(path) for path in paths], ignore_index=True)
    table["held"] = (table["low"] - 1e-9 <= table["truth"]) & (table["truth"] <= table["high"] + 1e-9)
    table["width"] = (table["high"] - table["low"]).round(5)
    grouped = table.groupby(KEY, sort=True)
    return grouped.agg(intervals=("held", "size"), held=("held", "sum"), width=("width", "median")).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--size", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--arms", nargs="*", choices=ARMS, default=list(ARMS))
    chosen = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    asked = [piece for arm in chosen.arms for piece in pieces(arm, chosen.samples, chosen.size)]
    with ProcessPoolExecutor(chosen.jobs) as pool:
        list(pool.map(measured, asked))
    # Of everything on file: arms may have been run with different numbers of samples.
    found = summary(sorted(WORK.glob("*.csv")))
    found.to_csv(RESULTS, index=False)
    shares = 100.0 * found["held"] / found["intervals"]
    print(shares.groupby([found[key] for key in KEY]).first().unstack().round(1).to_string())


if __name__ == "__main__":
    main()
