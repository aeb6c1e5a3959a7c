"""The one likelihood of labels and their absence, against the same formula written row by row in plain Python."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
from scipy import stats

from darkmetrics._kernels.posterior.likelihood import LabelLikelihood
from darkmetrics._kernels.posterior.logistic import cut_odds, product_1p

COLUMNS = [None, 1, 2]
SEEDS = range(4)


def random_likelihood(seed, columns, *, heavy=False, rows=7, reference=4):
    rng = np.random.default_rng([seed, 0 if columns is None else columns])
    X = np.column_stack([np.ones(rows), rng.normal(size=(rows, 2))])
    Z = None
    if columns is not None:
        Z = np.column_stack([np.ones(rows), rng.normal(size=rows)])[:, :columns]
    size = 3 + 2 * (columns or 0)
    return LabelLikelihood(
        X=X,
        Z=Z,
        positives=rng.integers(0, 4, rows).astype(float),
        negatives=rng.integers(0, 4, rows).astype(float),
        missing=rng.integers(0, 4, rows).astype(float),
        X_reference=np.column_stack([np.ones(reference), rng.normal(size=(reference, 2))]),
        positives_reference=rng.integers(0, 3, reference).astype(float),
        negatives_reference=rng.integers(0, 3, reference).astype(float),
        prior_mean=rng.normal(size=size),
        prior_scale=rng.uniform(0.5, 3.0, size),
        heavy=rng.random(size) < 0.5 if heavy else None,
    )


def without_reference(likelihood):
    none = np.zeros(0)
    return replace(likelihood, X_reference=np.zeros((0, 3)), positives_reference=none, negatives_reference=none)


def random_parameters(likelihood, seed, count=5, scale=1.0):
    return scale * np.random.default_rng([seed, 1]).normal(size=(count, likelihood.prior_mean.size))


def log_posterior_by_rows(likelihood, parameters, m=math):
    """Labelled rows p_y (1 - a_y), missing rows p a_1 + (1 - p) a_0, reference rows p_y: one row after the other."""

    def chance(x):
        return 1 / (1 + m.exp(-x))

    def dot(row, values):
        return sum(a * b for a, b in zip(row.tolist(), values, strict=True))

    width = likelihood.X.shape[1]
    columns = 0 if likelihood.Z is None else likelihood.Z.shape[1]
    theta, c, d = parameters[:width], parameters[width : width + columns], parameters[width + columns :]
    first = [a + b / 2 for a, b in zip(c, d, strict=True)]
    second = [a - b / 2 for a, b in zip(c, d, strict=True)]
    total = 0 * m.exp(0)
    for i in range(len(likelihood.X)):
        p = chance(dot(likelihood.X[i], theta))
        seen, seen0 = p, 1 - p
        if likelihood.Z is not None:
            a1, a0 = chance(dot(likelihood.Z[i], first)), chance(dot(likelihood.Z[i], second))
            seen, seen0 = p * (1 - a1), (1 - p) * (1 - a0)
            total += float(likelihood.missing[i]) * m.log(p * a1 + (1 - p) * a0)
        total += float(likelihood.positives[i]) * m.log(seen) + float(likelihood.negatives[i]) * m.log(seen0)
    for row, yes, no in zip(
        likelihood.X_reference, likelihood.positives_reference, likelihood.negatives_reference, strict=True
    ):
        p = chance(dot(row, theta))
        total += float(yes) * m.log(p) + float(no) * m.log(1 - p)
    for j, value in enumerate(parameters):
        mean, scale = float(likelihood.prior_mean[j]), float(likelihood.prior_scale[j])
        z = (value - mean) / scale
        if likelihood.heavy is not None and likelihood.heavy[j]:
            total -= m.log(m.pi * scale * (1 + z * z))
        else:
            total -= z * z / 2 + m.log(scale * m.sqrt(2 * m.pi))
    return total


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("seed", SEEDS)
def test_log_posterior_equals_a_loop_over_rows(seed, columns, heavy):
    likelihood = random_likelihood(seed, columns, heavy=heavy)
    parameters = random_parameters(likelihood, seed)
    expected = [log_posterior_by_rows(likelihood, row.tolist()) for row in parameters]
    # Sums of some fifty logs of size one: rounding stays near 1e-14.
    np.testing.assert_allclose(likelihood.log_posterior(parameters), expected, rtol=1e-13)


@pytest.mark.parametrize("columns", COLUMNS)
def test_log_posterior_does_not_depend_on_the_size_of_the_portions(columns, monkeypatch):
    likelihood = random_likelihood(0, columns)
    parameters = random_parameters(likelihood, 0, count=20)
    whole = likelihood.log_posterior(parameters)
    monkeypatch.setattr("darkmetrics._kernels.posterior.likelihood._PORTION", 21)  # three draws at a time
    # Another order of summation, nothing else.
    np.testing.assert_allclose(likelihood.log_posterior(parameters), whole, rtol=1e-14)


def test_without_missingness_rows_without_a_label_say_nothing():
    likelihood = random_likelihood(1, None)
    parameters = random_parameters(likelihood, 1)
    emptied = replace(likelihood, missing=np.zeros_like(likelihood.missing))
    assert likelihood.log_posterior(parameters).tolist() == emptied.log_posterior(parameters).tolist()


def test_a_constant_column_equals_a_score_column_of_zeros():
    # One column takes the short way: one number per draw stands for all rows.
    likelihood = random_likelihood(2, 1)
    wide = replace(
        likelihood,
        Z=np.column_stack([likelihood.Z, np.zeros(likelihood.X.shape[0])]),
        prior_mean=np.insert(likelihood.prior_mean, [4, 5], 0.0),
        prior_scale=np.insert(likelihood.prior_scale, [4, 5], 1.0),
    )
    parameters = random_parameters(likelihood, 2)
    filled = np.insert(parameters, [4, 5], 0.0, axis=1)
    flat = 2 * stats.norm.logpdf(0.0)  # the prior of the two parameters that play no part
    np.testing.assert_allclose(wide.log_posterior(filled), likelihood.log_posterior(parameters) + flat, rtol=1e-14)
    np.testing.assert_allclose(wide.share(filled), likelihood.share(parameters), rtol=1e-13)
    few, many = likelihood.expand(parameters[0]), wide.expand(filled[0])
    kept = [0, 1, 2, 3, 5]
    np.testing.assert_allclose(many.gradient[kept], few.gradient, rtol=1e-12)
    np.testing.assert_allclose(many.precision[np.ix_(kept, kept)], few.precision, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("seed", range(2))
def test_gradient_and_precision_are_those_of_the_loop_over_rows(seed, columns, heavy):
    likelihood = random_likelihood(seed, columns, heavy=heavy, rows=4, reference=2)
    point = random_parameters(likelihood, seed)[0]
    found = likelihood.expand(point)
    size = point.size
    with mpmath.workdps(60):
        step = mpmath.mpf(10) ** -15

        def at(*moves):
            values = [mpmath.mpf(value) for value in point.tolist()]
            for index, sign in moves:
                values[index] += sign * step
            return log_posterior_by_rows(likelihood, values, mpmath)

        assert found.value == pytest.approx(float(at()), rel=1e-13)
        gradient = [float((at((i, 1)) - at((i, -1))) / (2 * step)) for i in range(size)]
        hessian = np.array(
            [
                [
                    float(sum(s * t * at((i, s), (j, t)) for s in (1, -1) for t in (1, -1)) / (4 * step**2))
                    for j in range(size)
                ]
                for i in range(size)
            ]
        )
    # With 60 digits and a step of 1e-15 central differences are right to 1e-29; what is left is the code's rounding.
    np.testing.assert_allclose(found.gradient, gradient, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(found.precision, -hessian, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("columns", COLUMNS)
def test_share_is_bayes_rule(columns):
    likelihood = random_likelihood(3, columns)
    parameters = random_parameters(likelihood, 3)
    shares = likelihood.share(parameters)
    for k, row in enumerate(parameters):
        np.testing.assert_allclose(likelihood.share(row), shares[k], rtol=1e-15)  # sums in another order
        for i in range(likelihood.X.shape[0]):
            p = 1 / (1 + math.exp(-float(likelihood.X[i] @ row[:3])))
            a1 = a0 = 1.0
            if columns is not None:
                c, d = row[3 : 3 + columns], row[3 + columns :]
                a1 = 1 / (1 + math.exp(-float(likelihood.Z[i] @ (c + d / 2))))
                a0 = 1 / (1 + math.exp(-float(likelihood.Z[i] @ (c - d / 2))))
            # A handful of operations on numbers near one.
            assert shares[k, i] == pytest.approx(p * a1 / (p * a1 + (1 - p) * a0), rel=1e-13)


def test_without_rows_the_posterior_is_the_prior():
    none = np.zeros(0)
    likelihood = LabelLikelihood(
        X=np.zeros((0, 1)),
        Z=np.zeros((0, 1)),
        positives=none,
        negatives=none,
        missing=none,
        X_reference=np.zeros((0, 1)),
        positives_reference=none,
        negatives_reference=none,
        prior_mean=np.array([0.3, -1.0, 2.0]),
        prior_scale=np.array([1.5, 0.2, 3.0]),
        heavy=np.array([False, True, True]),
    )
    points = np.random.default_rng(0).normal(size=(9, 3)) * 5.0
    expected = (
        stats.norm.logpdf(points[:, 0], 0.3, 1.5)
        + stats.cauchy.logpdf(points[:, 1], -1.0, 0.2)
        + stats.cauchy.logpdf(points[:, 2], 2.0, 3.0)
    )
    np.testing.assert_allclose(likelihood.log_posterior(points), expected, rtol=1e-13)


def test_many_rows_of_a_kind_count_like_as_many_rows():
    likelihood = random_likelihood(0, 2)
    one = np.ones(likelihood.X.shape[0])
    rows = [
        np.repeat(np.arange(one.size), getattr(likelihood, name).astype(int)) for name in ("positives", "negatives")
    ]
    gone = np.repeat(np.arange(one.size), likelihood.missing.astype(int))
    index = np.concatenate([*rows, gone])
    kind = np.repeat([0, 1, 2], [rows[0].size, rows[1].size, gone.size])
    long = replace(
        likelihood,
        X=likelihood.X[index],
        Z=likelihood.Z[index],
        positives=(kind == 0).astype(float),
        negatives=(kind == 1).astype(float),
        missing=(kind == 2).astype(float),
    )
    parameters = random_parameters(likelihood, 0)
    np.testing.assert_allclose(long.log_posterior(parameters), likelihood.log_posterior(parameters), rtol=1e-13)


@pytest.mark.parametrize("columns", COLUMNS)
@pytest.mark.parametrize("size", [30.0, 1e3, 1e6])
@pytest.mark.parametrize("reference", [True, False])  # without, scores go in bundles
def test_far_out_everything_stays_finite(columns, size, reference):
    # Warnings are errors here, so overflow, 0/0 and the log of nothing would show.
    likelihood = random_likelihood(0, columns, heavy=True)
    if not reference:
        likelihood = without_reference(likelihood)
    likelihood = replace(likelihood, missing=1e9 * likelihood.missing, positives=1e9 * likelihood.positives)
    for point in random_parameters(likelihood, 0, count=20, scale=size):
        found = likelihood.expand(point)
        assert math.isfinite(found.value)
        assert np.isfinite(found.gradient).all()
        assert np.isfinite(found.precision).all()
        share = likelihood.share(point)
        assert ((share >= 0.0) & (share <= 1.0)).all()


def test_far_out_the_value_is_right_to_the_last_digits():
    likelihood = random_likelihood(1, 2, rows=3, reference=1)
    for point in random_parameters(likelihood, 1, count=5, scale=40.0):
        with mpmath.workdps(200):
            expected = log_posterior_by_rows(likelihood, [mpmath.mpf(x) for x in point.tolist()], mpmath)
        assert likelihood.log_posterior(point[None, :])[0] == pytest.approx(float(expected), rel=1e-13)


# ------------------------------------------------------------------------------------------- straight coordinates


def by_label_alone(seed):
    return without_reference(random_likelihood(seed, 1))


@pytest.mark.parametrize("seed", SEEDS)
def test_bending_undoes_straightening_and_keeps_volumes(seed):
    likelihood = by_label_alone(seed)
    parameters = random_parameters(likelihood, seed, scale=3.0)
    straight = likelihood.straighten(parameters)
    np.testing.assert_allclose(likelihood.bend(straight), parameters, rtol=1e-12, atol=1e-12)
    assert np.abs(straight - parameters).max() > 0.1
    for point in parameters:
        slope = likelihood.bend_slope(point)
        assert np.linalg.det(slope) == pytest.approx(1.0, abs=1e-12)
        centre, step = likelihood.straighten(point), 1e-5
        for j in range(point.size):
            move = step * np.eye(point.size)[j]
            expected = (likelihood.bend(centre + move) - likelihood.bend(centre - move)) / (2.0 * step)
            # Central differences: an error of step squared times the third derivative, and rounding over step.
            np.testing.assert_allclose(slope[:, j], expected, atol=1e-8)


def test_along_d_the_rows_with_a_label_keep_their_odds_and_their_number():
    likelihood = by_label_alone(0)
    positives, negatives = likelihood.positives.sum() + 0.5, likelihood.negatives.sum() + 0.5
    share = positives / (positives + negatives)
    straight = likelihood.straighten(random_parameters(likelihood, 0)[0])
    kept = []
    for d in (-3.0, 0.0, 2.0):
        straight[4] = d
        theta0, _, _, c, _ = likelihood.bend(straight)
        odds1, odds0 = math.exp(c + d / 2), math.exp(c - d / 2)  # of being missing
        kept.append([theta0 - math.log1p(odds1) + math.log1p(odds0), share * odds1 + (1 - share) * odds0])
    np.testing.assert_allclose(kept, [kept[0]] * 3, rtol=1e-12)


@pytest.mark.parametrize("columns", COLUMNS)
def test_where_reference_rows_tell_nothing_is_bent(columns):
    likelihood = random_likelihood(0, columns)
    point = random_parameters(likelihood, 0)
    assert likelihood.bend(point).tolist() == likelihood.straighten(point).tolist() == point.tolist()
    assert likelihood.bend_slope(point[0]).tolist() == np.eye(point.shape[1]).tolist()


@pytest.mark.parametrize("sizes", [[0], [1], [5, 2], [3, 3, 3, 3], [208, 208, 208, 17]])
def test_sums_of_logarithms_by_products_are_those_of_mpmath(sizes):
    rng = np.random.default_rng(sizes[0])
    odds = np.exp(rng.uniform(-60.0, 120.0, (2, sum(sizes))))
    starts = np.cumsum([0, *sizes])
    found = np.log(product_1p(odds.copy(), sizes))
    for row, own in zip(odds, found, strict=True):
        for bundle in range(sizes[0]):
            members = [row[start + bundle] for start, size in zip(starts, sizes, strict=False) if bundle < size]
            exact = float(mpmath.fsum(mpmath.log(1 + mpmath.mpf(x)) for x in members))
            # A unit in the last place of 1 for each number, and of the sum.
            assert own[bundle] == pytest.approx(exact, rel=1e-15, abs=2.3e-16 * len(members))


def test_odds_are_cut_where_one_more_makes_no_difference():
    log_odds = np.array([[1.0, 90.0, -3.0], [2.0, 79.0, 81.0]])
    odds, large, more = cut_odds(log_odds.copy())
    assert large.tolist() == [1, 2]
    found = np.log(product_1p(odds, [3])).sum(axis=1) + more.sum(axis=1)
    assert found == pytest.approx(np.logaddexp(0.0, log_odds).sum(axis=1), rel=1e-15)


@pytest.mark.parametrize("scale", [0.3, 3.0, 30.0])  # the last has draws that are far out, and odds beyond the cut
@pytest.mark.parametrize("missingness", [False, True])
def test_bundles_of_rows_have_the_likelihood_of_their_scores(scale, missingness):
    rng = np.random.default_rng(1)
    n = 60
    counts = rng.multinomial(1, [0.3, 0.3, 0.4], n).T.astype(float)
    counts[0, :3] += 1.0  # a few scores have two rows
    counts[:, 3:6] *= 0.5  # some have half a row, and some none
    counts[:, 6:9] = 0.0
    score, none = rng.normal(size=n), np.zeros(0)
    size = 4 if missingness else 2
    likelihood = LabelLikelihood(
        X=np.column_stack([np.ones(n), 9.0 * score]),
        Z=np.ones((n, 1)) if missingness else None,
        positives=counts[0],
        negatives=counts[1],
        missing=counts[2],
        X_reference=np.zeros((0, 2)),
        positives_reference=none,
        negatives_reference=none,
        prior_mean=np.zeros(size),
        prior_scale=np.ones(size),
    )
    assert likelihood._alike is not None
    parameters = scale * rng.normal(size=(50, size))
    by_score = likelihood._by_score(*likelihood._parts(parameters))
    # Rounding errors of sums of 60 numbers of up to a thousand.
    assert likelihood._log_likelihood(parameters) == pytest.approx(by_score, rel=1e-13, abs=1e-12)
