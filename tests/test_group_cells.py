"""Entries of an engine's answer are put in order by counting, and come out as sorting would have them."""

import numpy as np
import pytest

from darkmetrics.frames.group_cells import _order, distinct


@pytest.mark.parametrize("largest", [0, 1, 2**16 - 1, 2**16, 2**28, 2**47, 2**62 - 1])
def test_whole_numbers_are_ordered_as_by_a_stable_sort(largest):
    rng = np.random.default_rng(0)
    key = rng.integers(0, largest, 5_000, endpoint=True)
    key[rng.integers(0, key.size, 500)] = key[rng.integers(0, key.size, 500)]  # ties stay in their order
    np.testing.assert_array_equal(_order([key]), np.argsort(key, kind="stable"))


def test_other_keys_are_ordered_by_the_last_first():
    rng = np.random.default_rng(0)
    keys = [rng.integers(0, 3, 500), np.round(rng.random(500), 1)]
    assert _order(keys).tolist() == sorted(range(500), key=lambda i: (keys[1][i], keys[0][i]))


@pytest.mark.parametrize("numbers", [[], [5], [-4, 7, -4, 0, 7], [3, 2**17, 3]])
def test_distinct_numbers_are_found_by_counting(numbers):
    assert distinct(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))
