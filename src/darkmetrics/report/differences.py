"""What pages about differences have in common: tables, pictures of laws around zero, and the frame they stand in."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from darkmetrics.distributions import MetricDistribution
from darkmetrics.report.charts import distribution_chart
from darkmetrics.report.density import shape
from darkmetrics.report.exports import link
from darkmetrics.report.page import code_shown, law_hover
from darkmetrics.report.render import filled
from darkmetrics.report.reproduce import as_argument, date_of, source_facts
from darkmetrics.report.summarize import MOST_CURVES
from darkmetrics.tables import finite

# What intervals are for, by scope, in the head of a page.
SCOPES = {"rows": "these rows", "population": "the population that the rows came from"}


class Table(NamedTuple):
    """A table of a page; the first `words` columns are text."""

    id: str
    heading: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1
    note: str = ""
    # A link that saves the numbers.
    csv: str = ""


class Difference(NamedTuple):
    """The law of a difference, ready to be drawn: what it is called, in a sentence, and its numbers."""

    name: str
    sentence: str
    caption: str
    entry: dict[str, Any]


class About(NamedTuple):
    """What a page is told besides its result, checked."""

    title: str | None
    source: Mapping[str, str]
    date: str
    audit: Mapping[str, Any] | None
    # The same as arguments in code.
    said: str

    @classmethod
    def of(
        cls,
        title: str | None = None,
        source: str | Mapping[str, Any] | None = None,
        date: str | dt.date | None = None,
        audit: Mapping[str, Any] | None = None,
    ) -> "About":
        """The settings that users give to a report."""
        source_facts(audit, "audit")
        day = date_of(date)
        said = "".join(as_argument(name, value) for name, value in (("title", title), ("audit", audit)))
        return cls(title, source_facts(source), day, audit, said + ("" if date is None else f", date={day!r}"))


def law_entry(distribution: MetricDistribution, level: float, scope: str, labeled_only: float) -> dict[str, Any]:
    """The numbers of a law of differences and its shape; zero is marked as a target is in other pictures."""
    entry = distribution.to_dict(level)
    if scope == "population":  # what missing labels can do at worst says nothing of other rows
        entry |= {"lowest_possible": None, "highest_possible": None}
    return entry | {"shape": shape(distribution), "labeled_only": finite(labeled_only), "target": {"value": 0.0}}


def saved(records: Sequence[Mapping[str, Any]]) -> str:
    """A link that saves flat records as CSV."""
    return link(list(records[0]), [list(record.values()) for record in records])


def differences_page(
    *,
    title: str,
    warnings: Sequence[str],
    counts: str,
    facts: Mapping[str, str],
    about: About,
    audit: Any,
    reproduce: Mapping[str, Any],
    tiles: Sequence[tuple[str, str, str]],
    words: Sequence[str],
    tables: Sequence[Table],
    differences: Sequence[Difference],
    zero: str,
    spread: str,
    level: str,
    assumed: Sequence[str],
) -> str:
    """The page as text."""
    drawn = differences[:MOST_CURVES]
    context = {
        "title": title,
        "warnings": list(warnings),
        "counts_sentence": counts,
        "facts": facts,
        "targets": [],
        "source": about.source,
        "audit": audit,
        "reproduce": reproduce,
        "code": code_shown(reproduce["code"]),
        "tiles": [dict(zip(("name", "value", "note"), tile, strict=True)) for tile in tiles],
        "words": words,
        "tables": tables,
        "pictures": [
            {"name": one.name, "sentence": one.sentence, "caption": one.caption, "chart": distribution_chart(one.entry)}
            for one in drawn
        ],
        "bounded": any(one.entry["lowest_possible"] is not None for one in drawn),
        "not_drawn": len(differences) - len(drawn),
        "zero": zero,
        "spread": spread,
        "level": level,
        "assumed": assumed,
        "data": {"sliders": {}, "hover": law_hover(one.entry for one in drawn)},
    }
    return filled("differences.html.j2", context)
