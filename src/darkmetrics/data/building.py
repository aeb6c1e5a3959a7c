"""From the arguments of EvaluationSet to counted cells: arrays are counted here, tables by their own engine."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, IntArray
from darkmetrics.data.ages import row_ages, settled, table_times
from darkmetrics.data.cells import Cells, group_rows
from darkmetrics.data.merging import cells_by_group, cells_of_clusters
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
)
from darkmetrics.exceptions import InputError
from darkmetrics.wording import code, named, setting

# Arguments, and fields of mechanisms, that hold a value per row.
_PER_ROW = (
    *("y_true", "y_score", "y_pred", "sample_weight", "clusters"),
    *("probability", "strata", "propensity", "age", "delay", "scored_at", "labeled_at"),
)
# Those that engines do not read: their tables have to be in memory.
_IN_MEMORY = ("age", "delay")


class HasRows(Protocol):
    """A missingness mechanism: it may have values per row, or learn them from the labels."""

    @property
    def features(self) -> Any:
        """Features of the rows, from which `learn_rows` learns; None if there are none."""

    def row_values(self) -> dict[str, Any]:
        """Return values per row, or names of columns, by field."""

    def without_rows(self) -> Any:
        """Return the mechanism for rows that are counted."""

    def learn_rows(self, positive: BoolArray, missing: BoolArray, data: Any) -> dict[str, Any]:
        """Return values per row that follow from the labels."""


class CountedRows(NamedTuple):
    """Cells, with the threshold, the number of score bins and the cluster of each cell, if there are any."""

    cells: Cells
    threshold: float | None
    score_bins: int | None = None
    clusters: IntArray | None = None


def row_values_of(missingness: Any) -> dict[str, Any]:
    """Return the values per row of a mechanism, by field."""
    values: dict[str, Any] = {} if missingness is None else missingness.row_values()
    return values


def covariates_need_rows() -> InputError:
    """Return the error for features of rows with counts of rows."""
    return InputError(
        "missingness",
        "Covariates with an EvaluationSet",
        "Covariates belong to rows, and an EvaluationSet has counts.",
        "Pass labels and scores to evaluate.",
    )


def check_has_values(missingness: Any) -> None:
    """Refuse a mechanism for an EvaluationSet, which counts values per row and keeps nothing else."""
    if getattr(missingness, "features", None) is not None:
        raise covariates_need_rows()
    if not hasattr(missingness, "row_values") or not missingness.row_values():
        name = repr(missingness) if isinstance(missingness, str) else type(missingness).__name__
        raise InputError(
            "missingness",
            f"{name} has no values per row",
            "An EvaluationSet counts values per row.",
            f"Pass {named('missingness')} to evaluate.",
        )


def count_rows(*, data: Any = None, missingness: Any = None, score_bins: Any = "auto", **arguments: Any) -> CountedRows:
    """Count the rows of arrays or of a table, with what a mechanism needs of them.

    `arguments` are the other arguments of EvaluationSet.
    """
    learner = None if missingness is None or missingness.features is None else missingness
    arguments = columns_of_data(arguments | row_values_of(missingness), data, in_memory=learner is not None)
    if data is not None and isinstance(arguments["y_true"], str):
        return count_table(data, **arguments, score_bins=score_bins)
    check_bins_of_arrays(score_bins)
    return count_arrays(**arguments, data=data, learner=learner)


def columns_of_data(rows: Mapping[str, Any], data: Any, *, in_memory: bool = False) -> dict[str, Any]:
    """Return the values per row as arrays, or as names of columns if the engine of `data` is to count them.

    Parameters
    ----------
    rows : mapping from argument to array-like or str
        What was passed for each row; other arguments stay as they are.
    data : table or None
        Where the columns are.
    in_memory : bool
        Whether the values are needed in this process.
    """
    per_row = {name: value for name, value in rows.items() if name in _PER_ROW and value is not None}
    columns = {name: value for name, value in per_row.items() if isinstance(value, str)}
    if data is None:
        for name, value in columns.items():
            raise InputError(name, f"{value!r} is the name of a column", "", f"Pass its table as {setting('data')}.")
        if rows["y_score"] is None:
            raise InputError("y_score", "missing", "", "Pass the scores, or an EvaluationSet as the only rows.")
        return dict(rows)
    for name in ("y_true", "y_score"):
        if rows[name] is None:
            raise InputError(name, "missing", "", f"Pass the name of a column of {named('data')}.")
    arrays = [name for name in per_row if name not in columns]
    in_memory = in_memory or isinstance(data, Mapping) or any(name in per_row for name in _IN_MEMORY)
    if not (arrays or in_memory):
        return dict(rows)
    table = frames.columns_of(data, "data")
    if not isinstance(table, Mapping):
        if arrays:
            raise InputError(
                arrays[0],
                f"values, but {named('data')} is not in memory",
                "Values and columns go together only in memory.",
                "Pass the name of a column.",
            )
        raise InputError("data", "not in memory", "This mechanism needs rows in memory.", "Pass a DataFrame.")
    for name, value in columns.items():
        if value not in table:
            raise frames.unknown_column(name, value, list(table))
    return {name: table[value] if name in columns else value for name, value in rows.items()}


def count_arrays(
    *,
    y_true: Any,
    y_score: Any,
    threshold: Any = None,
    y_pred: Any = None,
    pos_label: Any = 1,
    missing_label: Any = None,
    sample_weight: Any = None,
    probability: Any = None,
    strata: Any = None,
    propensity: Any = None,
    age: Any = None,
    delay: Any = None,
    maturity: Any = None,
    scored_at: Any = None,
    labeled_at: Any = None,
    as_of: Any = None,
    clusters: Any = None,
    data: Any = None,
    learner: HasRows | None = None,
) -> CountedRows:
    """Count rows of arrays; `learner` adds values per row, from the features in `data`."""
    for name, value in (("scored_at", scored_at), ("labeled_at", labeled_at), ("as_of", as_of)):
        if value is not None:
            raise InputError(
                name,
                "passed with arrays",
                "Columns of times belong to tables, whose engine counts them.",
                f"Pass {code('dm.missing.Delayed(age=..., delay=...)')}: the time since each row was scored, and "
                "until its label arrived.",
            )
    if clusters is not None and age is not None:
        rule = "Rows with ages are counted in bins, which do not keep clusters."
        raise InputError("clusters", f"passed with {named('age')}", rule, "Leave one of the two out.")
    score = frames.number_column(y_score, "y_score")
    labels, missing = frames.label_column(y_true, "y_true")
    check_length(labels, "y_true", score.size)
    if score.size == 0:
        raise InputError("y_true", "no rows", "An evaluation set needs at least one.")
    check_finite(score, "y_score", "Scores must be finite.", "Drop or impute those rows.")
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
    if learner is not None:
        if names is not None:
            names.check("X", learner.features)
        probability = learner.learn_rows(positive, missing, data).get("probability", probability)
    if names is not None:
        names.check("probability", probability)  # one per row
        names.at(missing).check("probability", probability)  # or one per missing row
    cut = decided_from(threshold, None if y_pred is None else "y_pred")
    decision = given_decisions(y_pred, score.size, pos_label, classes) if cut is None else score >= cut
    counts = ((~positive & ~missing).view(np.int8), missing.view(np.int8))
    rows = Cells(
        score,
        decision,
        positive.view(np.int8),
        *counts,
        row_weights(sample_weight, score.size),
        row_probabilities(probability, missing),
        stratum=row_strata(strata, score.size),
        age=row_ages(age, delay, maturity, missing, positive),
        propensity=row_propensities(propensity, missing, aged=age is not None),
    )
    cluster = row_groups(clusters, score.size)
    cells, kept = group_rows(rows if maturity is None else settled(rows), split=cut is None, apart=cluster)
    return CountedRows(cells, cut, None, None if cluster is None else cluster[kept])


def column_names(
    *,
    y_true: Any,
    y_score: Any,
    y_pred: Any = None,
    sample_weight: Any = None,
    probability: Any = None,
    strata: Any = None,
    propensity: Any = None,
    scored_at: Any = None,
    labeled_at: Any = None,
) -> frames.ColumnNames:
    """Return the columns of a table by the part they play."""
    return frames.ColumnNames(
        y_true, y_score, y_pred, probability, sample_weight, strata, propensity, scored_at, labeled_at
    )


def count_table(
    data: Any,
    *,
    threshold: Any = None,
    pos_label: Any = 1,
    missing_label: Any = None,
    score_bins: Any = "auto",
    clusters: Any = None,
    as_of: Any = None,
    maturity: Any = None,
    **rows: Any,
) -> CountedRows:
    """Count rows of a table where they are."""
    check_label_values(pos_label, missing_label)
    columns = column_names(**rows)
    times = table_times(columns.scored_at, columns.labeled_at, as_of, maturity)
    cut = decided_from(threshold, None if columns.decision is None else "y_pred")
    meant: dict[str, Any] = {"threshold": cut, "pos_label": pos_label, "missing_label": missing_label}
    counted = frames.count_cells(data, columns, score_bins=score_bins, clusters=clusters, **meant, **times)
    check_classes(counted.labels, pos_label, columns.title("label"), missing_label)
    if counted.keys:
        cells, cluster = cells_of_clusters(counted, split=cut is None)
        return CountedRows(cells, cut, counted.score_bins, cluster)
    (cells,) = cells_by_group(counted)
    return CountedRows(cells, cut, counted.score_bins)


def check_bins_of_arrays(score_bins: Any) -> None:
    """Refuse score bins for arrays, whose scores are counted exactly."""
    if not (isinstance(score_bins, str) and score_bins in ("auto", "exact")):
        raise InputError(
            "score_bins",
            f"{score_bins!r} with arrays",
            "Scores in arrays are counted exactly.",
            f"Leave {named('score_bins')} out, or call .binned() of the EvaluationSet.",
        )
