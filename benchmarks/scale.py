"""Any size: 100 million rows of Parquet, rows with dates, Spark, buckets against exact scores, and 12,000 groups.

Files are made up, written to a temporary folder (1 to 2 GB) and deleted; every measurement runs in a process of its own
(`scale_worker`), in turns with the group-by that it is compared with.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

import darkmetrics as dm
from benchmarks.core import row
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.metrics.confusion_metrics import CONFUSION_METRICS

ROWS, QUICK_ROWS = 100_000_000, 2_000_000
DATED_ROWS = 10_000_000
SPARK_ROWS, QUICK_SPARK_ROWS = 20_000_000, 2_000_000
BUCKET_ROWS, QUICK_BUCKET_ROWS = 5_000_000, 2_000_000
# Rows, segments, months.
GROUPED, QUICK_GROUPED = (10_000_000, 1_000, 12), (100_000, 20, 6)
SMALL, QUICK_SMALL, SMALL_ROWS = 200, 20, 833
CHUNK = 1_000_000
BUCKETS, GROUP_BUCKETS, DATED_BUCKETS = 2**16, 2**10, 2**12
ENGINES = {"duckdb": "DuckDB", "polars": "Polars, streaming"}


def large_files(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Time against the plain group-by, and the largest memory of the process, from Parquet to intervals."""
    n = QUICK_ROWS if quick else ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, n)
        for engine, name in ENGINES.items():
            plain, own = _in_turns(
                ("plain", engine, str(path), str(BUCKETS)), ("evaluate", engine, str(path)), 2 if quick else 3
            )
            seconds, bare = own["seconds"], plain["seconds"]
            shown = f"{seconds:.1f} s against {bare:.1f} s, the best of runs in turns; {own['cells']:,} cells; "
            shown += f"a file of {path.stat().st_size / 1e9:.1f} GB"
            yield row(f"{name}, {n:,} rows: evaluate / plain group-by", seconds / bare, 3.0, shown)
            memory = f"the plain group-by {plain['megabytes'] / 1e3:.2f} GB, Python and the engine included"
            yield row(f"{name}, {n:,} rows: peak memory, GB", own["megabytes"] / 1e3, 4.0, memory)


def dated_rows(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Rows with dates: counted by age and delay in the same pass, beside the engine's group-by of the same keys."""
    n = QUICK_ROWS if quick else DATED_ROWS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_dated_rows(path, n)
        for engine, name in ENGINES.items():
            plain, own = _in_turns(
                ("plain_dated", engine, str(path), str(DATED_BUCKETS)), ("dated", engine, str(path)), 2 if quick else 3
            )
            seconds, bare = own["seconds"], plain["seconds"]
            shown = f"{seconds:.2f} s against {bare:.2f} s, the best of runs in turns; {own['cells']:,} cells in "
            shown += f"{own['buckets']:,} buckets against {plain['groups']:,} groups; peak memory "
            shown += f"{own['megabytes'] / 1e3:.1f} GB against {plain['megabytes'] / 1e3:.1f} GB"
            yield row(f"{name}, {n:,} rows with dates: counting / plain group-by", seconds / bare, 3.0, shown)


def spark(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """What reaches the driver, shuffles, and time, for rows that Spark makes up itself."""
    n = QUICK_SPARK_ROWS if quick else SPARK_ROWS
    lacking = "PySpark" if find_spec("pyspark") is None else "" if shutil.which("java") else "Java"
    if lacking:
        skipped = {"measured": float("nan"), "target": "", "met": None, "detail": f"{lacking} is not installed"}
        yield {"what": f"Spark, {n:,} rows: skipped", **skipped}
        return
    found = _worker("spark", str(n))
    shown = f"local, two cores; {found['buckets'] or 0:,} buckets; queries had {found['shuffles']} shuffles"
    yield row(f"Spark, {n:,} rows: cells on the driver", found["cells"], BUCKETS + 1, shown)
    counting = [shuffles for shuffles in found["shuffles"] if shuffles]
    yield row(f"Spark, {n:,} rows: shuffles of a query, at most", max(counting), 1, f"{len(counting)} of them had one")
    shown = f"{found['evaluate_seconds']:.1f} s against {found['plain_seconds']:.1f} s, rows made up included"
    ratio = found["evaluate_seconds"] / found["plain_seconds"]
    yield row(f"Spark, {n:,} rows: evaluate / plain group-by", ratio, 3.0, shown)


def buckets_against_exact(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """The price of buckets, with scores down to 1e-7: none for counts, within the stated bound for ranks."""
    n = QUICK_BUCKET_ROWS if quick else BUCKET_ROWS
    rng = np.random.default_rng(0)
    score = 10.0 ** (-7.0 * rng.random(n))
    label = pl.Series(rng.random(n) < score).cast(pl.Int8)
    frame = pl.DataFrame({"score": score, "label": label.set(pl.Series(rng.random(n) < 0.3), None)})
    columns = {"y_true": "label", "y_score": "score"}
    exact = EvaluationSet(data=frame, score_bins="exact", **columns)
    coarse = EvaluationSet(data=frame, score_bins=BUCKETS, **columns)
    cells = f"{coarse.cells.score.size:,} cells instead of {exact.cells.score.size:,}, scores from {score.min():.0e}"
    counted = [metric.name for metric in CONFUSION_METRICS if isinstance(metric, dm.metrics.ConfusionMetric)]
    # One probability for all missing rows, so that nothing but the buckets can make a difference.
    settings: dict[str, Any] = {
        "metrics": [*counted, "roc_auc"],
        "zero_division": np.nan,
        "missingness": dm.missing.Fixed(0.1),
    }
    results = [dm.evaluate(data, **settings) for data in (exact, coarse)]
    gaps = {name: _gap(*(result[name] for result in results)) for name in settings["metrics"]}
    auc = gaps.pop("roc_auc")
    yield row(
        f"{n:,} rows, buckets / exact: {len(gaps)} confusion metrics, largest gap",
        max(gaps.values()),
        1e-12,
        f"means, standard deviations and ends of intervals; a rounding error or two; {cells}",
    )
    bound = results[1].binning_error["roc_auc"]
    yield row(f"{n:,} rows, buckets / exact: ROC-AUC, gap over its bound", auc / bound, 1.0, f"gap {auc:.1e}; {cells}")
    yield row(f"{n:,} rows: bound on what buckets do to ROC-AUC", bound, 1e-4, "for every labeling of the missing rows")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        defaults = [dm.evaluate(data) for data in (exact, coarse)]
    gaps = {name: _gap(*(result[name] for result in defaults)) for name in defaults[0]}
    widths = {name: np.ptp(distribution.interval(0.9)) for name, distribution in defaults[0].items()}
    shown = ", ".join(f"{name} {gap:.1e} ({gap / widths[name]:.1%} of the width)" for name, gap in gaps.items())
    yield row(f"{n:,} rows, default label model: largest gap", max(gaps.values()), 1e-3, shown)


def many_groups(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Segments and months in one pass: 3 times the engine's group-by plus 20 ms per group."""
    n, segments, months = QUICK_GROUPED if quick else GROUPED
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write_rows(path, n, segments, months)
        plain = ("plain", "duckdb", str(path), str(GROUP_BUCKETS), "segment", "month")
        bare, own = _in_turns(plain, ("by_groups", "duckdb", str(path), "2"), 1)
    allowed = 3.0 * bare["seconds"] + 0.020 * segments * months
    yield row(
        f"{n:,} rows, {segments * months:,} groups: time / what is allowed",
        own["seconds"] / allowed,
        1.0,
        f"{own['seconds']:.0f} s ({1e3 * own['seconds'] / own['groups']:.1f} ms per group, two processes); allowed "
        f"{allowed:.0f} s, 3 x {bare['seconds']:.1f} s of group-by plus 20 ms per group; DuckDB; peak memory "
        f"{own['megabytes'] / 1e3:.1f} GB; {own['too_small']:,} groups too small, {own['alerts']:,} alerts",
    )


def small_groups(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """What a small group costs on one core, counted in time of the processor, beside five metrics of scikit-learn."""
    n = QUICK_SMALL if quick else SMALL
    found = _worker("small_groups", str(n), str(SMALL_ROWS))
    own, peer = 1e3 * found["seconds"] / n, 1e3 * found["sklearn_seconds"] / n
    yield row(
        f"{n:,} groups of {SMALL_ROWS:,} rows, one core: ms of processor time per group",
        own,
        10.0,
        f"the total included; five metrics of scikit-learn on the labeled rows, in the same run: {peer:.1f} ms "
        f"(ratio {own / peer:.1f})",
    )


def write_rows(path: Path, n: int, segments: int = 0, months: int = 0) -> None:
    """Scores U^4, labels drawn from them, 30% missing at random, and keys if wanted; in chunks, for any n."""
    rng = np.random.default_rng(0)
    fields = [("score", pa.float64()), ("label", pa.int8())]
    fields += [("segment", pa.int32()), ("month", pa.int32())] if segments else []
    # Scores are all different: a dictionary of them would only take time.
    with pq.ParquetWriter(path, pa.schema(fields), use_dictionary=[name for name, _ in fields[1:]]) as writer:
        for start in range(0, n, CHUNK):
            size = min(CHUNK, n - start)
            score = rng.random(size) ** 4
            label = pa.array((rng.random(size) < score).astype(np.int8), mask=rng.random(size) < 0.3)
            columns: list[Any] = [score, label]
            if segments:
                columns += [rng.integers(segments, size=size), 1 + rng.integers(months, size=size)]
            arrays = [pa.array(column).cast(type_) for column, (_, type_) in zip(columns, fields, strict=True)]
            writer.write_table(pa.table(arrays, names=[name for name, _ in fields]))


def write_dated_rows(path: Path, n: int) -> None:
    """Scores U^4 and labels drawn from them, scored over a year; positives are labeled within 40 days on average."""
    rng = np.random.default_rng(0)
    fields = [("score", pa.float64()), ("label", pa.int8()), ("scored", pa.date32()), ("came", pa.date32())]
    first, last = np.datetime64("2026-01-01"), np.datetime64("2026-12-31")
    with pq.ParquetWriter(path, pa.schema(fields), use_dictionary=[name for name, _ in fields[1:]]) as writer:
        for start in range(0, n, CHUNK):
            size = min(CHUNK, n - start)
            score = rng.random(size) ** 4
            truth = rng.random(size) < score
            scored = first + rng.integers(0, 365, size)
            came = scored + rng.exponential(np.where(truth, 40.0, 10.0)).astype("timedelta64[D]")
            gone = came > last
            columns = [pa.array(score), pa.array(truth.astype(np.int8), mask=gone)]
            columns += [pa.array(scored), pa.array(came, mask=gone)]
            writer.write_table(pa.table(columns, names=[name for name, _ in fields]))


def _in_turns(first: tuple[str, ...], second: tuple[str, ...], turns: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two tasks in turns; of each the fastest run, with the largest memory of all its runs."""
    _worker(*first)  # the file comes into the cache of the system
    runs = [(_worker(*first), _worker(*second)) for _ in range(turns)]
    best = []
    for found in zip(*runs, strict=True):
        fastest = min(found, key=lambda each: each["seconds"])
        best.append(fastest | {"megabytes": max(each["megabytes"] for each in found)})
    return best[0], best[1]


def _worker(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.scale_worker", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=Path(__file__).parents[1], check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _gap(one: dm.MetricDistribution, other: dm.MetricDistribution) -> float:
    """The largest difference of what a table would print."""
    figures = [np.array([each.mean(), each.std(), *each.interval(0.9)]) for each in (one, other)]
    return float(np.nanmax(np.abs(figures[0] - figures[1])))


BENCHMARKS = (large_files, dated_rows, spark, buckets_against_exact, many_groups, small_groups)
