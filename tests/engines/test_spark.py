"""Spark: one shuffle, and few rows that reach the driver, however many there are."""

from typing import Any

import numpy as np
import pytest

from darkmetrics import InputError
from darkmetrics.frames import ColumnNames, collecting, counting

pytestmark = pytest.mark.heavy_engines
count_cells: Any = counting.count_cells


@pytest.fixture
def scored(spark):
    """200,000 rows made inside of Spark."""
    return spark.range(200_000, numPartitions=4).selectExpr(
        "pow(rand(1), 4) as p", "case when rand(2) < 0.3 then null when rand(3) < 0.1 then 1 else 0 end as y"
    )


@pytest.fixture
def queries(monkeypatch):
    """The queries whose answers reached this process."""
    seen: list[Any] = []

    def noted(query):
        seen.append(query)
        return collecting.collected(query)

    monkeypatch.setattr(counting, "collected", noted)
    return seen


def test_the_count_takes_a_single_shuffle(scored, queries, capsys):
    count_cells(scored, ColumnNames("y", "p"), threshold=0.5, score_bins=2**16)
    assert len(queries) == 1
    queries[0].to_native().explain()
    # Of a query that has run, Spark shows the plan that it took in the end and the one that it began with.
    for plan in capsys.readouterr().out.split("== Initial Plan =="):
        assert plan.count("Exchange") == 1, plan


def test_the_driver_gets_no_more_cells_than_bins(scored, queries):
    counted = count_cells(scored, ColumnNames("y", "p"), threshold=0.31, score_bins=1024)
    assert counted.score_bins == 1024
    assert 800 < counted.score.size <= 1025
    assert counted.positives.sum() + counted.negatives.sum() + counted.missing.sum() == 200_000


def test_spark_finds_the_cells_that_numpy_finds(scored):
    cached = scored.cache()
    rows = cached.toArrow()
    score, label = rows["p"].to_numpy(), rows["y"].to_numpy(zero_copy_only=False)
    from_spark = count_cells(cached, ColumnNames("y", "p"), threshold=0.5, score_bins=2**12)
    from_arrow = count_cells(rows, ColumnNames("y", "p"), threshold=0.5, score_bins=2**12)
    cached.unpersist()
    for name in ("decision", "positives", "negatives", "missing", "low", "high"):
        np.testing.assert_array_equal(getattr(from_spark, name), getattr(from_arrow, name))
    # Sums in another order.
    np.testing.assert_allclose(from_spark.score, from_arrow.score, rtol=1e-12)
    assert from_spark.positives.sum() == np.sum(label == 1)
    assert from_spark.low[0] == score.min()


def test_names_with_dots_and_backticks_are_names_and_not_fields(spark):
    """The struct has a field of that name too, with another score."""
    frame = spark.range(6).selectExpr(
        "CAST(id % 2 AS INT) AS `la``b.el`", "named_struct('score', 0.875D) AS model", "0.125D AS `model.score`",
        "id % 3 AS `k.1`", "DATE'2024-01-01' AS `a.day`",
    )  # fmt: skip
    names = ColumnNames("la`b.el", "model.score")
    counted = count_cells(frame, names, threshold=0.5, by="k.1", time="a.day", period="month")
    assert counted.score.tolist() == [0.125] * 3
    assert counted.positives.tolist() == counted.negatives.tolist() == [1, 1, 1]
    assert counted.keys["k.1"] == [0, 1, 2]
    assert [str(day) for day in counted.keys["a.day"]] == ["2024-01-01"] * 3
    with pytest.raises(InputError, match=r"^y_score: data has no column 'model\.scores'\. Did you mean 'model\.score'"):
        count_cells(frame, ColumnNames("la`b.el", "model.scores"), threshold=0.5)


def test_columns_that_spark_cannot_tell_apart(spark):
    left = spark.range(4).selectExpr("id", "CAST(id % 2 AS INT) AS y", "0.5D AS p")
    joined = left.join(spark.range(4).selectExpr("id", "id AS y", "0.25D AS P"), "id")
    with pytest.raises(InputError, match=r"^y_true: data has 2 columns 'y'\. Rename or drop all but one\."):
        count_cells(joined, ColumnNames("y", "p"), threshold=0.5)
    assert count_cells(joined, ColumnNames("id", "P"), threshold=0.5).score.tolist() == [0.25]


def test_maps_are_neither_keys_nor_labels(spark):
    frame = spark.range(4).selectExpr("CAST(id % 2 AS INT) AS y", "0.5D AS p", "map('a', id) AS m")
    with pytest.raises(
        InputError, match=r"^by column 'm': has type map<string,bigint>\. A key needs one value per row"
    ):
        count_cells(frame, ColumnNames("y", "p"), threshold=0.5, by="m")
    with pytest.raises(InputError, match=r"^y_true column 'm': has type map<string,bigint>\. Expected booleans"):
        count_cells(frame, ColumnNames("m", "p"), threshold=0.5)
