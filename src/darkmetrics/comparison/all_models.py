"""All models at once: the values that a metric has for each of them under the same labels."""

from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.auc.ranks import auc_from_sums
from darkmetrics._kernels.sums.enumeration import all_labelings, number_of_labelings
from darkmetrics.comparison.differences import Bound, group_of
from darkmetrics.functional import CountFunctional, LinearFunctional, RankFunctional
from darkmetrics.posterior import Posterior, columns_of

_FEW = 1 << 15
# Labelings that are drawn, and how many labels that may be in all.
DRAWS, _MOST_LABELS = 1 << 14, 1 << 24
# Ways in which all models can decide on a row, up to which each has a place in a table.
_MOST_KINDS = 1 << 20


class Together(NamedTuple):
    """Values of a metric (labelings x models), with the mass of each labeling, how they were found and of what."""

    values: FloatArray
    mass: FloatArray
    method: str
    scope: str = "rows"


# Of rows that all models decide alike: the groups of each model that they are in, and draws of their positives.
Counts: TypeAlias = tuple[IntArray, FloatArray]


def values_together(
    models: Sequence[Bound],
    missing: IntArray,
    nodes: Posterior,
    rng: np.random.Generator,
    known: dict[bytes, Counts] | None = None,
) -> Together:
    """The metric of every model under labels that they share: all labelings, or random ones.

    With many missing rows it is the sums of labels that are drawn: of counts, the positives among rows that all models
    decide alike; of others, from the Gaussian with their means and covariances at each node. `known`: counts that were
    drawn for other metrics of these rows, from the same state of `rng`.
    """
    if number_of_labelings(missing) <= _FEW:
        positives, chance = all_labelings(missing, nodes.on_all_cells.probability)
        return Together(_values(models, positives), nodes.weight @ np.atleast_2d(chance), "exact")
    node = shared_out(nodes.weight, DRAWS)
    if missing.sum() * DRAWS > _MOST_LABELS:
        counted = _by_counts(models, missing, nodes, node, rng, {} if known is None else known)
        if counted is not None:
            return Together(counted, np.full(node.size, 1.0 / node.size), "monte carlo")
        drawn = _by_sums(models, missing, nodes, node, rng)
        if drawn is not None:
            return Together(drawn, np.full(node.size, 1.0 / node.size), "gaussian")
        node = shared_out(nodes.weight, max(1000, int(_MOST_LABELS // missing.sum())))
    step = max(1, (1 << 22) // missing.size)
    parts = [
        _values(models, nodes.draw(k, missing, min(step, size - start), rng))
        for k, size in enumerate(np.bincount(node, minlength=len(nodes)).tolist())
        for start in range(0, size, step)
    ]
    return Together(np.concatenate(parts), np.full(node.size, 1.0 / node.size), "monte carlo")


def _values(models: Sequence[Bound], positives: IntArray) -> FloatArray:
    return np.stack([model.values(positives) for model in models], axis=1)


def shared_out(weight: FloatArray, number: int) -> IntArray:
    """The node of each draw: in proportion to the weights, nothing random added."""
    ends = np.rint(number * np.cumsum(weight) / weight.sum()).astype(np.int64)
    return np.repeat(np.arange(weight.size), np.diff(ends, prepend=0))


def _by_counts(
    models: Sequence[Bound],
    missing: IntArray,
    nodes: Posterior,
    node: IntArray,
    rng: np.random.Generator,
    known: dict[bytes, Counts],
) -> FloatArray | None:
    """Values from the positives among rows that all models decide alike; None where a metric is no function of counts.

    These are whole numbers that all models share, so that models tie as often as they do: of sums that were rounded
    one by one, an odd difference could be none. Each is drawn from the binomial law with its mean and (up to a whole
    number of trials) its variance.
    """
    functionals = [one.functional for one in models if isinstance(one.functional, CountFunctional)]
    if len(functionals) < len(models) or any(one.split.weight is not None for one in functionals):
        return None
    groups = np.stack([one.shared(group_of(of)) for one, of in zip(models, functionals, strict=True)])
    # Metrics of the same decisions have the same counts, from the same draws.
    key = blake2b(groups.tobytes()).digest()
    if key not in known:
        known[key] = _drawn_counts(groups, missing, nodes, node, rng)
    decided, drawn = known[key]
    values = []
    for functional, own in zip(functionals, decided, strict=True):
        value = functional.at([drawn[:, own == i].sum(axis=1) for i in range(len(functional.split.groups))])
        values.append(np.where(np.isnan(value), functional.fill, value))
    return np.stack(values, axis=1)


def _drawn_counts(
    groups: IntArray, missing: IntArray, nodes: Posterior, node: IntArray, rng: np.random.Generator
) -> Counts:
    """The groups (models x kinds of rows) that there are, and the positives of each kind (draws x kinds)."""
    size = int(groups.max(initial=0)) + 1
    if size ** len(groups) > _MOST_KINDS:
        decided, alike = np.unique(groups, axis=1, return_inverse=True)
    else:  # few enough to be counted, which takes no sorting
        code = np.ravel_multi_index(tuple(groups), (size,) * len(groups))
        there = np.flatnonzero(np.bincount(code))
        decided = np.stack(np.unravel_index(there, (size,) * len(groups)))
        alike = np.searchsorted(there, code)
    column, p = columns_of(nodes), nodes.probability
    sums = []
    for kind in range(decided.shape[1]):
        own = np.flatnonzero(alike.ravel() == kind)
        rows = np.bincount(column[own], missing[own], p.shape[1])
        some = np.flatnonzero(rows)
        chances = p[:, some]
        mean, squares = chances @ rows[some], chances**2 @ rows[some]
        # As many trials with one chance as have this mean and variance: no more than there are rows.
        trials = np.rint(np.divide(mean**2, squares, out=np.ones_like(mean), where=squares > 0.0))
        trials = np.maximum(trials, np.ceil(mean - 1e-9)).astype(np.int64)
        chance = np.clip(mean / np.maximum(trials, 1), 0.0, 1.0)
        sums.append(rng.binomial(trials[node], chance[node]).astype(np.float64))
    return decided, np.stack(sums, axis=1)


def _by_sums(
    models: Sequence[Bound], missing: IntArray, nodes: Posterior, node: IntArray, rng: np.random.Generator
) -> FloatArray | None:
    """Values from the sums of labels that each model's metric depends on; None where one depends on more."""
    columns: list[FloatArray] = []
    places = []
    for model in models:
        own = _columns_of(model)
        if own is None:
            return None
        places.append([_place_of(column, columns) for column in own])
    W = np.stack(columns, axis=1)
    size = W.shape[1]
    of_cell = columns_of(nodes)
    kinds = nodes.probability.shape[1]
    mass = np.stack([np.bincount(of_cell, missing * w, kinds) for w in W.T], axis=1)
    products = np.stack(
        [np.bincount(of_cell, missing * W[:, i] * W[:, j], kinds) for i in range(size) for j in range(size)], axis=1
    )
    p = nodes.probability
    mean, covariance = p @ mass, ((p * (1.0 - p)) @ products).reshape(-1, size, size)
    scale = np.sqrt(np.maximum(np.einsum("kii->ki", covariance), 1e-300))
    values, vectors = np.linalg.eigh(covariance / scale[:, :, None] / scale[:, None, :])
    root = scale[:, :, None] * vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
    normal = rng.standard_normal((node.size, size))
    sums = mean[node] + np.einsum("dij,dj->di", root[node], normal)
    found = [_from_sums(model, sums[:, own]) for model, own in zip(models, places, strict=True)]
    return np.stack(found, axis=1)


def _place_of(column: FloatArray, columns: list[FloatArray]) -> int:
    """Where the column is, added if it is new: drawn twice, one sum would differ by rounding, and no tie be one."""
    for place, known in enumerate(columns):
        if np.array_equal(known, column):
            return place
    columns.append(column)
    return len(columns) - 1


def _columns_of(model: Bound) -> list[FloatArray] | None:
    """What a positive label of each shared missing cell adds to the sums of a metric."""
    functional = model.functional
    if isinstance(functional, CountFunctional):
        weight = np.ones(functional.missing.size) if functional.split.weight is None else functional.split.weight
        columns = []
        for rows in functional.split.groups:
            column = np.zeros(functional.missing.size)
            column[rows] = weight[rows]
            columns.append(model.shared(column))
        return columns
    if isinstance(functional, RankFunctional) and not functional.data.full_ties:
        weight = functional.data.weight
        return [model.shared(weight), model.shared(weight * functional.data.rho / functional.data.total)]
    return [model.shared(functional.weight)] if isinstance(functional, LinearFunctional) else None


def _from_sums(model: Bound, sums: FloatArray) -> FloatArray:
    functional = model.functional
    if isinstance(functional, CountFunctional):
        value = functional.at([np.clip(sums[:, i], 0.0, total) for i, total in enumerate(functional.totals)])
    elif isinstance(functional, RankFunctional):
        data = functional.data
        positive = np.clip(data.known_p + sums[:, 0], 0.0, data.total)
        value = functional.affine(auc_from_sums(data, positive, data.known_r + data.total * sums[:, 1], 0.0))
    else:
        assert isinstance(functional, LinearFunctional)
        value = functional.constant + sums[:, 0]
    return np.where(np.isnan(value), functional.fill, value)
