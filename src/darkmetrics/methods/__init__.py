"""How the distribution of a metric is computed: exactly, by an expansion, as a Gaussian, or by drawing labels.

Import rule: methods know functionals, posteriors and distributions; they know no metric by name.
"""

from darkmetrics.methods.base import Method
from darkmetrics.methods.choice import method_from
from darkmetrics.methods.exact import Auto, Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo

__all__ = ["Auto", "Exact", "Gaussian", "Method", "MonteCarlo", "method_from"]
