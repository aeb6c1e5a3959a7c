"""EvaluationSet: scores, decisions and partly missing labels, as a table of counted cells."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.argument_types import ArrayLike, Duration, FrameLike, LabelValue, Numbers, PathLike, PointInTime
from darkmetrics.data import merging
from darkmetrics.data.ages import check_same_unit, row_ages, settled, table_times
from darkmetrics.data.cells import Cells, Totals, group_rows
from darkmetrics.data.merging import cells_by_group, cells_of_clusters
from darkmetrics.data.parquet import Stored, read_cells, write_cells
from darkmetrics.data.rules import (
    check_classes,
    check_finite,
    check_label_values,
    check_length,
    decided_from,
    given_decisions,
    read_labels,
    row_groups,
    row_probabilities,
    row_propensities,
    row_strata,
    row_weights,
    threshold_number,
)
from darkmetrics.exceptions import InputError
from darkmetrics.files import files_named


class EvaluationSet(Totals):
    """What a metric needs to know about a test set whose labels are partly missing.

    Rows are not kept: those that share score and decision (and weight, probability and stratum, where given) form a
    *cell* with the counts of positive, negative and missing labels. Row order never matters, and two sets merge with
    `+`.

    Parameters
    ----------
    y_true : array-like
        Labels. Missing ones are NaN, None, `pd.NA`, `NaT`, a Polars or Arrow null, or masked.
    y_score : array-like of float
        Scores of the positive class: finite, higher means more likely positive; they need not be probabilities.
    threshold : float, optional
        The decision is positive when score >= threshold, both taken as 64-bit floats; finite. 0.5 unless given.
    y_pred : array-like, optional
        Decisions, if they do not follow from a threshold: the same two classes as the labels, or 0/1.
    pos_label : object
        The label that counts as positive.
    missing_label : object, or list, tuple or set of these, optional
        A value that also means "missing", for example -1, or several. Nothing is assumed unless you say so.
    sample_weight : array-like of float, optional
        Weight of each row in every metric; not negative.
    probability : array-like of float, optional
        Chance that the row is positive, if known: one per row, or one per missing row in row order.
    strata : array-like of int, optional
        A number for rows of one kind (an age band, a segment). Label models of your own may tell strata apart, through
        `cells.stratum`; metrics do not. Sets merge stratum by stratum.
    propensity : array-like of float, optional
        The chance that the row would get its label, as a policy or a sampling design had it: above 0 where there is a
        label. `label_models.Propensity` learns from it, and is what such a set is evaluated with unless another model
        is named.
    age : array-like of float or timedelta, optional
        Time since the row was scored. Rows are then told apart by bins of it, for `label_models.LateLabels`.
    delay : array-like of float or timedelta, optional
        Time from scoring to the arrival of the label, for each labelled row; missing for the others.
    maturity : float or timedelta, optional
        Only positives arrive: rows of this age without a label are negative, and negatives that are younger count as
        not known yet, unless they have a `delay`.
    groups : array-like, optional
        Which rows belong together, as those of one customer do: their labels may depend on each other.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> print(dm.EvaluationSet([1, 0, None, 1, None], [0.9, 0.2, 0.7, 0.6, 0.7]))
    5 rows: 3 labelled (2 positive, 1 negative), 2 missing (40.0%)
    4 positive decisions (2 of them missing their label), 1 negative (0)
    """

    threshold: float | None
    pos_label: Any

    def __init__(
        self,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        threshold: float | None = None,
        y_pred: ArrayLike | None = None,
        pos_label: LabelValue = 1,
        missing_label: LabelValue = None,
        sample_weight: ArrayLike | None = None,
        probability: Numbers | None = None,
        strata: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        age: ArrayLike | None = None,
        delay: ArrayLike | None = None,
        maturity: Duration | None = None,
        groups: ArrayLike | None = None,
    ) -> None:
        score = frames.number_column(y_score, "y_score")
        labels, missing = frames.label_column(y_true, "y_true")
        check_length(labels, "y_true", score.size)
        if score.size == 0:
            raise InputError("y_true: no rows. An evaluation set needs at least one.")
        check_finite(score, "y_score", "Scores must be finite; drop or fill those rows.")
        names = frames.row_names(
            y_true=y_true,
            y_score=y_score,
            y_pred=y_pred,
            sample_weight=sample_weight,
            strata=strata,
            propensity=propensity,
            age=age,
            delay=delay,
        )
        positive, missing, classes = read_labels(labels, missing, pos_label, missing_label, "y_true")
        if names is not None:
            names.check("probability", probability)  # one per row
            names.at(missing).check("probability", probability)  # or one per missing row
        cut = decided_from(threshold, None if y_pred is None else "y_pred")
        decision = given_decisions(y_pred, score.size, pos_label, classes) if cut is None else score >= cut
        weight = row_weights(sample_weight, score.size)
        chance = row_probabilities(probability, missing)
        self.threshold = cut
        self.pos_label = pos_label
        self.buckets = None
        counts = ((~positive & ~missing).view(np.int8), missing.view(np.int8))
        rows = Cells(
            score,
            decision,
            positive.view(np.int8),
            *counts,
            weight,
            chance,
            stratum=row_strata(strata, score.size),
            age=row_ages(age, delay, maturity, missing, positive),
            propensity=row_propensities(propensity, missing, aged=age is not None),
        )
        own = row_groups(groups, score.size)
        cells, kept = group_rows(rows if maturity is None else settled(rows), split=cut is None, apart=own)
        self.groups, self.cells = None if own is None else own[kept], cells

    @classmethod
    def from_cells(
        cls,
        cells: Cells,
        *,
        threshold: float | None = None,
        pos_label: LabelValue = 1,
        buckets: int | None = None,
        groups: IntArray | None = None,
        compared: object | None = None,
    ) -> Self:
        """A set from counted cells; the caller vouches for them."""
        new = cls.__new__(cls)
        new.threshold, new.pos_label, new.buckets, new.groups = threshold, pos_label, buckets, groups
        new.compared = compared
        new.cells = cells
        return new

    @classmethod
    def from_frame(
        cls,
        frame: FrameLike,
        *,
        label: str,
        score: str,
        threshold: float | None = None,
        decision: str | None = None,
        probability: str | None = None,
        weight: str | None = None,
        stratum: str | None = None,
        propensity: str | None = None,
        pos_label: LabelValue = 1,
        missing_label: LabelValue = None,
        buckets: str | int = "auto",
        scored_at: str | None = None,
        labelled_at: str | None = None,
        as_of: PointInTime | None = None,
        maturity: Duration | None = None,
        groups: str | None = None,
    ) -> Self:
        """The set of the rows of a table, wherever it is: the table's own engine counts, and only counts come here.

        Parameters
        ----------
        frame : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths
            pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis; Parquet and CSV files by name.
        label, score : str
            Names of columns. A label is missing where it is null or NaN.
        threshold : float, optional
            The decision is positive when score >= threshold; 0.5 unless given.
        decision, probability, weight, stratum, propensity : str, optional
            Columns with decisions, chances of being positive, weights, strata and propensities, as `y_pred`,
            `probability`, `sample_weight`, `strata` and `propensity` above.
        pos_label, missing_label : object
            As above.
        buckets : {"auto", "exact"} or int
            "exact" counts every distinct score by itself. A number counts scores in so many buckets (a power of two;
            other numbers are rounded down), which are narrow near 0 and 1 and cut at the threshold, so that metrics of
            decisions are exact. "auto" is exact up to about a million distinct scores, and takes 65,536 buckets beyond.
            With `scored_at`, which makes hundreds of cells out of each, it takes 4,096, and fewer where the cells would
            be more than a few million; it is exact up to a million cells.
        scored_at : str, optional
            A column with dates or datetimes: when each row was scored. Rows are then told apart by bins of their age,
            for `label_models.LateLabels`, as with `age` above.
        labelled_at : str, optional
            A column with the time when each label came; null where there is no label. As `delay` above.
        as_of : date, datetime or ISO text
            The day, up to its end, or the moment that ages are counted up to; needed with `scored_at`. Rows that were
            scored later are left out, and labels that came later count as missing: what was known then. Without
            `labelled_at` these cannot be told from others, and a `MissingnessWarning` says so.
        maturity : float or timedelta, optional
            As above, in days.
        groups : str, optional
            A column that says which rows belong together, as `groups` above. Rows are then counted by group and exact
            score, up to 2^20 cells, unless each is a group of its own.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> import polars as pl
        >>> table = pl.DataFrame({"fraud": [True, False, None, None], "p": [0.9, 0.2, 0.7, 0.7]})
        >>> dm.EvaluationSet.from_frame(table, label="fraud", score="p")
        EvaluationSet(4 rows, 2 missing, 3 cells)
        """
        check_label_values(pos_label, missing_label)
        times = table_times(locals())
        cut = decided_from(threshold, None if decision is None else "decision")
        columns = frames.ColumnNames(
            label, score, decision, probability, weight, stratum, propensity, scored_at, labelled_at
        )
        meant: dict[str, Any] = {"threshold": cut, "pos_label": pos_label, "missing_label": missing_label}
        counted = frames.count_cells(frame, columns, buckets=buckets, clusters=groups, **meant, **times)
        check_classes(counted.labels, pos_label, columns.title("label"), missing_label)
        own = None
        if counted.keys:
            cells, own = cells_of_clusters(counted, split=cut is None)
        else:
            (cells,) = cells_by_group(counted)
        return cls.from_cells(cells, threshold=cut, pos_label=pos_label, buckets=counted.buckets, groups=own)

    def to_parquet(self, path: str | Path) -> Path:
        """Writes the cells into a Parquet file that any engine can read, and returns its path.

        Nothing is lost: `from_parquet` gives the same set. The file appears when it is complete, and replaces one that
        is there. Its columns are in `docs/reference/evaluation-set.md`. Needs Polars, PyArrow, or pandas with it.
        """
        where = Path(path)
        merging.check_no_groups("stored", self.groups)
        write_cells(where, Stored(merging.each_once(self.cells), self.threshold, self.pos_label, self.buckets))
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
            cells, threshold, pos_label, buckets = read_cells(Path(file))
            sets.append(cls.from_cells(cells, threshold=threshold, pos_label=pos_label, buckets=buckets))
        return sets[0] if len(sets) == 1 else cls.merged(sets)

    def __setattr__(self, name: str, value: object) -> None:
        if "cells" in self.__dict__:
            raise AttributeError(f"an EvaluationSet does not change; {name!r} cannot be set.")
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"an EvaluationSet does not change; {name!r} cannot be deleted.")

    def __add__(self, other: object) -> Self:
        """Both sets as one, as if their rows had come together."""
        return self.merged([self, other]) if isinstance(other, EvaluationSet) else NotImplemented

    def __radd__(self, other: object) -> Self:
        """Lets `sum` start from its 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    @classmethod
    def merged(cls, sets: Sequence["EvaluationSet"]) -> Self:
        """Many sets as one, as if their rows had come together; the same as adding them up, in one go.

        Where some sets have their scores in buckets, all of them are put into the coarsest ones.
        """
        return cls.merged_apart(sets, None)[0]

    @classmethod
    def merged_apart(cls, sets: Sequence["EvaluationSet"], apart: IntArray | None) -> tuple[Self, IntArray]:
        """The same, where cells with different numbers stay apart even if they are alike in everything else.

        `apart` has a number for each cell of the sets, one set after the other. Also returns, for each cell of the new
        set, the place of one that went into it.
        """
        if not sets:
            raise InputError("sets: none given. At least one is needed.")
        first = sets[0]
        for other in sets[1:]:
            first._check_alike(other)
        having = [one for one in sets if one.cells.probability is not None]
        without = next((one for one in sets if one.cells.probability is None and one.n_missing), None)
        if having and without is not None:
            raise InputError(
                f"probability: one set has it, the other has {without.n_missing:,} missing labels without it. "
                "Give it for both or for neither."
            )
        buckets = _coarsest(sets)
        cells, places = merging.merged([one.cells for one in sets], buckets, first.threshold, apart)
        new = cls.from_cells(cells, threshold=first.threshold, pos_label=first.pos_label, buckets=buckets)
        return new, places

    def __sub__(self, other: object) -> Self:
        """The rows of the one set that are not in the other, whose rows must all be in it."""
        if not isinstance(other, EvaluationSet):
            return NotImplemented
        self._check_alike(other)
        whole, part, buckets = self._on_one_grid(other)
        return self._with(merging.without(whole, part, buckets, self.threshold), buckets)

    def with_labels(self, late: "EvaluationSet") -> Self:
        """The same rows after labels have arrived: those of `late` that have a label were missing theirs here.

        Rows are matched by score (by bucket where scores are in buckets), decision, weight, probability, stratum and
        propensity; rows of `late` without a label are ignored. More labels than are missing at a score are an error.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> monday = dm.EvaluationSet([1, None, None], [0.9, 0.7, 0.7])
        >>> print(monday.with_labels(dm.EvaluationSet([0], [0.7])))
        3 rows: 2 labelled (1 positive, 1 negative), 1 missing (33.3%)
        3 positive decisions (1 of them missing their label), 0 negative (0)
        """
        if not isinstance(late, EvaluationSet):
            raise InputError(
                f"late: expected an EvaluationSet of the rows whose labels came, got {type(late).__name__}."
            )
        self._check_alike(late)
        known = late.labelled()
        exact = self.buckets is None and late.buckets is None
        if exact and self.cells.probability is not None and late.cells.probability is None and known.n_rows:
            raise InputError(
                "late: it has no probability, but the set has, and rows are matched by it. Build it with the same one."
            )
        if not exact and self.cells.probability is not None and known.n_rows:
            raise InputError(
                "late: the set has probabilities and its scores are in buckets, so which probabilities are left when "
                "some labels arrive is not known. Count the rows anew and put them in place of the old ones: "
                "set - old + new."
            )
        whole, part, buckets = self._on_one_grid(known)
        return self._with(merging.with_late_labels(whole, part, buckets, self.threshold), buckets)

    def coarsened(self, buckets: int) -> "EvaluationSet":
        """The same rows with scores in so many buckets (a power of two; other numbers are rounded down), or as it is.

        A set that has no more buckets than that, or no two scores in one bucket, stays as it is.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> data = dm.EvaluationSet([1, 0, None, 1], [0.901, 0.902, 0.7, 0.3])
        >>> data.coarsened(32)
        EvaluationSet(4 rows, 1 missing, 3 cells in 32 score buckets)
        """
        wanted = merging.bucket_number(buckets)
        if self.buckets is not None and self.buckets <= wanted:
            return self
        cells = merging.on_grid(self.cells, wanted, self.threshold)
        nothing = self.buckets is None and bool(np.all(cells.low == cells.high))
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
            cells, threshold=self.threshold, pos_label=self.pos_label, buckets=self.buckets
        )
        return new_set, kept

    def _with(self, cells: Cells, buckets: int | None) -> Self:
        if cells.weight is not None and bool(np.all(cells.weight == 1.0)):
            cells = replace(cells, weight=None)
        return self.from_cells(cells, threshold=self.threshold, pos_label=self.pos_label, buckets=buckets)

    def _check_alike(self, other: "EvaluationSet") -> None:
        merging.check_no_groups("merged", self.groups, other.groups)
        if self.threshold != other.threshold:
            how = ["y_pred" if s.threshold is None else f"threshold {s.threshold:g}" for s in (self, other)]
            raise InputError(f"threshold: cannot merge a set decided by {how[0]} with one decided by {how[1]}.")
        if self.pos_label != other.pos_label:
            raise InputError(
                f"pos_label: cannot merge sets with {self.pos_label!r} and {other.pos_label!r} as positive."
            )
        for name, kind in (("strata", "stratum"), ("age", "age"), ("propensity", "propensity")):
            if (kind in self.cells.kinds()) != (kind in other.cells.kinds()):
                raise InputError(f"{name}: one set has them, the other has not. Give them for both or for neither.")
        check_same_unit(self.cells, other.cells)

    def _on_one_grid(self, other: "EvaluationSet") -> tuple[Cells, Cells, int | None]:
        """The cells of both sets: as they are, or in the coarser buckets of the two."""
        buckets = _coarsest([self, other])
        if buckets is None:
            return merging.each_once(self.cells), other.cells, None
        mine, theirs = (merging.on_grid(one.cells, buckets, self.threshold) for one in (self, other))
        return mine, theirs, buckets

    def with_threshold(self, threshold: float) -> "EvaluationSet":
        """The same rows decided at another threshold; a set whose decisions were given has none to move.

        Where scores are in buckets, the threshold must not cut one.
        """
        if self.threshold is None:
            raise InputError("threshold: the decisions of this set were given (y_pred), and no threshold moves them.")
        merging.check_no_groups("moved to another threshold", self.groups)
        cut = threshold_number(threshold)
        self.check_cuts(np.array([cut]), "threshold")
        cells = replace(self.cells, decision=self.cells.score >= cut)
        return EvaluationSet.from_cells(cells, threshold=cut, pos_label=self.pos_label, buckets=self.buckets)

    def check_cuts(self, thresholds: FloatArray, name: str) -> None:
        """No threshold falls inside a bucket, where it is not known which rows lie above it."""
        if self.buckets is None or not self.cells.score.size:
            return
        low, high = self.cells.tie_ends
        cell = np.maximum(np.searchsorted(low, thresholds, side="left") - 1, 0)  # the last that begins below
        inside = (low[cell] < thresholds) & (thresholds <= high[cell])
        if inside.any():
            at = int(np.argmax(inside))
            first, last = float(low[cell[at]]), float(high[cell[at]])
            raise InputError(
                f"{name}: {float(thresholds[at])!r} lies inside a bucket of scores from {first!r} to {last!r}, whose "
                f"rows are counted together. Build the set with that threshold, or take {first!r}."
            )

    def labelled(self) -> "EvaluationSet":
        """The labelled rows alone: what is left when unlabelled rows are dropped."""
        cells = self.cells
        kept = np.flatnonzero(cells.total > cells.missing)
        cells = replace(cells.take(kept), missing=np.zeros(kept.size, dtype=np.int64))
        return EvaluationSet.from_cells(cells, threshold=self.threshold, pos_label=self.pos_label, buckets=self.buckets)

    def unlabelled(self) -> "EvaluationSet":
        """The same rows with every label taken away."""
        none = np.zeros_like(self.cells.missing)
        cells = replace(self.cells, positives=none, negatives=none, missing=self.cells.total)
        return EvaluationSet.from_cells(cells, threshold=self.threshold, pos_label=self.pos_label, buckets=self.buckets)


def _coarsest(sets: Sequence[EvaluationSet]) -> int | None:
    return min((one.buckets for one in sets if one.buckets is not None), default=None)


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
    about: dict[str, Any] = {"threshold": threshold, "pos_label": pos_label, "buckets": counted.buckets}
    return [EvaluationSet.from_cells(cells, **about) for cells in cells_by_group(counted)]
