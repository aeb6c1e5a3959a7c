"""Errors know what they are about, and say it in the names that a caller uses."""

import ast
import copy
import inspect
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.calls import OF_EVALUATE
from darkmetrics.cli.messages import CODE, option_words
from darkmetrics.exceptions import (
    InputError,
    MethodError,
    UnknownArgumentError,
    UnknownNameError,
    record_warnings,
    unknown_name,
    warn,
)
from darkmetrics.wording import Message, code, named, setting, verbatim

SOURCE = Path(dm.__path__[0])


@pytest.mark.parametrize("kind", [InputError, MethodError, UnknownNameError, UnknownArgumentError])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_reaches_other_processes_as_it_is(kind, again):
    error = kind("label column 'a: b'", "no rows", "A rule.", "A fix.")
    assert type(again(error)) is kind
    assert (str(again(error)), again(error).argument) == (str(error), error.argument)


def test_a_reworded_error_keeps_its_kind_and_what_is_in_quotes():
    error = MethodError("y_true", f"3 values, but {named('y_score')} has 4; found 'y_score' and a method")
    said = error.worded_for({"y_true": "labels", "y_score": "scores", "method": "way"}).replace(fix="Found in a.")
    assert type(said) is MethodError
    assert said.argument == "labels"
    assert str(said) == "labels: 3 values, but scores has 4; found 'y_score' and a method. Found in a."


def keys_of_code(path: Path) -> Iterator[str]:
    """Yield the keys and texts of `code` references in a source file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "code":
            for argument in node.args:
                if isinstance(argument, ast.Constant):
                    text = str(argument.value)
                    yield from (text, text.partition("(")[0].rpartition("=")[2].removeprefix("dm."))


def test_the_library_uses_all_code_for_which_the_command_line_has_words():
    used = {key for path in SOURCE.rglob("*.py") for key in keys_of_code(path)}
    assert [key for key in CODE if key not in used] == []


@pytest.mark.parametrize("name", ["y", "a: b", "it's", "x column 'y'"])
def test_a_column_of_a_table_is_named_with_its_option(name):
    fix = f"Pass {setting('pos_label', 'x')} or {setting('threshold', 0.5)}."
    error = InputError(named("y_pred", name), "no rows", fix=fix).worded_for(option_words())
    assert str(error) == f"column {name!r} (--pred): no rows. Pass --pos-label x or --threshold 0.5."


def test_the_command_line_has_columns_for_arguments_and_options_for_settings():
    words = option_words({"label": "y", "score": "p"}, metrics="--best")
    text = f"{named('y_score')} or {setting('y_score')}, {named('metrics')}, {named('data')}"
    assert Message(text).worded_for(words) == "column 'p' (--score) or --score, --best, data"
    assert str(InputError("y_true", "no rows").worded_for(words)) == "column 'y' (--label): no rows."
    assert str(InputError(verbatim("y_true"), "no rows").worded_for(words)) == "y_true: no rows."


# Public functions that take rows or results; arguments that they need are left out, which an unknown one comes before.
FUNCTIONS = [
    "backtest",
    "bounds",
    "compare",
    "compare_evaluations",
    "diagnose",
    "evaluate_by",
    "threshold_curves",
]


def test_the_arguments_of_evaluate_are_those_that_it_takes():
    assert tuple(inspect.signature(dm.evaluate).parameters) == OF_EVALUATE


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_argument_of_evaluate_that_another_function_does_not_take_is_answered_with_where_it_belongs(name):
    function = getattr(dm, name)
    taken = inspect.signature(function).parameters
    for argument in sorted({*OF_EVALUATE} - taken.keys()):
        with pytest.raises(InputError) as caught:
            function(**{argument: None})
        assert isinstance(caught.value, TypeError)
        assert caught.value.argument == argument
        start, _, where = str(caught.value).partition(f"{argument}: no argument of {name}. ")
        assert start == ""
        near = where.removeprefix("Did you mean '").partition("'?")[0]
        assert near in taken or "evaluate" in where


ROWS = ([1, 0], [0.9, 0.2])


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("threshold_curves", {}, r"takes 1 \(evaluation\)\. Write dm\.threshold_curves\(dm\.evaluate\("),
        ("backtest", {"metods": "exact"}, "Did you mean 'methods'"),
        ("evaluate", {"missingnes": "random"}, "Did you mean 'missingness'"),
        ("compare", {"clusters": [1, 2]}, "evaluate and EvaluationSet alone take clusters, .* one random row of each"),
        ("evaluate_by", {"clusters": "customer"}, "evaluate and EvaluationSet alone take clusters, .* one random row"),
        ("evaluate", {"n_resamples": 9}, r"MonteCarlo\(n_resamples=9\)"),
        ("evaluate", {"zzz": 9}, "It takes y_true, y_score, data, metrics"),
    ],
)
def test_an_argument_that_is_not_taken_is_answered_with_what_is_meant(name, given, said):
    with pytest.raises(UnknownArgumentError, match=said):
        getattr(dm, name)(*ROWS, **given)


def test_a_method_answers_in_the_same_way():
    report: Any = dm.evaluate(*ROWS, metrics="recall").report
    with pytest.raises(UnknownArgumentError, match=r"targts: no argument of result\.report\. Did you mean 'targets'\?"):
        report("june.html", targts={"recall": 0.6})
    with pytest.raises(UnknownArgumentError, match=r"2 values without a name, where result\.report takes 1 \(path\)"):
        report("june.html", {"recall": 0.6})


def test_an_argument_that_is_missing_is_what_python_says():
    function: Any = dm.evaluate
    with pytest.raises(TypeError, match="missing 1 required positional argument") as caught:
        function(data={"y": [1], "p": [0.5]})
    assert not isinstance(caught.value, InputError)


RECORD = InputError(
    "y_true",
    f"3 values, but {named('y_score')} has 4; found 'y_score'",
    "Both need one per row.",
    f"Pass {setting('missingness', 'random', 'by_score')} or {code('dm.missing.Fixed(0.5)')}.",
)


def test_an_error_is_a_record_of_argument_finding_rule_and_fix():
    assert (RECORD.argument, RECORD.finding) == ("y_true", "3 values, but y_score has 4; found 'y_score'")
    assert (RECORD.rule, RECORD.fix) == (
        "Both need one per row.",
        "Pass missingness='random' or 'by_score' or dm.missing.Fixed(0.5).",
    )
    assert str(RECORD) == f"y_true: {RECORD.finding}. {RECORD.rule} {RECORD.fix}"


@pytest.mark.parametrize(
    ("parts", "text"),
    [
        (("y_true", "no rows", "", ""), "y_true: no rows."),
        (("", "no rows", "", "Pass one."), "no rows. Pass one."),
        (("y_true", "", "Labels are 0 or 1.", ""), "y_true: Labels are 0 or 1."),
        (("y_true", "no\x1brows", "", ""), "y_true: no\\x1brows."),
        (("y_true", "9" * 100, "", ""), "y_true: 999999…(100 digits)."),
    ],
)
def test_parts_that_are_empty_vanish_from_the_text_of_an_error(parts, text):
    assert str(InputError(*parts)) == text


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_a_copied_error_keeps_its_references(again):
    said = again(RECORD).worded_for({"y_true": "labels", "y_score": "scores"})
    assert str(said).startswith("labels: 3 values, but scores has 4; found 'y_score'.")


def test_an_error_is_worded_for_names_in_several_steps():
    said = RECORD.worded_for({"y_score": named("scores", "p"), "y_true": "labels"}).worded_for(
        {"labels": "--label", "scores=": "--score", "missingness": "--why", "dm.missing.Fixed(0.5)": "--prob 0.5"}
    )
    assert str(said) == (
        "--label: 3 values, but column 'p' (--score) has 4; found 'y_score'. Both need one per row. "
        "Pass --why random or by_score or --prob 0.5."
    )


@pytest.mark.parametrize(
    ("reference", "names", "text"),
    [
        (named("y_score"), {}, "y_score"),
        (named("y_score"), {"y_score": "column 'p' (--score)", "y_score=": "--score"}, "column 'p' (--score)"),
        (named("y_score", "p"), {}, "y_score column 'p'"),
        (named("y_score", "p"), {"y_score": "column 'p' (--score)", "y_score=": "--score"}, "column 'p' (--score)"),
        (setting("y_score"), {"y_score": "column 'p' (--score)", "y_score=": "--score"}, "--score"),
        (setting("y_score"), {"y_score": "y_score column 'p'"}, "y_score="),
        (setting("missing_label", ["?", -1, "it's"]), {}, """missing_label=['?', -1, "it's"]"""),
        (
            setting("missing_label", ["?", -1, "it's"]),
            {"missing_label": "--missing-label"},
            """--missing-label '?' --missing-label -1 --missing-label 'it'"'"'s'""",
        ),
        (setting("pos_label", np.int64(3)), {}, "pos_label=3"),
        (code("missingness=dm.missing.Reference(y, s)"), {"missing.Reference": "--reference"}, "--reference"),
        (code("; see .grouped.", "grouped"), {"grouped": ""}, ""),
        (named("\ue000named\ue001a\ue002"), {"a": "b"}, "\\ue000named\\ue001a\\ue002"),
        (setting("pos_label", "\ue000named\ue001a\ue002"), {"a": "b"}, "pos_label='\\ue000named\\ue001a\\ue002'"),
    ],
)
def test_references_are_worded_for_the_names_of_a_caller(reference, names, text):
    assert Message(reference).worded_for(names) == text
    assert str(InputError("x", reference).worded_for(names)) == (f"x: {text}." if text else "x")


@pytest.mark.parametrize(("name", "nearest"), [("by_lable", "by_label"), ("score", "by_score"), ("fraud", None)])
def test_only_near_names_are_suggested(name, nearest):
    said = str(unknown_name("missingness", "mechanism", name, ["random", "by_score", "by_label"]))
    answer = f"Did you mean {nearest!r}?" if nearest else "Choose from 'by_label', 'by_score', 'random'."
    assert said == f"missingness: unknown mechanism {name!r}. {answer}"


def test_a_recorded_warning_keeps_its_references():
    with record_warnings() as recorded, pytest.warns(UserWarning, match="Pass missingness='random'") as caught:
        warn(f"Pass {setting('missingness', 'random')}.", UserWarning)
    (warning,) = recorded
    again = pickle.loads(pickle.dumps(warning))
    for message in (warning.message, again.message, caught[0].message.args[0]):  # type: ignore[union-attr]  # warned
        assert isinstance(message, Message)
        assert message == "Pass missingness='random'."
        assert message.worded_for({"missingness": "--missingness"}) == "Pass --missingness random."
