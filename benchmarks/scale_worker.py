"""One measurement in a process of its own, so that its memory is its own: `python -m benchmarks.scale_worker task ...`.

Prints one line of JSON. Times are of the work alone, without starting Python and importing the engine.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.peer_scripts.harness import peak_memory

# The group-by that users compare with: equal buckets, no attention to small scores, no mean score kept.
PLAIN = "SELECT CAST(floor(score * {buckets}) AS INTEGER) AS bucket, {keys} label, count(*) AS n FROM rows GROUP BY ALL"

# The same with ages and delays in about four steps to a doubling, as a logarithm gives them.
PLAIN_DATED = """SELECT CAST(floor(score * {buckets}) AS INTEGER) AS bucket, label, count(*) AS n,
CAST(floor(4 * log2(DATE '2026-12-31' - scored + 1)) AS SMALLINT) AS age,
CAST(floor(4 * log2(came - scored + 1)) AS SMALLINT) AS delay FROM rows GROUP BY ALL"""


def main() -> None:
    task, *arguments = sys.argv[1:]
    warnings.simplefilter("ignore")
    found = TASKS[task](*arguments)
    print(json.dumps(found | {"megabytes": peak_memory()}))


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = work()
    return time.perf_counter() - start, result


def scan(engine: str, path: str) -> Any:
    """The file as a frame that has read nothing yet."""
    if engine == "duckdb":
        import duckdb

        return duckdb.read_parquet(path)
    import polars as pl

    return pl.scan_parquet(path)


def plain(engine: str, path: str, score_bins: str, *keys: str) -> dict[str, Any]:
    """The engine's own group-by of score buckets and labels (and keys)."""
    rows = scan(engine, path)
    if engine == "duckdb":
        query = PLAIN.format(score_bins=score_bins, keys="".join(f"{key}, " for key in keys))
        seconds, found = timed(lambda: rows.query("rows", query).arrow().read_all())
        return {"seconds": seconds, "groups": found.num_rows}
    import polars as pl

    bucket = (pl.col("score") * int(score_bins)).floor().cast(pl.Int32).alias("bucket")
    grouped = rows.group_by(bucket, *keys, "label").agg(pl.len())
    seconds, found = timed(lambda: grouped.collect(engine="streaming"))
    return {"seconds": seconds, "groups": found.height}


def plain_dated(engine: str, path: str, score_bins: str) -> dict[str, Any]:
    """The engine's own group-by of score buckets, labels, and ages and delays in octaves of days, by its logarithm."""
    rows = scan(engine, path)
    if engine == "duckdb":
        seconds, found = timed(lambda: rows.query("rows", PLAIN_DATED.format(score_bins=score_bins)).arrow().read_all())
        return {"seconds": seconds, "groups": found.num_rows}
    import datetime as dt

    import polars as pl

    def step(days: pl.Expr) -> pl.Expr:
        return (4.0 * (days.dt.total_days() + 1).log(2.0)).floor().cast(pl.Int16)

    bucket = (pl.col("score") * int(score_bins)).floor().cast(pl.Int32).alias("bucket")
    age, delay = pl.lit(dt.date(2026, 12, 31)) - pl.col("scored"), pl.col("came") - pl.col("scored")
    grouped = rows.group_by(bucket, step(age).alias("age"), step(delay).alias("delay"), "label").agg(pl.len())
    seconds, found = timed(lambda: grouped.collect(engine="streaming"))
    return {"seconds": seconds, "groups": found.height}


def dated(engine: str, path: str) -> dict[str, Any]:
    """The cells of rows with dates."""
    from darkmetrics import EvaluationSet
    from darkmetrics.missing import Delayed

    delayed = Delayed(scored_at="scored", labeled_at="came", as_of="2026-12-31")
    seconds, data = timed(lambda: EvaluationSet("label", "score", data=scan(engine, path), missingness=delayed))
    return {"seconds": seconds, "cells": data.cells.score.size, "buckets": data.score_bins}


def evaluate(engine: str, path: str) -> dict[str, Any]:
    """The five default metrics with everything on its default."""
    import darkmetrics as dm

    seconds, result = timed(lambda: evaluated(scan(engine, path)))
    data: dm.EvaluationSet = result.data
    cells = data.cells.score.size
    return {"seconds": seconds, "cells": cells, "buckets": data.score_bins, "recall": result["recall"].mean()}


def evaluated(frame: Any) -> Any:
    from darkmetrics.evaluating import evaluate

    result = evaluate("label", "score", data=frame)
    for distribution in result.values():
        distribution.mean(), distribution.std(), distribution.interval(0.9)
    return result


def by_groups(engine: str, path: str, n_jobs: str) -> dict[str, Any]:
    """Every segment in every month, and the total."""
    from darkmetrics.monitoring import evaluate_by

    settings = {"y_true": "label", "y_score": "score", "n_jobs": int(n_jobs)}
    table, by, targets = scan(engine, path), ["segment", "month"], {"recall": 0.7}
    seconds, alerts = timed(lambda: evaluate_by(data=table, by=by, **settings).alerts(targets))
    return {
        "seconds": seconds,
        "groups": len(alerts.grouped),
        "too_small": len(alerts.too_small),
        "alerts": len(alerts),
    }


def small_groups(number: str, rows: str) -> dict[str, Any]:
    """Groups with everything on its default, in processor time of one core, the best of two runs of each in turns."""
    import numpy as np
    import polars as pl
    from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

    from darkmetrics.monitoring import evaluate_by

    rng, n = np.random.default_rng(0), int(number) * int(rows)
    score = rng.random(n) ** 4
    label = pl.Series(rng.random(n) < score).cast(pl.Int8).set(pl.Series(rng.random(n) < 0.3), None)
    frame = pl.DataFrame({"group": np.arange(n) % int(number), "label": label, "score": score})

    def ours() -> None:
        evaluate_by("label", "score", data=frame, by="group")

    def theirs() -> None:
        for part in frame.drop_nulls().partition_by("group"):
            y, p = part["label"].to_numpy(), part["score"].to_numpy()
            roc_auc_score(y, p)
            for metric in (precision_score, recall_score, accuracy_score, f1_score):
                metric(y, p >= 0.5)

    runs = [(_processor_time(ours), _processor_time(theirs)) for _ in range(2)]
    own, peer = (min(times) for times in zip(*runs, strict=True))
    return {"seconds": own, "sklearn_seconds": peer}


def _processor_time(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def spark(rows: str) -> dict[str, Any]:
    """Rows that Spark makes up itself; how many cells reached the driver, and the shuffles of the plans that ran."""
    from experiments.scale.engines import shuffles, spark_rows, spark_session

    from darkmetrics.data.evaluation_set import EvaluationSet

    session = spark_session("local[2]")
    try:
        frame = spark_rows(session, int(rows))
        session.range(1000).count()  # the first query of a session pays for its start
        before = len(shuffles(session))
        seconds, data = timed(lambda: EvaluationSet("label", "score", data=frame))
        plans = shuffles(session)[before:]
        total, _ = timed(lambda: evaluated(frame))
        plain_seconds, _ = timed(
            lambda: (
                frame.selectExpr("floor(score * 65536) AS bucket", "label").groupBy("bucket", "label").count().collect()
            )
        )
    finally:
        session.stop()
    found = {"cells": data.cells.score.size, "buckets": data.score_bins, "shuffles": plans}
    return found | {"seconds": seconds, "evaluate_seconds": total, "plain_seconds": plain_seconds}


TASKS: dict[str, Callable[..., dict[str, Any]]] = {
    "plain": plain,
    "evaluate": evaluate,
    "plain_dated": plain_dated,
    "dated": dated,
    "by_groups": by_groups,
    "small_groups": small_groups,
    "spark": spark,
}

if __name__ == "__main__":
    main()
