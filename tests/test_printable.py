"""Control characters in names never reach the terminal: results, messages and the command line show escapes."""

import ast
import csv
import io
import json
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics.cli import run
from darkmetrics.cli.rendering import Check, Result, Table, rendered
from darkmetrics.cli.streams import to_standard_error
from darkmetrics.tables import text_table

SIGNS = "\x1b[31m\x07\x9b2J\u202e\r"
NAME = f"my{SIGNS}recall"
SHOWN = r"my\x1b[31m\x07\x9b2J\u202e\rrecall"
N = 240
Y_TRUE = np.array([1, 0, np.nan, 1, 0, np.nan, 0, 1] * (N // 8))
Y_SCORE = np.random.default_rng(0).random(N).round(2)
METRIC = dm.metrics.ConfusionMetric(name=NAME, formula=lambda tp, fp, fn, tn: tp / (tp + fn), range=(0.0, 1.0))
STATED: dict[str, Any] = {"missingness": "by_score", "metrics": [METRIC], "rng": 0}
PACKAGE = Path(dm.__file__).parent


def steers(text):
    """The characters in a text that a terminal obeys or that change how it is read, besides line ends."""
    return sorted({sign for sign in text if not sign.isprintable() and sign != "\n"})


@cache
def evaluated():
    return dm.evaluate(Y_TRUE, Y_SCORE, **STATED)


@cache
def grouped():
    shop = np.where(np.arange(N) % 2, f"a{SIGNS}", "b")
    frame = pd.DataFrame({"y": Y_TRUE, "p": Y_SCORE, f"shop{SIGNS}": shop})
    return dm.evaluate_by("y", "p", data=frame, by=f"shop{SIGNS}", **STATED)


@cache
def alerted():
    return grouped().alerts({NAME: 0.99})


@cache
def compared():
    return dm.compare(Y_TRUE, {f"m{SIGNS}": Y_SCORE, "b": 1.0 - Y_SCORE}, **STATED)


def changed():
    rng = np.random.default_rng(1)
    return dm.compare_evaluations(evaluated(), dm.evaluate(Y_TRUE, rng.random(N), **STATED))


def make_verification():
    gaps = np.isnan(Y_TRUE)
    return dm.verify(evaluated(), np.ones(int(gaps.sum())), Y_SCORE[gaps])


RESULTS: dict[str, Callable[[], Any]] = {
    "evaluation": evaluated,
    "grouped": grouped,
    "alerts": alerted,
    "alert": lambda: next(iter(alerted())),
    "comparison": compared,
    "best": lambda: compared().probability_best(NAME),
    "ranks": lambda: compared().rank_probabilities(NAME),
    "change": changed,
    "gap": lambda: grouped().disparity(NAME),
    "verification": make_verification,
    "sensitivity": lambda: evaluated().sensitivity(),
    "tipping point": lambda: evaluated().tipping_point(NAME, 0.1),
    "curves": lambda: dm.threshold_curves(evaluated(), thresholds=[0.25, 0.5, 0.75]),
    "bounds": lambda: dm.bounds(Y_TRUE, Y_SCORE, metrics=[METRIC]),
    "backtest": lambda: dm.backtest(
        np.nan_to_num(Y_TRUE),
        Y_SCORE,
        metrics=[METRIC],
        n_repeats=2,
        rng=0,
        missingness={f"s{SIGNS}": dm.missing.TrainingPrevalence()},
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RESULTS)
@pytest.mark.parametrize("text", [str, repr])
def test_results_show_control_characters_as_escapes(name, text):
    assert steers(text(RESULTS[name]())) == []


def test_a_metric_is_shown_with_its_whole_name():
    assert SHOWN in str(evaluated())
    assert SHOWN in repr(evaluated())
    assert NAME in evaluated()  # by which it is found


def test_every_result_that_prints_names_is_printable():
    """Classes with a text of their own go through `prints_plainly`, as all of `Result` do.

    Those that are listed hold nothing of the user.
    """
    plain = {
        "Totals",
        "Calibrator",
        "Mechanism",
        "InputError",
        "MissingGroupError",
        "RecordedWarning",
        "Scores",
        "Band",
    }
    plain |= {"Mask", "MetricDistribution", "Undefined", "ReportPage", "_Display"}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and node.name not in plain:
                methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
                if {"__str__", "__repr__"} & methods and not {"Result", "GroupTexts"} & {*map(ast.unparse, node.bases)}:
                    assert "prints_plainly" in map(ast.unparse, node.decorator_list), f"{path}: {node.name}"


def test_columns_stay_aligned_beside_escapes():
    head, row = text_table(["", "value"], [[NAME, "1"]])
    assert len(head) == len(row)
    assert row == f"{SHOWN}       1"


def test_errors_show_control_characters_as_escapes():
    error = dm.InputError(NAME, f"no {SIGNS} here")
    assert str(error).startswith(f"{SHOWN}: no ")
    for one in (error, error.replace(fix=SIGNS), error.worded_for({NAME: f"x{SIGNS}"})):
        assert steers(str(one)) == steers(repr(one)) == []
    assert str(error.worded_for({NAME: "short"})).startswith("short: no ")
    with pytest.raises(KeyError) as missing:
        evaluated()[f"other{SIGNS}"]
    assert steers(str(missing.value)) == []


def test_warnings_show_control_characters_as_escapes():
    from darkmetrics.exceptions import record_warnings, warn

    with record_warnings() as kept, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn(f"{NAME} is often 0/0", dm.UndefinedMetricWarning)
    assert str(caught[0].message) == kept[0].message == f"{SHOWN} is often 0/0"


@pytest.mark.parametrize("format_", ["table", "markdown", "csv", "json", "junit", "prometheus"])
def test_the_command_line_shows_control_characters_as_escapes(format_):
    record = {NAME: f"a{SIGNS}", "mean": 0.5}
    result = Result(
        {NAME: SIGNS},
        [record],
        [Table(["", NAME], [[f"a{SIGNS}", "0.5"]], title=NAME), Table(["", "words"], [[NAME, NAME]], words=2)],
        above=[NAME],
        below=[NAME],
        warnings=[NAME],
        checks=[Check(NAME, passed=False, words=NAME, group=NAME)],
        about=(NAME,),
    )
    text = rendered(result, format_)
    assert steers(text) == []
    if format_ in ("table", "csv"):
        assert SHOWN in text
    if format_ == "json":
        assert json.loads(text) == {NAME: SIGNS}


def test_standard_error_shows_control_characters_as_escapes(capsys):
    to_standard_error(f"{NAME}\nsecond\tline")
    assert capsys.readouterr().err == f"{SHOWN}\nsecond\tline\n"


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "-1+1", "@SUM(A1)", "\t=1+1", "\r=1+1"]


def test_csv_output_has_no_formula_in_a_cell_or_a_name():
    records = [{"group": text, "=name": -0.5, "count": np.int64(-3), "none": None, "yes": True} for text in FORMULAS]
    header, *rows = csv.reader(io.StringIO(rendered(Result({}, records, []), "csv")))
    assert header == ["group", "'=name", "count", "none", "yes"]
    assert [row[0][:2] for row in rows] == [f"'{text[0]}" for text in FORMULAS[:5]] + ["'\\"]
    assert all(row[1:] == ["-0.5", "-3", "", "True"] for row in rows)


def test_monitor_writes_groups_that_are_no_formulas(tmp_path, capsys):
    groups = ["=cmd|' /C calc'!A0", "@a", "plain"]
    rows = [f"{i % 2},{i % 10 / 10},{groups[i % 3]}" for i in range(90)]
    (tmp_path / "x.csv").write_text("\n".join(["label,score,shop", *rows]))
    told = ["--by", "shop", "--missingness", "random", "-m", "recall", "-f", "csv"]
    assert run(["monitor", str(tmp_path / "x.csv"), *told]) == 0
    found = [record["shop"] for record in csv.DictReader(io.StringIO(capsys.readouterr().out))]
    assert {f"'{groups[0]}", f"'{groups[1]}", "plain"} <= set(found)
    assert not any(shop.startswith(("=", "@")) for shop in found)
