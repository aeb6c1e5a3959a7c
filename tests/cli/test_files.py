"""One table in many formats, read by whatever is installed, is one table."""

import gzip
import io
import json

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from cli.tables import csv_text
from darkmetrics import frames
from darkmetrics.exceptions import InputError
from darkmetrics.files import DataFile, engines


def frame(data):
    return pl.DataFrame({"id": range(len(data.score)), "label": data.label, "score": data.score})


def json_lines(data):
    rows = [{"id": i, "label": y, "score": s} for i, (y, s) in enumerate(zip(data.label, data.score, strict=True))]
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def plain_csv(data):
    return csv_text({"id": range(len(data.score)), "label": data.label, "score": data.score}).encode()


def arrow_stream(data):
    table, sink = frame(data).to_arrow(), io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue()


def polars_bytes(data, method, **settings):
    sink = io.BytesIO()
    getattr(frame(data), method)(sink, **settings)
    return sink.getvalue()


CONTENT = {
    "x.csv": plain_csv,
    "x.tsv": lambda data: plain_csv(data).replace(b",", b"\t"),
    "semicolon.csv": lambda data: plain_csv(data).replace(b",", b";"),
    "windows.csv": lambda data: b"\xef\xbb\xbf" + plain_csv(data).replace(b"\n", b"\r\n"),
    "quoted.csv": lambda data: plain_csv(data).replace(b"id,label,score", b'"a,b,c,d","label","score"'),
    "x.csv.gz": lambda data: gzip.compress(plain_csv(data)),
    "x.jsonl": json_lines,
    "x.ndjson.gz": lambda data: gzip.compress(json_lines(data)),
    "x.parquet": lambda data: polars_bytes(data, "write_parquet"),
    "x.feather": lambda data: polars_bytes(data, "write_ipc", compression="lz4"),
    "x.arrow": arrow_stream,
    "no_suffix": lambda data: polars_bytes(data, "write_parquet"),
}


@pytest.fixture(params=["polars", "pyarrow", "pandas", "none"])
def engine(request, monkeypatch):
    """As if only one of the packages was installed."""
    monkeypatch.setattr(engines, "_installed", lambda name: name == request.param)
    return request.param


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_every_format_and_engine_reads_the_same_table(tmp_path, data, name, piped, engine):
    content = CONTENT[name](data)
    path = tmp_path / name
    path.write_bytes(content)
    file = DataFile("standard input", content) if piped else DataFile.of_path(path)
    binary = file.format in ("parquet", "arrow")
    if engine == "none" and binary:
        with pytest.raises(InputError, match="takes one of polars, pyarrow, pandas, and none is installed"):
            file.read(["label"])
        return
    if engine == "pandas" and name == "x.arrow":
        with pytest.raises(InputError, match="cannot be read as Arrow"):  # pandas knows files and no streams
            file.read(["label"])
        return
    assert len(file.column_names) == 3
    columns = file.read(["score", "label"])
    labels, missing = frames.label_column(columns["label"], "label")
    expected = np.array([np.nan if y is None else y for y in data.label])
    np.testing.assert_array_equal(np.where(missing, np.nan, labels.astype(float)), expected)
    np.testing.assert_array_equal(frames.number_column(columns["score"], "score"), data.score)


@pytest.mark.parametrize("quick", [True, False], ids=["polars", "csv module"])
@pytest.mark.parametrize(
    ("written", "read"),
    [
        (["1", "0", ""], [1.0, 0.0, None]),
        (["1.0", " 0 ", "1e0"], [1.0, 0.0, 1.0]),
        (["True", "false", ""], [1.0, 0.0, None]),
        (["yes", "no", ""], ["yes", "no", None]),
        (["1", "?", "0"], ["1", "?", "0"]),
        (["", "", ""], [None, None, None]),
    ],
    ids=str,
)
def test_a_column_of_text_has_the_type_that_all_its_values_allow(monkeypatch, written, read, quick):
    if not quick:
        monkeypatch.setattr(engines, "_installed", lambda name: False)
    content = "\n".join(["y,p", *(f"{value},0.5" for value in written)]).encode()
    assert list(DataFile("x", content).read(["y"])["y"]) == read


def test_a_number_far_down_a_column_of_text_changes_nothing(tmp_path):
    values = ["0", "1"] * 20_000 + ["unknown"]
    content = "\n".join(["y,p", *(f"{value},0.5" for value in values)]).encode()
    assert list(DataFile("x", content).read(["y"])["y"]) == values


def test_only_the_columns_that_are_needed_are_read(run, tmp_path, data, monkeypatch):
    path = tmp_path / "x.parquet"
    frame(data).write_parquet(path)
    asked = []
    read_parquet = pl.read_parquet

    def spy(source, **settings):
        asked.append(settings["columns"])
        return read_parquet(source, **settings)

    monkeypatch.setattr(pl, "read_parquet", spy)
    assert run("evaluate", path).code == 0
    assert asked == [["label", "score"]]


@pytest.mark.parametrize("name", ["x.csv", "x.csv.gz", "x.jsonl", "x.parquet", "x.feather", "x.arrow"])
def test_standard_input_is_read_like_a_file(run, csv_file, data, name):
    from_file = run("evaluate", csv_file, "--missingness", "by_label")
    from_pipe = run("evaluate", "-", "--missingness", "by_label", stdin=CONTENT[name](data))
    assert (from_pipe.code, from_pipe.out, from_pipe.err) == (0, from_file.out, from_file.err)


def test_a_column_that_only_later_json_lines_have_is_read():
    file = DataFile("x", b'{"p": 0.5}\n\n{"p": 0.4, "y": 1}\n')
    assert file.read(["y", "p"]) == {"y": [None, 1], "p": [0.5, 0.4]}
    with pytest.raises(InputError, match="no column 'z'"):
        file.read(["z"])
