"""Warnings of `evaluate` that the result of `evaluate_by` on the same rows has as well."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm

NOW = pd.Timestamp("2026-04-20")
LATE: dict[str, Any] = {"missingness": dm.missing.Delayed(scored_at="scored", labeled_at="labeled", as_of="2026-04-20")}
AGES: dict[str, Any] = {"missingness": dm.missing.Delayed(scored_at="scored", as_of="2026-04-20")}
EARLIER: dict[str, Any] = {"missingness": dm.missing.Delayed(scored_at="scored", as_of="2026-03-20")}


def simulate(seed: int, n: int = 1600, prevalence: float = 1.0) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return rng, score, rng.random(n) < prevalence * score


def late_table(rng: Any, score: Any, y: Any, age: Any, delay: Any) -> pd.DataFrame:
    known = (delay <= age) & np.isfinite(delay)
    scored = NOW - pd.to_timedelta(age, unit="D")
    labeled = scored + pd.to_timedelta(np.where(known, delay, np.nan), unit="D")
    return pd.DataFrame({"y": np.where(known, y, np.nan), "p": score, "scored": scored, "labeled": labeled})


def slower_now() -> pd.DataFrame:
    rng, score, y = simulate(1)
    age = rng.integers(0, 360, score.size)
    delay = np.floor(rng.exponential(np.where(y, 40.0, 10.0)) * np.where(y & (age < 180), 3.0, 1.0))
    return late_table(rng, score, y, age, delay)


def faster_at_high_scores() -> pd.DataFrame:
    rng, score, y = simulate(2)
    age = rng.integers(0, 360, score.size)
    delay = np.floor(rng.exponential(np.where(y, 40.0, 10.0)) * np.exp(-1.2 * (score > 0.5)))
    return late_table(rng, score, y, age, delay)


def ages_of_one_day() -> pd.DataFrame:
    rng, score, y = simulate(3, 600)
    return late_table(rng, score, y, np.full(600, 30), np.where(rng.random(600) < 0.7, 1.0, np.inf))


def zeros_that_are_not_final() -> pd.DataFrame:
    rng, score, y = simulate(4)
    age = rng.integers(0, 90, score.size)
    table = late_table(rng, score, y, age, np.zeros(score.size))
    return table.assign(y=(y & (rng.exponential(30.0, score.size) <= age)).astype(float))


def labels_hidden_later() -> pd.DataFrame:
    rng, score, y = simulate(5, 600)
    return late_table(rng, score, y, rng.integers(0, 90, 600), np.floor(rng.exponential(10.0, 600)))


def missing_by_score() -> pd.DataFrame:
    rng, score, y = simulate(6)
    return pd.DataFrame({"y": np.where(rng.random(score.size) < 0.2 + 0.7 * score, y, np.nan), "p": score})


def flagged_only() -> pd.DataFrame:
    _, score, y = simulate(7)
    return pd.DataFrame({"y": np.where(score > 0.6, y, np.nan), "p": score})


def never_predicted() -> pd.DataFrame:
    rng, score, y = simulate(8, 300, prevalence=0.4)
    return pd.DataFrame({"y": np.where(rng.random(300) < 0.7, y, np.nan), "p": 0.4 * score})


def few_labels() -> pd.DataFrame:
    _, score, _ = simulate(9, 300)
    return pd.DataFrame({"y": np.where(np.arange(300) < 4, np.arange(300) % 2, np.nan), "p": score})


def scores_beyond_one() -> pd.DataFrame:
    return missing_by_score().assign(p=lambda table: 8.0 * table["p"] - 4.0)


def drifted_reference() -> tuple[Any, Any]:
    _, score, y = simulate(12, 1000, prevalence=0.4)
    return y.astype(float), score


# Rows, settings, and the warning that evaluate must give.
SITUATIONS: dict[str, tuple[Callable[[], pd.DataFrame], dict[str, Any], type[Warning]]] = {
    "newer labels are slower": (slower_now, LATE, dm.AssumptionWarning),
    "labels of high scores are faster": (faster_at_high_scores, LATE, dm.AssumptionWarning),
    "rows of one age": (ages_of_one_day, AGES, dm.CalibrationWarning),
    "zeros that are not final": (zeros_that_are_not_final, AGES, dm.CalibrationWarning),
    "labels after as_of": (labels_hidden_later, EARLIER, dm.MissingnessWarning),
    "mechanism not stated": (missing_by_score, {}, dm.MissingnessWarning),
    "by label refuted": (missing_by_score, {"missingness": "by_label"}, dm.AssumptionWarning),
    "no labels of low scores": (flagged_only, {"missingness": "by_score"}, dm.CalibrationWarning),
    "undefined precision": (never_predicted, {"missingness": "by_score"}, dm.UndefinedMetricWarning),
    "few labels": (few_labels, {"missingness": "by_score"}, dm.CalibrationWarning),
    "default threshold": (scores_beyond_one, {"missingness": "by_score"}, UserWarning),
    "contradicted reference": (
        missing_by_score,
        {"missingness": dm.missing.ByScore(reference=dm.missing.Reference(*drifted_reference()))},
        dm.MissingnessWarning,
    ),
}


def record(call: Callable[..., Any], table: pd.DataFrame, **settings: Any) -> tuple[Any, set[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call("y", "p", data=table, metrics="precision", **settings)
    return result, {warning.category.__name__ for warning in caught}


@pytest.mark.parametrize("segments", ["a", "ab"])
@pytest.mark.parametrize("situation", SITUATIONS)
def test_evaluate_by_carries_the_warnings_of_evaluate(situation: str, segments: str) -> None:
    make, settings, expected = SITUATIONS[situation]
    table = pd.concat([make().assign(segment=name) for name in segments], ignore_index=True)
    result, _ = record(dm.evaluate, table, **settings)
    categories = {warned.category for warned in result.warnings}
    assert expected.__name__ in categories
    groups, shown = record(dm.evaluate_by, table, by="segment", **settings)
    carried = {warned.category for key in groups for warned in groups.groups[key].warnings}
    carried |= {warned.category for warned in groups.total.warnings}
    assert categories <= carried
    # Python warnings are given, too, but not about groups that are marked as too small.
    assert shown or all(groups.groups[key].too_small for key in groups)


def test_total_tells_that_all_rows_contradict_the_reference() -> None:
    make, settings, _ = SITUATIONS["contradicted reference"]
    groups, _ = record(
        dm.evaluate_by, make().assign(segment=lambda table: np.arange(len(table)) % 2), by="segment", **settings
    )
    assert any("contradict the metrics" in warned.message for warned in groups.total.warnings)


def test_evaluate_by_gives_a_shared_warning_only_once() -> None:
    table = pd.concat([slower_now().assign(segment=name) for name in "ab"], ignore_index=True)
    groups, _ = record(dm.evaluate_by, table, by="segment", **LATE)
    text = "Rows scored late get labels of positives later"
    assert sum(text in note for note in groups.total_notes) == 1
    assert not any(text in note for key in groups for note in groups.groups[key].notes)


def test_evaluate_by_is_silent_if_evaluate_is() -> None:
    """Negative control: delays are the same for all rows, and every row is labeled in time."""
    rng, score, y = simulate(10, 1000)
    table = late_table(rng, score, y, rng.integers(0, 90, 1000), np.floor(rng.exponential(10.0, 1000)))
    table["segment"] = np.arange(1000) % 2
    result, shown = record(dm.evaluate, table, **LATE)
    groups, shown_by = record(dm.evaluate_by, table, by="segment", **LATE)
    assert not result.warnings
    assert not groups.total.warnings
    assert not shown | shown_by


def test_total_tells_that_old_rows_lack_labels_by_score() -> None:
    rng, score, y = simulate(11, 2000)
    is_reviewed = rng.random(2000) < np.where(score >= 0.5, 0.95, 0.3)
    delay = np.where(is_reviewed, np.floor(rng.exponential(8.0, 2000)), np.inf)
    table = late_table(rng, score, y, rng.integers(0, 90, 2000), delay).assign(segment=np.arange(2000) % 2)
    groups, _ = record(dm.evaluate_by, table, by="segment", **LATE)
    assert "have no label, so the score decides who is reviewed" in groups.total.assumption
    assert all("have no label, so the score decides" in groups[key].assumption for key in groups)
