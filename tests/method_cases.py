"""Cases for the accuracy of the four methods: positions and probabilities of missing rows, ties and weights."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import darkmetrics as dm
from darkmetrics.distributions import MetricDistribution
from darkmetrics.distributions.combined import combine_terms
from darkmetrics.distributions.functional import Functional
from darkmetrics.methods import Auto
from darkmetrics.metrics import metrics_from
from darkmetrics.posterior import Posterior

METRICS = (
    *("roc_auc", "average_precision", "brier", "log_loss", "f1", "mcc", "balanced_accuracy", "recall"),
    *("recall_at_k(0.1)", "lift_at_k(20)", "roc_auc(ties='full')", "auc difference", "f1 difference", "ks"),
)
LAYOUTS = ("spread", "block", "two blocks", "top", "alternating")
SCORES = ("distinct", "grades", "one big tie")
LABEL_RATES = ("calibrated", "rare", "nearly certain", "half", "never defined")
WEIGHTS = ("none", "lognormal", "pareto", "one heavy")
SIZES = (17, 40, 120, 400, 1500)
DRAWS = (1, 24)
# Two standard errors of the level of a quantile in 2^16 draws, and the jump (in sd) that makes a gap.
LEVEL_NOISE, GAP = 0.002, 0.05
_ROWS = 3000


@dataclass(frozen=True)
class Case:
    """A combination of settings; `number` is its seed. The fields are columns of `experiments/results/accuracy.csv`."""

    metric: str
    place: str
    score: str
    chance: str
    weight: str
    size: int
    draws: int
    number: int

    @property
    def n_rows(self) -> int:
        """Number of rows; every third case has half of its rows missing."""
        return max(_ROWS, 2 * self.size) if self.number % 3 else 2 * self.size


def cases(n: int, seed: int = 0) -> Iterator[Case]:
    """Draw random combinations; a seed reproduces them."""
    rng = np.random.default_rng(seed)
    axes: tuple[tuple[Any, ...], ...] = (METRICS, LAYOUTS, SCORES, LABEL_RATES, WEIGHTS, SIZES, DRAWS)
    for number in range(n):
        metric, layout, score, label_rate, weight, size, draws = (axis[int(rng.integers(len(axis)))] for axis in axes)
        yield Case(metric, layout, score, label_rate, weight, size, draws, number)


def build(case: Case) -> tuple[Functional, Posterior]:
    """Build the functional of a case, and the posterior of its missing rows."""
    rng = np.random.default_rng([case.number, case.size])
    n = case.n_rows
    s = np.sort(rng.random(n))
    other = np.clip(s + 0.2 * rng.standard_normal(n), 0.0, 1.0)
    if case.score == "grades":
        s, other = np.ceil(7 * s) / 7, np.ceil(7 * other) / 7
    elif case.score == "one big tie":
        s[n // 4 : 3 * n // 4] = 0.5
    position = _draw_positions(case.place, n, case.size, rng)
    label_probability = np.clip(0.1 + 0.8 * s, 0.0, 1.0)
    y = (rng.random(n) < label_probability).astype(float)
    p = np.clip(label_probability[position] + 0.05 * rng.standard_normal(case.size), 0.02, 0.98)
    if case.chance in ("rare", "never defined"):
        p = rng.uniform(0.2, 1.0, case.size) * (0.3 / case.size if case.chance == "never defined" else 0.03)
        y = np.zeros(n) if case.chance == "never defined" else (rng.random(n) < 0.002).astype(float)
    elif case.chance == "nearly certain":
        p = np.where(rng.random(case.size) < 0.5, 0.01, 0.99)
    elif case.chance == "half":
        p = np.full(case.size, 0.5)
    y[position] = np.nan
    w = None
    if case.weight != "none":
        w = {"lognormal": rng.lognormal(0.0, 1.5, n), "pareto": 1.0 + rng.pareto(1.1, n)}.get(case.weight, np.ones(n))
        if case.weight == "one heavy":
            w[position[case.size // 2]] = float(case.size)
    data = dm.EvaluationSet(y, s, sample_weight=w)
    shift = 0.4 * rng.standard_normal((case.draws, 1)) if case.draws > 1 else np.zeros((1, 1))
    probability = 1.0 / (1.0 + (1.0 - p) / p * np.exp(-shift))
    # Cells with missing rows are sorted by score; rows of equal score and weight share a cell.
    cells = data.cells
    key = s[position] if w is None else s[position] + 1j * w[position]
    cell_key = cells.score[data.missing_cells]
    if w is not None:
        assert cells.weight is not None
        cell_key = cell_key + 1j * cells.weight[data.missing_cells]
    owner = np.array([int(np.flatnonzero(cell_key == row_key)[0]) for row_key in key])
    counts = np.bincount(owner, minlength=cell_key.size)
    per_cell = np.stack([np.bincount(owner, row, cell_key.size) / counts for row in probability])
    weight = rng.uniform(0.5, 1.0, case.draws)
    posterior = Posterior(weight / weight.sum(), per_cell)
    if case.metric.endswith("difference"):
        name = "roc_auc" if case.metric.startswith("auc") else "f1"
        (metric,) = metrics_from(name)
        second = metric.bind(dm.EvaluationSet(y, s, y_pred=other >= 0.5, sample_weight=w), np.nan)
        if second.missing.size != data.missing_cells.size or name == "roc_auc":
            second = metrics_from("gini" if name == "roc_auc" else "recall")[0].bind(data, np.nan)
        return combine_terms([metric.bind(data, np.nan), second], lambda x, y: x - 0.7 * y), posterior
    (metric,) = metrics_from(case.metric)
    return metric.bind(data, np.nan), posterior


def _draw_positions(layout: str, n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    if layout == "spread":
        return np.sort(rng.choice(n, m, replace=False))
    if layout == "alternating":
        return np.arange(0, 2 * m, 2) + (n - 2 * m) // 2
    if layout == "top":
        return np.arange(n - m, n)
    if layout == "block":
        return np.arange(m) + (n - m) // 3
    half = m // 2
    return np.concatenate([np.arange(half) + n // 10, np.arange(m - half) + (n - (m - half)) * 9 // 10])


def compute(functional: Functional, posterior: Posterior) -> MetricDistribution:
    """Compute the distribution by the first method that applies."""
    return next(Auto().distributions([functional], posterior))


def simulate(functional: Functional, posterior: Posterior, n: int, rng: np.random.Generator) -> np.ndarray:
    """Plain draws: a posterior draw, then every label of its own; undefined values are left out."""
    values = []
    step = max(1, 2**22 // max(1, int(functional.missing.sum())))
    for start in range(0, n, step):
        size = min(step, n - start)
        draw = rng.choice(posterior.weight.size, size, p=posterior.weight / posterior.weight.sum())
        labels = (
            rng.binomial(functional.missing, posterior.probability[draw])
            if functional.missing.max() > 1
            else (rng.random((size, functional.missing.size)) < posterior.probability[draw]).astype(np.int64)
        )
        values.append(functional.values(labels))
    joined = np.concatenate(values)
    return joined[~np.isnan(joined)]


def distances(distribution: MetricDistribution, values: np.ndarray) -> tuple[float, float]:
    """Largest difference of the cdfs, and largest error of the 5% and 95% quantiles in standard deviations.

    Draws do not define a quantile in a gap of the distribution: one that moves by more than `GAP` if the level moves by
    `LEVEL_NOISE`. Its error is the distance to the interval over which it moves.
    """
    values = np.sort(values)
    low, high = (
        np.searchsorted(values, values, "left") / values.size,
        np.searchsorted(values, values, "right") / values.size,
    )
    # Rounding moves values that are equal to one side or the other.
    blur = 1e-9 * max(1e-300, float(np.abs(values).max()))
    above = np.asarray(distribution.cdf(values + blur)) - high
    below = low - np.asarray(distribution.cdf(values - blur))
    error = max(float(-above.min()), float(-below.min()), 0.0)
    levels = np.array([0.05, 0.95])
    noise = LEVEL_NOISE * np.array([[-1.0], [0.0], [1.0]])
    first, middle, last = np.quantile(values, levels + noise, method="inverted_cdf")
    quantiles, sd = np.asarray(distribution.ppf(levels)), float(values.std())
    is_gap = last - first > GAP * sd
    moved = np.abs(quantiles - np.where(is_gap, np.clip(quantiles, first, last), middle)).max()
    return error, float(moved / sd) if sd > 0.0 else 0.0
