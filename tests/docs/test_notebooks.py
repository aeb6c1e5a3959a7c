"""The notebooks as they are stored: whole, run from top to bottom, and of no particular machine.

`make notebooks` runs them and compares what they print.
"""

import re
from pathlib import Path

import nbformat
import pytest

FOLDER = Path(__file__).parents[2] / "examples/notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def test_there_is_one_for_each_kind_of_user():
    assert [path.stem for path in NOTEBOOKS] == [
        "a-gate-in-ci",
        "a-month-of-fraud",
        "reject-inference-for-an-audit-file",
        "the-papers-algorithms",
    ]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def notebook(request):
    found = nbformat.read(request.param, as_version=4)
    nbformat.validate(found)
    return found


def outputs(notebook):
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def test_it_was_run_from_top_to_bottom_without_an_error(notebook):
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1))
    assert outputs(notebook)
    assert not [output for output in outputs(notebook) if output.output_type == "error"]


def test_its_output_names_no_folder_of_a_machine(notebook):
    said = "".join(
        str(output.get("text", output.get("data", {}).get("text/plain", ""))) for output in outputs(notebook)
    )
    assert not re.search(r"(^|\s|[\"'])(/\w+/|[A-Z]:\\)", said)


def test_its_links_lead_somewhere(notebook):
    text = "".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\((\S+?)\)", text)
    assert links
    for link in links:
        assert (FOLDER / link.split("#")[0]).is_file(), link
