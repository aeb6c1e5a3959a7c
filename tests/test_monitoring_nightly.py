"""A job that runs every night: which periods alerts look at, which alerts are new, and what is a fact and no guess."""

import datetime as dt
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from alerting import alerts_by
from darkmetrics.monitoring import Alerts
from darkmetrics.monitoring.wording import records_of

# Right ones among ten labeled rows, and how many rows lack their label; each of these is right with probability 1/2.
MONTHS = {1: (14, 0), 2: (16, 0), 3: (4, 10), 4: (7, 10), 5: (6, 10), 6: (5, 10)}
# Accuracy of at least 0.75 takes 15 of 20 rows: 8, 9 and 10 right ones out of ten coins in April, May and June.
APRIL, MAY, JUNE = 56 / 1024, 11 / 1024, 1 / 1024


def rows_of(month, right, missing, country="DE"):
    labeled = 20 - missing
    label = [float(i % 2) for i in range(labeled)] + [np.nan] * missing
    score = [0.9 if (i % 2 == 1) == (i < right) else 0.1 for i in range(labeled)] + [0.9] * missing
    day = pd.Timestamp(2026, month, 3)
    return pd.DataFrame({"booked": day, "country": country, "fraud": label, "p": score})


def table(months=None, **columns):
    return pd.concat([rows_of(month, *counts, **columns) for month, counts in (months or MONTHS).items()])


def monthly(frame=None, **settings: Any) -> Alerts:
    given: dict[str, Any] = {"time": "booked", "period": "month", "targets": {"accuracy": 0.75}, "metrics": "accuracy"}
    given |= {"y_true": "fraud", "y_score": "p", "missingness": dm.missing.Fixed(0.5)}
    return alerts_by(data=table() if frame is None else frame, **given | settings)


def by_month(result):
    return {key[-1].month: q for (key, _), q in result.q_values.items()}


def alerts(result):
    return {alert.key[-1].month for alert in result}


# ------------------------------------------------------------------------------------------- what is looked at, and how


def test_the_months_are_what_they_are_said_to_be():
    missed = {key[0].month: missed["accuracy"] for key, missed in monthly().probability_missed.items()}
    # Sums of a few binomial probabilities.
    assert missed == pytest.approx({1: 1, 2: 0, 3: 1, 4: 1 - APRIL, 5: 1 - MAY, 6: 1 - JUNE}, abs=1e-12)


def test_facts_are_alerts_but_are_not_counted_among_guesses():
    result = monthly()
    # Three guesses, by hand: 3 p / rank, and what is certain is 0 or 1.
    expected = {1: 0.0, 2: 1.0, 3: 0.0, 4: APRIL, 5: 3 * MAY / 2, 6: 3 * JUNE}
    assert by_month(result) == pytest.approx(expected, abs=1e-12)
    assert alerts(result) == {1, 3, 5, 6}
    assert {alert.key[0].month for alert in result if alert.certain} == {1, 3}
    # Counted together with the facts April would have 6 p / 5, and be no alert at this rate.
    assert 4 in alerts(monthly(false_discovery_rate=0.06))
    assert 6 * APRIL / 5 > 0.06


@pytest.mark.parametrize(
    "asked",
    [
        {"since": "2026-05"},
        {"since": "2026-05-01"},
        {"since": "2026-05-31"},
        {"since": dt.date(2026, 5, 17)},
        {"since": pd.Timestamp("2026-05-17 12:00")},
        {"since": np.datetime64("2026-05-17")},
        {"last_periods": 2},
    ],
)
def test_alerts_look_at_the_newest_periods_and_count_only_those(asked):
    result = monthly(**asked)
    assert by_month(result) == pytest.approx({5: MAY, 6: 2 * JUNE}, abs=1e-12)
    assert alerts(result) == {5, 6}
    assert result.since == dt.date(2026, 5, 1)
    assert len(result.grouped.groups) == 6
    assert result.grouped.total.data.n_rows == 120
    assert "Alerts look at 2026-05 and later: 2 of 6 groups are judged." in str(result)
    assert result.to_dict()["since"] == "2026-05-01"


@pytest.mark.parametrize(
    ("since", "period", "first"),
    [
        ("2026-Q2", "month", 4),
        ("2026Q2", "month", 4),
        ("2026", "month", 1),
        ("2025-12-31", "month", 1),
        ("2026-05", "quarter", 4),
        ("2026-04-05", "week", 3),
        ("2026-04", "day", 4),
        ("2026-04-03T10:00", "day", 4),
    ],
)
def test_a_period_that_holds_the_date_is_looked_at(since, period, first):
    result = monthly(since=since, period=period)
    assert min(key[0] for key, _ in result.q_values).month == first
    if period == "week":  # Friday the third of April is in the week of Monday the 30th of March
        assert result.since == dt.date(2026, 3, 30)


def test_periods_may_be_text_or_numbers():
    frame = table().assign(
        month=lambda rows: rows["booked"].dt.strftime("%Y-%m"), number=lambda r: r["booked"].dt.month
    )
    months = {"by": "month", "time": None, "period": None}
    for since in ("2026-05", "2026-05-20", dt.date(2026, 5, 20)):
        assert [key[0] for key, _ in monthly(frame, since=since, **months).q_values] == ["2026-05", "2026-06"]
    for asked in ({"since": 5}, {"since": "5"}, {"last_periods": 2}):
        assert [key[0] for key, _ in monthly(frame, time="number", period=None, **asked).q_values] == [5, 6]


def test_more_periods_than_there_are_is_all_of_them():
    assert len(monthly(last_periods=100).q_values) == 6


def test_rows_without_a_date_are_of_no_period():
    frame = pd.concat([table(), rows_of(1, 5, 10).assign(booked=pd.NaT)])
    assert len(monthly(frame).q_values) == 7
    result = monthly(frame, last_periods=100)
    assert len(result.q_values) == 6
    assert (None,) in result.grouped.groups


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"since": "2026-07"}, r"^since: '2026-07' is after the newest period, 2026-06\.$"),
        ({"since": "soon"}, r"^since: 'soon' cannot be compared with the periods, such as '2026-01'\.$"),
        ({"since": "2026-13"}, r"^since: '2026-13' cannot be compared"),
        *(({"since": one}, r"^since: .* is no period\. Give one") for one in (pd.NaT, np.datetime64("NaT"), np.nan)),
        ({"since": 5}, r"^since: 5 cannot be compared"),
        ({"since": ["2026-05"]}, r"^since: \['2026-05'\] cannot be compared"),
        ({"last_periods": 0}, r"^last_periods: 0\. It must be a whole number of at least 1\.$"),
        ({"last_periods": 1.5}, r"^last_periods: 1\.5\. It must be a whole number"),
        ({"last_periods": "3"}, r"^last_periods: '3'\. It must be a whole number"),
        ({"last_periods": True}, r"^last_periods: True\. It must be a whole number"),
        (
            {"last_periods": 2, "since": "2026-05"},
            r"^last_periods: since sets already from which period on alerts look\.",
        ),
        (
            {"last_periods": 2, "by": "country", "time": None, "period": None},
            r"^last_periods: there are no periods, only 'country'\.",
        ),
        ({"since": "x", "by": "country", "time": None, "period": None}, r"^since: there are no periods, only"),
    ],
)
def test_periods_that_make_no_sense_are_refused_by_argument(asked, said):
    with pytest.raises(dm.InputError, match=said):
        monthly(**asked)


def test_text_that_is_written_in_another_way_is_refused():
    frame = table().assign(quarter=lambda rows: "2026-Q" + rows["booked"].dt.quarter.astype(str))
    with pytest.raises(dm.InputError, match=r"^since: '2026-05' cannot be compared with .* such as '2026-Q1'"):
        monthly(frame, by="quarter", time=None, period=None, since="2026-05")
    assert len(monthly(frame, by="quarter", time=None, period=None, since="2026-Q2").q_values) == 1


# ------------------------------------------------------------------------------------------------------- what is new


@pytest.fixture
def nights(monkeypatch):
    """Evaluates on a day of one's choice."""

    def evaluated(day, *, frame=None, **settings):
        monkeypatch.setattr("darkmetrics.monitoring.run._today", lambda: dt.date.fromisoformat(day))
        return monthly(frame, **settings)

    return evaluated


# What was known in the first night: May and June had other labels.
BEFORE = MONTHS | {5: (10, 10), 6: (10, 10)}


def state(result):
    return {alert.key[-1].month: (alert.new, str(alert.known_since)) for alert in result}


def test_an_alert_is_new_once_and_then_known_since_that_night(nights):
    first = nights("2026-07-01", frame=table(BEFORE))
    assert state(first) == {1: (True, "2026-07-01"), 3: (True, "2026-07-01")}
    assert first.resolved is None
    second = nights("2026-07-02", known_alerts=first)
    assert state(second) == {
        1: (False, "2026-07-01"),
        3: (False, "2026-07-01"),
        5: (True, "2026-07-02"),
        6: (True, "2026-07-02"),
    }
    assert second.resolved == ()
    third = nights("2026-07-03", known_alerts=second)
    assert {month: since for month, (_, since) in state(third).items()} == {
        month: since for month, (_, since) in state(second).items()
    }
    assert not any(alert.new for alert in third)


def test_an_alert_that_went_away_is_named_and_is_new_when_it_comes_back(nights):
    first = nights("2026-07-01")
    second = nights("2026-07-02", frame=table(BEFORE), known_alerts=first)
    assert [(alert.group, alert.metric, alert.target) for alert in second.resolved or ()] == [
        ("2026-06", "accuracy", 0.75),
        ("2026-05", "accuracy", 0.75),
    ]
    missed = 1 - 638 / 1024  # five of ten coins or more
    said = f"2026-06 (accuracy >= 0.75; probability of a miss now {missed:.3f})"
    assert f"No longer an alert: {said}; 2026-05" in str(second)
    third = nights("2026-07-03", known_alerts=second)
    assert state(third)[6] == (True, "2026-07-03")
    assert state(third)[1] == (False, "2026-07-01")


def test_what_becomes_of_an_alert_that_is_not_judged_any_more(nights):
    first = nights("2026-07-01")
    gone = nights("2026-07-02", known_alerts=first, last_periods=2)
    assert "2026-01 (accuracy >= 0.75; not looked at now)" in str(gone)
    without = nights("2026-07-02", known_alerts=first, frame=table({3: (4, 10), 6: (5, 10)}))
    assert "2026-01-01 (accuracy >= 0.75; not in the table)" in str(without)
    small = nights("2026-07-02", known_alerts=first, min_labels=9)
    assert "2026-06 (accuracy >= 0.75; too small to judge)" in str(small)
    other = nights("2026-07-02", known_alerts=first, targets={"accuracy": 0.76})
    assert "2026-01 (accuracy >= 0.75; not asked for now)" in str(other)
    assert all(alert.new for alert in other)  # another target is another question


def test_an_earlier_result_may_be_a_dictionary_or_a_file(nights, tmp_path):
    first = nights("2026-07-01", frame=table(BEFORE))
    path = tmp_path / "last.json"
    path.write_text(json.dumps(first.to_dict()))
    answers = [nights("2026-07-02", known_alerts=known) for known in (first, first.to_dict(), path, str(path))]
    assert len({json.dumps(answer.to_dict()["alerts"]) for answer in answers}) == 1
    [plain] = [one for one in answers[0].to_dict()["alerts"] if one["key"] == ["2026-01-01"]]
    assert plain | {"q_value": 0.0} == {
        "key": ["2026-01-01"],
        "metric": "accuracy",
        "side": ">=",
        "target": 0.75,
        "probability": 1.0,
        "q_value": 0.0,
        "certain": True,
        "new": False,
        "known_since": "2026-07-01",
    }


def test_segments_and_periods_are_told_apart(nights):
    both = pd.concat([table(BEFORE), table(country="FR")])
    first = nights("2026-07-01", frame=both, by="country")
    second = nights("2026-07-02", frame=pd.concat([table(), table(country="FR")]), by="country", known_alerts=first)
    assert {alert.group for alert in second if alert.new} == {"DE, 2026-05", "DE, 2026-06"}


def test_what_is_printed_says_which_are_new(nights):
    first = nights("2026-07-01", frame=table(BEFORE))
    assert "new" not in str(first)
    text = str(nights("2026-07-02", known_alerts=first))
    assert (
        "4 of 6 groups miss accuracy >= 0.75 (false-discovery rate 5%), 2 of them new: 2026-06 (0.999, new); " in text
    )
    assert "2026-01 (1, known since 2026-07-01)" in text
    assert re.search(r"^known since 2026-07-01 +2026-01 ", text, re.MULTILINE)
    assert re.search(r"^new +2026-06 ", text, re.MULTILINE)
    assert "none of them new" in str(nights("2026-07-03", known_alerts=nights("2026-07-02")))
    result = nights("2026-07-02", known_alerts=first)
    assert result.to_frame("pandas").sort_values("booked")["new"].tolist() == [False, False, True, True]
    assert [one["new"] for one in records_of(result) if one["alert"]] == [False, False, True, True]


@pytest.mark.parametrize(
    ("known", "said"),
    [
        (
            3,
            r"^known_alerts: got int\. Give what \.alerts\(\) returned, its to_dict\(\), or a file with that as JSON",
        ),
        ("no-such.json", r"^known_alerts: cannot read 'no-such\.json': No such file or directory\.$"),
        ({}, r"^known_alerts: it is no result of \.alerts\(\) \(its schema is not 'darkmetrics\.groups/1'\)"),
        (
            {"schema": "darkmetrics.groups/1"},
            r"^known_alerts: its groups are by None, those of now by 'booked' every month\.",
        ),
    ],
)
def test_what_is_no_earlier_result_is_refused(known, said):
    with pytest.raises(dm.InputError, match=said):
        monthly(known_alerts=known)


@pytest.mark.parametrize("text", ["", "[1, 2]", "{", "\x00", "3", "[" * 100_000])
def test_a_file_that_holds_none_is_refused(tmp_path, text):
    path = tmp_path / "last.json"
    path.write_text(text)
    with pytest.raises(dm.InputError, match=r"^known_alerts: '.*last\.json' is (no JSON|JSON, but no result)"):
        monthly(known_alerts=path)


@pytest.mark.parametrize(
    "change",
    [
        {"alerts": None},
        {"alerts": [3]},
        {"alerts": [{}]},
        {"alerts": [{"key": [1, 2], "metric": "accuracy", "side": ">=", "target": 1, "probability": 1, "q_value": 0}]},
        {"evaluated_on": "soon"},
    ],
)
def test_alerts_that_cannot_be_read_are_refused(change):
    plain = monthly().to_dict()
    if "evaluated_on" in change:
        plain["alerts"] = [one | {"known_since": None} for one in plain["alerts"]]
    with pytest.raises(dm.InputError, match=r"^known_alerts: its alerts cannot be read\."):
        monthly(known_alerts=plain | change)


def test_other_groups_are_refused():
    other = monthly(by="country")
    with pytest.raises(
        dm.InputError,
        match=r"^known_alerts: its groups are by 'country' and 'booked' every month, those of now by 'booked'",
    ):
        monthly(known_alerts=other)


def test_a_result_without_alerts_is_no_list_of_known_ones():
    grouped: Any = monthly().grouped
    with pytest.raises(dm.InputError, match=r"^known_alerts: it has no alerts\. Give what \.alerts\(\) returned"):
        monthly(known_alerts=grouped)
