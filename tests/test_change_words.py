"""What a change says of itself: what was assumed of the two, what was warned of, and how sure that leaves it."""

import json
import warnings

import numpy as np
import pytest

import darkmetrics as dm


def month(seed, n=400, **settings):
    """Rows of which three in ten have no label."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dm.evaluate(y, p, metrics=["accuracy", "recall"], **{"missingness": "random", **settings})


def refuted(seed=3, n=3000):
    """Rows said to lack their label by label, which the scores of those that do refute: they are all near one half."""
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = np.where(np.abs(p - 0.5) < 0.1, np.nan, rng.random(n) < p)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return dm.evaluate(y, p, metrics=["accuracy", "recall"], missingness="by_label")


def test_a_change_says_once_what_was_assumed_of_both():
    found = dm.compare_evaluations(month(1), month(2))
    for said in (str(found), found._repr_html_()):
        assert said.count("Assumed: labels are missing at random or by score.") == 1
    assert found.to_dict()["assumption"] == {"after": found.after.assumption, "before": found.before.assumption}
    assert "not the same in both" not in str(found)


def test_different_reasons_of_which_one_is_refuted_are_said():
    found = dm.compare_evaluations(refuted(), month(2), names=("June", "May"))
    text = str(found)
    assert "June: Assumed: labels are missing by label, whatever the score." in text
    assert "May: Assumed: labels are missing at random or by score." in text
    assert "Why labels are missing is not the same in both: by label (June), by score or at random (May)." in text
    assert "Warning for June: The rows contradict missingness='by_label': scores" in text
    said = found.to_dict()["warnings"]
    assert [one["category"] for one in said["after"]] == ["AssumptionWarning"]
    assert said["before"] == []
    json.dumps(found.to_dict(), allow_nan=False)


def test_random_and_by_score_are_no_different_reasons():
    assert "not the same in both" not in str(dm.compare_evaluations(month(1), month(2, missingness="by_score")))


def test_a_warning_about_both_is_said_once():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (
            dm.evaluate([0, 0, 0, 0], p, metrics="recall") for p in ([0.9, 0.2, 0.7, 0.1], [0.8, 0.3, 0.6, 0.2])
        )
    notes = dm.compare_evaluations(one, other)._notes()
    assert [note for note in notes if note.startswith("Warning for")] == [
        "Warning for both: recall is undefined (0/0) always; it counts as 0 then."
    ]


def test_the_page_of_a_change_says_a_warning_once():
    found = dm.compare_evaluations(refuted(), month(2), names=("June", "May"))
    assert "Warning for" not in found.report().html


def test_a_0_by_0_that_is_only_likely_is_said_with_its_chance():
    # Positive or not, the last row alone decides whether there is a positive at all.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = dm.evaluate([0, 0, None], [0.9, 0.2, 0.7], missingness=dm.missing.Fixed([0.5]), metrics="recall")
        left_out = dm.evaluate(
            [0, 0, None], [0.9, 0.2, 0.7], missingness=dm.missing.Fixed([0.5]), metrics="recall", zero_division=np.nan
        )
    other = dm.evaluate([1, 0, 1], [0.9, 0.2, 0.3], metrics="recall")
    assert (
        dm.compare_evaluations(one, other)
        .sentence("recall")
        .endswith("It may be undefined (0/0) in after (50%); that is counted as 0.")
    )
    assert dm.compare_evaluations(left_out, other).sentence("recall").endswith("in after (50%); that is left out.")


def test_undefined_in_both_is_not_said_to_be_in_one():
    both = [
        dm.evaluate([0] * 4, p, metrics="roc_auc", zero_division=np.nan)
        for p in ([0.9, 0.2, 0.7, 0.1], [0.8, 0.3, 0.6, 0.2])
    ]
    found = dm.compare_evaluations(*both)
    assert found.sentence("roc_auc") == "roc_auc is undefined (0/0) in both, and so is its change."


def test_customers_in_both_are_said_to_be_taken_as_unrelated():
    both = [month(seed, n=80, clusters=np.arange(80) // 4) for seed in (1, 2)]
    said = "A cluster of rows (clusters=) that is in both, such as a customer, is taken as two"
    assert said in str(dm.compare_evaluations(*both))
    assert said not in str(dm.compare_evaluations(month(1), month(2)))


def test_one_name_for_both_is_refused():
    with pytest.raises(dm.InputError, match="names: 'x' twice"):
        dm.compare_evaluations(month(1), month(2), names=("x", "x"))
