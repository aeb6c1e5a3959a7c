"""The short form of the fuzzers: the same seeds in every run, within a budget of time (the long form: make fuzz)."""

from collections import Counter

import pytest

from fuzz import kin, seeds
from fuzz.hostile import HOSTILE, outcome

# Seeds that a test goes through: few enough that cores share them evenly, and none is a test of its own.
BLOCK = 12
LAWS, PAIRS = 8, 5
# Found by the long form, and mended since: weights so far apart that a ratio of two small sums is lost on a lattice, a
# heavy atom that is smeared, the chance of 0/0 and the mean of a law of clusters.
ONCE_WRONG = (700237, 700336, 800675, 900020)


def found_in(block, alarms, **options):
    """The alarms of the seeds of a block."""
    each = {seed: alarms(seed, counts=Counter(), **options) for seed in range(BLOCK * block, BLOCK * (block + 1))}
    return {seed: found for seed, found in each.items() if found}


@pytest.mark.parametrize("block", range(LAWS))
def test_laws_of_random_problems_are_the_true_ones(block):
    assert not found_in(block, seeds.alarms, largest=60, number=4, draws=20_000)


@pytest.mark.parametrize("seed", ONCE_WRONG)
def test_laws_that_were_wrong_once_are_right(seed):
    assert not seeds.alarms(seed, counts=Counter())


@pytest.mark.parametrize("block", range(PAIRS))
def test_related_problems_have_the_same_answer(block):
    assert not found_in(block, kin.alarms, largest=24, number=3)


@pytest.mark.parametrize("title", HOSTILE)
def test_hostile_input_is_understood_or_refused_by_name(title):
    call, expected = HOSTILE[title]
    assert outcome(call) == expected
