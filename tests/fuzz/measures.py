"""The metrics that are tried: as the library has them, as the oracle defines them, and over groups of tied scores.

The oracle goes row by row. Where labelings are drawn by the ten thousand, the same definitions are needed on sums:
confusion-matrix metrics of the four counts, the others of the positive weight at each distinct score. A test ties
these to the oracle's.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import darkmetrics as dm
import oracle
from certificate_problems import OWN
from darkmetrics.distributions.functionals import CountFunctional, Split

# Of positive weight by distinct score (labelings x scores), the whole weight and the score, both by rising score, and
# the weight that every row has, if it is one.
Grouped = Callable[[Any, Any, Any, float | None], Any]


def one_weight(mass: Any) -> float | None:
    """The weight of every row that counts; None where they differ."""
    counting = mass[mass > 0.0]
    return float(counting[0]) if counting.size and np.all(counting == counting[0]) else None


@dataclass(frozen=True)
class Measure:
    """A metric: what is handed to the library, its definition on rows, and how it is found from sums."""

    name: str
    asked: Any
    definition: oracle.Definition
    kind: Literal["confusion", "ranked", "loss", "quarters"]
    grouped: Grouped | None = None
    # Where values are differences, rounding is of the size of their terms and not of their own.
    difference: bool = False

    @property
    def rank(self) -> bool:
        return self.name.startswith(("roc_auc", "gini", "misranked"))

    @property
    def registered(self) -> bool:
        return isinstance(self.asked, str)


# --------------------------------------------------------------------------------------- definitions on tied scores


def ratio(numerator: Any, denominator: Any) -> Any:
    """The quotient, nan where the denominator is zero."""
    numerator, denominator = np.broadcast_arrays(np.asarray(numerator, float), np.asarray(denominator, float))
    return np.divide(numerator, denominator, out=np.full(denominator.shape, math.nan), where=denominator != 0.0)


def _auc(ties: float, scale: float = 1.0, shift: float = 0.0) -> Grouped:
    def grouped(positive, total, score, row):
        negative = total - positive
        # What is left of a group whose rows are all positive is rounding.
        negative[negative < 1e-13 * total] = 0.0
        below = np.cumsum(negative, axis=1) - (1.0 - ties) * negative
        right = (positive * below).sum(axis=1)
        return shift + scale * ratio(right, positive.sum(axis=1) * negative.sum(axis=1))

    return grouped


def _average_precision(positive, total, score, row):
    found = np.cumsum(positive[:, ::-1], axis=1)
    taken = np.cumsum(total[::-1])
    some = taken > 0.0
    share = ratio(found[:, some], taken[some])
    return ratio((share * positive[:, ::-1][:, some]).sum(axis=1), found[:, -1])


def _half_up(x):
    return math.floor(round(x, 6) + 0.5)


def _top(k, kind):
    def grouped(positive, total, score, row):
        n = total.sum()
        # A sum of equal weights is a number of rows, whichever way it was rounded.
        size = float(k) if isinstance(k, int) else row * max(1, _half_up(k * round(n / row, 6))) if row else k * n
        above = np.cumsum(total[::-1])[::-1] - total
        share = np.clip((size - above) / np.where(total > 0.0, total, 1.0), 0.0, 1.0)
        top, every = positive @ share, positive.sum(axis=1)
        match kind:
            case "precision":
                return top / size
            case "recall":
                return ratio(top, every)
            case _:
                return ratio(top / size * n, every)

    return grouped


def _loss(one: Callable[[Any], Any], zero: Callable[[Any], Any]) -> Grouped:
    def grouped(positive, total, score, row):
        if_one, if_zero = one(score), zero(score)
        return ((total * if_zero).sum() + positive @ (if_one - if_zero)) / total.sum()

    return grouped


def _surprise(chance: Any) -> Any:
    eps = float(np.finfo(float).eps)
    return -np.log(np.clip(chance, eps, 1.0 - eps))


_GROUPED: dict[str, Grouped] = {
    "roc_auc": _auc(0.5),
    "roc_auc(ties='full')": _auc(1.0),
    "gini": _auc(0.5, 2.0, -1.0),
    "misranked_full": _auc(1.0, -3.0, 0.5),
    "average_precision": _average_precision,
    "brier": _loss(lambda s: (1.0 - s) ** 2, lambda s: s**2),
    "log_loss": _loss(_surprise, lambda s: _surprise(1.0 - s)),
    "far_apart": _loss(lambda s: np.exp(12.0 * np.clip(s, 0.0, 1.0)), lambda s: 0.0 * s),
    "only_high": _loss(lambda s: np.where(s > 0.6, 1.0 - s, 1.0), lambda s: np.where(s > 0.6, -s, 1.0)),
    **{
        f"{kind}_at_k({k})": _top(k, kind)
        for kind, k in (("precision", 0.1), ("precision", 1), ("recall", 0.4), ("recall", 0.1), ("lift", 0.1))
    },
}

# ------------------------------------------------------------------------------------------------ formulas of users


def _formula(name: str, formula: Any, **options: Any) -> Measure:
    """A plain function of counts, as a user writes one: division by zero is undefined, whatever is divided."""

    def quiet(*counts):
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(formula(*(np.asarray(count, float) for count in counts)), float)
        return np.where(np.isfinite(value), value, math.nan)

    metric = dm.metrics.ConfusionMetric(name=name, formula=formula, **options)
    return Measure(name, metric, oracle.confusion(quiet), "confusion", difference=True)


def quarters_of(score: Any, decision: Any) -> list[Any]:
    """Four groups of rows: by decision, and by whether the score is high."""
    high, yes = np.asarray(score) >= 0.5, np.asarray(decision) == 1
    return [yes & high, yes & ~high, ~yes & high, ~yes & ~high]


def interplay(a: Any, b: Any, c: Any, d: Any) -> Any:
    """A formula that no single group moves in one direction."""
    return (a - b) * (c - d) / (1.0 + a + b + c + d)


@dataclass(frozen=True, kw_only=True)
class Interplay(dm.metrics.Metric):
    """A user's own metric of four groups, of which no direction is declared."""

    def bind(self, data: Any, fill: float) -> CountFunctional:
        cells, rows = data.cells, data.missing_cells
        groups = quarters_of(cells.score, cells.decision)
        known = cells.mass(cells.positives)
        return CountFunctional(
            missing=data.missing_counts,
            fill=fill,
            range=self.range,
            split=Split(tuple(np.flatnonzero(group[rows]) for group in groups), data.missing_weight),
            offset=tuple(float(known[group].sum()) for group in groups),
            formula=interplay,
            direction=(None,) * 4,
        )

    def of_counts(self, cells: Any, counts: Any) -> Any:
        return interplay(*(counts[1][:, group].sum(axis=1) for group in quarters_of(cells.score, cells.decision)))


def _interplay_of_rows(y, score, decision, weight):
    return interplay(*((y * weight)[:, group].sum(axis=1) for group in quarters_of(score, decision)))


# -------------------------------------------------------------------------------------------------------- the table

_DIFFERENCES = ("mcc", "cohen_kappa", "youden_j", "markedness", "balanced_accuracy")
_LOSSES = ("brier", "log_loss", "far_apart", "only_high")
_OWN_RATIOS = ("net_gain", "net_share", "lopsided", "odds_of_error", "either_sign")


def _registered_confusion() -> list[str]:
    """All metrics of the confusion matrix that there are, of families an example; and one that is easily forgotten."""
    records = (dm.metrics.registered(name) for name in dm.metrics.registered_names())
    metrics = (record.example if isinstance(record, dm.metrics.Family) else record for record in records)
    return [*(metric.name for metric in metrics if isinstance(metric, dm.metrics.ConfusionMetric)), "fbeta(0)"]


def _all() -> list[Measure]:
    found = [
        Measure(name, name, oracle.definition_of(name), "confusion", difference=name in _DIFFERENCES)
        for name in _registered_confusion()
    ]
    for name, grouped in _GROUPED.items():
        asked, definition = OWN[name] if name in OWN else (name, oracle.definition_of(name))
        kind: Any = "loss" if name in _LOSSES else "ranked"
        found.append(Measure(name, asked, definition, kind, grouped, difference=name != "average_precision"))
    found += [
        *(Measure(name, *OWN[name], "confusion", difference=True) for name in _OWN_RATIOS),
        _formula("undirected", lambda tp, fp, fn, tn: (tp - 2.0 * fn) / (tp + fp + 1.0)),
        _formula("spread", lambda tp, fp, fn, tn: np.abs(tp - fn) / (tp + fn)),
        Measure("interplay", Interplay(name="interplay"), _interplay_of_rows, "quarters", difference=True),
    ]
    return found


MEASURES: dict[str, Measure] = {measure.name: measure for measure in _all()}
