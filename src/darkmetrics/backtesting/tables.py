"""Columns of a table for a backtest: the rows, and what mechanisms have of each row."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray
from darkmetrics.exceptions import InputError
from darkmetrics.missing import Covariates, Mechanism


def columns_or_arrays(data: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the columns of a table by argument; without a table the arrays as they are.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.backtesting.tables import columns_or_arrays
    >>> table = pl.DataFrame({"fraud": [1, 0]})
    >>> columns_or_arrays(table, {"y_true": "fraud", "time": None})["y_true"].to_list()
    [1, 0]
    """
    names = {argument: value for argument, value in values.items() if isinstance(value, str)}
    if data is None:
        for argument, name in names.items():
            raise InputError("data", "missing", f"{argument}={name!r} names a column.", "Pass the table, too.")
        return dict(values)
    for argument, value in values.items():
        if value is not None and argument not in names:
            raise InputError(
                argument,
                "an array next to a table",
                "With data= it is the name of a column.",
                "Pass all arrays, or none.",
            )
    return {**values, **frames.read_columns(data, names)}


def mechanisms_of_table(choices: Any, data: Any, rows: BoolArray) -> Any:
    """Return mechanisms with the values of these rows of a table in place of the names of its columns."""
    if data is None:
        return choices
    if isinstance(choices, Mapping):
        return {name: _with_columns(choice, data, rows) for name, choice in choices.items()}
    if isinstance(choices, (list, tuple)):
        return [_with_columns(choice, data, rows) for choice in choices]
    return _with_columns(choices, data, rows)


def _with_columns(choice: Any, data: Any, rows: BoolArray) -> Any:
    if not isinstance(choice, Mechanism):
        return choice
    mechanism: Any = choice
    names = {field: name for field, name in choice.row_values().items() if isinstance(name, str)}
    places = np.flatnonzero(rows)
    values = {field: np.asarray(column)[places] for field, column in frames.read_columns(data, names).items()}
    features: Any = getattr(choice, "X", None)
    if isinstance(choice, Covariates) and _are_names(features):
        features = {name: name for name in features}
        values["X"] = frames.take_rows(frames.to_native_frame(frames.read_columns(data, features)), places)
    return replace(mechanism, **values) if values else choice


def _are_names(features: Any) -> bool:
    return isinstance(features, Sequence) and all(isinstance(name, str) for name in features)
