"""A column that says which rows share their fate: rows of one value are counted apart from those of others."""

from collections.abc import Iterator
from contextlib import contextmanager

import narwhals.stable.v2 as nw

from darkmetrics.exceptions import InputError
from darkmetrics.frames.collecting import collected, numbers
from darkmetrics.frames.roles import ColumnNames, Rows, check_name, title

_KEY = "by 0"


def cluster_key(name: str, columns: ColumnNames) -> tuple[str]:
    """The column as the only key, checked against what it cannot be had with."""
    check_name("groups", name)
    if columns.scored_at is not None:
        raise InputError("groups: cannot be given beside scored_at; rows with ages are counted by their bins.")
    if name in columns.given().values():
        part = next(part for part, other in columns.given().items() if other == name)
        raise InputError(f"groups: column {name!r} is also the {part}. Each needs a column of its own.")
    return (name,)


@contextmanager
def named_clusters(name: str | None) -> Iterator[None]:
    """Errors about the key in the word of the caller."""
    try:
        yield
    except InputError as error:
        if name is None:
            raise
        raise error.renamed({"by": "groups", title("by", name): title("groups", name)}) from None


def each_its_own(rows: Rows, name: str) -> bool:
    """Whether no two rows have the same value, so that there is nothing to share; each row needs one."""
    key = nw.col(_KEY)
    gap = key.is_null()
    if rows.frame.collect_schema()[_KEY].is_float():
        gap = gap | key.is_nan()
    asked = rows.frame.with_columns(gap=nw.when(gap).then(nw.lit(1)).otherwise(nw.lit(0)))
    found = collected(asked.select(nw.len().alias("rows"), key.n_unique().alias("values"), nw.col("gap").sum()))
    count, values, gaps = (int(numbers(found, column)[0]) for column in ("rows", "values", "gap"))
    if gaps:
        raise InputError.about(
            title("groups", name),
            f"{gaps:,} of {count:,} rows have no value. Every row needs one; a row of its own a value of its own.",
        )
    return values == count


def check_exact(name: str, buckets: str | int) -> None:
    """Scores of rows that share their fate cannot be had in buckets."""
    if isinstance(buckets, int):
        raise InputError(
            f"groups: the rows of {name!r} are told apart by their exact scores. Leave buckets at 'auto', or leave "
            "groups out."
        )


def too_many_clustered(name: str, most: int) -> InputError:
    """That rows would have to be brought here that are too many."""
    return InputError.about(
        title("groups", name),
        f"more than {most:,} cells of group and score. Rows that share their fate come here as they are; take whole "
        "groups at random, as many as fit, or leave groups out.",
    )
