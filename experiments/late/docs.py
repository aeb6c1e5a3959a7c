"""The tables of docs/how-to/delayed-labels.md that come from experiments/results/late.csv and late_widths.csv."""

from collections.abc import Callable

import pandas as pd

from experiments.pieces import ROOT, filled, marks_of, results_of

RESULTS, PAGE = results_of("late"), ROOT / "docs" / "how-to" / "delayed-labels.md"
MARKED = marks_of("late")
_FIVE = ["precision", "recall", "accuracy", "f1", "roc_auc"]
_AGES = ("ages", "ages and arrivals")


def table(found: pd.DataFrame, kind: str, *, ages: bool | None = None) -> str:
    """Coverage of each metric and width of that of precision, for each problem and what was told."""
    own = found[found["kind"] == kind]
    if ages is not None:
        own = own[own["told"].isin(_AGES) == ages]
    lines = [f"| labels | told | {' | '.join(_FIVE)} | width |", f"| --- | --- |{' --: |' * 6}"]
    for (problem, told), rows in own.groupby(["problem", "told"], sort=False):
        of = rows.set_index("metric")
        shares = [f"{100.0 * of.loc[name, 'held'] / of.loc[name, 'intervals']:.0f}" for name in _FIVE]
        lines.append(f"| {problem} | {told} | {' | '.join(shares)} | {of.loc['precision', 'width']:.3f} |")
    return "\n".join(lines)


def widths(found: pd.DataFrame) -> str:
    """Width of precision against "by label" stated, and of how many sets the truth was held, for each problem."""
    problems = list(dict.fromkeys(found["problem"]))
    lines = [f"| known besides ages | {' | '.join(problems)} |", f"| --- |{' --: |' * len(problems)}"]
    for told, rows in found[found["told"] != "by_label"].groupby("told", sort=False):
        of = rows.set_index("problem")
        cells = [
            f"{of.loc[name, 'ratio']:.2f} ({of.loc[name, 'held']}/{of.loc[name, 'intervals']})" for name in problems
        ]
        lines.append(f"| {'nothing' if told == 'ages' else told} | {' | '.join(cells)} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "simulated": lambda found: table(found, "simulated", ages=True),
    "others": lambda found: table(found, "simulated", ages=False),
    "survival": lambda found: table(found, "survival"),
    "file-order": lambda found: table(found, "file order"),
    "widths": lambda _: widths(pd.read_csv(results_of("late_widths"))),
}


def written(page: str, found: pd.DataFrame) -> str:
    """The page with every marked block made anew; the words around them stay."""
    return filled(page, MARKED, TABLES, found)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS)), encoding="utf-8")
