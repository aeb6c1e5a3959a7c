"""Labels that arrive late: reviewed by score and then confirmed, delays that depend on the score, and a drift."""

import datetime as dt
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd

import darkmetrics as dm
from experiments.coverage.cases import Case, Problem, load_scored_rows
from experiments.reasons.problems import CLASSIFIERS

_AS_OF = dt.date(2026, 6, 30)
_SOURCES = (("simulated", 2000), ("simulated", 6000), ("adult", 2000), ("bank", 2000))
_THRESHOLD = 0.5


class Design(NamedTuple):
    """How rows are reviewed and confirmed.

    Attributes
    ----------
    review : tuple of float
        Probability of a review below and above the threshold; with `top`, below and in that fraction of highest scores.
    delays : tuple of float
        Mean days until the label of a negative and of a positive arrives.
    oldest : int
        Oldest age in days.
    top : float
        Fraction of rows with the highest scores that are all reviewed; 0 if the threshold decides.
    shapes : tuple of float
        Shapes of the Weibull distributions of delays; 0 means exactly one day.
    slope : float
        Ratio of the delays at the lowest score to those at the highest.
    trend : float
        Change of the log odds of a positive from the oldest to the newest row.
    """

    review: tuple[float, float] = (1.0, 1.0)
    delays: tuple[float, float] = (4.0, 18.0)
    oldest: int = 35
    top: float = 0.0
    shapes: tuple[float, float] = (1.0, 1.0)
    slope: float = 1.0
    trend: float = 0.0


REVIEWED = {
    "95 and 25% reviewed, ages to 35 days": Design((0.25, 0.95)),
    "95 and 25% reviewed, ages to 120 days": Design((0.25, 0.95), oldest=120),
    "80 and 50% reviewed": Design((0.5, 0.8)),
    "top 20% and 5% reviewed": Design((0.05, 1.0), oldest=120, top=0.2),
    "95 and 25% reviewed, equal delays": Design((0.25, 0.95), (10.0, 10.0)),
    "95 and 25% reviewed, Weibull delays": Design((0.25, 0.95), (5.0, 18.0), 120, shapes=(0.7, 1.5)),
    "95 and 25% reviewed, one day or never": Design((0.25, 0.95), shapes=(0.0, 0.0)),
    "all reviewed": Design(),
}
_ALL = Design(delays=(8.0, 25.0), oldest=84)
DELAYS = {
    "equal at all scores": _ALL,
    "high scores 3.3 x faster": _ALL._replace(slope=3.3),
    "high scores 3.3 x slower": _ALL._replace(slope=1.0 / 3.3),
    "trend of 0.7": _ALL._replace(trend=0.7),
    "trend of -0.7": _ALL._replace(trend=-0.7),
    "3.3 x faster, trend of 0.7": _ALL._replace(slope=3.3, trend=0.7),
}


class Rows(NamedTuple):
    """Rows with all labels, their ages and delays (infinite for rows that are not reviewed), and who is reviewed."""

    y: Any
    score: Any
    age: Any
    delay: Any
    is_reviewed: Any

    @property
    def observed(self) -> Any:
        """The labels that have arrived."""
        return np.where(self.delay <= self.age, self.y, np.nan)

    @property
    def arrived(self) -> Any:
        """Delays of the labels that have arrived."""
        return np.where(self.delay <= self.age, self.delay, np.nan)

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a table with dates."""
        scored_at = pd.Timestamp(_AS_OF) - pd.to_timedelta(self.age, unit="D")
        labeled_at = scored_at + pd.to_timedelta(self.arrived, unit="D")
        columns = {"label": self.observed, "score": self.score, "scored_at": scored_at, "labeled_at": labeled_at}
        return pd.DataFrame(columns)


def make_rows(design: Design, seed: int) -> Rows:
    """Return simulated or real rows, which arrive as the design has it."""
    name, n = _SOURCES[seed % len(_SOURCES)]
    rng = np.random.default_rng((seed, 41))
    if name == "simulated":
        y = (rng.random(n) < 0.2).astype(float)
        score = 1.0 / (1.0 + np.exp(2.2 - 1.4 * (rng.normal(size=n) + 1.6 * y)))
    else:
        split = seed // len(_SOURCES)
        y, score = load_scored_rows(name, CLASSIFIERS[split % 2], split // 2, n)
    time = rng.random(n)
    if design.trend:  # times of positives have a density proportional to exp(trend * time), and so have the odds
        time = np.where(y == 1.0, np.log1p(time * np.expm1(design.trend)) / design.trend, time)
    age = np.floor(design.oldest * (1.0 - time))
    rank = pd.Series(score).rank().to_numpy() / n
    is_high = rank > 1.0 - design.top if design.top else score >= _THRESHOLD
    is_reviewed = rng.random(n) < np.where(is_high, design.review[1], design.review[0])
    mean, shape = (np.where(y == 1.0, values[1], values[0]) for values in (design.delays, design.shapes))
    delay = mean * design.slope ** (0.5 - rank) * rng.exponential(size=n) ** (1.0 / np.maximum(shape, 1e-9))
    delay = np.where(shape == 0.0, 1.0, np.floor(delay))
    return Rows(y, score, age, np.where(is_reviewed, delay, np.inf), is_reviewed)


def make_problem(design: Design, known: str, reviewed: str | None, seed: int) -> Problem:
    """Return rows with their ages, and with arrival times if these are known ("times")."""
    rows = make_rows(design, seed)
    delay = rows.arrived if known == "times" else None
    mechanism = dm.missing.Delayed(age=rows.age, delay=delay, reviewed=reviewed)
    return Problem(rows.y, rows.score, rows.observed, {"missingness": mechanism})


def make_oracle(design: Design, seed: int) -> Problem:
    """Return rows of which one also knows who is reviewed."""
    rows = make_rows(design, seed)
    propensity = np.where(rows.is_reviewed, 1.0 - 1e-6, 1e-6)
    return Problem(
        rows.y,
        rows.score,
        rows.observed,
        {
            "missingness": dm.missing.Delayed(
                age=rows.age, delay=rows.arrived, reviewed=dm.missing.Propensity(propensity)
            )
        },
    )


def evaluate_oracle(observed: Any, score: Any, **arguments: Any) -> Any:
    """Evaluate rows of which one knows who is reviewed, and that this says nothing about the label."""
    with mock.patch("darkmetrics.missingness.delay_model._PROPENSITY_SD", 1e-4):
        return dm.evaluate(observed, score, **arguments)


def evaluate_without_slope(observed: Any, score: Any, **arguments: Any) -> Any:
    """Evaluate rows with delays that are taken not to depend on the score."""
    with mock.patch("darkmetrics.missingness.delay_model._SLOPE_SD", (1e-4, 1e-4)):
        return dm.evaluate(observed, score, **arguments)


def make_table(design: Design, known: str, reviewed: str | None, newest: bool, seed: int) -> Problem:
    """Return rows as a table with dates; `newest`: only the rows of the newest month are judged."""
    rows = make_rows(design, seed)
    labeled_at = "labeled_at" if known == "times" else None
    mechanism = dm.missing.Delayed(scored_at="scored_at", labeled_at=labeled_at, as_of=_AS_OF, reviewed=reviewed)
    judged = (rows.frame["scored_at"] >= pd.Timestamp(_AS_OF).replace(day=1)).to_numpy() | (not newest)
    arguments = {"data": rows.frame, "missingness": mechanism}
    return Problem(rows.y[judged], rows.score[judged], rows.observed[judged], arguments)


def evaluate_dates(observed: Any, score: Any, **arguments: Any) -> Any:
    """Evaluate a table with dates."""
    return dm.evaluate("label", "score", **arguments)


def evaluate_months(observed: Any, score: Any, **arguments: Any) -> Mapping[str, Any]:
    """Return the total over months."""
    grouped = dm.evaluate_by("label", "score", time="scored_at", period="month", **arguments)
    return grouped.total.distributions


def evaluate_newest(observed: Any, score: Any, **arguments: Any) -> Mapping[str, Any]:
    """Return the answer for the newest month."""
    grouped = dm.evaluate_by("label", "score", time="scored_at", period="month", **arguments)
    return grouped[_AS_OF.replace(day=1)].distributions


_STATED: dict[str, dict[str, str | None]] = {
    "stated": {name: "all" if name == "all reviewed" else "by_score" for name in REVIEWED},
    "not stated": dict.fromkeys(REVIEWED, None),
}
CASES = [
    Case(
        f"{name}, {known}, review {stated}",
        partial(make_problem, design, known, _STATED[stated][name]),
        n_seeds=40 if known == "times" else 20,
        min_coverage=0.75 if known == "times" else 0.0,
        pool=f"{known}, review {stated}",
    )
    for stated in _STATED
    for known in ("times", "ages")
    for name, design in REVIEWED.items()
]
CASES += [
    Case(
        f"{name}, reviewed rows known",
        partial(make_oracle, design),
        n_seeds=20,
        min_coverage=0.0,
        pool="times, reviewed rows known",
        min_pooled=0.0,
        evaluate=evaluate_oracle,
    )
    for name, design in REVIEWED.items()
]
_TABLES: dict[str, tuple[str, bool, Callable[..., Any]]] = {
    "table with dates": ("times", False, evaluate_dates),
    "total of months": ("times", False, evaluate_months),
}
CASES += [
    Case(
        f"{name}, {table}, review {stated}",
        partial(make_table, REVIEWED[name], known, _STATED[stated][name], newest),
        n_seeds=40,
        min_coverage=0.75,
        pool=f"{table}, review {stated}",
        evaluate=evaluate,
    )
    for table, (known, newest, evaluate) in _TABLES.items()
    for stated in _STATED
    for name in ("95 and 25% reviewed, ages to 120 days", "top 20% and 5% reviewed")
]
CASES += [
    Case(
        f"{name}, {known}",
        partial(make_problem, design, known, None),
        n_seeds=40,
        min_coverage=0.75,
        pool=f"{known}, {'trend' if design.trend else 'delays by score' if design.slope != 1.0 else 'equal delays'}",
        min_pooled=0.85 if known == "times" and not design.trend else 0.8,
    )
    for known in ("times", "ages")
    for name, design in DELAYS.items()
]
CASES += [
    Case(
        f"newest month, trend of {trend}, {known}",
        partial(make_table, _ALL._replace(trend=trend, oldest=120), known, None, True),
        n_seeds=20,
        min_coverage=0.75,
        pool=f"newest month, {known}",
        min_pooled=0.8,
        evaluate=evaluate_newest,
    )
    for known in ("times", "ages")
    for trend in (0.7, -0.7)
]
_BY_SCORE = REVIEWED["95 and 25% reviewed, ages to 120 days"]


def make_by_score(seed: int) -> Problem:
    """Return rows without their ages, with labels stated to be missing by score."""
    rows = make_rows(_ALL, seed)
    return Problem(rows.y, rows.score, rows.observed, {"missingness": "by_score"})


CASES += [
    Case(
        "control: all reviewed stated, review is by score",
        partial(make_problem, _BY_SCORE, "times", "all"),
        n_seeds=20,
        is_control=True,
    ),
    Case("control: by score stated, labels are late", make_by_score, n_seeds=20, is_control=True),
]
CASES += [
    Case(
        f"control: no slope, high scores 3.3 x faster, {known}",
        partial(make_problem, DELAYS["high scores 3.3 x faster"], known, None),
        n_seeds=20,
        is_control=True,
        evaluate=evaluate_without_slope,
    )
    for known in ("times", "ages")
]
