"""The tables of docs/explanation/assumptions.md that come from experiments/results/reasons.csv."""

from collections.abc import Callable

import pandas as pd

from experiments.pieces import ROOT, filled, marks_of, results_of

RESULTS, PAGE = results_of("reasons"), ROOT / "docs" / "explanation" / "assumptions.md"
MARKED = marks_of("reasons")
_FIVE = ["precision", "recall", "accuracy", "f1", "roc_auc"]


def coverage(found: pd.DataFrame, arm: str, metrics: list[str], size: str = "rows") -> str:
    """Share of intervals that held the truth over all sets, and on the worst set, for each reason and size."""
    own = found[found["arm"] == arm]
    lines = [f"| labels missing | {size} | {' | '.join(metrics)} |", f"| --- | --: |{' --: |' * len(metrics)}"]
    for (reason, n), rows in own.groupby(["reason", "n"], sort=False):
        cells = []
        for metric in metrics:
            of = rows[rows["metric"] == metric]
            each = 100.0 * of["held"] / of["intervals"]
            cells.append(
                f"{100.0 * of['held'].sum() / of['intervals'].sum():.0f} ({each.min():.0f})" if len(of) else ""
            )
        lines.append(f"| {reason} | {n:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def widths(found: pd.DataFrame) -> str:
    """Median width of intervals told nothing and told the reason, labels missing at random."""
    lines = [f"| labels missing at random | rows | {' | '.join(_FIVE)} |", f"| --- | --: |{' --: |' * len(_FIVE)}"]
    for n in sorted(found.loc[found["arm"] == "nothing", "n"].unique(), reverse=True):
        width = {
            arm: found[(found["arm"] == arm) & (found["n"] == n) & (found["reason"] == "random")]
            .groupby("metric")["width"]
            .median()
            for arm in ("nothing", "stated", "stated, beta")
        }
        for words, of in (("told nothing", "nothing"), ('`missingness="random"`', "stated")):
            lines.append(f"| {words} | {n:,} | {' | '.join(f'{width[of][metric]:.3f}' for metric in _FIVE)} |")
        for words, over, under in (
            ("ratio", "nothing", "stated"),
            ("stated, against a plain beta curve", "stated", "stated, beta"),
        ):
            ratio = width[over] / width[under]
            lines.append(f"| {words} | {n:,} | {' | '.join(f'{ratio[metric]:.2f}' for metric in _FIVE)} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "nothing": lambda found: coverage(found, "nothing", _FIVE),
    "stated": lambda found: coverage(found, "stated", _FIVE),
    "reference": lambda found: coverage(found, "reference", _FIVE),
    "few-labels": lambda found: coverage(found, "few labels", ["prevalence", "accuracy", "f1"], "labels"),
    "widths": widths,
}


def written(page: str, found: pd.DataFrame) -> str:
    """The page with every marked block made anew; the words around them stay."""
    return filled(page, MARKED, TABLES, found)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS)), encoding="utf-8")
