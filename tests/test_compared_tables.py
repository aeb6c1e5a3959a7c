"""Tables of any engine are compared by their exact scores, and where these do not fit, buckets say what they move."""

from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score

import darkmetrics as dm
from darkmetrics.frames import counting

pl = pytest.importorskip("polars")
duckdb = pytest.importorskip("duckdb")

SKLEARN = {"roc_auc": roc_auc_score, "average_precision": average_precision_score, "brier": brier_score_loss}


def few_positives(n=400, models="ABCD"):
    """Scores that crowd near zero, as those of rare events do: they share few buckets."""
    rng = np.random.default_rng(0)
    y = (rng.random(n) < 0.02).astype(int)
    gains = dict(zip("ABCD", (1.2, 1.3, 1.1, 1.25), strict=True))
    scores = {name: 1.0 / (1.0 + np.exp(5.0 - rng.normal(size=n) - gain * y)) for name, gain in gains.items()}
    return pl.DataFrame({"y": y, **scores}).select("y", *models)


def whole_numbers(n=5000):
    """Credit scores from 300 to 850, of which the lowest are the worst."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=n)
    y = (rng.random(n) < 1.0 / (1.0 + np.exp(3.0 - 1.2 * z))).astype(int)
    noise = {"A": 0.5, "B": 0.5, "C": 0.6}
    scores = {k: -(650 - 50 * (z + s * rng.normal(size=n))).round().clip(300, 850) for k, s in noise.items()}
    return pl.DataFrame({"y": y, **scores})


def written(table, path, how):
    getattr(table, how)(path)
    return str(path)


@pytest.fixture
def in_every_place(tmp_path):
    def places(table):
        yield "pandas", table.to_pandas()
        yield "polars", table
        yield "lazy", table.lazy()
        yield "arrow", table.to_arrow()
        yield "duckdb", duckdb.from_arrow(table.to_arrow())
        yield "parquet", written(table, tmp_path / "rows.parquet", "write_parquet")
        yield "csv", written(table, tmp_path / "rows.csv", "write_csv")

    return places


@pytest.mark.parametrize(("make", "threshold"), [(few_positives, 0.02), (whole_numbers, -600.0)])
def test_tables_of_every_engine_are_compared_by_their_exact_scores(make, threshold, in_every_place):
    table = make()
    models = table.columns[1:]
    truth = {model: roc_auc_score(table["y"], table[model]) for model in models}
    said = set()
    for name, frame in in_every_place(table):
        found = dm.compare("y", models, data=frame, metrics="roc_auc", threshold=threshold)
        assert found.rows.score_bins is None, name
        assert found.probability_best("roc_auc").model == max(truth, key=lambda model: truth[model]), name
        for model in models:
            assert abs(found[model]["roc_auc"].mean() - truth[model]) < 1e-12, name
        said.add(str(found))
    assert len(said) == 1


def test_every_engine_draws_the_same_labels(in_every_place):
    table = few_positives(300)
    hidden = pl.Series(np.arange(300) % 3 == 0)
    table = table.with_columns(y=pl.when(~hidden).then(pl.col("y")))
    told: Any = {"y_true": "y", "scores": list("ABCD"), "metrics": ["roc_auc", "f1"], "threshold": 0.02, "rng": 0}
    said = set()
    for _, frame in in_every_place(table):
        found = dm.compare(data=frame, missingness="random", **told)
        said.add(
            str([found.probability_best(metric) for metric in ("roc_auc", "f1")])
        )  # which is drawn; laws of a model are not
    assert len(said) == 1


@pytest.mark.parametrize("score_bins", [16, 64, 512])
@pytest.mark.parametrize("models", ["AD", "ABCD"])
def test_buckets_move_no_metric_and_no_difference_further_than_they_say(models, score_bins):
    table = few_positives(models=models)
    told: Any = {"y_true": "y", "scores": list(models), "metrics": list(SKLEARN), "threshold": 0.02}
    found = dm.compare(data=table, score_bins=score_bins, **told)
    truth = {k: {m: exact(table["y"], table[m]) for m in models} for k, exact in SKLEARN.items()}
    for metric, values in truth.items():
        for model in models:
            bound = found[model].binning_error[metric]
            assert bound > 0.0
            assert abs(found[model][metric].mean() - values[model]) <= bound + 1e-12
        for other in models[1:]:
            moved = found.difference(metric, other, "A").mean() - (values[other] - values["A"])
            assert abs(moved) <= found.binning_error(metric, other, "A") + 1e-12
    assert f"Scores are in {score_bins} buckets: that moves roc_auc by at most" in found._notes()[-1]
    entry = found.to_dict()["metrics"]["roc_auc"]["differences"][0]
    assert entry["binning_error"] == found.binning_error("roc_auc", models[1], "A")


@pytest.mark.parametrize("models", ["AD", "ABCD"])
def test_a_chance_that_buckets_may_turn_is_never_said_without_a_word(models):
    table = few_positives(models=models)
    told: Any = {"y_true": "y", "scores": list(models), "metrics": "roc_auc", "threshold": 0.02}
    rough = dm.compare(data=table, score_bins=32, **told)
    assert rough.probability_best("roc_auc").model == "D"  # A with exact scores
    assert "100% (0% to 100%)" in str(rough)
    assert "100% (0% to 100%)" in rough.report().html
    assert rough.probability_best("roc_auc").to_dict()["ranges"]["D"] == [0.0, 1.0]
    assert "with exact scores the probability is 0% to 100%" in rough.sentence("roc_auc", "D", "A")
    exact = dm.compare(data=table, **told)
    assert exact.probability_best("roc_auc").ranges == {}
    assert "(0%" not in str(exact)
    assert "bucket" not in str(exact)


@pytest.mark.parametrize("scope", ["rows", "population"])
@pytest.mark.parametrize("models", ["AD", "ABCD"])
def test_chances_with_exact_scores_are_within_what_buckets_leave_open(models, scope):
    table = few_positives(models=models)
    table = table.with_columns(y=pl.when(pl.Series(np.arange(400) % 4 > 0)).then(pl.col("y")))
    told: Any = {
        "y_true": "y",
        "scores": list(models),
        "metrics": "roc_auc",
        "threshold": 0.02,
        "missingness": dm.missing.Fixed(0.02),
    }
    exact, rough = (dm.compare(data=table, rng=0, score_bins=n, **told) for n in ("exact", 1024))
    chances = exact.probability_best("roc_auc", scope=scope)
    widths = []
    for model, (low, high) in rough.probability_best("roc_auc", scope=scope).ranges.items():
        assert low - 0.01 <= chances[model] <= high + 0.01  # what draws leave open
        widths.append(high - low)
    assert 0.0 < max(widths) < 0.9
    low, high = rough.better_range("roc_auc", "D", "A", scope=scope)
    assert low - 1e-9 <= exact.probability_better("roc_auc", "D", "A", scope=scope) <= high + 1e-9


def test_a_metric_whose_bound_is_not_known_leaves_every_chance_open():
    table = few_positives(models="AD")
    told: Any = {"y_true": "y", "scores": ["A", "D"], "threshold": 0.02, "score_bins": 32}
    loss = dm.metrics.LossMetric(name="odd", loss=lambda y, s: np.sin(9.0 * (s - y)), better="lower", range=(-1, 1))
    found = dm.compare(data=table, metrics=loss, **told)
    assert np.isnan(found.binning_error("odd", "D", "A"))
    assert set(found.probability_best("odd").ranges.values()) == {(0.0, 1.0)}
    assert "is not known: with exact scores the probability is 0% to 100%" in found.sentence("odd")


def test_beyond_the_rows_that_fit_buckets_are_as_fine_as_cells_allow(monkeypatch):
    monkeypatch.setattr(counting, "MOST_EXACT", 200)
    table = few_positives(2000)
    told: Any = {"y_true": "y", "scores": list("ABCD"), "metrics": "roc_auc", "threshold": 0.02}
    fine = dm.compare(data=table.lazy(), **told)
    assert fine.rows.score_bins == 65_536
    assert max(fine.effects("roc_auc")) < 1e-4
    monkeypatch.setattr(counting, "_MOST_WEIGHTED", 1000)
    four, two = (dm.compare(data=table.lazy(), **{**told, "scores": list(models)}).rows for models in ("ABCD", "AB"))
    assert four.missing.size <= 1000
    assert four.score_bins is not None
    assert two.score_bins is not None
    assert 16 <= four.score_bins < 128 <= two.score_bins


def test_few_different_scores_of_many_rows_are_exact(monkeypatch):
    monkeypatch.setattr(counting, "MOST_EXACT", 4000)
    monkeypatch.setattr(counting, "_BUCKETS", 256)
    rng = np.random.default_rng(0)
    columns = {name: rng.integers(300, 330, 20_000).astype(float) for name in "AB"}
    table = pl.DataFrame({"y": rng.integers(0, 2, 20_000), **columns})
    found = dm.compare("y", ["A", "B"], data=table.lazy(), metrics="roc_auc", threshold=310.0)
    assert found.rows.score_bins is None
    assert found.rows.missing.size <= 900
    assert abs(found["A"]["roc_auc"].mean() - roc_auc_score(table["y"], table["A"])) < 1e-12


# Reference rows of a table --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("named", [True, False])
def test_reference_rows_of_a_table_are_those_of_arrays(named):
    rng = np.random.default_rng(3)
    champion, challenger = rng.random(600).round(2), rng.random(600).round(2)
    y = (rng.random(600) < 0.5 * (champion + challenger)).astype(float)
    partly = np.where(rng.random(600) < 0.4, np.nan, y)[:400]
    old = pl.DataFrame({"y": y[400:], "p1": champion[400:], "p2": challenger[400:]})
    now = pl.DataFrame({"y": partly, "p1": champion[:400], "p2": challenger[:400]})
    columns = {"champion": "p1", "challenger": "p2"}
    of_arrays = dm.missing.Reference(y[400:], {"champion": champion[400:], "challenger": challenger[400:]})
    of_table = dm.missing.Reference("y", columns if named else None, data=old)
    expected, found = (
        dm.compare("y", columns, data=now, missingness=reference, metrics=["recall", "roc_auc"])
        for reference in (of_arrays, of_table)
    )
    for metric in ("recall", "roc_auc"):
        pair = (metric, "challenger", "champion")
        assert found.difference(*pair).mean() == pytest.approx(expected.difference(*pair).mean(), abs=1e-12)
        assert found.probability_better(*pair) == pytest.approx(expected.probability_better(*pair), abs=1e-12)
    theirs, ours = (result.by_calibration("recall", "challenger", "champion") for result in (expected, found))
    assert {name: law.mean() for name, law in ours.items()} == pytest.approx(
        {n: law.mean() for n, law in theirs.items()}
    )


@pytest.mark.parametrize(
    ("scores", "reference", "answer"),
    [
        (["p1", "p2"], ("y", "p1"), r"one column of scores, 'p1'\. .*dm\.missing\.Reference\('y', \{'p1': 'p1', 'p2'"),
        (["p1", "p2"], ("y", {"p1": "p1"}), "one model, 'p1'"),
        ({"a": "p1", "b": "p2"}, ("y", {"a": "p1", "c": "p2"}), "no scores of 'b'"),
        (["p1", "p2"], ("z",), "y_true: data has no column 'z'"),
    ],
)
def test_reference_tables_that_lack_scores_are_refused(scores, reference, answer):
    table = pl.DataFrame({"y": [1, 0, None, 1], "p1": [0.9, 0.2, 0.7, 0.4], "p2": [0.8, 0.6, 0.3, 0.7]})
    columns: Any = dict(zip(("y_true", "y_score"), reference, strict=False))
    old = dm.missing.Reference(**columns, data=table.drop_nulls())
    with pytest.raises(dm.InputError, match=answer):
        dm.compare("y", scores, data=table, missingness=old)
