"""The rows of a file, by the role of their columns, as the arguments of the library."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from typing import Any

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.messages import WordedError
from darkmetrics.cli.options import DataOptions, LateOptions

# Whose errors mean that a file cannot be read.
_READERS = ("polars", "duckdb", "narwhals")


@dataclass(frozen=True)
class Rows:
    """Columns of a file, by role, and what they are called there; or a table that an engine counts."""

    source: str
    columns: Mapping[str, Any]
    names: Mapping[str, str]
    pos_label: Any
    missing_label: Any
    frame: Any = None
    read: Mapping[str, Any] = field(default_factory=dict)  # columns by name, also those without a role

    @classmethod
    def of_columns(
        cls, source: str, columns: Mapping[str, Any], names: Mapping[str, str], options: DataOptions
    ) -> "Rows":
        """Columns that have been read, with labels of the options as the file has them."""
        read_as_text = _is_text(columns[names["label"]], f"column {names['label']!r} (--label)")
        by_role = {role: columns[name] for role, name in names.items()}
        return cls(source, by_role, names, *label_values(options, as_text=read_as_text), read=columns)

    def data(self, threshold: float | None, late: LateOptions | None = None) -> dict[str, Any]:
        """The arguments that hold the rows and say how to read them; a table is counted for that, and so are times."""
        late = late or LateOptions()
        if self.frame is not None or any(getattr(late, one.name) is not None for one in fields(LateOptions)):
            with self.counting():
                test_set = dm.EvaluationSet.from_frame(
                    self.table(), threshold=threshold, as_of=late.as_of, maturity=late.maturity, **self.parts
                )
            kinds = {"propensity": "propensity", "strata": "strata", "scored_at": "age"}
            given = {argument: True for role, argument in kinds.items() if role in self.names}
            return {"y_true": test_set, "y_score": None, **given}
        arguments = {"label": "y_true", "score": "y_score", "weight": "sample_weight", "pred": "y_pred"}
        arguments |= {role: role for role in ("propensity", "strata", "groups")}
        columns = {arguments[role]: column for role, column in self.columns.items() if role in arguments}
        return {**columns, "pos_label": self.pos_label, "missing_label": self.missing_label, "threshold": threshold}

    def table(self, by: Sequence[str] = (), time: str | None = None) -> Any:
        """The rows as a table: the one that an engine counts, or one of the columns that were read."""
        from darkmetrics import frames

        return frames.table_of(self.read, self.parts_named, by, time) if self.frame is None else self.frame

    @property
    def parts(self) -> dict[str, Any]:
        """The same for a table: names of columns."""
        return {**self.parts_named, "pos_label": self.pos_label, "missing_label": self.missing_label}

    @property
    def parts_named(self) -> dict[str, str]:
        """The names of the columns by the part that they play in a table."""
        parts = {"label": "label", "score": "score", "weight": "weight", "pred": "decision", "prob": "probability"}
        parts |= {"propensity": "propensity", "strata": "stratum", "scored_at": "scored_at"}
        parts |= {"labelled_at": "labelled_at", "groups": "groups"}
        return {parts[role]: name for role, name in self.names.items()}

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Whatever an engine says against a file while it counts, as one line that names the file."""
        try:
            yield
        except BaseException as error:
            engine = type(error).__module__.partition(".")[0].lstrip("_")
            # What panics in Rust is not even an Exception.
            if engine not in _READERS and type(error).__name__ != "PanicException":
                raise
            said = next(iter(str(error).strip().splitlines()), "") or type(error).__name__
            raise WordedError(f"{self.source}: cannot be read; damaged or incomplete? ({said})") from error


def label_values(options: DataOptions, *, as_text: bool) -> tuple[Any, Any]:
    """The label that is positive and those that mean missing (None: none does), as the file has them."""
    gaps = [_value(gap, as_text=as_text) for gap in options.missing_label or []]
    return _value(options.pos_label, as_text=as_text), gaps or None


def _is_text(column: Any, name: str) -> bool:
    """Whether a column of labels holds text, so that a label given on the command line is text as well."""
    from darkmetrics import frames

    labels, missing = frames.label_column(column, name)
    present = labels[~missing]
    return bool(present.size) and isinstance(present[0], (str, bytes))


def _value(text: str, *, as_text: bool) -> Any:
    """A label as the file has it: text among text, else a number or a truth value if it can be one."""
    if as_text:
        return text
    words = {"true": True, "false": False}
    if text.lower() in words:
        return words[text.lower()]
    number = number_from(text)
    if number is None:
        return text
    return int(number) if number.is_integer() else number
