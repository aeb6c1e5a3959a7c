"""All rows together: the groups stacked, with the label model of each group for its own missing rows.

One fit over all rows would contradict the groups. Where the fraction of missing labels differs between groups, a row
without a label is more likely to come from some groups than from others, which one curve for all of them cannot know.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import logit

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray, merged_keys
from darkmetrics.changes.pairing import LearnedSet, Pairing
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missingness.base import Mechanism
from darkmetrics.monitoring.borrowing import Lender, ScoreCurve, borrow_posteriors
from darkmetrics.posterior import Posterior, columns_of

# Posterior draws of the total where several groups have draws.
_N_CASES = 128
# Probabilities of all groups that are kept, and probability columns of the total at most.
_MAX_PROBABILITIES, _MAX_COLUMNS = 2**23, 2048
# Bins of the score (equally many missing rows each) and steps of the log odds by which columns are merged, tried until
# few enough columns are left. Merged rows have their mean probability; within a sixteenth of the log odds that adds
# less than a thousandth of a percent to the variance of a label.
_GRIDS = ((512, 1 / 16), (256, 1 / 8), (128, 1 / 4), (64, 1 / 4), (32, 1 / 2), (16, 1.0), (4, 2.0), (1, np.inf))


class GroupPosterior(NamedTuple):
    """The posterior of a group's missing rows, with one probability column for rows that share it and a prediction.

    `column` is that of each missing cell. `rows`, `score` and `predicted` have the number of missing rows of each
    column, their mean score, and whether they are predicted positive.
    """

    posterior: Posterior
    column: IntArray
    rows: FloatArray
    score: FloatArray
    predicted: BoolArray

    @classmethod
    def of(cls, data: EvaluationSet, posterior: Posterior, n_groups: int = 1) -> "GroupPosterior":
        """Return the posterior of one of `n_groups` groups."""
        posterior.check_independent("the total of groups needs")
        cells, count = data.missing_cells, data.missing_counts.astype(np.float64)
        if not cells.size:
            posterior = Posterior.single(np.zeros(0))  # nothing depends on the draws
        columns = columns_of(posterior)
        first, column = merged_keys(columns, data.cells.decision[cells].astype(np.int64))
        rows: FloatArray = np.asarray(np.bincount(column, count, first.size), dtype=np.float64)
        result = cls(
            posterior=Posterior(
                posterior.weight,
                posterior.probability[:, columns[first]],
                shift=posterior.shift,
                mechanism=posterior.mechanism,
                mechanisms=posterior.mechanisms,
            ),
            column=column,
            rows=rows,
            score=np.bincount(column, count * data.cells.score[cells], first.size) / rows,
            predicted=data.cells.decision[cells[first]],
        )
        limit = max(16, _MAX_PROBABILITIES // (n_groups * len(posterior)))
        return result if first.size <= limit else result._merged(limit)

    def _merged(self, limit: int) -> "GroupPosterior":
        """Merge columns of similar probability; within a group these have similar scores."""
        owner = _merge_similar(self.mean, np.zeros(self.rows.size), self.predicted, self.rows, limit)
        rows: FloatArray = np.asarray(np.bincount(owner, self.rows), dtype=np.float64)
        probability = np.array([np.bincount(owner, p) for p in self.posterior.probability * self.rows]) / rows
        return GroupPosterior(
            posterior=replace(self.posterior, probability=probability),
            column=owner[self.column],
            rows=rows,
            score=np.bincount(owner, self.rows * self.score) / rows,
            predicted=np.bincount(owner, self.predicted) > 0.0,
        )

    @property
    def mean(self) -> FloatArray:
        """Mean probability of each column."""
        return np.asarray(self.posterior.weight @ self.posterior.probability)

    def learned(self, data: EvaluationSet, model: Mechanism | None = None) -> LearnedSet:
        """Return the set that the pairing needs."""
        sides = np.stack([self.rows * self.predicted, self.rows * ~self.predicted], axis=1)
        return LearnedSet(self.posterior, sides, int(data.cells.positives.sum() + data.cells.negatives.sum()), model)


class StackedGroups(NamedTuple):
    """All rows as one set, and the posterior of their missing labels.

    `n_borrowing` groups had too few labels for a posterior; `shares_reference`: groups learned from the same reference
    rows.
    """

    data: EvaluationSet
    posterior: Posterior
    n_borrowing: int
    shares_reference: bool


def stack_groups(
    sets: Sequence[EvaluationSet],
    posteriors: Sequence[GroupPosterior | None],
    models: Sequence[Mechanism | None],
    fit: Callable[[EvaluationSet], Posterior],
) -> StackedGroups:
    """Stack groups of rows. Groups without a posterior borrow from the other groups and a `fit` over all rows."""
    lacking = sum(
        group_posterior is None and data.n_missing > 0 for data, group_posterior in zip(sets, posteriors, strict=True)
    )
    merged = EvaluationSet.concat(sets) if any(group_posterior is None for group_posterior in posteriors) else None
    if merged is not None and all(group_posterior is None for group_posterior in posteriors):
        return StackedGroups(merged, fit(merged), lacking, shares_reference=False)
    groups = (
        [group_posterior for group_posterior in posteriors if group_posterior is not None]
        if merged is None
        else _borrow(sets, posteriors, merged, fit(merged))
    )
    column = _columns(groups)
    start = 0
    cell_columns = [np.full(data.cells.score.size, -1) for data in sets]
    for data, group, numbers in zip(sets, groups, cell_columns, strict=True):
        numbers[data.missing_cells] = column[start + group.column]
        start += group.rows.size
    numbers = np.concatenate(cell_columns)
    data, cells = EvaluationSet.merged_apart(sets, numbers)
    members = zip(sets, groups, models, strict=True)
    pairing = Pairing.of([group.learned(rows, model) for rows, group, model in members])
    weight, draws = pairing.select_cases(_N_CASES)
    probability, shift = _stack(groups, pairing, draws, column)
    posterior = Posterior(weight, probability, column=numbers[cells][data.missing_cells], shift=shift)
    return StackedGroups(data, posterior, lacking, shares_reference=bool(pairing.reference))


def _borrow(
    sets: Sequence[EvaluationSet],
    posteriors: Sequence[GroupPosterior | None],
    merged: EvaluationSet,
    fitted: Posterior,
) -> list[GroupPosterior]:
    """Return the posteriors of all groups, with borrowed ones for groups without."""
    lenders = []
    for data, group_posterior in zip(sets, posteriors, strict=True):
        if group_posterior is not None:
            learned = group_posterior.learned(data)
            lenders.append(Lender(data, group_posterior.posterior.weight, learned.positives, learned.mechanism))
    curve, rng = ScoreCurve.of(merged, fitted), np.random.default_rng(11)  # the same in every run
    lacking = [data for data, group_posterior in zip(sets, posteriors, strict=True) if group_posterior is None]
    borrowed = iter(borrow_posteriors(lacking, lenders, curve, rng))
    return [
        GroupPosterior.of(data, next(borrowed), len(sets)) if group_posterior is None else group_posterior
        for data, group_posterior in zip(sets, posteriors, strict=True)
    ]


def _columns(groups: Sequence[GroupPosterior]) -> IntArray:
    """Return the column in the total of each column of each group; similar columns are merged if there are many."""
    if not groups:
        return np.zeros(0, dtype=np.int64)
    rows = np.concatenate([group.rows for group in groups])
    if rows.size <= _MAX_COLUMNS or all(len(group.posterior) == 1 for group in groups):
        return np.arange(rows.size)
    mean, score, predicted = (
        np.concatenate([getattr(group, name) for group in groups]) for name in ("mean", "score", "predicted")
    )
    return _merge_similar(mean, score, predicted, rows, _MAX_COLUMNS)


def _merge_similar(mean: FloatArray, score: FloatArray, predicted: BoolArray, rows: FloatArray, limit: int) -> IntArray:
    """Return numbers of columns: equal for columns of one prediction with similar scores and probabilities."""
    order = np.argsort(score, kind="stable")
    rank: FloatArray = np.empty(rows.size)
    rank[order] = (np.cumsum(rows[order]) - 0.5 * rows[order]) / rows.sum()
    log_odds = logit(np.clip(mean, 1e-9, 1.0 - 1e-9))
    owner: IntArray = np.arange(rows.size)
    for bins, step in _GRIDS:
        level = np.floor(log_odds / step).astype(np.int64)
        first, owner = merged_keys(predicted.astype(np.int64), np.floor(bins * rank).astype(np.int64), level)
        if first.size <= limit:
            break
    return owner


def _stack(
    groups: Sequence[GroupPosterior], pairing: Pairing, draws: Sequence[IntArray], column: IntArray
) -> tuple[FloatArray, FloatArray | None]:
    """Return the probability of each column in each case (n_cases x n_columns), and the mean shift of the log odds."""
    n = draws[0].size if draws else 1
    sums, shift, start = np.zeros((int(column.max(initial=-1)) + 1, n)), np.zeros(n), 0
    rows = np.bincount(column, np.concatenate([group.rows for group in groups]) if groups else None).astype(np.float64)
    for group, posterior, chosen in zip(groups, pairing.posteriors, draws, strict=True):
        numbers = column[start : start + group.rows.size]
        order = np.argsort(numbers, kind="stable")
        starts = np.flatnonzero(np.diff(numbers[order], prepend=-1))
        if starts.size:
            by_column = np.add.reduceat((posterior.probability * group.rows).T[order], starts, axis=0)
            sums[numbers[order][starts]] += by_column[:, chosen]
        if posterior.shift is not None:
            shift += posterior.shift[chosen] * group.rows.sum()
        start += numbers.size
    probability = np.clip(sums.T / np.maximum(rows, 1.0), 0.0, 1.0)
    return probability, shift / rows.sum() if np.any(shift) else None


def describe_total(
    n_groups: int, n_borrowing: int, assumptions: Collection[str], *, shared: bool, review: str | None = None
) -> str:
    """Return what is assumed about all rows; `review`: who is reviewed, if labels are delayed."""
    text = f"The sum of {n_groups:,} groups, in each of which missing labels follow the label model of that group."
    if review is not None:
        text = (
            f"The sum of {n_groups:,} groups. When labels come is taken to be the same in all of them and learned from "
            f"all their rows; the level of each group is its own.{review}"
        )
    if len(assumptions) == 1:
        (assumption,) = assumptions
        start, _, content = assumption.partition("Assumed: ")
        text += f" In each: {assumption[:1].lower()}{assumption[1:]}" if start else f" Assumed in each: {content}"
    if shared:
        text += " They share the reference rows, so that their errors are taken to go together."
    return text + (f" {describe_borrowing(n_borrowing)}" if n_borrowing else "")


def describe_borrowing(n_borrowing: int) -> str:
    """Return the sentence about groups with too few labels for a model."""
    verb = "group lacks labels of a class and takes" if n_borrowing == 1 else "groups lack labels of a class and take"
    return f"{n_borrowing:,} {verb} the level of any of the others."
