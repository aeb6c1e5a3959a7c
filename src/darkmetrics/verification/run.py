"""verify(): test an earlier evaluation against labels that arrived later."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import expit, logit

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.hypothesis_tests import Capital, allows_labels, least_log_capital, log_moments
from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics._kernels.sums.poisson_binomial import poisson_binomial_pmfs
from darkmetrics._text import a_kind_of
from darkmetrics.argument_types import ArrayLike, Duration, FrameLike
from darkmetrics.class_evaluation import refuse_classes
from darkmetrics.constraints import checked
from darkmetrics.data.ages import positive_span
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import Interval
from darkmetrics.evaluating import evaluate
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.missing import ByScore, Posterior
from darkmetrics.missingness.delayed import FittedDelays
from darkmetrics.posterior import columns_of
from darkmetrics.verification.labels import Batch, batches_of
from darkmetrics.verification.result import ResolvedMetric, Verification
from darkmetrics.wording import code, named, setting

# Number of posterior draws. An evaluation has 64; as labels arrive, what lies between draws matters: with 64, one in
# nine tests of correct delayed labels rejected at 5%. A curve of scores needs fewer draws than hazards of many ages.
_N_DRAWS, _N_DRAWS_DELAYED = 256, 1024
# Up to this many labels, the distribution of their number of positives is exact; above, a mixture of Gaussians.
_MAX_EXACT = 1000


@checked
def verify(
    before: Evaluation | EvaluationSet,
    after: ArrayLike | str | EvaluationSet | Mapping[Any, EvaluationSet],
    y_score: ArrayLike | str | None = None,
    *,
    data: FrameLike | None = None,
    time: ArrayLike | str | None = None,
    age: ArrayLike | str | None = None,
    elapsed: Duration | None = None,
    arrival: str | None = None,
    alpha: float = 0.05,
    **evaluate_arguments: Any,
) -> Verification:
    """Test whether the probabilities of an earlier evaluation agree with labels that arrived later.

    The test is sequential: if the probabilities are correct, it rejects them with probability at most `alpha`, however
    often it is repeated as labels arrive.

    Parameters
    ----------
    before : Evaluation or EvaluationSet
        The earlier evaluation; or its rows, for example from `EvaluationSet.from_parquet`, with the arguments of the
        earlier evaluation.
    after : array-like, str, EvaluationSet or mapping
        Labels of the rows that have received one since, or of all rows again: missing labels NaN, None or null.
        An array, a column of `data`, a set built like the earlier set, or a mapping from times to sets of the rows
        whose labels arrived then.
    y_score : array-like of float or str
        Scores, if `after` is an array or a column.
    data : DataFrame, lazy frame, relation, path, folder, pattern, or list of paths, optional
        Table whose columns the other arguments name. Its engine counts the rows; with `time` or `age` the columns are
        read into memory.
    time : array-like or str, optional
        When each label arrived: time since `before`, or dates. Rows that had their label before have none, or an
        earlier date. Delayed labels need the time since `before`, or an evaluation of a table, whose `as_of` converts
        dates. If not passed, all labels are one batch; the order of the rows does not matter.
    age : array-like or str, optional
        For rows with ages: the age of each row in `before`; or the date when it was scored, if `before` is of a table
        with `as_of`.
    elapsed : float or timedelta, optional
        For delayed labels without `time`: time since `before`.
    arrival : {"alike", "late", "any"}, optional
        Which of the missing labels arrive first. "alike": among rows with one score, the label does not matter, for
        example if rows are selected for review; the default for labels missing by score or at random. "late": as fast
        as the model of delayed labels predicts; the default for that model. "any": no assumption; the default
        otherwise. It has little power until most labels have arrived.
    alpha : float
        Largest probability of ever rejecting correct probabilities.
    **evaluate_arguments
        For an EvaluationSet: arguments of `evaluate`, such as `missingness="by_score"`.

    Returns
    -------
    Verification
        E-value and verdict, predicted and observed positives, and the metrics that are known by now.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(2000)
    >>> y = rng.random(2000) < y_score
    >>> missing = rng.random(2000) < np.where(y, 0.5, 0.2)  # by label, but by score was stated
    >>> may = dm.evaluate(np.where(missing, np.nan, y), y_score, missingness="by_score", metrics="precision")
    >>> arrived = missing & (rng.random(2000) < 0.5)
    >>> result = dm.verify(may, y[arrived], y_score[arrived])
    >>> result
    <Verification with 361 labels: e-value 2e+12, rejected>
    >>> low, high = result.expected_positives
    >>> print(f"{result.n_positives} positives; predicted {low:.0f} to {high:.0f}")
    252 positives; predicted 167 to 196
    """
    refuse_classes("verify", before)
    if isinstance(before, EvaluationSet):
        before = evaluate(before, **evaluate_arguments)
    elif not isinstance(before, Evaluation):
        raise InputError("before", type(before).__name__, "It must be an Evaluation or an EvaluationSet.")
    elif evaluate_arguments:
        name = next(iter(evaluate_arguments))
        rule = "An Evaluation already has it."
        raise InputError(name, "passed with an Evaluation", rule, f"Pass {named(name)} with an EvaluationSet only.")
    before = before.rows  # labels are the same for rows and population
    if not before.data.n_missing:
        raise InputError("before", "no missing label", "Verification compares labels that were missing then.")
    before.posterior.check_independent("verify assumes")
    if data is not None:
        after, y_score, time, age = _columns_of_table(before.data, data, after, y_score, time, age)
    chosen = _arrival_of(before, arrival)
    as_of = None if before.arrival is None else before.arrival.as_of
    batches = batches_of(before.data, after, y_score, time, age, as_of)
    ways = {"alike": _alike, "late": _late, "any": _any}
    log_e_values, expected, skipped = ways[chosen](before, batches, elapsed)
    labels = [int((batch.positives + batch.negatives).sum()) for batch in batches]
    return Verification(
        arrival=chosen,
        alpha=alpha,
        stated=before.stated,
        n_missing=int(before.data.missing_counts.sum()),
        labels=np.cumsum(labels),
        positives=np.cumsum([int(batch.positives.sum()) for batch in batches]),
        times=None if batches[0].until is None else np.array([batch.until for batch in batches], dtype=np.float64),
        log_e_values=log_e_values,
        expected_positives=expected,
        confidence_level=before.confidence_level,
        n_skipped=skipped,
        resolved_metrics=_find_resolved_metrics(before, batches),
        metrics=tuple(before),
    )


def _columns_of_table(before: EvaluationSet, data: Any, after: Any, y_score: Any, time: Any, age: Any) -> list[Any]:
    """Return labels, scores, times and ages of a table; labels and scores alone are counted where they are."""
    arguments = {"after": after, "y_score": y_score, "time": time, "age": age}
    names = {argument: value for argument, value in arguments.items() if value is not None}
    for argument, value in names.items():
        if not isinstance(value, str):
            raise InputError(argument, a_kind_of(value), f"With {setting('data')} it is the name of a column.")
    if y_score is not None and time is None and age is None and before.threshold is not None:
        bins = "exact" if before.score_bins is None else before.score_bins
        settings: dict[str, Any] = {"threshold": before.threshold, "pos_label": before.pos_label, "score_bins": bins}
        try:
            return [EvaluationSet(after, y_score, data=data, **settings), None, None, None]
        except InputError as error:
            raise error.worded_for({"y_true": "after"}) from None
    return list({**arguments, **frames.read_columns(data, names)}.values())


def _arrival_of(before: Evaluation, arrival: str | None) -> str:
    late = isinstance(before.model, FittedDelays)
    if arrival == "late" and not late:
        raise InputError(
            "arrival",
            "'late', but the evaluation has no delays of labels",
            "",
            f"Evaluate with {code('missingness=dm.missing.Delayed(...)')}.",
        )
    if late:
        ages = before.data.cells.ages
        mature = ages is not None and bool(ages.mature.any())
        if mature and arrival == "late":
            raise InputError(
                "arrival",
                "'late', but only positives arrive before the maturity",
                "A label that arrives is then certain, and tests nothing.",
                f"Leave {named('arrival')} out: 'any' uses what is known of all rows.",
            )
        return arrival or ("any" if mature else "late")
    return arrival or ("alike" if isinstance(before.model, ByScore) else "any")


@dataclass(frozen=True, eq=False)
class _Columns:
    """The nodes of an evaluation, finely, by columns of missing cells that share chance and decision."""

    weight: FloatArray
    log_odds: FloatArray
    # The column of each missing cell.
    of_cell: IntArray

    @classmethod
    def of(cls, before: Evaluation) -> "_Columns":
        posterior = _finely(before)
        with np.errstate(divide="ignore"):
            log_odds = logit(posterior.probability)
        return cls(posterior.weight, log_odds, columns_of(posterior))


def _finely(before: Evaluation) -> Posterior:
    model: Any = before.model
    if len(before.posterior) == 1 or not isinstance(model, ByScore):
        return before.posterior
    return replace(model, n_draws=max(model.n_draws, _N_DRAWS)).posterior(before.data)


def _flagged(before: Evaluation) -> Any:
    return before.data.cells.decision[before.data.missing_cells]


def _alike(before: Evaluation, batches: list[Batch], _: Any) -> tuple[FloatArray, Interval, int]:
    """Labels that come have the chances of those that are missing."""
    columns, flagged = _Columns.of(before), _flagged(before)
    capital, path = Capital(columns.weight), []
    for batch in batches:
        at = columns.of_cell[batch.place]
        capital.add(columns.log_odds[:, at], flagged[batch.place], batch.positives, batch.negatives)
        path.append(capital.log_value)
    column = np.concatenate([columns.of_cell[batch.place] for batch in batches])
    labels = np.concatenate([batch.positives + batch.negatives for batch in batches])
    expected = _expected(columns.weight, expit(columns.log_odds[:, column]), labels, before.confidence_level)
    return np.array(path), expected, 0


def _late(before: Evaluation, batches: list[Batch], elapsed: Any) -> tuple[FloatArray, Interval, int]:
    """Labels come as fast as those of their class did before."""
    model, data = before.model, before.data
    assert isinstance(model, FittedDelays)
    arrivals, flagged = replace(model.model, n_draws=_N_DRAWS_DELAYED).fit(data), _flagged(before)
    weight = np.full(_N_DRAWS_DELAYED, 1.0 / _N_DRAWS_DELAYED)
    capital, path, skipped = Capital(weight), [], 0
    chances, labels = [], []
    since = 0.0
    for batch, until in zip(batches, _ends(batches, elapsed, data), strict=True):
        odds, known = arrivals.arrival_log_odds(data, data.missing_cells[batch.place], since, until)
        came = batch.positives + batch.negatives
        capital.add(odds[:, known], flagged[batch.place][known], batch.positives[known], batch.negatives[known])
        path.append(capital.log_value)
        chances.append(expit(odds[:, known]))
        labels.append(came[known])
        skipped += int(came[~known].sum())
        since = until
    expected = _expected(weight, np.hstack(chances), np.concatenate(labels), before.confidence_level)
    return np.array(path), expected, skipped


def _ends(batches: list[Batch], elapsed: Any, data: EvaluationSet) -> list[float]:
    """When each batch ended, as time since the evaluation."""
    given = [batch.until for batch in batches if batch.until is not None]
    if len(given) == len(batches):
        if elapsed is not None:
            raise InputError("elapsed", f"passed with {named('time')}", "", "Pass one of the two.")
        return given
    if elapsed is None or len(batches) > 1:
        raise InputError(
            "time",
            "missing",
            "Delayed labels arrive at an age.",
            f"Pass {setting('time')} since the earlier evaluation, as a number or timedelta in the unit of its ages "
            f"(or as dates, if it has {named('as_of')}), or {setting('elapsed')} for all labels together.",
        )
    assert data.cells.ages is not None
    return [positive_span("elapsed", elapsed, days=data.cells.ages.days)]


def _any(before: Evaluation, batches: list[Batch], _: Any) -> tuple[FloatArray, Interval, int]:
    """Whatever labels come first: the least that the bet on all labels can still become."""
    columns, flagged, missing = _Columns.of(before), _flagged(before), before.data.missing_counts
    size = columns.log_odds.shape[1]
    moved = columns.of_cell + size * ~flagged  # a column for each chance and decision
    used, counts = np.unique(moved), np.bincount(moved, missing, 2 * size)
    log_odds, rows = columns.log_odds[:, used % size], counts[used]
    moments = log_moments(columns.weight, log_odds, used < size, rows)
    low, left = np.zeros(2), np.array([missing[flagged].sum(), missing[~flagged].sum()], dtype=np.float64)
    possible, came = columns.weight > 0.0, 0
    path = []
    for batch in batches:
        possible &= allows_labels(columns.log_odds[:, columns.of_cell[batch.place]], batch.positives, batch.negatives)
        came += int((batch.positives + batch.negatives).sum())
        own = flagged[batch.place]
        for side, which in enumerate((own, ~own)):
            low[side] += batch.positives[which].sum()
            left[side] -= (batch.positives + batch.negatives)[which].sum()
        if not possible.any():
            path.append(np.inf)
        else:  # without a label there is no evidence: the stake is still 1
            path.append(least_log_capital(moments, low, low + left) if came else 0.0)
    rows = rows.astype(np.int64)
    return np.array(path), _expected(columns.weight, expit(log_odds), rows, before.confidence_level), 0


def _expected(weight: FloatArray, p: FloatArray, labels: IntArray, level: float) -> Interval:
    """Between how many of the labels were expected to be positive (nodes x columns, and labels in each)."""
    tails = (0.5 - level / 2.0, 0.5 + level / 2.0)
    if not labels.sum():
        return Interval(0.0, 0.0)
    if labels.sum() <= _MAX_EXACT:
        first, pmfs = poisson_binomial_pmfs(p, labels)
        low, high = np.searchsorted(np.cumsum(weight @ pmfs), tails).tolist()
        return Interval(float(first + low), float(first + high))
    mean, sd = p @ labels, np.sqrt((p * (1.0 - p)) @ labels)
    low, high = (normal_mixture_quantile(q, weight, mean, sd) for q in tails)
    return Interval(float(max(0.0, np.floor(low))), float(min(labels.sum(), np.ceil(high))))


def _find_resolved_metrics(before: Evaluation, batches: list[Batch]) -> dict[str, ResolvedMetric]:
    """Return the metrics that the labels still missing cannot change."""
    data = before.data
    counts = {name: getattr(data.cells, name).astype(np.int64) for name in ("positives", "negatives", "missing")}
    for batch in batches:
        cell = data.missing_cells[batch.place]
        np.add.at(counts["positives"], cell, batch.positives)
        np.add.at(counts["negatives"], cell, batch.negatives)
        np.subtract.at(counts["missing"], cell, batch.positives + batch.negatives)
    cells = replace(data.cells.without_kinds(), **counts)
    settings = {"threshold": data.threshold, "pos_label": data.pos_label, "score_bins": data.score_bins}
    now = EvaluationSet.from_cells(cells, **settings)
    found = {}
    for name, distribution in before.distributions.items():
        extremes = before.metrics[name].bind(now, before.fills[name]).extremes
        if extremes.low == extremes.high:
            value = float(extremes.low)
            found[name] = ResolvedMetric(
                value, distribution.mean(), before.intervals[name], float(distribution.pit(value))
            )
    return found
