"""Numbers of a page to take away: tables as CSV, inside the links that save them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from darkmetrics._text import csv_text as value_text


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table as CSV: numbers with nine digits, nothing where there is none, and no text that is run as a formula.

    Examples
    --------
    >>> from darkmetrics.report.exports import csv_text
    >>> print(csv_text(["metric", "mean"], [["recall", 0.5], ["=1+1", None]]))
    metric,mean
    recall,0.5
    '=1+1,
    """
    return "\n".join(",".join(map(_cell, row)) for row in (header, *rows))


def link(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """The address of a link that saves the table: the table itself, so that no script and no network is needed."""
    text = csv_text(header, rows) + "\n"
    return "data:text/csv;charset=utf-8," + quote(text.encode("utf-8", "replace"), safe=",.-_ ")


def band_records(along: str, places: Sequence[float], bands: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a record for each metric and place of bands, with empty columns that only other metrics have."""
    columns = dict.fromkeys(name for band in bands.values() for name, v in band.items() if isinstance(v, list))
    return [
        {"metric": name, along: place, **{column: band[column][i] if column in band else None for column in columns}}
        for name, band in bands.items()
        for i, place in enumerate(places)
    ]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.9g}"
    text = value_text(str(value))
    return '"' + text.replace('"', '""') + '"' if any(sign in text for sign in ',"\n\r') else text
