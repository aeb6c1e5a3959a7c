"""One rule says which files a name stands for: the library, every command and stored sets count the same rows."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import darkmetrics as dm
from darkmetrics.files import files_named

# Rows of each file, of which no two sums are the same: how many rows are counted says which files were read.
FILES = {
    "d/a.parquet": 12,
    "d/b.pq": 24,
    "d/sub/c.parquet": 48,
    "d/sub/deep/e.parquet": 96,
    "d/x[1].parquet": 192,
    "d/_tmp.parquet": 384,
    "d/.hidden.parquet": 768,
    "d/_temporary/0/part.parquet": 1536,
    "d/.snapshot/old.parquet": 3072,
    "p/_day=1/g.parquet": 6144,
    "p/_day=2/h.parquet": 12288,
}
VISIBLE = ("d/a.parquet", "d/b.pq", "d/sub/c.parquet", "d/sub/deep/e.parquet", "d/x[1].parquet")

# What is given, and the files that it stands for.
GIVEN = {
    "a file": ("d/a.parquet", ["d/a.parquet"]),
    "a hidden file by its name": ("d/_tmp.parquet", ["d/_tmp.parquet"]),
    "a folder": ("d/sub/deep", ["d/sub/deep/e.parquet"]),
    "a folder with folders": ("d", VISIBLE),
    "a hidden folder by its name": ("d/_temporary", ["d/_temporary/0/part.parquet"]),
    "a folder with a slash": ("d/", VISIBLE),
    "a folder of values of a column": ("p", ["p/_day=1/g.parquet", "p/_day=2/h.parquet"]),
    "a pattern": ("d/*.parquet", ["d/a.parquet", "d/x[1].parquet"]),
    "a pattern with a question mark": ("d/?.p*", ["d/a.parquet", "d/b.pq"]),
    "a pattern of a choice": ("d/[ab].*", ["d/a.parquet", "d/b.pq"]),
    "a pattern that has the sign": ("d/_*.parquet", ["d/_tmp.parquet"]),
    "a pattern that has the dot": ("d/.*.parquet", ["d/.hidden.parquet"]),
    "a pattern in a hidden folder": ("d/_temporary/*/*.parquet", ["d/_temporary/0/part.parquet"]),
    "a pattern that matches folders": ("d/sub*", ["d/sub/c.parquet", "d/sub/deep/e.parquet"]),
    "a pattern of files and folders": ("d/[as]*", ["d/a.parquet", "d/sub/c.parquet", "d/sub/deep/e.parquet"]),
    "any number of folders": ("d/**", VISIBLE),
    "files in any number of folders": ("d/**/*.parquet", [name for name in VISIBLE if name != "d/b.pq"]),
    "a name with brackets": ("d/x[1].parquet", ["d/x[1].parquet"]),
    "a pattern that escapes brackets": ("d/x[[]1].*", ["d/x[1].parquet"]),
    "a dot in front": ("./d/*.parquet", ["d/a.parquet", "d/x[1].parquet"]),
}
LISTS = {
    "a list": (["d/a.parquet", "d/b.pq"], ["d/a.parquet", "d/b.pq"]),
    "the same file twice": (["d/a.parquet", "d/a.parquet"], ["d/a.parquet"]),
    "the same file in other words": (["d/a.parquet", "d/sub/../a.parquet", Path("d/a.parquet")], ["d/a.parquet"]),
    "a file and a pattern with it": (["d/b.pq", "d/*.p*"], ["d/a.parquet", "d/b.pq", "d/x[1].parquet"]),
    "a folder and a hidden file": (["d/sub", "d/_tmp.parquet"], [*VISIBLE[2:4], "d/_tmp.parquet"]),
}


def rows(count):
    scores = np.arange(count) % 7 / 7.0
    return {"label": [(1, 0, None)[i % 3] for i in range(count)], "score": scores, "k": ["x"] * count}


@pytest.fixture(params=["rows", "cells"])
def tree(request, tmp_path, monkeypatch):
    """The files, of rows or of the cells of the same rows; and how to count what a name stands for."""
    monkeypatch.chdir(tmp_path)
    for name, count in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if request.param == "rows":
            pl.DataFrame(rows(count)).write_parquet(path)
        else:
            dm.EvaluationSet(rows(count)["label"], rows(count)["score"]).to_parquet(path)
    for note in ("d/_SUCCESS", "d/sub/.c.parquet.crc", "p/_day=1/_started"):
        Path(note).write_text("a note")
    ask: dict[str, Any] = {"y_true": "label", "y_score": "score"}
    if request.param == "cells":
        return {"from_parquet": lambda given: dm.EvaluationSet.from_parquet(given).n_rows}
    told: dict[str, Any] = {"metrics": "recall", "missingness": dm.missing.Fixed(0.5)}
    return {
        "from_frame": lambda given: dm.EvaluationSet(data=given, **ask).n_rows,
        "evaluate_frame": lambda given: dm.evaluate(data=given, **ask, **told).data.n_rows,
        "evaluate_by": lambda given: sum(
            group.counts["rows"] for group in dm.evaluate_by(data=given, by="k", **ask, **told).groups.values()
        ),
    }


@pytest.mark.parametrize("kind", [*GIVEN, *LISTS])
def test_the_library_counts_the_rows_of_the_files_that_are_meant(tree, kind):
    given, meant = (GIVEN | LISTS)[kind]
    for name, counted in tree.items():
        assert counted(given) == sum(FILES[file] for file in meant), name
        if isinstance(given, str):
            assert counted(str(Path(given).absolute())) == sum(FILES[file] for file in meant), name


def rows_counted(run, command, given):
    """The rows that a command speaks of."""
    told = {
        "evaluate": ["--prob", "0.5", "-m", "recall", "-f", "json"],
        "bounds": ["-m", "recall", "-f", "json"],
        "diagnose": ["-m", "recall", "-f", "json"],
        "monitor": ["--by", "k", "--prob", "0.5", "-m", "recall", "-f", "json"],
        "curves": ["--prob", "0.5", "-m", "recall"],
        "report": ["--prob", "0.5", "-m", "recall", "-o", "page.json"],
    }[command]
    done = run(command, given, "--label", "label", "--score", "score", *told)
    assert done.code == 0, done.err
    if command == "curves":
        return int(re.findall(r"^([\d,]+) rows", done.out, re.MULTILINE)[0].replace(",", ""))
    document = json.loads(Path("page.json").read_text() if command == "report" else done.out)
    return (document["total"] if command == "monitor" else document)["counts"]["rows"]


@pytest.mark.parametrize("tree", ["rows"], indirect=True)
@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.usefixtures("tree")
def test_the_command_line_counts_the_same_rows(run, kind):
    given, meant = GIVEN[kind]
    for command in ("bounds", "monitor"):
        assert rows_counted(run, command, given) == sum(FILES[file] for file in meant)


@pytest.mark.parametrize("tree", ["rows"], indirect=True)
@pytest.mark.parametrize("command", ["evaluate", "curves", "diagnose", "report"])
@pytest.mark.usefixtures("tree")
def test_every_command_takes_folders_and_patterns(run, command):
    for kind in ("a folder with folders", "a pattern"):
        given, meant = GIVEN[kind]
        assert rows_counted(run, command, given) == sum(FILES[file] for file in meant)


@pytest.mark.parametrize("tree", ["rows"], indirect=True)
@pytest.mark.usefixtures("tree")
def test_an_output_that_is_one_of_many_inputs_is_refused(refused):
    before = Path("d/a.parquet").read_bytes()
    said = refused("bounds", "d/*.parquet", "-o", "d/a.parquet", "-f", "csv")
    assert said == "--output: d/a.parquet is also read, and would be overwritten. Pass another file."
    assert Path("d/a.parquet").read_bytes() == before


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("none-*.parquet", "none-*.parquet: no file matches this pattern."),
        ("n/*", "n/*: no Parquet file in the folders that match this pattern."),
        ("n", "n: no Parquet file in this folder."),
        ("n/_*", None),
        ("o/*", "o/*: no file of data matches this pattern. Names with _ or . in front are left out, such as o/_only."),
        ("", "an empty name. Pass a file."),
    ],
)
def test_names_that_stand_for_no_file_are_refused_alike(refused, tmp_path, monkeypatch, given, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n" / "empty").mkdir(parents=True)
    (tmp_path / "n" / "_note").mkdir()
    (tmp_path / "o").mkdir()
    (tmp_path / "o" / "_only.parquet").write_text("")
    words = [
        refused("bounds", given),
        refused("monitor", given, "--by", "k"),
    ]
    for read in (dm.EvaluationSet.from_parquet, lambda given: dm.evaluate("y", "p", data=given)):
        with pytest.raises(dm.InputError) as error:
            read(given)
        words.append(str(error.value))
    assert len({text.partition(": ")[2] for text in words}) == 1
    assert said is None or all(said in text for text in words)


def test_links_to_folders_are_followed_and_a_circle_of_them_ends(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "else").mkdir()
    for name in ("d/a.parquet", "else/b.parquet"):
        (tmp_path / name).touch()
    (tmp_path / "d" / "link").symlink_to(tmp_path / "else")
    (tmp_path / "d" / "circle").symlink_to(tmp_path / "d")
    (tmp_path / "d" / "again.parquet").symlink_to(tmp_path / "d" / "a.parquet")
    for given in (tmp_path / "d", f"{tmp_path}/d/**/*.parquet"):
        assert sorted(Path(file).resolve().name for file in files_named(given)) == ["a.parquet", "b.parquet"]


# ------------------------------------------------------------------------------------------------ text files


def both(run, text, name="x.csv"):
    """What the library and the command line say of a CSV file: its counts, or the error."""
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    told = ("--label", "y", "--score", "p", "-m", "recall", "-f", "json")
    done = run("bounds", name, *told)
    ours: Any
    try:
        ours = dm.EvaluationSet("y", "p", data=name).counts()
    except dm.InputError as error:
        ours = str(error)
    theirs = json.loads(done.out)["counts"] if done.code == 0 else done.err.strip().removeprefix("darkmetrics: ")
    return ours, theirs


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("y,p\n1,0.5\n0\n0,0.25\n", "x.csv: line 3 has 1 value, but the header has 2."),
        ("y,p\n1,0.5\n0,0.25,7\n", "x.csv: line 3 has 3 values, but the header has 2."),
        ("y,p,p\n1,0.5,0.7\n", "x.csv: the column name 'p' occurs twice. Rename all but one."),
        ("y,y,p\n1,1,0.7\n", "x.csv: the column name 'y' occurs twice. Rename all but one."),
        ('y,p,t\n1,0.5,"a\n0,0.25,\n', "x.csv: cannot be read as CSV; damaged or incomplete? (unexpected end of data)"),
        (b"y,p\n1,0.5\n\xe9,0.25\n", "x.csv: is not UTF-8 text. Save it as UTF-8."),
        (b"y,p\n1,0.5\x00\n", "x.csv: is neither text nor Parquet nor Arrow."),
        ("", "x.csv: is empty."),
        ("y,p\n", "x.csv: has no rows."),
        ("y,q\n1,0.5\n", "x.csv: no column 'p'. It has 'y', 'q'."),
        (b"PAR1 and so on", "x.csv: its name says CSV, but it is Parquet. Rename it; a command takes --input-format."),
    ],
)
def test_a_text_file_that_breaks_a_rule_is_refused_in_the_same_words(run, tmp_path, monkeypatch, text, said):
    monkeypatch.chdir(tmp_path)
    ours, theirs = both(run, text)
    assert ours == theirs == said


@pytest.mark.parametrize(
    "text",
    [
        "y,p\n1,0.5\n\n0,0.25\n,0.25\n\n\n",
        "\n\ny,p\n1,0.5\n0,0.25\n,0.25\n",
        "y,p\r1,0.5\r0,0.25\r,0.25\r",
        "\ufeffy;p\r\n1;0.5\r\n0;0.25\r\n;0.25\r\n",
        "y,p\n 1 , 0.5 \n+0,.25\nNA,25e-2\n",
        '"y","p","t"\n"1","0.5","a\nb"\n"0","0.25",\n"","0.25",""\n',
        "y,p,x,x\n1,0.5,1,2\n0,0.25,1,2\n,0.25,1,2\n",
        "y|p\nTrue|0.5\nfalse|0.25\nnull|0.25\n",
    ],
)
def test_a_text_file_has_the_same_rows_for_both(run, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    ours, theirs = both(run, text)
    assert ours == theirs == {"rows": 3, "labeled": 2, "positive": 1, "negative": 1, "missing": 1}


@pytest.mark.parametrize("suffix", ["csv", "csv.gz", "jsonl"])
def test_several_text_files_are_one_table(run, tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    for day in range(3):
        text = f"p,y\n0.{day + 1},1\n0.7,\n"
        if suffix == "jsonl":
            text = f'{{"p": 0.{day + 1}, "y": 1}}\n{{"p": 0.7}}\n'
        content = text.encode()
        Path(f"{day}.{suffix}").write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    told = ("--label", "y", "--score", "p", "-m", "recall", "-f", "json")
    assert json.loads(run("bounds", f"*.{suffix}", *told).out)["counts"]["rows"] == 6
    if suffix != "jsonl":
        assert dm.EvaluationSet("y", "p", data=f"*.{suffix}").n_rows == 6


def test_a_column_of_text_in_one_file_and_numbers_in_another_is_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("y,p\n1,0.5\n")
    Path("b.csv").write_text("y,p\nyes,0.5\n")
    said = "b.csv: column 'y' has text, and numbers in a.csv. A column must have one type in all files."
    assert refused("bounds", "*.csv", "--label", "y", "--score", "p") == said
    with pytest.raises(dm.InputError) as error:
        dm.EvaluationSet("y", "p", data="*.csv")
    assert str(error.value) == said


def test_files_of_two_formats_are_refused(refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("y,p\n1,0.5\n")
    Path("b.jsonl").write_text('{"y": 1, "p": 0.5}\n')
    said = refused("bounds", "[ab].*", "--label", "y", "--score", "p")
    assert said == "a.csv: is CSV, and b.jsonl is JSON lines. Give files of one format."


def test_times_and_groups_of_a_text_file_are_those_of_the_command_line(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{(1, 0, '')[i % 3]},{i % 7 / 7},2026-0{1 + i % 2}-09T14:30,{'AB'[i % 2]}" for i in range(60)]
    Path("x.csv").write_text("y,p,when,k\n" + "\n".join(lines) + "\n")
    told = ("--label", "y", "--score", "p", "--prob", "0.5", "-m", "recall", "-f", "json")
    theirs = json.loads(run("monitor", "x.csv", *told, "--by", "k", "--time", "when", "--period", "month").out)
    ask: dict[str, Any] = {"y_true": "y", "y_score": "p", "metrics": "recall", "missingness": dm.missing.Fixed(0.5)}
    ours = dm.evaluate_by(data="x.csv", by="k", time="when", period="month", **ask)
    document = ours.to_dict()
    assert {name: theirs[name] for name in document if name != "groups"} == {
        name: value for name, value in document.items() if name != "groups"
    }
    for group, expected in zip(theirs["groups"], document["groups"], strict=True):
        assert group | expected == group
