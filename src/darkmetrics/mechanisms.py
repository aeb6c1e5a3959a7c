"""Mechanisms: ways in which labels go missing, to hide known labels in a backtest."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.exceptions import InputError


class Masked(NamedTuple):
    """Which labels to hide, and what had to be given up on the way; empty if nothing."""

    missing: BoolArray
    note: str = ""


class Mechanism(ABC):
    """A way in which labels go missing; `missingness` is the word for it in `evaluate`."""

    missingness: str

    @abstractmethod
    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        """Choose the labels to hide."""


@dataclass(frozen=True)
class MCAR(Mechanism):
    """Labels go missing by pure chance (missing completely at random): exactly `fraction` of the rows, rounded.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> hidden = dm.mechanisms.MCAR(0.3).mask(np.arange(10) > 4, np.arange(10) / 10, np.random.default_rng(0))
    >>> int(hidden.missing.sum())
    3
    """

    fraction: float
    missingness = "random"

    def __post_init__(self) -> None:
        _check_share(self.fraction, "fraction")

    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        missing = np.zeros(y.size, dtype=np.bool_)
        missing[rng.choice(y.size, _rows(self.fraction, y.size), replace=False)] = True
        return Masked(missing)


@dataclass(frozen=True)
class ByScore(Mechanism):
    """Labels go missing by score: the chance rises or falls with the rank of the score.

    The log odds of going missing are `constant + slope * log odds of the rank`, the constant such that `fraction` of
    the rows is expected to go missing. A negative slope hides low scores, as where only suspects are looked at.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> score = np.arange(1000) / 1000
    >>> hidden = dm.mechanisms.ByScore(0.3).mask(score > 0.8, score, np.random.default_rng(0)).missing
    >>> bool(hidden[:100].mean() > 3 * hidden[-100:].mean())
    True
    """

    fraction: float
    slope: float = -1.0
    missingness = "by_score"

    def __post_init__(self) -> None:
        _check_share(self.fraction, "fraction")
        _check_number(self.slope, "slope")

    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        # Tied scores have one rank: labels may go missing by score, not by the order of the rows.
        ordered = np.sort(score)
        low, high = (np.searchsorted(ordered, score, side=side) for side in ("left", "right"))
        steep = self.slope * logit(0.5 * (low + high) / score.size)
        constant = brentq(lambda c: float(np.mean(expit(c + steep))) - self.fraction, -1e3, 1e3)
        return Masked(rng.random(y.size) < expit(constant + steep))


@dataclass(frozen=True)
class ByLabel(Mechanism):
    """Labels go missing because of their value: the share `prevalence` of the missing rows is positive, exactly.

    Which positives and which negatives they are is pure chance. Where a class has too few rows, as many rows as
    possible go missing, at exactly that prevalence, and the result says so.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> y = np.arange(100) < 20
    >>> hidden = dm.mechanisms.ByLabel(0.3, prevalence=0.8).mask(y, np.zeros(100), np.random.default_rng(0))
    >>> int(hidden.missing.sum()), hidden.note
    (25, '25 instead of 30 rows are hidden: of 20 positives and 80 negatives no more make a prevalence of 0.8.')
    """

    fraction: float
    prevalence: float
    missingness = "by_label"

    def __post_init__(self) -> None:
        _check_share(self.fraction, "fraction")
        _check_share(self.prevalence, "prevalence")

    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        wanted = _rows(self.fraction, y.size)
        ratio = Fraction(self.prevalence).limit_denominator(100)
        positive, negative = ratio.numerator, ratio.denominator - ratio.numerator
        classes = np.flatnonzero(y), np.flatnonzero(~y)
        batches = min(wanted // (positive + negative), classes[0].size // positive, classes[1].size // negative)
        counts = batches * positive, batches * negative
        if batches == 0:
            counts = self._nearest(wanted, classes[0].size, classes[1].size)
        missing = np.zeros(y.size, dtype=np.bool_)
        for rows, count in zip(classes, counts, strict=True):
            missing[rng.choice(rows, count, replace=False)] = True
        hidden = sum(counts)
        of = f"{classes[0].size:,} positives and {classes[1].size:,} negatives"
        if batches == 0:
            share = f"{counts[0] / hidden:.3g} instead of {self.prevalence:g}"
            return Masked(missing, f"{hidden:,} rows are hidden at a prevalence of {share}: {of} allow no better.")
        if hidden > wanted - (positive + negative):
            return Masked(missing)
        no_more = f"of {of} no more make a prevalence of {self.prevalence:g}"
        return Masked(missing, f"{hidden:,} instead of {wanted:,} rows are hidden: {no_more}.")

    def _nearest(self, wanted: int, positives: int, negatives: int) -> tuple[int, int]:
        """As many rows as there are with nearly the prevalence, where none have exactly that."""
        rows = min(wanted, int(positives / self.prevalence), int(negatives / (1.0 - self.prevalence)))
        count = min(positives, round(self.prevalence * rows))
        if rows == 0 or rows - count > negatives:
            raise InputError(
                f"mechanism: a prevalence of {self.prevalence:g} cannot be had by hiding {wanted} of {positives} "
                f"positives and {negatives} negatives."
            )
        return count, rows - count


def mechanism_from(mechanism: Any) -> Mechanism:
    """The mechanism that a record stands for, or a fraction to hide by pure chance."""
    if isinstance(mechanism, Mechanism):
        return mechanism
    if isinstance(mechanism, (int, float)) and not isinstance(mechanism, bool):
        return MCAR(float(mechanism))
    raise InputError(
        "mechanism: expected a fraction, or one of mechanisms.MCAR(0.3), ByScore(0.3) and "
        f"ByLabel(0.3, prevalence=0.5), got {mechanism!r}."
    )


def _rows(fraction: float, n: int) -> int:
    return max(1, round(fraction * n))


def _check_number(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not np.isfinite(value):
        raise InputError(f"{name}: {value!r}. It must be a finite number.")


def _check_share(value: Any, name: str) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0.0 < value < 1.0:
        raise InputError(f"{name}: {value!r}. It must lie strictly between 0 and 1.")
