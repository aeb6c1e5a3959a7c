"""Warnings are part of the result, in every format; a gate passes only on what is known."""

import csv
import io
import json
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import darkmetrics as dm
from darkmetrics.cli import run as run_command
from darkmetrics.exceptions import AssumptionWarning, CalibrationWarning, MissingnessWarning, UndefinedMetricWarning

SAID = "Scores differ between labeled and missing rows"


def hidden_rows(seed=0):
    """High scores are looked at first, and positives take longer: recall is 0.53, and by score it looks like 0.67."""
    rng = np.random.default_rng(seed)
    score = rng.beta(1.2, 2.2, 2000)
    positive = rng.random(2000) < expit(1.1 * logit(score) - 0.1)
    seen = rng.random(2000) < expit(logit(score) + 1.2 - 1.5 * positive)
    return np.where(seen, positive.astype(float), np.nan), score, float(np.mean(score[positive] >= 0.5))


@pytest.fixture(scope="module")
def result():
    label, score, _ = hidden_rows()
    with pytest.warns(MissingnessWarning, match=SAID):
        return dm.evaluate(label, score, metrics=["recall"])


@pytest.fixture(scope="module")
def summary():
    """Of 400 rows: what a page begins with does not depend on how many there are, and its curves take time."""
    label, score, _ = hidden_rows()
    with pytest.warns(MissingnessWarning, match=SAID):
        return dm.report.summarize(dm.evaluate(label[:400], score[:400], metrics=["recall"]))


@pytest.fixture
def gate_file(tmp_path):
    label, score, _ = hidden_rows()
    path = tmp_path / "june.csv"
    pd.DataFrame({"label": label, "score": score}).to_csv(path, index=False)
    return path


def command(capsys, *arguments, name="evaluate"):
    code = run_command([name, *map(str, arguments), "--label", "label", "--score", "score", "-m", "recall"])
    return code, capsys.readouterr()


def test_result_keeps_what_was_warned_of(result):
    assert [warned.category for warned in result.warnings] == ["MissingnessWarning"]
    assert str(result.warnings[0]).startswith(SAID)
    assert result.to_dict()["warnings"] == [{"category": "MissingnessWarning", "message": str(result.warnings[0])}]


def test_each_kind_of_warning_is_kept():
    rng = np.random.default_rng(3)
    score = rng.random(600)
    label = (rng.random(600) < score).astype(float)
    by_score = np.where(rng.random(600) < expit(12 * (score - 0.5)), np.nan, label)
    few = np.where(np.arange(600) < 592, np.nan, label)
    defaults: dict[str, Any] = {"y_score": score, "metrics": "recall"}
    asked: dict[type[Warning], dict[str, Any]] = {
        AssumptionWarning: {"y_true": by_score, "missingness": "by_label"},
        CalibrationWarning: {"y_true": few, "missingness": "random"},
        UndefinedMetricWarning: {"y_true": [0, None], "y_score": [0.2, 0.6], "missingness": dm.missing.Fixed(0.5)},
    }
    for kind, settings in asked.items():
        with pytest.warns(kind):
            found = dm.evaluate(**(defaults | settings))
        assert kind.__name__ in {warned.category for warned in found.warnings}


def test_what_is_silenced_is_kept_and_what_is_not_warned_of_is_not():
    label, score, _ = hidden_rows()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert dm.evaluate(label, score, metrics="recall").warnings
    assert dm.evaluate(label, score, metrics="recall", missingness="by_score").warnings == ()


def test_library_warns_in_one_way():
    """`exceptions.warn` is what results hear of; a call of `warnings.warn` in a model or question would not be kept."""
    source = Path(dm.__file__).parent
    direct = [
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if re.search(r"\bwarnings\.warn\(", path.read_text(encoding="utf-8"))
    ]
    # What these say is of a call or of many results, and of none that keeps it.
    assert set(direct) == {"exceptions.py", "monitoring/run.py"}


def test_groups_keep_their_own():
    label, score, _ = hidden_rows()
    table = pd.DataFrame({"shop": ["web", "app"] * 1000, "label": label, "score": score})
    with pytest.warns(MissingnessWarning):
        found = dm.evaluate_by("label", "score", data=table, by="shop", metrics="recall")
    for key, group in found.groups.items():
        assert found[key].warnings == group.warnings
    kept = [group["warnings"] for group in found.to_dict()["groups"]]
    assert any(kept)
    assert {row["warnings"] for row in found.to_records()} == {
        ", ".join(warned["category"] for warned in said) for said in kept
    }


def test_html_begins_with_the_warning(summary):
    page = dm.report.render(summary, "html")
    assert page.index('class="warning"') < page.index("<main") < page.index("if odds 3x off")
    assert SAID in page.split("<main")[0]


def test_markdown_begins_with_the_warning(summary):
    page = dm.report.render(summary, "markdown")
    assert page.splitlines()[2].startswith(f"> **Warning.** {SAID}")
    assert "if odds 3x off" in page


def test_json_report_has_the_warning(summary):
    page = json.loads(dm.report.render(summary, "json"))
    assert page["warnings"][0]["message"].startswith(SAID)


def test_command_says_it_on_standard_output_as_text_and_markdown(capsys, gate_file):
    for format_ in ("table", "markdown"):
        code, said = command(capsys, gate_file, "--format", format_)
        assert code == 0
        assert f"Warning: {SAID}" in " ".join(said.out.replace("*", "").split())


def test_command_has_it_in_json_and_csv(capsys, gate_file):
    _, said = command(capsys, gate_file, "--format", "json", "--fail-under", "recall=0.6", name="check")
    document = json.loads(said.out)
    assert [warned["category"] for warned in document["warnings"]] == ["MissingnessWarning"]
    assert "--missingness" in document["warnings"][0]["message"]
    _, said = command(capsys, gate_file, "--format", "csv")
    assert next(csv.DictReader(io.StringIO(said.out)))["warnings"].startswith(f"MissingnessWarning: {SAID}")


def test_gate_fails_on_what_is_not_known_and_says_why(capsys, gate_file):
    assert hidden_rows()[2] == pytest.approx(0.53, abs=0.01)
    code, said = command(capsys, gate_file, "--fail-under", "recall=0.6", "--format", "json", name="check")
    assert code == 1
    verdict = said.err.splitlines()[-1]
    assert verdict.startswith("FAIL: recall at least 0.6 has probability 0.")
    assert "met if labels are missing by score or at random (" in verdict
    assert ", not if by score and label both (" in verdict
    (target,) = json.loads(said.out)["targets"]
    assert target["verdict"] == "FAIL"
    assert target["by_mechanism"]["by score"] > 0.9 > target["by_mechanism"]["both"]


def test_gate_passes_where_it_is_stated_or_known(capsys, gate_file):
    """The control: stated, though wrongly, it passes; and so does a target that is met whatever the reason."""
    for target, stated in (("recall=0.6", ["--missingness", "by_score"]), ("recall=0.3", [])):
        code, said = command(capsys, gate_file, "--fail-under", target, *stated, name="check")
        assert code == 0
        assert "\nPASS: " in said.out
        assert "FAIL" not in said.out


def test_chance_is_the_sum_over_reasons(result):
    label, score, _ = hidden_rows()
    by_mechanism = result.target_by_mechanism("recall", 0.6)
    alone = dm.evaluate(label, score, metrics="recall", missingness="by_score")
    assert by_mechanism["by score"] == pytest.approx(alone.target_probability("recall", 0.6), abs=0.02)
    assert alone.target_by_mechanism("recall", 0.6) == {}


@pytest.mark.parametrize("missing", [True, False])
def test_a_0_by_0_in_the_population_is_not_said_to_follow_zero_division(missing):
    y = [None if missing else 0, 0, 0, 0]
    with pytest.warns(dm.UndefinedMetricWarning, match="results for the population leave this case out") as said:
        dm.evaluate(
            y,
            [0.9, 0.2, 0.7, 0.1],
            missingness=dm.missing.Fixed([0.5]) if missing else None,
            metrics="recall",
            scope="population",
        )
    assert "counts as" not in str(said[0].message)
    assert "the results stay the same" in str(said[0].message)
