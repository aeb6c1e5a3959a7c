"""What pipelines read and write: Prometheus text, JUnit XML, a file of settings, scopes of gates."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from lxml import etree
from prometheus_client.parser import text_string_to_metric_families

import darkmetrics as dm
from cli.tables import csv_text, rows
from darkmetrics.cli.junit import as_junit
from darkmetrics.cli.prometheus import GAUGES, as_prometheus
from darkmetrics.cli.rendering import Check, Result

SCHEMA = etree.XMLSchema(etree.parse(Path(__file__).with_name("junit.xsd")))
QUIET = ("--missingness", "by_label")


@pytest.fixture
def shops(tmp_path, monkeypatch):
    """Three shops, one of which has too few labels, and scores of two models; the folder is the current one."""
    monkeypatch.chdir(tmp_path)
    data = rows(300)
    other = np.random.default_rng(1).random(300).round(3).tolist()
    shop = ["web" if i < 150 else 'a"b\\c' if i < 292 else "tiny" for i in range(300)]
    quoted = ['"' + text.replace('"', '""') + '"' for text in shop]
    columns = {"shop": quoted, "label": data.label, "score": data.score, "other": other}
    Path("shops.csv").write_text(csv_text(columns), encoding="utf-8")
    data.other = other
    return data


def parsed(text):
    """The gauges by name, each a dictionary from labels to value, as Prometheus's own client reads them."""
    families = list(text_string_to_metric_families(text))
    assert all(family.type == "gauge" and family.documentation for family in families)
    return {
        family.name: {tuple(sorted(sample.labels.items())): sample.value for sample in family.samples}
        for family in families
    }


def cases_of(text):
    """The cases of a JUnit file, which must fit the schema."""
    document = etree.fromstring(text.encode())
    SCHEMA.assertValid(document)
    (suite,) = document
    cases = suite.findall("testcase")
    assert int(suite.get("tests")) == len(cases)
    outcomes = {(case.get("classname"), case.get("name")): case[0].tag if len(case) else "passed" for case in cases}
    assert int(suite.get("failures")) == list(outcomes.values()).count("failure")
    assert int(suite.get("skipped")) == list(outcomes.values()).count("skipped")
    return outcomes


def test_prometheus_reads_the_numbers_of_an_evaluation(run, shops):
    done = run("check", "shops.csv", *QUIET, "--fail-under", "recall=0.99", "-f", "prometheus")
    assert done.code == 1
    found = parsed(done.out)
    result = dm.evaluate(shops.label, shops.score, missingness="by_label")
    for name, distribution in result.items():
        labels = (("metric", name), ("scope", "rows"))
        assert found["darkmetrics_mean"][labels] == pytest.approx(distribution.mean(), rel=1e-11)
        ends = found["darkmetrics_low"][labels], found["darkmetrics_high"][labels]
        assert ends == pytest.approx(distribution.interval(0.9), rel=1e-11)
    labels = (("metric", "recall"), ("scope", "rows"))
    assert found["darkmetrics_target_met"] == {labels: 0.0}
    assert found["darkmetrics_target_probability"][labels] == pytest.approx(result.target_probability("recall", 0.99))
    assert found["darkmetrics_checks_failed"] == {(): 1.0}


def test_prometheus_has_groups_as_labels_whatever_they_are_called(run, shops):
    done = run(
        "monitor", "shops.csv", "--by", "shop", *QUIET, "-m", "recall", "--target", "recall=0.2", "-f", "prometheus"
    )
    found = parsed(done.out)
    rows_of = {dict(labels)["shop"]: value for labels, value in found["darkmetrics_rows"].items()}
    assert rows_of == {"web": 150.0, 'a"b\\c': 142.0, "tiny": 8.0}
    assert set(found) <= {f"darkmetrics_{name}" for name in GAUGES} | {"darkmetrics_checks_failed"}


def test_a_change_is_no_gauge_of_the_metric_itself(run, shops):
    lines = Path("shops.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    Path("before.csv").write_text("".join([lines[0], *lines[1:200]]), encoding="utf-8")
    Path("after.csv").write_text("".join([lines[0], *lines[200:]]), encoding="utf-8")
    named = ("--label", "label", "--score", "score", "--missingness", "random", "-m", "recall", "-f")
    found = parsed(run("change", "after.csv", "before.csv", *named, "prometheus").out)
    wanted = json.loads(run("change", "after.csv", "before.csv", *named, "json").out)["metrics"]["recall"]
    labels = (("metric", "recall"), ("scope", "rows"))
    for name in ("mean", "low", "high", "lowest_possible", "highest_possible", "undefined"):
        assert f"darkmetrics_{name}" not in found
        assert found[f"darkmetrics_change_{name}"] == pytest.approx({labels: wanted[name]}, rel=1e-11)
    assert found["darkmetrics_probability_decreased"] == pytest.approx(
        {labels: wanted["probability_decreased"]}, rel=1e-11
    )
    assert "darkmetrics_difference_mean" not in found


def test_gauges_of_models_say_whether_they_are_about_the_population(run, shops):
    scores = ("--label", "label", "--score", "a=score", "--score", "b=other", "--missingness", "random", "-m", "recall")
    for scope in ("rows", "population"):
        found = parsed(run("compare", "shops.csv", *scores, "--scope", scope, "-f", "prometheus").out)
        assert {dict(labels)["scope"] for labels in found["darkmetrics_difference_mean"]} == {scope}


def test_the_page_on_dashboards_names_gauges_that_there_are():
    page = (Path(__file__).parents[2] / "docs/how-to/dashboards.md").read_text(encoding="utf-8")
    known = {f"darkmetrics_{name}" for name in GAUGES} | {"darkmetrics_checks_failed"}
    assert set(re.findall(r"darkmetrics_[a-z_]+", page)) <= known
    short = {f"darkmetrics{name}" for name in re.findall(r"`(_[a-z_]+)`", page)}
    assert short <= known
    (panel,) = re.findall(r"```json\n(.*?)```", page, flags=re.DOTALL)
    assert [target["refId"] for target in json.loads(panel)["targets"]] == ["mean", "low", "high"]


def test_columns_become_names_of_labels_and_what_is_unknown_is_left_out():
    records = [{"my col": "x\ny", "my-col": None, "7th": 1, "mean": "1", "mean_": 0.5, "low": None, "alert": True}]
    found = parsed(as_prometheus(Result({}, records, [], about=("my col", "my-col", "7th", "mean"))))
    labels = (("_7th", "1"), ("mean", "1"), ("my_col", "x\ny"), ("my_col_", ""))
    assert found == {"darkmetrics_mean": {labels: 0.5}, "darkmetrics_alert": {labels: 1.0}}


def test_junit_has_a_case_per_target(run, shops):
    told = ("check", "shops.csv", *QUIET, "--fail-under", "recall=0.99", "--fail-under", "accuracy=0.01", "-f", "junit")
    done = run(*told)
    assert done.code == 1
    outcomes = {name: outcome for (_, name), outcome in cases_of(done.out).items()}
    assert outcomes == {"recall at least 0.99": "failure", "accuracy at least 0.01": "passed"}
    assert "Assumed: labels are missing by label" in done.out


def test_junit_has_a_case_per_group_and_skips_what_is_known_or_too_small(run, shops):
    told = ("monitor", "shops.csv", "--by", "shop", *QUIET, "-m", "recall", "--target", "recall=0.9")
    first = run(*told, "-f", "junit")
    assert first.code == 1
    outcomes = cases_of(first.out)
    assert outcomes["darkmetrics.tiny", "recall >= 0.9"] == "skipped"
    assert outcomes["darkmetrics.web", "recall >= 0.9"] == "failure"
    run(*told, "-f", "json", "-o", "known.json")
    again = run(*told, "-f", "junit", "--known-alerts", "known.json")
    assert again.code == 0
    assert cases_of(again.out)["darkmetrics.web", "recall >= 0.9"] == "skipped"


def test_junit_of_a_gate_and_of_a_change(run, shops):
    scores = ("--label", "label", "--score", "a=score", "--score", "b=other")
    gate = run(
        "compare", "shops.csv", *scores, "--missingness", "random", "-m", "f1", "--gate", "better=0.9", "-f", "junit"
    )
    assert list(cases_of(gate.out).values()) == ["failure"]
    Path("before.csv").write_text(Path("shops.csv").read_text(), encoding="utf-8")
    named = (
        "--label",
        "label",
        "--score",
        "score",
        "--missingness",
        "random",
        "-m",
        "recall",
        "--max-decline",
        "recall=0.4",
    )
    change = run("change", "shops.csv", "before.csv", *named, "-f", "junit")
    assert cases_of(change.out) == {("darkmetrics", "recall not worse by more than 0.4"): "passed"}


def test_signs_that_xml_has_none_for_do_not_get_into_it():
    checks = [Check("a\x00<b>", False, "\x1b[31m & so on", group="\ud800"), Check("c", None, "d")]
    assert list(cases_of(as_junit(Result({}, [], [], above=["\x07"], checks=checks))).values()) == [
        "failure",
        "skipped",
    ]


def test_the_schema_refuses_what_is_no_junit():
    suite = '<testsuite name="a" tests="1" failures="0" errors="0"><testcase name="b"/></testsuite>'
    broken = f"<testsuites>{suite}</testsuites>"
    assert not SCHEMA.validate(etree.fromstring(broken))


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("evaluate", "shops.csv"), "a target to darkmetrics check"),
        (("monitor", "shops.csv", "--by", "shop"), "--target"),
        (("compare", "shops.csv", "--label", "label", "--score", "a=score", "--score", "b=other"), "--gate"),
        (("change", "shops.csv", "shops.csv"), "--max-decline"),
    ],
    ids=lambda part: part if isinstance(part, str) else part[0],
)
def test_a_file_of_tests_without_a_check_is_refused(refused, shops, command, option):
    assert f"there is none. Pass {option}." in refused(*command, "-f", "junit")


# The population ----------------------------------------------------------------------------------------------------


def test_a_gate_may_be_about_the_population(run, shops):
    scores = (
        "--label",
        "label",
        "--score",
        "a=score",
        "--score",
        "b=other",
        "--missingness",
        "random",
        "-m",
        "accuracy",
    )
    found = dm.compare(shops.label, {"a": shops.score, "b": shops.other}, missingness="random", metrics="accuracy")
    expected = found.probability_better("accuracy", "b", "a", scope="population")
    assert expected != found.probability_better("accuracy", "b", "a")
    done = run("compare", "shops.csv", *scores, "--scope", "population", "--gate", "better=0.5", "-f", "json")
    document = json.loads(done.out)
    assert document["gate"][0]["better"] == pytest.approx(expected)
    assert document["gate"][0]["scope"] == "population"
    assert document["scope"] == "population"
    (one,) = document["metrics"]["accuracy"]["differences"]
    distribution = found.difference("accuracy", "b", "a", scope="population")
    assert (one["mean"], one["low"], one["high"]) == pytest.approx((distribution.mean(), *distribution.interval(0.9)))
    assert "accuracy in the population with probability" in done.err
    table = run("compare", "shops.csv", *scores, "--scope", "population")
    assert "Intervals are for the population that these" in " ".join(table.out.split())
    lines = run("compare", "shops.csv", *scores, "--scope", "population", "-f", "csv").out.splitlines()
    assert all(
        line.split(",")[2] == word for line, word in zip(lines, ("scope", "population", "population"), strict=True)
    )
    assert "--scope: unknown scope 'all'" in run("compare", "shops.csv", *scores, "--scope", "all").err


def test_a_change_may_be_about_the_populations(run, shops):
    lines = Path("shops.csv").read_text().splitlines()
    Path("may.csv").write_text("\n".join(lines[:150]) + "\n")
    Path("june.csv").write_text("\n".join([lines[0], *lines[150:]]) + "\n")
    named = ("--label", "label", "--score", "score", "--missingness", "random", "-m", "accuracy")
    rows_, population = (
        json.loads(run("change", "june.csv", "may.csv", *named, "--scope", scope, "-f", "json").out)
        for scope in ("rows", "population")
    )
    assert (rows_["scope"], population["scope"]) == ("rows", "population")
    widths = [one["metrics"]["accuracy"]["high"] - one["metrics"]["accuracy"]["low"] for one in (rows_, population)]
    assert widths[0] < widths[1]


# Settings ----------------------------------------------------------------------------------------------------------

TOML = """
label = "label"
score = "score"
missingness = "by_label"
pos-label = 1
metric = ["recall"]

[check]
fail-under = "recall>=0.01"
confidence_level = 0.8

[monitor]
by = ["shop"]
"""


def test_settings_are_options_that_need_not_be_typed(run, shops):
    Path("darkmetrics.toml").write_text(TOML)
    done = run("check", "shops.csv", "-f", "json")
    assert done.err.startswith(
        "Settings of darkmetrics.toml: label, score, missingness, pos_label, metric, fail_under, con"
    )
    typed = ("--label", "label", "--score", "score", *QUIET, "-m", "recall", "--fail-under", "recall=0.01")
    Path("darkmetrics.toml").unlink()
    same = run("check", "shops.csv", *typed, "--confidence-level", "0.8", "-f", "json")
    assert done.out == same.out
    assert done.code == 0


def test_what_is_typed_goes_before_settings(run, shops):
    Path("darkmetrics.toml").write_text(TOML)
    done = run("check", "shops.csv", "-m", "f1", "--fail-under", "f1=0.999", "--confidence-level", "0.7", "-f", "json")
    document = json.loads(done.out)
    assert list(document["metrics"]) == ["f1"]
    assert [target["metric"] for target in document["targets"]] == ["f1"]
    assert document["metrics"]["f1"]["confidence_level"] == 0.7
    assert done.code == 1


def test_each_command_has_its_own_table_and_another_file_may_be_named(run, shops):
    Path("ci.toml").write_text(TOML)
    done = run("--config", "ci.toml", "monitor", "shops.csv", "-f", "json")
    assert json.loads(done.out)["names"] == ["shop"]
    assert "fail_under" not in done.err.splitlines()[0]


def test_a_report_names_the_whole_command(run, shops):
    Path("darkmetrics.toml").write_text(TOML + '\n[report]\noutput = "page.json"\nfile = "shops.csv"\n')
    assert run("report").code == 0
    page = json.loads(Path("page.json").read_text())
    command = page["source"]["command"]
    assert command.startswith("darkmetrics report shops.csv ")
    for part in ("--label label", "--missingness by_label", "-m", "recall", "--output page.json"):
        assert part in command.replace("--metric", "-m")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('labl = "y"', "darkmetrics.toml: unknown option 'labl'. Did you mean 'label'?"),
        ('[evalute]\nlabel = "y"', "darkmetrics.toml: unknown command 'evalute'. Did you mean 'evaluate'?"),
        ('[evaluate]\nby = "y"', "darkmetrics.toml: unknown option of evaluate 'by'."),
        ('[monitor]\nbyy = "y"', "darkmetrics.toml: unknown option of monitor 'byy'. Did you mean 'by'?"),
        ("threshold = [0.1, 0.2]", "darkmetrics.toml: threshold = [0.1, 0.2]. It has one value."),
        ("label = true", "darkmetrics.toml: label = true. It is not true or false."),
        ("debug = 1", "darkmetrics.toml: debug = 1. It is true or false."),
        ('threshold = "high"', "'high' is not a number (set in darkmetrics.toml or --config)."),
        ("label = ", "darkmetrics.toml: is no TOML: "),
    ],
)
def test_settings_that_are_wrong_are_one_clear_error(refused, shops, text, answer):
    Path("darkmetrics.toml").write_text(text)
    assert answer in refused("evaluate", "shops.csv")


def test_a_file_that_is_named_must_be_there(refused, shops):
    assert refused("--config", "no.toml", "metrics").startswith("no.toml: cannot be read: No such file")


def test_help_does_not_mind_settings(run, shops):
    Path("darkmetrics.toml").write_text("label = ")
    assert run("evaluate", "--help").code == 0


def test_debug_shows_the_log(run, shops):
    done = run("evaluate", "shops.csv", *QUIET, "-m", "recall", "-f", "json", "--debug")
    assert "darkmetrics: evaluated recall of 300 rows" in done.err
    assert "darkmetrics: evaluated" not in run("evaluate", "shops.csv", *QUIET, "-m", "recall", "-f", "json").err
