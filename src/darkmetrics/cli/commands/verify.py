"""darkmetrics verify."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import darkmetrics as dm
from darkmetrics.cli.evaluation import settings_of
from darkmetrics.cli.inputs import Rows, load, paths_of, read_reference, stored_counts
from darkmetrics.cli.mechanism import mechanism_from
from darkmetrics.cli.messages import worded
from darkmetrics.cli.options import (
    DATA,
    DELAYS,
    MISSINGNESS,
    TARGETS,
    CommonOptions,
    DataOptions,
    MechanismOptions,
    MethodOptions,
    MetricOptions,
    argument,
    number,
    option,
)
from darkmetrics.cli.output import check_writable, in_words, progress, publish
from darkmetrics.cli.rendering import Check, Result, Table
from darkmetrics.exceptions import InputError

EXAMPLE = "Example: darkmetrics verify may.parquet since-may.csv --label fraud --score p --missingness by_score"


@dataclass(frozen=True)
class BeforeArgument:
    """The earlier rows."""

    before: Annotated[str, argument("BEFORE", "Counts of the earlier rows, stored by EvaluationSet.to_parquet.")]


@dataclass(frozen=True)
class ArrivalOptions:
    """When labels arrived, and what was known per row."""

    strata: Annotated[str | None, option(MISSINGNESS, "COL", "Column of segments, if BEFORE has them.")] = None
    propensity: Annotated[
        str | None, option(MISSINGNESS, "COL", "Column of probabilities to get a label, if BEFORE has them.")
    ] = None
    age: Annotated[str | None, option(DELAYS, "COL", "Column of ages of the rows in BEFORE, if it has ages.")] = None
    time: Annotated[
        str | None, option(DATA, "COL", "When each label arrived: a date, or time since BEFORE. [default: one batch]")
    ] = None


@dataclass(frozen=True)
class VerifyOptions(ArrivalOptions, MethodOptions, MechanismOptions, MetricOptions, DataOptions, BeforeArgument):
    """The earlier counts, the labels that arrived since, and the options of the earlier evaluation."""


def main(
    options: VerifyOptions,
    common: CommonOptions,
    alpha: Annotated[
        float, number(TARGETS, "P", "Largest probability of ever rejecting correct probabilities.")
    ] = 0.05,
    arrival: Annotated[
        str | None,
        option(TARGETS, "HOW", "Labels that arrive first: alike (at random at a score), late (by age) or any."),
    ] = None,
    elapsed: Annotated[
        float | None, number(DELAYS, "T", "Time since BEFORE, for delayed labels without --time.")
    ] = None,
) -> int:
    """Test whether an earlier evaluation agrees with labels that arrived later.

    BEFORE contains the counts of the earlier rows; pass the options of the earlier evaluation. FILE contains the rows
    whose labels have arrived since, or all rows again, or counts. The test is sequential; if it rejects the
    probabilities at level --alpha, the exit code is 1.
    """
    check_writable(common.output, options.before, *paths_of(options.file), options.reference)
    with progress("reading", "verifying") as begin:
        begin()
        before = dm.EvaluationSet.from_parquet(options.before)
        after: Any = stored_counts(options, options.file)
        others = [] if options.time is None else [options.time]
        rows = load(options, others=others) if after is None else None
        names = {"label": "label", "score": "score"} if rows is None else rows.names
        begin()
        with in_words(names):
            mechanism: Any = mechanism_from(options, read_reference(options.reference, names, before.pos_label))
            after = after if rows is None else _labels(rows, before, mechanism, options)
            verification = dm.verify(
                before,
                after,
                elapsed=elapsed,
                arrival=arrival,
                alpha=alpha,
                metrics=options.metric or dm.metrics.DEFAULT_METRICS,
                missingness=mechanism.without_rows() if isinstance(mechanism, dm.missing.Mechanism) else mechanism,
                rng=common.seed,
                **settings_of(options),
            )
    verdict = f"the probabilities are {'' if verification.is_rejected else 'not '}rejected (--alpha {alpha:g})."
    result = Result(
        verification.to_dict(),
        verification.to_records(),
        [Table(*verification._table())] if verification.resolved_metrics else [],
        above=[worded(line) for line in verification._words()],
        below=[worded(line) for line in verification._notes()],
        checks=[Check("probabilities hold", not verification.is_rejected, verdict)],
    )
    return publish(result, common.result_format, common.output)


def _labels(rows: Rows, before: dm.EvaluationSet, mechanism: Any, options: VerifyOptions) -> Any:
    """Return the labels that arrived: as one set, or as one per time."""
    if not isinstance(rows.data, Mapping):
        raise InputError(rows.source, "too large to be read as rows", "Store its counts and pass these.")
    known = mechanism if isinstance(mechanism, dm.missing.Mechanism) else None
    settings = {
        **rows.arguments,
        "missingness": known if options.age is None else dm.missing.Delayed(age=options.age),
        "threshold": before.threshold,
    }
    if options.time is None:
        return dm.EvaluationSet(**settings)
    from darkmetrics import frames

    values, missing = frames.value_column(rows.data[options.time], "time")
    places: dict[Any, list[int]] = {}
    for place, (value, is_missing) in enumerate(zip(values.tolist(), missing.tolist(), strict=True)):
        if not is_missing:  # rows without a time had their label before
            places.setdefault(value, []).append(place)
    return {
        value: dm.EvaluationSet(
            **settings | {"data": {name: [column[i] for i in where] for name, column in rows.data.items()}}
        )
        for value, where in places.items()
    }
