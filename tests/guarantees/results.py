"""The committed results: one line per figure, with its bar and whether it is met, and the same as a table to read."""

import csv
import io
from collections.abc import Iterable, Iterator
from math import inf
from pathlib import Path

from darkmetrics.files import write_whole
from guarantees.lines import Bar, Line

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results" / "guarantees.csv"
WORDS = ("promise", "case", "way", "metric", "measure")
HEADER = (*WORDS, "n", "value", "standard_error", *Bar._fields, "control", "verdict")
# Measures with these words are shown in percent, others as they are.
SHARES = ("coverage", "years", "share", "found", "p-values")


def write(lines: Iterable[Line], path: Path = RESULTS) -> None:
    """All lines, whole or not at all."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(HEADER)
    for line in lines:
        words = [getattr(line, word) for word in WORDS]
        ends = ["" if line.bar is None or abs(end) == inf else f"{end:.9g}" for end in line.bar or Bar()]
        figures = [line.n, f"{line.value:.9g}", f"{line.noise:.3g}"]
        table.writerow([*words, *figures, *ends, "yes" if line.control else "", line.verdict])
    write_whole(path, text.getvalue())


def read(path: Path = RESULTS) -> list[Line]:
    """The lines of a results file."""
    with path.open() as file:
        return [_line(row) for row in csv.DictReader(file)]


def _line(row: dict[str, str]) -> Line:
    ends = {end: float(row[end]) for end in Bar._fields if row[end]}
    return Line(
        promise=row["promise"],
        case=row["case"],
        way=row["way"],
        metric=row["metric"],
        measure=row["measure"],
        n=int(row["n"]),
        value=float(row["value"]),
        bar=Bar(**ends) if ends else None,
        noise=float(row["standard_error"]),
        control=row["control"] == "yes",
    )


def shown(line: Line, value: float) -> str:
    """A figure or an end of a bar, as people read it."""
    return f"{100 * value:.3g}%" if any(word in line.measure for word in SHARES) else f"{value:.3g}"


def bar_of(line: Line) -> str:
    """The bar in words."""
    bar = line.bar or Bar()
    if bar.at_least > -inf and bar.at_most < inf:
        return f"{shown(line, bar.at_least)} to {shown(line, bar.at_most)}"
    ends = {"at least": bar.at_least, "at most": bar.at_most, "above": bar.above, "below": bar.below}
    return ", ".join(f"{words} {shown(line, end)}" for words, end in ends.items() if abs(end) < inf)


def table(lines: Iterable[Line]) -> Iterator[str]:
    """One row per promise, case and measure: its figures, its bar, and which are missed."""
    rows: dict[tuple[str, ...], list[Line]] = {}
    for line in lines:
        if line.bar is not None:
            rows.setdefault((line.promise, line.case, line.measure, bar_of(line)), []).append(line)
    promise = ""
    for (of, case, measure, bar), own in rows.items():
        if of != promise:
            yield of
            promise = of
        figures = "  ".join(f"{line.metric} {shown(line, line.value)}".strip() for line in own)
        missed = [line.metric or line.measure for line in own if line.verdict == "missed"]
        yield f"    {case}: {measure} {bar}: {figures}{'  MISSED: ' + ', '.join(missed) if missed else ''}"
