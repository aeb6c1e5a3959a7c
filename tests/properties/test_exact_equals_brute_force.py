"""The exact law of every registered metric is the law over all labelings of the missing rows."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import darkmetrics as dm
import oracle
from darkmetrics.distributions import choice, drawing
from oracle import Problem

# Read when tests are collected, before any of them can register more.
REGISTERED = {name: dm.metrics.registered(name) for name in dm.metrics.registered_names()}
EXAMPLES = [r.example.name if isinstance(r, dm.metrics.Family) else r.name for r in REGISTERED.values()]
VARIANTS = [
    "fbeta(0)",
    "fbeta(0.5)",
    "expected_cost(3, 0)",
    "roc_auc(ties='full')",
    "gini(ties='full')",
    "precision_at_k(1)",
    "precision_at_k(0.5)",
    "recall_at_k(0.4)",
    "lift_at_k(0.3)",
]
KINDS: dict[str, type[dm.metrics.Metric]] = {
    "confusion": dm.metrics.ConfusionMetric,
    "top": dm.metrics.TopMetric,
    "rank": dm.metrics.RankMetric,
    "loss": dm.metrics.LossMetric,
}
GROUPS: dict[str, list[str]] = {kind: [] for kind in [*KINDS, "other"]}
for _metric in dm.metrics.metrics_from([*EXAMPLES, *VARIANTS]):
    GROUPS[next((kind for kind, cls in KINDS.items() if isinstance(_metric, cls)), "other")].append(_metric.name)
every_group = pytest.mark.parametrize("names", GROUPS.values(), ids=GROUPS)
count_groups = pytest.mark.parametrize("names", [GROUPS["confusion"], GROUPS["top"]], ids=["confusion", "top"])

# Agreement asked for: sums of up to 2^12 products of at most 12 chances, each rounded to 1e-16.
TOLERANCE = 1e-12


def test_the_oracle_defines_every_registered_metric():
    assert set(REGISTERED) == set(oracle.DEFINITIONS) | set(oracle.FAMILIES)


# ------------------------------------------------------------------------------------------------- problems


# Exact 0 and 1, near them, and anything in between to three digits: near-equal atoms then differ by 1e-9 or more.
chances = st.one_of(
    st.sampled_from([0.0, 1.0, 0.5, 1e-9, 1.0 - 1e-9, 1e-4]), st.integers(1, 999).map(lambda i: i / 1000)
)
tied_scores = st.integers(0, 4).map(lambda i: i / 4)
fine_scores = st.integers(0, 1000).map(lambda i: i / 1000)
whole_weights = st.integers(1, 4).map(float)
real_weights = st.one_of(st.integers(1, 999).map(lambda i: i / 100), st.just(0.0))


@st.composite
def problems(draw, weights=None, max_missing=12, max_rows=25, scores=None):
    """Few rows, many ties and duplicates, any share of labels missing, one class or two."""
    missing = draw(st.integers(1, draw(st.sampled_from([2, 4, 6, max_missing]))))
    known = draw(st.integers(0, max_rows - missing))
    n = missing + known
    score = np.array(
        draw(st.lists(draw(st.sampled_from(scores or [tied_scores, fine_scores])), min_size=n, max_size=n))
    )
    labels = draw(st.sampled_from([[0.0, 1.0], [0.0], [1.0]]))
    y = draw(st.lists(st.sampled_from(labels), min_size=known, max_size=known)) + [math.nan] * missing
    if draw(st.booleans()):
        decision = np.array(draw(st.lists(st.sampled_from([0, 1]), min_size=n, max_size=n)))
    else:
        decision = (score >= draw(st.sampled_from([-1.0, 0.0, 0.25, 0.3, 0.5, 1.0, 2.0]))).astype(int)
    weight = np.ones(n)
    if weights is not None:
        weight = np.array(draw(st.lists(weights, min_size=n, max_size=n)))
        assume(weight.sum() >= 1.0)  # the top 1 needs that much
    p = np.array(draw(st.lists(chances, min_size=missing, max_size=missing)))
    order = np.array(draw(st.permutations(range(n)))) if n <= 8 else np.arange(n)
    y_true = np.array(y)[order]
    return Problem(y_true, score[order], decision[order], weight[order], p)


def solve(names, problem: Problem, zero_division: float | str = math.nan, method="exact"):
    """The library's laws: from labels, scores, decisions, weights and chances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        return dm.evaluate(
            problem.y,
            problem.score,
            y_pred=problem.decision,
            sample_weight=None if np.all(problem.weight == 1.0) else problem.weight,
            metrics=names,
            missingness=dm.missing.Fixed(problem.p),
            method=method,
            zero_division=zero_division,
        )


def solutions(names, problem: Problem, zero_division: float | str = math.nan):
    """For each metric its name, the library's law and the true one."""
    found = solve(names, problem, zero_division)
    y, probability = oracle.labelings(problem)
    for name in names:
        fill = oracle.undefined_as(name) if isinstance(zero_division, str) else zero_division
        values = oracle.definition_of(name)(y, problem.score, problem.decision, problem.weight)
        yield name, found[name], oracle.law_of_values(values, probability, fill)


def assert_same_law(name, found, truth: oracle.Law, moved=0.0):
    """Same cdf at atoms and between them, same quantiles, moments, chance of 0/0; atoms may be `moved` by so much."""
    assert found.undefined == pytest.approx(truth.undefined, abs=TOLERANCE), name
    if len(truth.values) == 0:
        assert math.isnan(found.mean()), name
        return
    scale = max(1.0, float(np.abs(truth.values).max()))
    between = 0.5 * (truth.values[1:] + truth.values[:-1])
    points = np.concatenate([truth.values + moved * scale, between, [truth.values[0] - 1.0, truth.values[-1] + 1.0]])
    points = points[:: 1 + points.size // 300]
    np.testing.assert_allclose(found.cdf(points), truth.cdf(points), 0, TOLERANCE, err_msg=name)
    assert found.mean() == pytest.approx(truth.mean(), abs=TOLERANCE * scale), name
    # A root magnifies the last bits of a small variance, such as that of chances of 1 - 1e-9.
    last_bits = 1e-15 * scale**2 / max(truth.std(), 1e-15)
    assert found.std() == pytest.approx(truth.std(), abs=max(TOLERANCE * scale, min(last_bits, 1e-7))), name
    # Quantiles in the middle of a step, at most ten of them: there no rounding decides which atom it is.
    steps = np.flatnonzero(truth.masses > 100 * TOLERANCE)
    steps = steps[:: 1 + steps.size // 10]
    middle = (np.cumsum(truth.masses) - 0.5 * truth.masses)[steps]
    np.testing.assert_allclose(found.ppf(middle), truth.values[steps], TOLERANCE, 10 * oracle.ATOM, err_msg=name)


def assert_same_bounds(name, found, truth: oracle.Law, atol=TOLERANCE):
    np.testing.assert_allclose(found.support(), (truth.low, truth.high), 0, atol * max(1.0, truth.high), err_msg=name)


fills = st.sampled_from([math.nan, 0.0, 1.0, "warn"])


# ---------------------------------------------------------------------------------------- the law, unit weights


@every_group
@given(problem=problems(), zero_division=fills)
@settings(max_examples=35)
def test_law_equals_brute_force(names, problem, zero_division):
    for name, found, truth in solutions(names, problem, zero_division):
        assert found.method == "exact"
        assert_same_law(name, found, truth)


@every_group
@given(problem=problems(), zero_division=fills)
@settings(max_examples=20)
def test_support_is_the_extremes_over_all_labelings(names, problem, zero_division):
    for name, found, truth in solutions(names, problem, zero_division):
        assert found.bounds_sharp, name
        assert_same_bounds(name, found, truth)


@pytest.mark.parametrize("kind", [kind for kind in GROUPS if kind != "loss"])
@given(problem=problems(scores=[st.integers(-3, 3).map(lambda i: 1e3 * i)]))
@settings(max_examples=20)
def test_law_equals_brute_force_for_scores_that_are_no_probabilities(kind, problem):
    for name, found, truth in solutions(GROUPS[kind], problem):
        assert_same_law(name, found, truth)


@given(problem=problems(max_missing=6), threshold=st.sampled_from([-1.0, 0.0, 0.25, 0.3, 0.5, 1.0, 2.0]))
@settings(max_examples=25)
def test_law_at_a_threshold_equals_brute_force(problem, threshold):
    problem = problem._replace(decision=(problem.score >= threshold).astype(int))
    found = dm.evaluate(
        problem.y,
        problem.score,
        threshold=threshold,
        metrics=GROUPS["confusion"],
        missingness=dm.missing.Fixed(problem.p),
        method="exact",
        zero_division=math.nan,
    )
    for name in GROUPS["confusion"]:
        assert_same_law(name, found[name], oracle.distribution(oracle.definition_of(name), problem))


# ------------------------------------------------------------------------------------------------------- weights


@every_group
@pytest.mark.parametrize("weights", [whole_weights, real_weights], ids=["whole", "real"])
@given(data=st.data(), zero_division=fills)
@settings(max_examples=20)
def test_weighted_law_equals_brute_force(names, weights, data, zero_division):
    problem = data.draw(problems(weights=weights, max_missing=8))
    for name, found, truth in solutions(names, problem, zero_division):
        assert found.method == "exact"
        # Weights from 0.01 to 9.99 leave ratios of a few last digits: an atom is where it is up to 1e-13 or so.
        assert_same_law(name, found, truth, moved=oracle.ATOM)


@pytest.mark.parametrize("kind", [kind for kind in GROUPS if kind != "rank"])
@pytest.mark.parametrize("weights", [whole_weights, real_weights], ids=["whole", "real"])
@given(data=st.data(), zero_division=fills)
@settings(max_examples=20)
def test_weighted_support_is_the_extremes_over_all_labelings(kind, weights, data, zero_division):
    problem = data.draw(problems(weights=weights, max_missing=8))
    for name, found, truth in solutions(GROUPS[kind], problem, zero_division):
        assert found.bounds_sharp, name
        assert_same_bounds(name, found, truth)


@pytest.mark.parametrize("weights", [whole_weights, real_weights], ids=["whole", "real"])
@given(data=st.data(), zero_division=fills)
@settings(max_examples=35)
def test_weighted_rank_bounds_are_sharp_or_say_that_they_only_enclose(weights, data, zero_division):
    problem = data.draw(problems(weights=weights, max_missing=8))
    for name, found, truth in solutions(GROUPS["rank"], problem, zero_division):
        if found.bounds_sharp:
            # A class of 1/10,000 of the weight leaves four digits fewer: the numerator is a difference of two sums.
            assert_same_bounds(name, found, truth, atol=oracle.ATOM)
        else:
            low, high = found.support()
            assert low <= truth.low + TOLERANCE, name
            assert high >= truth.high - TOLERANCE, name


# ------------------------------------------------------------------- the paths that large problems take, on small ones

patched = settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])


@count_groups
@given(problem=problems(max_missing=10))
@patched
def test_counting_equals_brute_force(names, problem, monkeypatch):
    monkeypatch.setattr(choice, "enumerate_assignments", lambda *_: None)
    for name, found, truth in solutions(names, problem):
        assert found.method == "exact"
        assert_same_law(name, found, truth)


@given(problem=problems(max_missing=6), one_sided=st.booleans())
@patched
def test_counting_a_formula_without_directions_equals_brute_force(problem, one_sided, monkeypatch):
    monkeypatch.setattr(choice, "enumerate_assignments", lambda *_: None)
    if one_sided:
        problem = problem._replace(decision=np.ones(problem.y.size, dtype=int))
    formula = dm.metrics.ConfusionMetric(name="mine", formula=lambda tp, fp, fn, tn: (tp - 2.0 * fn) / (tp + fp + 1.0))
    truth = oracle.distribution(oracle.confusion(lambda tp, fp, fn, tn: (tp - 2.0 * fn) / (tp + fp + 1.0)), problem)
    assert_same_law("mine", solve(formula, problem)["mine"], truth)


COUNT_FORMULAS = {
    "recall": lambda tp, fp, fn, tn: tp / (tp + fn),
    "f1": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "mcc": lambda tp, fp, fn, tn: (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)),
    "balanced_accuracy": lambda tp, fp, fn, tn: 0.5 * (tp / (tp + fn) + tn / (tn + fp)),
    "predicted_to_actual": lambda tp, fp, fn, tn: (tp + fp) / (tp + fn),
    "fnr": lambda tp, fp, fn, tn: fn / (tp + fn),
}


@pytest.mark.parametrize("name", COUNT_FORMULAS)
@pytest.mark.parametrize("missing", [30, 60])
def test_counting_many_missing_rows_equals_the_table_of_two_counts(name, missing):
    rng = np.random.default_rng(missing)
    score = rng.random(missing + 40).round(2)
    y = np.concatenate([(rng.random(40) < score[:40]).astype(float), np.full(missing, math.nan)])
    problem = Problem(y, score, (score >= 0.4).astype(int), np.ones(y.size), rng.random(missing))
    found = solve(name, problem)[name]
    assert found.method == "exact"
    assert_same_law(name, found, oracle.law_by_counts(COUNT_FORMULAS[name], problem))


def ks_distance(found, truth: oracle.Law) -> float:
    """Largest difference of the two cdfs, between the atoms of the truth and on both sides of them."""
    step = 1e-9 * max(1.0, float(np.abs(truth.values).max()))
    points = np.concatenate([truth.values - step, truth.values + step, 0.5 * (truth.values[1:] + truth.values[:-1])])
    return float(np.max(np.abs(found.cdf(points) - truth.cdf(points))))


def twelve_missing(seed, rows=400):
    """Twelve missing rows that are uncertain, so that no single label assignment has a probability above 0.01."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    y = (rng.random(rows) < score).astype(float)
    y[:12] = math.nan
    return Problem(y, score, (score >= 0.5).astype(int), np.ones(rows), 0.25 + 0.5 * rng.random(12))


@every_group
@pytest.mark.parametrize("way", ["kind", "flips", "row"])
def test_draws_are_close_to_brute_force(names, way, monkeypatch):
    monkeypatch.setattr(drawing, "_cheapest_way", lambda functional, problem, n: way)
    many = dm.methods.MonteCarlo(2**16)
    problem = twelve_missing(1)
    if way == "kind":
        names = [name for name in names if name in COUNT_FORMULAS]
    found = solve(names, problem, method=many) if names else {}
    for name in names:
        truth = oracle.distribution(oracle.definition_of(name), problem)
        assert found[name].method == "monte carlo"
        assert ks_distance(found[name], truth) < 0.01, name


def test_draws_of_wrong_probabilities_are_not_close_to_brute_force():
    """The control."""
    problem = twelve_missing(1)
    wrong = problem._replace(p=0.7 * problem.p)
    found = solve(["brier"], wrong, method=dm.methods.MonteCarlo(2**16))["brier"]
    assert ks_distance(found, oracle.distribution(oracle.definition_of("brier"), problem)) > 0.05
