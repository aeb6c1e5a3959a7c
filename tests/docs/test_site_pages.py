"""What the site is made from: its contents list has every page, its reference every public name, its code is run."""

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest
from typer.main import get_command

import darkmetrics as dm
from darkmetrics.cli import app
from golden.public_api import public_api

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
BLOCKS = [
    (page, language, code)
    for page in PAGES
    for language, code in re.findall(
        r"^```(\w*)\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
]
# Spark takes long to install and to start: `make engines` runs this page (tests/engines/test_spark_page.py).
RUN_ELSEWHERE = {"how-to/spark.md"}


def commands():
    """Every `darkmetrics ...` of the pages, one per line, as (page, words)."""
    for page, language, code in BLOCKS:
        if language in ("", "console", "yaml"):
            for line in code.replace("\\\n", " ").splitlines():
                for command in re.findall(r"(?:^|[ ;&|$])darkmetrics ((?:[a-z]+) .*)", line):
                    yield page, shlex.split(re.split(r" (?:&&|\|\||2?>>?|\|) ?", command)[0])


COMMANDS = list(commands())


def test_the_contents_list_has_every_page_once():
    listed = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed) == PAGES, "nav of mkdocs.yml"


def test_the_index_leads_to_every_page_but_those_of_the_parameters():
    linked = set(re.findall(r"\]\(([^)#:]+\.md)", (DOCS / "index.md").read_text(encoding="utf-8")))
    assert {page for page in PAGES if not page.startswith("reference/api/")} - linked == {"index.md"}, "docs/index.md"


def test_every_column_of_a_table_has_a_head():
    for page in (*PAGES, "../README.md"):
        text = (DOCS / page).read_text(encoding="utf-8")
        for head in re.findall(r"^\|(.*)\|\n\|[ :|-]+\|$", text, flags=re.MULTILINE):
            cells = re.split(r"(?<!\\)\|", head)
            assert all(cell.strip() for cell in cells), f"{page}: {head}"


def test_the_reference_has_exactly_the_public_names():
    """`darkmetrics.metrics.Metric` is `darkmetrics.Metric`, and stands there under the shorter name."""
    public = {re.split(r"[( ]", line)[0] for line in public_api().splitlines() if not line.startswith(" ")}
    twice = {f"darkmetrics.{where}.{name}" for where in dm.__all__ for name in dm.__all__} & public
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference" / "api").glob("*.md"))
    shown = Counter(re.findall(r"^::: (\S+)$", text, flags=re.MULTILINE))
    assert set(shown) - public == set(), "docs/reference/api has what is not public"
    assert public - twice - set(shown) == set(), "docs/reference/api lacks a line '::: name'"
    assert set(shown) & twice == set()
    assert max(shown.values()) == 1


@pytest.mark.parametrize("page", PAGES)
def test_names_of_the_library_on_a_page_exist(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    for name in re.findall(r"`dm\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)", text):
        found: object = dm
        for part in name.split("."):
            assert hasattr(found, part), f"dm.{name}"
            found = getattr(found, part)


@pytest.mark.parametrize("page", PAGES)
def test_python_on_a_page_is_run_as_a_doctest(page):
    unrun = [code for where, language, code in BLOCKS if where == page and language == "python" and ">>>" not in code]
    assert bool(unrun) == (page in RUN_ELSEWHERE), unrun


def test_doctests_are_shown_as_python():
    assert [(page, code) for page, language, code in BLOCKS if ">>> " in code and language != "python"] == []


@pytest.mark.parametrize(("page", "words"), COMMANDS, ids=[f"{page}-{i}" for i, (page, _) in enumerate(COMMANDS)])
def test_commands_on_a_page_can_be_read(page, words):
    command = get_command(app).commands[words[0]]  # type: ignore[attr-defined]  # it is a group
    command.make_context(words[0], words[1:], resilient_parsing=False)


def test_there_are_commands_on_the_pages():
    assert len({words[0] for _, words in COMMANDS}) >= 8


def test_workflows_on_the_pages_are_valid_yaml_with_jobs():
    yaml = pytest.importorskip("yaml")
    found = [yaml.safe_load(code) for _, language, code in BLOCKS if language == "yaml"]
    assert found
    for workflow in found:
        assert all("runs-on" in job and job["steps"] for job in workflow["jobs"].values())
