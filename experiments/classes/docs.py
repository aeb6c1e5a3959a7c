"""The table of several classes in docs/validation/coverage.md, from experiments/results/classes.csv."""

from collections.abc import Callable

import pandas as pd

from experiments.pieces import ROOT, filled, marks_of, results_of

RESULTS, PAGE = results_of("classes"), ROOT / "docs" / "validation" / "coverage.md"
MARKED = marks_of("classes")
_METRICS = ("accuracy", "balanced_accuracy", "f1_macro", "roc_auc_ovr", "log_loss", "recall of each class")


def format_table(results: pd.DataFrame) -> str:
    """Return coverage in percent over all sets and fractions, and in brackets the lowest of one set."""
    lines = [
        f"| labels missing | stated | data sets | {' | '.join(_METRICS)} | width of accuracy |",
        f"| :-- | :-- | --: |{' --: |' * len(_METRICS)} --: |",
    ]
    order = {"by_score": 0, "by_label": 0, "not stated": 1, "labeled rows alone": 2, "scores as probabilities": 3}
    results = results.sort_values("stated", key=lambda column: column.map(order), kind="stable")
    for missing in ("random", "by score", "by label"):
        for stated, rows in results[results["missing"] == missing].groupby("stated", sort=False):
            cells = []
            for metric in _METRICS:
                selected = rows[rows["metric"] == metric].groupby("set")[["covered", "intervals"]].sum()
                if selected.empty:
                    cells.append("")
                    continue
                pooled = 100.0 * selected["covered"].sum() / selected["intervals"].sum()
                lowest = 100.0 * (selected["covered"] / selected["intervals"]).min()
                cells.append(f"{pooled:.0f} ({lowest:.0f})")
            accuracy = rows[rows["metric"] == "accuracy"]
            n, width = int(accuracy["intervals"].sum()), float(accuracy["width"].median())
            name = f"*control:* {stated}" if order[str(stated)] > 1 else stated
            lines.append(f"| {missing} | {name} | {n:,} | {' | '.join(cells)} | {width:.3f} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {"coverage": format_table}


def fill_page(page: str, results: pd.DataFrame) -> str:
    """Return the page with the table made from the results; the text around it stays."""
    return filled(page, MARKED, TABLES, results)


if __name__ == "__main__":
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS)), encoding="utf-8")
