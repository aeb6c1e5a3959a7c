"""Sets of rows with ages: stored, merged, taken apart, and what cannot be done with them."""

import datetime as dt
import itertools
from typing import Any

import numpy as np
import polars as pl
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.frames import aging, counting
from row_values import RowValues

NAMES: dict[str, Any] = {"y_true": "y", "y_score": "p"}
TIMES: dict[str, Any] = {"scored_at": "scored", "labeled_at": "came", "as_of": "2026-04-20"}
SETTINGS: dict[str, Any] = {**NAMES, "missingness": dm.missing.Delayed(**TIMES)}
WITH_STRATA: dict[str, Any] = {**NAMES, "missingness": RowValues(strata="slice", **TIMES)}


def table(n=3000, *, seed=0, clock=False):
    """Rows of 100 days; labels come after 30 days if positive and after 8 if negative, on average."""
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(n), 2)
    y = rng.random(n) < p
    hours = rng.integers(0, 24 * 100, n) if clock else 24 * rng.integers(0, 100, n)
    scored = np.datetime64("2026-01-10") + hours.astype("timedelta64[h]")
    took = np.where(y, rng.exponential(30.0, n), rng.exponential(8.0, n)).astype("timedelta64[D]")
    came = scored + took
    known = came <= np.datetime64("2026-04-20T23")
    times = pl.Datetime("us") if clock else pl.Date
    return (
        pl.DataFrame({"p": p, "scored": scored.astype("M8[us]"), "came": came.astype("M8[us]")})
        .select(
            pl.Series("y", y.astype(np.int8)).set(pl.Series(~known), None),
            "p",
            pl.col("scored", "came").cast(times),
            day=pl.col("scored").cast(pl.Date),
        )
        .with_columns(came=pl.when(pl.Series(known)).then("came"))
    )


def same(one, other):
    for name, array in other.cells.arrays().items():
        np.testing.assert_array_equal(getattr(one.cells, name), array, err_msg=name)


@pytest.mark.parametrize("score_bins", ["auto", 64])
@pytest.mark.parametrize("clock", [False, True])
def test_merged_days_from_files_are_all_rows(tmp_path, clock, score_bins):
    rows = table(1000, clock=clock)
    # Files of five days each, so that the ages in one differ too.
    for (day,), part in rows.with_columns(pl.col("day").dt.truncate("5d")).partition_by("day", as_dict=True).items():
        EvaluationSet(data=part, score_bins=score_bins, **SETTINGS).to_parquet(tmp_path / f"{day}.parquet")
    merged = EvaluationSet.from_parquet(tmp_path)
    at_once = EvaluationSet(data=rows, score_bins=score_bins, **SETTINGS)
    if score_bins == 64:  # days of few rows may have one score in each bucket, and then are exact
        merged = merged.binned(64)
    for name in ("age", "decision", "positives", "negatives", "missing"):
        np.testing.assert_array_equal(getattr(merged.cells, name), getattr(at_once.cells, name), err_msg=name)
    np.testing.assert_allclose(merged.cells.score, at_once.cells.score, rtol=1e-12)
    if clock == (score_bins == 64):  # a fit takes longer than all else, and each value has had one
        answers = [
            dm.evaluate(data, metrics="precision", missingness=dm.missing.Delayed())["precision"].mean()
            for data in (merged, at_once)
        ]
        assert answers[0] == pytest.approx(answers[1], rel=1e-9)


def test_a_file_gives_back_the_same_set(tmp_path):
    data = EvaluationSet(data=table(), **SETTINGS)
    same(EvaluationSet.from_parquet(data.to_parquet(tmp_path / "cells.parquet")), data)


def test_rows_are_taken_out_and_labels_away():
    rows = table()
    whole = EvaluationSet(data=rows, **SETTINGS)
    part = EvaluationSet(data=rows.head(1000), **SETTINGS)
    same(whole - part, EvaluationSet(data=rows.tail(2000), **SETTINGS))
    assert whole.labeled().n_rows == whole.counts()["labeled"]
    assert whole.unlabeled().n_missing == whole.n_rows
    assert whole.binned(16).n_rows == whole.n_rows
    with pytest.raises(InputError, match=r"^cells: .* and an age of \d+ to \d+ days"):
        part - whole


def test_set_counts_ages_and_strata_together(tmp_path):
    rows = table(600).with_columns(slice=pl.Series(np.arange(600) % 3))
    data = EvaluationSet(data=rows, **WITH_STRATA)
    parts = rows.partition_by("slice", as_dict=True)
    for (number,), part in parts.items():
        kept = data.cells.stratum == number
        alone = EvaluationSet(data=part, **SETTINGS)
        for name in ("score", "age", "positives", "negatives", "missing"):
            np.testing.assert_array_equal(getattr(data.cells, name)[kept], getattr(alone.cells, name), err_msg=name)
    halves = [EvaluationSet(data=half, **WITH_STRATA) for half in (rows[:250], rows[250:])]
    same(sum(halves), data)
    same(data - halves[0], halves[1])
    same(EvaluationSet.from_parquet(data.to_parquet(tmp_path / "cells.parquet")), data)


def test_late_labels_ignore_strata():
    rows = table(600).with_columns(slice=pl.Series(np.arange(600) % 3))
    both = EvaluationSet(data=rows, score_bins=64, **WITH_STRATA)
    results = [
        dm.evaluate(data, metrics="recall") for data in (both, EvaluationSet(data=rows, score_bins=64, **SETTINGS))
    ]
    assert results[0].stated == "delayed"
    assert results[0]["recall"].mean() == pytest.approx(results[1]["recall"].mean(), rel=1e-9)


def test_late_labels_are_counted_anew():
    data = EvaluationSet(data=table(), **SETTINGS)
    with pytest.raises(
        InputError, match=r"^late: the rows of the set have ages\. .* Count the rows again, with a later as_of\."
    ):
        data.with_labels(data)


def test_ages_are_not_put_together_with_anything_else():
    data = EvaluationSet(data=table(100), **SETTINGS)
    with pytest.raises(
        InputError, match=r"^strata: only one of the sets has it\. Build both sets with it, or neither\."
    ):
        data + EvaluationSet([1, 0], [0.2, 0.3], missingness=dm.missing.Unknown(strata=[1, 2]))
    with pytest.raises(InputError, match=r"^age: one set has ages in days, .* the other in numbers"):
        data + EvaluationSet([1, 0], [0.2, 0.3], missingness=dm.missing.Delayed(age=[1.0, 2.0]))
    with pytest.raises(InputError, match=r"^age: only one of the sets has it\. Build both sets with it, or neither\."):
        data + EvaluationSet([1, 0], [0.2, 0.3])


def test_a_day_in_the_past_sees_what_was_known_then():
    rows = table()
    then = EvaluationSet(data=rows, **NAMES, missingness=dm.missing.Delayed(**TIMES | {"as_of": dt.date(2026, 3, 1)}))
    seen = rows.filter(pl.col("scored") <= dt.date(2026, 3, 1))
    known = seen.filter(pl.col("came") <= dt.date(2026, 3, 1))
    assert (then.n_rows, then.n_labeled) == (seen.height, known.height)
    now = EvaluationSet(data=rows, **SETTINGS)
    assert now.n_rows == rows.height
    assert now.n_labeled == rows["y"].count()


def test_evaluating_a_table_uses_its_ages():
    rows = table()
    result = dm.evaluate(data=rows, metrics=["precision", "recall"], **SETTINGS)
    assert result.assumption.startswith("Assumed: labels come with time")
    again = dm.evaluate(
        EvaluationSet(data=rows, **SETTINGS), missingness=dm.missing.Delayed(), metrics=["precision", "recall"]
    )
    assert result["recall"].mean() == again["recall"].mean()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scored_at": None}, r"^labeled_at: no times of scoring\. Pass scored_at="),
        ({"scored_at": None, "labeled_at": None}, r"^as_of: no times of scoring\. Pass scored_at="),
        ({"maturity": "90"}, r"^maturity: '90'\. It must be a positive number or a timedelta\."),
        ({"maturity": -1}, r"^maturity: -1\. It must be a positive number or a timedelta\."),
    ],
)
@pytest.mark.parametrize("by", [False, True])
def test_what_does_not_go_together_is_refused(settings, message, by):
    given = NAMES | {"missingness": dm.missing.Delayed(**TIMES | settings)}
    with pytest.raises(InputError, match=message):
        dm.evaluate_by(data=table(50), by="p", **given) if by else dm.evaluate(data=table(50), **given)


def test_large_tables_have_fewer_buckets(monkeypatch):
    """4,096 unless that makes too many cells; exact where a million cells would do, which is less here."""
    rng = np.random.default_rng(0)
    rows = table(20_000).with_columns(p=pl.Series(rng.random(20_000)))
    monkeypatch.setattr(counting, "MOST_EXACT", 2**10)
    assert EvaluationSet(data=rows, **SETTINGS).score_bins == 2**12
    monkeypatch.setattr(counting, "_MOST_WEIGHTED", 2**14)
    few = EvaluationSet(data=rows, **SETTINGS)
    assert few.score_bins is not None
    assert few.score_bins < 2**12
    assert few.n_rows == 20_000
    with pytest.raises(InputError, match=r"^score_bins: more than 16,384 cells of score, decision, age and delay"):
        EvaluationSet(data=rows, score_bins=2**12, **SETTINGS)
    monkeypatch.setattr(counting, "MOST_EXACT", 2**14)
    rounded = rows.with_columns(p=pl.col("p").round(1))
    assert EvaluationSet(data=rounded, **SETTINGS).score_bins is None


def test_dates_of_text_files(tmp_path):
    rows = table(400, clock=True)
    rows.drop("day").write_csv(tmp_path / "rows.csv", datetime_format="%Y-%m-%dT%H:%M:%S")
    found = EvaluationSet(data=tmp_path / "rows.csv", **SETTINGS)
    same(found, EvaluationSet(data=rows, **SETTINGS))
    zoned = rows.with_columns(pl.col("scored", "came").dt.replace_time_zone("UTC"))
    text = zoned.drop("day").with_columns(pl.col("scored", "came").dt.strftime("%Y-%m-%dT%H:%M:%S+00:00"))
    text.write_csv(tmp_path / "zoned.csv")
    same(EvaluationSet(data=tmp_path / "zoned.csv", **SETTINGS), found)


@pytest.mark.parametrize(
    ("dates", "message"),
    [
        (["2026-01-11", "11.1.2026"], r"^scored_at column 'scored': cannot read '11\.1\.2026' at row 1 as a date\."),
        (
            ["2026-01-11T10:00", "2026-01-11T10:00+01:00"],
            r"^scored_at column 'scored': '2026-01-11T10:00\+01:00' at row 1 has a time zone and '2026-01-11T10:00' at",
        ),
    ],
)
def test_text_that_is_no_date_is_refused(tmp_path, dates, message):
    lines = ["y,p,scored", *(f"{y},0.{y + 1},{date}" for y, date in zip(itertools.count(), dates, strict=False))]
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    with pytest.raises(InputError, match=message):
        EvaluationSet(
            "y", "p", data=tmp_path / "rows.csv", missingness=dm.missing.Delayed(scored_at="scored", as_of="2026-02-01")
        )


def test_times_that_are_right_take_one_look_before_rows_are_counted(monkeypatch):
    looks, answered = [], aging._answered

    def counted(frame, wanted):
        looks.append(sorted(wanted))
        return answered(frame, wanted)

    monkeypatch.setattr(aging, "_answered", counted)
    rows = table(50)
    EvaluationSet(data=rows, **SETTINGS)
    EvaluationSet(data=rows, **NAMES, missingness=dm.missing.Delayed(**TIMES, maturity=400))
    assert len(looks) == 2
    with pytest.raises(InputError, match="came before scoring"):
        EvaluationSet(data=rows.with_columns(scored=pl.lit(dt.date(2026, 4, 20))), **SETTINGS)


def test_a_result_keeps_the_warning_that_a_past_day_hides_no_labels():
    asked = NAMES | {"missingness": dm.missing.Delayed(scored_at="scored", as_of="2026-03-20")}
    rows = table(800)
    with pytest.warns(dm.MissingnessWarning, match="Pass labeled_at= to hide them"):
        found = dm.evaluate(data=rows, metrics="recall", **asked)
    with pytest.warns(dm.MissingnessWarning, match="Pass labeled_at= to hide them"):
        by = dm.evaluate_by(data=rows, time="scored", period="month", metrics="recall", **asked)
    assert "labeled_at= to hide" in found.warnings[0].message
    assert "labeled_at= to hide" in by.total_notes[0]


def test_periods_of_pandas_are_refused_as_times_as_they_are_by_time():
    rows = table(50).to_pandas()
    rows["scored"] = rows["scored"].astype("datetime64[us]").dt.to_period("D")
    with pytest.raises(InputError, match=r"^scored_at column 'scored': has type period\[D\]\. Ages need dates"):
        EvaluationSet(data=rows, **SETTINGS)
    with pytest.raises(InputError, match=r"^time column 'scored': has type period\[D\]\. Periods need dates"):
        dm.evaluate_by("y", "p", data=rows, time="scored", period="month")
