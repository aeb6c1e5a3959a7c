"""fast-poibin: products of polynomials by FFT, divide and conquer."""

import numpy as np
from fast_poibin import PoiBin
from harness import main_pmf


def pmf(p: np.ndarray) -> tuple[int, np.ndarray]:
    return 0, PoiBin(p).pmf


if __name__ == "__main__":
    main_pmf("fast-poibin", pmf)
