"""What the README and the consoles on the pages print, run again: `python docs/shown.py` writes it; a test compares.

A console is a block of commands after `$ `, with what they print below. Commands of a page run one after the other in
a folder that holds `june.csv`, the 1,000 payments of the README.
"""

import contextlib
import io
import os
import re
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

from darkmetrics.cli import run

ROOT = Path(__file__).parents[1]
PAYMENTS = [(1, 0.9)] * 145 + [(0, 0.9)] * 55 + [(1, 0.1)] * 10 + [(0, 0.1)] * 90 + [("", 0.1)] * 700
CONSOLE = re.compile(r"(?<=^```console\n).*?(?=^```$)", flags=re.DOTALL | re.MULTILINE)
EXAMPLE = re.compile(
    r"(?P<code>^```python\n(?P<python>.*?)^```\n\n```text\n).*?(?=^```$)", flags=re.DOTALL | re.MULTILINE
)


def pages() -> list[Path]:
    """The pages that show what a command prints."""
    return [path for path in sorted((ROOT / "docs").rglob("*.md")) if CONSOLE.search(path.read_text(encoding="utf-8"))]


def readme() -> str:
    """The README with what its example prints."""

    def printed(found: re.Match[str]) -> str:
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(found["python"], {})
        return found["code"] + out.getvalue()

    return EXAMPLE.sub(printed, (ROOT / "README.md").read_text(encoding="utf-8"), count=1)


def page(path: Path) -> str:
    """A page with what its consoles print."""
    with _folder_with_payments():
        code = 0

        def printed(found: re.Match[str]) -> str:
            nonlocal code
            lines = []
            commands = re.findall(r"^\$ ((?:.*\\\n)*.*)$", found[0], flags=re.MULTILINE)
            for command in commands:
                lines.append(f"$ {command}\n")
                if command == "echo $?":
                    lines.append(f"{code}\n")
                    continue
                program, *words = shlex.split(command.replace("\\\n", ""))
                quiet = words[-1:] == ["2>/dev/null"]
                if program != "darkmetrics":
                    raise ValueError(f"{path.name}: a console runs darkmetrics or 'echo $?', not {program!r}.")
                out = io.StringIO()
                errors = io.StringIO() if quiet else out
                with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                    code = run(words[:-1] if quiet else words)
                lines.append(re.sub(r"\n{2,}", "\n\n", out.getvalue()))
            return "".join(lines)

        return CONSOLE.sub(printed, path.read_text(encoding="utf-8"))


@contextlib.contextmanager
def _folder_with_payments() -> Iterator[None]:
    before = Path.cwd()
    kept = {name: os.environ.get(name) for name in ("COLUMNS", "TERM")}
    with tempfile.TemporaryDirectory() as folder:
        rows = [f"{label},{score}\n" for label, score in PAYMENTS]
        (Path(folder) / "june.csv").write_text("fraud,p\n" + "".join(rows), encoding="utf-8")
        try:
            os.chdir(folder)
            os.environ |= {"COLUMNS": "120", "TERM": "dumb"}
            yield
        finally:
            os.chdir(before)
            for name, value in kept.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def main() -> None:
    """Write README and pages anew."""
    (ROOT / "README.md").write_text(readme(), encoding="utf-8")
    for path in pages():
        path.write_text(page(path), encoding="utf-8")


if __name__ == "__main__":
    main()
