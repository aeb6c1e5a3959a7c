"""From the word a user passes to the method it stands for."""

from darkmetrics._vocabulary import METHODS
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.methods.base import Method
from darkmetrics.methods.exact import Auto, Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo

_WORDS: dict[str, type[Method]] = dict(zip(METHODS, (Auto, Exact, Gaussian, MonteCarlo), strict=True))
# What the paper calls them.
_PAPER: dict[str, type[Method]] = {"pemi": MonteCarlo, "pemi_gauss": Gaussian}


def method_from(method: object) -> Method:
    """Return the method for a word, also one of the paper's ("pemi", "pemi_gauss"), or for a settings object."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        match = _WORDS.get(method) or _PAPER.get(method.lower().replace("-", "_"))
        if match is None:
            raise unknown_name("method", "method", method, _WORDS)
        return match()
    raise InputError(
        f"method: expected one of {', '.join(map(repr, sorted(_WORDS)))} or a settings object such as "
        f"methods.MonteCarlo(n_resamples=1000), got {method!r}."
    )
