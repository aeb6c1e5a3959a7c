"""Metrics of the order of the scores: ROC-AUC, Gini, average precision, and the top k."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray, dot
from darkmetrics._kernels.auc.ranks import RankData
from darkmetrics._kernels.binning_errors import auc_effect, average_precision_effect, top_effect
from darkmetrics._kernels.rank_metrics import (
    auc_row_influence,
    average_precision,
    average_precision_row_influence,
    top_row_influence,
)
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.distributions.functionals import CountFunctional, RatioForm, Split
from darkmetrics.distributions.rank_functionals import PrecisionFunctional, RankFunctional, Ranking
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.metric import UNIT, Family, Metric


def _add_up(per_cell: FloatArray, starts: IntArray | None) -> FloatArray:
    """Sums over the cells of each tie group, along the last axis; without ties the cells are the groups."""
    if starts is None:
        return per_cell
    result: FloatArray = np.add.reduceat(per_cell, starts, axis=-1)
    return result


def _spread(per_group: FloatArray, cells: Cells) -> FloatArray:
    """The value of its tie group, for each cell, along the last axis."""
    if cells.tie_starts is None:
        return per_group
    return np.repeat(per_group, np.diff(cells.tie_starts, append=cells.score.size), axis=-1)


def _tie_groups(data: EvaluationSet) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray, float]:
    """Of each tie group the positive, missing and whole weight, and whether it is a bin of different scores.

    Last the smallest weight that a row has, if it counts at all.
    """
    cells = data.cells
    columns = (
        _add_up(cells.mass(counts), cells.tie_starts) for counts in (cells.positives, cells.missing, cells.total)
    )
    low, high = cells.tie_ends
    least = 1.0 if cells.weight is None else float(cells.weight[cells.weight > 0.0].min())
    known, open_, total = columns
    return known, open_, total, low < high, least


def _rank_data(data: EvaluationSet, *, full_ties: bool) -> RankData:
    cells, rows, unit = data.cells, data.missing_cells, 1.0
    if cells.weight is not None and bool(np.all(cells.weight == cells.weight[0])):
        cells = replace(cells, weight=None)  # one weight for all is none
    elif cells.weight is not None:
        # Fourth powers of weighted ranks must not overflow. A power of two divides without rounding.
        unit = float(np.exp2(np.floor(np.log2(cells.weight.max()))))
        cells = replace(cells, weight=cells.weight / unit)
    starts = cells.tie_starts
    total = _add_up(cells.mass(cells.total), starts)
    rho = np.cumsum(total)
    rho -= 0.5 * total
    rho = _spread(rho, cells)
    known = cells.mass(cells.positives)
    if starts is None:
        renumbered, open_groups = np.arange(rows.size), rows
    else:
        group = np.searchsorted(starts, rows, side="right") - 1
        renumbered = np.cumsum(np.diff(group, prepend=group[:1]) != 0)
        open_groups = group[np.flatnonzero(np.diff(group, prepend=-1))]
    group_known = _add_up(known, starts)
    settled = 0.0
    if full_ties:
        pairs = 0.5 * group_known * (total - group_known)
        settled = float(pairs.sum() - pairs[open_groups].sum())
    return RankData(
        counts=data.missing_counts.astype(np.float64),
        weight=np.broadcast_to(1.0, rows.size) if cells.weight is None else cells.weight[rows],
        rho=rho[rows],
        group=renumbered,
        known_p=float(known.sum()),
        known_r=dot(known, rho),
        total=float(total.sum()),
        full_ties=full_ties,
        group_total=total[open_groups],
        group_known=group_known[open_groups],
        settled_ties=settled,
        dust=0.0 if cells.weight is None else data.dust / unit,
    )


@dataclass(frozen=True, kw_only=True)
class RankMetric(Metric):
    """`shift + scale * ROC-AUC`, ties counting one half or in full."""

    scale: float = 1.0
    shift: float = 0.0
    full_ties: bool = False

    def bind(self, data: EvaluationSet, fill: float) -> RankFunctional:
        ranks = _rank_data(data, full_ties=self.full_ties)
        return RankFunctional(
            missing=data.missing_counts, fill=fill, range=self.range, data=ranks, scale=self.scale, shift=self.shift
        )

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        starts = cells.tie_starts
        negative, positive = _add_up(counts, starts)
        below = np.cumsum(negative, axis=1) - (0.0 if self.full_ties else 0.5) * negative
        pairs = positive.sum(axis=1) * negative.sum(axis=1)
        result = np.full(pairs.shape, np.nan)
        np.divide((positive * below).sum(axis=1), pairs, out=result, where=pairs > 0.0)
        return self.shift + self.scale * result

    def row_influence(self, cells: Cells, counts: FloatArray) -> FloatArray:
        negative, positive = _add_up(counts, cells.tie_starts)
        effect = auc_row_influence(positive, negative, full_ties=self.full_ties)
        weight = 1.0 if cells.weight is None else cells.weight
        with np.errstate(divide="ignore", invalid="ignore"):
            rows = counts.sum(axis=2) ** 2 / (counts * weight).sum(axis=2)
        # DeLong's divisors: the placements of n rows spread around their own mean.
        small = np.sqrt(rows / np.maximum(rows - 1.0, 0.5))
        result: FloatArray = self.scale * small[:, :, None] * _spread(effect, cells)
        return result

    def _binning_error(self, data: EvaluationSet) -> float:
        # A pair in a bin counts one half (or in full), and in truth nothing, one half or in full.
        return abs(self.scale) * (1.0 if self.full_ties else 0.5) * auc_effect(*_tie_groups(data))


@dataclass(frozen=True, kw_only=True)
class AveragePrecision(Metric):
    """Average precision, with ties taken together as scikit-learn does."""

    def bind(self, data: EvaluationSet, fill: float) -> PrecisionFunctional:
        cells, rows = data.cells, data.missing_cells
        known, _, total, _, _ = _tie_groups(data)
        group = rows if cells.tie_starts is None else np.searchsorted(cells.tie_starts, rows, side="right") - 1
        weight = np.ones(rows.size) if cells.weight is None else cells.weight[rows]
        falling = Ranking(known[::-1], total[::-1], data.missing_counts, weight, known.size - 1 - group)
        return PrecisionFunctional(missing=falling.missing, fill=fill, range=self.range, ranking=falling)

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        starts = cells.tie_starts
        negative, positive = _add_up(counts, starts)[..., ::-1]
        return average_precision(positive, positive + negative)

    def row_influence(self, cells: Cells, counts: FloatArray) -> FloatArray:
        negative, positive = _add_up(counts, cells.tie_starts)[..., ::-1]
        return _spread(average_precision_row_influence(positive, positive + negative)[..., ::-1], cells)

    def _binning_error(self, data: EvaluationSet) -> float:
        known, open_, total, wide, least = _tie_groups(data)
        return average_precision_effect(known[::-1], open_[::-1], total[::-1], wide[::-1], least)


@dataclass(frozen=True, kw_only=True)
class TopMetric(Metric):
    """A formula of the positives among the k highest scores (`top`), of all positives, of k and of the row count.

    Rows tied at the cut count by the share of them that fits into the top k: the mean over random tie-breaks.
    """

    k: float
    fraction: bool
    formula: Callable[[Any, Any, Any, Any], Any]
    ratio: Callable[[float, float, float], tuple[list[float], list[float]]]
    uses_all: bool

    def bind(self, data: EvaluationSet, fill: float) -> CountFunctional:
        cells, rows = data.cells, data.missing_cells
        total = _add_up(cells.mass(cells.total), cells.tie_starts)
        n = float(total.sum())
        k = float(self._size(n, cells))
        if k > n:
            there = f"there are only {n:g} rows" if cells.weight is None else f"the weights of all rows sum to {n:g}"
            raise InputError("k", f"{self.name} asks for the top {k:g}, but {there}")
        share = _spread(_share_in_top(total, k), cells)
        known = cells.mass(cells.positives)
        share_missing = share[rows]
        cut = share[(share > 0.0) & (share < 1.0)]
        part = float(cut[0]) if cut.size else 0.0
        groups = [share_missing == 1.0, share_missing == 0.0, (share_missing > 0.0) & (share_missing < 1.0)]
        offset = [
            known[share == 1.0].sum(),
            known[share == 0.0].sum(),
            known[(share > 0.0) & (share < 1.0)].sum(),
        ]
        numerator, denominator = self.ratio(part, k, n)
        return CountFunctional(
            missing=data.missing_counts,
            fill=fill,
            range=self.range,
            split=Split(tuple(np.flatnonzero(g) for g in groups), data.missing_weight),
            offset=tuple(float(x) for x in offset),
            formula=partial(_at_positives, self.formula, part, k, n),
            direction=(1, -1, None) if self.uses_all else (1, 0, 1),
            ratio=RatioForm(np.array(numerator), np.array(denominator)),
            cancels=False,
        )

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        starts = cells.tie_starts
        positive, total = _add_up(counts[1], starts), _add_up(counts.sum(axis=0), starts)
        n = total.sum(axis=1)
        k = self._size(n, cells) + np.zeros_like(n)
        top = np.minimum((positive * _share_in_top(total, k[:, None])).sum(axis=1), k)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.formula(top, positive.sum(axis=1), k, n)
        # Fewer labeled rows than k have no top k.
        return np.where(np.isfinite(value) & (k <= n), value, np.nan)

    def row_influence(self, cells: Cells, counts: FloatArray) -> FloatArray:
        positive, total = _add_up(counts[1], cells.tie_starts), _add_up(counts.sum(axis=0), cells.tie_starts)
        n = total.sum(axis=1, keepdims=True)
        k = self._size(n, cells) + np.zeros_like(n)
        share = _share_in_top(total, k)
        top, everything = ((positive * part).sum(axis=1, keepdims=True) for part in (share, 1.0))
        rate = _rate_at_cut(positive, total, k, n / max(1.0, float(cells.total.sum())))
        negative_in, positive_in, of_all = top_row_influence(share, top, everything, rate, k, n)
        # The formula is proportional to the positives in the top, and perhaps to the inverse of all of them.
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.formula(top, everything, k, n) / everything if self.uses_all else 0.0
            effect = np.stack(
                [
                    self.formula(negative_in, everything, k, n) - value * (of_all - 1.0),
                    self.formula(positive_in, everything, k, n) - value * of_all,
                ]
            )
        return _spread(effect, cells)

    def rests_on(self, cells: Cells) -> FloatArray:
        if self.uses_all:
            return super().rests_on(cells)[1:]  # positives
        total = _add_up(cells.mass(cells.total), cells.tie_starts)
        share = _spread(_share_in_top(total, float(self._size(float(total.sum()), cells))), cells)
        return np.broadcast_to(share, (1, 2, share.size))

    def _binning_error(self, data: EvaluationSet) -> float:
        known, open_, total, wide, _ = _tie_groups(data)
        n = float(total.sum())
        k = float(self._size(n, data.cells))
        share = _share_in_top(total, k)
        cut = np.flatnonzero((share > 0.0) & (share < 1.0) & wide)
        if not cut.size:
            return 0.0
        at = int(cut[0])
        bin_id = float(known[at]), float(open_[at]), float(total[at]), float(share[at] * total[at])
        change = top_effect(*bin_id, float(known.sum() - known[at]) if self.uses_all else None)
        # The formula is proportional to the positives in the top; shares have been divided by all of them already.
        return float(self.formula(change, 1.0, k, n))

    def _size(self, n: Any, cells: Cells) -> Any:
        """The rows (with weights: the weight) that make the top; a fraction is rounded to whole rows of one weight."""
        if not self.fraction:
            return self.k
        row = 1.0
        if cells.weight is not None and (counting := cells.weight[cells.weight > 0.0]).size:
            row = float(counting[0])
            if np.any(counting != row):
                return self.k * n
        # Halves are rounded up, and the rounding of a sum of weights must not say otherwise.
        return row * np.maximum(1.0, np.floor(self.k * n / row * (1.0 + 1e-12) + 0.5))


def _at_positives(formula: Callable[..., Any], part: float, k: float, n: float, top: Any, below: Any, tied: Any) -> Any:
    """The formula at positives in the top k, below it, and among rows tied at the cut, of which a part is in it.

    Weights added up are no more than k, but for rounding, which would lead to more than a share of one.
    """
    return formula(np.minimum(top + part * tied, k), top + below + tied, k, n)


def _share_in_top(total: FloatArray, k: Any) -> FloatArray:
    """Which share of each tie group (along the last axis, by rising score) falls among the k highest scores."""
    above = total.sum(axis=-1, keepdims=True) - np.cumsum(total, axis=-1)
    share = np.clip((k - above) / np.where(total > 0.0, total, 1.0), 0.0, 1.0)
    # Sums of weights carry rounding errors, which must not cut a group that fits.
    result: FloatArray = np.where(share < 1e-12, 0.0, np.where(share > 1.0 - 1e-12, 1.0, share))
    return result


def _rate_at_cut(positive: FloatArray, total: FloatArray, k: FloatArray, row: FloatArray) -> FloatArray:
    """Share of positives among the rows next to the cut after the k highest scores, one for each set.

    Next to it are as many rows on either side as the number of those above it varies by.
    """
    seen, found = (np.cumsum(part[:, ::-1], axis=1) for part in (total, positive))
    reach = row * np.maximum(10.0, np.sqrt(k / row))
    rates = []
    for own, held, low, high in zip(seen, found, np.maximum(k - reach, 0.0)[:, 0], (k + reach)[:, 0], strict=True):
        ends = np.interp([low, high], np.append(0.0, own), np.append(0.0, held))
        rates.append((ends[1] - ends[0]) / (min(high, own[-1]) - low))
    return np.array(rates)[:, None]


def _k_of(k: Any) -> tuple[float, bool]:
    if not is_number(k) or not np.isfinite(k):
        raise InputError("k", repr(k), "It must be a number of rows or a fraction of the rows.")
    if isinstance(k, (int, np.integer)):
        if k < 1:
            raise InputError("k", repr(k), "The top k must have at least one row.")
        return float(k), False
    if not 0.0 < k <= 1.0:
        raise InputError("k", repr(k), "A fraction of the rows lies in (0, 1]. A number of rows is whole.")
    return float(k), True


# Each formula with its numerator and denominator: a constant, and a coefficient for the positives in the top, below it
# and tied at the cut.
def _precision_in_top(top: Any, positives: Any, k: Any, n: Any) -> Any:
    return top / k


def _precision_ratio(part: float, k: float, n: float) -> tuple[list[float], list[float]]:
    return [0.0, 1.0, 0.0, part], [k, 0.0, 0.0, 0.0]


def _recall_in_top(top: Any, positives: Any, k: Any, n: Any) -> Any:
    return top / positives


def _recall_ratio(part: float, k: float, n: float) -> tuple[list[float], list[float]]:
    return [0.0, 1.0, 0.0, part], [0.0, 1.0, 1.0, 1.0]


def _lift_in_top(top: Any, positives: Any, k: Any, n: Any) -> Any:
    return top / positives * (n / k)


def _lift_ratio(part: float, k: float, n: float) -> tuple[list[float], list[float]]:
    return [0.0, n / k, 0.0, part * n / k], [0.0, 1.0, 1.0, 1.0]


def precision_at_k(k: int | float) -> TopMetric:
    """Which share of the k highest scores is positive? `k` is a count (int) or a fraction of the rows (float).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> top = dm.evaluate(
    ...     [1, 0, None], [0.9, 0.4, 0.7], metrics="precision_at_k(2)", missingness=dm.missing.Fixed([0.8])
    ... )
    >>> round(top["precision_at_k(2)"].mean(), 9)
    0.9
    """
    size, fraction = _k_of(k)
    return TopMetric(
        name=f"precision_at_k({k})",
        k=size,
        fraction=fraction,
        formula=_precision_in_top,
        ratio=_precision_ratio,
        uses_all=False,
        range=UNIT,
        meaning="share of the highest scores that are positive",
    )


def recall_at_k(k: int | float) -> TopMetric:
    """Which share of the positives is among the k highest scores? `k` is a count (int) or a fraction (float).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> top = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], metrics="recall_at_k(1)", missingness=dm.missing.Fixed([0.8]))
    >>> round(top["recall_at_k(1)"].mean(), 9)
    0.6
    """
    size, fraction = _k_of(k)
    return TopMetric(
        name=f"recall_at_k({k})",
        k=size,
        fraction=fraction,
        formula=_recall_in_top,
        ratio=_recall_ratio,
        uses_all=True,
        undefined_as=0.0,
        range=UNIT,
        meaning="share of the positives found among the highest scores",
    )


def lift_at_k(k: int | float) -> TopMetric:
    """How many times as many positives do the k highest scores hold as k random rows? `k`: count or fraction.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> top = dm.evaluate(
    ...     [1, 0, None, 0], [0.9, 0.4, 0.7, 0.1], metrics="lift_at_k(0.5)", missingness=dm.missing.Fixed([0.5])
    ... )
    >>> round(top["lift_at_k(0.5)"].mean(), 9)
    2.0
    """
    size, fraction = _k_of(k)
    return TopMetric(
        name=f"lift_at_k({k})",
        k=size,
        fraction=fraction,
        formula=_lift_in_top,
        ratio=_lift_ratio,
        uses_all=True,
        range=(0.0, np.inf),
        meaning="positives among the highest scores per positive expected among as many random rows",
    )


def _check_ties(ties: str) -> bool:
    if ties not in ("half", "full"):
        raise InputError("ties", repr(ties), "It must be 'half' or 'full'.")
    return ties == "full"


def roc_auc(ties: Literal["half", "full"] = "half") -> RankMetric:
    """How likely does a random positive score above a random negative? Ties count one half, or in full as in the paper.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.evaluate([1, 0, 1, 0], [0.9, 0.9, 0.7, 0.1], metrics="roc_auc", missingness=dm.missing.Fixed(0.5))[
    ...     "roc_auc"
    ... ].mean()
    0.625
    >>> full = dm.metrics.roc_auc(ties="full")
    >>> dm.evaluate([1, 0, 1, 0], [0.9, 0.9, 0.7, 0.1], metrics=full, missingness=dm.missing.Fixed(0.5))[
    ...     full.name
    ... ].mean()
    0.75
    """
    full = _check_ties(ties)
    return RankMetric(
        name="roc_auc(ties='full')" if full else "roc_auc",
        full_ties=full,
        range=UNIT,
        meaning="chance that a random positive scores above a random negative",
    )


def gini(ties: Literal["half", "full"] = "half") -> RankMetric:
    """How far is the ranking from random, on a scale from -1 to 1? Gini = 2 ROC-AUC - 1.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.evaluate([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1], metrics="gini", missingness=dm.missing.Fixed(0.5))[
    ...     "gini"
    ... ].mean()
    0.5
    """
    full = _check_ties(ties)
    return RankMetric(
        name="gini(ties='full')" if full else "gini",
        scale=2.0,
        shift=-1.0,
        full_ties=full,
        range=(-1.0, 1.0),
        meaning="how much better than random the ranking is (0 random, 1 perfect)",
    )


RANKING_METRICS: tuple[Metric | Family, ...] = (
    Family(name="roc_auc", make=roc_auc, example=roc_auc(), needs_argument=False),
    Family(name="gini", make=gini, example=gini(), needs_argument=False),
    AveragePrecision(
        name="average_precision",
        range=UNIT,
        meaning="mean precision over the thresholds at which positives are found",
        undefined_as=0.0,
    ),
    Family(name="precision_at_k", make=precision_at_k, example=precision_at_k(0.1), needs_argument=True),
    Family(name="recall_at_k", make=recall_at_k, example=recall_at_k(0.1), needs_argument=True),
    Family(name="lift_at_k", make=lift_at_k, example=lift_at_k(0.1), needs_argument=True),
)
