"""Sobol points are those of scipy, and the default evaluation finds them without importing its statistics."""

import numpy as np
import pytest
from scipy.stats import qmc

from darkmetrics._kernels.sobol import _POLYNOMIALS, sobol_points


@pytest.mark.parametrize("dimensions", range(1, len(_POLYNOMIALS) + 2))
@pytest.mark.parametrize("seed", [0, 7])
def test_points_are_those_of_scipy_bit_for_bit(dimensions, seed):
    theirs = qmc.Sobol(dimensions, scramble=True, seed=np.random.default_rng(seed)).random_base2(11)
    for n in (1, 2, 3, 64, 1_500, 2_048):
        np.testing.assert_array_equal(sobol_points(n, dimensions, seed), theirs[:n])
