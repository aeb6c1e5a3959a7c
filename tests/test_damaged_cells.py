"""A stored set that is damaged in any column or field is refused in one line, or loads as it was."""

import datetime as dt
import json
import tempfile
import zlib
from decimal import Decimal
from functools import cache
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.files import readers

NAN, INF = float("nan"), float("inf")


def exact():
    rng = np.random.default_rng(0)
    score = rng.choice([0.1, 0.25, 0.4, 0.6, 0.75, 0.9], 60)
    y = np.where(rng.random(60) < 0.4, np.nan, rng.integers(0, 2, 60))
    return EvaluationSet(
        y, score, sample_weight=rng.choice([1.0, 2.5], 60), missingness=dm.missing.Fixed(rng.choice([0.2, 0.7], 60))
    )


def plain():
    rng = np.random.default_rng(1)
    y = np.where(rng.random(60) < 0.4, np.nan, rng.integers(0, 2, 60))
    return EvaluationSet(y, rng.choice([0.1, 0.25, 0.4, 0.6, 0.75, 0.9], 60))


def binned():
    rng = np.random.default_rng(2)
    y = np.where(rng.random(400) < 0.4, np.nan, rng.integers(0, 2, 400))
    return EvaluationSet(y, rng.random(400), sample_weight=rng.choice([1.0, 2.5], 400)).binned(32)


def decided():
    rng = np.random.default_rng(3)
    y = np.where(rng.random(60) < 0.4, np.nan, rng.integers(0, 2, 60))
    return EvaluationSet(y, rng.choice([0.1, 0.25, 0.9], 60), y_pred=rng.integers(0, 2, 60))


SETS = {"exact": exact, "plain": plain, "binned": binned, "decided": decided}


@cache
def stored(kind):
    """The table of a set, as its file holds it."""
    with tempfile.TemporaryDirectory() as folder:
        return pl.read_parquet(SETS[kind]().to_parquet(Path(folder) / "set.parquet").read_bytes())


@pytest.fixture(params=["polars", "pyarrow", "pandas"])
def engine(request, monkeypatch):
    """As if no other package were installed."""
    monkeypatch.setattr(readers, "_installed", lambda name: name == request.param)
    return request.param


def same(data, back):
    """Bit for bit, whatever the integers' width."""
    if (data.threshold, data.pos_label, data.score_bins) != (back.threshold, back.pos_label, back.score_bins):
        return False
    for name, array in data.cells.arrays().items():
        other = getattr(back.cells, name)
        if (array is None) != (other is None):
            return False
        if array is not None and not np.array_equal(array, other, equal_nan=array.dtype.kind == "f"):
            return False
    return True


def unsigned(frame):
    """The table without its checksum, so that rules are all that can find a damage."""
    return frame.with_columns(checksum=pl.lit(None, pl.Int64))


def at(column, value, place=0):
    """One value changed; the column takes the type of the new value where its own cannot hold it."""

    def change(frame):
        values = frame[column].to_list()
        values[place] = value
        return frame.with_columns(pl.Series(column, values, strict=False, dtype=_type(frame[column].dtype, value)))

    return change


def _type(dtype, value):
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and dtype.is_integer()):
        return dtype
    if isinstance(value, float) and dtype.is_numeric():
        return pl.Float64
    return None if not isinstance(value, (int, float)) or isinstance(value, bool) else dtype


def everywhere(column, value, dtype=None):
    return lambda frame: frame.with_columns(pl.lit(value, dtype=dtype).alias(column))


def nested(column):
    return lambda frame: frame.with_columns(pl.concat_list(pl.lit(1)).alias(column))


def text(column):
    return lambda frame: frame.with_columns(pl.lit("x").alias(column))


COUNTS = ("positives", "negatives", "missing")
FACTS = ("format_version", "checksum", "threshold", "pos_label", "score_bins", "has_weight", "has_probability")
FLOATS = ("score", "weight", "low", "high")
COLUMNS = (*FACTS, "score", "decision", *COUNTS, "weight", "probability", "low", "high")

# Within a bin, one cell with another end than the one before it.
LOWER = pl.when(pl.col("score") == pl.col("score").shift(1)).then(pl.col("low") * 0.999999).otherwise("low")

# Of a good set: what is done to it, and the field that the error must name.
DAMAGES = [
    *((f"{name} nested", "exact", nested(name), name) for name in COLUMNS),
    *((f"{name} text", "exact", text(name), name) for name in COLUMNS),
    *((f"{name} a date", "exact", everywhere(name, dt.date(2026, 1, 1)), name) for name in COLUMNS),
    *((f"{name} gone", "exact", lambda frame, name=name: frame.drop(name), name) for name in COLUMNS),
    *((f"{name} null", "exact", at(name, None), name) for name in (*COUNTS, *FLOATS, "decision")),
    *((f"{name} NaN", "exact", at(name, NAN), name) for name in (*COUNTS, *FLOATS)),
    *((f"{name} infinite", "exact", at(name, INF), name) for name in (*COUNTS, *FLOATS, "probability")),
    *((f"{name} true", "exact", everywhere(name, True), name) for name in (*COUNTS, *FLOATS, "probability")),
    *((f"{name} null in all", "exact", everywhere(name, None, pl.Int64), name) for name in (*COUNTS, *FLOATS)),
    *((f"{name} differs", "exact", at(name, None), name) for name in FACTS),
    *((f"{name} negative", "exact", at(name, -1), name) for name in COUNTS),
    *((f"{name} broken", "exact", at(name, 0.5), name) for name in COUNTS),
    *((f"{name} beyond 2**53", "exact", at(name, 2**53 + 1), name) for name in COUNTS),
    *((f"{name} overflows", "exact", at(name, 2**63 - 1), name) for name in COUNTS),
    *((f"{name} of 64 bits without a sign", "exact", everywhere(name, 2**64 - 1, pl.UInt64), name) for name in COUNTS),
    *((f"{name} of 128 bits", "exact", everywhere(name, 2**100, pl.Int128), name) for name in COUNTS),
    *((f"{name} a decimal", "exact", everywhere(name, Decimal("1.5")), name) for name in COUNTS),
    ("sums beyond 2**53", "exact", everywhere("missing", 2**53), "positives, negatives and missing"),
    ("no rows in a cell", "plain", lambda f: f.with_columns(pl.col(*COUNTS) * 0), "missing"),
    ("version true", "exact", everywhere("format_version", True), "format_version"),
    ("version a float", "exact", everywhere("format_version", 1.5), "format_version"),
    ("version infinite", "exact", everywhere("format_version", INF), "format_version"),
    ("version null", "exact", everywhere("format_version", None, pl.Int64), "format_version"),
    ("checksum other", "exact", everywhere("checksum", 17), "checksum"),
    ("checksum infinite", "exact", everywhere("checksum", INF), "checksum"),
    ("threshold infinite", "exact", everywhere("threshold", INF), "threshold"),
    ("threshold below all", "exact", everywhere("threshold", -INF), "threshold"),
    ("threshold true", "exact", everywhere("threshold", True), "threshold"),
    ("threshold elsewhere", "exact", everywhere("threshold", 0.3), "decision"),
    ("bins infinite", "exact", everywhere("score_bins", INF), "score_bins"),
    ("bins NaN", "exact", everywhere("score_bins", NAN), "score_bins"),
    ("bins null", "exact", everywhere("score_bins", None, pl.Int64), "score_bins"),
    ("bins true", "exact", everywhere("score_bins", True), "score_bins"),
    ("bins too few", "exact", everywhere("score_bins", 8), "score_bins"),
    ("bins odd", "exact", everywhere("score_bins", 33), "score_bins"),
    ("bins negative", "exact", everywhere("score_bins", -32), "score_bins"),
    ("bins too many", "exact", everywhere("score_bins", 2**60), "score_bins"),
    ("bins forgotten", "binned", everywhere("score_bins", 0), "low"),
    ("bins finer", "binned", everywhere("score_bins", 2**20), "score"),
    ("has_weight null", "exact", everywhere("has_weight", None, pl.Boolean), "has_weight"),
    ("has_weight a number", "exact", everywhere("has_weight", 1), "has_weight"),
    ("has_weight false", "exact", everywhere("has_weight", False), "weight"),
    ("has_probability null", "exact", everywhere("has_probability", None, pl.Boolean), "has_probability"),
    ("has_probability a number", "exact", everywhere("has_probability", 0), "has_probability"),
    ("has_probability false", "exact", everywhere("has_probability", False), "probability"),
    ("has_probability true", "plain", everywhere("has_probability", True), "probability"),
    ("weight too large", "exact", at("weight", 1e300), "weight"),
    ("weight too small", "exact", at("weight", 1e-300), "weight"),
    ("weight negative", "exact", at("weight", -1.0), "weight"),
    ("weights without weights", "plain", at("weight", 2.0), "weight"),
    ("probability above 1", "exact", at("probability", 1.5), "probability"),
    ("probability negative", "exact", at("probability", -0.5), "probability"),
    ("probability gone", "exact", everywhere("probability", None, pl.Float64), "probability"),
    ("probability NaN", "exact", everywhere("probability", NAN), "probability"),
    ("probabilities without probabilities", "plain", at("probability", 0.5), "probability"),
    ("pos_label NaN", "exact", everywhere("pos_label", "NaN"), "pos_label"),
    ("pos_label infinite", "exact", everywhere("pos_label", "Infinity"), "pos_label"),
    ("pos_label beyond floats", "exact", everywhere("pos_label", "1e999"), "pos_label"),
    ("pos_label null", "exact", everywhere("pos_label", "null"), "pos_label"),
    ("pos_label a list", "exact", everywhere("pos_label", "[1]"), "pos_label"),
    ("pos_label an object", "exact", everywhere("pos_label", '{"a": 1}'), "pos_label"),
    ("pos_label deep", "exact", everywhere("pos_label", "[" * 100_000), "pos_label"),
    ("pos_label long", "exact", everywhere("pos_label", "9" * 10_000), "pos_label"),
    ("pos_label empty", "exact", everywhere("pos_label", ""), "pos_label"),
    ("pos_label not JSON", "exact", everywhere("pos_label", "yes"), "pos_label"),
    ("pos_label bytes", "exact", everywhere("pos_label", b"1"), "pos_label"),
    ("pos_label a number", "exact", everywhere("pos_label", 1), "pos_label"),
    ("decision two", "exact", everywhere("decision", 2), "decision"),
    ("decisions turned around", "exact", lambda f: f.with_columns(~pl.col("decision")), "decision"),
    ("decisions turned around in bins", "binned", lambda f: f.with_columns(~pl.col("decision")), "decision"),
    ("unsorted", "exact", lambda f: f.reverse(), "score"),
    ("unsorted decisions", "decided", lambda f: f.sort("score", "decision", descending=[False, True]), "score"),
    ("a cell twice", "exact", lambda f: pl.concat([f.head(1), f]), "score"),
    ("all cells twice", "exact", lambda f: pl.concat([f, f]), "score"),
    ("two sets one after the other", "binned", lambda f: pl.concat([f, f]), "score"),
    ("low above", "exact", at("low", 0.2), "low"),
    ("high below", "exact", at("high", 0.05), "high"),
    ("mean above its bin", "binned", at("score", 0.02), "score"),
    ("low above the mean", "binned", lambda f: f.with_columns(low=pl.col("high")), "score"),
    ("high in another bin", "binned", lambda f: f.with_columns(high=pl.col("high") + 0.05), "score"),
    ("overlapping bins", "binned", lambda f: f.with_columns(high=pl.col("high").shift(-4).fill_null(1.0)), None),
    ("ends that differ within a bin", "binned", lambda f: f.with_columns(low=LOWER), "low"),
    ("a column more", "exact", everywhere("day", 1), "an extra column 'day'"),
    ("no cells", "exact", lambda f: f.clear(), "has no rows"),
]


@pytest.mark.parametrize(("kind", "damage", "field"), [case[1:] for case in DAMAGES], ids=[case[0] for case in DAMAGES])
@pytest.mark.usefixtures("engine")
def test_damage_is_one_line_with_the_file_the_field_and_the_rule(kind, damage, field, tmp_path):
    path, frame = tmp_path / "set.parquet", stored(kind)
    changed = damage(frame if field == "checksum" else unsigned(frame))
    assert changed.schema != frame.schema or not changed.equals(unsigned(frame))
    changed.write_parquet(path)
    with pytest.raises(InputError) as error:
        EvaluationSet.from_parquet(path)
    said = str(error.value).removeprefix(f"{path}: ")
    assert said != str(error.value)
    assert "\n" not in said
    if field in COLUMNS:
        assert said.startswith((f"{field}: ", f"no column {field!r}", "cannot be read as Parquet")), said
    elif field is not None:
        assert said.startswith(field), said


@pytest.mark.parametrize("name", COLUMNS)
def test_each_column_is_damaged_in_several_ways(name):
    assert sum(field == name for _, _, _, field in DAMAGES) >= 4


@pytest.mark.parametrize("kind", SETS)
def test_another_value_that_breaks_no_rule_is_found_by_the_checksum(kind, tmp_path):
    """A count one higher, another weight: every rule holds, and yet the numbers would be others."""
    data = SETS[kind]()
    path = data.to_parquet(tmp_path / "set.parquet")
    frame = pl.read_parquet(path)
    changes = [frame.with_columns(pl.col(name) + 1) for name in COUNTS]
    changes += [
        frame.head(frame.height - 1),
        everywhere("pos_label", "2")(frame),
        everywhere("pos_label", '"1"')(frame),
    ]
    if data.cells.weight is not None:
        changes.append(frame.with_columns(pl.col("weight") * 2.0))
    if data.cells.probability is not None:
        changes.append(frame.with_columns(pl.col("probability") / 2.0))
    for changed in changes:
        changed.write_parquet(path)
        with pytest.raises(
            InputError, match=r": checksum: \d+, but that of the values is \d+\. They have changed since"
        ):
            EvaluationSet.from_parquet(path)


@pytest.mark.parametrize("kind", SETS)
def test_the_checksum_is_the_one_that_the_page_describes(kind, tmp_path):
    table = pq.read_table(SETS[kind]().to_parquet(tmp_path / "set.parquet")).to_pydict()
    facts = [table[name][0] for name in FACTS if name != "checksum"]
    total = zlib.crc32(json.dumps(facts).encode())
    for name in COLUMNS[len(FACTS) :]:
        whole = name in (*COUNTS, "decision")
        values = [NAN if value is None else value for value in table[name]]
        total = zlib.crc32(np.array(values, dtype="<i8" if whole else "<f8").tobytes(), total)
    assert set(table["checksum"]) == {total}


@pytest.mark.parametrize("kind", SETS)
@pytest.mark.usefixtures("engine")
def test_a_table_without_a_checksum_is_read(kind, tmp_path):
    """As another program would write it."""
    data = SETS[kind]()
    path = data.to_parquet(tmp_path / "set.parquet")
    unsigned(pl.read_parquet(path)).write_parquet(path)
    assert same(data, EvaluationSet.from_parquet(path))


def test_a_label_that_is_not_finite_cannot_be_stored(tmp_path):
    data = EvaluationSet([INF, 0.0, None], [0.1, 0.2, 0.3], pos_label=INF)
    with pytest.raises(InputError, match=r"^pos_label: inf of type float cannot be stored"):
        data.to_parquet(tmp_path / "set.parquet")


# ----------------------------------------------------------------------------------------------------- at random

VALUES = [
    0,
    1,
    -1,
    2**31,
    2**53,
    2**63 - 1,
    0.5,
    1e-320,
    1e300,
    NAN,
    INF,
    -INF,
    None,
    True,
    False,
    "",
    "1",
    "NaN",
    b"1",
]
# Random changes of each kind of set: a number and not a time, so that every run tries the same ones.
CHANGES = 150


def outcome(data, path):
    """Whether a file is refused, in one line that begins with its name; if it is not, it loads as it was."""
    try:
        back = EvaluationSet.from_parquet(path)
    except InputError as error:
        return str(error).startswith(f"{path}: ") and "\n" not in str(error)
    assert same(data, back)
    return False


def mutated(frame, rng):
    """One random change of a table."""
    name = str(rng.choice(frame.columns))
    place, value = int(rng.integers(frame.height)), VALUES[rng.integers(len(VALUES))]
    kind = rng.integers(7)
    if kind == 0:
        return frame.drop(name)
    if kind == 1:
        return frame.sample(fraction=1.0, shuffle=True, seed=int(rng.integers(2**31)))
    if kind == 2:
        return frame.filter(pl.int_range(pl.len()) != place)
    if kind == 3:
        return pl.concat([frame, frame[place]])
    if kind == 4:
        return frame.with_columns(pl.lit(value).alias(name))
    if kind == 5:
        return frame.with_columns(frame[str(rng.choice(frame.columns))].alias(name))
    values = frame[name].to_list()
    values[place] = value
    return frame.with_columns(pl.Series(name, values, strict=False))


@pytest.mark.parametrize("kind", SETS)
def test_a_table_changed_at_random_is_refused_or_loads_as_it_was(kind, tmp_path):
    data, rng = SETS[kind](), np.random.default_rng(7)
    path = data.to_parquet(tmp_path / "set.parquet")
    frame, refused = pl.read_parquet(path), 0
    for _ in range(CHANGES):
        changed = mutated(frame, rng)
        if pl.Object in changed.dtypes:
            continue  # values of several types, which no file can hold
        changed.write_parquet(path)
        refused += outcome(data, path)
    assert refused > 10


@pytest.mark.parametrize("kind", SETS)
def test_a_file_with_bytes_changed_at_random_is_refused_or_loads_as_it_was(kind, tmp_path):
    data, rng = SETS[kind](), np.random.default_rng(11)
    path = data.to_parquet(tmp_path / "set.parquet")
    whole, refused = path.read_bytes(), 0
    for _ in range(CHANGES):
        content = bytearray(whole)
        for _ in range(rng.integers(1, 4)):
            content[rng.integers(len(content))] = rng.integers(256)
        cut = int(rng.integers(len(content))) if rng.random() < 0.1 else len(content)
        path.write_bytes(content[:cut])
        refused += outcome(data, path)
    assert refused > 10


def test_many_types_of_whole_numbers_are_one(tmp_path):
    data = plain()
    path = data.to_parquet(tmp_path / "set.parquet")
    table = pq.read_table(path)
    for kind in (pa.int16(), pa.int32(), pa.uint32(), pa.uint64(), pa.float64()):
        narrow = [table[name].cast(kind) if name in COUNTS else table[name] for name in table.column_names]
        pq.write_table(pa.table(narrow, names=table.column_names), path)
        assert same(data, EvaluationSet.from_parquet(path))
