"""Convert the value of `method=` to a method."""

from darkmetrics._vocabulary import METHODS
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.methods.base import Method
from darkmetrics.methods.exact import Auto, Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo

_METHOD_CLASSES: dict[str, type[Method]] = dict(zip(METHODS, (Auto, Exact, Gaussian, MonteCarlo), strict=True))
# Names in the paper.
_PAPER: dict[str, type[Method]] = {"pemi": MonteCarlo, "pemi_gauss": Gaussian}


def method_from(method: object) -> Method:
    """Return the method for a name, also a name of the paper ("pemi", "pemi_gauss"), or for a settings object."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        match = _METHOD_CLASSES.get(method) or _PAPER.get(method.lower().replace("-", "_"))
        if match is None:
            raise unknown_name("method", "method", method, _METHOD_CLASSES)
        return match()
    raise InputError(
        "method",
        repr(method),
        f"It must be one of {', '.join(map(repr, sorted(_METHOD_CLASSES)))}, or an object such as "
        "methods.MonteCarlo(n_resamples=1000).",
    )
