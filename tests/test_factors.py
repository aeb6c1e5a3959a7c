"""Rows as factors of characteristic functions: each for itself, and those of one weight by how many are positive."""

import numpy as np
import pytest

from darkmetrics._kernels.sums import factors
from darkmetrics._kernels.sums.factors import blocks, multiply_in
from darkmetrics._kernels.sums.weighted_sum import weighted_sum_laws

# How many of the rows have which weight.
SHARES = {2: [0.7, 0.3], 5: [0.5, 0.2, 0.15, 0.1, 0.05]}


def test_rows_multiplied_in_together_have_the_product_of_their_characteristic_functions():
    rng = np.random.default_rng(5)
    nodes, size, t = 9, 40, np.linspace(0.0, 6.0, 50)
    p, column, weight = rng.random((nodes, 6)), rng.integers(0, 6, size), rng.lognormal(size=size)
    counts = rng.choice([1.0, 1.0, 1.0, 2.0, 5.0], size)
    which = np.flatnonzero(rng.random(size) < 0.8)
    found = np.ones((nodes, t.size), dtype=np.complex128)

    def moved(weights):
        return np.exp(1j * np.multiply.outer(weights, t)) - 1.0

    multiply_in(found, p, column, counts, weight, which, moved)
    expected = np.ones((nodes, t.size), dtype=np.complex128)
    for i in which:
        chance = p[:, column[i], None]
        expected *= (1.0 - chance + chance * np.exp(1j * t * weight[i])) ** counts[i]
    # Four factors of at most 1, as a polynomial with terms of up to 3^4 together.
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13)
    unchanged = np.ones((nodes, t.size), dtype=np.complex128)
    multiply_in(unchanged, p, column, counts, weight, which[:0], moved)
    assert np.all(unchanged == 1.0)


@pytest.mark.parametrize("shrink", [1.0, 0.7])
@pytest.mark.parametrize("kinds", [1, 3])
def test_rows_of_one_weight_are_multiplied_in_by_their_number(kinds, shrink, monkeypatch):
    """Whether a row stays on its place or is shared between two: then E is shorter than one."""
    rng = np.random.default_rng(kinds)
    nodes, size, t = 7, 1_500, np.linspace(0.0, 3.0, 300)
    p, column = rng.random((nodes, 40)) * rng.random((nodes, 1)), rng.integers(0, 40, size)
    weight, counts = rng.lognormal(size=kinds)[rng.integers(0, kinds, size)], rng.choice([1.0, 1.0, 3.0], size)
    which = np.flatnonzero(rng.random(size) < 0.9)
    start = rng.random((nodes, t.size)) + 1j * rng.random((nodes, t.size))

    def moved(weights):
        return shrink * np.exp(1j * np.multiply.outer(weights, t)) - 1.0

    expected = start.copy()
    for i in which:
        expected *= (1.0 + p[:, column[i], None] * moved(weight[[i]])) ** counts[i]
    found = start.copy()
    monkeypatch.setattr(factors, "_multiply_in_rows", nothing_left)
    multiply_in(found, p, column, counts, weight, which, moved)
    # Masses are right to 1e-16 each, some hundred of them.
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-13)


def nothing_left(cf, p, column, counts, weight, which, moved):
    assert which.size == 0, "rows of one weight are not counted"


def test_blocks_hold_every_node_once_and_all_its_frequencies():
    rng = np.random.default_rng(0)
    held = np.arange(500) < rng.integers(1, 500, 60)[:, None]
    found = blocks(held)
    assert np.array_equal(np.sort(np.concatenate([nodes for nodes, _ in found])), np.arange(60))
    for nodes, turns in found:
        assert not np.delete(held[nodes], turns, axis=1).any()


def convolved(weights, rows, p):
    """The law of a sum of whole weights at one node: one row after the other."""
    mass = np.ones(1)
    for weight, number, chances in zip(weights, rows, p, strict=True):
        for chance in np.repeat(chances, number):
            longer = np.zeros(mass.size + weight)
            longer[: mass.size] += (1.0 - chance) * mass
            longer[weight:] += chance * mass
            mass = longer
    return mass


@pytest.mark.parametrize("weights", [(1, 10), (3, 7, 17, 41, 60)])
def test_few_weights_at_many_nodes_have_the_law_of_their_convolution(weights, monkeypatch):
    """Nodes of little variance make most weights large there, and those of much variance hold few frequencies."""
    rng = np.random.default_rng(len(weights))
    nodes, columns, size = 24, 30, 4_000
    odds = rng.normal(-2.0, 1.0, columns) + np.linspace(-2.0, 1.0, nodes)[:, None]
    p = 1.0 / (1.0 + np.exp(-odds))
    kind, column = rng.choice(len(weights), size, p=SHARES[len(weights)]), rng.integers(0, columns, size)
    # The unit is told to nobody: such weights lie on no lattice.
    weight = np.array(weights)[kind] * np.where(kind == 0, 1.0 + 1e-9, 1.0)
    counted: list[None] = []
    by_number = factors._multiply_in_number
    monkeypatch.setattr(factors, "_multiply_in_number", lambda *given: counted.append(by_number(*given)))
    laws = weighted_sum_laws(weight, np.ones(size, dtype=np.int64), column, p)
    assert laws is not None
    assert counted
    assert not laws.exact
    assert not laws.rough
    number = np.array([np.bincount(column[kind == i], minlength=columns) for i in range(len(weights))])
    for node in (0, 8, 23):
        mass = convolved(weights, number, [p[node]] * len(weights))
        t = np.arange(mass.size) + 0.5
        # A density stands for atoms: it is between the cdf a step and the smallest weight before and behind.
        step = np.diff(laws.values).max(initial=0.0, where=laws.pmf[node][1:] > 1e-6) + weights[0]
        cdf = np.concatenate(([0.0], np.cumsum(laws.pmf[node])))
        above = cdf[np.searchsorted(laws.values, t - step)] - np.cumsum(mass)
        below = np.cumsum(mass) - cdf[np.searchsorted(laws.values, t + step)]
        assert max(above.max(), below.max()) < 1e-8
