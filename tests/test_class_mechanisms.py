"""Mechanisms of several classes: intervals contain the truth where labels are missing as stated; what is refused."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics import InputError

CLASSES = ("a", "b", "c", "d")
N = 3000


@pytest.fixture(scope="module")
def rows():
    """Overconfident scores of four classes, with the labels of all rows."""
    rng = np.random.default_rng(11)
    log_score = 1.7 * rng.normal(size=(N, 4)) + np.array([0.8, 0.3, -0.3, -0.8])
    q = np.exp(log_score)
    q /= q.sum(axis=1, keepdims=True)
    y = (q.cumsum(axis=1) > rng.random((N, 1))).argmax(axis=1)
    p = np.exp(1.4 * log_score + np.array([0.3, -0.2, 0.1, 0.0]))
    return p / p.sum(axis=1, keepdims=True), y


METRICS = ("accuracy", "balanced_accuracy", "recall[b]", "log_loss")


def check_covers(p, y, missing, missingness, *, by_score_fails=()):
    """Check that 98% intervals contain the truth, and that those of "by score" miss it for some metrics."""
    names = np.array(CLASSES, dtype=object)
    label = np.where(missing, None, names[y])
    truth = dm.evaluate(names[y], p, metrics=METRICS)
    for stated, fails in ((missingness, ()), ("by_score", by_score_fails)):
        if stated == "by_score" and not fails:
            continue
        result = dm.evaluate(label, p, missingness=stated, metrics=METRICS)
        for name in fails or METRICS:
            low, high = result[name].interval(0.98)
            assert (low <= truth[name].mean() <= high) == (not fails), (stated, name, low, high, truth[name].mean())
    return dm.evaluate(label, p, missingness=missingness, metrics="accuracy")


def test_by_score_learns_the_curve_of_each_class(rows):
    p, y = rows
    missing = np.random.default_rng(0).random(N) < np.where(p.max(axis=1) < 0.7, 0.8, 0.3)
    result = check_covers(p, y, missing, "by_score")
    low, high = result["accuracy"].interval()
    assert high - low < 0.05
    assert result.assumption.startswith("Assumed: labels are missing at random or by score.")


def test_nothing_stated_is_wider_and_warns(rows):
    p, y = rows
    missing = np.random.default_rng(1).random(N) < np.array([0.2, 0.8, 0.2, 0.2])[y]
    with pytest.warns(dm.MissingnessWarning, match="The estimates depend on it: .* by score or .* by label"):
        unstated = check_covers(p, y, missing, None)
    stated = check_covers(p, y, missing, "by_label", by_score_fails=("recall[b]",))
    assert np.ptp(unstated["accuracy"].interval()) > 2.0 * np.ptp(stated["accuracy"].interval())
    assert unstated.assumption.startswith("Not stated why labels are missing: by score or at random (")
    by_mechanism = unstated.target_by_mechanism("accuracy", 0.5)
    assert set(by_mechanism) <= {"by score", "by label", "both"}


@pytest.mark.parametrize("timed", [False, True])
def test_labels_of_one_class_that_arrive_late(rows, timed):
    p, y = rows
    rng = np.random.default_rng(2)
    age = rng.integers(0, 60, N)
    delay = np.ceil(rng.exponential(np.array([5.0, 25.0, 8.0, 8.0])[y]))
    missing = delay > age
    delayed = dm.missing.Delayed(age=age, delay=np.where(missing, np.nan, delay) if timed else None)
    result = check_covers(p, y, missing, delayed, by_score_fails=("recall[b]",))
    assert result.stated == "delayed"


def test_propensity_tells_what_scores_do_not(rows):
    p, y = rows
    rng = np.random.default_rng(3)
    right = p.argmax(axis=1) == y
    propensity = np.where(rng.normal(size=N) + right > 0.8, 1.0, 0.15)
    missing = rng.random(N) > propensity
    check_covers(p, y, missing, dm.missing.Propensity(propensity), by_score_fails=("accuracy",))


@pytest.mark.parametrize("kind", ["pair", "table"])
def test_reference_rows_need_no_mechanism(rows, kind):
    p, y = rows
    rng, n = np.random.default_rng(4), 1000
    chance = 1.0 / (1.0 + np.exp(1.0 - 2.0 * (p.max(axis=1) > 0.6) + 2.5 * (y == 1)))
    missing = rng.random(N) > chance
    names = np.array(CLASSES, dtype=object)
    truth = dm.evaluate(names[y[n:]], p[n:], metrics=METRICS)
    if kind == "pair":
        reference = dm.missing.Reference(names[y[:n]], p[:n])
    else:
        table = pd.DataFrame(p[:n], columns=CLASSES).assign(label=names[y[:n]])
        reference = dm.missing.Reference("label", list(CLASSES), data=table)
    label = np.where(missing, None, names[y])[n:]
    result = dm.evaluate(label, p[n:], missingness=reference, metrics=METRICS)
    for name in METRICS:
        low, high = result[name].interval(0.98)
        assert low <= truth[name].mean() <= high, (name, low, high, truth[name].mean())


def test_diagnosis_finds_the_class_that_is_missing_more_often(rows):
    p, y = rows
    missing = np.random.default_rng(1).random(N) < np.array([0.2, 0.8, 0.2, 0.2])[y]
    label = np.where(missing, None, np.array(CLASSES, dtype=object)[y])
    diagnosis = dm.evaluate(label, p, missingness="by_label", metrics="accuracy").diagnosis
    fractions = [fraction.mean for fraction in diagnosis.fractions]
    assert int(np.argmax(fractions)) == 1
    for k, estimate in enumerate(diagnosis.fractions):
        assert abs(estimate.mean - missing[y == k].mean()) < 0.08
    assert str(diagnosis).startswith("Missing most often: b, ")
    assert diagnosis.to_dict()["classes"][1]["labeled"] == int((~missing & (y == 1)).sum())


def test_every_label_present_needs_no_mechanism(rows):
    p, y = rows
    for missingness in (None, "by_label", dm.missing.Delayed(age=np.arange(N))):
        result = dm.evaluate(y, p, missingness=missingness, metrics="accuracy")
        assert result["accuracy"].interval() == (np.mean(p.argmax(axis=1) == y),) * 2


def refused_calls(rows):
    p, y = rows
    label = np.where(np.arange(N) % 3 == 0, np.nan, y)
    result = dm.evaluate(label, p, missingness="by_score", metrics="accuracy")
    other = dm.evaluate(label[:2000], p[:2000], missingness="by_score", metrics="accuracy")
    table = pd.DataFrame(p, columns=list(CLASSES)).assign(y=label, g=0)
    return {
        "sensitivity": result.sensitivity,
        "population": lambda: result.population,
        "tipping_point": lambda: result.tipping_point("accuracy", 0.5),
        "oracle_bounds": lambda: result.oracle_bounds("accuracy"),
        "compare_evaluations": lambda: dm.compare_evaluations(result, other),
        "threshold_curves": lambda: dm.threshold_curves(result),
        "verify": lambda: dm.verify(result, [1.0], [0.5]),
        "y_score": lambda: dm.evaluate_by("y", list(CLASSES), data=table, by="g"),
        "scores['m']": lambda: dm.compare(label, {"m": p, "n": p}),
    }


def test_what_is_for_two_classes_is_refused_with_one_sentence(rows):
    for argument, call in refused_calls(rows).items():
        with pytest.raises(InputError, match=r"for two classes so far|several classes are for dm\.evaluate") as error:
            call()
        assert str(error.value).startswith(f"{argument}: ")


def test_bad_ages_propensities_and_references_are_refused(rows):
    p, y = rows
    label = np.where(np.arange(N) % 3 == 0, np.nan, y)
    half = np.where(np.arange(N) % 2 == 0, np.nan, y)
    cases: dict[str, Any] = {
        "age: missing": dm.missing.Delayed(),
        "maturity: not with several classes": dm.missing.Delayed(age=np.ones(N), maturity=3),
        "scored_at: not with several classes": dm.missing.Delayed(scored_at="day", as_of="2026-01-01"),
        "reviewed: 'by_score' is for two classes": dm.missing.Delayed(age=np.ones(N), reviewed="by_score"),
        "propensity: ": dm.missing.Propensity(np.full(N, 2.0)),
        "reference: 1,500 rows have no label": dm.missing.Reference(half, p),
        "reference: not scores of 4 classes": dm.missing.Reference(y, p[:, :3]),
    }
    for words, missingness in cases.items():
        with pytest.raises(InputError, match=f"^{words}"):
            dm.evaluate(label, p, missingness=missingness, metrics="accuracy")
