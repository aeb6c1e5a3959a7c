"""Writes the measured part of how-to/champion-challenger.md: `python -m experiments.comparing.docs`."""

from itertools import pairwise

import numpy as np
import pandas as pd

from experiments.pieces import ROOT, filled, marks_of, results_of

PAGE = ROOT / "docs" / "how-to" / "champion-challenger.md"
RESULTS = results_of("comparing")
# Chances from labeled rows alone, by experiments.comparing.counted.
COUNTED = RESULTS.with_name("comparing_counted.csv")
MARKED = marks_of("comparing")
EDGES = [0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]
# Labels from which on chances are held to a bar.
ASKED = 50
_REASONS = {"random": "at random", "by_label": "by label"}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Rows of kind, reason, labels, metric and what they are of, with a number of cases and a value."""
    rows = []
    best = table[table["kind"] == "best"].copy()
    best["bin"] = np.clip(np.digitize(best["answer"], EDGES[1:-1]), 0, len(EDGES) - 2)
    for (reason, labels, metric, place), own in best.groupby(["reason", "labels", "metric", "bin"]):
        what = _words_of(place)
        rows.append(("said", reason, labels, metric, what, len(own), own["answer"].mean()))
        rows.append(("came true", reason, labels, metric, what, len(own), own["truth"].mean()))
    apart = table[table["kind"] == "difference"].copy()
    slack = 1e-9
    apart["held"] = (apart["low"] - slack <= apart["truth"]) & (apart["truth"] <= apart["high"] + slack)
    for (reason, labels, metric), own in apart.groupby(["reason", "labels", "metric"]):
        rows.append(("held", reason, labels, metric, "all pairs", len(own), own["held"].mean()))
        rows.append(("width", reason, labels, metric, "all pairs", len(own), (own["high"] - own["low"]).median()))
    for (kind, reason, labels), own in table[table["kind"].isin(["estimate", "labeled"])].groupby(
        ["kind", "reason", "labels"]
    ):
        error = (own["answer"] - own["truth"]).abs().mean()
        rows.append((f"error {kind}", reason, labels, "accuracy", "seven models", len(own), error))
    columns = ["kind", "reason", "labels", "metric", "of", "cases", "value"]
    return pd.DataFrame(rows, columns=columns).round({"value": 4}).sort_values(columns[:5]).reset_index(drop=True)


def chances(found: pd.DataFrame) -> pd.DataFrame:
    """By the chance that was said: what was said on average, how often it came true, and of how many cases."""
    own = found[found["kind"].isin(["said", "came true"])]
    sums = own.assign(value=own["value"] * own["cases"]).groupby(["kind", "of"])[["value", "cases"]].sum()
    value = (sums["value"] / sums["cases"]).unstack("kind")
    return value.assign(cases=sums["cases"]["said"])


def counted() -> pd.DataFrame:
    """The same of the textbook's answer, which looks at labeled rows alone."""
    own = pd.read_csv(COUNTED)
    own = own[own["labels"] >= ASKED].assign(of=lambda d: [_words_of(place) for place in d["bin"]])
    sums = own[["said", "came true"]].mul(own["cases"], axis=0).groupby(own["of"]).sum()
    cases = own.groupby("of")["cases"].sum()
    return sums.div(cases, axis=0).assign(cases=cases)


def _words_of(place: int) -> str:
    return f"{EDGES[place]:.1f} to {EDGES[place + 1]:.1f}"


def best_table(found: pd.DataFrame) -> str:
    """How often the model was best, by the chance that was said: by number of labels, then by metric."""
    some = found[found["labels"] >= ASKED]
    columns = {f"{n:,} labels": found[found["labels"] == n] for n in sorted(found["labels"].unique())}
    columns |= {f"{metric}, {ASKED} and more": some[some["metric"] == metric] for metric in _metrics(found)}
    heads = [*columns, f"labeled rows alone: accuracy, {ASKED} and more at random"]
    lines = ["| chance said | " + " | ".join(heads) + " |", "|:--|" + "--:|" * len(heads)]
    tables = [*(chances(own) for own in columns.values()), counted()]
    for place, (low, high) in enumerate(pairwise(EDGES)):
        what, cells = _words_of(place), []
        for table in tables:
            there = table.loc[what] if what in table.index else None
            text = "" if there is None else f"{there['said']:.2f}: {there['came true']:.2f} of {there['cases']:,.0f}"
            cells.append(text)
        lines.append(f"| {low:.0%} to {high:.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def held_table(found: pd.DataFrame) -> str:
    """How often 90% intervals of differences held the truth, and their median width."""
    names = [f"{m}, {w}" for m in _metrics(found) for w in _REASONS.values()]
    lines = ["| labels | " + " | ".join(names) + " |", "|:--|" + "--:|" * len(names)]
    for labels in sorted(found.loc[found["kind"] == "held", "labels"].unique()):
        cells = []
        for metric in _metrics(found):
            for reason in _REASONS:
                held, width = (_value(found, kind, reason, labels, metric, "all pairs") for kind in ("held", "width"))
                cells.append("" if held is None else f"{held:.0%} ({width:.3f})")
        lines.append(f"| {labels:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def error_table(found: pd.DataFrame) -> str:
    """Mean absolute error of accuracy over the seven models."""
    lines = ["| labels | at random | labeled rows alone | by label | labeled rows alone |", "|:--|--:|--:|--:|--:|"]
    for labels in sorted(found.loc[found["kind"] == "error estimate", "labels"].unique()):
        cells = [
            f"{_value(found, kind, reason, labels, 'accuracy', 'seven models'):.4f}"
            for reason in _REASONS
            for kind in ("error estimate", "error labeled")
        ]
        lines.append(f"| {labels:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


TABLES = {"best": best_table, "held": held_table, "error": error_table}


def _metrics(found: pd.DataFrame) -> list[str]:
    return sorted(found.loc[found["kind"] == "held", "metric"].unique())


def _row(found: pd.DataFrame, kind: str, reason: str, labels: int, metric: str, of: str) -> pd.DataFrame:
    same = (found["kind"] == kind) & (found["reason"] == reason) & (found["labels"] == labels)
    return found[same & (found["metric"] == metric) & (found["of"] == of)]


def _value(*key):
    row = _row(*key)
    return None if row.empty else float(row["value"].iloc[0])


def written(page: str, found: pd.DataFrame) -> str:
    """The page with its tables made anew."""
    return filled(page, MARKED, TABLES, found)


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), pd.read_csv(RESULTS)), encoding="utf-8")
