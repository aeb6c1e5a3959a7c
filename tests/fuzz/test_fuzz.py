"""The short form of the fuzzers: the same seeds in every run, within a budget of time (the long form: make fuzz)."""

from collections import Counter

import pytest

from fuzz import kin, seeds
from fuzz.hostile import HOSTILE, outcome

# Seeds that a test goes through: few enough that cores share them evenly, and none is a test of its own.
BLOCK = 12
LAWS, PAIRS = 12, 8


@pytest.mark.parametrize("block", range(LAWS))
def test_laws_of_random_problems_are_the_true_ones(block):
    counts: Counter[str] = Counter()
    found = {
        seed: alarms
        for seed in range(BLOCK * block, BLOCK * (block + 1))
        if (alarms := seeds.alarms(seed, counts=counts, largest=60, number=5, draws=20_000))
    }
    assert not found


@pytest.mark.parametrize("block", range(PAIRS))
def test_related_problems_have_the_same_answer(block):
    counts: Counter[str] = Counter()
    found = {
        seed: alarms
        for seed in range(BLOCK * block, BLOCK * (block + 1))
        if (alarms := kin.alarms(seed, counts=counts, largest=60, number=4))
    }
    assert not found


@pytest.mark.parametrize("title", HOSTILE)
def test_hostile_input_is_understood_or_refused_by_name(title):
    call, expected = HOSTILE[title]
    assert outcome(call) == expected
