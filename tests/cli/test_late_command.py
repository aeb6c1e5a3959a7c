"""Labels that come with time, on the command line: what the library says of the same rows, or one line of why not."""

import json

import numpy as np
import polars as pl
import pytest

import darkmetrics as dm

TIMES = ("--label", "fraud", "--score", "p", "--scored-at", "scored", "--labeled-at", "came")
AS_OF = ("--as-of", "2026-06-29")
JSON = ("-m", "precision", "--format", "json")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 1000
    p = np.round(rng.random(n), 3)
    y = rng.random(n) < p
    scored = np.datetime64("2026-01-01") + rng.integers(0, 180, n)
    came = scored + np.where(y, rng.exponential(40.0, n), rng.exponential(10.0, n)).astype("timedelta64[D]")
    known = came <= np.datetime64("2026-06-29")
    return pl.DataFrame(
        {
            "fraud": pl.Series(y.astype(int)).set(pl.Series(~known), None),
            "p": p,
            "scored": scored,
            "came": pl.Series(came).set(pl.Series(~known), None),
        }
    )


@pytest.fixture(params=["csv", "parquet"])
def file(request, rows, tmp_path):
    path = tmp_path / f"rows.{request.param}"
    getattr(rows, f"write_{request.param}")(path)
    return path


def test_evaluate_says_what_the_library_says(run, file, rows):
    done = run("evaluate", file, *TIMES, *AS_OF, *JSON)
    expected = dm.evaluate(
        "fraud",
        "p",
        data=rows,
        missingness=dm.missing.Delayed(scored_at="scored", labeled_at="came", as_of="2026-06-29"),
        metrics="precision",
    )
    assert done.code == 0
    found = json.loads(done.out)
    assert found["metrics"]["precision"]["mean"] == expected["precision"].mean()
    assert "labels come with time" in done.err


def test_a_past_day_and_a_maturity(run, rows, tmp_path):
    frauds = rows.with_columns(came=pl.when(pl.col("fraud") == 1).then("came"), fraud=pl.col("fraud").fill_null(0))
    frauds.write_csv(tmp_path / "rows.csv")
    longest = frauds.select((pl.col("came") - pl.col("scored")).dt.total_days().max()).item()
    done = run("evaluate", tmp_path / "rows.csv", *TIMES, "--as-of", "2026-06-20", "--maturity", longest, *JSON)
    found = json.loads(done.out)["counts"]
    expected = dm.EvaluationSet(
        "fraud",
        "p",
        data=frauds,
        missingness=dm.missing.Delayed(maturity=longest, scored_at="scored", labeled_at="came", as_of="2026-06-20"),
    ).counts()
    assert (found["rows"], found["missing"]) == (expected["rows"], expected["missing"])
    assert expected["rows"] < 1000


@pytest.mark.parametrize("command", ["evaluate", "diagnose", "monitor"])
def test_labels_that_a_past_day_cannot_hide_are_warned_of(run, file, command):
    times = TIMES[: TIMES.index("--labeled-at")]
    more = ("--time", "scored", "--period", "quarter") if command == "monitor" else ()
    done = run(command, file, *times, "--as-of", "2026-05-01", *more)
    said = " ".join((done.out + done.err).split())
    assert "Labels that arrived after it stay" in said
    assert "Pass --labeled-at to hide them" in said
    silent = run(command, file, *times, *AS_OF, *more)
    assert "Labels that arrived" not in silent.out + silent.err


@pytest.mark.parametrize("command", ["diagnose", "curves", "monitor", "report"])
def test_every_command_that_reads_rows_knows_their_times(run, file, tmp_path, command):
    more = {
        "monitor": ("--time", "scored", "--period", "quarter"),
        "report": ("--output", tmp_path / "page.html"),
    }.get(command, ())
    done = run(command, file, *TIMES, *AS_OF, "-m", "precision", *more)
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, (), "--as-of: missing. Ages of rows are counted up to the day"),
        ({}, ("--as-of", "soon"), "--as-of: cannot read 'soon' as a date."),
        ({}, ("--as-of", "2025-06-29"), "--as-of: 2025-06-29, but the oldest row was scored on 2026-01-01"),
        ({}, (*AS_OF, "--maturity", "3"), "--maturity: 3 days, but 665 of 873 labels took longer, up to 147 days"),
        ({}, (*AS_OF, "--maturity", "0"), "--maturity: 0.0. It must be a positive number"),
        ({}, ("--as-of", "2026-06-29T12:00+00:00"), "--as-of: 2026-06-29T12:00:00+00:00 has the time zone UTC"),
        ({"kind": pl.lit(1)}, (*AS_OF, "--strata", "kind"), "--strata: cannot be combined with --scored-at."),
        ({}, (*AS_OF, "--prob", "p"), "--scored-at: cannot be combined with --prob."),
        ({}, (*AS_OF, "--missingness", "by_label"), "--scored-at: cannot be combined with --missingness by_label."),
        ({"came": pl.date(2025, 1, 1)}, AS_OF, "column 'came' (--labeled-at): "),
        ({"came": pl.lit(None, pl.Date)}, AS_OF, "column 'came' (--labeled-at): "),
        ({"scored": pl.col("p")}, AS_OF, "column 'scored' (--scored-at): "),
        ({"scored": pl.lit("soon")}, AS_OF, "column 'scored' (--scored-at): "),
    ],
)
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_what_cannot_be_is_said_in_one_line(refused, rows, tmp_path, kind, changes, options, message):
    path = tmp_path / f"rows.{kind}"
    getattr(rows.with_columns(**changes), f"write_{kind}")(path)
    for command, more in (("evaluate", ()), ("monitor", ("--time", "scored", "--period", "month"))):
        if command == "monitor" and "scored" in changes:
            continue  # the periods of such a column are refused as well
        assert refused(command, path, *TIMES, *options, *more).startswith(message)


def test_late_needs_times(refused, rows, tmp_path):
    rows.write_parquet(tmp_path / "rows.parquet")
    line = refused("evaluate", tmp_path / "rows.parquet", *TIMES[:4], "--missingness", "delayed")
    assert line == "--scored-at: none with these rows (Delayed). Pass --scored-at and --as-of."


@pytest.mark.parametrize("option", ["--labeled-at", "--as-of", "--maturity"])
def test_times_of_labels_need_times_of_scoring(refused, rows, tmp_path, option):
    rows.write_parquet(tmp_path / "rows.parquet")
    value = {"--labeled-at": "came", "--as-of": "2026-06-29", "--maturity": "90"}[option]
    line = refused("evaluate", tmp_path / "rows.parquet", "--label", "fraud", "--score", "p", option, value)
    assert line.startswith(f"{option}: no times of scoring. Pass --scored-at, ")


@pytest.mark.parametrize("reviewed", ["all", "by_score"])
def test_who_is_reviewed_reaches_the_library(run, file, rows, reviewed):
    done = run("evaluate", file, *TIMES, *AS_OF, "--reviewed", reviewed, *JSON)
    mechanism = dm.missing.Delayed(scored_at="scored", labeled_at="came", as_of="2026-06-29", reviewed=reviewed)
    expected = dm.evaluate("fraud", "p", data=rows, missingness=mechanism, metrics="precision")
    assert json.loads(done.out)["metrics"]["precision"]["mean"] == expected["precision"].mean()


def test_known_propensities_decide_who_is_reviewed(run, rows, tmp_path):
    reviewed = np.random.default_rng(1).random(rows.height) < 0.5
    hidden = pl.when(pl.Series(reviewed))
    given = rows.with_columns(fraud=hidden.then("fraud"), came=hidden.then("came"), pi=pl.lit(0.5))
    given.write_parquet(tmp_path / "rows.parquet")
    done = run("evaluate", tmp_path / "rows.parquet", *TIMES, *AS_OF, "--propensity", "pi", *JSON)
    propensity = dm.missing.Propensity("pi")
    mechanism = dm.missing.Delayed(scored_at="scored", labeled_at="came", as_of="2026-06-29", reviewed=propensity)
    expected = dm.evaluate("fraud", "p", data=given, missingness=mechanism, metrics="precision")
    assert json.loads(done.out)["metrics"]["precision"]["mean"] == expected["precision"].mean()
