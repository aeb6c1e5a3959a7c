"""Raw figures of the guarantees: one file per piece, written when the piece is finished and never computed twice.

A run that is interrupted goes on where it stopped. Files lie in a folder that is named after the code that computed
them, the library's and the simulation's, so that figures of other code are never taken for those of this one.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import darkmetrics as dm
from darkmetrics.files import write_whole

WORK = Path(__file__).parent / "work"
LIBRARY = Path(dm.__file__).parent
PACKAGES = ("numpy", "scipy", "scikit-learn")

Row = dict[str, Any]


def _installed(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return package


def files(*names: str | Path | None) -> tuple[Path, ...]:
    """Files of modules and of data, as `Family` takes them."""
    return tuple(Path(name) for name in names if name is not None)


@dataclass(frozen=True, eq=False)
class Family:
    """Pieces that one function computes, each from arguments of its own.

    `sources` are the files besides the library's from which figures follow, simulations and data; `packages` those
    whose versions count.
    """

    name: str
    compute: Callable[..., Iterable[Row]]
    sources: tuple[Path, ...]
    packages: tuple[str, ...] = PACKAGES
    work: Path = WORK
    library: Path = LIBRARY

    @cached_property
    def fingerprint(self) -> str:
        """That of the code as it was when first asked for, which is before anything is computed."""
        return self._fingerprint_now()

    def _fingerprint_now(self) -> str:
        found = hashlib.sha256("\n".join(map(_installed, self.packages)).encode())
        named = {path.relative_to(self.library).as_posix(): path for path in self.library.rglob("*.py")}
        named |= {f"../{path.name}": path for path in self.sources}
        for name, path in sorted(named.items()):
            found.update(f"{name}\n".encode() + hashlib.sha256(path.read_bytes()).digest())
        return found.hexdigest()[:12]

    @property
    def folder(self) -> Path:
        """Where the pieces of this code are."""
        return self.work / self.fingerprint / self.name

    def piece(self, *arguments: Any) -> "Piece":
        """The piece with these arguments of `compute`."""
        return Piece(self, arguments)


class Piece(NamedTuple):
    """What is computed in one go: a measurement's replications 50 to 100, a fold, a case."""

    family: Family
    arguments: tuple[Any, ...]

    @property
    def name(self) -> str:
        return ", ".join([self.family.name, *map(str, self.arguments)])

    @property
    def path(self) -> Path:
        words = re.sub(r"[^\w.]+", "-", ", ".join(map(str, self.arguments))).strip("-")
        return self.family.folder / f"{words}.json"

    def is_there(self) -> bool:
        """Whether this code has computed it."""
        return self.path.exists()

    def figures(self) -> list[Row]:
        """The rows of the piece, computed now if this code has not done it before."""
        if not self.is_there():
            self._compute()
        rows: list[Row] = self._content()["rows"]
        return rows

    def cpu_seconds(self) -> float:
        """What computing it took."""
        return float(self._content()["cpu_seconds"])

    def _content(self) -> Any:
        return json.loads(self.path.read_text())

    def _compute(self) -> None:
        path, started = self.path, time.process_time()  # the path first: it holds the fingerprint
        rows = list(self.family.compute(*self.arguments))
        content = {"piece": self.name, "cpu_seconds": time.process_time() - started, "rows": rows}
        if self.family._fingerprint_now() != self.family.fingerprint:
            raise RuntimeError(f"{self.name}: the code has changed since this run began. Start it again.")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(content, allow_nan=False, separators=(",", ":")) + "\n")
