"""Cells in a Parquet file that any engine can read: the format, written and checked here.

`docs/reference/evaluation-set.md` has the columns. What belongs to the whole set is a constant column, so that many
files are one table, with no metadata that an engine might not show.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray
from darkmetrics._kernels.buckets import FEWEST_BUCKETS, bucket_index, nested_number
from darkmetrics.cells import COUNTS, Cells, count_type
from darkmetrics.exceptions import InputError
from darkmetrics.files import DataFile, engines, write_whole

VERSION = 1
_FACTS = ("format_version", "threshold", "pos_label", "buckets", "has_weight", "has_probability")
_COLUMNS = (*_FACTS, "score", "decision", *COUNTS, "weight", "probability", "low", "high")
_PARQUET = b"PAR1"


class Stored(NamedTuple):
    """A table of cells, and what belongs to the whole set."""

    cells: Cells
    threshold: float | None
    pos_label: Any
    buckets: int | None


def write_cells(path: Path, stored: Stored) -> None:
    """Writes the file; it appears when it is complete."""
    cells = stored.cells
    if not cells.score.size:
        raise InputError("cells: none. A set without rows cannot be stored.")
    constants = {
        "format_version": VERSION,
        "threshold": np.nan if stored.threshold is None else float(stored.threshold),
        "pos_label": _label_text(stored.pos_label),
        "buckets": stored.buckets or 0,
        "has_weight": cells.weight is not None,
        "has_probability": cells.probability is not None,
    }
    columns = {
        "score": cells.score,
        "decision": cells.decision,
        **{name: getattr(cells, name).astype(np.int64) for name in COUNTS},
        "weight": np.ones(cells.score.size) if cells.weight is None else cells.weight,
        "probability": np.full(cells.score.size, np.nan) if cells.probability is None else cells.probability,
        "low": cells.score if cells.low is None else cells.low,
        "high": cells.score if cells.high is None else cells.high,
    }
    try:
        write_whole(path, engines.parquet_bytes(constants, columns))
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}.") from None


def _label_text(label: Any) -> str:
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, (bool, int, float, str)):
        raise InputError(
            f"pos_label: {label!r} of type {type(label).__name__} cannot be stored; a number, True, False or text can."
        )
    return json.dumps(value)


def read_cells(path: Path) -> Stored:
    """What `write_cells` wrote; anything else is refused by the file's name, the column and the rule."""
    file = DataFile.of_path(path)
    try:
        return _read(file)
    except InputError as error:
        text = str(error)
        raise InputError(text if text.startswith(file.name) else f"{file.name}: {text}") from None


def _read(file: DataFile) -> Stored:
    if not _is_parquet(file):
        raise InputError("is not Parquet. Expected cells that EvaluationSet.to_parquet wrote.")
    if "format_version" not in file.column_names:
        raise InputError(
            "no column 'format_version', so these are not cells that EvaluationSet.to_parquet wrote. "
            "EvaluationSet.from_frame reads a table of rows."
        )
    # First of all: a newer format may have other columns.
    version = _constant("format_version", file.read(["format_version"])["format_version"])
    if version != VERSION:
        newer = isinstance(version, (int, float)) and version > VERSION
        advice = "Update darkmetrics to read it." if newer else "The file is damaged."
        raise InputError(f"format_version: {version!r}, but this version of darkmetrics reads {VERSION}. {advice}")
    for name in _COLUMNS:
        if name not in file.column_names:
            raise InputError(f"no column {name!r}. Cells of format {VERSION} have it; the file is damaged.")
    for name in file.column_names:
        if name not in _COLUMNS:
            raise InputError(f"an extra column {name!r}. Cells of format {VERSION} have none of that name.")
    columns = file.read(_COLUMNS)
    facts = {name: _constant(name, columns[name]) for name in _FACTS}
    numbers = {name: frames.number_column(columns[name], name) for name in _COLUMNS if name not in _FACTS}
    stored = _assembled(facts, numbers)
    _check_order(stored)
    _check_sides(stored)
    return stored


def _is_parquet(file: DataFile) -> bool:
    if isinstance(file.source, bytes):
        return file.source.startswith(_PARQUET)
    with file.source.open("rb") as stream:
        return stream.read(len(_PARQUET)) == _PARQUET


def _constant(name: str, values: Any) -> Any:
    """The value that all cells share; None for null."""
    labels, missing = frames.label_column(values, name)
    first = None if missing[0] else labels[:1].tolist()[0]
    same = bool(missing.all()) if first is None else bool(np.all(labels == first)) and not missing.any()
    if not same:
        raise InputError(
            f"{name}: differs between cells. It belongs to the whole set, and must be the same in each row."
        )
    return first


def _assembled(facts: Mapping[str, Any], numbers: Mapping[str, AnyArray]) -> Stored:
    """The table, every number of which obeys its own rule."""
    for name in COUNTS:
        count = numbers[name]
        _refuse(name, count, ~((count >= 0.0) & (count == np.floor(count))), "Counts are whole numbers from 0")
    rows = np.sum([numbers[name] for name in COUNTS], axis=0)
    _refuse("missing", numbers["missing"], rows == 0.0, "A cell has at least one row, labelled or not")
    for name in ("score", "low", "high"):
        _refuse(name, numbers[name], ~np.isfinite(numbers[name]), "Scores are finite")
    decision = numbers["decision"]
    _refuse("decision", decision, ~((decision == 0.0) | (decision == 1.0)), "Decisions are true or false")
    weight, chance = numbers["weight"], numbers["probability"]
    _refuse("weight", weight, ~(np.isfinite(weight) & (weight >= 0.0)), "Weights are finite and not negative")
    open_ = bool(facts["has_probability"]) & (numbers["missing"] > 0.0)
    _refuse(
        "probability",
        chance,
        np.where(np.isnan(chance), open_, ~((chance >= 0.0) & (chance <= 1.0))),
        "Probabilities lie in [0, 1], and cells with missing labels have one",
    )
    buckets = facts["buckets"]
    if not isinstance(buckets, (int, float)) or buckets != int(buckets) or (buckets and not _is_bucket_number(buckets)):
        raise InputError(f"buckets: {buckets!r}. It is 0 for exact scores, or a power of two of at least 16.")
    threshold = facts["threshold"]
    if not isinstance(threshold, (float, int, type(None))):
        raise InputError(f"threshold: {threshold!r}. It is a number, or null where decisions were given.")
    dtype = count_type(int(rows.sum()))
    cells = Cells(
        score=numbers["score"],
        decision=decision == 1.0,
        **{name: numbers[name].astype(dtype) for name in COUNTS},
        weight=weight if facts["has_weight"] else None,
        probability=chance if facts["has_probability"] else None,
        low=numbers["low"] if buckets else None,
        high=numbers["high"] if buckets else None,
    )
    return Stored(
        cells, None if threshold is None else float(threshold), _label(facts["pos_label"]), int(buckets) or None
    )


def _is_bucket_number(buckets: float) -> bool:
    return buckets >= FEWEST_BUCKETS and nested_number(int(buckets)) == buckets


def _label(text: Any) -> Any:
    try:
        label = json.loads(text)
    except (TypeError, ValueError):
        label = None
    if not isinstance(label, (bool, int, float, str)):
        raise InputError(f'pos_label: {text!r}. It is a label written as JSON, such as 1, true or "yes".')
    return label


def _check_order(stored: Stored) -> None:
    """Rising scores, each key once; a table that was added up or edited elsewhere may not be."""
    cells = stored.cells
    keys: list[AnyArray] = [cells.score]
    if cells.probability is not None and stored.buckets is None:
        keys.append(np.where(np.isnan(cells.probability), -1.0, cells.probability))
    keys += [key for key in (cells.weight, cells.decision.astype(np.float64)) if key is not None]
    rises, equal = np.zeros(cells.score.size - 1, dtype=np.bool_), np.ones(cells.score.size - 1, dtype=np.bool_)
    for key in keys:
        rises |= equal & (key[1:] > key[:-1])
        equal &= key[1:] == key[:-1]
    bad = np.concatenate([[False], ~rises])
    _refuse("score", cells.score, bad, "Cells are sorted by score, and each is there once")


def _check_sides(stored: Stored) -> None:
    """Scores lie in one bucket each, and on the side of the threshold that was decided."""
    cells, threshold = stored.cells, stored.threshold
    low, high = (cells.score, cells.score) if cells.low is None or cells.high is None else (cells.low, cells.high)
    if stored.buckets is not None:
        first, last = cells.tie_ends
        mean = cells.score if cells.tie_starts is None else cells.score[cells.tie_starts]
        inside = (first <= mean) & (mean <= last)
        inside &= bucket_index(first, stored.buckets) == bucket_index(last, stored.buckets)
        inside[1:] &= first[1:] > last[:-1]
        _refuse("score", mean, ~inside, "The mean of a bucket lies between its low and high, in a bucket of its own")
    if threshold is not None:
        wrong = (cells.decision != (low >= threshold)) | (cells.decision != (high >= threshold))
        _refuse("decision", cells.decision, wrong, f"Decisions are positive from the threshold {threshold!r} on")


def _refuse(name: str, values: AnyArray, bad: BoolArray | AnyArray, rule: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        value = values[at].item()
        shown = int(value) if isinstance(value, float) and value.is_integer() else value
        raise InputError(f"{name}: {shown!r} in cell {at}. {rule}; the file is damaged.")
