"""Which model is best: the chance of each, of ties, and of every place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._text import short
from darkmetrics.changes.wording import chance_above, chance_below
from darkmetrics.comparison.all_models import Together
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.base import mass_below
from darkmetrics.exceptions import MissingKeyError, unknown_name
from darkmetrics.tables import chance_text, finite, html_table, number_text, text_table

# Values that differ by less, as part of the largest, are the same: what is left of it is rounding.
_SAME = 1e-12
# Ties that are rarer are not worth a word, nor is what buckets change less.
_NAMED = 0.005


@dataclass(frozen=True)
class Best:
    """The chance that each model is the best one in a metric, and that several share that place.

    Attributes
    ----------
    metric : str
        What they are compared in.
    chances : mapping from model to float
        The chance to be better than every other model, ties not counted.
    ties : mapping from models to float
        The chance that just these models share the first place.
    method : str
        How it was found: "exact" from all labelings, else from the law of the difference (two models) or from draws.
    scope : str
        On these "rows", or in the "population" that they came from.
    ranges : mapping from model to (float, float)
        Where scores were counted in buckets: between which ends the chance is with exact scores, wherever in their
        buckets they lie, under the same probabilities of labels; empty where scores are exact.

    A model whose metric is never defined has no chance (NaN), and the others are compared without it.
    """

    metric: str
    chances: Mapping[str, float]
    ties: Mapping[tuple[str, ...], float]
    method: str
    scope: str = "rows"
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def tie(self) -> float:
        """The chance that no model is best by itself."""
        return float(sum(self.ties.values()))

    @property
    def model(self) -> str:
        """The model that is best with the largest chance."""
        return max(self.chances, key=lambda name: np.nan_to_num(self.chances[name], nan=-1.0))

    def __getitem__(self, model: str) -> float:
        if model not in tuple(self.chances):
            raise MissingKeyError(str(unknown_name("model", "model", str(model), self.chances)))
        return self.chances[model]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON; None where the metric is never defined."""
        ties = [{"models": list(names), "chance": chance} for names, chance in self.ties.items()]
        chances = {name: finite(chance) for name, chance in self.chances.items()}
        found = {"metric": self.metric, "method": self.method, "scope": self.scope, "chances": chances, "ties": ties}
        if self.ranges:
            found["ranges"] = {name: [finite(low), finite(high)] for name, (low, high) in self.ranges.items()}
        return found

    def text(self, model: str) -> str:
        """The chance of a model, and between which ends it is with exact scores where buckets leave that open."""
        chance = self[model]
        left_open = range_text(chance, self.ranges.get(model, (chance, chance)))
        return f"{chance_text(chance)} ({left_open})" if left_open else chance_text(chance)

    def __str__(self) -> str:
        ordered = sorted(self.chances, key=lambda name: -np.nan_to_num(self.chances[name], nan=-1.0))
        texts = {name: self.text(name) for name in ordered}
        text = f"Best {_where(self.metric, self.scope)}: " + ", ".join(
            f"{short(name)} {said}" for name, said in texts.items()
        )
        named = [
            f"{' and '.join(map(short, names))} share it {chance_text(chance)}"
            for names, chance in sorted(self.ties.items(), key=lambda item: -item[1])
            if chance >= _NAMED
        ]
        open_ = any(said != chance_text(self.chances[name]) for name, said in texts.items())
        words = " In brackets what it may be with exact scores: these are in buckets." if open_ else ""
        return "; ".join([text, *named]) + "." + words


@dataclass(frozen=True)
class Ranks:
    """The chance of every model to take each place in a metric; models that tie share the better place.

    Attributes
    ----------
    metric : str
        What they are compared in.
    chances : mapping from model to tuple of float
        The chance of the first place, the second, and so on.
    method : str
        How it was found.
    scope : str
        On these "rows", or in the "population" that they came from.
    """

    metric: str
    chances: Mapping[str, tuple[float, ...]]
    method: str
    scope: str = "rows"

    def mean(self) -> dict[str, float]:
        """The expected place of each model: 1 is the best."""
        return {name: float(np.dot(row, np.arange(1, len(row) + 1))) for name, row in self.chances.items()}

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON; None where the metric is never defined."""
        chances = {name: [finite(chance) for chance in row] for name, row in self.chances.items()}
        mean = {name: finite(place) for name, place in self.mean().items()}
        return {"metric": self.metric, "method": self.method, "scope": self.scope, "chances": chances, "mean": mean}

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text, the best model first."""
        means = self.mean()
        places = [str(i + 1) for i in range(len(means))]
        rows = [
            [short(name), number_text(means[name], 2), *(chance_text(chance) for chance in self.chances[name])]
            for name in sorted(means, key=lambda name: np.nan_to_num(means[name], nan=np.inf))
        ]
        return [_where(self.metric, self.scope), "mean place", *places], rows

    def __str__(self) -> str:
        return "\n".join(text_table(*self.table()))

    def _repr_html_(self) -> str:
        return html_table(*self.table())


def _where(metric: str, scope: str) -> str:
    return metric if scope == "rows" else f"{metric} in the population"


def range_text(chance: float, ends: tuple[float, float]) -> str:
    """Between which ends a chance is with exact scores; nothing where print shows no difference."""
    low, high = ends
    if np.isnan(chance) or max(chance - low, high - chance) < _NAMED:
        return ""
    return f"{chance_text(low)} to {chance_text(high)}"


def sides_of(law: MetricDistribution, t: float, scope: str) -> tuple[float, float]:
    """P(X < t) and P(X > t); in the population neither is certain, but for models that no row tells apart."""
    if scope == "population" and law.var() > 0.0:
        return chance_below(law, t), chance_above(law, t)
    return mass_below(law, t), float(law.sf(t))


def best_of(
    metric: str, better: str, names: tuple[str, ...], found: Together, effects: FloatArray | None = None
) -> Best:
    """The chances from values of all models together; labelings that leave one undefined are left out.

    `effects` is how far buckets can have moved the metric of each model, NaN where that is not known.
    """
    values, mass, judged = _defined(found)
    chances = dict.fromkeys(names, np.nan)
    if not mass.size:
        return Best(metric, chances, {}, found.method, found.scope)
    left = [names[i] for i in judged]
    sign = -1.0 if better == "lower" else 1.0
    top = (sign * values).max(axis=1, keepdims=True)
    first = sign * values >= top - _SAME * np.abs(values).max()  # of their own size: weights have any unit
    alone = first.sum(axis=1) == 1
    sure = _certain(found, values)
    chances |= {name: _drawn_chance(mass, first[:, i] & alone, sure[i]) for i, name in enumerate(left)}
    ties: dict[tuple[str, ...], float] = {}
    if not alone.all():
        code = first[~alone] @ (1 << np.arange(len(left)))
        for number in np.unique(code).tolist():
            shared = tuple(name for i, name in enumerate(left) if number >> i & 1)
            ties[shared] = float(mass[~alone] @ (code == number))
    ranges = {}
    if effects is not None and np.any(effects[judged] != 0.0):
        reach = np.nan_to_num(effects[judged], nan=np.inf)
        for i, name in enumerate(left):
            ahead = np.delete(sign * (values[:, [i]] - values), i, axis=1)
            moved = np.delete(reach + reach[i], i)
            low, high = (float(mass @ np.all(ahead > by, axis=1)) for by in (moved, -moved))
            ranges[name] = low, high
    return Best(metric, chances, ties, found.method, found.scope, ranges)


def ranks_of(metric: str, better: str, names: tuple[str, ...], found: Together) -> Ranks:
    """The chance of every place, from values of all models together."""
    values, mass, judged = _defined(found)
    chances = dict.fromkeys(names, (np.nan,) * len(names))
    if not mass.size:
        return Ranks(metric, chances, found.method, found.scope)
    values = -values if better == "lower" else values
    slack = _SAME * np.abs(values).max()
    places = (values[:, None, :] > (values + slack)[:, :, None]).sum(axis=2)  # how many are better
    sure = _certain(found, values)
    for i, at in enumerate(judged):
        chances[names[at]] = tuple(
            _drawn_chance(mass, places[:, i] == place, sure[i] or place >= len(judged)) for place in range(len(names))
        )
    return Ranks(metric, chances, found.method, found.scope)


def _certain(found: Together, values: FloatArray) -> list[bool]:
    """Of each model whether draws that all say the same make it certain.

    They do on the rows, where most is known; in the population only for a model that no row tells apart from another.
    """
    if found.scope != "population":
        return [True] * values.shape[1]
    slack = _SAME * np.abs(values).max()
    return [
        any(bool(np.all(np.abs(one - other) <= slack)) for j, other in enumerate(values.T) if j != i)
        for i, one in enumerate(values.T)
    ]


def _drawn_chance(mass: FloatArray, hit: BoolArray, sure: bool) -> float:
    chance, rest = float(mass @ hit), 0.0 if sure else 0.5 / mass.size
    return min(1.0 - rest, max(rest, chance))


def _defined(found: Together) -> tuple[FloatArray, FloatArray, list[int]]:
    """Values and mass where all are defined, and of which models; those that never are stand aside."""
    judged = np.flatnonzero(~np.isnan(found.values[found.mass > 0.0]).all(axis=0))
    values = found.values[:, judged]
    kept = ~np.isnan(values).any(axis=1) & (found.mass > 0.0) if judged.size else np.zeros(len(values), dtype=np.bool_)
    return values[kept], found.mass[kept] / found.mass[kept].sum(), judged.tolist()
