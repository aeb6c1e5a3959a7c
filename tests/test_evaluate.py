"""evaluate() and Evaluation: what a user reads, what a program reads, and what is refused."""

import html.parser
import json
import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError, UndefinedMetricWarning
from darkmetrics.exceptions import UnknownNameError
from oracle import Problem, definition_of, distribution, sklearn_value, undefined_as

NAN = float("nan")
Y = [1, 0, None, 1, None, 0, 1, 0]
SCORE = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
P = [0.7, 0.2]
FIVE = ["precision", "recall", "accuracy", "f1", "roc_auc"]
EVERY = [
    record.name if isinstance(record, dm.metrics.Metric) else record.example.name
    for record in map(dm.metrics.registered, dm.metrics.registered_names())
]


@pytest.fixture
def result():
    return dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P))


def problem(y=Y, score=SCORE, p=P, weight=None, threshold=0.5) -> Problem:
    y = np.array([NAN if label is None else label for label in y], float)
    score = np.array(score, float)
    weight = np.ones(len(y)) if weight is None else np.array(weight, float)
    return Problem(y, score, (score >= threshold).astype(float), weight, np.array(p, float))


def message(*args, **kwargs) -> str:
    with pytest.raises(InputError) as error:
        dm.evaluate(*args, **kwargs)
    return str(error.value)


# -------------------------------------------------------------------------------------- the numbers are right


@pytest.mark.parametrize("metric", FIVE)
def test_default_metrics_have_the_brute_force_law(result, metric):
    expected = distribution(definition_of(metric), problem(), undefined_as(metric))
    # Sums of at most eight terms: rounding stays near 1e-16.
    assert result[metric].mean() == pytest.approx(expected.mean(), abs=1e-14)
    assert result[metric].std() == pytest.approx(expected.std(), abs=1e-14)
    np.testing.assert_allclose(result[metric].cdf(expected.values), expected.cdf(expected.values + 1e-12), atol=1e-14)
    assert result[metric].support() == pytest.approx((expected.low, expected.high), abs=1e-14)


@pytest.mark.parametrize("metric", FIVE)
def test_labeled_only_is_scikit_learn_on_the_labeled_rows(result, metric):
    rows = problem()
    known = ~np.isnan(rows.y)
    value = sklearn_value(metric, rows.y[known], rows.score[known], rows.decision[known], rows.weight[known])
    assert result.labeled_only[metric] == pytest.approx(value, abs=1e-14)


@pytest.mark.parametrize("metric", FIVE)
def test_oracle_bounds_decide_every_missing_row_wrongly_and_rightly(result, metric):
    rows = problem()
    right = np.where(np.isnan(rows.y), rows.decision, rows.y)
    wrong = np.where(np.isnan(rows.y), 1 - rows.decision, rows.y)
    values = definition_of(metric)(np.stack([wrong, right]), rows.score, rows.decision, rows.weight)
    bounds = result.oracle_bounds(metric)
    assert bounds == pytest.approx(values.tolist(), abs=1e-14)
    assert result[metric].support().low <= bounds.low
    assert bounds.high <= result[metric].support().high


@pytest.mark.parametrize("metric", ["precision", "recall", "accuracy", "f1"])
def test_oracle_bounds_are_sharp_where_right_decisions_always_help(result, metric):
    assert result.oracle_bounds(metric) == pytest.approx(result[metric].support(), abs=1e-14)


@pytest.mark.parametrize("metric", EVERY)
def test_no_missing_label_leaves_one_point(metric):
    y = [1, 0, 1, 0, 1, 1]
    score = [0.9, 0.2, 0.8, 0.6, 0.3, 0.8]
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(0.5), metrics=metric)
    rows = problem(y, score, [])
    expected = float(definition_of(metric)(rows.y[None], rows.score, rows.decision, rows.weight)[0])
    assert result[metric].mean() == pytest.approx(expected, abs=1e-14)
    assert result[metric].std() == 0.0
    assert result[metric].support() == pytest.approx((expected, expected), abs=1e-14)
    assert result.labeled_only[metric] == pytest.approx(expected, abs=1e-14)


@pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("metric", EVERY)
@pytest.mark.parametrize(
    ("y", "score", "p"),
    [
        ([None, None, None], [0.9, 0.4, 0.4], [0.3, 0.6, 1.0]),
        ([None], [0.7], [0.25]),
        ([1], [0.7], []),
        ([0], [0.7], []),
        ([1, None], [0.3, 0.3], [0.5]),
    ],
    ids=["all missing", "one missing row", "one positive row", "one negative row", "two tied rows"],
)
def test_smallest_sets_have_the_brute_force_law(metric, y, score, p):
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(p), metrics=metric)
    expected = distribution(definition_of(metric), problem(y, score, p), undefined_as(metric))
    assert result[metric].undefined == pytest.approx(expected.undefined, abs=1e-14)
    assert result[metric].mean() == pytest.approx(expected.mean(), abs=1e-14, nan_ok=True)
    assert result[metric].support() == pytest.approx((expected.low, expected.high), abs=1e-14, nan_ok=True)
    json.dumps(result.to_dict(), allow_nan=False)
    assert metric in str(result)


def test_all_labels_missing_with_a_given_chance_works():
    result = dm.evaluate(
        [None] * 4, [0.1, 0.4, 0.6, 0.9], missingness=dm.missing.Fixed([0.1, 0.4, 0.6, 0.9]), metrics="accuracy"
    )
    assert result["accuracy"].mean() == pytest.approx((0.9 + 0.6 + 0.6 + 0.9) / 4)
    assert math.isnan(result.labeled_only["accuracy"])
    assert "no labels" in str(result)


def test_a_callable_on_complete_labels_is_called_as_it_is():
    result = dm.evaluate(
        [1, 0, 1], [0.9, 0.2, 0.8], missingness=dm.missing.Fixed(0.5), metrics={"share": lambda y, s: y.mean()}
    )
    assert result["share"].mean() == 2 / 3
    assert result["share"].support() == (2 / 3, 2 / 3)


def test_an_evaluation_set_gives_the_same_as_its_arrays(result):
    ready = dm.evaluate(EvaluationSet(Y, SCORE, missingness=dm.missing.Fixed(P)))
    assert ready.to_dict() == result.to_dict()


def test_a_weighted_evaluation_uses_the_weights_everywhere():
    weight = [1, 2, 0.5, 1, 3, 1, 0.25, 1]
    result = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), sample_weight=weight)
    rows = problem(weight=weight)
    known = ~np.isnan(rows.y)
    for metric in FIVE:
        expected = distribution(definition_of(metric), rows, undefined_as(metric))
        assert result[metric].mean() == pytest.approx(expected.mean(), abs=1e-13)
        value = sklearn_value(metric, rows.y[known], rows.score[known], rows.decision[known], rows.weight[known])
        assert result.labeled_only[metric] == pytest.approx(value, abs=1e-13)


@pytest.mark.parametrize("metric", EVERY)
def test_labeled_rows_of_no_weight_leave_no_labeled_value(metric):
    settings: dict[str, Any] = {"missingness": dm.missing.Fixed([0.5, 0.5]), "metrics": metric, "zero_division": NAN}
    result = dm.evaluate([1, 0, None, None], [0.2, 0.6, 0.7, 0.1], sample_weight=[0, 0, 1, 1], **settings)
    assert math.isnan(result.labeled_only[metric])


@pytest.mark.parametrize("metric", ["precision_at_k(5)", "recall_at_k(5)", "lift_at_k(5)"])
def test_the_top_k_may_hold_more_rows_than_are_labeled(metric):
    y, score, p = [1, None, None, None, 0, None], [0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [0.5, 0.2, 0.9, 0.4]
    result = dm.evaluate(y, score, missingness=dm.missing.Fixed(p), metrics=metric, zero_division=NAN)
    expected = distribution(definition_of(metric), problem(y, score, p))
    assert result[metric].mean() == pytest.approx(expected.mean(), abs=1e-14)
    assert math.isnan(result.labeled_only[metric])


# --------------------------------------------------------------------------------------------- a mapping


def test_an_evaluation_is_a_mapping_in_the_order_asked_for():
    asked = ["roc_auc", "accuracy", "fbeta(2)"]
    result = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics=asked)
    assert isinstance(result, Mapping)
    assert list(result) == list(result.keys()) == asked
    assert len(result) == 3
    assert "accuracy" in result
    assert "recall" not in result
    assert result.get("recall") is None
    assert [distribution for _, distribution in result.items()] == list(result.values())
    assert all(isinstance(distribution, dm.MetricDistribution) for distribution in result.values())


def test_an_absent_metric_is_a_key_error_that_suggests_one(result):
    with pytest.raises(KeyError) as error:
        result["precison"]
    assert "'precison'" in str(error.value)
    assert "Did you mean 'precision'?" in str(error.value)
    with pytest.raises(KeyError, match="specificity"):
        result.oracle_bounds("specificity")


def test_an_evaluation_cannot_be_changed(result):
    with pytest.raises(AttributeError):
        result.assumption = "none"
    with pytest.raises(TypeError):
        result["recall"] = None


def test_metrics_come_as_name_record_callable_sequence_or_mapping():
    def share(y_true, y_score):
        return float(np.mean(y_true))

    def names(metrics):
        return list(dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics=metrics))

    assert names("recall") == ["recall"]
    assert names(dm.metrics.fbeta(2)) == ["fbeta(2)"]
    assert names(share) == ["share"]
    assert names(("recall", share)) == ["recall", "share"]
    assert names({"first": "recall", "second": share, "third": dm.metrics.fbeta(2)}) == ["first", "second", "third"]
    assert names(np.array(["recall", "f1"])) == ["recall", "f1"]


# ------------------------------------------------------------------------------------------- what a user reads


def test_the_table_has_counts_assumption_and_a_line_per_metric(result):
    lines = str(result).splitlines()
    assert lines[0] == "8 rows: 6 labeled, 2 missing (25.0%)"
    assert lines[1].startswith("Assumed: ")
    header = lines[3]
    columns = ["estimate", "90% interval", "labeled only", "bounds"]
    places = [header.index(column) for column in columns]
    assert places == sorted(places)
    assert [line.split()[0] for line in lines[4:9]] == FIVE
    assert lines[9] == ""
    assert "these 8 rows" in lines[10]


def test_the_table_shows_the_numbers_of_the_law(result):
    line = next(line for line in str(result).splitlines() if line.startswith("recall"))
    expected = distribution(definition_of("recall"), problem(), 0.0)
    assert f"{expected.mean():.3f}" in line
    assert f"{expected.low:.3f} to {expected.high:.3f}" in line


def test_the_table_has_the_same_decimals_in_all_rows():
    label, score = [1, 0, None, 1] * 500, [0.9, 0.2, 0.7, 0.4] * 500
    result = dm.evaluate(label, score, metrics=["accuracy", "brier"], missingness=dm.missing.Fixed(0.02))
    rows = [line.split() for line in str(result).splitlines() if line.startswith(("accuracy", "brier"))]
    widths = [high - low for low, high in (result[name].interval(0.9) for name in ("accuracy", "brier"))]
    assert min(widths) < 0.01  # more than three decimals
    for position in (1, 2, 4, 5):
        assert len({len(row[position].partition(".")[2]) for row in rows}) == 1


def test_a_table_fits_a_terminal():
    label, score = [1, 0, None, 1] * 5, [0.9, 0.2, 0.7, 0.4] * 5
    result = dm.evaluate(label, score, metrics="all", missingness=dm.missing.Fixed(0.5))
    table = str(result).split("\n\n")[1].splitlines()
    assert len(table) == len(result) + 1
    assert max(map(len, table)) <= 80


def test_nothing_missing_means_no_assumption():
    text = str(dm.evaluate([1, 0], [0.9, 0.1], missingness=dm.missing.Fixed(0.5), metrics="accuracy"))
    assert "Assumed" not in text
    assert "2 labeled, 0 missing (0.0%)" in text


def test_repr_is_one_line(result):
    assert repr(result) == "<Evaluation of 8 rows, 2 missing: precision, recall, accuracy, f1, roc_auc>"


class _Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text.append(data)


def test_html_has_the_same_table(result):
    page = _Tags()
    page.feed(result._repr_html_())
    assert page.tags.count("tr") == 6
    assert "8 rows: 6 labeled, 2 missing (25.0%)" in page.text
    assert set(FIVE) <= set(page.text)


def test_html_escapes_hostile_metric_names():
    hostile = '<script>alert("1")</script>&<b>'
    result = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics={hostile: "recall"})
    page = _Tags()
    page.feed(result._repr_html_())
    assert not {"script", "b"} & set(page.tags)
    assert hostile in "".join(page.text)


# ---------------------------------------------------------------------------------------- what a program reads


def test_to_dict_is_strict_json_and_complete(result):
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain == result.to_dict()
    assert plain["schema"] == "darkmetrics.evaluation/1"
    assert plain["counts"] == {"rows": 8, "labeled": 6, "positive": 3, "negative": 3, "missing": 2}
    assert plain["threshold"] == 0.5
    assert plain["assumption"]
    assert list(plain["metrics"]) == FIVE
    for name, entry in plain["metrics"].items():
        one = result[name]
        assert entry["mean"] == one.mean()
        assert entry["std"] == one.std()
        assert entry["median"] == one.median()
        assert (entry["low"], entry["high"]) == one.interval(entry["confidence_level"])
        assert (entry["lowest_possible"], entry["highest_possible"]) == one.support()
        assert entry["labeled_only"] == result.labeled_only[name]
        assert (entry["method"], entry["undefined"]) == (one.method, one.undefined)
        assert entry["meaning"]
        assert entry["better"] in ("higher", "lower", "neither")


@pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")
def test_to_dict_of_an_undefined_metric_has_none_and_no_nan():
    entry = dm.evaluate([1, 1], [0.9, 0.1], missingness=dm.missing.Fixed(0.5), metrics="roc_auc").to_dict()["metrics"][
        "roc_auc"
    ]
    assert entry["mean"] is None
    assert entry["labeled_only"] is None
    assert entry["undefined"] == 1.0


@pytest.mark.parametrize("method", ["exact", "monte_carlo", "gaussian"])
def test_to_dict_is_strict_json_for_every_method(method):
    result = dm.evaluate(
        Y, SCORE, missingness=dm.missing.Fixed(P), method=method, rng=0, y_pred=[1, 0, 1, 1, 0, 1, 0, 0]
    )
    plain = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    assert plain["threshold"] is None


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_to_frame_has_a_row_per_metric_with_the_numbers_of_to_dict(result, backend):
    frame = result.to_frame(backend)
    kind = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[backend]
    assert isinstance(frame, kind)
    records = {
        "pandas": lambda: frame.to_dict(orient="records"),
        "polars": lambda: frame.to_dicts(),
        "pyarrow": lambda: frame.to_pylist(),
    }[backend]()
    assert [record.pop("metric") for record in records] == FIVE
    assert {record.pop("scope") for record in records} == {"rows"}
    for record, entry in zip(records, result.to_dict()["metrics"].values(), strict=True):
        moved = entry.pop("sensitivity")
        assert record == entry | {f"sensitivity_{key}": value for key, value in moved.items()}


@pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("metrics", ["roc_auc", ["roc_auc", "recall"]])
def test_to_frame_works_where_a_metric_is_undefined(backend, metrics):
    frame = dm.evaluate([1, 1], [0.9, 0.1], missingness=dm.missing.Fixed(0.5), metrics=metrics).to_frame(backend)
    assert frame.shape[0] == (1 if metrics == "roc_auc" else 2)


def test_to_frame_refuses_an_unknown_engine(result):
    with pytest.raises(InputError, match="backend: expected 'pandas', 'polars', 'pyarrow' or None, got 'excel'"):
        result.to_frame("excel")


# ---------------------------------------------------------------------------------------------- 0/0 is reported


def test_a_single_class_reports_the_mass_and_warns():
    with pytest.warns(UndefinedMetricWarning, match=r"roc_auc is undefined \(0/0\) with probability 0\.25"):
        result = dm.evaluate([1, 1, None], [0.9, 0.2, 0.4], missingness=dm.missing.Fixed([0.25]), metrics="roc_auc")
    assert result["roc_auc"].undefined == 0.25
    assert "Undefined (0/0) with probability 25% (roc_auc)." in str(result)
    assert result["roc_auc"].mean() == 0.5  # the positives score above and below the one negative


def test_a_class_that_is_always_absent_is_undefined_and_no_crash():
    with pytest.warns(UndefinedMetricWarning, match=r"roc_auc is undefined \(0/0\) always"):
        result = dm.evaluate([1, 1], [0.9, 0.2], missingness=dm.missing.Fixed(0.5), metrics="roc_auc")
    assert result["roc_auc"].undefined == 1.0
    assert math.isnan(result["roc_auc"].mean())
    assert "undefined" in str(result)


def test_a_warning_points_at_the_line_of_the_user():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dm.evaluate([0, 0], [0.9, 0.2], missingness=dm.missing.Fixed(0.5), metrics="recall")
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize(("zero_division", "mean"), [(0, 0.0), (1, 1.0), (0.0, 0.0), (np.float64(1), 1.0)])
def test_zero_division_is_the_value_of_0_by_0_and_silences_the_warning(zero_division, mean):
    result = dm.evaluate(
        [0, 0], [0.9, 0.2], missingness=dm.missing.Fixed(0.5), metrics="recall", zero_division=zero_division
    )
    assert result["recall"].mean() == mean
    assert result["recall"].undefined == 1.0


@pytest.mark.parametrize("zero_division", [np.int64(0), np.int32(0), np.float32(0)])
def test_zero_division_may_be_a_numpy_number(zero_division):
    result = dm.evaluate(
        [0, 0], [0.9, 0.2], missingness=dm.missing.Fixed(0.5), metrics="recall", zero_division=zero_division
    )
    assert result["recall"].mean() == 0.0


def test_zero_division_nan_leaves_0_by_0_out():
    result = dm.evaluate(
        [0, None], [0.9, 0.2], missingness=dm.missing.Fixed([0.25]), metrics="recall", zero_division=NAN
    )
    assert result["recall"].mean() == 0.0
    assert result["recall"].undefined == 0.75


# --------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize("zero_division", [2, -1, 0.5, "nan", "Warn", None, [0], np.array([0, 1]), pd.NA, 1j])
def test_a_meaningless_zero_division_is_refused(zero_division):
    text = message(Y, SCORE, missingness=dm.missing.Fixed(P), zero_division=zero_division)
    assert text == f"zero_division: expected 'warn', 0, 1 or nan, got {zero_division!r}."


@pytest.mark.parametrize("rng", [-1, "a", 1.5, NAN, {}])
def test_a_meaningless_rng_is_refused(rng):
    assert message(Y, SCORE, missingness=dm.missing.Fixed(P), rng=rng) == (
        f"rng: expected None, a seed or a numpy Generator, got {rng!r}."
    )


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ("roc-aus", "metrics: unknown metric 'roc-aus'. Did you mean 'roc_auc'? list_metrics() shows all "),
        ("Recal", "metrics: unknown metric 'Recal'. Did you mean 'recall'?"),
        (["recall", "f2"], "metrics: unknown metric 'f2'."),
        ("", "metrics: unknown metric ''. Choose from 'acc', 'accuracy', "),
        ([], "metrics: none given. Name at least one; list_metrics() shows all."),
        ({}, "metrics: none given."),
        (["recall", "f1", "recall"], "metrics: 'recall' is asked for twice."),
        (["roc_auc", "roc_auc()"], "metrics: 'roc_auc' is asked for twice."),
        (None, "metrics: expected names or metrics, got None."),
        (3, "metrics: expected names or metrics, got 3."),
        ([3], "metrics: expected a name, a Metric or a callable f(y_true, y_score), got 3."),
        ("fbeta", "metrics: 'fbeta' has no parameter. Pass one, such as 'fbeta(2)'."),
        ("fbeta(x)", "metrics: cannot read 'fbeta(x)'. Write it like 'fbeta(2)'."),
        ("fbeta(2", "metrics: cannot read 'fbeta(2'."),
        ("fbeta(__import__('os'))", "metrics: cannot read "),
        ("fbeta(2)(3)", "metrics: cannot read 'fbeta(2)(3)'."),
        ("fbeta(-1)", "beta: -1. It must be at least 0."),
        ("recall(2)", "metrics: 'recall' takes no parameter, got 'recall(2)'."),
        ("precision_at_k(9)", "k: precision_at_k(9) asks for the top 9, but there are only 8 rows."),
        ("recall_at_k(0)", "k: 0. The top k must hold at least one row."),
        ("lift_at_k(1.5)", "k: 1.5. A fraction of the rows lies in (0, 1]; a count is a whole number."),
    ],
)
def test_bad_metrics_are_refused(metrics, expected):
    assert message(Y, SCORE, missingness=dm.missing.Fixed(P), metrics=metrics).startswith(expected)


def test_an_unknown_name_has_its_own_error():
    with pytest.raises(UnknownNameError, match="Did you mean 'accuracy'"):
        dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics="acuracy")
    with pytest.raises(UnknownNameError, match="Did you mean 'exact'"):
        dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), method="exat")
    with pytest.raises(UnknownNameError, match="Did you mean 'by_label'"):
        dm.evaluate(Y, SCORE, missingness="by_lable")


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("exat", "method: unknown method 'exat'. Did you mean 'exact'?"),
        ("zzz", "method: unknown method 'zzz'. Choose from 'auto', 'exact', 'gaussian', 'monte_carlo'."),
        (None, "method: expected one of 'auto', 'exact', 'gaussian', 'monte_carlo' or a settings object"),
        (dm.methods.Exact, "method: expected one of"),
    ],
)
def test_bad_methods_are_refused(method, expected):
    assert message(Y, SCORE, missingness=dm.missing.Fixed(P), method=method).startswith(expected)


@pytest.mark.parametrize(
    ("missingness", "expected"),
    [
        ("by_scor", "missingness: unknown mechanism 'by_scor'. Did you mean 'by_score'?"),
        ("zzz", "missingness: unknown mechanism 'zzz'. Choose from 'random', 'by_score', 'by_label', "),
        (dm.missing.Fixed(), "probability: none with these rows"),
        ({"a": 0.5}, "missingness: expected a word such as 'by_score' or an object of dm.missing, got a dict"),
        (dm.missing.Fixed, "missingness: Fixed is a class. Pass dm.missing.Fixed(...)."),
    ],
)
def test_bad_mechanisms_are_refused(missingness, expected):
    assert message(Y, SCORE, missingness=missingness).startswith(expected)


@pytest.mark.parametrize(
    ("probability", "expected"),
    [
        ([0.5], "1 value for 8 rows of which 2 are missing"),
        ([0.5, 1.5], "1.5 at position 1 of the 2 missing rows. Probabilities must lie in [0, 1]."),
        ([0.5, NAN], "NaN at position 1 of the 2 missing rows."),
        ([0.5] * 4 + [NAN] + [0.5] * 3, "NaN at row 4."),
        (["a", "b"], "found 'a' of type str"),
        ({"a": 0.5}, "got a dict"),
        (True, "True stands for that of an EvaluationSet"),
        (dm.missing.Fixed, "got "),
    ],
)
def test_bad_probabilities_are_refused_under_the_name_the_user_gave_them(probability, expected):
    text = message(Y, SCORE, missingness=dm.missing.Fixed(probability))
    assert text.startswith("probability: ")
    assert expected in text


@pytest.mark.parametrize("number", [1.5, -0.1, NAN])
def test_a_number_that_is_no_probability_is_refused(number):
    with pytest.raises(InputError, match=rf"^probability: {number!r}\. It must lie in \[0, 1\]\."):
        dm.missing.Fixed(number)


def test_nothing_missing_needs_no_label_model():
    assert dm.evaluate([1, 0], [0.9, 0.1], metrics="accuracy")["accuracy"].mean() == 1.0


def test_a_missing_score_is_refused():
    assert message(Y, missingness=dm.missing.Fixed(P)).startswith(
        "y_score: missing. Pass the scores, or an EvaluationSet"
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("y_score", SCORE),
        ("y_score", np.array(SCORE)),
        ("y_pred", [1] * 8),
        ("y_pred", np.ones(8)),
        ("sample_weight", np.ones(8)),
        ("sample_weight", pl.Series([1.0] * 8)),
        ("sample_weight", pd.Series([1.0] * 8)),
        ("pos_label", 0),
        ("pos_label", "yes"),
        ("pos_label", pd.NA),
        ("pos_label", np.array([1, 0])),
        ("missing_label", -1),
    ],
)
def test_what_an_evaluation_set_fixes_cannot_be_given_again(name, value):
    text = message(EvaluationSet(Y, SCORE), missingness=dm.missing.Fixed(0.5), **{name: value})
    assert text == f"{name}: an EvaluationSet already fixes it; pass it when building the set."


def test_probabilities_per_row_beside_an_evaluation_set_are_refused():
    text = message(EvaluationSet(Y, SCORE), missingness=dm.missing.Fixed(P))
    assert text == "probability: an EvaluationSet already fixes it; pass it when building the set."


def test_a_set_without_rows_is_refused():
    nothing = EvaluationSet([None], [0.5]).labeled()
    with pytest.raises(InputError, match="no rows"):
        dm.evaluate(nothing, missingness=dm.missing.Fixed(0.5))


def test_rows_without_a_probability_are_refused():
    # Probabilities were given for the missing row only, and then the labels of the others were taken away.
    blank = EvaluationSet([1, 0, None], [0.9, 0.1, 0.5], missingness=dm.missing.Fixed([0.5])).unlabeled()
    with pytest.raises(InputError, match="probability"):
        dm.evaluate(blank, metrics="accuracy")


@pytest.mark.parametrize("metric", ["brier", "log_loss"])
def test_a_metric_of_probabilities_refuses_other_scores(metric):
    assert message([1, 0, None], [1.5, 0.1, 0.2], missingness=dm.missing.Fixed([0.5]), metrics=metric) == (
        f"metrics: {metric!r} needs scores that are probabilities, found 1.5."
    )


@pytest.mark.parametrize("returned", ["a", None, [1.0, 2.0]])
def test_a_callable_that_returns_no_number_is_refused(returned):
    text = message(Y, SCORE, missingness=dm.missing.Fixed(P), metrics={"odd": lambda y, s: returned})
    assert text == f"metrics: 'odd' returned {returned!r}; a metric returns one number."


def test_an_interval_has_the_confidence_level_of_its_evaluation():
    settings: dict[str, Any] = {"missingness": dm.missing.Fixed(P), "metrics": ["recall", "roc_auc"]}
    result, usual = dm.evaluate(Y, SCORE, confidence_level=0.5, **settings), dm.evaluate(Y, SCORE, **settings)
    for name in result:
        assert result[name].interval() == usual[name].interval(0.5) == result.intervals[name]
        assert result[name].interval(0.9) == usual[name].interval()
        assert result[name].to_dict()["confidence_level"] == 0.5
        assert result.population[name].interval() == usual.population[name].interval(0.5)
    assert "50% interval" in repr(result["recall"])
    assert "50% interval" in result["recall"]._repr_html_()
