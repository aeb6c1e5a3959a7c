"""`scipy.stats.poisson_binom`, asked for the mass of every count."""

import numpy as np
from harness import main_pmf
from scipy.stats import poisson_binom


def pmf(p: np.ndarray) -> tuple[int, np.ndarray]:
    return 0, poisson_binom.pmf(np.arange(p.size + 1), p)


if __name__ == "__main__":
    main_pmf("scipy", pmf)
