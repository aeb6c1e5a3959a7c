"""Every registered metric: its value, its record, its name, and the metrics that users add."""

import inspect
import math
import warnings
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pytest
import sklearn.metrics
from hypothesis import given, settings
from hypothesis import strategies as st

import darkmetrics as dm
import oracle
from darkmetrics.metrics import ConfusionMetric, Family, LossMetric, Metric
from oracle import Problem

# Read when tests are collected, before any of them can register more.
RECORDS: list[Metric] = [
    record.example if isinstance(record, Family) else record
    for record in (dm.metrics.registered(name) for name in dm.metrics.registered_names())
]
NAMES = [record.name for record in RECORDS]
# Where rows are compared with weights, the top k is a count: a fraction is rounded to whole rows, but not of weights.
WITH_COUNTS = [name.replace("_at_k(0.1)", "_at_k(2)") for name in NAMES]
CONFUSION = [record for record in RECORDS if isinstance(record, ConfusionMetric)]


def evaluated(y, score, metrics, p=0.5, **rest):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        return dm.evaluate(y, score, metrics=metrics, missingness=dm.missing.Fixed(p), **rest)


def random_problem(seed, rows=20, missing=7, weighted=False) -> Problem:
    rng = np.random.default_rng(seed)
    score = rng.random(rows).round(1)
    y = np.concatenate([[0.0, 1.0], rng.integers(0, 2, rows - missing - 2), np.full(missing, math.nan)])
    weight = rng.integers(1, 5, rows) * 1.0 if weighted else np.ones(rows)
    return Problem(y, score, (score >= 0.5).astype(int), weight, rng.random(missing).round(3))


def assert_same(found, expected):
    """Two laws of the library agree; sums may have been added up in another order."""
    assert found.mean() == pytest.approx(expected.mean(), abs=1e-12, nan_ok=True)
    assert found.std() == pytest.approx(expected.std(), abs=1e-12, nan_ok=True)
    assert found.undefined == pytest.approx(expected.undefined, abs=1e-12)
    assert found.support() == pytest.approx(expected.support(), abs=1e-12, nan_ok=True)
    grid = np.linspace(-1.03, 3.01, 101)  # off the fractions with small denominators that atoms are
    np.testing.assert_allclose(found.cdf(grid), expected.cdf(grid), atol=1e-12)


# -------------------------------------------------------------------------------- no label missing: scikit-learn


@st.composite
def complete_rows(draw):
    n = draw(st.integers(1, 20))
    column = st.lists(st.integers(0, draw(st.sampled_from([2, 100]))), min_size=n, max_size=n)
    score = np.array(draw(column), dtype=float)
    score = score / max(1.0, score.max())
    classes = draw(st.sampled_from([[0, 1], [0], [1]]))
    y = np.array(draw(st.lists(st.sampled_from(classes), min_size=n, max_size=n)))
    decision = np.array(
        draw(st.lists(st.sampled_from(draw(st.sampled_from([[0, 1], [0], [1]]))), min_size=n, max_size=n))
    )
    weight = np.array(draw(st.lists(st.integers(1, 40), min_size=n, max_size=n))) / 8
    return y, score, decision, draw(st.sampled_from([None, weight]))


@pytest.mark.parametrize("name", oracle.SKLEARN)
@given(rows=complete_rows())
@settings(max_examples=25)
def test_without_missing_labels_the_law_is_a_point_at_the_value_of_sklearn(name, rows):
    y, score, decision, weight = rows
    expected = oracle.sklearn_value(name, y, score, decision, weight)
    distribution = evaluated(y, score, name, y_pred=decision, sample_weight=weight)[name]
    # scikit-learn adds up in another order, and average precision and MCC divide before they add.
    assert distribution.mean() == pytest.approx(expected, abs=1e-12, nan_ok=True)
    assert distribution.support() == pytest.approx((expected, expected), abs=1e-12, nan_ok=True)
    if not math.isnan(expected):
        assert distribution.std() == 0.0
        assert distribution.ppf([0.0, 0.5, 1.0]) == pytest.approx([expected] * 3, abs=1e-12)


@pytest.mark.parametrize("name", oracle.SKLEARN)
@given(rows=complete_rows())
@settings(max_examples=25)
def test_the_oracle_agrees_with_sklearn(name, rows):
    y, score, decision, weight = rows
    expected = oracle.sklearn_value(name, y, score, decision, weight)
    ones = np.ones(len(y)) if weight is None else weight
    found = float(oracle.definition_of(name)(y[None, :] * 1.0, score, decision, ones)[0])
    found = oracle.undefined_as(name) if math.isnan(found) else found
    assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(scores=st.lists(st.integers(0, 2), min_size=1, max_size=5), data=st.data())
@settings(max_examples=60)
def test_the_oracle_of_the_top_k_is_the_mean_over_all_tie_breaks(scores, data):
    y = data.draw(st.lists(st.sampled_from([0, 1]), min_size=len(scores), max_size=len(scores)))
    k = data.draw(st.integers(1, len(scores)))
    expected = oracle.positives_in_top_by_permutation(y, scores, k) / k
    rows = np.array([y], dtype=float), np.array(scores, dtype=float), np.zeros(len(y)), np.ones(len(y))
    assert float(oracle.definition_of(f"precision_at_k({k})")(*rows)[0]) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_without_missing_labels_the_law_is_a_point_at_the_definition(name):
    problem = random_problem(1, missing=0)
    expected = oracle.distribution(oracle.definition_of(name), problem)
    distribution = evaluated(problem.y, problem.score, name)[name]
    assert distribution.mean() == pytest.approx(float(expected.values[0]), abs=1e-12)
    assert distribution.std() == 0.0


@pytest.mark.parametrize("name", NAMES)
def test_labeled_only_is_the_metric_of_the_labeled_rows(name):
    problem = random_problem(2)
    known = ~np.isnan(problem.y)
    alone = oracle.definition_of(name)(
        problem.y[known][None, :], problem.score[known], problem.decision[known], problem.weight[known]
    )
    result = evaluated(problem.y, problem.score, name, problem.p)
    assert result.labeled_only[name] == pytest.approx(float(alone[0]), abs=1e-12)


# ------------------------------------------------------------------------------------------- all labels missing


@pytest.mark.parametrize("name", NAMES)
def test_with_all_labels_missing_the_law_equals_brute_force(name):
    problem = random_problem(3, rows=10, missing=8)
    problem = problem._replace(y=np.full(10, math.nan), p=np.linspace(0.05, 0.9, 10))
    truth = oracle.distribution(oracle.definition_of(name), problem)
    distribution = evaluated(problem.y, problem.score, name, problem.p, zero_division=math.nan)[name]
    assert distribution.mean() == pytest.approx(truth.mean(), abs=1e-12)
    assert distribution.std() == pytest.approx(truth.std(), abs=1e-12)
    assert distribution.undefined == pytest.approx(truth.undefined, abs=1e-12)


@pytest.mark.parametrize("method", ["auto", "exact"])
def test_with_all_of_many_labels_missing_every_metric_has_a_law(method):
    rng = np.random.default_rng(0)
    score = rng.random(300)
    names = [name for name in NAMES if method == "auto" or name != "average_precision"]
    result = evaluated(np.full(300, math.nan), score, names, score, method=method, rng=0)
    for name in names:
        assert math.isfinite(result[name].mean()), name
        assert result[name].std() > 0.0, name


# --------------------------------------------------------------------------------------- rows are a set with weights


@pytest.mark.parametrize("weighted", [False, True])
def test_the_order_of_rows_never_matters(weighted):
    problem = random_problem(4, weighted=weighted)
    p = np.full(problem.y.size, math.nan)
    p[problem.missing] = problem.p
    first = evaluated(problem.y, problem.score, NAMES, p, sample_weight=problem.weight, method="exact")
    order = np.random.default_rng(0).permutation(problem.y.size)
    y, score, weight = problem.y[order], problem.score[order], problem.weight[order]
    second = evaluated(y, score, NAMES, p[order], sample_weight=weight, method="exact")
    for name in NAMES:
        assert_same(second[name], first[name])


def test_rows_that_come_in_two_sets_are_the_rows_of_their_sum():
    problem = random_problem(5)
    p = np.full(problem.y.size, math.nan)
    p[problem.missing] = problem.p
    whole = evaluated(problem.y, problem.score, NAMES, p, method="exact")
    odd, even = (
        dm.EvaluationSet(problem.y[i::2], problem.score[i::2], missingness=dm.missing.Fixed(p[i::2])) for i in (0, 1)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        parts = dm.evaluate(odd + even, metrics=NAMES, method="exact")
    for name in NAMES:
        assert_same(parts[name], whole[name])


@pytest.mark.parametrize("name", WITH_COUNTS)
def test_a_known_row_of_weight_two_is_the_same_as_two_rows(name):
    problem = random_problem(6)
    known = np.flatnonzero(~np.isnan(problem.y))
    twice = known[::2]
    weight = np.ones(problem.y.size)
    weight[twice] = 2.0
    weighted = evaluated(problem.y, problem.score, name, problem.p, sample_weight=weight, method="exact")[name]
    y = np.concatenate([problem.y[twice], problem.y])
    score = np.concatenate([problem.score[twice], problem.score])
    repeated = evaluated(y, score, name, problem.p, method="exact")[name]
    assert_same(weighted, repeated)


@pytest.mark.parametrize("name", [name for name in NAMES if "_at_k" not in name])
def test_the_unit_of_the_weights_never_matters(name):
    problem = random_problem(7, weighted=True)
    distributions = [
        evaluated(problem.y, problem.score, name, problem.p, sample_weight=unit * problem.weight, method="exact")[name]
        for unit in (1.0, 0.001, 250.0)
    ]
    assert_same(distributions[1], distributions[0])
    assert_same(distributions[2], distributions[0])


@pytest.mark.parametrize("name", ["precision_at_k(0.1)", "recall_at_k(0.25)", "lift_at_k(0.5)"])
def test_a_fraction_of_the_rows_does_not_depend_on_the_unit_of_the_weights(name):
    problem = random_problem(8, weighted=True)
    share = problem.weight / problem.weight.sum()
    one, million = (
        evaluated(problem.y, problem.score, name, problem.p, sample_weight=unit * share)[name] for unit in (1.0, 1e6)
    )
    assert_same(million, one)


@pytest.mark.parametrize("name", WITH_COUNTS)
def test_a_row_of_weight_zero_is_not_there(name):
    problem = random_problem(9)
    weight = np.ones(problem.y.size)
    gone = np.array([2, 5, problem.missing[0], problem.missing[3]])
    weight[gone] = 0.0
    weighted = evaluated(problem.y, problem.score, name, problem.p, sample_weight=weight, method="exact")[name]
    kept = weight > 0.0
    left = evaluated(problem.y[kept], problem.score[kept], name, problem.p[kept[problem.missing]], method="exact")[name]
    assert_same(weighted, left)


@pytest.mark.parametrize("name", WITH_COUNTS)
def test_labeled_rows_may_all_have_weight_zero(name):
    score, weight = [0.1, 0.9, 0.4, 0.8], [0.0, 0.0, 1.0, 1.0]
    found = evaluated([0, 1, None, None], score, name, [0.3, 0.6], sample_weight=weight, method="exact")[name]
    left = evaluated([None, None], score[2:], name, [0.3, 0.6], method="exact")[name]
    assert_same(found, left)


def test_metrics_asked_for_together_have_the_laws_they_have_alone():
    rng = np.random.default_rng(11)
    score, p = rng.random(100).round(1), rng.random(100)
    names = [f"{kind}_at_k({k})" for k in range(1, 41) for kind in ("precision", "recall", "lift")]
    together = evaluated([None] * 100, score, names, p, method="exact")
    for name in names:
        assert together[name].mean() == evaluated([None] * 100, score, name, p, method="exact")[name].mean(), name


# ----------------------------------------------------------------------------------------------------- the records


@pytest.mark.parametrize("metric", RECORDS, ids=NAMES)
def test_every_metric_says_what_it_means(metric):
    assert metric.meaning
    assert metric.better in ("higher", "lower", "neither")
    assert metric.range[0] < metric.range[1]


@pytest.mark.parametrize("name", dm.metrics.registered_names())
def test_every_family_can_be_made_from_the_name_of_its_example(name):
    record = dm.metrics.registered(name)
    text = record.example.name if isinstance(record, Family) else record.name
    (made,) = dm.metrics.metrics_from(text)
    assert made.name == text


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_values_stay_in_the_range_that_the_metric_declares(seed, weighted):
    problem = random_problem(seed, rows=12, missing=6, weighted=weighted)
    result = evaluated(problem.y, problem.score, RECORDS, problem.p, sample_weight=problem.weight, method="exact")
    for metric in RECORDS:
        low, high = result[metric.name].support()
        assert metric.range[0] - 1e-12 <= low <= high <= metric.range[1] + 1e-12, metric.name


@pytest.mark.parametrize("metric", CONFUSION, ids=lambda metric: metric.name)
def test_a_metric_moves_in_the_direction_it_declares(metric):
    """All confusion matrices of up to 7 decided positive and up to 7 decided negative."""
    for yes, no in product(range(8), repeat=2):
        tp, fn = np.meshgrid(np.arange(yes + 1.0), np.arange(no + 1.0), indexing="ij")
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(metric.formula(tp, yes - tp, fn, no - fn), dtype=float)
        value = np.where(np.isfinite(value), value, math.nan)
        for axis, direction in enumerate(metric.direction):
            if direction is None:
                continue
            change = np.diff(value, axis=axis)
            change = change[~np.isnan(change)]
            # Rounding may move a value by its last digit; the smallest true change is 1e-4.
            ok = np.abs(change) < 1e-12 if direction == 0 else direction * change > -1e-12
            assert ok.all(), (yes, no, axis)


@pytest.mark.parametrize("metric", CONFUSION, ids=lambda metric: metric.name)
def test_a_metric_with_directions_is_undefined_only_at_the_ends_of_the_counts(metric):
    """What the bounds and the large-window law rely on: 0/0 takes a class or a decision that vanishes."""
    for yes, no in product(range(6), repeat=2):
        tp, fn = np.meshgrid(np.arange(yes + 1.0), np.arange(no + 1.0), indexing="ij")
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(metric.formula(tp, yes - tp, fn, no - fn), dtype=float)
        value = np.broadcast_to(value, tp.shape)
        bad = ~np.isfinite(value)
        if bad.all():
            continue
        corner = ((tp + fn) == 0) | ((tp + fn) == yes + no)
        assert not (bad & ~corner).any(), (yes, no)


@pytest.mark.parametrize("metric", CONFUSION, ids=lambda metric: metric.name)
def test_every_metric_of_the_library_declares_its_directions(metric):
    assert None not in metric.direction


def test_a_wrong_direction_would_be_noticed():
    """The control: the check above, on a metric that declares the opposite."""
    wrong = ConfusionMetric(name="wrong", formula=lambda tp, fp, fn, tn: tp / (tp + fp), direction=(-1, 0))
    with pytest.raises(AssertionError):
        test_a_metric_moves_in_the_direction_it_declares(wrong)


# ---------------------------------------------------------------------------------------------------- the registry


def test_a_registered_metric_is_found_by_its_name():
    share = ConfusionMetric(name="alerts", formula=lambda tp, fp, fn, tn: (tp + fp) / (tp + fp + fn + tn))
    assert dm.register_metric(share) is share
    assert "alerts" in dm.metrics.registered_names()
    assert evaluated([1, 0, None, 0], [0.9, 0.8, 0.7, 0.1], "alerts")["alerts"].mean() == pytest.approx(0.75)


def test_a_registered_family_takes_its_parameter_from_the_text():
    def at_most(limit: float) -> LossMetric:
        return LossMetric(name=f"far({limit})", loss=lambda y, s: (abs(y - s) > limit) * 1.0, better="lower")

    dm.register_metric(Family(name="far", make=at_most, example=at_most(0.5), needs_argument=True))
    assert evaluated([1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1], "far(0.5)")["far(0.5)"].mean() == pytest.approx(0.5)


def test_a_name_is_registered_twice_only_on_request():
    mine = ConfusionMetric(name="recall", formula=lambda tp, fp, fn, tn: 0.25 + 0.0 * tp)
    with pytest.raises(dm.InputError, match=r"'recall' is already registered. Pass overwrite=True"):
        dm.register_metric(mine)
    dm.register_metric(mine, overwrite=True)
    assert evaluated([1, 0, None, 0], [0.9, 0.8, 0.7, 0.1], "recall")["recall"].mean() == pytest.approx(0.25)


def test_what_is_not_a_metric_cannot_be_registered():
    with pytest.raises(dm.InputError, match="It must be a Metric such as ConfusionMetric"):
        dm.register_metric(sklearn.metrics.roc_auc_score)


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [("roc-aus", "roc_auc"), ("recal", "recall"), ("F_1_1", "f1"), ("fbeta2(2)", "fbeta"), ("precission", "precision")],
)
def test_an_unknown_metric_is_answered_with_the_nearest_name(text, suggestion):
    with pytest.raises(dm.exceptions.UnknownNameError, match=rf"unknown metric .*Did you mean '{suggestion}'\?"):
        dm.evaluate([1, 0], [0.9, 0.1], metrics=text, missingness=dm.missing.Fixed(0.5))


def test_an_unknown_metric_is_answered_with_how_many_there_are():
    with pytest.raises(dm.exceptions.UnknownNameError, match=rf"list_metrics\(\) shows all {len(dm.list_metrics())}\."):
        dm.metrics.metrics_from("roc-aus")


@pytest.mark.parametrize("weight", [0.1, 0.3, 0.7, 1.0 / 3.0])
@pytest.mark.parametrize(("k", "rows"), [(0.1, 55), (0.1, 25), (0.29, 50), (0.3, 15)])
def test_a_top_that_ends_in_half_a_row_is_the_same_whatever_all_rows_weigh(weight, k, rows):
    """A sum of 55 weights of 0.1 is a little less than 5.5: half a row must not be lost in that."""
    y, score = np.zeros(rows), np.arange(rows) / rows
    top = int(Fraction(str(k)) * rows + Fraction(1, 2))
    y[rows - top] = 1.0  # the last row of the top
    found = dm.evaluate(y, score, sample_weight=np.full(rows, weight), metrics=f"recall_at_k({k})")
    assert found[f"recall_at_k({k})"].mean() == 1.0


@pytest.mark.parametrize("name", ["fbeta", "precision_at_k", "recall_at_k", "lift_at_k"])
def test_a_family_without_its_parameter_is_answered_with_an_example(name):
    with pytest.raises(dm.InputError, match=rf"'{name}' has no parameter. Pass one, such as '{name}\("):
        dm.metrics.metrics_from(name)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("fbeta(2)", "fbeta(2)"),
        ("fbeta(beta=0.5)", "fbeta(0.5)"),
        (" recall ", "recall"),
        ("precision_at_k(0.1)", "precision_at_k(0.1)"),
        ("precision_at_k(10)", "precision_at_k(10)"),
        ("roc_auc", "roc_auc"),
        ("roc_auc()", "roc_auc"),
        ("roc_auc(ties='full')", "roc_auc(ties='full')"),
        ('roc_auc("full")', "roc_auc(ties='full')"),
        ("gini('half')", "gini"),
        ("expected_cost", "expected_cost(1, 1)"),
        ("expected_cost(c_fn=10, c_fp=2)", "expected_cost(2, 10)"),
    ],
)
def test_a_metric_is_read_from_its_name_and_parameters(text, name):
    (metric,) = dm.metrics.metrics_from(text)
    assert metric.name == name


@pytest.mark.parametrize(
    "text",
    [
        "fbeta(",
        "fbeta()",
        "fbeta(2",
        "fbeta(2, 3)",
        "fbeta(gamma=2)",
        "fbeta(x)",
        "fbeta('2')",
        "fbeta(2)(3)",
        "fbeta(2) + 1",
        "fbeta(2).name",
        "fbeta(-1)",
        "fbeta(1e999)",
        "fbeta(__import__('os'))",
        "recall(2)",
        "recall()",
        "roc_auc(",
        "roc_auc(ties='third')",
        "precision_at_k(0)",
        "precision_at_k(-3)",
        "precision_at_k(1.5)",
        "precision_at_k(True)",
        "precision_at_k('a')",
        "expected_cost(-1, 1)",
        "(2)",
        "",
    ],
)
def test_a_name_that_makes_no_sense_is_refused(text):
    with pytest.raises(dm.InputError):
        dm.metrics.metrics_from(text)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [([], "none"), (["recall", "recall"], "'recall' is passed twice"), (3, "names or metrics"), ([3], "a Metric")],
)
def test_a_list_of_metrics_that_makes_no_sense_is_refused(metrics, message):
    with pytest.raises(dm.InputError, match=message):
        dm.evaluate([1, 0], [0.9, 0.1], metrics=metrics, missingness=dm.missing.Fixed(0.5))


def test_metrics_can_be_given_under_names_of_ones_own():
    asked = {
        "found": "recall",
        "ranking": sklearn.metrics.average_precision_score,
        "cost": dm.metrics.expected_cost(1, 9),
    }
    y, score = [1, 0, 1, 0], [0.9, 0.8, 0.3, 0.1]
    result = evaluated(y, score, asked)
    expected = [0.5, sklearn.metrics.average_precision_score(y, score), (1 + 9) / 4]
    assert list(result) == list(asked)
    assert [distribution.mean() for distribution in result.values()] == pytest.approx(expected)


# ------------------------------------------------------------------------------------------- metrics that users add


def assert_equals_oracle(distribution, truth: oracle.Law):
    assert distribution.mean() == pytest.approx(truth.mean(), abs=1e-12)
    assert distribution.std() == pytest.approx(truth.std(), abs=1e-12)
    assert distribution.undefined == pytest.approx(truth.undefined, abs=1e-12)
    assert distribution.support() == pytest.approx((truth.low, truth.high), abs=1e-12)
    np.testing.assert_allclose(distribution.cdf(truth.values), truth.cdf(truth.values), atol=1e-12)


def by_hand(problem: Problem, value, zero_division=math.nan) -> oracle.Law:
    """The law of value(y, score, decision), one labeling at a time."""
    y, probability = oracle.labelings(problem)
    values = np.array([value(labels, problem.score, problem.decision) for labels in y])
    return oracle.law_of_values(values, probability, zero_division)


FORMULAS = {
    "share of alerts in vain": lambda tp, fp, fn, tn: fp / (tp + fp),
    "not monotone": lambda tp, fp, fn, tn: (tp - 2.5) ** 2 * (fn + 1.0),
    "diagnostic odds": lambda tp, fp, fn, tn: (tp * tn) / (fp * fn),
    "constant": lambda tp, fp, fn, tn: 0.25,
}


@pytest.mark.parametrize("formula", FORMULAS.values(), ids=FORMULAS)
@pytest.mark.parametrize("seed", range(3))
def test_the_law_of_a_users_formula_equals_brute_force(formula, seed):
    problem = random_problem(seed)

    def value(y, score, decision):
        tp, fp = (y * decision).sum(), ((1 - y) * decision).sum()
        fn, tn = (y * (1 - decision)).sum(), ((1 - y) * (1 - decision)).sum()
        with np.errstate(divide="ignore", invalid="ignore"):
            result = float(formula(tp, fp, fn, tn))
        return result if math.isfinite(result) else math.nan

    metric = ConfusionMetric(name="mine", formula=formula, range=(-math.inf, math.inf))
    distribution = evaluated(problem.y, problem.score, metric, problem.p, zero_division=math.nan)["mine"]
    assert_equals_oracle(distribution, by_hand(problem, value))


@pytest.mark.parametrize("seed", range(3))
def test_the_law_of_a_users_loss_equals_brute_force(seed):
    problem = random_problem(seed)
    metric = LossMetric(name="off", loss=lambda y, s: np.abs(y - s) * (1.0 + 2.0 * y), better="lower")
    truth = oracle.distribution(oracle.mean_of_loss(lambda y, s: np.abs(y - s) * (1.0 + 2.0 * y)), problem)
    assert_equals_oracle(evaluated(problem.y, problem.score, metric, problem.p)["off"], truth)


@pytest.mark.parametrize("function", [sklearn.metrics.average_precision_score, sklearn.metrics.roc_auc_score])
def test_the_law_of_a_sklearn_metric_equals_brute_force(function):
    problem = random_problem(1, rows=12, missing=5)
    distribution = evaluated(problem.y, problem.score, function, problem.p)[function.__name__]
    assert_equals_oracle(distribution, by_hand(problem, lambda y, s, d: float(function(y.astype(int), s))))


SKLEARN = {
    "f1_score": (sklearn.metrics.f1_score, "decision"),
    "fbeta_score": (partial(sklearn.metrics.fbeta_score, beta=2), "decision"),
    "balanced_accuracy_score": (sklearn.metrics.balanced_accuracy_score, "decision"),
    "matthews_corrcoef": (sklearn.metrics.matthews_corrcoef, "decision"),
    "jaccard_score": (sklearn.metrics.make_scorer(sklearn.metrics.jaccard_score), "decision"),
    "zero_one_loss": (sklearn.metrics.zero_one_loss, "decision"),
    "neg_zero_one_loss": (
        sklearn.metrics.make_scorer(sklearn.metrics.zero_one_loss, greater_is_better=False),
        "decision",
    ),
    "log_loss": (partial(sklearn.metrics.log_loss, labels=None), "score"),
    "neg_brier_score_loss": (sklearn.metrics.get_scorer("neg_brier_score"), "score"),
    "roc_auc_score": (sklearn.metrics.get_scorer("roc_auc"), "score"),
    "average_precision_score": (sklearn.metrics.average_precision_score, "score"),
}
# Those of which the arguments make another metric: they are called.
SKLEARN_CALLED = {
    "f1_score": (partial(sklearn.metrics.f1_score, average="macro"), "decision"),
    "recall_score": (partial(sklearn.metrics.recall_score, pos_label=0), "decision"),
    "cohen_kappa_score": (partial(sklearn.metrics.cohen_kappa_score, weights="linear"), "decision"),
    "d2_log_loss_score": (sklearn.metrics.d2_log_loss_score, "score"),
    "precision_score": (sklearn.metrics.get_scorer("precision_weighted"), "decision"),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*SKLEARN, *(f"called {name}" for name in SKLEARN_CALLED)])
def test_a_function_or_scorer_of_sklearn_is_what_it_computes(name, weighted):
    """By brute force: the function itself, on every label assignment."""
    is_called = name.startswith("called ")
    function, kind = (SKLEARN_CALLED if is_called else SKLEARN)[name.removeprefix("called ")]
    problem = random_problem(1, rows=12, missing=5, weighted=weighted)
    weights = {"sample_weight": problem.weight} if weighted else {}
    (metric,) = dm.metrics.metrics_from(function)
    assert metric.name == name.removeprefix("called ")
    assert isinstance(metric, dm.metrics.CallableMetric) is is_called
    is_scorer = hasattr(function, "_score_func")
    compute = partial(function._score_func, **function._kwargs) if is_scorer else function
    sign = function._sign if is_scorer else 1
    distribution = evaluated(problem.y, problem.score, function, problem.p, zero_division=math.nan, **weights)

    def value(y, s, d):
        return sign * float(compute(y.astype(int), d.astype(int) if kind == "decision" else s, **weights))

    assert_equals_oracle(distribution[metric.name], by_hand(problem, value))


def test_a_function_of_predictions_is_called_once_for_each_pair_of_counts():
    calls = []

    def share(y_true, y_pred):
        calls.append(1)
        return float(np.mean(y_true == y_pred))

    rng = np.random.default_rng(0)
    y_score = rng.random(2000)
    y_true = np.where(rng.random(2000) < 0.3, np.nan, rng.random(2000) < y_score)
    fast = evaluated(y_true, y_score, "accuracy", y_score[np.isnan(y_true)])["accuracy"]
    called = evaluated(y_true, y_score, share, y_score[np.isnan(y_true)], method="monte_carlo", rng=0)["share"]
    assert called.mean() == pytest.approx(fast.mean(), abs=4.0 * fast.std() / 100.0)
    assert len(calls) < 3000  # of 10,000 draws


def test_a_callable_gets_the_weights():
    problem = random_problem(1, rows=12, missing=5, weighted=True)
    function = sklearn.metrics.hinge_loss
    distribution = evaluated(problem.y, problem.score, function, problem.p, sample_weight=problem.weight)
    truth = by_hand(problem, lambda y, s, d: float(function(y.astype(int), s, sample_weight=problem.weight)))
    assert_equals_oracle(distribution["hinge_loss"], truth)


def test_a_callable_may_be_undefined():
    problem = random_problem(2, rows=8, missing=4)

    def ratio(y, score):
        return math.nan if y.sum() == 3 else float(y @ score)

    distribution = evaluated(problem.y, problem.score, ratio, problem.p, zero_division=1)["ratio"]
    assert_equals_oracle(distribution, by_hand(problem, lambda y, s, d: ratio(y, s), zero_division=1.0))


def test_fifteen_missing_rows_are_few_enough_for_a_callable_and_sixteen_are_not():
    score = np.arange(16) / 16
    distribution = evaluated([None] * 15, score[:15], {"m": lambda y, s: y.mean()}, method="exact")["m"]
    # Mean and variance of a share of 15 fair coins.
    assert (distribution.mean(), distribution.var()) == pytest.approx((0.5, 0.25 / 15))
    with pytest.raises(dm.exceptions.MethodError, match="'exact' with 16 missing rows"):
        evaluated([None] * 16, score, {"m": lambda y, s: y.mean()}, method="exact")


def test_a_callable_names_itself():
    (metric,) = dm.metrics.metrics_from(sklearn.metrics.hinge_loss)
    assert metric.name == "hinge_loss"
    assert metric.meaning == (inspect.getdoc(sklearn.metrics.hinge_loss) or "").splitlines()[0]


# ------------------------------------------------------------------------------------------------------- bad input


def test_a_top_k_beyond_the_rows_is_refused():
    with pytest.raises(dm.InputError, match=r"k: precision_at_k\(4\) asks for the top 4, but there are only 3 rows"):
        evaluated([1, 0, None], [0.9, 0.4, 0.7], "precision_at_k(4)")


@pytest.mark.parametrize("kind", ["precision", "recall", "lift"])
def test_a_top_k_may_be_larger_than_the_number_of_labeled_rows(kind):
    problem = random_problem(3, rows=10, missing=8)
    name = f"{kind}_at_k(5)"
    distribution = evaluated(problem.y, problem.score, name, problem.p)[name]
    truth = oracle.distribution(oracle.definition_of(name), problem)
    assert distribution.mean() == pytest.approx(truth.mean(), abs=1e-12)


@pytest.mark.parametrize("name", ["brier", "log_loss"])
@pytest.mark.parametrize("bad", [-0.5, 1.5])
def test_a_probability_score_is_refused_for_scores_outside_zero_to_one(name, bad):
    with pytest.raises(dm.InputError, match=rf"'{name}' needs scores that are probabilities, found {bad:g}"):
        evaluated([1, 0, None], [0.9, bad, 0.7], name)


def test_a_loss_of_the_wrong_shape_is_refused():
    with pytest.raises(dm.InputError, match=r"loss: 'mean' returned shape \(\) for 3 rows. It must"):
        evaluated([1, 0, None], [0.9, 0.4, 0.7], LossMetric(name="mean", loss=lambda y, s: np.mean(y - s)))


def test_an_infinite_loss_is_refused():
    with (
        np.errstate(divide="ignore"),
        pytest.raises(dm.InputError, match=r"loss: 'surprise' is inf for label 1 and score 0"),
    ):
        evaluated(
            [1, 0, None],
            [0.9, 0.0, 0.7],
            LossMetric(name="surprise", loss=lambda y, s: -y * np.log(s) if y.any() else y),
        )


def test_a_callable_that_returns_no_number_is_refused():
    with pytest.raises(dm.InputError, match=r"(?s)'confusion_matrix' returned .* A metric returns one number"):
        evaluated([1, 0, None], [1, 0, 1], sklearn.metrics.confusion_matrix)


def test_a_fraction_of_rows_of_one_weight_is_whole_rows():
    y, score = [1.0, 0.0, 1.0, np.nan, np.nan], [0.9, 0.8, 0.7, 0.6, 0.5]
    plain = dm.evaluate(y, score, metrics="recall_at_k(0.3)", missingness=dm.missing.Fixed(0.5))["recall_at_k(0.3)"]
    for weight in (1.0, 2.5):
        weights = np.full(5, weight)
        scaled = dm.evaluate(
            y, score, metrics="recall_at_k(0.3)", missingness=dm.missing.Fixed(0.5), sample_weight=weights
        )
        assert scaled["recall_at_k(0.3)"].mean() == pytest.approx(plain.mean(), abs=1e-12)


@pytest.mark.parametrize("unit", [0.1, 3.7, 1 / 3])
def test_a_share_of_the_top_is_at_most_one_whatever_the_unit_of_weight(unit):
    """It was 1.0000000000000016 in a third of such problems, and fell to 1 from one month to the next."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        score, weight = rng.random(40), unit * rng.integers(1, 4, 40)
        y = (score > 0.5).astype(float)
        y[rng.permutation(40)[:5]] = np.nan
        distribution = dm.evaluate(
            y, score, sample_weight=weight, metrics="precision_at_k(0.2)", missingness=dm.missing.Fixed(0.5)
        )
        assert distribution["precision_at_k(0.2)"].support().high <= 1.0
