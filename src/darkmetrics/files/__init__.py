"""Columns out of files (CSV, JSON lines, Parquet and Arrow, from disk or through a pipe), and texts into files.

Import rule: only `engines` knows DataFrame packages; text is read without any of them.
"""

from darkmetrics.files.datafile import FORMATS, DataFile
from darkmetrics.files.whole import write_whole

__all__ = ["FORMATS", "DataFile", "write_whole"]
