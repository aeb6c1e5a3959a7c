"""Convert the value of `method=` to a method."""

from typing import Any

from darkmetrics._vocabulary import METHODS
from darkmetrics.constraints import check_value
from darkmetrics.methods.base import Method
from darkmetrics.methods.exact import Auto, Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo

_METHOD_CLASSES: dict[str, type[Method]] = dict(zip(METHODS, (Auto, Exact, Gaussian, MonteCarlo), strict=True))
# Names in the paper.
_PAPER: dict[str, type[Method]] = {"pemi": MonteCarlo, "pemi_gauss": Gaussian}


def method_from(method: Any) -> Method:
    """Return the method for a name, also a name of the paper ("pemi", "pemi_gauss"), or for a settings object."""
    check_value("method", method)
    if not isinstance(method, str):
        known: Method = method
        return known
    return (_METHOD_CLASSES | _PAPER)[method if method in _METHOD_CLASSES else method.lower().replace("-", "_")]()
