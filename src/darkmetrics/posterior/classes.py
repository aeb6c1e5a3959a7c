"""ClassPosterior: weighted draws of the probabilities of the missing labels of several classes."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.posterior.draws import Posterior


class ClassPosterior(ABC):
    """Weighted draws of the probabilities of each class, for each missing cell of a `ClassSet`.

    Probabilities of a draw are computed when they are asked for, because all draws of a large set fill the memory.

    Attributes
    ----------
    weight : array (n_draws,)
        Probability of each draw; sums to one.
    mechanism : array of int (n_draws,), optional
        Which of the `mechanisms` a draw belongs to.
    mechanisms : tuple of str
        Names of the mechanisms that are mixed.
    assumption : str
        What is assumed about the missing labels, in sentences.

    Examples
    --------
    >>> import numpy as np
    >>> from darkmetrics.posterior.classes import FixedClassPosterior
    >>> posterior = FixedClassPosterior(np.array([[0.7, 0.2, 0.1]]))
    >>> posterior.of_event(np.array([[True, False, True]])).probability.round(9).tolist()
    [[0.8]]
    """

    weight: FloatArray
    mechanism: IntArray | None = None
    mechanisms: tuple[str, ...] = ()
    shift: FloatArray | None = None
    assumption: str = ""
    # Missing labels are independent given the draw.
    independent: ClassVar[bool] = True

    def __len__(self) -> int:
        return self.weight.size

    @abstractmethod
    def of_draw(self, draw: int) -> FloatArray:
        """Return the probabilities of one draw (n_missing_cells x K); rows sum to one."""

    def of_event(self, members: BoolArray) -> Posterior:
        """Return the posterior of the event that the label is one of the members of its cell.

        Parameters
        ----------
        members : array of bool (n_missing_cells, K)
            Labels of each missing cell that belong to the event.
        """
        return self.of_events([members])[0]

    def of_events(self, events: Sequence[BoolArray]) -> list[Posterior]:
        """Return the posteriors of several events; every draw is computed once."""
        tables = [np.empty((len(self), len(members))) for members in events]
        for draw in range(len(self)):
            probability = self.of_draw(draw)
            for table, members in zip(tables, events, strict=True):
                np.einsum("ik,ik->i", probability, members, out=table[draw])
        return [
            Posterior(self.weight, np.minimum(table, 1.0), None, self.shift, self.mechanism, self.mechanisms)
            for table in tables
        ]

    def of_mechanism(self, mechanism: int) -> "ClassPosterior | None":
        """Return the draws of one of the `mechanisms`; None if it has no weight."""
        return None

    @property
    def given(self) -> bool:
        """Whether the probabilities are taken as known."""
        return len(self) == 1


class FixedClassPosterior(ClassPosterior):
    """Probabilities that are taken as known: a single draw.

    Parameters
    ----------
    probability : array (n_missing_cells, K)
        Probabilities; rows sum to one.
    """

    def __init__(self, probability: FloatArray) -> None:
        self.weight, self.probability = np.ones(1), probability

    def of_draw(self, draw: int) -> FloatArray:
        return self.probability
