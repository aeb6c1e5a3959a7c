"""How to cite, and which version this is: the files agree, and the citation keeps to the rules of its format.

The rules are those of the Citation File Format 1.2.0; the `release` job of CI asks its own validator too.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import darkmetrics as dm

ROOT = Path(__file__).parents[1]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# The keys that the format knows, as far as they could be of use here; a misspelt one would be ignored in silence.
KEYS = {
    *("abstract", "authors", "cff-version", "commit", "contact", "date-released", "doi", "identifiers", "keywords"),
    *("license", "license-url", "message", "preferred-citation", "references", "repository-code", "title", "type"),
    *("url", "version"),
}
REFERENCE_KEYS = {
    *("abstract", "authors", "collection-title", "conference", "date-published", "doi", "end", "identifiers", "issue"),
    *("journal", "keywords", "languages", "license", "month", "pages", "publisher", "start", "status", "title", "type"),
    *("url", "volume", "year"),
}
REFERENCE_TYPES = {"article", "book", "conference-paper", "proceedings", "report", "software", "thesis", "generic"}


def broken_rules(citation: dict[str, Any]) -> list[str]:
    """The rules of the format that a citation breaks, in words."""
    found = [f"{key} is missing" for key in ("authors", "cff-version", "message", "title") if not citation.get(key)]
    found += [f"{key} is unknown" for key in citation.keys() - KEYS]
    if citation.get("cff-version") != "1.2.0":
        found.append("cff-version is not 1.2.0")
    if citation.get("type", "software") not in ("software", "dataset"):
        found.append("type is neither software nor dataset")
    if "date-released" in citation and not re.fullmatch(r"\d{4}-\d\d-\d\d", str(citation["date-released"])):
        found.append("date-released is not a day")
    found += broken_names(citation.get("authors", []))
    for reference in citation.get("references", []):
        found += [f"{key} of a reference is missing" for key in ("authors", "title", "type") if not reference.get(key)]
        found += [f"{key} of a reference is unknown" for key in reference.keys() - REFERENCE_KEYS]
        if reference.get("type") not in REFERENCE_TYPES:
            found.append("type of a reference is unknown")
        if not isinstance(reference.get("year", 0), int):
            found.append("year of a reference is not a number")
        if "conference" in reference and not reference["conference"].get("name"):
            found.append("a conference has no name")
        for identifier in reference.get("identifiers", []):
            if identifier.get("type") not in ("doi", "url", "swh", "other") or not identifier.get("value"):
                found.append("an identifier lacks its type or value")
        found += broken_names(reference.get("authors", []))
    return found


def broken_names(authors: list[dict[str, str]]) -> list[str]:
    """A person has a family name, an entity a name, and nobody both."""
    return [f"{author} has no name" for author in authors if ("name" in author) == ("family-names" in author)]


def test_the_citation_keeps_to_the_rules():
    assert broken_rules(CITATION) == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"message": ""}, "message is missing"),
        ({"licence": "MIT"}, "licence is unknown"),
        ({"cff-version": "1.3"}, "cff-version is not 1.2.0"),
        ({"authors": [{"given-names": "A"}]}, "{'given-names': 'A'} has no name"),
        (
            {"references": [{"type": "poem", "title": "A", "authors": [{"name": "B"}]}]},
            "type of a reference is unknown",
        ),
    ],
)
def test_a_broken_rule_is_found(change, rule):
    assert broken_rules(CITATION | change) == [rule]


def test_every_file_names_the_same_version():
    newest = re.search(r"^## \[(.+?)\] - (.+)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert [dm.__version__, str(CITATION["version"]), newest[1]] == [PROJECT["version"]] * 3
    # A day once it is released, and until then no day that is not true; the release asks for one.
    assert re.fullmatch(r"Unreleased|\d{4}-\d\d-\d\d", newest[2])
    assert ("date-released" in CITATION) == (newest[2] != "Unreleased")


def test_every_file_names_the_same_licence():
    assert CITATION["license"] == PROJECT["license"] == "Apache-2.0"
    assert "Apache License" in (ROOT / "LICENSE").read_text(encoding="utf-8")[:200]
