"""Figures are computed once per state of the code, and a run that is interrupted goes on where it stopped."""

from pathlib import Path

import pytest

from guarantees.pieces import Family
from guarantees.promises import PROMISES, pieces_of


class Measured:
    """A measurement that counts how often it is made; `fails_at` breaks it off."""

    def __init__(self, folder: Path) -> None:
        self.work, self.library, self.scenarios = folder / "work", folder / "library", folder / "scenarios.py"
        (self.library / "inner").mkdir(parents=True)
        (self.library / "inner" / "law.py").write_text("1")
        self.scenarios.write_text("1")
        self.computed: list[int] = []
        self.fails_at = -1

    def compute(self, number):
        self.computed.append(number)
        yield {"number": number, "third": number / 3}
        if number == self.fails_at:
            raise KeyboardInterrupt

    def family(self) -> Family:
        """As a new run has it."""
        return Family("tried", self.compute, (self.scenarios,), (), self.work, self.library)


@pytest.fixture
def measured(tmp_path):
    return Measured(tmp_path)


def test_a_second_run_takes_the_figures_of_the_first(measured):
    first = measured.family().piece(7).figures()
    assert measured.family().piece(7).figures() == first == [{"number": 7, "third": 7 / 3}]
    assert measured.computed == [7]


def test_an_interrupted_run_keeps_what_was_finished_and_nothing_of_the_rest(measured):
    def run():
        family = measured.family()
        return [family.piece(number).figures() for number in range(4)]

    measured.fails_at = 2
    with pytest.raises(KeyboardInterrupt):
        run()
    measured.fails_at = -1
    run()
    assert measured.computed == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("changed", ["library/inner/law.py", "library/new.py", "scenarios.py"])
def test_figures_of_other_code_are_not_taken(measured, tmp_path, changed):
    measured.family().piece(7).figures()
    (tmp_path / changed).write_text("2")
    assert not measured.family().piece(7).is_there()
    measured.family().piece(7).figures()
    assert measured.computed == [7, 7]


def test_figures_return_with_the_code_that_computed_them(measured):
    measured.family().piece(7).figures()
    measured.scenarios.write_text("2")
    measured.family().piece(7).figures()
    measured.scenarios.write_text("1")
    assert measured.family().piece(7).is_there()


def test_the_fingerprint_does_not_depend_on_where_the_code_lies(measured, tmp_path):
    there = Measured(tmp_path / "elsewhere")
    assert there.family().fingerprint == measured.family().fingerprint


def test_figures_are_not_kept_if_the_code_changed_while_they_were_computed(measured):
    def compute(number):
        measured.scenarios.write_text("2")
        return [{"number": number}]

    piece = Family("tried", compute, (measured.scenarios,), (), measured.work, measured.library).piece(7)
    with pytest.raises(RuntimeError, match="the code has changed"):
        piece.figures()
    assert not list(measured.work.rglob("*.json"))


def test_no_two_pieces_share_a_file():
    paths = [piece.path for piece in pieces_of(PROMISES)]
    assert len(set(paths)) == len(paths)


def test_no_two_promises_share_a_name():
    assert len({promise.name for promise in PROMISES}) == len(PROMISES)
