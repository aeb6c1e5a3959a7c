"""One GROUP BY over the rows of any engine: what an evaluation needs to know about them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import BoolArray
from darkmetrics._kernels.bin_grid import MIN_BINS, nested_number
from darkmetrics.exceptions import InputError
from darkmetrics.frames.aging import aged
from darkmetrics.frames.bin_query import MAX_BINS, NO_BIN, with_bin
from darkmetrics.frames.calendar import check_period
from darkmetrics.frames.checks import (
    check_chances,
    check_propensities,
    check_scores,
    check_strata,
    check_weights,
    decided,
)
from darkmetrics.frames.collecting import collected, numbers
from darkmetrics.frames.group_cells import Counted, Tally, distinct, merged, tallied
from darkmetrics.frames.labels import Labeled, classes_found, labeled
from darkmetrics.frames.roles import ColumnNames, Rows, argument_of, check_name, numbered, read_roles, title
from darkmetrics.frames.sources import are_text, files_given, lazy_frame, reading
from darkmetrics.frames.texts import read_text
from darkmetrics.wording import named, setting

# The column that says which rows share their fate, as a key.
_KEY = "by 0"
# Distinct scores are kept up to so many cells; beyond that, or for so many rows, scores go into bins.
MOST_EXACT = 2**20
_BINS, _FEWEST_PER_GROUP = 2**16, 2**10
# With ages there are hundreds of cells to a bin: fewer of them, and fewer still where these are too many.
_BINS_AGED, _FEWEST_AGED = 2**12, 2**6
# With several score columns, of more rows than cells fit: the number of bins by that of the scores, or else.
_BINS_JOINT, _BINS_OF_MORE = {2: 2**13, 3: 2**10}, 2**8
# What this process holds at most: with weights, strata or several scores, with groups, and where the user demands every
# score.
_MOST_WEIGHTED, _MOST_GROUPED, _MOST_DEMANDED = 2**22, 2**24, 2**26
# Where distinct scores are counted to guess how many there are in all: so many stretches of so many bins.
_STRETCHES, _STRETCH = 6, 3
# What rows are counted by beside score and decision, and what helps where that makes too many cells.
_FEW_VALUES = {
    "weight": "Round the weights to fewer different values.",
    "stratum": "Use fewer strata.",
    "propensity": "Round the propensities to fewer different values.",
}


def count_cells(
    frame: Any,
    columns: ColumnNames,
    *,
    threshold: float | Sequence[float] | None,
    pos_label: Any = 1,
    missing_label: Any = None,
    score_bins: str | int = "auto",
    by: Sequence[str] = (),
    time: str | None = None,
    period: str | None = None,
    as_of: Any = None,
    maturity: float | None = None,
    clusters: str | None = None,
) -> Counted:
    """The cells of a frame: rows alike in scores and decisions (and weight, stratum and group), counted by label.

    The engine that holds the rows counts them in one GROUP BY, and only cells reach this process. Where it is not known
    beforehand whether distinct scores fit there is a second query; beyond a million rows, a look into a few bins.

    Parameters
    ----------
    frame : DataFrame, table, relation, path or list of paths
        Rows in whatever engine holds them; see `lazy_frame`.
    columns : ColumnNames
        Which column plays which part.
    threshold : float, sequence of float or None
        A score from here on is decided positive, with several scores one for each; None if decisions are given.
    pos_label, missing_label : object
        The label that counts as positive, and one or several that also mean missing.
    bins : "auto", "exact" or int
        How many bins of each score, if any: "auto" keeps distinct scores while they fit into 2**20 cells.
    by : sequence of str
        Columns whose values make groups; null and NaN are the group None.
    time, period : str, optional
        A column of dates or datetimes, and the period that it is cut into: the last key.
    as_of, maturity
        Where columns say when rows were scored: the date or time up to which ages are counted, and the age in days from
        which on rows without a label are negative.
    clusters : str, optional
        A column whose rows of one value share their fate: the only key, and none where each row has its own.

    Examples
    --------
    >>> import polars as pl
    >>> from darkmetrics.frames import ColumnNames, count_cells
    >>> frame = pl.LazyFrame({"y": [1, 0, None, None], "p": [0.9, 0.2, 0.7, 0.7]})
    >>> cells = count_cells(frame, ColumnNames("y", "p"), threshold=0.5)
    >>> cells.score.tolist(), cells.missing.tolist()
    ([0.2, 0.7, 0.9], [0, 2, 0])
    """
    wanted = parse_bins(score_bins)
    check_period(time, period)
    by = (by,) if isinstance(by, str) else tuple(by)
    if clusters is not None:
        by = cluster_key(clusters, columns)
    files = files_given(frame)
    with reading(files):
        if files is not None and are_text(files):
            found = lazy_frame(read_text(files, columns, by, time, pos_label, missing_label))
        else:
            needed = [*columns.given().values(), *by, *([] if time is None else [time])]
            found = lazy_frame(frame if files is None else files, needed)
        with named_clusters(clusters):
            rows = read_roles(found, columns, by, time, period)
        if rows.count == 0:
            raise InputError("data", "no rows", "At least one row is needed.")
        if clusters is not None and each_its_own(rows, clusters):
            rows = replace(rows, keys={})
        source = labeled(rows, pos_label, missing_label)
        if columns.scored_at is not None:
            source = aged(source, columns, as_of, maturity)
        counter = _Counter(source, columns, threshold)
        if clusters is not None and rows.keys:
            check_exact(clusters, wanted)
            tally = counter.exact(MOST_EXACT, or_none=True)
            if tally is None:
                raise too_many_clustered(clusters, MOST_EXACT)
            return counter.result(tally, None)
        counted = _counted(counter, wanted)
        return replace(counted, settled=maturity is not None)


def _counted(counter: "_Counter", wanted: str | int) -> Counted:
    rows, n_scores = counter.source.rows, len(counter.scores)
    count = counter.count() if n_scores > 1 and wanted == "auto" else rows.count
    if wanted == "exact" or (wanted == "auto" and count is not None and count <= MOST_EXACT):
        return counter.result(counter.exact(_MOST_DEMANDED if n_scores == 1 else _MOST_WEIGHTED), None)
    # Where that makes too many cells, bins are widened by a factor, down to the fewest.
    score_bins, factor, fewest = _BINS, 1, _BINS
    if counter.aged:
        score_bins, factor, fewest = _BINS_AGED, 4, _FEWEST_AGED
    elif n_scores > 1:
        few_rows = count is not None and count <= _MOST_WEIGHTED
        score_bins = _BINS if few_rows else _BINS_JOINT.get(n_scores, _BINS_OF_MORE)
        factor, fewest = 2, MIN_BINS
    if isinstance(wanted, int):
        score_bins = fewest = wanted
    elif rows.keys:
        # A look at the keys alone: few groups can have many bins each.
        groups, count = counter.groups()
        if count <= MOST_EXACT:
            return counter.result(counter.exact(_MOST_DEMANDED), None)
        while score_bins > _FEWEST_PER_GROUP and score_bins * groups > _MOST_GROUPED:
            score_bins //= 2
    while (tally := counter.binned(score_bins, or_none=score_bins > fewest)) is None:
        score_bins //= factor
    if wanted == "auto" and not tally.one_score_each and counter.exact_fits(tally):
        exact = counter.exact(MOST_EXACT, or_none=True)
        if exact is not None:
            return counter.result(exact, None)
    return counter.result(tally, score_bins)


def parse_bins(score_bins: Any) -> str | int:
    """How finely scores are to be told apart, checked: a word, or a power of two."""
    if isinstance(score_bins, str) and score_bins in ("auto", "exact"):
        return score_bins
    if isinstance(score_bins, bool) or not isinstance(score_bins, (int, np.integer)):
        raise InputError("score_bins", repr(score_bins), "It must be 'auto', 'exact' or a number of score bins.")
    if not MIN_BINS <= score_bins <= MAX_BINS:
        raise InputError(
            "score_bins",
            f"{int(score_bins):,} bins",
            "",
            f"Pass {MIN_BINS} to {MAX_BINS:,}, or 'exact'.",
        )
    return nested_number(int(score_bins))


class _Counter:
    """The passes over one frame."""

    def __init__(self, source: Labeled, columns: ColumnNames, threshold: float | Sequence[float] | None) -> None:
        self.source, self.columns, self.threshold = source, columns, threshold
        self.grouped = bool(source.rows.keys)
        self.aged = columns.scored_at is not None
        self.frame = source.frame
        self.scores = columns.scores
        self.decisions = [numbered("decision", i) for i in range(len(self.scores))]
        if threshold is not None:
            # Keys next to the bins: a bin that the threshold cuts becomes two cells.
            cuts = np.broadcast_to(threshold, len(self.scores)).tolist()
            above = {
                decision: nw.col(score) >= cut
                for decision, score, cut in zip(self.decisions, self.scores, cuts, strict=True)
            }
            self.frame = self.frame.with_columns(**above)
        self.extra_keys = [role for role in _FEW_VALUES if role in columns.given()]
        self.extra_keys += ["age"] if self.aged else []
        self.keys = [*source.rows.keys, *self.decisions, *self.extra_keys]

    def count(self) -> int:
        """Return the number of rows; if the engine does not provide it, run a query."""
        n_rows = self.source.rows.count
        return int(numbers(collected(self.frame.select(rows=nw.len())), "rows")[0]) if n_rows is None else n_rows

    def groups(self) -> tuple[int, int]:
        """Return the numbers of groups and rows."""
        table = collected(self.frame.group_by(*self.source.rows.keys).agg(rows=nw.len()).head(MOST_EXACT + 1))
        if len(table) > MOST_EXACT:
            raise InputError(
                "by",
                f"more than {MOST_EXACT:,} groups",
                "Group by columns with fewer different values.",
            )
        return len(table), int(numbers(table, "rows").sum())

    def exact(self, most: int, *, or_none: bool = False) -> Tally | None:
        """Count cells of distinct scores; return None, or raise an error, if there are more than `most`."""
        keys = [*self.keys, *self.scores]
        if self.columns.probability is not None:
            keys.append("probability")
        table = self._counted(self.frame, keys, {}, most)
        if table is not None:
            return self._checked(tallied(table, self.source.rows, keys))
        if or_none:
            return None
        raise InputError(
            "score_bins",
            f"'exact', but there are more than {most:,} cells",
            "",
            "Pass 'auto' or a number of bins.",
        )

    def binned(self, score_bins: int, *, or_none: bool = False) -> Tally | None:
        """Count cells of score bins; return None, or raise an error, if there are too many."""
        frame, keys = self.frame, [*self.keys]
        sums: dict[str, Any] = {}
        for i, column in enumerate(self.scores):
            score, keys = nw.col(column), [*keys, numbered("bin", i)]
            frame = with_bin(frame, score_bins, column, keys[-1])
            sums |= {numbered("low", i): score.min(), numbered("high", i): score.max()}
            sums |= {numbered("total", i): score.sum()}
        if self.columns.probability is not None:
            chance, gap = nw.col("probability"), ~nw.col("missing").is_null()
            lacking = chance.is_null() | chance.is_nan()
            valid = (chance >= 0.0) & (chance <= 1.0) & ~lacking
            frame = frame.with_columns(
                chance=nw.when(gap & valid).then(chance).otherwise(nw.lit(0.0)),
                bad=nw.when(valid | (lacking & ~gap)).then(nw.lit(0.0)).otherwise(nw.lit(1.0)),
            )
            sums |= {"chance": nw.col("chance").sum(), "bad": nw.col("bad").sum()}
        most = _MOST_GROUPED if self.grouped else _MOST_WEIGHTED
        # Of one score without weights, strata, groups or strange decisions there cannot be many cells.
        guarded = len(self.scores) > 1 or self.grouped or bool(self.extra_keys) or self.columns.decision is not None
        table = self._counted(frame, keys, sums, most if guarded else None)
        if table is None:
            if self.columns.decision is not None:
                self._check_decision_values()
            if or_none:
                return None
            if self.aged:
                raise InputError(
                    "score_bins",
                    f"more than {most:,} cells of score, decision, age and delay in {score_bins:,} score bins",
                    "",
                    "Use a smaller number of bins, dates without a time of day, or fewer groups or weights.",
                )
            if len(self.scores) > 1:
                raise InputError(
                    "score_bins",
                    f"more than {most:,} cells of all scores together",
                    "",
                    "Pass a smaller number of bins.",
                )
            if self.extra_keys:
                role = self.extra_keys[0]
                raise InputError(
                    self.columns.title(role),
                    f"more than {most:,} cells of score, decision and {role}",
                    f"Rows are counted by {role}.",
                    _FEW_VALUES[role],
                )
            raise InputError(
                "by",
                f"more than {most:,} cells of {score_bins:,} score bins per group",
                "",
                "Use fewer groups, or a smaller number of bins.",
            )
        return self._checked(tallied(table, self.source.rows, keys))

    def exact_fits(self, tally: Tally) -> bool:
        """Return whether cells of distinct scores are few enough, judged by a sample of bins.

        Of one score, distinct scores are compared with bins. Of several, cells of scores are compared with cells of
        bins, in a few bins of the first score.
        """
        if int(tally.rows.sum()) <= MOST_EXACT:
            return True
        spreads, bin_id = tally.spreads, tally.keys["bin"].astype(np.int64)
        if self.grouped or not spreads or bin_id.size > MOST_EXACT:
            return False
        has_several = np.any([spread.low < spread.high for spread in spreads], axis=0)
        candidates = distinct(bin_id[has_several])
        if not candidates.size:
            return True
        single = len(spreads) == 1
        unit = bin_id if single else np.arange(bin_id.size)
        n_filled, n_candidates = distinct(unit).size, distinct(unit[np.isin(bin_id, candidates)]).size
        # A score has about as many ages and delays as its bin.
        cells_per_unit = bin_id.size / n_filled if self.aged else 1.0
        if self.aged and (n_filled + n_candidates) * cells_per_unit > MOST_EXACT:
            return False  # two scores per candidate bin are too many
        # Sample evenly over the bins: neighboring bins have similar numbers of scores.
        positions = (np.arange(_STRETCHES) + 0.5) / _STRETCHES * candidates.size
        score = nw.col("score")
        condition, n_sampled = None, 0
        for first in np.unique(positions.astype(np.int64)):
            stretch = candidates[first : first + _STRETCH]
            inside = (bin_id >= stretch[0]) & (bin_id <= stretch[-1])
            within = (score >= float(spreads[0].low[inside].min())) & (score <= float(spreads[0].high[inside].max()))
            condition = within if condition is None else condition | within
            n_sampled += np.unique(unit[inside]).size
        keys = [*self.scores] if single else [*self.extra_keys, *self.scores]
        sample = self.frame.select(*keys).filter(condition).group_by(*keys).agg(rows=nw.len())
        match = len(collected(sample.head(MOST_EXACT + 1)))
        # A bin with one score counts once; the others count as the sampled bins on average.
        scores = n_filled - n_candidates + n_candidates * (match / n_sampled)
        return bool(scores * cells_per_unit <= MOST_EXACT)

    def result(self, tally: Tally | None, score_bins: int | None) -> Counted:
        """Return the counted cells."""
        assert tally is not None
        labels = classes_found(self.source, tally)
        decisions: list[BoolArray]
        if self.threshold is not None:
            decisions = [tally.keys[key].astype(np.bool_) for key in self.decisions]
        else:
            decisions = [decided(self.columns, self.source, tally, labels)]
        return merged(tally, decisions, score_bins, self.source.rows, labels, split=self.threshold is None)

    def _counted(self, frame: Any, keys: list[str], more: dict[str, Any], most: int | None) -> Any:
        counts = {name: nw.col(name).count() for name in ("positive", "negative", "missing")}
        # Aliases: aggregates must not have the names of keys.
        aggregates = {f"sum {name}": value for name, value in (counts | more).items()}
        query = frame.group_by(*keys).agg(nw.len().alias("rows"), *(v.alias(k) for k, v in aggregates.items()))
        table = collected(query if most is None else query.head(most + 1))
        return None if most is not None and len(table) > most else table

    def _checked(self, tally: Tally) -> Tally:
        if not tally.rows.size:
            raise InputError("data", "no rows", "At least one row is needed.")
        for i, column in enumerate(self.scores):
            bad = tally.keys[numbered("bin", i)] == NO_BIN if tally.spreads else ~np.isfinite(tally.keys[column])
            if bad.any():
                check_scores(self.frame, self.columns, column, int(tally.rows[bad].sum()), int(tally.rows.sum()))
        if self.columns.weight is not None:
            check_weights(self.columns, tally)
        if self.columns.stratum is not None:
            check_strata(self.columns, tally)
        if self.columns.propensity is not None:
            check_propensities(self.columns, tally)
        if self.columns.probability is not None:
            check_chances(self.frame, self.columns, tally)
        return tally

    def _check_decision_values(self) -> None:
        few = collected(self.frame.select("decision").head(1000))
        assert self.source.rows.decision is not None
        found = {self.source.rows.decision.original(value) for value in few["decision"].to_list()}
        if len(found) > 2:
            raise InputError(
                self.columns.title("decision"), f"{len(found)} values in 1,000 rows", "Predictions take two values."
            )


def cluster_key(name: str, columns: ColumnNames) -> tuple[str]:
    """The column as the only key, checked against what it cannot be had with."""
    check_name("clusters", name)
    if columns.scored_at is not None:
        raise InputError(
            "clusters",
            f"passed with {named('scored_at')}",
            "Rows with ages are counted in bins, which do not keep clusters.",
            "Leave one of the two out.",
        )
    if name in columns.given().values():
        part = next(part for part, other in columns.given().items() if other == name)
        raise InputError(
            "clusters",
            f"column {name!r} is also {named(argument_of(part))}",
            "Each needs a column of its own.",
        )
    return (name,)


@contextmanager
def named_clusters(name: str | None) -> Iterator[None]:
    """Errors about the key in the word of the caller."""
    try:
        yield
    except InputError as error:
        if name is None:
            raise
        raise error.worded_for({"by": "clusters"}) from None


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
        raise InputError(
            title("clusters", name),
            f"{gaps:,} of {count:,} rows have no value",
            "Every row needs a cluster ID.",
            "Pass a unique ID for a row without a cluster.",
        )
    return values == count


def check_exact(name: str, score_bins: str | int) -> None:
    """Scores of rows that share their fate cannot be had in bins."""
    if isinstance(score_bins, int):
        raise InputError(
            "clusters",
            f"clusters {name!r} with {setting('score_bins', score_bins)}",
            "Rows of clusters are counted by their exact scores.",
            f"Leave {named('score_bins')} at 'auto', or leave {named('clusters')} out.",
        )


def too_many_clustered(name: str, most: int) -> InputError:
    """That rows would have to be brought here that are too many."""
    return InputError(
        title("clusters", name),
        f"more than {most:,} cells of cluster and score",
        "Clustered rows are not counted in bins.",
        f"Draw whole clusters at random, as many as fit, or leave {named('clusters')} out.",
    )
