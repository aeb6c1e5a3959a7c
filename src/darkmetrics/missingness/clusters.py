"""Rows of one group (a customer, a household) share a part of their luck: nodes whose labels depend on each other."""

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import logit

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.shared_fate import (
    LUCK,
    RHO,
    correlation,
    luck_of_groups,
    posterior_of_rho,
    thresholds,
    updated_chances,
)
from darkmetrics._text import counted
from darkmetrics.calibrators import Beta, Platt
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.posterior import Posterior, columns_of

# Log odds that are this large are certain.
_CERTAIN = 1e-9
# Values of rho that are less likely than this are left out.
_UNLIKELY = 1e-3


class SharedFate(NamedTuple):
    """What the labelled rows of the groups say: how much rows of one group share, and the luck of each group.

    `luck` has the law of u for each value of rho that is kept (values x groups x places); `group` is that of each
    missing cell, `correlation` that of two labels of one group. `curve` has the threshold of each missing cell that the
    labelled rows would give it, NaN where its group has none.
    """

    rho: FloatArray
    weight: FloatArray
    luck: FloatArray
    group: IntArray
    correlation: float
    curve: FloatArray

    @property
    def mean(self) -> float:
        """The mean of rho."""
        return float(self.rho @ self.weight)

    def thresholds(self, p: FloatArray, rho: float) -> FloatArray:
        """Thresholds of the missing cells with these chances (cells, or nodes x cells).

        The more a group shares, the more its missing rows go by the curve by which the labelled rows beside them tell
        of its luck: where two rows have one label, another curve must not tell them apart.
        """
        z = thresholds(p)
        return np.where(np.isnan(self.curve), z, z + rho * (np.nan_to_num(self.curve) - z))


@dataclass(frozen=True, eq=False)
class ClusteredPosterior(Posterior):
    """Nodes at which rows of one group depend on each other; `probability` has what siblings say, `base` has not.

    `base` is aligned with the missing cells of the set (nodes x cells).
    """

    base: FloatArray = field(default_factory=lambda: np.zeros((1, 0)))
    fate: SharedFate | None = None

    independent: ClassVar[bool] = False

    def shift_log_odds(self, shift: float | FloatArray) -> Posterior:
        probability = super().shift_log_odds(shift).probability
        per_cell = np.broadcast_to(shift, self.probability.shape)[:, columns_of(self)]
        base = Posterior(self.weight, self.base).shift_log_odds(per_cell).probability
        return replace(self, probability=probability, base=base)

    def draw(
        self,
        node: int,
        missing: IntArray,
        size: int,
        rng: np.random.Generator,
        of_ties: np.random.Generator | None = None,
    ) -> IntArray:
        """Random labelings at a node: for each a value of rho, the luck of every group, and then the rows."""
        fate = self.fate
        assert fate is not None
        row = np.repeat(np.arange(missing.size), missing)
        groups = np.unique(fate.group)
        place = np.searchsorted(groups, fate.group)
        own, told = place[row], np.zeros(groups.size, dtype=np.bool_)
        told[place[~np.isnan(fate.curve)]] = True
        which = np.searchsorted(np.cumsum(fate.weight), (np.arange(size) + rng.random()) / size)
        labelings = np.zeros((size, missing.size), dtype=np.int64)
        single, starts = bool(np.all(missing == 1)), np.concatenate(([0], np.cumsum(missing)[:-1]))
        for r in np.unique(which):
            draws = np.flatnonzero(which == r)
            rho = float(fate.rho[min(r, fate.rho.size - 1)])
            luck = rng.standard_normal((draws.size, groups.size))
            luck[:, told] = _drawn(fate.luck[min(r, fate.rho.size - 1)][groups[told]], draws.size, rng)
            value = rng.standard_normal((draws.size, row.size))
            value *= np.sqrt(1.0 - rho)
            luck *= np.sqrt(rho)
            value += np.take(luck, own, axis=1)
            positive = value < fate.thresholds(self.base[node], rho)[row]
            if single:
                labelings[draws] = positive
            elif row.size:
                labelings[draws] = np.add.reduceat(positive.astype(np.int64), starts, axis=1)
        return labelings


def _drawn(law: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Draws of the luck of groups (draws x groups) with these laws on the places of u."""
    reached = np.cumsum(law, axis=1)
    reached[:, -1] = 1.0
    flat = (reached + np.arange(len(law))[:, None]).ravel()
    uniform = rng.random((size, len(law)))
    place = np.searchsorted(flat, (uniform + np.arange(len(law))).ravel()).reshape(size, -1) % LUCK.size
    return LUCK[place]


def clustered(nodes: Posterior, data: EvaluationSet) -> Posterior:
    """The nodes with rows of one group depending on each other as much as labelled rows of one group do.

    What is open about the probabilities was learnt as if every labelled row were one of its own: within a reason, nodes
    are moved apart by the root of what the sum of labels of a group varies more than that.
    """
    cells, group = data.cells, data.groups
    if group is None or np.all(np.bincount(group, cells.total) <= 1):
        return nodes  # every row is a group of its own
    fate = _fate(data, group)
    labelled = (cells.positives + cells.negatives).astype(np.float64)
    sizes = np.bincount(group, labelled)
    typical = float((sizes**2).sum() / max(float(sizes.sum()), 1.0))
    base = _widen(nodes.on_all_cells, np.sqrt(1.0 + fate.correlation * max(typical - 1.0, 0.0)))
    at = int(np.argmin(np.abs(fate.rho - fate.mean)))
    rho = float(fate.rho[at])
    updated = updated_chances(fate.thresholds(base, rho), fate.luck[at][fate.group], rho)
    sure = (base <= _CERTAIN) | (base >= 1.0 - _CERTAIN)
    return ClusteredPosterior(
        weight=nodes.weight,
        probability=np.where(sure, base, updated),
        shift=nodes.shift,
        reason=nodes.reason,
        reasons=nodes.reasons,
        base=base,
        fate=fate,
    )


def shared_in_words(nodes: Posterior) -> str:
    """What is taken for granted about rows of one group; empty where every row stands for itself."""
    if not isinstance(nodes, ClusteredPosterior) or nodes.fate is None:
        return ""
    number, shared = nodes.fate.luck.shape[1], nodes.fate.correlation
    among = counted(number, "group")
    return f"Rows of one group share their fate: {among}, labels within one are correlated by {shared:.2f}."


def _fate(data: EvaluationSet, group: IntArray) -> SharedFate:
    """What the labels say about rho and the luck of every group."""
    cells = data.cells
    positives, negatives = cells.positives.astype(np.float64), cells.negatives.astype(np.float64)
    seen = np.flatnonzero(positives + negatives)
    z, curve = np.zeros(seen.size), np.full(data.missing_cells.size, np.nan)
    if seen.size:
        unit = cells.score[0] >= 0.0 and cells.score[-1] <= 1.0
        fitted = (Beta() if unit else Platt()).fit_counts(cells.score, positives, negatives)
        every = thresholds(fitted.predict(cells.score))
        z, beside = every[seen], np.isin(group[data.missing_cells], group[seen])
        curve = np.where(beside, every[data.missing_cells], np.nan)
    n_groups = int(group.max()) + 1
    found = [luck_of_groups(z, positives[seen], negatives[seen], group[seen], n_groups, float(rho)) for rho in RHO]
    weight = posterior_of_rho(np.array([log_likelihood for _, log_likelihood in found]))
    kept = np.flatnonzero(weight >= _UNLIKELY * weight.max())
    rows = (positives + negatives)[seen]
    alike = [correlation(z, rows, float(rho)) for rho in RHO[kept]] if seen.size else RHO[kept]
    share = weight[kept] / weight[kept].sum()
    return SharedFate(
        rho=RHO[kept],
        weight=share,
        luck=np.stack([found[i][0] for i in kept]),
        group=group[data.missing_cells],
        correlation=float(share @ np.asarray(alike)),
        curve=curve,
    )


def _widen(posterior: Posterior, factor: float) -> FloatArray:
    """Move the log odds of the draws away from their mean under the same mechanism by this factor."""
    p = posterior.probability
    log_odds = logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN))
    shift = np.zeros_like(log_odds)
    reason = np.zeros(len(posterior), dtype=np.int64) if posterior.reason is None else posterior.reason
    for kind in np.unique(reason):
        draws = reason == kind
        weight = posterior.weight[draws] if posterior.weight[draws].sum() > 0.0 else np.ones(int(draws.sum()))
        center = weight @ log_odds[draws] / weight.sum()
        shift[draws] = (factor - 1.0) * (log_odds[draws] - center)
    shift[(p <= _CERTAIN) | (p >= 1.0 - _CERTAIN)] = 0.0
    return posterior.shift_log_odds(shift).probability
