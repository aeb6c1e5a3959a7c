"""Arrays as a table: what evaluate_by counts if rows are not those of a table."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._text import a_kind_of
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism

_ROWS = ("y_true", "y_score", "y_pred", "sample_weight", "time")


def table_from_arrays(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of evaluate_by with arrays as columns of a table.

    A column has the name of its pandas Series, or else of its argument. `by` is an array, or arrays by name.

    Examples
    --------
    >>> from darkmetrics.monitoring.arrays import table_from_arrays
    >>> table = table_from_arrays({"y_true": [1, 0], "y_score": [0.9, 0.2], "by": {"country": ["DE", "FR"]}})
    >>> table["y_true"], table["by"], list(table["data"].columns)
    ('y_true', ['country'], ['y_true', 'y_score', 'country'])
    """
    result, columns = dict(arguments), dict[str, Any]()
    for argument in _ROWS:
        values = arguments.get(argument)
        if isinstance(values, str):
            raise InputError("data", "missing", f"{argument}={values!r} names a column.", "Pass the table, too.")
        if values is not None:
            result[argument] = _add_column(columns, argument, values)
    by = arguments.get("by")
    if isinstance(by, str):
        raise InputError("data", "missing", f"by={by!r} names a column.", "Pass the table, or an array of groups.")
    if isinstance(by, Mapping):
        result["by"] = [_add_column(columns, str(name), values) for name, values in by.items()]
    elif by is not None:
        result["by"] = _add_column(columns, "by", by)
    mechanism = arguments.get("missingness")
    if isinstance(mechanism, Mechanism):
        names = {name: _add_column(columns, name, values) for name, values in mechanism.row_values().items()}
        changed: Any = mechanism
        result["missingness"] = replace(changed, **names) if names else mechanism
    n_rows = len(columns[result["y_score"]])
    wrong = next((name for name, values in columns.items() if len(values) != n_rows), None)
    if wrong is not None:
        raise InputError(wrong, f"{len(columns[wrong]):,} values, but y_score has {n_rows:,}", "Both need one per row.")
    result["data"] = frames.to_native_frame(columns, None)
    return result


def _add_column(columns: dict[str, Any], name: str, values: Any) -> str:
    """Add a column, and return its name."""
    named = getattr(values, "name", None)
    column = named if isinstance(named, str) and named not in columns else name
    # Rows are matched by position, as in `evaluate`, and not by an index.
    columns[column] = values.reset_index(drop=True) if hasattr(values, "reset_index") else _as_column(values, name)
    return column


def _as_column(values: Any, name: str) -> Any:
    if isinstance(values, list):
        return values
    array = np.asarray(values)
    if array.ndim != 1:
        raise InputError(name, a_kind_of(values), "Expected one value per row.")
    return array
