"""What reports about differences share: their settings, and pictures of distributions around zero."""

import datetime as dt
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from darkmetrics.distributions import MetricDistribution
from darkmetrics.report.charts import distribution_chart
from darkmetrics.report.density import shape
from darkmetrics.report.evaluations import distribution_hover
from darkmetrics.report.reproduce import as_argument, date_of, source_facts
from darkmetrics.report.sections import Section, charts_block, figure
from darkmetrics.report.summarize import MOST_CURVES
from darkmetrics.tables import finite

# What intervals are for, by scope, in the head of a page.
SCOPES = {"rows": "these rows", "population": "the population that the rows came from"}


class Difference(NamedTuple):
    """The distribution of a difference, ready to be drawn: its name, a sentence, and its numbers."""

    name: str
    sentence: str
    caption: str
    entry: dict[str, Any]


class About(NamedTuple):
    """The settings that users give to a report, validated."""

    title: str | None
    source: Mapping[str, str]
    date: str
    audit: Mapping[str, Any] | None
    # The same as arguments in code.
    code: str

    @classmethod
    def of(
        cls,
        title: str | None = None,
        source: str | Mapping[str, Any] | None = None,
        date: str | dt.date | None = None,
        audit: Mapping[str, Any] | None = None,
    ) -> "About":
        """Validate the settings."""
        source_facts(audit, "audit")
        day = date_of(date)
        code = "".join(as_argument(name, value) for name, value in (("title", title), ("audit", audit)))
        return cls(title, source_facts(source), day, audit, code + ("" if date is None else f", date={day!r}"))


def difference_entry(distribution: MetricDistribution, level: float, scope: str, labeled_only: float) -> dict[str, Any]:
    """Return the numbers and the shape of a difference; zero is marked like a target."""
    entry = distribution.to_dict(level)
    if scope == "population":  # what missing labels can do at worst says nothing of other rows
        entry |= {"lowest_possible": None, "highest_possible": None}
    return entry | {"shape": shape(distribution), "labeled_only": finite(labeled_only), "target": {"value": 0.0}}


def differences_section(differences: Sequence[Difference], heading: str, zero: str, level: str) -> Section:
    """Return the pictures of differences."""
    drawn = differences[:MOST_CURVES]
    figures = []
    for number, difference in enumerate(drawn, start=1):
        chart = distribution_chart(difference.entry)
        caption = difference.caption if chart else "0/0 for every label assignment"
        about = {"id": f"distribution-{number}", "name": difference.name, "sentence": difference.sentence}
        figures.append(figure(difference.name, chart, kind="distribution", caption=caption, **about))
    hidden = len(differences) - len(drawn)
    note = f"Pictures are of the first {len(drawn)} differences; {hidden} more are in the table." if hidden else ""
    has_bounds = any(difference.entry["lowest_possible"] is not None for difference in drawn)
    signs = [("target", zero), ("interval", f"{level} interval and mean"), ("labeled", "labeled only")]
    signs += [("bounds", "bounds (an arrow: outside the picture)")] if has_bounds else []
    return Section("distributions", heading, [charts_block("", figures, note, signs)])


def differences_hover(differences: Sequence[Difference]) -> dict[str, Any]:
    """Return what a pointer reads in the pictures of differences."""
    return distribution_hover(difference.entry for difference in differences[:MOST_CURVES])
