"""What every law is: a distribution with the methods of `scipy.stats`, and what it says of itself."""

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import Numbers, RngLike
from darkmetrics.certificate import Certificate, exact_certificate, kept_certificate
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.storing import made_of
from darkmetrics.tables import decimals_for, finite, html_table, interval_text, number_text

# Values of a metric that differ by this part of their own size are one atom: the last bits of a float are noise of the
# arithmetic. Relative to the largest value instead, small ones would all be one.
_ATOM = 1e-13


class Interval(NamedTuple):
    """Two ends of an interval."""

    low: float
    high: float


class NodeMoments(NamedTuple):
    """Weight of each node in the law, and mean and variance of the metric given the node.

    A node at which the metric is never defined has weight zero and takes the mean of the others.
    """

    weight: FloatArray
    mean: FloatArray
    var: FloatArray

    @classmethod
    def of(cls, weight: FloatArray, mean: FloatArray, var: FloatArray) -> "NodeMoments":
        """Moments of the nodes, whatever stands where the weight is zero."""
        # In one piece: sums over columns of a table have other last digits than those over a copy of them.
        mean, var = np.ascontiguousarray(mean), np.ascontiguousarray(var)
        out = weight <= 0.0
        if out.any():
            inner = float(weight[~out] @ mean[~out])
            mean, var = np.where(out, inner, mean), np.where(out, 0.0, var)
        return cls(weight, mean, np.maximum(var, 0.0))

    def total(self) -> tuple[float, float]:
        """Mean and variance of the mixture (law of total variance)."""
        mean = float(self.weight @ self.mean)
        return mean, float(self.weight @ (self.var + (self.mean - mean) ** 2))


def slack(t: FloatArray, noise: float) -> FloatArray:
    """How far apart two values may be and still count as one, where differences of larger terms leave this `noise`."""
    return np.where(np.isinf(t), 0.0, np.maximum(noise, _ATOM * np.abs(t)))


def check_level(confidence_level: Any, name: str = "confidence_level") -> float:
    """The probability of an interval, checked."""
    if not is_number(confidence_level) or not 0.0 < confidence_level < 1.0:
        percent = is_number(confidence_level) and 50.0 <= confidence_level < 100.0
        hint = f" Give {confidence_level / 100.0:.6g} for {confidence_level:.6g}%." if percent else ""
        raise InputError(f"{name}: {confidence_level!r}. It must lie strictly between 0 and 1.{hint}")
    return float(confidence_level)


def _numbers(name: str, value: Any) -> FloatArray:
    """Numbers that a user asks a law about, as an array of any shape."""
    try:
        if value is not None:
            return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(f"{name}: expected a number or an array of numbers, got {reprlib.repr(value)}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class MetricDistribution(ABC):
    """The law of one metric on the rows at hand, given what is known about the missing labels.

    Methods follow `scipy.stats`: `mean std var median cdf sf ppf interval support rvs`. All randomness is about the
    missing labels; with no label missing the law is a single point.

    Attributes
    ----------
    method : str
        How the law was found: "exact", "near exact", "monte carlo", "gaussian".
    undefined : float
        Probability that the metric is 0/0. Its value there follows `zero_division`, unless `given_defined`.
    given_defined : bool
        Whether that chance is left out: the law is that of the metric given that it is defined. Else a 0/0 counts with
        the value that stands for it.
    bounds : Interval
        Worst and best value over all labelings of the missing rows, whatever their probability.
    bounds_sharp : bool
        Whether both bounds are attained by some labeling; if not they are only known to enclose the law.
    by_node : NodeMoments or None
        Mean and variance of the metric given each posterior node, when there are several.
    noise : float
        Rounding error of the metric's values besides their own last digits (`Functional.noise`).
    """

    method: str = "exact"
    undefined: float = 0.0
    given_defined: bool = False
    bounds: Interval = field(default=Interval(-np.inf, np.inf))
    bounds_sharp: bool = True
    by_node: NodeMoments | None = None
    noise: float = 0.0
    # What proves how far the law is from the true one; None when nothing does, or when there is nothing to prove.
    certify: Callable[[Any], Certificate | None] | None = field(default=None, repr=False)

    @abstractmethod
    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        """P(metric <= t), or P(metric < t) when `left`; `t` is one-dimensional."""

    @abstractmethod
    def _ppf(self, q: FloatArray) -> FloatArray:
        """Smallest value whose cdf reaches q; `q` is one-dimensional, inside [0, 1]."""

    @abstractmethod
    def _moments(self) -> tuple[float, float]:
        """Mean and variance."""

    @cached_property
    def _mean_and_variance(self) -> tuple[float, float]:
        return self._moments()

    def mean(self) -> float:
        """Expected value: the estimate to report when one number is wanted."""
        return self._mean_and_variance[0]

    def var(self) -> float:
        """Variance due to the missing labels."""
        return self._mean_and_variance[1]

    def std(self) -> float:
        """Standard deviation due to the missing labels."""
        return float(np.sqrt(self.var()))

    def median(self) -> float:
        """Value that the metric exceeds with probability one half at most."""
        return float(self.ppf(0.5))

    def cdf(self, t: Numbers) -> Any:
        """Probability that the metric is at most `t`."""
        return self._over(_numbers("t", t), lambda x: self._cdf(x, left=False))

    def sf(self, t: Numbers) -> Any:
        """Probability that the metric is above `t`."""
        return self._over(_numbers("t", t), lambda x: 1.0 - self._cdf(x, left=False))

    def pit(self, t: Numbers) -> Any:
        """Where a realised value of the metric falls in the law: (F(t-) + F(t)) / 2, uniform if the law is right."""
        values = _numbers("t", t)
        if values.size > 2 and set(np.unique(values)) == {0.0, 1.0} and self._between():
            raise InputError(
                f"t: {values.size:,} values, each of them 0 or 1, look like labels. Give the value of the metric under "
                "them; dm.audit holds labels that came later against an evaluation."
            )
        return self._over(values, lambda x: 0.5 * (self._cdf(x, left=True) + self._cdf(x, left=False)))

    def _between(self) -> bool:
        """Whether the metric can be neither 0 nor 1."""
        below_one, at_zero = self._cdf(np.ones(1), left=True), self._cdf(np.zeros(1), left=False)
        return bool(below_one[0] > at_zero[0])

    def ppf(self, q: Numbers) -> Any:
        """Quantile: the smallest value that the metric stays at or below with probability at least `q`.

        Those of 0 and 1 are the worst and best case, `support()`.
        """
        levels = _numbers("q", q)
        if bool(np.any(~((levels >= 0.0) & (levels <= 1.0)))):
            bad = levels.ravel()[np.argmax(~((levels.ravel() >= 0.0) & (levels.ravel() <= 1.0)))]
            raise InputError(f"q: {bad:g}. Quantile levels must lie in [0, 1].")
        return self._over(levels, self._quantiles)

    def _quantiles(self, q: FloatArray) -> FloatArray:
        """Quantiles inside the bounds; those of 0 and 1 are the bounds."""
        low, high = self.bounds
        return np.where(q <= 0.0, low, np.where(q >= 1.0, high, np.clip(self._ppf(q), low, high)))

    @cached_property
    def certificate(self) -> Certificate | None:
        """How far can this law be from the true one? A proven bound for these data; None where nothing is proven."""
        if self.undefined >= 1.0:
            return None
        if self.certify is not None:
            return self.certify(self)
        return exact_certificate(self._cdf) if self.method == "exact" else None

    def interval(self, confidence_level: float = 0.9, *, certified: bool = False) -> Interval:
        """Equal-tailed interval that holds the metric with at least this probability.

        `certified`: widened by the law's certificate, so that it holds at least this much of the true law's mass even
        if the law is an approximation.
        """
        tail = 0.5 * (1.0 - check_level(confidence_level))
        if certified and self.undefined < 1.0:
            proof = self.certificate
            if proof is None:
                raise MethodError(
                    f"certified: nothing is proven about the error of a law found by {self.method!r}. "
                    "Use one of the methods 'auto', 'exact', 'monte_carlo' and 'gaussian'."
                )
            if proof.known != 0.0:
                return Interval(*proof.inside(*self.bounds, confidence_level))
        return Interval(*(float(end) for end in self.ppf([tail, 1.0 - tail])))

    def support(self) -> Interval:
        """Worst and best case over all labelings of the missing rows (`bounds_sharp` says if both can happen)."""
        return self.bounds

    def rvs(self, size: int | tuple[int, ...] | None = None, rng: RngLike = None) -> Any:
        """Draws from the law; `rng` is a seed or a numpy Generator."""
        uniform = np.random.default_rng(rng).random(size)
        return self._over(uniform, self._quantiles)

    def to_dict(self, confidence_level: float = 0.9) -> dict[str, Any]:
        """Plain numbers at full precision, ready for JSON; what does not exist is None."""
        low, high = self.interval(confidence_level)
        worst, best = self.support()
        numbers = {
            "mean": self.mean(),
            "std": self.std(),
            "median": self.median(),
            "low": low,
            "high": high,
            "lowest_possible": worst,
            "highest_possible": best,
        }
        return {
            "method": self.method,
            **{key: finite(value) for key, value in numbers.items()},
            "confidence_level": confidence_level,
            "bounds_sharp": self.bounds_sharp,
            "undefined": self.undefined,
            "ks_bound": self._quick_ks_bound(),
        }

    def _quick_ks_bound(self) -> float | None:
        """The proven bound where it takes no time: that of a near exact law is looked for in many places."""
        if self.method == "near exact" or self.certificate is None:
            return None
        return self.certificate.ks_bound

    def __copy__(self) -> Self:
        return self  # as a tuple does: a law never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = object.__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(deepcopy(made_of(self), memo))
        return new

    def __getstate__(self) -> dict[str, Any]:
        # What the certificate is computed from may hold formulas that cannot be stored; its result can.
        state = made_of(self)
        proof = self.certificate if self.certify is not None else None
        if proof is not None:
            facts = proof.ks_bound, proof.theorem, proof.assumptions, proof.confidence
            state["certify"] = partial(kept_certificate, *facts)
        return state

    def __repr__(self) -> str:
        low, high = self.interval()
        return f"<{type(self).__name__}: mean {self.mean():.4g}, 90% interval {low:.4g} to {high:.4g}, {self.method}>"

    def _repr_html_(self) -> str:
        low, high = self.interval()
        decimals = decimals_for(high - low)
        rows = [
            ["mean", number_text(self.mean(), decimals)],
            ["90% interval", interval_text((low, high), decimals)],
            ["standard deviation", f"{self.std():.3g}"],
            ["possible", interval_text(self.support(), 3)],
            ["method", self.method],
        ]
        rows += [["0/0", f"{self.undefined:.3g}"]] if self.undefined > 0.0 else []
        return html_table(["law of a metric", ""], rows)

    @staticmethod
    def _over(x: Any, function: Any) -> Any:
        """Apply a function of one-dimensional arrays to a number or an array of any shape."""
        array = np.asarray(x, dtype=np.float64)
        result = np.where(np.isnan(array.ravel()), np.nan, function(array.ravel())).reshape(array.shape)
        return float(result) if array.ndim == 0 else result


def mass_below(law: MetricDistribution, t: float) -> float:
    """P(X < t), which is twice the PIT less P(X <= t): what is just t is not below it."""
    return 2.0 * float(law.pit(t)) - float(law.cdf(t))


def chance_of_target(law: MetricDistribution, target: float, better: str) -> float:
    """The probability that a metric is at least the target, or at most where lower is better; NaN if never defined.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.distributions import chance_of_target
    >>> law = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], label_model=[0.6], metrics="accuracy")["accuracy"]
    >>> round(chance_of_target(law, 0.75, "higher"), 9), chance_of_target(law, 0.75, "lower")
    (0.6, 1.0)
    """
    return float(law.cdf(target)) if better == "lower" else 1.0 - mass_below(law, target)
