"""Score bins: ordered, nested, and narrow in relative terms at both ends of [0, 1]."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from darkmetrics._kernels.bin_grid import bin_index

K = 2**16
ANY = st.floats(allow_nan=False, allow_infinity=False)
EDGES = [0.0, -0.0, 5e-324, 1e-300, 1e-7, 0.25, 0.5, np.nextafter(0.5, 1), 1 - 1e-16, 1.0, np.nextafter(1, 2)]
AWKWARD = np.array([*EDGES, *(-s for s in EDGES), 2.0, -2.0, 1e300, -1e300, 1.7e308, -1.7e308])


def index(scores, score_bins=K):
    return bin_index(np.asarray(scores, dtype=float), score_bins)


@given(st.lists(ANY, min_size=2))
def test_bins_never_fall_when_scores_rise(scores):
    assert np.all(np.diff(index(np.sort(scores))) >= 0)
    assert np.all(np.diff(index(np.sort([*scores, *AWKWARD]))) >= 0)


@given(st.lists(ANY, min_size=1), st.integers(4, 24))
def test_bins_are_unions_of_finer_ones(scores, power):
    everything = [*scores, *AWKWARD]
    assert np.array_equal(index(everything, 2**power), index(everything, 2 ** (power + 1)) // 2)


@given(st.lists(ANY, min_size=1))
def test_the_bin_of_a_score_does_not_depend_on_the_others(scores):
    assert index([*scores, *AWKWARD]).tolist() == [int(index([s])[0]) for s in [*scores, *AWKWARD]]


@given(st.lists(st.floats(0.0, 1.0), min_size=1))
def test_scores_in_the_unit_interval_fill_at_most_that_many_bins(scores):
    found = index([*scores, 0.0, 0.5, 1.0])
    assert found.min() == 0
    assert found.max() == K - 1


def test_minus_zero_is_zero():
    assert index([-0.0])[0] == index([0.0])[0] == 0


@pytest.mark.parametrize("end", [0, 1])
def test_bins_are_narrow_in_relative_terms_at_both_ends(end):
    """From 1e-7 to 0.5 away from an end, scores in one bin differ by less than 0.2% of that distance."""
    distance = np.geomspace(1e-7, 0.49, 400_001)
    found = index(distance if end == 0 else 1.0 - distance)
    new = np.flatnonzero(np.diff(found)) + 1
    widths = distance[new[1:] - 1] / distance[new[:-1]] - 1.0
    # The formula has 16 d**(-1/8) / (C K), where C = 2**(1/8): 1.7e-3 at d = 1e-7.
    assert 0.0016 < widths.max() < 0.0018


def test_edges_are_eighth_powers():
    """An independent way to the grid: the edges are (j / (C K / 2)) ** 8; the middle of two edges is between them."""
    c = 2 ** (1 / 8)
    places = (np.arange(K // 2) + 0.5) / (c * K / 2)
    assert np.array_equal(index(places**8), np.arange(K // 2))
    # Near 1 the distance to 1 is what counts; only where it is not lost to rounding.
    kept = places**8 > 1e-12
    assert np.array_equal(index(1.0 - places[kept] ** 8), (K - 1 - np.arange(K // 2))[kept])


def test_scores_beyond_the_unit_interval_keep_relative_precision():
    for score in (3.0, 1e6, -0.02, -3.0, -1e6):
        assert index([score])[0] != index([score * 1.02])[0]
    assert index([math.nextafter(1.0, 2.0)])[0] == K
    assert index([-5e-324])[0] == -1
