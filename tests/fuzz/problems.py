"""Problems from a seed: labels with gaps, scores with ties, decisions, weights, and what is believed at each node.

One whole number names a problem, so that an alarm can be reproduced by it alone. Every part is drawn from a few ways
that are each a class of input; what a problem is made of stands in its `words`.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

# Scores and chances on grids of powers of two: 1 - score, 1 - p and sums of a few are then free of rounding.
_FINE, _COARSE = 1024, 4


@dataclass(frozen=True, eq=False)
class Case:
    """Rows in any order; `chance` has a row per node and a column per missing row, in row order."""

    y: Any
    score: Any
    decision: Any
    # The decisions are those of this threshold; None: they are given.
    threshold: float | None
    # None: every row counts once.
    weight: Any
    node_weight: Any
    chance: Any
    zero_division: Any
    # Nodes carry buckets of cells that share a probability, as those of the library's own models do.
    binned: bool = False
    words: tuple[str, ...] = field(default=())

    @property
    def mass(self) -> Any:
        return np.ones(self.y.size) if self.weight is None else self.weight

    @property
    def missing(self) -> Any:
        return np.flatnonzero(np.isnan(self.y))

    @property
    def unequal(self) -> bool:
        """Whether missing rows that count have different weights."""
        own = self.mass[self.missing]
        return bool(np.ptp(own[own > 0.0]) > 0.0) if np.any(own > 0.0) else False

    def changed(self, **parts: Any) -> "Case":
        return replace(self, **parts)


def case_of(seed: int, *, largest: int = 600) -> Case:
    """The problem of a seed, with at most so many missing rows."""
    rng = np.random.default_rng(seed)
    size = rng.choice(["tiny", "small", "tied", "medium", "large"], p=[0.25, 0.4, 0.15, 0.15, 0.05])
    missing = min(largest, int(_missing(size, rng)))
    known = int(rng.choice([0, 1, 3, 10, 25, 50])) if size != "large" else int(rng.integers(0, 1200))
    n = missing + known
    layout = str(rng.choice(list(_LAYOUTS)))
    scores = (
        "few" if size == "tied" else str(rng.choice(["few", "two", "fine", "fine", "distinct", "constant", "ends"]))
    )
    score = np.sort(_scores(scores, n, rng))
    gaps = _LAYOUTS[layout](n, missing, rng)
    labels = str(rng.choice(["by score", "by score", "both", "rare", "negative", "positive"]))
    y = np.where(gaps, math.nan, _labels(labels, score, rng))
    decisions = str(rng.choice(["threshold", "threshold", "at a score", "given", "given", "all", "none"]))
    decision, threshold = _decisions(decisions, score, rng)
    weights = str(rng.choice(list(_WEIGHTS)))
    weight = _WEIGHTS[weights](n, rng)
    order = rng.permutation(n)
    y, score, decision = y[order], score[order], decision[order]
    weight = None if weight is None else weight[order]
    posterior = int(rng.choice([1, 1, 1, 2, 3, 5]))
    chances = str(rng.choice(["any", "any", "score", "near the ends", "certain", "equal", "rare"]))
    chance = _chances(chances, posterior, score[np.isnan(y)], rng)
    if posterior > 1:
        chance = _alike(chance, y, score, decision, weight)
    node_weight = rng.dirichlet(np.full(posterior, 0.7)) if posterior > 1 else np.ones(1)
    fill: Any = [math.nan, 0, 1, "warn"][int(rng.integers(4))]
    words = (
        f"{n} rows, {missing} missing",
        f"scores {scores}",
        f"missing {layout}",
        f"labels {labels}",
        f"decisions {decisions}",
        f"weights {weights}",
        f"{posterior} nodes",
        f"chances {chances}",
        f"0/0 {fill}",
    )
    binned = bool(posterior > 1 and rng.random() < 0.3)
    return Case(y, score, decision, threshold, weight, node_weight, chance, fill, binned, words)


def _missing(size: Any, rng: Any) -> Any:
    match size:
        case "tiny":
            return rng.integers(1, 6)
        case "small":
            return rng.integers(6, 14)
        case "tied":
            return rng.integers(14, 60)
        case "medium":
            return rng.integers(14, 61)
        case _:
            return rng.integers(61, 601)


def _scores(how: str, n: int, rng: Any) -> Any:
    match how:
        case "few":
            return rng.integers(0, _COARSE + 1, n) / _COARSE
        case "two":
            return rng.choice([0.25, 0.75], n)
        case "constant":
            return np.full(n, rng.choice([0.25, 0.5]))
        case "ends":  # the log loss of an impossible label is 36 nats
            return rng.choice([0.0, 0.5, 1.0], n)
        case "distinct":
            return rng.permutation(4 * n)[:n] / (4.0 * n)
        case _:
            return rng.integers(0, _FINE + 1, n) / _FINE


def _labels(how: str, score: Any, rng: Any) -> Any:
    share = {"by score": score, "both": 0.5, "rare": 0.05, "negative": 0.0, "positive": 1.0}[how]
    return (rng.random(score.size) < share).astype(float)


def _decisions(how: str, score: Any, rng: Any) -> tuple[Any, float | None]:
    match how:
        case "threshold":
            threshold = 0.5
        case "at a score":
            threshold = float(rng.choice(score))
        case "all":
            threshold = float(score.min()) - rng.choice([0.0, 1.0])
        case "none":
            threshold = float(score.max()) + 0.25
        case _:
            return rng.integers(0, 2, score.size), None
    return (score >= threshold).astype(np.int64), threshold


def _chances(how: str, posterior: int, score: Any, rng: Any) -> Any:
    size = (posterior, score.size)
    match how:
        case "score":
            shift = rng.normal(0.0, 1.0, (posterior, 1))
            odds = np.log((score + 0.05) / (1.05 - score)) + shift
            return np.rint(_FINE / (1.0 + np.exp(-odds))) / _FINE
        case "near the ends":
            return rng.choice([1e-12, 1e-6, 1e-3, 1.0 - 1e-3, 1.0 - 1e-6], size)
        case "certain":
            return rng.choice([0.0, 1.0, 0.25, 0.5], size)
        case "equal":
            return np.broadcast_to(rng.choice([0.5, 0.25, 1 / 3, 0.9375], (posterior, 1)), size).copy()
        case "rare":
            return rng.integers(1, 64, size) / _FINE
        case _:
            return rng.integers(1, _FINE, size) / _FINE


def _alike(chance: Any, y: Any, score: Any, decision: Any, weight: Any) -> Any:
    """A node knows cells, not rows: missing rows with the same score, decision and weight share their chances."""
    keys = np.stack([score, decision, np.ones(y.size) if weight is None else weight], axis=1)[np.isnan(y)]
    _, first, owner = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return chance[:, first[owner.ravel()]]


# ------------------------------------------------------------------------------------- which rows miss their label


def _some(n: int, places: Any) -> Any:
    gaps = np.zeros(n, dtype=bool)
    gaps[places] = True
    return gaps


def _blocks(n: int, missing: int, rng: Any) -> Any:
    """One half at the top and the other at a place of its own."""
    first = missing // 2
    start = int(rng.integers(0, n - missing + 1))
    return _some(n, np.r_[n - first : n, start : start + missing - first])


def _alternating(n: int, missing: int, rng: Any) -> Any:
    """Every other row, as long as there are such."""
    return _some(n, np.r_[0:n:2, 1:n:2][:missing])


# Rows are sorted by score when these are asked: the first is the lowest.
_LAYOUTS: dict[str, Any] = {
    "anywhere": lambda n, missing, rng: _some(n, rng.permutation(n)[:missing]),
    "at the top": lambda n, missing, rng: _some(n, slice(n - missing, n)),
    "at the bottom": lambda n, missing, rng: _some(n, slice(0, missing)),
    "in two blocks": _blocks,
    "in turn": _alternating,
    "everywhere": lambda n, missing, rng: np.ones(n, dtype=bool) if n <= missing + 3 else _blocks(n, missing, rng),
}


# ------------------------------------------------------------------------------------------------------- weights


def _with_zeros(n: int, rng: Any) -> Any:
    weight = rng.integers(0, 3, n).astype(float)
    weight[int(rng.integers(n))] = 2.0
    return weight


def _far_apart(n: int, rng: Any) -> Any:
    """From one to a billion, as far as the library takes them."""
    weight = 10.0 ** rng.uniform(-4.5, 4.5, n)
    return np.clip(weight, 1e-4, 9e4)


_WEIGHTS: dict[str, Any] = {
    "none": lambda n, rng: None,
    "equal": lambda n, rng: np.full(n, rng.choice([0.1, 1.0, 3.0])),
    "whole": lambda n, rng: rng.integers(1, 6, n).astype(float),
    "quarters": lambda n, rng: rng.choice([0.25, 1.0, 2.5], n),
    "lognormal": lambda n, rng: rng.lognormal(0.0, 1.0, n),
    "far apart": _far_apart,
    "zeros": _with_zeros,
}
