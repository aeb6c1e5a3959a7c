"""How often does `verify` reject correct probabilities, and how soon wrong ones?

`make verification` writes `experiments/results/verification.csv`, a line per 50 streams, and resumes after an
interruption; then it writes the table of docs/how-to/verify.md. A stream is a set of 3,000 rows, its evaluation,
and the labels that arrive after it in 30 batches or more. Names of cases restrict the run to these.
"""

import csv
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

import darkmetrics as dm
from experiments.pieces import marks_of

ROOT = Path(__file__).parents[1]
RESULTS, PAGE = ROOT / "experiments" / "results" / "verification.csv", ROOT / "docs" / "how-to" / "verify.md"
MARKED = marks_of("verification")
HEADER = ("case", "first", "streams", "alarmed", "alarmed_before_half")
STREAMS, CHUNK, ROWS, ALPHA = 1000, 50, 3000, 0.05
# Where nearly all alarm fewer will do.
FEWER = 200
# Of the late labels: how long they take on average, and how long one looks on.
AGES, DAYS = 360, 90

Rng = np.random.Generator


def rows(rng: Rng) -> tuple[Any, Any]:
    """Labels and scores."""
    x = rng.normal(size=ROWS)
    return rng.random(ROWS) < expit(-1.0 + 1.5 * x), np.asarray(expit(x))


def by_score(rng: Rng, *, effect: float, missing: float = 0.5) -> dm.Verification:
    """It was said: by score. `effect`: that of the label on the log odds of being missing."""
    y, score = rows(rng)
    odds = np.log(missing / (1.0 - missing)) - 0.7 * np.log(score / (1.0 - score)) + effect * (y - 0.5)
    gone = rng.random(ROWS) < expit(odds)
    before = dm.evaluate(
        np.where(gone, np.nan, y), score, missingness="by_score", metrics="precision", method="gaussian"
    )
    return dm.verify(before, y.astype(int), score, time=arrivals(gone, 1.0, rng), alpha=ALPHA)


def arrivals(gone: Any, slowness: Any, rng: Rng) -> Any:
    """Times at which missing labels come, as ranks: the order is what counts, and 30 batches are enough to look."""
    time = rng.exponential(slowness, ROWS)
    rank = np.argsort(np.argsort(np.where(gone, time, np.inf)))
    return np.where(gone, 1.0 + rank * 30 // max(int(gone.sum()), 1), np.nan)


def by_label(rng: Rng) -> dm.Verification:
    """It was said, and is so: by label; positives come three times as slowly, and nothing is said about that."""
    y, score = rows(rng)
    gone = rng.random(ROWS) < np.where(y, 0.6, 0.3)
    before = dm.evaluate(
        np.where(gone, np.nan, y), score, missingness="by_label", metrics="precision", method="gaussian"
    )
    return dm.verify(before, y.astype(int), score, time=arrivals(gone, np.where(y, 3.0, 1.0), rng), alpha=ALPHA)


def late(rng: Rng, *, positives: float, negatives: float, timed: bool, arrival: str | None = None) -> dm.Verification:
    """Labels come late: after so many days on average."""
    y, score = rows(rng)
    age = rng.integers(0, AGES, ROWS)
    delay = np.floor(rng.exponential(np.where(y, positives, negatives)))
    gone = delay > age
    known = np.where(gone, np.nan, delay) if timed else None
    before = dm.evaluate(
        np.where(gone, np.nan, y),
        score,
        missingness=dm.missing.Delayed(age=age, delay=known),
        metrics="precision",
        method="gaussian",
    )
    came = gone & (delay - age <= DAYS)
    when = np.ceil((delay - age)[came] / 3.0) * 3.0
    return dm.verify(
        before,
        y[came].astype(int),
        score[came],
        time=when,
        age=age[came],
        arrival=arrival,
        alpha=ALPHA,
    )


# What is measured, in the words of the page; whether it is right; the stream.
CASES: dict[str, tuple[str, Callable[[Rng], dm.Verification]]] = {
    "by score": ("right", lambda rng: by_score(rng, effect=0.0)),
    "by score, 90% missing": ("right", lambda rng: by_score(rng, effect=0.0, missing=0.9)),
    "late, positives slower": ("right", lambda rng: late(rng, positives=60.0, negatives=20.0, timed=True)),
    "late, positives faster": ("right", lambda rng: late(rng, positives=20.0, negatives=60.0, timed=True)),
    "late, times of arrival unknown": ("right", lambda rng: late(rng, positives=60.0, negatives=20.0, timed=False)),
    "by label, any arrival": ("right", by_label),
    "by score was said, but the label has an effect of 1.5": ("wrong", lambda rng: by_score(rng, effect=1.5)),
    "control: late, but the bet takes labels that come as alike": (
        "control",
        lambda rng: late(rng, positives=60.0, negatives=20.0, timed=True, arrival="alike"),
    ),
}


def measured(case: str, first: int, streams: int) -> dict[str, Any]:
    """How many of the streams with seeds from `first` on alarmed, ever and before half of the labels were in."""
    ever = early = 0
    for seed in range(first, first + streams):
        found = CASES[case][1](np.random.default_rng([seed, 17]))
        alarm = found.e_values >= 1.0 / ALPHA
        ever += bool(alarm.any())
        early += bool(alarm[found.labels <= 0.5 * found.n_missing].any())
    return dict(zip(HEADER, (case, first, streams, ever, early), strict=True))


def _left(known: set[tuple[str, str]], wanted: list[str]) -> Iterator[tuple[str, int]]:
    for first in range(0, STREAMS, CHUNK):
        for case in wanted:
            if (case, str(first)) not in known and (first < FEWER or CASES[case][0] == "right"):
                yield case, first


def table(lines: list[dict[str, str]]) -> str:
    """The table of the page."""
    page = ["| streams | probabilities | alarms, ever | before half of the labels |", "|:--|:--|--:|--:|"]
    for case, (truth, _) in CASES.items():
        own = [line for line in lines if line["case"] == case]
        n, ever, early = (sum(int(line[name]) for line in own) for name in HEADER[2:])
        if n:
            name, kind = case.removeprefix("control: "), {"control": "right, but not for this bet"}.get(truth, truth)
            page.append(f"| {name} ({n:,}) | {kind} | {ever / n:.1%} | {early / n:.1%} |")
    return "\n".join(page)


def written(page: str, lines: list[dict[str, str]]) -> str:
    """The page with its table made anew; the words around it stay."""
    return MARKED.sub(lambda mark: f"{mark[1]}\n{table(lines)}\n\n{mark[3]}", page)


def results() -> list[dict[str, str]]:
    """What has been measured."""
    if not RESULTS.exists():
        return []
    with RESULTS.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def main() -> None:
    warnings.simplefilter("ignore")
    if sys.argv[1:] != ["--page"]:
        known = {(line["case"], line["first"]) for line in results()}
        with RESULTS.open("a", encoding="utf-8", newline="") as file:
            lines = csv.DictWriter(file, HEADER, lineterminator="\n")
            if not file.tell():
                lines.writeheader()
            for case, first in _left(known, sys.argv[1:] or list(CASES)):
                lines.writerow(measured(case, first, CHUNK))
                file.flush()
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), results()), encoding="utf-8")


if __name__ == "__main__":
    main()
