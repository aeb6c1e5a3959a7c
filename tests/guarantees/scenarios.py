"""Simulated evaluation sets whose labels go missing for a known reason, and how well the laws of metrics hold on them.

The population: x ~ Normal(-2, 1.7^2), P(Y = 1 | x) = expit(x), a fifth positive. The score ranks as x does but is no
probability: x = -1.2 + 0.7 log s - 1.2 log(1 - s), so that scores are too high, and by different amounts at either end.
Nothing here imports the library: truths are scikit-learn's metrics on the complete labels.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, log_expit, logit, ndtri

import oracle

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
N_ROWS, N_REFERENCE = 2_000, 1_000
MEAN, SD = -2.0, 1.7
MISSING = 0.3
THRESHOLD = 0.5

# Midpoints of ten thousand equally likely slices of the population: sums over them are integrals to four digits.
_POPULATION = MEAN + SD * ndtri((np.arange(10_000) + 0.5) / 10_000)


_LOG_ODDS = np.linspace(-40.0, 40.0, 80_001)  # of the score; steps of 0.001, straight in between
_RISING = -1.2 + 0.7 * log_expit(_LOG_ODDS) - 1.2 * log_expit(-_LOG_ODDS)


def score_of(x):
    return expit(np.interp(x, _RISING, _LOG_ODDS))


# ------------------------------------------------------------------------------------------------------- mechanisms


class Mask(NamedTuple):
    """Which labels are missing, and the chance of that if the row is positive and if it is negative."""

    missing: Any
    positive: Any
    negative: Any


# From (rng, x, y) to the mask.
Mechanism = Callable[[np.random.Generator, Any, Any], Mask]


def by_chance(positive: Callable[[Any], Any], negative: Callable[[Any], Any]) -> Mechanism:
    """Each label is missing by itself, with a chance that depends on its row's score and on the label."""

    def mechanism(rng, x, y):
        z = logit(score_of(x))
        a1, a0 = np.broadcast_to(positive(z), x.shape), np.broadcast_to(negative(z), x.shape)
        return Mask(rng.random(x.size) < np.where(y == 1, a1, a0), a1, a0)

    return mechanism


def masked_counts(positives: int, negatives: int, rows: int, eta: float, share: float) -> tuple[int, int]:
    """How many positives and negatives to mask: exactly the share `eta` positive, `rows` in all if they can be had.

    At most `share` of either class is masked; where that is too few, the largest number of rows it allows.
    """
    ratio = Fraction(eta).limit_denominator(1000)
    p, q = ratio.numerator, ratio.denominator - ratio.numerator
    batches = min(rows // (p + q), int(share * positives) // p, int(share * negatives) // q)
    return batches * p, batches * q


def by_label(eta: float, share: float) -> Mechanism:
    """The share `eta` of the missing rows is positive; which positives and negatives they are is pure chance."""

    def mechanism(rng, x, y):
        missing = np.zeros(x.size, dtype=bool)
        rows = [np.flatnonzero(y == 1), np.flatnonzero(y == 0)]
        counts = masked_counts(rows[0].size, rows[1].size, round(MISSING * x.size), eta, share)
        for of_class, count in zip(rows, counts, strict=True):
            missing[rng.choice(of_class, count, replace=False)] = True
        a1, a0 = (np.full(x.size, count / of_class.size) for of_class, count in zip(rows, counts, strict=True))
        return Mask(missing, a1, a0)

    return mechanism


def _offset(mean_at: Callable[[float], Any], share: float) -> float:
    """The offset at which the population mean of a rising function of it is `share`."""
    return float(brentq(lambda c: float(np.mean(mean_at(c))) - share, -30.0, 30.0))


_z, _p = logit(score_of(_POPULATION)), expit(_POPULATION)

# Low scores are labeled rarely: 81% of the lowest tenth are missing, 3% of the highest.
_BY_SCORE = _offset(lambda c: expit(c - 0.7 * _z), MISSING)


def _missing_by_score(z):
    return expit(_BY_SCORE - 0.7 * z)


def _positive_by_both(z):  # high-scored positives are still under investigation
    return expit(-0.5 + 0.45 * z)


# Low-scored negatives are not worth a look; the offset makes 30% of all labels missing.
_BY_BOTH = _offset(lambda c: _p * _positive_by_both(_z) + (1 - _p) * expit(c - 0.45 * _z), MISSING)


def _negative_by_both(z):
    return expit(_BY_BOTH - 0.45 * z)


# Positive-unlabeled: the chance that a positive is found, 0.4 on average over positives in both versions.
_FOUND = 0.4
_FOUND_BY_SCORE = _offset(lambda c: _p * expit(c + 0.5 * _z) / _p.mean(), _FOUND)


# -------------------------------------------------------------------------------------------------------- scenarios


@dataclass(frozen=True, eq=False)
class Sample:
    """One evaluation set: labels with NaN for missing ones, scores, reference rows, and what nobody is told."""

    y: Any
    score: Any
    reference: tuple[Any, Any]  # (labels, scores) of fresh complete rows
    complete: Any  # all labels
    chance: Any  # P(positive | score, missing) of every row, from the way it was made

    @cached_property
    def truth(self) -> dict[str, float]:
        """The metrics with all labels, by scikit-learn; kept, because several ways are tried on one sample."""
        decision = self.score >= THRESHOLD
        return {name: oracle.sklearn_value(name, self.complete, self.score, decision, None) for name in METRICS}


@dataclass(frozen=True)
class Scenario:
    """A way in which labels go missing. `stated` is the word for it in `evaluate(missingness=...)`."""

    name: str
    mechanism: Mechanism
    stated: str
    drift: float = 0.0  # of the log odds of a positive, since the reference rows were drawn
    lowered: float = 0.0  # how much stricter the classifier is: its scores are those of rows this much further down

    def draw(self, rng: np.random.Generator, n_rows: int = N_ROWS, n_reference: int = N_REFERENCE) -> Sample:
        x = rng.normal(MEAN, SD, n_rows)
        p = expit(x + self.drift)
        complete = (rng.random(n_rows) < p).astype(float)
        missing, a1, a0 = self.mechanism(rng, x, complete)
        # Last, so that the rows above are the same whatever the size of the reference set.
        reference = rng.normal(MEAN, SD, n_reference)
        labels = (rng.random(n_reference) < expit(reference)).astype(float)
        return Sample(
            y=np.where(missing, np.nan, complete),
            score=score_of(x - self.lowered),
            reference=(labels, score_of(reference - self.lowered)),
            complete=complete,
            chance=p * a1 / (p * a1 + (1 - p) * a0),
        )

    def samples(self, n: int, start: int = 0, **sizes: int) -> Iterator[Sample]:
        """`n` independent evaluation sets from number `start` on; each is the same whichever others are asked for."""
        for seed in np.random.SeedSequence(zlib.crc32(self.name.encode())).spawn(start + n)[start:]:
            yield self.draw(np.random.default_rng(seed), **sizes)


RANDOM = Scenario("random", by_chance(lambda z: MISSING, lambda z: MISSING), "random")
BY_SCORE = Scenario("by score", by_chance(_missing_by_score, _missing_by_score), "by_score")
# As in the paper, where masks fall inside one of two halves of the test rows: at most half of either class.
BY_LABEL_HALF = tuple(
    Scenario(f"by label, {eta:.0%} of missing positive", by_label(eta, 0.5), "by_label") for eta in (0.05, 0.4, 0.8)
)
# As many rows as there are while a tenth of either class stays labeled.
BY_LABEL_MOST = tuple(
    Scenario(f"by label, {eta:.0%} of missing positive, most masked", by_label(eta, 0.9), "by_label")
    for eta in (0.05, 0.4, 0.8)
)
BY_LABEL = BY_LABEL_HALF + BY_LABEL_MOST
BY_BOTH = Scenario("by score and label", by_chance(_positive_by_both, _negative_by_both), "by_score_and_label")
PU_CONSTANT = Scenario("positive-unlabeled", by_chance(lambda z: 1.0 - _FOUND, lambda z: 1.0), "by_label")
PU_BY_SCORE = Scenario(
    "positive-unlabeled, high scores found first",
    by_chance(lambda z: 1.0 - expit(_FOUND_BY_SCORE + 0.5 * z), lambda z: 1.0),
    "by_score_and_label",
)
# With its threshold where chances were one half. Where it is in the other scenarios, drift takes about as many right
# decisions from the rows decided positive as it gives to the others, and accuracy hardly moves: it could not tell.
DRIFT = Scenario("drift", RANDOM.mechanism, "random", drift=-0.7, lowered=0.85)

SCENARIOS = (RANDOM, BY_SCORE, *BY_LABEL, BY_BOTH, PU_CONSTANT, PU_BY_SCORE, DRIFT)


# ---------------------------------------------------------------------------------------------------------- scoring


@dataclass(frozen=True)
class Quality:
    """How the laws of one metric did over replications. The PIT of a right law is uniform."""

    coverage: float  # of the 90% interval
    width: float  # its mean
    w1: float  # Wasserstein distance of the PIT to uniform; about 0.313 / sqrt(N) for a right law
    ks: float  # Kolmogorov distance of the same; about 0.869 / sqrt(N)
    rmse: float  # of the mean of the law
    n: int


# From a sample to the law of each metric; a law has interval(), pit() and mean().
Way = Callable[[Sample], Mapping[str, Any]]

# Interval ends are values that the metric can take, and so is the truth: they may differ by rounding alone.
_ROUNDING = 1e-9


def rows_of(way: Way, sample: Sample, metrics: Iterable[str] = METRICS) -> list[dict[str, Any]]:
    """Interval, PIT, mean and truth of each metric: all that the quality of a law is found from."""
    distributions = way(sample)
    rows = []
    for name in metrics:
        distribution, truth = distributions[name], sample.truth[name]
        low, high = distribution.interval(0.9)
        figures = {
            "low": low,
            "high": high,
            "pit": distribution.pit(truth),
            "mean": distribution.mean(),
            "truth": truth,
        }
        rows.append({"metric": name} | {key: float(value) for key, value in figures.items()})
    return rows


def measure(way: Way, samples: Iterable[Sample], metrics: Iterable[str] = METRICS) -> dict[str, Quality]:
    """Coverage, width, PIT distances and error of the laws that `way` finds, per metric."""
    return qualities_of([row for sample in samples for row in rows_of(way, sample, metrics)])


def qualities_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Quality]:
    """The quality of the laws per metric, in the order in which metrics appear."""
    found: dict[str, list[list[float]]] = {}
    for row in rows:
        found.setdefault(row["metric"], []).append([row[key] for key in ("low", "high", "pit", "mean", "truth")])
    return {metric: quality_of(np.array(figures)) for metric, figures in found.items()}


def quality_of(figures) -> Quality:
    """The quality of laws given as rows of (low, high, pit, mean, truth)."""
    low, high, pit, mean, truth = figures.T
    return Quality(
        coverage=float(np.mean((low - _ROUNDING <= truth) & (truth <= high + _ROUNDING))),
        width=float(np.mean(high - low)),
        w1=w1_to_uniform(pit),
        ks=ks_to_uniform(pit),
        rmse=float(np.sqrt(np.mean((mean - truth) ** 2))),
        n=len(truth),
    )


def w1_to_uniform(u) -> float:
    """Area between the quantile function of `u` and that of the uniform law on [0, 1]."""
    u = np.sort(u)
    edges = np.arange(u.size + 1) / u.size
    below, above = u - edges[:-1], edges[1:] - u
    return float(0.5 * np.sum(below * np.abs(below) + above * np.abs(above)))


def ks_to_uniform(u) -> float:
    """Largest distance between the distribution function of `u` and that of the uniform law on [0, 1]."""
    u = np.sort(u)
    edges = np.arange(u.size + 1) / u.size
    return float(max((edges[1:] - u).max(), (u - edges[:-1]).max()))
