"""A report is a list of sections, and a section a list of blocks; `render` turns them into HTML or Markdown."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from darkmetrics._text import visible
from darkmetrics.report.exports import link

# A block has a kind ("text", "heading", "list", "table", "charts" or "slider") and what that kind shows.
Block = dict[str, Any]
Cell = str | Mapping[str, Any]


@dataclass(frozen=True)
class Section:
    """A heading and what is below it; `id` is its place on the page."""

    id: str
    heading: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Report:
    """Everything that a report shows, without its looks."""

    title: str
    answer: str
    counts: str
    warnings: Sequence[str]
    facts: Mapping[str, str]
    source: Mapping[str, str]
    sections: Sequence[Section]
    reproduce: Mapping[str, Any]
    audit: Mapping[str, Any] | None = None
    targets: Sequence[Mapping[str, str]] = ()
    # What scripts look up: texts of sliders by name, and of places in pictures by the id of the picture.
    sliders: Mapping[str, Any] = field(default_factory=dict)
    hover: Mapping[str, Any] = field(default_factory=dict)

    @property
    def code(self) -> str:
        """The code that makes the report again, fit to be shown."""
        return "\n".join(visible(line, 5000) for line in self.reproduce["code"].split("\n"))


def text_block(text: str, *, is_soft: bool = False) -> Block:
    """Return a paragraph."""
    return {"kind": "text", "text": text, "soft": is_soft}


def heading_block(text: str) -> Block:
    """Return a heading within a section."""
    return {"kind": "heading", "text": text}


def list_block(items: Iterable[str], id: str = "") -> Block:  # noqa: A002  # as in HTML
    """Return a list of sentences."""
    return {"kind": "list", "items": list(items), "id": id}


def table_block(
    id: str,  # noqa: A002
    header: Sequence[str],
    rows: Iterable[Sequence[Cell]],
    *,
    words: int = 1,
    caption: str = "",
    note: str = "",
    csv: Block | None = None,
    look: str = "stacked",
) -> Block:
    """Return a table; the first `words` columns are text.

    A cell is text, or a mapping with `text` and the lines `below` it.
    `look` is "stacked" (rows become blocks on small screens), "matrix", or "folded" (shown on request).
    """
    texts = {"header": list(header), "rows": [list(row) for row in rows], "caption": caption, "note": note}
    return {"kind": "table", "id": id, "words": words, "csv": csv, "look": look, **texts}


def charts_block(
    id: str,  # noqa: A002
    figures: Sequence[Mapping[str, Any]],
    note: str = "",
    signs: Sequence[tuple[str, str]] = (),
) -> Block:
    """Return pictures side by side, with a legend of signs and their meaning."""
    return {"kind": "charts", "id": id, "figures": list(figures), "note": note, "signs": list(signs)}


def figure(title: str, chart: Mapping[str, Any] | None, **about: Any) -> dict[str, Any]:
    """Return a picture: its macro as `kind`, its `id`, and what the macro asks for."""
    return {"title": title, "chart": chart, "caption": "", "csv": None, **about}


def csv_link(name: str, records: Sequence[Mapping[str, Any]]) -> Block:
    """Return a link that saves flat records as CSV."""
    return {"name": name, "address": link(list(records[0]), [list(record.values()) for record in records])}
