"""Each exit code means what the page says, in processes of their own: also with closed, full and broken streams."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl
import pytest
from typer.main import get_command

from darkmetrics.cli.app import EXIT_CODES, app

pytestmark = pytest.mark.skipif(os.name == "nt", reason="streams and signals are not those of POSIX")
needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")

COMMAND = f"{sys.executable} -m darkmetrics"
EVALUATE = f"{COMMAND} evaluate june.csv --prob 0.5 -m recall"
MISSED = f"{COMMAND} check june.csv --prob 0.5 -m recall --fail-under recall=0.999"
LATIN = "label,score,k\n1,0.5,Köln\n0,0.4,Bonn\n".encode("latin-1")


@pytest.fixture
def shell(csv_file):
    """Run a line of bash in the folder of june.csv: exit code of the first command in it, and what was said."""

    def go(line):
        done = subprocess.run(
            ["bash", "-c", f"{line}; exit ${{PIPESTATUS[0]}}"],
            capture_output=True,
            text=True,
            cwd=csv_file.parent,
            timeout=120,
            check=False,
        )
        assert "Traceback" not in done.stderr
        assert "Exception ignored" not in done.stderr
        return done

    return go


def test_the_result_decides_between_done_and_target_missed(shell):
    assert shell(EVALUATE).returncode == 0
    assert shell(MISSED).returncode == 1


@pytest.mark.parametrize(
    "command",
    [
        EVALUATE,
        f"{EVALUATE} -f json",
        f"{EVALUATE} -o /dev/stdout",
        f"{COMMAND} --help",
        f"{COMMAND} evaluate --help",
        f"{COMMAND} --version",
    ],
    ids=lambda text: text.removeprefix(COMMAND),
)
def test_a_reader_who_has_seen_enough_is_no_error(shell, command):
    assert shell(f"{command} 2> said | true").returncode == 0


def test_a_reader_of_one_line_gets_it_and_is_no_error(shell):
    done = shell(f"{COMMAND} metrics | head -1")
    assert (done.returncode, done.stdout.split()) == (0, ["metric", "better", "meaning"])


def test_a_reader_who_has_seen_enough_does_not_hide_a_missed_target(shell):
    assert shell(f"{MISSED} | true").returncode == 1


@pytest.mark.parametrize(
    "command",
    [EVALUATE, MISSED, f"{COMMAND} --help", f"{COMMAND} --version"],
    ids=lambda text: text.removeprefix(COMMAND),
)
def test_a_closed_standard_output_is_a_line_about_it(shell, command):
    done = shell(f"{command} >&-")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "darkmetrics: standard output: cannot be written: it is closed."


@needs_full
@pytest.mark.parametrize(
    "command",
    [EVALUATE, MISSED, f"{COMMAND} metrics", f"{COMMAND} --help", f"{COMMAND} --version"],
    ids=["done", "missed", "metrics", "help", "version"],
)
def test_a_full_disk_is_a_line_about_it_whatever_the_result(shell, command):
    done = shell(f"{command} > /dev/full")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "darkmetrics: standard output: cannot be written: No space left on device."


def test_a_closed_standard_output_that_nothing_is_written_to_is_no_error(shell, csv_file):
    assert shell(f"{EVALUATE} -o result.json >&-").returncode == 0
    assert json.loads(csv_file.with_name("result.json").read_text())["metrics"]


DEAF = ["2>&-", "2> /dev/full", "2>&1 >/dev/null | true", ">&- 2>&-"]
# Each way with a refusal, which is quick, and with a result of either kind.
HEARD = [(f"{COMMAND} evaluate no.csv", 2, how) for how in DEAF]
HEARD += [(EVALUATE, 0, how) for how in DEAF[:2]] + [(MISSED, 1, how) for how in DEAF[1:]]


@pytest.mark.parametrize(("command", "code", "how"), HEARD)
def test_a_standard_error_that_nobody_hears_changes_no_code(shell, how, command, code):
    if "/dev/full" in how and not Path("/dev/full").exists():
        pytest.skip("no device that is always full")
    unwritten = 2 if how.startswith(">&-") else code
    assert shell(f"{command} {how}").returncode == unwritten


def test_a_closed_standard_error_is_none_of_the_monitor_either(shell, csv_file):
    pl.DataFrame({"label": [1, 0] * 40, "score": [0.9, 0.2] * 40, "k": [1, 1, 2, 2] * 20}).write_parquet(
        csv_file.with_name("x.parquet")
    )
    assert shell(f"{COMMAND} monitor x.parquet --by k -m recall 2>&-").returncode == 0


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("evaluate no.csv", "no.csv: no such file."),
        ("evaluate folder", "folder: no Parquet file in this folder."),
        ("evaluate june.csv --reference folder", "folder: is a directory. Pass a file in it."),
        ("evaluate latin.csv", "latin.csv: is not UTF-8 text. Save it as UTF-8."),
        ("monitor latin.csv --by k", "latin.csv: is not UTF-8 text. Save it as UTF-8."),
        ("evaluate june.csv --threshold 1_000", "Invalid value for '--threshold': '1_000' is not a number."),
        ("evaluat", "No such command 'evaluat'."),
    ],
)
def test_input_that_cannot_be_read_is_a_line_about_it(run, csv_file, monkeypatch, line, said):
    monkeypatch.chdir(csv_file.parent)
    csv_file.with_name("folder").mkdir()
    csv_file.with_name("latin.csv").write_bytes(LATIN)
    done = run(
        *line.split()
    )  # which is all that a process would do: its codes and streams are those of the tests above
    assert (done.code, done.out) == (2, "")
    assert "Traceback" not in done.err
    assert done.err.splitlines()[-1].startswith(f"darkmetrics: {said}")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("evaluate - <&-", "standard input: is closed. Pass a file, or send something through a pipe."),
        ("evaluate - < latin.csv", "standard input: is not UTF-8 text. Save it as UTF-8."),
        ("evaluate no.csv", "no.csv: no such file."),
    ],
)
def test_what_a_process_cannot_read_is_a_line_about_it(shell, csv_file, line, said):
    csv_file.with_name("latin.csv").write_bytes(LATIN)
    done = shell(f"{COMMAND} {line}")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"darkmetrics: {said}")


AS_NOBODY = """
import os, sys
from darkmetrics.__main__ import main
sys.argv = ["darkmetrics", "bounds", "june.csv", "-m", "recall", "-o", os.devnull]
main()  # imports what it needs, which nobody else may be allowed to read
if os.geteuid() == 0:
    os.seteuid(65534)  # root may read everything
sys.argv[2] = {path!r}
sys.exit(main())
"""


def test_a_file_that_must_not_be_read_is_a_line_about_it(csv_file):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # unlike pytest's own, which nobody else can look into
        path = Path(folder) / "x.csv"
        path.write_text("label,score\n1,0.5\n")
        path.chmod(0o000)
        code = AS_NOBODY.format(path=str(path))
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, cwd=csv_file.parent, check=False
        )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"darkmetrics: {path}: cannot be opened: Permission denied."


WAITING = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job may have come with it ignored
sys.argv = ["darkmetrics", "report", "-", "-o", {path!r}]
from darkmetrics.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("streams", ["open", "closed"])
def test_ctrl_c_is_the_code_of_an_interruption_and_leaves_no_file(streams, tmp_path):
    closed = "exec >&- 2>&-; " if streams == "closed" else ""
    line = f'{closed}exec "$0" -c "$1"'
    command = ["bash", "-c", line, sys.executable, WAITING.format(path=str(tmp_path / "out.html"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin is not None
        # More than a pipe holds: this returns when the command has begun to read, and it waits for the rest.
        process.stdin.write(b"label,score\n" + b"1,0.5\n" * 50_000)
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert list(tmp_path.iterdir()) == []
    if streams == "open":
        assert (out, err) == (b"", b"darkmetrics: interrupted\n")


def test_an_error_of_our_own_is_its_own_code(csv_file):
    code = (
        "import sys, darkmetrics as dm\n"
        "def broken(*arguments, **settings): raise ZeroDivisionError('division by zero')\n"
        "dm.evaluate = broken\n"
        f"sys.argv = ['darkmetrics', 'evaluate', {str(csv_file)!r}]\n"
        "from darkmetrics.__main__ import main\n"
        "sys.exit(main())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.splitlines()[-1].startswith("darkmetrics: an error in darkmetrics itself (ZeroDivisionError")


def test_the_help_breaks_no_line_but_where_the_screen_ends():
    for name, command in get_command(app).commands.items():  # type: ignore[attr-defined]
        assert all("\n" not in paragraph for paragraph in command.help.split("\n\n")), name


def test_every_code_is_in_the_help(run):
    said = " ".join(run("--help").out.replace("│", " ").split())
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning}" in said
