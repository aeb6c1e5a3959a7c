"""Tables in the pages: what stands between two marks is written from the results, the words around it are not."""

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from darkmetrics.files import write_whole
from guarantees.known_missed import KNOWN_MISSED
from guarantees.lines import Line
from guarantees.results import ROOT, bar_of, shown
from guarantees.scenarios import METRICS

MARKED = re.compile(r"(<!-- guarantees: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
PAGES = tuple(ROOT / "docs" / page for page in ("explanation/assumptions.md", "how-to/monitor.md"))
# What the label model is told, by claim; where the claim is that the right one is named, by how labels are missing.
ASSUMED = {
    "label shift covers with a reference": "by label, reference rows",
    "auto covers without a reference": "nothing (default)",
    "auto covers with a reference": "nothing, reference rows",
    "selection covers positive-unlabeled data": "by score and label, reference rows",
    "calibrating on labeled rows covers after drift": "random",
    "true chances cover": "true probabilities, given",
    "control: one half fails": "one half (wrong)",
    "control: calibrated fails by label": "by score (wrong)",
    "control: label shift fails by score": "by label (wrong)",
    "control: confidence-based estimation fails after drift": "reference rows alone, labels ignored",
}
MATCHING = {"random": "random", "by score": "by score", "by score and label": "reference rows"}
MISSING = {
    "random": "at random",
    "drift": "at random, after a drift",
    "positive-unlabeled": "only positives labeled",
    "positive-unlabeled, high scores found first": "only positives labeled, high scores first",
}


def fill_page(lines: list[Line], page: Path) -> None:
    """Write every marked block of a page anew; the words around them stay."""
    blocks: dict[str, Callable[[list[Line]], Iterable[str]]] = {
        "coverage": coverage_table,
        "missed": missed_table,
        "real-data": real_data_table,
        "monitoring": monitoring_table,
    }
    text = MARKED.sub(lambda m: "\n".join([m[1], *blocks[m["name"]](lines), "", m[3]]), page.read_text())
    write_whole(page, text)


def coverage_table(lines: list[Line]) -> Iterator[str]:
    """One row per way and scenario; controls have no promise but to fail."""
    yield from _header("labels missing", "assumed", "sets", "promised", *METRICS)
    rows: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        if line.measure == "coverage" and (line.promise in ASSUMED or line.promise == "matching model covers"):
            rows.setdefault((line.promise, line.case), []).append(line)
    for (promise, case), own in rows.items():
        assumed = ASSUMED.get(promise) or MATCHING.get(case, "by label")
        cells = [f"{shown(line, line.value)}{' (missed)' * (line.verdict == 'missed')}" for line in own]
        promised = bar_of(own[0]) if own[0].bar is not None else "none: it must fail"
        yield _row(MISSING.get(case, case), assumed, f"{own[0].n}", promised, *cells)


def missed_table(lines: list[Line]) -> Iterator[str]:
    """Lines that miss their bar, of all promises, with the reason that is listed for them."""
    held = [line for line in lines if line.bar is not None]
    missed = [line for line in held if line.verdict == "missed"]
    yield f"Of {len(held)} figures that are held to a bar, {len(missed)} miss{'es' * (len(missed) == 1)} it."
    if missed:
        yield ""
        yield from _header("promise", "case", "figure", "bar", "why")
    for line in missed:
        figure = f"{line.measure} {line.metric}".strip() + f" {shown(line, line.value)}"
        why = KNOWN_MISSED[line.key].reason if line.key in KNOWN_MISSED else "not known yet"
        yield _row(line.promise, line.case, figure, bar_of(line), why)


def real_data_table(lines: list[Line]) -> Iterator[str]:
    """Per data set and share: five coverages of each way, in percent."""
    names = {
        "label shift": "label shift",
        "scaling-binning": "scaling-binning, taken as known",
        "bootstrap": "bootstrap of labeled rows",
    }
    yield from _header("labels masked", *names.values())
    found: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        if line.way in names and line.measure == "coverage":
            figure = f"{100 * line.value:.0f}{' (missed)' * (line.verdict == 'missed')}"
            found.setdefault(line.case, {}).setdefault(line.way, []).append(figure)
    for case, ways in found.items():
        yield _row(case[:1].upper() + case[1:], *(" ".join(ways[way]) for way in names))


def monitoring_table(lines: list[Line]) -> Iterator[str]:
    """What the simulated years showed."""
    found = {(line.promise, line.way, line.measure): line for line in lines if line.metric == "recall"}

    def figure(promise: str, way: str, measure: str) -> str:
        line = found[promise, way, measure]
        return shown(line, line.value) + " (missed)" * (line.verdict == "missed")

    few, drop = "few years have an alert where every target is met", "a drop of 5 points is found with few false alerts"
    uncorrected, alone = (
        "control: without correction most years have an alert",
        "control: alerts of labeled rows alone are often false",
    )
    with_alert = [figure(few, way, "years with an alert") for way in ("unknown", "random")]
    months = [figure(drop, "random", f"found in month {month}") for month in range(7, 13)]
    yield from _header("200 simulated years", "measured")
    yield _row(
        "all 36 groups just meet their target: years with any alert, all of them false; at most 5% promised",
        f'{with_alert[0]} with the default label model, {with_alert[1]} with `missingness="random"`',
    )
    yield _row(
        "the same, with an alert wherever the probability of a miss is above 95%",
        figure(uncorrected, "random", "years with an alert"),
    )
    yield _row(
        "recall drops from 81.7% to 76.7% in one segment from July on, target 80%, 2,000 rows (530 positives) a month: "
        "share of false alerts",
        figure(drop, "random", "share of false alerts"),
    )
    yield _row(
        "the same: years in which the drop is found in at least one month",
        figure(drop, "random", "years in which it is found"),
    )
    yield _row("the same: single months, July to December", ", ".join(months))
    yield _row(
        "the same, with an alert wherever the labeled rows alone miss the target (50 years): share of false alerts",
        figure(alone, "labeled rows at their word", "share of false alerts"),
    )


def _header(*names: str) -> tuple[str, str]:
    return _row(*names), _row(*("---" for _ in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
