"""Clusters: labels of rows of one group are correlated, and groups are sampled together."""

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_normal, norm, t

import darkmetrics as dm
from darkmetrics.distributions import Discrete, drawing
from darkmetrics.missingness.clusters import ClusteredPosterior, compute_correlation, compute_z, infer_effects
from darkmetrics.population import Population

FEW = dm.methods.Auto(2000)


def fours(groups=100, missing=0.4, *, whole=False, seed=0):
    """Four rows at a time with one score and one label; they lack labels one by one, or all four."""
    rng = np.random.default_rng(seed)
    chance = rng.beta(1, 2, groups)
    fate, group = (rng.random(groups) < chance).astype(float), np.repeat(np.arange(groups), 4)
    gone = np.repeat(rng.random(groups) < missing, 4) if whole else rng.random(4 * groups) < missing
    return np.where(gone, np.nan, fate[group]), chance[group], group, fate[group]


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_likelihood_of_a_group_is_its_integral(rho):
    p, y = np.array([0.2, 0.5, 0.8]), np.array([1.0, 0.0, 1.0])

    def whole(u):
        chance = norm.cdf((norm.ppf(p) - np.sqrt(rho) * u) / np.sqrt(1.0 - rho))
        return norm.pdf(u) * np.prod(np.where(y == 1, chance, 1.0 - chance))

    distribution, found = infer_effects(compute_z(p), y, 1.0 - y, np.zeros(3, dtype=np.int64), 1, rho)
    assert np.exp(found) == pytest.approx(quad(whole, -8, 8)[0], rel=1e-4)
    assert distribution.sum() == pytest.approx(1.0)


def test_correlation_is_that_of_two_normals():
    for p, rho in product((0.1, 0.5), (0.2, 0.7)):
        both = multivariate_normal([0, 0], [[1, rho], [rho, 1]]).cdf([norm.ppf(p)] * 2)
        expected = (both - p * p) / (p * (1 - p))
        assert compute_correlation(compute_z(np.array([p])), np.ones(1), rho) == pytest.approx(expected, abs=1e-3)


def test_labels_that_are_drawn_keep_their_chances_and_go_together():
    labels, score, group, _ = fours(200, whole=True)
    posterior = dm.evaluate(
        labels, score, clusters=group, missingness="random", metrics="accuracy", method=FEW
    ).posterior
    assert isinstance(posterior, ClusteredPosterior)
    missing = np.bincount(group, np.isnan(labels))[np.bincount(group, np.isnan(labels)) > 0].astype(np.int64)
    drawn = posterior.draw(0, missing, 4000, np.random.default_rng(0))
    # Groups without a label have the chances of the node: a standard error is 0.008, and there are 80 of them.
    assert np.abs((drawn / 4).mean(axis=0) - posterior.base[0]).max() < 0.035
    assert np.isin(drawn, [0, 4]).mean() > 0.95


def test_a_missing_label_beside_known_ones_is_nearly_known():
    labels, score, group, fate = fours(150, 0.3)
    apart = dm.evaluate(labels, score, missingness="random", metrics="recall")["recall"]
    found = dm.evaluate(labels, score, clusters=group, missingness="random", metrics="recall", method=FEW, rng=0)
    truth = dm.evaluate(fate, score, metrics="recall")["recall"].mean()
    assert found["recall"].std() < 0.6 * apart.std()
    low, high = found["recall"].interval(0.99)
    assert low <= truth <= high


def test_labels_missing_beside_known_ones_leave_what_groups_without_any_leave():
    """Against one who knows that a group has one label, and its chance: each group without any moves four rows of n."""
    ours, known = [], []
    for seed in range(6):
        labels, score, group, _ = fours(100, seed=seed)
        found = dm.evaluate(labels, score, clusters=group, missingness="random", metrics="accuracy", method=FEW, rng=0)
        without = np.bincount(group, ~np.isnan(labels)) == 0
        chance = score[::4][without]
        known.append(np.sqrt((16.0 * chance * (1.0 - chance)).sum()) / labels.size)
        ours.append(found["accuracy"].std())
    # What is open about how far rows of a group go together, and about the curve, comes on top.
    assert 1.0 <= np.mean(ours) / np.mean(known) < 1.4


def test_independent_rows_in_groups_are_found_to_be_independent():
    rng = np.random.default_rng(1)
    score = rng.random(1200)
    labels = np.where(rng.random(1200) < 0.3, np.nan, rng.random(1200) < score)
    group = np.repeat(np.arange(300), 4)
    apart = dm.evaluate(labels, score, missingness="random", metrics="accuracy")["accuracy"]
    found = dm.evaluate(labels, score, clusters=group, missingness="random", metrics="accuracy", method=FEW, rng=0)
    assert isinstance(found.posterior, ClusteredPosterior)
    assert found.posterior.clusters is not None
    assert found.posterior.clusters.mean < 0.1
    assert found["accuracy"].std() == pytest.approx(apart.std(), rel=0.25)


def test_the_order_of_rows_does_not_say_what_is_drawn_for_a_group():
    labels, score, group, _ = fours()
    shuffled = np.random.default_rng(1).permutation(score.size)
    asked: Any = {"missingness": "random", "metrics": ["recall"], "rng": 0}
    one = dm.evaluate(labels, score, clusters=group, **asked)["recall"]
    two = dm.evaluate(labels[shuffled], score[shuffled], clusters=np.asarray(group)[shuffled], **asked)["recall"]
    assert two.interval(0.9) == one.interval(0.9)


def test_groups_of_one_row_change_nothing():
    rng = np.random.default_rng(0)
    score = rng.random(200)
    labels = np.where(rng.random(200) < 0.3, np.nan, rng.random(200) < score)
    plain = dm.evaluate(labels, score, missingness="random")
    alone = dm.evaluate(labels, score, clusters=[f"row {i}" for i in range(200)], missingness="random")
    assert alone.intervals == plain.intervals
    assert alone.population.intervals == plain.population.intervals


def test_population_variance_is_that_of_whole_groups():
    """With all labels known: the variance over samples of groups, by drawing groups with replacement."""
    _, score, group, fate = fours(120, seed=3)
    names = ["precision", "accuracy", "roc_auc", "brier"]
    result = dm.evaluate(fate, score, clusters=group, metrics=names)
    asked, rng = Population(result.data, result.posterior), np.random.default_rng(0)
    cells, own = result.data.cells, result.data.groups
    rows = np.stack([cells.negatives, cells.positives])
    drawn = rng.multinomial(120, np.full(120, 1 / 120), size=3000)[:, own]
    for name, metric in result.metrics.items():
        expected = metric.of_counts(cells, (rows[:, None, :] * drawn[None]).astype(float)).var()
        # 3,000 draws know a variance to 3%, and first order is off by a part in the number of groups.
        assert asked._variance_at(metric, [0])[0] == pytest.approx(expected, rel=0.12), name
        plain = dm.evaluate(fate, score, metrics=name).population[name]
        assert result.population[name].std() == pytest.approx(2.0 * plain.std(), rel=0.1)


def test_own_functions_sample_groups_too():
    _, score, group, fate = fours(60, seed=4)
    own = {"right": lambda y, s: float(np.mean((s >= 0.5) == y)), "accuracy": "accuracy"}
    found = dm.evaluate(fate, score, clusters=group, metrics=own, scope="population")
    assert found["right"].std() == pytest.approx(found["accuracy"].std(), rel=0.1)


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        ([1, 2, None, 4], "clusters: no value at row 2"),
        ([1.0, 2.0, float("nan"), 4.0], "clusters: no value at row 2"),
        ([1, 2, 3], "clusters: 3 values, but y_score has 4"),
        ([[1], [2], [3], [4]], "clusters: values that cannot be compared"),
    ],
)
def test_bad_groups_are_refused(groups, words):
    with pytest.raises(dm.InputError, match=words):
        dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], clusters=groups)


def test_what_groups_cannot_do_is_said():
    labels, score, group, _ = fours(30)
    data = dm.EvaluationSet(labels, score, clusters=group)
    found = dm.evaluate(data, missingness="random", metrics="recall", method=FEW, rng=0)
    again = dm.evaluate(
        labels, score, clusters=pd.Series(group), missingness="random", metrics="recall", method=FEW, rng=0
    )
    assert found.intervals == again.intervals
    assert np.isnan(found.sensitivity()["recall"].low)
    for act in (lambda: data + data, lambda: data.with_threshold(0.3), lambda: data.to_parquet("nowhere.parquet")):
        with pytest.raises(dm.InputError, match="clusters: a set with clusters cannot be"):
            act()
    with pytest.raises(
        dm.InputError,
        match=r"clusters: passed with age\. Rows with ages are counted in bins, .* Leave one of the two out",
    ):
        dm.evaluate(labels, score, clusters=group, missingness=dm.missing.Delayed(age=np.ones(120)))
    with pytest.raises(dm.InputError, match="clusters: passed with an EvaluationSet, which already fixes it"):
        dm.evaluate(data, clusters=group)
    with pytest.raises(dm.exceptions.MethodError, match="'exact' needs missing labels that are independent"):
        dm.evaluate(labels, score, clusters=group, missingness="random", method="exact")


def test_result_states_the_correlation_of_labels_in_groups():
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.3, np.nan, np.repeat(rng.random(50) < 0.4, 4))
    result = dm.evaluate(
        y, rng.random(200), clusters=np.repeat(np.arange(50), 4), missingness="random", metrics="recall"
    )
    assert "Labels within a group are correlated: by" in result.assumption
    assert "over 50 groups" in result.assumption


def test_one_group_says_nothing_about_a_population_of_groups():
    y, score = np.tile([0.0, 1.0], 20), np.linspace(0.0, 1.0, 40)
    with pytest.raises(dm.InputError, match="clusters: all rows are in one cluster"):
        dm.evaluate(y, score, clusters=np.zeros(40), scope="population", metrics="accuracy")
    assert dm.evaluate(y, score, clusters=np.zeros(40), metrics="accuracy")["accuracy"].mean() == 0.5


def named_rows(labels, score, group):
    return {"y": labels, "p": score, "customer": [f"c{number:04d}" for number in group]}


def test_groups_that_are_each_one_row_are_counted_as_ever():
    labels, score, _, _ = fours(30)
    table = pd.DataFrame(named_rows(labels, score, np.arange(120)))
    data = dm.EvaluationSet("y", "p", data=table, clusters="customer", score_bins=64)
    assert data.groups is None
    assert data.score_bins == 64


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"clusters": "custmer"}, "clusters: data has no column 'custmer'. Did you mean 'customer'"),
        ({"clusters": "p"}, "clusters: column 'p' is also y_score"),
        ({"clusters": "gaps"}, "clusters column 'gaps': 4 of 120 rows have no value"),
        (
            {"clusters": "customer", "missingness": dm.missing.Delayed(scored_at="day", as_of="2026-02-01")},
            "clusters: passed with scored_at",
        ),
    ],
)
def test_bad_columns_of_groups_are_refused(how, words):
    labels, score, group, _ = fours(30)
    table = pd.DataFrame(named_rows(labels, score, group))
    table["gaps"] = table["customer"].where(table["customer"] != "c0003")
    table["day"] = pd.Timestamp("2026-01-01")
    with pytest.raises(dm.InputError, match=words):
        dm.evaluate("y", "p", data=table, **how)


def test_clusters_take_no_score_bins():
    labels, score, group, _ = fours(30)
    table = pd.DataFrame(named_rows(labels, score, group))
    with pytest.raises(dm.InputError, match=r"clusters: clusters 'customer' with score_bins=64\. Rows of clusters"):
        dm.EvaluationSet("y", "p", data=table, clusters="customer", score_bins=64)


def test_more_cells_of_groups_than_fit_are_refused(monkeypatch):
    monkeypatch.setattr("darkmetrics.frames.counting.MOST_EXACT", 100)
    labels, score, group, _ = fours(30)
    rng = np.random.default_rng(0)
    table = pd.DataFrame(named_rows(labels, score + 0.01 * rng.random(120), group))
    with pytest.raises(dm.InputError, match="clusters column 'customer': more than 100 cells of cluster and score"):
        dm.evaluate("y", "p", data=table, clusters="customer")


@pytest.mark.parametrize("number", [2, 3, 6])
def test_few_groups_have_the_interval_of_students_t(number):
    """Means of groups that all have as many rows: Student's interval with a degree of freedom fewer than groups."""
    right = np.linspace(0.49, 0.51, number)  # far from the ends of the range, where a Beta law is near a Gaussian
    rows = np.concatenate([np.arange(1000) < np.rint(1000 * share) for share in right])
    y = np.tile([0.0, 1.0], 500 * number)
    score = np.where(rows == (y == 1.0), 0.9, 0.1)
    group = np.repeat(np.arange(number), 1000)
    distribution = dm.evaluate(y, score, clusters=group, metrics="accuracy", scope="population")["accuracy"]
    share = np.array([rows[group == g].mean() for g in range(number)])
    half = t.ppf(0.95, number - 1) * share.std(ddof=1) / np.sqrt(number)
    low, high = distribution.interval(0.9)
    # Half a row on either side, and sixteen multiples of the variance for a whole law.
    assert 0.5 * (high - low) == pytest.approx(half, rel=0.12)


def test_probabilities_of_clustered_rows_are_not_called_independent():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = np.where(rng.random(200) < 0.3, np.nan, rng.random(200) < p)
    found = dm.evaluate(y, p, clusters=np.arange(200) // 4, missingness=dm.missing.Fixed(p), metrics="recall", rng=0)
    assert "independent" not in str(found)
    assert "Labels within a group are correlated" in str(found)
    assert "independent of each other" not in found.report().html


@pytest.mark.parametrize("digits", [1, 6])
def test_metrics_of_groups_share_their_labels_and_say_the_same_alone(digits):
    """Cells of one row, whose labels are kept as bits, and of several."""
    rng = np.random.default_rng(digits)
    n = 400
    group, score = rng.integers(0, 4 if digits == 1 else 60, n), np.round(rng.random(n), digits)
    y_true = np.where(rng.random(n) < 0.5, np.nan, rng.random(n) < score)
    settings: Any = {"clusters": group, "missingness": "random", "rng": 0}
    names = ["recall", "roc_auc", "brier", "average_precision"]
    together = dm.evaluate(y_true, score, metrics=names, **settings)
    assert bool((together.data.missing_counts > 1).any()) == (digits == 1)
    for name in names:
        alone = dm.evaluate(y_true, score, metrics=name, **settings)[name]
        beside = together[name]
        assert isinstance(beside, Discrete)
        assert isinstance(alone, Discrete)
        assert beside.method == "monte carlo"
        np.testing.assert_array_equal(beside.atoms, alone.atoms)
        np.testing.assert_array_equal(beside.masses, alone.masses)


def test_labels_that_do_not_fit_are_drawn_for_each_metric(monkeypatch):
    monkeypatch.setattr(drawing, "_MAX_SHARED_BYTES", 0)
    rng = np.random.default_rng(5)
    score, group = rng.random(200), rng.integers(0, 40, 200)
    y_true = np.where(rng.random(200) < 0.5, np.nan, rng.random(200) < score)
    found = dm.evaluate(y_true, score, clusters=group, metrics=["accuracy", "recall"], missingness="random", rng=0)
    same = dm.evaluate(y_true, score, clusters=group, metrics="recall", missingness="random", rng=1)["recall"]
    assert isinstance(same, Discrete)
    # Two samples of 10,000: Dvoretzky-Kiefer-Wolfowitz for both, passed once in 10,000 runs.
    far = 2.0 * np.sqrt(np.log(4.0 / 1e-4) / 2.0 / 10_000)
    assert np.abs(found["recall"].cdf(same.atoms) - same.cdf(same.atoms)).max() < far
