"""Methods that compute distributions of metrics: exact, by expansion, Gaussian, or by drawing labels.

Import rule: methods may import functionals, posteriors and distributions, but no metric by name.
"""

from typing import Any

from darkmetrics._vocabulary import METHODS
from darkmetrics.constraints import check_value
from darkmetrics.methods.base import Method
from darkmetrics.methods.exact import Auto, Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo

__all__ = ["Auto", "Exact", "Gaussian", "Method", "MonteCarlo", "method_from"]

# By name, and by their names in the paper.
_CLASSES: dict[str, type[Method]] = dict(zip(METHODS, (Auto, Exact, Gaussian, MonteCarlo), strict=True))
_PAPER: dict[str, type[Method]] = {"pemi": MonteCarlo, "pemi_gauss": Gaussian}


def method_from(method: Any) -> Method:
    """Return the method for a name, also a name of the paper ("pemi", "pemi_gauss"), or for a settings object."""
    check_value("method", method)
    if not isinstance(method, str):
        known: Method = method
        return known
    return (_CLASSES | _PAPER)[method if method in _CLASSES else method.lower().replace("-", "_")]()
