"""Columns out of files (CSV, JSON lines, Parquet and Arrow, from disk or through a pipe), and texts into files.

Import rule: only `readers` knows DataFrame packages; text is read without any of them.
"""

from darkmetrics.files.datafile import FORMATS, TEXT_FORMATS, DataFile, check_one_format, read_together
from darkmetrics.files.paths import PARQUET, files_named, write_whole
from darkmetrics.files.text import MISSING_WORDS

__all__ = [
    "FORMATS",
    "MISSING_WORDS",
    "PARQUET",
    "TEXT_FORMATS",
    "DataFile",
    "check_one_format",
    "files_named",
    "read_together",
    "write_whole",
]
