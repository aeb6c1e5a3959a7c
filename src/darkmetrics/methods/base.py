"""What every method is: settings with a `law`."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distribution import Discrete, Interval, MetricDistribution
from darkmetrics.exceptions import InputError
from darkmetrics.functional import Functional

T = TypeVar("T")


class Memo:
    """Remembers, within one call, what several metrics share: the law of the positives of a group of rows."""

    def __init__(self) -> None:
        self._kept: dict[tuple[int, ...], tuple[tuple[Any, ...], Any]] = {}

    def get(self, owners: tuple[Any, ...], make: Callable[[], T]) -> T:
        """The value that belongs to these very objects, made on first use."""
        key = tuple(id(owner) for owner in owners)
        if key not in self._kept:
            # The owners are kept too: an id is only unique while its object lives.
            self._kept[key] = (owners, make())
        value: T = self._kept[key][1]
        return value


class Method(ABC):
    """Settings of a way to find the law of a functional."""

    name: ClassVar[str]

    @abstractmethod
    def law(self, functional: Functional, p: FloatArray, *, rng: np.random.Generator, memo: Memo) -> MetricDistribution:
        """The law of the functional when missing rows of cell i are positive with chance `p[i]`, independently."""


def about(functional: Functional, method: str) -> dict[str, Any]:
    """What a law says of itself besides its numbers: how it was found, and the bounds it cannot pass."""
    low, high, sharp = functional.extremes
    return {"method": method, "bounds": Interval(low, high), "bounds_sharp": sharp}


def point_mass(functional: Functional, p: FloatArray) -> MetricDistribution | None:
    """The law when nothing is random: no missing row, or only chances of 0 and 1."""
    if np.any((p > 0.0) & (p < 1.0)):
        return None
    value = functional.values((functional.missing * (p >= 1.0))[None, :].astype(np.int64))
    return Discrete.from_atoms(value, np.ones(1), functional.fill, **about(functional, "exact"))


def check_n_resamples(n_resamples: Any) -> int:
    """The number of random labelings or resamples, checked."""
    if isinstance(n_resamples, bool) or not isinstance(n_resamples, (int, np.integer)) or n_resamples < 1:
        raise InputError(f"n_resamples: {n_resamples!r}. It must be a whole number of at least 1.")
    return int(n_resamples)
