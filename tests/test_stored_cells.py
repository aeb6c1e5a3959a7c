"""Sets in Parquet files: nothing is lost, any engine reads them, and what is not such a file is refused by name."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, evaluate
from darkmetrics.exceptions import InputError
from darkmetrics.files import readers
from row_values import build_set

ENGINES = ("polars", "pyarrow", "pandas")


def small(**more):
    rng = np.random.default_rng(0)
    score = rng.choice(np.append(10.0 ** rng.uniform(-300, 0, 40), [0.0, 1.0, 1 / 3, 5e-324]), 200)
    y = np.where(rng.random(200) < 0.4, np.nan, rng.integers(0, 2, 200))
    return build_set(y, score, **more)


def weights():
    return np.random.default_rng(1).choice([0.1, 1.0, 1 / 3], 200)


SETS = {
    "plain": lambda: small(),
    "threshold": lambda: small(threshold=0.1 + 0.2),
    "negative threshold": lambda: small(threshold=-0.25),
    "decisions": lambda: small(y_pred=np.arange(200) % 2),
    "weights": lambda: small(sample_weight=weights()),
    "probabilities": lambda: small(probability=np.random.default_rng(2).random(200)),
    "probabilities of missing rows": lambda: small(probability=np.full(small().n_missing, 1 / 3)),
    "probabilities of nothing": lambda: EvaluationSet([1, 0], [0.1, 0.9], missingness=dm.missing.Fixed([])),
    "boolean class": lambda: EvaluationSet([True, False, None], [0.1, 0.9, 0.2], pos_label=True),
    "class of text": lambda: EvaluationSet(["ja", 'ñ"\n', None], [0.1, 0.9, 0.2], pos_label='ñ"\n'),
    "class of floats": lambda: EvaluationSet([0.5, 2.0, None], [0.1, 0.9, 0.2], pos_label=0.5),
    "class of numpy": lambda: EvaluationSet([3, 2, None], [0.1, 0.9, 0.2], pos_label=np.int64(3)),
    "bins": lambda: small(sample_weight=weights()).binned(64),
    "bins with probabilities": lambda: small(probability=np.random.default_rng(2).random(200)).binned(32),
    "scores outside 0 and 1": lambda: EvaluationSet([1, 0, None, 1], [-3e9, 0.2, 17.0, 17.5]).binned(16),
    "one cell": lambda: EvaluationSet([None], [0.25]),
    "labeled rows": lambda: small().labeled(),
}


@pytest.fixture(params=ENGINES)
def engine(request, monkeypatch):
    """As if no other package were installed."""
    if request.param == "pandas":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(readers, "_installed", lambda name: name == request.param)
    return request.param


@pytest.mark.parametrize("kind", SETS)
def test_a_stored_set_comes_back_bit_for_bit(kind, engine, tmp_path):
    data = SETS[kind]()
    path = data.to_parquet(tmp_path / "set.parquet")
    back = EvaluationSet.from_parquet(path)
    assert (back.threshold, back.score_bins) == (data.threshold, data.score_bins)
    assert back.pos_label == data.pos_label
    if not isinstance(data.pos_label, np.generic):
        assert type(back.pos_label) is type(data.pos_label)
    for name, array in data.cells.arrays().items():
        found = getattr(back.cells, name)
        assert (found is None) == (array is None), name
        if array is not None and array.dtype.kind == "f":
            assert found.tobytes() == array.tobytes(), name
        elif array is not None:
            np.testing.assert_array_equal(found, array)
    assert [file.name for file in tmp_path.iterdir()] == ["set.parquet"]  # nothing unfinished is left


@pytest.mark.parametrize("writer", ENGINES)
@pytest.mark.parametrize("reader", ENGINES)
def test_what_one_engine_wrote_another_reads(writer, reader, tmp_path, monkeypatch):
    data = small(probability=np.full(small().n_missing, 1 / 3), y_pred=np.arange(200) % 2)
    monkeypatch.setattr(readers, "_installed", lambda name: name == writer)
    path = data.to_parquet(tmp_path / "set.parquet")
    monkeypatch.setattr(readers, "_installed", lambda name: name == reader)
    back = EvaluationSet.from_parquet(path)
    assert back.threshold is None
    for name, array in data.cells.arrays().items():
        if array is not None:
            np.testing.assert_array_equal(getattr(back.cells, name), array)


def test_the_file_is_an_ordinary_table(engine, tmp_path):
    path = EvaluationSet([1, 0, None, None], [0.9, 0.2, 0.7, 0.7]).to_parquet(tmp_path / "set.parquet")
    table = pq.read_table(path).to_pylist()
    assert len({row.pop("checksum") for row in table}) == 1
    constant = {"format_version": 1, "threshold": 0.5, "pos_label": "1", "score_bins": 0}
    constant |= {"has_weight": False, "has_probability": False}

    def cell(score, decision, positives, negatives, missing):
        own = {"score": score, "decision": decision, "positives": positives, "negatives": negatives, "missing": missing}
        return constant | own | {"weight": 1.0, "probability": None, "low": score, "high": score}

    assert table == [cell(0.2, False, 0, 1, 0), cell(0.7, True, 0, 0, 2), cell(0.9, True, 1, 0, 0)]
    kinds = {str(field.type).removeprefix("large_") for field in pq.read_schema(path)}
    assert kinds == {"int64", "double", "string", "bool"}


def test_from_parquet_reads_ages_that_were_stored_as_strata(engine):
    """Until November 2026 files stored ages as strata from 2**52 on, and on a coarser grid.

    The file was written with ages of 0, 1, 2, 9, 40, 400 and 3.2 days: these are the first days of their bins.
    """
    age = pd.to_timedelta([0, 1, 2, 8, 40, 40, 384, 384, 3.01, 8], unit="D")
    delay = pd.to_timedelta([None, 1, None, 2, None, 28, 5, None, 1.5, None], unit="D")
    score = [0.1, 0.2, 0.2, 0.7, 0.7, 0.7, 0.9, 0.9, 0.5, 0.7]
    labels = [None, 0, None, 1, None, 0, 1, None, 1, None]
    data = EvaluationSet(
        labels, score, missingness=dm.missing.Delayed(age=age, delay=delay, maturity=pd.Timedelta(days=60))
    )
    back = EvaluationSet.from_parquet(Path(__file__).parent / "stored" / "ages_in_strata.parquet")
    for name, array in data.cells.arrays().items():
        np.testing.assert_array_equal(getattr(back.cells, name), array, err_msg=name)


def test_a_glob_or_a_list_of_days_is_their_sum(tmp_path):
    days = [EvaluationSet([1, 0, None], [0.9, 0.2, 0.1 * i]) for i in range(5)]
    paths = [day.to_parquet(tmp_path / f"day-{i}.parquet") for i, day in enumerate(days)]
    for found in (EvaluationSet.from_parquet(f"{tmp_path}/day-*.parquet"), EvaluationSet.from_parquet(paths)):
        for name, array in EvaluationSet.concat(days).cells.arrays().items():
            if array is not None:
                np.testing.assert_array_equal(getattr(found.cells, name), array)
    odd = days[0].to_parquet(tmp_path / "day [1].parquet")  # a name, not a pattern
    assert EvaluationSet.from_parquet(odd).n_rows == 3
    assert EvaluationSet.from_parquet(str(odd)).n_rows == 3


def test_paths_that_name_nothing_are_refused(tmp_path):
    EvaluationSet([1], [0.5]).to_parquet(tmp_path / "monday.parquet")
    (tmp_path / "empty").mkdir()
    wrong: list[tuple[Any, str]] = [
        (tmp_path / "mondey.parquet", "no such file. Did you mean"),
        (f"{tmp_path}/x*.parquet", "no file matches this pattern"),
        ([], "path: an empty list"),
        (17, "path: expected a path, a folder, a pattern or a list of these, got int"),
        (tmp_path / "empty", "no Parquet file in this folder"),
    ]
    for path, text in wrong:
        with pytest.raises(InputError, match=text):
            EvaluationSet.from_parquet(path)
    with pytest.raises(InputError, match=r"nowhere.set\.parquet: cannot be written: No such file or directory"):
        EvaluationSet([1], [0.5]).to_parquet(tmp_path / "nowhere" / "set.parquet")


def test_a_set_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = EvaluationSet([1], [0.5]).to_parquet(tmp_path / "set.parquet")
    before = path.read_bytes()
    with pytest.raises(InputError, match=r"^pos_label: .* of type tuple cannot be stored"):
        EvaluationSet.from_cells(small().cells, pos_label=(1, 2)).to_parquet(path)
    with pytest.raises(InputError, match=r"^cells: none\. A set without rows cannot be stored"):
        EvaluationSet([None], [0.5]).labeled().to_parquet(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


# ------------------------------------------------------------------------------------------ damaged files


@pytest.fixture
def stored(tmp_path):
    data = EvaluationSet(
        [1, 0, None, None, 1],
        [0.9, 0.2, 0.7, 0.7, 0.2],
        missingness=dm.missing.Fixed([0.1, 0.2, 0.3, 0.4, 0.5]),
        sample_weight=[1, 2, 1, 1, 1],
    )
    return data.to_parquet(tmp_path / "set.parquet")


def changed(column, values):
    return lambda frame: frame.with_columns(pl.Series(column, values))


DAMAGES = {
    "newer": (changed("format_version", [2] * 5), "format_version: 2, but this version of darkmetrics reads 1. Update"),
    "older": (
        changed("format_version", [0] * 5),
        "format_version: 0, but this version of darkmetrics reads 1. The file",
    ),
    "newer with other columns": (
        lambda frame: frame.select(pl.lit(9).alias("format_version"), pl.col("score").alias("cells")),
        "format_version: 9, but",
    ),
    "no version": (lambda frame: frame.drop("format_version"), "no column 'format_version', so these are not cells"),
    "no column": (lambda frame: frame.drop("missing"), "no column 'missing'"),
    "extra column": (lambda frame: frame.with_columns(day=pl.lit("monday")), "an extra column 'day'"),
    "no rows": (lambda frame: frame.clear(), "has no rows"),
    "negative count": (changed("negatives", [0, 1, -3, 0, 0]), "negatives: -3 in cell 2. Counts are whole numbers"),
    "null count": (changed("positives", [0, 1, None, 0, 0]), "positives: nan in cell 2. Counts are whole numbers"),
    "broken count": (
        changed("positives", [0.0, 1.0, 0.5, 0.0, 0.0]),
        "positives: 0.5 in cell 2. Counts are whole numbers",
    ),
    "count of text": (changed("positives", list("abcde")), "positives: expected numbers, found 'a'"),
    "empty cell": (
        lambda frame: frame.with_columns(pl.col("positives", "negatives", "missing") * 0),
        "missing: 0 in cell 0. A cell has at least one row",
    ),
    "unsorted": (lambda frame: frame.reverse(), "score: 0.7 in cell 1. Cells are sorted by score"),
    "twice": (lambda frame: pl.concat([frame, frame.tail(1)]), "score: 0.9 in cell 5. Cells are sorted by score"),
    "score NaN": (changed("score", [0.2, 0.2, 0.7, 0.7, float("nan")]), "score: nan in cell 4. Scores are finite"),
    "score infinite": (changed("score", [0.2, 0.2, 0.7, 0.7, float("inf")]), "score: inf in cell 4. Scores are finite"),
    "weight negative": (changed("weight", [1.0, -2.0, 1, 1, 1]), "weight: -2 in cell 1. Weights are finite"),
    "probability above 1": (changed("probability", [0.1, 1.5, 0.3, 0.4, 0.5]), "probability: 1.5 in cell 1. Prob"),
    "probability gone": (changed("probability", [None] * 5), "probability: nan in cell 2. Probabilities lie in"),
    "decisions wrong": (changed("decision", [False] * 5), "decision: False in cell 2. Decisions are positive from the"),
    "decision null": (
        changed("decision", [None, False, True, True, True]),
        "decision: nan in cell 0. Decisions are true",
    ),
    "two thresholds": (changed("threshold", [0.5, 0.5, 0.5, 0.5, 0.1]), "threshold: differs between cells. It belongs"),
    "threshold of text": (changed("threshold", ["x"] * 5), "threshold: 'x'. It is a finite number, or null"),
    "no label": (changed("pos_label", [None] * 5), "pos_label: None. It is a label written as JSON"),
    "label not JSON": (changed("pos_label", ["yes"] * 5), "pos_label: 'yes'. It is a label written as JSON"),
    "label a list": (changed("pos_label", ["[1]"] * 5), "pos_label: '[1]'. It is a label written as JSON"),
    "odd bins": (changed("score_bins", [100] * 5), "score_bins: 100. It is 0 for exact scores, or a power of two"),
    "negative bins": (changed("score_bins", [-64] * 5), "score_bins: -64. It is 0 for exact scores, or a power of two"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_refused_by_file_column_and_rule(damage, stored):
    change, text = DAMAGES[damage]
    change(pl.read_parquet(stored)).write_parquet(stored)
    with pytest.raises(InputError) as error:
        EvaluationSet.from_parquet(stored)
    assert str(error.value).startswith(f"{stored}: {text}")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("column", "values", "text"),
    [
        ("score", [0.05, 0.3], "score: 0.05 in cell 0. The mean of a bin lies between its low and high"),
        ("high", [0.3, 0.3], "score: 0.1 in cell 0. The mean of a bin lies between its low and high"),
        ("low", [0.05, 0.31], "score: 0.1 in cell 0. The mean of a bin lies between"),
    ],
)
def test_a_damaged_bin_is_refused(column, values, text, tmp_path):
    data = EvaluationSet([1, 0, None], [0.0999, 0.1001, 0.3]).binned(64)
    path = data.to_parquet(tmp_path / "set.parquet")
    pl.read_parquet(path).with_columns(pl.Series(column, values)).write_parquet(path)
    with pytest.raises(InputError) as error:
        EvaluationSet.from_parquet(path)
    assert str(error.value).startswith(f"{path}: {text}")


def test_a_bin_across_the_threshold_is_refused(tmp_path):
    path = EvaluationSet([1, 0, None], [0.0999, 0.1001, 0.3]).binned(64).to_parquet(tmp_path / "set.parquet")
    pl.read_parquet(path).with_columns(threshold=pl.lit(0.1)).write_parquet(path)
    with pytest.raises(
        InputError, match=r"decision: False in cell 0\. Decisions are positive from the threshold 0\.1 on"
    ):
        EvaluationSet.from_parquet(path)


def test_a_file_that_is_not_parquet_is_refused_by_name(engine, tmp_path):
    path = tmp_path / "set.parquet"
    whole = small().to_parquet(path).read_bytes()
    for content, text in (
        (b"", "is not Parquet"),
        (b"score,missing\n0.5,1\n", "is not Parquet"),
        (json.dumps({"score": 1}).encode(), "is not Parquet"),
        (whole[: len(whole) // 2], "cannot be read as Parquet; damaged or incomplete?"),
        (whole[:4], "cannot be read as Parquet; damaged or incomplete?"),
        (whole[:-8] + b"\xff" * 8, "cannot be read as Parquet; damaged or incomplete?"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError) as error:
            EvaluationSet.from_parquet(path)
        assert str(error.value).startswith(f"{path}: {text}"), content[:20]


def test_rows_are_not_taken_for_cells(tmp_path):
    path = tmp_path / "rows.parquet"
    pd.DataFrame({"y": [1, 0], "score": [0.5, 0.6]}).to_parquet(path)
    with pytest.raises(
        InputError, match=r"no column 'format_version'.* EvaluationSet\.from_frame reads a table of rows"
    ):
        EvaluationSet.from_parquet(path)


def test_without_any_engine_the_error_says_which_to_install(tmp_path, monkeypatch):
    path = small().to_parquet(tmp_path / "set.parquet")
    monkeypatch.setattr(readers, "_installed", lambda name: False)
    with pytest.raises(InputError, match="writing Parquet takes one of polars, pyarrow, pandas, and none is installed"):
        small().to_parquet(path)
    with pytest.raises(InputError, match="reading parquet takes one of polars, pyarrow, pandas, and none is installed"):
        EvaluationSet.from_parquet(path)


def test_a_table_of_stored_cells_is_named_where_rows_are_wanted(tmp_path):
    EvaluationSet([1, 0, None], [0.9, 0.2, 0.5]).to_parquet(tmp_path / "cells.parquet")
    with pytest.raises(
        InputError, match=r"^y_true: .* counts of a stored set, which EvaluationSet\.from_parquet reads"
    ):
        evaluate("fraud", "p", data=tmp_path / "cells.parquet")
