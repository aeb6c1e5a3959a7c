"""What a command found, in the shapes that the formats want."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Table:
    """Cells as text; the first `words` columns are words and stand on the left."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    title: str = ""
    words: int = 1


@dataclass(frozen=True)
class Check:
    """Something that was to hold; with one that does not, the exit code is 1."""

    name: str  # what was to hold, such as "recall at least 0.8"
    passed: bool | None  # None: too little is known to judge
    words: str  # a sentence: how it stands
    group: str = ""  # where it was to hold, if not in all rows

    @property
    def verdict(self) -> str:
        """The word that a line begins with."""
        return {True: "PASS", False: "FAIL", None: "SKIP"}[self.passed]

    @property
    def line(self) -> str:
        """The verdict and how it came about."""
        return f"{self.verdict}: {self.words}"


@dataclass(frozen=True)
class Result:
    """One result in the shapes that the formats want."""

    document: Mapping[str, Any]  # for JSON
    records: Sequence[Mapping[str, Any]]  # for CSV: one row each, plain values
    tables: Sequence[Table]  # for a table and Markdown
    above: Sequence[str] = ()  # sentences above the tables, such as what was assumed
    below: Sequence[str] = ()  # and below them
    warnings: Sequence[str] = ()  # above the tables too; standard error has them already
    checks: Sequence[Check] = ()
    closing: str = ""  # instead of a line for each check, where they would be hundreds
    # For Prometheus: columns of the records that say what a number is about.
    about: Sequence[str] = ()

    @property
    def verdicts(self) -> list[str]:
        """How each check stands, in a line."""
        return [self.closing] if self.closing else [check.line for check in self.checks]

    @property
    def missed(self) -> bool:
        """Whether something that was to hold does not."""
        return any(check.passed is False for check in self.checks)
