"""What is a number in a text, and how a text of the user is shown in Markdown."""

import re
from typing import Any

import pytest

import darkmetrics as dm
from darkmetrics import InputError
from darkmetrics._text import NUMBER, markdown_text, number_from, whole_number_from
from darkmetrics.files import DataFile, readers
from darkmetrics.metrics import metrics_from

NUMBERS = {
    "0": 0.0,
    "-1": -1.0,
    "+1": 1.0,
    "1.": 1.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "1E-3": 0.001,
    " 2 ": 2.0,
    "007": 7.0,
    "inf": float("inf"),
    "-Infinity": float("-inf"),
    "1e999": float("inf"),
}
NO_NUMBERS = [
    "1_000",
    "1e3_0",
    "0x10",
    "0b1",
    "1,5",
    "1 000",
    "--1",
    "1e",
    ".",
    "e3",
    "",
    "one",
    "1j",
    "\u0661",  # Arabic-Indic
    "\u06f1.\u06f5",  # Persian
    "\u0967",  # Devanagari
    "\uff11",  # fullwidth
    "\U0001d7cf",  # mathematical bold
    "1\u0660",
    "\u00b2",
    "\u2212\u0031",  # a minus that is not the one of the keyboard
]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_the_number_that_python_reads(text):
    assert number_from(text) == NUMBERS[text] == float(text)


@pytest.mark.parametrize("text", NO_NUMBERS)
def test_what_is_no_number_is_none(text):
    assert number_from(text) is None
    assert whole_number_from(text) is None


def test_nan_is_a_number_that_is_not_finite():
    assert all(number_from(text) != number_from(text) for text in ("nan", "NaN", "-nan"))


def test_whole_numbers_have_digits_only():
    assert [whole_number_from(text) for text in ("12", "-3", "+4", "1.0", "1e3", "inf", "9" * 5000)] == [
        12, -3, 4, None, None, None, None
    ]  # fmt: skip


@pytest.mark.parametrize("text", [*NUMBERS, *NO_NUMBERS])
def test_queries_of_an_engine_have_the_same_rule(text):
    import polars as pl

    if "inf" not in text.lower():
        assert pl.Series([text]).str.contains(NUMBER)[0] == (number_from(text) is not None)


@pytest.mark.parametrize("quick", [True, False], ids=["polars", "csv module"])
@pytest.mark.parametrize("text", [text for text in (*NUMBERS, *NO_NUMBERS) if text])
def test_cells_of_a_file_are_numbers_by_the_same_rule(text, quick, monkeypatch):
    if not quick:
        monkeypatch.setattr(readers, "_installed", lambda name: False)
    found = list(DataFile("x", f'p\n0.5\n"{text}"\n'.encode()).read(["p"])["p"])
    assert found == ([0.5, number_from(text)] if number_from(text) is not None else ["0.5", text])


@pytest.mark.parametrize("text", ["fbeta(1_0)", "precision_at_k(1_000)", "fbeta(beta=1_0)", "fbeta(\u0662)"])
def test_parameters_of_a_metric_are_numbers_by_the_same_rule(text):
    with pytest.raises(InputError, match=r"^metrics: cannot read .*\. Write it like"):
        metrics_from(text)


def test_parameters_of_a_metric_that_are_numbers_are_taken():
    assert [metric.name for metric in metrics_from(["fbeta(2)", "fbeta( 0.5 )", "precision_at_k(k=10)"])] == [
        "fbeta(2)",
        "fbeta(0.5)",
        "precision_at_k(10)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "<img src=x>",
        "<script>alert(1)</script>",
        "[a](http://b)",
        "![a](http://b)",
        "a|b",
        "&lt;",
        "`x`",
        "**bold** _x_ ~~y~~ $z$",
        "# head",
        "https://evil.example/x",
        "www.evil.example",
        "me@evil.example",
        "two\nlines\r\n| a | b |",
        "\\<b>",
        "\x1b[31m",
    ],
)
def test_nothing_in_a_text_is_a_sign_of_markdown(text):
    """After escapes are taken out, no sign is left that HTML, a link, a table or a heading is made of."""
    shown = markdown_text(text)
    bare = re.sub(r"\\(_|[^\w\s])", "", shown)
    assert not re.search(r"[<>\[\]`*_|~$&#@\\\x1b\n\r]|://|www\.", bare)


def test_one_row_is_a_row_wherever_rows_are_counted():
    one, other = (dm.evaluate([1], [score], metrics="accuracy") for score in (0.7, 0.2))
    found = dm.compare([1], {"a": [0.7], "b": [0.2]}, metrics="accuracy")
    said: list[Any] = [
        one,
        one.data,
        found,
        dm.compare_evaluations(one, other),
        dm.bounds([1], [0.7], metrics="accuracy"),
    ]
    for thing in said:
        for text in (repr(thing), str(thing)):
            assert "1 rows" not in text
            assert "1 cells" not in text
    assert repr(one) == "<Evaluation of 1 row, 0 missing: accuracy>"
    assert repr(found) == "<Comparison of a, b on 1 row, 0 missing: accuracy>"
    assert str(said[3]).startswith("after (1 row, 0 missing) against before (1 row, 0 missing).")
