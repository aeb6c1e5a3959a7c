"""What people type first: a file alone, patterns that the shell expands, a target in a pipeline; and how help reads."""

import json
import re

import pytest
from typer.main import get_command

import darkmetrics as dm
from cli.tables import csv_text
from darkmetrics._vocabulary import CALIBRATORS, MECHANISMS
from darkmetrics.calibrators.choice import WORDS as CALIBRATOR_WORDS
from darkmetrics.cli import app
from darkmetrics.missingness.choice import WORDS as MECHANISM_WORDS

COMMANDS = sorted(get_command(app).commands)  # type: ignore[attr-defined]  # it is a group


# A file alone -------------------------------------------------------------------------------------------------------


def test_bare_call_guesses_columns_and_evaluates(run, tmp_path, data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "june.csv").write_text(csv_text({"id": range(400), "is_fraud": data.label, "model_score": data.score}))
    done = run("june.csv")
    full = "darkmetrics evaluate june.csv --label is_fraud --score model_score"
    assert done.code == 0
    assert done.err == f"Guessed 'is_fraud' as --label and 'model_score' as --score. Full command: {full}\n"
    again = run(*full.split()[1:])
    assert (again.out, again.err) == (done.out, "")


@pytest.mark.parametrize("more", [("--missingness", "by_label"), ("-m", "recall", "-f", "json")])
def test_bare_call_takes_options(run, csv_file, more):
    bare, full = run(csv_file, *more), run("evaluate", csv_file, *more)
    assert (bare.code, bare.out, bare.err) == (0, full.out, full.err)


def test_bare_call_uses_settings_of_evaluate(run, csv_file, tmp_path):
    path = tmp_path / "ci.toml"
    path.write_text('missingness = "random"\n[evaluate]\nmetric = ["recall"]\n')
    done = run("--config", path, csv_file, "-f", "json")
    assert json.loads(done.out) == json.loads(
        run("evaluate", csv_file, "--missingness", "random", "-m", "recall", "-f", "json").out
    )
    assert f"Full command: darkmetrics --config {path} evaluate {csv_file} -f json" in done.err


def test_bare_call_of_a_missing_file_suggests_its_neighbor(refused, csv_file):
    assert refused(csv_file.with_name("jnue.csv")).endswith(f"no such file. Did you mean {str(csv_file)!r}?")


def test_misspelled_command_is_no_file(refused):
    assert refused("evaluat").startswith("No such command 'evaluat'.")


@pytest.mark.parametrize(
    ("columns", "label", "score"),
    [
        (["fraud", "p"], "fraud", "p"),
        (["customer_label", "Model-Score"], "customer_label", "Model-Score"),
        (["is_default", "default_probability"], "is_default", "default_probability"),
        (["label", "target_encoded", "score", "credit_score"], "label", "score"),
    ],
)
def test_likely_columns_are_guessed(run, tmp_path, data, columns, label, score):
    values = dict.fromkeys(columns, data.score) | {label: data.label}
    (tmp_path / "x.csv").write_text(csv_text(values))
    done = run(tmp_path / "x.csv", "-m", "recall", "--missingness", "random")
    assert f"Guessed {label!r} as --label and {score!r} as --score." in done.err
    assert done.code == 0


@pytest.mark.parametrize("columns", [["bad", "score"], ["label", "target", "score"], ["fraud", "risk"]])
def test_unlikely_or_ambiguous_columns_are_not_guessed(refused, tmp_path, data, columns):
    (tmp_path / "x.csv").write_text(csv_text(dict.fromkeys(columns, data.label)))
    assert re.search(r"Pass --(label|score)", refused(tmp_path / "x.csv"))


# Many files ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def lake(tmp_path, data, monkeypatch):
    """Three files of text and of Parquet, and a file with all rows."""
    pl = pytest.importorskip("polars")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lake").mkdir()
    table = pl.DataFrame({"label": data.label, "score": data.score, "k": [i % 2 for i in range(400)]})
    table.write_csv("all.csv")
    for i, part in enumerate(table.iter_slices(150)):
        part.write_csv(f"lake/{i}.csv")
        part.write_parquet(f"lake/{i}.parquet")
    return [f"lake/{i}" for i in range(3)]


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("command", ["evaluate", "bounds", "diagnose", "monitor", None])
def test_files_that_a_shell_has_listed_are_one_table(run, lake, suffix, command):
    more = ["--label", "label", "--score", "score", "-m", "recall", "-f", "json"]
    more += ["--by", "k"] if command == "monitor" else []
    named = [] if command is None else [command]
    many = run(*named, *(f"{part}.{suffix}" for part in lake), *more)
    one = run(*named, "all.csv", *more)
    assert many.code == one.code == 0
    numbers = [json.loads(done.out) for done in (many, one)]
    counts = [(document["total"] if command == "monitor" else document)["counts"] for document in numbers]
    assert counts[0] == counts[1]
    if suffix == "csv":
        assert numbers[0] == numbers[1]


def test_a_changed_file_may_be_many(run, lake):
    more = ["--label", "label", "--score", "score", "-m", "recall", "--missingness", "random", "-f", "json"]
    done = run("change", "lake/1.csv", "lake/2.csv", "lake/0.csv", *more)
    assert done.code == 0
    assert json.loads(done.out)["names"] == ["1.csv 2.csv", "0.csv"]


def test_standard_input_is_not_combined_with_files(refused, csv_file):
    assert refused("evaluate", csv_file, "-").startswith(
        "FILE: standard input (-) with files. Pass standard input alone, or files."
    )


# Targets ------------------------------------------------------------------------------------------------------------


def test_check_exits_with_1_if_a_target_is_missed(run, csv_file):
    command = ("check", csv_file, "--label", "label", "--score", "score", "--missingness", "by_label", "--fail-under")
    missed, met = run(*command, "recall=0.8"), run(*command, "recall=0.1")
    assert (missed.code, met.code) == (1, 0)
    assert missed.out.splitlines()[-1].startswith("FAIL: recall at least 0.8 has probability ")
    assert met.out.splitlines()[-1].startswith("PASS: recall at least 0.1 has probability ")


def test_check_fails_over_a_maximum(run, csv_file, data):
    command = ("check", csv_file, "--missingness", "by_label", "--fail-over")
    assert run(*command, "fpr=0.9").code == 0
    done = run(*command, "fpr=0.001", "-f", "json")
    assert done.code == 1
    (target,) = json.loads(done.out)["targets"]
    expected = dm.evaluate(data.label, data.score, missingness="by_label", metrics="fpr")["fpr"].cdf(0.001)
    assert (target["side"], target["probability"]) == ("at most", expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--fail-under: no target. Pass one, such as --fail-under recall=0.8"),
        (["--fail-under", "fpr=0.1"], "--fail-under: 'fpr=0.1', but lower is better. Write --fail-over fpr=0.1."),
        (
            ["--fail-over", "recall=0.8"],
            "--fail-over: 'recall=0.8', but higher is better. Write --fail-under recall=0.8.",
        ),
        (
            ["--fail-under", "recall=80"],
            "--fail-under: 80 for 'recall'. recall lies between 0 and 1. Pass 0.8 for 80%.",
        ),
        (["--fail-under", "recall=0.1", "--fail-under", "recall=0.2"], "--fail-under: 'recall' has two targets."),
    ],
)
def test_check_refuses_targets_that_make_no_sense(refused, csv_file, options, message):
    assert refused("check", csv_file, *options).startswith(message)


# Warnings -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["evaluate", "check", "report"])
@pytest.mark.parametrize("format_", ["table", "markdown", "json", "csv"])
def test_a_warning_appears_once(run, csv_file, tmp_path, monkeypatch, command, format_):
    monkeypatch.chdir(tmp_path)
    more = {
        "check": ["--fail-under", "recall=0.1"],
        "report": ["-o", "page.json"],
    }.get(command, [])
    done = run(command, csv_file, *more, "-f", format_)
    text = " ".join((done.err if format_ in ("json", "csv") else done.out + done.err).split())
    assert text.count("Scores differ between labeled and missing rows") == 1


# The mechanism ------------------------------------------------------------------------------------------------------


def test_words_of_options_are_those_of_the_library():
    assert list(MECHANISMS) == list(MECHANISM_WORDS)
    assert set(CALIBRATORS) == set(CALIBRATOR_WORDS)


@pytest.mark.parametrize(
    ("options", "mechanism"),
    [
        (["--missingness", "by_score", "--calibrator", "platt"], dm.missing.ByScore(calibrator="platt")),
        (["--missingness", "random", "--calibrator", "beta"], dm.missing.Random(calibrator="beta")),
        (["--missingness", "MNAR"], "by_label"),
        (["--prob", "0.25"], dm.missing.Fixed(0.25)),
    ],
)
def test_options_are_fields_of_a_mechanism(run, csv_file, data, options, mechanism):
    found = json.loads(run("evaluate", csv_file, "-m", "recall", *options, "-f", "json").out)
    expected = dm.evaluate(data.label, data.score, metrics="recall", missingness=mechanism)
    assert found["metrics"] == expected.to_dict()["metrics"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--missingness", "by_score", "--prob", "0.5"], "--prob: cannot be combined with --missingness by_score."),
        (["--missingness", "delayed", "--strata", "id"], "--strata: cannot be combined with --missingness delayed."),
        (["--propensity", "id", "--strata", "id"], "--strata: cannot be combined with --propensity."),
        (["--reviewed", "some"], "--reviewed: unknown reviewed 'some'. Choose from 'all', 'by_score', 'propensity'."),
        (["--missingness", "by_label", "--calibrator", "bta"], "--calibrator: unknown calibrator 'bta'."),
    ],
)
def test_options_of_different_mechanisms_are_refused(refused, csv_file, options, message):
    assert message in refused("evaluate", csv_file, *options)


# Help ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", COMMANDS)
def test_each_panel_of_the_help_fits_on_a_screen(capsys, monkeypatch, command):
    from darkmetrics.cli import run as run_command

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "dumb")
    assert run_command([command, "--help"]) == 0
    panels = re.split(r"^╭─ ", capsys.readouterr().out, flags=re.MULTILINE)[1:]
    names = [panel.partition(" ─")[0] for panel in panels]
    assert "Output" in names
    assert command in ("metrics", "demo") or (names[0], "Data" in names) == ("Files", True)
    assert max(len(panel.splitlines()) for panel in panels) <= 24


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_panel(command):
    parameters = get_command(app).commands[command].params  # type: ignore[attr-defined]  # it is a group
    loose = [one.name for one in parameters if one.name != "help" and not getattr(one, "rich_help_panel", None)]
    assert loose == []
