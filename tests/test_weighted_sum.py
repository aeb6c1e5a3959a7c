"""Sums of unequal weights at several nodes: their ends exact, their laws those of the rows drawn one by one."""

import itertools

import numpy as np
import pytest

from darkmetrics._kernels.sums.row_by_row import Rows, row_by_row
from darkmetrics._kernels.sums.weighted_sum import weighted_sum_laws


def enumerated(weight, counts, p):
    """All sums of these rows with their masses at one node, by going through every labeling."""
    rows, chances = np.repeat(weight, counts), np.repeat(p, counts)
    labels = np.array(list(itertools.product([0, 1], repeat=rows.size)))
    return labels @ rows, np.prod(np.where(labels == 1, chances, 1.0 - chances), axis=1)


def cdf_of(values, masses, t):
    order = np.argsort(values)
    total = np.concatenate(([0.0], np.cumsum(masses[order])))
    return total[np.searchsorted(values[order], t, side="right")]


def drawn(rng, weight, p, size=400_000):
    """Sums of drawn labels, sorted."""
    # Seven digits, which is far more than so many draws can tell.
    small, chance = weight.astype(np.float32), p.astype(np.float32)
    parts = [(rng.random((size // 8, p.size), dtype=np.float32) < chance).astype(np.float32) @ small for _ in range(8)]
    return np.sort(np.concatenate(parts).astype(float))


@pytest.mark.parametrize("seed", range(12))
def test_law_of_few_rows_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    cells = int(rng.integers(2, 6))
    counts = rng.integers(1, 4, cells)
    weight = rng.lognormal(size=cells) if seed % 2 else rng.integers(1, 9, cells) / 4.0
    p = rng.random((3, cells))
    laws = weighted_sum_laws(weight, counts, np.arange(cells), p)
    assert laws is not None
    assert laws.exact
    for node in range(3):
        values, masses = enumerated(weight, counts, p[node])
        some = rng.choice(values, min(values.size, 200), replace=False)
        for t in np.concatenate([some * (1.0 + 1e-9), some * (1.0 - 1e-9)]):
            found = laws.pmf[node][laws.values <= t].sum()
            # Sums of up to 2^15 products, each right to 1e-16.
            assert found == pytest.approx(cdf_of(values, masses, t), abs=1e-12)


def whole_weights(rng, rows):
    return rng.integers(1, 12, rows) * 0.1


@pytest.mark.parametrize("rows", [40, 200])
def test_law_of_commensurate_weights_equals_convolution(rows):
    rng = np.random.default_rng(rows)
    weight, p = whole_weights(rng, rows), rng.random((2, rows))
    laws = weighted_sum_laws(weight, np.ones(rows, dtype=np.int64), np.arange(rows), p)
    assert laws is not None
    assert laws.exact
    for node in range(2):
        mass = np.zeros(1 + int(np.rint(weight.sum() / 0.1)))
        mass[0] = 1.0
        for w, chance in zip(np.rint(weight / 0.1).astype(int), p[node], strict=True):
            mass = (1.0 - chance) * mass + chance * np.roll(mass, w)
        places = np.rint(laws.values / 0.1).astype(int)
        assert np.abs(laws.pmf[node] - mass[places]).max() < 1e-13  # a few hundred roundings of numbers below 1


CASES = {
    "few rows, seldom positive": (24, 1.0, (0.05, 0.05)),
    "few rows, mostly positive": (24, 1.0, (0.9, 0.97)),
    "weights far apart": (40, 3.0, (0.1, 0.9)),
    "some hundred rows": (300, 1.0, (0.05, 0.4)),
    "rare": (2_000, 1.0, (1e-4, 2e-3)),
    "many rows": (2_000, 1.0, (0.1, 0.9)),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("nodes", [1, 6])
def test_law_of_unequal_weights_is_that_of_drawn_labels(name, nodes):
    size, sigma, (low, high) = CASES[name]
    rng = np.random.default_rng(size)
    weight = rng.lognormal(sigma=sigma, size=size)
    p = np.clip(rng.uniform(low, high, size) * rng.uniform(0.8, 1.0, (nodes, 1)), 0.0, 1.0)
    laws = weighted_sum_laws(weight, np.ones(size, dtype=np.int64), np.arange(size), p)
    assert laws is not None
    assert np.all(np.diff(laws.values) >= 0.0)
    assert laws.values[0] >= 0.0
    assert laws.values[-1] <= weight.sum() * (1.0 + 1e-12)
    for node in {0, nodes - 1}:
        sums = drawn(rng, weight, p[node], 400_000 if size < 1_000 else 80_000)
        t, sd = np.quantile(sums, np.linspace(0.02, 0.98, 97)), np.sqrt(np.sum(weight**2 * p[node] * (1.0 - p[node])))
        # Atoms may be moved by a step of the lattice, the width of all sums over a thousand.
        moved = max(0.01 * sd, float(weight.sum()) / 1024.0 if laws.rough else 0.0)
        slack = np.sqrt(np.log(2.0 / 1e-6) / (2.0 * sums.size))  # by which draws stray (DKW)
        drawn_cdf = np.searchsorted(sums, t, side="right") / sums.size
        above = cdf_of(laws.values, laws.pmf[node], t - moved) - drawn_cdf
        below = drawn_cdf - cdf_of(laws.values, laws.pmf[node], t + moved)
        assert max(above.max(), below.max()) < slack + 0.003


@pytest.mark.parametrize("name", CASES)
def test_ends_of_the_law_have_their_exact_masses(name):
    size, sigma, (low, high) = CASES[name]
    rng = np.random.default_rng(size)
    weight, p = rng.lognormal(sigma=sigma, size=size), rng.uniform(low, high, (3, size))
    laws = weighted_sum_laws(weight, np.ones(size, dtype=np.int64), np.arange(size), p)
    assert laws is not None
    none, every = np.prod(1.0 - p, axis=1), np.prod(p, axis=1)
    assert laws.pmf[:, laws.values == 0.0].sum(axis=1) == pytest.approx(none, rel=1e-9, abs=1e-29)
    top = laws.values > weight.sum() - 0.5 * weight.min()
    assert laws.pmf[:, top].sum(axis=1) == pytest.approx(every, rel=1e-9, abs=1e-29)


def test_mean_of_the_law_is_that_of_the_rows():
    rng = np.random.default_rng(5)
    weight, p = rng.lognormal(size=500), rng.uniform(0.01, 0.6, (4, 500))
    laws = weighted_sum_laws(weight, np.ones(500, dtype=np.int64), np.arange(500), p)
    assert laws is not None
    # What is shared between neighbouring places keeps its mean; only the ends are set apart.
    assert laws.pmf @ laws.values == pytest.approx(p @ weight, rel=1e-6)


def test_lattice_without_exact_ends_gets_the_empty_sum_wrong():
    """The control: on a lattice alone, sums below half a step are taken for none."""
    weight, p = np.array([1e-3] * 6 + [1.0, 2.0**0.5, 3.0**0.5, 5.0**0.5]), 0.1
    step = weight.sum() / 64
    mass = np.zeros(80)
    mass[0] = 1.0
    for place in np.rint(weight / step).astype(int):
        mass = (1.0 - p) * mass + p * np.roll(mass, place)
    assert mass[0] > 1.5 * (1.0 - p) ** weight.size


def test_a_thousand_unequal_rows_at_many_nodes_have_a_law_close_to_drawn_sums():
    """Most frequencies are damped away at every node: what is left is little work, however many factors there are."""
    rng = np.random.default_rng(0)
    rows, nodes, draws = 1_500, 128, 80_000
    weights = rng.lognormal(size=rows)
    # Nearly sure rows: few of them are small beside the spread of all.
    p = 1.0 / (1.0 + np.exp(-(rng.normal(2.5, 1.5, rows) + rng.normal(0.0, 0.3, (nodes, 1)))))
    laws = weighted_sum_laws(weights, np.ones(rows, dtype=np.int64), np.arange(rows), p)
    assert laws is not None
    for node in (0, 77):
        sample = drawn(rng, weights, p[node], draws)
        off = np.abs(np.searchsorted(sample, laws.values, side="right") / draws - np.cumsum(laws.pmf[node])).max()
        # A step of the lattice, and 0.007 of sampling (Dvoretzky-Kiefer-Wolfowitz, one in ten thousand).
        assert off <= laws.pmf[node].max() + 0.007


def test_nodes_that_are_nearly_sure_of_every_row_do_not_take_the_law_of_the_others_with_them():
    # As a reason that is not stated makes them: most nodes leave much open, some hardly anything. Their rows have
    # to be multiplied in one by one, which at every node was too much: there was no law, and labels were drawn.
    rng = np.random.default_rng(5)
    rows, nodes = 8000, 64
    weight = rng.lognormal(size=rows)
    level = np.concatenate([rng.normal(0.0, 1.0, nodes - 4), [-7.0, -6.0, -5.0, -4.5]])
    p = 1.0 / (1.0 + np.exp(-np.add.outer(level, rng.normal(-1.0, 1.0, 100))))
    column = rng.integers(0, 100, rows)
    laws = weighted_sum_laws(weight, np.ones(rows, dtype=np.int64), column, p)
    assert laws is not None
    # Sums near an end are no nearer to it than the smallest weight, which a node with six rows positive notices.
    np.testing.assert_allclose(laws.pmf @ laws.values, p[:, column] @ weight, rtol=1e-3)
    for node in (0, nodes - 4, nodes - 1):
        sums = drawn(rng, weight, p[node, column], size=20_000)
        t, step = np.quantile(sums, np.linspace(0.02, 0.98, 97)), np.median(np.diff(laws.values))
        drawn_cdf = np.searchsorted(sums, t, side="right") / sums.size
        above = cdf_of(laws.values, laws.pmf[node], t - step) - drawn_cdf
        below = drawn_cdf - cdf_of(laws.values, laws.pmf[node], t + step)
        # Atoms are moved by a step of the lattice; draws stray (DKW at one in a million).
        assert max(above.max(), below.max()) < np.sqrt(np.log(2e6) / (2 * sums.size)) + 0.003


@pytest.mark.parametrize("nodes", [2, 7])
def test_nodes_that_are_sure_of_different_labels_have_their_heaviest_atoms_where_they_are(nodes):
    """Each node leaves little open and holds other labels likely: what one counts from is in between for another."""
    rng = np.random.default_rng(nodes)
    rows = 36
    weight = rng.lognormal(sigma=3.0, size=rows)
    likely = rng.random((nodes, rows)) < 0.5
    doubt = rng.choice([1e-12, 1e-6, 1e-3, 0.05], (nodes, rows))
    p = np.where(likely, 1.0 - doubt, doubt)
    laws = weighted_sum_laws(weight, np.ones(rows, dtype=np.int64), np.arange(rows), p)
    assert laws is not None
    assert laws.rough
    step = np.median(np.diff(laws.values))
    # Sharing keeps the mean; what the series of rare outcomes leaves below zero, some 1e-4 of the mass, is cut off.
    assert laws.pmf @ laws.values == pytest.approx(p @ weight, abs=0.1 * step)
    for node in range(nodes):
        atom, mass = weight @ likely[node], np.prod(1.0 - doubt[node])
        here = np.abs(laws.values - atom) <= 1e-9 * atom
        # Labelings that differ in rows of no weight beside the step of a lattice may come to lie there as well.
        assert laws.pmf[node, here].sum() >= mass * (1.0 - 1e-9)
        # The labelings next to it, each a row that is the other way: within two steps, the one in which it goes
        # to and that by which the node's own places lie beside those of others.
        for row in np.argsort(-doubt[node])[:5]:
            turned = atom + weight[row] * (1.0 - 2.0 * likely[node, row])
            chance = mass * doubt[node, row] / (1.0 - doubt[node, row])
            assert laws.pmf[node, np.abs(laws.values - turned) <= 2.0 * step].sum() >= chance * (1.0 - 1e-9)


def test_rows_multiplied_in_for_many_nodes_have_the_law_of_each_node_by_itself():
    """The spread of one node comes of a heavy row, as that of others does not: they do not show what is left of it."""
    rng = np.random.default_rng(3)
    weight = np.append(rng.lognormal(sigma=0.3, size=200), [30.0, 31.0])
    p = np.tile(np.linspace(0.4, 0.45, 12)[:, None], weight.size)
    p[:, -2:] = 0.06
    p[:3, -1] = 0.5
    p[5, :-2], p[5, -2] = 0.06, 0.5
    rows = Rows(weight, np.ones(weight.size), np.arange(weight.size), p)
    flip = np.zeros(weight.size, dtype=np.bool_)
    together = row_by_row(rows, flip, 0.2, 0.0, 2_000)
    assert together is not None
    for node in range(12):
        alone = row_by_row(rows._replace(p=p[node : node + 1]), flip, 0.2, 0.0, 2_000)
        assert alone is not None
        # Frequencies at which less than 1e-13 is left may be left out.
        np.testing.assert_allclose(together[node], alone[0], rtol=0.0, atol=1e-13)
