"""bounds, curves, diagnose, report, metrics and demo say what the library says, in every format."""

import csv
import html
import importlib.util
import io
import itertools
import json
import re
import runpy
import shlex
import sys
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest

import darkmetrics as dm
from cli.tables import csv_text, rows

ROOT = Path(__file__).parents[2]
COMMANDS = ["evaluate", "bounds", "curves", "diagnose", "metrics", "report", "demo"]


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def arguments_of(command, csv_file):
    told = [csv_file] if command not in ("metrics", "demo") else []
    told += ["--missingness", "by_label"] if command in ("evaluate", "curves", "report") else []
    return [command, *told, *(["-o", "report.html"] if command == "report" else [])]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_writes_every_format(run, small_file, command):
    texts = {}
    # A report draws the same page whatever the format; once is enough.
    drawn = ["json"] if command in ("report", "demo") else ["table", "json", "csv", "markdown"]
    for format_ in drawn:
        done = run(*arguments_of(command, small_file), "--format", format_, "--seed", 1)
        assert done.code == 0
        texts[format_] = done.out
    assert json.loads(texts["json"])["schema"].startswith("darkmetrics.")
    if len(texts) == 1:
        return
    header, *records = csv.reader(io.StringIO(texts["csv"]))
    assert records
    assert {len(record) for record in records} == {len(header)}
    tables = [block.splitlines() for block in texts["markdown"].split("\n\n") if block.startswith("| ")]
    assert tables
    for table in tables:
        assert len({line.count("|") for line in table}) == 1
    assert len(texts["table"].splitlines()) > 1


@pytest.mark.parametrize("command", ["evaluate", "bounds", "curves", "diagnose", "metrics"])
def test_the_suffix_of_the_output_is_its_format_unless_told(run, small_file, command):
    fewer = {"curves": ["--thresholds", "3", "-m", "recall"], "evaluate": ["-m", "recall"]}
    few = fewer.get(command, [])
    told = [*arguments_of(command, small_file), *few, "--seed", 1]
    names = {"json": "x.json", "csv": "x.CSV", "markdown": "x.md", "table": "x"}
    expected = {format_: run(*told, "--format", format_).out for format_ in names}
    assert len(set(expected.values())) == 4
    for format_, name in names.items():
        assert run(*told, "-o", name).code == 0
        assert Path(name).read_text(encoding="utf-8") == expected[format_]
        assert run(*told, "-o", name, "--format", "csv").code == 0
        assert Path(name).read_text(encoding="utf-8") == expected["csv"]


def test_the_suffix_of_a_report_leaves_standard_output_a_table(run, small_file):
    told = [small_file, "--missingness", "by_label", "-m", "recall"]
    assert run("report", *told, "-o", "x.json").out == run("evaluate", *told).out


@pytest.mark.parametrize("command", ["evaluate", "check", "bounds", "curves", "curves --best", "diagnose", "metrics"])
def test_the_columns_of_csv_are_those_that_the_page_explains(run, small_file, command):
    explained = runpy.run_path(str(ROOT / "docs/command_line.py"))["CSV"][command]
    more = {
        "curves --best": ["--best", "f1"],
        "evaluate": ["--scope", "population"],
        "check": ["--fail-under", "recall=0.5", "--confidence", "0", "--scope", "population"],
    }
    done = run(*arguments_of(command.split()[0], small_file), *more.get(command, []), "-f", "csv")
    assert done.code == 0
    assert done.out.splitlines()[0].split(",") == list(explained)


def test_bounds_hold_every_labeling_and_are_attained(run, tmp_path):
    label, score = [1, 0, None, 1, None, 0, None], [0.9, 0.2, 0.8, 0.4, 0.6, 0.7, 0.1]
    (tmp_path / "x.csv").write_text(csv_text({"y": label, "score": score}))
    found = json.loads(run("bounds", "x.csv", "-m", "recall", "-m", "accuracy", "-f", "json").out)["metrics"]
    values: dict = {"recall": [], "accuracy": []}
    yes = np.array(score) >= 0.5
    for gaps in itertools.product([0, 1], repeat=3):
        rest = iter(gaps)
        y = np.array([next(rest) if value is None else value for value in label])
        values["recall"].append(y[yes].sum() / y.sum())
        values["accuracy"].append((y == yes).mean())
    for name, all_values in values.items():
        # Ratios of small counts: equal but for the last bit.
        assert found[name]["lowest_possible"] == pytest.approx(min(all_values), abs=1e-12)
        assert found[name]["highest_possible"] == pytest.approx(max(all_values), abs=1e-12)
        assert found[name]["bounds_sharp"]
        assert found[name]["oracle_pessimistic"] == pytest.approx(min(all_values), abs=1e-12)


def test_curves_are_those_of_the_library(run, csv_file, data):
    told = ("--missingness", "by_label", "--thresholds", "0.2,0.4,0.6", "-m", "recall", "-f", "json")
    result = dm.evaluate(data.label, data.score, missingness="by_label", metrics="recall")
    expected = dm.threshold_curves(result, metrics="recall", thresholds=[0.2, 0.4, 0.6], confidence_levels=[0.9])
    assert json.loads(run("curves", csv_file, *told).out) == expected.to_dict()


@pytest.mark.parametrize(
    ("option", "thresholds"), [([], 10), (["--thresholds", "5"], 5), (["--thresholds", "0.1,0.9"], [0.1, 0.9])]
)
def test_a_table_of_curves_shows_every_threshold(run, csv_file, data, option, thresholds):
    done = run("curves", csv_file, "--prob", "0.5", *option)
    result = dm.evaluate(data.label, data.score, missingness=dm.missing.Fixed(0.5), metrics="recall")
    expected = dm.threshold_curves(result, metrics="recall", thresholds=thresholds).thresholds
    tables = [block.splitlines() for block in done.out.split("\n\n") if block.lstrip().startswith("threshold")]
    assert len(tables) == 2  # four metrics do not fit into 80 columns
    for _, *lines in tables:
        assert [line.split()[0] for line in lines] == [f"{threshold:.4g}" for threshold in expected]


def test_the_best_threshold_is_that_of_the_library(run, csv_file, data):
    told = ("--missingness", "by_label", "--best", "f1", "--risk", "0.1", "--seed", "3", "-f", "json")
    found = json.loads(run("curves", csv_file, *told).out)
    result = dm.evaluate(data.label, data.score, missingness="by_label", metrics="f1")
    expected = dm.threshold_curves(result, metrics="f1").best_threshold("f1", risk=0.1, rng=3)
    assert (found["threshold"], found["value"], found["risk"]) == (expected.threshold, expected.value, 0.1)
    assert found["probability_better"] == expected.probability_better


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--risk", "mean"], "--risk: needs --best. Pass both or none."),
        (["--thresholds", "few"], "--thresholds: cannot read 'few'."),
        (["--best", "f1", "--risk", "low"], "--risk: 'low'. It must be 'mean' or a number"),
        (["--best", "f1", "--risk", "nan"], "--risk: nan. It must be 'mean' or a number"),
        (["--best", "recal"], "--best: unknown metric 'recal'. Did you mean 'recall'?"),
        (["--best", "roc_auc"], "--best: 'roc_auc' does not depend on the threshold."),
        (["-m", "roc_auc"], "--metric: 'roc_auc' does not depend on the threshold."),
        (["-m", "roc_auc"], "such as 'precision', 'recall' or 'expected_cost(1, 10)'."),
        (["--thresholds", "0"], "--thresholds: 0. At least one is needed."),
        (["--thresholds", "0.1,nan"], "--thresholds: "),
        (["--thresholds", "9" * 5000], "--thresholds: "),
    ],
)
def test_curves_that_cannot_be_made_are_refused(refused, csv_file, options, message):
    assert message in refused("curves", csv_file, "--missingness", "by_label", *options)


@pytest.mark.parametrize("count", ["5000000000", "99999999999999999999"])
def test_more_thresholds_than_scores_are_all_of_them(run, small_file, count):
    told = ("--prob", "0.5", "-m", "recall", "-f", "json", "--thresholds")
    assert run("curves", small_file, *told, count).out == run("curves", small_file, *told, "all").out != ""


def test_the_best_threshold_of_a_metric_asked_for_in_other_words_is_found(run, csv_file):
    done = run("curves", csv_file, "--prob", "0.5", "-m", "fbeta(2)", "--best", "fbeta(2.0)")
    assert done.code == 0


def test_a_diagnosis_is_that_of_the_library_in_options(run, csv_file, data):
    assert json.loads(run("diagnose", csv_file, "-f", "json").out) == dm.diagnose(data.label, data.score).to_dict()
    shown = run("diagnose", csv_file).out
    assert shown.splitlines()[0] == str(dm.diagnose(data.label, data.score)).splitlines()[0]
    assert "missingness=" not in shown


def test_metrics_lists_every_metric(run):
    listed = json.loads(run("metrics", "-f", "json").out)["metrics"]
    assert len(listed) == len(dm.metrics.registered_names())
    assert all(entry["meaning"] and entry["better"] in ("higher", "lower", "neither") for entry in listed)


def test_the_report_is_that_of_the_library(run, small_file):
    # Two metrics of few rows: what a page says of the others is no business of the command.
    told = (
        "--missingness",
        "by_label",
        "-m",
        "recall",
        "-m",
        "f1",
        "--target",
        "recall=0.3",
        "--title",
        "It's June",
        "-o",
    )
    for name in ("page.json", "page.html", "page.md", "page.markdown"):
        done = run("report", small_file, *told, name)
        assert done.code == 0
        assert f"Report: {Path(name).resolve()}" in done.err
    few = rows(60)
    result = dm.evaluate(few.label, few.score, missingness="by_label", metrics=["recall", "f1"])
    views = {"page.json": "json", "page.html": "html", "page.md": "markdown", "page.markdown": "markdown"}
    for name, view in views.items():
        command = shlex.join(["darkmetrics", "report", str(small_file), *told, name])
        source = {"file": str(small_file), "label column": "label", "score column": "score", "command": command}
        expected = dm.report.summarize(result, targets={"recall": 0.3}, title="It's June", source=source)
        assert Path(name).read_text(encoding="utf-8") == dm.report.render(expected, view)


@pytest.mark.parametrize("command", ["report", "compare", "change"])
def test_a_page_says_which_command_makes_it_again(run, small_file, tmp_path, command):
    earlier, few = tmp_path / "earlier.csv", rows(50)
    earlier.write_text(csv_text({"label": few.label, "score": [one / 2.0 for one in few.score]}), encoding="utf-8")
    told = {
        "report": ["-o", "page.html"],
        "compare": ["--label", "label", "--score", "score", "--score", "old=score", "--report", "page.html"],
        "change": [earlier, "--report", "page.html"],
    }[command]
    done = run(command, small_file, *told, "-m", "recall", "--missingness", "by_label")
    assert done.code == 0, done.err
    words = map(str, ["darkmetrics", command, small_file, *told, "-m", "recall", "--missingness", "by_label"])
    code = re.findall(r"<pre><code>(.*?)</code></pre>", Path("page.html").read_text(encoding="utf-8"), re.DOTALL)
    assert [html.unescape(one) for one in code] == [shlex.join(words)]


def test_a_missed_target_is_exit_code_one_and_the_report_is_there(run, small_file):
    told = ["--missingness", "by_label", "-m", "recall", "--target", "recall=0.999"]
    done = run("report", small_file, *told, "-o", "page.html")
    assert done.code == 1
    assert Path("page.html").stat().st_size > 1000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "--output: missing. Pass where the report goes"),
        (["-o", "page.txt"], "page.txt must end in .html, .md, .json or .pdf."),
    ],
)
def test_a_report_needs_a_name_that_says_what_it_is(refused, csv_file, options, message):
    assert message in refused("report", csv_file, *options)


def test_hostile_file_and_column_names_are_text_in_the_report(run, tmp_path):
    few = rows(60)
    path = tmp_path / "<script>alert(1)<%2Fscript>.csv"
    path.write_text(csv_text({"<img src=x>": few.label, "score": few.score}))
    done = run("report", path, "--label", "<img src=x>", "--missingness", "by_label", "-m", "recall", "-o", "page.html")
    assert done.code == 0
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<script>alert(1)" not in page
    assert "<img src=x>" not in page


def test_the_demo_shows_the_truth_and_writes_a_report_without_scikit_learn(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    done = run("demo")
    assert done.code == 0
    assert done.err.splitlines()[-1] == f"Report: {Path('darkmetrics-demo.html').resolve()}"
    assert "285 rows: 144 labeled, 141 missing" in done.out
    assert Path("darkmetrics-demo.html").stat().st_size > 1000


def test_the_data_of_the_demo_are_what_the_model_of_the_example_says(monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "examples")
    spec = importlib.util.spec_from_file_location("demo_data", ROOT / "examples/demo_data.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    shipped = (files("darkmetrics") / "_demo" / "breast_cancer.csv").read_text().splitlines()
    assert len("\n".join(shipped)) < 20_000
    made = module.csv_lines()
    assert len(made) == len(shipped)
    for ours, theirs in zip(shipped[1:], made[1:], strict=True):
        (label, score, truth), (label_made, score_made, truth_made) = ours.split(","), theirs.split(",")
        assert (label, truth) == (label_made, truth_made)
        # Solvers of different versions stop at slightly different places.
        assert float(score) == pytest.approx(float(score_made), abs=1e-4)


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["ev"], ["evaluate"]),
        (["evaluate", "x.csv", "--missingness", "by_s"], ["by_score", "by_score_and_label"]),
        (["evaluate", "x.csv", "--metric", "roc"], ["roc_auc"]),
        (["evaluate", "x.csv", "--missing-"], ["--missing-label"]),
    ],
    ids=" ".join,
)
def test_the_shell_completes_commands_options_and_values(start, typed, offered):
    words = " ".join(["darkmetrics", *typed])
    settings = {"_DARKMETRICS_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(typed))}
    with start(env=settings) as process:
        out, _ = process.communicate()
    assert sorted(out.split()) == offered
