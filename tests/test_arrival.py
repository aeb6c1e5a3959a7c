"""When labels come: bands hold the truth, positives still to come are counted, delays that differ are found."""

import json
import pickle
import warnings
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.missing import Delayed
from darkmetrics.missingness.arrival_curves import arrival_of
from plot_checks import check_readable, labels_of, signs

SLOW, FAST, OLDEST, NEVER = 40.0, 10.0, 360, 0.1


def rows(seed, n=2000, *, slower_now=1.0, score=0.0):
    """What is known of the labels of `all_rows`, and the labels."""
    y, y_score, age, delay = all_rows(seed, n, slower_now=slower_now, score=score)
    known = delay <= age
    return np.where(known, y, np.nan), y_score, age, np.where(known, delay, np.nan), y


def all_rows(seed, n=2000, *, slower_now=1.0, score=0.0):
    """Labels with exponential delays, a tenth of which never come; `slower_now`: positives of the last half year."""
    rng = np.random.default_rng(seed)
    y_score, age = rng.random(n), rng.integers(0, OLDEST, n)
    y = rng.random(n) < y_score
    delay = rng.exponential(np.where(y, SLOW, FAST)) * np.exp(-score * (y_score > 0.5))
    delay = np.where(y & (age < OLDEST / 2), slower_now, 1.0) * delay
    return y, y_score, age, np.where(rng.random(n) < NEVER, np.inf, np.floor(delay))


def still_to_come(seed):
    """How long the labels of positives, and of negatives, that have not come yet and ever do are still to take."""
    y, _, age, delay = all_rows(seed)
    to_come = (delay > age) & np.isfinite(delay)
    return (delay - age)[to_come & y], (delay - age)[to_come & ~y]


def arrival(result):
    """What the result says about arrivals, which it must."""
    assert result.arrival is not None
    return result.arrival


def learned(seed, *, timed, **about):
    y_true, y_score, age, delay, y = rows(seed, **about)
    data = dm.EvaluationSet(y_true, y_score, missingness=dm.missing.Delayed(age=age, delay=delay if timed else None))
    return arrival_of(Delayed().fit(data), data), int(y[np.isnan(y_true)].sum())


@pytest.fixture(scope="module")
def result():
    y_true, y_score, age, delay, _ = rows(0)
    ages, delays = (np.array(part, dtype="timedelta64[D]") for part in (age, delay))
    return dm.evaluate(
        y_true, y_score, missingness=dm.missing.Delayed(age=ages, delay=delays), metrics=["precision", "recall"]
    )


@pytest.fixture(scope="module")
def many():
    return {timed: [learned(100 + k, timed=timed) for k in range(16)] for timed in (True, False)}


@pytest.mark.guarantees
@pytest.mark.parametrize("timed", [True, False])
def test_bands_hold_the_true_shares_nine_times_in_ten(many, timed):
    held = []
    for found, _ in many[timed]:
        age = np.array([b.high for b in found.bins])
        for of, mean in ((found.positives, SLOW), (found.negatives, FAST)):
            truth = (1.0 - NEVER) * -np.expm1(-age / mean)
            held.append(np.mean((of.low <= truth) & (truth <= of.high)))
    # Of 32 curves, which hold the truth at all ages or at few: 80% is two standard errors below 90%.
    assert np.mean(held) >= 0.8


@pytest.mark.guarantees
def test_delays_narrow_the_bands(many):
    ages_alone, delays = (
        np.mean(np.concatenate([found.positives.high - found.positives.low for found, _ in many[timed]]))
        for timed in (False, True)
    )
    assert delays < 0.5 * ages_alone


@pytest.mark.guarantees
@pytest.mark.parametrize("timed", [True, False])
def test_positives_among_missing_rows_are_counted(many, timed):
    inside = [found.positives.missing.low - 0.5 <= n <= found.positives.missing.high + 0.5 for found, n in many[timed]]
    assert np.mean(inside) >= 0.75  # 12 of 16; fewer have a chance of 2% at 90%


@pytest.mark.guarantees
def test_the_interval_of_the_wait_holds_the_wait_of_these_rows(many):
    """Not that of all rows like them: it says by when nine in ten of the labels that are out here will be in."""
    held = []
    for (found, _), seed in zip(many[True], range(100, 116), strict=True):
        for of, waits in zip((found.positives, found.negatives), still_to_come(seed), strict=True):
            held.append(of.wait.low <= np.quantile(waits, 0.9, method="inverted_cdf") <= of.wait.high)
    assert np.mean(held) >= 0.75  # 24 of 32; fewer have a chance of 0.3% at 90%


@pytest.mark.guarantees
def test_the_interval_of_the_wait_holds_the_truth(many):
    held = [
        of.wait.low <= mean * np.log(10.0) <= of.wait.high
        for found, _ in many[True]
        for of, mean in ((found.positives, SLOW), (found.negatives, FAST))
    ]
    assert np.mean(held) >= 0.75


@pytest.mark.guarantees
@pytest.mark.parametrize("timed", [True, False])
def test_what_never_comes_and_when_most_has_come_are_those_of_the_truth(many, timed):
    for name, mean in (("positives", SLOW), ("negatives", FAST)):
        parts = [getattr(found, name) for found, _ in many[timed]]
        assert np.mean([of.never.low <= NEVER <= of.never.high for of in parts]) >= 0.75
        # Exponential delays: nine in ten of those that come have come by this age.
        truth = mean * np.log(10.0)
        assert np.mean([of.most.low <= truth <= of.most.high for of in parts]) >= 0.75
        assert all(of.to_come.mean < of.missing.mean for of in parts)


@pytest.mark.guarantees
def test_the_wait_errs_on_the_long_side(many):
    for name, mean in (("positives", SLOW), ("negatives", FAST)):
        ends = [getattr(found, name).wait.high for found, _ in many[True]]
        assert np.mean([mean * np.log(10.0) <= end for end in ends]) >= 0.95


@pytest.mark.guarantees
@pytest.mark.parametrize("timed", [True, False])
def test_equal_delays_raise_no_alarm(many, timed):
    checks = [check for found, _ in many[timed] for check in (found.by_score, found.by_cohort)]
    assert not any(check.is_clear for check in checks)
    assert not any(found.by_age_and_score.is_clear for found, _ in many[timed])
    # Five of 32 at the 5% level has a chance of 2%.
    assert sum(check.p_value < 0.05 for check in checks) <= 5


def test_delays_that_differ_between_cohorts_are_found():
    y_true, y_score, age, delay, _ = rows(1, slower_now=2.0)
    with pytest.warns(dm.AssumptionWarning, match="Rows scored late get labels of positives later"):
        result = dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=age, delay=delay), metrics="recall")
    assert "AssumptionWarning" in [warned.category for warned in result.warnings]
    assert arrival(result).by_cohort.is_clear
    assert not arrival(result).by_score.is_clear
    # Half the hazard, in odds of bins of a few days.
    assert np.exp(arrival(result).by_cohort.effect) == pytest.approx(0.5, abs=0.15)
    assert "delays are not what they are taken for" in result.diagnosis.verdict


def test_delays_that_differ_between_scores_are_found():
    y_true, y_score, age, delay, _ = rows(2, score=0.7)
    with pytest.warns(dm.AssumptionWarning, match="come sooner than at low scores"):
        result = dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=age, delay=delay), metrics="recall")
    assert arrival(result).by_score.is_clear
    assert not arrival(result).by_cohort.is_clear


@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.9])
def test_fit_is_refuted_if_delays_of_middle_scores_differ(share, timed):
    rng = np.random.default_rng(5)
    y_score, age = rng.random(2000), rng.integers(0, 100, 2000)
    y = rng.random(2000) < y_score
    slow = (np.abs(y_score - 0.5) < 0.17) & (rng.random(2000) < share)
    delay = np.floor(rng.exponential(8.0, 2000)) + np.where(slow, 50.0, 0.0)
    known = delay <= age
    model = Delayed(age=age, delay=np.where(known, delay, np.nan) if timed else None, reviewed="all")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = dm.evaluate(np.where(known, y, np.nan), y_score, metrics="recall", missingness=model)
    check = arrival(result).by_age_and_score
    assert check.is_clear == (share > 0.0)
    assert any(issubclass(one.category, dm.AssumptionWarning) for one in caught) == (share > 0.0)


def test_without_delays_old_rows_with_fewer_labels_are_found():
    rng = np.random.default_rng(3)
    y_score, age = rng.random(2000), rng.integers(0, 100, 2000)
    y = rng.random(2000) < y_score
    # Labels are taken in a new way since day 50, before which many never came.
    known = rng.random(2000) < np.where(age < 50, 0.9, 0.5)
    with pytest.warns(dm.AssumptionWarning, match="have no label where equal delays"):
        result = dm.evaluate(
            np.where(known, y, np.nan), y_score, missingness=dm.missing.Delayed(age=age), metrics="recall"
        )
    assert arrival(result).by_cohort.is_clear


@pytest.mark.parametrize("ages", [np.full(600, 30.0), np.where(np.arange(600) < 590, 30.0, 90.0)])
def test_ages_that_cannot_tell_are_warned_of(ages):
    y_true, y_score, *_ = rows(4, n=600)
    with pytest.warns(dm.CalibrationWarning, match="dominated by the prior for delays"):
        result = dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=ages), metrics="recall")
    assert not arrival(result).tells
    assert result.diagnosis.missingness != "late"


def test_rows_without_ages_have_no_arrival():
    y_true, y_score, *_ = rows(5, n=300)
    result = dm.evaluate(y_true, y_score, missingness="by_score", metrics="recall")
    assert result.arrival is None
    assert "arrival" not in result.to_dict()
    with pytest.raises(dm.InputError, match="did not learn from ages"):
        result.plot_arrival()


def test_words_say_how_many_and_by_when(result):
    found = arrival(result)
    n = found.positives.missing
    assert result._words().count(found.headline()) == 1
    assert found.headline().startswith(f"Of the {result.data.n_missing:,} missing rows about {n.mean:,.0f} (")
    assert f"within {found.positives.wait.mean:.0f} days nine in ten" in found.headline()
    for as_of in (date(2026, 6, 1), datetime(2026, 6, 1, 17, 30), "2026-06-01", np.datetime64("2026-06-01")):
        by = date(2026, 6, 1) + timedelta(days=int(np.ceil(found.positives.wait.mean)))
        assert f"by {by} nine in ten" in found.at(as_of).headline()
        assert found.at(as_of).headline().startswith("As of 2026-06-01, of the ")
        assert found.at(as_of).to_dict()["by_date"] == by.isoformat()
    assert "no row is old enough to say" in str(found)


@pytest.mark.parametrize("as_of", ["x", 30, ["2026-06-01"], "9999-12-31"])
def test_what_is_no_date_is_refused_at_once(result, as_of):
    with pytest.raises(dm.InputError, match=r"^as_of: "):
        arrival(result).at(as_of)


def test_a_wait_beyond_the_calendar_has_no_date(result):
    found = arrival(result).at("2026-06-01")
    assert found.date_of(1.2) == date(2026, 6, 3)
    assert found.date_of(1e9) is None
    assert found.date_of(-1e9) is None
    for wait in (float("nan"), "30", True):
        with pytest.raises(dm.InputError, match=r"^wait: .* It must be a number of days\."):
            found.date_of(wait)


def test_bins_hold_every_row_and_label_once(result):
    bins, counts = arrival(result).bins, result.data.counts()
    for name in ("positive", "negative", "missing"):
        assert sum(getattr(b, name) for b in bins) == counts[name]
    assert sum(b.rows for b in bins) == counts["rows"]
    assert sum(b.arrived for b in bins) == counts["labeled"]
    assert [b.high for b in bins[:-1]] == [b.low for b in bins[1:]]


def test_it_is_part_of_the_numbers_and_survives_storing(result):
    found = json.loads(json.dumps(result.to_dict(), allow_nan=False))["arrival"]
    assert found["positives"]["missing"]["mean"] == arrival(result).positives.missing.mean
    assert found["by_cohort"]["p_value"] == arrival(result).by_cohort.p_value
    again = pickle.loads(pickle.dumps(result)).arrival
    assert again.to_dict() == arrival(result).to_dict()
    frame = arrival(result).to_frame("pandas")
    assert frame["positives_in"].tolist() == arrival(result).positives.share.tolist()
    assert len(frame) == len(arrival(result).bins)


def test_the_model_is_fitted_once(monkeypatch):
    fits, fit = [], Delayed.fit

    def counted(self, data):
        fits.append(data)
        return fit(self, data)

    monkeypatch.setattr(Delayed, "fit", counted)
    y_true, y_score, age, *_ = rows(6, n=600)
    result = dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=age), metrics="recall")
    assert result.diagnosis.arrival is arrival(result)
    assert len(fits) == 1


def test_the_diagnosis_says_late_and_asks_for_nothing(result):
    found = result.diagnosis
    assert found.missingness == "late"
    assert arrival(result).headline() in found.verdict
    assert "reference=" not in found.verdict
    assert found.to_dict()["arrival"]["missing"] == result.data.n_missing
    late = found.mechanisms["late"].metrics["precision"]
    assert late.mean == pytest.approx(result["precision"].mean(), rel=1e-9)


def test_diagnose_takes_ages():
    y_true, y_score, age, delay, _ = rows(7, n=600)
    found = dm.diagnose(y_true, y_score, missingness=dm.missing.Delayed(age=age, delay=delay), metrics="recall")
    assert found.missingness == "late"
    assert set(found.mechanisms) == {"by score", "by label", "late"}


def test_at_the_maturity_all_is_known():
    _, y_score, age, delay, y = rows(8)
    came = y & (delay <= np.minimum(age, 90))
    result = dm.evaluate(
        came.astype(float), y_score, missingness=dm.missing.Delayed(age=age, maturity=90), metrics="recall"
    )
    found = arrival(result)
    assert found.maturity == 90.0
    for of in (found.positives, found.negatives):
        assert of.share[-1] == 1.0
        assert of.never.mean == 0.0
    assert found.negatives.share[-2] < 0.02
    assert found.negatives.half.mean > 80.0
    assert not found.by_cohort.is_clear
    assert "count as negative" in str(found)


def test_plot_draws_the_shares(result):
    ax = result.plot_arrival()
    check_readable(ax)
    lines = {line.get_label(): line for line in ax.get_lines()}
    for name, of in (("positives", arrival(result).positives), ("negatives", arrival(result).negatives)):
        assert lines[name].get_ydata().tolist() == [0.0, *of.share]
        assert lines[name].get_xdata().tolist() == [0.0, *(b.high for b in arrival(result).bins)]
    assert labels_of(ax) == ["positives", "negatives", "bands: 90%"]
    assert len(set(signs(ax))) == len(signs(ax))


def test_reports_have_a_section_about_it():
    y_true, y_score, age, *_ = rows(10, n=300)
    result = dm.evaluate(
        y_true, y_score, missingness=dm.missing.Delayed(age=np.array(age, dtype="timedelta64[D]")), metrics="recall"
    )
    summary = dm.report.summarize(result)
    page, text, numbers = (dm.report.render(summary, view) for view in ("html", "markdown", "json"))
    assert '<h2 id="arrival">When do labels arrive?</h2>' in page
    assert arrival(result).headline() in page
    assert "## When do labels arrive?" in text
    assert "| age in days |" in text
    assert json.loads(numbers)["arrival"]["words"] == arrival(result)._words()


def test_everything_else_works_with_ages(result):
    assert set(result.sensitivity()) == {"precision", "recall"}
    assert float(result.tipping_point("recall", 0.1)) > 1.0
    curves = dm.threshold_curves(result, thresholds=[0.4, 0.5])
    at = list(curves.thresholds).index(0.5)
    assert curves["recall"].mean[at] == pytest.approx(result["recall"].mean(), rel=1e-6)
    assert len(result.to_frame("pandas")) == 2


def test_told_nothing_the_answer_asks_for_ages():
    y_true, y_score, *_ = rows(9, n=600)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        result = dm.evaluate(y_true, y_score, metrics="recall")
    assert "or pass dm.missing.Reference, Delayed or Propensity." in "\n".join(result._words())


def turned(seed, *, turns):
    """Rows of a year, a tenth positive, or half of those of four weeks, twice, at scores that mean less then."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 365, 3000)
    new = turns & ((age < 28) | (age // 28 == 6))
    y = rng.random(3000) < np.where(new, 0.5, 0.1)
    y_score = 1.0 / (1.0 + np.exp(3.5 - 1.6 * (rng.normal(size=3000) + np.where(new, 0.5, 1.6) * y)))
    delay = np.floor(rng.gamma(1.5, np.where(y, 70.0, 20.0) / 1.5))
    return np.where(delay <= age, y, np.nan), y_score, age, np.where(delay <= age, delay, np.nan)


@pytest.mark.parametrize("seed", range(2))
def test_that_ages_alone_cannot_tell_a_turn_of_the_newest_rows_is_warned_of(seed):
    y_true, y_score, age, delay = turned(seed, turns=True)
    ask: dict[str, Any] = {"threshold": 0.2, "metrics": "precision"}
    with pytest.warns(dm.MissingnessWarning, match="do not separate a change in the newest rows from delayed labels"):
        result = dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=age), **ask)
    assert arrival(result).turning > 0.5
    assert "do not separate a change in the newest rows" in " ".join(result.diagnosis.verdict.split())
    with warnings.catch_warnings():  # when labels came shows it, and without a turn there is nothing to say
        warnings.simplefilter("error", dm.MissingnessWarning)
        dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=age, delay=delay), **ask)
        y_true, y_score, age, _ = turned(seed, turns=False)
        assert arrival(dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=age), **ask)).turning < 0.1


def test_from_ages_alone_it_is_said_how_many_rows_are_too_young_to_show_a_change():
    found, _ = learned(0, timed=False)
    young = sum(b.missing for b in found.bins if b.high <= found.positives.half.mean)
    assert young > 50
    assert f"{young:,} of the missing rows are younger than the age of {found.positives.half.mean:.0f}" in str(found)
    assert "are younger than" not in str(learned(0, timed=True)[0])
