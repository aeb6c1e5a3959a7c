"""Clusters: labels of rows of one group (a customer, a household) are correlated.

Row i of group g is positive where `sqrt(rho) u_g + sqrt(1 - rho) e_i < z_i`, with standard normal u_g and e_i, and
`z_i = Phi^-1(p_i)`. Its probability is p_i for every rho, so that clusters go with any mechanism. Labeled rows of a
group determine rho and the effect u_g of the group, on a grid.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import logit, ndtr, ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._text import counted
from darkmetrics.calibrators import Beta, Platt
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.posterior import Posterior, columns_of

# Values of rho, with a uniform prior from 0 to 1; those below this fraction of the highest weight are dropped.
_RHO = np.array([0.0, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.96, 0.99, 0.999, 0.9999])
_MIN_WEIGHT = 1e-3
# Values of the effect of a group and their prior masses.
_EFFECT = np.linspace(-5.0, 5.0, 101)
_MASS = np.exp(-0.5 * _EFFECT**2) / np.exp(-0.5 * _EFFECT**2).sum()
# Probabilities this close to 0 or 1 are certain; those of labels are clipped for logarithms.
_CERTAIN, _MIN_PROBABILITY = 1e-9, 1e-12


class Clusters(NamedTuple):
    """Posterior of rho and of the effects of groups, given the labeled rows.

    Attributes
    ----------
    rho, weight : array (n_rho,)
        Values of rho and their probabilities.
    effect : array (n_rho, n_groups, n_values)
        Distribution of the effect of each group.
    group : array of int
        Group of each missing cell.
    curve : array
        z of each missing cell under a curve through the labeled rows; NaN if its group has no label.
    correlation : float
        Correlation of two labels of one group.
    """

    rho: FloatArray
    weight: FloatArray
    effect: FloatArray
    group: IntArray
    curve: FloatArray
    correlation: float

    @property
    def mean(self) -> float:
        """Mean of rho."""
        return float(self.rho @ self.weight)

    def compute_z(self, p: FloatArray, rho: float) -> FloatArray:
        """Return z of the missing cells with these probabilities (cells, or draws x cells).

        The effect of a group was inferred with the curve of the labeled rows. If two rows share a label, a different
        curve must not separate them: the larger rho, the closer z is to that curve.
        """
        z = compute_z(p)
        return np.where(np.isnan(self.curve), z, z + rho * (np.nan_to_num(self.curve) - z))


@dataclass(frozen=True, eq=False)
class ClusteredPosterior(Posterior):
    """Posterior draws with correlated labels in groups.

    `probability` is given the labels of the group; `base`, aligned with the missing cells of the set, is without them.
    """

    base: FloatArray = field(default_factory=lambda: np.zeros((1, 0)))
    clusters: Clusters | None = None

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
        """Draw label assignments: for each a value of rho, the effect of every group, and then the rows."""
        clusters = self.clusters
        assert clusters is not None
        row = np.repeat(np.arange(missing.size), missing)
        groups, column = np.unique(clusters.group, return_inverse=True)
        has_label = np.zeros(groups.size, dtype=np.bool_)
        has_label[column[~np.isnan(clusters.curve)]] = True
        # Stratified draws of rho; rounding may leave the cumulative weight below 1.
        level = (np.arange(size) + rng.random()) / size
        index = np.minimum(np.searchsorted(np.cumsum(clusters.weight), level), clusters.rho.size - 1)
        labels = np.zeros((size, missing.size), dtype=np.int64)
        starts = np.cumsum(missing) - missing
        for r in np.unique(index):
            draws, rho = np.flatnonzero(index == r), float(clusters.rho[r])
            effect = rng.standard_normal((draws.size, groups.size))
            effect[:, has_label] = _draw_effects(clusters.effect[r][groups[has_label]], draws.size, rng)
            value = rng.standard_normal((draws.size, row.size))
            value *= np.sqrt(1.0 - rho)
            effect *= np.sqrt(rho)
            value += np.take(effect, column[row], axis=1)
            is_positive = value < clusters.compute_z(self.base[node], rho)[row]
            if np.all(missing == 1):
                labels[draws] = is_positive
            elif row.size:
                labels[draws] = np.add.reduceat(is_positive.astype(np.int64), starts, axis=1)
        return labels


def _draw_effects(masses: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """Draw effects of groups (draws x groups) with these masses of the values."""
    cdf = np.cumsum(masses, axis=1)
    cdf[:, -1] = 1.0
    first = np.arange(len(masses))
    index = np.searchsorted((cdf + first[:, None]).ravel(), (rng.random((size, len(masses))) + first).ravel())
    return _EFFECT[index.reshape(size, -1) % _EFFECT.size]


def clustered(posterior: Posterior, data: EvaluationSet) -> Posterior:
    """Return a posterior with correlated labels in the groups of the set, as far as its labeled rows are correlated.

    A mechanism treats labeled rows as independent. The draws are therefore spread by the root of the design effect.
    """
    cells, group = data.cells, data.groups
    if group is None or np.all(np.bincount(group, cells.total) <= 1):
        return posterior  # every row is a group
    clusters = _fit_clusters(data, group)
    n_labeled = np.bincount(group, cells.positives + cells.negatives)
    size = float((n_labeled**2).sum() / max(float(n_labeled.sum()), 1.0))
    base = _spread_draws(posterior.on_all_cells, np.sqrt(1.0 + clusters.correlation * max(size - 1.0, 0.0)))
    r = int(np.argmin(np.abs(clusters.rho - clusters.mean)))
    rho = float(clusters.rho[r])
    z, masses = clusters.compute_z(base, rho), clusters.effect[r][clusters.group]
    mean = masses @ _EFFECT
    variance = np.maximum(masses @ _EFFECT**2 - mean**2, 0.0)
    updated = ndtr((z - np.sqrt(rho) * mean) / np.sqrt(1.0 - rho + rho * variance))
    is_certain = (base <= _CERTAIN) | (base >= 1.0 - _CERTAIN)
    return ClusteredPosterior(
        weight=posterior.weight,
        probability=np.where(is_certain, base, updated),
        shift=posterior.shift,
        mechanism=posterior.mechanism,
        mechanisms=posterior.mechanisms,
        base=base,
        clusters=clusters,
    )


def describe_correlation(posterior: Posterior) -> str:
    """Describe the correlation of labels in groups; empty if every row is a group."""
    if not isinstance(posterior, ClusteredPosterior) or posterior.clusters is None:
        return ""
    n_groups, correlation = posterior.clusters.effect.shape[1], posterior.clusters.correlation
    return f"Labels within a group are correlated: by {correlation:.2f}, over {counted(n_groups, 'group')}."


def compute_z(p: FloatArray) -> FloatArray:
    """Return Phi^-1 of probabilities, which may be 0 and 1."""
    return np.asarray(ndtri(np.clip(p, _MIN_PROBABILITY, 1.0 - _MIN_PROBABILITY)))


def _compute_probability(z: FloatArray, rho: float) -> FloatArray:
    """Return the probability of each row at every value of the effect (rows x values)."""
    return np.asarray(ndtr((z[:, None] - np.sqrt(rho) * _EFFECT) / np.sqrt(1.0 - rho)))


def infer_effects(
    z: FloatArray, positives: FloatArray, negatives: FloatArray, group: IntArray, n_groups: int, rho: float
) -> tuple[FloatArray, float]:
    """Return the distribution of the effect of each group given its labels, and the log likelihood of the labels."""
    log_mass = np.zeros((n_groups, _EFFECT.size))
    p = np.clip(_compute_probability(z, rho), _MIN_PROBABILITY, 1.0 - _MIN_PROBABILITY)
    np.add.at(log_mass, group, positives[:, None] * np.log(p) + negatives[:, None] * np.log1p(-p))
    peak = log_mass.max(axis=1, keepdims=True)
    mass = np.exp(log_mass - peak) * _MASS
    total = mass.sum(axis=1, keepdims=True)
    return mass / total, float((peak + np.log(total)).sum())


def compute_correlation(z: FloatArray, rows: FloatArray, rho: float) -> float:
    """Return the correlation of the labels of two rows of a group with equal probabilities, over all rows."""
    p, both_positive = ndtr(z), _compute_probability(z, rho) ** 2 @ _MASS
    return float(rows @ (both_positive - p**2) / max(float(rows @ (p * (1.0 - p))), 1e-300))


def _fit_clusters(data: EvaluationSet, group: IntArray) -> Clusters:
    cells = data.cells
    positives, negatives = cells.positives.astype(np.float64), cells.negatives.astype(np.float64)
    labeled = np.flatnonzero(positives + negatives)
    z, curve = np.zeros(labeled.size), np.full(data.missing_cells.size, np.nan)
    if labeled.size:
        is_probability = cells.score[0] >= 0.0 and cells.score[-1] <= 1.0
        fitted = (Beta() if is_probability else Platt()).fit_counts(cells.score, positives, negatives)
        all_z = compute_z(fitted.predict(cells.score))
        z, has_label = all_z[labeled], np.isin(group[data.missing_cells], group[labeled])
        curve = np.where(has_label, all_z[data.missing_cells], np.nan)
    labels = z, positives[labeled], negatives[labeled], group[labeled], int(group.max()) + 1
    effects, log_likelihoods = zip(*(infer_effects(*labels, float(rho)) for rho in _RHO), strict=True)
    weight = np.gradient(_RHO) * np.exp(np.array(log_likelihoods) - max(log_likelihoods))
    likely = np.flatnonzero(weight >= _MIN_WEIGHT * weight.max())
    weight = weight[likely] / weight[likely].sum()
    correlations = [compute_correlation(z, (positives + negatives)[labeled], float(rho)) for rho in _RHO[likely]]
    return Clusters(
        rho=_RHO[likely],
        weight=weight,
        effect=np.stack([effects[r] for r in likely]),
        group=group[data.missing_cells],
        curve=curve,
        correlation=float(weight @ (correlations if labeled.size else _RHO[likely])),
    )


def _spread_draws(posterior: Posterior, factor: float) -> FloatArray:
    """Return probabilities whose log odds are this many times as far from their mean under the same mechanism."""
    p = posterior.probability
    log_odds = logit(np.clip(p, _CERTAIN, 1.0 - _CERTAIN))
    mechanism = np.zeros(len(posterior), dtype=np.int64) if posterior.mechanism is None else posterior.mechanism
    shift = np.zeros_like(log_odds)
    for k in np.unique(mechanism):
        draws = mechanism == k
        weight = posterior.weight[draws] if posterior.weight[draws].sum() > 0.0 else np.ones(int(draws.sum()))
        shift[draws] = (factor - 1.0) * (log_odds[draws] - weight @ log_odds[draws] / weight.sum())
    shift[(p <= _CERTAIN) | (p >= 1.0 - _CERTAIN)] = 0.0
    return posterior.shift_log_odds(shift).probability
