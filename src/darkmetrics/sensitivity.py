"""Sensitivity: how far metrics move when the odds of missing rows are other ones than assumed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial, singledispatch
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray, same_arrays
from darkmetrics._kernels.posterior.draws import representatives
from darkmetrics._kernels.sums.enumeration import number_of_labelings
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics.data.rules import is_number
from darkmetrics.distributions import Interval, MetricDistribution, NodeMoments
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.functional import CountFunctional, DrawnFunctional, Functional, LinearFunctional, RankFunctional
from darkmetrics.methods import Auto, Method, MonteCarlo, Problem
from darkmetrics.methods.base import alike
from darkmetrics.methods.gaussian import moments_at_nodes
from darkmetrics.posterior import Posterior, columns_of
from darkmetrics.tables import decimals_for, interval_text, level_text, text_table

# Nodes that stand for all of them where an extreme is looked for; there all are asked how far they move.
_NODES = 32
# Up to so many missing rows the laws themselves are moved, beyond it their Gaussians; fewer where laws take long: of
# weighted counts, and of ranks while an extreme is looked for.
_FEW_MISSING, _FEW_SLOW = 64, 16
# What the expansion of average precision may be off by where its moments are enough: with 45 positives it is 0.1.
_SKEWED = 0.5
# Labelings of a black box that are gone through at every tilt; beyond, so many are drawn.
_LABELINGS = 1024
# Labels that may be drawn at a tilt, half of them while an extreme is looked for, and the fewest labelings: the more
# rows there are, the less labelings differ.
_LABELS, _FEWEST = 1 << 23, 128
# How often the search for an extreme inside the square of tilts halves its step.
_HALVINGS = 3
# Factors beyond this one are called infinite.
_FARTHEST = 1e6

# How far the log odds of missing rows move: of those decided positive, and of those decided negative.
Tilt = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Sensitivity(Mapping[str, Interval]):
    """The interval of each metric if the odds of missing rows are up to `odds` times higher or lower than assumed.

    A mapping from metric name to `Interval`; print it for a table. `assumed` has the intervals of the evaluation.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], label_model=[0.9], metrics=["precision", "recall"])
    >>> print(result.sensitivity(odds=4))
                  90% interval   if odds 4x off
    precision   0.500 to 1.000   0.500 to 1.000
    recall      0.500 to 0.667   0.500 to 0.667
    """

    odds: float
    confidence_level: float
    assumed: Mapping[str, Interval]
    intervals: Mapping[str, Interval]

    def __getitem__(self, name: str) -> Interval:
        return self.intervals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.intervals)

    def __len__(self) -> int:
        return len(self.intervals)

    def __repr__(self) -> str:
        return f"<Sensitivity to odds {self.odds:g} times off: {', '.join(self.intervals)}>"

    def __str__(self) -> str:
        header = ["", f"{level_text(self.confidence_level)} interval", self.column]
        return "\n".join(
            text_table(header, [[name, *map(_shown, (self.assumed[name], self[name]))] for name in self.intervals])
        )

    @property
    def column(self) -> str:
        """The heading of these intervals in a table."""
        return f"if odds {self.odds:g}x off"


@dataclass(frozen=True)
class TippingPoint:
    """The smallest factor on the odds of missing rows at which a target is no longer met, as a number and in words.

    Attributes
    ----------
    metric, target, side
        What is asked for: `side` is "at least", or "at most" where lower is better.
    odds : float
        The factor; 1 where the target is not met as it is, infinity where no factor does it.
    confidence_level : float
        A target is met when it is so with at least this probability.
    flagged, unflagged : int
        Whether it takes higher (1) or lower (-1) odds of the rows decided positive, and negative; 0: they do not
        matter.
    """

    metric: str
    target: float
    side: str
    confidence_level: float
    odds: float
    flagged: int = 0
    unflagged: int = 0

    def __float__(self) -> float:
        return self.odds

    def __str__(self) -> str:
        sure = f"with probability {level_text(self.confidence_level)} or more"
        claim = f"{self.metric} is {self.side} {self.target:g} {sure}"
        if np.isnan(self.odds):
            return f"Whether {self.metric} is {self.side} {self.target:g} cannot be said: it is 0/0."
        if self.odds == 1.0:
            return f"It is not so that {claim}, even if the odds of the missing rows are as assumed."
        if np.isinf(self.odds):
            return f"{claim}, however far off the odds of the missing rows are."
        sides = {"decided positive": self.flagged, "decided negative": self.unflagged}
        words = {1: "higher", -1: "lower"}
        times = f"{self.odds:.3g} times"
        moved = [f"{times} {words[sign]} for those {rows}" for rows, sign in sides.items() if sign]
        if len(moved) == 2 and self.flagged == self.unflagged:
            moved = [f"{times} {words[self.flagged]}"]
        odds = f"the odds that missing rows are positive are {' and '.join(moved)} than assumed"
        return f"{claim} unless {odds}."


def check_odds(odds: Any) -> float:
    """A factor on the odds, checked."""
    if not is_number(odds) or not 1.0 <= odds < np.inf:
        raise InputError(
            f"odds: {odds!r}. It must be a finite number of at least 1: how many times higher or lower the odds of the "
            "missing rows may be. What no labels can pass is result[metric].support()."
        )
    return float(odds)


def sensitivity_of(evaluation: Evaluation, odds: float) -> Sensitivity:
    """The intervals over all tilts of the missing rows by up to this factor (see `Evaluation.sensitivity`)."""
    level = evaluation.confidence_level
    assumed = evaluation.intervals
    found = dict(assumed)
    reach = float(np.log(odds))
    if evaluation.data.missing_cells.size and reach > 0.0:
        tail = 0.5 * (1.0 - level)
        for name, moved in _all_moved(evaluation, list(evaluation)).items():
            if moved is None:
                found[name] = Interval(np.nan, np.nan)
            elif np.isfinite(assumed[name].low):
                low = moved.farthest(tail, assumed[name].low, -1, reach).value
                high = moved.farthest(1.0 - tail, assumed[name].high, 1, reach).value
                found[name] = Interval(low, high)
    return Sensitivity(odds, level, assumed, found)


def tipping_point_of(evaluation: Evaluation, name: str, target: float) -> TippingPoint:
    """The smallest factor at which a target is no longer met (see `Evaluation.tipping_point`)."""
    law = evaluation[name]
    lower = evaluation.metrics[name].better == "lower"
    level = evaluation.confidence_level
    at = partial(TippingPoint, name, target, "at most" if lower else "at least", level)
    if np.isnan(law.mean()):
        return at(np.nan)
    if not evaluation.target_probability(name, target) >= level:
        return at(1.0)
    worst = law.support()[1 if lower else 0]
    moved = None if (worst <= target if lower else worst >= target) else _all_moved(evaluation, [name])[name]
    if moved is None:
        return at(np.inf if evaluation.nodes.independent else np.nan)
    sign, q = (1, level) if lower else (-1, 1.0 - level)
    start = float(law.ppf(q))

    def room(reach: float) -> float:
        value = moved.farthest(q, start, sign, reach).value
        return target - value if lower else value - target

    from scipy.optimize import brentq

    end = float(np.log(_FARTHEST))
    if room(end) >= 0.0:
        return at(np.inf)
    # As it is the target is met, perhaps with nothing to spare: the sign there is known, whatever rounding says.
    reach = float(brentq(lambda reach: room(reach) if reach > 0.0 else max(room(0.0), 1e-300), 0.0, end, xtol=1e-4))
    tilt = moved.farthest(q, start, sign, reach).tilt
    flagged, unflagged = (int(np.sign(move)) for move in tilt)
    return at(float(np.exp(reach)), flagged, unflagged)


def _all_moved(evaluation: Evaluation, names: list[str]) -> "dict[str, _Moved | None]":
    """Each metric as a function of the tilts; None where labels depend on each other, so that odds say too little."""
    if not evaluation.nodes.independent:
        return dict.fromkeys(names)
    rows, nodes = evaluation.nodes.without_strata(evaluation.data)
    decided = rows.cells.decision[rows.missing_cells]
    tilted = _Tilted.of(nodes, decided)
    few = tilted.thinned(rows.missing_counts)
    return {
        name: _Moved(
            evaluation.metrics[name].bind(rows, evaluation.fills[name]),
            evaluation[name],
            few,
            tilted,
            decided,
            _draws_few(evaluation.method),
            _Sampling.of(evaluation, name),
        )
        for name in names
    }


class _Sampling(NamedTuple):
    """What the population adds to the spread of a metric on the rows: variance, and whether labels spread it at all."""

    var: float
    labels: bool

    @classmethod
    def of(cls, evaluation: Evaluation, name: str) -> "_Sampling | None":
        """None for an evaluation of the rows."""
        if evaluation.on_rows is None:
            return None
        if evaluation.nodes.given:
            return cls(evaluation[name].var(), labels=False)
        return cls(max(evaluation[name].var() - evaluation.on_rows[name].var(), 0.0), labels=True)


class _Tilted(NamedTuple):
    """The log odds of nodes, for columns of missing cells with one decision each."""

    weight: FloatArray
    log_odds: FloatArray
    decided: BoolArray
    column: IntArray
    # Buckets of cells and the problem there, by tilt: metrics of the same groups of rows share what they need.
    shared: dict[Tilt, list[tuple[IntArray, Problem]]]
    # Of each kind of buckets a problem at some tilt, and metrics of groups of rows with what these are in buckets.
    alike: list[tuple[IntArray, Problem]]
    merged: list[tuple[CountFunctional, CountFunctional, IntArray]]

    @classmethod
    def of(cls, nodes: Posterior, decided: BoolArray) -> "_Tilted":
        own: IntArray = columns_of(nodes)
        kind, column = np.unique(2 * own + decided, return_inverse=True)
        with np.errstate(divide="ignore"):
            log_odds = np.asarray(logit(nodes.probability[:, kind // 2]))
        return cls(nodes.weight, log_odds, (kind % 2).astype(np.bool_), column, {}, [], [])

    def thinned(self, missing: IntArray) -> "_Tilted":
        """Few nodes that stand for all."""
        if self.weight.size <= _NODES:
            return self
        positive = expit(self.log_odds) * np.bincount(self.column, missing)
        flagged, unflagged = (positive[:, rows].sum(axis=1) for rows in (self.decided, ~self.decided))
        chosen = representatives(flagged, unflagged, self.weight, _NODES)
        return self._replace(weight=np.full(_NODES, 1.0 / _NODES), log_odds=self.log_odds[chosen], shared={})

    def at(self, tilt: Tilt, column: IntArray) -> Posterior:
        """The nodes for cells in these columns, their log odds moved."""
        move = np.where(self.decided, *tilt)
        return Posterior(self.weight, np.asarray(expit(self.log_odds + move)), column)

    def problem(self, tilt: Tilt, column: IntArray) -> Problem:
        """The problem at all nodes, the same for all who ask with these columns."""
        kept = self.shared.setdefault(tilt, [])
        known = _with(column, kept)
        if known is not None:
            return known
        like = _with(column, self.alike)
        moved = self.at(tilt, column)
        kept.append((column, Problem(moved) if like is None else alike(like, moved)))
        if like is None:
            self.alike.append(kept[-1])
        return kept[-1][1]

    def coarse(self, functional: Functional) -> tuple[Functional, IntArray]:
        """The functional on cells that tilts leave alike; those of the same groups of rows are merged once."""
        if not isinstance(functional, CountFunctional):
            return functional.coarse(self.column)
        for known, coarse, column in self.merged:
            if same_arrays([known.missing], [functional.missing]) and known.split.same(functional.split):
                own = replace(functional, split=coarse.split, missing=coarse.missing, bounds=functional.extremes)
                return own, column
        coarse, column = functional.coarse(self.column)
        self.merged.append((functional, coarse, column))
        return coarse, column


def _with(column: IntArray, kept: list[tuple[IntArray, Problem]]) -> Problem | None:
    """The problem that is kept for these columns."""
    return next((own for known, own in kept if same_arrays([known], [column])), None)


class _Farthest(NamedTuple):
    value: float
    tilt: Tilt


class _Moved:
    """The quantiles of one metric as functions of the tilt."""

    def __init__(
        self,
        functional: Functional,
        law: MetricDistribution,
        few: _Tilted,
        tilted: _Tilted,
        decided: BoolArray,
        method: Method,
        sampling: _Sampling | None,
    ) -> None:
        self._sampling = sampling
        self._functional, self._law, self._few, self._all, self._method = functional, law, few, tilted, method
        self._decided = decided
        self._known: dict[tuple[int, Tilt, bool], Callable[[float], float]] = {}

    def farthest(self, q: float, start: float, sign: int, reach: float) -> _Farthest:
        """The lowest (`sign` -1) or highest quantile over all tilts within reach, and a tilt that leads there.

        `start` is the quantile without a tilt, which tilts never move beyond what is possible.
        """
        none = (0.0, 0.0)
        known = [(0.0,) if d == 0 else (sign * d * reach,) if d is not None else None for d in self.direction]

        def moved(tilt: Tilt) -> float:
            return sign * self._at(self._few, tilt, search=True)(q)

        tilt = max([none, *_all_tilts(*((-reach, 0.0, reach) if at is None else at for at in known))], key=moved)
        for step in reach * 0.5 ** np.arange(1, 1 + _HALVINGS if None in known and self._smooth else 1):
            near = (
                (max(-reach, at - step), at, min(reach, at + step)) if fixed is None else (at,)
                for at, fixed in zip(tilt, known, strict=True)
            )
            tilt = max([tilt, *_all_tilts(*near)], key=moved)
        low, high = self._law.support()
        # Of so many rows that there are fewer labelings than nodes, few nodes tell as much.
        drawn = not (self._smooth or self._by_moments(False))
        nodes = self._few if drawn and self._labelings(_LABELS) < self._all.weight.size else self._all
        value = start + self._at(nodes, tilt)(q) - self._at(nodes, none)(q)
        # Few nodes may see a move where all see none.
        value = sign * max(sign * value, sign * start)
        return _Farthest(min(max(value, low), high), tilt)

    @cached_property
    def direction(self) -> tuple[int | None, int | None]:
        """How the metric moves with the odds of rows decided positive, and negative: +1, -1, 0, or None: either way."""
        effect = _effects(self._functional)
        if effect is None:
            return None, None
        return _sign(effect[self._decided]), _sign(effect[~self._decided])

    def _by_moments(self, search: bool) -> bool:
        weighted = isinstance(self._functional, CountFunctional) and self._functional.split.weight is not None
        slow = weighted or (search and isinstance(self._functional, RankFunctional))
        few = _FEW_SLOW if slow else _FEW_MISSING
        moments = self._smooth or self._expands
        return moments and (self._sampling is not None or int(self._functional.missing.sum()) > few)

    @property
    def _smooth(self) -> bool:
        """Whether a search finds more than noise and is quick: not for black boxes."""
        return isinstance(self._functional, CountFunctional | LinearFunctional | RankFunctional)

    @cached_property
    def _expands(self) -> bool:
        """Whether average precision is near enough to normal that its moments tell quantiles: few positives skew it."""
        if not isinstance(self._functional, DrawnFunctional):
            return False
        nodes = self._few.at((0.0, 0.0), self._few.column)
        found = self._functional.expansion.at(nodes.probability, columns_of(nodes), nodes.weight)
        return found is not None and float(nodes.weight @ found.off) <= _SKEWED * float(nodes.weight.sum())

    @cached_property
    def _coarse(self) -> tuple[Functional, IntArray]:
        return self._all.coarse(self._functional)

    def _at(self, nodes: _Tilted, tilt: Tilt, *, search: bool = False) -> Callable[[float], float]:
        """The quantile function at a tilt; in a search, near enough to find the farthest one."""
        by_moments = self._by_moments(search)
        key = len(nodes.weight), tilt, by_moments
        if key not in self._known:
            labels = _LABELS // (2 if search else 1)
            self._known[key] = self._gaussian(nodes, tilt) if by_moments else self._exactly(nodes, tilt, labels)
        return self._known[key]

    def _gaussian(self, nodes: _Tilted, tilt: Tilt) -> Callable[[float], float]:
        functional, column = self._coarse
        mean, var = _moments(functional, nodes.problem(tilt, column))
        known = np.isfinite(mean) & np.isfinite(var)
        if not known.any():  # 0/0 next to every mean: what the law says
            return self._exactly(nodes, tilt)
        weight = nodes.weight[known] / nodes.weight[known].sum()
        return self._normal(weight, mean[known], var[known])

    def _normal(self, weight: FloatArray, mean: FloatArray, var: FloatArray) -> Callable[[float], float]:
        """Quantiles of a normal law at each node, with what the population adds."""
        if self._sampling is not None:
            var = self._sampling.var + (var if self._sampling.labels else np.zeros(mean.size))
        sd = np.sqrt(np.maximum(var, 0.0))
        return lambda q: normal_mixture_quantile(q, weight, mean, sd)

    def _labelings(self, labels: int) -> int:
        """Labelings of all missing rows that so many labels are, no more than are needed."""
        return min(_LABELINGS, labels // max(1, int(self._functional.missing.sum())))

    def _exactly(self, nodes: _Tilted, tilt: Tilt, labels: int = _LABELS) -> Callable[[float], float]:
        moved = nodes.at(tilt, nodes.column)
        method: Method = self._method
        if not self._smooth:
            few = number_of_labelings(self._functional.missing) <= _LABELINGS
            method = Auto() if few else MonteCarlo(max(_FEWEST, self._labelings(labels)))
        try:
            law = next(method.laws([self._functional], moved, rng=0))
        except MethodError:
            law = next(Auto(_LABELINGS).laws([self._functional], moved, rng=0))
        if self._sampling is not None:
            own = law.by_node or NodeMoments(np.ones(1), np.array([law.mean()]), np.array([law.var()]))
            return self._normal(*own)
        return lambda q: float(law.ppf(q))


def _all_tilts(flagged: tuple[float, ...], unflagged: tuple[float, ...]) -> list[Tilt]:
    return list(product(flagged, unflagged))


def _draws_few(method: Method) -> Method:
    """The method of an evaluation with no more draws than are needed to see how far a law moves."""
    if isinstance(method, Auto | MonteCarlo):
        return replace(method, n_resamples=min(method.n_resamples, 2 * _LABELINGS))
    return method


def _moments(functional: Functional, problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Mean and variance of the Gaussians at the nodes."""
    if isinstance(functional, DrawnFunctional):
        nodes = problem.nodes
        return functional.expansion.moments(nodes.probability, columns_of(nodes), nodes.weight)
    return moments_at_nodes(functional, problem)


@singledispatch
def _effects(functional: Functional) -> FloatArray | None:
    """The sign of what a positive label does to the metric, per missing cell; None if it depends on other labels."""
    return None


@_effects.register
def _(functional: CountFunctional) -> FloatArray | None:
    effect = np.zeros(functional.missing.size)
    for rows, direction in zip(functional.split.groups, functional.direction, strict=True):
        if direction is None and rows.size:
            return None
        effect[rows] = direction or 0
    return effect


@_effects.register
def _(functional: LinearFunctional) -> FloatArray | None:
    return functional.weight


def _sign(effect: FloatArray) -> int | None:
    """The sign that all effects have; None if some are positive and some negative."""
    up, down = bool(np.any(effect > 0.0)), bool(np.any(effect < 0.0))
    return None if up and down else int(up) - int(down)


def _shown(interval: Interval) -> str:
    return interval_text(interval, decimals_for(interval.high - interval.low))
