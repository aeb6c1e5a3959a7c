"""The tables of docs/how-to/population.md that come from experiments/results/population.csv."""

from collections.abc import Callable

import pandas as pd

from experiments.pieces import ROOT, filled, marks_of, results_of

RESULTS, PAGE = results_of("population"), ROOT / "docs" / "how-to" / "population.md"
MARKED = marks_of("population")
_FIVE = ["precision", "recall", "accuracy", "f1", "roc_auc"]
_WORDS = {"random": "at random", "by label": "by label"}


def coverage(found: pd.DataFrame, arm: str, scope: str = "population") -> str:
    """Share of 90% intervals that held the population's value, for each kind of sample, in percent."""
    own = found[(found["arm"] == arm) & (found["scope"] == scope)]
    lines = [
        f"| rows | labels missing | samples | {' | '.join(_FIVE)} |",
        f"| :-- | :-- | --: |{' --: |' * len(_FIVE)}",
    ]
    for (name, n, share, reason), rows in own.groupby(["set", "n", "share", "reason"], sort=True):
        of = rows.set_index("metric").loc[_FIVE]
        cells = [f"{100.0 * held / all_:.1f}" for held, all_ in zip(of["held"], of["intervals"], strict=True)]
        what = f"{n:,}" if arm != "real" else f"{n:,} of {name}"
        missing = f"{share:.0%} {_WORDS[reason]}" if share else "none"
        lines.append(f"| {what} | {missing} | {of['intervals'].iloc[0]:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def groups(found: pd.DataFrame) -> str:
    """The same for rows that share their fate, told and not told."""
    own = found[found["arm"] == "groups"]
    lines = [
        f"| groups | interval for | samples | {' | '.join(_FIVE)} |",
        f"| :-- | :-- | --: |{' --: |' * len(_FIVE)}",
    ]
    for (name, scope), rows in own.groupby(["set", "scope"], sort=True):
        of = rows.set_index("metric").loc[_FIVE]
        cells = [f"{100.0 * held / all_:.1f}" for held, all_ in zip(of["held"], of["intervals"], strict=True)]
        lines.append(f"| {name} | {scope} | {of['intervals'].iloc[0]:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def bar(row: pd.Series) -> tuple[float, float] | None:
    """The shares between which the intervals of a row of results are aimed at, in percent; None: at nothing."""
    if row["arm"] == "groups":
        return None if "not told" in row["scope"] else (86.0, 95.0)
    if row["scope"] != "population" or row["arm"] == "given":
        return None
    if row["arm"] == "real":
        return 84.0, 97.0
    if row["arm"] == "differences":
        return 86.0, 96.0
    return (86.0, 96.0) if row["share"] else (88.0, 92.0)


def outside(found: pd.DataFrame) -> pd.DataFrame:
    """The figures that are not where they are aimed at."""
    bars = [bar(row) for _, row in found.iterrows()]
    share = 100.0 * found["held"] / found["intervals"]
    missed = [b is not None and not b[0] <= s <= b[1] for b, s in zip(bars, share, strict=True)]
    return found[missed]


def missed(found: pd.DataFrame) -> str:
    """The same in a table."""
    held = sum(bar(row) is not None for _, row in found.iterrows())
    out = outside(found)
    lines = [f"Of {held} figures that are held to a bar, {len(out)} miss it."]
    if len(out):
        lines += [
            "",
            "| samples of | labels missing | interval for | metric | held |",
            "| :-- | :-- | :-- | :-- | --: |",
        ]
    for _, row in out.iterrows():
        what = f"{row['n']:,} {'groups' if row['arm'] == 'groups' else 'rows'}, {row['set']}"
        gone = f"{row['share']:.0%} {_WORDS[row['reason']]}" if row["share"] else "none"
        share = 100.0 * row["held"] / row["intervals"]
        lines.append(f"| {what} | {gone} | {row['scope']} | {row['metric']} | {share:.1f} |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "simulated": lambda found: coverage(found, "simulated"),
    "real": lambda found: coverage(found, "real"),
    "given": lambda found: coverage(found, "given"),
    "control": lambda found: coverage(found, "simulated", "rows"),
    "differences": lambda found: coverage(found, "differences"),
    "groups": groups,
    "missed": missed,
}


def written(page: str, found: pd.DataFrame) -> str:
    """The page with every marked block made anew; the words around them stay."""
    return filled(page, MARKED, TABLES, found)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS)), encoding="utf-8")
