"""Unknown: makes use of what there is, never silently picks a reason, and says so; and what it refuses."""

import contextlib
import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import rankdata

import darkmetrics as dm
from darkmetrics import CalibrationWarning, EvaluationSet, InputError, MissingnessWarning, UndefinedMetricWarning
from darkmetrics.missing import ByLabel, ByScore, ByScoreAndLabel, Unknown
from darkmetrics.missingness.mixture import (
    MECHANISMS,
    describe_prevalences,
    mechanism_weights,
    mechanisms_differ,
    select_mechanism,
)

# Where nearly all of the highest scores are missing there are hardly any labels.
pytestmark = pytest.mark.filterwarnings("ignore:.*hardly any labels.*:darkmetrics.CalibrationWarning")

NAN = float("nan")
KINDS = ["random", "by score", "by label"]
EVERY = [
    record.name if isinstance(record, dm.metrics.Metric) else record.example.name
    for record in map(dm.metrics.registered, dm.metrics.registered_names())
]


def rows(kind, seed=0, n=2000):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    s = np.clip(rng.beta(1.0, 3.0, n), 1e-3, 1.0 - 1e-3)
    y = (rng.random(n) < s).astype(float)
    gone = {
        "random": np.full(n, 0.3),
        # Of the highest scores nearly all are missing, more than any mixture of the two classes could explain.
        "by score": np.where(s > 0.5, 0.97, 0.15),
        "by label": np.where(y == 1.0, 0.6, 0.15),
    }[kind]
    return np.where(rng.random(n) < gone, NAN, y), s, y


def silent(*args, **kwargs):
    """An evaluation that must not warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dm.evaluate(*args, **kwargs)


def message(*args, **kwargs):
    with pytest.raises(InputError) as error:
        dm.evaluate(*args, **kwargs)
    return str(error.value)


# --------------------------------------------------------------------------------------- with and without reference


@pytest.mark.parametrize("kind", ["random", "by score"])
def test_with_reference_rows_it_is_selection(kind):
    y, s, _ = rows(kind)
    _, more_s, more_y = rows("random", seed=9, n=500)
    found, expected = (
        silent(y, s, missingness=mechanism, metrics="f1")
        for mechanism in (
            dm.missing.Reference(more_y, more_s),
            ByScoreAndLabel(reference=dm.missing.Reference(more_y, more_s)),
        )
    )
    assert found.to_dict() == expected.to_dict()
    data = EvaluationSet(y, s)
    auto_nodes, selection_nodes = (
        model.posterior(data)
        for model in (
            Unknown(dm.missing.Reference(more_y, more_s)),
            ByScoreAndLabel(dm.missing.Reference(more_y, more_s)),
        )
    )
    assert auto_nodes.probability.tolist() == selection_nodes.probability.tolist()
    assert not auto_nodes.mechanisms


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_without_them_it_weighs_three_reasons(kind, seed):
    y, s, _ = rows(kind, seed)
    data = EvaluationSet(y, s)
    posterior = Unknown().posterior(data)
    assert posterior.mechanisms == MECHANISMS
    assert posterior.weight.sum() == pytest.approx(1.0, abs=1e-12)
    assert (posterior.weight >= 0.0).all()
    by_score, by_label, both, by_reference = mechanism_weights(posterior)
    assert both == pytest.approx(0.5, abs=1e-12)
    assert by_reference == 0.0
    assert by_score >= 1 / 6 - 1e-12
    if kind == "by score":
        assert by_label < 0.005  # no mixture of the classes looks like that
    else:
        assert by_label >= 1 / 6 - 1e-12
    if kind == "by label":
        assert by_label > 0.25
    # Each reason has the nodes of its own model, or every eighth of them once it is refuted.
    for k, model in enumerate((ByScore(n_draws=32), ByLabel(n_draws=32))):
        own, expected = select_mechanism(posterior, k), model.posterior(data)
        thin = 8 if k == 1 and by_label < 0.005 else 1
        assert own.probability.tolist() == expected.probability[::thin].tolist()
        np.testing.assert_allclose(own.weight, 1.0 / (32 / thin), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_both_is_the_calibrated_curve_with_an_effect_of_the_label_on_top(kind):
    y, s, _ = rows(kind)
    data = EvaluationSet(y, s)
    posterior = Unknown(n_draws=512).posterior(data)
    both, score = select_mechanism(posterior, 2), select_mechanism(posterior, 0)
    centre = logit(score.on_all_cells.probability).mean(axis=0)
    move = logit(both.on_all_cells.probability) - centre
    flagged = data.cells.decision[data.missing_cells]
    above, below = move[:, flagged].mean(axis=1), move[:, ~flagged].mean(axis=1)
    # Standard deviation 1.5 and correlation 0.7 on either side, and 0.8 along the standardised ranks of all rows.
    rank = rankdata(s)
    rank = ((rank - rank.mean()) / rank.std())[np.argsort(s)][data.missing_cells]
    drift = 0.8 * np.array([rank[flagged].mean(), rank[~flagged].mean()])
    spread = np.sqrt(1.5**2 + drift**2)
    assert np.array([above.mean(), below.mean()]) == pytest.approx([0.0, 0.0], abs=0.15)
    # 512 nodes, and a little from the calibration.
    assert np.array([above.std(), below.std()]) == pytest.approx(spread, rel=0.1)
    together = (0.7 * 1.5**2 + drift.prod()) / spread.prod()
    assert np.corrcoef(above, below)[0, 1] == pytest.approx(together, abs=0.1)


def test_a_set_without_a_labeled_positive_leaves_by_label_out():
    rng = np.random.default_rng(0)
    s = 0.2 * rng.random(200)
    y = np.where(rng.random(200) < 0.3, np.nan, 0.0)
    with pytest.warns(CalibrationWarning, match="only if positives are that rare"):
        posterior = Unknown().posterior(EvaluationSet(y, s))
    assert mechanism_weights(posterior).tolist() == pytest.approx([0.5, 0.0, 0.5, 0.0])


def test_contradicted_reference_rows_keep_half_of_the_weight():
    y, s, _ = rows("by label")
    _, more_s, more_y = rows("random", seed=9, n=500)
    drifted = (1.0 - more_y, more_s)
    data = EvaluationSet(y, s)
    posterior = Unknown(dm.missing.Reference(*drifted)).posterior(data)
    alone, selection = Unknown().posterior(data), ByScoreAndLabel(dm.missing.Reference(*drifted)).posterior(data)
    assert mechanism_weights(posterior) == pytest.approx([*0.5 * mechanism_weights(alone)[:3], 0.5])
    assert select_mechanism(posterior, 3).probability.tolist() == selection.probability.tolist()
    results_contradict = "The results contradict the metrics on the 500 reference rows"
    with (
        pytest.warns(MissingnessWarning, match=results_contradict),
        pytest.warns(MissingnessWarning, match="between score and label has drifted .* or labels are missing by"),
    ):
        result = dm.evaluate(
            y, s, missingness=dm.missing.Unknown(reference=dm.missing.Reference(*drifted)), metrics="f1"
        )
    assert "contradict the reference rows" in result.assumption
    with pytest.warns(MissingnessWarning, match=results_contradict):
        dm.evaluate(
            y, s, missingness=dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(*drifted)), metrics="f1"
        )


@pytest.mark.parametrize("kind", ["by score", "by label"])
def test_reasons_that_differ_are_both_named(kind):
    y, s, _ = rows(kind)
    with pytest.warns(MissingnessWarning) as caught:
        result = dm.evaluate(y, s, metrics=["precision", "recall"])
    (warned,) = [warning for warning in caught if issubclass(warning.category, MissingnessWarning)]
    assert warned.filename == __file__
    text = str(warned.message)
    stated = {"by_score": loosely(y, s, metrics=["precision", "recall"], missingness="by_score")}
    # Stating what the scores refute is warned of.
    with pytest.warns(MissingnessWarning, match="not a mixture") if kind == "by score" else contextlib.nullcontext():
        stated["by_label"] = dm.evaluate(y, s, metrics=["precision", "recall"], missingness="by_label")
    for reason, missingness in [("'by score'", "by_score"), ("'by label'", "by_label")]:
        # The same nodes as if the mechanism had been stated, or an eighth of them: the numbers agree to their sampling.
        alone = stated[missingness]
        share = float(alone.posterior.weight @ (alone.posterior.on_all_cells.probability @ alone.data.missing_counts))
        found = float(text.partition(f"% {reason}")[0].rpartition(" ")[2])
        assert found == pytest.approx(100.0 * share / alone.data.n_missing, abs=1.0)
    for name in ("precision", "recall"):
        answers = text.split(f"{name} ")[1].split(" or ")
        for answer, missingness in zip((answers[0], answers[1][:5]), ("by_score", "by_label"), strict=True):
            distribution = stated[missingness][name]
            assert float(answer) == pytest.approx(distribution.mean(), abs=0.3 * distribution.std() + 0.001)
    assert (
        "missingness='by_score' or 'by_label'" if kind == "by label" else "half of the posterior draws allow for"
    ) in text
    assert "missingness=dm.missing.Reference(labels, scores)" in text
    assert (
        "Missing rows have higher scores" if kind == "by label" else "do not fit 'by label' alone"
    ) in result.assumption


def test_reasons_that_agree_are_not_warned_of():
    for seed in range(3):
        y, s, _ = rows("random", seed)
        result = silent(y, s, metrics="f1")
        assert not mechanisms_differ(result.posterior)
        assert result.assumption.startswith("Not stated why labels are missing: by score or at random (")
        assert "both (50%)" in result.assumption


@pytest.mark.parametrize("missingness", ["random", "by_score", "by_label", "unknown"])
def test_a_stated_mechanism_silences_the_warning(missingness):
    y, s, _ = rows("by label")
    result = silent(y, s, missingness=missingness, metrics="f1")
    expected = {"by_label": ByLabel(), "unknown": Unknown()}.get(missingness, ByScore())
    posterior = expected.posterior(EvaluationSet(y, s))
    assert result.posterior.probability.tolist() == posterior.probability.tolist()
    assert mechanisms_differ(result.posterior) == (missingness == "unknown")


def test_lower_scores_of_missing_rows_are_called_lower():
    y, s, truth = rows("random")
    rng = np.random.default_rng(5)
    y = np.where(rng.random(y.size) < np.where(truth == 1.0, 0.05, 0.5), NAN, truth)
    with pytest.warns(MissingnessWarning):
        result = dm.evaluate(y, s, metrics="f1")
    assert "Missing rows have lower scores" in result.assumption


def test_words_for_the_reasons_have_both_shares():
    y, s, _ = rows("by label")
    data = EvaluationSet(y, s)
    text = describe_prevalences(data, Unknown().posterior(data))
    low, high = (float(part.split("%")[0]) for part in text.split(" and "))
    assert text == f"{low}% 'by score' and {high}% 'by label'"
    assert low < high


def test_a_warning_lists_few_metrics():
    y, s, _ = rows("by label")
    with pytest.warns(MissingnessWarning) as caught:
        dm.evaluate(y, s, metrics=["precision", "recall", "accuracy", "f1", "mcc", "specificity", "jaccard"])
    assert "mcc" in str(caught[0].message)
    assert "specificity" not in str(caught[0].message)


def test_results_are_the_same_in_every_run():
    y, s, _ = rows("random")
    assert silent(y, s, metrics="f1").to_dict() == silent(y, s, metrics="f1").to_dict()


def test_rows_in_another_order_and_merged_sets_change_nothing():
    y, s, _ = rows("random", n=400)
    order = np.random.default_rng(0).permutation(400)
    four = ["precision", "recall", "accuracy", "f1"]
    expected = silent(y, s, metrics=four).to_dict()["metrics"]
    merged = EvaluationSet(y[:150], s[:150]) + EvaluationSet(y[150:], s[150:])
    for found in (silent(y[order], s[order], metrics=four), silent(merged, metrics=four)):
        for name, entry in found.to_dict()["metrics"].items():
            # Sums in another order.
            assert entry["mean"] == pytest.approx(expected[name]["mean"], rel=1e-9)


# ------------------------------------------------------------------------------------------------ nothing crashes


def check(result):
    assert np.isfinite(result.posterior.probability).all()
    assert ((result.posterior.probability >= 0.0) & (result.posterior.probability <= 1.0)).all()
    assert result.posterior.weight.sum() == pytest.approx(1.0)
    str(result)
    result.to_dict()


MODELS = {None: Unknown, "by_score": ByScore, "by_label": ByLabel, "by_score_and_label": ByScoreAndLabel}


REFERENCE_OF_POSITIVES = dm.missing.Reference([1, 1], [0.4, 0.5])


def with_reference(reference, missingness=None):
    """The mechanism that a word stands for, with reference rows."""
    return MODELS[missingness](reference=reference)


def loosely(*args, **kwargs):
    """An evaluation whose warnings are beside the point here."""
    with warnings.catch_warnings():
        for kind in (CalibrationWarning, MissingnessWarning, UndefinedMetricWarning):
            warnings.simplefilter("ignore", kind)
        return dm.evaluate(*args, **kwargs)


def test_every_metric_has_a_law_under_auto():
    y, s, _ = rows("by label", n=150)
    result = loosely(y, s, metrics=EVERY, rng=0)
    check(result)
    for name in EVERY:
        split = result.variance_decomposition(name)
        assert sum(split.values()) == pytest.approx(1.0, abs=1e-9)
        assert min(split.values()) >= 0.0


@pytest.mark.filterwarnings("ignore:Scores range")
@pytest.mark.parametrize(
    ("y", "s"),
    [
        ([0, None], [0.2, 0.7]),
        ([1, 0, None], [0.7, 0.2, 0.5]),
        ([1, 0, None], [0.5, 0.5, 0.5]),
        ([1, 0, None], [0.0, 1.0, 1.0]),
        ([1, 0, None], [-3.0, 1e6, 2.0]),
        ([0] * 50 + [1] * 50 + [None] * 20, [0.0] * 50 + [1.0] * 70),
        ([1, 0] * 20 + [None], np.linspace(0.1, 0.9, 41)),
        ([1, 0] + [None] * 40, np.linspace(0.1, 0.9, 42)),
    ],
)
def test_tiny_and_odd_sets_have_an_answer(y, s):
    # Reference rows on the scale of the set: probabilities where its scores could be some.
    ends = (0.0, 1.0) if min(s) >= 0.0 and max(s) <= 1.0 else (-0.1, 1.2)
    reference = ([1, 0, 1, 0] * 5, np.linspace(*ends, 20))
    for settings in (
        {},
        {"missingness": "by_score"},
        {"missingness": dm.missing.Unknown(reference=dm.missing.Reference(*reference))},
    ):
        check(loosely(y, s, **settings))


@pytest.mark.parametrize("weight", [[0, 1, 1, 0, 1, 0.5], [1, 1, 0, 1, 0, 1], [2, 0, 0, 0, 1, 0]])
def test_rows_of_weight_zero_are_no_trouble(weight):
    y, s = [1, 0, None, 1, None, 0], [0.9, 0.2, 0.7, 0.6, 0.3, 0.4]
    result = loosely(y, s, sample_weight=weight)
    check(result)
    if weight[2] == weight[4] == 0:
        # The labels of missing rows play no part, so that nothing is unknown.
        assert all(distribution.std() == 0.0 for distribution in result.values())


def test_one_row_without_a_label_is_refused_and_with_one_is_fine():
    assert message([None], [0.5]).startswith("y_true: no labeled row")
    assert silent([1], [0.5], metrics="accuracy")["accuracy"].mean() == 1.0


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize("settings", [{}, {"missingness": "by_label"}, {"missingness": "by_score"}])
def test_all_rows_missing_is_refused_with_a_way_out(settings):
    text = message([None] * 10, np.linspace(0.1, 0.9, 10), **settings)
    assert text.startswith("y_true: no labeled row, so there is nothing to learn from (")
    for way in (
        "missingness=dm.missing.Reference(labels, scores)",
        "dm.missing.Fixed(y_score)",
        "dm.missing.Fixed(0.5)",
    ):
        assert way in text


def test_all_rows_missing_with_reference_rows_works():
    _, s, y = rows("random", n=1000)
    for settings in ({}, {"missingness": "by_label"}, {"missingness": "by_score"}):
        mechanism = with_reference(dm.missing.Reference(y[500:], s[500:]), **settings)
        result = loosely([None] * 500, s[:500], missingness=mechanism, metrics="accuracy")
        check(result)
        truth = np.mean((s[:500] >= 0.5) == y[:500])
        distribution = result["accuracy"]
        assert distribution.mean() == pytest.approx(truth, abs=4.0 * distribution.std())


@pytest.mark.parametrize("settings", [{}, {"missingness": "by_label"}, {"missingness": "unknown"}])
def test_positives_alone_are_refused(settings):
    text = message([1] * 12 + [None] * 20, np.linspace(0.1, 0.9, 32), **settings)
    assert text.startswith("y_true: all 12 labels are positive, so nothing is known about negatives (")
    assert "Give missingness=dm.missing.Reference(labels, scores): fully labeled rows with both classes" in text
    assert "ExponentialTilt('by_score', prevalence=0.1)" in text
    assert message([1, None], [0.4, 0.6], **settings).startswith("y_true: the one label is positive, which says")


def test_what_these_messages_advise_works():
    y, s = [1] * 12 + [None] * 20, np.linspace(0.1, 0.9, 32)
    tilted = dm.missing.ExponentialTilt("by_score", prevalence=0.1)
    reference = ([1, 0] * 20, np.linspace(0.1, 0.9, 40))
    ways: list[dict[str, Any]] = [
        {"missingness": "by_score"},
        {"missingness": tilted},
        {"missingness": dm.missing.Fixed(s)},
    ]
    for way in [*ways, {"missingness": dm.missing.Unknown(reference=dm.missing.Reference(*reference))}]:
        check(loosely(y, s, metrics="f1", **way))


def test_positives_alone_in_both_places_are_refused():
    text = message(
        [1] * 12 + [None] * 20, np.linspace(0.1, 0.9, 32), missingness=with_reference(REFERENCE_OF_POSITIVES)
    )
    assert text.startswith("y_true and reference: all 14 labels are positive")
    assert "Pass reference rows with both classes" in text


def test_negatives_alone_are_calibrated_with_a_warning():
    y, s = [0] * 40 + [None] * 20, np.linspace(0.01, 0.3, 60)
    with pytest.warns(
        CalibrationWarning, match="y_true: 0 positive and 40 negative labels to learn from .Unknown."
    ) as caught:
        result = dm.evaluate(y, s, metrics="accuracy")
    assert len(caught) == 1
    check(result)
    assert result.assumption == "Not stated why labels are missing: by score or at random (50%), both (50%)."
    assert message(y, s, missingness="by_label").startswith("y_true: all 40 labels are negative, so nothing is known")


def test_few_labels_are_warned_of_once():
    y, s = [1, 1, 1] + [0] * 30 + [None] * 20, np.linspace(0.9, 0.1, 53)
    with pytest.warns(CalibrationWarning, match="y_true: 3 positive and 30 negative labels") as caught:
        dm.evaluate(y, s, metrics="accuracy", missingness="unknown")
    assert len(caught) == 1
    assert caught[0].filename == __file__


@pytest.mark.parametrize("missingness", [None, "by_score", "by_label"])
def test_constant_scores_have_a_wide_answer(missingness):
    y = [1] * 20 + [0] * 60 + [None] * 40
    result = loosely(y, np.full(120, 0.5), missingness=missingness, metrics=["accuracy", "roc_auc"])
    check(result)
    assert result["roc_auc"].mean() == pytest.approx(0.5, abs=1e-12)
    if missingness == "by_label":
        # Nothing tells the share of positives among the missing rows: most of [0, 1] stays possible.
        low, high = result["accuracy"].interval(0.9)
        assert high - low > 0.5 * 40 / 120


@pytest.mark.parametrize(
    ("reference", "text"),
    [
        (([1, 0, 1], [0.2, 0.4]), "reference: y_true: 3 values, but y_score has 2"),
        (
            ([1, 0, None], [0.2, 0.4, 0.5]),
            "reference: 1 of 3 rows have no label. Reference rows must all be labeled",
        ),
        (([0.2, 0.4, 0.6], [1, 0, 1]), "reference: y_true: "),
        (
            ([1, 0, 1], [0.2, 3.0, 0.6]),
            "reference: scores from 0.2 to 3, but y_score is from 0.1 to 0.9, and only one",
        ),
        (([1, 0, 1], ["a", "b", "c"]), "reference: y_score: "),
    ],
)
@pytest.mark.parametrize("missingness", [None, "by_score", "by_label", "by_score_and_label"])
def test_bad_reference_rows_are_refused(reference, text, missingness):
    y, s = [1, 0] * 10 + [None] * 5, np.linspace(0.1, 0.9, 25)
    assert message(y, s, missingness=with_reference(dm.missing.Reference(*reference), missingness)).startswith(text)


# ---------------------------------------------------------------------------------------- where variance is from


def weak(n=1500, seed=3):
    """Scores that hardly tell the classes apart."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(0.3, 0.5, n)
    y = (rng.random(n) < s).astype(float)
    return np.where(rng.random(n) < 0.4, NAN, y), s


@pytest.mark.parametrize("metric", ["precision", "recall", "accuracy", "f1", "roc_auc"])
@pytest.mark.parametrize("model", ["by_score", "by_label", None, dm.missing.Fixed(0.5)], ids=str)
def test_parts_of_the_variance_are_shares(model, metric):
    y, s, _ = rows("random", n=600)
    split = loosely(y, s, missingness=model, metrics=metric).variance_decomposition(metric)
    assert list(split) == ["labels", "calibration", "prevalence"]
    assert sum(split.values()) == pytest.approx(1.0, abs=1e-9)
    assert min(split.values()) >= 0.0
    if isinstance(model, dm.missing.Fixed):
        assert split["labels"] == 1.0
    if model == "by_score":
        assert split["prevalence"] == 0.0
        assert split["calibration"] > 0.0


@pytest.mark.parametrize("metric", ["brier", "log_loss", "recall", "roc_auc"])
@pytest.mark.parametrize("n", [40, 300, 3000])
@pytest.mark.parametrize("model", ["by_score", None])
def test_rounding_is_no_part_of_the_variance(model, n, metric):
    # All rows have one score, so that no label moves any of these metrics; weights leave a variance of 1e-33 to 1e-18.
    rng = np.random.default_rng(n)
    y = np.where(rng.random(n) < 0.5, NAN, rng.random(n) < 0.4)
    result = loosely(y, np.full(n, 0.5), missingness=model, metrics=metric, sample_weight=rng.random(n))
    assert result[metric].std() < 1e-8
    assert result.variance_decomposition(metric) == {"labels": 1.0, "calibration": 0.0, "prevalence": 0.0}


def test_the_part_of_the_labels_is_the_variance_with_known_parameters():
    y, s, _ = rows("random", n=600)
    result = loosely(y, s, missingness="by_label", metrics=["accuracy"])
    data, posterior = result.data, result.posterior
    # Accuracy is a sum over rows, so that its variance at a node is that of independent labels.
    p = posterior.on_all_cells.probability
    each = (p * (1.0 - p)) @ data.missing_counts / data.n_rows**2
    sign = np.where(data.cells.decision[data.missing_cells], 1.0, -1.0) * data.missing_counts
    between = (p @ sign / data.n_rows).var()
    labels = float(each.mean())
    assert result["accuracy"].var() == pytest.approx(labels + between, rel=1e-9)
    split = result.variance_decomposition("accuracy")
    assert split["labels"] == pytest.approx(labels / (labels + between), rel=1e-9)


def test_weak_scores_leave_the_prevalence_open_by_label():
    y, s = weak()
    by_label = loosely(y, s, missingness="by_label", threshold=0.4).variance_decomposition("recall")
    by_score = loosely(y, s, missingness="by_score", threshold=0.4).variance_decomposition("accuracy")
    assert loosely(y, s, missingness="by_label", threshold=0.4).variance_decomposition("precision")["prevalence"] > 0.8
    assert by_label["labels"] < 1.0
    assert by_score["prevalence"] == 0.0


def test_the_numbers_of_the_split_are_in_the_dict():
    y, s, _ = rows("random", n=300)
    result = loosely(y, s, metrics="f1")
    entry: dict[str, Any] = result.to_dict()["metrics"]["f1"]
    for source, share in result.variance_decomposition("f1").items():
        assert entry[f"variance_from_{source}"] == share


def test_more_reference_rows_leave_less_to_calibration():
    y, s, _ = rows("by label", n=1000)
    shares = []
    for n in (100, 5000):
        _, more_s, more_y = rows("random", seed=8, n=n)
        settings: dict[str, Any] = {
            "missingness": dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(more_y, more_s))
        }
        split = loosely(y, s, metrics="accuracy", **settings).variance_decomposition("accuracy")
        shares.append(1.0 - split["labels"])
    assert shares[1] < shares[0]


# -------------------------------------------------------------------------------------------- the words of the table


def test_the_table_says_how_many_missing_rows_are_positive():
    y, s, truth = rows("by label")
    result = loosely(y, s, missingness="by_label", metrics="f1")
    line = next(text for text in str(result).splitlines() if text.startswith("About "))
    share, low, high, labeled = (
        float(part.split()[-1].strip("(%:")) for part in line.split("%")[:1] + line.split("%")[2:5]
    )
    assert low <= share <= high
    assert low <= 100.0 * truth[np.isnan(y)].mean() <= high
    assert labeled == pytest.approx(100.0 * np.nanmean(y), abs=0.05)


def test_known_probabilities_have_no_such_line():
    y, s, _ = rows("random", n=100)
    assert "About" not in str(dm.evaluate(y, s, missingness=dm.missing.Fixed(0.5), metrics="f1"))


def test_missing_rows_of_no_weight_have_no_such_line():
    result = loosely([1, 0] * 10 + [None], np.linspace(0.1, 0.9, 21), sample_weight=[1] * 20 + [0])
    assert "About" not in str(result)


def test_by_score_in_the_limit_of_many_labels_is_the_truth():
    # What the whole is for: the known curve expit(logit s) is found, and recall follows.
    rng = np.random.default_rng(0)
    s = expit(rng.normal(-1.0, 1.5, 20_000))
    y = (rng.random(20_000) < s).astype(float)
    gone = rng.random(20_000) < expit(logit(s))
    distribution = silent(np.where(gone, NAN, y), s, missingness="by_score", metrics="recall")["recall"]
    truth = float(((s >= 0.5) & (y == 1)).sum() / y.sum())
    assert math.isclose(distribution.mean(), truth, abs_tol=4.0 * distribution.std())


def test_scores_that_rank_the_wrong_way_round_are_described_as_they_are():
    rng = np.random.default_rng(0)
    u = rng.random(4000)
    y = (rng.random(4000) < u).astype(float)
    y_true = np.where(rng.random(4000) < np.where(y == 1, 0.6, 0.1), np.nan, y)
    with pytest.warns(MissingnessWarning):
        result = dm.evaluate(y_true, 1.0 - u, metrics="f1")
    missing = np.isnan(y_true)
    assert (1.0 - u)[missing].mean() < (1.0 - u)[~missing].mean()
    assert "Missing rows have lower scores" in result.assumption


def test_selection_at_the_threshold_is_not_taken_for_an_effect_of_the_label():
    """Alerts are examined first: a step, which no logistic curve in the score can follow."""
    rng = np.random.default_rng(0)
    s = rng.beta(1, 3, 20_000)
    y = (rng.random(20_000) < s).astype(float)
    reference, (s, y) = (y[:10_000], s[:10_000]), (s[10_000:], y[10_000:])
    y_true = np.where(rng.random(10_000) < np.where(s >= 0.5, 0.1, 0.6), np.nan, y)
    result = silent(y_true, s, missingness=dm.missing.Reference(*reference))
    for name, truth in {"precision": y[s >= 0.5].mean(), "recall": (s >= 0.5)[y == 1].mean()}.items():
        low, high = result[name].interval(0.99)
        assert low <= truth <= high


def test_what_an_own_metric_raises_has_no_word_of_other_methods_before_it():
    y, score = np.where(np.arange(40) % 2, np.nan, np.arange(40) % 4 == 0), np.linspace(0.1, 0.9, 40)
    calls = iter(range(10**6))

    def fails_late(y_true, y_score):
        return 1.0 / (next(calls) < 5)

    with pytest.raises(ZeroDivisionError) as raised:
        dm.evaluate(y, score, metrics={"own": fails_late}, missingness="random")
    assert raised.value.__context__ is None
