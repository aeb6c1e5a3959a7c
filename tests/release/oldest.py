"""The oldest versions that pyproject.toml allows of what users install, one per line, as pip's constraints."""

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def requirements() -> list[str]:
    """What the library needs, and what its extras for users add."""
    project = tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    named = re.fullmatch(r"darkmetrics\[(.+)\]", everything)
    assert named is not None
    return [*project["dependencies"], *(line for name in named[1].split(",") for line in extras[name])]


if __name__ == "__main__":
    for line in requirements():
        name, oldest = line.split(">=")
        print(f"{name}=={oldest}")
