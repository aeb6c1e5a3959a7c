"""The statement of a model: parameters with priors, decisions with outcomes, and cells of rows with histories.

The observation of a row is compatible with one or more *histories*: complete accounts of the row, such as "label 1, not
reviewed" or "label 0, arrived in week 3". A history is a list of *outcomes of decisions*. The row contributes

    log( sum over compatible histories h of exp( l_h ) )

to the log likelihood, where l_h is the sum of the log probabilities of the outcomes in h. A decision has K outcomes,
whose probabilities are a softmax of linear functions of the parameters (logistic for K = 2).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from darkmetrics._kernels.arrays import FloatArray, IntArray

# Indices of parameters, and their columns in the linear functions of decisions.
Term: TypeAlias = tuple[IntArray, FloatArray]
# A label, and outcomes: a number for all cells or an array with a number per cell, where -1 stands for no outcome.
History: TypeAlias = tuple[int, Sequence[IntArray | int]]


@dataclass(frozen=True, eq=False)
class DecisionBlock:
    """Decisions declared together, with K outcomes each; outcome 0 has the log weight 0.

    Attributes
    ----------
    outcomes : array (n_decisions, K)
        Numbers of the outcomes.
    indices : array (width,)
        Parameters that the log weights depend on.
    columns : array (K - 1, n_decisions, width)
        Their coefficients in the log weights of outcomes 1 to K - 1.
    offset : array (K - 1, n_decisions)
        Constants of the log weights.
    """

    outcomes: IntArray
    indices: IntArray
    columns: FloatArray
    offset: FloatArray


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of identical rows, all with the same number of histories.

    Attributes
    ----------
    count : array (n_cells,)
        Number of rows.
    labels : tuple of int
        Label of each history.
    outcomes : array (n_outcomes_per_history, n_histories, n_cells)
        Numbers of the outcomes of each history, filled up with -1.
    """

    count: FloatArray
    labels: tuple[int, ...]
    outcomes: IntArray

    def select(self, cells: IntArray | slice) -> "Cells":
        """Return a selection of the cells."""
        return Cells(self.count[cells], self.labels, self.outcomes[:, :, cells])


class Model:
    """Parameters with priors, decisions with outcomes, and cells of rows with histories.

    Attributes
    ----------
    log_constant : float
        Added to the log evidence.

    Examples
    --------
    The label of 10 rows is missing. Positive and negative rows go without a label at different rates.

    >>> import numpy as np
    >>> from darkmetrics.posterior import Model, fit_model
    >>> model = Model()
    >>> label = model.add_decisions((model.add_parameters(0.0, 1.5), np.ones((1, 1))))
    >>> is_missing = model.add_decisions((model.add_parameters(np.zeros(2), 1.5), np.eye(2)))  # by label
    >>> for y, count in ((0, 40.0), (1, 20.0)):
    ...     cells = model.add_cells(count, [(y, [label[:, y], is_missing[y, 0]])])
    >>> missing = model.add_cells(10.0, [(y, [label[:, y], is_missing[y, 1]]) for y in (0, 1)])
    >>> fitted = fit_model(model)
    >>> print(f"{(fitted.weight @ fitted.label_probability(missing))[0]:.2f}")
    0.46
    """

    def __init__(self) -> None:
        self.means: list[FloatArray] = []
        self.precisions: list[FloatArray] = []
        self.is_cauchy: list[bool] = []
        self.is_nuisance: list[bool] = []
        self.decisions: list[DecisionBlock] = []
        self.cells: list[Cells] = []
        self.n_outcomes = 0
        self.log_constant = 0.0

    @property
    def n_parameters(self) -> int:
        """Number of parameters."""
        return len(self.is_cauchy)

    def add_parameters(
        self,
        mean: ArrayLike = 0.0,
        sd: ArrayLike = 1.0,
        *,
        precision: FloatArray | None = None,
        cauchy: bool = False,
        nuisance: bool = False,
    ) -> IntArray:
        """Add parameters and return their indices.

        Parameters
        ----------
        mean, sd : float or array
            Center and scale of the independent priors.
        precision : array (n, n), optional
            Prior precision matrix, in place of `sd`.
        cauchy : bool
            Whether the priors are Cauchy instead of Gaussian: small values shrink, large values do not.
        nuisance : bool
            Whether the parameters are integrated out at every draw of all others, by a Laplace approximation. Use it
            for many parameters that touch only their own cells, such as a free rate per score bin. Parameters that a
            cell or a decision has in common are integrated out together. Their priors must be independent Gaussians.
        """
        center, scale = np.broadcast_arrays(np.atleast_1d(np.asarray(mean, dtype=np.float64)), np.asarray(sd))
        if precision is None:
            precision = np.diag(np.asarray(scale, dtype=np.float64) ** -2.0)
        first, n = self.n_parameters, len(precision)
        self.means.append(np.broadcast_to(center, n).astype(np.float64))
        self.precisions.append(precision)
        self.is_cauchy += [cauchy] * n
        self.is_nuisance += [nuisance] * n
        return np.arange(first, first + n)

    def add_decisions(self, *terms: Term, offset: ArrayLike = 0.0) -> IntArray:
        """Add n decisions and return the numbers of their outcomes, of shape (n, K).

        Parameters
        ----------
        *terms : pairs (indices, columns)
            The log weights of the outcomes are `offset` plus the sum of `columns @ parameters[indices]`. Columns of
            shape (n, width) define binary decisions: the log odds of outcome 1. Columns of shape (n, K, width) define
            the log weights of K outcomes.
        offset : float, array (n,) or array (n, K)
            Constants of the log odds or of the log weights.
        """
        constant = np.asarray(offset, dtype=np.float64)
        shapes = [columns.shape[:1] if columns.ndim == 2 else columns.shape[:2] for _, columns in terms]
        n = max(shape[0] for shape in [constant.shape or (1,), *shapes])
        n_outcomes = max(shape[1] if len(shape) == 2 else 2 for shape in [constant.shape, *shapes])
        constant = np.broadcast_to(constant, n)[:, None] if constant.ndim < 2 else constant[:, 1:] - constant[:, :1]
        indices, columns = _join_terms(terms, n, n_outcomes)
        outcomes = self.n_outcomes + np.arange(n_outcomes * n).reshape(n_outcomes, n).T
        self.n_outcomes += n_outcomes * n
        self.decisions.append(DecisionBlock(outcomes, indices, columns, np.ascontiguousarray(constant.T)))
        return outcomes

    def add_cells(self, count: ArrayLike, histories: Sequence[History]) -> Cells:
        """Add cells of identical rows with their compatible histories, and return them.

        Cells with count 0 do not enter the likelihood, and decisions of such cells alone cost nothing. Add them to
        predict labels.

        Parameters
        ----------
        count : float or array (n_cells,)
            Number of rows, not necessarily an integer.
        histories : sequence of (label, outcomes)
            Outcomes of all decisions of a history. List the decisions in the same order in all histories.
        """
        counts = np.asarray(count, dtype=np.float64)
        size = max([counts.size, *(np.size(o) for _, outcomes in histories for o in outcomes)])
        length = max(len(outcomes) for _, outcomes in histories)
        table = np.full((length, len(histories), size), -1, dtype=np.int64)
        for h, (_, outcomes) in enumerate(histories):
            for j, outcome in enumerate(outcomes):
                table[j, h] = outcome
        self.cells.append(Cells(np.broadcast_to(counts, size), tuple(label for label, _ in histories), table))
        return self.cells[-1]


def _join_terms(terms: Sequence[Term], n: int, n_outcomes: int) -> Term:
    """Join terms to indices without duplicates and columns of shape (K - 1, n, width)."""
    if not terms:
        return np.zeros(0, dtype=np.int64), np.zeros((n_outcomes - 1, n, 0))
    blocks = [c[None] if c.ndim == 2 else np.moveaxis(c[:, 1:] - c[:, :1], 1, 0) for _, c in terms]
    indices = np.concatenate([i for i, _ in terms])
    columns = np.concatenate([np.broadcast_to(block, (len(block), n, block.shape[2])) for block in blocks], axis=2)
    distinct, target = np.unique(indices, return_inverse=True)
    if distinct.size < indices.size:
        columns, indices = columns @ np.eye(distinct.size)[target], distinct
    return indices, np.ascontiguousarray(columns, dtype=np.float64)
