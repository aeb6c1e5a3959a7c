"""Rows that an engine makes up itself: nothing is uploaded, so their number is limited by the engine alone.

Scores are U^4, so that most are small, as those of rare events are; a label is 1 with the score as its chance; 30% of
the labels are missing at random.
"""

import re
from typing import Any

MISSING = 0.3
# A shuffle in a plan, whatever it is followed by; the plan names each node once, then describes them again by number.
_EXCHANGE = re.compile(r"\bExchange \(\d+\)")


def spark_session(master: str | None = None, **settings: str) -> Any:
    """The session of the cluster that `spark-submit` or the environment names; a local one with `master="local[2]"`."""
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName("darkmetrics")
    if master is not None:
        # Nobody looks at the pages of a session that lives for minutes.
        builder = builder.master(master).config("spark.ui.enabled", "false").config("spark.log.level", "ERROR")
    for name, value in settings.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def spark_rows(session: Any, rows: int, seed: int = 0) -> Any:
    """A Spark DataFrame of scores and labels; each query makes the same rows anew."""
    scored = session.range(rows).selectExpr(f"pow(rand({seed}), 4) AS score")
    drawn = scored.selectExpr("score", f"CAST(rand({seed + 1}) < score AS INT) AS drawn", f"rand({seed + 2}) AS u")
    return drawn.selectExpr("score", f"CASE WHEN u < {MISSING} THEN NULL ELSE drawn END AS label")


def duckdb_rows(rows: int, seed: float = 0.0) -> Any:
    """A DuckDB relation of scores and labels, made up while it is read: each query sees other rows of the same kind."""
    import duckdb

    connection = duckdb.connect()
    connection.execute(f"SELECT setseed({seed})").fetchall()
    scored = f"SELECT random() ** 4 AS score FROM range({rows})"
    drawn = f"SELECT score, (random() < score)::TINYINT AS drawn, random() AS u FROM ({scored})"
    return connection.sql(f"SELECT score, CASE WHEN u >= {MISSING} THEN drawn END AS label FROM ({drawn})")


def shuffles(session: Any) -> list[int]:
    """How many shuffles the plan of each query had that this session has run, in order."""
    session.sparkContext._jsc.sc().listenerBus().waitUntilEmpty()  # the store is filled behind the query's back
    store = session._jsparkSession.sharedState().statusStore()
    queries = store.executionsList()
    plans = [queries.apply(i).physicalPlanDescription() for i in range(queries.size())]
    # With adaptive execution the plan that ran comes first and the one that was made before the run second.
    return [len(_EXCHANGE.findall(plan.partition("== Initial Plan ==")[0])) for plan in plans]


def plain_group_by(frame: Any) -> int:
    """What users compare with: rows per equal score bucket and label. Returns the number of groups."""
    if hasattr(frame, "selectExpr"):
        return len(
            frame.selectExpr("floor(score * 65536) AS bucket", "label").groupBy("bucket", "label").count().collect()
        )
    query = "SELECT floor(score * 65536) AS bucket, label, count(*) AS n FROM rows GROUP BY ALL"
    return len(frame.query("rows", query).fetchall())
