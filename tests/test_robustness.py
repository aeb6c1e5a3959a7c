"""Noise in the probabilities: independent noise changes no law, shared noise does, and Beta noise has its limit."""

import json
from itertools import product

import numpy as np
import pytest
from scipy import stats

import darkmetrics as dm
from darkmetrics.paper.noise import _build_shared_posterior

# Sampling error that an empirical cdf of 2,000 draws passes once in a thousand times (Dvoretzky-Kiefer-Wolfowitz).
SLACK = np.sqrt(np.log(2 / 0.001) / (2 * 2000))


def rows_with_gaps(n=300, low=0.1, high=0.9, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.uniform(low, high, n), 2)  # ties, so that cells hold several rows
    label = np.where(rng.random(n) < 0.5, np.nan, rng.random(n) < score)
    return label, score


@pytest.fixture(scope="module")
def data():
    label, score = rows_with_gaps()
    return dm.EvaluationSet(label, score, missingness=dm.missing.Fixed(score))


@pytest.fixture(scope="module")
def result(data):
    return dm.paper.theorem_4(data, rng=1, fraction=0.3)


@pytest.mark.parametrize(("mean", "variance"), [(0.5, 0.05), (0.1, 0.0899), (0.03, 1e-6), (0.999, 1e-4)])
def test_beta_parameters_give_the_mean_and_the_variance(mean, variance):
    distribution = stats.beta(*dm.paper.beta_parameters(mean, variance))
    # The formulas of both are short; 1e-9 is rounding, magnified where mean (1 - mean) is close to the variance.
    assert distribution.mean() == pytest.approx(mean, rel=1e-9)
    assert distribution.var() == pytest.approx(variance, rel=1e-9)


def test_beta_parameters_take_arrays():
    alpha, beta = dm.paper.beta_parameters([0.2, 0.5], 0.01)
    assert alpha.tolist() == pytest.approx([3.0, 12.0], rel=1e-12)  # (0.16 / 0.01 - 1) 0.2 and (0.25 / 0.01 - 1) 0.5
    assert beta.tolist() == pytest.approx([12.0, 12.0], rel=1e-12)


@pytest.mark.parametrize(
    ("mean", "variance", "message"),
    [
        (0.5, 0.25, r"variance: 0\.25\. With mean m it must lie strictly between 0 and m \(1 - m\), here 0\.25"),
        (0.5, 0.0, r"variance: 0\."),
        (0.5, np.nan, "variance: nan"),
        ([0.5, 0.1], 0.1, r"variance: 0\.1 at position 1\. .* here 0\.09"),
        (1.0, 0.1, r"mean: 1\. A Beta distribution has a mean strictly between 0 and 1"),
    ],
)
def test_beta_parameters_need_room_for_the_variance(mean, variance, message):
    with pytest.raises(dm.InputError, match=message):
        dm.paper.beta_parameters(mean, variance)


def test_a_label_with_a_random_chance_has_the_law_of_its_mean():
    # P(Y = 1) given each chance is that chance: integrated over the noise, to what quad promises.
    noise = stats.beta(*dm.paper.beta_parameters(0.3, 0.05))
    assert noise.expect(lambda chance: stats.bernoulli.pmf(1, chance)) == pytest.approx(0.3, abs=1e-8)


def test_independent_noise_leaves_the_law_of_all_labels_as_it_is():
    # Every joint probability of three labels: the mean of a product of independent chances is the product of means.
    p, variance = np.array([0.2, 0.5, 0.7]), 0.1
    alpha, beta = dm.paper.beta_parameters(p, variance)
    rng = np.random.default_rng(0)
    y = rng.random((400_000, 3)) < rng.beta(alpha, beta, (400_000, 3))
    for labels in product((0, 1), repeat=3):
        expected = np.prod(np.where(labels, p, 1 - p))
        # Five standard errors of a share among 400,000, for eight shares.
        assert np.mean(np.all(y == labels, axis=1)) == pytest.approx(expected, abs=5 * np.sqrt(0.25 / 400_000))


def test_v_star_is_the_smallest_variance_of_a_label():
    data = dm.EvaluationSet(
        [1, 0, None, None, None], [0.9, 0.2, 0.8, 0.4, 0.6], missingness=dm.missing.Fixed([0.8, 0.9, 0.5])
    )
    result = dm.paper.theorem_4(data, rng=0, n_resamples=10, metrics="accuracy")
    assert result.v_star == pytest.approx(0.09, rel=1e-12)
    assert (result.variance, result.fraction) == (None, 0.05)
    assert result.p_at_v_star == 0.9
    assert dm.paper.theorem_4(data, variance=0.045, rng=0, n_resamples=10, metrics="accuracy").variance == 0.045


def test_simulated_independent_noise_agrees_with_known_probabilities(data, result):
    assert result.agrees
    assert list(result.effects) == ["precision", "recall", "accuracy", "f1", "roc_auc"]
    for name, distribution in dm.evaluate(data).items():
        effect = result[name]
        assert effect.known.mean() == distribution.mean()
        assert effect.slack == pytest.approx(SLACK, rel=1e-9)
        assert 0.0 < effect.independent_distance <= SLACK
        # Four standard errors of a mean, and of a standard deviation, of 2,000 draws.
        assert abs(effect.independent.mean() - distribution.mean()) < 4 * distribution.std() / np.sqrt(2000)
        assert abs(effect.independent.std() / distribution.std() - 1) < 4 / np.sqrt(2 * 2000)


def test_shared_noise_is_told_apart_from_independent_noise(result):
    # The control: the same noise around every probability, drawn once for all rows.
    for effect in result.effects.values():
        assert effect.shared_distance > 2 * SLACK
        assert effect.shared.std() > 1.3 * effect.known.std()
        assert effect.widening == effect.shared.std() / effect.known.std()


def test_shared_noise_has_the_law_of_drawing_one_quantile_for_all_rows(data, result):
    rng = np.random.default_rng(5)
    cells = data.cells
    rows = np.repeat(np.arange(cells.score.size), cells.missing)
    p, yes = cells.score[rows], cells.decision[rows]
    alpha, beta = dm.paper.beta_parameters(p, result.fraction * p * (1 - p))
    chance = stats.beta.ppf(rng.random((2000, 1)), alpha, beta)
    y = rng.random(chance.shape) < chance
    tp = cells.positives[cells.decision].sum() + y[:, yes].sum(axis=1)
    fn = cells.positives[~cells.decision].sum() + y[:, ~yes].sum(axis=1)
    recall = np.sort(tp / (tp + fn))
    distribution = result["recall"].shared
    # Within each of 64 cases the error is averaged, which moves the cdf by a fraction of 1/64.
    assert (
        np.abs(np.searchsorted(recall, recall, side="right") / 2000 - distribution.cdf(recall)).max() < SLACK + 1 / 64
    )


@pytest.mark.parametrize(("p", "variance"), [(0.3, 0.04), (0.5, 0.249), (0.02, 0.0195), (0.999, 5e-4), (1e-9, 5e-10)])
def test_cases_of_a_shared_error_average_to_the_probability(p, variance):
    posterior = _build_shared_posterior(np.array([p]), lambda mean: np.full(mean.shape, variance))
    chance = posterior.probability[:, 0]
    # Differences of numbers up to 1, times 64.
    assert posterior.weight @ chance == pytest.approx(p, abs=1e-13)
    assert np.all(np.diff(chance) >= -1e-13)
    edges = stats.beta(*dm.paper.beta_parameters(p, variance)).ppf(np.arange(65) / 64)
    assert np.all((chance >= edges[:-1] - 1e-9) & (chance <= edges[1:] + 1e-9))


def test_cases_of_many_probabilities_are_interpolated_closely():
    p = np.linspace(0.05, 0.95, 5000)

    def constant(mean):
        return np.full(mean.shape, 0.02)

    together, some = _build_shared_posterior(p, constant).probability, np.array([17, 2345, 4711])
    alone = np.column_stack([_build_shared_posterior(p[[i]], constant).probability[:, 0] for i in some])
    # The knots are 1e-3 apart; where the noise is nearly all or nothing quantiles bend by some 100 per unit squared.
    assert np.abs(together[:, some] - alone).max() < 1e-4
    assert np.abs(together.mean(axis=0) - p).max() < 1e-12


def test_rows_that_are_certain_stay_as_they_are():
    labels, scores = [1, 0, 1, 0, *[None] * 6], [0.9, 0.3, 0.6, 0.1, 0.2, 0.4, 0.55, 0.7, 0.8, 0.95]
    chance = [0.0, 0.4, 0.5, 0.6, 0.7, 1.0]
    result = dm.paper.theorem_4(dm.EvaluationSet(labels, scores, missingness=dm.missing.Fixed(chance)), rng=0)
    settled = dm.EvaluationSet(
        [1, 0, 1, 0, 0, *[None] * 4, 1], scores, missingness=dm.missing.Fixed([None] * 5 + chance[1:5] + [None])
    )
    same = dm.paper.theorem_4(settled, rng=0)
    assert result.n_certain == 2
    assert result.v_star == pytest.approx(0.21, rel=1e-12)
    assert result.agrees
    assert "2 missing rows have probability 0 or 1" in str(result)
    for name, effect in result.effects.items():
        # The same sums in another order.
        assert effect.shared.mean() == pytest.approx(same[name].shared.mean(), rel=1e-12)
        assert effect.shared.std() == pytest.approx(same[name].shared.std(), rel=1e-9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variance": 0.09}, r"variance: 0\.09\. It must lie strictly between 0 and v\* = 0\.09,"),
        ({"variance": 0.0}, r"variance: 0\.0\."),
        ({"variance": "half"}, "variance: 'half'"),
        ({"n_resamples": 0}, "n_resamples: 0"),
        ({"confidence_level": 1.0}, r"confidence_level: 1\.0"),
        ({"p": 1.0}, r"p: every missing row has probability 0 or 1\. .* \(v\* = 0\)"),
        (
            {"p": [0.9, 0.5]},
            r"p: expected a number .* got list\. .* EvaluationSet\(\.\.\., missingness=dm\.missing\.Fixed\(p\)\)",
        ),
        ({"fraction": 1.0}, r"fraction: 1\.0\. It must lie strictly between 0 and 1"),
        ({"fraction": 0.1, "variance": 0.01}, r"fraction: 0\.1, but variance=0\.01 sets the noise as well"),
        ({"metrics": "recal"}, "Did you mean 'recall'"),
    ],
)
def test_input_that_breaks_a_rule_is_named(arguments, message):
    data = dm.EvaluationSet([1, 0, None, None], [0.9, 0.2, 0.8, 0.4], missingness=dm.missing.Fixed([0.9, 0.5]))
    with pytest.raises(dm.InputError, match=message):
        dm.paper.theorem_4(data, **arguments)


def test_a_mechanism_gives_the_probabilities_it_believes_in():
    label, score = rows_with_gaps()
    effect = dm.paper.theorem_4(
        dm.EvaluationSet(label, score), dm.missing.TrainingPrevalence(), metrics="accuracy", rng=0
    )["accuracy"]
    known = dm.evaluate(label, score, missingness=dm.missing.TrainingPrevalence(), metrics="accuracy")["accuracy"]
    assert effect.known.mean() == pytest.approx(known.mean(), rel=1e-12)


def test_weights_without_an_exact_law_are_compared_with_labelings():
    """Where two of 20 rows decide, a law on a lattice is 0.2 away from the true one, and noise is not to blame."""
    rng = np.random.default_rng(1)
    label = np.where(np.arange(60) < 20, np.nan, rng.random(60) < 0.5)
    chance = np.concatenate(([0.5, 0.5], np.full(18, 0.003), np.full(40, np.nan)))
    data = dm.EvaluationSet(
        label, rng.random(60), sample_weight=rng.uniform(0.5, 1.5, 60), missingness=dm.missing.Fixed(chance)
    )
    assert dm.paper.theorem_4(data, metrics=["precision", "recall"], rng=0).agrees


def test_without_missing_labels_there_is_nothing_to_be_off():
    with pytest.raises(dm.InputError, match="no label is missing"):
        dm.paper.theorem_4(dm.EvaluationSet([1, 0], [0.9, 0.2]), 0.5)


def test_a_seed_repeats_the_simulation(data, result):
    again, other = dm.paper.theorem_4(data, rng=1, fraction=0.3), dm.paper.theorem_4(data, rng=2, fraction=0.3)
    assert again.to_dict() == result.to_dict()
    assert other["recall"].independent_distance != result["recall"].independent_distance


def test_a_metric_known_by_sampling_alone_is_compared_with_more_slack(data):
    metric = dm.metrics.CallableMetric(
        name="top", function=lambda y, score: float(y[np.argsort(-score)[:40]].mean()), better="higher"
    )
    result = dm.paper.theorem_4(data, metrics=metric, rng=0)
    effect = result["top"]
    assert effect.known.method == "monte carlo"
    # Both laws are sampled, 2,000 draws each.
    assert effect.slack == pytest.approx(2 * SLACK, rel=1e-9)
    assert effect.agrees


def test_a_metric_that_is_never_defined_has_no_distance():
    data = dm.EvaluationSet([0, None, None], [0.1, 0.2, 0.3], missingness=dm.missing.Fixed([0.4, 0.5]))
    result = dm.paper.theorem_4(
        data, metrics=dm.metrics.ConfusionMetric(name="x", formula=lambda tp, fp, fn, tn: tp / fp)
    )
    assert result["x"].shared_distance is None
    assert result.agrees
    assert "undefined" in str(result)
    json.dumps(result.to_dict(), allow_nan=False)


def test_large_sets_are_compared_at_a_few_places():
    label, score = rows_with_gaps(8000, 0.2, 0.8)
    data = dm.EvaluationSet(label, score, missingness=dm.missing.Fixed(score))
    result = dm.paper.theorem_4(data, metrics="recall", fraction=0.3, n_resamples=200, rng=0)
    assert result.agrees
    # Labels average out over 4,000 rows, an error that all rows share does not.
    assert result["recall"].shared.std() > 3 * result["recall"].known.std()


def test_the_result_reads_as_words_and_as_numbers(result):
    text = str(result)
    assert "Independent noise in each row changes nothing" in text
    assert "The theorem does not cover noise that all rows share" in text
    assert "\n" not in repr(result)
    assert result._repr_html_().count("<tr>") == 6
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["metrics"]["f1"]["shared_distance"] == result["f1"].shared_distance
    assert plain["v_star"] == result.v_star
