"""The diagnosis: its tests against scipy and brute force, their size and power in simulations, its words and its edges.

Sizes are of tests at the 5% level over 400 sets: between 3% and 8% a test is at its level as far as 400 sets can show
(standard error 1.1%). Seeds are fixed: a red test is red for everyone.
"""

import json
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit

import darkmetrics as dm
from darkmetrics._kernels.hypothesis_tests import compared, logistic_score_test, mixture_fit
from darkmetrics.diagnosis import Diagnosis, diagnose, diagnosis_of
from darkmetrics.diagnosis.scores import mixture_check, score_difference
from darkmetrics.missingness.base import missing_prevalence
from darkmetrics.missingness.checks import calibration_check, raw_check, reference_check
from darkmetrics.missingness.fit_data import FitData
from guarantees.scenarios import BY_BOTH, BY_LABEL_HALF, BY_LABEL_MOST, BY_SCORE, DRIFT, PU_CONSTANT, RANDOM

SETS = 400
BY_LABEL = BY_LABEL_HALF[1]
FEW_METRICS = ("precision", "recall")  # what is said about the others is the same, and ROC-AUC takes longer


def fit_data(sample, *, reference=False, score=None):
    data = dm.EvaluationSet(sample.y, sample.score if score is None else score)
    return FitData.of(data, dm.missing.Reference(*sample.reference) if reference else None)


def true_chance(sample, scenario):
    """P(positive | score) before any label is lost: x as a function of the score, see the scenarios."""
    return expit(-1.2 + 0.7 * np.log(sample.score) - 1.2 * np.log1p(-sample.score) + scenario.drift)


def rejected(check, materials):
    """Share of the sets on which the check rejects at the 5% level."""
    return np.mean([check(one).p_value < 0.05 for one in materials])


# --------------------------------------------------------------------------------------------------- the formulas


@pytest.mark.parametrize("digits", [0, 1, 8], ids=["two values", "ties", "no ties"])
def test_scores_are_compared_as_scipy_compares_samples(digits):
    rng = np.random.default_rng(0)
    first, second = (rng.random(80) ** 0.5).round(digits), rng.random(60).round(digits)
    values = np.unique(np.append(first, second))
    found = compared(*((sample[:, None] == values).sum(axis=0).astype(float) for sample in (first, second)))
    rank = stats.mannwhitneyu(second, first, method="asymptotic")
    shape = stats.ks_2samp(first, second)
    # The same sums in another order: a few roundings of 1e-16.
    assert found.effect == pytest.approx(rank.statistic / (80 * 60), rel=1e-12)
    assert found.p_location == pytest.approx(rank.pvalue, rel=1e-9)
    assert found.distance == pytest.approx(shape.statistic, rel=1e-12)
    assert found.p_shape == pytest.approx(stats.kstwobign.sf(np.sqrt(80 * 60 / 140) * shape.statistic), rel=1e-9)


def test_equal_values_have_no_location_to_differ_in():
    assert compared(np.array([5.0]), np.array([3.0])) == (0.5, 1.0, 0.0, 1.0)


def likelihood_by_search(positives, negatives, missing):
    """Best likelihood of three histograms, the third a mixture of the first two, over all parameters at once."""
    k = positives.size

    def unpacked(z):
        parts = [np.exp(np.append(0.0, z[i : i + k - 1])) for i in (0, k - 1)]
        return (*(part / part.sum() for part in parts), z[-1])

    def loss(z):
        f1, f0, share = unpacked(z)
        mixture = share * f1 + (1 - share) * f0
        return -(positives @ np.log(f1) + negatives @ np.log(f0) + missing @ np.log(mixture))

    found = optimize.minimize(
        loss, np.append(np.zeros(2 * k - 2), 0.5), method="SLSQP",
        bounds=[(-9, 9)] * (2 * k - 2) + [(0, 1)], options={"ftol": 1e-13, "maxiter": 2000},
    )  # fmt: skip
    return *unpacked(found.x), found.fun


@pytest.mark.parametrize("missing", [[14, 30, 25, 18], [70, 20, 5, 1], [1, 4, 25, 60]], ids=["inside", "low", "high"])
def test_mixture_fit_is_the_most_likely_mixture(missing):
    positives, negatives = np.array([4.0, 9.0, 14.0, 20.0]), np.array([30.0, 22.0, 9.0, 3.0])
    missing = np.array(missing, dtype=float)
    fit = mixture_fit(positives, negatives, missing)
    f1, f0, share, _ = likelihood_by_search(positives, negatives, missing)
    expected = [positives.sum() * f1, negatives.sum() * f0, missing.sum() * (share * f1 + (1 - share) * f0)]
    pearson = sum(
        ((seen - e) ** 2 / e).sum() for seen, e in zip((positives, negatives, missing), expected, strict=True)
    )
    # The general search stops some 1e-4 from the best parameters.
    assert fit.share == pytest.approx(share, abs=2e-3)
    assert fit.statistic == pytest.approx(pearson, rel=5e-3)
    assert fit.dof == (3 if share in (0.0, 1.0) or min(share, 1 - share) < 1e-6 else 2)


def test_an_exact_mixture_has_no_distance_from_itself():
    positives, negatives = np.array([10.0, 20.0, 40.0, 30.0]), np.array([40.0, 30.0, 20.0, 10.0])
    fit = mixture_fit(positives, negatives, 0.3 * positives + 0.7 * negatives)
    assert fit.share == pytest.approx(0.3, abs=1e-5)  # where the search for the chances stops
    assert fit.statistic == pytest.approx(0.0, abs=1e-6)


def test_score_test_agrees_with_the_likelihood_ratio():
    # Both have the same limit; at 4,000 rows and a moderate effect they are a few percent apart.
    rng = np.random.default_rng(1)
    x = rng.normal(size=4000)
    group = rng.random(4000) < 0.5
    y = (rng.random(4000) < expit(x - 0.5 + 0.2 * group)).astype(float)
    X = np.column_stack([np.ones(4000), x])
    Z = X * group[:, None]

    def fitted(design):
        def loss(b):
            return np.logaddexp(0, design @ b).sum() - y @ (design @ b), design.T @ (expit(design @ b) - y)

        return optimize.minimize(loss, np.zeros(design.shape[1]), jac=True)

    small, large = fitted(X), fitted(np.hstack([X, Z]))
    test = logistic_score_test(X, Z, y, 1 - y, small.x)
    assert test.dof == 2
    assert test.statistic == pytest.approx(2 * (small.fun - large.fun), rel=0.05)


def test_score_test_does_not_mind_a_fit_that_is_a_little_off():
    rng = np.random.default_rng(2)
    x = rng.normal(size=2000)
    y = (rng.random(2000) < expit(x)).astype(float)
    X, Z = np.column_stack([np.ones(2000), x]), np.eye(5)[np.digitize(x, [-1, -0.3, 0.3, 1])]
    near, off = (logistic_score_test(X, Z, y, 1 - y, np.array(beta)) for beta in ([0.0, 1.0], [0.03, 1.03]))
    # Without taking out what X explains, a shift of 0.03 in 2,000 rows alone would add some 0.03^2 * 400 per column.
    assert off.statistic == pytest.approx(near.statistic, rel=0.05)


# -------------------------------------------------------------------------------------------------- size and power


@pytest.mark.guarantees
@pytest.mark.parametrize("scenario", [RANDOM, BY_LABEL, BY_LABEL_MOST[0]], ids=lambda scenario: scenario.name)
def test_by_label_is_refuted_no_more_often_than_the_level_when_it_is_true(scenario):
    size = rejected(mixture_check, (fit_data(sample) for sample in scenario.samples(SETS, n_rows=1000)))
    assert 0.03 <= size <= 0.08


@pytest.mark.parametrize("scenario", [BY_SCORE, BY_BOTH], ids=lambda scenario: scenario.name)
def test_by_label_is_refuted_when_the_score_plays_a_part(scenario):
    assert rejected(mixture_check, (fit_data(sample) for sample in scenario.samples(50, n_rows=1000))) >= 0.9


def test_scores_differ_no_more_often_than_the_level_when_labels_are_missing_at_random():
    few_values = (fit_data(sample, score=sample.score.round(1)) for sample in RANDOM.samples(SETS, n_rows=500))
    many = (fit_data(sample) for sample in RANDOM.samples(SETS, n_rows=500))
    tied, untied = rejected(score_difference, few_values), rejected(score_difference, many)
    # Twice the smaller of two p-values that agree mostly: conservative, so there is no lower bound of 3%.
    assert 0.01 <= tied <= 0.07
    assert 0.01 <= untied <= 0.07


@pytest.mark.parametrize("scenario", [BY_SCORE, BY_LABEL], ids=lambda scenario: scenario.name)
def test_scores_differ_when_labels_are_not_missing_at_random(scenario):
    assert rejected(score_difference, (fit_data(sample) for sample in scenario.samples(50, n_rows=1000))) >= 0.9


@pytest.mark.guarantees
@pytest.mark.parametrize("check", [calibration_check, raw_check], ids=["fitted", "raw"])
def test_right_probabilities_are_called_miscalibrated_at_the_level(check):
    materials = (fit_data(s, score=true_chance(s, RANDOM)) for s in RANDOM.samples(SETS, n_rows=1000))
    assert 0.03 <= rejected(check, materials) <= 0.08


def test_scores_that_are_no_probabilities_of_the_label_are_noticed():
    assert rejected(raw_check, (fit_data(sample) for sample in RANDOM.samples(20, n_rows=1000))) == 1.0


def test_a_curve_that_no_calibration_follows_is_noticed():
    rng = np.random.default_rng(4)
    score = rng.random(2000)
    y = (rng.random(2000) < 0.5 + 0.4 * np.sin(50.0 * score)).astype(float)
    found = diagnose(np.where(rng.random(2000) < 0.3, np.nan, y), score)
    assert found.calibration is not None
    assert found.calibration.p_value < 1e-6
    assert not found.calibration.is_adequate
    assert "does not fit" in found.verdict


@pytest.mark.guarantees
@pytest.mark.parametrize("scenario", [RANDOM, BY_SCORE], ids=lambda scenario: scenario.name)
def test_the_reference_is_contradicted_at_the_level_when_nothing_drifted(scenario):
    samples = scenario.samples(SETS, n_rows=1000, n_reference=500)
    assert 0.03 <= rejected(reference_check, (fit_data(sample, reference=True) for sample in samples)) <= 0.08


@pytest.mark.parametrize("scenario", [DRIFT, PU_CONSTANT], ids=lambda scenario: scenario.name)
def test_drift_and_missing_by_label_contradict_the_reference(scenario):
    found = [reference_check(fit_data(sample, reference=True)) for sample in scenario.samples(50)]
    assert np.mean([check.contradicts for check in found]) >= 0.98


# --------------------------------------------------------------------------------------------------------- records


@cache
def diagnosed(scenario, *, reference=False, n_rows=1000):
    (sample,) = scenario.samples(1, n_rows=n_rows, n_reference=500)
    reference = dm.missing.Reference(*sample.reference) if reference else None
    return diagnose(sample.y, sample.score, missingness=dm.missing.Unknown(reference=reference), metrics=FEW_METRICS)


def test_reasons_are_those_of_the_label_models():
    (sample,) = BY_LABEL.samples(1, n_rows=1000)
    data = dm.EvaluationSet(sample.y, sample.score)
    found = diagnosis_of(data)
    for name, model in (("by score", dm.missing.ByScore()), ("by label", dm.missing.ByLabel())):
        distributions = dm.evaluate(data, missingness=model)
        assert tuple(found.mechanisms[name].prevalence) == tuple(missing_prevalence(data, model.posterior(data)))
        for metric, estimate in found.mechanisms[name].metrics.items():
            # The same law found twice; orders of summation do not differ.
            assert estimate == pytest.approx(
                (distributions[metric].mean(), *distributions[metric].interval(0.9)), rel=1e-12
            )
        assert found.labeled_only == dict(distributions.labeled_only)


def test_reference_rows_add_the_third_reason():
    assert list(diagnosed(BY_BOTH).mechanisms) == ["by score", "by label"]
    assert list(diagnosed(BY_BOTH, reference=True).mechanisms) == ["by score", "by label", "by score and label"]


def test_reliability_tables_count_every_labeled_row_once():
    found = diagnosed(RANDOM)
    for check in (found.calibration, found.raw_scores):
        assert check is not None
        assert sum(b.rows for b in check.table) == found.counts["labeled"]
        assert sum(b.rows * b.positive for b in check.table) == pytest.approx(found.counts["positive"], abs=1e-9)
        assert all(b.low <= b.high for b in check.table)
        assert all(a.high < b.low for a, b in zip(check.table[:-1], check.table[1:], strict=True))


def test_raw_scores_are_predicted_by_their_mean():
    (sample,) = RANDOM.samples(1, n_rows=500)
    found = diagnose(sample.y, sample.score).raw_scores
    assert found is not None
    for b in found.table:
        rows = (sample.score >= b.low) & (sample.score <= b.high) & ~np.isnan(sample.y)
        assert b.predicted == pytest.approx(sample.score[rows].mean(), rel=1e-12)
        assert b.positive == pytest.approx(sample.y[rows].mean(), rel=1e-12)


def test_the_page_names_every_key_of_to_dict():
    plain = diagnosed(BY_BOTH, reference=True).to_dict()
    page = (Path(__file__).parents[1] / "docs/how-to/diagnose.md").read_text(encoding="utf-8")
    section = page.partition("## to_dict\n")[2]
    said = {
        name for line in section.splitlines() if line[:3] == "| `" for name in line.split("|")[1].strip().split(", ")
    }
    assert said == {f"`{key}`" for key in plain}
    parts = ("counts", "score_difference", "mixture", "calibration", "reference")
    keys = {key for part in parts for key in plain[part]} | set(plain["calibration"]["table"][0])
    assert all(f"`{key}`" in section for key in keys)


def test_arrays_and_the_set_made_of_them_are_diagnosed_alike():
    (sample,) = BY_LABEL.samples(1, n_rows=300)
    arrays = diagnose(
        sample.y,
        sample.score,
        threshold=0.4,
        missingness=dm.missing.Unknown(reference=dm.missing.Reference(*sample.reference)),
    )
    ready = diagnose(
        dm.EvaluationSet(sample.y, sample.score, threshold=0.4),
        missingness=dm.missing.Unknown(reference=dm.missing.Reference(*sample.reference)),
    )
    assert arrays.to_dict() == ready.to_dict()


def test_a_ready_set_takes_no_further_data():
    data = dm.EvaluationSet([1, 0, None], [0.9, 0.2, 0.7])
    with pytest.raises(dm.InputError, match=r"^y_score: an EvaluationSet already fixes it"):
        diagnose(data, [0.9, 0.2, 0.7])
    with pytest.raises(dm.InputError, match=r"^threshold: 0\.3, but the EvaluationSet has 0\.5"):
        diagnose(data, threshold=0.3)
    with pytest.raises(dm.InputError, match=r"^y_score: missing"):
        diagnose([1, 0, None])


# ----------------------------------------------------------------------------------------------------------- words


@pytest.mark.parametrize(
    ("scenario", "word"),
    [(RANDOM, "no difference in scores"), (BY_SCORE, "not by label alone"), (BY_LABEL, "by score or by label")],
    ids=lambda x: getattr(x, "name", ""),
)
def test_missingness_is_named(scenario, word):
    assert diagnosed(scenario).missingness == word


def test_the_verdict_names_both_reasons_and_what_to_state():
    words = diagnosed(BY_LABEL).verdict
    for text in (
        "by score",
        "by label",
        "missingness='by_label'",
        "dm.missing.Reference(labels, scores)",
        "moves most",
    ):
        assert text in words


def test_a_refuted_reason_is_called_so():
    assert "'by label' alone is refuted" in diagnosed(BY_SCORE).verdict


def test_a_contradiction_names_both_explanations_and_chooses_neither():
    words = diagnosed(DRIFT, reference=True, n_rows=2000).verdict
    assert "contradict the reference" in words
    assert "drifted" in words
    assert "missing because of what they are" in words
    assert "cannot say which" in words
    assert "agree with the reference" in diagnosed(RANDOM, reference=True).verdict


@pytest.mark.parametrize(
    ("shift", "words"),
    [(0.0, "about the same"), (0.12, "slightly higher"), (-0.5, "clearly lower"), (2.0, "much higher")],
)
def test_the_size_of_a_difference_is_put_into_words(shift, words):
    rng = np.random.default_rng(5)
    missing = rng.random(20_000) < 0.5
    score = rng.normal(size=20_000) + shift * missing
    y = np.where(missing, np.nan, rng.random(20_000) < expit(score))
    found = score_difference(FitData.of(dm.EvaluationSet(y, score)))
    assert found.words == words
    # P(N(shift, 1) > N(0, 1)); the standard error at 10,000 pairs of rows is 0.004.
    assert found.effect == pytest.approx(stats.norm.cdf(shift / np.sqrt(2)), abs=0.015)


def test_a_difference_too_small_to_matter_is_none():
    # A million rows show a difference that no one would act on.
    labeled, missing = np.array([250_000.0, 250_000.0]), np.array([248_000.0, 252_000.0])
    found = compared(labeled, missing)
    assert found.p_location < 0.001
    y = np.repeat([0.0, 0.0, np.nan, np.nan], [250_000, 250_000, 248_000, 252_000])
    score = np.repeat([0.2, 0.8, 0.2, 0.8], [250_000, 250_000, 248_000, 252_000])
    assert not score_difference(FitData.of(dm.EvaluationSet(y, score))).differs


@pytest.mark.parametrize("scenario", [RANDOM, BY_SCORE, BY_LABEL, BY_BOTH, DRIFT], ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("reference", [False, True], ids=["alone", "with reference"])
def test_a_verdict_has_three_to_five_sentences(scenario, reference):
    found = diagnosed(scenario, reference=reference)
    lines = str(found).split("\n\n", maxsplit=1)[0].splitlines()[1:]
    assert " ".join(lines) == found.verdict
    assert 3 <= len(lines) <= 5


def test_repr_is_one_line_and_html_is_escaped():
    found = diagnose([1, 0, None], [0.9, 0.2, 0.7], metrics=FEW_METRICS)
    assert repr(found) == "<Diagnosis of 3 rows: 2 labeled, 1 missing (33.3%): cannot be told>"
    metric = dm.metrics.ConfusionMetric(name="<b>", formula=lambda tp, fp, fn, tn: tp / (tp + fp))
    page = diagnose([1, 0, None], [0.9, 0.2, 0.7], metrics=metric)._repr_html_()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


# ----------------------------------------------------------------------------------------------------------- edges

RNG = np.random.default_rng(6)
SCORE = RNG.random(120)
LABEL = (RNG.random(120) < SCORE).astype(float)
PARTLY = np.where(RNG.random(120) < 0.3, np.nan, LABEL)
GONE = np.isnan(PARTLY)

EDGES = {
    "no missing rows": ({"y_true": LABEL, "y_score": SCORE}, "no missing labels"),
    "no labeled rows": ({"y_true": np.full(50, np.nan), "y_score": SCORE[:50]}, "cannot be told"),
    "no labeled rows, reference": (
        {"y_true": np.full(50, np.nan), "y_score": SCORE[:50], "missingness": dm.missing.Reference(LABEL, SCORE)},
        "cannot be told",
    ),
    "only positives": ({"y_true": np.where(PARTLY == 0, np.nan, PARTLY), "y_score": SCORE}, "by score or by label"),
    "only negatives": ({"y_true": np.where(PARTLY == 1, np.nan, PARTLY), "y_score": SCORE}, "by score or by label"),
    "constant scores": ({"y_true": PARTLY, "y_score": np.full(120, 0.3)}, "cannot be told"),
    "two scores": ({"y_true": PARTLY, "y_score": (SCORE > 0.5).astype(float)}, "no difference in scores"),
    "one labeled row": ({"y_true": [1], "y_score": [0.4]}, "no missing labels"),
    "one missing row": ({"y_true": [None], "y_score": [0.4]}, "cannot be told"),
    "three rows": ({"y_true": [1, 0, None], "y_score": [0.4, 0.2, 0.7]}, "cannot be told"),
    "missing rows without weight": (
        {"y_true": PARTLY, "y_score": SCORE, "sample_weight": np.where(GONE, 0.0, 1.0)},
        "no difference in scores",
    ),
    "labeled rows without weight": (
        {"y_true": PARTLY, "y_score": SCORE, "sample_weight": np.where(GONE, 1.0, 0.0)},
        "no difference in scores",
    ),
    "scores no probabilities": ({"y_true": PARTLY, "y_score": 10 * SCORE - 3}, "no difference in scores"),
    "separated classes": ({"y_true": np.where(GONE, np.nan, SCORE > 0.5), "y_score": SCORE}, "no difference in scores"),
    "reference of one row": (
        {"y_true": PARTLY, "y_score": SCORE, "missingness": dm.missing.Reference([1], [0.5])},
        "no difference in scores",
    ),
    "reference on another scale": (
        {"y_true": PARTLY, "y_score": SCORE, "missingness": dm.missing.Reference(LABEL, 9 * SCORE - 2)},
        "no difference in scores",
    ),
}


@pytest.mark.parametrize(("case", "word"), EDGES.values(), ids=EDGES)
def test_edges_are_diagnosed_and_say_what_is_absent(case, word):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = diagnose(**case, metrics=FEW_METRICS)
    assert isinstance(found, Diagnosis)
    assert found.missingness == word
    plain = found.to_dict()
    json.dumps(plain, allow_nan=False)
    parts = ("score_difference", "mixture", "calibration", "raw_scores", "reference", "overlap")
    none = {name for name in parts if plain[name] is None}
    unread = {"by score", "by label", "by score and label"} - set(found.mechanisms)
    assert set(found.absent) == none | unread
    assert all(found.absent.values())
    assert str(found)
    assert found._repr_html_()


def test_scores_of_zero_and_one_are_refuted_by_one_label():
    score = np.repeat([0.0, 1.0, 0.4, 0.6], 50)
    y = np.repeat([0.0, 1.0, 0.0, 1.0], 50)
    y[100:150:2] = 1.0
    y[151:200:2] = 0.0
    right = diagnose(y, score).raw_scores
    y[0] = 1.0
    wrong = diagnose(y, score).raw_scores
    assert right is not None
    assert wrong is not None
    assert right.p_value > 0.01
    assert wrong.p_value == 0.0
    assert wrong.statistic == np.inf


def test_a_clear_misfit_is_a_warning_of_evaluate():
    rng = np.random.default_rng(4)
    score = rng.random(3000)
    y = (rng.random(3000) < 0.5 + 0.4 * np.sin(50.0 * score)).astype(float)
    y_true = np.where(rng.random(3000) < 0.3, np.nan, y)
    with pytest.warns(dm.CalibrationWarning, match="the calibration curve does not fit the labeled rows") as caught:
        result = dm.evaluate(y_true, score, missingness="random", metrics="accuracy")
    assert caught[0].filename == __file__
    assert [warned.category for warned in result.warnings] == ["CalibrationWarning"]


def test_a_curve_that_fits_is_not_warned_of():
    for seed in range(60):  # at one in a thousand, any alarm at all is unlikely
        rng = np.random.default_rng([9, seed])
        score = rng.beta(1.0, 3.0, 600)
        y = (rng.random(600) < score**1.3).astype(float)
        with warnings.catch_warnings():
            warnings.simplefilter("error", dm.CalibrationWarning)
            dm.evaluate(np.where(rng.random(600) < 0.3, np.nan, y), score, missingness="random", metrics="accuracy")
