"""evaluate_by: every group as `evaluate` has it, groups that say too little, and alerts by hand."""

import dataclasses
import datetime as dt
import json
import os
import pickle
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
import oracle
from alerting import alerts_by
from darkmetrics.exceptions import MethodError
from darkmetrics.monitoring import Alert, evaluate_by, tasks
from darkmetrics.monitoring import result as result_module
from darkmetrics.monitoring.wording import records_of
from darkmetrics.processes import generators_from, run_each
from darkmetrics.question import Question

NUMBERS = ("mean", "low", "high", "labeled_only", "lowest_possible", "highest_possible", "undefined")


def rows(n=900, seed=0, missing=0.3, **columns):
    """Rows of three countries and three months, labels missing at random."""
    rng = np.random.default_rng(seed)
    score = rng.random(n).round(3)
    label = np.where(rng.random(n) < missing, np.nan, (rng.random(n) < score).astype(float))
    table = {
        "country": rng.choice(["DE", "FR", "IT"], n),
        "booked": pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 90, n), unit="D"),
        "fraud": label,
        "p": score,
    }
    return pd.DataFrame(table | columns)


def by(table, groups: Any = "country", **settings: Any) -> Any:
    """What was evaluated, or its alerts if there are targets."""
    ask = alerts_by if "targets" in settings else evaluate_by
    return ask("fraud", "p", data=table, by=groups, **settings)


def quietly(table, groups: Any = "country", **settings: Any) -> Any:
    """Without the warnings that small sets give."""
    with warnings.catch_warnings():
        for kind in (dm.MissingnessWarning, dm.CalibrationWarning, dm.UndefinedMetricWarning):
            warnings.simplefilter("ignore", kind)
        return by(table, groups, **settings)


def evaluated(table, **settings: Any) -> dm.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        return dm.evaluate(table["fraud"], table["p"], **settings)


def numbers_of(evaluation, name):
    """The numbers of a summary, from the law itself; all metrics here are better when higher."""
    distribution = evaluation[name]
    return [
        distribution.mean(),
        *distribution.interval(0.9),
        evaluation.labeled_only[name],
        *distribution.support(),
        distribution.undefined,
    ]


# ------------------------------------------------------------------------------------------------- groups and the total


def test_each_group_is_what_evaluate_says_of_its_rows():
    table = rows(900)
    result = quietly(table, score_bins="exact")
    assert len(result) == 3
    for key in result:
        said = evaluated(table[table["country"] == key[0]])
        assert result.groups[key].counts == said.data.counts()
        for name in said:
            found = [getattr(result.groups[key].metrics[name], number) for number in NUMBERS]
            # The same arithmetic on the same cells.
            assert found == pytest.approx(numbers_of(said, name), abs=1e-12)
            assert result[key][name].mean() == pytest.approx(said[name].mean(), abs=1e-12)


def test_segments_in_periods_are_groups_too():
    table = rows()
    settings: dict[str, Any] = {"metrics": ["precision", "recall"], "missingness": "by_score"}
    result = quietly(table, ["country"], time="booked", period="month", **settings)
    assert len(result) == 9
    for (country, month), group in result.groups.items():
        own = table[(table["country"] == country) & (table["booked"].dt.month == month.month)]
        said = evaluated(own, **settings)
        for name in said:
            found = [getattr(group.metrics[name], number) for number in NUMBERS]
            assert found == pytest.approx(numbers_of(said, name), abs=1e-12)


def test_weights_probabilities_and_decisions_are_those_of_the_columns():
    rng = np.random.default_rng(1)
    table = rows(
        300, w=rng.integers(1, 4, 300).astype(float), chance=rng.random(300).round(2), yes=rng.random(300) < 0.4
    )
    columns = {"sample_weight": "w", "missingness": dm.missing.Fixed("chance"), "y_pred": "yes"}
    result = by(table, metrics=["precision", "recall"], **columns)
    own = table[table["country"] == "FR"]
    said = dm.evaluate(
        own["fraud"],
        own["p"],
        y_pred=own["yes"],
        sample_weight=own["w"],
        missingness=dm.missing.Fixed(own["chance"]),
        metrics=["precision", "recall"],
    )
    for name in said:
        assert result["FR"][name].mean() == pytest.approx(said[name].mean(), abs=1e-12)
        assert result["FR"][name].var() == pytest.approx(said[name].var(), abs=1e-12)


def test_buckets_leave_metrics_of_decisions_as_they_are():
    table = rows()
    settings: dict[str, Any] = {"metrics": ["recall", "roc_auc"], "missingness": dm.missing.Fixed(0.5)}
    exact, binned = (by(table, score_bins=bins, **settings) for bins in ("exact", 64))
    assert binned.total.data.score_bins == 64
    for key in exact:
        assert binned.groups[key].metrics["recall"] == exact.groups[key].metrics["recall"]
        assert binned.groups[key].metrics["roc_auc"] != exact.groups[key].metrics["roc_auc"]


def test_neither_processes_nor_the_order_of_rows_matter():
    table = rows(400)
    settings: dict[str, Any] = {"metrics": ["recall", "roc_auc"], "method": "monte_carlo", "missingness": "by_score"}
    settings |= {"targets": {"recall": 0.8}}
    one = by(table, rng=1, **settings)
    two = by(table, rng=1, n_jobs=2, **settings)
    shuffled = by(table.sample(frac=1.0, random_state=0), rng=1, **settings)
    assert one.to_dict() == two.to_dict() == shuffled.to_dict()
    assert by(table, rng=2, **settings).to_dict() != one.to_dict()


def test_a_group_draws_from_a_generator_of_its_own():
    table = rows(400)
    result = by(table, metrics="recall", method="monte_carlo", missingness="by_score", rng=5)
    sources = generators_from(5, 4)  # three countries in alphabetical order, and the total
    own = table[table["country"] == "FR"]
    settings: dict[str, Any] = {"metrics": "recall", "method": "monte_carlo", "missingness": "by_score"}
    said = dm.evaluate(own["fraud"], own["p"], rng=sources[1], **settings)
    assert result["FR"]["recall"].mean() == said["recall"].mean()
    again = by(table, metrics="recall", method="monte_carlo", missingness="by_score", rng=5)
    assert result.total["recall"].mean() == again.total["recall"].mean()


def test_a_group_looked_at_twice_has_the_same_numbers():
    result = by(rows(400), metrics="recall", method="monte_carlo", missingness="by_score", rng=0)
    first = result["IT"]
    assert first["recall"].mean() == result.groups[("IT",)].metrics["recall"].mean
    assert result["IT"] is first
    restored = pickle.loads(pickle.dumps(result))
    assert restored["IT"]["recall"].mean() == first["recall"].mean()
    assert restored.to_dict() == result.to_dict()


def test_groups_are_evaluated_once_while_their_evaluations_fit_into_memory(monkeypatch):
    evaluated, answer = [], Question.answer

    def count(self: Any, data: Any, *others: Any) -> Any:
        evaluated.append(data)
        return answer(self, data, *others)

    monkeypatch.setattr(Question, "answer", count)
    table = rows(1200, shop=np.arange(1200) % 12)
    result = quietly(table, "shop", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert [evaluation["accuracy"].mean() for evaluation in result.values()] == [
        group.metrics["accuracy"].mean for group in result.groups.values()
    ]
    result.disparity("accuracy")
    result.compare(1, 0)
    assert len(evaluated) == 12


def test_groups_that_do_not_fit_into_memory_are_evaluated_again_with_the_same_numbers(monkeypatch):
    monkeypatch.setattr(tasks, "_MAX_KEPT", 0)
    monkeypatch.setattr(result_module, "_MAX_KEPT_AGAIN", 0)
    result = quietly(rows(400, shop=np.arange(400) % 4), "shop", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert not result.evaluations
    assert result[2]["accuracy"].mean() == result.groups[(2,)].metrics["accuracy"].mean
    assert result[1] is result[1]
    assert result.disparity("accuracy").means["3"] == result.groups[(3,)].metrics["accuracy"].mean


# ----------------------------------------------------------------------------------------------------- keys and mapping


def test_the_result_is_a_mapping_over_keys_in_order():
    result = by(rows(), metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert list(result) == [("DE",), ("FR",), ("IT",)]
    assert "FR" in result
    assert ("FR",) in result
    assert "XX" not in result
    assert ["FR"] not in result
    assert result.get("XX") is None
    with pytest.raises(KeyError, match=r"key: 'XX' is not among the 3 groups\. Give the value of 'country'"):
        result["XX"]


def test_dates_as_text_and_times_are_keys_too():
    table = rows()
    table["booked"] = pd.Timestamp("2026-01-15") + pd.to_timedelta(np.arange(len(table)) % 90, unit="D")
    result = quietly(table, time="booked", period="month", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    day = dt.date(2026, 2, 1)
    whole = result["FR", day]
    same = ("2026-02", "2026-02-01", "2026-02-01T00:00", pd.Timestamp(day), dt.datetime(2026, 2, 1), np.datetime64(day))
    for key in same:
        assert result["FR", key] is whole
        assert ("FR", key) in result
    for key in ("2026-02-02", "2027-02", "February", pd.Timestamp("2026-02-01 12:00"), 202602):
        assert ("FR", key) not in result
    with pytest.raises(KeyError, match=r"such as \('DE', datetime\.date\(2026, 1, 1\)\)\.$"):
        result["FR", "2025-12"]
    hours = quietly(table, None, time="booked", period="hour", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert hours["2026-02-01 00:00"] is hours[dt.date(2026, 2, 1)]


def test_late_labels_are_noted_once():
    table = rows()
    table["month"] = np.array(["2026-01", "2026-02", "2026-03"])[np.arange(len(table)) % 3]
    settings: Any = {"metrics": "accuracy", "missingness": dm.missing.Fixed(0.5)}
    assert "labels come late" not in "".join(quietly(table, "month", **settings)._notes())
    table.loc[(table["month"] == "2026-03") & (table.index % 2 == 0), "fraud"] = np.nan
    result = quietly(table, "month", **settings)
    assert str(result).count("labels come late") == 1
    assert sum("2026-03 lacks" in note for note in result.to_dict()["notes"]) == 1
    assert "labels come late" not in str(quietly(table, "country", **settings))


def test_the_total_and_missing_values_are_not_mistaken_for_groups():
    table = rows()
    table["country"] = table["country"].replace({"DE": "all", "FR": "(missing)", "IT": None})
    names = [row[1] for row in by(table, metrics="accuracy", missingness=dm.missing.Fixed(0.5))._table()[1]]
    assert names == ["(all rows)", "'(missing)'", "all", "(missing)"]


def test_all_metrics_are_in_the_table_or_a_note_says_where_they_are():
    result = by(rows(), metrics=["precision", "f1", "accuracy", "recall"], missingness=dm.missing.Fixed(0.5))
    assert {"precision", "f1", "accuracy", "recall"} <= set(result._table()[0])
    assert "Not in the table" not in str(result)
    alerts = result.alerts({"recall": 0.5})
    assert {"recall", "P(recall < 0.5)"} <= set(alerts._table()[0])
    assert "precision" not in alerts._table()[0]
    assert "Not in the table, which has the metrics with a target: precision, f1 and accuracy; see .grouped." in str(
        alerts
    )


def test_a_table_that_is_cut_has_alerts_first():
    n = 3000
    table = rows(n, shop=np.arange(n) % 50)
    table.loc[table["shop"].isin([45, 48]), "p"] = 0.01
    result = quietly(table, "shop", metrics="recall", targets={"recall": 0.2}, missingness=dm.missing.Fixed(0.5))
    assert [alert.key for alert in result if alert.key[0] >= 40] == [(45,), (48,)]
    names = [int(row[1]) for row in result._table()[1][1:]]
    missed = sorted(alert.key[0] for alert in result)
    assert names[: len(missed)] == missed
    assert names[len(missed) :] == sorted(names[len(missed) :])
    assert "... and 10 more; those with an alert come first" in str(result)
    assert [int(row[1]) for row in result._table(most=None)[1][1:]] == list(range(50))


def test_a_null_key_is_a_group_of_its_own_and_comes_last():
    table = rows()
    table.loc[table.index % 4 == 0, "country"] = None
    result = by(table, metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert list(result) == [("DE",), ("FR",), ("IT",), (None,)]
    assert result[None].data.n_rows == table["country"].isna().sum()
    assert result.label(None) == "(missing)"
    assert "(missing)" in str(result)
    assert result.to_dict()["groups"][-1]["key"] == [None]


@pytest.mark.parametrize(
    ("period", "first", "text"),
    [
        ("day", dt.date(2026, 1, 1), "2026-01-01"),
        ("month", dt.date(2026, 1, 1), "2026-01"),
        ("quarter", dt.date(2026, 1, 1), "2026-Q1"),
        ("year", dt.date(2026, 1, 1), "2026"),
    ],
)
def test_time_is_cut_into_periods(period, first, text):
    result = quietly(rows(), None, time="booked", period=period, metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert (result.names, result.time, result.period) == (("booked",), "booked", period)
    assert next(iter(result)) == (first,)
    assert result.label(first) == text
    assert result.to_dict()["groups"][0]["key"] == ["2026-01-01"]
    assert sum(group.counts["rows"] for group in result.groups.values()) == 900


def test_time_without_a_length_has_a_period_per_value():
    table = rows(month=np.arange(900) % 3)
    result = by(table, "country", time="month", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert (result.names, result.time, result.period) == (("country", "month"), "month", None)
    assert result["DE", 2].data.n_rows == ((table["country"] == "DE") & (table["month"] == 2)).sum()


HOSTILE = ["<script>alert(1)</script>", "two\nlines", "\u202eleftwards", "$x_1$", "", "a" * 200]


def test_hostile_names_do_no_harm():
    table = rows(600, **{"<b>": np.resize(HOSTILE, 600)})
    result = by(table, "<b>", metrics="accuracy", missingness=dm.missing.Fixed(0.5), targets={"accuracy": 0.9})
    page = result._repr_html_()
    assert "<script>" not in page
    assert "<b>" not in page
    assert "&lt;script&gt;" in page
    text = str(result)
    assert "\u202e" not in text
    assert len(result._table()[1]) == 1 + len(HOSTILE)
    lines = text.splitlines()
    table_of = "\n".join(lines[lines.index("") + 1 :]).partition("\n\n")[0]
    assert sum("two\\nlines" in line for line in table_of.splitlines()) == 1
    # Above and below the table stand sentences; within it every row is a line.
    assert lines.index("") + 2 + len(HOSTILE) + 1 == lines.index("", lines.index("") + 1)
    assert json.loads(json.dumps(result.to_dict()))["groups"][0]["key"] == [""]
    assert result.grouped["two\nlines"].data.n_rows == 100


def test_a_column_may_be_called_like_a_number_of_the_frame():
    table = rows(metric=np.arange(900) % 2)
    frame = by(table, "metric", metrics="accuracy", missingness=dm.missing.Fixed(0.5)).to_frame("pandas")
    assert frame["metric"].tolist() == [0, 1]
    assert frame["metric_"].tolist() == ["accuracy", "accuracy"]


# ------------------------------------------------------------------------------------ groups that say little or nothing


def odd_groups():
    """No label, one class, one row, all labels, few labels, and one with enough of them."""
    parts: dict[str, Any] = {
        "all known": ([1, 0, 1, 0] * 5, [0.9, 0.2, 0.4, 0.7] * 5),
        "enough": ([1, 0, 1, 0, None, None] * 20, [0.9, 0.2, 0.4, 0.7, 0.8, 0.3] * 20),
        "few": ([1, 0, 1, 0, None, None], [0.9, 0.2, 0.4, 0.7, 0.8, 0.3]),
        "no label": ([None, None, None], [0.9, 0.2, 0.6]),
        "one row": ([None], [0.6]),
        "only negatives": ([0, 0, None], [0.9, 0.2, 0.6]),
        "only positives": ([1, 1, None], [0.9, 0.2, 0.6]),
    }
    return pd.DataFrame(
        [
            (name, np.nan if label is None else float(label), score)
            for name, (labels, scores) in parts.items()
            for label, score in zip(labels, scores, strict=True)
        ],
        columns=["country", "fraud", "p"],
    )


BOUNDED = ("precision", "recall", "accuracy", "roc_auc", "brier")


@pytest.fixture(scope="module")
def odd():
    return quietly(odd_groups(), metrics=BOUNDED, missingness="by_score", zero_division=0, targets={"recall": 0.99})


def test_groups_of_every_kind_are_summarised_and_marked(odd):
    assert {key[0]: odd.too_small.get(key, "") for key in odd.grouped.groups} == {
        "all known": "",
        "enough": "",
        "few": "2 labeled positives and 2 labeled negatives, fewer than 5",
        "no label": "no labeled row",
        "one row": "no labeled row",
        "only negatives": "0 labeled positives and 2 labeled negatives, fewer than 5",
        "only positives": "2 labeled positives and 0 labeled negatives, fewer than 5",
    }
    assert {key[0] for key, _ in odd.q_values} == {"all known", "enough"}
    assert {alert.key[0] for alert in odd} == {"all known", "enough"}
    assert {key: group.too_small for key, group in odd.grouped.groups.items() if group.too_small} == odd.too_small
    assert "5 groups are too small to judge" in str(odd)
    json.dumps(odd.to_dict(), allow_nan=False)
    known = odd.grouped.groups["all known",].metrics["recall"]
    assert (known.mean, known.low, known.high, known.lowest_possible, known.highest_possible) == (0.5,) * 5


def test_the_default_model_takes_groups_of_every_kind():
    result = quietly(odd_groups(), metrics="recall")
    distributions = {key[0] for key, group in result.groups.items() if group.metrics["recall"].method != "bounds"}
    assert distributions == {"all known", "enough", "few", "only negatives"}
    assert result.groups["only positives",].too_small == "no labeled negative"


@pytest.mark.parametrize("name", ["no label", "one row", "only positives", "few"])
@pytest.mark.parametrize("metric", BOUNDED)
def test_bounds_of_small_groups_are_those_of_all_labelings(odd, name, metric):
    table = odd_groups()
    one = odd.grouped.groups[name,].metrics[metric]
    low, high = _extremes(table[table["country"] == name], metric)
    # Sums of six numbers.
    assert (one.lowest_possible, one.highest_possible) == pytest.approx((low, high), abs=1e-12)
    if name in ("no label", "one row"):
        assert one.method == "bounds"
        assert np.isnan([one.mean, one.low, one.high, one.undefined]).all()


def _extremes(own, metric):
    """The smallest and largest value over all labelings, 0/0 counting as 0."""
    labels, score = own["fraud"].to_numpy(), own["p"].to_numpy()
    gaps = np.flatnonzero(np.isnan(labels))
    values = []
    for code in range(2**gaps.size):
        complete = labels.copy()
        complete[gaps] = (code >> np.arange(gaps.size)) & 1
        value = oracle.sklearn_value(metric, complete, score, score >= 0.5, None)
        values.append(0.0 if np.isnan(value) else value)
    return min(values), max(values)


def test_a_group_without_a_law_says_why(odd):
    with pytest.raises(dm.InputError, match=r"country='no label': no labeled row, so there is nothing to learn from"):
        odd.grouped["no label"]


def test_five_labels_of_each_class_are_enough():
    labels = [1.0] * 5 + [0.0] * 5 + [np.nan] * 5
    table = pd.DataFrame({"country": "DE", "fraud": labels, "p": np.linspace(0.95, 0.1, 15)})
    assert not quietly(table, metrics="recall").groups["DE",].too_small
    less = table.assign(fraud=[np.nan, *labels[1:]])
    assert quietly(less, metrics="recall").groups["DE",].too_small == "4 labeled positives, fewer than 5"
    assert not quietly(less, metrics="recall", targets={"recall": 0.5}, min_labels=4).too_small
    asked: Any = {"metrics": "recall", "targets": {"recall": 0.5}, "min_labels": 6}
    assert quietly(table, **asked).too_small == {
        ("DE",): "5 labeled positives and 5 labeled negatives, fewer than 6",
    }


def test_with_reference_rows_a_group_needs_no_labels_of_its_own():
    table = rows(600)
    table.loc[table["country"] == "DE", "fraud"] = np.nan
    reference = rows(500, seed=3, missing=0.0)
    in_table = dm.missing.Reference("fraud", "p", data=reference)
    for given in (in_table, dm.missing.Reference(reference["fraud"], reference["p"])):
        result = by(table, metrics="recall", missingness=given, targets={"recall": 0.9})
        assert ("DE",) not in result.too_small
        assert not result.grouped.groups["DE",].too_small
        assert ("DE",) in {key for key, _ in result.q_values}
        assert result.grouped["DE"]["recall"].std() > 0.0
    few = table.groupby("country").head(6)
    result = quietly(few, metrics="recall", missingness=in_table)
    assert "labeled and expected" in result.groups["DE",].too_small


def test_with_no_label_anywhere_there_is_nothing_to_say():
    words = r"^y_true column 'fraud': no labeled row.* dm\.missing\.Fixed\('p'\).*\(Found in all rows together"
    with pytest.raises(dm.InputError, match=words):
        by(rows(50, missing=1.0), metrics="recall")


# -------------------------------------------------------------------------------------------------- errors and warnings


class Picky(dm.missing.Fixed):
    """A mechanism that does not like some rows."""

    def posterior(self, data):
        if data.n_rows < 900 and data.cells.score.max() > 0.9999:
            raise dm.InputError("missingness: these rows are not to my liking.")
        return super().posterior(data)


def test_an_error_in_one_group_names_it():
    table = rows()
    table.loc[np.flatnonzero(table["country"] == "FR")[:3], "p"] = 1.0
    with pytest.raises(dm.InputError, match=r"not to my liking\. \(Found in the group country='FR'\.\)"):
        by(table, missingness=Picky(0.5))
    with pytest.raises(MethodError, match=r"ks.*\(Found in the group country='DE'\.\)"):
        by(table, metrics="ks", method="exact", missingness=dm.missing.Fixed(0.5))


def test_a_mistake_in_code_of_the_user_names_the_group():
    def broken(y_true, y_score):
        if y_true.size < 400:
            raise ZeroDivisionError
        return 0.5

    with pytest.raises(ZeroDivisionError) as caught:
        by(rows(), metrics={"mine": broken}, missingness=dm.missing.Fixed(0.5), method=dm.methods.MonteCarlo(10))
    assert any("the group country='DE'" in note for note in caught.value.__notes__)


def test_many_groups_give_one_warning():
    rng = np.random.default_rng(0)
    n = 6000
    score = rng.random(n)
    label = (rng.random(n) < score).astype(float)
    # Positives take longer to confirm, so missing rows have higher scores.
    label[rng.random(n) < np.where(label == 1, 0.6, 0.1)] = np.nan
    table = pd.DataFrame({"country": np.arange(n) % 6, "fraud": label, "p": score})
    with pytest.warns(dm.MissingnessWarning, match="In 6 of 6 groups the estimates depend on why") as caught:
        result = by(table, metrics="recall")
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert all("Scores differ between" in group.notes[0] for group in result.groups.values())
    assert "6 groups have something to say about their labels (the estimates depend" in str(result)
    assert not result.total_notes  # a sum of groups assumes what they assume
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result[0]  # what there is to say has been said


def test_what_is_marked_as_too_small_is_not_warned_of_again():
    table = odd_groups()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = by(table[table["country"].isin(["few", "enough"])], metrics="accuracy", missingness="by_score")
    assert "few" in result.groups["few",].notes[0] or "2 positive" in result.groups["few",].notes[0]


def test_warnings_of_others_go_their_way():
    def loud(y_true, y_score):
        warnings.warn("mine", RuntimeWarning, stacklevel=1)
        return 0.5

    with pytest.warns(RuntimeWarning, match="mine"):
        by(rows(60), metrics={"loud": loud}, missingness=dm.missing.Fixed(0.5), method=dm.methods.MonteCarlo(10))


# --------------------------------------------------------------------------------------------------------------- alerts


def q_values_by_hand(p_values, by_any_dependence):
    """Benjamini and Hochberg's step-up procedure, as a list of q-values: for each the smallest rate that rejects it."""
    m = len(p_values)
    factor = sum(1 / i for i in range(1, m + 1)) if by_any_dependence else 1.0
    rates = []
    for p in p_values:
        larger = [other for other in p_values if other >= p]
        rates.append(min(1.0, *(factor * m * x / sum(y <= x for y in p_values) for x in larger)))
    return rates


@pytest.mark.parametrize("correction", ["bh", "by"])
def test_alerts_are_those_of_the_procedure_by_hand(correction):
    table = rows(2400, shop=np.arange(2400) % 12)
    # With probabilities taken as known the p-value is the probability that the target is met.
    targets = {"recall": 0.71, "fpr": 0.3}
    grouped = quietly(table, "shop", metrics=["precision", "recall", "fpr"], missingness=dm.missing.Fixed(0.5))
    result = grouped.alerts(targets, correction=correction)
    p_values = {
        (key, name): evaluation.target_probability(name, target)
        for key, evaluation in grouped.items()
        for name, target in targets.items()
    }
    q_values = dict(zip(p_values, q_values_by_hand(list(p_values.values()), correction == "by"), strict=True))
    for case, q in q_values.items():
        assert result.q_values[case] == pytest.approx(q, rel=1e-9, abs=1e-12)
        key, name = case
        assert result.probability_missed[key][name] == pytest.approx(1.0 - p_values[case], abs=1e-12)
    alerts = {(alert.key, alert.metric) for alert in result}
    assert alerts == {case for case, q in q_values.items() if q <= 0.05}
    assert 0 < len(alerts) < len(q_values)
    assert [alert.q_value for alert in result] == sorted(alert.q_value for alert in result)
    some = result[0]
    assert some.side == (">=" if some.metric == "recall" else "<=")
    stricter = grouped.alerts(targets, correction=correction, false_discovery_rate=1e-6)
    assert len(stricter) < len(result)


def test_alerts_print_well():
    alert = Alert(("DE",), "recall", ">=", 0.8, 0.99971, 0.000291, "DE")
    assert repr(alert) == "<Alert: DE misses recall >= 0.8 with probability >0.999, q-value 0.00029>"
    table = rows(2400, shop=np.arange(2400) % 12)
    settings: dict[str, Any] = {"metrics": "recall", "missingness": "by_score"}
    result = quietly(table, "shop", targets={"recall": 0.9}, **settings)
    assert "12 of 12 groups miss recall >= 0.9 (false-discovery rate 5%): " in str(result)
    assert "; and 7 more." in str(result)
    easy = quietly(table, "shop", targets={"recall": 0.1}, **settings)
    chances = {key: missed["recall"] for key, missed in easy.probability_missed.items()}
    (nearest,) = max(chances, key=lambda key: chances[key])
    assert f"No alert for recall >= 0.1 in 12 groups (false-discovery rate 5%). Most likely to miss: {nearest} (" in (
        str(easy)
    )


def test_a_metric_that_is_undefined_misses_no_target():
    table = rows(300)
    table.loc[table["country"] == "DE", "p"] *= 0.4  # no positive decision
    with pytest.warns(dm.UndefinedMetricWarning, match=r"In 1 of 3 groups a metric may be undefined \(0/0\)"):
        result = by(table, metrics="precision", missingness=dm.missing.Fixed(0.5), targets={"precision": 0.2})
    assert np.isnan(result.probability_missed["DE",]["precision"])
    assert not result
    # Unless the user says what it counts as.
    result = by(
        table, metrics="precision", missingness=dm.missing.Fixed(0.5), targets={"precision": 0.2}, zero_division=0
    )
    assert result.probability_missed["DE",]["precision"] == 1.0
    assert [alert.key for alert in result] == [("DE",)]


def test_the_part_of_a_law_that_is_undefined_misses_no_target():
    # Recall is 0/0 if all three missing rows are negative, which has probability 1/8; else it is 1, which meets it.
    labels, scores = [0.0, 0.0, np.nan, np.nan, np.nan], [0.1, 0.2, 0.7, 0.8, 0.9]
    table = pd.DataFrame({"country": "DE", "fraud": labels, "p": scores})
    settings: dict[str, Any] = {"metrics": "recall", "targets": {"recall": 0.5}, "missingness": dm.missing.Fixed(0.5)}
    below = {z: quietly(table, zero_division=z, **settings).probability_missed["DE",]["recall"] for z in ("warn", 0, 1)}
    assert below == pytest.approx({"warn": 0.0, 0: 0.125, 1: 0.0}, abs=1e-12)


def test_monte_carlo_draws_never_make_a_p_value_of_zero():
    table = pd.concat([rows(100, country=country) for country in ("DE", "FR", "IT")])
    settings: dict[str, Any] = {"method": dm.methods.MonteCarlo(50), "rng": 0, "missingness": dm.missing.Fixed(0.5)}
    best = by(table, metrics="recall", **settings).groups["DE",].metrics["recall"].highest_possible
    result = by(table, metrics="recall", targets={"recall": best}, **settings)
    assert result.probability_missed["DE",]["recall"] == pytest.approx(1.0)
    # Three groups with the smallest p-value there is, but for the last bits: each could meet its target yet.
    assert list(result.q_values.values()) == pytest.approx([1 / 51] * 3, rel=1e-12)
    assert not any(alert.certain for alert in result)


def test_what_no_labels_can_mend_is_certain_by_any_method():
    table = rows(300)
    for method in (dm.methods.MonteCarlo(50), "exact"):
        result = by(
            table, metrics="recall", targets={"recall": 0.9999}, missingness=dm.missing.Fixed(0.5), method=method, rng=0
        )
        assert set(result.q_values.values()) == {0.0}
        assert [alert.certain for alert in result] == [True] * 3


def test_without_targets_there_are_no_alerts():
    result = by(rows(), metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert not {"targets", "q_values", "alerts"} & result.to_dict().keys()
    assert not {"target", "q_value", "alert"} & result.to_records()[0].keys()
    assert "false-discovery" not in str(result)
    nothings: list[Any] = [None, {}]
    for nothing in nothings:
        with pytest.raises(dm.InputError, match=r"^targets: there is none\. Pass a mapping such as"):
            result.alerts(nothing)
    with pytest.raises(
        dm.InputError, match=r"^targets: 'recall' was not evaluated\. Name it in evaluate_by\(.*metrics="
    ):
        result.alerts({"recall": 0.5})


# ------------------------------------------------------------------------------------------------------ text and frames


def test_the_table_has_the_total_first_and_at_most_forty_groups():
    n = 2000
    result = quietly(rows(n, shop=np.arange(n) % 50), "shop", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    lines = str(result).splitlines()
    assert lines[0] == "50 groups by shop: 2,000 rows, 1,4" + lines[0][34:]
    at = next(i for i, line in enumerate(lines) if line.startswith("shop"))
    assert lines[at + 1].startswith("all ")
    assert lines[at + 2].startswith("0 ")
    assert lines[at + 42] == "... and 10 more"
    assert "... and 10 more" in result._repr_html_()
    assert len(result._table(most=None)[1]) == 51
    assert repr(result) == "<GroupedEvaluation of 50 groups by shop, 2,000 rows: accuracy>"


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_to_frame_has_one_row_per_group_and_metric(odd, backend):
    frame: Any = odd.grouped.to_frame(backend)
    columns = list(frame.column_names if backend == "pyarrow" else frame.columns)
    assert columns[:2] == ["country", "metric"]
    judged = ["target", "probability_missed", "q_value", "alert", "new"]
    assert columns[-2:] == ["too_small", "warnings"]
    assert list(records_of(odd)[0]) == [*columns[:-2], *judged, *columns[-2:]]
    assert len(frame) == 7 * len(BOUNDED)
    means = frame["mean"].to_pylist() if backend == "pyarrow" else frame["mean"].to_list()
    expected = [one.mean for group in odd.grouped.groups.values() for one in group.metrics.values()]
    assert np.array(means, dtype=float) == pytest.approx(np.array(expected), nan_ok=True)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_alerts_to_frame_has_one_row_per_alert(odd, backend):
    for alerts in (odd, odd.grouped.alerts({"recall": 0.01})):
        frame: Any = alerts.to_frame(backend)
        columns = list(frame.column_names if backend == "pyarrow" else frame.columns)
        assert columns[:5] == ["country", "metric", "side", "target", "probability"]
        assert columns[5:] == ["q_value", "certain", "new", "known_since"]
        keys = frame["country"].to_pylist() if backend == "pyarrow" else frame["country"].to_list()
        assert keys == [alert.key[0] for alert in alerts] == [record["country"] for record in alerts.to_records()]
    assert json.dumps(odd.to_records())


def test_to_dict_has_everything_that_json_can_have(odd):
    plain = json.loads(json.dumps(odd.to_dict(), allow_nan=False))
    assert plain["schema"] == "darkmetrics.groups/1"
    assert plain["total"] == json.loads(json.dumps(odd.grouped.total.to_dict()))
    none = next(group for group in plain["groups"] if group["key"] == ["no label"])
    assert none["probability_missed"] == {"recall": None}
    assert none["metrics"]["recall"]["lowest_possible"] == 0.0
    assert plain["alerts"][0]["key"] == list(odd[0].key)
    assert odd.grouped.to_dict().items() >= {"schema": plain["schema"], "names": ["country"]}.items()
    assert odd.grouped.to_dict().keys() < plain.keys()


def test_the_page_names_every_key_of_to_dict(odd):
    path = Path(__file__).parents[1] / "docs" / "reference" / "monitoring.md"
    section = path.read_text(encoding="utf-8").partition("## to_dict\n")[2].partition("\n## ")[0]
    plain = odd.to_dict()
    assert re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE) == list(plain)
    for part in ("alerts", "groups"):
        line = next(line for line in section.splitlines() if line.startswith(f"| `{part}` |"))
        assert all(f"`{key}`" in line for key in plain[part][0])


def test_results_draw_themselves():
    pytest.importorskip("matplotlib").use("agg")
    from matplotlib import pyplot as plt

    table = rows(400)
    result = by(table, time="booked", period="month", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert result.plot() is not None
    alone = by(table, None, time="booked", period="month", metrics="accuracy", missingness=dm.missing.Fixed(0.5))
    assert alone.plot_over_time(before=alone) is not None
    plt.close("all")


# -------------------------------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"groups": None}, r"by: no grouping column\. Name at least one, or a time column"),
        ({"groups": []}, r"by: no grouping column"),
        ({"groups": 3}, r"by: expected a column name or a list of them, got 3"),
        ({"groups": ["country", "country"]}, r"by: 'country' is named twice"),
        ({"groups": ["booked"], "time": "booked", "period": "day"}, r"by: 'booked' is named twice"),
        ({"period": "day"}, r"period: 'day', but there is no time column"),
        ({"n_jobs": 0}, r"n_jobs: 0\. It must be a whole number of at least 1, or -1 for one per core\."),
        ({"rng": "seed"}, r"rng: 'seed'\. It must be None, a seed"),
        ({"confidence_level": 2}, r"confidence_level: 2"),
        ({"zero_division": "maybe"}, r"zero_division: 'maybe'\. It must be"),
        ({"method": "exactly"}, r"method: unknown method 'exactly'"),
        ({"missingness": "bad luck"}, r"missingness: unknown"),
        (
            {"missingness": dm.missing.Fixed([0.5, 0.5])},
            r"probability: values \(list\)\. It must be the name of a column",
        ),
        ({"threshold": 0.3, "y_pred": "p"}, r"threshold: 0\.3, but y_pred already has"),
        ({"threshold": np.nan}, r"threshold: nan\. It must be a finite number"),
    ],
)
def test_bad_arguments_are_told_before_anything_is_read(settings, message):
    class Unread:
        """A table that nobody must touch."""

        def __getattr__(self, name):
            raise AssertionError(name)

    groups = settings.pop("groups", "country")
    with pytest.raises(dm.InputError, match=message):
        evaluate_by("fraud", "p", data=Unread(), by=groups, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"targets": {"recal": 0.8}}, r"targets: unknown metric 'recal'\. Did you mean 'recall'\?"),
        ({"targets": {"recall": "0.8"}}, r"targets: '0\.8' for 'recall'\. A target must be a finite number"),
        ({"targets": {"recall": np.nan}}, r"targets: nan for 'recall'"),
        ({"targets": {"recall": 80}}, r"targets: 80 for 'recall'\. recall lies between 0 and 1\. Pass 0\.8 for 80%\."),
        ({"targets": {"recall": -0.1}}, r"targets: -0\.1 for 'recall'\. recall lies between 0 and 1\. Pass a target"),
        ({"targets": {"mcc": 1.5}}, r"targets: 1\.5 for 'mcc'\. mcc lies between -1 and 1\."),
        ({"targets": {"log_loss": -1}}, r"targets: -1 for 'log_loss'\. log_loss is at least 0\."),
        ({"targets": ["recall"]}, r"targets: \['recall'\]\. It must be a mapping"),
        ({"targets": {"fbeta(2)": 0.5, "fbeta(2.0)": 0.6}}, r"targets: .* has two targets"),
        ({"false_discovery_rate": 1.5}, r"false_discovery_rate: 1\.5\. It must lie strictly between 0 and 1"),
        ({"false_discovery_rate": "5%"}, r"false_discovery_rate: '5%'"),
        ({"correction": "bonferroni"}, r"correction: unknown correction 'bonferroni'"),
        ({"min_labels": -1}, r"min_labels: -1\. It must be a whole number of at least 0"),
        ({"min_labels": 2.5}, r"min_labels: 2\.5"),
    ],
)
def test_bad_arguments_of_alerts_are_told(odd, settings, message):
    with pytest.raises(dm.InputError, match=message):
        odd.grouped.alerts(**{"targets": {"recall": 0.5}} | settings)


@pytest.mark.parametrize(
    ("n_jobs", "method", "n_numbers"),
    [(1, "auto", 0), (1, "monte_carlo", 0), (2, "auto", 0), (1, "auto", 2**20), (1, "monte_carlo", 3 * 20_500)],
)
def test_alerts_are_equal_if_evaluations_or_distributions_are_not_kept(monkeypatch, n_jobs, method, n_numbers):
    targets = {"recall": 0.74, "roc_auc": 0.85}
    settings: dict[str, Any] = {"metrics": ["precision", "recall", "roc_auc"], "missingness": "by_score", "rng": 2}
    kept = quietly(rows(400), method=method, **settings)
    monkeypatch.setattr(tasks, "_MAX_KEPT", 0)
    monkeypatch.setattr("darkmetrics.monitoring.p_values._MAX_KEPT", n_numbers)
    again = dataclasses.replace(quietly(rows(400), method=method, **settings), n_jobs=n_jobs)
    assert (len(kept.evaluations), len(again.evaluations)) == (3, 0)
    if n_numbers == 2**20:  # all distributions fit, so nothing is evaluated again
        monkeypatch.setattr(Question, "answer", None)
    found = kept.alerts(targets)
    assert again.alerts(targets).to_dict() == found.to_dict()
    assert any(0.0 < missed["recall"] < 1.0 for missed in found.probability_missed.values())
    # A control: another target is told apart.
    assert kept.alerts(targets | {"recall": 0.75}).to_dict() != found.to_dict()


def test_the_mark_of_alerts_is_the_first_column():
    table = rows(2000)
    grouped = quietly(table[(table["country"] != "IT") | (table.index > 1990)], metrics="recall")
    target = {"recall": grouped.groups["FR",].metrics["recall"].lowest_possible}
    first = grouped.alerts({"recall": 0.99})
    header, body = first._table()
    assert header == ["", "country", "rows", "missing", "recall", "P(recall < 0.99)"]
    assert [row[:2] for row in body] == [["", "all"], ["alert", "DE"], ["alert", "FR"], ["too small", "IT"]]
    assert [row[0] for row in grouped._table()[1]] == ["", "", "", "too small"]
    easy = grouped.alerts(target, known_alerts=first)
    assert [row[0] for row in easy._table()[1]] == ["", "", "", "too small"]
    later = grouped.alerts({"recall": 0.99}, known_alerts=easy.to_dict() | {"alerts": [first[0].to_dict()]})
    known, new = first[0].key[0], first[1].key[0]
    marks = {row[1]: row[0] for row in later._table()[1]}
    assert marks == {"all": "", known: f"known since {grouped.evaluated_on}", new: "new", "IT": "too small"}


def test_metrics_made_on_the_fly_need_one_process():
    own = {"mine": lambda labels, scores: float(labels.mean())}
    with pytest.raises(dm.InputError, match=r"n_jobs: a metric, label model or mechanism cannot be sent"):
        by(rows(60), metrics=own, missingness=dm.missing.Fixed(0.5), method=dm.methods.MonteCarlo(10), n_jobs=2)


def test_a_process_that_dies_is_told_of():
    with pytest.raises(dm.InputError, match=r"n_jobs: 2 processes could not be started, or one of them died"):
        run_each(os._exit, [1, 1], 2, progress=False, title="Groups")


def test_arrays_are_evaluated_as_the_columns_of_a_table():
    rng = np.random.default_rng(7)
    p = rng.random(600)
    y = np.where(rng.random(600) < 0.3, np.nan, rng.random(600) < p)
    day = pd.date_range("2026-01-01", periods=600).to_numpy().astype("datetime64[ns]")
    region = np.array(["a", "b", "c"])[rng.integers(0, 3, 600)]
    table = pd.DataFrame({"y": y, "p": p, "day": day, "region": region, "w": np.where(p < 0.5, 1.0, 2.0)})
    of_table = dm.evaluate_by(
        *("y", "p"), data=table, by="region", time="day", period="quarter", sample_weight="w", metrics="recall"
    )
    of_arrays = dm.evaluate_by(
        *(y, p), by={"region": region}, time=day, period="quarter", sample_weight=table["w"], metrics="recall"
    )
    pd.testing.assert_frame_equal(
        of_arrays.to_frame("pandas").rename(columns={"time": "day"}), of_table.to_frame("pandas")
    )
    # Rows are matched by position, whatever index a Series has.
    turned = table.iloc[::-1]
    again = dm.evaluate_by(turned["y"], turned["p"], by=turned["region"].to_numpy(), metrics="recall")
    assert again["a"]["recall"].mean() == pytest.approx(
        dm.evaluate_by("y", "p", data=table, by="region", metrics="recall")["a"]["recall"].mean()
    )


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        ({"by": "region"}, "data: missing. by='region' names a column. Pass an array of groups, or the table as data="),
        ({"y_true": "y", "by": ["a", "b"]}, "data: missing. y_true='y' names a column, so pass the table as data="),
        ({"by": ["a", "b", "c"]}, "by: 3 values, but y_score has 2. Both need one per row."),
    ],
)
def test_columns_without_a_table_are_refused(arguments, answer):
    with pytest.raises(dm.InputError, match=re.escape(answer)):
        dm.evaluate_by(**{"y_true": [1, 0], "y_score": [0.9, 0.2]} | arguments)
