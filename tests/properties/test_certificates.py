"""A certificate is never violated: no true law is further from its approximation than the certificate says."""

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings

import darkmetrics as dm
from certificate_problems import (
    CERTIFIED,
    GROUPS,
    LEVELS,
    TOLERANCE,
    Recipe,
    adversarial,
    auc_law,
    count_pmf,
    fills,
    in_turn,
    law_of,
    level_of,
    problem_of,
    recipes,
    solve,
    truths,
    violations,
    wrong,
)
from darkmetrics._kernels import cdf_bounds
from oracle import Problem

# Problems of each kind; with the adversarial list more than 2,000 in all (make guarantees). Every run tries a fifth.
PER_GROUP = {"linear": 500, "ratio": 500, "rank": 250, "formula": 300, "own": 350}


some_and_all = pytest.mark.parametrize("share", [0.2, pytest.param(1.0, marks=pytest.mark.guarantees)])


def test_two_thousand_problems_are_tried():
    assert sum(PER_GROUP.values()) + len(list(adversarial())) >= 2000


# ------------------------------------------------------------------------------------ all labelings of few missing rows


@some_and_all
@pytest.mark.parametrize("kind", GROUPS)
def test_certificate_is_never_violated(kind, share):
    @given(recipe=recipes, zero_division=fills)
    @settings(max_examples=round(share * PER_GROUP[kind]))
    def never(recipe, zero_division):
        problem, levels = problem_of(recipe), level_of(recipe)
        assert wrong(in_turn(kind, recipe.seed), problem, zero_division, levels=levels) == []

    never()


@some_and_all
@pytest.mark.parametrize("kind", GROUPS)
def test_certificate_is_never_violated_where_bounds_break(kind, share):
    for number, recipe in enumerate(adversarial()):
        if share < 1.0 and recipe.seed > 0:  # each way to break a bound once
            continue
        zero_division = ("warn", 0, 1, math.nan)[number % 4]
        # Another level for the next kind, so that a problem meets all three.
        levels = [LEVELS[(number + list(GROUPS).index(kind)) % len(LEVELS)]]
        found = wrong(in_turn(kind, number), problem_of(recipe), zero_division, levels=levels)
        assert found == [], (recipe, zero_division)


def test_all_means_ratios_and_rankings_are_certified():
    found = solve(CERTIFIED, problem_of(Recipe()))
    assert [name for name in CERTIFIED if found[name].certificate is None] == []
    for name in CERTIFIED:
        certificate = found[name].certificate
        assert certificate.confidence == 1.0
        assert certificate.theorem
        assert all(assumption.statement for assumption in certificate.assumptions)


def test_bounds_hold_at_the_atoms_themselves():
    """Values that floats hold exactly, so that the cdf at an atom is asked for and not next to it."""
    y = np.array([1.0, 1.0, 0.0, 0.0] + [math.nan] * 4)
    score = np.array([0.75, 0.25, 0.75, 0.25] * 2)
    for p in ([0.5] * 4, [0.9, 0.1, 0.2, 0.3], [0.0, 1.0, 0.5, 0.5], [1e-12, 0.5, 1.0, 0.25]):
        problem = Problem(y, score, (score >= 0.5).astype(int), np.ones(8), np.array(p))
        found = solve(["accuracy", "precision", "prevalence", "brier"], problem)
        for name, distribution in found.items():
            truth = truths(name, problem)[0]
            assert violations(distribution, truth, blur=0.0) == [], name
            lower, upper = distribution.certificate.cdf_bounds(truth.values)
            assert np.all(lower <= truth.cdf(truth.values) + 1e-15), name
            assert np.all(upper >= truth.cdf(truth.values) - 1e-15), name


def test_certified_interval_far_from_zero_holds_the_atoms_at_its_ends():
    """Bounds known to thirteen digits are as far off as the law is wide; the interval must not end in between."""
    y, score = np.array([0.0, 1.0, math.nan]), np.array([0.2, 0.7, 0.9])
    loss = dm.metrics.LossMetric(name="far", loss=lambda y, s: 1e6 + y * s)
    distribution = dm.evaluate(y, score, metrics=loss, missingness=dm.missing.Fixed([0.3]), method="gaussian")["far"]
    low, high = distribution.interval(0.9, certified=True)
    # The two values, one for each label, which have 0.7 and 0.3 of the mass.
    atoms = np.array([0.7, 0.7 + 0.9]) / 3 + 1e6
    assert low <= atoms[0] + 1e-9
    assert high >= atoms[1] - 1e-9


def test_extremes_of_very_different_size_do_not_blur_each_other():
    """Weights that differ in the last bits make values of 1e13 or more; the others are below 200."""
    recipe = Recipe(10, 1, "both", "ends", "strict", "real", "half")
    for seed in range(10):
        problem = problem_of(recipe._replace(seed=seed))
        # Sums of these are exact, so that a difference of 2^-45 is one.
        close = np.ones(11)
        close[seed] += 2.0**-45
        assert wrong(["either_sign"], problem._replace(weight=close), levels=()) == []


@pytest.mark.parametrize("p", [1e-16, 1e-80, 1e-150, 1e-300, 5e-324])
def test_chances_that_are_hardly_there_break_nothing(p):
    problem = problem_of(Recipe())
    names = ["accuracy", "precision", "brier", "recall", "f1", "roc_auc"]
    assert wrong(names, problem._replace(p=np.full(8, p)), levels=[0.9]) == []


def test_scalars_and_arrays_of_any_shape_are_answered_alike():
    distribution = solve(["recall"], problem_of(Recipe()))["recall"]
    t = np.array([[0.2, 0.4], [0.6, 0.8]])
    bound, (lower, upper) = distribution.certificate.bound_at(t), distribution.certificate.cdf_bounds(t)
    assert bound.shape == lower.shape == upper.shape == t.shape
    assert isinstance(distribution.certificate.bound_at(0.4), float)
    assert distribution.certificate.bound_at(0.4) == bound[0, 1]
    assert distribution.certificate.cdf_bounds(0.4) == (lower[0, 1], upper[0, 1])


def test_nothing_missing_is_certain():
    y, score = np.array([1.0, 0.0, 1.0, 0.0]), np.array([0.9, 0.8, 0.6, 0.1])
    found = dm.evaluate(y, score, method="gaussian", metrics=["recall", "roc_auc"], missingness=dm.missing.Fixed(0.5))
    for distribution in found.values():
        assert distribution.certificate is not None
        assert distribution.certificate.ks_bound == 0.0
        assert distribution.interval(0.9, certified=True) == (distribution.mean(), distribution.mean())


# ---------------------------------------------------------------------------------------------------- many missing rows


def of_two_scores(missing, known, p, seed=0, share=0.5):
    """Missing rows of two scores only: for every metric the two numbers of positives decide."""
    rng = np.random.default_rng(seed)
    score = np.where(rng.random(missing + known) < share, 0.7, 0.2)
    y = (rng.random(missing + known) < score).astype(float)
    y[:missing] = math.nan
    chance = np.clip(p * np.where(score[:missing] > 0.5, 1.3, 0.7), 0.0, 1.0) * rng.uniform(0.9, 1.0, missing)
    return Problem(y, score, (score >= 0.5).astype(int), np.ones(y.size), chance)


@pytest.mark.parametrize("kind", [kind for kind in GROUPS if kind != "formula"])
@pytest.mark.parametrize("p", [0.003, 0.05, 0.4, 0.97])
@pytest.mark.parametrize(("missing", "known", "share"), [(30, 0, 0.5), (60, 40, 0.5), (90, 60, 0.05), (60, 0, 0.95)])
def test_certificate_is_never_violated_by_two_counts(kind, p, missing, known, share):
    names = in_turn(kind, missing + known + round(1000 * p))
    problem = of_two_scores(missing, known, p, missing, share)
    assert wrong(names, problem, 0, by_count=True) == []


COUNT_FORMULAS = {
    "precision": lambda tp, fp, fn, tn: tp / (tp + fp),
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "specificity": lambda tp, fp, fn, tn: tn / (tn + fp),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "jaccard": lambda tp, fp, fn, tn: tp / (tp + fp + fn),
    "accuracy": lambda tp, fp, fn, tn: (tp + tn) / (tp + fp + fn + tn),
    "predicted_to_actual": lambda tp, fp, fn, tn: (tp + fp) / (tp + fn),
}


def by_two_poisson_binomials(formula, problem):
    """The law from scipy's two laws of counts, cut where they weigh less than 1e-14 in all."""
    decided = problem.decision[problem.missing] == 1
    (first, p), (second, q) = (_window(count_pmf(problem.p[group])) for group in (decided, ~decided))
    tp = np.sum((problem.y == 1) & (problem.decision == 1)) + first[:, None]
    fn = np.sum((problem.y == 1) & (problem.decision == 0)) + second[None, :]
    yes, no = problem.decision.sum(), (1 - problem.decision).sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        values = formula(*np.broadcast_arrays(tp + 0.0, yes - tp + 0.0, fn + 0.0, no - fn + 0.0))
    return law_of(np.where(np.isfinite(values), values, np.nan).ravel(), np.multiply.outer(p, q).ravel())


def _window(pmf):
    inside = np.flatnonzero(pmf > 1e-18)
    return inside, pmf[inside]


def scored_problem(n, seed=0, share=0.3, power=2.0, decimals=None):
    """Scores U^power that are the chances themselves."""
    rng = np.random.default_rng([n, seed])
    score = rng.random(n) ** power
    score = score if decimals is None else score.round(decimals)
    y = (rng.random(n) < score).astype(float)
    y[rng.random(n) < share] = math.nan
    return Problem(y, score, (score >= 0.5).astype(int), np.ones(n), score[np.isnan(y)])


@pytest.mark.parametrize(
    ("n", "power", "share"), [(300, 2.0, 0.3), (300, 12.0, 1.0), (2000, 2.0, 0.3), (2000, 30.0, 0.5)]
)
def test_certificate_of_many_rows_is_never_violated(n, power, share):
    problem = scored_problem(n, share=share, power=power)
    found = solve(list(COUNT_FORMULAS), problem)
    for name, formula in COUNT_FORMULAS.items():
        assert violations(found[name], by_two_poisson_binomials(formula, problem)) == [], name


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize(("n", "power", "share"), [(60, 2.0, 0.5), (150, 2.0, 0.3), (150, 12.0, 0.3), (40, 1.0, 1.0)])
def test_roc_auc_certificate_is_never_violated_by_the_law_of_two_sums(n, power, share, decimals):
    problem = scored_problem(n, 1, share, power, decimals)
    truth = auc_law(problem)
    assert violations(solve(["roc_auc"], problem)["roc_auc"], truth) == []


@pytest.mark.parametrize("decimals", [None, 1])
def test_certificates_of_nearly_exact_laws_are_never_violated(decimals):
    problem = scored_problem(150, 3, 0.3, decimals=decimals)
    distribution = solve(["roc_auc"], problem, method="auto")["roc_auc"]
    assert distribution.certificate is not None
    assert violations(distribution, auc_law(problem), slack=TOLERANCE if distribution.method != "exact" else 1e-8) == []


def test_law_of_two_sums_is_the_law_over_all_labelings():
    """The oracle itself."""
    for seed in range(5):
        problem = problem_of(Recipe(8, 6, "both", "tied", seed=seed))
        one, other = auc_law(problem), truths("roc_auc", problem)[0]
        np.testing.assert_allclose(one.values, other.values, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(one.masses, other.masses, rtol=0.0, atol=1e-14)


@pytest.mark.parametrize(("n", "power"), [(500, 2.0), (500, 10.0)])
def test_roc_auc_certificate_is_not_violated_by_a_million_scenarios(n, power):
    problem = scored_problem(n, 2, 0.2, power)
    rng = np.random.default_rng(n)
    rank = scipy.stats.rankdata(problem.score)
    missing, known = problem.missing, problem.y == 1
    draws = 1_000_000
    positives, ranks = np.empty(draws), np.empty(draws)
    for start in range(0, draws, 50_000):
        rows = slice(start, start + 50_000)
        labels = (rng.random((50_000, missing.size), dtype=np.float32) < problem.p).astype(np.float32)
        positives[rows] = known.sum() + labels.sum(axis=1)
        # Whole numbers below 2^24: sums of doubled ranks in single precision are exact.
        ranks[rows] = rank[known].sum() + 0.5 * (labels @ (2.0 * rank[missing]).astype(np.float32))
    auc = (ranks - positives * (positives + 1.0) / 2.0) / (positives * (n - positives))
    # A million draws are within this of the truth, but for one time in 10,000.
    slack = math.sqrt(math.log(2.0 / 1e-4) / (2.0 * draws))
    assert (
        violations(solve(["roc_auc"], problem)["roc_auc"], law_of(auc, np.full(draws, 1.0 / draws)), slack=slack) == []
    )


# ------------------------------------------------------------------------------------------- the control, and tightness


def fair_coins(m, share=0.5):
    """Fair coins, a share of them decided positive, and known rows that mirror each other: the largest steps."""
    decided = round(share * m)
    score = np.concatenate([np.full(decided, 0.8), np.full(m - decided, 0.2), [0.8, 0.8, 0.2, 0.2]])
    y = np.concatenate([np.full(m, math.nan), [1.0, 0.0, 1.0, 0.0]])
    return Problem(y, score, (score >= 0.5).astype(int), np.ones(y.size), np.full(m, 0.5))


@pytest.mark.parametrize("m", [40, 80])
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("accuracy", 0.5),
        ("precision", 0.5),
        ("brier", 0.5),
        ("recall", 0.5),
        ("specificity", 0.5),
        ("f1", 1.0),  # with both decisions open the steps of F1 are a third of those of its numerator
        ("jaccard", 1.0),
        ("roc_auc", 0.5),
    ],
)
def test_a_halved_constant_is_caught(name, share, m, monkeypatch):
    """The control: the check that passes with the proven constant finds the certificate wrong with half of it."""
    problem = fair_coins(m, share)
    assert wrong([name], problem, by_count=True) == []
    monkeypatch.setattr(cdf_bounds, "CONSTANT", 0.5 * cdf_bounds.CONSTANT)
    found = wrong([name], problem, by_count=True)
    assert any("above bound_at" in words for words in found), found
    assert any("cdf_bounds" in words for words in found), found


@pytest.mark.parametrize("name", ["accuracy", "brier"])
def test_a_halved_constant_breaks_the_largest_distance_too(name, monkeypatch):
    monkeypatch.setattr(cdf_bounds, "CONSTANT", 0.5 * cdf_bounds.CONSTANT)
    assert any("above ks_bound" in words for words in wrong([name], fair_coins(80), by_count=True))


def test_intervals_that_are_not_certified_fail_the_check_of_the_certified_ones():
    """The control: a Gaussian interval of a skewed law holds less than it says."""
    problem = of_two_scores(60, 0, 0.01, 3)
    distribution = solve(["recall", "prevalence"], problem)["prevalence"]
    truth = by_two_poisson_binomials(lambda tp, fp, fn, tn: (tp + fn) / (tp + fp + fn + tn), problem)
    low, high = distribution.interval(0.99)
    assert truth.masses[(truth.values >= low) & (truth.values <= high)].sum() < 0.99
    assert violations(distribution, truth) == []


def berry_esseen_ratio(k, p):
    """`sum |k|^3 E|Y - p|^3 / (sum k^2 v)^(3/2)`, written out."""
    third = np.abs(k) ** 3 * (p * (1 - p) ** 3 + (1 - p) * p**3)
    return third.sum() / (k**2 * p * (1 - p)).sum() ** 1.5


@pytest.mark.parametrize("n", [2000, 50_000])
def test_certificate_of_a_mean_is_the_textbook_bound_or_better(n):
    problem = scored_problem(n)
    found = solve(["accuracy", "brier", "log_loss"], problem)
    score, d = problem.score[problem.missing], problem.decision[problem.missing]
    for name, k in {"accuracy": 2.0 * d - 1.0, "brier": 1.0 - 2.0 * score, "log_loss": np.log(1 / score - 1)}.items():
        # A grid in t costs a little; a bound that is ten per cent larger would be a worse grid than need be.
        assert found[name].certificate.ks_bound <= 1.1 * 0.56 * berry_esseen_ratio(k, problem.p), name


@pytest.mark.parametrize("n", [2000, 50_000])
def test_certificate_of_a_ratio_is_the_textbook_bound_or_better(n):
    """Berry-Esseen at each t plus the gap between the Geary-Hinkley form and the Gaussian (mathematics, section 6)."""
    problem = scored_problem(n)
    d, p = problem.decision[problem.missing], problem.p
    distribution = solve(["recall"], problem)["recall"]
    known = problem.y == 1
    mean_z = float((known & (problem.decision == 1)).sum() + p[d == 1].sum())
    mean_w = float(known.sum() + p.sum())
    worst = 0.0
    for t in distribution.mean() + distribution.std() * np.linspace(-6.0, 6.0, 241):
        k = d - t
        sd = math.sqrt(float((k**2 * p * (1 - p)).sum()))
        between = abs(scipy.stats.norm.cdf((t * mean_w - mean_z) / sd) - distribution.cdf(t))
        worst = max(worst, 0.56 * berry_esseen_ratio(k, p) + between)
    assert distribution.certificate.ks_bound <= 1.1 * worst


def test_certificate_shrinks_as_rows_come_in():
    for name in ("accuracy", "recall", "f1", "roc_auc"):
        bounds = [solve([name], scored_problem(n))[name].certificate.ks_bound for n in (500, 5000, 50_000)]
        assert bounds == sorted(bounds, reverse=True)
        assert bounds[-1] < 0.05


@pytest.mark.parametrize("seed", [0, 1])
def test_roc_auc_certificate_falls_like_one_over_root_n(seed):
    sizes = np.array([2_000, 20_000, 200_000])
    bounds = [solve(["roc_auc"], scored_problem(int(n), seed))["roc_auc"].certificate.ks_bound for n in sizes]
    assert np.all(np.array(bounds) <= [0.13, 0.042, 0.0135]), bounds
    slope = np.polyfit(np.log(sizes), np.log(bounds), 1)[0]
    assert -0.55 <= slope <= -0.45
