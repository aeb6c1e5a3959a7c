"""Labels that come with time: ages of rows in place of a stated reason."""

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

import darkmetrics as dm
from darkmetrics._kernels.age_grid import age_bin, bin_start
from darkmetrics.exceptions import InputError
from darkmetrics.missing import Delayed
from darkmetrics.missingness import delayed

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")


def late_rows(seed: int, n: int = 3000) -> tuple[Any, ...]:
    """Rows of 84 days; positives take three times as long as negatives. Labels, scores, ages, delays, all labels."""
    rng = np.random.default_rng(seed)
    age = np.floor(84.0 * rng.random(n))
    y = rng.random(n) < 0.2
    score = 1.0 / (1.0 + np.exp(np.log(4.0) + 1.28 - 1.6 * (rng.normal(size=n) + 1.6 * y)))
    delay = np.floor(rng.gamma(1.5, np.where(y, 25.0, 8.0) / 1.5))
    known = delay <= age
    return np.where(known, y, np.nan), score, age, np.where(known, delay, np.nan), y.astype(float)


def in_truth(y: Any, score: Any) -> dict[str, float]:
    decided = score >= 0.3
    functions = (precision_score, recall_score, accuracy_score, f1_score)
    found = {name: float(function(y, decided)) for name, function in zip(METRICS, functions, strict=False)}
    return found | {"roc_auc": float(roc_auc_score(y, score))}


def held(told: dict[str, Any], labels: Any, score: Any, truth: dict[str, float]) -> list[bool]:
    result = dm.evaluate(labels, score, threshold=0.3, metrics=METRICS, **told)
    return [
        low <= truth[name] <= high
        for name, distribution in result.items()
        for low, high in [distribution.interval(0.9)]
    ]


# Of 60 intervals that hold the truth nine times in ten fewer than 45 do so once in thousands of tries; those of a set
# are not independent, and if each set counted only twice it would be once in fifty.
N_SETS = 12


@pytest.mark.parametrize("timed", [False, True], ids=["ages", "ages and arrivals"])
def test_ages_alone_tell_which_labels_are_still_to_come(timed: bool) -> None:
    found = []
    for seed in range(N_SETS):
        labels, score, age, delay, y = late_rows(seed)
        told = (
            {"missingness": dm.missing.Delayed(age=age, delay=delay)}
            if timed
            else {"missingness": dm.missing.Delayed(age=age)}
        )
        found += held(told, labels, score, in_truth(y, score))
    assert np.mean(found) >= 0.75


@pytest.mark.filterwarnings("ignore::darkmetrics.exceptions.AssumptionWarning")  # it is noticed, too
def test_told_otherwise_the_same_rows_are_answered_wrongly() -> None:
    """The negative controls of the test above: without ages, or with old rows taken for young ones."""
    without, reversed_ = [], []
    for seed in range(N_SETS // 2):
        labels, score, age, _, y = late_rows(seed)
        truth = in_truth(y, score)
        without += held({"missingness": "by_score"}, labels, score, truth)
        reversed_ += held({"missingness": dm.missing.Delayed(age=83.0 - age)}, labels, score, truth)
    assert np.mean(without) < 0.5
    assert np.mean(reversed_) < 0.5  # intervals are wider where the model does not fit


def test_ages_in_reverse_order_are_warned_of_and_widen_the_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model does not fit old rows with fewer labels than young ones."""
    labels, score, age, _, _ = late_rows(0)
    asked: dict[str, Any] = {"metrics": "precision"}
    data = dm.EvaluationSet(labels, score, threshold=0.3, missingness=dm.missing.Delayed(age=83.0 - age))
    monkeypatch.setattr(delayed, "is_misfit", lambda counts: False)
    narrow = Delayed().posterior(data).probability
    monkeypatch.undo()
    wide = Delayed().posterior(data).probability
    assert wide.std(axis=0).mean() > 1.2 * narrow.std(axis=0).mean()
    with pytest.warns(dm.AssumptionWarning, match="have no label where"):
        dm.evaluate(data, missingness=dm.missing.Delayed(), **asked)


def test_ages_are_far_narrower_than_nothing_told() -> None:
    labels, score, age, delay, _ = late_rows(1)
    told: tuple[dict[str, Any], ...] = (
        {"missingness": "unknown"},
        {"missingness": dm.missing.Delayed(age=age)},
        {"missingness": dm.missing.Delayed(age=age, delay=delay)},
    )
    widths = [
        np.ptp(dm.evaluate(labels, score, threshold=0.3, metrics="precision", **how)["precision"].interval(0.9))
        for how in told
    ]
    assert widths[2] < widths[1] < 0.35 * widths[0]


def test_ages_of_other_rows_say_what_scores_say_alone() -> None:
    """The negative control: where age tells nothing, every label that is missing is one that never comes."""
    means = []
    for seed in (1, 3, 5):
        labels, score, age, _, _ = late_rows(seed)
        told: tuple[dict[str, Any], ...] = (
            {"missingness": dm.missing.Delayed(age=np.random.default_rng(seed).permutation(age), reviewed="all")},
            {"missingness": "by_label"},
            {"missingness": dm.missing.Delayed(age=age)},
        )
        distributions = (
            dm.evaluate(labels, score, threshold=0.3, metrics="precision", **how)["precision"] for how in told
        )
        means.append([distribution.mean() for distribution in distributions])
    other, by_label, ages = np.array(means).T
    assert np.abs(other - by_label).mean() < 0.005
    assert np.abs(ages - by_label).mean() > 0.005


@pytest.mark.guarantees
@pytest.mark.parametrize("timed", [False, True])
def test_labels_that_come_on_one_day_are_seen_to(timed: bool) -> None:
    """Every good customer is declared good on day 45, in the middle of a bin of the grid; nobody says so."""
    held = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        score, age = rng.random(3000), np.floor(90.0 * rng.random(3000))
        y = rng.random(3000) < 0.6 * score
        delay = np.where(y, np.floor(rng.exponential(15.0, 3000)), 45.0)
        y = y & (delay < 45.0)
        delay = np.where(y, delay, 45.0)
        labels = np.where(delay <= age, y, np.nan)
        known = np.where(delay <= age, delay, np.nan) if timed else None
        distribution = dm.evaluate(
            labels, score, missingness=dm.missing.Delayed(age=age, delay=known), threshold=0.3, metrics="precision"
        )["precision"]
        low, high = distribution.interval(0.9)
        held.append(low <= y[score >= 0.3].mean() <= high)
    assert np.mean(held) >= 0.6  # 3 of 5; fewer have a chance of one percent at 90%


def test_where_only_positives_arrive_the_maturity_declares_the_others() -> None:
    labels, score, age, delay, _ = late_rows(2)
    positives = np.where(labels == 1.0, 1.0, np.nan)
    data = dm.EvaluationSet(positives, score, missingness=dm.missing.Delayed(age=age, maturity=60))
    assert int(data.cells.negatives.sum()) == int((np.isnan(positives) & (age >= 60)).sum())
    assert data.n_missing == int((np.isnan(positives) & (age < 60)).sum())
    # 0 in a column of labels often means "not so far".
    zeros = dm.EvaluationSet(np.nan_to_num(positives), score, missingness=dm.missing.Delayed(age=age, maturity=60))
    assert (zeros.n_labeled, zeros.n_missing) == (data.n_labeled, data.n_missing)
    # With a time of arrival a negative is known before.
    early = dm.EvaluationSet(
        labels, score, missingness=dm.missing.Delayed(age=age, delay=np.minimum(delay, 59), maturity=60)
    )
    assert early.n_missing == int((np.isnan(labels) & (age < 60)).sum())


def test_zeros_that_mean_not_so_far_are_asked_about(recwarn: pytest.WarningsRecorder) -> None:
    labels, score, age, _, y = late_rows(2)
    with pytest.warns(dm.CalibrationWarning, match="pass maturity=, the age from which 0 is final"):
        dm.evaluate((labels == 1.0).astype(float), score, missingness=dm.missing.Delayed(age=age), metrics="recall")
    dm.evaluate(y, score, missingness=dm.missing.Delayed(age=age), metrics="recall")  # all labels are final
    dm.evaluate(
        (labels == 1.0).astype(float), score, missingness=dm.missing.Delayed(age=age, maturity=60), metrics="recall"
    )
    assert not [one for one in recwarn if "not so far" in str(one.message)]


def test_weekly_files_of_labels_are_taken_by_age() -> None:
    """Delays of rows that were scored on other weekdays say nothing about those of today's file."""
    fits = []
    for batches in (False, True):
        rng = np.random.default_rng(3)
        _, score, age, _, y = late_rows(3)
        delay = np.floor(rng.gamma(1.5, np.where(y == 1.0, 25.0, 8.0) / 1.5))
        if batches:
            delay = age % 7 + 7 * np.ceil(np.maximum(delay - age % 7, 0.0) / 7)
        known = delay <= age
        data = dm.EvaluationSet(
            np.where(known, y, np.nan),
            score,
            missingness=dm.missing.Delayed(age=age, delay=np.where(known, delay, np.nan)),
        )
        fits.append(Delayed().fit(data).data.counts)
    assert fits[0].full.sum() > 0.0
    assert fits[0].untimed.sum() == 0.0
    assert fits[1].full.sum() == 0.0
    assert fits[1].untimed.sum() > 0.0


@pytest.mark.parametrize(
    "as_given",
    [
        lambda days: [dt.timedelta(days=float(day)) for day in days],
        lambda days: np.array(days).astype("timedelta64[D]"),
        lambda days: pd.Series(pd.to_timedelta(days, unit="D")),
        lambda days: pl.Series([dt.timedelta(days=float(day)) for day in days]),
    ],
    ids=["list", "numpy", "pandas", "polars"],
)
def test_timedeltas_are_days(as_given: Any) -> None:
    days = [0.0, 1.0, 30.0, 400.0]
    data = dm.EvaluationSet(
        [1, 0, None, None], [0.9, 0.8, 0.7, 0.6], missingness=dm.missing.Delayed(age=as_given(days))
    )
    ages = data.cells.ages
    assert ages is not None
    assert ages.days
    assert ages.whole
    assert ages.age[::-1].tolist() == age_bin(np.array(days)).tolist()


def test_age_bins_keep_whole_days_apart_up_to_64_and_are_3_percent_wide() -> None:
    days = np.append(np.arange(65.0), [65.0, 66.0, 127.0, 128.0, 131.0, 132.0])
    expected = np.append(np.arange(65.0), [64.0, 66.0, 126.0, 128.0, 128.0, 132.0])
    assert bin_start(age_bin(days)).tolist() == expected.tolist()
    ages = 10.0 ** np.linspace(-15.0, 15.0, 1000)
    low, high = bin_start(age_bin(ages)), bin_start(age_bin(ages) + 1)
    assert np.all((low <= ages) & (ages < high))
    assert np.all(high / low <= 1.0 + 1.0 / 32.0)


def test_sets_of_days_merge_into_the_set_of_all_rows(tmp_path: Any) -> None:
    labels, score, age, delay, _ = late_rows(4, 400)
    whole = dm.EvaluationSet(labels, score, missingness=dm.missing.Delayed(age=age, delay=delay))
    for day in range(3):
        own = age % 3 == day
        part = dm.EvaluationSet(labels[own], score[own], missingness=dm.missing.Delayed(age=age[own], delay=delay[own]))
        part.to_parquet(tmp_path / f"{day}.parquet")
    merged = dm.EvaluationSet.from_parquet(f"{tmp_path}/*.parquet")
    for name, column in whole.cells.arrays().items():
        np.testing.assert_array_equal(column, getattr(merged.cells, name))
    first, second = (dm.evaluate(data, metrics="recall")["recall"].mean() for data in (whole, merged))
    assert first == second


ROWS: dict[str, Any] = {"y_true": [1, 0, 1, None], "y_score": [0.9, 0.2, 0.7, 0.6]}
AGE = [5.0, 5.0, 5.0, 2.0]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"missingness": dm.missing.Delayed(age=[5, 5, -1, 2])},
            "age: -1 at row 2. Ages are the time since scoring, and not negative.",
        ),
        (
            {"missingness": dm.missing.Delayed(age=[5, 5, None, 2])},
            "age: 1 of 4 values is NaN (first at row 2). Every row needs an age",
        ),
        (
            {"missingness": dm.missing.Delayed(age=[5, 5, 1e300, 2])},
            "age: 1e+300 at row 2. Ages are below 2e+19; choose a larger unit.",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE), "y_true": [1, 1, 1, None]},
            "y_true: all 3 labels are positive, so ages",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE), "y_true": [0, 0, 0, None]},
            "y_true: all 3 labels are negative, so ages",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE), "y_true": [None] * 4},
            "y_true: no labeled row, so ages",
        ),
        ({"missingness": dm.missing.Delayed(age=AGE[:2])}, "age: 2 values, but y_score has 4"),
        ({"missingness": dm.missing.Delayed(delay=[1, 1, 1, None])}, "delay: no ages. Pass age="),
        ({"missingness": dm.missing.Delayed(maturity=3)}, "maturity: no ages. Pass age="),
        (
            {"missingness": dm.missing.Delayed(age=AGE, delay=[1, -2, 1, None])},
            "delay: -2 at row 1. A label cannot come before its row is scored.",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE, delay=[1, 9, 1, None])},
            "delay: 9 at row 1. It is longer than the age of the row",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE, delay=[1, 1, None, None])},
            "delay: missing at row 2, which has a label",
        ),
        ({"missingness": dm.missing.Delayed(age=AGE, delay=[1, 1, 1, 1])}, "delay: 1 at row 3. The row has no label"),
        (
            {"missingness": dm.missing.Delayed(age=AGE, delay=[4, 1, 1, None], maturity=3)},
            "maturity: 3, but 1 of 3 labels took longer, up to 4 (first at row 0).",
        ),
        (
            {"missingness": dm.missing.Delayed(age=[True, False, True, True])},
            "age: has True and False. Pass numbers or timedeltas.",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE, delay=[1, 1, True, None])},
            "delay: has True and False. Pass numbers or timedeltas.",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE, maturity=True)},
            "maturity: True, but the rows are no EvaluationSet.",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE, maturity=0)},
            "maturity: 0. It must be a positive number or a timedelta.",
        ),
        (
            {"missingness": dm.missing.Delayed(age=AGE, maturity=dt.timedelta(days=3))},
            "maturity: a timedelta, but ages are numbers.",
        ),
        ({"missingness": "delayed"}, "age: none with these rows (Delayed)."),
        ({"missingness": dm.missing.Delayed(age=True)}, "age: True, but the rows are no EvaluationSet."),
    ],
)
def test_what_cannot_be_is_refused_by_name(given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as error:
        dm.evaluate(**(ROWS | given))
    assert message in str(error.value)


def test_a_set_with_ages_is_late_unless_another_reason_is_stated() -> None:
    labels, score, age, _, _ = late_rows(5, 600)
    data = dm.EvaluationSet(labels, score, missingness=dm.missing.Delayed(age=age))
    assert dm.evaluate(data, metrics="recall").stated == "delayed"
    assert dm.evaluate(data, metrics="recall", missingness=dm.missing.Delayed()).stated == "delayed"
    assert dm.evaluate(data, metrics="recall", missingness="delayed").stated == "delayed"
    assert dm.evaluate(data, metrics="recall", missingness="by_score").stated == "by_score"


@pytest.mark.parametrize("unit", [1e-6, 1.0 / 8766.0, 1.0 / 24.0, 24.0, 86_400e9])
def test_unit_of_ages_does_not_matter(unit: float) -> None:
    labels, score, age, delay, _ = late_rows(5)
    changed, expected = (
        dm.evaluate(
            labels,
            score,
            threshold=0.3,
            missingness=dm.missing.Delayed(age=age * by, delay=delay * by),
            metrics="precision",
        )["precision"]
        for by in (unit, 1.0)
    )
    # Bins of another unit end up to 3% earlier or later.
    width = np.ptp(expected.interval(0.9))
    np.testing.assert_allclose(changed.interval(0.9), expected.interval(0.9), atol=0.1 * width)


def test_unit_of_ages_that_is_a_power_of_two_changes_nothing() -> None:
    labels, score, age, delay, _ = late_rows(5, 800)
    changed, expected = (
        dm.evaluate(
            labels,
            score,
            threshold=0.3,
            missingness=dm.missing.Delayed(age=age * by, delay=delay * by),
            metrics="precision",
        )["precision"]
        for by in (1024.0, 1.0)
    )
    assert changed.interval(0.9) == expected.interval(0.9)


def test_ages_too_small_for_every_unit_are_warned_of() -> None:
    labels, score, age, _, _ = late_rows(5, 600)
    with pytest.warns(dm.CalibrationWarning, match="rows have too few different ages"):
        dm.evaluate(labels, score, missingness=dm.missing.Delayed(age=age * 1e-300), metrics="precision")


def test_timedeltas_of_seconds_are_evaluated() -> None:
    labels, score, age, _, _ = late_rows(5, 600)
    result = dm.evaluate(
        labels, score, missingness=dm.missing.Delayed(age=age.astype("timedelta64[s]")), metrics="precision"
    )
    assert result.arrival is not None
    assert result.arrival.tells


def test_a_maturity_that_no_row_has_reached_is_named_as_the_cause() -> None:
    labels, score, age, _, _ = late_rows(5, 600)
    with pytest.raises(InputError, match=r"If you did, no row is that old \(all are below 84\): pass older rows"):
        dm.evaluate(labels == 1, score, missingness=dm.missing.Delayed(age=age, maturity=90))


def test_a_share_of_rows_that_count_is_not_said_of_those_that_do_not() -> None:
    labels, score, age, delay, _ = late_rows(5)
    weight = (age > 40).astype(float)
    gone = np.isnan(labels)
    text = str(
        dm.evaluate(
            labels, score, missingness=dm.missing.Delayed(age=age, delay=delay), sample_weight=weight, metrics="recall"
        )
    )
    assert f"Of the {int((gone & (age > 40)).sum()):,} missing rows of a weight above 0 " in text
    assert "of the missing rows of a weight above 0 are positive (90%" in text
    assert f"Of the {int(gone.sum()):,} missing rows about " in text  # how many labels are to come, whatever they weigh
    plain = str(
        dm.evaluate(
            labels,
            score,
            missingness=dm.missing.Delayed(age=age, delay=delay),
            sample_weight=weight + 1.0,
            metrics="recall",
        )
    )
    assert "weight above 0" not in plain
