"""Columns out of files: CSV, JSON lines, Parquet and Arrow, from disk or through a pipe.

Import rule: only `engines` knows DataFrame packages; text is read without any of them.
"""

from darkmetrics.files.datafile import FORMATS, DataFile

__all__ = ["FORMATS", "DataFile"]
