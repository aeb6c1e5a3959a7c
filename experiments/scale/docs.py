"""The table of the page on Spark: what stands between two marks is written from the results, the words are not."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "spark.md"
MARKED = re.compile(r"(<!-- experiment: scale -->\n).*?(<!-- end -->)", re.DOTALL)
NAMES = {"duckdb": "DuckDB", "spark": "Spark, local"}


def fill_page(results: Path, page: Path) -> None:
    """Write the table anew; the words around it stay."""
    text = MARKED.sub(lambda m: "\n".join([m[1], *table(results), "", m[2]]), page.read_text())
    unfinished = page.with_suffix(".tmp")
    unfinished.write_text(text)
    unfinished.replace(page)


def table(results: Path) -> Iterator[str]:
    """Rows, what came back, and time, per engine and size."""
    yield "| engine | rows | evaluation | plain group-by | shuffles of a query | cells that reached Python |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in json.loads(results.read_text()) if results.exists() else []:
        shuffles = "" if row["shuffles"] is None else f"{row['shuffles']}"
        seconds = [f"{row[key]:.1f} s" for key in ("seconds", "plain_seconds")]
        cells = [NAMES[row["engine"]], f"{row['rows']:,}", *seconds, shuffles, f"{row['cells']:,}"]
        yield f"| {' | '.join(cells)} |"
