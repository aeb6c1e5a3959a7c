"""The Poisson-binomial of darkmetrics: characteristic function on the lattice of the counts that have any mass."""

from harness import main_pmf

from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmf

if __name__ == "__main__":
    main_pmf("darkmetrics", poisson_binomial_pmf)
