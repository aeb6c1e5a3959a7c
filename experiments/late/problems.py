"""Rows whose labels come with time, and what is known of them on a given day."""

import zlib
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from experiments.reasons.problems import model_of, rows_of

_COHORTS, _DAYS = 12, 7
# Mean days until the label of a positive and of a negative comes.
SPEEDS = {"slower": (25.0, 8.0), "equal": (14.0, 14.0), "faster": (8.0, 25.0)}


class LateRows(NamedTuple):
    """All labels, and when each of them comes: infinite where it never does."""

    y: Any
    score: Any
    age: Any
    delay: Any
    threshold: float = 0.3
    # Only positives come; the others are negative from this age on.
    maturity: float | None = None

    @property
    def known(self) -> Any:
        """Whether the label is there on the day of the evaluation."""
        came = self.delay <= self.age
        return came & (self.y == 1) if self.maturity is not None else came


def simulated(
    seed: int,
    *,
    positives: str = "slower",
    never: float = 0.0,
    drift: float = 0.0,
    batches: bool = False,
    maturity: float | None = None,
    n: int = 3000,
    cohorts: int = _COHORTS,
) -> LateRows:
    """Twelve weekly cohorts scored day by day; one row in five is positive, drifting by so much from first to last."""
    rng = np.random.default_rng(seed)
    age = np.floor(_DAYS * cohorts * rng.random(n))
    time = 0.5 - age / (_DAYS * cohorts)  # -1/2 for the oldest, 1/2 for today's
    y = (rng.random(n) < 0.2 * (1.0 + drift * time)).astype(float)
    signal = rng.normal(size=n) + 1.6 * y
    score = expit(logit(0.2) - 1.6**2 / 2.0 + 1.6 * signal)
    slow, fast = SPEEDS[positives]
    delay = np.floor(rng.gamma(1.5, np.where(y == 1, slow, fast) / 1.5))
    if batches:  # a file of labels every week, on the weekday of the evaluation
        weekday = age % _DAYS
        delay = weekday + _DAYS * np.ceil(np.maximum(delay - weekday, 0.0) / _DAYS)
    delay = np.where(rng.random(n) < never, np.inf, delay)
    if maturity is not None:
        y = np.where(delay >= maturity, 0.0, y)  # what has not come by then never counts as positive
    return LateRows(y, score, age, delay, maturity=maturity)


SIMULATED: dict[str, dict[str, Any]] = {
    **{
        f"positives {speed}{', 10% never' if never else ''}": {"positives": speed, "never": never}
        for speed in SPEEDS
        for never in (0.0, 0.1)
    },
    "maturity of 60 days": {"maturity": 60.0},
    "weekly batches": {"batches": True},
    "prevalence rising by half": {"drift": 0.5},
    "prevalence falling by half": {"drift": -0.5},
}

# Horizon within which an event makes a row positive, and over how many days patients are admitted.
_SURVIVAL = {"flchain": (5 * 365.0, 4 * 365.0), "gbsg2": (3 * 365.0, 4 * 365.0)}
CUTS = (0.62, 0.7, 0.78, 0.86, 0.94)  # before them no one has passed the horizon, and no negative is known


@cache
def _patients(name: str) -> tuple[pd.DataFrame, Any, Any]:
    """Features, days to the event or to the end of the observation, and whether it is an event."""
    try:
        from sksurv.datasets import load_flchain, load_gbsg2
    except ImportError:
        raise SystemExit("The survival data come with scikit-survival: pip install 'darkmetrics[survival]'.") from None
    X, y = (load_flchain if name == "flchain" else load_gbsg2)()
    event, time = (y[field] for field in y.dtype.names)
    X = X.drop(columns=["chapter"], errors="ignore")  # the cause of death
    for column in X:
        if not pd.api.types.is_numeric_dtype(X[column]):
            X[column] = X[column].astype("category").cat.codes
    return X.astype(float), time.astype(float), event.astype(bool)


def survival(name: str, classifier: str, seed: int, cut: float, *, declared: bool) -> LateRows:
    """Patients admitted over years, looked at when a share `cut` of the whole time has passed.

    Positive: an event within the horizon. It is known when it happens, and that there was none at the horizon: as a
    label that comes then, or, `declared`, by maturity. Patients who were lost before the horizon are left out.
    """
    X, time, event = _patients(name)
    horizon, admission = _SURVIVAL[name]
    kept = np.flatnonzero((time >= horizon) | event)
    rng = np.random.default_rng((zlib.crc32(name.encode()), seed))
    order = rng.permutation(kept)
    y = (event & (time < horizon)).astype(float)
    train, test = order[: order.size // 2], order[order.size // 2 :]
    score = model_of(classifier).fit(X.iloc[train], y[train]).predict_proba(X.iloc[test])[:, 1].astype(float)
    admitted = admission * rng.random(test.size)
    now = cut * (admission + horizon)
    there = admitted <= now
    delay = np.where(y[test] == 1, time[test], horizon)
    rows = LateRows(y[test], score, now - admitted, delay, threshold=float(np.mean(y[train])))
    rows = rows._replace(maturity=horizon if declared else None)
    return rows._replace(**{part: getattr(rows, part)[there] for part in ("y", "score", "age", "delay")})


def in_file_order(name: str, classifier: str, seed: int, *, n: int = 3000) -> LateRows:
    """Rows of a file in its own order, as if scored one after the other over a year; positives take longer."""
    rows = rows_of(name, classifier, seed, n)  # sorted by place in the file
    rng = np.random.default_rng((zlib.crc32(name.encode()), seed, 3))
    age = np.floor(365.0 * (1.0 - (np.arange(rows.y.size) + 0.5) / rows.y.size))
    delay = np.floor(rng.gamma(1.5, np.where(rows.y == 1, 70.0, 20.0) / 1.5))
    return LateRows(rows.y, rows.score, age, delay, threshold=float(np.mean(rows.y)))


def permuted(rows: LateRows, seed: int) -> LateRows:
    """The negative control: the same labels are known, but ages belong to other rows."""
    known = rows.known
    age = np.random.default_rng((seed, 17)).permutation(rows.age)
    # A label that is known has come by then, whatever age it is given now.
    return rows._replace(age=age, delay=np.where(known, np.minimum(rows.delay, age), np.inf))


def problems(kind: str, seed: int) -> Iterator[tuple[str, LateRows]]:
    """The problems of a kind for one seed, by name."""
    makers: dict[str, Callable[[], LateRows]] = {}
    if kind == "simulated":
        makers = {name: partial(simulated, seed, **how) for name, how in SIMULATED.items()}
        makers["ages permuted"] = lambda: permuted(simulated(seed), seed)
    elif kind == "survival":
        classifier = ("logistic", "xgboost")[seed % 2]
        for name in _SURVIVAL:
            for cut in CUTS:
                for declared in (False, True):
                    how = "by maturity" if declared else "by arrival"
                    makers[f"{name}, {how}, cut {cut:g}"] = partial(
                        survival, name, classifier, seed, cut, declared=declared
                    )
    elif kind == "file order":
        classifier = ("logistic", "xgboost")[seed % 2]
        makers = {name: partial(in_file_order, name, classifier, seed) for name in ("credit_default", "bank")}
    for name, make in makers.items():
        yield name, make()
