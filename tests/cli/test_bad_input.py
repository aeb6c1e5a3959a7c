"""Bad input is one line that says what to do, exit code 2, and nothing half-written."""

import gzip
import os
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import darkmetrics as dm
from cli.tables import csv_text
from darkmetrics.cli import output
from darkmetrics.files import readers

NOBODY = 65534


@pytest.fixture
def parquet_file(tmp_path, data):
    path = tmp_path / "june.parquet"
    pl.DataFrame({"label": data.label, "score": data.score}).write_parquet(path)
    return path


def test_a_file_that_is_not_there_suggests_its_neighbour(refused, csv_file):
    assert refused("evaluate", csv_file.with_name("jnue.csv")) == (
        f"{csv_file.with_name('jnue.csv')}: no such file. Did you mean {str(csv_file)!r}?"
    )


def test_a_folder_that_is_not_there_is_no_traceback(refused, tmp_path):
    assert refused("evaluate", tmp_path / "no" / "x.csv").endswith("no such file.")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.feather", "x.jsonl", "x", "x.csv.gz"])
def test_an_empty_file_says_so(refused, tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"")
    assert refused("evaluate", path) == f"{path}: is empty."


def test_empty_standard_input_says_so(refused):
    assert refused("evaluate", "-") == "standard input: is empty."


def test_an_empty_compressed_file_says_so(refused, tmp_path):
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b""))
    assert refused("evaluate", path) == f"{path}: is empty."


def test_a_header_without_rows_says_so(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,score\n")
    assert refused("evaluate", path) == f"{path}: has no rows."


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.parquet", b"label,score\n1,0.5\n", "its name says Parquet, but it is not."),
        ("x.feather", b"label,score\n1,0.5\n", "its name says Arrow, but it is not."),
        ("x.parquet", b"ARROW1\0\0", "its name says Parquet, but it is Arrow."),
        ("x.csv", b"PAR1\x15\x04", "its name says CSV, but it is Parquet."),
        ("x.jsonl", b"PAR1\x15\x04", "its name says JSON lines, but it is Parquet."),
        ("x.csv.gz", b"label,score\n1,0.5\n", "ends in .gz but is not compressed."),
        ("x.csv", b"\x89PNG\r\n\x1a\n\0\0\0", "is neither text nor Parquet nor Arrow."),
        ("x.csv", b"label,score\n1,0.5\n\xff\xfe,0.3\n", "is not UTF-8 text."),
        ("x.jsonl", b'[{"label": 1}]\n', "is a JSON array. JSON lines have one object per line."),
        ("x.json", b'[\n  {"label": 1}\n]\n', "is a JSON array. JSON lines have one object per line."),
        ("x", b'[{"label": 1}]\n', "is a JSON array. JSON lines have one object per line."),
        ("x.jsonl", b'{"label": 1, "score": 0.5}\n{"label": 1\n', "line 2 is not a JSON object"),
    ],
)
def test_a_file_that_is_not_what_its_name_says_is_refused(refused, tmp_path, monkeypatch, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    assert refused("evaluate", path).startswith(f"{path}: ")
    assert message in refused("evaluate", path)


def test_a_wrong_input_format_is_refused(refused, csv_file):
    said = refused("evaluate", csv_file, "--input-format", "parquet")
    assert "--input-format says Parquet, but it is not." in said


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.99])
def test_a_truncated_parquet_file_is_refused(refused, parquet_file, share):
    content = parquet_file.read_bytes()
    parquet_file.write_bytes(content[: int(share * len(content))])
    assert f"{parquet_file}: cannot be read as Parquet; damaged or incomplete?" in refused("evaluate", parquet_file)


def test_a_parquet_file_with_damage_inside_is_refused(refused, parquet_file):
    content = bytearray(parquet_file.read_bytes())
    content[8:-60] = bytes(len(content) - 68)
    parquet_file.write_bytes(content)
    assert "cannot be read as Parquet" in refused("evaluate", parquet_file, "--label", "label", "--score", "score")


def test_a_truncated_compressed_file_is_refused(refused, tmp_path, data):
    path = tmp_path / "x.csv.gz"
    whole = gzip.compress(csv_text({"label": data.label, "score": data.score}).encode())
    path.write_bytes(whole[: len(whole) // 2])
    assert f"{path}: cannot be read as" in refused("evaluate", path)


@pytest.fixture(params=["polars", "csv module"])
def csv_reader(request, monkeypatch):
    if request.param == "csv module":
        monkeypatch.setattr(readers, "_installed", lambda name: False)


@pytest.mark.usefixtures("csv_reader")
@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("score,label\n0.9,1\n0.4\n", "line 3 has 1 value, but the header has 2."),
        ("score,label\n0.9,1\n0.4", "line 3 has 1 value, but the header has 2."),
        ("score,label\r\n0.9,1\r\n0.4\r\n", "line 3 has 1 value, but the header has 2."),
        ("score,label\n0.9,1\n0.4\n0.3,,,\n0.1,0\n", "line 3 has 1 value, but the header has 2."),
        ("score,x,label\n0.9,a,1\n0.4,\n", "line 3 has 2 values, but the header has 3."),
        ('"score","label"\n0.9,1\n0.4\n', "line 3 has 1 value, but the header has 2."),
        ('score,label,x\n0.9,1,"a,b"\n0.4,"a,b"\n', "line 3 has 2 values, but the header has 3."),
        ('"the\nscore",score,label\n0,0.9,1\n0.4,0\n', "line 4 has 2 values, but the header has 3."),
        ("label,score\n1,0.5\n0,0.3,7,8\n", "line 3 has 4 values, but the header has 2."),
        # What one line lacks another one has: as many separators as there should be.
        ("label,score\n1,0.5,0\n0.3\n", "line 2 has 3 values, but the header has 2."),
        # Blank lines are skipped, and counted.
        ("label,score\n1,0.5\n\n0\n", "line 4 has 1 value, but the header has 2."),
        ("\r\nlabel,score\r\n1,0.5\r\n\r\n\r\n0,0.3\r\n0\r\n", "line 7 has 1 value, but the header has 2."),
        ("label,score\n1,0.5\n   \n0,0.3\n", "line 3 has 1 value, but the header has 2."),
    ],
)
def test_lines_of_different_lengths_are_refused_by_number(refused, tmp_path, content, message, compressed):
    path = tmp_path / ("x.csv.gz" if compressed else "x.csv")
    path.write_bytes(gzip.compress(content.encode()) if compressed else content.encode())
    assert refused("evaluate", path) == f"{path}: {message}"


@pytest.mark.usefixtures("csv_reader")
def test_the_header_again_among_the_rows_is_refused_as_that(refused, run, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("x,score,label\n1,0.9,1\n2,0.4,0\nx,score,label\n3,0.2,\n")
    said = "row 2 is the header again. A file has one header. Drop the row."
    assert refused("evaluate", path) == f"{path}: {said}"
    # A label that is called like its column is a label.
    path.write_text("score,label\n0.9,label\n0.4,no\n0.2,\n")
    assert run("evaluate", path, "--pos-label", "label").code == 0


@pytest.mark.usefixtures("csv_reader")
def test_a_short_line_far_down_is_refused_by_number(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("score,label\n" + "0.25,1\n" * 400_000 + "0.4\n" + "0.25,\n" * 10)
    assert refused("evaluate", path) == f"{path}: line 400002 has 1 value, but the header has 2."


@pytest.mark.parametrize(("option", "other"), [("--label", "labels"), ("--score", "Scores"), ("--weight", "scor")])
def test_a_column_that_is_not_there_suggests_the_nearest(refused, csv_file, option, other):
    near = "label" if option == "--label" else "score"
    assert refused("evaluate", csv_file, option, other) == f"{csv_file}: no column {other!r}. Did you mean {near!r}?"


def test_a_column_like_no_other_lists_what_there_is(refused, csv_file):
    assert refused("evaluate", csv_file, "--label", "zzz").endswith("no column 'zzz'. It has 'id', 'label', 'score'.")


@pytest.mark.parametrize("options", [[], ["--label", "label"]], ids=["guessed", "named"])
@pytest.mark.parametrize(("names", "times"), [("label,label", "twice"), ("label,label,label", "3 times")])
def test_a_column_that_is_there_twice_is_refused(refused, tmp_path, options, names, times):
    path = tmp_path / "x.csv"
    path.write_text(f"{names},score\n{'1,' * names.count('label')}0.5\n")
    said = refused("evaluate", path, *options)
    assert said == f"{path}: the column name 'label' occurs {times}. Rename all but one."


def test_columns_are_not_guessed_when_two_are_likely(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,Target,score\n1,1,0.5\n")
    assert refused("evaluate", path) == f"{path}: --label could be 'label' or 'Target'. Pass --label."


def test_columns_are_not_guessed_when_none_is_likely(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("bad,score\n1,0.5\n")
    assert refused("evaluate", path) == (
        f"{path}: cannot tell which column is the label. Pass --label. The columns are 'bad', 'score'."
    )


def test_a_third_label_value_names_the_column_and_the_option(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("fraud,p\n1,0.5\n0,0.4\n-1,0.3\n")
    said = refused("evaluate", path, "--label", "fraud", "--score", "p")
    assert said.startswith("column 'fraud' (--label): a third value -1 at row 2 in addition to 1 and 0.")
    assert said.endswith("pass --missing-label -1.")


def test_scores_of_text_name_the_column(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,score\n1,high\n0,low\n")
    assert refused("evaluate", path) == (
        "column 'score' (--score): expected numbers, found 'high' of type str at row 0."
    )


def test_labels_of_text_ask_which_is_positive(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,score\nyes,0.5\nno,0.4\n")
    said = refused("evaluate", path)
    assert said.startswith("column 'label' (--label): --pos-label 1 is not among the labels ('yes' and 'no').")
    assert said.endswith("Set --pos-label to the positive label.")


def test_missing_scores_are_refused(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,score\n1,0.5\n0,\n")
    assert refused("evaluate", path).startswith("column 'score' (--score): 1 of 2 values is NaN (first at row 1).")


def test_a_directory_without_data_is_refused(refused, tmp_path):
    assert refused("evaluate", tmp_path) == f"{tmp_path}: no Parquet file in this folder."


def test_a_name_no_file_can_have_is_refused(refused):
    assert refused("evaluate", "a\0b.csv") == r"'a\x00b.csv': no file can have this name."


@contextmanager
def as_nobody():
    """Root may read and write everything, so it becomes somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that everybody can look into, unlike pytest's own."""
    path = Path(tempfile.mkdtemp(prefix="darkmetrics-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.mark.skipif(os.name == "nt", reason="permissions are not those of POSIX")
def test_a_file_that_must_not_be_read_is_refused(run, refused, open_folder, csv_file):
    run("evaluate", csv_file)  # imports what it needs, which nobody else may be allowed to read
    path = open_folder / "x.csv"
    path.write_text("label,score\n1,0.5\n")
    path.chmod(0o000)
    with as_nobody():
        assert refused("evaluate", path) == f"{path}: cannot be opened: Permission denied."


@pytest.mark.skipif(os.name == "nt", reason="permissions are not those of POSIX")
def test_a_folder_that_must_not_be_written_to_is_refused(run, open_folder, csv_file):
    path = open_folder / "june.csv"
    shutil.copy(csv_file, path)
    path.chmod(0o644)
    open_folder.chmod(0o555)
    run("evaluate", path, "-o", csv_file.with_name("out.txt"))
    with as_nobody():
        done = run("evaluate", path, "-o", open_folder / "out.txt")
    open_folder.chmod(0o755)
    assert (done.code, done.out) == (2, "")
    assert "out.txt cannot be written: " in done.err
    assert list(open_folder.iterdir()) == [path]


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="no /proc, where not even root can make a file")
def test_a_place_where_nobody_can_write_is_refused(run, csv_file):
    done = run("evaluate", csv_file, "-o", "/proc/darkmetrics.txt")
    assert (done.code, done.out) == (2, "")
    assert done.err.splitlines()[-1].startswith("darkmetrics: --output: /proc/darkmetrics.txt cannot be written: ")


def same(path, folder):
    return path


def symbolic_link(path, folder):
    (folder / "link").symlink_to(path)
    return folder / "link"


def hard_link(path, folder):
    (folder / "hard").hardlink_to(path)
    return folder / "hard"


def in_other_words(path, folder):
    return folder / "folder" / ".." / path.name


@pytest.mark.parametrize("named", [same, symbolic_link, hard_link, in_other_words])
@pytest.mark.parametrize("command", ["evaluate", "bounds", "curves", "diagnose", "report"])
@pytest.mark.parametrize("read_as", ["file", "reference"])
def test_an_output_that_is_an_input_is_refused_and_left_alone(refused, csv_file, tmp_path, command, named, read_as):
    if (command, read_as) == ("bounds", "reference"):
        pytest.skip("it takes none")
    (tmp_path / "folder").mkdir()
    reference = tmp_path / "reference.csv"
    shutil.copy(csv_file, reference)
    told = [csv_file, *([] if command == "bounds" else ["--reference", reference])]
    read = csv_file if read_as == "file" else reference
    before = read.read_bytes()
    output = named(read, tmp_path)
    assert refused(command, *told, "-o", output) == (
        f"--output: {output} is also read, and would be overwritten. Pass another file."
    )
    assert read.read_bytes() == before


def test_an_output_that_is_standard_input_is_refused_and_left_alone(start, csv_file):
    before = csv_file.read_bytes()
    with csv_file.open("rb") as stream:
        process = start("evaluate", "-", "-o", csv_file, stdin=stream)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "is also read, and would be overwritten" in err
    assert csv_file.read_bytes() == before


def test_an_output_folder_that_is_not_there_is_refused_before_the_file_is_read(refused, tmp_path):
    said = refused("evaluate", tmp_path / "no.csv", "-o", tmp_path / "no" / "out.txt")
    assert said == f"--output: there is no directory {tmp_path / 'no'}."


def test_an_output_that_is_a_folder_is_refused(refused, csv_file, tmp_path):
    assert refused("evaluate", csv_file, "-o", tmp_path) == f"--output: {tmp_path} is a directory. Pass a file."


@pytest.mark.parametrize(
    "problem", [OSError(28, "No space left on device"), KeyboardInterrupt()], ids=["full", "ctrl-c"]
)
@pytest.mark.parametrize("step", ["open", "replace"])
def test_what_fails_while_writing_leaves_the_old_file_and_no_other(run, csv_file, monkeypatch, problem, step):
    path = csv_file.with_name("out.txt")
    path.write_text("old")
    step_of_path = getattr(Path, step)

    def fail(self, *arguments, **settings):
        if not self.name.endswith(".tmp"):
            return step_of_path(self, *arguments, **settings)
        self.touch()
        raise problem

    monkeypatch.setattr(Path, step, fail)
    done = run("evaluate", csv_file, "-o", path)
    monkeypatch.undo()
    assert done.code == (130 if isinstance(problem, KeyboardInterrupt) else 2)
    assert "Traceback" not in done.err
    assert path.read_text() == "old"
    assert sorted(path.parent.iterdir()) == [csv_file, path]


def test_a_link_is_written_through_and_a_device_is_left_alone(run, csv_file):
    target, link = csv_file.with_name("out.txt"), csv_file.with_name("link.txt")
    target.write_text("old")
    link.symlink_to(target)
    assert run("evaluate", csv_file, "-o", link).code == 0
    assert link.is_symlink()
    assert "recall" in target.read_text()
    assert run("evaluate", csv_file, "-o", os.devnull).code == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["evaluat", "x.csv"],
        ["evaluate"],
        ["evaluate", "x.csv", "--lable", "y"],
        ["evaluate", "x.csv", "--threshold", "high"],
        ["evaluate", "x.csv", "--format", "xml"],
        ["evaluate", "x.csv", "--seed", "-1"],
        ["check", "x.csv", "--confidence", "2"],
        ["--nothing"],
    ],
    ids=" ".join,
)
def test_a_command_that_cannot_be_read_is_one_line(refused, arguments):
    assert " --help'." in refused(*arguments)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "recal"], "--metric: unknown metric 'recal'. Did you mean 'recall'? `darkmetrics metrics` shows all"),
        (["--missingness", "by_lable"], "--missingness: unknown mechanism 'by_lable'. Did you mean 'by_label'?"),
        (["--method", "exakt"], "--method: unknown method 'exakt'. Did you mean 'exact'?"),
        (["--calibrator", "bta"], "--calibrator: unknown calibrator 'bta'. Did you mean 'beta'?"),
        (["--confidence-level", "1.5"], "--confidence-level: 1.5. It must lie strictly between 0 and 1."),
        (["--zero-division", "2"], "--zero-division: 2.0. It must be 'warn', 0, 1 or nan."),
        (["--prob", "id"], "column 'id' (--prob): 2 at row 2. Probabilities must lie in [0, 1]."),
        (["--pred", "id"], "column 'id' (--pred): a third value 2 at row 2 in addition to 0 and 1."),
        (["--threshold", "nan"], "--threshold: NaN."),
        (
            ["--pred", "id", "--threshold", "0.5"],
            "--threshold: 0.5, but column 'id' (--pred) already has the predictions.",
        ),
        (["--reference", "-"], "--reference: standard input cannot be the reference rows."),
        (["--prob", "1.3"], "--prob: 1.3. A probability must lie in [0, 1]."),
        (["--prob", "nan"], "--prob: nan. A probability must lie in [0, 1]."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_what_the_library_refuses_is_said_in_options(refused, csv_file, options, message):
    assert message in refused("evaluate", csv_file, *options)


def test_reference_rows_without_the_columns_are_refused(refused, csv_file, tmp_path):
    path = tmp_path / "reference.csv"
    path.write_text("lab,score\n1,0.5\n")
    said = refused("evaluate", csv_file, "--reference", path)
    assert said == f"{path}: no column 'label'. Did you mean 'lab'?"


def test_names_that_are_arguments_of_the_library_stay_as_they_are(refused, csv_file, tmp_path):
    assert refused("evaluate", csv_file, "--label", "y_true") == (
        f"{csv_file}: no column 'y_true'. It has 'id', 'label', 'score'."
    )
    near = tmp_path / "y_score.csv"
    near.write_text("label,score\n")
    assert refused("evaluate", tmp_path / "y_scores.csv").endswith(f"no such file. Did you mean {str(near)!r}?")
    reference = tmp_path / "sample_weight.csv"
    reference.write_text("y_pred,score\n1,0.5\n")
    assert refused("evaluate", csv_file, "--reference", reference) == (
        f"{reference}: no column 'label'. It has 'y_pred', 'score'."
    )
    odd = tmp_path / "metrics: x.csv"
    odd.write_text("y_true,score\n1,0.5\n0,0.4\ny_score,0.3\n")
    assert refused("evaluate", odd, "--pos-label", "y_score").startswith("column 'y_true' (--label): a third value")
    assert "'y_score'" in refused("evaluate", odd, "--pos-label", "y_score")


@pytest.mark.parametrize("name", [r"a\1b", r"\g<0>", r"\d", "y_score", "it's y_true"])
def test_a_column_of_any_name_is_named_as_it_is(refused, tmp_path, name):
    path = tmp_path / "x.csv"
    path.write_text(f"label,score,{name}\n1,0.5,0.5\n,0.4,2\n")
    said = refused("evaluate", path, "--label", "label", "--score", "score", "--prob", name)
    assert said == f"column {name!r} (--prob): 2 at row 1. Probabilities must lie in [0, 1]."
    path.write_text(f"label,{name}\n1,high\n0,low\n")
    said = refused("evaluate", path, "--label", "label", "--score", name)
    assert said == f"column {name!r} (--score): expected numbers, found 'high' of type str at row 0."


@pytest.mark.parametrize("command", ["evaluate", "report", "demo", "metrics"])
def test_an_empty_output_name_is_refused(refused, csv_file, command):
    file = [csv_file] if command in ("evaluate", "report") else []
    assert refused(command, *file, "-o", "") == "--output: is empty. Pass a file."


def test_an_output_name_that_is_too_long_is_refused(refused, csv_file, tmp_path):
    assert "cannot be written: File name too long." in refused("evaluate", csv_file, "-o", tmp_path / ("x" * 300))


def test_without_labels_the_ways_out_are_options(refused, tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,score\n,0.5\n,0.4\n")
    assert refused("evaluate", path).endswith(
        "Pass --reference FILE of fully labeled rows; or --prob with the score column if the scores are "
        "probabilities you trust, or --prob 0.5."
    )


def test_debug_shows_the_traceback_above_the_line(run, tmp_path):
    done = run("evaluate", tmp_path / "no.csv", "--debug")
    assert done.code == 2
    assert done.err.startswith("Traceback")
    assert done.err.splitlines()[-1].startswith("darkmetrics: ")


def test_an_error_of_our_own_is_a_line_too(run, csv_file, monkeypatch):
    def broken(*arguments, **settings):
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(dm, "evaluate", broken)
    done = run("evaluate", csv_file)
    assert done.code == 3
    assert done.err.splitlines()[-1] == (
        "darkmetrics: an error in darkmetrics itself (ZeroDivisionError: division by zero); --debug shows where"
    )


HOSTILE = [
    "[bold red]y[/bold red]",
    "<script>alert(1)</script>",
    "y\x1b[2J",
    "\u064a \u05d0",  # written from right to left
    "y\U0001f600",
    'say "y"',
    "two\nlines",
    "x" * 10_000,
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_names_of_columns_are_text_on_one_line(refused, tmp_path, name):
    path = tmp_path / "x.csv"
    quoted = name.replace('"', '""')
    path.write_text(f'"{quoted}",score\n1,0.5\n0,high\n', encoding="utf-8")
    said = refused("evaluate", path, "--label", "zzz", "--score", "score")
    assert repr(name) in said
    assert "\x1b" not in said
    labels = refused("evaluate", path, "--label", name, "--score", "score")
    assert "column 'score' (--score): expected numbers" in labels


def test_markup_in_words_is_text_on_a_terminal(capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    output.say("Guessed '[bold]y[/bold]' as --label. :smile:")
    assert "'[bold]y[/bold]' as --label. :smile:" in capsys.readouterr().err.replace("\n", " ")


def test_progress_is_for_terminals_and_leaves_the_result_alone(run, csv_file, monkeypatch):
    quiet = run("evaluate", csv_file, "--missingness", "by_label")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    loud = run("evaluate", csv_file, "--missingness", "by_label")
    assert "reading" not in quiet.err
    assert "evaluating" in loud.err
    assert loud.out == quiet.out
    assert np.char.count(loud.out, "\x1b") == 0
