"""Files of one table that were not written alike, and CSV files, which have no types."""

from pathlib import Path

import polars as pl
import pytest

from darkmetrics import EvaluationSet, InputError
from darkmetrics.files import MISSING_WORDS
from darkmetrics.frames import ColumnNames, count_cells, sources

Y_P = ColumnNames("y", "p")


@pytest.fixture(params=["polars", "duckdb"], autouse=True)
def reader(request, monkeypatch, tmp_path):
    """Files in an empty folder are read with Polars, or with DuckDB where there is no Polars."""
    monkeypatch.chdir(tmp_path)
    if request.param == "duckdb":
        real = sources._importable
        monkeypatch.setattr(sources, "_importable", lambda name: name != "polars" and real(name))


@pytest.fixture
def first():
    """Two rows, written with the usual types."""
    pl.DataFrame({"y": [1, 0], "p": [0.75, 0.25], "k": ["a", "b"]}).write_parquet("1.parquet")


LATER = {
    "another order": pl.DataFrame({"k": ["a", "c"], "p": [0.5, 0.25], "y": [1, None]}),
    "one more column": pl.DataFrame({"y": [1, None], "p": [0.5, 0.25], "k": ["a", "c"], "x": [b"1", b"2"]}),
    "narrow floats": pl.DataFrame({"y": [1, None], "p": [0.5, 0.25], "k": ["a", "c"]}).cast({"p": pl.Float32}),
    "narrow labels": pl.DataFrame({"y": [1, None], "p": [0.5, 0.25], "k": ["a", "c"]}).cast({"y": pl.Int8}),
    "labels as floats": pl.DataFrame({"y": [1.0, None], "p": [0.5, 0.25], "k": ["a", "c"]}),
    "labels as booleans": pl.DataFrame({"y": [True, None], "p": [0.5, 0.25], "k": ["a", "c"]}),
    "categories": pl.DataFrame({"y": [1, None], "p": [0.5, 0.25], "k": ["a", "c"]}).cast({"k": pl.Categorical}),
}


@pytest.mark.parametrize("case", LATER)
def test_files_with_other_columns_and_narrower_types_are_one_table(first, case):
    LATER[case].write_parquet("2.parquet")
    counted = count_cells("*.parquet", Y_P, threshold=0.5)
    assert counted.score.tolist() == [0.25, 0.5, 0.75]
    assert counted.positives.tolist() == [0, 1, 1]
    assert counted.negatives.tolist() == [1, 0, 0]
    assert counted.missing.tolist() == [1, 0, 0]
    assert count_cells("*.parquet", Y_P, threshold=0.5, by="k").keys == {"k": ["a", "b", "c"]}


def test_a_file_whose_labels_have_not_arrived_is_missing_labels(first):
    pl.DataFrame({"y": [None, None], "p": [0.5, 0.25]}).write_parquet("2.parquet")
    assert count_cells("*.parquet", Y_P, threshold=0.5).missing.tolist() == [1, 1, 0]


def test_a_file_without_a_column_that_is_asked_for_is_named(first):
    pl.DataFrame({"p": [0.5], "k": ["a"]}).write_parquet("2.parquet")
    with pytest.raises(InputError, match=r"^2\.parquet: has no column 'y', and 1\.parquet has\. Each file needs it\."):
        count_cells("*.parquet", Y_P, threshold=0.5)
    with pytest.raises(InputError, match=r"^y_score: data has no column 'q'"):
        count_cells("*.parquet", ColumnNames("k", "q"), threshold=0.5)


def test_text_in_one_file_and_numbers_in_another_are_refused(first):
    pl.DataFrame({"y": ["1"], "p": [0.5]}).write_parquet("2.parquet")
    with pytest.raises(InputError, match=r"^2\.parquet: column 'y' has text, but .* in 1\.parquet\. .* one type"):
        count_cells("*.parquet", Y_P, threshold=0.5)


def test_of_many_files_the_damaged_one_is_named(first):
    Path("2.parquet").write_bytes(b"PAR1 and so on")
    with pytest.raises(InputError, match=r"^2\.parquet: cannot be read; damaged\?"):
        count_cells("*.parquet", Y_P, threshold=0.5)


def test_folders_named_after_values_of_any_look(first):
    for value, case in (("1", "narrow floats"), ("rest", "one more column")):
        Path(f"d/part={value}").mkdir(parents=True)
        LATER[case].write_parquet(f"d/part={value}/a.parquet")
    assert count_cells("d", Y_P, threshold=0.5, by="part").keys == {"part": ["1", "rest"]}


@pytest.mark.parametrize("word", sorted(MISSING_WORDS))
def test_csv_labels_that_say_missing_are_missing(word):
    for one, zero, pos_label in (("1", "0", 1), ("true", "false", 1), ("yes", "no", "yes"), ("1.0", "0.0", 1)):
        Path("a.csv").write_text(f"y,p\n{one},0.75\n{word},0.5\n,0.5\n{zero},0.25\n")
        counted = count_cells("a.csv", Y_P, threshold=0.5, pos_label=pos_label)
        assert counted.positives.tolist() == [0, 0, 1]
        assert counted.missing.tolist() == [0, 2, 0]


def test_a_csv_word_that_is_the_positive_label_is_no_gap():
    Path("a.csv").write_text("y,p\nNA,0.75\nEU,0.5\n")
    counted = count_cells("a.csv", Y_P, threshold=0.5, pos_label="NA")
    assert counted.positives.tolist() == [0, 1]


def test_csv_labels_that_are_named_as_text_stay_text():
    Path("a.csv").write_text("y,p\n1,0.75\nNA,0.5\n-1,0.5\n0,0.25\n")
    counted = count_cells("a.csv", Y_P, threshold=0.5, pos_label="1", missing_label="-1")
    assert counted.positives.tolist() == [0, 0, 1]
    assert counted.missing.tolist() == [0, 2, 0]


def test_csv_keys_keep_the_words():
    """NA is Namibia."""
    Path("a.csv").write_text("y,p,k\n1,0.75,NA\n0,0.5,DE\n")
    assert count_cells("a.csv", Y_P, threshold=0.5, by="k").keys == {"k": ["DE", "NA"]}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1,0.75\n,0.5\n0,abc\n0,1e-3\n", r"y_score column 'p': expected numbers, found 'abc' of type str at row 2\."),
        ("", r"a\.csv: has no rows\."),
        (
            "1,0.75\nnone,0.5\n0,0.2\n",
            r".*a third value 'none' .*'0' and '1'.*pos_label=1 is none of them.* pass missing_label='none'",
        ),
    ],
)
def test_csv_files_that_break_a_rule(text, message):
    Path("a.csv").write_text("y,p\n" + text)
    with pytest.raises(InputError, match="^" + message):
        EvaluationSet("y", "p", data="a.csv")


def test_a_tilde_is_the_home_of_the_user(first, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    assert count_cells("~/1.parquet", Y_P, threshold=0.5).score.tolist() == [0.25, 0.75]


def test_an_address_that_cannot_be_reached_is_not_called_damaged():
    with pytest.raises(InputError, match=r"^nowhere://x/a\.parquet: cannot be read; is the address right, and is acce"):
        count_cells("nowhere://x/a.parquet", Y_P, threshold=0.5)
