"""What the library says to some of the seeded problems is what it said before; `python -m golden` asks them all."""

import pytest

from golden.kept import API, differences, kept, now, rounding, versions, written_with
from golden.problems import NUMBER
from golden.public_api import public_api

# Nine shares no factor with the 8 sets of metrics and the 7 ways to ask, so that each of their 56 pairs is among them.
EVERY = 9


@pytest.mark.parametrize("first", range(4))
def test_answers_are_those_that_were_kept(first):
    if versions() != written_with():
        pytest.skip(f"the answers were written with {written_with()}, here is {versions()}")
    before = kept()
    for number in range(first * EVERY, NUMBER, 4 * EVERY):
        changed = [one for one in differences(before[number], now(number)) if not rounding(*one[1:])]
        assert not changed, f"problem {number}"


def test_there_are_enough_of_all_kinds():
    answers = kept()
    assert len(answers) == NUMBER >= 500
    schemas = [one.get("schema") for one in answers]
    assert all(schemas.count(f"darkmetrics.{kind}/1") > 60 for kind in ("evaluation", "groups", "curves"))
    assert sum("refused" in one for one in answers) < NUMBER // 20


def test_a_changed_digit_is_seen():
    before = kept()[0]
    metric = next(iter(before["metrics"]))
    after = {**before, "metrics": {**before["metrics"], metric: {**before["metrics"][metric], "mean": 0.123}}}
    assert [path for path, *_ in differences(before, after)] == [f".metrics.{metric}.mean"]


def test_drawn_numbers_may_move_by_less_than_a_twentieth_of_a_standard_deviation():
    answer = {"method": "monte carlo", "std": 0.1, "mean": 0.5, "undefined": 0.0}
    assert not list(differences(answer, answer | {"mean": 0.504}))
    assert [path for path, *_ in differences(answer, answer | {"mean": 0.506})] == [".mean"]
    exact = answer | {"method": "exact"}
    assert [path for path, *_ in differences(exact, exact | {"mean": 0.500001})] == [".mean"]
    assert [path for path, *_ in differences(answer, answer | {"undefined": 0.001})] == [".undefined"]


def test_public_names_are_those_that_were_kept():
    assert public_api() == API.read_text()
