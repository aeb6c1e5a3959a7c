"""Mechanisms: ways in which labels go missing, to hide known labels in a backtest."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.constraints import check_fields, check_value, is_number
from darkmetrics.exceptions import InputError

# A prevalence is met exactly up to the rounding of a 32-bit float, in which it may have been given.
_EXACT = 1e-7
# Rows that may stay visible for the sake of an exact prevalence: fewer than ten, or up to a hundred if that is less
# than 5% of what was asked for.
_FEW_ROWS, _MANY_ROWS, _SMALL_SHARE = 10, 100, 0.05


class Masked(NamedTuple):
    """Which labels to hide, and what had to be given up on the way; empty if nothing."""

    missing: BoolArray
    note: str = ""


class Mask(ABC):
    """A way in which labels go missing; `missingness` is the word for it in `evaluate`.

    For one of your own write `mask`, and set `missingness` if the label model "stated" shall be told of it.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> class LastOnes(dm.masks.Mask):
    ...     missingness = "random"
    ...
    ...     def mask(self, y, score, rng):
    ...         return dm.masks.Masked(np.arange(y.size) >= 0.8 * y.size)
    >>> str(LastOnes())
    'LastOnes()'
    """

    missingness: str

    def __post_init__(self) -> None:
        check_fields(self)

    @abstractmethod
    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        """Choose the labels to hide."""

    def __str__(self) -> str:
        settings = getattr(self, "__dict__", {})
        shown = (f"{name}={value:g}" if is_number(value) else f"{name}={value!r}" for name, value in settings.items())
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True)
class MCAR(Mask):
    """Labels go missing by pure chance (missing completely at random): exactly `fraction` of the rows, rounded.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> hidden = dm.masks.MCAR(0.3).mask(np.arange(10) > 4, np.arange(10) / 10, np.random.default_rng(0))
    >>> int(hidden.missing.sum())
    3
    """

    fraction: float
    missingness = "random"

    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        missing = np.zeros(y.size, dtype=np.bool_)
        missing[rng.choice(y.size, _rows(self.fraction, y.size), replace=False)] = True
        return Masked(missing)


@dataclass(frozen=True)
class ByScore(Mask):
    """Labels go missing by score: the chance rises or falls with the rank of the score.

    The log odds of going missing are `constant + slope * log odds of the rank`, the constant such that `fraction` of
    the rows is expected to go missing. A negative slope hides low scores, as where only suspects are looked at.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> score = np.arange(1000) / 1000
    >>> hidden = dm.masks.ByScore(0.3).mask(score > 0.8, score, np.random.default_rng(0)).missing
    >>> bool(hidden[:100].mean() > 3 * hidden[-100:].mean())
    True
    """

    fraction: float
    slope: float = -1.0
    missingness = "by_score"

    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        from scipy.optimize import brentq

        # Tied scores have one rank: labels may go missing by score, not by the order of the rows.
        ordered = np.sort(score)
        low, high = (np.searchsorted(ordered, score, side=side) for side in ("left", "right"))
        steep = self.slope * logit(0.5 * (low + high) / score.size)
        # With these constants no row, and every row, has at least the chance asked for; 1 is for rounding.
        least, most = logit(self.fraction) - steep.max() - 1.0, logit(self.fraction) - steep.min() + 1.0
        constant = brentq(lambda c: float(np.mean(expit(c + steep))) - self.fraction, least, most, maxiter=1000)
        return Masked(rng.random(y.size) < expit(constant + steep))


@dataclass(frozen=True)
class ByLabel(Mask):
    """Labels go missing because of their value: the share `prevalence` of the missing rows is positive.

    Which positives and which negatives they are is pure chance. Where a class has too few rows, as many rows as
    possible go missing. The prevalence is met exactly if a few rows less make that possible (fewer than 10, or than 5%
    of those asked for), else to the nearest row; the result says where rows or prevalence differ from what was asked.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> y = np.arange(100) < 20
    >>> hidden = dm.masks.ByLabel(0.3, prevalence=0.8).mask(y, np.zeros(100), np.random.default_rng(0))
    >>> int(hidden.missing.sum()), hidden.note
    (25, '25 instead of 30 rows are hidden: of 20 positives and 80 negatives no more make a prevalence of 0.8.')
    """

    fraction: float
    prevalence: float
    missingness = "by_label"

    def mask(self, y: BoolArray, score: FloatArray, rng: np.random.Generator) -> Masked:
        classes = np.flatnonzero(y), np.flatnonzero(~y)
        wanted, sizes = _rows(self.fraction, y.size), (classes[0].size, classes[1].size)
        most = self._most_rows(wanted, *sizes)
        rows = self._exact_rows(most, wanted) or most
        positives = round(float(self.prevalence) * rows)
        missing = np.zeros(y.size, dtype=np.bool_)
        for of_class, count in zip(classes, (positives, rows - positives), strict=True):
            missing[rng.choice(of_class, count, replace=False)] = True
        return Masked(missing, self._note(wanted, most, rows, f"{positives / rows:g}", sizes))

    def _most_rows(self, wanted: int, positives: int, negatives: int) -> int:
        """As many rows as the classes allow at this prevalence, to the nearest row."""
        # What rounding takes from a quotient that is whole must not cost a row.
        most = int(min(wanted, positives / self.prevalence + 1e-9, negatives / (1.0 - self.prevalence) + 1e-9))
        if most == 0:
            raise InputError(
                "mask",
                f"a prevalence of {self.prevalence:g} is impossible if {wanted} of {positives} positives and "
                f"{negatives} negatives are hidden",
            )
        return most

    def _exact_rows(self, most: int, wanted: int) -> int | None:
        """The most rows of which exactly the prevalence can be positive, unless that costs too many of them."""
        reach = max(_FEW_ROWS, min(_MANY_ROWS + 1, int(np.ceil(_SMALL_SHARE * wanted))))
        rows = np.arange(most, max(0, most - reach), -1)
        exact = rows[np.abs(np.round(self.prevalence * rows) / rows - self.prevalence) < _EXACT]
        return int(exact[0]) if exact.size else None

    def _note(self, wanted: int, most: int, rows: int, prevalence: str, sizes: tuple[int, int]) -> str:
        of = f"of {sizes[0]:,} positives and {sizes[1]:,} negatives"
        fewer, asked = most < wanted or wanted - rows >= _FEW_ROWS, f"{self.prevalence:g}"
        if not fewer and prevalence == asked:
            return ""
        note = f"{rows:,} instead of {wanted:,} rows" if fewer else f"{rows:,} {'row' if rows == 1 else 'rows'}"
        note += f" {'is' if rows == 1 else 'are'} hidden"
        if prevalence == asked:
            return f"{note}: {of} no more make a prevalence of {asked}."
        why = f"{of} no more come nearer" if fewer else "no number of rows a little below makes it exact"
        return f"{note} at a prevalence of {prevalence} instead of {asked}: {why}."


# How labels are hidden: a mechanism, or the share of rows to hide by chance.
MaskLike: TypeAlias = float | Mask


def mask_from(mask: Any) -> Mask:
    """Return the mechanism that a record stands for, or a fraction to hide by pure chance."""
    check_value("mask", mask)
    if is_number(mask):
        return MCAR(float(mask))
    known: Mask = mask
    return known


def _rows(fraction: float, n: int) -> int:
    return max(1, round(fraction * n))
