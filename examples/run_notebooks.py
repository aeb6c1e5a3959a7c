"""Runs the notebooks and compares what they print with what is stored in them: `make notebooks`.

They are stored with their output, so that they can be read without being run. Text is compared, pictures are only made.
`python examples/run_notebooks.py --write` stores what they print now: look at them before they are committed.
"""

import argparse
import difflib
import os
import re
import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

FOLDER = Path(__file__).parent / "notebooks"
# Small pictures without the name of the program that drew them, and no window.
SETTINGS = """
%config InlineBackend.rc = {"figure.dpi": 72}
%config InlineBackend.print_figure_kwargs = {"metadata": {"Software": None}}
"""


def run(notebook: Any) -> Any:
    """The notebook with the output of a fresh kernel."""
    fresh = nbformat.from_dict(notebook)
    fresh.cells.insert(0, nbformat.v4.new_code_cell(SETTINGS))
    NotebookClient(fresh, timeout=600, kernel_name="python3").execute()
    del fresh.cells[0]
    for number, cell in enumerate(code_cells(fresh), 1):
        cell.execution_count = number
        cell.metadata = {}
        cell.outputs = [tidy(output) for output in together(cell.outputs)]
    fresh.metadata = notebook.metadata
    return fresh


def code_cells(notebook: Any) -> list[Any]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def together(outputs: list[Any]) -> list[Any]:
    """Each stream as one output, stdout first: where they are cut and in which order they come depends on the clock."""
    streams: dict[str, Any] = {}
    for output in outputs:
        if output.output_type == "stream" and output.name in streams:
            streams[output.name].text += output.text
        elif output.output_type == "stream":
            streams[output.name] = output
    rest = [output for output in outputs if output.output_type != "stream"]
    return [streams[name] for name in sorted(streams, reverse=True)] + rest


def tidy(output: Any) -> Any:
    """Without what differs from run to run or belongs to a machine."""
    if output.output_type == "stream":
        output.text = re.sub(r"[ \t]+$", "", output.text.replace("\r\n", "\n"), flags=re.MULTILINE)
    if "execution_count" in output:
        output.execution_count = None
    if "image/png" in output.get("data", {}):
        output.data.pop("text/plain", None)
    return output


def printed(notebook: Any) -> list[str]:
    """The text of all outputs, line by line, under the first line of their cell; a picture counts as one line."""
    lines = []
    for cell in code_cells(notebook):
        lines.append(f"# {cell.source.splitlines()[0]}")
        for output in cell.outputs:
            data = output.get("data", {})
            text = output.get("text", data.get("text/plain", "(a picture)" if "image/png" in data else ""))
            lines += text.splitlines()
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="of notebooks; all if none is named")
    parser.add_argument("--write", action="store_true", help="store what they print now")
    given = parser.parse_args()
    # The kernel and the commands of the notebooks are those of this environment, wide enough for a table.
    os.environ |= {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}", "COLUMNS": "110"}
    os.environ |= {"PYDEVD_DISABLE_FILE_VALIDATION": "1", "JUPYTER_PLATFORM_DIRS": "1", "NO_COLOR": "1"}
    failed = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        if given.names and path.stem not in given.names:
            continue
        stored = nbformat.read(path, as_version=4)
        try:
            fresh = run(stored)
        except CellExecutionError as error:
            print(f"{path.name}: {error}")
            failed = 1
            continue
        differences = list(difflib.unified_diff(printed(stored), printed(fresh), "stored", "now", lineterm="", n=2))
        print(f"{path.name}: {'prints something else' if differences else 'runs, and prints what it did'}")
        print("\n".join(differences))
        if given.write:
            unfinished = path.with_suffix(".tmp")
            unfinished.write_text(nbformat.writes(fresh) + "\n", encoding="utf-8")
            unfinished.replace(path)
        elif differences:
            failed = 1
    return failed


if __name__ == "__main__":
    sys.exit(main())
