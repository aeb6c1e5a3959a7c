"""Columns of dates on every engine: the cells are those of ages and delays that Python's own dates give."""

import datetime as dt
import itertools
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError

NAMES: dict[str, Any] = {"y_true": "y", "y_score": "p"}
TIMES: dict[str, Any] = {"scored_at": "scored", "labeled_at": "came"}
UNTIMED: dict[str, Any] = {"scored_at": "scored"}
DAY = dt.timedelta(days=1)
MIDNIGHT = dt.time()


def rows(n=400, *, seed=0, kind="dates", days=300):
    """Labels, scores, and when rows were scored and labeled; frauds are labeled later than others."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.4
    start = dt.datetime(2026, 1, 1)
    scored: list[Any] = [start + dt.timedelta(microseconds=int(rng.integers(days * 86_400_000_000))) for _ in range(n)]
    took = np.where(truth, rng.exponential(50.0, n), rng.exponential(8.0, n))
    came: list[Any] = [time + dt.timedelta(seconds=int(86_400 * took[i])) for i, time in enumerate(scored)]
    arrives = rng.random(n) < 0.9
    if kind in ("dates", "scored has dates"):
        scored = [time.date() for time in scored]
    if kind in ("dates", "came has dates"):
        came = [time.date() for time in came]
    if kind == "midnight":
        scored, came = ([dt.datetime.combine(time, MIDNIGHT) for time in times] for times in (scored, came))
    if kind == "zones":
        scored = [time.replace(tzinfo=dt.UTC).astimezone(ZoneInfo("Europe/Berlin")) for time in scored]
        came = [time.replace(tzinfo=dt.UTC).astimezone(ZoneInfo("America/New_York")) for time in came]
    if kind == "midnight of a zone":  # the nights of 29 March and 25 October have 23 and 25 hours
        berlin = ZoneInfo("Europe/Berlin")
        scored, came = ([dt.datetime.combine(time, MIDNIGHT, berlin) for time in times] for times in (scored, came))
    return {
        "y": [int(y) if there else None for y, there in zip(truth, arrives, strict=True)],
        "p": np.round(rng.random(n), 1).tolist(),
        "scored": scored,
        "came": [time if there else None for time, there in zip(came, arrives, strict=True)],
    }


def by_arrays(table, as_of, *, timed=True, whole_days=True, zone=None):
    """The set of the rows and labels that there were, with ages and delays by Python's own arithmetic."""
    day = not isinstance(as_of, dt.datetime)
    end = dt.datetime.combine(as_of + DAY, MIDNIGHT, zone) if day else as_of

    def seen(time):
        time = time if isinstance(time, dt.datetime) else dt.datetime.combine(time, MIDNIGHT)
        return time < end if day else time <= end

    def plain(time):
        return dt.datetime.combine(time, MIDNIGHT) if whole_days else time.astimezone(dt.UTC) if time.tzinfo else time

    now = dt.datetime.combine(as_of, MIDNIGHT) if whole_days else plain(end)
    labels, scores, ages, delays = [], [], [], []
    for y, p, scored, came in zip(table["y"], table["p"], table["scored"], table["came"], strict=True):
        if not seen(scored):
            continue
        known = not timed or (came is not None and seen(came))
        labels.append(y if known else None)
        scores.append(p)
        ages.append(np.timedelta64(now - plain(scored), "us"))
        late = timed and known and came is not None
        delays.append(np.timedelta64(plain(came) - plain(scored) if late else "NaT", "us"))
    delay = np.array(delays) if timed else None
    return EvaluationSet(
        [np.nan if y is None else y for y in labels],
        scores,
        missingness=dm.missing.Delayed(age=np.array(ages), delay=delay),
    )


def same(found, expected):
    for name, array in expected.cells.arrays().items():
        np.testing.assert_array_equal(getattr(found.cells, name), array, err_msg=name)


BERLIN, NEW_YORK = (pa.timestamp("us", zone) for zone in ("Europe/Berlin", "America/New_York"))
ZONES = {
    "zones": {"scored": BERLIN, "came": NEW_YORK},
    "midnight of a zone": {"scored": BERLIN, "came": BERLIN},
}


def arrow(table, kind):
    types = ZONES.get(kind, {})
    return pa.table({name: pa.array(values, types.get(name)) for name, values in table.items()})


@cache
def rows_and_cells(kind, as_of, whole_days, zone):
    """The same for every engine, and slow: a table, and the set that it should become."""
    table = rows(kind=kind)
    return arrow(table, kind), by_arrays(table, as_of, whole_days=whole_days, zone=zone)


@pytest.mark.parametrize("as_of", [dt.date(2026, 11, 20), dt.date(2026, 6, 15)])
@pytest.mark.parametrize("kind", ["dates", "midnight", "times", "scored has dates", "came has dates", *ZONES])
def test_cells_are_those_of_ages_and_delays(engine, kind, as_of):
    # Where an engine has one clock for all columns, a day ends by that one, which is UTC here.
    own_clock = engine.name not in ("duckdb", "ibis", "spark")
    zone = None if kind not in ZONES else ZoneInfo("Europe/Berlin") if own_clock else dt.UTC
    whole_days = own_clock if kind == "midnight of a zone" else kind not in ("times", "zones")
    table, expected = rows_and_cells(kind, as_of, whole_days, zone)
    same(EvaluationSet(data=engine(table), missingness=dm.missing.Delayed(as_of=as_of, **TIMES), **NAMES), expected)
    assert expected.n_missing > 20


def test_a_moment_counts_what_came_up_to_it(engine):
    table = rows(kind="times")
    table["scored"][:2] = [dt.datetime(2026, 6, 15, 14, 30), dt.datetime(2026, 6, 15, 14, 30, 0, 1)]
    table["came"][:2], table["y"][:2] = [None, None], [None, None]
    as_of = dt.datetime(2026, 6, 15, 14, 30)
    found = EvaluationSet(data=engine(table), missingness=dm.missing.Delayed(as_of=as_of.isoformat(), **TIMES), **NAMES)
    same(found, by_arrays(table, as_of, whole_days=False))


def test_every_edge_of_the_grid_is_found(engine):
    """An age at an edge, a microsecond below it and one above it, from a minute to years."""
    end = dt.datetime(2026, 11, 20, 12)
    edges = [2.0**octave * (1.0 + quarter / 4.0) for octave in range(-10, 12) for quarter in range(4)]
    ages = [dt.timedelta(days=edge) + step * dt.timedelta.resolution for edge in edges for step in (-1, 0, 1)]
    n = len(ages)
    # An hour of another row keeps the ages from being whole days.
    table = {"y": [0, 1] * (n // 2), "p": [0.5] * n, "scored": [end - age for age in ages], "came": [end] * n}
    found = EvaluationSet(data=engine(table), missingness=dm.missing.Delayed(as_of=end, **TIMES), **NAMES)
    same(found, by_arrays(table, end, whole_days=False))
    # Whole days of a year, which some engines look up, and of four decades, which are too many for that.
    for step in (1, 60):
        scored = [(end - dt.timedelta(days=step * k)).date() for k in range(n)]
        days = {**table, "scored": scored, "came": [end.date()] * n}
        found = EvaluationSet(data=engine(days), missingness=dm.missing.Delayed(as_of=end, **TIMES), **NAMES)
        same(found, by_arrays(days, end.date()))


def test_ages_alone(engine):
    table = rows()
    as_of = max(table["scored"])
    same(
        EvaluationSet(data=engine(table), missingness=dm.missing.Delayed(as_of=as_of.isoformat(), **UNTIMED), **NAMES),
        by_arrays(table, as_of, timed=False),
    )


def test_without_their_times_labels_after_a_past_day_stay_and_a_warning_says_so(engine):
    table = rows()
    as_of = dt.date(2026, 9, 1)
    newest = max(table["scored"]).isoformat()
    said = (
        rf"^as_of: 2026-09-01, but the newest row was scored on {newest} .* Labels that arrived after it stay, so .* "
        r"Pass labeled_at= to hide them"
    )
    with pytest.warns(dm.MissingnessWarning, match=said):
        found = EvaluationSet(
            data=engine(table), missingness=dm.missing.Delayed(as_of=as_of.isoformat(), **UNTIMED), **NAMES
        )
    same(found, by_arrays(table, as_of, timed=False))


@pytest.mark.parametrize("maturity", [400, 250.0, dt.timedelta(days=500)])
def test_only_positives_arrive(engine, maturity):
    """Chargebacks: 0 stands for "none so far", with no time; from the maturity on it is known."""
    table = rows(days=600)
    table["y"] = [int(y == 1) for y in table["y"]]
    table["came"] = [came if y else None for y, came in zip(table["y"], table["came"], strict=True)]
    as_of = dt.date(2027, 8, 1)
    longest = max(came - scored for scored, came in zip(table["scored"], table["came"], strict=True) if came)
    for one in (maturity, longest):
        limit = one if isinstance(one, dt.timedelta) else dt.timedelta(days=one)
        if limit < longest:
            with pytest.raises(
                InputError, match=r"^maturity: 250 days, but \d+ of [\d,]+ labels took longer, up to \d+ days"
            ):
                EvaluationSet(
                    data=engine(table), missingness=dm.missing.Delayed(maturity=one, as_of=as_of, **TIMES), **NAMES
                )
            continue
        found = EvaluationSet(
            data=engine(table), missingness=dm.missing.Delayed(maturity=one, as_of=as_of, **TIMES), **NAMES
        )
        # What has come by then, in arrays: 0 where nothing has.
        arrays = {**table, "y": [1 if came and came <= as_of else 0 for came in table["came"]]}
        expected = by_arrays_matured(arrays, as_of, limit)
        same(found, expected)
        assert 0 < expected.n_missing < expected.n_rows


def by_arrays_matured(table, as_of, limit):
    there = [scored <= as_of for scored in table["scored"]]
    kept = {name: list(itertools.compress(values, there)) for name, values in table.items()}
    age = np.array([np.timedelta64(as_of - scored, "D") for scored in kept["scored"]]).astype("timedelta64[us]")
    late = [
        np.timedelta64(came - scored if came and came <= as_of else "NaT", "D")
        for scored, came in zip(kept["scored"], kept["came"], strict=True)
    ]
    delay = np.array(late).astype("timedelta64[us]")
    return EvaluationSet(kept["y"], kept["p"], missingness=dm.missing.Delayed(age=age, delay=delay, maturity=limit))


def test_in_bins_counts_are_those_of_exact_scores(engine):
    table = rows(800, kind="times")
    rng = np.random.default_rng(1)
    table["p"] = rng.random(800).tolist()
    settings: dict[str, Any] = {**NAMES, "missingness": dm.missing.Delayed(as_of="2026-10-01", **TIMES)}
    coarse = EvaluationSet(data=engine(table), score_bins=16, **settings)
    exact = EvaluationSet(data=engine(table), score_bins="exact", **settings).binned(16)
    for name in ("age", "positives", "negatives", "missing", "decision", "low", "high"):
        np.testing.assert_array_equal(getattr(coarse.cells, name), getattr(exact.cells, name))


def test_groups_have_the_cells_of_their_own_rows(engine):
    table = rows(600)
    as_of = dt.date(2026, 9, 1)
    result = dm.evaluate_by(
        data=engine(table),
        time="scored",
        period="quarter",
        missingness=dm.missing.Delayed(as_of=as_of, **TIMES),
        metrics="precision",
        **NAMES,
    )
    for (quarter,), group in result.items():
        own = [(one.month - 1) // 3 == (quarter.month - 1) // 3 for one in table["scored"]]
        part = {name: list(itertools.compress(values, own)) for name, values in table.items()}
        same(group.data, by_arrays(part, as_of))
    assert len(result) == 3


U = dt.UTC
D, T = dt.date, dt.datetime
GOOD: dict[str, Any] = {
    "y": [1, 0, None, 0],
    "p": [0.9, 0.2, 0.7, 0.4],
    "scored": [D(2026, 1, 1), D(2026, 1, 5), D(2026, 2, 1), D(2026, 1, 9)],
    "came": [D(2026, 1, 20), D(2026, 1, 6), None, D(2026, 2, 2)],
}
ZONED = [T(2026, 1, 1, 3, tzinfo=U), T(2026, 1, 5, 4, tzinfo=U), T(2026, 2, 1, 5, tzinfo=U), T(2026, 1, 9, 6, tzinfo=U)]
NAIVE = [time.replace(tzinfo=None) for time in ZONED]
SETTINGS: dict[str, Any] = {**TIMES, "as_of": "2026-03-01"}
BAD: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "no as_of": (
        {},
        {"as_of": None},
        r"^as_of: missing\. .* The newest date in it is 2026-02-02: as_of='2026-02-02'\.$",
    ),
    "as_of before all rows": (
        {},
        {"as_of": "2025-12-31"},
        r"^as_of: 2025-12-31, but the oldest row was scored on 2026-01-01 \(scored_at column 'scored'\)\.",
    ),
    "as_of is the end of time": (
        {},
        {"as_of": "9999-12-31"},
        r"^as_of: 9999-12-31\. It must lie in the years 1686 to 2254",
    ),
    "as_of is no date": ({}, {"as_of": "yesterday"}, r"^as_of: cannot read 'yesterday' as a date\."),
    "label before scoring": (
        {"came": [D(2025, 12, 31), D(2026, 1, 6), None, D(2026, 2, 2)]},
        {},
        r"^labeled_at column 'came': 1 label came before scoring \(such as 2025-12-31 for a row with 2026-01-01 in",
    ),
    "a label without a time": (
        {"came": [D(2026, 1, 20), None, None, D(2026, 2, 2)]},
        {},
        r"^labeled_at column 'came': 1 label has no date \(such as that of a row with 2026-01-05 in",
    ),
    "a positive without a time": (
        {"came": [None, D(2026, 1, 6), None, None]},
        {"maturity": 90},
        r"^labeled_at column 'came': 1 positive label has no date \(such as that of a row with 2026-01-01 in",
    ),
    "a time without a label": (
        {"y": [1, None, None, 0]},
        {},
        r"^labeled_at column 'came': 1 row has a date but no label \(such as 2026-01-06\)\.",
    ),
    "no time of scoring": (
        {"scored": [None, *GOOD["scored"][1:]]},
        {},
        r"^scored_at column 'scored': 1 of 4 values is missing \(null\)\.",
    ),
    "maturity below a delay": (
        {},
        {"maturity": 20},
        r"^maturity: 20 days, but \d+ of \d+ labels took longer, up to 24 days \(.*\)\. .* Give maturity=24 or",
    ),
    "numbers": (
        {"scored": [1, 2, 3, 4]},
        {},
        r"^scored_at column 'scored': has type \w+\. Ages need dates or datetimes",
    ),
    "text": ({"scored": ["2026-01-01"] * 4}, {}, r"^scored_at column 'scored': has text, and ages need dates\."),
    "zones mixed": (
        {"scored": ZONED},
        {},
        r"^labeled_at column 'came': has no time zone, but scored_at column 'scored' has the time zone UTC\.",
    ),
    "as_of without a zone": (
        {"scored": ZONED, "came": [None] * 4, "y": [None] * 4},
        {"as_of": "2026-03-01T12:00"},
        r"^as_of: 2026-03-01T12:00:00 has no time zone, but the columns have the time zone UTC\. Give it a time zone",
    ),
    "as_of with a zone": (
        {"scored": NAIVE, "came": [None] * 4, "y": [None] * 4},
        {"as_of": "2026-03-01T12:00+00:00"},
        r"^as_of: 2026-03-01T12:00:00\+00:00 has the time zone UTC, but the columns have no time zone\. Give it none",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_what_cannot_be_is_refused_in_one_clear_sentence(engine, kind):
    changes, settings, message = BAD[kind]
    frame = engine({**GOOD, **changes})
    if engine.name == "spark" and "zone" in kind:
        # Its times have the zone of the session, so that dates and times without a zone are meant by its clock.
        assert EvaluationSet(data=frame, missingness=dm.missing.Delayed(**SETTINGS | settings), **NAMES).n_rows == 4
        return
    with pytest.raises(InputError, match=message):
        EvaluationSet(data=frame, missingness=dm.missing.Delayed(**SETTINGS | settings), **NAMES)


@pytest.mark.heavy_engines
def test_times_of_spark_are_by_the_clock_of_its_session(spark):
    """Dates beside times, and an `as_of` without a zone: days and hours of New York, four or five behind UTC."""
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.conf.set(zone, "America/New_York")
    try:
        times = spark.sql(
            "SELECT 1 AS y, 0.7 AS p, TIMESTAMP'2026-03-02 05:00:00' AS scored, TIMESTAMP'2026-03-02 06:00:00' AS came "
            "UNION ALL SELECT NULL, 0.2, TIMESTAMP'2026-03-01 23:30:00', NULL"
        )
        found = EvaluationSet(data=times, missingness=dm.missing.Delayed(as_of="2026-03-02T08:00", **TIMES), **NAMES)
        assert (found.n_rows, found.n_missing) == (2, 1)  # at 08:00 UTC one of the two was not there yet
        dates = spark.sql(
            "SELECT 1 AS y, 0.7 AS p, DATE'2026-03-01' AS scored, TIMESTAMP'2026-03-02 22:00:00' AS came "
            "UNION ALL SELECT 0, 0.2, DATE'2026-03-01', TIMESTAMP'2026-03-01 23:00:00'"
        )
        found = EvaluationSet(data=dates, missingness=dm.missing.Delayed(as_of="2026-03-05", **TIMES), **NAMES)
        days = np.array([0, 1]).astype("timedelta64[D]")
        same(
            found,
            EvaluationSet(
                [0, 1], [0.2, 0.7], missingness=dm.missing.Delayed(age=np.full(2, np.timedelta64(4, "D")), delay=days)
            ),
        )
    finally:
        spark.conf.set(zone, before)


def test_nothing_is_wrong_with_what_was_changed(engine):
    assert (
        EvaluationSet(data=engine(GOOD), missingness=dm.missing.Delayed(**SETTINGS), **NAMES).counts()["labeled"] == 3
    )


def test_no_label_has_come_at_all(engine):
    table = {**GOOD, "y": [None] * 4, "came": [None] * 4}
    found = EvaluationSet(data=engine(table), missingness=dm.missing.Delayed(**SETTINGS), **NAMES)
    assert (found.n_rows, found.n_missing) == (4, 4)
