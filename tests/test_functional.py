"""Bounds over all labelings of the missing rows, and the paper's oracle bounds beside them."""

import itertools
import math

import numpy as np
import pytest

import darkmetrics as dm
import oracle
from oracle import Problem


def evaluated(problem: Problem, metrics, **settings):
    return dm.evaluate(
        problem.y,
        problem.score,
        y_pred=problem.decision,
        metrics=metrics,
        missingness=dm.missing.Fixed(problem.p),
        zero_division=math.nan,
        **settings,
    )


def random_problem(seed, rows=14, missing=8, digits=1) -> Problem:
    """Rows with tied scores and the decision that follows from them; both classes among the known labels."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows).round(digits)
    y = np.concatenate([[0.0, 1.0], rng.integers(0, 2, rows - missing - 2), np.full(missing, math.nan)])
    return Problem(y, score, (score >= 0.5).astype(int), np.ones(rows), rng.random(missing))


def extremes(name, problem: Problem):
    """Lowest and highest value over all labelings, whatever their chance."""
    truth = oracle.distribution(oracle.definition_of(name), problem)
    return truth.low, truth.high


# ------------------------------------------------------------------------------------------- the paper's oracle


@pytest.mark.parametrize("name", ["precision", "recall", "accuracy", "f1"])
@pytest.mark.parametrize("seed", range(10))
def test_oracle_bounds_of_the_paper_are_sharp_for_its_confusion_metrics(name, seed):
    problem = random_problem(seed)
    result = evaluated(problem, name)
    assert result.oracle_bounds(name) == pytest.approx(extremes(name, problem), abs=1e-12)
    assert result.oracle_bounds(name) == pytest.approx(result[name].support(), abs=1e-12)


def test_oracle_bounds_of_the_paper_are_what_right_and_wrong_decisions_give():
    problem = random_problem(0)
    gaps = np.isnan(problem.y)
    for name in ("recall", "roc_auc", "cohen_kappa", "brier"):
        definition = oracle.definition_of(name)
        value = {}
        for case, label in (("pessimistic", 1 - problem.decision), ("optimistic", problem.decision)):
            y = np.where(gaps, label, problem.y)[None, :]
            value[case] = float(definition(y, problem.score, problem.decision, problem.weight)[0])
        expected = (value["pessimistic"], value["optimistic"])
        assert evaluated(problem, name).oracle_bounds(name) == pytest.approx(expected, abs=1e-12)


def test_oracle_bounds_of_the_paper_are_not_sharp_for_roc_auc():
    # All five rows are decided positive, so the oracle labels both missing rows alike; the order of scores asks for
    # different labels. Known: 0.95 positive, 0.7 and 0.8 negative. Missing: 0.6 and 0.9.
    y, score = [1, 0, 0, None, None], [0.95, 0.7, 0.8, 0.6, 0.9]
    in_order = {  # labels of the two missing rows -> (positive, negative) pairs in order among all, counted by hand
        (0, 0): 4 / 4,
        (1, 0): 3 / 6,
        (0, 1): 6 / 6,
        (1, 1): 4 / 6,
    }
    result = dm.evaluate(y, score, metrics="roc_auc", missingness=dm.missing.Fixed(0.5))
    assert result.oracle_bounds("roc_auc") == pytest.approx((in_order[0, 0], in_order[1, 1]))
    assert result["roc_auc"].support() == pytest.approx((min(in_order.values()), max(in_order.values())))


def test_oracle_bounds_of_the_paper_miss_the_roc_auc_of_most_random_problems():
    gaps = []
    for seed in range(30):
        problem = random_problem(seed, digits=3)
        result = evaluated(problem, "roc_auc")
        (low, high), (worst, best) = sorted(result.oracle_bounds("roc_auc")), result["roc_auc"].support()
        assert worst <= low + 1e-12
        assert high <= best + 1e-12
        gaps.append(best - worst - (high - low))
    assert sum(gap > 1e-6 for gap in gaps) > 15


# ------------------------------------------------------------------------------------------------- sharp bounds


@pytest.mark.parametrize("name", ["roc_auc", "roc_auc(ties='full')", "gini", "gini(ties='full')"])
@pytest.mark.parametrize("digits", [0, 1, 3], ids=["two scores", "many ties", "few ties"])
@pytest.mark.parametrize("seed", range(5))
def test_rank_bounds_are_the_extremes_over_all_labelings(name, digits, seed):
    problem = random_problem(seed, digits=digits)
    distribution = evaluated(problem, name)[name]
    assert distribution.bounds_sharp
    assert distribution.support() == pytest.approx(extremes(name, problem), abs=1e-12)


@pytest.mark.parametrize("name", ["brier", "log_loss", "average_precision", "balanced_accuracy", "lift_at_k(0.3)"])
@pytest.mark.parametrize("seed", range(5))
def test_bounds_are_the_extremes_over_all_labelings(name, seed):
    problem = random_problem(seed)
    distribution = evaluated(problem, name)[name]
    assert distribution.bounds_sharp
    assert distribution.support() == pytest.approx(extremes(name, problem), abs=1e-12)


def test_brier_bounds_give_every_missing_row_its_worse_and_its_better_label():
    score, y = np.array([0.1, 0.4, 0.8, 0.5]), [1, None, None, None]
    distribution = dm.evaluate(y, score, metrics="brier", missingness=dm.missing.Fixed(0.5))["brier"]
    open_ = score[1:]
    worst = (0.81 + np.maximum(open_**2, (1 - open_) ** 2).sum()) / 4
    best = (0.81 + np.minimum(open_**2, (1 - open_) ** 2).sum()) / 4
    assert distribution.support() == pytest.approx((best, worst), abs=1e-12)


@pytest.mark.parametrize("method", ["exact", "monte_carlo", "gaussian"])
@pytest.mark.parametrize("name", ["recall", "roc_auc", "brier"])
def test_bounds_do_not_depend_on_the_method(name, method):
    problem = random_problem(3)
    assert evaluated(problem, name, method=method, rng=0)[name].support() == pytest.approx(extremes(name, problem))


def test_bounds_do_not_depend_on_the_probabilities():
    problem = random_problem(4)
    for p in (0.0, 1e-12, 0.5, 1.0):
        result = evaluated(problem._replace(p=np.full(8, p)), ["recall", "roc_auc", "brier"])
        for name, distribution in result.items():
            assert distribution.support() == pytest.approx(extremes(name, problem), abs=1e-12)


def test_bounds_hold_the_value_that_an_undefined_metric_counts_as():
    # Recall is 1 or undefined: with 0/0 = 0 the worst case is 0, and with 0/0 left out it is 1.
    y, score = [0, None], [0.2, 0.9]
    counted = dm.evaluate(y, score, metrics="recall", missingness=dm.missing.Fixed(0.5), zero_division=0)["recall"]
    left_out = dm.evaluate(y, score, metrics="recall", missingness=dm.missing.Fixed(0.5), zero_division=math.nan)[
        "recall"
    ]
    assert counted.support() == (0.0, 1.0)
    assert left_out.support() == (1.0, 1.0)


@pytest.mark.parametrize("kind", ["formula", "callable"])
def test_bounds_hold_the_value_of_a_zero_division_in_the_middle(kind):
    """Undefined when exactly one of the three missing rows is positive: at no corner of the labelings."""
    metrics = {
        "formula": dm.metrics.ConfusionMetric(name="m", formula=lambda tp, fp, fn, tn: 2.0 + 0.0 * tp / (tp - 1.0)),
        "callable": dm.metrics.CallableMetric(
            name="m", function=lambda y, s: math.nan if y.sum() == 1 else 2.0, range=(2.0, 2.0)
        ),
    }
    distribution = dm.evaluate(
        [None] * 3, [0.9, 0.8, 0.7], metrics=metrics[kind], missingness=dm.missing.Fixed(0.5), zero_division=0
    )["m"]
    assert distribution.undefined == pytest.approx(3 / 8)
    assert distribution.cdf(1.0) == pytest.approx(3 / 8)
    assert distribution.support() == (0.0, 2.0)


def test_bounds_of_a_metric_that_is_never_defined_are_nan():
    distribution = dm.evaluate(
        [0, None], [0.2, 0.3], metrics="precision", missingness=dm.missing.Fixed(0.5), zero_division=math.nan
    )
    assert distribution["precision"].undefined == 1.0
    assert np.isnan(distribution["precision"].support()).all()


@pytest.mark.parametrize("name", ["recall", "mcc", "balanced_accuracy", "predicted_to_actual", "roc_auc", "brier"])
def test_bounds_of_many_missing_rows_enclose_every_labeling_seen(name):
    rng = np.random.default_rng(5)
    problem = random_problem(6, rows=120, missing=80)
    low, high = evaluated(problem, name)[name].support()
    y = np.tile(np.where(np.isnan(problem.y), 0.0, problem.y), (4000, 1))
    # Labelings of every number of positives, and those that follow the score, where extremes live.
    chance = (
        np.where(np.arange(4000) % 2, 1.0, -1.0)[:, None]
        * 6.0
        * (problem.score[problem.missing] - rng.random((4000, 1)))
    )
    y[:, problem.missing] = rng.random((4000, 80)) < 1.0 / (1.0 + np.exp(-chance))
    values = oracle.definition_of(name)(y, problem.score, problem.decision, problem.weight)
    assert low - 1e-12 <= np.nanmin(values)
    assert np.nanmax(values) <= high + 1e-12


@pytest.mark.parametrize("model", [dm.missing.Fixed(0.5), "by_score"], ids=["half", "by score"])
@pytest.mark.parametrize("unit", [2.0**-66, 2.0**66])
def test_a_sum_of_weights_has_its_law_in_every_unit(unit, model):
    """Sums below the rounding of 1 were all one value: 10 units for certain, instead of 13.4 with a spread of 1.2."""
    rng = np.random.default_rng(1)
    score, weight = rng.random(40), rng.integers(1, 5, 40).astype(float)
    y = (rng.random(40) < score).astype(float)
    y[rng.permutation(40)[:20]] = math.nan
    lost = dm.metrics.ConfusionMetric(name="lost", formula=lambda tp, fp, fn, tn: fp + 5.0 * fn)
    settings = {"metrics": lost, "missingness": model}
    one, distribution = (
        dm.evaluate(y, score, sample_weight=times * weight, **settings)["lost"] for times in (1.0, unit)
    )
    assert one.std() > 5.0
    assert distribution.mean() == pytest.approx(unit * one.mean(), rel=1e-9, abs=0.0)
    assert distribution.std() == pytest.approx(unit * one.std(), rel=1e-9, abs=0.0)
    assert np.array(distribution.interval(0.9)) == pytest.approx(unit * np.array(one.interval(0.9)), rel=1e-9, abs=0.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_function_is_given_the_rows_whatever_it_does_to_them(weighted):
    """Ties, rows without weight, and a function that writes into what it is given."""
    seen = []

    def spoils(y_true, y_score, sample_weight=None):
        seen.append((y_true.copy(), y_score.copy(), None if sample_weight is None else sample_weight.copy()))
        for given in (y_true, y_score, sample_weight):
            if given is not None:
                given[:] = 0
        return 1.0

    y_true = [1, None, 0, None, None, 0]
    weight = [1.0, 2.0, 1.0, 2.0, 0.0, 3.0] if weighted else None
    data = dm.EvaluationSet(y_true, [0.5, 0.5, 0.5, 0.7, 0.9, 0.1], sample_weight=weight)
    functional = dm.metrics.CallableMetric(name="spoils", function=spoils).bind(data, math.nan)
    size = functional.missing.size
    functional.values(np.array(list(itertools.product([0, 1], repeat=size))))
    assert len(seen) == 2**size
    rows = [0.1, 0.5, 0.5, 0.5, 0.7] if weighted else [0.1, 0.5, 0.5, 0.5, 0.7, 0.9]  # a row of no weight is none
    labels = np.array([label for label, _, _ in seen])
    assert all(score.tolist() == rows for _, score, _ in seen)
    assert set(labels.sum(axis=1)) == set(range(1, 4 if weighted else 5))
    assert not labels[:, 0].any()
    assert labels[:, 1:4].any(axis=1).all()
    assert all((mass is None) != weighted for _, _, mass in seen)
    if weighted:
        assert {tuple(sorted(mass)) for _, _, mass in seen if mass is not None} == {(1.0, 1.0, 2.0, 2.0, 3.0)}
