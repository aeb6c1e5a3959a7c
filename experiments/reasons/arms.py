"""What is measured: each arm hides labels of a test set and says how much of the reason is told."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm

import darkmetrics as dm
from experiments.reasons.problems import CLASSIFIERS, METRICS, REASONS, SETS, Rows, hidden, rows_of, table_of

LEVEL = 0.9
_FEW = (30, 100, 300, 1000)
_FEW_METRICS = ("prevalence", "accuracy", "f1")
_FEW_COLUMNS = ("erm", "erm_seed1", "erm_seed2", "irm", "irm_seed1", "coral", "coral_seed1")
# Sets whose rows stand in the order of time.
_IN_TIME = ("bank", "online_shoppers")


class Piece(NamedTuple):
    """One test set of an arm."""

    arm: str
    set: str
    classifier: str
    n: int
    split: int


def pieces(arm: str, splits: int) -> Iterator[Piece]:
    """The test sets of an arm."""
    sets: tuple[str, ...] = SETS
    sizes, scored = (2000, 500), CLASSIFIERS
    if arm == "reference":
        sets, sizes = _IN_TIME, (2000,)
    elif arm == "few labels":
        sets, sizes, scored = ("civil_comments_scores",), _FEW, _FEW_COLUMNS
        splits *= 4
    for split in range(splits):
        for n in sizes:
            for name in sets:
                for classifier in scored:
                    yield Piece(arm, name, classifier, n, split)


def _nothing(piece: Piece) -> Iterator[dict[str, Any]]:
    rows = rows_of(piece.set, piece.classifier, piece.split, piece.n)
    for reason in REASONS:
        labels = hidden(rows, reason)
        if labels is not None:
            yield from answers(rows, labels, reason)


def _stated(piece: Piece) -> Iterator[dict[str, Any]]:
    rows = rows_of(piece.set, piece.classifier, piece.split, piece.n)
    for reason, (word, _) in REASONS.items():
        if word is not None:
            yield from answers(rows, hidden(rows, reason), reason, missingness=word)


def _beta(piece: Piece) -> Iterator[dict[str, Any]]:
    """The same with the plain curve: what bending it costs in width."""
    models = {"random": dm.missing.ByScore("beta"), "by_score": dm.missing.ByScore("beta")}
    rows = rows_of(piece.set, piece.classifier, piece.split, piece.n)
    for reason, (word, _) in REASONS.items():
        if word is not None:
            model = models.get(word, dm.missing.ByLabel("beta"))
            yield from answers(rows, hidden(rows, reason), reason, missingness=model)


def _reference(piece: Piece) -> Iterator[dict[str, Any]]:
    """Reference rows from the first fifth of a series, test rows from a later one."""
    series = rows_of(piece.set, piece.classifier, piece.split, piece.n, in_time=True)
    rng = np.random.default_rng((piece.split, 5))
    size, span = series.y.size, max(series.y.size // 5, piece.n + 1000)
    start = int(rng.uniform(0.3 * size, size - span))
    early = series.take(np.sort(rng.choice(size // 5, 1000, replace=False)))
    late = series.take(np.sort(start + rng.choice(span, piece.n, replace=False)))
    late = late._replace(seed=(*late.seed, piece.split))
    for reason in ("random", "by score", "by label, positives missing", "score and label, opposite"):
        yield from answers(late, hidden(late, reason), reason, missingness=dm.missing.Reference(early.y, early.score))


def _few_labels(piece: Piece) -> Iterator[dict[str, Any]]:
    """`n` labels at random among 1,000 rows (2,000 for the largest), missingness="random" stated; Wilson beside it."""
    table = table_of(piece.set)
    rng = np.random.default_rng((_FEW_COLUMNS.index(piece.classifier), piece.n, piece.split))
    chosen = rng.choice(len(table), 2000 if piece.n >= 1000 else 1000, replace=False)
    y, score = (table[name].to_numpy()[chosen] for name in ("label", piece.classifier))
    labels = np.where(rng.permutation(y.size) < piece.n, y, np.nan)
    rows = Rows(y, score, None, None, ())
    yield from answers(rows, labels, "random", _FEW_METRICS, missingness="random")
    for metric, value in (("prevalence", y), ("accuracy", (score >= 0.5) == y)):
        low, high = _wilson(np.asarray(value, dtype=float)[~np.isnan(labels)])
        yield {"reason": "Wilson", "metric": metric, "truth": np.mean(value), "low": low, "high": high}


def _wilson(values: Any) -> tuple[float, float]:
    z, n, p = float(norm.ppf(0.5 + LEVEL / 2)), values.size, float(np.mean(values))
    centre, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (centre - half) / (1 + z * z / n), (centre + half) / (1 + z * z / n)


def answers(
    rows: Rows, labels: Any, reason: str, metrics: tuple[str, ...] = METRICS, **how: Any
) -> Iterator[dict[str, Any]]:
    """Interval and truth of each metric."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = dm.evaluate(labels, rows.score, metrics=list(metrics), **how)
        truth = dm.evaluate(rows.y, rows.score, metrics=list(metrics))
    for metric in metrics:
        low, high = found[metric].interval(LEVEL)
        yield {"reason": reason, "metric": metric, "truth": truth[metric].mean(), "low": low, "high": high}


ARMS: dict[str, Callable[[Piece], Iterator[dict[str, Any]]]] = {
    "nothing": _nothing,
    "stated": _stated,
    "stated, beta": _beta,
    "reference": _reference,
    "few labels": _few_labels,
}
