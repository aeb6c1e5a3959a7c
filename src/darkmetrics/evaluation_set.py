"""EvaluationSet: scores, decisions and partly missing labels, as a table of cells that prints a census of itself."""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics.exceptions import InputError


@dataclass(frozen=True, eq=False)
class Cells:
    """Rows that share score, decision, weight and probability, counted by label; sorted by rising score.

    Arrays are held as read-only views, so that a table does not change by accident.
    """

    score: FloatArray
    decision: BoolArray
    positives: Any
    negatives: Any
    missing: Any
    weight: FloatArray | None = None
    probability: FloatArray | None = None

    def __post_init__(self) -> None:
        for name, array in self.arrays().items():
            if array is not None:
                view = array.view()  # the array itself may be the user's and stays as it is
                view.setflags(write=False)
                object.__setattr__(self, name, view)

    def __reduce__(self) -> tuple[type["Cells"], tuple[Any, ...]]:
        return Cells, tuple(self.arrays().values())  # copies and pickles are read-only too

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
        The decision is positive when score >= threshold, both taken as 64-bit floats.
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
        _check_length(labels, "y_true", score.size)
        if score.size == 0:
            raise InputError("y_true: no rows. An evaluation set needs at least one.")
        _check_finite(score, "y_score", "Scores must be finite; drop or fill those rows.")
        _check_label_values(pos_label, missing_label)
        if missing_label is not None:
            missing = missing | _equals(labels, missing, missing_label)
        positive, classes = _positives(labels, missing, pos_label, "y_true")
        decision = _by_threshold(score, threshold)
        if y_pred is not None:
            if threshold != 0.5:
                raise InputError(f"threshold: {threshold!r}, but y_pred already gives the decisions. Give one of them.")
            decision = _decisions(y_pred, score.size, pos_label, classes)
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

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an EvaluationSet does not change; {name!r} cannot be deleted.")

    def __add__(self, other: object) -> Self:
        """Both sets as one, as if their rows had come together."""
        if not isinstance(other, EvaluationSet):
            return NotImplemented
        if self.threshold != other.threshold:
            how = ["y_pred" if s.threshold is None else f"threshold {s.threshold:g}" for s in (self, other)]
            raise InputError(f"threshold: cannot merge a set decided by {how[0]} with one decided by {how[1]}.")
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
            f"{counts['negatives']:,} negative), {m:,} missing ({m / max(n, 1):.1%})\n"
            f"{yes:,} positive decisions ({yes_missing:,} of them missing their label), "
            f"{n - yes:,} negative ({m - yes_missing:,})"
        )


_COUNTS = ("positives", "negatives", "missing")


def _or_fill(values: FloatArray | None, cells: Cells, fill: float) -> FloatArray:
    return np.full(cells.score.size, fill) if values is None else values


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
    finite = np.isfinite(values)
    if not finite.all():
        bad = values[~finite]
        found = "NaN (first at" if np.isnan(bad).all() else f"not finite (first {_shown(bad[0])} at"
        raise InputError(
            f"{name}: {bad.size:,} of {values.size:,} values {'is' if bad.size == 1 else 'are'} {found} "
            f"row {int(np.argmin(finite))}). {advice}"
        )


def _check_label_values(pos_label: Any, missing_label: Any) -> None:
    for name, value in (("pos_label", pos_label), ("missing_label", missing_label)):
        if frames.is_container(type(value)):
            raise InputError(f"{name}: expected one label value, got {value!r} of type {type(value).__name__}.")
    if frames.is_missing(pos_label):
        raise InputError(f"pos_label: {pos_label!r} means a missing label. Say which label is positive.")
    if not frames.is_missing(missing_label) and bool(pos_label == missing_label):
        raise InputError(f"missing_label: {missing_label!r} is also pos_label. A label cannot be both.")


def _equals(labels: AnyArray, missing: BoolArray, value: Any) -> BoolArray:
    """Where the labels are present and equal `value`; text never equals a number."""
    if frames.is_missing(value):
        return np.zeros(labels.size, dtype=np.bool_)
    if labels.dtype.kind == "O":
        pairs = zip(labels.tolist(), missing.tolist(), strict=True)
        return np.fromiter((not gap and bool(item == value) for item, gap in pairs), dtype=np.bool_, count=labels.size)
    if (labels.dtype.kind in "SU") != isinstance(value, (str, bytes)):
        return np.zeros(labels.size, dtype=np.bool_)
    try:
        return np.asarray(labels == value, dtype=np.bool_) & ~missing
    except OverflowError:  # a whole number beyond every float equals none of them
        return np.zeros(labels.size, dtype=np.bool_)


def _classes(labels: AnyArray, missing: BoolArray) -> list[Any]:
    """The different labels in the order of the rows, at most three; 1, 1.0 and True are one."""
    present = labels[~missing]
    if labels.dtype.kind != "O":
        _, first = np.unique(present, return_index=True)
        present = present[np.sort(first)]
    classes: list[Any] = []
    for value in present.tolist():
        if value not in classes:
            classes.append(value)
            if len(classes) > 2:
                break
    return classes


def _positives(labels: AnyArray, missing: BoolArray, pos_label: Any, name: str) -> tuple[BoolArray, list[Any]]:
    """Which labels are positive, and the classes there are: at most two, of which `pos_label` can be one."""
    if labels.dtype.kind in "fiub" and pos_label == 1:
        one = labels == 1
        if bool(np.all(one | (labels == 0) | missing)):
            return np.asarray(one & ~missing, dtype=np.bool_), [0, 1]
    classes = _classes(labels, missing)
    if len(classes) > 2:
        _refuse_third(labels, missing, classes, pos_label, name)
    if classes and pos_label not in classes:
        # One class alone may well be the negative one, unless nobody has said which one is positive.
        unsaid = pos_label == 1 and not all(c in (-1, 0) for c in classes)
        if len(classes) == 2 or unsaid:
            shown = " and ".join(_shown(c) for c in classes)
            raise InputError(
                f"{name}: pos_label={pos_label!r} is not among the labels ({shown}). "
                "Say which one is positive with pos_label=."
            )
    return _equals(labels, missing, pos_label), classes


def _refuse_third(labels: AnyArray, missing: BoolArray, classes: list[Any], pos_label: Any, name: str) -> NoReturn:
    first, second, third = (_shown(c) for c in classes)
    at = int(np.argmax(_equals(labels, missing, classes[2])))
    rule = "Decisions take two values."
    if name == "y_true":
        rule = "Labels take two values; the rest must be missing."
        # Whole numbers and words are often codes; of a measured value nobody says "this one means missing".
        codes = [c for c in classes if c not in (0, 1, "0", "1", pos_label) and (isinstance(c, str) or _is_whole(c))]
        if codes:
            code = _shown(next((c for c in codes if c == -1 or str(c).lower() in _GAP_WORDS), codes[-1]))
            rule += f" If {code} means missing, say missing_label={code}."
    raise InputError(f"{name}: a third value {third} at row {at} besides {first} and {second}. {rule}")


_GAP_WORDS = ("", "-1", "?", "<na>", "n/a", "na", "nan", "nat", "none", "null", "missing", "unknown")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _shown(value: Any) -> str:
    """A value as a user would write it: 1 and not 1.0, because nulls turn whole numbers into floats on the way here."""
    if isinstance(value, (float, np.floating)):
        return "NaN" if np.isnan(value) else f"{value:.17g}" if _is_whole(float(value)) else f"{value:g}"
    return repr(value)


def _by_threshold(score: FloatArray, threshold: Any) -> BoolArray:
    try:
        if isinstance(threshold, (str, bytes)) or getattr(threshold, "ndim", 0) != 0:
            raise TypeError
        cut = float(threshold)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"threshold: expected a number, got {threshold!r}.") from None
    if np.isnan(cut):
        raise InputError("threshold: NaN. Scores are compared with the threshold, so it must be a number.")
    return score >= cut


def _decisions(y_pred: Any, rows: int, pos_label: Any, classes: list[Any]) -> BoolArray:
    """Which rows are decided positive; `classes` are those of the labels."""
    decisions, gaps = frames.label_column(y_pred, "y_pred")
    _check_length(decisions, "y_pred", rows)
    if gaps.any():
        raise InputError(f"y_pred: missing at row {int(np.argmax(gaps))}. Every row needs a decision.")
    found = _classes(decisions, gaps)
    # 0/1 are no and yes where they cannot be meant as classes; False and True also where the classes are 1 and 2.
    as_answers = decisions.dtype.kind == "b" or not any(c in (0, 1) for c in classes)
    if as_answers and pos_label not in (0, 1) and all(value in (0, 1) for value in found):
        pos_label, classes = 1, []
    positive, found = _positives(decisions, gaps, pos_label, "y_pred")
    known = [pos_label, *(c for c in classes if c != pos_label)]
    if pos_label == 1:
        known += [c for c in (0, -1) if c not in known]  # beside 1, both are in use for negative
    stranger = next((c for c in found if c not in known), None)
    if stranger is not None and len(known) > 1:
        at = int(np.argmax(_equals(decisions, gaps, stranger)))
        labels = " and ".join(_shown(c) for c in known[:2])
        raise InputError(f"y_pred: {_shown(stranger)} at row {at} is none of the labels ({labels}).")
    return positive


def _weights(sample_weight: Any, rows: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = frames.number_column(sample_weight, "sample_weight")
    _check_length(weight, "sample_weight", rows)
    _check_finite(weight, "sample_weight", "Weights must be finite; a row that shall not count has weight 0.")
    if (weight < 0.0).any():
        first = int(np.argmax(weight < 0.0))
        raise InputError(f"sample_weight: {_shown(weight[first])} at row {first}. Weights must not be negative.")
    if not weight.any():
        raise InputError("sample_weight: the weights sum to zero. At least one row must count.")
    with np.errstate(over="ignore"):
        if np.isinf(weight.sum()):
            raise InputError(f"sample_weight: weights like {weight.max():g} have no finite sum. Scale them down.")
    return None if bool(np.all(weight == 1.0)) else weight


def _probabilities(probability: Any, missing: BoolArray) -> FloatArray | None:
    if probability is None:
        return None
    chance = frames.number_column(probability, "probability")
    rows, gaps = missing.size, int(missing.sum())
    if chance.size not in (rows, gaps):
        raise InputError(
            f"probability: {chance.size:,} values for {rows:,} rows of which {gaps:,} are missing their label. "
            "Give one per row, or one per missing row."
        )
    per_row = chance.size == rows
    # Written so that NaN is bad, except where a label makes the probability superfluous.
    bad = ~((chance >= 0.0) & (chance <= 1.0))
    if per_row and bad.any():
        bad &= missing | ~np.isnan(chance)
    if bad.any():
        first = int(np.argmax(bad))
        place = f"row {first}" if per_row else f"position {first} of the {gaps:,} missing rows"
        raise InputError(f"probability: {_shown(chance[first])} at {place}. Probabilities must lie in [0, 1].")
    if not per_row:
        full = np.full(rows, np.nan)
        full[missing] = chance
        chance = full
    return chance
