"""EvaluationSet: scores, decisions and partly missing labels, as a table of cells that prints a census of itself."""

from dataclasses import replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.cells import COUNTS, Cells, group_rows
from darkmetrics.columns import (
    check_finite,
    check_length,
    given_decisions,
    read_labels,
    row_probabilities,
    row_weights,
    threshold_number,
)
from darkmetrics.exceptions import InputError


class EvaluationSet:
    """What a metric needs to know about a test set whose labels are partly missing.

    Rows are not kept: those that share score and decision (and weight and probability, where given) form a *cell*
    with the counts of positive, negative and missing labels. Row order never matters, and two sets merge with `+`.

    Parameters
    ----------
    y_true : array-like
        Labels. Missing ones are NaN, None, `pd.NA`, `NaT`, a Polars or Arrow null, or masked.
    y_score : array-like of float
        Scores of the positive class: finite, higher means more likely positive; they need not be probabilities.
    threshold : float
        The decision is positive when score >= threshold, both taken as 64-bit floats; finite.
    y_pred : array-like, optional
        Decisions, if they do not follow from a threshold: the same two classes as the labels, or 0/1.
    pos_label : object
        The label that counts as positive.
    missing_label : object, optional
        A value that also means "missing", for example -1. Nothing is assumed unless you say so.
    sample_weight : array-like of float, optional
        Weight of each row in every metric; not negative.
    probability : array-like of float, optional
        Chance that the row is positive, if known: one per row, or one per missing row in row order.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> print(dm.EvaluationSet([1, 0, None, 1, None], [0.9, 0.2, 0.7, 0.6, 0.7]))
    5 rows: 3 labelled (2 positive, 1 negative), 2 missing (40.0%)
    4 positive decisions (2 of them missing their label), 1 negative (0)
    """

    def __init__(
        self,
        y_true: Any,
        y_score: Any,
        *,
        threshold: float = 0.5,
        y_pred: Any = None,
        pos_label: Any = 1,
        missing_label: Any = None,
        sample_weight: Any = None,
        probability: Any = None,
    ) -> None:
        score = frames.number_column(y_score, "y_score")
        labels, missing = frames.label_column(y_true, "y_true")
        check_length(labels, "y_true", score.size)
        if score.size == 0:
            raise InputError("y_true: no rows. An evaluation set needs at least one.")
        check_finite(score, "y_score", "Scores must be finite; drop or fill those rows.")
        positive, missing, classes = read_labels(labels, missing, pos_label, missing_label, "y_true")
        cut = threshold_number(threshold)
        decision = score >= cut
        if y_pred is not None:
            if threshold != 0.5:
                raise InputError(f"threshold: {threshold!r}, but y_pred already gives the decisions. Give one of them.")
            decision = given_decisions(y_pred, score.size, pos_label, classes)
        weight = row_weights(sample_weight, score.size)
        chance = row_probabilities(probability, missing)
        self.threshold = None if y_pred is not None else cut
        self.pos_label = pos_label
        rows = Cells(score, decision, positive, ~positive & ~missing, missing, weight, chance)
        self.cells = group_rows(rows, split=y_pred is not None)

    @classmethod
    def from_cells(cls, cells: Cells, *, threshold: float | None = None, pos_label: Any = 1) -> Self:
        """A set from counted cells; the caller vouches for them."""
        new = cls.__new__(cls)
        new.threshold, new.pos_label, new.cells = threshold, pos_label, cells
        return new

    def __setattr__(self, name: str, value: object) -> None:
        if "cells" in self.__dict__:
            raise AttributeError(f"an EvaluationSet does not change; {name!r} cannot be set.")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an EvaluationSet does not change; {name!r} cannot be deleted.")

    def __add__(self, other: object) -> Self:
        """Both sets as one, as if their rows had come together."""
        if not isinstance(other, EvaluationSet):
            return NotImplemented
        if self.threshold != other.threshold:
            how = ["y_pred" if s.threshold is None else f"threshold {s.threshold:g}" for s in (self, other)]
            raise InputError(f"threshold: cannot merge a set decided by {how[0]} with one decided by {how[1]}.")
        if self.pos_label != other.pos_label:
            raise InputError(
                f"pos_label: cannot merge sets with {self.pos_label!r} and {other.pos_label!r} as positive."
            )
        a, b = self.cells, other.cells
        weight = probability = None
        if a.weight is not None or b.weight is not None:
            weight = np.concatenate([_or_fill(s.weight, s, 1.0) for s in (a, b)])
        if a.probability is not None or b.probability is not None:
            for side in (self, other):
                if side.cells.probability is None and side.n_missing:
                    raise InputError(
                        f"probability: one set has it, the other has {side.n_missing:,} missing labels without it. "
                        "Give it for both or for neither."
                    )
            probability = np.concatenate([_or_fill(s.probability, s, np.nan) for s in (a, b)])
        both = {f: np.concatenate([getattr(a, f), getattr(b, f)]) for f in ("score", "decision", *COUNTS)}
        merged = group_rows(Cells(**both, weight=weight, probability=probability), split=True)
        return self.from_cells(merged, threshold=self.threshold, pos_label=self.pos_label)

    def __radd__(self, other: object) -> Self:
        """Lets `sum` start from its 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def __len__(self) -> int:
        return self.n_rows

    @cached_property
    def _counts(self) -> dict[str, int]:
        c = self.cells
        return {
            "positives": int(c.positives.sum()),
            "negatives": int(c.negatives.sum()),
            "missing": int(c.missing.sum()),
            "decided": int(c.total[c.decision].sum()),
            "decided_missing": int(c.missing[c.decision].sum()),
        }

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return self.n_labelled + self.n_missing

    @property
    def n_labelled(self) -> int:
        """Number of rows with a label."""
        return self._counts["positives"] + self._counts["negatives"]

    @property
    def n_missing(self) -> int:
        """Number of rows without a label."""
        return self._counts["missing"]

    @cached_property
    def missing_cells(self) -> IntArray:
        """Indices of the cells that hold missing rows; probabilities of labels are aligned with these.

        Rows of weight zero are left out: no metric depends on their labels.
        """
        weight = self.cells.weight
        return np.flatnonzero(self.cells.missing if weight is None else self.cells.missing * weight)

    @cached_property
    def dust(self) -> float:
        """A weight so small that it can only be the rounding error of a sum; zero when every row counts once."""
        weight = self.cells.weight
        if weight is None:
            return 0.0
        return min(1e-12 * float(self.cells.mass(self.cells.total).sum()), 0.5 * float(weight[weight > 0.0].min()))

    @cached_property
    def missing_counts(self) -> IntArray:
        """Missing rows in each of the `missing_cells`."""
        counts: IntArray = self.cells.missing[self.missing_cells].astype(np.int64)
        return counts

    @cached_property
    def missing_by_decision(self) -> tuple[IntArray, IntArray]:
        """Positions within `missing_cells` of the cells decided positive, and of those decided negative."""
        decided = self.cells.decision[self.missing_cells]
        return np.flatnonzero(decided), np.flatnonzero(~decided)

    @cached_property
    def by_decision(self) -> dict[str, tuple[float, float]]:
        """Weight of the positive, negative and missing rows that are decided positive, and decided negative."""
        cells, yes = self.cells, self.cells.decision
        sums = {}
        for name in COUNTS:
            mass = cells.mass(getattr(cells, name))
            inside = float(mass @ yes)
            sums[name] = (inside, float(mass.sum()) - inside if cells.weight is None else float(mass @ ~yes))
        return sums

    @property
    def unequal_weights(self) -> bool:
        """Whether missing rows count differently: laws are then sums over lattices and no longer over counts."""
        weight = self.missing_weight
        return weight is not None and bool(weight.size) and bool(np.ptp(weight) > 0.0)

    @property
    def missing_weight(self) -> FloatArray | None:
        """Weight of a row in each of the `missing_cells`; None when every row counts once."""
        return None if self.cells.weight is None else self.cells.weight[self.missing_cells]

    def with_threshold(self, threshold: float) -> "EvaluationSet":
        """The same rows decided at another threshold; a set whose decisions were given has none to move."""
        if self.threshold is None:
            raise InputError("threshold: the decisions of this set were given (y_pred), and no threshold moves them.")
        cut = threshold_number(threshold)
        cells = replace(self.cells, decision=self.cells.score >= cut)
        return EvaluationSet.from_cells(cells, threshold=cut, pos_label=self.pos_label)

    def labelled(self) -> "EvaluationSet":
        """The labelled rows alone: what is left when unlabelled rows are dropped."""
        cells = self.cells
        kept = np.flatnonzero(cells.total > cells.missing)
        columns: dict[str, Any] = {name: None if a is None else a[kept] for name, a in cells.arrays().items()}
        cells = replace(Cells(**columns), missing=np.zeros(kept.size, dtype=np.int64))
        return EvaluationSet.from_cells(cells, threshold=self.threshold, pos_label=self.pos_label)

    def unlabelled(self) -> "EvaluationSet":
        """The same rows with every label taken away."""
        none = np.zeros_like(self.cells.missing)
        cells = replace(self.cells, positives=none, negatives=none, missing=self.cells.total)
        return EvaluationSet.from_cells(cells, threshold=self.threshold, pos_label=self.pos_label)

    def census(self) -> dict[str, int]:
        """Rows, labelled, positive, negative and missing, as plain numbers."""
        counts = self._counts
        return {
            "rows": self.n_rows,
            "labelled": self.n_labelled,
            "positive": counts["positives"],
            "negative": counts["negatives"],
            "missing": counts["missing"],
        }

    def __repr__(self) -> str:
        return f"EvaluationSet({self.n_rows:,} rows, {self.n_missing:,} missing, {self.cells.score.size:,} cells)"

    def __str__(self) -> str:
        counts = self._counts
        n, m, yes, yes_missing = self.n_rows, self.n_missing, counts["decided"], counts["decided_missing"]
        return (
            f"{n:,} rows: {self.n_labelled:,} labelled ({counts['positives']:,} positive, "
            f"{counts['negatives']:,} negative), {m:,} missing ({m / max(n, 1):.1%})\n"
            f"{yes:,} positive decisions ({yes_missing:,} of them missing their label), "
            f"{n - yes:,} negative ({m - yes_missing:,})"
        )


def _or_fill(values: FloatArray | None, cells: Cells, fill: float) -> FloatArray:
    return np.full(cells.score.size, fill) if values is None else values


_DEFAULTS = {"threshold": 0.5, "pos_label": 1}


def evaluation_set_from(y_true: Any, y_score: Any, **settings: Any) -> EvaluationSet:
    """The set that the data of a public function stand for: arrays, or a ready set that nothing is added to."""
    if not isinstance(y_true, EvaluationSet):
        if y_score is None:
            raise InputError("y_score: missing. Give the scores, or an EvaluationSet as the only data.")
        return EvaluationSet(y_true, y_score, **settings)
    # Only a plain value can be a default; columns of any engine compare in ways of their own.
    changed = [
        key
        for key, value in settings.items()
        if value is not None and not (isinstance(value, (int, float)) and value == _DEFAULTS.get(key))
    ]
    if y_score is not None or changed:
        extra = "y_score" if y_score is not None else changed[0]
        raise InputError(f"{extra}: an EvaluationSet already fixes it; give it when building the set.")
    if y_true.n_rows == 0:
        raise InputError("y_true: the EvaluationSet has no rows. An evaluation needs at least one.")
    return y_true
