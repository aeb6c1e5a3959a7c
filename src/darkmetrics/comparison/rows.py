"""The rows that models are compared on: one label, and a score and a decision of each model."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, CountArray, FloatArray, IntArray
from darkmetrics._text import a_kind_of, counted
from darkmetrics.data.cells import Cells, count_type
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import (
    check_classes,
    check_finite,
    check_label_values,
    decided_from,
    read_labels,
    row_probabilities,
    row_weights,
)
from darkmetrics.exceptions import InputError, MissingKeyError, unknown_name
from darkmetrics.missingness.reference import Reference
from darkmetrics.storing import made_of
from darkmetrics.wording import code, named

# Up to so many cells, of two models and of more, each has probabilities of its own; beyond that, cells alike in the
# ranks of all scores share them.
_MOST_OWN = (1 << 13, 1 << 15)
# Ranks of a score are told apart in so many steps at most.
_STEPS = 256


class Ordered(NamedTuple):
    """The rows as one model orders them."""

    data: EvaluationSet
    # For each of the set's `missing_cells`, its place among the cells that hold missing rows here.
    place: IntArray


class Kinds(NamedTuple):
    """Cells that share probabilities as one: the number of each cell, and by number mean scores and counts."""

    number: IntArray
    score: FloatArray
    positives: IntArray
    negatives: IntArray
    missing: IntArray

    @property
    def total(self) -> FloatArray:
        """Rows of each kind."""
        return (self.positives + self.negatives + self.missing).astype(np.float64)

    def on_open(self, rows: "SharedRows", columns: IntArray) -> IntArray | None:
        """The column of each cell that holds missing rows, given that of each kind; None where that is its place."""
        found = columns[self.number[rows.open]]
        return None if np.array_equal(found, np.arange(found.size)) else found


@dataclass(frozen=True, eq=False)
class SharedRows:
    """Rows, or cells of rows alike in all scores, with the decisions of every model; models x cells where both count.

    `positives`, `negatives`, `missing` count the rows of a cell. `probability` is a chance of being positive that was
    given with each cell, NaN where there is a label.
    """

    names: tuple[str, ...]
    score: FloatArray
    decision: BoolArray
    thresholds: tuple[float, ...]
    positives: CountArray
    negatives: CountArray
    missing: CountArray
    weight: FloatArray | None = None
    probability: FloatArray | None = None
    pos_label: Any = 1
    # Each score is in so many buckets, whose mean stands for it, with its smallest and largest score beside it; None:
    # scores are exact.
    score_bins: int | None = None
    low: FloatArray | None = None
    high: FloatArray | None = None

    __getstate__ = made_of

    @property
    def labeled(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Scores (models x cells), positives and negatives of the cells that have labels."""
        kept = np.flatnonzero(self.positives + self.negatives)
        return self.score[:, kept], self.positives[kept].astype(np.float64), self.negatives[kept].astype(np.float64)

    def index(self, name: Any, argument: str) -> int:
        """The place of a model by its name."""
        if name not in self.names:
            raise unknown_name(argument, "model", str(name), self.names, error=MissingKeyError)
        return self.names.index(name)

    @cached_property
    def counts(self) -> dict[str, int]:
        """Rows, labeled, positive, negative and missing, as plain numbers."""
        positive, negative, missing = (int(c.sum()) for c in (self.positives, self.negatives, self.missing))
        return {
            "rows": positive + negative + missing,
            "labeled": positive + negative,
            "positive": positive,
            "negative": negative,
            "missing": missing,
        }

    @cached_property
    def open(self) -> IntArray:
        """The cells that hold missing rows; rows of weight zero are left out, as no metric depends on their labels."""
        return np.flatnonzero(self.missing if self.weight is None else self.missing * self.weight)

    @cached_property
    def _orders(self) -> tuple[IntArray, ...]:
        return tuple(np.argsort(score) for score in self.score)

    @cached_property
    def _ordered(self) -> dict[int, Ordered]:
        return {}

    def of(self, model: int) -> Ordered:
        """The rows as an evaluation set of one model, cell by cell, and where each of its missing cells is here."""
        if model not in self._ordered:
            order = self._orders[model]
            cells = Cells(
                self.score[model][order],
                self.decision[model][order],
                self.positives[order],
                self.negatives[order],
                self.missing[order],
                None if self.weight is None else self.weight[order],
                low=None if self.low is None else self.low[model][order],
                high=None if self.high is None else self.high[model][order],
            )
            data = EvaluationSet.from_cells(
                cells,
                threshold=self.thresholds[model],
                pos_label=self.pos_label,
                score_bins=self.score_bins,
                compared=self.counts,
            )
            place = np.empty(self.missing.size, dtype=np.int64)
            place[self.open] = np.arange(self.open.size)
            self._ordered[model] = Ordered(data, place[order[data.missing_cells]])
        return self._ordered[model]

    @cached_property
    def kinds(self) -> IntArray | None:
        """For each cell a number that cells alike in ranks and decisions of all models share; None: each is its own."""
        most = _MOST_OWN[len(self.names) > 2]
        if self.missing.size <= most:
            return None
        rows = self.positives + self.negatives + self.missing
        single = self.counts["rows"] == rows.size  # each cell is a row
        steps = []
        for order in self._orders:
            level = np.arange(1, rows.size + 1) if single else np.cumsum(rows[order], dtype=np.int64)
            step = np.empty(rows.size, dtype=np.int64)
            step[order] = np.minimum(_STEPS * level // level[-1], _STEPS - 1)
            steps.append(step)
        for shift in range(1, 8):  # as fine as so many kinds allow
            side = (_STEPS >> shift) + 1  # rows that are decided differently never share a step
            code = (steps[0] >> shift) + self.decision[0]
            for step, decided in zip(steps[1:], self.decision[1:], strict=True):
                code = code * side + (step >> shift) + decided
            if side ** len(steps) <= most:
                present = np.zeros(side ** len(steps), dtype=np.bool_)
                present[code] = True
                return np.asarray((np.cumsum(present) - 1)[code], dtype=np.int64)
            codes = np.unique(code)
            if codes.size <= most:
                return np.asarray(np.searchsorted(codes, code), dtype=np.int64)
        # Of so many models: rows that as many as may be decide alike, then by their mean rank.
        number = np.zeros(rows.size, dtype=np.int64)
        for decided in self.decision:
            number = _split(number, decided.astype(np.int64), most)
        mean = np.sum(steps, axis=0) // len(steps)
        for shift in range(8):
            finer = _split(number, mean >> shift, most)
            if finer is not number:
                return finer
        return number

    @cached_property
    def by_kind(self) -> Kinds:
        """The rows counted by kind, with the mean of each score."""
        counts = self.positives, self.negatives, self.missing
        if self.kinds is None:
            number, score = np.arange(self.missing.size), self.score
            positives, negatives, missing = (np.asarray(c, dtype=np.int64) for c in counts)
        else:
            number, rows = self.kinds, self.positives + self.negatives + self.missing
            positives, negatives, missing = (np.bincount(number, c).astype(np.int64) for c in counts)
            total = positives + negatives + missing
            score = np.stack([np.bincount(number, rows * one) for one in self.score]) / total
            # Where all rows of a kind are decided alike, so is their mean, however it is rounded.
            flagged = np.stack([np.bincount(number, rows * one) for one in self.decision])
            cut = np.array(self.thresholds)[:, None]
            score = np.where(flagged == total, np.maximum(score, cut), score)
            score = np.where(flagged == 0.0, np.minimum(score, np.nextafter(cut, -np.inf)), score)
        return Kinds(number, score, positives, negatives, missing)


def _split(number: IntArray, by: IntArray, most: int) -> IntArray:
    """Kinds split by another number, themselves where that would make too many."""
    codes, finer = np.unique(number * (int(by.max()) + 1) + by, return_inverse=True)
    return np.asarray(finer, dtype=np.int64) if codes.size <= most else number


def shared_rows(
    y_true: Any,
    scores: Any,
    *,
    threshold: Any,
    pos_label: Any,
    missing_label: Any,
    sample_weight: Any,
    probability: Any,
) -> SharedRows:
    """The rows of arrays, checked."""
    models = named_scores(scores)
    columns = {name: frames.number_column(column, f"scores[{name!r}]") for name, column in models.items()}
    labels, gaps = frames.label_column(y_true, "y_true")
    if labels.size == 0:
        raise InputError("y_true", "no rows", "A comparison needs at least one.")
    for name, column in columns.items():
        argument = f"scores[{name!r}]"
        if column.size != labels.size:
            raise InputError(
                argument,
                f"{counted(column.size, 'value')}, but {named('y_true')} has {labels.size:,}",
                "Both need one per row.",
            )
        check_finite(column, argument, "Scores must be finite.", "Drop or impute those rows.")
    given = {f"scores[{name!r}]": column for name, column in models.items()}  # no model is called like an argument
    names = frames.row_names(y_true=y_true, **given, sample_weight=sample_weight)
    positive, gaps, _classes = read_labels(labels, gaps, pos_label, missing_label, "y_true")
    if names is not None:
        names.check("probability", probability)
        names.at(gaps).check("probability", probability)
    cuts = thresholds_from(threshold, tuple(models))
    dtype = count_type(labels.size)
    score = np.stack(list(columns.values())) + 0.0  # -0.0 and 0.0 are one score
    try:
        weight = row_weights(sample_weight, labels.size)
        chance = row_probabilities(probability, gaps)
    except InputError as error:
        raise error.worded_for({"y_score": "y_true"}) from None
    return SharedRows(
        names=tuple(models),
        score=score,
        decision=score >= np.array(cuts)[:, None],
        thresholds=cuts,
        positives=positive.astype(dtype),
        negatives=(~positive & ~gaps).astype(dtype),
        missing=gaps.astype(dtype),
        weight=weight,
        probability=chance,
        pos_label=pos_label,
    )


def named_scores(scores: Any, argument: str = "scores", fewest: int = 2) -> dict[str, Any]:
    """Return scores by the name of their model, from a mapping, a table with a column for each, or a list of arrays.

    Models without names are called "model_1", "model_2" and so on.
    """
    scores = frames.columns_of(scores, argument)
    if isinstance(scores, (list, tuple)) and scores and all(map(_is_column, scores)):
        scores = {f"model_{i}": column for i, column in enumerate(scores, 1)}
    if not isinstance(scores, Mapping):
        raise InputError(
            argument,
            a_kind_of(scores),
            "It must be a mapping from the name of each model to its scores, such as {'champion': p1, 'challenger': "
            "p2}.",
        )
    for name in scores:
        if not isinstance(name, str) or not name:
            raise InputError(argument, f"{name!r} as the name of a model", "Names must be text, and not empty.")
    if len(scores) < fewest:
        found = f"one model, {next(iter(scores))!r}" if scores else "no model"
        rule = "A comparison needs at least two models."
        raise InputError(argument, found, rule, "For one model, call evaluate.")
    return dict(scores)


def _is_column(values: Any) -> bool:
    return frames.is_container(type(values)) and not isinstance(values, str)


def thresholds_from(threshold: Any, names: tuple[str, ...]) -> tuple[float, ...]:
    """The threshold of each model, from one for all or a mapping by name; 0.5 where nothing is said."""
    if isinstance(threshold, Mapping):
        stranger = next((name for name in threshold if name not in names), None)
        if stranger is not None:
            raise unknown_name("threshold", "model", str(stranger), names)
        given = [threshold.get(name) for name in names]
    else:
        given = [threshold] * len(names)
    return tuple(cut for cut in (decided_from(one, None) for one in given) if cut is not None)


def shared_cells(
    frame: Any,
    *,
    label: str,
    scores: Any,
    threshold: Any,
    weight: str | None,
    pos_label: Any,
    missing_label: Any,
    score_bins: Any,
) -> SharedRows:
    """The rows of a table, counted where they are."""
    check_label_values(pos_label, missing_label)
    models = named_columns(scores)
    cuts = thresholds_from(threshold, tuple(models))
    first, *others = models.values()
    columns = frames.ColumnNames(label, first, weight=weight, more_scores=tuple(others))
    about: dict[str, Any] = {"pos_label": pos_label, "missing_label": missing_label, "score_bins": score_bins}
    try:
        counted = frames.count_cells(frame, columns, threshold=cuts, **about)
    except InputError as error:
        raise error.worded_for({"y_score": "scores"}) from None
    check_classes(counted.labels, pos_label, columns.title("label"), missing_label)
    return SharedRows(
        names=tuple(models),
        score=counted.score,
        decision=counted.decision,
        thresholds=cuts,
        positives=counted.positives,
        negatives=counted.negatives,
        missing=counted.missing,
        weight=counted.weight,
        pos_label=pos_label,
        score_bins=counted.score_bins,
        low=counted.low,
        high=counted.high,
    )


def named_columns(scores: Any) -> dict[str, str]:
    """The column of each model by its name, from a mapping or from columns that are their models' names."""
    if isinstance(scores, str) or (not isinstance(scores, Mapping) and not isinstance(scores, Sequence)):
        raise InputError(
            "scores",
            f"{scores!r}",
            "They must be the names of two columns or more, or a mapping from models to columns.",
        )
    if not isinstance(scores, Mapping):
        twice = next((name for i, name in enumerate(scores) if name in scores[:i]), None)
        if twice is not None:
            raise InputError("scores", f"column {twice!r} is passed twice", "Models need columns of their own.")
        scores = {str(name): name for name in scores}
    models = named_scores(scores)
    for name, column in models.items():
        frames.check_name("scores", column)
        others = [other for other, same in models.items() if same == column]
        if len(others) > 1:
            raise InputError(
                "scores",
                f"column {column!r} is that of {others[0]!r} and {others[1]!r}",
                "Models need columns of their own.",
                "Pass one column for each model.",
            )
        if not isinstance(column, str):
            raise InputError("scores", f"{column!r} for {name!r}", "It must be the name of a column.")
    return models


def reference_rows(reference: Any, scores: Any, **settings: Any) -> Any:
    """Return reference rows: as they are, or counted if they are in a table; `scores` are those compared.

    A reference table has the columns of `scores`, unless its own are passed.
    """
    if not isinstance(reference, Reference) or reference.data is None:
        return reference
    own, label = reference.y_score, reference.y_true
    if isinstance(own, str):
        call = f"dm.missing.Reference({label!r}, {named_columns(scores)!r}, data=...)"
        rule = "A comparison needs the scores of every model."
        raise InputError("reference", f"one column of scores, {own!r}", rule, f"Write {code(call)}.")
    if own is None and not _are_columns(scores):
        call = f"dm.missing.Reference({label!r}, {{model: column}}, data=...)"
        raise InputError("reference", "no columns of scores", "", f"Write {code(call)}, with every model.")
    names = tuple(named_columns(scores)) if _are_columns(scores) else tuple(named_scores(scores))
    columns = named_columns(scores if own is None else own)
    absent = next((name for name in names if name not in columns), None)
    if absent is not None:
        raise InputError("reference", f"no scores of {absent!r}", "Reference rows need those of every model.")
    columns = {name: columns[name] for name in names}
    try:
        return shared_cells(reference.data, label=label, scores=columns, weight=None, **settings)
    except InputError as error:
        raise InputError("reference", str(error).removesuffix(".")) from None


def _are_columns(scores: Any) -> bool:
    values = scores.values() if isinstance(scores, Mapping) else scores if isinstance(scores, (list, tuple)) else [None]
    return all(isinstance(value, str) for value in values)
