"""The end of a run: the table is printed, results and pages are written, and red is red."""

import shutil
from dataclasses import replace

import pytest

from guarantees import __main__ as end
from guarantees.docs import PAGES, missed_table
from guarantees.lines import Bar, Line
from guarantees.pieces import Piece
from guarantees.promises import PROMISES
from guarantees.results import read
from guarantees.scenarios import METRICS
from guarantees.years import SEGMENTS

# Ways that the controls expect to miss, beside those that miss on some scenarios only.
WRONG = {"half", "reference alone", "scaling-binning"}


def distribution(number, *, wrong):
    """The figures of a right law: one interval of ten misses. Or those of a wrong one: all of them miss."""
    low = 0.6 if wrong or number % 10 == 0 else 0.4
    figures = {"low": low, "high": 0.7, "pit": 1.0 if wrong else (number % 50 + 0.5) / 50, "mean": 0.55, "truth": 0.5}
    return [{"metric": metric, **figures} for metric in METRICS]


def made_up(piece, wrong=WRONG):
    """Figures of a run in which every promise is kept."""
    first, second = piece.arguments[:2]
    match piece.family.name:
        case "coverage":
            mismatch = {("calibrated", "by label"), ("label_shift", "by score")}
            misses = first in wrong or (first, second.split(",")[0]) in mismatch
            return [row for number in range(*piece.arguments[2:]) for row in distribution(number, wrong=misses)]
        case "real data":
            return [
                {"eta": eta, "way": way, **row}
                for eta in (0.1, 0.4, 0.6, 0.9)
                for way in ("label shift", "scaling-binning", "bootstrap")
                for half in (0, 1)
                for row in distribution(2 * second + half, wrong=way in wrong)
            ]
        case "monitoring":
            drops = first == "one segment drops"
            rows = [
                {"year": year, "segment": segment, "month": month, "p_value": 0.04}
                | {"alert": drops and segment == "b" and month == 8, "missed": False}
                for year in range(*piece.arguments[2:])
                for segment in SEGMENTS
                for month in range(1, 13)
            ]
            return [row | {"missed": row["alert"] and second == "random"} for row in rows]
        case other:
            raise AssertionError(other)


@pytest.fixture
def finished(monkeypatch, tmp_path):
    """Every piece has been measured; what is written goes to a folder of its own."""
    pages = tuple(tmp_path / page.name for page in PAGES)
    for page, copy in zip(PAGES, pages, strict=True):
        shutil.copy(page, copy)
    monkeypatch.setattr(end, "PAGES", pages)
    monkeypatch.setattr(end, "ROOT", tmp_path)
    monkeypatch.setattr(end, "RESULTS", tmp_path / "guarantees.csv")
    monkeypatch.setattr(Piece, "is_there", lambda self: True)
    monkeypatch.setattr(Piece, "cpu_seconds", lambda self: 60.0)
    monkeypatch.setattr(Piece, "figures", made_up)
    return tmp_path


# As on a machine that has all the data.
EVERY = [replace(promise, lacking="") for promise in PROMISES]


def test_a_finished_run_says_so_and_writes_results_and_pages(finished, capsys):
    assert end.main(EVERY) == 0
    said = capsys.readouterr().out
    assert " 0 missed" in said
    assert "guarantees.csv, assumptions.md, monitor.md" in said
    assert not [line for line in read(finished / "guarantees.csv") if line.verdict == "missed"]
    page = (finished / "assumptions.md").read_text()
    assert "| at random | random | 400 | 85% to 97% | 90% | 90% | 90% | 90% | 90% |" in page
    assert "| at random | one half (wrong) | 60 | none: it must fail | 0% | 0% | 0% | 0% | 0% |" in page
    assert "| Adult, 10% of masked rows positive | 90 90 90 90 90 | 0 0 0 0 0 | 90 90 90 90 90 |" in page
    assert "0 miss it." in page
    assert "in at least one month | 100% |" in (finished / "monitor.md").read_text()


def test_a_control_that_passes_makes_the_run_red(finished, monkeypatch, capsys):
    monkeypatch.setattr(Piece, "figures", lambda self: made_up(self, wrong={"reference alone", "scaling-binning"}))
    assert end.main(EVERY) == 1
    assert "RED: control: one half fails, random: metrics covered in less than 20% 0" in capsys.readouterr().out


def test_an_unfinished_run_says_how_to_go_on_and_writes_nothing(finished, monkeypatch, capsys):
    monkeypatch.setattr(Piece, "is_there", lambda self: "half" not in self.name)
    before = (finished / "assumptions.md").read_text()
    assert end.main(EVERY) == 1
    assert "Run `make guarantees` again: it goes on from here." in capsys.readouterr().out
    assert not (finished / "guarantees.csv").exists()
    assert (finished / "assumptions.md").read_text() == before


def test_what_cannot_be_measured_here_is_left_out_and_nothing_is_written(finished, capsys):
    lacking = [replace(one, lacking="no data" if "real data" in one.claim else "") for one in PROMISES]
    assert end.main(lacking) == 0
    assert "Left out: label shift covers on real data, adult (no data)." in capsys.readouterr().out
    assert not (finished / "guarantees.csv").exists()


def test_a_missed_line_is_shown_with_figure_and_bar():
    line = Line("some promise", "some case", "", "recall", "coverage", 400, 0.841, Bar(at_least=0.85))
    text = "\n".join(missed_table([line]))
    assert "Of 1 figures that are held to a bar, 1 misses it." in text
    assert "| some promise | some case | coverage recall 84.1% | at least 85% | not known yet |" in text
