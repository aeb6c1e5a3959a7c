"""Gauss rules of lattice laws, and moments of formulas, against sums over every point."""

import numpy as np
import pytest
import scipy.stats

from darkmetrics._kernels.sums.quadrature import NodeAxis, gauss_rule, product_moments, product_moments_by_node


def lattice(kind, size):
    """Values and masses of a law on whole numbers."""
    values = np.arange(size + 1.0)
    masses = {
        "binomial": lambda: scipy.stats.binom.pmf(values, size, 0.3),
        "rare": lambda: scipy.stats.binom.pmf(values, size, 2.0 / size),
        "uniform": lambda: np.full(size + 1, 1.0 / (size + 1)),
        "two bumps": lambda: (
            0.5 * (scipy.stats.poisson.pmf(values, 0.2 * size) + scipy.stats.poisson.pmf(values, 0.7 * size))
        ),
    }[kind]()
    keep = masses > 1e-18
    return values[keep], masses[keep] / masses[keep].sum()


def over_every_point(formula, axes, masses):
    """Mean and variance in long doubles, summed over the whole grid."""
    weight = np.ones((), dtype=np.longdouble)
    for mass in masses:
        weight = np.multiply.outer(weight, mass.astype(np.longdouble))
    value = formula(*np.meshgrid(*(axis.astype(np.longdouble) for axis in axes), indexing="ij"))
    mean = (weight * value).sum() / weight.sum()
    return float(mean), float((weight * (value - mean) ** 2).sum() / weight.sum())


@pytest.mark.parametrize("nodes", [1, 2, 5, 15, 20])
@pytest.mark.parametrize("kind", ["binomial", "rare", "uniform", "two bumps"])
def test_rule_integrates_polynomials_exactly(kind, nodes):
    values, masses = lattice(kind, 500)
    points, weights = gauss_rule(values, masses, nodes)
    assert points.size == weights.size <= max(nodes, values.size)
    centre = float(masses @ values)
    scale = float(np.sqrt(masses @ (values - centre) ** 2))
    for degree in range(2 * nodes):
        exact = float(masses @ ((values - centre) / scale) ** degree)
        size = float(masses @ np.abs((values - centre) / scale) ** degree)
        # Moments of high degree are sums of huge terms: relative to the absolute moment, rounding is what is left.
        assert abs(float(weights @ ((points - centre) / scale) ** degree) - exact) <= 1e-9 * size


def test_rule_of_a_short_law_is_the_law_itself():
    values, masses = np.array([1.0, 4.0, 9.0]), np.array([0.2, 0.5, 0.3])
    points, weights = gauss_rule(values, masses, 20)
    assert points.tolist() == values.tolist()
    assert weights.tolist() == masses.tolist()


FORMULAS = {
    "recall": lambda a, b: (a + 30.0) / (a + b + 50.0),
    "f1": lambda a, b: 2.0 * (a + 30.0) / (a + b + 700.0),
    "root": lambda a, b: np.sqrt((a + 30.0) / (a + b + 50.0) * (900.0 - b) / (1500.0 - a - b)),
    "product": lambda a, b: a * b,
    "constant": lambda a, b: 0.25 + 0.0 * a + 0.0 * b,
    "kink": lambda a, b: np.maximum(a, b),
    "jump": lambda a, b: np.where(a > b, 1.0, 0.0),
}


@pytest.mark.parametrize("kinds", [("binomial", "binomial"), ("rare", "uniform"), ("two bumps", "binomial")])
@pytest.mark.parametrize("name", FORMULAS)
def test_moments_of_a_formula_equal_the_sum_over_every_point(name, kinds):
    axes, masses = zip(*(lattice(kind, size) for kind, size in zip(kinds, (600, 400), strict=True)), strict=True)
    mean, variance = over_every_point(FORMULAS[name], axes, masses)
    found_mean, found_variance = product_moments(FORMULAS[name], axes, masses)
    # The two promises of the function: 1e-12 of the size of the values, 1e-10 of the variance.
    assert abs(found_mean - mean) <= 1e-12 * (abs(mean) + np.sqrt(variance))
    assert abs(found_variance - variance) <= 1e-10 * variance + 1e-26


def test_moments_of_one_variable_equal_the_sum_over_every_point():
    values, masses = lattice("binomial", 5_000)

    def formula(a):
        return 1.0 / (a + 10.0)

    mean, variance = over_every_point(formula, [values], [masses])
    found = product_moments(formula, [values], [masses])
    assert found == pytest.approx((mean, variance), rel=1e-10)


def test_moments_of_three_variables_equal_the_sum_over_every_point():
    variables = [lattice("binomial", 80), lattice("uniform", 30), lattice("binomial", 50)]
    axes, masses = [v for v, _ in variables], [m for _, m in variables]

    def formula(a, b, c):
        return (a + 0.4 * c + 5.0) / (a + b + c + 20.0)

    assert product_moments(formula, axes, masses) == pytest.approx(over_every_point(formula, axes, masses), rel=1e-10)


@pytest.mark.parametrize("held", [1, 2, 3])
def test_a_rule_has_no_more_nodes_than_values_that_hold_the_mass(held):
    """Of the others so little is held that it vanishes beside them: a norm of zero was divided by."""
    values, masses = np.arange(30.0) ** 2, np.zeros(30)
    masses[5 : 5 + held] = 1.0 / held
    points, weights = gauss_rule(values, masses, 12)
    assert points.size <= 12
    for power in range(2 * held):
        assert weights @ points**power == pytest.approx(masses @ values**power, rel=1e-9)


def test_a_formula_is_found_once_for_all_nodes_and_only_where_one_has_mass():
    # A few heavy rows: clusters of values far apart, nothing between them, each node with chances of its own.
    rng = np.random.default_rng(0)
    values = np.arange(6001.0)
    light = np.array([scipy.stats.binom.pmf(np.arange(61), 60, p) for p in rng.uniform(0.2, 0.8, 20)])
    pmf, chance = np.zeros((20, values.size)), rng.uniform(0.2, 0.8, (20, 1))
    for heavy in range(6):
        pmf[:, 1000 * heavy : 1000 * heavy + 61] += scipy.stats.binom.pmf(heavy, 5, chance) * light
    axes = [NodeAxis(values, pmf), NodeAxis(values, pmf[::-1].copy())]
    asked = 0

    def formula(x, y):
        nonlocal asked
        asked += np.broadcast(x, y).size
        return np.sqrt(x + 1.0) / (x + y + 5.0)

    mean, variance = product_moments_by_node(formula, axes, exact=True)
    held = np.flatnonzero(pmf.any(axis=0))
    table = np.sqrt(held[:, None] + 1.0) / (held[:, None] + held + 5.0)
    for node in range(20):
        mass = np.outer(pmf[node, held], pmf[19 - node, held])
        true = float((mass * table).sum())
        assert mean[node] == pytest.approx(true, rel=1e-12)
        assert variance[node] == pytest.approx(float((mass * (table - true) ** 2).sum()), rel=1e-10)
    # Beside the small rules: one table of 366 x 366 for all of them.
    assert asked < 1.1 * held.size**2
