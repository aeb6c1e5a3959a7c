"""From the arguments of evaluate to a ClassSet: scores of several classes as a matrix, columns or a mapping."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics._text import counted
from darkmetrics.constraints import shortened
from darkmetrics.data.ages import row_ages
from darkmetrics.data.building import row_values_of
from darkmetrics.data.class_set import ClassSet, group_class_rows
from darkmetrics.data.rules import check_finite, check_length, equals, row_propensities, row_weights
from darkmetrics.exceptions import InputError, warn
from darkmetrics.wording import code, named, setting

# Sums of scores may differ from one by this much: those of 32-bit floats do.
_SUM_TOLERANCE = 1e-3
# Classes and labels that a message lists.
_MAX_LISTED = 8
# What evaluate takes and several classes cannot use.
_NOT_YET = {
    "clusters": "Pass one row of each cluster.",
    "strata": "Evaluate the rows of each stratum alone.",
    "maturity": "Pass arrival times, as dm.missing.Delayed(age=..., delay=...).",
    "scored_at": "Pass ages, as dm.missing.Delayed(age=..., delay=...).",
    "labeled_at": "Pass ages and delays, as dm.missing.Delayed(age=..., delay=...).",
}


class ScoreColumns(NamedTuple):
    """Columns of scores, and what they are called; `names` is None for the columns of a matrix."""

    names: list[Any] | None
    columns: list[Any]


def find_score_columns(y_score: Any) -> ScoreColumns | None:
    """Return the columns if scores come as several: a matrix, a DataFrame, a mapping or a list of names of columns."""
    if isinstance(y_score, Mapping):
        return ScoreColumns(list(y_score), list(y_score.values()))
    if _is_names(y_score):
        return ScoreColumns(list(y_score), list(y_score))
    if isinstance(y_score, (list, tuple)):
        if not (len(y_score) and isinstance(y_score[0], (list, tuple, np.ndarray))):
            return None
        y_score = _to_matrix(y_score)
    if hasattr(type(y_score), "columns"):
        table = frames.columns_of(y_score, "y_score")
        return ScoreColumns(list(table), list(table.values())) if isinstance(table, Mapping) else None
    if getattr(y_score, "ndim", 1) != 2 or np.shape(y_score)[1] < 2:
        return None
    return ScoreColumns(None, list(_to_matrix(y_score).T))


def _to_matrix(values: Any) -> AnyArray:
    try:
        matrix = np.asarray(values)
    except ValueError:
        fix = "Pass a matrix with a column for each class."
        raise InputError("y_score", "rows of different lengths", "", fix) from None
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        finding = f"an array of shape {matrix.shape} and type {matrix.dtype}"
        raise InputError("y_score", finding, "It must be a matrix of numbers.")
    return matrix


def binary_scores(scores: ScoreColumns, y_true: Any, labels: Any, pos_label: Any, missing_label: Any) -> dict[str, Any]:
    """Return `y_score` and `pos_label` for the columns of two classes.

    The positive class is `pos_label` if it is one of the classes; else the second one.
    """
    if len(scores.columns) < 2:
        fix = "Pass the scores of the positive class alone."
        raise InputError("y_score", "one column of scores for one class", "", fix)
    classes = _class_names(scores, labels)
    if classes is None and not isinstance(y_true, str):
        classes = _read_labels(y_true, missing_label)
    if classes is None or len(classes) != 2:
        return {"y_score": scores.columns[1]}
    if scores.names is not None and not isinstance(y_true, str):
        known = {_key(value) for value in _read_labels(y_true, missing_label)}
        if known and not known <= {_key(name) for name in classes}:
            raise InputError(
                "y_score",
                f"columns {_listed(classes)}, but labels {_listed(_read_labels(y_true, missing_label))}",
                "Columns are the scores of the classes.",
                "For the scores of several models, write dm.compare(y_true, {...}).",
            )
    position = next((k for k, name in enumerate(classes) if _key(name) == _key(pos_label)), None)
    if position is None and pos_label == 1 and isinstance(y_true, str) and labels is None:
        models = f'dm.compare("{y_true}", {list(scores.columns)!r}, data=df)'
        raise InputError(
            "y_score",
            f"two columns, {_listed(classes)}",
            f"Columns of two classes are called as the labels are; {setting('labels')} names them otherwise.",
            f"For the scores of two models, write {code(models)}.",
        )
    if position is None:
        return {"y_score": scores.columns[1], "pos_label": classes[1]}
    return {"y_score": scores.columns[position]}


def class_set_from(
    scores: ScoreColumns,
    y_true: Any,
    *,
    labels: Any = None,
    data: Any = None,
    missingness: Any = None,
    threshold: Any = None,
    y_pred: Any = None,
    sample_weight: Any = None,
    missing_label: Any = None,
    clusters: Any = None,
    **_: Any,
) -> ClassSet:
    """Return the set for labels and scores of several classes.

    Parameters
    ----------
    scores : ScoreColumns
        Scores of each class.
    threshold : array (K, K), optional
        Costs: `threshold[label][prediction]`; the class with the least expected cost is predicted.
    """
    rows = row_values_of(missingness)
    if missingness is not None and missingness.features is not None:
        fix = "Pass probabilities as dm.missing.Fixed(Q)."
        raise InputError("missingness", "covariates are for two classes", "", fix)
    for name, value in {"clusters": clusters, **rows}.items():
        if value is not None and name in _NOT_YET:
            raise InputError(name, "not with several classes", "", _NOT_YET[name])
    of_rows = {"y_true": y_true, "y_pred": y_pred, "sample_weight": sample_weight, **rows}
    columns, of_rows = _take_columns(scores.columns, of_rows, data)
    frames.row_names(y_true=of_rows["y_true"], y_score=columns[0], y_pred=of_rows["y_pred"])
    score = read_scores(columns, scores.names)
    values, missing = frames.label_column(of_rows["y_true"], "y_true")
    n = len(score)
    check_length(values, "y_true", n)
    missing = _all_missing(values, missing, missing_label)
    classes, label = code_labels(values, missing, _class_names(scores, labels), score.shape[1])
    decision = _decide(score, classes, threshold, of_rows["y_pred"])
    probability = of_rows.get("probability")
    cells = group_class_rows(
        score,
        decision,
        label,
        weight=row_weights(of_rows["sample_weight"], n),
        probability=None if probability is None else read_probabilities(probability, missing, score.shape[1]),
        propensity=row_propensities(of_rows.get("propensity"), missing),
        age=row_ages(of_rows.get("age"), of_rows.get("delay"), None, missing, missing),
    )
    decided_by = "y_pred" if y_pred is not None else "argmax" if threshold is None else "cost"
    return ClassSet(classes, cells, decided_by=decided_by)


def _take_columns(columns: list[Any], rows: dict[str, Any], data: Any) -> tuple[list[Any], dict[str, Any]]:
    """Return columns of scores and values of rows as arrays; those named are columns of `data`."""
    by_name = [value for value in [*columns, *rows.values()] if isinstance(value, str)]
    lists = {name: value for name, value in rows.items() if name == "probability" and _is_names(value)}
    by_name += [column for value in lists.values() for column in value]
    if not by_name:
        return columns, rows
    if data is None:
        finding = f"{by_name[0]!r} is the name of a column"
        raise InputError("y_score", finding, "", f"Pass its table as {setting('data')}.")
    table = data if isinstance(data, Mapping) else frames.collect_columns(data, list(dict.fromkeys(by_name)))
    for name in by_name:
        if name not in table:
            raise frames.unknown_column("y_score" if name in columns else "data", name, list(table))

    def take(value: Any) -> Any:
        return table[value] if isinstance(value, str) else {c: table[c] for c in value} if _is_names(value) else value

    return [take(value) for value in columns], {name: take(value) for name, value in rows.items()}


def _is_names(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and len(value) > 0 and all(isinstance(name, str) for name in value)


def read_scores(columns: Sequence[Any], names: Sequence[Any] | None) -> FloatArray:
    """Return scores as a matrix: finite, not negative, with a positive sum in each row; warn if sums are not one."""
    titles = [f"y_score[:, {k}]" if names is None else named("y_score", names[k]) for k in range(len(columns))]
    score = np.column_stack(
        [frames.number_column(column, title) for column, title in zip(columns, titles, strict=True)]
    )
    if not len(score):
        raise InputError("y_true", "no rows", "An evaluation needs at least one.")
    for column, title in zip(score.T, titles, strict=True):
        check_finite(column, title, "Scores must be finite.", "Drop or fill those rows.")
        if (column < 0.0).any():
            row = int(np.argmax(column < 0.0))
            raise InputError(
                title,
                f"{column[row]:g} at row {row}",
                "Scores of several classes are probabilities and not negative.",
                "Turn log odds into probabilities by a softmax.",
            )
    total = score.sum(axis=1)
    if not total.all():
        row = int(np.argmin(total))
        raise InputError("y_score", f"row {row} has no score above 0", "", "Pass probabilities of the classes.")
    is_off = np.abs(total - 1.0) > _SUM_TOLERANCE
    if is_off.any():
        row = int(np.argmax(is_off))
        warn(
            f"{named('y_score')}: {int(is_off.sum()):,} of {len(score):,} rows do not sum to 1 "
            f"(row {row}: {total[row]:.4g}). Probabilities of missing labels are calibrated from the scores "
            "divided by their sum; metrics use the scores as they are. Divide them by their sum to silence this "
            "warning.",
            UserWarning,
        )
    return score


def code_labels(
    values: AnyArray, missing: BoolArray, names: list[Any] | None, n_classes: int
) -> tuple[list[Any], IntArray]:
    """Return the classes and the class of each row, -1 if its label is missing.

    Columns without names stand for the sorted labels, as in scikit-learn, or for 0, 1, ... if some label is absent.
    """
    present = _sorted_labels(values, missing)
    if names is None:
        if len(present) == n_classes:
            names = present
        elif all(_is_index(value, n_classes) for value in present):
            names = list(range(n_classes))
        else:
            raise InputError(
                "labels",
                f"{named('y_true')} has {counted(len(present), 'label')} ({_listed(present)}), but {named('y_score')} "
                f"has {n_classes} columns",
                "",
                f"Pass the class of each column as {code('labels=[...]')}.",
            )
    places = {_key(name): k for k, name in enumerate(names)}
    if len(places) < len(names):
        raise InputError("labels", _listed(names), "Classes must differ.")
    strangers = [value for value in present if _key(value) not in places]
    if strangers:
        first, last = min(map(str, names)), max(map(str, names))
        n_common = next((i for i, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))
        prefix = first[:n_common]
        stripped = [str(name).removeprefix(prefix) for name in names]
        if prefix and {_key(value) for value in present} <= {_key(name) for name in stripped}:
            names, places, strangers = stripped, {_key(name): k for k, name in enumerate(stripped)}, []
    if strangers:
        row = int(np.argmax(equals(values, missing, strangers[0])))
        raise InputError(
            "y_true",
            f"label {strangers[0]!r} at row {row} is none of the classes ({_listed(names)})",
            "",
            f"Pass a column of scores for each label; for a value that means missing, pass {setting('missing_label')}.",
        )
    number = np.full(values.size, -1, dtype=np.int64)
    known = ~missing
    if values.dtype.kind == "O":
        number[known] = [places[_key(value)] for value in values[known].tolist()]
    else:
        distinct, inverse = np.unique(values[known], return_inverse=True)
        number[known] = np.array([places[_key(value)] for value in distinct.tolist()], dtype=np.int64)[inverse]
    return names, number


def _key(value: Any) -> str:
    """Return what makes labels equal: 1, 1.0, True and "1" are one label."""
    if isinstance(value, (bool, np.bool_)):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _is_index(value: Any, n_classes: int) -> bool:
    return isinstance(value, (int, float)) and float(value).is_integer() and 0 <= value < n_classes


def _sorted_labels(values: AnyArray, missing: BoolArray) -> list[Any]:
    present = values[~missing]
    if values.dtype.kind != "O":
        listed = np.unique(present).tolist()
        return [int(value) if isinstance(value, float) and value.is_integer() else value for value in listed]
    distinct = {_key(value): value for value in present.tolist()}
    try:
        return sorted(distinct.values())
    except TypeError:
        return sorted(distinct.values(), key=str)


def _read_labels(y_true: Any, missing_label: Any) -> list[Any]:
    values, missing = frames.label_column(y_true, "y_true")
    return _sorted_labels(values, _all_missing(values, missing, missing_label))


def _all_missing(values: AnyArray, missing: BoolArray, missing_label: Any) -> BoolArray:
    for value in frames.meaning_missing(missing_label):
        missing = missing | equals(values, missing, value)
    return missing


def _class_names(scores: ScoreColumns, labels: Any) -> list[Any] | None:
    """Return the classes of the columns; `labels` name them in order, unless they are the names of the columns."""
    if labels is None:
        return scores.names
    names = list(labels.tolist() if hasattr(labels, "tolist") else labels)
    n = len(scores.columns)
    if len(names) != n:
        finding = f"{counted(len(names), 'label')}, but {named('y_score')} has {counted(n, 'column')}"
        raise InputError("labels", finding, "Each column needs one.")
    if scores.names is None:
        return names
    keys, own = [_key(name) for name in names], [_key(name) for name in scores.names]
    if set(keys) & set(own) and set(keys) != set(own):
        finding = f"{_listed(names)}, but the columns of {named('y_score')} are {_listed(scores.names)}"
        raise InputError("labels", finding, "They must name the same classes.")
    return scores.names if set(keys) == set(own) else names


def _listed(values: Sequence[Any]) -> str:
    shown = ", ".join(repr(value) for value in list(values)[:_MAX_LISTED])
    return shown + (f", ... ({len(values)} in all)" if len(values) > _MAX_LISTED else "")


def _decide(score: FloatArray, classes: Sequence[Any], threshold: Any, y_pred: Any) -> IntArray:
    if y_pred is not None:
        if threshold is not None:
            raise InputError("threshold", f"{named('y_pred')} already has the predictions", "", "Pass one of the two.")
        values, missing = frames.label_column(y_pred, "y_pred")
        check_length(values, "y_pred", len(score))
        if missing.any():
            raise InputError("y_pred", f"missing at row {int(np.argmax(missing))}", "Every row needs a prediction.")
        places = {_key(name): k for k, name in enumerate(classes)}
        try:
            return np.array([places[_key(value)] for value in values.tolist()], dtype=np.int64)
        except KeyError:
            row = next(i for i, value in enumerate(values.tolist()) if _key(value) not in places)
            finding = f"{values.tolist()[row]!r} at row {row} is none of the classes ({_listed(classes)})"
            raise InputError("y_pred", finding) from None
    if threshold is None:
        return np.asarray(score.argmax(axis=1))
    cost, n = np.asarray(threshold, dtype=np.float64), len(classes)
    if cost.shape != (n, n) or not np.isfinite(cost).all():
        raise InputError(
            "threshold",
            shortened(threshold) if cost.shape != (n, n) else "a cost that is not finite",
            f"With several classes it is a {n} x {n} table of finite costs, cost[label][prediction].",
            "Leave it out to predict the class with the highest score.",
        )
    return np.asarray((score @ cost).argmin(axis=1))


def read_probabilities(probability: Any, missing: BoolArray, n_classes: int) -> FloatArray:
    """Return passed probabilities of the missing labels (n x K), NaN for labeled rows."""
    columns = find_score_columns(probability)
    parts = [probability] if columns is None else columns.columns
    if len(parts) != n_classes:
        finding = f"{counted(len(parts), 'column')} for {n_classes} classes"
        raise InputError("probability", finding, "", "Pass one for each.")
    table = np.column_stack([frames.number_column(part, "probability") for part in parts])
    gaps = int(missing.sum())
    if len(table) not in (missing.size, gaps):
        raise InputError(
            "probability",
            f"{counted(len(table), 'row')} for {missing.size:,} rows of which {gaps:,} are missing their label",
            "",
            "Pass one for each row, or for each missing row.",
        )
    if len(table) != missing.size:
        full = np.full((missing.size, n_classes), np.nan)
        full[missing] = table
        table = full
    used = table[missing]
    bad = ~(
        np.isfinite(used).all(axis=1) & (used >= 0.0).all(axis=1) & (np.abs(used.sum(axis=1) - 1.0) < _SUM_TOLERANCE)
    )
    if bad.any():
        row = int(np.flatnonzero(missing)[np.argmax(bad)])
        finding = f"row {row} is {table[row].tolist()}"
        raise InputError("probability", finding, "Rows must be probabilities that sum to 1.")
    return np.where(missing[:, None], table, np.nan)
