"""Which model is best: the chance of each, of ties, and of every place."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._text import short
from darkmetrics.comparison.models import ModelDraws
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.base import mass_below
from darkmetrics.distributions.functional import SAME
from darkmetrics.exceptions import MissingKeyError, unknown_name
from darkmetrics.result import Result
from darkmetrics.tables import chance_text, finite, number_text

# Half a draw of the population: events that no draw shows are at most this likely.
_RAREST = 2.0**-17
# Ties that are rarer are not worth a word, nor is what buckets change less.
_NAMED = 0.005


@dataclass(frozen=True)
class Best(Result):
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
        "exact" for all label assignments, otherwise the method of the difference (two models) or of the draws.
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
            raise unknown_name("model", "model", str(model), self.chances, error=MissingKeyError)
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

    def _words(self) -> list[str]:
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
        return ["; ".join([text, *named]) + "." + words]


@dataclass(frozen=True)
class Ranks(Result):
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

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text, the best model first."""
        means = self.mean()
        places = [str(i + 1) for i in range(len(means))]
        rows = [
            [short(name), number_text(means[name], 2), *(chance_text(chance) for chance in self.chances[name])]
            for name in sorted(means, key=lambda name: np.nan_to_num(means[name], nan=np.inf))
        ]
        return [_where(self.metric, self.scope), "mean place", *places], rows


def _where(metric: str, scope: str) -> str:
    return metric if scope == "rows" else f"{metric} in the population"


def range_text(chance: float, ends: tuple[float, float]) -> str:
    """Between which ends a chance is with exact scores; nothing where print shows no difference."""
    low, high = ends
    if np.isnan(chance) or max(chance - low, high - chance) < _NAMED:
        return ""
    return f"{chance_text(low)} to {chance_text(high)}"


def sides_of(distribution: MetricDistribution, t: float, scope: str) -> tuple[float, float]:
    """Return P(X < t) and P(X > t); in the population both are positive if t is inside the bounds."""
    below, above = mass_below(distribution, t), float(distribution.sf(t))
    low, high = distribution.bounds
    if scope == "population" and low < t < high and distribution.var() > 0.0:
        below, above = (float(np.clip(side, _RAREST, 1.0 - _RAREST)) for side in (below, above))
    return below, above


def best_of(
    metric: str, better: str, names: tuple[str, ...], drawn: ModelDraws, effects: FloatArray | None = None
) -> Best:
    """Compute the probability of each model to be best, from jointly drawn values of all models.

    Draws with an undefined metric are excluded. `effects` is the largest effect of score bins on the
    metric of each model, NaN if unknown.
    """
    values, mass, defined = _select_defined(drawn)
    probabilities = dict.fromkeys(names, np.nan)
    if not mass.size:
        return Best(metric, probabilities, {}, drawn.method, drawn.scope)
    models = [names[i] for i in defined]
    ahead = -values if better == "lower" else values
    first = ahead >= ahead.max(axis=0) - SAME * np.abs(values).max()  # relative, because weights have any unit
    alone = first.sum(axis=0) == 1
    min_probability = _smallest_probability(drawn, values)
    probabilities |= {name: _probability(mass, first[i] & alone, min_probability[i]) for i, name in enumerate(models)}
    ties: dict[tuple[str, ...], float] = {}
    if not alone.all():
        sets, number = np.unique(np.packbits(first[:, ~alone], axis=0), axis=1, return_inverse=True)
        shares = np.bincount(number.ravel(), mass[~alone])
        for members, share in zip(np.unpackbits(sets, axis=0, count=len(models)).T, shares.tolist(), strict=True):
            ties[tuple(models[i] for i in np.flatnonzero(members))] = share
    ranges = {}
    if effects is not None and np.any(effects[defined] != 0.0):
        reach = np.nan_to_num(effects[defined], nan=np.inf)
        for i, name in enumerate(models):
            lead = np.delete(ahead[i] - ahead, i, axis=0)
            moved = np.delete(reach + reach[i], i)[:, None]
            low, high = (float(mass @ np.all(lead > by, axis=0)) for by in (moved, -moved))
            ranges[name] = low, high
    return Best(metric, probabilities, ties, drawn.method, drawn.scope, ranges)


def ranks_of(metric: str, better: str, names: tuple[str, ...], drawn: ModelDraws) -> Ranks:
    """Compute the probability of every rank, from jointly drawn values of all models."""
    values, mass, defined = _select_defined(drawn)
    probabilities = dict.fromkeys(names, (np.nan,) * len(names))
    if not mass.size:
        return Ranks(metric, probabilities, drawn.method, drawn.scope)
    ahead = -values if better == "lower" else values
    slack = SAME * np.abs(values).max()
    min_probability = _smallest_probability(drawn, values)
    for i, index in enumerate(defined):
        n_better = (ahead > ahead[i] + slack).sum(axis=0)
        probabilities[names[index]] = tuple(
            _probability(mass, n_better == rank, min_probability[i] if rank < len(defined) else 0.0)
            for rank in range(len(names))
        )
    return Ranks(metric, probabilities, drawn.method, drawn.scope)


def _smallest_probability(drawn: ModelDraws, values: FloatArray) -> list[float]:
    """Return the smallest probability of each model's ranks.

    It is 0 on these rows, and in the population for a model with the same values as another model.
    """
    if drawn.scope != "population":
        return [0.0] * len(values)
    slack, half_a_draw = SAME * np.abs(values).max(), 0.5 / values.shape[1]
    has_twin = [
        any(abs(x[0] - y[0]) <= slack and np.all(np.abs(x - y) <= slack) for j, y in enumerate(values) if j != i)
        for i, x in enumerate(values)
    ]
    return [0.0 if twin else half_a_draw for twin in has_twin]


def _probability(mass: FloatArray, event: BoolArray, min_probability: float) -> float:
    return min(1.0 - min_probability, max(min_probability, float(mass @ event)))


def _select_defined(drawn: ModelDraws) -> tuple[FloatArray, FloatArray, list[int]]:
    """Return values and mass of the draws with defined metrics, and the models that are ever defined."""
    possible = drawn.mass > 0.0
    defined = np.flatnonzero(~np.isnan(drawn.values[:, possible]).all(axis=1))
    values = drawn.values[defined]
    selected = possible & ~np.isnan(values).any(axis=0) if defined.size else np.zeros_like(possible)
    mass = drawn.mass[selected]
    return values[:, selected], mass / mass.sum() if mass.size else mass, defined.tolist()
