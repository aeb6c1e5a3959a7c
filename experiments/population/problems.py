"""Samples of populations whose metrics are known, with part of their labels hidden."""

import warnings
import zlib
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import norm

import darkmetrics as dm
from experiments.reasons.problems import model_of, table_of

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
LEVEL = 0.9
# Chances to be missing, of a negative and of a positive, for each share of missing labels that is not at random.
_BY_LABEL = {0.3: (0.2, 0.5), 0.7: (0.64, 0.84)}
_TRAIN = 4000
# How many groups there are: of four rows with one score and one label, which lack labels one by one or all four; of one
# to six rows, with an intra-class correlation of 0.3 on the scale of the log odds.
_GROUPS = {"four, together": 100, "four, one by one": 100, "one to six": 150}
_ICC = 0.3


class Piece(NamedTuple):
    """So many samples of one kind."""

    arm: str
    set: str
    n: int
    share: float
    reason: str
    first: int
    samples: int


def pieces(arm: str, samples: int, size: int) -> Iterator[Piece]:
    """The pieces of an arm, each of `size` samples."""
    if arm == "groups":
        yield from (
            Piece(arm, name, n, 0.4, "random", first, size)
            for first in range(0, samples, size)
            for name, n in _GROUPS.items()
        )
        return
    if arm == "differences":
        yield from (
            Piece(arm, "two models", n, share, "random", first, size)
            for first in range(0, samples, size)
            for n in (100, 300, 1000)
            for share in (0.0, 0.3)
        )
        return
    sets, sizes, shares = {
        "simulated": (("simulated",), (500, 5000), (0.0, 0.3, 0.7)),
        "given": (("simulated",), (500, 5000), (0.3, 0.7)),
        "real": (("adult", "bank"), (1000,), (0.0, 0.3, 0.7)),
    }[arm]
    for first in range(0, samples, size):
        for n in sizes:
            for name in sets:
                for share in shares:
                    for reason in ("random", "by label") if share and arm != "given" else ("random",):
                        yield Piece(arm, name, n, share, reason, first, size)


def rows_of(piece: Piece) -> Iterator[dict[str, Any]]:
    """Intervals of both scopes and the population's value, for each sample and metric."""
    if piece.arm in ("groups", "differences"):
        yield from _of_groups(piece) if piece.arm == "groups" else _of_two_models(piece)
        return
    truth = _truth(piece.set)
    for sample in range(piece.first, piece.first + piece.samples):
        rng = np.random.default_rng((zlib.crc32(repr(piece[:5]).encode()), sample))
        y, score, chance = _sample(piece.set, piece.n, rng)
        missing = _missing(y, piece, rng)
        labels = np.where(missing, np.nan, y)
        how: dict[str, Any] = {"missingness": piece.reason.replace(" ", "_")} if missing.any() else {}
        if piece.arm == "given":
            how = {"missingness": dm.missing.Fixed(chance)}
        found = dm.evaluate(labels, score, metrics=list(METRICS), **how)
        for scope, distributions in (("rows", found), ("population", found.population)):
            for metric in METRICS:
                low, high = distributions[metric].interval(LEVEL)
                yield {"scope": scope, "metric": metric, "truth": truth[metric], "low": low, "high": high}


def _missing(y: Any, piece: Piece, rng: np.random.Generator) -> Any:
    if not piece.share:
        return np.zeros(y.size, dtype=bool)
    if piece.reason == "random":
        return rng.random(y.size) < piece.share
    negative, positive = _BY_LABEL[piece.share]
    return rng.random(y.size) < np.where(y == 1, positive, negative)


def _curve(x: Any) -> Any:
    """The chance of a positive: scores are not calibrated."""
    return expit(1.3 * x - 0.3)


def _sample(name: str, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    if name == "simulated":
        x = rng.normal(-0.8, 1.3, n)
        return (rng.random(n) < _curve(x)).astype(float), expit(x), _curve(x)
    y, score = _file(name)
    chosen = rng.choice(y.size, n, replace=False)
    return y[chosen], score[chosen], None


@cache
def _file(name: str) -> tuple[Any, Any]:
    """All rows of a file but those that the classifier was trained on."""
    table = table_of(name)
    order = np.random.default_rng(0).permutation(len(table))
    X, y = table.drop(columns="target"), table["target"].to_numpy()
    model = model_of("logistic").fit(X.iloc[order[:_TRAIN]], y[order[:_TRAIN]])
    rest = order[_TRAIN:]
    return y[rest], model.predict_proba(X.iloc[rest])[:, 1]


@cache
def _truth(name: str) -> Mapping[str, float]:
    """The metrics of the whole population: of the rest of the file, or of a fine grid of scores."""
    if name != "simulated":
        y, score = _file(name)
        found = dm.evaluate(y, score, metrics=list(METRICS))
        return {metric: found[metric].mean() for metric in METRICS}
    x = norm.ppf((np.arange(200_000) + 0.5) / 200_000, -0.8, 1.3)
    p, yes = _curve(x), x >= 0.0
    tp, fp, fn, tn = (part.sum() for part in (p[yes], 1.0 - p[yes], p[~yes], 1.0 - p[~yes]))
    below = np.cumsum(1.0 - p) - 0.5 * (1.0 - p)
    return {
        "precision": tp / (tp + fp),
        "recall": tp / (tp + fn),
        "accuracy": (tp + tn) / x.size,
        "f1": 2.0 * tp / (2.0 * tp + fp + fn),
        "roc_auc": float(p @ below / (p.sum() * (1.0 - p).sum())),
    }


def _of_groups(piece: Piece) -> Iterator[dict[str, Any]]:
    """Rows that share their fate: intervals for the rows and the population, with `groups` and without."""
    truth = _truth_of_groups(piece.set)
    for sample in range(piece.first, piece.first + piece.samples):
        rng = np.random.default_rng((zlib.crc32(repr(piece[:5]).encode()), sample))
        y, score, group = _groups(piece.set, piece.n, rng)
        gone = rng.random(piece.n) < piece.share
        missing = gone[group] if piece.set == "four, together" else rng.random(y.size) < piece.share
        labels = np.where(missing, np.nan, y)
        on_rows = {
            name: distribution.mean() for name, distribution in dm.evaluate(y, score, metrics=list(METRICS)).items()
        }
        for words, how in (("", {"groups": group}), (", groups not told", {})):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", dm.CalibrationWarning)
                found = dm.evaluate(labels, score, metrics=list(METRICS), missingness="random", rng=sample, **how)
            for scope, distributions, true in (("rows", found, on_rows), ("population", found.population, truth)):
                for metric in METRICS:
                    low, high = distributions[metric].interval(LEVEL)
                    yield {"scope": scope + words, "metric": metric, "truth": true[metric], "low": low, "high": high}


def _groups(name: str, n: int, rng: np.random.Generator) -> tuple[Any, Any, Any]:
    if name != "one to six":
        chance = rng.beta(1, 2, n)
        group = np.repeat(np.arange(n), 4)
        return (rng.random(n) < chance).astype(float)[group], chance[group], group
    group = np.repeat(np.arange(n), rng.integers(1, 7, n))
    x = rng.normal(-0.5, 1.2, group.size)
    luck = rng.normal(0.0, np.sqrt(_ICC / (1.0 - _ICC) * np.pi**2 / 3.0), n)[group]
    return (rng.random(group.size) < expit(1.3 * x + luck)).astype(float), expit(x), group


@cache
def _truth_of_groups(name: str) -> Mapping[str, float]:
    """The metrics of a population so large that nothing is left to chance."""
    y, score, _ = _groups(name, 400_000, np.random.default_rng(1))
    return {
        metric: distribution.mean() for metric, distribution in dm.evaluate(y, score, metrics=list(METRICS)).items()
    }


def _of_two_models(piece: Piece) -> Iterator[dict[str, Any]]:
    """Differences of two models, one row in nine of which is positive."""
    truth = _truth_of_differences()
    for sample in range(piece.first, piece.first + piece.samples):
        rng = np.random.default_rng((zlib.crc32(repr(piece[:5]).encode()), sample))
        y, scores = _two_models(piece.n, rng)
        missing = _missing(y, piece, rng)
        how: dict[str, Any] = {"missingness": "random"} if missing.any() else {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            labels = np.where(missing, np.nan, y)
            found = dm.compare(labels, scores, metrics=list(METRICS), zero_division=0, rng=sample, **how)
            for scope in ("rows", "population"):
                for metric in METRICS:
                    low, high = found.difference(metric, "b", "a", scope=scope).interval(LEVEL)
                    yield {"scope": scope, "metric": metric, "truth": truth[metric], "low": low, "high": high}


def _two_models(n: int, rng: np.random.Generator) -> tuple[Any, dict[str, Any]]:
    x, noise = rng.normal(-2.9, 1.6, n), rng.normal(size=(2, n))
    return (rng.random(n) < expit(x)).astype(float), {"a": expit(x + noise[0]), "b": expit(x + 0.4 * noise[1])}


@cache
def _truth_of_differences() -> Mapping[str, float]:
    y, scores = _two_models(2_000_000, np.random.default_rng(1))
    a, b = (dm.evaluate(y, score, metrics=list(METRICS)) for score in scores.values())
    return {metric: b[metric].mean() - a[metric].mean() for metric in METRICS}
