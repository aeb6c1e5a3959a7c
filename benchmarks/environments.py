"""A throw-away virtual environment for one peer, and scripts that run in it."""

import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

SCRIPTS = Path(__file__).parent / "peer_scripts"
# What pip and Python say may name places of this machine or of the network; a table is no place for them.
_PLACES = re.compile(r"\S*[/\\]\S*")
_LONGEST_REASON = 160


class PeerError(Exception):
    """A peer did not install or did not run; the message is the reason, in a line."""


@contextlib.contextmanager
def environment(requirements: Sequence[str]) -> Iterator[Path]:
    """The Python of a new environment with these packages, gone afterwards; without any, the one that runs this."""
    if not requirements:
        yield Path(sys.executable)
        return
    with tempfile.TemporaryDirectory(prefix="peer-") as folder:
        call([sys.executable, "-m", "venv", folder], "no virtual environment")
        python = Path(folder) / "bin" / "python"
        pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        call([*pip, *requirements], "does not install")
        yield python


def script(python: Path, name: str, *arguments: str | Path) -> dict[str, Any]:
    """What a peer's script printed."""
    printed = call([python, SCRIPTS / name, *arguments], "does not run")
    found: dict[str, Any] = json.loads(printed.splitlines()[-1])
    return found


def call(command: Sequence[str | Path], failure: str) -> str:
    """Standard output of a command; on failure the last line of what it said is the reason."""
    # No packages but those of the environment: a path set for this process would bring in others.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, env=variables, check=False)
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if "rror" in line] or [f"exit code {done.returncode}"]
        raise PeerError(f"{failure}: {_PLACES.sub('...', said[-1]).strip()[:_LONGEST_REASON]}")
    return done.stdout
