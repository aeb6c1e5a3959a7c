"""How what is open about one set belongs together with what is open about others.

Labels of different rows are independent given the probabilities, and so are the probabilities if each set has learnt
its own. Not so where something that is open is one and the same: why labels are missing and how much the label matters,
delays that were learnt from all sets at once, or the reference rows that several have learnt from.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import representatives
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.label_models import Tilted, label_model_from
from darkmetrics.label_models.auto import BOTH, BY_REFERENCE, BY_SCORE
from darkmetrics.label_models.late_groups import GroupArrivals
from darkmetrics.posterior import Posterior, columns_of

# Nodes that stand for a posterior which several sets share.
_SHARED = 128
# Orders of calibrations that are tried, of which the one is taken that goes least with those of the sets before.
_ORDERS = 64
# Log odds beyond these are those of 0 and 1.
_SURE = 35.0
_SEED = 23


class Block(NamedTuple):
    """Cases in which what the sets have in common is known, and then they are independent.

    `weight` has the probability of each case; `shares` the chance of each node of each set in each case (cases x
    nodes), or one row where it is the same in all cases.
    """

    weight: FloatArray
    shares: tuple[FloatArray, ...]


class Coupling(NamedTuple):
    """Nodes of each set, blocks whose weights add up to one, and what is taken to be the same, in a sentence."""

    nodes: tuple[Posterior, ...]
    blocks: tuple[Block, ...]
    words: str


def coupled(evaluations: Sequence[Evaluation]) -> Coupling:
    """How the nodes of several evaluations of different rows belong together."""
    late, reference = _late(evaluations), _reference(evaluations)
    of_both = _of_both(evaluations) if not late else []
    nodes = [evaluation.nodes for evaluation in evaluations]
    if len(of_both) > 1:
        nodes = _apart(evaluations, of_both)
    blocks: list[Block] = []
    for length, reasons in _stretches(nodes):
        rows = [_row(one, reason) for one, reason in zip(nodes, reasons, strict=True)]
        same = [i for i in of_both if reasons[i] == BOTH]
        learnt = [i for i in reference if reasons[i] in (None, BY_REFERENCE)]
        if late:
            blocks.append(_one_by_one(nodes, rows, late, None, length))
        elif len(same) > 1:
            blocks.append(_one_by_one(nodes, rows, same, BOTH, length))
        elif len(learnt) > 1:
            share = _shared_part([evaluations[i] for i in learnt])
            together = _along(evaluations, nodes, rows, learnt)
            blocks.append(Block(length * share * together.weight, together.shares))
            blocks.append(Block(np.array([length * (1.0 - share)]), tuple(rows)))
        else:
            blocks.append(Block(np.array([length]), tuple(rows)))
    return Coupling(tuple(nodes), tuple(blocks), _words(evaluations, late, reference))


def _words(evaluations: Sequence[Evaluation], late: Sequence[int], reference: Sequence[int]) -> str:
    if late:
        return "When labels come was learnt from all of them at once, and what is open about it is the same in each."
    texts = []
    if sum(bool(evaluation.nodes.reasons) for evaluation in evaluations) > 1:
        texts.append("Why labels are missing is open; whatever the reason, it is taken to be the same in each.")
    if reference:
        texts.append(
            "They learnt from the same reference rows, and as far as these are what they learnt from, they err alike."
        )
    return " ".join(texts)


def _late(evaluations: Sequence[Evaluation]) -> list[int]:
    """The sets whose nodes belong together one by one, because delays were learnt from all of them at once."""
    found: dict[int, list[int]] = {}
    for i, evaluation in enumerate(evaluations):
        if isinstance(evaluation.model, GroupArrivals):
            found.setdefault(id(evaluation.model.arrivals), []).append(i)
    most = max(found.values(), key=len, default=[])
    return most if len(most) > 1 else []


def _of_both(evaluations: Sequence[Evaluation]) -> list[int]:
    """The sets for which an effect of the label is one of the reasons, with the same effects in the same order."""
    sizes = [
        0 if one.nodes.reason is None or not one.nodes.reasons else int(np.sum(one.nodes.reason == BOTH))
        for one in evaluations
    ]
    most = max(sizes, default=0)
    return [i for i, size in enumerate(sizes) if size == most > 0]


def _stretches(nodes: Sequence[Posterior]) -> list[tuple[float, list[int | None]]]:
    """Probabilities with the reason of each set: in all sets reasons have one order, and come up together."""
    reached = [
        None if not one.reasons or one.reason is None else np.cumsum(np.bincount(one.reason, one.weight))
        for one in nodes
    ]
    ends = np.unique(np.concatenate([[1.0], *(np.round(part / part[-1], 12) for part in reached if part is not None)]))
    found: list[tuple[float, list[int | None]]] = []
    start = 0.0
    for end in ends[ends > 0.0].tolist():
        middle = 0.5 * (start + end)
        reasons = [None if part is None else int(np.searchsorted(part / part[-1], middle)) for part in reached]
        found.append((end - start, reasons))
        start = end
    return found


def _row(nodes: Posterior, reason: int | None) -> FloatArray:
    """The chance of each node, given the reason."""
    weight = nodes.weight if reason is None else np.where(nodes.reason == reason, nodes.weight, 0.0)
    row: FloatArray = weight / weight.sum()
    return row[None, :]


def _one_by_one(
    nodes: Sequence[Posterior], rows: Sequence[FloatArray], which: Sequence[int], reason: int | None, length: float
) -> Block:
    """A case for each node of those sets, the same one in all of them."""
    shares = list(rows)
    weight: FloatArray = np.ones(1)
    for i in which:
        own = np.flatnonzero(rows[i][0] if reason is None else nodes[i].reason == reason)
        shares[i] = np.zeros((own.size, len(nodes[i])))
        shares[i][np.arange(own.size), own] = 1.0
        weight = rows[i][0, own]
    return Block(length * weight / weight.sum(), tuple(shares))


def _along(
    evaluations: Sequence[Evaluation], nodes: Sequence[Posterior], rows: Sequence[FloatArray], which: Sequence[int]
) -> Block:
    """Cases in which sets that learnt from the same rows err alike: nodes in the order of what they say."""
    shares = list(rows)
    for i in which:
        own = np.flatnonzero(rows[i][0] > 0.0)
        positives = _expected_positives(evaluations[i].data, nodes[i])[own]
        chosen = own[representatives(positives[:, 0], positives[:, 1], rows[i][0, own], _SHARED)]
        shares[i] = np.zeros((_SHARED, len(nodes[i])))
        shares[i][np.arange(_SHARED), chosen] = 1.0
    return Block(np.full(_SHARED, 1.0 / _SHARED), tuple(shares))


def _expected_positives(data: EvaluationSet, nodes: Posterior) -> FloatArray:
    """Expected positives among missing rows that are decided positive, and negative, at each node."""
    size = nodes.probability.shape[1]
    column = columns_of(nodes)
    decided = data.cells.decision[data.missing_cells]
    sides = [np.bincount(column, data.missing_counts * side, size) for side in (decided, ~decided)]
    result: FloatArray = nodes.probability @ np.column_stack(sides)
    return result


def _reference_of(evaluation: Evaluation) -> Any:
    """The reference rows that an evaluation has learnt from; None if there are none, or nothing depends on them."""
    model = evaluation.model
    while isinstance(model, Tilted):
        model = label_model_from(model.base)
    return getattr(model, "reference", None) if evaluation.data.n_missing else None


def _reference(evaluations: Sequence[Evaluation]) -> list[int]:
    """The sets that have learnt from the same reference rows."""
    given = [_reference_of(evaluation) for evaluation in evaluations]
    best: list[int] = []
    for first in given:
        if first is not None:
            alike = [i for i, other in enumerate(given) if other is not None and _same(first, other)]
            best = alike if len(alike) > len(best) else best
    return best if len(best) > 1 else []


def _same(one: Any, other: Any) -> bool:
    """Whether two references are the same rows."""
    if one is other:
        return True
    columns = []
    for given in (one, other):
        cells = getattr(given, "cells", None)
        columns.append(given if cells is None else (cells.score, cells.positives, cells.negatives))
    first, second = columns
    return len(first) == len(second) and all(
        np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(first, second, strict=True)
    )


def _shared_part(evaluations: Sequence[Evaluation]) -> float:
    """How far sets that learnt from the same reference rows err alike: the correlation of estimates of one curve.

    An estimate from R shared and n own labels has a variance of 1 / (R + n), of which the shared ones leave R / (R +
    n)^2 to each pair: a correlation of R / sqrt((R + n) (R + m)).
    """
    roots = []
    for evaluation in evaluations:
        reference = _reference_of(evaluation)
        shared = reference.n_labelled if isinstance(reference, EvaluationSet) else len(reference[1])
        own = 0 if getattr(evaluation.model, "data", "") == "reference" else evaluation.data.n_labelled
        roots.append(np.sqrt(shared / max(1.0, shared + own)))
    return float(np.mean(roots)) ** 2


def _apart(evaluations: Sequence[Evaluation], which: Sequence[int]) -> list[Posterior]:
    """The nodes, calibrations of the reason "both" in another order in each set: only effects of the label are shared.

    Its nodes are those of "by score", moved by an effect each. Left as they are, the first effect would go with the
    lowest calibration in every set, and calibrations would be taken to err alike.

    The first set keeps its order: that of the fewest labels, of which another order would change most. In the order in
    which sets are given, the change from one to the other would not mirror that from the other to the one.
    """
    nodes = [evaluation.nodes for evaluation in evaluations]
    before: list[FloatArray] = []
    for i in sorted(which, key=lambda i: _rank(evaluations[i])):
        one = nodes[i]
        both, score = np.flatnonzero(one.reason == BOTH), np.flatnonzero(one.reason == BY_SCORE)
        if not score.size:
            continue
        with np.errstate(divide="ignore"):
            odds = np.clip(logit(one.probability[score]), -_SURE, _SURE)
            moved = np.clip(logit(one.probability[both]), -_SURE, _SURE)
        turn = np.arange(both.size) % score.size
        order = _order(_expected_positives(evaluations[i].data, one)[score], turn, before)
        if np.array_equal(order, turn):
            continue
        probability = one.probability.copy()
        probability[both] = expit(odds[order] + moved - odds[turn])
        nodes[i] = replace(one, probability=probability)
    return nodes


def _rank(evaluation: Evaluation) -> tuple[float, ...]:
    """What sets are sorted by, whatever they are called and in whichever order they are given: labels, and all else."""
    data = evaluation.data
    said = evaluation.nodes.weight @ _expected_positives(data, evaluation.nodes)
    return data.n_labelled, data.n_missing, *said.tolist()


def _order(said: FloatArray, turn: IntArray, before: list[FloatArray]) -> IntArray:
    """The calibration that goes with each effect of the label, so that it goes as little as can be with sets before."""
    off = said - said.mean(axis=0)
    off = off / np.where(off.std(axis=0) > 0.0, off.std(axis=0), 1.0)
    tried = [turn]
    if before:
        rng = np.random.default_rng([_SEED, len(before)])
        tried = [rng.permutation(said.shape[0])[turn] for _ in range(_ORDERS)]
    costs = [sum(float(((other.T @ off[order]) ** 2).sum()) for other in before) for order in tried]
    best = tried[int(np.argmin(costs))]
    before.append(off[best])
    return best
