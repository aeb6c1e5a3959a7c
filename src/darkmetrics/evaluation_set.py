"""EvaluationSet: scores, decisions and partly missing labels, as a table of cells that prints a census of itself."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows that share score, decision, weight and probability, counted by label; sorted by rising score."""

    score: FloatArray
    decision: BoolArray
    positives: Any
    negatives: Any
    missing: Any
    weight: FloatArray | None = None
    probability: FloatArray | None = None

    @property
    def total(self) -> IntArray:
        """Rows per cell, whatever their label."""
        result: IntArray = self.positives + self.negatives + self.missing
        return result

    @cached_property
    def tie_starts(self) -> IntArray | None:
        """Index of the first cell of each distinct score; None when no two cells share a score."""
        new = np.ones(self.score.size, dtype=np.bool_)
        new[1:] = self.score[1:] != self.score[:-1]
        return None if new.all() else np.flatnonzero(new)

    def arrays(self) -> dict[str, Any]:
        """The columns of the table by name."""
        return {column.name: getattr(self, column.name) for column in fields(self)}

    def mass(self, counts: IntArray) -> FloatArray:
        """Weight of that many rows of each cell."""
        return counts.astype(np.float64) if self.weight is None else counts * self.weight


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
        The decision is positive when score >= threshold.
    y_pred : array-like, optional
        Decisions, if they do not follow from a threshold; 0/1 or the same two classes as the labels.
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
        _check_length(labels, "y_true", score.size)
        if score.size == 0:
            raise InputError("y_true: no rows. An evaluation set needs at least one.")
        _check_finite(score, "y_score", "Scores must be finite; drop or fill those rows.")
        if missing_label is not None:
            missing = missing | _equals(labels, missing_label)
        positive = _positives(labels, missing, pos_label, "y_true")
        decision = _decisions(score, threshold, y_pred, pos_label)
        weight = _weights(sample_weight, score.size)
        chance = _probabilities(probability, missing)
        self.threshold = None if y_pred is not None else float(threshold)
        self.pos_label = pos_label
        rows = Cells(score, decision, positive, ~positive & ~missing, missing, weight, chance)
        self.cells = _group(rows, split=y_pred is not None)

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

    def __add__(self, other: object) -> Self:
        """Both sets as one, as if their rows had come together."""
        if not isinstance(other, EvaluationSet):
            return NotImplemented
        if self.threshold != other.threshold:
            raise InputError(f"threshold: cannot merge sets with thresholds {self.threshold} and {other.threshold}.")
        a, b = self.cells, other.cells
        if (a.probability is None) != (b.probability is None):
            raise InputError("probability: one of the two sets has given probabilities and the other has none.")
        weight = None
        if a.weight is not None or b.weight is not None:
            weight = np.concatenate([_or_ones(a), _or_ones(b)])
        probability = None
        if a.probability is not None and b.probability is not None:
            probability = np.concatenate([a.probability, b.probability])
        both = {f: np.concatenate([getattr(a, f), getattr(b, f)]) for f in ("score", "decision", *_COUNTS)}
        merged = _group(Cells(**both, weight=weight, probability=probability), split=True)
        return self.from_cells(merged, threshold=self.threshold, pos_label=self.pos_label)

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
        """Indices of the cells that hold missing rows; probabilities of labels are aligned with these."""
        return np.flatnonzero(self.cells.missing)

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
        for name in _COUNTS:
            mass = cells.mass(getattr(cells, name))
            inside = float(mass @ yes)
            sums[name] = (inside, float(mass.sum()) - inside if cells.weight is None else float(mass @ ~yes))
        return sums

    @property
    def missing_weight(self) -> FloatArray | None:
        """Weight of a row in each of the `missing_cells`; None when every row counts once."""
        return None if self.cells.weight is None else self.cells.weight[self.missing_cells]

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
            f"{counts['negatives']:,} negative), {m:,} missing ({m / n:.1%})\n"
            f"{yes:,} positive decisions ({yes_missing:,} of them missing their label), "
            f"{n - yes:,} negative ({m - yes_missing:,})"
        )


_COUNTS = ("positives", "negatives", "missing")


def _or_ones(cells: Cells) -> FloatArray:
    return np.ones(cells.score.size) if cells.weight is None else cells.weight


def _group(rows: Cells, *, split: bool) -> Cells:
    """Sort by score and add up rows with equal keys; `split` when equal scores may have different decisions."""
    order = np.argsort(rows.score)
    score = rows.score[order] + 0.0  # -0.0 and 0.0 are one score
    tied = bool(np.any(score[1:] == score[:-1]))
    keys: list[AnyArray] = [score]
    if tied:
        other: list[AnyArray] = [key for key in (rows.decision if split else None, rows.weight) if key is not None]
        if rows.probability is not None:
            other.append(np.where(np.isnan(rows.probability), -1.0, rows.probability))
        if other:
            order = np.lexsort([*other, rows.score + 0.0])
            keys = [rows.score[order] + 0.0, *(key[order] for key in other)]
    kept = order
    # Half the memory for counts that cannot overflow: no sum of them exceeds the number of rows.
    many = sum(int(getattr(rows, name).sum(dtype=np.int64)) for name in _COUNTS) >= 2**31
    dtype = np.int64 if many else np.int32
    counts = {name: getattr(rows, name)[order].astype(dtype) for name in _COUNTS}
    if tied:
        new = np.ones(score.size, dtype=np.bool_)
        new[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
        starts = np.flatnonzero(new)
        kept, score = order[starts], score[starts]
        counts = {name: np.add.reduceat(count, starts) for name, count in counts.items()}
    cells = Cells(
        score=score,
        decision=rows.decision[kept],
        **counts,
        weight=None if rows.weight is None else rows.weight[kept],
        probability=None if rows.probability is None else rows.probability[kept],
    )
    for array in cells.arrays().values():
        if array is not None:
            array.setflags(write=False)
    return cells


def _check_length(values: AnyArray, name: str, rows: int) -> None:
    if values.size != rows:
        raise InputError(f"{name}: {values.size:,} values, but y_score has {rows:,}. Both need one per row.")


def _check_finite(values: FloatArray, name: str, advice: str) -> None:
    bad = ~np.isfinite(values)
    if bad.any():
        first = int(np.argmax(bad))
        what = "NaN" if np.isnan(values[first]) else "infinite"
        raise InputError(
            f"{name}: {int(bad.sum()):,} of {values.size:,} values are not finite "
            f"(first: {what} at row {first}). {advice}"
        )


def _equals(labels: AnyArray, value: Any) -> BoolArray:
    """Where the labels equal `value`; text never equals a number."""
    if labels.dtype.kind == "O":
        hits = (item is not None and bool(item == value) for item in _without_gaps(labels))
        return np.fromiter(hits, dtype=np.bool_, count=labels.size)
    if (labels.dtype.kind in "SU") != isinstance(value, (str, bytes)):
        return np.zeros(labels.size, dtype=np.bool_)
    return np.asarray(labels == value, dtype=np.bool_)


def _without_gaps(labels: AnyArray) -> list[Any]:
    _, missing = frames.label_column(labels, "y_true")
    return [None if gap else value for value, gap in zip(labels.tolist(), missing.tolist(), strict=True)]


def _positives(labels: AnyArray, missing: BoolArray, pos_label: Any, name: str) -> BoolArray:
    """Which labels are positive, after checking that there are at most two classes and `pos_label` can be one."""
    if labels.dtype.kind in "fiub":
        one, zero = labels == 1, labels == 0
        if pos_label == 1 and bool(np.all(one | zero | missing)):
            return np.asarray(one & ~missing, dtype=np.bool_)
    classes: list[Any] = []
    for value in np.unique(labels[~missing]).tolist() if labels.dtype.kind != "O" else labels[~missing].tolist():
        if value not in classes:  # 1, 1.0 and True are one class
            classes.append(value)
        if len(classes) > 2:
            break
    shown = ", ".join(repr(c) for c in classes)
    if len(classes) > 2:
        at = int(np.flatnonzero(_equals(labels, classes[2]) & ~missing)[0])
        hint = f" If {-1!r} means missing, say missing_label=-1." if -1 in classes else ""
        raise InputError(
            f"{name}: a third label value {classes[2]!r} at row {at} besides {classes[0]!r} and {classes[1]!r}. "
            f"Labels take two values; the rest must be missing.{hint}"
        )
    if classes and not any(c == pos_label for c in classes):
        binary = all(isinstance(c, (bool, int, float)) and c in (-1, 0, 1) for c in classes) and pos_label == 1
        if len(classes) == 2 or (pos_label == 1 and not binary):
            raise InputError(
                f"{name}: pos_label={pos_label!r} is not among the labels ({shown}). "
                "Say which one is positive with pos_label=."
            )
    return _equals(labels, pos_label) & ~missing


def _decisions(score: FloatArray, threshold: float, y_pred: Any, pos_label: Any) -> BoolArray:
    if y_pred is None:
        try:
            cut = float(threshold)
        except (TypeError, ValueError):
            raise InputError(f"threshold: expected a number, got {threshold!r}.") from None
        if np.isnan(cut):
            raise InputError("threshold: NaN. Scores are compared with the threshold, so it must be a number.")
        return score >= cut
    decisions, gaps = frames.label_column(y_pred, "y_pred")
    _check_length(decisions, "y_pred", score.size)
    if gaps.any():
        raise InputError(f"y_pred: missing at row {int(np.argmax(gaps))}. Every row needs a decision.")
    if decisions.dtype.kind == "b":
        return np.asarray(decisions, dtype=np.bool_)
    return _positives(decisions, gaps, pos_label, "y_pred")


def _weights(sample_weight: Any, rows: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = frames.number_column(sample_weight, "sample_weight")
    _check_length(weight, "sample_weight", rows)
    _check_finite(weight, "sample_weight", "Weights must be finite numbers.")
    if (weight < 0.0).any():
        first = int(np.argmax(weight < 0.0))
        raise InputError(f"sample_weight: {weight[first]:g} at row {first}. Weights must not be negative.")
    if not weight.any():
        raise InputError("sample_weight: the weights sum to zero. At least one row must count.")
    return None if bool(np.all(weight == 1.0)) else weight


def _probabilities(probability: Any, missing: BoolArray) -> FloatArray | None:
    if probability is None:
        return None
    chance = frames.number_column(probability, "probability")
    rows, gaps = missing.size, int(missing.sum())
    if chance.size == gaps and gaps != rows:
        full = np.full(rows, np.nan)
        full[missing] = chance
        chance = full
    elif chance.size != rows:
        raise InputError(
            f"probability: {chance.size:,} values for {rows:,} rows of which {gaps:,} are missing. "
            "Give one per row, or one per missing row."
        )
    with np.errstate(invalid="ignore"):
        bad = np.where(np.isnan(chance), missing, (chance < 0.0) | (chance > 1.0))
    if bad.any():
        first = int(np.argmax(bad))
        what = "NaN on a missing row" if np.isnan(chance[first]) else f"{chance[first]:g}"
        raise InputError(f"probability: {what} at row {first}. Probabilities must lie in [0, 1].")
    return chance
