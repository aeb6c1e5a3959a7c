"""Laws where few rows decide, where hardly anything happens, and where one cell holds many rows."""

import math

import numpy as np
import pytest
import scipy.stats

import darkmetrics as dm
from darkmetrics.metrics import FN, TP

# Draws of the reference sampler, and the distance from its law that it exceeds once in a million samples (DKW).
DRAWS = 20_000
DKW = math.sqrt(math.log(2.0 / 1e-6) / (2.0 * DRAWS))


def sampled_auc(y, score, p, weight, *, full_ties=False):
    """ROC-AUC of random labelings from its definition: weight of negatives below each positive."""
    rng = np.random.default_rng(1)
    order = np.argsort(score, kind="stable")
    y, score, weight = np.asarray(y)[order], np.asarray(score)[order], np.asarray(weight)[order]
    missing = np.isnan(y)
    first = np.searchsorted(score, score, side="left")
    last = np.searchsorted(score, score, side="right")
    chance = np.asarray(p)[order]
    values = []
    for _ in range(DRAWS // 500):
        labels = np.where(missing, rng.random((500, y.size)) < chance, y == 1)
        negative = np.concatenate([np.zeros((500, 1)), np.cumsum(weight * ~labels, axis=1)], axis=1)
        tied = negative[:, last] - negative[:, first]
        below = negative[:, first] + (1.0 if full_ties else 0.5) * tied
        pairs = (weight * labels).sum(axis=1) * negative[:, -1]
        with np.errstate(invalid="ignore"):
            values.append((weight * labels * below).sum(axis=1) / pairs)
    return np.concatenate(values)


def distance(distribution, sample):
    """Kolmogorov-Smirnov distance between a law and a sample, values that rounding alone tells apart being one."""
    ordered = np.sort(sample[~np.isnan(sample)])
    at = np.unique(np.round(ordered, 12))
    return float(
        np.max(np.abs(distribution.cdf(at + 1e-11) - np.searchsorted(ordered, at + 1e-11, side="right") / ordered.size))
    )


def leading_rank(n, *, seed=0):
    """A hundred missing rows of middle rank and one above all others: the one decides."""
    rng = np.random.default_rng(seed)
    score = np.concatenate([rng.random(n), 0.5 + 1e-3 * rng.random(100), [2.0]])
    y = np.concatenate([(rng.random(n) < score[:n]).astype(float), np.full(101, np.nan)])
    return y, score, np.full(y.size, 0.5), np.ones(y.size)


def leading_weight(largest, *, seed=0):
    """A hundred missing rows of weight 1, except for one."""
    rng = np.random.default_rng(seed)
    score = rng.random(200)
    y = np.concatenate([(rng.random(100) < score[:100]).astype(float), np.full(100, np.nan)])
    weight = np.ones(200)
    weight[150] = largest
    return y, score, np.full(200, 0.5), weight


CASES = {
    "leading rank, 500 rows": leading_rank(500),
    "leading rank, 2,000 rows": leading_rank(2000),
    "leading weight 10": leading_weight(10.0),
    "leading weight 100": leading_weight(100.0),
    "leading weight 1,000": leading_weight(1000.0),
}


@pytest.mark.parametrize("ties", ["half", "full"])
@pytest.mark.parametrize("name", CASES)
def test_roc_auc_is_close_to_sampled_scenarios_when_one_row_leads(name, ties):
    y, score, p, weight = CASES[name]
    metric = dm.metrics.roc_auc(ties=ties)
    distribution = dm.evaluate(y, score, missingness=dm.missing.Fixed(p), sample_weight=weight, metrics=metric)[
        metric.name
    ]
    # 0.005 is what is promised for 60 missing rows and more.
    assert distance(distribution, sampled_auc(y, score, p, weight, full_ties=ties == "full")) <= 0.005 + DKW


@pytest.mark.parametrize("name", ["leading rank, 2,000 rows", "leading weight 100"])
def test_gaussian_fails_the_same_test_when_one_row_leads(name):
    """The control."""
    y, score, p, weight = CASES[name]
    distribution = dm.evaluate(
        y, score, missingness=dm.missing.Fixed(p), sample_weight=weight, metrics="roc_auc", method="gaussian"
    )["roc_auc"]
    assert distance(distribution, sampled_auc(y, score, p, weight)) > 0.005 + DKW


def test_roc_auc_is_close_to_sampled_scenarios_where_twelve_weights_lead():
    rng = np.random.default_rng(2)
    score, weight = rng.random(300), np.ones(300)
    weight[200:212] = 10.0 ** np.arange(-1, 5).repeat(2)
    y = np.concatenate([(rng.random(200) < 0.5).astype(float), np.full(100, np.nan)])
    distribution = dm.evaluate(y, score, missingness=dm.missing.Fixed(0.5), sample_weight=weight, metrics="roc_auc")[
        "roc_auc"
    ]
    assert distance(distribution, sampled_auc(y, score, np.full(300, 0.5), weight)) <= 0.005 + DKW


def test_missing_rows_of_weight_zero_do_not_count():
    rng = np.random.default_rng(3)
    score = rng.random(103)
    y = np.concatenate([np.zeros(3), np.full(100, np.nan)])
    weight = np.concatenate([np.ones(6), np.zeros(97)])
    some = dm.evaluate(y[:6], score[:6], missingness=dm.missing.Fixed(0.5), zero_division=np.nan)
    for method in ("exact", "gaussian"):
        everything = dm.evaluate(
            y,
            score,
            missingness=dm.missing.Fixed(0.5),
            sample_weight=weight,
            zero_division=np.nan,
            method=method,
            metrics=list(some),
        )
        for name in ("recall", "roc_auc"):
            # All three missing rows of weight 1 are negative with chance 1/8: then there is no positive.
            assert everything[name].undefined == pytest.approx(0.125, abs=1e-12)
        if method == "exact":
            assert everything["roc_auc"].mean() == pytest.approx(some["roc_auc"].mean(), abs=1e-12)


def test_one_weight_for_all_rows_is_none():
    rng = np.random.default_rng(4)
    score = rng.random(200)
    y = np.where(rng.random(200) < 0.3, np.nan, rng.random(200) < score)
    plain = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics="roc_auc")["roc_auc"]
    weighted = dm.evaluate(
        y, score, missingness=dm.missing.Fixed(score), metrics="roc_auc", sample_weight=np.full(200, 2.0)
    )["roc_auc"]
    assert weighted.method == plain.method
    assert weighted.mean() == pytest.approx(plain.mean(), abs=1e-14)


@pytest.mark.parametrize("weight", [0.1, 1.0 / 3.0, 0.7])
@pytest.mark.parametrize("method", ["exact", "monte_carlo"])
def test_what_rounding_leaves_of_a_denominator_is_zero_in_law_and_bounds(weight, method):
    rng = np.random.default_rng(41)
    metric = dm.metrics.ConfusionMetric(name="either_sign", formula=TP / (TP + -1.0 * FN))
    score = rng.integers(0, 5, 60) / 4.0
    y = np.where(rng.random(60) < 0.6, np.nan, rng.random(60) < 0.5)
    asked = {
        "threshold": 0.6,
        "metrics": metric,
        "method": method,
        "zero_division": np.nan,
        "missingness": dm.missing.Fixed(0.4),
    }
    # Whole numbers are free of rounding, and the metric is one of shares: weights do not change it.
    whole = dm.evaluate(y, score, rng=0, **asked)["either_sign"]
    distribution = dm.evaluate(y, score, rng=0, sample_weight=np.full(60, weight), **asked)["either_sign"]
    assert whole.undefined > 0.01
    assert distribution.undefined == pytest.approx(whole.undefined, rel=1e-9)
    np.testing.assert_allclose(distribution.support(), whole.support(), rtol=1e-12)
    np.testing.assert_allclose(distribution.ppf([0.05, 0.5, 0.95]), whole.ppf([0.05, 0.5, 0.95]), rtol=1e-12)


@pytest.mark.parametrize("rows", [1029, 1030, 5000])
@pytest.mark.parametrize("metric", ["brier", "average_precision", "roc_auc", "recall"])
def test_one_cell_may_hold_many_missing_rows(metric, rows):
    y, score = [1, 0] + [None] * rows, [0.9, 0.1] + [0.5] * rows
    distribution = dm.evaluate(
        y, score, missingness=dm.missing.Fixed(0.3), metrics=metric, threshold=0.8, method="exact"
    )[metric]
    # One score for all missing rows: the metric is a function of the number of positives among them, a binomial.
    count = np.arange(rows + 1)
    value = {
        "brier": np.full(rows + 1, 0.01 + 0.01 + 0.25 * rows) / (rows + 2),
        "average_precision": (1.0 + count * (1.0 + count) / (rows + 1)) / (1.0 + count),
        "roc_auc": (rows - count + 1 + count * (1 + 0.5 * (rows - count))) / ((1 + count) * (1 + rows - count)),
        "recall": 1.0 / (1.0 + count),
    }[metric]
    pmf = scipy.stats.binom.pmf(count, rows, 0.3)
    # scipy's binomial and ours differ by rounding, which adds up over the counts.
    assert distribution.mean() == pytest.approx(float(pmf @ value), rel=1e-11)


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
@pytest.mark.parametrize("p", [1e-3, 1e-4, 1e-5])
def test_the_atom_of_no_event_is_in_the_law_of_a_loss(metric, p):
    rng = np.random.default_rng(5)
    score = rng.random(1200)
    y = np.concatenate([(rng.random(200) < 0.2).astype(float), np.full(1000, np.nan)])
    distribution = dm.evaluate(y, score, missingness=dm.missing.Fixed(np.full(1000, p)), metrics=metric)[metric]
    nothing = dm.evaluate(np.where(np.isnan(y), 0.0, y), score, metrics=metric)[metric].mean()
    # Other labelings within a millionth of a row's loss of it have at most 1e-3 of the mass.
    assert distribution.cdf(nothing + 1e-9) - distribution.cdf(nothing - 1e-9) == pytest.approx(
        (1.0 - p) ** 1000, abs=1e-3
    )


def test_a_huge_weight_of_tiny_probability_keeps_the_quantiles():
    rng = np.random.default_rng(6)
    score = rng.random(1001)
    weight = np.concatenate([rng.uniform(0.5, 1.5, 1000), [20_000.0]])
    p = np.concatenate([np.full(1000, 0.5), [4e-7]])
    distribution = dm.evaluate(
        np.full(1001, np.nan), score, missingness=dm.missing.Fixed(p), sample_weight=weight, metrics="brier"
    )["brier"]
    change = weight * (1.0 - 2.0 * score) / weight.sum()
    # The heavy row is positive once in two million times: but for that the sum of the others is nearly normal.
    mean = float((weight * score**2).sum() / weight.sum() + change[:1000] @ p[:1000])
    std = float(np.sqrt(change[:1000] ** 2 @ (p * (1.0 - p))[:1000]))
    expected = scipy.stats.norm.ppf([0.05, 0.5, 0.95], mean, std)
    np.testing.assert_allclose(distribution.ppf([0.05, 0.5, 0.95]), expected, atol=0.05 * std)


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e-12])
def test_the_scale_of_a_cost_does_not_matter(scale):
    rng = np.random.default_rng(7)
    score, y = rng.random(300), np.where(rng.random(300) < 0.3, np.nan, 1.0)
    one, other = (dm.metrics.expected_cost(c, c) for c in (1.0, scale))
    expected = dm.evaluate(y, score, missingness=dm.missing.Fixed(0.5), metrics=one)[one.name].std()
    assert dm.evaluate(y, score, missingness=dm.missing.Fixed(0.5), metrics=other)[
        other.name
    ].std() / scale == pytest.approx(expected)


def test_a_formula_that_is_undefined_inside_says_so():
    metric = dm.metrics.ConfusionMetric(
        name="broken", formula=lambda tp, fp, fn, tn: (tp - fn) / (tp - fn) * tp, direction=(1, -1)
    )
    score = np.random.default_rng(8).random(4000)
    yes, no = int((score >= 0.5).sum()), int((score < 0.5).sum())
    distribution = dm.evaluate(
        np.full(4000, np.nan), score, missingness=dm.missing.Fixed(0.5), metrics=metric, zero_division=np.nan
    )["broken"]
    both = scipy.stats.binom.pmf(np.arange(4001), yes, 0.5) @ scipy.stats.binom.pmf(np.arange(4001), no, 0.5)
    assert distribution.undefined == pytest.approx(float(both), rel=1e-9)
    assert np.isfinite(distribution.interval()).all()


@pytest.mark.parametrize(
    ("metric", "y", "score"),
    [("g_mean", [1, 1, 0, 1, None, None], [0.9, 0.8, 0.7, 0.2, 0.6, 0.7]), ("g_mean", [1, 0, None], [0.9, 0.8, 0.7])],
)
def test_gaussian_of_a_defined_metric_is_defined(metric, y, score):
    distribution = dm.evaluate(y, score, missingness=dm.missing.Fixed(0.3), metrics=metric, method="gaussian")[metric]
    assert distribution.undefined == 0.0
    assert np.isfinite(distribution.mean())


def test_gaussian_reports_the_exact_mass_of_a_formula_that_is_undefined_anywhere():
    metric = dm.metrics.ConfusionMetric(name="ratio", formula=lambda tp, fp, fn, tn: tp / fn)
    distribution = dm.evaluate(
        [1, 0, None, None, None],
        [0.9, 0.2, 0.8, 0.1, 0.3],
        missingness=dm.missing.Fixed([0.2, 0.3, 0.3]),
        metrics=metric,
        method="gaussian",
        zero_division=np.nan,
    )["ratio"]
    assert distribution.undefined == pytest.approx(0.7 * 0.7, abs=1e-12)


def test_hardly_any_chance_leaves_the_value_of_no_positive():
    rng = np.random.default_rng(9)
    score = rng.random(50_000)
    y = np.where(rng.random(50_000) < 0.3, np.nan, rng.random(50_000) < score)
    distribution = dm.evaluate(y, score, missingness=dm.missing.Fixed(1e-10), metrics="roc_auc")["roc_auc"]
    nothing = dm.evaluate(np.where(np.isnan(y), 0.0, y), score, metrics="roc_auc")["roc_auc"].mean()
    assert distribution.median() == pytest.approx(nothing, abs=1e-12)
    assert distribution.cdf(nothing) - distribution.cdf(nothing - 1e-9) == pytest.approx(1.0, abs=1e-5)


def test_an_error_in_a_metric_of_the_user_names_the_metric():
    def evaluated(metric):
        return dm.evaluate([1, None], [0.9, 0.1], missingness=dm.missing.Fixed(0.5), metrics={"mine": metric})

    def broken(y_true, y_score):
        raise TypeError("mine alone")

    with pytest.raises(TypeError, match="mine alone") as caught:
        evaluated(broken)
    assert "the metric 'mine'" in caught.value.__notes__[0]
    with pytest.raises(dm.InputError, match=r"^metrics: the parameters of 'mine' are unknown\. .* called y_score"):
        evaluated(lambda y: 1.0)


def test_sets_of_different_positive_labels_do_not_merge():
    one, other = (dm.EvaluationSet(["a", "b"], [0.9, 0.1], pos_label=label) for label in "ab")
    with pytest.raises(
        dm.InputError, match=r"^pos_label: 'a' is positive in one set, 'b' in the other\. .* Build both alike"
    ):
        one + other
