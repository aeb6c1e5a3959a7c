"""Methods that compute distributions of metrics: exact, by expansion, Gaussian, or by drawing labels.

Import rule: methods may import functionals, posteriors and distributions, but no metric by name.
"""

from darkmetrics.methods.base import Method
from darkmetrics.methods.choice import method_from
from darkmetrics.methods.exact import Auto, Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo

__all__ = ["Auto", "Exact", "Gaussian", "Method", "MonteCarlo", "method_from"]
