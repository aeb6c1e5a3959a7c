"""History replayed: each date sees what was known then, and is compared with what is known now."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import precision_score

import darkmetrics as dm

DATES = ["2026-04-01", "2026-06-01", "2026-08-01"]
N = 4000


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    day, score = rng.integers(0, 365, N), rng.beta(1.2, 2.5, N).round(4)
    y = rng.random(N) < score
    delay = np.where(y, rng.exponential(25, N), rng.exponential(8, N)).astype(int)
    scored = np.datetime64("2026-01-01") + day
    came = np.where(day + delay <= 365, scored + delay, np.datetime64("NaT"))
    label = np.where(day + delay <= 365, y, np.nan)
    return pd.DataFrame({"y": label, "score": score, "scored": scored, "came": came, "truth": y})


def replayed(rows: pd.DataFrame, as_of: Any = DATES, **settings: Any) -> dm.Backtest:
    asked: dict[str, Any] = {"metrics": "precision", "threshold": 0.3, "rng": 0, **settings}
    return dm.backtest(rows.y, rows.score, as_of=as_of, scored_at=rows.scored, labeled_at=rows.came, **asked)


def test_a_date_is_what_evaluate_says_of_the_rows_known_then(rows):
    result = replayed(rows, ["2026-06-01"])
    now = rows[rows.y.notna()]
    then = now[now.scored <= "2026-06-01"]
    known = then.came <= "2026-06-01"
    age, delay = pd.Timestamp("2026-06-01") - then.scored, then.came - then.scored
    expected = dm.evaluate(
        then.y.where(known),
        then.score,
        missingness=dm.missing.Delayed(age=age, delay=delay.where(known)),
        metrics="precision",
        threshold=0.3,
    )
    (one,) = result.history
    assert (one.as_of, one.rows, one.labeled) == ("2026-06-01", len(then), int(known.sum()))
    assert one.mean == pytest.approx(expected["precision"].mean(), abs=1e-12)
    assert (one.low, one.high) == expected["precision"].interval(0.9)
    assert one.truth == pytest.approx(precision_score(then.y, then.score >= 0.3), abs=1e-12)


def test_what_came_later_changes_nothing_but_the_truth(rows):
    """The labels of rows that were open then are turned over: what was said then must stay as it is."""
    later = rows.came > "2026-06-01"
    turned = rows.assign(y=rows.y.where(~later, 1.0 - rows.y))
    (one,), (other,) = replayed(rows, ["2026-06-01"]).history, replayed(turned, ["2026-06-01"]).history
    assert (one.mean, one.low, one.high) == (other.mean, other.low, other.high)
    assert one.truth != other.truth


def test_setups_are_compared_and_late_is_nearest(rows):
    setups = ["delayed", "by_label", "by_score", "unknown", "dropping"]
    result = replayed(rows, window=60, missingness=setups)
    error = {setup: result[setup, "precision"].mae.value for setup in setups}
    assert error["delayed"] < min(error["by_score"], error["unknown"], error["dropping"])
    width = {setup: result[setup, "precision"].width.value for setup in setups}
    assert 0.0 == width["dropping"] < width["delayed"] < width["unknown"]
    assert len(result.history) == len(DATES) * len(setups)
    assert result.n_repeats == len(DATES)


def test_not_stated_is_delayed_where_history_is_replayed(rows):
    one, other = (replayed(rows, missingness=word).history for word in (None, "delayed"))
    assert [date.mean for date in one] == [date.mean for date in other]


def test_a_window_asks_about_its_rows_alone(rows):
    result = replayed(rows, ["2026-06-01"], window=dt.timedelta(days=30))
    (one,) = result.history
    now = rows[rows.y.notna()]
    inside = now[(now.scored <= "2026-06-01") & (now.scored > "2026-05-02")]
    assert one.rows == len(inside)
    assert one.truth == pytest.approx(precision_score(inside.y, inside.score >= 0.3), abs=1e-12)


def test_a_date_whose_labels_are_still_to_come_is_left_out(rows):
    result = replayed(rows, [*DATES, "2026-12-20"])
    assert result.n_repeats == len(DATES)
    assert any(note.startswith("2026-12-20 is left out") for note in result.notes)
    assert any("have no label by" in note for note in result.notes)
    with pytest.raises(dm.InputError, match=r"^as_of: no date that can be compared .* 2026-12-20 is left out"):
        replayed(rows, ["2026-12-20"])


def test_maturity_declares_the_negatives(rows):
    fraud = rows.truth & rows.came.notna() & (rows.came - rows.scored < pd.Timedelta(days=60))
    told = rows.assign(y=fraud.astype(float), came=rows.came.where(fraud))
    result = replayed(told, ["2026-06-01", "2026-12-15"], maturity=60)
    assert [note for note in result.notes if note.startswith("2026-12-15 is left out")]
    (one,) = result.history
    then = told[told.scored <= "2026-06-01"]
    assert one.rows == len(then)
    assert one.truth == pytest.approx(precision_score(then.y, then.score >= 0.3), abs=1e-12)
    assert one.low <= one.truth <= one.high


def test_numbers_and_dates_give_the_same(rows):
    first = np.datetime64("2026-01-01")
    day = (rows.scored.to_numpy() - first) / np.timedelta64(1, "D")
    came = (rows.came.to_numpy() - first) / np.timedelta64(1, "D")
    number = dm.backtest(
        rows.y, rows.score, as_of=[151], scored_at=day, labeled_at=came, metrics="precision", threshold=0.3
    )
    assert number.history[0][3:9] == replayed(rows, ["2026-06-01"]).history[0][3:9]


def test_result_is_told_in_words_and_tables(rows):
    result = replayed(rows, n_jobs=1)
    text = str(result)
    assert "3 dates replayed (2026-04-01 to 2026-08-01)" in text
    assert repr(result) == f"<Backtest of 1 setup on {int(rows.y.notna().sum()):,} rows, 3 dates>"
    assert list(result.history_frame("pandas").as_of) == DATES
    assert len(result.to_dict()["history"]) == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mask": 0.3}, "mask: passed with as_of"),
        ({"as_of": []}, "as_of: .* It must be a list of the dates to replay"),
        ({"as_of": ["soon"]}, "as_of: cannot read 'soon' as a date"),
        ({"as_of": [3]}, "as_of: numbers, but scored_at has dates"),
        ({"as_of": ["2026-06-01T00:00:00Z"]}, "^as_of: has a time zone, unlike scored_at"),  # also at midnight
        ({"as_of": ["2020-01-01"]}, "no rows were scored before it"),
        ({"scored_at": None}, "scored_at: missing"),
        ({"labeled_at": None}, "labeled_at: missing"),
        ({"window": -1}, "window: -1. It must be a positive number"),
        ({"maturity": 0}, "maturity: 0. It must be a positive number"),
        ({"window": "30"}, "^window: '30'. It must be a positive number or a timedelta.$"),
        ({"maturity": "60"}, "^maturity: '60'. It must be a positive number or a timedelta.$"),
        ({"maturity": True}, "^maturity: True. It must be a positive number or a timedelta.$"),
        ({"maturity": 3}, r"maturity: 3, but [\d,]+ of [\d,]+ labels took longer, up to [\d.]+ \("),
        ({"as_of": None}, "scored_at: passed without as_of"),
    ],
)
def test_mistakes_are_named(rows, change, message):
    settings: dict[str, Any] = {"as_of": DATES, "scored_at": rows.scored, "labeled_at": rows.came} | change
    with pytest.raises(dm.InputError, match=message):
        dm.backtest(rows.y, rows.score, **settings)


def test_without_rows_it_is_said_that_there_are_none():
    with pytest.raises(dm.InputError, match=r"^y_true: no rows\."):
        dm.backtest([], [], scored_at=[], labeled_at=[], as_of=["2026-06-01"])


@pytest.mark.parametrize("kind", [iter, set])
def test_dates_may_come_from_an_iterator_or_a_set(rows, kind):
    assert replayed(rows, kind(DATES)).history == replayed(rows).history


def test_times_that_cannot_be_are_named(rows):
    early = rows.came.mask(rows.index == 7, rows.scored - pd.Timedelta(days=1))
    with pytest.raises(dm.InputError, match="labeled_at: row 7 comes before scored_at"):
        replayed(rows.assign(came=early, y=rows.truth.astype(float)))
    with pytest.raises(dm.InputError, match=r"labeled_at: row \d+ has none, but has a label"):
        replayed(rows.assign(y=rows.truth.astype(float)))


def test_history_is_drawn_with_what_came_true(rows):
    pytest.importorskip("matplotlib").use("Agg")
    result = replayed(rows, missingness=["delayed", "dropping"])
    ax = dm.plotting.plot_history(result, "precision")
    assert [tick.get_text() for tick in ax.get_xticklabels()] == DATES
    (known,) = [line.get_color() for line in ax.lines if line.get_label() == "known now"]
    drawn = {round(float(np.asarray(line.get_ydata())[0]), 9) for line in ax.lines if line.get_color() == known}
    assert drawn == {round(one.truth, 9) for one in result.history}
    hidden = dm.backtest(
        rows.truth, rows.score, metrics="precision", n_repeats=2, rng=0, missingness=dm.missing.Fixed(0.5)
    )
    with pytest.raises(dm.InputError, match="no dates were replayed"):
        dm.plotting.plot_history(hidden, "precision")
