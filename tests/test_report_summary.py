"""The dictionary behind a report: plain, complete, and equal to what is computed without it."""

import json
import re
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from scipy.optimize import brentq

import darkmetrics as dm
from believed import Believed

Y_TRUE = [1, 0, None, 1, None, 0, 1, 0, None, 1]
Y_SCORE = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1, 0.55, 0.65]
P = [0.7, 0.2, 0.5]
FIXED = dm.missing.Fixed(P)


def small(missingness: Any = FIXED, metrics: Any = ("precision", "recall", "accuracy", "f1"), **said: Any):
    return dm.evaluate(Y_TRUE, Y_SCORE, missingness=missingness, metrics=metrics, **said)


def larger(n=400, seed=3):
    rng = np.random.default_rng(seed)
    y_score = rng.beta(1.2, 2.0, n)
    y = rng.random(n) < y_score
    return np.where(rng.random(n) < np.where(y, 0.5, 0.2), np.nan, y), y_score


@pytest.fixture(scope="module")
def learned():
    y_true, y_score = larger()
    return dm.evaluate(y_true, y_score, missingness="by_label", metrics=["precision", "recall", "roc_auc"])


@pytest.fixture(scope="module")
def summary(learned):
    return dm.report.summarize(learned, targets={"recall": 0.5, "precision": 0.6}, title="A title", source="a.csv")


def test_the_summary_is_plain_json(summary):
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_it_repeats_the_numbers_of_the_evaluation(learned, summary):
    numbers = learned.to_dict()
    assert summary["counts"] == numbers["counts"]
    for name, entry in numbers["metrics"].items():
        assert {key: summary["metrics"][name][key] for key in entry} == entry


def test_the_sentence_says_estimate_interval_and_labeled_only(learned, summary):
    distribution = learned["recall"]
    low, high = distribution.interval(0.9)
    assert summary["metrics"]["recall"]["sentence"] == (
        f"recall is {distribution.mean():.3f}, 90% between {low:.3f} and {high:.3f}; "
        f"dropping unlabeled rows would have said {learned.labeled_only['recall']:.3f}"
    )


@pytest.mark.parametrize(
    ("metric", "target"), [("recall", 0.75), ("precision", 0.75), ("precision", 0.5), ("fpr", 0.4), ("fpr", 0.25)]
)
def test_the_chance_of_a_target_equals_brute_force(metric, target):
    result = small(metrics=[metric])
    found = dm.report.summarize(result, targets={metric: target})["metrics"][metric]["target"]
    missing = np.flatnonzero([label is None for label in Y_TRUE])
    decided = np.array(Y_SCORE) >= 0.5
    chance = 0.0
    for labels in np.ndindex(2, 2, 2):
        y = np.array([np.nan if label is None else label for label in Y_TRUE])
        y[missing] = labels
        tp, fp = np.sum(decided & (y == 1)), np.sum(decided & (y == 0))
        fn, tn = np.sum(~decided & (y == 1)), np.sum(~decided & (y == 0))
        value = {"recall": tp / (tp + fn), "precision": tp / (tp + fp), "fpr": fp / (fp + tn)}[metric]
        met = value <= target + 1e-12 if metric == "fpr" else value >= target - 1e-12
        chance += met * np.prod(np.where(labels, P, 1.0 - np.array(P)))
    assert found["side"] == ("at most" if metric == "fpr" else "at least")
    assert found["probability"] == pytest.approx(chance, abs=1e-12)


def test_the_curves_are_those_of_evaluate_at_each_threshold(learned, summary):
    y_true, y_score = larger()
    curves = summary["curves"]
    assert curves["method"] == "exact"
    for place in (3, 50, 90):
        # A label model that learns may look at the threshold; the curves keep the probabilities of the evaluation.
        data = dm.EvaluationSet(y_true, y_score, threshold=curves["thresholds"][place])
        at = dm.evaluate(data, missingness=Believed(learned.posterior), metrics=["precision", "recall"])
        for name, distribution in at.items():
            low, high = distribution.interval(0.9)
            found = [curves["metrics"][name][key][place] for key in ("mean", "low", "high", "labeled_only")]
            # The bands are promised to 1e-9.
            assert found == pytest.approx([distribution.mean(), low, high, at.labeled_only[name]], abs=1e-9)
        assert curves["flagged"][place] == pytest.approx(np.mean(y_score >= curves["thresholds"][place]))


@pytest.mark.parametrize("share", [0.025, 0.4, 0.975])
def test_what_if_is_near_a_tilted_mechanism(summary, share):
    y_true, y_score = larger()
    what_if = summary["what_if"]
    place = what_if["shares"].index(share)
    tilted = dm.missing.ExponentialTilt("by_label", prevalence=share)
    for name, distribution in dm.evaluate(
        y_true, y_score, missingness=tilted, metrics=["precision", "recall", "roc_auc"]
    ).items():
        band = what_if["metrics"][name]
        low, high = distribution.interval(0.9)
        close = 1e-9 if band["method"] == "exact" else 0.08 * distribution.std()
        assert [band["low"][place], band["high"][place]] == pytest.approx([low, high], abs=close), name
        assert band["mean"][place] == pytest.approx(distribution.mean(), abs=0.5 * close), name
        if name in ("recall", "precision"):
            target = {"recall": 0.5, "precision": 0.6}[name]
            probability = dm.distributions.chance_of_target(distribution, target, "higher")
            assert band["target_probability"][place] == pytest.approx(probability, abs=0.02)


def test_at_the_ends_every_missing_row_is_negative_or_positive(summary):
    y_true, y_score = larger()
    asked = summary["what_if"]
    for place, label in ((0, 0.0), (-1, 1.0)):
        assert asked["shares"][place] == label
        filled = np.where(np.isnan(y_true), label, y_true)
        truth = dm.paper.complete_case(dm.EvaluationSet(filled, y_score), metrics=["precision", "recall"])
        for name in ("precision", "recall"):
            found = [asked["metrics"][name][key][place] for key in ("mean", "low", "high")]
            assert found == pytest.approx([truth[name]] * 3, abs=1e-12)


def test_the_share_found_is_on_the_grid_and_gives_the_headline(learned, summary):
    asked = summary["what_if"]
    place = asked["shares"].index(asked["estimate"]["mean"])
    for name in ("precision", "recall"):
        assert asked["metrics"][name]["mean"][place] == pytest.approx(learned[name].mean(), abs=1e-9)


def test_a_tipping_point_is_where_the_mean_crosses(summary):
    y_true, y_score = larger()

    def excess(share, name, value):
        tilted = dm.missing.ExponentialTilt("by_label", prevalence=share)
        return dm.evaluate(y_true, y_score, missingness=tilted, metrics=name)[name].mean() - value

    points = [p for p in summary["what_if"]["tipping_points"] if p["metric"] == "precision" and p["shares"]]
    assert {p["what"] for p in points} == {"the target", "the labeled-only value"}
    for point in points:
        (found,) = point["shares"]
        true = brentq(excess, max(0.01, found - 0.1), min(0.99, found + 0.1), args=("precision", point["value"]))
        # A cubic between points 0.025 apart; the page shows a tenth of a percent.
        assert found == pytest.approx(true, abs=2e-4)
        assert f"{found:.1%}" in point["sentence"]


def test_a_value_that_is_never_crossed_is_said_to_be_so():
    result = small(metrics="recall")
    points = dm.report.summarize(result, targets={"recall": 0.01})["what_if"]["tipping_points"]
    assert points[0]["shares"] == []
    assert "stays above the target (0.010)" in points[0]["sentence"]


def test_where_a_curve_starts_at_a_value_it_does_not_cross_it():
    # With every missing row negative recall is that of the labeled rows; with any positive one it is another.
    result = small(metrics="recall", missingness=dm.missing.Fixed([0.5, 0.5, 0.5]))
    asked = dm.report.summarize(result)["what_if"]
    assert asked["metrics"]["recall"]["mean"][0] == pytest.approx(result.labeled_only["recall"])
    assert all(share > 0.01 for point in asked["tipping_points"] for share in point["shares"])


def test_shares_that_certain_labels_forbid_are_left_out():
    result = dm.evaluate(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed([1.0, 0.5, 0.0]), metrics="recall")
    shares = dm.report.summarize(result)["what_if"]["shares"]
    # One row is surely positive and one surely negative: from a third to two thirds, the ends excluded.
    assert min(shares) == pytest.approx(0.35)
    assert max(shares) == pytest.approx(0.65)


def test_the_density_holds_the_law(learned, summary):
    drawn = summary["metrics"]["roc_auc"]["shape"]
    x, y = np.array(drawn["x"]), np.array(drawn["y"])
    mass = y * np.gradient(x)
    # What is drawn is smoothed a little and cut where nothing is seen.
    assert mass.sum() == pytest.approx(1.0, abs=0.01)
    assert mass @ x == pytest.approx(learned["roc_auc"].mean(), abs=0.1 * learned["roc_auc"].std())


def test_few_values_are_drawn_with_their_probabilities():
    result = small(metrics="precision")
    drawn = dm.report.summarize(result)["metrics"]["precision"]["shape"]
    values, masses = precision_by_hand()
    assert drawn["kind"] == "bars"
    assert drawn["x"] == pytest.approx(values)
    assert drawn["y"] == pytest.approx(masses)


def precision_by_hand():
    """Values and probabilities of precision on the small set: of the missing rows two are decided positive."""
    found: dict[float, float] = {}
    for a, b in np.ndindex(2, 2):  # the rows with scores 0.8 and 0.55
        value = (3 + a + b) / 6
        found[value] = found.get(value, 0.0) + (0.7 if a else 0.3) * 0.5
    return list(found), list(found.values())


CASES = {
    "nothing missing": lambda: dm.evaluate([1, 0, 1, 0], [0.9, 0.2, 0.7, 0.6]),
    "everything missing": lambda: dm.evaluate([None] * 3, [0.9, 0.2, 0.7], missingness=dm.missing.Fixed(0.4)),
    "one row": lambda: dm.evaluate([None], [0.9], missingness=dm.missing.Fixed(0.4), metrics="accuracy"),
    "decisions given": lambda: dm.evaluate(
        [1, None, 0], [0.9, 0.5, 0.1], y_pred=[1, 0, 0], missingness=dm.missing.Fixed(0.4)
    ),
    "undefined": lambda: dm.evaluate([0, 0, 0], [0.9, 0.2, 0.7], metrics=["recall", "roc_auc"], zero_division=np.nan),
    "certain": lambda: dm.evaluate([1, None, 0], [0.9, 0.5, 0.1], missingness=dm.missing.Fixed([1.0])),
    "ranking only": lambda: dm.evaluate(
        [1, None, 0], [0.9, 0.5, 0.1], missingness=dm.missing.Fixed(0.4), metrics="roc_auc"
    ),
    "huge scores": lambda: dm.evaluate(
        [1, None, 0], [1e150, 0.0, -1e150], missingness=dm.missing.Fixed(0.4), metrics="recall", threshold=0.5
    ),
    "one score": lambda: dm.evaluate(
        [1, None, 0], [0.5, 0.5, 0.5], missingness=dm.missing.Fixed(0.4), metrics="recall"
    ),
    "weights": lambda: small(sample_weight=np.arange(1.0, 11.0)),
    "monte carlo": lambda: small(method="monte_carlo", rng=0),
    "an evaluation set": lambda: dm.evaluate(
        dm.EvaluationSet(Y_TRUE, Y_SCORE, threshold=0.3, missingness=dm.missing.Fixed(P))
    ),
    "all metrics": lambda: small(
        metrics=[
            name if isinstance(record := dm.metrics.registered(name), dm.metrics.Metric) else record.example
            for name in dm.metrics.registered_names()
        ]
    ),
}


@pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_evaluation_has_a_report(case):
    result = CASES[case]()
    made = dm.report.summarize(result)
    json.dumps(made, allow_nan=False)
    page = dm.report.render(made, "html")
    assert len(page.encode()) < 1_500_000
    assert dm.report.render(made, "markdown").startswith("# Classifier metrics")
    for name in result:
        assert name in page


def test_what_does_not_exist_is_explained():
    assert "y_pred" in dm.report.summarize(CASES["decisions given"]())["curves"]["absent"]
    assert "depends on the threshold" in dm.report.summarize(CASES["ranking only"]())["curves"]["absent"]
    assert "No label is missing" in dm.report.summarize(CASES["nothing missing"]())["what_if"]["absent"]
    assert "sure of every missing label" in dm.report.summarize(CASES["certain"]())["what_if"]["absent"]


def test_the_title_does_not_call_a_few_missing_labels_none():
    result = dm.evaluate(
        [1, 0] * 200 + [None], np.linspace(0, 1, 401), missingness=dm.missing.Fixed(0.4), metrics="recall"
    )
    assert "with <1% of the labels missing" in dm.report.summarize(result)["title"]


def test_many_metrics_have_numbers_but_not_all_have_curves():
    formula = dm.metrics.registered("recall")
    result = small(metrics={f"metric {i}": formula for i in range(35)})
    made = dm.report.summarize(result)
    assert len(made["metrics"]) == 35
    assert len(made["curves"]["metrics"]) == len(made["what_if"]["metrics"]) == 30
    assert "5 more are in the table" in dm.report.render(made)


def test_the_code_makes_the_same_report_again(tmp_path):
    result = small(threshold=0.6, rng=7, method=dm.methods.MonteCarlo(n_resamples=500), missingness=dm.missing.Fixed(P))
    first = dm.report.summarize(result, targets={"recall": 0.5}, title='Say "hello"')
    code = first["reproduce"]["code"].replace("report.html", str(tmp_path / "again.json"))
    assert "threshold=0.6" in code
    assert "dm.methods.MonteCarlo(n_resamples=500)" in code
    assert first["reproduce"]["seed"] == "The seed was rng=7."
    exec(code, {"y_true": Y_TRUE, "y_score": Y_SCORE, "probability": P})
    assert json.loads((tmp_path / "again.json").read_text()) == first


def test_the_same_evaluation_gives_the_same_bytes(learned):
    first, second = (dm.report.render(dm.report.summarize(learned)) for _ in range(2))
    assert first == second


def weighted(n=300):
    y_true, y_score = larger(n)
    weight = np.random.default_rng(0).uniform(0.5, 2.0, n)
    return dm.evaluate(
        y_true, y_score, missingness=dm.missing.Fixed(y_score), sample_weight=weight, metrics=["precision", "recall"]
    )


def test_a_report_of_weighted_rows_computes_few_distributions(monkeypatch):
    # There are more than a hundred thresholds and shares.
    result = weighted()
    computed = []
    distribution = dm.methods.Auto.distribution

    def count(self, functional, problem):
        computed.append(functional)
        return distribution(self, functional, problem)

    monkeypatch.setattr(dm.methods.Auto, "distribution", count)
    made = dm.report.summarize(result)
    assert made["curves"]["method"] == "monte_carlo"
    # Each metric at up to 42 shares where few labels vary, at both ends of its sensitivity, under two mechanisms; the
    # area under the ROC curve; four counts. None at the hundred thresholds.
    assert len(computed) <= 46 * len(result) + 5


def test_curves_of_the_evaluation_are_shown():
    result = small(confidence_level=0.95)
    curves = dm.threshold_curves(result, metrics="recall", thresholds=[0.25, 0.35], confidence_levels=[0.5, 0.95])
    made = dm.report.summarize(result, curves=curves)
    assert made["curves"]["thresholds"] == [0.25, 0.35]
    assert made["curves"]["confidence_level"] == 0.95
    assert made["curves"]["metrics"]["recall"]["low"] == curves["recall"].intervals[0.95][0].tolist()
    # The threshold of the evaluation is 0.5, which is not among them.
    assert "the one evaluated" not in dm.report.render(made)
    assert "Threshold 0.5, the one evaluated" in dm.report.render(dm.report.summarize(result))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda result: dm.threshold_curves(result), r"of 50% and 90%, those of the evaluation of 97\.5%.*\[0\.975\]"),
        (lambda result: dm.threshold_curves(small(), confidence_levels=[0.975]), "made from another evaluation"),
        (lambda result: {"recall": 0.5}, "expected what threshold_curves"),
    ],
)
def test_curves_that_do_not_belong_to_the_evaluation_are_refused(make, message):
    result = small(confidence_level=0.975)
    with pytest.raises(dm.InputError, match=message):
        dm.report.summarize(result, curves=make(result))


def test_a_metric_with_the_name_of_a_rate_that_is_none_leaves_the_picture_out():
    result = small(metrics={"recall": "roc_auc", "precision": "precision"})
    made = dm.report.summarize(result)
    assert made["curves"]["roc"] is made["curves"]["precision_recall"] is None
    assert "rates-charts" not in dm.report.render(made)


@pytest.mark.parametrize(("level", "text"), [(0.9, "90%"), (0.975, "97.5%"), (0.995, "99.5%"), (0.999, "99.9%")])
def test_the_confidence_level_is_named_as_it_is(level, text):
    made = dm.report.summarize(small(confidence_level=level))
    assert f", {text} between" in made["metrics"]["recall"]["sentence"]
    assert f">{text} interval<" in dm.report.render(made)
    assert f"| {text} interval |" in dm.report.render(made, "markdown")


def test_the_rates_are_those_of_evaluate_at_each_threshold(learned, summary):
    y_true, y_score = larger()
    method = summary["curves"]["roc"]["method"]
    for key, x, y in (("roc", "fpr", "recall"), ("precision_recall", "recall", "precision")):
        rates = summary["curves"][key]
        for place in (5, 60):
            data = dm.EvaluationSet(y_true, y_score, threshold=rates["thresholds"][place])
            at = dm.evaluate(data, missingness=Believed(learned.posterior), metrics=[x, y], method=method)
            low, high = at[y].interval(0.9)
            found = [rates[name][place] for name in ("x", "mean", "low", "high", "labeled_only_x", "labeled_only")]
            expected = [at[x].mean(), at[y].mean(), low, high, at.labeled_only[x], at.labeled_only[y]]
            # The bands are promised to 1e-9.
            assert found == pytest.approx(expected, abs=1e-9)
    assert summary["curves"]["roc"]["thresholds"][-1] is None


@pytest.mark.parametrize(
    ("targets", "message"),
    [({"recal": 0.5}, "Did you mean 'recall'"), ({"recall": "high"}, "finite number"), ({"recall": np.nan}, "finite")],
)
def test_bad_targets_are_refused(targets, message):
    with pytest.raises(dm.InputError, match=message):
        dm.report.summarize(small(), targets=targets)


def test_only_an_evaluation_can_be_summarized():
    with pytest.raises(dm.InputError, match="expected what evaluate returns"):
        dm.report.summarize(cast("Any", {"recall": 0.5}))


def keys(value, prefix=""):
    """Every key of the dictionary that does not depend on names of metrics or data."""
    free = ("metrics", "source", "left_out", "versions", "reasons", "absent_parts", "tp", "fp", "fn", "tn")
    for key, inner in value.items():
        yield f"{prefix}{key}"
        if isinstance(inner, dict) and key not in free and not prefix.startswith("diagnosis"):
            yield from keys(inner, f"{prefix}{key}.")


def test_the_reference_page_documents_every_key(summary):
    page = (Path(__file__).parents[1] / "docs" / "reference" / "report.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"^\| `([a-z_.*]+)`", page, flags=re.MULTILINE))
    top = set(keys({key: value for key, value in summary.items() if key != "diagnosis"})) | {"diagnosis"}
    of_metric = {f"metrics.*.{key}" for key in ("sentence", "shape", "target")}
    of_curves = {f"curves.metrics.*.{key}" for key in summary["curves"]["metrics"]["recall"]}
    of_shares = {f"what_if.metrics.*.{key}" for key in summary["what_if"]["metrics"]["recall"]}
    of_points = {f"what_if.tipping_points.*.{key}" for key in summary["what_if"]["tipping_points"][0]}
    assert documented == top | of_metric | of_curves | of_shares | of_points
