"""What happens to the first words that a new user types."""

import itertools
import math
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp
from sklearn.metrics import average_precision_score

import darkmetrics as dm
from darkmetrics.curves.choosing import TargetThreshold

Y, S, P = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1], [0.7, 0.2]
TABLE = pd.DataFrame({"fraud": Y, "p": S})


def evaluated(**settings):
    return dm.evaluate(Y, S, **({"missingness": dm.missing.Fixed(P)} | settings))


def labelings():
    """Every labeling of the two missing rows, with its probability."""
    for drawn in itertools.product([0, 1], repeat=2):
        left = iter(drawn)
        mass = math.prod(p if y else 1.0 - p for y, p in zip(drawn, P, strict=True))
        yield np.array([next(left) if y is None else y for y in Y]), mass


def many(n=400, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < score), score


# What works as typed: the call, and the one that it is the same as.
SAME = {
    "method='pemi'": (lambda: evaluated(method="pemi", rng=1), lambda: evaluated(method="monte_carlo", rng=1)),
    "method='PEMI'": (lambda: evaluated(method="PEMI", rng=1), lambda: evaluated(method="monte_carlo", rng=1)),
    "method='pemi_gauss'": (lambda: evaluated(method="pemi_gauss"), lambda: evaluated(method="gaussian")),
    "method='PEMI-Gauss'": (lambda: evaluated(method="PEMI-Gauss"), lambda: evaluated(method="gaussian")),
    "missingness=ByScore('scaling_binning')": (
        lambda: dm.evaluate(*many(), missingness=dm.missing.ByScore("scaling_binning")),
        lambda: dm.evaluate(*many(), missingness=dm.missing.ByScore(dm.calibrators.ScalingBinning())),
    ),
    "missingness=ByScore('isotonic')": (
        lambda: dm.evaluate(*many(), missingness=dm.missing.ByScore("isotonic")),
        lambda: dm.evaluate(*many(), missingness=dm.missing.ByScore(dm.calibrators.Isotonic())),
    ),
    "missingness='MAR'": (
        lambda: dm.evaluate(*many(), missingness="MAR"),
        lambda: dm.evaluate(*many(), missingness="by_score"),
    ),
    "missingness='MNAR'": (
        lambda: dm.evaluate(*many(), missingness="MNAR"),
        lambda: dm.evaluate(*many(), missingness="by_label"),
    ),
    "missingness='mcar'": (
        lambda: dm.evaluate(*many(), missingness="mcar"),
        lambda: dm.evaluate(*many(), missingness="random"),
    ),
    "evaluate(data=df, y_true=, y_score=)": (
        lambda: dm.evaluate(data=TABLE, y_true="fraud", y_score="p", missingness=dm.missing.Fixed(0.5), threshold=0.4),
        lambda: dm.evaluate(Y, S, missingness=dm.missing.Fixed(0.5), threshold=0.4),
    ),
}


@pytest.mark.parametrize("typed", SAME)
def test_it_is_the_same_as(typed):
    found, expected = (make() for make in SAME[typed])
    assert found.to_dict() == expected.to_dict()
    assert found.stated == expected.stated


def test_other_names_of_metrics_are_those_metrics_under_the_name_that_was_typed():
    others = {"pr_auc": "average_precision", "aucpr": "average_precision", "auc": "roc_auc", "sensitivity": "recall"}
    for typed, name in others.items():
        assert evaluated(metrics=typed)[typed].to_dict() == evaluated(metrics=name)[name].to_dict()
    mean = sum(mass * average_precision_score(y, S) for y, mass in labelings())
    assert evaluated(metrics="pr_auc")["pr_auc"].mean() == pytest.approx(mean, abs=1e-12)


@pytest.mark.parametrize(("typed", "meant"), [("KS", "ks"), ("TP", "tp"), ("AUC", "auc"), ("ROC-AUC", "roc_auc")])
def test_a_name_in_other_letters_is_the_metric_that_is_meant(typed, meant):
    (found,) = evaluated(metrics=typed).values()
    assert found.to_dict() == evaluated(metrics=meant)[meant].to_dict()


def test_ks_is_the_statistic_of_scipy_over_all_labelings():
    values = [(ks_2samp(np.array(S)[y == 1], np.array(S)[y == 0]).statistic, mass) for y, mass in labelings()]
    distribution = evaluated(metrics="ks")["ks"]
    assert distribution.mean() == pytest.approx(sum(value * mass for value, mass in values), abs=1e-12)
    assert distribution.support() == pytest.approx((min(v for v, _ in values), max(v for v, _ in values)), abs=1e-12)
    tied = [0.5, 0.5, 0.5, 0.8, 0.8, 0.2]
    complete = dm.evaluate([1, 0, 1, 1, 0, 0], tied, metrics="ks")["ks"].mean()
    assert complete == pytest.approx(ks_2samp([0.5, 0.5, 0.8], [0.5, 0.8, 0.2]).statistic, abs=1e-12)


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("tp", lambda y, d: (y & d).sum()),
        ("fp", lambda y, d: (~y & d).sum()),
        ("fn", lambda y, d: (y & ~d).sum()),
        ("tn", lambda y, d: (~y & ~d).sum()),
    ],
)
def test_counts_are_counts(name, count):
    decided = np.array(S) >= 0.5
    masses: dict[float, float] = {}
    for y, mass in labelings():
        value = float(count(y == 1, decided))
        masses[value] = masses.get(value, 0.0) + mass
    distribution = evaluated(metrics=name)[name]
    for value, mass in masses.items():
        assert distribution.cdf(value) - distribution.cdf(value - 0.5) == pytest.approx(mass, abs=1e-12)


def test_all_metrics_are_those_that_need_no_parameter_and_take_any_score():
    raw = [10.0 * score for score in S]
    found = dm.evaluate(Y, raw, threshold=5.0, missingness=dm.missing.Fixed(P), metrics="all", zero_division=0)
    left_out = {"fbeta", "precision_at_k", "recall_at_k", "lift_at_k", "brier", "log_loss"}
    names = [name for name in dm.metrics.registered_names() if name not in left_out]
    assert [name.partition("(")[0] for name in found] == names


def test_a_metric_that_the_user_registers_goes_before_one_that_is_understood():
    own = dm.metrics.ConfusionMetric(name="tp", formula=lambda tp, fp, fn, tn: tp + 0.0 * fp)
    before = dm.list_metrics()
    dm.register_metric(own)
    try:
        assert dm.metrics.metrics_from("tp") == [own]
    finally:
        dm.metrics.metric._REGISTRY.pop("tp")
    assert dm.list_metrics() == before


# What is answered with a sentence that says what to type.
ANSWERED = {
    "evaluate(df)": (lambda: dm.evaluate(TABLE), r'name its columns, .*Write dm\.evaluate\("fraud", "p", data=TABLE\)'),
    "evaluate(df, 'fraud')": (lambda: dm.evaluate(TABLE, "fraud"), r'dm\.evaluate\("fraud", "p", data=TABLE\)'),
    "evaluate('fraud', data=df)": (lambda: dm.evaluate("fraud", data=TABLE), "^y_score: missing"),
    "metrics='kss'": (lambda: evaluated(metrics="kss"), "unknown metric 'kss'"),
    "method='pemi_gaus'": (lambda: evaluated(method="pemi_gaus"), "unknown method 'pemi_gaus'"),
    "threshold_for()": (lambda: dm.threshold_curves(evaluated()).threshold_for(), r"such as \{'recall': 0\.6\}"),
    "threshold_for(recall=2)": (
        lambda: dm.threshold_curves(evaluated()).threshold_for(recall=2),
        r"2 for 'recall', which lies between 0 and 1\. Give 0\.02 for 2%\.",
    ),
    "threshold_for(f1=0.99)": (
        lambda: dm.threshold_curves(evaluated()).threshold_for(f1=0.99),
        r"at no threshold is it 90% sure: f1 at least 0\.99 \(best: 0\.750 at 0\.4\)",
    ),
    "threshold_for(roc_auc=0.6)": (
        lambda: dm.threshold_curves(evaluated()).threshold_for(roc_auc=0.6),
        "does not depend on the threshold",
    ),
    "threshold_for(recall=0.6, probability=90)": (
        lambda: dm.threshold_curves(evaluated()).threshold_for(recall=0.6, probability=90),
        r"probability: 90\. It must lie strictly between 0 and 1",
    ),
    "best_threshold()": (lambda: dm.threshold_curves(evaluated()).best_threshold(), "metric: missing. Pass a metric"),
}


@pytest.mark.parametrize("typed", ANSWERED)
def test_it_is_answered(typed):
    call, answer = ANSWERED[typed]
    with pytest.raises(dm.InputError, match=answer):
        call()


# Thresholds that meet a target, against the laws at every threshold ------------------------------------------------


def chances(result, thresholds, metric, target):
    data = result.data
    distributions = [
        dm.evaluate(Y, S, missingness=dm.missing.Fixed(P), threshold=t, metrics=metric, zero_division=0)
        for t in thresholds
    ]
    assert data.n_rows == len(Y)
    return np.array([distribution.target_probability(metric, target) for distribution in distributions])


@pytest.mark.parametrize(("metric", "target"), [("recall", 0.6), ("precision", 0.7), ("fpr", 0.2)])
@pytest.mark.parametrize("probability", [0.55, 0.9])
def test_the_threshold_for_a_target_is_the_last_or_first_that_meets_it(metric, target, probability):
    result = evaluated(zero_division=0)
    curves = dm.threshold_curves(result)
    met = chances(result, curves.thresholds, metric, target) >= probability
    places = np.flatnonzero(met)
    expected = curves.thresholds[places[-1] if met[0] else places[0]]
    found = curves.threshold_for({metric: target}, probability=probability)
    assert isinstance(found, TargetThreshold)
    assert float(found) == expected
    assert found.flagged == np.mean(np.array(S) >= expected)
    assert f"flagged from a score of {expected:g} on" in str(found)
    assert f"flagged from a score of {expected:g} on" in found._repr_html_()


def test_the_best_threshold_under_a_constraint_is_the_best_of_those_that_meet_it():
    result = evaluated(zero_division=0)
    curves = dm.threshold_curves(result)
    met = chances(result, curves.thresholds, "recall", 0.6) >= 0.9
    means = np.array(curves["precision"].mean)
    best = curves.best_threshold("precision", constraint={"recall": 0.6})
    assert best.value == pytest.approx(means[met].max())
    assert met[list(curves.thresholds).index(best.threshold)]
    # Without one the best is elsewhere, so that the constraint was felt; the metric may be left out beside one.
    assert curves.best_threshold("precision").value > best.value
    assert curves.best_threshold(constraint={"recall": 0.6}) == best


def test_the_current_threshold_is_not_the_answer_where_it_breaks_the_constraint():
    result = evaluated(threshold=0.85, zero_division=0)
    best = dm.threshold_curves(result).best_threshold("precision", constraint={"recall": 0.9})
    assert best.threshold < 0.85
    assert best.current_value > best.value


# Words and numbers of a result -------------------------------------------------------------------------------------


def test_a_sentence_says_the_number_the_interval_and_what_is_assumed():
    result = evaluated()
    low, high = result["recall"].interval(0.9)
    said = result.sentence("recall")
    assert said.startswith(f"recall is {result['recall'].mean():.3f}, 90% between {low:.3f} and {high:.3f}; dropping")
    assert said.endswith("Assumed: missing labels are independent, with the probabilities given.")
    assert "\n" not in said
    with pytest.raises(KeyError, match="Did you mean 'recall'"):
        result.sentence("recal")


def test_a_flat_dictionary_has_finite_numbers_by_names_that_any_server_takes():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dm.evaluate(
            [0, 0, None], [0.1, 0.2, 0.3], metrics=["recall", "fbeta(2)", "roc_auc"], missingness=dm.missing.Fixed(0.0)
        )
    flat = result.to_dict(flat=True)
    assert all(type(value) is float and math.isfinite(value) for value in flat.values())
    assert all(name.replace("_", "").isalnum() for name in flat)
    assert "roc_auc" not in flat  # one class alone
    assert (flat["rows"], flat["missing"]) == (3.0, 1.0)
    full = evaluated().to_dict()["metrics"]["recall"]
    flat = evaluated().to_dict(flat=True)
    assert [flat[f"recall{end}"] for end in ("", "_low", "_high", "_labeled_only")] == [
        full[key] for key in ("mean", "low", "high", "labeled_only")
    ]


def test_duckdb_without_pyarrow_says_what_to_install():
    pytest.importorskip("duckdb")
    code = """
import sys
sys.modules["pyarrow"] = None
import duckdb
import darkmetrics as dm
relation = duckdb.sql("SELECT i % 2 AS y, i / 10.0 AS p FROM range(10) t(i)")
try:
    dm.evaluate("y", "p", data=relation)
except dm.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("pyarrow, which is not installed: pip install 'darkmetrics[duckdb]'")


# Long work and what is heard of it ---------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_may_be_a_function(n_jobs):
    y, score = many(200)
    heard: list[tuple[int, int]] = []
    complete = np.nan_to_num(y, nan=0.0)
    settings: dict[str, Any] = {"mask": 0.3, "n_repeats": 3, "metrics": "recall", "rng": 0, "n_jobs": n_jobs}
    dm.backtest(complete, score, progress=lambda done, total: heard.append((done, total)), **settings)
    assert heard == [(1, 3), (2, 3), (3, 3)]


def test_progress_that_is_neither_is_refused():
    odd: dict[str, Any] = {"progress": "yes"}
    with pytest.raises(dm.InputError, match="progress: expected True, False, None or a function"):
        dm.backtest([1, 0] * 20, [0.9, 0.2] * 20, mask=0.3, **odd)


def test_the_logger_is_silent_until_it_is_asked(caplog, capfd):
    import logging

    evaluated()
    assert capfd.readouterr().err == ""
    with caplog.at_level(logging.INFO, logger="darkmetrics"):
        evaluated(metrics="recall")
    (record,) = caplog.records
    assert record.name == "darkmetrics"
    assert "evaluated recall of 8 rows, 2 without a label" in record.getMessage()
    assert any(isinstance(handler, logging.NullHandler) for handler in logging.getLogger("darkmetrics").handlers)


@pytest.mark.parametrize("labels", [[1, 0, 0, 1], np.array([0.0, 1.0, 1.0]), [True, False, True]])
def test_labels_are_no_value_that_a_metric_took(labels):
    distribution = evaluated()["recall"]
    with pytest.raises(dm.InputError, match=r"^t: [34] values, each of them 0 or 1, look like labels\. .* dm\.verify"):
        distribution.pit(labels)
    # Values of the metric are taken, also its ends, and so is every value of a metric that is never between 0 and 1.
    assert np.all(np.isfinite(distribution.pit([0.0, 0.5, 1.0, 1.0])))
    one = dm.evaluate(
        [1, None], [0.9, 0.2], missingness=dm.missing.Fixed([0.4]), metrics="specificity", zero_division=0.0
    )["specificity"]
    np.testing.assert_allclose(one.pit([0.0, 1.0, 1.0]), [0.2, 0.7, 0.7], rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    "call",
    [
        lambda: dm.evaluate([10**300, 0, 1], [0.1, 0.2, 0.3]),
        lambda: evaluated(pos_label=10**300),
        lambda: evaluated(confidence_level=10**300),
        lambda: evaluated(metrics=f"fbeta({10**300})"),
    ],
)
def test_a_number_of_300_digits_does_not_fill_the_message(call):
    with pytest.raises(dm.InputError, match=r"100000…\(301 digits\)") as error:
        call()
    assert len(str(error.value)) < 250


def test_names_of_any_length_and_shape_stay_in_their_cell():
    """Control: with plain names the same tables have just as many lines."""
    y, s = many()

    def tables(first, last):
        scores = {first: s, last: s**2, "third": s**3}
        found = dm.compare(y, scores, metrics=["recall", "precision"], missingness="by_score", rng=1)
        halves = [dm.evaluate(y[part], s[part], missingness="by_score") for part in (slice(200), slice(200, None))]
        yield from (found, found.rank_probabilities("recall"), dm.compare_evaluations(*halves, names=(first, last)))
        yield from (found.sentence("recall", last, first), repr(found), found.probability_best("recall"))

    for odd, plain in zip(tables("two\nlines\t", "long" * 300), tables("a", "b"), strict=True):
        assert len(str(odd).splitlines()) == len(str(plain).splitlines())
        assert max(map(len, str(odd).splitlines())) <= max(map(len, str(plain).splitlines())) + 3 * 40
        assert "two\\nlines\\t" in str(odd)
