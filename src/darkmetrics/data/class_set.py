"""ClassSet: scores, predictions and partly missing labels of several classes, as a table of counted cells."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.age_grid import Ages, read_ages
from darkmetrics._kernels.arrays import AnyArray, BoolArray, CountArray, FloatArray, IntArray
from darkmetrics._text import counted, prints_plainly
from darkmetrics.data.cells import Cells, Totals, count_type
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.tables import html_lines


@dataclass(frozen=True, eq=False)
class ClassCells:
    """Identical rows of several classes, counted by label; columns of scores and labels are in the order of classes.

    Attributes
    ----------
    score : array (n_cells, K)
        Score of each class.
    decision : array of int (n_cells,)
        Index of the predicted class.
    labeled : array of int (n_cells, K)
        Rows with each label.
    missing : array of int (n_cells,)
        Rows without a label.
    weight : array (n_cells,), optional
        Weight of a row in metrics.
    probability : array (n_cells, K), optional
        Passed probabilities of the missing labels; NaN if none were passed for the rows of a cell.
    propensity : array (n_cells,), optional
        Probability that such a row has a label.
    age : array of int (n_cells,), optional
        Number that holds the bins of age and delay, as in `Cells`.
    """

    score: FloatArray
    decision: IntArray
    labeled: CountArray
    missing: CountArray
    weight: FloatArray | None = None
    probability: FloatArray | None = None
    propensity: FloatArray | None = None
    age: IntArray | None = None

    def __post_init__(self) -> None:
        for name, array in self.arrays().items():
            if array is not None:
                view = array.view()
                view.setflags(write=False)
                object.__setattr__(self, name, view)

    def __reduce__(self) -> tuple[type["ClassCells"], tuple[Any, ...]]:
        return ClassCells, tuple(self.arrays().values())  # copies and pickles are read-only too

    def arrays(self) -> dict[str, Any]:
        """Return the columns of the table by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def take(self, cells: IntArray) -> "ClassCells":
        """Return some of the cells, in this order."""
        columns: dict[str, Any] = {name: None if a is None else a[cells] for name, a in self.arrays().items()}
        return ClassCells(**columns)

    @cached_property
    def n_labeled(self) -> IntArray:
        """Labeled rows of each cell."""
        return np.asarray(self.labeled.sum(axis=1, dtype=np.int64))

    @cached_property
    def ages(self) -> Ages | None:
        """Bins of the ages and delays of each cell; None if rows have no ages."""
        return None if self.age is None else read_ages(self.age)

    @property
    def total(self) -> IntArray:
        """Rows of each cell, whatever their label."""
        return np.asarray(self.n_labeled + self.missing)

    def mass(self, counts: CountArray) -> FloatArray:
        """Return the weight of that many rows of each cell."""
        if self.weight is None:
            return counts.astype(np.float64)
        return counts * (self.weight if counts.ndim == 1 else self.weight[:, None])


@prints_plainly
class ClassSet(Totals):
    """What metrics of several classes need to know about a test set whose labels are partly missing.

    It is for K classes what `EvaluationSet` is for two. Scores are finite; they need not sum to one.

    Examples
    --------
    >>> import numpy as np
    >>> from darkmetrics.data.class_set import ClassSet, group_class_rows
    >>> score = np.array([[0.7, 0.2, 0.1], [0.1, 0.6, 0.3]])
    >>> data = ClassSet(("cat", "dog", "fish"), group_class_rows(score, np.array([0, 1]), np.array([0, -1])))
    >>> print(data)
    2 rows: 1 labeled (1 cat, 0 dog, 0 fish), 1 missing (50.0%)
    """

    cells: ClassCells  # type: ignore[assignment]  # several columns of scores and labels, with the same totals

    def __init__(self, classes: Sequence[Any], cells: ClassCells, *, decided_by: str = "argmax") -> None:
        self.classes, self.cells, self.decided_by, self.score_bins = tuple(classes), cells, decided_by, None

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @cached_property
    def label_counts(self) -> IntArray:
        """Labeled rows of each class."""
        return np.asarray(self.cells.labeled.sum(axis=0, dtype=np.int64))

    @cached_property
    def _counts(self) -> dict[str, int]:
        return {"labeled": int(self.label_counts.sum()), "missing": int(self.cells.missing.sum(dtype=np.int64))}

    @property
    def n_labeled(self) -> int:
        """Number of rows with a label."""
        return self._counts["labeled"]

    def counts(self) -> dict[str, int]:
        """Return rows, labeled and missing rows, and labels of each class, as plain numbers."""
        by_class = {str(name): int(n) for name, n in zip(self.classes, self.label_counts, strict=True)}
        return {"rows": self.n_rows, "labeled": self.n_labeled, "missing": self.n_missing, **by_class}

    def against_rest(self, k: int) -> tuple[EvaluationSet, IntArray]:
        """Return the rows with class `k` as positive, sorted by its score, and the cell behind each binary cell."""
        order = np.argsort(self.cells.score[:, k], kind="stable")
        positives = self.cells.labeled[:, k]
        counts = (positives, self.cells.n_labeled - positives)
        return self._binary(self.cells.score[:, k], self.cells.decision == k, counts, order), order

    def event_set(self, members: BoolArray, decision: BoolArray) -> EvaluationSet:
        """Return the rows with the event "the label is one of the members" as positive; cells stay in their order.

        Parameters
        ----------
        members : array of bool (n_cells, K)
            Labels of each cell that count as positive.
        decision : array of bool (n_cells,)
            Cells that are predicted positive.
        """
        positives = (self.cells.labeled * members).sum(axis=1)
        counts = (positives, self.cells.n_labeled - positives)
        order = np.arange(decision.size)
        return self._binary(np.zeros(decision.size), decision, counts, order)

    def _binary(
        self, score: FloatArray, decision: BoolArray, counts: tuple[CountArray, CountArray], order: IntArray
    ) -> EvaluationSet:
        dtype, weight = count_type(self.n_rows), self.cells.weight
        positives, negatives, missing = (count[order].astype(dtype) for count in (*counts, self.cells.missing))
        cells = Cells(
            score[order] + 0.0,
            decision[order],
            positives,
            negatives,
            missing,
            None if weight is None else weight[order],
        )
        return EvaluationSet.from_cells(cells)

    def labeled(self) -> "ClassSet":
        """Return the labeled rows alone."""
        kept = np.flatnonzero(self.cells.n_labeled)
        return self.with_cells(replace(self.cells.take(kept), missing=np.zeros(kept.size, dtype=np.int64)))

    def with_cells(self, cells: ClassCells) -> "ClassSet":
        """Return a set of the same classes with other cells."""
        return ClassSet(self.classes, cells, decided_by=self.decided_by)

    def __repr__(self) -> str:
        return (
            f"ClassSet({counted(self.n_rows, 'row')}, {self.n_missing:,} missing, {self.n_classes} classes, "
            f"{counted(len(self.cells.decision), 'cell')})"
        )

    def __str__(self) -> str:
        n, m = self.n_rows, self.n_missing
        return (
            f"{counted(n, 'row')}: {self.n_labeled:,} labeled ({describe_labels(self)}), {m:,} missing "
            f"({m / max(n, 1):.1%})"
        )

    def _repr_html_(self) -> str:
        return html_lines([str(self)])


# Classes that a sentence names; of more classes it has the counts of the rarest and the most frequent one.
_NAMED = 6


def describe_labels(data: ClassSet) -> str:
    """Return the labels of each class in words."""
    counts = data.label_counts
    if data.n_classes <= _NAMED:
        return ", ".join(f"{n:,} {name}" for name, n in zip(data.classes, counts, strict=True))
    low, high = int(counts.argmin()), int(counts.argmax())
    return (
        f"{data.n_classes} classes, from {counts[low]:,} {data.classes[low]} to {counts[high]:,} {data.classes[high]}"
    )


def group_class_rows(score: FloatArray, decision: IntArray, label: IntArray, **columns: AnyArray | None) -> ClassCells:
    """Count identical rows.

    Parameters
    ----------
    score : array (n, K)
        Scores.
    decision : array of int (n,)
        Predicted classes.
    label : array of int (n,)
        Index of the class of each row; -1 if the label is missing.
    **columns : arrays (n,) or (n, K)
        Further columns of `ClassCells`.
    """
    given = {name: column for name, column in columns.items() if column is not None}
    first, cell = _find_identical([score, decision, *given.values()])
    size, n_classes = first.size, score.shape[1]
    dtype, is_labeled = count_type(label.size), label >= 0
    labeled = np.bincount(cell[is_labeled] * n_classes + label[is_labeled], minlength=size * n_classes)
    return ClassCells(
        score=score[first],
        decision=decision[first],
        labeled=labeled.reshape(size, n_classes).astype(dtype),
        missing=np.bincount(cell[~is_labeled], minlength=size).astype(dtype),
        **{name: column[first] for name, column in given.items()},
    )


def _find_identical(columns: Sequence[AnyArray]) -> tuple[IntArray, IntArray]:
    """Return the first row of each kind, and the kind of each row, by a hash of the bits of all columns."""
    n = len(columns[0])
    key, factor = np.zeros(n, dtype=np.uint64), np.uint64(0x9E3779B97F4A7C15)
    for column in columns:
        table = column.reshape(n, -1)
        for values in table.T:
            number = values + 0.0 if values.dtype.kind == "f" else values  # -0.0 and 0.0 are one score
            key = (key ^ np.ascontiguousarray(number).view(np.uint64)) * factor
            key ^= key >> np.uint64(29)
    _, first, kind = np.unique(key, return_index=True, return_inverse=True)
    return first, kind
