"""The wheel and the source archive that `make dist` wrote: what is in them, and that the wheel works on its own."""

import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

import darkmetrics as dm
from release.oldest import requirements

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]
VERSION = dm.__version__
WHEEL = f"darkmetrics-{VERSION}-py3-none-any.whl"
SOURCES = f"darkmetrics-{VERSION}.tar.gz"


def said(*command: object, **settings: Any) -> str:
    """What a command printed; if it fails, the test shows what it complained about."""
    words = [str(word) for word in command]
    done: Any = subprocess.run(words, check=False, capture_output=True, text=True, **settings)
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


def committed(folder: str = ".") -> set[str]:
    return set(said("git", "ls-tree", "-r", "-z", "--name-only", "HEAD", folder, cwd=ROOT).strip("\0").split("\0"))


@pytest.fixture(scope="module")
def dist() -> Path:
    for name in (WHEEL, SOURCES):
        assert (ROOT / "dist" / name).is_file(), f"dist/{name} is not there; run `make dist-check`"
    return ROOT / "dist"


@pytest.fixture(scope="module")
def empty(tmp_path_factory, dist):
    """The programs of an environment that has the wheel and what it asks for, and nothing else."""
    folder = tmp_path_factory.mktemp("empty")
    said(sys.executable, "-m", "venv", folder)
    said(folder / "bin/pip", "install", "-qq", dist / WHEEL, env=outside())
    return folder / "bin"


def outside() -> dict[str, str]:
    """An environment that does not find the library in this folder."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def first_python_block(page: str) -> str:
    block = re.search(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert block is not None
    lines = block[1].splitlines()
    typed = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    return "\n".join(typed or lines)


@pytest.mark.parametrize("name", [WHEEL, SOURCES])
def test_built_again_elsewhere_it_is_the_same_to_the_byte(name, dist, again):
    assert (again / name).read_bytes() == (dist / name).read_bytes()


@pytest.fixture(scope="module")
def again(tmp_path_factory):
    """A second build: into another folder, for other rights of files, at another hour and in another language."""
    folder = tmp_path_factory.mktemp("again")
    other = os.environ | {"TZ": "Asia/Tokyo", "LC_ALL": "C", "PYTHONHASHSEED": "7"}
    said("make", "dist", f"DIST={folder}", cwd=ROOT, umask=0o077, env=other)
    return folder


def test_the_wheel_has_the_package_and_nothing_else(dist):
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        names = set(wheel.namelist())
    about = f"darkmetrics-{VERSION}.dist-info"
    notes = {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    assert names == notes | {name.removeprefix("src/") for name in committed("src/darkmetrics")}


def test_the_wheel_has_no_tests_and_no_data_but_those_of_the_demo(dist):
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        names = [name for name in wheel.namelist() if ".dist-info/" not in name]
    code = re.compile(r"darkmetrics/[a-z_/]+\.py|darkmetrics/py\.typed|darkmetrics/report/templates/[a-z.0-9]+")
    assert sorted(name for name in names if not code.fullmatch(name)) == [
        "darkmetrics/_demo/README.md",
        "darkmetrics/_demo/breast_cancer.csv",
    ]
    assert not [name for name in names if re.search(r"(^|/)(tests?/|test_|conftest)", name)]


def test_the_source_archive_has_what_is_needed_to_test_it(dist):
    with tarfile.open(dist / SOURCES) as archive:
        names = {member.name.split("/", 1)[1] for member in archive.getmembers()}
    # Files with a dot are for those who work in the repository; .gitignore goes along because the build reads it.
    wanted = {name for name in committed() if not name.startswith(".")} | {".gitignore", "PKG-INFO"}
    assert names == wanted


def test_the_wheel_asks_for_the_run_time_dependencies_alone(dist):
    with zipfile.ZipFile(dist / WHEEL) as wheel:
        metadata = wheel.read(f"darkmetrics-{VERSION}.dist-info/METADATA").decode()
    asked = {
        re.split(r"[<>=!~ ]", line)[1]
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist:") and "extra" not in line
    }
    assert asked == {"narwhals", "numpy", "scipy"}


def test_the_first_lines_of_the_readme_work_in_an_empty_environment(empty, tmp_path):
    lines = first_python_block((ROOT / "README.md").read_text(encoding="utf-8"))
    printed = said(empty / "python", "-W", "ignore", "-c", lines, cwd=tmp_path, env=outside())
    assert "precision" in printed
    assert "labeled" in printed


def test_nothing_but_what_it_needs_was_installed(empty):
    listed = said(
        empty / "python", "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check", env=outside()
    )
    names = {line.split("==")[0].lower() for line in listed.splitlines()} - {"pip", "setuptools"}
    assert names == {"darkmetrics", "narwhals", "numpy", "scipy"}
    said(empty / "python", "-m", "pip", "check", env=outside())


def test_the_command_without_its_extra_says_what_to_install(empty, tmp_path):
    command = [str(empty / "darkmetrics"), "demo"]
    done = subprocess.run(command, check=False, cwd=tmp_path, env=outside(), capture_output=True, text=True)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "darkmetrics[cli]" in done.stderr


def test_with_all_extras_the_demo_runs(empty, dist, tmp_path):
    said(empty / "pip", "install", "-qq", f"{dist / WHEEL}[all]", env=outside())
    assert said(empty / "darkmetrics", "--version", cwd=tmp_path, env=outside()).strip().endswith(VERSION)
    printed = said(empty / "darkmetrics", "demo", cwd=tmp_path, env=outside())
    assert "recall" in printed
    listed = said(empty / "python", "-m", "pip", "list", "--format=freeze", env=outside()).lower()
    assert all(re.split("[<>=]", line)[0] in listed for line in requirements())
    # The README's lines for own rows take the name of a file.
    (tmp_path / "june.csv").write_text("fraud,p\n" + "1,0.9\n0,0.2\n,0.6\n0,0.4\n" * 20)
    _, own = re.findall(r"^```python\n(.*?)^```$", (ROOT / "README.md").read_text("utf-8"), re.DOTALL | re.MULTILINE)
    code = f"import darkmetrics as dm\ndf = 'june.csv'\n{own}"
    said(empty / "python", "-W", "ignore", "-c", code, cwd=tmp_path, env=outside())
    assert (tmp_path / "june.html").exists()
