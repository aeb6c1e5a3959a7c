"""The only package that knows DataFrame engines: columns and frames in, arrays and counts out.

It defines what counts as a missing label, once for arrays (`arrays`) and once for queries (`roles`).
"""

from darkmetrics.frames.aging import after_maturity
from darkmetrics.frames.arrays import (
    RowNames,
    columns_of,
    duration_column,
    is_container,
    is_missing,
    label_column,
    meaning_missing,
    number_column,
    row_count,
    row_names,
    select_columns,
    take_rows,
    to_native_frame,
    value_column,
)
from darkmetrics.frames.checks import (
    LARGEST_WEIGHT,
    PROPENSITY_RULE,
    check_weight_sizes,
    meant_decisions,
    odd_propensities,
)
from darkmetrics.frames.counting import count_cells
from darkmetrics.frames.group_cells import Counted
from darkmetrics.frames.guessing import guess_columns, likely_columns
from darkmetrics.frames.labels import MOST_LABELS
from darkmetrics.frames.moments import AsOf, Times, time_column
from darkmetrics.frames.roles import ColumnNames, argument_of, check_name, part_of, title, unknown_column
from darkmetrics.frames.sources import collect_columns, lazy_frame, read_columns
from darkmetrics.frames.strata import MAX_STRATUM, are_strata, stratum_column, stratum_name
from darkmetrics.frames.texts import table_of

__all__ = [
    "LARGEST_WEIGHT",
    "MAX_STRATUM",
    "MOST_LABELS",
    "PROPENSITY_RULE",
    "AsOf",
    "ColumnNames",
    "Counted",
    "RowNames",
    "Times",
    "after_maturity",
    "are_strata",
    "argument_of",
    "check_name",
    "check_weight_sizes",
    "collect_columns",
    "columns_of",
    "count_cells",
    "duration_column",
    "guess_columns",
    "is_container",
    "is_missing",
    "label_column",
    "lazy_frame",
    "likely_columns",
    "meaning_missing",
    "meant_decisions",
    "number_column",
    "odd_propensities",
    "part_of",
    "read_columns",
    "row_count",
    "row_names",
    "select_columns",
    "stratum_column",
    "stratum_name",
    "table_of",
    "take_rows",
    "time_column",
    "title",
    "to_native_frame",
    "unknown_column",
    "value_column",
]
