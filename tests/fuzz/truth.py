"""What is true of a problem, found without the library: all labelings, sums of counts, or labelings drawn at random."""

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

import oracle
from fuzz.measures import MEASURES, Measure, one_weight, quarters_of
from fuzz.problems import Case

# Labelings x rows that are gone through; beyond, sums are counted or labelings drawn.
_ENUMERATE = 1_500_000
_MOST_LABELINGS = 1 << 14
_GRID = 1 << 20
_RANK_TABLE = 1 << 21
_CHUNK = 1 << 22
# Drawn labelings are further from the truth than this once in a billion times (Dvoretzky, Kiefer, Wolfowitz; Massart).
_DOUBT = 1e-9


class Truth(NamedTuple):
    """Values in rising order with cumulated probabilities, the chance of 0/0, and the extremes over all labelings."""

    values: Any
    level: Any
    undefined: float
    low: float
    high: float
    # How far these probabilities may be off: zero unless labelings were drawn.
    doubt: float = 0.0
    undefined_doubt: float = 0.0
    # Whether no labeling leads outside low and high.
    complete: bool = True

    def cdf(self, t: Any, *, left: bool = False) -> Any:
        place = np.searchsorted(self.values, t, side="left" if left else "right")
        return np.concatenate([[0.0], self.level])[place]

    @property
    def masses(self) -> Any:
        return np.diff(self.level, prepend=0.0)

    def mean(self) -> float:
        return float(self.masses @ self.values)

    def std(self) -> float:
        return math.sqrt(max(0.0, float(self.masses @ (self.values - self.mean()) ** 2)))


def dkw(draws: float) -> float:
    """How far the cdf of so many draws may be from the true one."""
    return math.sqrt(math.log(2.0 / _DOUBT) / (2.0 * draws))


def drawn_off(distribution: Any, posterior: int) -> float:
    """How far the cdf of a law of 10,000 draws may be from the true one: those with 0/0 say nothing of it."""
    draws = 10_000 * (1.0 - distribution.undefined)
    return (
        dkw(draws) + posterior / draws if draws else dkw(10_000)
    )  # none was defined, of which one in a million may be


def truths(names: list[str], case: Case, fills: dict[str, float], draws: int = 40_000) -> dict[str, Truth]:
    """The true law of each metric; a 0/0 counts as its fill, and is left out when that is nan."""
    classes = _classes(case)
    labelings = math.prod(rows.size + 1 for rows in classes)
    if labelings <= _MOST_LABELINGS and labelings * case.y.size <= _ENUMERATE:
        y, probability = _all_labelings(case, classes)
        return {name: _law(_on_rows(MEASURES[name], y, case), probability, fills[name]) for name in names}
    found: dict[str, Truth] = {}
    corners = _corners(case)
    for name in names:
        counted = _counted(MEASURES[name], case)
        if counted is not None:
            distribution = _law(*counted, fills[name])
            found[name] = _enclosing(distribution, _on_rows(MEASURES[name], corners, case), fills[name])
    left = [name for name in names if name not in found]
    if left:
        drawn = _drawn([MEASURES[name] for name in left], case, draws)
        for name in left:
            distribution = _law(drawn[name], np.full(drawn[name].size, 1.0 / drawn[name].size), fills[name])
            at_corners = _on_rows(MEASURES[name], corners, case)
            used = drawn[name].size if not math.isnan(fills[name]) else int(np.isfinite(drawn[name]).sum())
            distribution = distribution._replace(doubt=dkw(max(1, used)), undefined_doubt=dkw(drawn[name].size))
            found[name] = _enclosing(distribution, at_corners, fills[name])
            if MEASURES[name].registered:
                found[name] = found[name]._replace(undefined=_chance_of_no_class(case, at_corners), undefined_doubt=0.0)
    return found


def _law(values: Any, probability: Any, fill: float) -> Truth:
    nan = np.isnan(values)
    undefined = math.fsum(probability[nan].tolist())
    values = np.where(nan, fill, values)
    possible = values[~np.isnan(values)]
    if not possible.size:
        return Truth(np.empty(0), np.empty(0), undefined, math.nan, math.nan)
    kept = ~np.isnan(values) & (probability > 0.0)
    order = np.argsort(values[kept], kind="stable")
    total = np.cumsum(probability[kept][order])
    level = total / total[-1] if total.size else total
    return Truth(values[kept][order], level, undefined, float(possible.min()), float(possible.max()))


def _enclosing(distribution: Truth, at_corners: Any, fill: float) -> Truth:
    """The law of some labelings, with the extremes that its corners add: a bound from inside."""
    at_corners = np.where(np.isnan(at_corners), fill, at_corners)
    every = np.concatenate([distribution.values, at_corners[~np.isnan(at_corners)]])
    if not every.size:
        return distribution._replace(complete=False)
    return distribution._replace(low=float(every.min()), high=float(every.max()), complete=False)


def _on_rows(measure: Measure, y: Any, case: Case) -> Any:
    return np.asarray(measure.definition(y, case.score, case.decision, case.mass), float)


# ------------------------------------------------------------------------------------------------- all labelings


def _counting(case: Case) -> Any:
    """Missing rows that any metric looks at, as positions among the missing ones."""
    return np.flatnonzero(case.mass[case.missing] > 0.0)


def _classes(case: Case) -> list[Any]:
    """Missing rows that every metric treats alike, as positions among the missing ones."""
    own = _counting(case)
    if not own.size:
        return []
    rows = case.missing[own]
    keys = np.stack([case.score, case.decision, case.mass], axis=1)[rows]
    _, owner = np.unique(keys, axis=0, return_inverse=True)
    return [own[owner.ravel() == k] for k in range(int(owner.max()) + 1)]


def _all_labelings(case: Case, classes: list[Any]) -> tuple[Any, Any]:
    """Every labeling up to which of several like rows are positive, and its probability over all nodes."""
    sizes = [rows.size + 1 for rows in classes]
    counts = np.indices(sizes).reshape(len(sizes), -1).T if sizes else np.zeros((1, 0), dtype=int)
    y = np.tile(np.where(np.isnan(case.y), 0.0, case.y), (len(counts), 1))
    each = np.ones((case.node_weight.size, len(counts)))
    for k, rows in enumerate(classes):
        y[:, case.missing[rows]] = np.arange(rows.size) < counts[:, k, None]
        for node in range(case.node_weight.size):
            each[node] *= oracle.count_pmf(case.chance[node, rows])[counts[:, k]]
    return y, case.node_weight @ each


def _corners(case: Case) -> Any:
    """Labelings where extremes are: rows decided rightly or wrongly, all alike, in order; and one row off these."""
    missing, m = case.missing, case.missing.size
    right = case.decision[missing]
    order = np.argsort(np.argsort(case.score[missing], kind="stable"))
    # An extreme may need a whole group of ties on one side, and of those at the cut the heaviest or the lightest.
    ties = np.searchsorted(np.sort(case.score[missing]), np.unique(case.score[missing]))
    steps = np.unique(np.r_[np.linspace(0, m, min(m, 600) + 1).round().astype(int), ties[:: 1 + ties.size // 400]])
    ends = np.stack([right, 1 - right, np.zeros(m), np.ones(m)])
    some = np.linspace(0, m - 1, min(m, 60)).round().astype(int)
    by_mass = np.lexsort([case.mass[missing], right])
    by_mass = by_mass[case.mass[missing[by_mass]] > 0.0]
    kinds = [by_mass[right[by_mass] == decision] for decision in (0, 1)]
    lightest_and_heaviest = [kind[place] for kind in kinds for place in (np.s_[:1], np.s_[-1:])]
    flips = np.unique(np.concatenate([some, *lightest_and_heaviest])).astype(int)
    near = [np.abs(end - (np.arange(m) == flip)) for end in ends for flip in flips]
    ordered = [order >= step for step in steps] + [order < step for step in steps]
    found = np.array([*ends, *near, *ordered], dtype=float)
    y = np.tile(np.where(np.isnan(case.y), 0.0, case.y), (len(found), 1))
    y[:, missing] = found
    return y


def _chance_of_no_class(case: Case, at_corners: Any) -> float:
    """The chance of 0/0 of a registered metric, which is undefined only where a class is empty, or always."""
    if np.isnan(at_corners).all():
        return 1.0
    own = _counting(case)
    none, every = np.isnan(at_corners[2]), np.isnan(at_corners[3])
    no, yes = (np.prod(part[:, own], axis=1) for part in (1.0 - case.chance, case.chance))
    return float(case.node_weight @ (none * no + every * yes))


# ------------------------------------------------------------------------------------------------ sums of counts


def _counted(measure: Measure, case: Case) -> tuple[Any, Any] | None:
    """Values and probabilities from the joint law of the sums a metric is made of; None where it is too large."""
    if measure.kind == "confusion":
        return _counted_confusion(measure, case)
    if measure.name in ("roc_auc", "gini") and case.weight is None:
        return _counted_ranks(measure, case)
    return None


def _counted_confusion(measure: Measure, case: Case) -> tuple[Any, Any] | None:
    own = _counting(case)
    yes = own[case.decision[case.missing[own]] == 1]
    no = own[case.decision[case.missing[own]] == 0]
    unit = _unit(case.mass[case.missing[own]])
    parts = [_sums(case, rows, unit) for rows in (yes, no)]
    if any(part is None for part in parts):
        return None
    (tp, fp, first), (fn, tn, second) = (part for part in parts if part is not None)
    if tp.size * fn.size > _GRID:
        return None
    known = [
        case.mass[(case.y == label) & (case.decision == decision)].sum() for decision in (1, 0) for label in (1, 0)
    ]
    grid = np.stack(
        [np.repeat(tp, fn.size), np.repeat(fp, fn.size), np.tile(fn, tp.size), np.tile(tn, tp.size)], axis=1
    )
    # Four rows whose weights are the counts: the definition of a confusion-matrix metric asks for no more.
    values = measure.definition(np.array([[1, 0, 1, 0]]), None, np.array([1, 1, 0, 0]), grid + known)
    probability = np.einsum("k,ki,kj->ij", case.node_weight, first, second).ravel()
    return np.asarray(values, float), probability


def _unit(weight: Any) -> float | None:
    """What all weights are whole multiples of: the one they share, or a quarter; None for neither."""
    if not weight.size or np.all(weight == weight[0]):
        return float(weight[0]) if weight.size else 1.0
    return 0.25 if np.all(4.0 * weight == np.rint(4.0 * weight)) and weight.sum() < 5_000 else None


def _sums(case: Case, rows: Any, unit: float | None) -> tuple[Any, Any, Any] | None:
    """Positive and negative weight among these rows: values, and a law for each node."""
    weight, chance = case.mass[case.missing[rows]], case.chance[:, rows]
    if unit is None:
        if rows.size > 11:
            return None
        labels = (np.arange(1 << rows.size)[:, None] >> np.arange(rows.size)) & 1
        distribution = np.array([np.prod(np.where(labels == 1, p, 1.0 - p), axis=1) for p in chance])
        return labels @ weight, (1 - labels) @ weight, distribution
    steps = np.rint(weight / unit).astype(int)
    distribution = np.zeros((len(chance), int(steps.sum()) + 1))
    distribution[:, 0] = 1.0
    for step, p in zip(steps.tolist(), chance.T, strict=True):
        moved = np.zeros_like(distribution)
        moved[:, step:] = distribution[:, : distribution.shape[1] - step]
        distribution = (1.0 - p)[:, None] * distribution + p[:, None] * moved
    reached = np.flatnonzero(distribution.any(axis=0))
    return unit * reached, unit * (distribution.shape[1] - 1 - reached), distribution[:, reached]


def _counted_ranks(measure: Measure, case: Case) -> tuple[Any, Any] | None:
    """ROC-AUC through the number of positives and their doubled mid-ranks, which are whole numbers."""
    ranks = np.rint(2.0 * scipy.stats.rankdata(case.score)).astype(int)
    missing, known = case.missing, case.y == 1
    cells = (missing.size + 1) * (int(ranks[missing].sum()) + 1)
    if cells * missing.size * case.node_weight.size > 100 * _RANK_TABLE or cells > _RANK_TABLE:
        return None
    total = sum(
        share * oracle.count_and_sum_pmf(ranks[missing], p)
        for share, p in zip(case.node_weight.tolist(), case.chance, strict=True)
    )
    count, doubled = np.nonzero(total)
    positives = known.sum() + count
    pairs = positives * (case.y.size - positives)
    above = 0.5 * (ranks[known].sum() + doubled) - 0.5 * positives * (positives + 1.0)
    values = np.divide(above, pairs, out=np.full(pairs.shape, math.nan), where=pairs > 0)
    return (2.0 * values - 1.0 if measure.name == "gini" else values), total[count, doubled]


# ------------------------------------------------------------------------------------------------ drawn labelings


def _drawn(measures: list[Measure], case: Case, draws: int) -> dict[str, Any]:
    """The metrics of so many random labelings: a node first, then the labels."""
    rng = np.random.default_rng(0)
    missing = case.missing
    score, owner = np.unique(case.score, return_inverse=True)
    total = np.bincount(owner, case.mass, score.size)
    known = np.bincount(owner, case.mass * (case.y == 1), score.size)
    by_score = np.argsort(owner[missing], kind="stable")
    starts = np.flatnonzero(np.diff(owner[missing][by_score], prepend=-1))
    places = owner[missing][by_score][starts]
    rows = max(1, _CHUNK // max(score.size, missing.size))
    found: dict[str, list[Any]] = {measure.name: [] for measure in measures}
    for start in range(0, draws, rows):
        size = min(rows, draws - start)
        node = rng.choice(case.node_weight.size, size, p=case.node_weight / case.node_weight.sum())
        labels = (rng.random((size, missing.size)) < case.chance[node]).astype(float)
        positive = np.tile(known, (size, 1))
        positive[:, places] += np.add.reduceat((labels * case.mass[missing])[:, by_score], starts, axis=1)
        for measure in measures:
            if measure.grouped is not None:
                value = measure.grouped(positive, total, score, one_weight(case.mass))
            else:
                value = _of_groups(measure, case, labels)
            found[measure.name].append(np.asarray(value, float))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def _of_groups(measure: Measure, case: Case, labels: Any) -> Any:
    """A metric of counts for labelings of the missing rows: each count adds up its own rows."""
    counts_both = measure.kind == "confusion"
    groups = [case.decision == 1, case.decision == 0] if counts_both else quarters_of(case.score, case.decision)
    columns = []
    for group in groups:
        inside = group[case.missing]
        for side in (1, 0) if counts_both else (1,):
            own = labels[:, inside] if side else 1.0 - labels[:, inside]
            columns.append(case.mass[group & (case.y == side)].sum() + own @ case.mass[case.missing][inside])
    counts = np.stack(columns, axis=1)
    if counts_both:
        return measure.definition(np.array([[1, 0, 1, 0]]), None, np.array([1, 1, 0, 0]), counts)
    scores, decisions = np.array([0.75, 0.25, 0.75, 0.25]), np.array([1, 1, 0, 0])
    return measure.definition(np.ones((1, 4)), scores, decisions, counts)
