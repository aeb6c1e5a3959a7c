"""`python -m experiments.coverage [FAMILY ...]`: coverage and width of 90% intervals; see the package."""

import argparse
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.coverage.cases import Case, measure
from experiments.pieces import measured, results_of, table_of

FAMILIES = ("stated", "unstated", "few_labels", "reference", "propensity", "delayed")
_PIECE = 10
COLUMNS = ("family", "case", "seed", "metric", "truth", "low", "high", "mean", "warned", "seconds")


def load_cases(family: str) -> dict[str, Case]:
    """Return the cases of a family by name."""
    cases = importlib.import_module(f"experiments.coverage.{family}").CASES
    return {case.name: case for case in cases}


def measure_piece(piece: tuple[str, str, int, int]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a piece: some seeds of a case."""
    family, name, first, last = piece
    case = load_cases(family)[name]
    for seed in range(first, last):
        yield from ({"family": family, "case": name, **row} for row in measure(case, seed))


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Return intervals, coverage, median width and mean error by case and metric."""
    table = table[table["truth"].notna()].copy()
    table["error"] = (table["mean"] - table["truth"]).abs()
    table["has_warning"] = table["warned"].notna()
    grouped = table.groupby(["family", "case", "metric"], sort=False)
    return grouped.agg(
        intervals=("held", "size"),
        covered=("held", "sum"),
        width=("width", "median"),
        error=("error", "mean"),
        warned=("has_warning", "sum"),
        seconds=("seconds", "median"),
    ).reset_index()


def list_misses(summary: pd.DataFrame) -> Iterator[str]:
    """Yield a line for each case or pool that misses its coverage, and for each control that does not."""
    pools: dict[tuple[str, str, str], list[tuple[int, int]]] = {}
    limits: dict[tuple[str, str, str], tuple[float, float]] = {}
    for (family, name), rows in summary.groupby(["family", "case"], sort=False):
        case = load_cases(family)[name]
        coverage = (rows["covered"] / rows["intervals"]).to_numpy()
        outside = [
            f"{metric} {value:.0%}"
            for metric, value in zip(rows["metric"], coverage, strict=True)
            if not case.min_coverage <= value <= case.max_coverage
        ]
        if case.is_control and not outside:
            yield f"{family}, {name}: the control covers, and must not"
        elif outside and not case.is_control:
            yield f"{family}, {name}: {', '.join(outside)} (at least {case.min_coverage:.0%})"
        if case.pool:
            for row in rows.itertuples():
                key = (family, case.pool, row.metric)
                pools.setdefault(key, []).append((row.covered, row.intervals))
                limits[key] = case.min_pooled, case.max_pooled
    for (family, pool, metric), counts in pools.items():
        value = sum(covered for covered, _ in counts) / sum(intervals for _, intervals in counts)
        low, high = limits[family, pool, metric]
        if not low <= value <= high:
            yield f"{family}, pooled {pool}: {metric} {value:.1%} ({low:.0%} to {high:.0%})"


def replace_families(path: Path, summary: pd.DataFrame) -> None:
    """Replace the rows of the summarized families in a file of results, and keep those of other families."""
    tables = [summary.round(5)]
    if path.exists():
        stored = pd.read_csv(path)
        tables.append(stored[~stored["family"].isin(summary["family"])])
    table = pd.concat(tables, ignore_index=True)
    order = table["family"].map(FAMILIES.index)
    table.loc[order.sort_values(kind="stable").index].to_csv(path, index=False)


def main() -> None:
    """Measure what is not on file, print the summary, and write the results of families with all cases and seeds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*", default=[], help=", ".join(FAMILIES))
    parser.add_argument("--case", default="", help="only cases with this in their name")
    parser.add_argument("--seeds", type=int, help="at most this many seeds per case")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    pieces = []
    for family in options.families or FAMILIES:
        for name, case in load_cases(family).items():
            if options.case in name:
                n_seeds = min(case.n_seeds, options.seeds or case.n_seeds)
                firsts = range(0, n_seeds, _PIECE)
                pieces += [(family, name, first, min(first + _PIECE, n_seeds)) for first in firsts]
    summary = summarize(table_of(measured("coverage", COLUMNS, measure_piece, pieces, options.jobs)))
    coverage = summary.assign(coverage=100.0 * summary["covered"] / summary["intervals"])
    for value, digits in (("coverage", 0), ("width", 3)):
        shown = coverage.pivot_table(index=["family", "case"], columns="metric", values=value, sort=False)
        print(f"\n{value}\n{shown.round(digits).to_string()}")
    print("\n" + ("\n".join(list_misses(summary)) or "All cases reach their coverage, and no control does."))
    if not (options.case or options.seeds):
        replace_families(results_of("coverage"), summary)


if __name__ == "__main__":
    main()
