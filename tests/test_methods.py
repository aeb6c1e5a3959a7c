"""Monte Carlo against exact, the Gaussian against the paper's formulas, and which method is chosen when."""

import math
import tracemalloc
from functools import cache

import mpmath
import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import darkmetrics as dm
import oracle
from darkmetrics.posterior import Posterior

METRICS = [
    "precision",
    "recall",
    "accuracy",
    "f1",
    "roc_auc",
    "specificity",
    "npv",
    "fbeta(2)",
    "mcc",
    "cohen_kappa",
    "balanced_accuracy",
    "g_mean",
    "expected_cost(1, 5)",
    "predicted_to_actual",
    "precision_at_k(20)",
    "recall_at_k(0.2)",
    "gini",
    "brier",
    "log_loss",
]


@cache
def rows(n=200, share=0.4, seed=0):
    """Labels (nan where missing), scores with some ties, and chances."""
    rng = np.random.default_rng([n, seed])
    score = np.round(rng.random(n), 2)
    y = (rng.random(n) < score).astype(float)
    y[rng.random(n) < share] = np.nan
    return y, score, np.clip(score + 0.1 * rng.normal(size=n), 0.01, 0.99)


def evaluate(metrics, method, data=None, **options):
    y, score, p = rows() if data is None else data
    return dm.evaluate(y, score, metrics=metrics, method=method, missingness=dm.missing.Fixed(p), **options)


def kolmogorov(distribution, sample_law):
    """Distance of a law and an empirical law, on both sides of the atoms of the latter."""
    atoms, level = sample_law.atoms, np.cumsum(sample_law.masses)
    # The same value computed on two ways differs in its last bits.
    at = np.abs(distribution.cdf(atoms + 1e-9) - level).max()
    before = np.abs(distribution.cdf(atoms - 1e-9) - np.append(0.0, level[:-1])).max()
    return float(max(at, before))


# ------------------------------------------------------------------------------------------------ Monte Carlo

DRAWS = 10_000
# Dvoretzky-Kiefer-Wolfowitz at 99.9%.
BAND = math.sqrt(math.log(2.0 / 0.001) / (2.0 * DRAWS))


@pytest.mark.parametrize("metric", METRICS)
def test_monte_carlo_is_within_its_dkw_band_of_exact(metric):
    exact = evaluate(metric, "exact")
    sampled = evaluate(metric, dm.methods.MonteCarlo(DRAWS), rng=20)
    (name,) = exact
    assert sampled[name].method == "monte carlo"
    assert kolmogorov(exact[name], sampled[name]) <= BAND


@pytest.mark.parametrize("metric", ["precision", "recall", "accuracy", "f1", "roc_auc"])
def test_monte_carlo_is_not_within_its_dkw_band_of_the_law_of_other_chances(metric):
    y, score, p = rows()
    # Every decision is a little more often right: that moves all five.
    other = np.clip(p + np.where(score >= 0.5, 0.02, -0.02), 0.0, 1.0)
    exact = dm.evaluate(y, score, metrics=metric, method="exact", missingness=dm.missing.Fixed(other))
    sampled = evaluate(metric, dm.methods.MonteCarlo(DRAWS), rng=20)
    assert kolmogorov(exact[metric], sampled[metric]) > BAND


def test_weighted_monte_carlo_is_within_its_dkw_band_of_all_labelings():
    y, score, p = rows(40, 0.25)
    weight = np.random.default_rng(3).choice([0.5, 1.0, 2.5], y.size)
    assert np.isnan(y).sum() <= 15
    for metric in ("precision", "recall", "f1", "roc_auc", "brier"):
        exact = evaluate(metric, "exact", (y, score, p), sample_weight=weight)[metric]
        sampled = evaluate(metric, dm.methods.MonteCarlo(DRAWS), (y, score, p), sample_weight=weight, rng=4)[metric]
        assert exact.method == "exact"
        assert kolmogorov(exact, sampled) <= BAND


def test_average_precision_sampled_is_within_its_dkw_band_of_all_labelings():
    data = rows(40, 0.25)
    exact = evaluate("average_precision", "exact", data)["average_precision"]
    sampled = evaluate("average_precision", "monte_carlo", data, rng=5)["average_precision"]
    assert kolmogorov(exact, sampled) <= BAND


@pytest.mark.parametrize("metric", [*METRICS, "average_precision"])
def test_same_seed_gives_the_same_numbers(metric):
    first, second, other = (
        next(iter(evaluate(metric, dm.methods.MonteCarlo(500), rng=seed).values())) for seed in (1, 1, 2)
    )
    assert first.atoms.tolist() == second.atoms.tolist()
    assert first.masses.tolist() == second.masses.tolist()
    assert first.atoms.tolist() != other.atoms.tolist() or first.masses.tolist() != other.masses.tolist()


def test_a_generator_is_as_good_as_its_seed():
    by_seed = evaluate("roc_auc", "monte_carlo", rng=7)["roc_auc"]
    by_generator = evaluate("roc_auc", "monte_carlo", rng=np.random.default_rng(7))["roc_auc"]
    assert by_seed.atoms.tolist() == by_generator.atoms.tolist()


def test_scenarios_of_cells_of_many_rows_have_binomial_counts():
    missing, p = np.array([1, 40, 3, 200]), np.array([0.3, 0.7, 1.0, 0.02])
    counts = Posterior.single(p).draw(0, missing, 20_000, np.random.default_rng(0))
    assert counts.shape == (20_000, 4)
    assert np.all((counts >= 0) & (counts <= missing))
    # Four standard errors of the mean; for the variance of near-binomial counts a generous three percent plus 4/n.
    error = 4.0 * np.sqrt(missing * p * (1.0 - p) / 20_000)
    assert np.all(np.abs(counts.mean(axis=0) - missing * p) <= error)
    np.testing.assert_allclose(counts.var(axis=0), missing * p * (1.0 - p), rtol=0.05, atol=1e-12)


@pytest.mark.parametrize("n_resamples", [0, -1, 2.5, "many", None, True, np.nan])
def test_a_number_of_resamples_that_is_none_is_an_error(n_resamples):
    with pytest.raises(dm.InputError, match="n_resamples"):
        dm.methods.MonteCarlo(n_resamples)


@pytest.mark.parametrize("n_resamples", [1, 17, np.int64(50)])
def test_resamples_are_as_many_as_asked_for(n_resamples):
    distribution = evaluate("accuracy", dm.methods.MonteCarlo(n_resamples), rng=0)["accuracy"]
    # Every mass is a whole number of draws.
    draws = distribution.masses * int(n_resamples)
    np.testing.assert_allclose(draws, np.rint(draws), rtol=0.0, atol=1e-9)
    assert draws.sum() == pytest.approx(int(n_resamples))


def test_monte_carlo_of_confusion_metrics_never_holds_all_labels_of_all_scenarios():
    rng = np.random.default_rng(0)
    n = 200_000
    score = rng.random(n)
    y = np.where(rng.random(n) < 0.5, np.nan, (rng.random(n) < score).astype(float))
    data = dm.EvaluationSet(y, score, missingness=dm.missing.Fixed(score))
    tracemalloc.start()
    try:
        dm.evaluate(
            data, metrics=["precision", "recall", "accuracy", "f1"], method=dm.methods.MonteCarlo(10_000), rng=0
        )
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 10,000 scenarios of 100,000 missing rows are 1 GB even as single bytes; counts and the cells take a few MB.
    assert peak < 100e6


def test_monte_carlo_of_ranks_is_chunked():
    rng = np.random.default_rng(0)
    n = 20_000
    score = rng.random(n)
    y = np.where(rng.random(n) < 0.5, np.nan, (rng.random(n) < score).astype(float))
    data = dm.EvaluationSet(y, score, missingness=dm.missing.Fixed(score))
    tracemalloc.start()
    try:
        dm.evaluate(data, metrics="roc_auc", method=dm.methods.MonteCarlo(1_500), rng=0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # 1,500 x 10,000 labels are 120 MB as float64 and several times that with what is computed from them; a chunk of
    # four million needs less, whatever the number of resamples.
    assert peak < 200e6


# ------------------------------------------------------------------------------------------------ the Gaussian


def paper_sums(metric):
    """Constant, coefficients and variances of numerator and denominator, as the paper's table of queries has them."""
    y, score, _ = rows()
    missing = np.isnan(y)
    d = (score >= 0.5).astype(float)
    known = np.where(missing, 0.0, y)
    n = y.size
    if metric == "precision":
        return known @ d, d, d.sum(), np.zeros(n)
    if metric == "recall":
        return known @ d, d, known.sum(), np.ones(n)
    if metric == "accuracy":
        # sum of d Y + (1 - d)(1 - Y) = sum (2d - 1) Y + sum (1 - d)
        return known @ (2.0 * d - 1.0) + (1.0 - d).sum(), 2.0 * d - 1.0, float(n), np.zeros(n)
    assert metric == "f1"
    return 2.0 * known @ d, 2.0 * d, known.sum() + d.sum(), np.ones(n)


@pytest.mark.parametrize("metric", ["precision", "recall", "accuracy", "f1"])
def test_gaussian_has_the_mean_and_variance_of_the_paper(metric):
    y, _, p = rows()
    alpha, a, beta, b = paper_sums(metric)
    missing = np.isnan(y)
    a, b, p = a[missing], b[missing], p[missing]
    v = p * (1.0 - p)
    z, w = alpha + a @ p, beta + b @ p
    var_z, var_w, cov = a**2 @ v, b**2 @ v, (a * b) @ v
    distribution = evaluate(metric, "gaussian")[metric]
    assert distribution.method == "gaussian"
    assert distribution.mean() == pytest.approx(z / w, rel=1e-12)
    assert distribution.var() == pytest.approx((z**2 * var_w + w**2 * var_z - 2.0 * cov * z * w) / w**4, rel=1e-12)


FORMULAS = {
    "mcc": lambda tp, fp, fn, tn: (tp * tn - fp * fn) / mpmath.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
    "cohen_kappa": lambda tp, fp, fn, tn: 2 * (tp * tn - fp * fn) / ((tp + fp) * (fp + tn) + (tp + fn) * (fn + tn)),
    "g_mean": lambda tp, fp, fn, tn: mpmath.sqrt(tp / (tp + fn) * tn / (tn + fp)),
    "balanced_accuracy": lambda tp, fp, fn, tn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
    "youden_j": lambda tp, fp, fn, tn: tp / (tp + fn) + tn / (tn + fp) - 1,
    "markedness": lambda tp, fp, fn, tn: tp / (tp + fp) + tn / (tn + fn) - 1,
    "jaccard": lambda tp, fp, fn, tn: tp / (tp + fp + fn),
    "predicted_to_actual": lambda tp, fp, fn, tn: (tp + fp) / (tp + fn),
    "fbeta(2)": lambda tp, fp, fn, tn: 5 * tp / (5 * tp + 4 * fn + fp),
    "specificity": lambda tp, fp, fn, tn: tn / (tn + fp),
}


@pytest.mark.parametrize("metric", FORMULAS)
def test_gaussian_of_a_formula_is_the_delta_method(metric):
    y, score, p = rows()
    missing, decided = np.isnan(y), score >= 0.5
    yes, no = int(decided.sum()), int((~decided).sum())
    tp = mpmath.mpf(float(np.nansum(y[decided]))) + mpmath.fsum(p[missing & decided])
    fn = mpmath.mpf(float(np.nansum(y[~decided]))) + mpmath.fsum(p[missing & ~decided])

    def value(a, b):
        return FORMULAS[metric](a, yes - a, b, no - b)

    with mpmath.workdps(40):
        slopes = [mpmath.diff(value, (tp, fn), n) for n in ((1, 0), (0, 1))]
        variances = [
            mpmath.fsum(q * (1 - q) for q in map(mpmath.mpf, p[missing & side])) for side in (decided, ~decided)
        ]
        mean, variance = value(tp, fn), sum(s**2 * v for s, v in zip(slopes, variances, strict=True))
    (distribution,) = evaluate(metric, "gaussian").values()
    assert distribution.mean() == pytest.approx(float(mean), rel=1e-12)
    # A five-point difference of step 1/1000 of the count: its error is of the order 1e-12 times fifth derivatives.
    assert distribution.var() == pytest.approx(float(variance), rel=1e-8)


@pytest.mark.parametrize("ties", ["half", "full"])
def test_gaussian_of_roc_auc_is_the_ratio_of_means_with_the_ratio_variance(ties):
    y, score, p = rows(12, 0.6)
    missing = np.flatnonzero(np.isnan(y))
    labels = np.tile(y, (2**missing.size, 1))
    labels[:, missing] = (np.arange(2**missing.size)[:, None] >> np.arange(missing.size)) & 1
    chance = np.where(labels[:, missing] == 1.0, p[missing], 1.0 - p[missing]).prod(axis=1)
    wins = (score[:, None] > score) + (1.0 if ties == "full" else 0.5) * (score[:, None] == score)
    a = np.einsum("li,ij,lj->l", labels, wins, 1.0 - labels)
    d = labels.sum(axis=1) * (1.0 - labels).sum(axis=1)
    mean_a, mean_d = chance @ a, chance @ d
    var_a, var_d, cov = chance @ (a - mean_a) ** 2, chance @ (d - mean_d) ** 2, chance @ ((a - mean_a) * (d - mean_d))
    metric = dm.metrics.roc_auc(ties=ties)
    distribution = evaluate(metric, "gaussian", (y, score, p), zero_division=np.nan)[metric.name]
    assert distribution.mean() == pytest.approx(mean_a / mean_d, rel=1e-12)
    expected = (mean_a**2 * var_d + mean_d**2 * var_a - 2.0 * cov * mean_a * mean_d) / mean_d**4
    assert distribution.var() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_gaussian_of_average_precision_is_the_delta_method_of_its_two_sums(weighted):
    y, score, p = rows(12, 0.6)
    weight = np.random.default_rng(3).choice([0.5, 1.0, 2.5], y.size) if weighted else np.ones(y.size)
    problem = oracle.Problem(y, score, (score >= 0.5).astype(int), weight, p[np.isnan(y)])
    labels, chance = oracle.labelings(problem)
    positives = labels @ weight
    gained = positives * oracle.definition_of("average_precision")(labels, score, problem.decision, weight)
    gained = np.nan_to_num(gained)
    mean_a, mean_d = chance @ gained, chance @ positives
    (var_a, cov), (_, var_d) = np.cov(gained, positives, aweights=chance, ddof=0)
    options = {"sample_weight": weight} if weighted else {}
    distribution = evaluate("average_precision", "gaussian", (y, score, p), **options)["average_precision"]
    assert distribution.method == "gaussian"
    assert distribution.mean() == pytest.approx(mean_a / mean_d, rel=1e-12)
    expected = (mean_a**2 * var_d + mean_d**2 * var_a - 2.0 * cov * mean_a * mean_d) / mean_d**4
    # The slopes are central differences of 0.02 standard deviations; terms that nearly cancel enlarge their error.
    assert distribution.var() == pytest.approx(expected, rel=1e-3)


def test_gaussian_of_gini_is_twice_that_of_roc_auc_less_one():
    auc, gini = evaluate("roc_auc", "gaussian")["roc_auc"], evaluate("gini", "gaussian")["gini"]
    assert gini.mean() == pytest.approx(2.0 * auc.mean() - 1.0, rel=1e-12)
    assert gini.std() == pytest.approx(2.0 * auc.std(), rel=1e-12)


@pytest.mark.parametrize(
    ("metric", "loss"),
    [
        ("brier", lambda y, s: (s - y) ** 2),
        ("log_loss", lambda y, s: -np.log(np.where(y == 1.0, s, 1.0 - s))),
    ],
)
def test_gaussian_of_a_mean_loss_has_its_mean_and_variance(metric, loss):
    y, score, p = rows()
    score = np.clip(score, 0.01, 0.99)
    missing = np.isnan(y)
    one, zero = loss(np.ones(y.size), score), loss(np.zeros(y.size), score)
    expected = np.where(missing, p * one + (1.0 - p) * zero, np.where(y == 1.0, one, zero)).mean()
    variance = (np.where(missing, p * (1.0 - p), 0.0) * (one - zero) ** 2).sum() / y.size**2
    distribution = evaluate(metric, "gaussian", (y, score, p))[metric]
    assert distribution.mean() == pytest.approx(expected, rel=1e-12)
    assert distribution.var() == pytest.approx(variance, rel=1e-12)


def test_weighted_gaussian_has_the_mean_and_variance_of_the_weighted_ratio():
    y, score, p = rows()
    weight = np.random.default_rng(3).choice([0.5, 1.0, 2.5], y.size)
    missing, d = np.isnan(y), score >= 0.5
    chance = np.where(missing, p, y)
    v = np.where(missing, p * (1.0 - p), 0.0) * weight**2
    z, w = (weight * chance * d).sum(), (weight * chance).sum()
    var_z, var_w, cov = (v * d).sum(), v.sum(), (v * d).sum()
    distribution = evaluate("recall", "gaussian", sample_weight=weight)["recall"]
    assert distribution.mean() == pytest.approx(z / w, rel=1e-12)
    assert distribution.var() == pytest.approx((z**2 * var_w + w**2 * var_z - 2.0 * cov * z * w) / w**4, rel=1e-12)


# ------------------------------------------------------------------------------------------------ which method


@pytest.mark.parametrize(
    ("metric", "n", "method"),
    [
        ("precision", 200, "exact"),
        ("recall", 20_000, "exact"),
        ("accuracy", 200, "exact"),
        ("mcc", 20_000, "exact"),
        ("roc_auc", 20, "exact"),
        ("roc_auc", 20_000, "near exact"),
        ("brier", 20, "exact"),
        ("average_precision", 20, "exact"),
        ("average_precision", 200, "monte carlo"),
    ],
)
def test_auto_is_exact_where_possible_and_says_what_it_did(metric, n, method):
    distribution = evaluate(metric, "auto", rows(n), rng=0, zero_division=np.nan)[metric]
    assert distribution.method == method


def test_auto_is_the_default():
    y, score, p = rows()
    for metric in ("recall", "roc_auc"):
        default = dm.evaluate(y, score, metrics=metric, missingness=dm.missing.Fixed(p))[metric]
        assert default.ppf([0.1, 0.9]).tolist() == evaluate(metric, "auto")[metric].ppf([0.1, 0.9]).tolist()


def test_auto_equals_exact_where_exact_exists():
    for metric in METRICS:
        auto, exact = (next(iter(evaluate(metric, method).values())) for method in ("auto", "exact"))
        assert auto.method == exact.method
        assert auto.ppf([0.05, 0.5, 0.95]).tolist() == exact.ppf([0.05, 0.5, 0.95]).tolist()


def black_box(y_true, y_score):
    """ROC-AUC of distinct scores, pair by pair, as a function of which the library knows nothing."""
    return (y_score[y_true == 1][:, None] > y_score[y_true == 0]).mean()


def with_missing(m):
    rng = np.random.default_rng(m)
    n = m + 10
    y = np.concatenate([np.full(m, np.nan), np.tile([0.0, 1.0], 5)])
    return y, rng.permutation(n) / n, rng.uniform(0.1, 0.9, n)


def test_exact_law_of_a_callable_with_15_missing_equals_the_exact_law_of_the_metric():
    data = with_missing(15)
    distribution = evaluate({"mine": black_box}, "exact", data)["mine"]
    expected = evaluate("roc_auc", "exact", data)["roc_auc"]
    assert distribution.method == "exact"
    np.testing.assert_allclose(distribution.atoms, expected.atoms, rtol=0.0, atol=1e-12)
    np.testing.assert_allclose(distribution.masses, expected.masses, rtol=0.0, atol=1e-12)


def test_exact_refuses_a_callable_with_16_missing():
    with pytest.raises(dm.exceptions.MethodError, match=r"16 missing rows.*15.*'monte_carlo'"):
        evaluate({"mine": black_box}, "exact", with_missing(16))


def test_auto_samples_a_callable_with_16_missing():
    y, score, p = data = with_missing(16)
    distribution = evaluate({"mine": black_box}, "auto", data, rng=0)["mine"]
    assert distribution.method == "monte carlo"
    problem = oracle.Problem(y, score, (score >= 0.5).astype(int), np.ones(y.size), p[np.isnan(y)])
    assert kolmogorov(oracle.distribution(oracle.definition_of("roc_auc"), problem), distribution) <= BAND


def test_callable_of_scikit_learn_equals_its_own_metric():
    data = with_missing(6)
    distribution = evaluate({"ap": average_precision_score}, "exact", data)["ap"]
    own = evaluate("average_precision", "exact", data)["average_precision"]
    np.testing.assert_allclose(
        distribution.ppf([0.01, 0.3, 0.5, 0.99]), own.ppf([0.01, 0.3, 0.5, 0.99]), rtol=0.0, atol=1e-12
    )


def test_gaussian_refuses_a_callable():
    with pytest.raises(dm.exceptions.MethodError, match=r"'gaussian'.*'monte_carlo'"):
        evaluate({"mine": black_box}, "gaussian")


@pytest.mark.parametrize(
    ("word", "nearest"),
    [("montecarlo", "monte_carlo"), ("Exact", "exact"), ("gauss", "gaussian"), ("automatic", "auto")],
)
def test_unknown_method_suggests_the_nearest(word, nearest):
    text = f"method: unknown method '{word}'.*Did you mean '{nearest}'"
    with pytest.raises(dm.exceptions.UnknownNameError, match=text):
        evaluate("recall", word)


def test_unknown_method_without_a_near_one_lists_the_choices():
    with pytest.raises(dm.exceptions.UnknownNameError, match=r"'auto', 'exact', 'gaussian', 'monte_carlo'"):
        evaluate("recall", "xyz")


@pytest.mark.parametrize("method", [None, 3, dm.methods.MonteCarlo])
def test_a_method_that_is_neither_word_nor_settings_is_an_error(method):
    with pytest.raises(dm.InputError, match=r"method: .* It must be 'auto'"):
        evaluate("recall", method)


@pytest.mark.parametrize(
    ("word", "settings"),
    [
        ("exact", dm.methods.Exact()),
        ("monte_carlo", dm.methods.MonteCarlo(n_resamples=10_000)),
        ("gaussian", dm.methods.Gaussian()),
    ],
)
def test_a_word_stands_for_the_settings_object(word, settings):
    by_word, by_object = (evaluate("f1", method, rng=1)["f1"] for method in (word, settings))
    assert by_word.method == by_object.method
    assert by_word.ppf([0.1, 0.5, 0.9]).tolist() == by_object.ppf([0.1, 0.5, 0.9]).tolist()


@pytest.mark.parametrize("method", ["auto", "exact", "monte_carlo", "gaussian"])
def test_every_method_gives_a_point_when_nothing_is_missing(method):
    y, score, _ = rows()
    complete = np.where(np.isnan(y), 1.0, y)
    for metric in ("recall", "roc_auc", "brier", "average_precision"):
        if (method, metric) == ("gaussian", "average_precision"):
            continue
        distribution = dm.evaluate(
            complete, score, metrics=metric, method=method, missingness=dm.missing.Fixed(0.5), rng=0
        )[metric]
        assert distribution.method == "exact"
        assert distribution.std() == 0.0
