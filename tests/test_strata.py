"""Strata: a number that tells rows of one kind apart, for label models and not for metrics."""

import itertools
import warnings
from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, recall_score, roc_auc_score

import darkmetrics as dm
from darkmetrics import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.frames import ColumnNames, count_cells
from darkmetrics.missing import Mechanism
from darkmetrics.posterior import Posterior
from row_values import build_set

# Every registered metric, of families an example.
METRICS = [
    record.example if isinstance(record, dm.metrics.Family) else record
    for record in map(dm.metrics.registered, dm.metrics.registered_names())
]


def rows(
    seed: int, n: int = 40, *, weighted: bool = False, chances: bool = False, given: bool = False
) -> dict[str, Any]:
    """Rows with many ties: the arguments of an EvaluationSet, without strata."""
    rng = np.random.default_rng(seed)
    score = rng.choice(np.linspace(0.05, 0.95, max(4, n // 3)), n)
    found: dict[str, Any] = {
        "y_true": np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < score),
        "y_score": score,
        "sample_weight": rng.choice([1.0, 2.0, 3.0], n) if weighted else None,
        "probability": np.round(0.5 * score + 0.2, 2) if chances else None,
        "y_pred": rng.random(n) < score if given else None,
    }
    return found


def strata(seed: int, n: int) -> Any:
    return np.random.default_rng(seed + 1000).integers(-2, 3, n)


def counted(data: EvaluationSet) -> Counter[tuple[float, bool, float, int, str]]:
    """How many rows of each kind there are."""
    c, found = data.cells, Counter[tuple[float, bool, float, int, str]]()
    weight = np.ones(c.score.size) if c.weight is None else c.weight
    assert c.stratum is not None
    for i in range(c.score.size):
        for name in ("positives", "negatives", "missing"):
            number = int(getattr(c, name)[i])
            if number:
                key = (float(c.score[i]), bool(c.decision[i]), float(weight[i]), int(c.stratum[i]), name)
                assert key not in found  # each once
                found[key] = number
    return found


def counted_from(arguments: dict[str, Any], stratum: Any, threshold: float = 0.5) -> Counter[Any]:
    """The same from the rows."""
    found: Counter[Any] = Counter()
    n = arguments["y_score"].size
    weight = np.ones(n) if arguments["sample_weight"] is None else arguments["sample_weight"]
    for i in range(n):
        y, s = arguments["y_true"][i], float(arguments["y_score"][i])
        name = "missing" if np.isnan(y) else "positives" if y else "negatives"
        decided = s >= threshold if arguments["y_pred"] is None else bool(arguments["y_pred"][i])
        found[s, decided, float(weight[i]), int(stratum[i]), name] += 1
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_cells_are_the_rows_counted_by_stratum(weighted, given):
    arguments, number = rows(1, weighted=weighted, given=given), strata(1, 40)
    data = build_set(strata=number, **arguments)
    assert counted(data) == counted_from(arguments, number)
    assert data.counts() == build_set(**arguments).counts()


# ------------------------------------------------------------------------------------------------- metrics ignore them


@pytest.mark.parametrize(
    ("model", "seed"),
    [(model, seed) for model in ("given", "unknown") for seed in range(6)]
    + [(model, seed) for model in ("half", "random", "by_label") for seed in (1, 2, 4)],
)
def test_strata_change_the_law_of_no_metric(seed, model):
    kind = {"weighted": bool(seed % 2), "given": seed % 3 == 2, "chances": model == "given"}
    arguments = rows(seed, n=24 if seed < 3 else 150, **kind)
    plain, split = (
        build_set(**arguments),
        build_set(strata=strata(seed, arguments["y_score"].size), **arguments),
    )
    assert split.cells.score.size > plain.cells.score.size
    mechanism = {"given": dm.missing.Fixed(), "half": dm.missing.Fixed(0.5)}.get(model, model)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of 0/0, of reasons that differ: the same for both
        one, two = (dm.evaluate(data, metrics=METRICS, rng=0, missingness=mechanism) for data in (plain, split))
    for name, distribution in one.items():
        other = two[name]
        assert other.method == distribution.method, name
        numbers = [
            [*(x.support()), x.undefined, *([x.mean(), x.std()] if x.undefined < 1.0 else [])]
            for x in (distribution, other)
        ]
        np.testing.assert_allclose(numbers[1], numbers[0], rtol=1e-12, atol=1e-12, err_msg=name)
        if distribution.undefined < 1.0:
            # Between atoms, where rounding in the place of an atom does not count.
            t = distribution.ppf(np.linspace(0.05, 0.95, 7)) + 1e-9
            np.testing.assert_allclose(other.cdf(t), distribution.cdf(t), rtol=0.0, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(two.labeled_only[name], one.labeled_only[name], rtol=1e-12, err_msg=name)


def test_rows_of_one_score_in_different_strata_are_ties():
    data = EvaluationSet([1, 0, 1, 0, None], [0.5] * 5, missingness=dm.missing.Unknown(strata=[1, 2, 3, 4, 5]))
    distribution = dm.evaluate(data, metrics="roc_auc", missingness=dm.missing.Fixed(0.5))["roc_auc"]
    assert distribution.support() == (0.5, 0.5)


def test_buckets_hold_all_strata_of_a_score():
    arguments, number = rows(3, n=200), strata(3, 200)
    plain, split = (build_set(**arguments, **more).binned(16) for more in ({}, {"strata": number}))
    assert plain.cells.tie_ends[0].tolist() == split.cells.tie_ends[0].tolist()
    distributions = [
        dm.evaluate(data, metrics=["roc_auc", "brier"], missingness=dm.missing.Fixed(0.3)) for data in (plain, split)
    ]
    for name in ("roc_auc", "brier"):
        assert distributions[1][name].mean() == pytest.approx(distributions[0][name].mean(), rel=1e-12)
        assert distributions[1][name].std() == pytest.approx(distributions[0][name].std(), rel=1e-12)


# -------------------------------------------------------------------------------------------- label models may use them


@dataclass(frozen=True)
class ByStratum(Mechanism):
    """A share of positives for each stratum, looked up."""

    share: dict[int, float]

    def posterior(self, data: EvaluationSet) -> Posterior:
        assert data.cells.stratum is not None
        return Posterior.single(np.array([self.share[int(s)] for s in data.cells.stratum[data.missing_cells]]))

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return "Assumed: a share for each stratum."


BY_SKLEARN = {
    "recall": lambda y, s: recall_score(y, s >= 0.5),
    "roc_auc": roc_auc_score,
    "brier": brier_score_loss,
    "average_precision": average_precision_score,
}


@pytest.mark.parametrize("metric", BY_SKLEARN)
def test_law_of_a_model_that_tells_strata_apart_equals_brute_force(metric):
    y = np.array([1, 0, np.nan, np.nan, np.nan, 0, 1, np.nan])
    score = np.array([0.9, 0.7, 0.7, 0.7, 0.7, 0.3, 0.3, 0.3])
    number = np.array([0, 0, 0, 1, 1, 0, 1, 1])
    share = {0: 0.2, 1: 0.9}
    data = EvaluationSet(y, score, missingness=dm.missing.Unknown(strata=number))
    distribution = dm.evaluate(data, metrics=metric, missingness=ByStratum(share))[metric]
    gaps = np.flatnonzero(np.isnan(y))
    mean = 0.0
    for labels in itertools.product([0, 1], repeat=gaps.size):
        full = y.copy()
        full[gaps] = labels
        p = np.array([share[int(s)] for s in number[gaps]])
        mean += float(np.prod(np.where(labels, p, 1.0 - p))) * BY_SKLEARN[metric](full, score)
    assert distribution.mean() == pytest.approx(mean, rel=1e-12)


# ------------------------------------------------------------------------------------------------------------- merging


def parts(seed: int, **kind: bool) -> tuple[list[dict[str, Any]], dict[str, Any], list[Any]]:
    each = [rows(seed + i, **kind) for i in range(3)]
    whole = {k: None if each[0][k] is None else np.concatenate([one[k] for one in each]) for k in each[0]}
    return each, whole, [strata(seed + i, 40) for i in range(3)]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("given", [False, True])
def test_sets_add_up_and_come_apart_stratum_by_stratum(weighted, given):
    each, whole, numbers = parts(10, weighted=weighted, given=given)
    sets = [build_set(strata=number, **one) for one, number in zip(each, numbers, strict=True)]
    total = EvaluationSet.concat(sets)
    assert counted(total) == counted_from(whole, np.concatenate(numbers))
    assert counted(total - sets[1]) == counted(sets[0] + sets[2])
    apart = counted(build_set(strata=np.concatenate(numbers), **whole))
    assert counted(sum(sets[1:], sets[0])) == apart


def test_buckets_add_up_stratum_by_stratum():
    each, _, numbers = parts(20)
    fine = [build_set(strata=number, **one) for one, number in zip(each, numbers, strict=True)]
    rough = fine[0].binned(16) + fine[1] + fine[2]
    all_at_once = EvaluationSet.concat(fine).binned(16)
    for name, column in all_at_once.cells.arrays().items():
        found = getattr(rough.cells, name)
        if column is None:
            assert found is None
        else:
            np.testing.assert_allclose(found, column, rtol=1e-15)
    left = rough - fine[1].binned(16)
    for s in range(-2, 3):
        inside = left.cells.stratum == s
        assert int(left.cells.total[inside].sum()) == int((np.concatenate([numbers[0], numbers[2]]) == s).sum())


def test_late_labels_go_to_their_stratum():
    data = EvaluationSet([None, None, 1], [0.7, 0.7, 0.7], missingness=dm.missing.Unknown(strata=[1, 2, 2]))
    later = data.with_labels(EvaluationSet([0], [0.7], missingness=dm.missing.Unknown(strata=[2])))
    assert counted(later) == {(0.7, True, 1.0, 1, "missing"): 1, (0.7, True, 1.0, 2, "positives"): 1,
                              (0.7, True, 1.0, 2, "negatives"): 1}  # fmt: skip
    with pytest.raises(InputError, match=r"^late: 2 labels for score 0.7 in stratum 1, where 1 is missing"):
        data.with_labels(EvaluationSet([0, 1], [0.7, 0.7], missingness=dm.missing.Unknown(strata=[1, 1])))


JOINS = {
    "a + b": lambda a, b: a + b,
    "b + a": lambda a, b: b + a,
    "a - b": lambda a, b: a - b,
    "b - a": lambda a, b: b - a,
    "with_labels": lambda a, b: a.with_labels(b),
    "merged": lambda a, b: EvaluationSet.concat([a, a, b]),
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
def test_sets_with_and_without_strata_do_not_mix(join):
    with pytest.raises(InputError, match=r"^strata: one set has them, the other has not\. Give them for both or"):
        join(
            EvaluationSet([1, None], [0.9, 0.2], missingness=dm.missing.Unknown(strata=[1, 2])),
            EvaluationSet([1, None], [0.9, 0.2]),
        )


def test_strata_stay_with_thresholds_and_parts_of_a_set():
    arguments, number = rows(5), strata(5, 40)
    data = build_set(strata=number, **arguments)
    moved = data.with_threshold(0.2)
    assert counted(moved) == counted_from(arguments, number, 0.2)
    known = ~np.isnan(arguments["y_true"])
    labeled = {k: None if v is None else v[known] for k, v in arguments.items()}
    assert counted(data.labeled()) == counted_from(labeled, number[known])
    assert counted(data.unlabeled()) == counted_from({**arguments, "y_true": np.full(40, np.nan)}, number)


# --------------------------------------------------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ([1, 0.5], r"^strata: 0\.5 at row 1\. Every row needs a stratum: text, or a whole number"),
        ([None, 1], r"^strata: NaN at row 0\."),
        ([1, 2**52], r"^strata: 4503599627370496 at row 1\."),
        ([1, np.inf], r"^strata: inf at row 1\."),
        ([1], r"^strata: 1 value, but y_score has 2\."),
    ],
)
def test_strata_that_are_no_whole_numbers_are_refused(number, message):
    with pytest.raises(InputError, match=message):
        EvaluationSet([1, 0], [0.9, 0.2], missingness=dm.missing.Unknown(strata=number))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_engines_count_by_stratum(lazy, weighted):
    arguments, number = rows(7, weighted=weighted), strata(7, 40)
    frame: Any = pl.DataFrame({"y": arguments["y_true"], "p": arguments["y_score"], "s": number}, nan_to_null=True)
    names: dict[str, Any] = {"y_true": "y", "y_score": "p", "missingness": dm.missing.Unknown(strata="s")}
    if weighted:
        frame, names = frame.with_columns(w=pl.Series(arguments["sample_weight"])), {**names, "sample_weight": "w"}
    data = EvaluationSet(data=frame.lazy() if lazy else frame, **names)
    assert counted(data) == counted_from(arguments, number)
    expected = build_set(strata=number, **arguments)
    for name, column in expected.cells.arrays().items():
        np.testing.assert_array_equal(getattr(data.cells, name), column)
    rough, coarse = EvaluationSet(data=frame, score_bins=16, **names), expected.binned(16)
    for name, column in coarse.cells.arrays().items():
        if column is not None:
            np.testing.assert_allclose(getattr(rough.cells, name), column, rtol=1e-14)


def test_groups_have_their_own_strata():
    frame = pl.DataFrame({"y": [1, 0, None, 1], "p": [0.5] * 4, "s": [2, 1, 1, 2], "k": ["a", "a", "b", "a"]})
    cells = count_cells(frame, ColumnNames("y", "p", stratum="s"), threshold=0.5, by="k")
    assert cells.stratum is not None
    assert cells.stratum.tolist() == [1, 2, 1]
    assert cells.positives.tolist() == [0, 2, 0]
    assert cells.starts.tolist() == [0, 2, 3]


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (
            [1, None],
            r"^strata column 's': 1 of 2 values is missing \(null or NaN\)\. Strata are text, or whole numbers",
        ),
        ([1.0, 0.5], r"^strata column 's': 1 of 2 values is no whole numbers \(such as 0\.5\)"),
    ],
)
def test_a_column_of_strata_is_checked(number, message):
    frame = pl.LazyFrame({"y": [1, 0], "p": [0.9, 0.2], "s": number})
    with pytest.raises(InputError, match=message):
        EvaluationSet("y", "p", data=frame, missingness=dm.missing.Unknown(strata="s"))


# ------------------------------------------------------------------------------------------------------------- parquet


@pytest.fixture
def stored(tmp_path):
    arguments = rows(8, weighted=True)
    data = build_set(strata=strata(8, 40), **arguments)
    return data, data.to_parquet(tmp_path / "cells.parquet")


def test_strata_are_stored_to_the_last_bit(stored, tmp_path):
    data, path = stored
    again = EvaluationSet.from_parquet(path)
    for name, column in data.cells.arrays().items():
        np.testing.assert_array_equal(getattr(again.cells, name), column)
    rough = data.binned(16)
    assert counted(EvaluationSet.from_parquet(rough.to_parquet(tmp_path / "rough.parquet"))) == counted(rough)


def test_a_set_without_strata_has_no_such_column(tmp_path):
    path = EvaluationSet([1, None], [0.9, 0.2]).to_parquet(tmp_path / "cells.parquet")
    assert "stratum" not in pl.read_parquet(path).columns
    assert EvaluationSet.from_parquet(path).cells.stratum is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            pl.col("stratum") + 0.5,
            r"stratum: -1\.5 in cell 0\. Strata are whole numbers below 2\*\*53 in size; the file",
        ),
        (pl.lit(None).cast(pl.Int64), r"stratum: nan in cell 0\. Strata are whole numbers"),
        (pl.col("stratum") + 1, r"checksum: "),
        (-pl.col("stratum"), r"Cells are sorted by score, and each is there once"),
        (pl.lit(0), r"Cells are sorted by score, and each is there once"),
    ],
)
def test_damaged_strata_are_refused(stored, change, message):
    _, path = stored
    table = pl.read_parquet(path)
    table.with_columns(stratum=change).write_parquet(path)
    with pytest.raises(InputError, match=message):
        EvaluationSet.from_parquet(path)


def test_a_checksum_covers_that_there_are_strata(stored):
    _, path = stored
    pl.read_parquet(path).drop("stratum").unique(
        ["score", "weight", "decision"], keep="first", maintain_order=True
    ).write_parquet(path)
    with pytest.raises(InputError, match=r"checksum: "):
        EvaluationSet.from_parquet(path)


# Strata of text -----------------------------------------------------------------------------------------------------

NAMES = np.array(["north", "süd", "east"])


def table_of_text(n=300, seed=5):
    rng = np.random.default_rng(seed)
    score = rng.random(n).round(2)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < score)
    return {"y": y, "p": score, "region": NAMES[rng.integers(0, 3, n)].tolist()}


def engines_of(table, tmp_path):
    import duckdb  # the engine scans local variables
    import pandas as pd

    pandas_table = pd.DataFrame(table)
    pandas_table.to_csv(tmp_path / "rows.csv", index=False)
    pl.DataFrame(table).write_parquet(tmp_path / "rows.parquet")
    return {
        "pandas": pandas_table,
        "categories": pandas_table.astype({"region": "category"}),
        "polars": pl.DataFrame(table),
        "lazy": pl.LazyFrame(table),
        "polars categories": pl.DataFrame(table).with_columns(pl.col("region").cast(pl.Categorical)),
        "arrow": pl.DataFrame(table).to_arrow(),
        "duckdb": duckdb.from_df(pandas_table),
        "csv": tmp_path / "rows.csv",
        "parquet": str(tmp_path / "rows.parquet"),
    }


def test_text_makes_the_strata_that_numbers_make_in_arrays_and_every_table(tmp_path):
    table = table_of_text()
    number = np.unique(table["region"], return_inverse=True)[1]
    by_number = EvaluationSet(table["y"], table["p"], missingness=dm.missing.ByScore(strata=number))
    by_text = EvaluationSet(table["y"], table["p"], missingness=dm.missing.ByScore(strata=table["region"]))
    assert by_text.cells.stratum is not None
    assert len({*by_text.cells.stratum.tolist()}) == 3
    # The same rows share a cell, whatever the strata are called.
    assert sorted(key[:3] + key[4:] for key in counted(by_text)) == sorted(k[:3] + k[4:] for k in counted(by_number))
    for name, data in engines_of(table, tmp_path).items():
        read = EvaluationSet("y", "p", data=data, missingness=dm.missing.ByScore(strata="region"))
        assert counted(read) == counted(by_text), name


def test_counts_by_text_are_merged_and_stored(tmp_path):
    first, second = table_of_text(seed=1), table_of_text(seed=2)
    both = {name: [*first[name], *second[name]] for name in first}
    parts = [
        EvaluationSet(part["y"], part["p"], missingness=dm.missing.ByScore(strata=part["region"]))
        for part in (first, second, both)
    ]
    assert counted(parts[0] + parts[1]) == counted(parts[2])
    path = parts[2].to_parquet(tmp_path / "counts.parquet")
    assert counted(EvaluationSet.from_parquet(path)) == counted(parts[2])


def test_an_evaluation_within_strata_of_text_is_that_within_numbers():
    """The levels of strata are shrunk to a common one, so that only their order differs."""
    table = table_of_text(n=2000)
    number = np.unique(table["region"], return_inverse=True)[1]
    by_number, by_text = (
        dm.evaluate(table["y"], table["p"], missingness=dm.missing.ByScore(strata=strata), metrics="recall")["recall"]
        for strata in (number, table["region"])
    )
    assert by_text.mean() == pytest.approx(by_number.mean(), abs=0.02 * by_number.std() + 1e-3)


def test_a_stratum_of_text_is_called_by_its_name_in_errors():
    table = table_of_text(n=2000)
    y = np.where((np.array(table["region"]) == "east") & (np.array(table["y"]) == 1.0), np.nan, table["y"])
    with pytest.raises(InputError, match=r"strata: stratum 'east' has [\d,]+ missing rows and no positive label"):
        dm.evaluate(y, table["p"], missingness=dm.missing.ByLabel(strata=table["region"]))


@pytest.mark.parametrize("gap", [None, float("nan")])
def test_every_row_needs_a_stratum_of_text(gap):
    with pytest.raises(InputError, match=r"strata: NaN at row 1\. Every row needs a stratum: text, or a whole"):
        EvaluationSet([1, 0], [0.9, 0.2], missingness=dm.missing.ByScore(strata=["a", gap]))
    table = pl.DataFrame({"y": [1, 0], "p": [0.9, 0.2], "region": ["a", None]})
    with pytest.raises(InputError, match=r"strata column 'region': 1 of 2 values is missing \(null or NaN\)"):
        EvaluationSet("y", "p", data=table, missingness=dm.missing.ByScore(strata="region"))
