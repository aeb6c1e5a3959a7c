"""Methods: from a functional and probabilities to the law of a metric.

Import rule: methods know functionals, distributions and kernels; they know no metric and no label model.

A method is named by a word (`"exact"`, `"monte_carlo"`, `"gaussian"`, `"auto"`) or, where its defaults do not do, by a
small settings object such as `MonteCarlo(n_resamples=100_000)`.
"""

from darkmetrics.methods.base import Method, Problem
from darkmetrics.methods.choice import Auto, method_from
from darkmetrics.methods.exact import Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo

__all__ = ["Auto", "Exact", "Gaussian", "Method", "MonteCarlo", "Problem", "method_from"]
