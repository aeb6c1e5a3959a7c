"""All rows together: the sum of what the groups say, each with a label model of its own for its own missing rows.

A fit over all rows would contradict them: where the share of missing labels differs between groups, a row without a
label is more likely to come from some groups than from others, and one curve for all of them cannot know that.
"""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray, merged_keys
from darkmetrics._kernels.posterior.draws import representatives
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.label_models import LabelModel, Tilted, label_model_from
from darkmetrics.label_models.auto import BOTH
from darkmetrics.monitoring.borrowing import Lender, Shape, borrowed
from darkmetrics.posterior import Posterior, columns_of

# Nodes of the total where several groups have nodes of their own; never fewer than one of them has.
_NODES = 128
# Probabilities that are kept of all groups together, and columns of them that a law over many nodes is made of.
_KEPT, _COLUMNS = 2**23, 2048
# How finely scores (bins of equally many missing rows) and log odds (steps) tell columns apart, until they are few
# enough. What is merged has one probability, its mean; within a sixteenth of the log odds that adds less than a
# thousandth of a percent to the variance of a label.
_FINENESS = ((512, 1 / 16), (256, 1 / 8), (128, 1 / 4), (64, 1 / 4), (32, 1 / 2), (16, 1.0), (4, 2.0), (1, np.inf))
# Ways to pair the nodes of a group with those of the groups before, of which the least correlated one is taken: any
# one drawn way would leave the variance of a sum of many groups uncertain by an eighth.
_PAIRINGS = 16


class Part(NamedTuple):
    """What a group says of its missing rows: nodes with a probability per column, and the column of each missing cell.

    The rows of a column have one decision; `rows` counts them, `score` is their mean.
    """

    weight: FloatArray
    probability: FloatArray
    reason: IntArray
    shift: FloatArray
    column: IntArray
    rows: FloatArray
    score: FloatArray
    decided: BoolArray

    @classmethod
    def of(cls, data: EvaluationSet, nodes: Posterior, groups: int = 1) -> "Part":
        """The part of one set among so many."""
        cells, count = data.missing_cells, data.missing_counts.astype(np.float64)
        if not cells.size:
            nodes = Posterior.single(np.zeros(0))  # however many there are, nothing depends on them
        own = columns_of(nodes)
        first, column = merged_keys(own, data.cells.decision[cells].astype(np.int64))
        size = len(nodes)
        rows: FloatArray = np.asarray(np.bincount(column, count, first.size), dtype=np.float64)
        part = cls(
            weight=nodes.weight,
            probability=nodes.probability[:, own[first]],
            reason=np.zeros(size, dtype=np.int64) if nodes.reason is None else nodes.reason,
            shift=np.zeros(size) if nodes.shift is None else nodes.shift,
            column=column,
            rows=rows,
            score=np.bincount(column, count * data.cells.score[cells], first.size) / rows,
            decided=data.cells.decision[cells[first]],
        )
        most = max(16, _KEPT // (groups * size))
        if first.size <= most:
            return part
        # Within a group the probability follows the score, so that like probabilities have like scores.
        joined = _alike(part.mean, np.zeros(first.size), part.decided, rows, most)
        total: FloatArray = np.asarray(np.bincount(joined, rows), dtype=np.float64)
        return part._replace(
            probability=np.array([np.bincount(joined, p) for p in part.probability * rows]) / total,
            column=joined[column],
            rows=total,
            score=np.bincount(joined, rows * part.score) / total,
            decided=np.bincount(joined, part.decided) > 0.0,
        )

    @property
    def mean(self) -> FloatArray:
        """Probability of each column, over the nodes."""
        result: FloatArray = self.weight @ self.probability
        return result

    def positives(self) -> FloatArray:
        """Expected positives among the missing rows that are decided positive, and negative, at each node."""
        sides = np.column_stack([self.rows * self.decided, self.rows * ~self.decided])
        result: FloatArray = self.probability @ sides
        return result


class Union(NamedTuple):
    """All rows as one set in which each group keeps its probabilities, and how many groups had to borrow theirs."""

    data: EvaluationSet
    nodes: Posterior
    borrowing: int


def union(
    sets: Sequence[EvaluationSet],
    parts: Sequence[Part | None],
    fit: Callable[[EvaluationSet], Posterior],
    *,
    shared: bool,
    paired: bool = False,
) -> Union:
    """The sum of the groups; those without a part borrow theirs from the others and the shape of a `fit` over all rows.

    `shared`: what is open about the labels of one group is open about those of the others in the same way, because all
    have learnt from the same reference rows. `paired`: it is one and the same, and the nodes of all groups belong
    together one by one. Else it is independent between groups; only the reason why labels are missing, where that is
    open, is one and the same in all of them.
    """
    lacking = sum(part is None and data.n_missing > 0 for data, part in zip(sets, parts, strict=True))
    whole = EvaluationSet.merged(sets) if any(part is None for part in parts) else None
    if whole is not None and all(part is None for part in parts):
        return Union(whole, fit(whole), lacking)
    fitted = [part for part in parts if part is not None] if whole is None else _filled(sets, parts, whole, fit(whole))
    number = _columns(fitted)
    start = 0
    apart = [np.full(data.cells.score.size, -1) for data in sets]
    for data, part, own in zip(sets, fitted, apart, strict=True):
        own[data.missing_cells] = number[start + part.column]
        start += part.rows.size
    numbers = np.concatenate(apart)
    data, places = EvaluationSet.merged_apart(sets, numbers)
    weight, probability, shift = _joint(fitted, number, shared=shared, paired=paired)
    return Union(data, Posterior(weight, probability, bucket=numbers[places][data.missing_cells], shift=shift), lacking)


def _filled(
    sets: Sequence[EvaluationSet], parts: Sequence[Part | None], whole: EvaluationSet, nodes: Posterior
) -> list[Part]:
    """The parts of all groups, those that lack one with what they borrow."""
    lenders = [
        Lender(data, part.weight, part.positives(), part.reason)
        for data, part in zip(sets, parts, strict=True)
        if part is not None
    ]
    shape, rng = Shape.of(whole, nodes), np.random.default_rng(11)  # the same nodes in every run
    lacking = [data for data, part in zip(sets, parts, strict=True) if part is None]
    found = iter(borrowed(lacking, lenders, shape, rng))
    return [
        Part.of(data, next(found), len(sets)) if part is None else part for data, part in zip(sets, parts, strict=True)
    ]


def learns_from_reference(model: LabelModel) -> bool:
    """Whether a model, or the one that it tilts, learns from rows that all groups share."""
    while isinstance(model, Tilted):
        model = label_model_from(model.base)
    return getattr(model, "reference", None) is not None


def in_words(groups: int, borrowing: int, said: Collection[str], *, shared: bool, late: bool = False) -> str:
    """What is assumed about all rows, given what each of the groups says that it assumes."""
    text = f"The sum of {groups:,} groups, in each of which missing labels follow the label model of that group."
    if late:
        text = (
            f"The sum of {groups:,} groups. When labels come is taken to be the same in all of them and learnt from "
            "all their rows; the level of each group is its own."
        )
    if len(said) == 1:
        (same,) = said
        start, _, what = same.partition("Assumed: ")
        text += f" In each: {same[:1].lower()}{same[1:]}" if start else f" Assumed in each: {what}"
    if shared:
        text += " They share the reference rows, so that their errors are taken to go together."
    return text + (f" {borrowed_in_words(borrowing)}" if borrowing else "")


def borrowed_in_words(borrowing: int) -> str:
    """Whose probabilities the groups take that have too few labels for a model."""
    what = "group lacks labels of a class and takes" if borrowing == 1 else "groups lack labels of a class and take"
    return f"{borrowing:,} {what} the level of any of the others."


def _columns(parts: Sequence[Part]) -> IntArray:
    """The number of each column of each part in the total: one of its own, or one for those that are alike."""
    if not parts:
        return np.zeros(0, dtype=np.int64)
    rows = np.concatenate([part.rows for part in parts])
    if rows.size <= _COLUMNS or all(part.weight.size == 1 for part in parts):
        return np.arange(rows.size)
    mean, score, decided = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("mean", "score", "decided")
    )
    return _alike(mean, score, decided, rows, _COLUMNS)


def _alike(mean: FloatArray, score: FloatArray, decided: BoolArray, rows: FloatArray, most: int) -> IntArray:
    """Numbers of columns, the same for those of one decision with like scores and probabilities; at most so many."""
    order = np.argsort(score, kind="stable")
    below: FloatArray = np.empty(rows.size)
    below[order] = (np.cumsum(rows[order]) - 0.5 * rows[order]) / rows.sum()
    log_odds = logit(np.clip(mean, 1e-9, 1.0 - 1e-9))
    owner: IntArray = np.arange(rows.size)
    for bins, step in _FINENESS:
        level = np.floor(log_odds / step).astype(np.int64)
        first, owner = merged_keys(decided.astype(np.int64), np.floor(bins * below).astype(np.int64), level)
        if first.size <= most:
            break
    return owner


def _joint(
    parts: Sequence[Part], number: IntArray, *, shared: bool, paired: bool
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Weights, probabilities and shifts of nodes that stand for all parts at once."""
    open_ = [part.weight.size for part in parts if part.weight.size > 1]
    as_they_are = paired or len(open_) < 2
    size = max(open_, default=1) if as_they_are else max(_NODES, *open_)
    weight: FloatArray = np.full(size, 1.0 / size)
    rng = np.random.default_rng(7)  # the same pairs in every run
    sums = np.zeros((int(number.max(initial=-1)) + 1, size))
    rows = np.bincount(number, np.concatenate([part.rows for part in parts]) if parts else None).astype(np.float64)
    before, shift, start = np.zeros((size, 2)), np.zeros(size), 0
    for part in parts:
        chosen: IntArray = np.zeros(size, dtype=np.int64)
        positives = part.positives()
        if as_they_are and part.weight.size > 1:
            chosen, weight = np.arange(size), part.weight
        elif part.weight.size > 1:
            chosen = _paired(part, positives, before, rng, shared=shared)
        own = number[start : start + part.rows.size]
        order = np.argsort(own, kind="stable")
        starts = np.flatnonzero(np.diff(own[order], prepend=-1))
        if starts.size:
            each = np.add.reduceat((part.probability * part.rows).T[order], starts, axis=0)
            sums[own[order][starts]] += each[:, chosen]
        before += positives[chosen]
        shift += part.shift[chosen] * part.rows.sum()
        start += own.size
    probability = np.clip(sums.T / np.maximum(rows, 1.0), 0.0, 1.0)
    return weight, probability, shift / rows.sum() if np.any(shift) else None


def _paired(
    part: Part, positives: FloatArray, before: FloatArray, rng: np.random.Generator, *, shared: bool
) -> IntArray:
    """Nodes of a part that stand, equally weighted, for all, in an order that leaves them uncorrelated with `before`.

    `positives` are what each expects, as `before` is of the groups before. Reasons keep their order: a mechanism
    that is open is the same in all groups, however likely each finds it.
    """
    size = len(before)
    kinds = int(part.reason.max()) + 1
    reached = np.cumsum(np.bincount(part.reason, part.weight, kinds))
    reason = np.searchsorted(reached / reached[-1], (np.arange(size) + 0.5) / size)
    chosen = np.empty(size, dtype=np.int64)
    for kind in np.unique(reason):
        own = np.flatnonzero(part.reason == kind)
        share = part.weight[own] / part.weight[own].sum()
        places = np.flatnonzero(reason == kind)
        if kind == BOTH:
            # How much the label matters is not known, but the same in all groups, and so are the nodes that say it.
            chosen[places] = own[np.arange(places.size) * own.size // places.size]
        else:
            chosen[places] = own[representatives(positives[own, 0], positives[own, 1], share, places.size)]
    if shared:
        return chosen  # in the order of what they say, which is the order of all groups
    place = np.where(reason == BOTH, np.arange(size) / size, rng.random((_PAIRINGS, size)))
    ways: IntArray = chosen[np.argsort(reason + place, axis=1)]
    # Within reasons: what these have in common between groups is meant to be there.
    here, there = positives.copy(), before - before.mean(axis=0)
    for kind in np.unique(reason):
        here[part.reason == kind] -= positives[chosen[reason == kind]].mean(axis=0)
    scale = np.outer(there.std(axis=0), here[chosen].std(axis=0))
    together = there.T @ here[ways] / np.where(scale > 0.0, scale, 1.0)
    best: IntArray = ways[int(np.argmin((together**2).sum(axis=(1, 2))))]
    return best
