"""The command on a large file against a bare script, both from start to end; and what help costs."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from benchmarks.core import problem, row, seconds

BARE = """
import sys
import polars as pl
from sklearn.metrics import roc_auc_score

rows = pl.read_parquet(sys.argv[1], columns=["truth", "score"])
print(roc_auc_score(rows["truth"], rows["score"]))
"""


def run(command: Sequence[str | Path]) -> None:
    subprocess.run([sys.executable, *command], check=True, capture_output=True)


def from_file_to_table() -> Iterator[dict[str, Any]]:
    complete, partly, score, p = problem(1_000_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        # The other columns are what such files have besides; neither of the two reads them.
        columns = {"label": partly, "score": score, "truth": complete, "other": p}
        pl.DataFrame(columns, nan_to_null=True).with_columns(pl.col("label", "truth").cast(pl.Int8)).write_parquet(path)
        command = (
            "-m",
            "darkmetrics",
            "evaluate",
            path,
            "--label",
            "label",
            "--score",
            "score",
            "--missingness",
            "random",
        )
        # Taken in turns, so that a slow spell of the machine hits both.
        pairs = [(seconds(lambda: run(("-c", BARE, path)), 1), seconds(lambda: run(command), 1)) for _ in range(5)]
    bare, own = (min(times) for times in zip(*pairs, strict=True))
    yield row(
        "darkmetrics evaluate, 1e6 rows of Parquet / bare script",
        own / bare,
        5.0,
        f"{own:.2f} s against {bare:.2f} s (Polars and one roc_auc_score), start-up included, best of 5 each",
    )


def help_alone() -> Iterator[dict[str, Any]]:
    ours = seconds(lambda: run(("-m", "darkmetrics", "--help")), 5)
    python = seconds(lambda: run(("-c", "pass")), 5)
    yield row(
        "darkmetrics --help, seconds", ours, 1.0, f"{ours:.2f} s, of which {python:.2f} s are Python's own; best of 5"
    )


BENCHMARKS = (from_file_to_table, help_alone)
