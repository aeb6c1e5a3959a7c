"""The tables of docs/validation/coverage.md, from experiments/results/coverage.csv."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from experiments.coverage.__main__ import FAMILIES, load_cases
from experiments.coverage.cases import METRICS
from experiments.pieces import ROOT, filled, marks_of, results_of

RESULTS, PAGE = results_of("coverage"), ROOT / "docs" / "validation" / "coverage.md"
MARKED = marks_of("coverage")


def format_table(family: str, results: pd.DataFrame) -> str:
    """Return a table of a family: coverage of each design in percent, over all its cases, and in the worst case."""
    rows = results[results["family"] == family].copy()
    if rows.empty:
        return "Not measured."
    cases = load_cases(family)
    rows["design"] = [cases[name].pool or name for name in rows["case"]]
    lines = [
        f"| design | data sets | {' | '.join(METRICS)} | median width |",
        f"| :-- | --: |{' --: |' * len(METRICS)} --: |",
    ]
    for design, of_design in rows.groupby("design", sort=False):
        cells, widths = [], []
        for metric in METRICS:
            selected = of_design[of_design["metric"] == metric]
            if selected.empty:
                cells.append("")
                continue
            coverage = 100.0 * selected["covered"] / selected["intervals"]
            pooled = 100.0 * selected["covered"].sum() / selected["intervals"].sum()
            cells.append(f"{pooled:.0f} ({coverage.min():.0f})" if len(selected) > 1 else f"{pooled:.0f}")
            widths.append(float(selected["width"].median()))
        n = int(of_design.groupby("case")["intervals"].first().sum())
        lines.append(f"| {design} | {n:,} | {' | '.join(cells)} | {sum(widths) / len(widths):.3f} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {family: partial(format_table, family) for family in FAMILIES}


def fill_page(page: str, results: pd.DataFrame) -> str:
    """Return the page with every marked table made from the results; the text around them stays."""
    return filled(page, MARKED, TABLES, results)


if __name__ == "__main__":
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS)), encoding="utf-8")
