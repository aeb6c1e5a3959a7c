"""EvaluationSet: scores, decisions and partly missing labels, as a table of counted cells."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._text import a_kind_of
from darkmetrics.argument_types import ArrayLike, FrameLike, LabelValue, PathLike
from darkmetrics.calls import suggest_call
from darkmetrics.data import merging
from darkmetrics.data.ages import check_same_unit
from darkmetrics.data.building import HasRows, check_has_values, count_rows
from darkmetrics.data.cells import Cells, Totals
from darkmetrics.data.merging import cells_by_group
from darkmetrics.data.parquet import Stored, read_cells, write_cells
from darkmetrics.data.rules import check_classes, threshold_number
from darkmetrics.exceptions import InputError
from darkmetrics.files import files_named
from darkmetrics.wording import named


class EvaluationSet(Totals):
    """What a metric needs to know about a test set whose labels are partly missing.

    Rows are not kept: those that share score and decision (and weight, probability and stratum, where given) form a
    *cell* with the counts of positive, negative and missing labels. Row order never matters, and two sets merge with
    `+`.

    Parameters
    ----------
    y_true : array-like or str
        Labels, or the name of a column of `data`. Missing ones are NaN, None, `pd.NA`, `NaT`, null, or masked.
    y_score : array-like of float or str
        Scores of the positive class: finite, higher means more likely positive; they need not be probabilities.
    data : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths, optional
        Table whose columns the other arguments name: pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis (and through
        it SQL databases); Parquet and CSV files by name. The table's own engine counts, and only counts come here.
    missingness : object of `dm.missing`, optional
        Its values per row are counted with the rows: `Delayed(age=...)`, `Propensity(...)` and `Fixed(...)`, which
        `evaluate` then uses unless another mechanism is passed, or strata, for mechanisms with `strata=True`.
    threshold : float, optional
        Rows with score >= threshold, both taken as 64-bit floats, are predicted positive. 0.5 if not passed.
    y_pred : array-like or str, optional
        Predictions that do not follow from a threshold: the same two classes as the labels, or 0/1.
    sample_weight : array-like of float or str, optional
        Weight of each row in every metric; not negative.
    clusters : array-like or str, optional
        Cluster of each row, such as its customer: labels within a cluster may depend on each other. Rows of a table are
        then counted by cluster and exact score, up to 2^20 cells, unless each row is a cluster of its own.
    pos_label : object
        Label that counts as positive.
    missing_label : object, or list, tuple or set of these, optional
        Value that also means "missing", for example -1, or several.
    score_bins : {"auto", "exact"} or int
        How finely scores of a table are distinguished. "exact" counts every distinct score. A number counts scores in
        that many bins (a power of two; other numbers are rounded down), which are narrow near 0 and 1 and cut at the
        threshold, so that metrics of predictions are exact. "auto" is exact up to about a million distinct scores, and
        takes 65,536 bins beyond; with ages 4,096, and fewer if there would be more than a few million cells. Arrays are
        counted exactly.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> print(dm.EvaluationSet([1, 0, None, 1, None], [0.9, 0.2, 0.7, 0.6, 0.7]))
    5 rows: 3 labeled (2 positive, 1 negative), 2 missing (40.0%)
    4 positive decisions (2 of them missing their label), 1 negative (0)
    >>> import polars as pl
    >>> table = pl.DataFrame({"fraud": [True, False, None, None], "p": [0.9, 0.2, 0.7, 0.7]})
    >>> dm.EvaluationSet("fraud", "p", data=table)
    EvaluationSet(4 rows, 2 missing, 3 cells)
    """

    threshold: float | None
    pos_label: Any

    @suggest_call()
    def __init__(
        self,
        y_true: ArrayLike | str,
        y_score: ArrayLike | str,
        *,
        data: FrameLike | None = None,
        missingness: HasRows | None = None,
        threshold: float | None = None,
        y_pred: ArrayLike | str | None = None,
        sample_weight: ArrayLike | str | None = None,
        clusters: ArrayLike | str | None = None,
        pos_label: LabelValue = 1,
        missing_label: LabelValue = None,
        score_bins: str | int = "auto",
    ) -> None:
        if missingness is not None:
            check_has_values(missingness)
        counted = count_rows(
            y_true=y_true,
            y_score=y_score,
            data=data,
            missingness=missingness,
            threshold=threshold,
            y_pred=y_pred,
            sample_weight=sample_weight,
            clusters=clusters,
            pos_label=pos_label,
            missing_label=missing_label,
            score_bins=score_bins,
        )
        self.threshold, self.pos_label, self.score_bins = counted.threshold, pos_label, counted.score_bins
        self.missingness = None if missingness is None else missingness.without_rows()
        self.groups, self.cells = counted.clusters, counted.cells

    @classmethod
    def from_cells(
        cls,
        cells: Cells,
        *,
        threshold: float | None = None,
        pos_label: LabelValue = 1,
        score_bins: int | None = None,
        groups: IntArray | None = None,
        compared: object | None = None,
        missingness: HasRows | None = None,
    ) -> Self:
        """A set from counted cells; the caller vouches for them."""
        new = cls.__new__(cls)
        new.threshold, new.pos_label, new.score_bins, new.groups = threshold, pos_label, score_bins, groups
        new.compared, new.missingness = compared, missingness
        new.cells = cells
        return new

    def to_parquet(self, path: str | Path) -> Path:
        """Writes the cells into a Parquet file that any engine can read, and returns its path.

        Nothing is lost: `from_parquet` gives the same set. The file appears when it is complete, and replaces one that
        is there. Its columns are in `docs/reference/evaluation-set.md`. Needs Polars, PyArrow, or pandas with it.
        """
        where = Path(path)
        merging.check_no_groups("stored", self.groups)
        write_cells(where, Stored(merging.each_once(self.cells), self.threshold, self.pos_label, self.score_bins))
        return where

    @classmethod
    def from_parquet(cls, path: PathLike | Sequence[PathLike]) -> Self:
        """The set that `to_parquet` wrote; of a folder, a pattern or a list of files, all of them merged into one.

        Examples
        --------
        >>> import tempfile
        >>> import darkmetrics as dm
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for day in ("monday", "tuesday"):
        ...         _ = dm.EvaluationSet([1, 0, None], [0.9, 0.2, 0.7]).to_parquet(f"{folder}/{day}.parquet")
        ...     dm.EvaluationSet.from_parquet(f"{folder}/*.parquet")
        EvaluationSet(6 rows, 2 missing, 3 cells)
        """
        sets = []
        for file in files_named(path):
            cells, threshold, pos_label, score_bins = read_cells(Path(file))
            sets.append(cls.from_cells(cells, threshold=threshold, pos_label=pos_label, score_bins=score_bins))
        return sets[0] if len(sets) == 1 else cls.concat(sets)

    def __setattr__(self, name: str, value: object) -> None:
        if "cells" in self.__dict__:
            raise AttributeError(f"an EvaluationSet does not change; {name!r} cannot be set.")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an EvaluationSet does not change; {name!r} cannot be deleted.")

    def __add__(self, other: object) -> Self:
        """Both sets as one, as if their rows had come together."""
        return self.concat([self, other]) if isinstance(other, EvaluationSet) else NotImplemented

    def __radd__(self, other: object) -> Self:
        """Lets `sum` start from its 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @classmethod
    def concat(cls, sets: Sequence["EvaluationSet"]) -> Self:
        """Many sets as one, as if their rows had come together; the same as adding them up, in one go.

        Where some sets have their scores in bins, all of them are put into the coarsest ones.
        """
        return cls.merged_apart(sets, None)[0]

    @classmethod
    def merged_apart(cls, sets: Sequence["EvaluationSet"], apart: IntArray | None) -> tuple[Self, IntArray]:
        """The same, where cells with different numbers stay apart even if they are alike in everything else.

        `apart` has a number for each cell of the sets, one set after the other. Also returns, for each cell of the new
        set, the place of one that went into it.
        """
        if not sets:
            raise InputError("sets", "empty", "At least one set is needed.")
        first = sets[0]
        for other in sets[1:]:
            first._check_alike(other)
        having = [one for one in sets if one.cells.probability is not None]
        without = next((one for one in sets if one.cells.probability is None and one.n_missing), None)
        if having and without is not None:
            raise InputError(
                "probability",
                f"one set has probabilities, the other has {without.n_missing:,} missing labels without them",
                "",
                "Build both sets with probabilities, or neither.",
            )
        score_bins = _coarsest(sets)
        cells, places = merging.merged([one.cells for one in sets], score_bins, first.threshold, apart)
        about: dict[str, Any] = {"threshold": first.threshold, "pos_label": first.pos_label, "score_bins": score_bins}
        stated = first.missingness if len({repr(one.missingness) for one in sets}) == 1 else None
        new = cls.from_cells(cells, missingness=stated, **about)
        return new, places

    def __sub__(self, other: object) -> Self:
        """The rows of the one set that are not in the other, whose rows must all be in it."""
        if not isinstance(other, EvaluationSet):
            return NotImplemented
        self._check_alike(other)
        whole, part, score_bins = self._on_one_grid(other)
        return self._with(merging.without(whole, part, score_bins, self.threshold), score_bins)

    def with_labels(self, late: "EvaluationSet") -> Self:
        """The same rows after labels have arrived: those of `late` that have a label were missing theirs here.

        Rows are matched by score (by bin where scores are in bins), decision, weight, probability, stratum and
        propensity; rows of `late` without a label are ignored. More labels than are missing at a score are an error.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> monday = dm.EvaluationSet([1, None, None], [0.9, 0.7, 0.7])
        >>> print(monday.with_labels(dm.EvaluationSet([0], [0.7])))
        3 rows: 2 labeled (1 positive, 1 negative), 1 missing (33.3%)
        3 positive decisions (1 of them missing their label), 0 negative (0)
        """
        if not isinstance(late, EvaluationSet):
            raise InputError(
                "late",
                a_kind_of(late),
                "It must be an EvaluationSet of the rows whose labels arrived.",
            )
        self._check_alike(late)
        known = late.labeled()
        exact = self.score_bins is None and late.score_bins is None
        if exact and self.cells.probability is not None and late.cells.probability is None and known.n_rows:
            raise InputError(
                "late",
                "no probabilities, but the set has some",
                "Rows are matched by their probability.",
                "Build both sets with the same probabilities.",
            )
        if not exact and self.cells.probability is not None and known.n_rows:
            raise InputError(
                "late",
                "the set has probabilities, and its scores are in bins",
                "A bin does not store which of its probabilities belong to the labels that arrive.",
                "Count these rows again, and replace the old ones: data - old + new.",
            )
        whole, part, score_bins = self._on_one_grid(known)
        return self._with(merging.with_late_labels(whole, part, score_bins, self.threshold), score_bins)

    def binned(self, score_bins: int) -> "EvaluationSet":
        """The same rows with scores in so many bins (a power of two; other numbers are rounded down), or as it is.

        A set that has no more bins than that, or no two scores in one bin, stays as it is.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> data = dm.EvaluationSet([1, 0, None, 1], [0.901, 0.902, 0.7, 0.3])
        >>> data.binned(32)
        EvaluationSet(4 rows, 1 missing, 3 cells in 32 score bins)
        """
        wanted = merging.bin_number(score_bins)
        if self.score_bins is not None and self.score_bins <= wanted:
            return self
        cells = merging.on_grid(self.cells, wanted, self.threshold)
        nothing = self.score_bins is None and bool(np.all(cells.low == cells.high))
        return self if nothing and np.all(cells.low == cells.score) else self._with(cells, wanted)

    def without_strata(self, apart: BoolArray) -> tuple["EvaluationSet", IntArray]:
        """The same rows without strata, ages and propensities, and which missing cells are the first in each cell left.

        `apart` says of each missing cell but the first whether it stays apart from the missing cell before it.
        """
        cells = self.cells.without_kinds()
        new, at = merging.first_of_a_kind(cells), self.missing_cells
        kind = np.cumsum(new)[at]
        new[at[1:]] |= apart & (kind[1:] == kind[:-1])
        kept = np.flatnonzero(np.diff(np.cumsum(new)[at], prepend=0))
        cells = merging.added_up(cells, new)
        new_set = EvaluationSet.from_cells(
            cells, threshold=self.threshold, pos_label=self.pos_label, score_bins=self.score_bins
        )
        return new_set, kept

    def _with(self, cells: Cells, score_bins: int | None) -> Self:
        if cells.weight is not None and bool(np.all(cells.weight == 1.0)):
            cells = replace(cells, weight=None)
        about: dict[str, Any] = {"threshold": self.threshold, "pos_label": self.pos_label, "score_bins": score_bins}
        return self.from_cells(cells, missingness=self.missingness, **about)

    def _check_alike(self, other: "EvaluationSet") -> None:
        merging.check_no_groups("merged", self.groups, other.groups)
        if self.threshold != other.threshold:
            how = ["y_pred" if s.threshold is None else f"threshold {s.threshold:g}" for s in (self, other)]
            finding = f"one set has predictions from {how[0]}, the other from {how[1]}"
            raise InputError("threshold", finding, "Sets merge if rows are predicted alike.", "Build both alike.")
        if self.pos_label != other.pos_label:
            finding = f"{self.pos_label!r} is positive in one set, {other.pos_label!r} in the other"
            raise InputError("pos_label", finding, "Sets merge if labels mean the same.", "Build both alike.")
        for name, kind in (("strata", "stratum"), ("age", "age"), ("propensity", "propensity")):
            if (kind in self.cells.kinds()) != (kind in other.cells.kinds()):
                raise InputError(name, "only one of the sets has it", "", "Build both sets with it, or neither.")
        check_same_unit(self.cells, other.cells)

    def _on_one_grid(self, other: "EvaluationSet") -> tuple[Cells, Cells, int | None]:
        """The cells of both sets: as they are, or in the coarser bins of the two."""
        score_bins = _coarsest([self, other])
        if score_bins is None:
            return merging.each_once(self.cells), other.cells, None
        mine, theirs = (merging.on_grid(one.cells, score_bins, self.threshold) for one in (self, other))
        return mine, theirs, score_bins

    def with_threshold(self, threshold: float) -> "EvaluationSet":
        """The same rows decided at another threshold; a set whose decisions were given has none to move.

        Where scores are in bins, the threshold must not cut one.
        """
        if self.threshold is None:
            finding = f"the set was built with predictions ({named('y_pred')})"
            raise InputError("threshold", finding, "No threshold changes such predictions.")
        merging.check_no_groups("moved to another threshold", self.groups)
        cut = threshold_number(threshold)
        self.check_cuts(np.array([cut]), "threshold")
        cells = replace(self.cells, decision=self.cells.score >= cut)
        about: dict[str, Any] = {"threshold": cut, "pos_label": self.pos_label, "score_bins": self.score_bins}
        return EvaluationSet.from_cells(cells, missingness=self.missingness, **about)

    def check_cuts(self, thresholds: FloatArray, name: str) -> None:
        """No threshold falls inside a bin, where it is not known which rows lie above it."""
        if self.score_bins is None or not self.cells.score.size:
            return
        low, high = self.cells.tie_ends
        cell = np.maximum(np.searchsorted(low, thresholds, side="left") - 1, 0)  # the last that begins below
        inside = (low[cell] < thresholds) & (thresholds <= high[cell])
        if inside.any():
            at = int(np.argmax(inside))
            first, last = float(low[cell[at]]), float(high[cell[at]])
            raise InputError(
                name,
                f"{float(thresholds[at])!r} lies inside a bin of scores from {first!r} to {last!r}",
                "The rows of a bin are counted together.",
                f"Build the set with that threshold, or pass {first!r}.",
            )

    def labeled(self) -> "EvaluationSet":
        """The labeled rows alone: what is left when unlabeled rows are dropped."""
        cells = self.cells
        kept = np.flatnonzero(cells.total > cells.missing)
        cells = replace(cells.take(kept), missing=np.zeros(kept.size, dtype=np.int64))
        return EvaluationSet.from_cells(
            cells, threshold=self.threshold, pos_label=self.pos_label, score_bins=self.score_bins
        )

    def unlabeled(self) -> "EvaluationSet":
        """The same rows with every label taken away."""
        none = np.zeros_like(self.cells.missing)
        cells = replace(self.cells, positives=none, negatives=none, missing=self.cells.total)
        return EvaluationSet.from_cells(
            cells, threshold=self.threshold, pos_label=self.pos_label, score_bins=self.score_bins
        )


def _coarsest(sets: Sequence[EvaluationSet]) -> int | None:
    return min((one.score_bins for one in sets if one.score_bins is not None), default=None)


def sets_from_counted(
    counted: frames.Counted,
    *,
    threshold: float | None,
    pos_label: Any = 1,
    missing_label: Any = None,
    label: str = "label",
) -> list[EvaluationSet]:
    """One set per group of what an engine has counted; `label` is the column that errors about labels name."""
    check_classes(counted.labels, pos_label, label, missing_label)
    about: dict[str, Any] = {"threshold": threshold, "pos_label": pos_label, "score_bins": counted.score_bins}
    return [EvaluationSet.from_cells(cells, **about) for cells in cells_by_group(counted)]
