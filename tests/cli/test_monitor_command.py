"""darkmetrics monitor says of every group what the library says, from any file, and alerts by its exit code."""

import csv
import io
import json
import re
import runpy
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import darkmetrics as dm
from alerting import alerts_by
from darkmetrics.monitoring import Alerts
from darkmetrics.monitoring.wording import rows_of

ROOT = Path(__file__).parents[2]
TOLD = ("--missingness", "random", "-m", "recall", "--seed", "1")
# Scores fall in France; labels of June are late.
SEGMENTS = ("--by", "country", *TOLD)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    n = 1500
    month, country = rng.integers(1, 7, n), rng.choice(["DE", "FR", "IT"], n)
    chance = rng.beta(1, 2, n)
    label = (rng.random(n) < chance).astype(int)
    gone = rng.random(n) < np.where(month == 6, 0.7, 0.2)
    return pl.DataFrame(
        {
            "booked": [f"2026-{m:02}-{d:02}" for m, d in zip(month, rng.integers(1, 28, n), strict=True)],
            "month": [f"2026-{m:02}" for m in month],
            "country": country,
            "team": rng.integers(1, 13, n),
            "label": [None if hidden else int(y) for hidden, y in zip(gone, label, strict=True)],
            "score": np.round(np.where(country == "FR", chance**3, chance), 6),
        }
    )


@pytest.fixture(scope="module")
def dated(rows):
    return rows.with_columns(pl.col("booked").str.to_date())


def write(rows, path):
    if path.suffix == ".parquet":
        rows.write_parquet(path)
    elif path.suffix == ".feather":
        rows.write_ipc(path)
    elif path.suffix == ".jsonl":
        rows.with_columns(pl.col(pl.Date).cast(pl.String)).write_ndjson(path)
    else:
        rows.write_csv(path)
    return path


@pytest.fixture
def csv_rows(rows, tmp_path):
    return write(rows, tmp_path / "june.csv")


@pytest.fixture
def parquet_rows(dated, tmp_path):
    return write(dated, tmp_path / "june.parquet")


def expected(frame, by=None, **settings):
    given: dict[str, Any] = {"y_true": "label", "y_score": "score", "missingness": "random", "metrics": "recall"}
    given |= {"rng": 1} | settings
    if "targets" in given:
        return alerts_by(data=frame, by=by, **given)
    return dm.evaluate_by(data=frame, by=by, **given)


# ------------------------------------------------------------------------------------------------------ the numbers


def test_each_group_is_what_evaluate_says_of_its_rows(run, csv_rows, rows):
    found = json.loads(run("monitor", csv_rows, *SEGMENTS, "-f", "json").out)
    assert [group["key"] for group in found["groups"]] == [["DE"], ["FR"], ["IT"]]
    for group in found["groups"]:
        part = rows.filter(pl.col("country") == group["key"][0])
        alone = dm.evaluate(part["label"], part["score"], missingness="random", metrics="recall")
        assert group["counts"] == alone.data.counts()
        # The same counts in the same order, but for the last bits.
        assert group["metrics"]["recall"]["mean"] == pytest.approx(alone["recall"].mean(), abs=1e-12)
        assert group["metrics"]["recall"]["low"] == pytest.approx(alone["recall"].interval().low, abs=1e-12)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.feather", "x.jsonl"])
@pytest.mark.parametrize("options", [SEGMENTS, (*TOLD, "--by", "team", "--time", "booked", "--period", "quarter")])
def test_every_format_gives_the_numbers_of_the_library(run, dated, tmp_path, name, options):
    path = write(dated, tmp_path / name)
    done = run("monitor", path, *options, "--target", "recall=0.4", "-f", "json")
    settings = {"time": "booked", "period": "quarter"} if "--time" in options else {}
    result = expected(dated, "team" if settings else "country", targets={"recall": 0.4}, **settings)
    assert json.loads(done.out) == result.to_dict()
    assert done.code == (1 if result else 0)


def test_standard_input_is_read(run, csv_rows):
    from_file = run("monitor", csv_rows, *SEGMENTS)
    assert run("monitor", "-", *SEGMENTS, stdin=csv_rows.read_bytes()).out == from_file.out


def test_a_pattern_is_all_of_its_parquet_files(run, dated, tmp_path, parquet_rows):
    (tmp_path / "days").mkdir()
    for number, part in enumerate(dated.iter_slices(400)):
        write(part, tmp_path / "days" / f"part-{number}.parquet")
    one, many = (run("monitor", name, *SEGMENTS, "-f", "json") for name in (parquet_rows, "days/part-*.parquet"))
    assert many.out == one.out


@pytest.mark.parametrize("given", ["days", "days/**/*.parquet", "days/**", "days/month=*"])
def test_a_folder_that_may_be_partitioned_is_all_of_its_parquet_files(run, dated, tmp_path, given):
    for (month,), part in dated.group_by("month"):
        folder = tmp_path / "days" / f"month={month}"
        folder.mkdir(parents=True)
        write(part.drop("month"), folder / "part-0.parquet")
    (tmp_path / "days" / "_SUCCESS").touch()
    done = run("monitor", given, "--by", "month", *TOLD, "-f", "json")
    assert json.loads(done.out) == expected(dated, "month")._view.to_dict()


def test_a_file_with_the_name_of_a_pattern_is_that_file(run, dated, tmp_path):
    write(dated, tmp_path / "x[1].parquet")
    write(dated.head(3), tmp_path / "x1.parquet")
    assert json.loads(run("monitor", "x[1].parquet", *SEGMENTS, "-f", "json").out)["total"]["counts"]["rows"] == 1500


def test_weights_decisions_and_own_probabilities_are_taken(run, dated, tmp_path):
    given = dated.with_columns(w=1 + pl.col("team") % 3, yes=(pl.col("score") > 0.3).cast(int), p=pl.col("score"))
    options = ["--weight", "w", "--pred", "yes", "--prob", "p", "-m", "recall", "--by", "country", "-f", "json"]
    roles = {"sample_weight": "w", "y_pred": "yes", "missingness": dm.missing.Fixed("p"), "rng": None}
    result = expected(given, "country", **roles)
    for name in ("x.csv", "x.parquet"):
        found = json.loads(run("monitor", write(given, tmp_path / name), *options).out)
        for ours, theirs in zip(found["groups"], result.to_dict()["groups"], strict=True):
            assert ours["metrics"]["recall"]["mean"] == pytest.approx(theirs["metrics"]["recall"]["mean"], abs=1e-12)


def test_reference_rows_are_taken(run, csv_rows, dated, tmp_path):
    reference = write(dated.drop_nulls("label"), tmp_path / "reference.csv")
    told = ["--by", "country", "-m", "recall", "--missingness", "by_score", "--reference", reference, "-f", "json"]
    labels, scores = dated.drop_nulls("label")["label"], dated.drop_nulls("label")["score"]
    with pytest.warns(dm.MissingnessWarning, match="In 1 of 3 groups"):  # scores fall in France
        result = expected(
            dated, "country", missingness=dm.missing.ByScore(reference=dm.missing.Reference(labels, scores)), rng=None
        )
    found = json.loads(run("monitor", csv_rows, *told).out)
    for ours, theirs in zip(found["groups"], result.to_dict()["groups"], strict=True):
        assert ours["metrics"]["recall"]["mean"] == pytest.approx(theirs["metrics"]["recall"]["mean"], abs=1e-12)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_labels_of_text_are_read_as_text(run, rows, tmp_path, name):
    words = rows.with_columns(pl.col("label").replace_strict({0: "no", 1: "yes"}, return_dtype=pl.String))
    plain = run("monitor", write(rows, tmp_path / f"plain-{name}"), *SEGMENTS).out
    assert run("monitor", write(words, tmp_path / name), *SEGMENTS, "--pos-label", "yes").out == plain


def test_several_processes_give_the_same(run, csv_rows):
    told = ("monitor", csv_rows, "--by", "country", *TOLD)
    assert run(*told, "--jobs", 2).out == run(*told).out


# ------------------------------------------------------------------------------------------------------ groups


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.jsonl"])
def test_whole_numbers_stay_whole_and_in_order_and_gaps_are_a_group(run, rows, tmp_path, name):
    given = rows.with_columns(team=pl.when(pl.col("team") == 12).then(None).otherwise(pl.col("team")))
    found = json.loads(run("monitor", write(given, tmp_path / name), "--by", "team", *TOLD, "-f", "json").out)
    assert [group["key"] for group in found["groups"]] == [*([team] for team in range(1, 12)), [None]]


def test_values_of_several_kinds_are_told_apart_as_text(run, tmp_path):
    lines = [{"k": k, "label": i % 2, "score": 0.01 * i} for i in range(60) for k in (1, "one", True, [1, 2], None)]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = json.loads(run("monitor", "x.jsonl", "--by", "k", "-m", "recall", "-f", "json").out)
    assert [group["key"][0] for group in found["groups"]] == ["1", "True", "[1, 2]", "one", None]


@pytest.mark.parametrize("name", ["rows.csv", "rows.parquet"])
def test_groups_that_differ_in_spaces_are_different_groups(run, rows, tmp_path, name):
    shops = np.array([" a", "a", "a ", "b"])[np.arange(len(rows)) % 4].tolist()
    path = write(rows.with_columns(shop=pl.Series(shops)), tmp_path / name)
    done = run("monitor", path, "--by", "shop", *TOLD, "-f", "csv")
    found = {record["shop"]: record["rows"] for record in csv.DictReader(io.StringIO(done.out)) if record["shop"]}
    assert found == dict.fromkeys([" a", "a", "a ", "b"], "375")


def test_times_with_spaces_around_them_are_times(run, rows, tmp_path):
    spaced = rows.with_columns(booked=pl.concat_str(pl.lit(" "), pl.col("booked"), pl.lit(" ")))
    options = ("--time", "booked", "--period", "month", *TOLD, "-f", "json")
    found = [run("monitor", write(one, tmp_path / "rows.csv"), *options).out for one in (rows, spaced)]
    assert found[0] == found[1]
    assert json.loads(found[0])["groups"]


def test_times_of_day_and_zones_are_read_as_written(run, rows, tmp_path):
    late = rows.with_columns(booked=pl.col("booked") + "T23:30:00-05:00")
    day = [*TOLD, "--time", "booked", "--period", "day", "-f", "json"]
    keys = [
        [group["key"] for group in json.loads(run("monitor", write(given, tmp_path / "x.csv"), *day).out)["groups"]]
        for given in (rows, late)
    ]
    assert keys[0] == keys[1]


def test_hostile_names_and_values_are_text_in_every_format(run, rows, tmp_path):
    name = "$c$ | <b>"
    given = rows.with_columns(pl.when(pl.col("country") == "DE").then(pl.lit("a|b\n\x1b[31m")).otherwise("country"))
    write(given.rename({"literal": name} if "literal" in given.columns else {"country": name}), tmp_path / "x.parquet")
    for format_ in ("table", "markdown", "csv", "json"):
        done = run("monitor", "x.parquet", "--by", name, *TOLD, "-f", format_)
        assert done.code == 0
        assert "\x1b" not in done.out
        if format_ == "markdown":
            lines = [line for line in done.out.splitlines() if line.startswith("|")]
            assert len({line.replace("\\|", "").count("|") for line in lines}) == 1
        assert "\x1b" not in done.err


# ------------------------------------------------------------------------------------------------------ the output


def test_an_alert_is_exit_code_one_and_words_come_before_the_table(run, csv_rows):
    done = run("monitor", csv_rows, *SEGMENTS, "--target", "recall=0.4")
    assert done.code == 1
    assert done.out.splitlines()[1].startswith("1 of 3 groups misses recall >= 0.4 (false-discovery rate 5%): FR")
    assert done.out.splitlines()[-1] == "FAIL: 1 alert."
    assert re.search(r"^alert +FR ", done.out, re.MULTILINE)
    met = run("monitor", csv_rows, *SEGMENTS, "--target", "recall=0.01")
    assert met.code == 0
    assert re.search(
        r"No alert for recall >= 0.01 in 3 groups .* Most likely to miss: \w\w \(", " ".join(met.out.split())
    )
    assert met.out.splitlines()[-1] == "PASS: no alert."
    without = run("monitor", csv_rows, *SEGMENTS)
    assert without.code == 0
    assert "PASS" not in without.out


def test_a_target_adds_its_metric(run, csv_rows):
    done = run("monitor", csv_rows, *SEGMENTS, "--target", "accuracy=0.1", "-f", "csv")
    assert {line["metric"] for line in csv.DictReader(io.StringIO(done.out))} == {"recall", "accuracy"}


def test_a_lower_rate_of_false_alerts_gives_no_more_of_them(run, csv_rows):
    counts = []
    for rate in ("0.5", "0.05", "0.000000001"):
        told = ("monitor", csv_rows, "--by", "team", *TOLD, "--target", "recall=0.45", "--fdr", rate, "-f", "json")
        counts.append(len(json.loads(run(*told).out)["alerts"]))
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > counts[2]


def test_every_format_is_written_and_the_suffix_of_the_output_says_which(run, csv_rows):
    for name, format_ in (("x.json", "json"), ("x.csv", "csv"), ("x.md", "markdown"), ("x", "table")):
        shown = run("monitor", csv_rows, *SEGMENTS, "-f", format_).out
        assert run("monitor", csv_rows, *SEGMENTS, "-o", name).code == 0
        assert Path(name).read_text(encoding="utf-8") == shown


def test_the_columns_of_csv_are_those_that_the_page_explains(run, csv_rows):
    explained = runpy.run_path(str(ROOT / "docs/command_line.py"))["CSV"]["monitor"]
    done = run("monitor", csv_rows, "--by", "month", *TOLD, "-f", "csv")
    assert done.out.splitlines()[0].split(",") == list(explained)


def test_csv_has_the_numbers_of_to_frame(run, csv_rows, rows):
    done = run("monitor", csv_rows, *SEGMENTS, "--target", "recall=0.4", "-f", "csv")
    frame = pd.DataFrame(rows_of(expected(rows, "country", targets={"recall": 0.4})))
    ours = pd.read_csv(io.StringIO(done.out), keep_default_na=False, na_values={"q_value": [""]})
    assert list(ours) == list(frame)
    for name in ("country", "rows", "missing", "alert", "too_small"):
        assert ours[name].tolist() == frame[name].tolist()
    for name in ("mean", "low", "highest_possible", "probability_missed", "q_value"):
        assert ours[name].to_numpy() == pytest.approx(frame[name].to_numpy(), abs=1e-12)


def test_a_group_column_with_the_name_of_a_number_keeps_both(run, rows, tmp_path):
    write(rows.rename({"country": "mean"}), tmp_path / "x.csv")
    header = run("monitor", "x.csv", "--by", "mean", *TOLD, "-f", "csv").out.splitlines()[0].split(",")
    assert (header[0], header.count("mean"), header.count("mean_")) == ("mean", 1, 1)


def test_a_long_table_is_cut_and_alerts_come_first(run, rows, tmp_path):
    many = rows.with_columns(team=pl.int_range(1500) % 45)
    write(many.with_columns(score=pl.when(pl.col("team") == 44).then(0.01).otherwise("score")), tmp_path / "x.csv")
    done = run("monitor", "x.csv", "--by", "team", *TOLD, "--target", "recall=0.2")
    words, groups, _ = done.out.split("\n\n")
    assert len(groups.splitlines()) == 42  # header, all rows together, 40 groups
    assert words.endswith("\n40 of 45 groups, those with an alert first; --format csv has all.")
    assert re.search(r"\nalert +44 ", groups)
    assert len(run("monitor", "x.csv", "--by", "team", *TOLD, "-f", "csv").out.splitlines()) == 46


@pytest.mark.parametrize("options", [("--by", "month"), ("--time", "booked", "--period", "month")])
def test_late_labels_are_pointed_out(run, rows, csv_rows, tmp_path, options):
    hint = r"2026-06 lacks \d\d% of its labels, earlier periods \d\d% \(median\): labels come late."
    assert re.search(hint, " ".join(run("monitor", csv_rows, *options, *TOLD).out.split()))
    on_time = write(rows.filter(pl.col("month") != "2026-06"), tmp_path / "x.csv")
    assert "come late" not in " ".join(run("monitor", on_time, *options, *TOLD).out.split())
    assert "come late" not in " ".join(run("monitor", csv_rows, *SEGMENTS).out.split())


def test_notes_are_said_in_options(run, csv_rows):
    done = run("monitor", csv_rows, "--by", "month", "-m", "recall")
    for word in ("groups[key]", "missingness=", "reference=", "y_true"):
        assert word not in done.out + done.err
    wide = run("monitor", csv_rows, "--by", "month", "--missingness", "random", "--target", "recall=0.1")
    assert "precision, accuracy, f1 and roc_auc; --format csv has them." in " ".join(wide.out.split())


def test_what_looks_odd_is_said_once(run, rows, tmp_path):
    # Positives lose their labels, so that missing rows have higher scores.
    hidden = pl.when(pl.col("score") > 0.3).then(None).otherwise("label")
    write(
        rows.with_columns(label=pl.when(pl.int_range(1500) % 3 > 0).then(hidden).otherwise("label")), tmp_path / "x.csv"
    )
    done = run("monitor", "x.csv", "--by", "country", "-m", "recall")
    assert " ".join(done.out.split()).lower().count("the estimates depend on why labels are missing") == 1
    assert "Warning" not in done.out + done.err


# ------------------------------------------------------------------------------------------------------ the picture


@pytest.mark.parametrize(
    ("name", "start"), [("x.png", b"\x89PNG"), ("x.svg", b"<?xml"), ("x.pdf", b"%PDF"), ("x.PNG", b"\x89PNG")]
)
def test_a_picture_is_what_its_name_says(run, csv_rows, name, start):
    assert run("monitor", csv_rows, "--by", "month", *TOLD, "--plot", name).code == 0
    assert Path(name).read_bytes().startswith(start)


@pytest.mark.parametrize(
    ("options", "over_time"),
    [
        (("--by", "month"), True),
        (("--time", "booked", "--period", "month"), True),
        (("--by", "country"), False),
        (("--by", "country", "--time", "booked", "--period", "quarter"), False),
    ],
)
def test_periods_are_drawn_over_time_and_groups_as_a_forest(run, csv_rows, monkeypatch, options, over_time):
    drawn = []

    def noted(name, function):
        def plot(self):
            drawn.append(name)
            return function(self)

        return plot

    for name in ("plot", "plot_over_time"):
        monkeypatch.setattr(Alerts, name, noted(name, getattr(Alerts, name)))
    assert run("monitor", csv_rows, *options, *TOLD, "--plot", "x.png").code == 0
    assert drawn == ["plot_over_time" if over_time else "plot"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--plot", "x.gif"], "--plot: x.gif must end in .png, .svg, .pdf, which says what to draw."),
        (["--plot", "x"], "--plot: x must end in .png, .svg, .pdf, which says what to draw."),
        (["--plot", "no/x.png"], "--plot: there is no directory no."),
        (["--plot", ""], "--plot: is empty. Pass a file."),
        (["--plot", "x.png", "-o", "./x.png"], "--plot: x.png is the --output as well. Pass another file."),
    ],
)
def test_a_picture_that_cannot_be_written_is_refused_before_the_work(refused, options, message):
    assert refused("monitor", "no-such-file.csv", "--by", "month", *options) == message


def test_without_matplotlib_a_picture_is_refused_before_the_work(refused, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    said = refused("monitor", "no-such-file.csv", "--by", "month", "--plot", "x.png")
    assert said == "--plot: needs matplotlib; pip install 'darkmetrics[plot]'."


# ------------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--by: no column of groups. Pass one, or a column of dates as --time."),
        (["--period", "month"], "--by: no column of groups."),
        (["--by", "month", "--period", "month"], "--period: 'month', but there is no time column"),
        (["--by", "monht"], "no column 'monht'. Did you mean 'month'?"),
        (["--time", "boked", "--period", "day"], "no column 'boked'. Did you mean 'booked'?"),
        (["--time", "booked", "--period", "moon"], "--period: "),
        (["--by", "month", "--by", "month"], "--by: 'month' is named twice."),
        (["--by", "month", "--fdr", "2"], "--fdr: 2.0. It must lie strictly between 0 and 1."),
        (["--by", "month", "--correction", "bonferroni"], "--correction: unknown correction 'bonferroni'."),
        (["--by", "month", "--min-labels", "-1"], "--min-labels: -1. It must be a whole number"),
        (
            ["--by", "month", "--jobs", "0"],
            "--jobs: 0. It must be a whole number of at least 1, or -1 for one per core.",
        ),
        (["--by", "month", "--score-bins", "fine"], "--score-bins: "),
        (["--by", "month", "--score-bins", "3"], "--score-bins: 3"),
        (["--by", "month", "--score-bins", "9" * 5000], "--score-bins: "),
        (["--by", "month", "--target", "recal=0.8"], "--target: unknown metric 'recal'. Did you mean 'recall'?"),
        (["--by", "month", "--target", "recall"], "--target: cannot read 'recall'. Write it like recall=0.8."),
        (["--by", "month", "--target", "recall=80"], "--target: 80 for 'recall', which lies between 0 and 1. Give 0.8"),
        (["--by", "month", "-m", "recal"], "--metric: unknown metric 'recal'. Did you mean 'recall'?"),
        (["--by", "month", "--reference", "-"], "--reference: standard input cannot be the reference rows."),
        (["--by", "month", "--prob", "score", "--missingness", "random"], "--prob: cannot be combined with"),
        (["--by", "month", "--label", "lable"], "no column 'lable'. Did you mean 'label'?"),
        (["--by", "month", "--confidence-level", "2"], "--confidence-level: "),
    ],
)
@pytest.mark.parametrize("name", ["june.csv", "june.parquet"])
def test_options_that_make_no_sense_are_refused(refused, csv_rows, parquet_rows, options, message, name):
    assert message in refused("monitor", name, *options)


def test_dates_that_are_none_are_refused_by_row(refused, tmp_path):
    (tmp_path / "x.csv").write_text("day,label,score\n2026-01-01,1,0.5\n1.2.2026,0,0.3\n")
    assert refused("monitor", "x.csv", "--time", "day", "--period", "month") == (
        "column 'day' (--time): cannot read '1.2.2026' at row 1 as a date. Write dates like 2026-03-09 or "
        "2026-03-09T14:30, or give the column as --by."
    )
    (tmp_path / "x.csv").write_text("day,label,score\n1,1,0.5\n2,0,0.3\n")
    assert "cannot read 1.0 at row 0 as a date" in refused("monitor", "x.csv", "--time", "day", "--period", "month")


def test_rows_of_text_files_are_checked_as_other_commands_check_them(refused, tmp_path):
    (tmp_path / "x.csv").write_text("k,label,score\na,1,0.5\na,0,0.4\nb,-1,0.3\n")
    said = refused("monitor", "x.csv", "--by", "k")
    assert said.startswith("column 'label' (--label): a third value -1 at row 2 in addition to 1 and 0.")
    assert said.endswith("pass --missing-label -1.")
    (tmp_path / "x.csv").write_text("k,label,score\na,1,high\nb,0,low\n")
    said = refused("monitor", "x.csv", "--by", "k")
    assert said == "column 'score' (--score): expected numbers, found 'high' of type str at row 0."


def test_columns_of_parquet_that_cannot_be_counted_are_refused_by_name(refused, dated, tmp_path):
    third = dated.with_columns(label=pl.when(pl.col("team") == 1).then(-1).otherwise("label"))
    write(third, tmp_path / "x.parquet")
    said = refused("monitor", "x.parquet", *SEGMENTS)
    assert said.startswith("column 'label' (--label): a third value -1 in addition to 0 and 1.")
    assert said.endswith("pass --missing-label -1.")
    write(dated.with_columns(score=pl.lit("high")), tmp_path / "x.parquet")
    assert refused("monitor", "x.parquet", *SEGMENTS).startswith("column 'score' (--score): ")
    write(dated.with_columns(score=pl.lit(None, pl.Float64)), tmp_path / "x.parquet")
    assert refused("monitor", "x.parquet", *SEGMENTS).startswith("column 'score' (--score): ")
    write(dated.with_columns(booked=pl.lit("soon")), tmp_path / "x.parquet")
    said = refused("monitor", "x.parquet", *TOLD, "--time", "booked", "--period", "month")
    assert said.startswith("column 'booked' (--time): ")


def test_a_pattern_without_files_or_of_other_files_is_refused(refused, rows, tmp_path):
    (tmp_path / "empty").mkdir()
    assert refused("monitor", "empty", *SEGMENTS) == "empty: no Parquet file in this folder."
    assert refused("monitor", "part-*.parquet", *SEGMENTS) == "part-*.parquet: no file matches this pattern."
    for number in range(2):
        write(rows, tmp_path / f"{number}.feather")
    said = refused("monitor", "*.feather", *SEGMENTS)
    assert said == "*.feather: 2 files. Several must be text, or Parquet for Polars or DuckDB to count."


@pytest.mark.parametrize("share", [0.1, 0.9])
def test_damaged_parquet_is_refused(refused, parquet_rows, share):
    content = parquet_rows.read_bytes()
    parquet_rows.write_bytes(content[: int(share * len(content))])
    assert "cannot be read as Parquet; damaged or incomplete?" in refused("monitor", parquet_rows, *SEGMENTS)


def test_parquet_with_damage_inside_is_refused(refused, parquet_rows):
    content = bytearray(parquet_rows.read_bytes())
    content[8:-2000] = bytes(len(content) - 2008)
    parquet_rows.write_bytes(content)
    assert "june.parquet" in refused("monitor", parquet_rows, *SEGMENTS)


def test_an_output_or_picture_that_is_an_input_is_refused_and_left_alone(refused, dated, tmp_path):
    for number in range(2):
        write(dated, tmp_path / f"{number}.parquet")
    shutil.copy("1.parquet", "1.png")
    before = Path("1.parquet").read_bytes()
    for options in (["-o", "1.parquet", "-f", "csv"], ["--plot", "1.parquet"]):
        said = refused("monitor", "*.parquet", *SEGMENTS, *options)
        assert said.endswith("1.parquet is also read, and would be overwritten. Pass another file.")
    assert Path("1.parquet").read_bytes() == before


def test_without_a_dataframe_package_it_says_which_to_install(refused, csv_rows, monkeypatch):
    def none(*_):
        raise dm.InputError("to_frame: needs pandas, polars or pyarrow")

    monkeypatch.setattr("darkmetrics.frames.texts.to_native_frame", none)
    said = refused("monitor", csv_rows, *SEGMENTS)
    assert said == (
        "data: counting rows of text takes one of polars, pyarrow, pandas, and none is installed; "
        "pip install 'darkmetrics[files]'."
    )


# ------------------------------------------------------------------------------------------------------ every night


NIGHTLY = ("--by", "month", *TOLD, "--target", "recall=0.4")


def test_only_a_new_alert_is_exit_code_one_when_others_are_known(run, rows, csv_rows, tmp_path):
    state = ("--known-alerts", "last.json", "-o", "last.json")
    first = run("monitor", csv_rows, *NIGHTLY, *state)
    assert first.code == 1
    assert "--known-alerts: last.json is not there yet, so that every alert is new." in first.err
    before = json.loads(Path("last.json").read_text())
    assert before["alerts"]
    assert all(alert["new"] for alert in before["alerts"])
    second = run("monitor", csv_rows, *NIGHTLY, *state)
    assert second.code == 0
    assert "none of them new" in second.err
    now = json.loads(Path("last.json").read_text())
    # The same alerts, which are never hidden, but known.
    assert [alert | {"new": True} for alert in now["alerts"]] == before["alerts"]
    assert not any(alert["new"] for alert in now["alerts"])
    worse = rows.with_columns(score=pl.when(pl.col("month") == "2026-03").then(0.01).otherwise("score"))
    third = run("monitor", write(worse, tmp_path / "x.csv"), *NIGHTLY, *state)
    assert third.code == 1
    assert "1 of them new: 2026-03 (" in third.err
    # Without --known-alerts every alert counts, as a gate wants it.
    assert run("monitor", csv_rows, *NIGHTLY).code == 1


def test_known_alerts_may_be_in_another_file(run, csv_rows):
    run("monitor", csv_rows, *NIGHTLY, "-o", "last.json")
    done = run("monitor", csv_rows, *NIGHTLY, "--known-alerts", "last.json")
    assert done.code == 0
    assert re.search(r"\n *known since 20\d\d-\d\d-\d\d +2026-0\d ", done.out)


@pytest.mark.parametrize("asked", [("--since", "2026-05"), ("--last-periods", "2")])
def test_alerts_look_at_the_periods_asked_for(run, csv_rows, rows, asked):
    done = run("monitor", csv_rows, *NIGHTLY, *asked, "-f", "json")
    result = expected(rows, "month", targets={"recall": 0.4}, since="2026-05")
    assert json.loads(done.out) == result.to_dict()
    assert len(result.q_values) == 2
    assert "Alerts look at 2026-05 and later: 2 of 6 groups are judged." in done.err


def test_a_page_is_written_besides_the_result(run, csv_rows):
    plain = run("monitor", csv_rows, *NIGHTLY)
    done = run("monitor", csv_rows, *NIGHTLY, "--report", "june.html", "--title", "June & July")
    assert (done.out, done.code) == (plain.out, plain.code)
    page = Path("june.html").read_text(encoding="utf-8")
    assert "<h1><bdi>June &amp; July</bdi></h1>" in page
    assert "darkmetrics monitor" in page
    assert "june.csv" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--known-alerts", "no.json"], "--known-alerts: cannot read 'no.json': No such file or directory."),
        (["--known-alerts", "june.csv"], "--known-alerts: 'june.csv' is no JSON. Give what --format json wrote."),
        (
            ["--known-alerts", "x.txt", "-o", "x.txt"],
            "--known-alerts: x.txt is the --output as well, which must then be JSON",
        ),
        (["--since", "2026-09"], "--since: '2026-09' is after the newest period, 2026-06."),
        (["--since", "2026-05", "--last-periods", "2"], "--last-periods: "),
        (["--last-periods", "0"], "--last-periods: 0. It must be a whole number of periods, at least 1."),
        (["--report", "x.md"], "--report: x.md must end in .html or .htm."),
        (["--report", ""], "--report: is empty. Pass a file."),
        (["--report", "no/x.html"], "--report: there is no directory no."),
        (
            ["--report", "x.html", "-o", "x.html", "-f", "csv"],
            "--report: x.html is another output as well. Pass another file.",
        ),
        (["--report", "june.csv"], "--report: june.csv is also read, and would be overwritten. Pass another file."),
    ],
)
def test_what_a_nightly_job_gets_wrong_is_said_by_option(refused, csv_rows, options, message):
    assert refused("monitor", "june.csv", *NIGHTLY, *options).startswith(message)


def test_a_run_that_fails_leaves_what_is_known_alone(refused, run, csv_rows):
    run("monitor", csv_rows, *NIGHTLY, "-o", "last.json")
    before = Path("last.json").read_bytes()
    other = ("--by", "country", *TOLD, "--known-alerts", "last.json", "-o", "last.json")
    said = refused("monitor", csv_rows, *other)
    assert said.startswith("--known-alerts: its groups are by 'month', those of now by 'country'.")
    assert Path("last.json").read_bytes() == before
