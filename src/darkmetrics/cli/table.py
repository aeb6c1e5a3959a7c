"""Files as a table whose rows an engine counts: Parquet where it lies, anything else read first."""

from dataclasses import replace

import darkmetrics as dm
from darkmetrics.cli.evaluation import columns_assumed
from darkmetrics.cli.inputs import files_of, names_of, read_rows
from darkmetrics.cli.messages import worded
from darkmetrics.cli.options import MonitorOptions
from darkmetrics.cli.output import in_words
from darkmetrics.cli.rows import Rows
from darkmetrics.cli.scanning import can_be_scanned, scanned


def load_table(options: MonitorOptions) -> Rows:
    """The table that the options name."""
    groups = list(dict.fromkeys([*(options.by or []), *([] if options.time is None else [options.time])]))
    with worded():
        files = files_of(options)
        names = names_of(files[0], options, {"pred": options.pred, **columns_assumed(options)})
        if can_be_scanned(files):
            return scanned(files, names, options, groups)
        rows = read_rows(files, names, options, groups)
    with in_words(names):
        # Text and Arrow are checked as the other commands check them: errors name rows.
        dm.EvaluationSet(**rows.data(options.threshold))
        frame = rows.table(options.by or [], options.time)
    return replace(rows, columns={}, read={}, frame=frame)
