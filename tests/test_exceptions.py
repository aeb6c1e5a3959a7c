"""Errors know what they are about, and say it in the names that a caller uses."""

import ast
import copy
import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

import darkmetrics as dm
from darkmetrics.calls import OF_EVALUATE
from darkmetrics.cli.messages import PHRASES, for_the_command_line
from darkmetrics.exceptions import (
    InputError,
    MethodError,
    UnknownArgumentError,
    UnknownNameError,
    unknown_name,
)

SOURCE = Path(dm.__path__[0])


@pytest.mark.parametrize(
    ("error", "argument"),
    [
        (InputError("y_true: no rows."), "y_true"),
        (InputError("mean, variance: expected numbers."), ""),
        (InputError("no column 'a: b'."), ""),
        (InputError.about("label column 'a: b'", "no rows."), "label column 'a: b'"),
        (unknown_name("metrics", "metric", "recal", ["recall"]), "metrics"),
    ],
)
def test_an_error_knows_what_it_is_about(error, argument):
    assert error.argument == argument
    assert str(error).startswith(argument)


@pytest.mark.parametrize("kind", [InputError, MethodError, UnknownNameError, UnknownArgumentError])
@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_error_reaches_other_processes_as_it_is(kind, again):
    error = kind.about("label column 'a: b'", "no rows.")
    assert type(again(error)) is kind
    assert (str(again(error)), again(error).argument) == (str(error), error.argument)


def test_a_renamed_error_keeps_its_kind_and_what_is_in_quotes():
    error = MethodError("y_true: 3 values, but y_score has 4; found 'y_score' and a method.")
    said = error.renamed({"y_true": "labels", "y_score": "scores", "method": "way"}).also("(Found in a.)")
    assert type(said) is MethodError
    assert said.argument == "labels"
    assert str(said) == "labels: 3 values, but scores has 4; found 'y_score' and a method. (Found in a.)"


def test_code_is_renamed_as_a_whole():
    error = InputError("y_true: none. Pass missingness=y_score, or missingness='random'.")
    said = error.renamed({"y_score": "score column 'p'", "missingness=y_score": "probability='p'"})
    assert str(said) == "y_true: none. Pass probability='p', or missingness='random'."


def test_the_library_says_every_phrase_that_the_command_line_replaces():
    texts = []
    for path in SOURCE.rglob("*.py"):
        if "cli" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.JoinedStr):
                    texts.append("".join(str(part.value) for part in node.values if isinstance(part, ast.Constant)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    texts.append(node.value)
    said = "\n".join(texts)
    assert [phrase for phrase in PHRASES if phrase not in said] == []


@pytest.mark.parametrize("name", ["y", "a: b", "it's", "x column 'y'"])
def test_a_column_of_a_table_is_named_with_its_option(name):
    error = InputError.about(f"y_pred column {name!r}", "no rows; say pos_label='x' or threshold=0.5.")
    assert for_the_command_line(error) == f"column {name!r} (--pred): no rows; say --pos-label x or --threshold 0.5."


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
