"""darkmetrics evaluate: what the library says, in every format, with exit codes that can gate a pipeline."""

import csv
import io
import json
import math

import numpy as np
import pytest

import darkmetrics as dm
from cli.tables import csv_text, rows

QUIET = ("--missingness", "by_label")


def expected(data, **settings):
    return dm.evaluate(data.label, data.score, **({"missingness": "by_label"} | settings))


def test_the_table_has_the_words_and_the_numbers_of_the_library_on_standard_output(run, csv_file, data):
    done = run("evaluate", csv_file, *QUIET)
    result = expected(data)
    assert done.code == 0
    said = " ".join(done.out.split())
    for sentence in (*result._words(), *result._notes()):
        assert sentence in said
    header, rows = result._table()
    for cell in (*header[:-1], *(cell for row in rows for cell in row[:-1])):
        assert cell in done.out
    assert "undefined" not in done.out  # no metric can be
    (line,) = done.err.splitlines()
    assert line.startswith("Guessed 'label' as --label and 'score' as --score. Full command: darkmetrics evaluate ")
    assert line.endswith("june.csv --missingness by_label --label label --score score")


@pytest.mark.parametrize("command", ["evaluate", "check", "curves", "diagnose", "bounds", "metrics", "demo"])
def test_a_pipe_gets_80_columns(run, small_file, tmp_path, command):
    files = {"metrics": (), "demo": ("-o", tmp_path / "demo.html")}.get(command, (small_file,))
    targets = ("--fail-under", "recall>=0.5") if command == "check" else ()
    done = run(command, *files, *targets)
    assert max(map(len, done.out.splitlines())) <= 80
    assert done.out.count("\n\n\n") == 0


def test_a_pipe_gets_the_assumption_and_the_verdict(run, csv_file):
    for format_, bold in (("table", "{}:"), ("markdown", "**{}:**")):
        done = run("check", csv_file, *QUIET, "--fail-under", "recall=0.99", "-f", format_)
        assert "Assumed: labels are missing by label" in " ".join(done.out.split())
        assert bold.format("FAIL") + " recall at least 0.99" in done.out
        assert "FAIL" not in done.err
        met = run("check", csv_file, *QUIET, "--fail-under", "recall=0.01", "-f", format_)
        assert bold.format("PASS") in met.out


@pytest.mark.parametrize("format_", ["json", "csv", "prometheus", "junit"])
def test_beside_a_format_for_programs_words_go_to_standard_error(run, csv_file, format_):
    done = run("check", csv_file, *QUIET, "--fail-under", "recall=0.99", "-f", format_)
    assert "Assumed: labels are missing by label" in done.err
    assert "FAIL: recall at least 0.99" in done.err


def test_json_is_the_dictionary_of_the_library(run, csv_file, data):
    assert json.loads(run("evaluate", csv_file, *QUIET, "--format", "json").out) == expected(data).to_dict()


def test_csv_has_a_row_per_metric(run, csv_file, data):
    lines = list(csv.DictReader(io.StringIO(run("evaluate", csv_file, *QUIET, "-f", "csv").out)))
    distribution = expected(data)["recall"]
    assert [line["metric"] for line in lines] == list(expected(data))
    assert float(lines[1]["mean"]) == distribution.mean()
    assert (float(lines[1]["low"]), float(lines[1]["high"])) == distribution.interval(0.9)


def test_markdown_is_a_table_with_as_many_cells_in_every_row(run, csv_file):
    text = run("evaluate", csv_file, *QUIET, "-f", "markdown").out.splitlines()
    lines = [line for line in text if line.startswith("|")]
    assert lines[1].startswith("|:--|--:|")
    assert {line.count("|") for line in lines} == {6}
    assert lines[3].startswith("| recall | 0.")
    # Sentences are paragraphs of their own.
    assert all(not text[i] or not text[i + 1] for i in range(text.index(lines[0]) - 1))
    assert next(line for line in text if line.startswith("|")).startswith("| metric | estimate |")


def test_several_labels_mean_missing(run, tmp_path, data):
    names = ("--label", "y", "--score", "p", "-m", "recall", "-f", "json")
    expected = dm.evaluate(data.label, data.score, metrics="recall", missingness="random").to_dict()
    open_ = [i for i, y in enumerate(data.label) if y is None]
    for codes, yes in ((("-1", "-9"), {0: 0, 1: 1}), (("?", "open"), {0: "no", 1: "yes"})):
        labels = [codes[open_.index(i) % 2] if y is None else yes[y] for i, y in enumerate(data.label)]
        path = tmp_path / "rows.csv"
        path.write_text(csv_text({"y": labels, "p": data.score}))
        told = [word for code in codes for word in ("--missing-label", code)]
        given = ("--pos-label", str(yes[1]), "--missingness", "random")
        assert json.loads(run("evaluate", path, *names, *given, *told).out) == expected


def test_options_reach_the_library(run, tmp_path, data):
    path = tmp_path / "rows.csv"
    words = [{None: "?", 0: "no", 1: "yes"}[y] for y in data.label]
    columns = {"outcome": words, "p": data.score, "w": data.weight, "mine": data.score}
    path.write_text(csv_text(columns))
    named = ("evaluate", path, "--label", "outcome", "--score", "p", "--pos-label", "yes", "--missing-label", "?")
    told = (*named, "--weight", "w", "--threshold", "0.3", "--confidence-level", "0.8", "-f", "json")
    more = ("-m", "recall", "--metric", "fbeta(2)", "--prob", "mine", "--zero-division", "0")
    found = json.loads(run(*told, *more).out)
    result = dm.evaluate(
        data.label,
        data.score,
        threshold=0.3,
        sample_weight=data.weight,
        missingness=dm.missing.Fixed(data.score),
        metrics=["recall", "fbeta(2)"],
        confidence_level=0.8,
        zero_division=0,
    )
    assert found == result.to_dict()


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--prob", "0.4"], {"missingness": dm.missing.Fixed(0.4)}),
        (["--prob", "0"], {"missingness": dm.missing.Fixed(0.0)}),
        (
            ["--prob", "0.5", "--method", "gaussian"],
            {"method": "gaussian", "missingness": dm.missing.Fixed(0.5)},
        ),
        (["--missingness", "unknown"], {"missingness": "unknown"}),
    ],
    ids=" ".join,
)
def test_models_and_methods_reach_the_library(run, csv_file, data, options, settings):
    done = run("evaluate", csv_file, "-m", "recall", "-f", "json", *options)
    assert json.loads(done.out) == dm.evaluate(data.label, data.score, metrics="recall", **settings).to_dict()


def test_decisions_from_a_column(run, tmp_path, data):
    path = tmp_path / "rows.csv"
    decided = [int(score > 0.6) for score in data.score]
    path.write_text(csv_text({"y": data.label, "score": data.score, "flag": decided}))
    done = run("evaluate", path, "--pred", "flag", *QUIET, "-f", "json")
    assert json.loads(done.out) == expected(data, y_pred=decided).to_dict()


def test_reference_rows_from_a_second_file(run, csv_file, tmp_path, data):
    other = rows(seed=1)
    path = tmp_path / "reference.csv"
    path.write_text(csv_text({"label": other.truth, "score": other.score}))
    done = run("evaluate", csv_file, "--reference", path, "--missingness", "by_score_and_label", "-f", "json")
    result = dm.evaluate(
        data.label,
        data.score,
        missingness=dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(other.truth, other.score)),
    )
    assert json.loads(done.out) == result.to_dict()


def test_a_seed_makes_draws_repeatable(run, csv_file):
    drawn = [
        run("evaluate", csv_file, *QUIET, "-m", "recall", "--method", "monte_carlo", "--seed", seed, "-f", "json").out
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]


def test_warnings_name_options_and_not_arguments(run, csv_file):
    said = run("evaluate", csv_file).out
    assert "Warning: Scores differ between labeled and missing rows" in said
    assert "--missingness by_score" in said
    assert "--reference" in said
    assert "missingness=" not in said
    assert "reference=" not in said


def test_a_warning_of_0_by_0_names_the_option(run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,score\n1,0.9\n,0.4\n0,0.2\n")
    said = run("evaluate", path, "--prob", "0.5", "--threshold", "0.95", "-m", "precision").out
    said = " ".join(said.split())
    assert "Set --zero-division to 0, 1 or nan to choose" in said
    assert "zero_division" not in said


def test_the_output_file_is_what_standard_output_would_have_been(run, csv_file, tmp_path):
    path = tmp_path / "out.json"
    shown = run("evaluate", csv_file, *QUIET, "-f", "json").out
    assert run("evaluate", csv_file, *QUIET, "-f", "json", "-o", path).out == ""
    assert path.read_text() == shown
    assert sorted(tmp_path.iterdir()) == [csv_file, path]


# Targets -----------------------------------------------------------------------------------------------------------

SMALL: dict = {"y": [1, 0, None, 1, None, 0, None], "p": [0.9, 0.2, 0.8, 0.4, 0.6, 0.7, 0.1]}
CHANCES = [0.7, 0.5, 0.2]


@pytest.fixture
def small_file(tmp_path):
    path = tmp_path / "small.csv"
    mine = [None, None, 0.7, None, 0.5, None, 0.2]
    path.write_text(csv_text({"y": SMALL["y"], "score": SMALL["p"], "mine": mine}))
    return path


def chance_by_brute_force(name, holds):
    """Probability over all labelings of the three missing rows."""
    total = 0.0
    for labels in np.ndindex(2, 2, 2):
        mass = math.prod(p if y else 1.0 - p for y, p in zip(labels, CHANCES, strict=True))
        gaps = iter(labels)
        y = np.array([next(gaps) if label is None else label for label in SMALL["y"]], dtype=float)
        yes = np.array(SMALL["p"]) >= 0.5
        recall = y[yes].sum() / y.sum()
        error = (y != yes).mean()
        total += mass * holds({"recall": recall, "error_rate": error}[name])
    return total


def test_the_probability_of_a_target_is_that_of_all_labelings(run, small_file):
    done = run("check", small_file, "--prob", "mine", "--fail-under", "recall=0.5", "-f", "json")
    (target,) = json.loads(done.out)["targets"]
    # A sum of eight products: the last bits may differ.
    assert target["probability"] == pytest.approx(chance_by_brute_force("recall", lambda x: x >= 0.5), abs=1e-12)
    assert target["side"] == "at least"


def test_a_metric_of_which_less_is_better_must_stay_at_or_below_its_target(run, small_file):
    done = run("check", small_file, "--prob", "mine", "-m", "fpr", "--fail-over", "fpr=0.5", "-f", "json")
    (target,) = json.loads(done.out)["targets"]
    distribution = dm.evaluate(SMALL["y"], SMALL["p"], missingness=dm.missing.Fixed(CHANCES), metrics="fpr")["fpr"]
    assert target["side"] == "at most"
    assert target["probability"] == distribution.cdf(0.5)


def test_exit_code_one_exactly_when_a_target_is_met_with_less_than_the_probability_asked_for(run, small_file):
    chance = chance_by_brute_force("recall", lambda x: x >= 0.6)
    assert 0.1 < chance < 0.9
    command = ("check", small_file, "--prob", "mine", "--fail-under", "recall=0.6", "--confidence")
    assert run(*command, chance - 0.01).code == 0
    missed = run(*command, chance + 0.01)
    assert missed.code == 1
    assert f"recall at least 0.6 has probability {chance:.4g}, less than" in " ".join(missed.out.split())


def test_one_missed_target_among_met_ones_is_enough_for_exit_code_one(run, small_file):
    command = ("check", small_file, "--prob", "mine", "--fail-under", "accuracy=0.1", "--fail-under", "recall=0.99")
    assert run(*command).code == 1
    assert run(*command[:-2]).code == 0


def test_a_metric_with_a_target_is_evaluated_even_if_not_asked_for(run, small_file):
    done = run("check", small_file, "--prob", "mine", "-m", "recall", "--fail-under", "fbeta(2)=0.1", "-f", "csv")
    lines = list(csv.DictReader(io.StringIO(done.out)))
    assert [line["metric"] for line in lines] == ["recall", "fbeta(2)"]
    assert [line["target"] for line in lines] == ["", "0.1"]


@pytest.mark.parametrize(
    "text", ["recall", "recall=", "=0.8", "recall=high", "recall=nan", "recall>0.8", "recall==0.8"]
)
def test_a_target_that_cannot_be_read_is_refused(refused, small_file, text):
    assert refused("check", small_file, "--fail-under", text).startswith("--fail-under: cannot read")


def test_a_target_for_an_unknown_metric_suggests_one(refused, small_file):
    assert "Did you mean 'recall'?" in refused("check", small_file, "--fail-under", "recal=0.8")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_propensities_and_strata_are_columns(run, tmp_path, suffix):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(0)
    score, kind = rng.random(600), rng.integers(0, 3, 600)
    chance = np.where(score < 0.5, 0.4, 0.9)
    label = [
        int(y) if seen else None for y, seen in zip(rng.random(600) < score, rng.random(600) < chance, strict=True)
    ]
    table = pl.DataFrame({"label": label, "score": score, "chance": chance, "kind": kind})
    path = tmp_path / f"rows.{suffix}"
    table.write_csv(path) if suffix == "csv" else table.write_parquet(path)
    by_chance = json.loads(run("evaluate", path, "--propensity", "chance", "-f", "json").out)
    assert by_chance == dm.evaluate(label, score, missingness=dm.missing.Propensity(chance)).to_dict()
    within = json.loads(run("evaluate", path, "--strata", "kind", "--missingness", "by_score", "-f", "json").out)
    assert within == dm.evaluate(label, score, missingness=dm.missing.ByScore(strata=kind)).to_dict()
    groups = json.loads(run("monitor", path, "--by", "kind", "--propensity", "chance", "-f", "json").out)
    assert len(groups["groups"]) == 3
    refused = run("evaluate", path, "--propensity", "chance", "--missingness", "by_score")
    assert refused.code == 2
    assert "--propensity: cannot be combined with --missingness by_score" in refused.err


def test_many_files_are_counted_with_their_propensities(run, tmp_path):
    pl = pytest.importorskip("polars")
    rng = np.random.default_rng(1)
    score = rng.random(800)
    chance = np.where(score < 0.5, 0.4, 0.9)
    label = [
        int(y) if seen else None for y, seen in zip(rng.random(800) < score, rng.random(800) < chance, strict=True)
    ]
    table = pl.DataFrame({"label": label, "score": score, "chance": chance})
    for part in range(2):
        table[400 * part : 400 * (part + 1)].write_parquet(tmp_path / f"{part}.parquet")
    found = json.loads(run("evaluate", tmp_path / "*.parquet", "--propensity", "chance", "-f", "json").out)
    assert found == dm.evaluate(label, score, missingness=dm.missing.Propensity(chance)).to_dict()
    refused = run("evaluate", tmp_path / "*.parquet", "--propensity", "chance", "--missingness", "by_score")
    assert refused.code == 2


def test_the_scope_may_be_the_population(run, csv_file, data):
    there = expected(data, scope="population")
    done = run("check", csv_file, *QUIET, "--scope", "population", "--fail-under", "recall=0.5")
    assert f"Intervals are for the population that these {there.data.n_rows:,} rows came from" in " ".join(
        done.out.split()
    )
    found = json.loads(run("evaluate", csv_file, *QUIET, "--scope", "population", "-f", "json").out)
    assert found == there.to_dict()
    assert found["scope"] == "population"
    wrong = run("evaluate", csv_file, *QUIET, "--scope", "all")
    assert wrong.code == 2
    assert "--scope" in wrong.err


def test_groups_may_be_judged_by_their_population(run, csv_file, data):
    done = run("monitor", csv_file, "--by", "label", "--metric", "accuracy", "--prob", "0.5", "--scope", "population")
    assert "for the population that each group comes from" in " ".join(done.out.split())
    named = ("--by", "label", "-m", "accuracy", "--prob", "0.5", "-f", "csv")
    assert ",accuracy,rows," in run("monitor", csv_file, *named).out
    assert ",accuracy,population," in run("monitor", csv_file, *named, "--scope", "population").out


def test_the_suffix_of_the_output_says_prometheus_or_junit(run, csv_file, tmp_path):
    asked = ("check", csv_file, "-m", "recall", "--prob", "0.5", "--fail-under", "recall=0.01")
    for name, format_ in (("m.prom", "prometheus"), ("j.XML", "junit"), ("t.txt", "table"), ("plain", "table")):
        run(*asked, "-o", tmp_path / name)
        run(*asked, "-f", format_, "-o", tmp_path / "said")
        assert (tmp_path / name).read_text() == (tmp_path / "said").read_text()


@pytest.mark.parametrize("suffix", [".html", ".pdf", ".xlsx", ".parquet", ".YAML"])
def test_a_name_of_another_kind_of_file_is_refused_before_the_work(run, tmp_path, suffix):
    found = run("evaluate", tmp_path / "not there.csv", "-o", tmp_path / f"x{suffix}")
    assert found.code == 2
    assert (
        f"ends in {suffix.lower()}, which is not written here. Formats are table, json, csv, markdown, prom"
        in found.err
    )


def test_a_command_without_checks_writes_no_tests(run, csv_file, tmp_path):
    found = run("bounds", csv_file, "-o", tmp_path / "x.xml")
    assert found.code == 2
    assert "Formats are table, json, csv, markdown: end it" in found.err


def test_all_metrics_are_asked_for_by_one_word(run, csv_file, data):
    found = json.loads(run("bounds", csv_file, "-m", "all", "-m", "fbeta(3)", "-f", "json").out)
    assert list(found["metrics"]) == [
        *dm.bounds(data.label, data.score, metrics="all").to_dict()["metrics"],
        "fbeta(3)",
    ]


def test_rows_that_share_their_fate_are_told_by_a_column(run, tmp_path, data):
    path = tmp_path / "customers.csv"
    customer = [f"c{place // 4}" for place in range(len(data.label))]
    path.write_text(csv_text({"label": data.label, "score": data.score, "customer": customer}))
    asked = ("-m", "recall", "--missingness", "random", "--seed", "0", "-f", "json")
    found = json.loads(run("evaluate", path, "--clusters", "customer", *asked).out)
    result = dm.evaluate(data.label, data.score, clusters=customer, missingness="random", metrics="recall", rng=0)
    assert found["metrics"]["recall"] == result.to_dict()["metrics"]["recall"]
    assert "customer" in run("evaluate", path, "--clusters", "custmer").err
