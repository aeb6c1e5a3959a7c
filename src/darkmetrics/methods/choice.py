"""From the word a user gives to the method it stands for, and `auto`."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from darkmetrics._vocabulary import METHODS
from darkmetrics.distributions import MetricDistribution
from darkmetrics.exceptions import InputError, MethodError, unknown_name
from darkmetrics.functional import Functional
from darkmetrics.methods.base import Method, Problem
from darkmetrics.methods.exact import Exact
from darkmetrics.methods.gaussian import Gaussian
from darkmetrics.methods.monte_carlo import MonteCarlo


@dataclass(frozen=True)
class Auto(Method):
    """The exact law where there is one, else Monte Carlo; the law's `method` says which it was.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> many = dm.methods.Auto(n_resamples=100_000)
    >>> dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], label_model=[0.8], method=many)["recall"].method
    'exact'
    """

    n_resamples: int = 10_000
    name: ClassVar[str] = "auto"

    def law(self, functional: Functional, problem: Problem, *, rng: np.random.Generator) -> MetricDistribution:
        try:
            return Exact().law(functional, problem, rng=rng)
        except MethodError:
            pass  # and drawn outside, so that what a user's own metric raises has no word of "exact" before it
        return MonteCarlo(self.n_resamples).law(functional, problem, rng=rng)


_WORDS: dict[str, type[Method]] = dict(zip(METHODS, (Auto, Exact, Gaussian, MonteCarlo), strict=True))
# What the paper calls them.
_PAPER: dict[str, type[Method]] = {"pemi": MonteCarlo, "pemi_gauss": Gaussian}


def method_from(method: object) -> Method:
    """The method that a word, also one of the paper's ("pemi", "pemi_gauss"), or a settings object stands for."""
    if isinstance(method, Method):
        return method
    if isinstance(method, str):
        found = _WORDS.get(method) or _PAPER.get(method.lower().replace("-", "_"))
        if found is None:
            raise unknown_name("method", "method", method, _WORDS)
        return found()
    raise InputError(
        f"method: expected one of {', '.join(map(repr, sorted(_WORDS)))} or a settings object such as "
        f"methods.MonteCarlo(n_resamples=1000), got {method!r}."
    )
