"""Every item of the paper: a callable by its name, a place on the page "From the paper", an independent computation."""

import inspect
from collections.abc import Callable
from itertools import pairwise, product
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom, kstest, norm
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    confusion_matrix,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

import darkmetrics as dm

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "from-the-paper.md"
C0 = 0.56
METRICS: dict[str, Callable[..., float]] = {
    "precision": lambda y, s: precision_score(y, s >= 0.5, zero_division=0.0),
    "recall": lambda y, s: recall_score(y, s >= 0.5, zero_division=0.0),
    "accuracy": lambda y, s: accuracy_score(y, s >= 0.5),
    "f1": lambda y, s: f1_score(y, s >= 0.5, zero_division=0.0),
    "roc_auc": roc_auc_score,
}


class Rows:
    """Eight labeled rows and seven missing ones with their probabilities, small enough for all label assignments."""

    score = np.array([0.9, 0.8, 0.7, 0.6, 0.45, 0.4, 0.2, 0.1, 0.85, 0.65, 0.55, 0.45, 0.35, 0.3, 0.15])
    label = np.array([1, 1, 0, 1, 0, 1, 0, 0, *[np.nan] * 7])
    p = np.array([0.8, 0.7, 0.5, 0.4, 0.45, 0.2, 0.1])
    data = dm.EvaluationSet(label, score, missingness=dm.missing.Fixed(p))

    @classmethod
    def assignments(cls) -> tuple[np.ndarray, np.ndarray]:
        """Return all completed label columns and their probabilities."""
        filled = np.array(list(product((0.0, 1.0), repeat=7)))
        labels = np.hstack([np.tile(cls.label[:8], (len(filled), 1)), filled])
        return labels, np.prod(np.where(filled == 1.0, cls.p, 1.0 - cls.p), axis=1)

    @classmethod
    def values(cls, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the metric of every assignment, from scikit-learn, and the probabilities."""
        labels, mass = cls.assignments()
        return np.array([METRICS[metric](y, cls.score) for y in labels]), mass


def cdf_of(values, mass, t):
    return mass[values <= t + 1e-12].sum()


def check_pemi():
    drawn = dm.paper.pemi(Rows.data, list(METRICS), n_resamples=200_000, rng=0)
    for metric in METRICS:
        values, mass = Rows.values(metric)
        gaps = [abs(cdf_of(values, mass, t) - drawn[metric].cdf(t + 1e-12)) for t in np.unique(values)]
        # Dvoretzky-Kiefer-Wolfowitz: exceeded once in a million runs.
        assert max(gaps) < np.sqrt(np.log(2e6) / (2 * 200_000))
    # With B imputations every probability is a multiple of 1 / B.
    recall = dm.paper.pemi(Rows.data, "recall", n_resamples=5, rng=1)["recall"]
    assert np.allclose(recall.masses * 5, np.round(recall.masses * 5), atol=1e-12)


def gaussian_of_algorithm_2(metric):
    """Mean and standard deviation from Tables 1 and 2, Lemma 6 and Theorem 3, written out."""
    psi, y, v = Rows.score >= 0.5, Rows.label, Rows.p * (1 - Rows.p)
    labeled, missing = ~np.isnan(y), np.isnan(y)
    a = {"precision": psi, "recall": psi, "accuracy": 2 * psi - 1, "f1": 2 * psi}[metric][missing].astype(float)
    b = {"precision": 0, "accuracy": 0, "recall": 1, "f1": 1}[metric] * np.ones(7)
    alpha = {
        "precision": (y * psi)[labeled].sum(),
        "recall": (y * psi)[labeled].sum(),
        "f1": 2 * (y * psi)[labeled].sum(),
        "accuracy": (y == psi)[labeled].sum() + (~psi)[missing].sum(),
    }[metric]
    beta = {
        "precision": psi.sum(),
        "recall": y[labeled].sum(),
        "f1": y[labeled].sum() + psi.sum(),
        "accuracy": y.size,
    }[metric]
    mu_z, mu_w = alpha + a @ Rows.p, beta + b @ Rows.p
    var_z, var_w, cov = a**2 @ v, b**2 @ v, (a * b) @ v
    sigma = np.sqrt(mu_z**2 * var_w + mu_w**2 * var_z - 2 * cov * mu_z * mu_w) / mu_w**2
    return mu_z / mu_w, sigma


def check_pemi_gauss():
    gaussians = dm.paper.pemi_gauss(Rows.data, ["precision", "recall", "accuracy", "f1"])
    for metric, gaussian in gaussians.items():
        mean, std = gaussian_of_algorithm_2(metric)
        t = np.linspace(-0.5, 1.5, 81)  # also where no label assignment leads
        assert gaussian.cdf(t) == pytest.approx(norm.cdf(t, mean, std), abs=1e-12)
    # The method of `evaluate` moves the probability beyond the bounds onto them.
    clipped = dm.evaluate(Rows.data, missingness=dm.missing.Fixed(), metrics="recall", method="pemi_gauss")["recall"]
    beyond = clipped.support().low - 1e-9
    assert clipped.cdf(beyond) == 0.0 < gaussians["recall"].cdf(beyond)
    # Above 120 rows the paper takes the moments of ROC-AUC from 10,000 imputations.
    rng = np.random.default_rng(0)
    score = rng.random(200)
    data = dm.EvaluationSet(np.where(rng.random(200) < 0.4, np.nan, rng.random(200) < score), score)
    exact, drawn = (
        dm.paper.pemi_gauss(data, "roc_auc", 0.5, simulate_above=rows, rng=0)["roc_auc"] for rows in (None, 120)
    )
    assert abs(exact.mean() - drawn.mean()) < 5 * exact.std() / np.sqrt(10_000)
    assert drawn.std() == pytest.approx(exact.std(), rel=0.05)
    assert drawn.mean() != exact.mean()


def check_oracle_bounds():
    predicted, missing = (Rows.score >= 0.5).astype(float), np.isnan(Rows.label)
    bounds = dm.paper.oracle_bounds(Rows.data, list(METRICS))
    for metric, value in METRICS.items():
        wrong, right = (value(np.where(missing, fill, Rows.label), Rows.score) for fill in (1 - predicted, predicted))
        assert bounds[metric] == pytest.approx((wrong, right), abs=1e-12)


def check_maximum_entropy():
    def negative_entropy(p: Any) -> float:
        return float(np.sum(p * np.log(p) + (1 - p) * np.log1p(-p)))

    start, limits = np.array([0.1, 0.3, 0.8]), [(1e-6, 1 - 1e-6)] * 3
    free = minimize(negative_entropy, start, bounds=limits)
    assert free.x == pytest.approx(3 * [dm.paper.maximum_entropy().probability], abs=1e-4)
    constraint: Any = {"type": "eq", "fun": lambda p: p.mean() - 0.2}
    fixed_mean = minimize(negative_entropy, start, bounds=limits, constraints=[constraint], options={"ftol": 1e-12})
    assert fixed_mean.x == pytest.approx(3 * [dm.paper.maximum_entropy(mean=0.2).probability], abs=1e-4)
    with pytest.raises(dm.InputError, match=r"mean: 1\.2"):
        dm.paper.maximum_entropy(mean=1.2)


def check_training_prevalence():
    assert dm.paper.training_prevalence([1, 0, 0, 0, 1]).probability == 0.4
    assert dm.paper.training_prevalence(["no", "yes", "no", "no"], pos_label="yes").probability == 0.25
    # It is not the fraction among the labeled rows of the test set, which are all positive here.
    data = dm.EvaluationSet([1, 1, None, None], [0.9, 0.8, 0.7, 0.2])
    accuracy = dm.evaluate(data, missingness=dm.paper.training_prevalence([1, 0, 0, 0]), metrics="accuracy")
    assert accuracy["accuracy"].mean() == pytest.approx((2 + 0.25 + 0.75) / 4, abs=1e-12)
    with pytest.raises(dm.InputError, match="y_train: 1 of 2 labels are missing"):
        dm.paper.training_prevalence([1, None])


def check_scaling_binning():
    rng = np.random.default_rng(3)
    score = rng.random(500)
    y = (rng.random(500) < score**2).astype(int)
    log_odds = np.log(score / (1 - score))[:, None]
    platt = LogisticRegression(C=1e10).fit(log_odds, y).predict_proba(log_odds)[:, 1]
    parts = np.array_split(np.sort(platt), 10)
    edges = [(low[-1] + high[0]) / 2 for low, high in pairwise(parts)]
    new = rng.random(200)
    scaled = LogisticRegression(C=1e10).fit(log_odds, y).predict_proba(np.log(new / (1 - new))[:, None])[:, 1]
    expected = np.array([bin_scores.mean() for bin_scores in parts])[np.searchsorted(edges, scaled)]
    mechanism = dm.paper.scaling_binning(y, score)
    data = dm.EvaluationSet([None] * 200, new)
    accuracy = dm.paper.pemi_gauss(data, "accuracy", mechanism)["accuracy"]
    # Two optimizers of one likelihood.
    assert accuracy.mean() == pytest.approx(np.where(new >= 0.5, expected, 1 - expected).mean(), abs=1e-5)
    assert accuracy.var() == pytest.approx((expected * (1 - expected)).sum() / 200**2, rel=1e-4)
    by_evaluate = dm.evaluate(data, missingness=mechanism, metrics="accuracy", method="pemi_gauss")["accuracy"]
    assert by_evaluate.mean() == pytest.approx(accuracy.mean(), abs=1e-12)


def check_bootstrap():
    # The accuracy of n rows drawn with replacement is binomial.
    distribution = dm.paper.bootstrap(Rows.data, "accuracy", n_resamples=100_000, rng=0)["accuracy"]
    right = int(np.sum((Rows.score >= 0.5)[:8] == Rows.label[:8]))
    expected = binom.cdf(np.arange(9), 8, right / 8)
    gaps = np.abs(distribution.cdf(np.arange(9) / 8 + 1e-9) - expected)
    assert gaps.max() < np.sqrt(np.log(2e6) / (2 * 100_000))


def check_mcar_mask():
    y, counts = np.arange(20) % 2, np.zeros(20)
    for seed in range(2000):
        masked = dm.paper.mcar_mask(y, 0.3, rng=seed)
        assert masked.sum() == 6
        counts += masked
    # Every row is masked with probability 0.3: five standard errors.
    assert np.abs(counts / 2000 - 0.3).max() < 5 * np.sqrt(0.21 / 2000)
    with pytest.raises(dm.InputError, match=r"p_m: 1\.3"):
        dm.paper.mcar_mask(y, 1.3)
    with pytest.raises(dm.InputError, match="y_true: expected a column of labels 0 and 1"):
        dm.paper.mcar_mask([0, None, 1], 0.3)


def check_mnar_mask():
    y = (np.arange(200) < 80).astype(int)
    for eta in (0.1, 0.2, 0.4, 0.6, 0.8, 0.9):
        masked = dm.paper.mnar_mask(y, 0.3, eta, rng=0)
        assert (masked.sum(), y[masked].sum()) == (60, 60 * eta)
    masked = dm.paper.mnar_mask((np.arange(200) < 9).astype(int), 0.3, eta=0.9, rng=0)
    assert masked.sum() == 10  # nine positives are all there are
    with pytest.raises(dm.InputError, match="eta: 0"):
        dm.paper.mnar_mask(y, 0.3, eta=0)


def check_lemma_1():
    a, p = np.array([1.0, -0.5, 0.25, 1.0]), np.array([0.5, 0.3, 0.8, 0.4])
    bound = dm.paper.lemma_1(a, p)
    v = p * (1 - p)
    assert bound.ks_bound == pytest.approx(C0 / np.sqrt(4 * v.min()) * (1 + 1.0) / (2 * 0.25), rel=1e-12)
    # The paper prints a for a^2 in the variance.
    assert (bound.mean, bound.std) == pytest.approx((a @ p, np.sqrt(a**2 @ v)), rel=1e-12)


def ratio_gaussian(mu_z, mu_w, sigma_z, sigma_w, rho):
    """Standard deviation and bound of Theorem 2, letter by letter."""
    var = (mu_z * sigma_w) ** 2 + (mu_w * sigma_z) ** 2 - 2 * rho * sigma_z * sigma_w * mu_z * mu_w
    sigma = np.sqrt(var) / mu_w**2
    bound = np.sqrt(2 / np.pi) * (sigma_w**2 * (abs(mu_z) + sigma_z**2) + mu_w**2) / (sigma * mu_w**3)
    return sigma, bound


def check_theorem_2():
    arguments = (300, 1000, 20, 30, 0.5)
    bound = dm.paper.theorem_2(*arguments)
    assert (bound.std, bound.ks_bound) == pytest.approx(ratio_gaussian(*arguments), rel=1e-12)
    assert bound.mean == 0.3
    # The ratio itself, drawn: its distance to the Gaussian is below the bound.
    rng = np.random.default_rng(0)
    z, w = rng.multivariate_normal([300, 1000], [[400, 300], [300, 900]], 200_000).T
    assert bound.std is not None
    assert bound.ks_bound is not None
    assert kstest(z / w, norm(0.3, bound.std).cdf).statistic < bound.ks_bound


def check_theorem_3():
    # Recall of two kinds of missing rows: the exact distance from two binomial distributions.
    n, alpha, beta, p = 200, 30, 50, 0.4
    a, b = np.repeat([1.0, 0.0], n // 2), np.ones(n)
    bound = dm.paper.theorem_3(alpha, a, beta, b, np.full(n, p))
    v = p * (1 - p)
    sigma_z, sigma_w = np.sqrt(n / 2 * v), np.sqrt(n * v)
    sigma, ratio = ratio_gaussian(alpha + n / 2 * p, beta + n * p, sigma_z, sigma_w, sigma_z / sigma_w)
    assert bound.ks_bound == pytest.approx(C0 / np.sqrt(n / 2 * v) * 2 + ratio, rel=1e-12)
    k = np.arange(n // 2 + 1)
    mass = np.outer(binom.pmf(k, n // 2, p), binom.pmf(k, n // 2, p)).ravel()
    recall = ((alpha + k)[:, None] / (beta + k[:, None] + k)).ravel()
    order = np.argsort(recall)
    cdf = np.cumsum(mass[order])
    distance = np.abs(cdf - norm.cdf(recall[order], (alpha + n / 2 * p) / (beta + n * p), sigma)).max()
    assert bound.std == pytest.approx(sigma, rel=1e-12)
    assert bound.ks_bound is not None
    assert distance < bound.ks_bound


def check_theorem_4():
    # A label with a random probability of mean p is positive with probability p: the known distribution is exact.
    result = dm.paper.theorem_4(Rows.data, metrics="accuracy", variance=0.05, n_resamples=20_000, rng=0)
    assert result.v_star == pytest.approx((Rows.p * (1 - Rows.p)).min(), abs=1e-12)
    values, mass = Rows.values("accuracy")
    gaps = [abs(cdf_of(values, mass, t) - result["accuracy"].independent.cdf(t + 1e-12)) for t in np.unique(values)]
    assert max(gaps) < np.sqrt(np.log(2e6) / (2 * 20_000))
    assert result.agrees
    with pytest.raises(dm.InputError, match=r"variance: 0\.1.* v\* = 0\.09"):
        dm.paper.theorem_4(Rows.data, metrics="accuracy", variance=0.1)


def check_confusion_moments():
    labels, mass = Rows.assignments()
    # scikit-learn's order is TN, FP, FN, TP.
    counts = np.array([confusion_matrix(y, Rows.score >= 0.5).ravel()[[3, 2, 1, 0]] for y in labels])
    moments = dm.paper.confusion_moments(Rows.data)
    mean = mass @ counts
    assert moments.mean == pytest.approx(mean, abs=1e-12)
    assert moments.covariance == pytest.approx((counts - mean).T @ (mass[:, None] * (counts - mean)), abs=1e-12)
    assert np.count_nonzero(moments.covariance) == 8
    weighted = dm.EvaluationSet([None, None, 1], [0.9, 0.8, 0.3], sample_weight=[2.0, 3.0, 5.0])
    moments = dm.paper.confusion_moments(weighted, 0.5)
    assert moments.mean == pytest.approx([2.5, 5.0, 2.5, 0.0])
    assert moments.covariance[0] == pytest.approx([13 / 4, 0, -13 / 4, 0])


@pytest.mark.parametrize("ties", ["full", "half"])
def test_roc_auc_moments_are_those_of_all_label_assignments(ties):
    labels, mass = Rows.assignments()
    above = np.sign(Rows.score[:, None] - Rows.score) / 2 + 0.5
    if ties == "full":
        above = (Rows.score[:, None] >= Rows.score).astype(float)
    pairs = labels[:, :, None] * (1 - labels[:, None, :])
    sums = np.stack([(above * pairs).sum(axis=(1, 2)), pairs.sum(axis=(1, 2))])
    mean = sums @ mass
    moments = dm.paper.roc_auc_moments(Rows.data, ties=ties)
    assert (moments.numerator, moments.denominator) == pytest.approx(mean, rel=1e-12)
    centered = sums - mean[:, None]
    assert moments.covariance == pytest.approx(centered @ (mass[:, None] * centered.T), rel=1e-10)


def check_roc_auc_moments():
    moments = dm.paper.roc_auc_moments(Rows.data, ties="half")
    gaussian = dm.paper.pemi_gauss(Rows.data, "roc_auc")["roc_auc"]
    assert (gaussian.mean(), gaussian.var()) == pytest.approx((moments.mean, moments.variance), rel=1e-9)
    (var_a, cov), (_, var_d) = moments.covariance
    sigma, _ = ratio_gaussian(
        moments.numerator, moments.denominator, np.sqrt(var_a), np.sqrt(var_d), cov / np.sqrt(var_a * var_d)
    )
    assert moments.variance == pytest.approx(sigma**2, rel=1e-9)
    complete = dm.paper.roc_auc_moments(dm.EvaluationSet([1, 0, 1, 0], [0.4, 0.4, 0.8, 0.6]), 0.5, ties="half")
    assert (complete.mean, complete.variance) == (roc_auc_score([1, 0, 1, 0], [0.4, 0.4, 0.8, 0.6]), 0.0)
    with pytest.raises(dm.InputError, match="no pair of a positive and a negative row"):
        dm.paper.roc_auc_moments(dm.EvaluationSet([1, 1], [0.2, 0.3]), 0.5)


def check_pit():
    values, mass = Rows.values("recall")
    truth = np.unique(values)[3]
    exact = dm.evaluate(Rows.data, missingness=dm.missing.Fixed(), metrics="recall", method="exact")["recall"]
    assert dm.paper.pit(exact, truth) == pytest.approx(cdf_of(values, mass, truth), abs=1e-12)
    # The `pit` of a distribution leaves out half of the probability of the truth itself.
    assert exact.pit(truth) == pytest.approx(cdf_of(values, mass, truth) - mass[values == truth].sum() / 2, abs=1e-12)
    assert dm.paper.pit([exact, exact], [truth, 2.0]) == pytest.approx([dm.paper.pit(exact, truth), 1.0])


def check_wasserstein_1():
    level = np.random.default_rng(0).beta(2, 3, 50)
    grid = (np.arange(400_000) + 0.5) / 400_000
    empirical = np.searchsorted(np.sort(level), grid, side="right") / 50
    assert dm.paper.wasserstein_1(level) == pytest.approx(np.abs(empirical - grid).mean(), abs=1e-5)
    assert dm.paper.wasserstein_1(np.zeros(9)) == dm.paper.wasserstein_1(np.ones(9)) == 0.5
    with pytest.raises(dm.InputError, match="pit_values"):
        dm.paper.wasserstein_1([0.2, 1.2])


def check_kolmogorov_smirnov():
    level = np.random.default_rng(0).beta(2, 3, 50)
    assert dm.paper.kolmogorov_smirnov(level) == pytest.approx(kstest(level, "uniform").statistic, abs=1e-12)


def check_proposition_5():
    estimator = dm.paper.proposition_5(0.7, n=30)
    k, mass = np.arange(31), binom.pmf(np.arange(31), 30, 0.7)
    assert estimator.mean == pytest.approx(mass @ k / 30, abs=1e-12)
    assert estimator.variance == pytest.approx(mass @ (k / 30 - 0.7) ** 2, abs=1e-12)
    for epsilon in (0.1, 0.2, 0.3):
        assert mass[np.abs(k / 30 - 0.7) >= epsilon].sum() <= estimator.deviation_probability(epsilon)


def check_remark_9():
    arguments = (300, 1000, 20, 30, 0.5)
    terms = list(dm.paper.remark_9(*arguments).values())
    assert np.sqrt(2 / np.pi) * terms[0] * terms[1] * sum(terms[2:]) == pytest.approx(
        dm.paper.theorem_2(*arguments).ks_bound, rel=1e-12
    )


def check_probabilistic_query():
    tp, fn, fp, tn = 0.3, 0.1, 0.2, 0.4
    query = dm.paper.probabilistic_query(["precision", "recall", "accuracy", "f1"], tp=tp, fn=fn, fp=fp, tn=tn)
    expected = [tp / (tp + fp), tp / (tp + fn), tp + tn, 2 * tp / (2 * tp + fp + fn)]
    assert list(query.values()) == pytest.approx(expected, abs=1e-12)
    with pytest.raises(dm.InputError, match="tp, fn, fp, tn"):
        dm.paper.probabilistic_query("recall", tp=0.5, fn=0.5, fp=0.5, tn=0.0)


def check_corollary_rate():
    rate = dm.paper.corollary_rate(1000, r=0.5, p=0.2)
    assert rate.leading == pytest.approx(2 * C0 / np.sqrt(0.5 * 1000 * 0.2 * 0.8), rel=1e-12)


def check_beta_parameters():
    a, b = dm.paper.beta_parameters(0.7, 0.01)
    assert (a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))) == pytest.approx((0.7, 0.01), rel=1e-12)


# All items with a check.
ITEMS = {
    name.removeprefix("check_"): check
    for name, check in sorted(globals().items())
    if name.startswith("check_") and inspect.isfunction(check)
}
REQUIRED = """pemi pemi_gauss oracle_bounds maximum_entropy training_prevalence scaling_binning bootstrap mcar_mask
mnar_mask lemma_1 theorem_2 theorem_3 theorem_4 confusion_moments roc_auc_moments pit wasserstein_1
kolmogorov_smirnov"""


def test_every_required_name_is_checked():
    assert set(REQUIRED.split()) <= set(ITEMS)


@pytest.mark.parametrize("name", ITEMS)
def test_item_is_a_callable_on_the_page_and_equals_an_independent_computation(name):
    assert callable(getattr(dm.paper, name))
    assert name in dm.paper.__all__
    assert f"`dm.paper.{name}(" in PAGE.read_text()
    ITEMS[name]()


TERMS = "MNAR", "Maximum Entropy", "multiple imputation", "eta", "Wasserstein", "probability integral transform"


@pytest.mark.parametrize("term", [*TERMS, "multinoulli"])
def test_terms_of_the_paper_are_on_the_page(term):
    assert term in PAGE.read_text()


@pytest.mark.parametrize(
    ("spelling", "name"), [("F1-score", "f1"), ("ROC-AUC", "roc_auc"), ("TP", "tp"), ("Precision", "precision")]
)
def test_spellings_of_the_paper_are_accepted(spelling, name):
    fixed = dm.missing.Fixed()
    result = dm.evaluate(Rows.data, missingness=fixed, metrics=spelling)
    assert result[name].mean() == dm.evaluate(Rows.data, missingness=fixed, metrics=name)[name].mean()


def test_scaling_binning_is_accepted_as_the_paper_spells_it():
    spelled, plain = (dm.calibrators.calibrator_from(name) for name in ("scaling-binning", "scaling_binning"))
    assert type(spelled) is type(plain) is dm.calibrators.ScalingBinning


def test_there_are_two_to_the_number_of_missing_labels_assignments():
    labels, mass = Rows.assignments()
    assert len(labels) == sum(comb(7, k) for k in range(8))
    assert mass.sum() == pytest.approx(1.0, abs=1e-12)
