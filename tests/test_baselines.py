"""Baselines are what people do today, to the last digit: scikit-learn on labeled rows, row bootstrap, no labels."""

import math

import numpy as np
import pytest
import sklearn.metrics

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.paper.baselines import bootstrap, complete_case, confidence_based
from oracle import SKLEARN, definition_of, sklearn_value

NAN = float("nan")
N = 40


def rows(seed=1):
    """Labels (nan: missing), scores with ties, weights; scores are informative, so that no metric is trivial."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(N), 1)
    y = (rng.random(N) < 0.2 + 0.6 * score).astype(float)
    y[rng.random(N) < 0.3] = NAN
    return y, score, rng.choice([0.5, 1.0, 2.0], N)


# ------------------------------------------------------------------------------------------------- complete case


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", SKLEARN)
def test_complete_case_equals_scikit_learn_on_the_labeled_rows(metric, weighted):
    y, score, weight = rows()
    weight = weight if weighted else np.ones(N)
    known = ~np.isnan(y)
    value = complete_case(EvaluationSet(y, score, sample_weight=weight), metric)[metric]
    expected = sklearn_value(metric, y[known], score[known], score[known] >= 0.5, weight[known])
    # Sums of 30 terms in another order.
    assert value == pytest.approx(expected, abs=1e-13)


@pytest.mark.parametrize("family", ["precision_at_k(5)", "recall_at_k(0.2)", "lift_at_k(7)", "gini", "g_mean"])
def test_complete_case_equals_the_definition_where_scikit_learn_has_none(family):
    y, score, _ = rows()
    known = ~np.isnan(y)
    ones = np.ones(known.sum())
    expected = definition_of(family)(y[known][None], score[known], (score[known] >= 0.5) * 1.0, ones)[0]
    assert complete_case(EvaluationSet(y, score), family)[family] == pytest.approx(expected, abs=1e-13)


def test_complete_case_has_the_default_metrics_and_nan_for_0_by_0():
    values = complete_case(EvaluationSet([0, 0, None], [0.1, 0.2, 0.9]))
    assert list(values) == ["precision", "recall", "accuracy", "f1", "roc_auc"]
    assert values["accuracy"] == 1.0
    assert all(math.isnan(values[name]) for name in ("precision", "recall", "f1", "roc_auc"))


# ----------------------------------------------------------------------------------------------------- bootstrap

RESAMPLES = 20_000


def drawn(y, score, weight, size, seed):
    """An explicit bootstrap: whole rows drawn again, with replacement."""
    picked = np.random.default_rng(seed).integers(len(y), size=(size, len(y)))
    return y[picked], score[picked], weight[picked]


def _accuracy(y, score, weight):
    return ((y == (score >= 0.5)) * weight).sum(axis=1) / weight.sum(axis=1)


def _recall(y, score, weight):
    positive = (y * weight).sum(axis=1)
    found = (y * weight * (score >= 0.5)).sum(axis=1)
    return np.divide(found, positive, out=np.zeros_like(found), where=positive > 0)


def _roc_auc(y, score, weight):
    values = np.empty(len(y))
    for i in range(len(y)):
        ones, zeros = y[i] == 1, y[i] == 0
        above = np.sign(score[i][ones][:, None] - score[i][zeros]) / 2 + 0.5
        mass = weight[i][ones][:, None] * weight[i][zeros]
        values[i] = (above * mass).sum() / mass.sum() if mass.size else NAN
    return values


def _average_precision(y, score, weight):
    """Sum over thresholds, from the highest, of the recall gained times the precision reached."""
    positive = (y * weight).sum(axis=1)
    total, before = np.zeros(len(y)), np.zeros(len(y))
    for threshold in np.unique(score)[::-1]:
        taken = weight * (score >= threshold)
        found, of = (y * taken).sum(axis=1), taken.sum(axis=1)
        total += (found - before) * np.divide(found, of, out=np.zeros_like(of), where=of > 0)
        before = found
    return np.divide(total, positive, out=np.zeros_like(total), where=positive > 0)


def test_average_precision_of_resamples_is_that_of_scikit_learn():
    y, score, weight = rows()
    known = ~np.isnan(y)
    resamples = drawn(y[known], score[known], weight[known], 50, seed=3)
    expected = [
        sklearn.metrics.average_precision_score(*row[:2], sample_weight=row[2]) for row in zip(*resamples, strict=True)
    ]
    assert _average_precision(*resamples) == pytest.approx(expected, abs=1e-13)


EXPLICIT = {
    "accuracy": (_accuracy, RESAMPLES),
    "recall": (_recall, RESAMPLES),
    "roc_auc": (_roc_auc, RESAMPLES),
    "average_precision": (_average_precision, RESAMPLES),
}


def slack(*sizes):
    """Largest distance of empirical laws of one true law: exceeded with probability below 1e-6 per sample (DKW)."""
    return sum(math.sqrt(math.log(2 / 1e-6) / (2 * size)) for size in sizes)


def distance(distribution, sample):
    """Kolmogorov-Smirnov distance between a law and a sample."""
    atoms, counts = np.unique(np.round(sample, 9), return_counts=True)
    # Half a rounding step beyond each atom, so that an atom counts on the same side in both.
    return float(np.max(np.abs(distribution.cdf(atoms + 1e-8) - np.cumsum(counts) / counts.sum())))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("metric", EXPLICIT)
def test_bootstrap_equals_an_explicit_row_bootstrap(metric, weighted):
    y, score, weight = rows()
    weight = weight if weighted else np.ones(N)
    known = ~np.isnan(y)
    distribution = bootstrap(EvaluationSet(y, score, sample_weight=weight), metric, n_resamples=RESAMPLES, rng=1)[
        metric
    ]
    value, size = EXPLICIT[metric]
    sample = value(*drawn(y[known], score[known], weight[known], size, seed=2))
    assert distance(distribution, sample) < slack(RESAMPLES, size)


@pytest.mark.parametrize("metric", ["accuracy", "recall", "roc_auc"])
def test_the_distance_sees_a_bootstrap_that_forgets_the_weights(metric):
    y, score, weight = rows()
    weight = np.where(y == 1, 3.0, 1.0) * weight * np.where(score < 0.5, 2.0, 1.0)
    known = ~np.isnan(y)
    distribution = bootstrap(EvaluationSet(y, score, sample_weight=weight), metric, n_resamples=RESAMPLES, rng=1)[
        metric
    ]
    value, size = EXPLICIT[metric]
    assert distance(distribution, value(*drawn(y[known], score[known], weight[known], size, seed=2))) < slack(
        RESAMPLES, size
    )
    forgetful = value(*drawn(y[known], score[known], np.ones(known.sum()), size, seed=2))
    assert distance(distribution, forgetful) > slack(RESAMPLES, size)


def test_the_distance_sees_a_bootstrap_of_too_few_rows():
    y, score, _ = rows()
    known = ~np.isnan(y)
    distribution = bootstrap(EvaluationSet(y, score), "average_precision", n_resamples=RESAMPLES, rng=1)[
        "average_precision"
    ]
    picked = np.random.default_rng(2).integers(known.sum(), size=(2_000, known.sum() // 3))
    picked = picked[y[known][picked].any(axis=1)]  # scikit-learn warns where there is no positive row
    sample = _average_precision(y[known][picked], score[known][picked], np.ones(picked.shape))
    assert distance(distribution, sample) > slack(RESAMPLES, len(picked))


def test_bootstrap_counts_0_by_0_as_evaluate_does():
    # Two rows, one of each class: a quarter of the resamples has no positive row, and half of them only one class.
    data = EvaluationSet([1, 0, None], [0.9, 0.1, 0.5])
    distributions = bootstrap(data, ["recall", "roc_auc"], n_resamples=RESAMPLES, rng=3)
    assert distributions["recall"].undefined == pytest.approx(0.25, abs=slack(RESAMPLES))
    assert distributions["recall"].mean() == pytest.approx(0.75, abs=slack(RESAMPLES))
    assert distributions["roc_auc"].undefined == pytest.approx(0.5, abs=slack(RESAMPLES))
    assert distributions["roc_auc"].mean() == pytest.approx(1.0, abs=1e-12)


def test_bootstrap_of_one_class_is_undefined_and_no_crash():
    distribution = bootstrap(EvaluationSet([1, 1], [0.9, 0.1]), "roc_auc", n_resamples=10, rng=0)["roc_auc"]
    assert distribution.undefined == 1.0


def test_bootstrap_has_ten_thousand_resamples_by_default_and_the_default_metrics():
    distributions = bootstrap(EvaluationSet([1, 0, None], [0.9, 0.1, 0.5]), rng=0)
    assert list(distributions) == ["precision", "recall", "accuracy", "f1", "roc_auc"]
    # The mass of an atom is a whole number of resamples.
    assert distributions["recall"].undefined * 10_000 == pytest.approx(
        round(distributions["recall"].undefined * 10_000), abs=1e-6
    )
    assert all(distribution.method == "bootstrap" for distribution in distributions.values())


def test_bootstrap_repeats_with_its_seed():
    data = EvaluationSet(*rows()[:2])

    def quantiles(rng):
        return bootstrap(data, "roc_auc", n_resamples=200, rng=rng)["roc_auc"].ppf([0.1, 0.5, 0.9]).tolist()

    assert quantiles(5) == quantiles(5) == quantiles(np.random.default_rng(5))
    assert quantiles(5) != quantiles(6)


def test_bootstrap_takes_callables():
    y, score, _ = rows()
    distribution = bootstrap(EvaluationSet(y, score), {"share": lambda y, s: y.mean()}, n_resamples=500, rng=0)["share"]
    share = float(np.mean(y[~np.isnan(y)]))
    # Four standard errors of the mean of 500 resamples.
    assert distribution.mean() == pytest.approx(
        share, abs=4 * math.sqrt(share * (1 - share) / (~np.isnan(y)).sum() / 500)
    )


@pytest.mark.parametrize("n_resamples", [0, -1, 1.5, True, None, "10"])
def test_a_meaningless_number_of_resamples_is_refused(n_resamples):
    with pytest.raises(InputError, match=r"n_resamples: .* whole number of at least 1"):
        bootstrap(EvaluationSet([1, 0], [0.9, 0.1]), n_resamples=n_resamples)


@pytest.mark.parametrize("rng", ["a", -1, 1.5])
def test_a_meaningless_rng_is_refused(rng):
    with pytest.raises(InputError, match=r"rng: .* It must be None, a seed or a numpy Generator"):
        bootstrap(EvaluationSet([1, 0], [0.9, 0.1]), rng=rng)


# ---------------------------------------------------------------------------------------------- confidence-based


def test_confidence_based_equals_evaluate_with_every_label_missing():
    y, score, weight = rows()
    p = np.random.default_rng(3).random(N)
    expected = dm.evaluate([None] * N, score, missingness=dm.missing.Fixed(p))
    assert confidence_based(EvaluationSet(y, score, missingness=dm.missing.Fixed(p))).to_dict() == expected.to_dict()
    counts = ["precision", "recall", "f1"]
    data = EvaluationSet(y, score, sample_weight=weight, missingness=dm.missing.Fixed(p))
    expected = dm.evaluate([None] * N, score, sample_weight=weight, missingness=dm.missing.Fixed(p), metrics=counts)
    assert confidence_based(data, metrics=counts).to_dict() == expected.to_dict()


def test_confidence_based_ignores_the_labels():
    y, score, _ = rows()
    p = np.random.default_rng(3).random(N)
    flipped = EvaluationSet(1 - y, score, missingness=dm.missing.Fixed(p))
    assert (
        confidence_based(flipped).to_dict()
        == confidence_based(EvaluationSet(y, score, missingness=dm.missing.Fixed(p))).to_dict()
    )


def test_confidence_based_accuracy_is_the_mean_confidence():
    # What monitoring tools compute: the mean chance that the decision is right.
    y, score, _ = rows()
    distribution = confidence_based(EvaluationSet(y, score, missingness=dm.missing.Fixed(score)), metrics="accuracy")[
        "accuracy"
    ]
    assert distribution.mean() == pytest.approx(np.mean(np.where(score >= 0.5, score, 1 - score)), abs=1e-14)


def test_confidence_based_takes_a_mechanism():
    y, score, _ = rows()
    expected = dm.evaluate([None] * N, score, missingness=dm.missing.Fixed(0.5), metrics="f1")
    assert (
        confidence_based(EvaluationSet(y, score), missingness=dm.missing.Fixed(0.5), metrics="f1").to_dict()
        == expected.to_dict()
    )


def test_confidence_based_needs_a_probability_for_every_row():
    data = EvaluationSet([1, 0, None], [0.9, 0.1, 0.5], missingness=dm.missing.Fixed([0.5]))
    with pytest.raises(InputError, match=r"probability: .* every row"):
        confidence_based(data, missingness=dm.missing.Fixed())


def test_confidence_based_without_probabilities_says_how_to_give_them():
    with pytest.raises(InputError, match=r"^probability: none with these rows"):
        confidence_based(EvaluationSet([1, 0, None], [0.9, 0.1, 0.5]))


@pytest.mark.parametrize("probability", [np.array([0.5, 0.5, 0.5]), [0.5, 0.5, 0.5]])
def test_confidence_based_refuses_probabilities_per_row(probability):
    with pytest.raises(InputError, match="probability: passed with an EvaluationSet, which already fixes it"):
        confidence_based(EvaluationSet([1, 0, None], [0.9, 0.1, 0.5]), missingness=dm.missing.Fixed(probability))


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("baseline", [complete_case, bootstrap, confidence_based])
@pytest.mark.parametrize("data", [[1, 0], None, np.array([1, 0])])
def test_what_is_no_evaluation_set_is_refused(baseline, data):
    with pytest.raises(InputError, match="evaluation_set: expected an EvaluationSet, got"):
        baseline(data)


@pytest.mark.parametrize("baseline", [complete_case, bootstrap])
def test_no_labeled_row_is_refused(baseline):
    with pytest.raises(InputError, match="evaluation_set: no labeled row"):
        baseline(EvaluationSet([None, None], [0.9, 0.1]))


@pytest.mark.parametrize("baseline", [complete_case, bootstrap, confidence_based])
def test_an_unknown_metric_is_refused_with_a_suggestion(baseline):
    data = EvaluationSet([1, 0], [0.9, 0.1], missingness=dm.missing.Fixed([0.5, 0.5]))
    with pytest.raises(InputError, match=r"metrics: unknown metric 'recal'\. Did you mean 'recall'"):
        baseline(data, metrics="recal")
