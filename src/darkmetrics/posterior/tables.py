"""Models as arrays: linear forms of decisions, histories as sums of these forms, and log sums over histories.

A decision has the forms `norm = log(sum_k exp(eta_k))` and, for each outcome k but 0, `eta_k`, which is linear in the
parameters. The log probability of outcome k is `eta_k - norm`, with `eta_0 = 0`. The log probability of a history is
a sum of forms with signs. Where all histories of a cell contain an outcome of the same decision, its norm is
common to them and moves in front of the logarithm of their sum.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy  # its modules are loaded when they are first used

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.posterior.model import Cells, DecisionBlock, Model

SparseMatrix: TypeAlias = Any
Matrix: TypeAlias = Any  # a dense array or a sparse matrix

# exp of larger numbers overflows.
_MAX_EXPONENT = 700.0
# Matrices of at most this many elements are dense: sparse ones take longer to build than to use.
_MAX_DENSE = 4096


def softplus(x: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return log(1 + exp(x)) to full precision."""
    if x.max(initial=0.0) > _MAX_EXPONENT:
        return np.add(np.maximum(x, 0.0), np.log1p(np.exp(-np.abs(x))), out=out)
    result = np.exp(x, out=out)
    return np.asarray(np.log1p(result, out=result))


def log_sum_exp(x: FloatArray) -> FloatArray:
    """Return the log of the sum of exponentials over the first axis."""
    if len(x) == 2:
        return np.asarray(x[0] + softplus(x[1] - x[0]))
    peak = x.max(axis=0)
    return np.asarray(peak + np.log(np.exp(x - peak).sum(axis=0)))


def log_total(x: FloatArray) -> float:
    """Return the log of the sum of the exponentials of all numbers."""
    peak = float(x.max())
    return peak + float(np.log(np.exp(x - peak).sum())) if np.isfinite(peak) else peak


@dataclass(frozen=True, eq=False)
class FormBlock:
    """Forms of decisions with K outcomes; `norm` and `eta` are their rows among all forms."""

    indices: IntArray
    columns: FloatArray  # K - 1 x n_decisions x width
    offset: FloatArray  # K - 1 x n_decisions
    norm: slice
    eta: slice

    @property
    def shape(self) -> tuple[int, int]:
        """K - 1 and the number of decisions."""
        return self.columns.shape[0], self.columns.shape[1]

    @property
    def flat_columns(self) -> FloatArray:
        """Columns of all linear forms, one row each."""
        k, n, width = self.columns.shape
        return self.columns.reshape(k * n, width)

    def compute_norm(self, eta: FloatArray, out: FloatArray) -> None:
        """Compute the norms, of shape (n_decisions, ...)."""
        if len(eta) == 1:
            softplus(eta[0], out=out)
        else:
            out[:] = log_sum_exp(np.concatenate([np.zeros((1, *eta.shape[1:])), eta]))


class FormTable:
    """Forms of the decisions that contain certain outcomes.

    Attributes
    ----------
    blocks : list of FormBlock
        Blocks of decisions. Those that depend on nuisance parameters are last.
    size : int
        Number of forms.
    eta_row, norm_row : array (n_outcomes of the model,)
        Forms of each outcome; -1 for outcome 0, which has no linear form, and for outcomes that are not used.
    """

    def __init__(self, model: Model, used: BoolArray) -> None:
        self.blocks: list[FormBlock] = []
        self.size = 0
        self.eta_row = np.full(model.n_outcomes, -1, dtype=np.int64)
        self.norm_row = self.eta_row.copy()
        self.is_nuisance = np.array(model.is_nuisance, dtype=np.bool_)
        main = [block for block in model.decisions if not self.is_nuisance[block.indices].any()]
        nuisance = [block for block in model.decisions if self.is_nuisance[block.indices].any()]
        for block in main:
            self._append(block, used)
        self.first_nuisance_block, self.first_nuisance_form = len(self.blocks), self.size
        for block in nuisance:
            self._append(block, used)

    def _append(self, block: DecisionBlock, used: BoolArray) -> None:
        selected = used[block.outcomes].any(axis=1)
        if not selected.any():
            return
        outcomes, columns, offset = block.outcomes, block.columns, block.offset
        if not selected.all():
            outcomes, offset = outcomes[selected], np.ascontiguousarray(offset[:, selected])
            columns = np.ascontiguousarray(columns[:, selected])
        n, k = outcomes.shape
        norm = slice(self.size, self.size + n)
        eta = slice(norm.stop, norm.stop + (k - 1) * n)
        self.norm_row[outcomes] = np.arange(norm.start, norm.stop)[:, None]
        self.eta_row[outcomes[:, 1:]] = np.arange(eta.start, eta.stop).reshape(k - 1, n).T
        self.blocks.append(FormBlock(block.indices, columns, offset, norm, eta))
        self.size = eta.stop

    def evaluate(self, theta: FloatArray, needed: BoolArray | None = None) -> FloatArray:
        """Return all forms at each column of parameters (n_forms x n_draws).

        Norms of blocks without a `needed` form are not computed.
        """
        forms = np.empty((self.size, theta.shape[1]))
        for block in self.blocks:
            eta = forms[block.eta].reshape(*block.shape, -1)  # a view
            np.matmul(block.columns, theta[block.indices], out=eta)
            eta += block.offset[:, :, None]
            if needed is None or needed[block.norm].any():
                block.compute_norm(eta, forms[block.norm])
        return forms

    def list_differences(self, outcomes: IntArray) -> tuple[list["DifferenceTerm"], BoolArray]:
        """Return the forms that the log weights of histories consist of, relative to the first history of their cell.

        Parameters
        ----------
        outcomes : array (n_outcomes_per_history, n_histories, n_cells)
            Outcomes of the histories.

        Returns
        -------
        list of DifferenceTerm
            Forms, of each outcome of the histories. Norms that are common to a history and the first one cancel.
        array of bool (n_forms,)
            Forms in the terms.
        """
        terms, is_listed = [], outcomes >= 0
        eta, norm = (np.where(is_listed, row[outcomes], -1) for row in (self.eta_row, self.norm_row))
        needed = np.zeros(self.size, dtype=np.bool_)
        for j in range(len(outcomes)):
            for history in range(1, outcomes.shape[1]):
                pairs = [(eta[j, history], 1.0), (eta[j, 0], -1.0)]
                if (norm[j, history] != norm[j, 0]).any():
                    pairs += [(norm[j, history], -1.0), (norm[j, 0], 1.0)]
                for forms, sign in pairs:
                    cells: IntArray | slice = slice(None) if forms.min(initial=0) >= 0 else np.flatnonzero(forms >= 0)
                    if forms[cells].size:
                        needed[forms[cells]] = True
                        terms.append(DifferenceTerm(history - 1, cells, forms[cells], sign))
        return terms, needed

    def list_entries(self, outcomes: IntArray, skip_norms: Sequence[int] = ()) -> "Entries":
        """Return the forms that the columns of a table of outcomes consist of.

        Parameters
        ----------
        outcomes : array (n_outcomes_per_history, n)
            Outcomes of n histories.
        skip_norms : sequence of int
            Rows of `outcomes` whose norms are left out.
        """
        rows, histories, signs = [], [], []
        for j, column in enumerate(outcomes):
            listed = np.flatnonzero(column >= 0)
            pairs = [(self.eta_row[column[listed]], 1.0)]
            if j not in skip_norms:
                pairs.append((self.norm_row[column[listed]], -1.0))
            for form, sign in pairs:
                has_form = form >= 0
                rows.append(form[has_form])
                histories.append(listed[has_form])
                signs.append(np.full(int(has_form.sum()), sign))
        return Entries(np.concatenate(rows), np.concatenate(histories), np.concatenate(signs))


class DifferenceTerm(NamedTuple):
    """Forms in the log weight of a history of cells, with their sign; `history` is counted from the second."""

    history: int
    cells: IntArray | slice
    forms: IntArray
    sign: float


class Entries(NamedTuple):
    """Entries of a sparse matrix: forms, histories, and signs."""

    form: IntArray
    history: IntArray
    sign: FloatArray


@dataclass(frozen=True, eq=False)
class HistoryGroup:
    """Cells with K histories, whose rows in the history matrix are ordered by history, then by cell."""

    rows: slice
    n_histories: int
    count: FloatArray

    def split(self, values: FloatArray) -> FloatArray:
        """Return values of histories of all groups as (K, n_cells, ...) for this group."""
        return values[self.rows].reshape(self.n_histories, self.count.size, *values.shape[1:])


class HistoryTable:
    """Histories of cells as a matrix (n_histories x n_forms), and norms common to the histories of a cell.

    Attributes
    ----------
    common : array (n_forms,)
        How often each form counts for rows of all cells, whatever their history.
    matrix : array or sparse matrix (n_histories, n_forms)
        Remaining forms of each history.
    groups : list of HistoryGroup
        Cells with equal numbers of histories.
    """

    def __init__(self, forms: FormTable, blocks: Sequence[Cells], power: float = 1.0) -> None:
        self.common = np.zeros(forms.size)
        self.groups: list[HistoryGroup] = []
        entries, start = [], 0
        for cells in blocks:
            length, k, n = cells.outcomes.shape
            count = power * cells.count
            skip = range(length) if k == 1 else _aligned(forms, cells.outcomes)
            for j in skip:
                self._add_common(forms.norm_row, cells.outcomes[j, 0], -count)
                if k == 1:
                    self._add_common(forms.eta_row, cells.outcomes[j, 0], count)
            if k == 1:
                continue
            form, history, sign = forms.list_entries(cells.outcomes.reshape(length, k * n), skip)
            entries.append(Entries(form, history + start, sign))
            self.groups.append(HistoryGroup(slice(start, start + k * n), k, count))
            start += k * n
        self.n_histories = start
        self.matrix = self._build_matrix(entries, forms.size)
        self.transposed = self.matrix.T if isinstance(self.matrix, np.ndarray) else self.matrix.T.tocsr()

    def _add_common(self, row: IntArray, outcomes: IntArray, count: FloatArray) -> None:
        form = np.where(outcomes >= 0, row[outcomes], -1)
        self.common += np.bincount(form[form >= 0], count[form >= 0], self.common.size)

    def _build_matrix(self, entries: list[Entries], n_forms: int) -> Matrix:
        shape = self.n_histories, n_forms
        if not entries:
            return np.zeros(shape)
        form, history, sign = (np.concatenate(values) for values in zip(*entries, strict=True))
        if self.n_histories * n_forms <= _MAX_DENSE:
            flat = np.bincount(history * n_forms + form, sign, self.n_histories * n_forms)
            return np.asarray(flat.reshape(shape), dtype=np.float64)
        return scipy.sparse.csr_matrix((sign, (history, form)), shape)


def _aligned(forms: FormTable, outcomes: IntArray) -> list[int]:
    """Return the positions at which all histories of every cell contain an outcome of the same decision."""
    norm = np.where(outcomes >= 0, forms.norm_row[outcomes], -1)
    is_aligned = (norm == norm[:, :1]).all(axis=(1, 2))
    return [int(j) for j in np.flatnonzero(is_aligned)]


def compile_cells(model: Model, blocks: Sequence[Cells], power: float = 1.0) -> tuple[FormTable, HistoryTable]:
    """Return the forms and the histories of cells as arrays."""
    used = np.zeros(model.n_outcomes + 1, dtype=np.bool_)
    for cells in blocks:
        used[cells.outcomes] = True
    forms = FormTable(model, used[:-1])
    return forms, HistoryTable(forms, blocks, power)
