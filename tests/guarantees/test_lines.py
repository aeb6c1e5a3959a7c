"""What makes `make guarantees` red, and what does not."""

from dataclasses import replace

import pytest

from guarantees.coverage import Measurement
from guarantees.known_missed import KNOWN_MISSED, Missed
from guarantees.lines import Bar, Line, alarms, news, share
from guarantees.promises import COVERAGE, PROMISES
from guarantees.results import read, write
from guarantees.scenarios import METRICS, Quality

# 84.1% of 320 intervals, where 85% are promised: a standard error of 2 points.
LINE = Line("auto covers", "positive-unlabeled", "auto", "recall", "coverage", 320, 0.841, COVERAGE, share(0.841, 320))
LISTED = {LINE.key: Missed(0.841, "measured in this test")}


def test_a_line_that_meets_its_bar_is_no_alarm():
    assert not list(alarms([replace(LINE, value=0.85), replace(LINE, value=0.97)], {}))


@pytest.mark.parametrize("value", [0.8499, 0.9701, float("nan")])
def test_a_missed_line_that_is_not_listed_is_an_alarm(value):
    (alarm,) = alarms([replace(LINE, value=value)], {})
    assert "recall" in alarm
    assert "not in known_missed.py" in alarm


def test_a_missed_line_that_is_listed_is_no_alarm():
    assert not list(alarms([LINE, replace(LINE, value=0.81)], LISTED))


def test_a_listed_line_that_gets_worse_beyond_noise_is_an_alarm():
    (alarm,) = alarms([replace(LINE, value=0.79)], LISTED)
    assert "worse than 0.841" in alarm


def test_a_listed_line_that_is_now_missed_on_the_other_side_is_an_alarm():
    (alarm,) = alarms([replace(LINE, value=0.98)], LISTED)
    assert "another side" in alarm


def test_a_listed_line_that_is_met_again_is_told_and_no_alarm():
    line = replace(LINE, value=0.86)
    assert not list(alarms([line], LISTED))
    (told,) = news([line], LISTED)
    assert "Take it off the list" in told
    assert not list(news([LINE], LISTED))


def test_a_control_that_passes_is_an_alarm_even_if_listed():
    line = replace(LINE, bar=Bar(below=0.2), control=True)
    assert len(list(alarms([line], LISTED))) == 1


def right(self: Measurement) -> dict[str, Quality]:
    """What a right model would have shown."""
    return {metric: Quality(0.9, 0.05, 0.02, 0.04, 0.01, self.n) for metric in METRICS}


@pytest.mark.parametrize(
    "promise",
    [one for one in PROMISES if one.claim.startswith("control") and one.pieces[0].family.name == "coverage"],
    ids=lambda promise: promise.name,
)
def test_a_wrong_way_that_covered_would_make_its_control_red(promise, monkeypatch):
    monkeypatch.setattr(Measurement, "quality", right)
    assert list(alarms(promise.lines()))


def test_a_right_model_would_keep_every_promise_about_coverage(monkeypatch):
    monkeypatch.setattr(Measurement, "quality", right)
    promises = [one for one in PROMISES if one.pieces[0].family.name == "coverage" and "control" not in one.claim]
    lines = [line for promise in promises for line in promise.lines()]
    assert len(lines) > 400
    assert not list(alarms(lines, {}))


def test_listed_lines_are_lines_of_promises_and_no_controls():
    claims = {promise.claim for promise in PROMISES}
    for promise, _, _, _ in KNOWN_MISSED:
        assert promise in claims
        assert not promise.startswith("control")


def test_lines_come_back_from_the_results_file_as_they_were(tmp_path):
    lines = [
        replace(LINE, noise=0.0204),
        replace(LINE, measure="width", value=1 / 3, bar=None, noise=0.0),
        replace(LINE, bar=Bar(above=0.01, below=0.2), control=True, noise=0.0),
    ]
    write(lines, tmp_path / "lines.csv")
    found = read(tmp_path / "lines.csv")
    assert found[1].value == pytest.approx(1 / 3, rel=1e-8)  # nine digits are kept
    assert [found[0], replace(found[1], value=1 / 3), found[2]] == lines
