"""Cells in a Parquet file that any engine can read: the format, written and checked here.

`docs/reference/evaluation-set.md` has the columns. What belongs to the whole set is a constant column, so that many
files are one table, with no metadata that an engine might not show.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.age_grid import AGE_CODES, refine
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics._kernels.bin_grid import MIN_BINS, bin_index, nested_number
from darkmetrics.data.cells import COUNTS, KINDS, Cells, count_type
from darkmetrics.exceptions import InputError
from darkmetrics.files import DataFile, readers, write_whole
from darkmetrics.wording import code

VERSION = 1
_FACTS = ("format_version", "checksum", "threshold", "pos_label", "score_bins", "has_weight", "has_probability")
_NUMBERS = ("score", "weight", "probability", "low", "high", "propensity")
_COLUMNS = (*_FACTS, "score", "decision", *COUNTS, "weight", "probability", "low", "high")
# Names of columns in files of earlier versions.
_OLD_NAMES = {"buckets": "score_bins"}
_DAMAGED = "The file is damaged."
_PARQUET = b"PAR1"
# Beyond this, sums of whole numbers are not exact as floats.
_MOST_ROWS = 2**53


class Stored(NamedTuple):
    """A table of cells, and what belongs to the whole set."""

    cells: Cells
    threshold: float | None
    pos_label: Any
    score_bins: int | None


def write_cells(path: Path, stored: Stored) -> None:
    """Writes the file; it appears when it is complete."""
    cells = stored.cells
    if not cells.score.size:
        raise InputError("cells", "none", "A set without rows cannot be stored.")
    constants = {
        "format_version": VERSION,
        "threshold": np.nan if stored.threshold is None else float(stored.threshold),
        "pos_label": _label_text(stored.pos_label),
        "score_bins": stored.score_bins or 0,
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
    columns |= cells.kinds()
    constants["checksum"] = _checksum(constants, columns)
    try:
        write_whole(path, readers.parquet_bytes({name: constants[name] for name in _FACTS}, columns))
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror or error}") from None


def _label_text(label: Any) -> str:
    value = label.item() if isinstance(label, np.generic) else label
    if not isinstance(value, (bool, int, float, str)) or (isinstance(value, float) and not isfinite(value)):
        raise InputError(
            "pos_label",
            f"{label!r} of type {type(label).__name__}",
            "A label that is stored must be a number, True, False or text.",
        )
    return json.dumps(value)


def _checksum(facts: Mapping[str, Any], columns: Mapping[str, AnyArray]) -> int:
    """CRC-32 of what belongs to the whole set, as JSON, and of the columns as 64-bit numbers, in the format's order."""
    own = [facts[name] for name in _FACTS if name != "checksum"]
    total = zlib.crc32(json.dumps([None if value != value else value for value in own]).encode())
    for name in (*_COLUMNS[len(_FACTS) :], *(name for name in KINDS if name in columns)):
        numbers = columns[name].astype("<f8" if name in _NUMBERS else "<i8")
        if name == "probability":
            numbers[np.isnan(numbers)] = np.nan  # one of the many that there are
        total = zlib.crc32(numbers.tobytes(), total)
    return total


def read_cells(path: Path) -> Stored:
    """What `write_cells` wrote; anything else is refused by the file's name, the column and the rule."""
    file = replace(DataFile.of_path(path), engine_order=readers.CAREFUL)
    with file.reading("Parquet"):
        return _read(file)


def _read(file: DataFile) -> Stored:
    if not _is_parquet(file):
        raise InputError("", "not Parquet", fix="Pass a file that EvaluationSet.to_parquet wrote.")
    if "format_version" not in file.column_names:
        raise InputError(
            "",
            "no column 'format_version'",
            "Counts that EvaluationSet.to_parquet wrote have it.",
            f"For a table of rows, pass {code('EvaluationSet(y_true, y_score, data=...)')}.",
        )
    # First of all: a newer format may have other columns.
    version = _constant("format_version", file.read(["format_version"])["format_version"])
    if isinstance(version, bool) or version != VERSION:
        newer = isinstance(version, (int, float)) and not isinstance(version, bool) and version > VERSION
        finding = f"{version!r}, but this version of darkmetrics reads {VERSION}"
        raise InputError("format_version", finding, fix="Update darkmetrics to read it." if newer else _DAMAGED)
    stored_names = {_OLD_NAMES.get(name, name): name for name in file.column_names}
    for name in _COLUMNS:
        if name not in stored_names:
            raise InputError("", f"no column {name!r}", f"Cells of format {VERSION} have it.", _DAMAGED)
    for name in stored_names:
        if name not in (*_COLUMNS, *KINDS):
            raise InputError("", f"an extra column {name!r}", f"Cells of format {VERSION} have none of that name.")
    read = file.read(list(stored_names.values()))
    columns = {name: read[stored] for name, stored in stored_names.items()}
    facts = _checked_facts({name: _constant(name, columns[name]) for name in _FACTS})
    numbers: dict[str, AnyArray] = {name: _whole_numbers(name, columns[name]) for name in COUNTS}
    kept = (*_NUMBERS, "decision", "stratum", "age")
    numbers |= {name: _numbers(name, columns[name]) for name in kept if name in columns}
    _check_values(facts, numbers)
    stored = _assembled(facts, numbers)
    _check_order(stored)
    _check_sides(stored)
    if facts["checksum"] is not None and _checksum(facts, numbers) != facts["checksum"]:
        raise InputError(
            "checksum",
            f"{facts['checksum']}, but that of the values is {_checksum(facts, numbers)}",
            "The values have changed since they were written.",
            _DAMAGED,
        )
    return stored


def _is_parquet(file: DataFile) -> bool:
    if isinstance(file.source, bytes):
        return file.source.startswith(_PARQUET)
    with file.source.open("rb") as stream:
        return stream.read(len(_PARQUET)) == _PARQUET


def _constant(name: str, values: Any) -> Any:
    """The value that all cells share; None for null."""
    labels, missing = frames.value_column(values, name)
    first = None if missing[0] else labels[:1].tolist()[0]
    same = bool(missing.all()) if first is None else bool(np.all(labels == first)) and not missing.any()
    if not same:
        raise InputError(
            name,
            "values differ between cells",
            "The value belongs to the whole set, and must be the same in each row.",
            _DAMAGED,
        )
    return first


def _checked_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What belongs to the whole set, each by its rule; the threshold as a float."""
    rules = {
        "checksum": (_is_whole(facts["checksum"]) or facts["checksum"] is None, "It is a whole number, or null"),
        "threshold": (
            facts["threshold"] is None or _is_finite(facts["threshold"]),
            "It is a finite number, or null where decisions were given",
        ),
        "score_bins": (
            _is_bin_number(facts["score_bins"]),
            "It is 0 for exact scores, or a power of two of at least 16",
        ),
        "has_weight": (isinstance(facts["has_weight"], bool), "It is true or false"),
        "has_probability": (isinstance(facts["has_probability"], bool), "It is true or false"),
        "pos_label": (
            _label(facts["pos_label"]) is not None,
            'It is a label written as JSON, such as 1, true or "yes"',
        ),
    }
    for name, (holds, rule) in rules.items():
        if not holds:
            raise InputError(name, repr(facts[name]), f"{rule}.", _DAMAGED)
    threshold = facts["threshold"]
    return {**facts, "threshold": None if threshold is None else float(threshold)}


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and isfinite(value)


def _is_bin_number(score_bins: Any) -> bool:
    if not _is_whole(score_bins) or not 0 <= score_bins <= _MOST_ROWS:
        return False
    return score_bins == 0 or bool(score_bins >= MIN_BINS and nested_number(score_bins) == score_bins)


def _label(text: Any) -> Any:
    """The label that a JSON text is, or None: it is one value, and not NaN."""
    try:
        label = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        return None
    return label if isinstance(label, (bool, str)) or _is_finite(label) else None


def _whole_numbers(name: str, values: Any) -> IntArray:
    """A column of counts, exactly: as floats, those beyond 2**53 would be others."""
    array, missing = frames.value_column(values, name)
    if array.dtype.kind not in "iuf":  # wider than 64 bits, or no numbers at all
        items = [None if gap else item for item, gap in zip(array.tolist(), missing.tolist(), strict=True)]
        odd = next((i for i, item in enumerate(items) if not (item is None or _is_whole(item))), None)
        if odd is not None:
            raise InputError(name, f"{items[odd]!r} in cell {odd}", "Counts are numbers.", _DAMAGED)
        array = np.array([np.nan if item is None else float(item) for item in items])
    bad = missing | ~((array >= 0) & (array <= _MOST_ROWS) & (array == np.floor(array)))
    shown = np.where(missing, np.nan, array) if missing.any() else array
    _refuse(name, shown, bad, f"Counts are whole numbers from 0 to {_MOST_ROWS:,}")
    return array.astype(np.int64)


def _numbers(name: str, values: Any) -> FloatArray:
    array, _ = frames.value_column(values, name)
    if array.dtype.kind == "b" and name != "decision":
        raise InputError(name, f"{bool(array[0])} in cell 0", "Values are numbers.", _DAMAGED)
    return frames.number_column(values, name)


def _check_values(facts: Mapping[str, Any], numbers: Mapping[str, AnyArray]) -> None:
    """Every number of the table obeys its own rule."""
    rows = np.sum([numbers[name].astype(np.float64) for name in COUNTS], axis=0)
    _refuse("missing", numbers["missing"], rows == 0.0, "A cell has at least one row, labeled or not")
    if rows.sum() > _MOST_ROWS:
        raise InputError(
            "positives, negatives and missing",
            f"{rows.sum():,.0f} rows in all cells",
            f"A set has at most {_MOST_ROWS:,}.",
            _DAMAGED,
        )
    score, decision, weight, chance = (numbers[name] for name in ("score", "decision", "weight", "probability"))
    for name in ("score", "low", "high"):
        _refuse(name, numbers[name], ~np.isfinite(numbers[name]), "Scores are finite")
    if not facts["score_bins"]:
        for name in ("low", "high"):
            _refuse(name, numbers[name], numbers[name] != score, "Without bins it is the score")
    _refuse("decision", decision, ~((decision == 0.0) | (decision == 1.0)), "Decisions are true or false")
    if "stratum" in numbers:
        bad = ~frames.are_strata(numbers["stratum"], limit=2 * frames.MAX_STRATUM)
        _refuse("stratum", numbers["stratum"], bad, "Strata are whole numbers below 2**53 in size")
    if "age" in numbers:
        bad = ~(frames.are_strata(numbers["age"], limit=AGE_CODES) & (numbers["age"] >= 0))
        _refuse("age", numbers["age"], bad, f"Ages are whole numbers from 0 to {AGE_CODES - 1:,}")
    if "propensity" in numbers:
        labeled, missing = numbers["positives"] + numbers["negatives"], numbers["missing"]
        odd = frames.odd_propensities(numbers["propensity"], labeled > 0, missing > 0, aged="age" in numbers)
        _refuse("propensity", numbers["propensity"], odd, frames.PROPENSITY_RULE.removesuffix("."))
    if facts["has_weight"]:
        most = frames.LARGEST_WEIGHT
        within = (weight == 0.0) | ((weight >= 1.0 / most) & (weight <= most))
        _refuse("weight", weight, ~within, f"Weights are finite and not negative: 0, or {1.0 / most:g} to {most:g}")
    else:
        _refuse("weight", weight, weight != 1.0, "Without weights (has_weight is false) it is 1")
    if facts["has_probability"]:
        _refuse(
            "probability",
            chance,
            np.where(np.isnan(chance), numbers["missing"] > 0, ~((chance >= 0.0) & (chance <= 1.0))),
            "Probabilities lie in [0, 1], and cells with missing labels have one",
        )
    else:
        _refuse("probability", chance, ~np.isnan(chance), "Without probabilities (has_probability is false) it is null")


def _assembled(facts: Mapping[str, Any], numbers: Mapping[str, AnyArray]) -> Stored:
    dtype = count_type(sum(int(numbers[name].sum()) for name in COUNTS))
    kinds = {name: numbers[name].astype(np.int64) for name in ("stratum", "age") if name in numbers}
    if kinds.keys() == {"stratum"} and np.all(kinds["stratum"] >= frames.MAX_STRATUM):
        # Until ages had a column of their own, they were stored as large strata.
        kinds = {"age": kinds["stratum"] - frames.MAX_STRATUM}
    if "age" in kinds:
        kinds["age"] = refine(kinds["age"])
    cells = Cells(
        score=numbers["score"],
        decision=numbers["decision"] == 1.0,
        **{name: numbers[name].astype(dtype) for name in COUNTS},
        weight=numbers["weight"] if facts["has_weight"] else None,
        probability=numbers["probability"] if facts["has_probability"] else None,
        low=numbers["low"] if facts["score_bins"] else None,
        high=numbers["high"] if facts["score_bins"] else None,
        **kinds,
        propensity=numbers.get("propensity"),
    )
    return Stored(cells, facts["threshold"], _label(facts["pos_label"]), facts["score_bins"] or None)


def _check_order(stored: Stored) -> None:
    """Rising scores, each key once; a table that was added up or edited elsewhere may not be."""
    cells = stored.cells
    keys: list[AnyArray] = [cells.score]
    if cells.probability is not None and stored.score_bins is None:
        keys.append(np.where(np.isnan(cells.probability), -1.0, cells.probability))
    own = (cells.weight, cells.decision.astype(np.float64), *cells.kinds().values())
    keys += [key for key in own if key is not None]
    rises, equal = np.zeros(cells.score.size - 1, dtype=np.bool_), np.ones(cells.score.size - 1, dtype=np.bool_)
    for key in keys:
        rises |= equal & (key[1:] > key[:-1])
        equal &= key[1:] == key[:-1]
    bad = np.concatenate([[False], ~rises])
    _refuse("score", cells.score, bad, "Cells are sorted by score, and each is there once")


def _check_sides(stored: Stored) -> None:
    """Scores lie in one bin each, and on the side of the threshold that was decided."""
    cells, threshold = stored.cells, stored.threshold
    low, high = (cells.score, cells.score) if cells.low is None or cells.high is None else (cells.low, cells.high)
    if stored.score_bins is not None:
        tied = np.concatenate([[False], cells.score[1:] == cells.score[:-1]])
        for name, end in (("low", low), ("high", high)):
            differs = np.concatenate([[False], end[1:] != end[:-1]])
            _refuse(name, end, tied & differs, "Cells of one score have one low and one high")
        place = bin_index(low, stored.score_bins)
        inside = (low <= cells.score) & (cells.score <= high) & (place == bin_index(high, stored.score_bins))
        # A bin is there once, or once on each side of the threshold.
        again = ~tied[1:] & (place[1:] == place[:-1])
        if threshold is not None:
            again &= (high[:-1] >= threshold) | (low[1:] < threshold)
        inside[1:] &= tied[1:] | ((low[1:] > high[:-1]) & ~again)
        rule = "The mean of a bin lies between its low and high, in a bin of its own"
        _refuse("score", cells.score, ~inside, rule)
    if threshold is not None:
        wrong = (cells.decision != (low >= threshold)) | (cells.decision != (high >= threshold))
        _refuse("decision", cells.decision, wrong, f"Decisions are positive from the threshold {threshold!r} on")


def _refuse(name: str, values: AnyArray, bad: BoolArray | AnyArray, rule: str) -> None:
    if bad.any():
        at = int(np.argmax(bad))
        value = values[at].item()
        shown = int(value) if isinstance(value, float) and value.is_integer() else value
        raise InputError(name, f"{shown!r} in cell {at}", f"{rule}.", _DAMAGED)
