"""A file is written whole or not at all, and nothing else is touched."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from darkmetrics.files import write_whole

posix = pytest.mark.skipif(os.name != "posix", reason="rights, links and devices of POSIX")


@pytest.fixture
def mask():
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_text_is_written_in_utf_8_with_plain_line_ends(tmp_path):
    write_whole(tmp_path / "a.txt", "é\n\u2028x\n")
    assert (tmp_path / "a.txt").read_bytes() == "é\n\u2028x\n".encode()


@posix
def test_a_new_file_has_the_rights_of_any_new_file_and_an_old_one_keeps_its_own(tmp_path, mask):
    path = tmp_path / "a.txt"
    write_whole(path, "new")
    assert path.stat().st_mode & 0o777 == 0o666 & ~mask
    path.chmod(0o600)
    write_whole(path, "newer")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.read_text() == "newer"


@posix
def test_the_mask_of_the_process_is_left_alone(tmp_path, monkeypatch):
    def touched(mask):
        raise AssertionError("another thread may be making a file just now")

    monkeypatch.setattr(os, "umask", touched)
    write_whole(tmp_path / "a.txt", "new")


@pytest.mark.parametrize("problem", [OSError(28, "No space left on device"), KeyboardInterrupt(), ValueError("x")])
def test_what_fails_leaves_the_old_file_and_no_other(tmp_path, monkeypatch, problem):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def fail(self, target):
        raise problem

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(type(problem)):
        write_whole(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_text_that_cannot_be_encoded_leaves_nothing(tmp_path):
    with pytest.raises(UnicodeEncodeError):
        write_whole(tmp_path / "a.txt", "half \ud800")
    assert list(tmp_path.iterdir()) == []


def test_the_unfinished_file_has_a_name_that_cannot_be_guessed(tmp_path, monkeypatch):
    seen = []
    replace = Path.replace

    def spy(self, target):
        seen.append(self.name)
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", spy)
    for _ in range(2):
        write_whole(tmp_path / "a.txt", "new")
    assert seen[0] != seen[1]


def test_a_name_as_long_as_names_can_be_is_written(tmp_path):
    path = tmp_path / ("x" * 255)
    write_whole(path, "new")
    assert path.read_text() == "new"


@posix
def test_links_are_written_through_also_where_nothing_is_yet(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    link = tmp_path / "link.txt"
    link.symlink_to(folder / "a.txt")
    for text in ("new", "newer"):
        write_whole(link, text)
        assert link.is_symlink()
        assert (folder / "a.txt").read_text() == text
    assert [path.name for path in folder.iterdir()] == ["a.txt"]


@posix
def test_a_pipe_is_written_to_as_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through")
    reader.join(timeout=60)
    assert read == ["through"]
    assert pipe.is_fifo()


@posix
@pytest.mark.parametrize("to", ["pipe", "file", "end of file"])
def test_standard_output_by_name_is_standard_output(tmp_path, to):
    code = "from pathlib import Path; from darkmetrics.files import write_whole; write_whole(Path('/dev/stdout'), 'b')"
    path = tmp_path / "out.txt"
    path.write_text("a")
    if to == "pipe":
        assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "b"
        return
    with path.open("w" if to == "file" else "a") as stream:
        subprocess.run([sys.executable, "-c", code], stdout=stream, check=True)
    assert path.read_text() == {"file": "b", "end of file": "ab"}[to]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(OSError, match=r"directory|Permission"):
        write_whole(tmp_path, "new")
    assert list(tmp_path.iterdir()) == []
