"""The page on licences names every package that a user gets, and what its own metadata say of its licence."""

import re
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from release.oldest import requirements

PAGE = Path(__file__).parents[2] / "docs/reference/licences.md"
ROWS = re.findall(r"^\| ([a-z0-9-]+) \| (\S+) \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
NAMED = {name: licence for name, _, licence in ROWS if name != "package"}
# How else metadata say it: most packages have a classifier or the text instead of an SPDX expression.
OTHER_WORDS = {
    "Apache-2.0": "Apache",
    "BSD-2-Clause": "BSD",
    "BSD-3-Clause": "BSD",
    "MIT-CMU": "MIT-CMU|HPND",
    "PSF-2.0": "PSF|Python Software Foundation",
}


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def asked_for(name: str) -> set[str]:
    """What a package asks for here, without its extras, and what these ask for."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for line in metadata.requires(waiting.pop()) or []:
            wanted = Requirement(line)
            if wanted.marker is not None and not wanted.marker.evaluate({"extra": ""}):
                continue
            if canonical(wanted.name) not in found:
                found.add(canonical(wanted.name))
                waiting.append(wanted.name)
    return found


def test_every_package_that_users_are_given_is_named():
    direct = {canonical(Requirement(line).name) for line in requirements()}
    assert direct <= NAMED.keys()
    assert set().union(*map(asked_for, direct)) <= NAMED.keys()


# Other versions ask for other packages: not all that are named are here.
@pytest.mark.parametrize("name", sorted(NAMED.keys() & {canonical(found.name) for found in metadata.distributions()}))
def test_its_licence_is_the_one_of_its_own_metadata(name):
    about = metadata.metadata(name)
    classifiers = [line for line in about.get_all("Classifier") or [] if line.startswith("License ::")]
    # Where the backport of importlib.metadata was imported by somebody, a missing key is an error and not None.
    named, text = (about.get_all(key) or [""] for key in ("License-Expression", "License"))
    said = " ".join([named[0], text[0][:2000], *classifiers])
    for licence in NAMED[name].split(" OR "):
        assert re.search(rf"\b({OTHER_WORDS.get(licence, licence)})\b", said), said
