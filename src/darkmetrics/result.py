"""Result: what every result can do."""

import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from darkmetrics import frames
from darkmetrics._text import prints_plainly
from darkmetrics.argument_types import PathLike
from darkmetrics.calls import answer_attribute, check_call
from darkmetrics.exceptions import RecordedWarning
from darkmetrics.files import write_whole
from darkmetrics.foreign_words import RESULT_ATTRIBUTES, RESULT_METHODS
from darkmetrics.tables import html_lines, html_table, text_table


def load(target: str) -> Callable[..., Any]:
    """Return a function of a higher layer by "module:name", imported when it is called.

    Examples
    --------
    >>> from darkmetrics.result import load
    >>> load("tables:number_text")(0.5, 2)
    '0.50'
    """
    module, name = target.split(":")
    function: Callable[..., Any] = getattr(import_module(f"{__package__}.{module}"), name)
    return function


@prints_plainly
class Result:
    """What every result can do: print itself, show itself in a notebook, become numbers, a plot or a report.

    Subclasses define the text above the table, the table and the notes below it, and `to_dict`.
    """

    # Function that draws the result, and one that writes its report, as "module:name"; empty: it has none.
    _plot: ClassVar[str] = ""
    _report: ClassVar[str] = ""
    # Number of rows that are printed.
    _max_rows: ClassVar[int | None] = None

    warnings: Sequence[RecordedWarning] = ()

    def __init_subclass__(cls, **settings: Any) -> None:
        super().__init_subclass__(**settings)
        prints_plainly(cls)

    @property
    def _text_columns(self) -> int:
        """Number of columns of the table, from the left, that hold text."""
        return 1

    def _words(self) -> list[str]:
        """Return the lines above the table: what was evaluated and assumed."""
        return []

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table as text."""
        return [], []

    def _notes(self) -> list[str]:
        """Return the lines below the table: what the intervals are for, and what was left out."""
        return []

    def summary(self) -> str:
        """Return the result in sentences, without the table."""
        return "\n".join([*self._words(), *self._notes()])

    def __str__(self) -> str:
        header, rows = self._table()
        table = text_table(header, rows[: self._max_rows], words=self._text_columns) if rows else []
        blocks = [self._words(), [*table, *self._left_out(len(rows))], self._notes()]
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def _left_out(self, n_rows: int) -> list[str]:
        """Return a line on the rows of the table that are not printed, if there are any."""
        more = 0 if self._max_rows is None else n_rows - self._max_rows
        return [f"... and {more:,} more"] if more > 0 else []

    def _repr_html_(self) -> str:
        header, rows = self._table()
        table = html_table(header, rows[: self._max_rows], words=self._text_columns) if rows else ""
        warned = html_lines(f"{record.category}: {record.message}" for record in self.warnings)
        below = html_lines([*self._left_out(len(rows)), *self._notes()])
        return f"<div>{warned}{html_lines(self._words())}{table}{below}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text, ready for JSON."""
        raise AttributeError(f"{type(self).__name__} has no to_dict. Print it.")

    def to_json(self, path: PathLike | None = None, *, indent: int | None = None) -> str:
        """Return `to_dict()` as JSON text, and write it to a file if a path is passed."""
        text = json.dumps(self.to_dict(), indent=indent, ensure_ascii=False)
        if path is not None:
            write_whole(Path(path), text)
        return text

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat record per row of `to_frame`."""
        raise AttributeError(f"{type(self).__name__} has no records and no frame. Call to_dict().")

    def to_frame(self, backend: str | None = None) -> Any:
        """Return `to_records()` as a pandas, Polars or PyArrow frame: the named one, or the first one installed."""
        return frames.to_native_frame(_columns(self.to_records()), backend)

    def plot(self, *arguments: Any, **settings: Any) -> Any:
        """Draw the result and return the Axes; needs matplotlib."""
        if not self._plot:
            raise AttributeError(f"{type(self).__name__} has no plot. Print it, or call to_frame().")
        draw = load(self._plot)
        check_call(draw, "result.plot", [self, *arguments], settings)
        return draw(self, *arguments, **settings)

    def report(self, path: Any = None, **about: Any) -> Any:
        """Write a report to one file and return its path; without a path return the page, which a notebook shows.

        The suffix sets the format: ".html" for a page that opens offline (needs jinja2), ".pdf" for the same page in
        print (needs a browser as well), ".md" for Markdown, ".json" for the numbers. The file appears when it is
        complete.

        Parameters
        ----------
        path : str or path, optional
            File to write; one that exists is replaced.
        **about
            `title`, `source` (a file name, or facts by name), `audit` (facts for a validation file by name) and `date`.
        """
        if not self._report:
            raise AttributeError(f"{type(self).__name__} has no report. Print it, or call to_dict().")
        return load(self._report)(self, path, **about)

    def __getattr__(self, name: str) -> Any:
        return answer_attribute(self, name, RESULT_METHODS, RESULT_ATTRIBUTES)


def _columns(records: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the columns of records; numbers that are None become NaN."""
    keys = list(records[0]) if records else []
    columns: dict[str, Any] = {}
    for key in keys:
        values = [record[key] for record in records]
        is_numeric = any(isinstance(value, float) for value in values) or all(value is None for value in values)
        columns[key] = [np.nan if value is None and is_numeric else value for value in values]
    return columns
