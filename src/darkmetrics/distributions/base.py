"""MetricDistribution: base class of all distributions, with the methods of `scipy.stats`."""

import reprlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import Numbers, RngLike
from darkmetrics.calls import answer_attribute
from darkmetrics.certificate import Certificate, exact_certificate, kept_certificate
from darkmetrics.constraints import check_value, checked
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.foreign_words import DISTRIBUTION_ATTRIBUTES, DISTRIBUTION_METHODS
from darkmetrics.storing import made_of
from darkmetrics.tables import decimals_for, finite, html_table, interval_text, level_text, number_text

# Values of a metric that differ by at most this fraction of their own size are one atom: the difference is a rounding
# error. A fraction of the largest value would merge all small values.
_ATOM_TOLERANCE = 1e-13


class Interval(NamedTuple):
    """Lower and upper end of an interval."""

    low: float
    high: float


class DrawMoments(NamedTuple):
    """Weight of each posterior draw in the distribution, and mean and variance of the metric at each draw.

    A draw at which the metric is never defined has weight zero and the mean of the other draws.
    """

    weight: FloatArray
    mean: FloatArray
    var: FloatArray

    @classmethod
    def of(cls, weight: FloatArray, mean: FloatArray, var: FloatArray) -> "DrawMoments":
        """Return the moments; draws of weight zero get the mean of the others and no variance."""
        # Contiguous: sums over columns of a table have other last digits than sums over a copy.
        mean, var = np.ascontiguousarray(mean), np.ascontiguousarray(var)
        is_excluded = weight <= 0.0
        if is_excluded.any():
            mean_of_others = float(weight[~is_excluded] @ mean[~is_excluded])
            mean, var = np.where(is_excluded, mean_of_others, mean), np.where(is_excluded, 0.0, var)
        return cls(weight, mean, np.maximum(var, 0.0))

    def total(self) -> tuple[float, float]:
        """Return mean and variance of the mixture (total variance)."""
        mean = float(self.weight @ self.mean)
        return mean, float(self.weight @ (self.var + (self.mean - mean) ** 2))


def slack(t: FloatArray, noise: float) -> FloatArray:
    """Return the largest difference at which two values count as equal.

    `noise` is the rounding error of differences of larger terms.
    """
    return np.where(np.isinf(t), 0.0, np.maximum(noise, _ATOM_TOLERANCE * np.abs(t)))


def check_level(confidence_level: Any, name: str = "confidence_level") -> float:
    """Validate the probability of an interval."""
    check_value(name, confidence_level)
    return float(confidence_level)


def _parse_numbers(name: str, value: Any) -> FloatArray:
    """Convert numbers that a user passes to an array of any shape."""
    try:
        if value is not None:
            return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        pass
    raise InputError(name, reprlib.repr(value), "It must be a number or an array of numbers.")


@dataclass(frozen=True, eq=False, kw_only=True)
class MetricDistribution(ABC):
    """Distribution of one metric on these rows, given the labels, the scores and the label model.

    Methods follow `scipy.stats`: `mean std var median cdf sf ppf interval support rvs`. Only missing labels are random;
    if no label is missing, the distribution is a single point.

    Attributes
    ----------
    method : str
        How the distribution was computed: "exact", "near exact", "monte carlo", "gaussian".
    undefined : float
        Probability that the metric is 0/0. Its value there follows `zero_division`, unless `given_defined`.
    given_defined : bool
        Whether the distribution is conditional on the metric being defined. If not, a 0/0 counts with the value of
        `zero_division`.
    bounds : Interval
        Smallest and largest value over all label assignments to the missing rows, whatever their probability.
    bounds_sharp : bool
        Whether label assignments attain both bounds; if not, the bounds enclose the distribution.
    by_draw : DrawMoments or None
        Mean and variance of the metric at each posterior draw, if there are several draws.
    noise : float
        Rounding error of the metric's values in addition to their own last digits (`Functional.noise`).
    confidence_level : float
        Probability of `interval()`: that of the evaluation.
    """

    method: str = "exact"
    undefined: float = 0.0
    given_defined: bool = False
    bounds: Interval = field(default=Interval(-np.inf, np.inf))
    bounds_sharp: bool = True
    by_draw: DrawMoments | None = None
    noise: float = 0.0
    confidence_level: float = 0.9
    # Computes the proven error bound; None if nothing is proven, or nothing has to be.
    certify: Callable[[Any], Certificate | None] | None = field(default=None, repr=False)

    @abstractmethod
    def _cdf(self, t: FloatArray, *, left: bool) -> FloatArray:
        """Return P(metric <= t), or P(metric < t) if `left`; `t` is one-dimensional."""

    @abstractmethod
    def _ppf(self, q: FloatArray) -> FloatArray:
        """Return the smallest value at which the cdf reaches q; `q` is one-dimensional, inside [0, 1]."""

    @abstractmethod
    def _moments(self) -> tuple[float, float]:
        """Return mean and variance."""

    @cached_property
    def _mean_and_variance(self) -> tuple[float, float]:
        return self._moments()

    def __getattr__(self, name: str) -> Any:
        return answer_attribute(self, name, DISTRIBUTION_METHODS, DISTRIBUTION_ATTRIBUTES)

    def mean(self) -> float:
        """Return the expected value: the point estimate to report."""
        return self._mean_and_variance[0]

    def var(self) -> float:
        """Return the variance due to the missing labels."""
        return self._mean_and_variance[1]

    def std(self) -> float:
        """Return the standard deviation due to the missing labels."""
        return float(np.sqrt(self.var()))

    def median(self) -> float:
        """Return the median: the metric exceeds it with probability one half at most."""
        return float(self.ppf(0.5))

    def cdf(self, t: Numbers) -> Any:
        """Return the probability that the metric is at most `t`."""
        return self._apply(_parse_numbers("t", t), lambda x: self._cdf(x, left=False))

    def sf(self, t: Numbers) -> Any:
        """Return the probability that the metric is above `t`."""
        return self._apply(_parse_numbers("t", t), lambda x: 1.0 - self._cdf(x, left=False))

    def pit(self, t: Numbers) -> Any:
        """Return the PIT (F(t-) + F(t)) / 2 of a realized value; it is uniform if the distribution is right.

        The paper's PIT is F(t), the `cdf`, which is larger at an atom.
        """
        values = _parse_numbers("t", t)
        if values.size > 2 and set(np.unique(values)) == {0.0, 1.0} and self._excludes_zero_and_one():
            raise InputError(
                "t",
                f"{values.size:,} values, each of them 0 or 1, look like labels",
                "",
                "Pass the value of the metric under these labels. dm.verify tests an evaluation against labels that "
                "arrived later.",
            )
        return self._apply(values, lambda x: 0.5 * (self._cdf(x, left=True) + self._cdf(x, left=False)))

    def _excludes_zero_and_one(self) -> bool:
        """Return whether the metric can be neither 0 nor 1."""
        below_one, at_zero = self._cdf(np.ones(1), left=True), self._cdf(np.zeros(1), left=False)
        return bool(below_one[0] > at_zero[0])

    def ppf(self, q: Numbers) -> Any:
        """Return the quantile: the smallest value t such that P(metric <= t) is at least `q`.

        The quantiles of 0 and 1 are the bounds, `support()`.
        """
        levels = _parse_numbers("q", q)
        if bool(np.any(~((levels >= 0.0) & (levels <= 1.0)))):
            bad = levels.ravel()[np.argmax(~((levels.ravel() >= 0.0) & (levels.ravel() <= 1.0)))]
            raise InputError("q", f"{bad:g}", "Quantile levels must lie in [0, 1].")
        return self._apply(levels, self._quantiles)

    def _quantiles(self, q: FloatArray) -> FloatArray:
        """Return quantiles, clipped to the bounds; the quantiles of 0 and 1 are the bounds."""
        low, high = self.bounds
        return np.where(q <= 0.0, low, np.where(q >= 1.0, high, np.clip(self._ppf(q), low, high)))

    @cached_property
    def certificate(self) -> Certificate | None:
        """Proven error bound of this distribution for these data; None if nothing is proven."""
        if self.undefined >= 1.0:
            return None
        if self.certify is not None:
            return self.certify(self)
        return exact_certificate(self._cdf) if self.method == "exact" else None

    def at_level(self, confidence_level: float) -> Self:
        """Return the distribution with another probability of `interval()`."""
        is_same = confidence_level == self.confidence_level
        return self if is_same else replace(self, confidence_level=check_level(confidence_level))

    def interval(self, confidence_level: float | None = None, *, certified: bool = False) -> Interval:
        """Return the equal-tailed interval that contains the metric with at least this probability.

        By default it is the confidence level of the evaluation.

        `certified`: widen the interval by the certificate. It then contains at least this probability of the exact
        distribution, even if this distribution is an approximation.
        """
        level = self.confidence_level if confidence_level is None else check_level(confidence_level)
        tail = 0.5 * (1.0 - level)
        if certified and self.undefined < 1.0:
            proof = self.certificate
            if proof is None:
                raise MethodError(
                    "certified",
                    f"no error bound is proven for {self.method!r}",
                    "",
                    "Use one of the methods 'auto', 'exact', 'monte_carlo' and 'gaussian'.",
                )
            if proof.known != 0.0:
                return Interval(*proof.inside(*self.bounds, level))
        return Interval(*(float(end) for end in self.ppf([tail, 1.0 - tail])))

    def support(self) -> Interval:
        """Return the bounds over all label assignments to the missing rows (attained if `bounds_sharp`)."""
        return self.bounds

    @checked
    def rvs(self, size: int | tuple[int, ...] | None = None, rng: RngLike = None) -> Any:
        """Draw values from the distribution; `rng` is a seed or a numpy Generator."""
        uniform = np.random.default_rng(rng).random(size)
        return self._apply(uniform, self._quantiles)

    def to_dict(self, confidence_level: float | None = None) -> dict[str, Any]:
        """Return plain numbers at full precision, ready for JSON; undefined values are None."""
        level = self.confidence_level if confidence_level is None else confidence_level
        low, high = self.interval(level)
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
            "confidence_level": level,
            "bounds_sharp": self.bounds_sharp,
            "undefined": self.undefined,
            "ks_bound": self._quick_ks_bound(),
        }

    def _quick_ks_bound(self) -> float | None:
        """Return the proven bound if it is fast to compute: the bound of a near exact distribution takes a search."""
        if self.method == "near exact" or self.certificate is None:
            return None
        return self.certificate.ks_bound

    def __copy__(self) -> Self:
        return self  # distributions are immutable

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        new = object.__new__(type(self))
        memo[id(self)] = new
        new.__dict__.update(deepcopy(made_of(self), memo))
        return new

    def __getstate__(self) -> dict[str, Any]:
        # Store the result of `certify`, because its arguments may contain functions that cannot be pickled.
        state = made_of(self)
        proof = self.certificate if self.certify is not None else None
        if proof is not None:
            facts = proof.ks_bound, proof.theorem, proof.assumptions, proof.confidence
            state["certify"] = partial(kept_certificate, *facts)
        return state

    def __repr__(self) -> str:
        low, high = self.interval()
        level = level_text(self.confidence_level)
        return (
            f"<{type(self).__name__}: mean {self.mean():.4g}, {level} interval {low:.4g} to {high:.4g}, {self.method}>"
        )

    def _repr_html_(self) -> str:
        low, high = self.interval()
        decimals = decimals_for(high - low)
        rows = [
            ["mean", number_text(self.mean(), decimals)],
            [f"{level_text(self.confidence_level)} interval", interval_text((low, high), decimals)],
            ["standard deviation", f"{self.std():.3g}"],
            ["possible", interval_text(self.support(), 3)],
            ["method", self.method],
        ]
        rows += [["0/0", f"{self.undefined:.3g}"]] if self.undefined > 0.0 else []
        return html_table(["distribution of a metric", ""], rows)

    @staticmethod
    def _apply(x: Any, function: Any) -> Any:
        """Apply a function of one-dimensional arrays to a number or an array of any shape."""
        array = np.asarray(x, dtype=np.float64)
        result = np.where(np.isnan(array.ravel()), np.nan, function(array.ravel())).reshape(array.shape)
        return float(result) if array.ndim == 0 else result


def mass_below(distribution: MetricDistribution, t: float) -> float:
    """Return P(X < t): twice the PIT minus P(X <= t)."""
    return 2.0 * float(distribution.pit(t)) - float(distribution.cdf(t))


def chance_of_target(distribution: MetricDistribution, target: float, better: str) -> float:
    """Return the probability that a metric meets a target: at least, or at most if lower is better; NaN if undefined.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.distributions import chance_of_target
    >>> ev = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]), metrics="accuracy")
    >>> round(chance_of_target(ev["accuracy"], 0.75, "higher"), 9), chance_of_target(ev["accuracy"], 0.75, "lower")
    (0.6, 1.0)
    """
    return float(distribution.cdf(target)) if better == "lower" else 1.0 - mass_below(distribution, target)
