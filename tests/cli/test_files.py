"""One table in many formats, read by whatever is installed, is one table."""

import gzip
import io
import json
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from cli.tables import csv_text, rows
from darkmetrics import frames
from darkmetrics.exceptions import InputError
from darkmetrics.files import DataFile, readers


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
    monkeypatch.setattr(readers, "_installed", lambda name: name == request.param)
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
        with pytest.raises(
            InputError, match=r"polars, pyarrow, pandas are not installed\..* needs one of them\. pip install"
        ):
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


@pytest.mark.parametrize("name", ["*", "^s.*$", 'a"b', "a.b", "COLUMNS(*)"])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather", ".arrow"])
def test_odd_names_of_columns_are_names(tmp_path, engine, name, suffix):
    if (engine == "none" and suffix != ".csv") or (engine, suffix) == ("pandas", ".arrow"):
        pytest.skip("no engine for it")
    table = pl.DataFrame({"label": [1, 0], "score2": [0.1, 0.2], name: [0.3, 0.4]})
    writers = {".csv": "write_csv", ".parquet": "write_parquet", ".feather": "write_ipc", ".arrow": "write_ipc_stream"}
    path = tmp_path / f"x{suffix}"
    getattr(table, writers[suffix])(path)
    found = DataFile.of_path(path).read(["label", name])
    assert frames.number_column(found[name], name).tolist() == [0.3, 0.4]


@pytest.mark.parametrize("quick", [True, False], ids=["polars", "csv module"])
def test_spaces_around_text_are_kept_but_those_around_classes_are_not(quick, monkeypatch):
    if not quick:
        monkeypatch.setattr(readers, "_installed", lambda name: False)
    rows = [" yes , a", "no,a", " NA,a ", "yes,", "no,  "]
    file = DataFile("x", "\n".join(["y,g", *rows]).encode())
    found = file.read(["y", "g"], {"y": {"NA"}})
    assert found == {"y": ["yes", "no", None, "yes", "no"], "g": [" a", "a", "a ", None, None]}


@pytest.mark.parametrize("name", ["d[1]", "d*", "d?", "~"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".jsonl", ".parquet", ".feather", ".arrow"])
@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside d1"])
def test_signs_in_a_name_are_part_of_the_name(tmp_path, data, engine, name, suffix, beside):
    if (engine == "none" and suffix in (".parquet", ".feather", ".arrow")) or (engine, suffix) == ("pandas", ".arrow"):
        pytest.skip("no engine for it")
    content, other = CONTENT["x" + suffix], rows(n=30, seed=5)
    path = tmp_path / (name + suffix)
    path.write_bytes(content(data))
    if beside:
        for like in ("d1", "d2"):
            (tmp_path / (like + suffix)).write_bytes(content(other))
    file = DataFile.of_path(path)
    assert len(file.column_names) == 3
    np.testing.assert_array_equal(frames.number_column(file.read(["score"])["score"], "score"), data.score)


@pytest.mark.parametrize("name", ["~/x.csv", "http:/x.csv", "s3:/x.parquet"])
def test_a_path_that_looks_like_something_else_is_a_path(tmp_path, monkeypatch, data, name):
    monkeypatch.chdir(tmp_path)
    path = Path(name)
    path.parent.mkdir()
    path.write_bytes(CONTENT[path.name](data))
    np.testing.assert_array_equal(
        frames.number_column(DataFile.of_path(path).read(["score"])["score"], "s"), data.score
    )


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
@pytest.mark.parametrize("last", ["", "end", "ends"])
def test_line_ends_make_no_rows(engine, ends, last):
    content = ends.join(["y,p", "1,0.5", ",0.25"]) + {"": "", "end": ends, "ends": 3 * ends}[last]
    columns = DataFile("x", content.encode()).read(["y", "p"])
    assert [list(columns[name]) for name in "yp"] == [[1.0, None], [0.5, 0.25]]


@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"], ids=["unix", "windows", "old mac"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "byte order mark"])
def test_blank_lines_are_skipped_and_lines_of_separators_are_not(engine, ends, mark):
    lines = ["", "y;p", "", "1;0.5", ";", "", "", ";0.25", ""]
    columns = DataFile("x", (mark + ends.join(lines)).encode()).read(["y", "p"])
    assert [list(columns[name]) for name in "yp"] == [[1.0, None, None], [0.5, None, 0.25]]


def test_a_blank_line_is_a_missing_value_of_the_only_column(engine):
    assert list(DataFile("x", b"y\n1\n\n0\n").read(["y"])["y"]) == [1.0, None, 0.0]


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
        monkeypatch.setattr(readers, "_installed", lambda name: False)
    content = "\n".join(["y,p", *(f"{value},0.5" for value in written)]).encode()
    assert list(DataFile("x", content).read(["y"])["y"]) == read


def test_a_number_far_down_a_column_of_text_changes_nothing(tmp_path):
    values = ["0", "1"] * 20_000 + ["unknown"]
    content = "\n".join(["y,p", *(f"{value},0.5" for value in values)]).encode()
    assert list(DataFile("x", content).read(["y"])["y"]) == values


MISSING = ["", "NaN", "nan", "null", "NULL", "None", "NA", "N/A", "<NA>"]


@pytest.mark.parametrize(("yes", "no"), [("1", "0"), ("True", "False"), ("yes", "no")])
@pytest.mark.usefixtures("engine")
def test_words_for_missing_labels_in_csv_are_missing_labels(run, tmp_path, data, yes, no):
    path, said = tmp_path / "words.csv", {}
    for word in MISSING:
        labels = [word if y is None else yes if y else no for y in data.label]
        path.write_text(csv_text({"label": labels, "score": data.score}))
        told = ("--pos-label", yes, "--prob", "0.5", "-m", "recall", "-f", "json")
        said[word] = run("evaluate", path, *told).out
    assert json.loads(said[""])["counts"]["missing"] == data.label.count(None)
    assert said == dict.fromkeys(MISSING, said[""])


@pytest.mark.usefixtures("engine")
def test_words_for_missing_labels_are_those_that_pandas_takes_for_missing():
    pd = pytest.importorskip("pandas")
    content = "label,score\n" + "".join(f"{word},0.5\n" for word in MISSING)
    assert pd.read_csv(io.StringIO(content))["label"].isna().all()


@pytest.mark.usefixtures("engine")
def test_a_word_that_is_the_positive_label_is_not_missing(run, tmp_path):
    (tmp_path / "x.csv").write_text("label,score\nNA,0.9\nEU,0.3\n,0.5\nnull,0.5\n")
    told = ("--pos-label", "NA", "--prob", "0.5", "-m", "recall", "-f", "json")
    counts = json.loads(run("evaluate", tmp_path / "x.csv", *told).out)["counts"]
    assert (counts["labeled"], counts["missing"]) == (2, 2)


@pytest.mark.usefixtures("engine")
def test_words_for_missing_are_no_scores(refused, tmp_path):
    (tmp_path / "x.csv").write_text("label,score\n1,NA\n0,0.3\n")
    assert "(--score): expected numbers, found 'NA'" in refused("evaluate", tmp_path / "x.csv")


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
    assert (from_pipe.code, from_pipe.out) == (0, from_file.out)
    assert from_pipe.err == from_file.err.replace(str(csv_file), "-")


def test_a_column_that_only_later_json_lines_have_is_read():
    file = DataFile("x", b'{"p": 0.5}\n\n{"p": 0.4, "y": 1}\n')
    assert file.read(["y", "p"]) == {"y": [None, 1], "p": [0.5, 0.4]}
    with pytest.raises(InputError, match="no column 'z'"):
        file.read(["z"])


def test_columns_of_json_lines_are_guessed_from_more_than_the_first(run, tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"score": 0.5}\n' * 50 + '{"score": 0.4, "label": 1}\n{"score": 0.2, "label": 0}\n')
    done = run("evaluate", path, "--prob", "0.5", "-m", "recall", "-f", "json")
    assert json.loads(done.out)["counts"]["missing"] == 50
    assert "Guessed 'label' as --label and 'score' as --score." in done.err
