"""The names that rows have in pandas and its kin: columns are paired by position, so these must be the same."""

from typing import Any, NamedTuple

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import BoolArray
from darkmetrics.exceptions import InputError
from darkmetrics.frames.arrays import is_missing, shortened


class RowNames(NamedTuple):
    """The index of a column, and which argument the column is."""

    argument: str
    index: Any

    def at(self, rows: BoolArray) -> "RowNames":
        """The names of some of the rows."""
        return RowNames(self.argument, self.index[rows])

    def check(self, argument: str, column: Any) -> None:
        """A column of as many rows has the same names in the same order, or none; other lengths are not judged here."""
        other = _index(column)
        if other is None or len(other) != len(self.index) or other.equals(self.index):
            return
        for row, (own, first) in enumerate(zip(other, self.index, strict=True)):
            if not _same(own, first):
                raise InputError.about(
                    argument,
                    f"its index differs from that of {self.argument}, {shortened(own)} and "
                    f"{shortened(first)} at row {row}. Columns are paired row by row: bring them into one order with "
                    ".loc[...], or give .to_numpy() of both if they are.",
                )


def row_names(**columns: Any) -> RowNames | None:
    """The index that the columns share, if some of them have one; columns that name their rows differently are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> from darkmetrics.frames import row_names
    >>> y = pd.Series([1, 0], index=["a", "b"])
    >>> row_names(y_true=y, y_score=[0.9, 0.2]).argument
    'y_true'
    >>> row_names(y_true=y, y_score=pd.Series([0.2, 0.9], index=["b", "a"]))
    Traceback (most recent call last):
    darkmetrics.exceptions.InputError: y_score: its index differs from that of y_true, 'b' and 'a' at row 0. ...
    """
    found: RowNames | None = None
    for argument, column in columns.items():
        if found is not None:
            found.check(argument, column)
        elif (index := _index(column)) is not None:
            found = RowNames(argument, index)
    return found


def _index(column: Any) -> Any:
    """The index of a Series or DataFrame of pandas or its kin; None where rows have no names."""
    if column is None or isinstance(column, (np.ndarray, list, tuple)) or not hasattr(column, "index"):
        return None
    known = nw.from_native(column, pass_through=True, eager_only=True, allow_series=True)
    return nw.maybe_get_index(known) if isinstance(known, (nw.DataFrame, nw.Series)) else None


def _same(one: Any, other: Any) -> bool:
    if is_missing(one) or is_missing(other):
        return is_missing(one) and is_missing(other)
    return bool(one == other)
