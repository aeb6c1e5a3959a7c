"""Calls that go slightly wrong are answered in words, and by the same rule wherever they are made."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import darkmetrics as dm
from darkmetrics.cli.app import run
from darkmetrics.integrations.mlflow import log_evaluation
from darkmetrics.tables import number_text

Y_TRUE, Y_SCORE = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]


@pytest.fixture(scope="module")
def result():
    return dm.evaluate(
        Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed([0.7, 0.2]), metrics=["recall", "precision", "expected_cost(1,5)"]
    )


@pytest.mark.parametrize("targets", [["recall"], "recall", ("recall", 0.5), 5], ids=repr)
def test_targets_that_are_no_mapping_are_refused_by_reports(result, targets):
    with pytest.raises(dm.InputError, match=r"^targets: .* It must be a mapping such as"):
        result.report(targets=targets)


def test_targets_that_are_no_mapping_are_refused_by_mlflow(result):
    targets: Any = ["recall"]
    with pytest.raises(dm.InputError, match=r"^targets: .* It must be a mapping such as"):
        log_evaluation(result, targets=targets)


def test_targets_out_of_range_are_refused_by_one_rule(result):
    asked = {
        "targets": lambda: result.report(targets={"recall": 80}),
        "target": lambda: result.target_probability("recall", 80),
    }
    for argument, ask in asked.items():
        with pytest.raises(dm.InputError, match=rf"^{argument}: 80 .*lies between 0 and 1. Pass 0.8 for 80%") as raised:
            ask()
        assert raised.value.argument == argument
    with pytest.raises(dm.InputError, match=r"^target: 2 for 'recall'\. recall lies between"):
        result.tipping_point("recall", 2)


def test_names_are_read_in_results_as_in_metrics(result):
    name = "expected_cost(1, 5)"
    assert result["expected_cost(1,5)"] is result[name]
    assert result.target_probability("expected_cost(1,5)", 0.5) == result.target_probability(name, 0.5)
    assert result.sentence("expected_cost(1,5)") == result.sentence(name)
    summary = dm.report.summarize(result, targets={"expected_cost(1,5)": 0.5})
    assert summary["metrics"][name]["target"]["value"] == 0.5
    with pytest.raises(KeyError, match="unknown metric 'expected_cost"):
        result["expected_cost(1,6)"]


def test_threshold_for_names_its_own_argument(result):
    curves = dm.threshold_curves(result)
    wrongs: tuple[Any, ...] = (
        ["recall"],
        "recall",
        {},
        {"recal": 0.5},
        {"recall": "high"},
        {"precision": 1.0, "recall": 1.0},
    )
    for wrong in wrongs:
        with pytest.raises(dm.InputError, match=r"^targets: "):
            curves.threshold_for(wrong)
    with pytest.raises(dm.InputError, match=r"^constraint: "):
        curves.best_threshold("precision", constraint=wrongs[0])


def test_a_target_named_twice_is_refused(result):
    with pytest.raises(dm.InputError, match=r"^targets: 'recall' is named twice, with 0.9 and 0.5"):
        dm.threshold_curves(result).threshold_for({"recall": 0.9}, recall=0.5)


@pytest.mark.parametrize("levels", [None, "0.9", object()], ids=["None", "text", "object"])
def test_levels_that_are_no_numbers_are_refused_by_curves(result, levels):
    with pytest.raises(dm.InputError, match=r"^confidence_levels: expected a number or several"):
        dm.threshold_curves(result, confidence_levels=levels)


def test_one_threshold_without_brackets_is_told_how(result):
    one: Any = 0.5
    with pytest.raises(dm.InputError, match=r"^thresholds: 0.5. Give \[0.5\] for one threshold, or a whole number"):
        dm.threshold_curves(result, thresholds=one)
    assert dm.threshold_curves(result, thresholds=[one]).thresholds.tolist() == [0.5]


KEYS = {
    "periods": list(pd.period_range("2026-01", periods=2, freq="M")),
    "intervals": list(pd.IntervalIndex.from_breaks([0, 1, 2])),
    "numbers beside text": [1, "one"],
    "numbers": [1, 2],
    "missing": ["a", None],
}


@pytest.mark.parametrize("keys", KEYS.values(), ids=list(KEYS))
def test_keys_that_no_column_of_arrow_holds_are_text_there(keys):
    pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    table = pd.DataFrame({"y": [1, 0, None, 1, 0, 1] * 20, "s": np.linspace(0.01, 0.99, 120)})
    table["key"] = pd.Series([keys[i % 2] for i in range(120)], dtype=object)
    found = dm.evaluate_by("y", "s", data=table, by="key", metrics="recall", missingness="random")
    odd = keys[0] is not None and not isinstance(keys[0], str) and keys != [1, 2]
    expected = {None if key is None else str(key) if odd else key for key in keys}
    assert set(found.to_frame("pyarrow")["key"].to_pylist()) == expected
    assert set(found.to_frame("polars")["key"].to_list()) == expected
    assert set(found.to_frame("pandas")["key"].dropna()) == {key for key in keys if key is not None}


@pytest.mark.parametrize("jobs", [0, -2, 1.5, True], ids=repr)
def test_a_number_of_jobs_is_refused_in_the_same_words(jobs):
    table = pd.DataFrame({"y": Y_TRUE, "s": Y_SCORE, "key": ["a", "b"] * 4})
    for ask in (
        lambda: dm.evaluate_by("y", "s", data=table, by="key", n_jobs=jobs),
        lambda: dm.backtest([1, 0] * 20, np.linspace(0.01, 0.99, 40), n_jobs=jobs),
    ):
        with pytest.raises(dm.InputError, match=r"^n_jobs: .* a whole number of at least 1, or -1 for one per core"):
            ask()


def test_odds_below_one_are_told_of_bounds_that_there_are(result):
    with pytest.raises(dm.InputError, match=r"^odds: 0.*result\[metric\]\.support\(\)"):
        result.sensitivity(odds=0)


@pytest.mark.parametrize("ask", [dm.evaluate, dm.diagnose, dm.bounds], ids=lambda ask: ask.__name__)
def test_an_answer_in_place_of_data_is_told_where_its_data_are(result, ask):
    with pytest.raises(dm.InputError, match=r"^y_true: an Evaluation.* result\.data\. .* result\.diagnosis"):
        ask(result)


def test_a_folder_of_csv_files_is_told_the_pattern(tmp_path):
    (tmp_path / "june.csv").write_text("y,p\n1,0.9\n0,0.2\n,0.4\n")
    with pytest.raises(
        dm.InputError, match=r"no Parquet file in this folder. For its CSV files pass the pattern "
    ) as told:
        dm.evaluate("y", "p", data=tmp_path, missingness="random")
    pattern = str(told.value).split("'")[-2]
    assert dm.evaluate("y", "p", data=pattern, missingness=dm.missing.Fixed(0.5)).data.n_rows == 3


def test_a_misspelt_command_is_asked_about_in_one_sentence(capsys):
    assert run(["evaluat"]) == 2
    assert "Did you mean 'evaluate'? Try 'darkmetrics --help'." in capsys.readouterr().err


def test_words_go_with_numbers_and_kinds(result):
    data: Any = result.data
    with pytest.raises(dm.InputError, match="got an EvaluationSet"):
        dm.threshold_curves(data)
    with pytest.raises(dm.InputError, match=r"k: precision_at_k\(3\).*the weights of all rows sum to 0.008"):
        dm.evaluate(
            Y_TRUE, Y_SCORE, metrics="precision_at_k(3)", missingness=dm.missing.Fixed(0.5), sample_weight=[0.001] * 8
        )


def test_columns_of_one_name_are_refused_as_scores():
    scores = pd.DataFrame([[0.1, 0.2], [0.3, 0.4]], columns=["a", "a"])
    with pytest.raises(dm.InputError, match=r"^scores: column names must differ\."):
        dm.compare([1, 0], scores)


def test_a_comparison_without_labels_speaks_of_its_own_arguments():
    with pytest.raises(dm.InputError, match=r"no labeled row.* dm\.missing\.Fixed\(scores\['a'\]\) if the scores are"):
        dm.compare([None, None], {"a": [0.1, 0.2], "b": [0.3, 0.4]})


def test_a_page_is_written_to_a_text_or_a_path(result):
    path: Any = b"page.html"
    with pytest.raises(dm.InputError, match=r"^path: got a bytes\. Give the file to write as a text or a path\."):
        result.report(path)


def test_what_rounds_to_zero_has_no_sign():
    assert number_text(-0.0004, 3) == "0.000"
    assert number_text(-0.0005001, 3) == "-0.001"


DATES = np.array(["2026-01-01", "2026-01-02", "NaT", "2026-01-01"] * 5, dtype="datetime64[ns]")
DATE_SCORES = np.linspace(0.1, 0.9, DATES.size)


@pytest.mark.parametrize("unit", ["D", "us", "ns"])
@pytest.mark.parametrize("function", [dm.evaluate, dm.bounds, dm.diagnose, dm.backtest, dm.EvaluationSet])
def test_dates_as_labels_are_refused_by_every_function(function, unit):
    with pytest.raises(dm.InputError, match=r"^y_true: found datetime\..* at row 0\. Dates and times are not labels\."):
        function(DATES.astype(f"datetime64[{unit}]"), DATE_SCORES)


def test_dates_as_predictions_are_refused():
    with pytest.raises(dm.InputError, match=r"^y_pred: found datetime\..* Dates and times are not labels\."):
        dm.evaluate([1, 0, None, 1] * 5, DATE_SCORES, y_pred=DATES)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pl.LazyFrame])
def test_dates_as_labels_of_a_frame_are_refused(frame):
    with pytest.raises(dm.InputError, match=r"^y_true column 'y': .*Dates and times are not labels\. Pass two classes"):
        dm.evaluate("y", "p", data=frame({"y": DATES, "p": DATE_SCORES}))
