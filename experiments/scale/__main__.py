"""How long do rows made up inside an engine take, and what reaches this process?

    python -m experiments.scale duckdb 1e7 1e8
    python -m experiments.scale spark 1e7 1e8 --master 'local[2]'
    spark-submit --master yarn experiments/scale/submit.py spark 1e9

Prints a table and writes it to `experiments/results/scale.json` (other engines and sizes there stay). Only the driver
needs darkmetrics installed.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.peer_scripts.harness import peak_memory

import darkmetrics as dm
from darkmetrics.evaluating import evaluate
from experiments.scale import engines

RESULTS = Path(__file__).parents[1] / "results" / "scale.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.scale", description=__doc__.partition("\n")[0])
    parser.add_argument("engine", choices=("duckdb", "spark"))
    parser.add_argument("rows", nargs="+", type=float, help="how many, such as 1e8")
    parser.add_argument("--master", help="of Spark; without it, what spark-submit or the environment says")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the table as JSON")
    given = parser.parse_args()
    print(f"{'engine':<8} {'rows':>14} {'cells':>9} {'shuffles':>8} {'seconds':>8} {'group-by':>8} {'driver, MB':>10}")
    measured = []
    for found in run(given.engine, [int(rows) for rows in given.rows], given.master):
        measured.append(found)
        shuffles = "" if found["shuffles"] is None else found["shuffles"]
        print(
            f"{found['engine']:<8} {found['rows']:>14,} {found['cells']:>9,} {shuffles:>8} {found['seconds']:>8.1f} "
            f"{found['plain_seconds']:>8.1f} {found['megabytes']:>10,.0f}",
            flush=True,
        )
    write(given.output, measured)


def run(engine: str, sizes: list[int], master: str | None) -> Iterator[dict[str, Any]]:
    """One line per size: the time of an evaluation, of a plain group-by, and what was shuffled and brought here."""
    session = engines.spark_session(master) if engine == "spark" else None
    try:
        for rows in sizes:
            frame = engines.spark_rows(session, rows) if session else engines.duckdb_rows(rows)
            before = len(engines.shuffles(session)) if session else 0
            seconds, result = _timed(lambda frame=frame: _evaluated(frame))
            shuffles = max(engines.shuffles(session)[before:]) if session else None
            plain, _ = _timed(lambda frame=frame: engines.plain_group_by(frame))
            yield {
                "engine": engine,
                "rows": rows,
                "cells": result.data.cells.score.size,
                "buckets": result.data.score_bins,
                "shuffles": shuffles,
                "seconds": seconds,
                "plain_seconds": plain,
                "megabytes": peak_memory(),
                "recall": [result["recall"].mean(), *result["recall"].interval(0.9)],
            }
    finally:
        if session:
            session.stop()


def write(path: Path, measured: list[dict[str, Any]]) -> None:
    """New lines replace those of the same engine and size; the others stay."""
    kept = {(row["engine"], row["rows"]): row for row in json.loads(path.read_text())} if path.exists() else {}
    kept |= {(row["engine"], row["rows"]): row for row in measured}
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps([kept[key] for key in sorted(kept)], indent=2) + "\n")
    unfinished.replace(path)


def _evaluated(frame: Any) -> dm.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        result = evaluate("label", "score", data=frame)
    for distribution in result.values():
        distribution.interval(0.9)
    return result


def _timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


if __name__ == "__main__":
    main()
