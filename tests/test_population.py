"""Laws for the population that the rows came from, against Beta laws, brute force, DeLong, the jackknife and draws."""

import pickle
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import betainc, betaln
from scipy.stats import beta

import darkmetrics as dm
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missingness.base import Mechanism
from darkmetrics.population import Population
from darkmetrics.posterior import Posterior

FIVE = ["precision", "recall", "accuracy", "f1", "roc_auc"]
# What is Beta, and how its counts are made of TP, FP, FN and TN; F1 is 2 J / (1 + J) of such a share J.
SHARES = {
    "precision": ((1, 0, 0, 0), (0, 1, 0, 0)),
    "recall": ((1, 0, 0, 0), (0, 0, 1, 0)),
    "accuracy": ((1, 0, 0, 1), (0, 1, 1, 0)),
    "specificity": ((0, 0, 0, 1), (0, 1, 0, 0)),
    "npv": ((0, 0, 0, 1), (0, 0, 1, 0)),
    "fpr": ((0, 1, 0, 0), (0, 0, 0, 1)),
    "prevalence": ((1, 0, 1, 0), (0, 1, 0, 1)),
    "jaccard": ((1, 0, 0, 0), (0, 1, 1, 0)),
    "f1": ((1, 0, 0, 0), (0, 1, 1, 0)),
}


def rows(n, missing=0.0, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n).round(6)
    y = (rng.random(n) < score).astype(float)
    return np.where(rng.random(n) < missing, np.nan, y), score


def counts(y, score):
    yes = score >= 0.5
    return np.array([(y * yes).sum(), ((1 - y) * yes).sum(), (y * ~yes).sum(), ((1 - y) * ~yes).sum()])


def beta_cdf(name, count, t):
    """P(metric <= t) given complete counts, written out from the definition."""
    a, b = (0.5 + np.dot(side, count) for side in SHARES[name])
    return beta.cdf(t / (2.0 - t) if name == "f1" else t, a, b)


class Unsure(Mechanism):
    """Three sets of probabilities."""

    def __init__(self, p, weight=(0.5, 0.3, 0.2)):
        self.p, self.weight = p, np.array(weight)

    def posterior(self, data):
        return Posterior(self.weight, self.p)

    def describe(self, data, posterior):
        return ""


@pytest.mark.parametrize("name", SHARES)
def test_with_all_labels_a_share_has_its_beta_law(name):
    y, score = rows(60)
    distribution = dm.evaluate(y, score, metrics=name, scope="population")[name]
    t = np.linspace(0.02, 0.98, 25)
    assert distribution.cdf(t) == pytest.approx(beta_cdf(name, counts(y, score), t), abs=1e-12)
    assert distribution.method == "exact"
    assert distribution.cdf(distribution.ppf([0.05, 0.5, 0.95])) == pytest.approx([0.05, 0.5, 0.95], abs=1e-10)


@pytest.mark.parametrize("name", SHARES)
def test_few_missing_rows_equal_brute_force(name):
    y, score = rows(25, seed=3)
    order = np.argsort(score)
    y, score = y[order], score[order]
    missing = np.arange(2, 23, 3)
    rng = np.random.default_rng(1)
    p = rng.uniform(0.05, 0.95, (3, missing.size))
    weight = np.array([0.5, 0.3, 0.2])
    t = np.linspace(0.05, 0.95, 19)
    expected = np.zeros(t.size)
    for labels in product((0, 1), repeat=missing.size):
        whole = y.copy()
        whole[missing] = labels
        mass = weight @ np.prod(np.where(labels, p, 1 - p), axis=1)
        expected += mass * beta_cdf(name, counts(whole, score), t)
    y[missing] = np.nan
    distribution = dm.evaluate(y, score, metrics=name, missingness=Unsure(p), scope="population")[name]
    assert distribution.method == "exact"
    assert distribution.cdf(t) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize(("n", "missing", "reason"), [(500, 0.7, "random"), (2000, 0.5, "by_label")])
def test_thinned_mixture_is_the_whole_one(n, missing, reason):
    """Gauss rules and merged parts stand for every combination of counts: tolerance a tenth of a printed percent."""
    y, score = rows(n, missing, seed=1)
    result = dm.evaluate(y, score, missingness=reason, metrics=["recall", "f1", "accuracy"])
    asked = Population(result.data, result.posterior)
    posterior, known = result.posterior, ~np.isnan(y)
    data = result.data
    each = [posterior.of_cells(k) for k in range(len(posterior))]
    yes = data.cells.decision[data.missing_cells]
    pmf = [[_poisson_binomial(np.repeat(p[side], data.missing_counts[side])) for p in each] for side in (yes, ~yes)]
    joint = np.einsum("k,ki,kj->ij", posterior.weight, *(np.array(side) for side in pmf))
    tp, fp, fn, tn = counts(y[known], score[known])
    a, b = np.meshgrid(*(np.arange(side) for side in joint.shape), indexing="ij")
    whole = np.stack([tp + a, fp + joint.shape[0] - 1 - a, fn + b, tn + joint.shape[1] - 1 - b])
    held = joint > 1e-13
    for name in result:
        distribution = asked.distribution(result.metrics[name], result[name])
        assert distribution.method == "near exact"
        for t in distribution.ppf([0.01, 0.05, 0.5, 0.95]):
            first, second = (0.5 + np.tensordot(side, whole, 1)[held] for side in SHARES[name])
            full = joint[held] @ betainc(first, second, t / (2.0 - t) if name == "f1" else t)
            assert distribution.cdf(t) == pytest.approx(full, abs=2e-4)


def _poisson_binomial(p):
    pmf = np.ones(1)
    for chance in p:
        pmf = np.convolve(pmf, [1.0 - chance, chance])
    return pmf


def test_moments_of_a_ratio_of_shares_are_those_of_its_density():
    y, score = rows(8, seed=5)
    distribution = dm.evaluate(y, score, metrics="f1", scope="population")["f1"]
    tp, fp, fn, _ = counts(y, score)
    x = (np.arange(400_000) + 0.5) / 400_000
    density = np.exp((tp - 0.5) * np.log(x) + (fp + fn - 0.5) * np.log1p(-x) - betaln(tp + 0.5, fp + fn + 0.5))
    density /= density.sum()
    value = 2.0 * x / (1.0 + x)
    mean = density @ value
    # A midpoint rule beside a pole of the density is off by the root of its step.
    assert distribution.mean() == pytest.approx(mean, abs=1e-3)
    assert distribution.var() == pytest.approx(density @ (value - mean) ** 2, rel=5e-3)


def delong(y, score):
    """DeLong's variance from its definition: placements by all pairs."""
    positive, negative = score[y == 1], score[y == 0]
    wins = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    auc = wins.mean()
    return np.var(wins.mean(axis=1), ddof=1) / positive.size + np.var(wins.mean(axis=0), ddof=1) / negative.size, auc


@pytest.mark.parametrize("digits", [1, 6])
def test_roc_auc_has_delongs_variance(digits):
    y, score = rows(300, seed=2)
    score = score.round(digits)
    expected, auc = delong(y, score)
    result = dm.evaluate(y, score, metrics=["roc_auc", "gini"])
    found = Population(result.data, result.posterior)._variance_at(result.metrics["roc_auc"], [0])[0]
    assert found == pytest.approx(expected, rel=1e-9)
    distribution = result.population["roc_auc"]
    # Jeffreys' half a row on either side moves the mean by less than a percent of this law's standard deviation.
    assert distribution.mean() == pytest.approx(auc, abs=0.1 * distribution.std())
    assert distribution.std() == pytest.approx(np.sqrt(expected), rel=0.01)
    assert result.population["gini"].std() == pytest.approx(2.0 * distribution.std(), rel=0.01)


SMOOTH = ["mcc", "balanced_accuracy", "cohen_kappa", "g_mean", "fbeta(2)", "expected_cost(1, 5)"]
SMOOTH += ["average_precision", "brier", "log_loss", "precision", "f1", "roc_auc"]


@pytest.mark.parametrize("weighted", [False, True])
def test_sampling_variance_is_that_of_the_jackknife(weighted):
    """Leaving out each row in turn: the classical estimate of the same variance, which differs by O(1/n)."""
    y, score = rows(400, seed=4)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 400) if weighted else np.ones(400)
    result = dm.evaluate(y, score, metrics=SMOOTH, sample_weight=weight if weighted else None)
    asked = Population(result.data, result.posterior)
    cells = result.data.cells
    mass = np.stack([cells.mass(cells.negatives), cells.mass(cells.positives)])
    for name, metric in result.metrics.items():
        left_out = []
        for kind, some in enumerate((cells.negatives, cells.positives)):
            for cell in np.flatnonzero(some):
                less = mass.copy()
                less[kind, cell] -= 1.0 if cells.weight is None else cells.weight[cell]
                left_out += [metric.of_counts(cells, less[:, None])[0]] * int(some[cell])
        values = np.array(left_out)
        expected = (values.size - 1) / values.size * ((values - values.mean()) ** 2).sum()
        assert asked._variance_at(metric, [0])[0] == pytest.approx(expected, rel=0.05), name


def test_top_metrics_vary_as_bootstrap_samples_do():
    y, score = rows(2000, seed=6)
    names = ["precision_at_k(0.2)", "recall_at_k(0.2)", "lift_at_k(0.2)", "precision_at_k(400)"]
    result = dm.evaluate(y, score, metrics=names)
    asked, rng, cells = Population(result.data, result.posterior), np.random.default_rng(0), result.data.cells
    rows_of = np.stack([cells.negatives, cells.positives])
    drawn = rng.multinomial(2000, rows_of.ravel() / 2000, size=2000).reshape(2000, 2, -1).transpose(1, 0, 2)
    for name, metric in result.metrics.items():
        expected = metric.of_counts(cells, drawn.astype(float)).var()
        # 2,000 draws know a variance to 3%; the rate at the cut is known to a tenth.
        assert asked._variance_at(metric, [0])[0] == pytest.approx(expected, rel=0.15), name


def test_given_probabilities_stand_for_labels():
    """Weights of rows drawn anew, each missing label at its chance: no label is drawn."""
    y, score = rows(600, 0.5, seed=7)
    names = ["precision", "recall", "f1", "accuracy", "roc_auc", "brier", "mcc"]
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics=names)
    rng, cells = np.random.default_rng(0), result.data.cells
    chance = np.where(np.isnan(y), score, y)[np.argsort(score)]
    assert cells.score.size == 600
    weight = rng.exponential(size=(1500, 600))
    drawn = np.stack([weight * (1.0 - chance), weight * chance])
    for name, metric in result.metrics.items():
        values, distribution = metric.of_counts(cells, drawn), result.population[name]
        assert distribution.mean() == pytest.approx(values.mean(), abs=0.25 * values.std()), name
        assert distribution.std() == pytest.approx(values.std(), rel=0.07), name


def simulate_passed_probabilities(added, n_samples=150):
    """Return how often either 90% interval covers the population's precision, and the mean standard deviations.

    9 of 10 labels are missing; the passed probabilities are the true ones plus `added`.
    """
    truth = 0.35 + 0.3 * 0.75  # scores of rows that are predicted positive are uniform on [1/2, 1]
    covered, sd = np.zeros(2), np.zeros(2)
    for seed in range(n_samples):
        rng = np.random.default_rng(seed)
        score = rng.random(400)
        p = 0.35 + 0.3 * score
        y = np.where(rng.random(400) < 0.9, np.nan, rng.random(400) < p)
        result = dm.evaluate(y, score, missingness=dm.missing.Fixed(p + added), metrics="precision")
        distributions = [getattr(result, scope)["precision"] for scope in ("rows", "population")]
        covered += [
            distribution.interval(0.9).low <= truth <= distribution.interval(0.9).high for distribution in distributions
        ]
        sd += [distribution.std() for distribution in distributions]
    return covered / n_samples, sd / n_samples


def test_population_covers_with_true_probabilities_although_narrower_than_rows():
    (rows_cover, population_covers), (sd_rows, sd_population) = simulate_passed_probabilities(added=0.0)
    assert sd_population < 0.5 * sd_rows
    assert 0.84 <= population_covers <= 0.96
    assert rows_cover > 0.98  # control: an interval as wide as that of the rows covers too often


def test_population_does_not_cover_with_wrong_probabilities():
    """Negative control: the interval is right only as far as the probabilities are."""
    assert simulate_passed_probabilities(added=0.05)[0][1] < 0.2


def test_rows_with_one_probability_have_its_rate_in_the_population():
    result = dm.evaluate(
        [np.nan] * 10, np.arange(10) / 10, missingness=dm.missing.Fixed([0.5] * 10), metrics="prevalence"
    )
    assert result["prevalence"].std() == pytest.approx(np.sqrt(0.25 / 10))
    assert result.population["prevalence"].std() < 0.05


def test_missing_labels_widen_the_population_law_but_for_given_ones():
    y, score = rows(400, seed=8)
    hidden = np.where(np.arange(400) % 2 == 0, np.nan, y)
    full = dm.evaluate(y, score, metrics=FIVE, scope="population")
    learned = dm.evaluate(hidden, score, metrics=FIVE, missingness="random", scope="population")
    given = dm.evaluate(hidden, score, metrics=FIVE, missingness=dm.missing.Fixed(score), scope="population")
    for name in FIVE:
        assert learned[name].std() > 1.05 * full[name].std()
        assert given[name].std() < full[name].std()


def test_population_intervals_hold_its_value_and_those_of_the_rows_do_not():
    """With every label known intervals for the rows are points: the control. 200 samples, two standard errors."""
    rng, held = np.random.default_rng(0), {"rows": 0, "population": 0}
    truth = 0.75  # the mean of a score that is uniform on [1/2, 1]
    for _ in range(200):
        score = rng.random(300)
        y = (rng.random(300) < score).astype(float)
        found = dm.evaluate(y, score, metrics="precision")
        for scope, distribution in (("rows", found["precision"]), ("population", found.population["precision"])):
            low, high = distribution.interval()
            held[scope] += low <= truth <= high
    assert held["rows"] < 20
    assert 172 <= held["population"] <= 188


def test_perfect_ranks_are_not_certain():
    y, score = np.repeat([0.0, 1.0], 20), np.arange(40) / 40
    distribution = dm.evaluate(y, score, metrics="roc_auc", scope="population")["roc_auc"]
    assert distribution.interval().low < 0.97
    assert distribution.support() == (0.0, 1.0)


@pytest.mark.parametrize("positives", [5, 15, 100])
def test_means_over_all_rows_do_not_hang_on_the_smaller_class(positives):
    """Brier score, cost and the share in the top are means; the textbook's standard error, half a row allowed for."""
    rng, n = np.random.default_rng(positives), 3000
    y = (np.arange(n) < positives).astype(float)
    score = 1.0 / (1.0 + np.exp(3.0 - 3.5 * y - 1.2 * rng.normal(size=n)))
    top = np.argsort(-score)[:300]
    means = {
        "brier": (score - y) ** 2,
        "expected_cost(1, 5)": np.where(y == 1.0, 5.0 * (score < 0.5), 1.0 * (score >= 0.5)),
        "precision_at_k(300)": y[top],
    }
    distributions = dm.evaluate(y, score, metrics=list(means), scope="population")
    for name, value in means.items():
        error = value.std() / np.sqrt(value.size)
        # Half a row that costs most, which no row has shown, moves a mean by half of that.
        most = 0.5 * distributions[name].support()[1] / value.size
        assert distributions[name].mean() == pytest.approx(value.mean(), abs=0.1 * error + most), name
        assert distributions[name].std() == pytest.approx(error, rel=0.2), name


@pytest.mark.parametrize(("k", "positives"), [(3, 190), (3, 2), (10, 180), (3, 200)])
def test_a_cut_inside_a_grade_is_as_sure_as_the_grade_is_known(k, positives):
    """Of 200 tied rows k are the top, but all 200 tell which share of them is positive."""
    score = np.repeat(np.arange(7.0), 200)
    y = np.tile([0.0, 1.0], 700)
    y[-200:] = np.arange(200) < positives
    distribution = dm.evaluate(y, score, metrics=f"precision_at_k({k})", threshold=6, scope="population")[
        f"precision_at_k({k})"
    ]
    known = beta(positives + 0.5, 200 - positives + 0.5)
    assert distribution.interval() == pytest.approx(known.interval(0.9), abs=0.002)


def test_a_miss_that_costs_five_times_as_much_costs_at_most_that():
    y = np.repeat([1.0, 0.0], [10, 2990])
    names = ["expected_cost(1, 5)", "expected_cost(1, 1)"]
    dear, plain = dm.evaluate(y, 0.9 * y, metrics=names, scope="population").distributions.values()
    # One law is first order, the other exact: half a row of each kind is met in other ways.
    assert dear.interval().high <= 1.02 * 5.0 * plain.interval().high


def test_other_scope_comes_without_another_fit():
    y, score = rows(300, 0.3, seed=9)
    names = ["recall", "f1", "roc_auc"]
    result = dm.evaluate(y, score, missingness="random", metrics=names)
    there = result.population
    assert there.posterior is result.posterior
    assert there.rows is result
    assert result.rows is result
    assert there.population is there
    asked = dm.evaluate(y, score, missingness="random", metrics=names, scope="population")
    assert asked.intervals == there.intervals
    assert asked.rows.intervals == result.intervals
    assert pickle.loads(pickle.dumps(asked)).intervals == asked.intervals


def test_scope_is_said_everywhere():
    y, score = rows(100, 0.1, seed=10)
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics="recall", method="gaussian")
    there = result.population
    assert "Intervals are for these 100 rows, not for the population they came from." in str(result)
    assert "Intervals are for the population that these 100 rows came from, not for the rows." in str(there)
    assert "bounds" not in str(there)
    assert "population" in repr(there)
    assert "population that these 100 rows" in there._repr_html_()
    assert (result.to_dict()["scope"], there.to_dict()["scope"]) == ("rows", "population")
    summary = dm.report.summarize(there)
    assert summary["scope"] == "population"
    assert "in the population" in summary["metrics"]["recall"]["sentence"]
    for view in ("html", "markdown"):
        text = dm.report.render(summary, view)
        assert "population that these 100 rows came from" in text
        assert "for the rows, not for the population" in text


def test_shares_of_the_variance_add_up():
    y, score = rows(300, 0.4, seed=11)
    there = dm.evaluate(y, score, missingness="by_label", metrics=FIVE, scope="population")
    for name in FIVE:
        split = there.variance_decomposition(name)
        assert sum(split.values()) == pytest.approx(1.0)
        assert 0.2 < split["sampling"] < 1.0
    given = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics=FIVE, scope="population")
    assert given.variance_decomposition("recall")["sampling"] == 1.0


def test_what_if_odds_are_off_starts_from_the_population():
    y, score = rows(300, 0.4, seed=12)
    there = dm.evaluate(y, score, missingness="random", metrics=FIVE, scope="population")
    one, three = there.sensitivity(1.0), there.sensitivity(3.0)
    for name in FIVE:
        assert one[name] == there.intervals[name]
        assert three[name].low < there.intervals[name].low < there.intervals[name].high < three[name].high
    low = there["recall"].ppf(0.1)
    point = there.tipping_point("recall", low - 0.03)
    assert 1.0 < float(point) < np.inf
    assert float(there.tipping_point("recall", low + 0.01)) == 1.0
    assert float(there.rows.tipping_point("recall", low - 0.03)) > float(point)


def test_sensitivity_of_given_probabilities_contains_the_answers_at_its_edges():
    y_true = [1, 1, 1] + [None] * 6 + [0] * 8 + [1] * 3
    y_score = [0.9] * 9 + [0.1] * 11
    p = np.array([0.5, 0.01, 0.27, 0.36, 0.59, 0.23])
    settings: dict[str, Any] = {"metrics": "precision", "scope": "population"}
    low, high = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(p), **settings).sensitivity(3.0)["precision"]
    for odds, end in ((1.0 / 3.0, low), (3.0, high)):
        moved = odds * p / (1.0 - p + odds * p)
        interval = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(moved), **settings).intervals["precision"]
        assert end == pytest.approx(interval.low if odds < 1.0 else interval.high, abs=1e-9)


def test_a_metric_known_by_its_values_is_drawn_or_refused():
    y, score = rows(60, 0.2, seed=13)
    own = {"recall again": lambda y, s: float(((s >= 0.5) & (y == 1)).sum() / max((y == 1).sum(), 1))}
    few = dm.methods.MonteCarlo(500)
    asked = {"recall": "recall", **own}
    there = dm.evaluate(y, score, missingness="random", metrics=asked, scope="population", method=few)
    assert there["recall again"].method == "monte carlo"
    # 2,000 draws, and a bootstrap without Jeffreys' prior.
    assert there["recall again"].std() == pytest.approx(there["recall"].std(), rel=0.15)
    with pytest.raises(
        dm.InputError, match="scope: 'population' for 'recall again', which is known by its values only"
    ):
        dm.evaluate(y, score, missingness=dm.missing.Fixed(score), metrics=own, scope="population")


@pytest.mark.parametrize("scope", ["populations", None, 1])
def test_unknown_scope_is_an_error(scope):
    with pytest.raises(dm.InputError, match=r"^scope: "):
        dm.evaluate([1, 0], [0.9, 0.1], scope=scope)


def test_curves_say_that_they_are_for_the_rows():
    y, score = rows(50, 0.2)
    there = dm.evaluate(y, score, missingness=dm.missing.Fixed(score), scope="population")
    with pytest.raises(dm.InputError, match="curves are for the rows"):
        dm.threshold_curves(there)
    assert dm.threshold_curves(there.rows).thresholds.size


def test_tables_and_groups_have_scopes():
    y, score = rows(900, 0.3, seed=14)
    table = pd.DataFrame({"y": y, "s": score, "shop": np.repeat(["a", "b", "c"], 300)})
    asked: dict[str, Any] = {"y_true": "y", "y_score": "s", "missingness": "random", "metrics": ["recall", "roc_auc"]}
    arrays = dm.evaluate(y, score, missingness="random", metrics=["recall", "roc_auc"], scope="population")
    frame = dm.evaluate(data=table, scope="population", **asked)
    assert frame.intervals == arrays.intervals
    narrow = dm.evaluate_by(data=table, by="shop", **asked)
    wide = dm.evaluate_by(data=table, by="shop", scope="population", **asked)
    missed = wide.alerts({"recall": 0.75}).probability_missed
    assert "for the population that each group comes from" in str(wide)
    assert "for the rows of each group" in str(narrow)
    assert (wide.to_dict()["scope"], wide.total.scope, wide["a"].scope) == ("population",) * 3
    for key, group in wide.groups.items():
        own, other = group.metrics["recall"], narrow.groups[key].metrics["recall"]
        assert own.low < other.low < other.high < own.high
        assert 0.0 < missed[key]["recall"] < 1.0


def test_equal_weights_are_no_weights():
    y, score = rows(80, seed=15)
    plain = dm.evaluate(y, score, metrics=FIVE, scope="population")
    weighted = dm.evaluate(y, score, sample_weight=np.full(80, 2.5), metrics=FIVE, scope="population")
    for name in FIVE:
        assert weighted[name].interval() == pytest.approx(plain[name].interval(), abs=1e-12)


def test_a_metric_that_is_never_defined_is_not_in_the_population_either():
    there = dm.evaluate([0, 0, 0], [0.9, 0.2, 0.4], metrics=["recall", "roc_auc"], zero_division=0, scope="population")
    assert there["recall"].undefined == 1.0
    assert np.isnan(there["recall"].mean())
    assert np.isnan(there["roc_auc"].mean())


def test_single_set_merged_from_cells_agrees():
    y, score = rows(120, 0.3, seed=16)
    data = EvaluationSet(y, score.round(1))
    there = dm.evaluate(data, missingness="random", metrics=FIVE, scope="population")
    assert there.intervals == dm.evaluate(y, score.round(1), missingness="random", metrics=FIVE).population.intervals
