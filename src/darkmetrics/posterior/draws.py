"""Posterior nodes: weighted sets of probabilities of the missing labels (architecture, third idea)."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import MethodError
from darkmetrics.storing import made_of

# Rows of a cell that are drawn one by one: a binomial number takes about as long as so many.
MOST_SINGLE = 32


@dataclass(frozen=True, eq=False)
class Posterior:
    """Weighted sets of probabilities: what a label model believes, as a mixture of cases in which they are known.

    One node means that the probabilities are taken as known. Laws are mixtures over the nodes.

    Given the node, labels are independent. A class of yours may have it otherwise: with `independent = False` and a
    `draw` of its own, Monte Carlo draws from it, and what would need independence refuses.

    Attributes
    ----------
    weight : array (k,)
        Probability of each node; sums to one.
    probability : array (k, columns)
        Chance that a missing row is positive, given the node: a column for the missing cells that share it.
    column : array of int, optional
        The column of each of the set's `missing_cells`; None when every missing cell has its own.
    shift : array (k,), optional
        How far the log odds of the missing rows are moved away from the calibrated ones.
    mechanism : array of int (k,), optional
        Which of the `mechanisms` a node belongs to.
    mechanisms : tuple of str
        Names of the mechanisms mixed.

    Examples
    --------
    >>> import numpy as np
    >>> from darkmetrics.posterior import Posterior
    >>> known = Posterior.single(np.array([0.2, 0.9]))
    >>> len(known), known.probability.shape
    (1, (1, 2))
    >>> unsure = Posterior(np.array([0.5, 0.5]), np.array([[0.2], [0.4]]), column=np.array([0, 0, 0]))
    >>> unsure.of_cells(1).tolist()
    [0.4, 0.4, 0.4]
    """

    weight: FloatArray
    probability: FloatArray
    column: IntArray | None = None
    shift: FloatArray | None = None
    mechanism: IntArray | None = None
    mechanisms: tuple[str, ...] = ()

    # Whether missing labels are independent given the node.
    independent: ClassVar[bool] = True

    __getstate__ = made_of

    @classmethod
    def single(cls, probability: FloatArray) -> "Posterior":
        """Probabilities taken as known, one per missing cell."""
        return cls(np.ones(1), probability[None, :])

    def __len__(self) -> int:
        return self.weight.size

    def of_cells(self, node: int) -> FloatArray:
        """Probabilities of the missing cells at one node."""
        row = self.rows[node]
        return row if self.column is None else row[self.column]

    @cached_property
    def rows(self) -> tuple[FloatArray, ...]:
        """The probabilities of each node, always the same objects."""
        return tuple(self.probability)

    def on(self, column: IntArray) -> "Posterior":
        """Return the same draws for other cells, with one probability per cell; `column` is that of each cell."""
        as_they_are = np.array_equal(column, np.arange(self.probability.shape[1]))
        return replace(self, probability=self.probability if as_they_are else self.probability[:, column], column=None)

    @cached_property
    def on_all_cells(self) -> "Posterior":
        """The same nodes with one probability per missing cell."""
        return self if self.column is None else self.on(self.column)

    def split_columns(self, kind: IntArray) -> tuple["Posterior", IntArray]:
        """Return the same posterior with separate columns for missing cells of different kinds.

        Parameters
        ----------
        kind : array of int
            Kind of each missing cell, from 0.

        Returns
        -------
        Posterior
            Every column has cells of a single kind.
        array of int
            Kind of each column.
        """
        if self.column is None:
            return self, kind
        n_kinds = int(kind.max(initial=0)) + 1
        columns, column = np.unique(self.column * n_kinds + kind, return_inverse=True)
        split = replace(self, probability=self.probability[:, columns // n_kinds], column=column)
        return split, columns % n_kinds

    def shift_log_odds(self, shift: float | FloatArray) -> "Posterior":
        """Return the posterior with the log odds of all missing labels shifted; probabilities of 0 and 1 stay.

        Parameters
        ----------
        shift : float or array
            Added to the log odds: a number for all missing labels, or an array that broadcasts to `probability`, such
            as a number for each column. log(2) doubles the odds.

        Examples
        --------
        >>> import numpy as np
        >>> from darkmetrics.posterior import Posterior
        >>> Posterior.single(np.array([0.2, 0.5, 1.0])).shift_log_odds(np.log(4.0)).probability.round(9).tolist()
        [[0.5, 0.8, 1.0]]
        """
        if not np.any(shift):
            return self
        p = self.probability
        # The odds are multiplied, and divided where they grow, so that no exponential overflows.
        positive, negative = p * np.exp(np.minimum(shift, 0.0)), (1.0 - p) * np.exp(-np.maximum(shift, 0.0))
        total = positive + negative
        return replace(self, probability=np.divide(positive, total, out=p.copy(), where=total > 0.0))

    def draw(
        self,
        node: int,
        missing: IntArray,
        size: int,
        rng: np.random.Generator,
        of_ties: np.random.Generator | None = None,
    ) -> IntArray:
        """Random labelings at a node (size x cells): how many of the missing rows of each cell are positive.

        Rows are drawn one by one, those of a cell of more than 32 as one binomial number, from `of_ties` if given.
        """
        p = self.of_cells(node)
        if missing.max(initial=0) <= 1 and missing.all():
            return (rng.random((size, missing.size)) < p).astype(np.int64)
        tied = missing > MOST_SINGLE
        labelings = np.zeros((size, missing.size), dtype=np.int64)
        few = np.flatnonzero(~tied & (missing > 0))
        if few.size:
            hits = rng.random((size, int(missing[few].sum()))) < np.repeat(p[few], missing[few])
            starts = np.concatenate(([0], np.cumsum(missing[few])[:-1]))
            labelings[:, few] = np.add.reduceat(hits.astype(np.int64), starts, axis=1)
        if tied.any():
            labelings[:, tied] = (of_ties or rng).binomial(missing[tied], p[tied], size=(size, int(tied.sum())))
        return labelings

    def check_independent(self, who: str, remedy: str = "") -> None:
        """Labels are independent given the node, as `who` takes for granted."""
        if not self.independent:
            raise MethodError(
                "method",
                f"{who} missing labels that are independent given their probabilities, and under this mechanism they "
                "are not",
                "",
                remedy.strip(),
            )

    def without_strata(self, data: EvaluationSet) -> tuple[EvaluationSet, "Posterior"]:
        """The set these nodes are for, as metrics see it, and the nodes for its cells.

        Cells that differ in stratum, age and propensity alone are one, unless the nodes tell them apart.
        """
        if not data.cells.kinds() or not self.independent:
            return data, self
        apart = self.probability if self.column is None else self.column[None]
        joined, kept = data.without_strata(np.any(apart[:, 1:] != apart[:, :-1], axis=0))
        return joined, self.on(kept) if self.column is None else replace(self, column=self.column[kept])

    @cached_property
    def used(self) -> BoolArray:
        """Which columns hold a missing cell."""
        if self.column is None:
            return np.ones(self.probability.shape[1], dtype=np.bool_)
        return np.bincount(self.column, minlength=self.probability.shape[1]) > 0

    @property
    def given(self) -> bool:
        """Whether the probabilities are taken as known, and leave something open."""
        return len(self) == 1 and not self.certain

    @cached_property
    def certain(self) -> bool:
        """Whether all nodes name one and the same labeling, with probabilities of 0 and 1 alone."""
        first = self.probability[:1, self.used]
        if np.any((first > 0.0) & (first < 1.0)):  # as it nearly always is, and then the others need not be looked at
            return False
        return bool(np.all(self.probability[:, self.used] == first))


def columns_of(posterior: Posterior) -> IntArray:
    """The column of the probabilities that each missing cell has."""
    return np.arange(posterior.probability.shape[1]) if posterior.column is None else posterior.column
