"""Do delays of labels depend on more than the class: on the score, or on when a row was scored?"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc

from darkmetrics._kernels.age_grid import Ages
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.posterior.draws import posterior_mode
from darkmetrics._kernels.posterior.logistic import chance
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.label_models.late import Arrivals, ages_of, arrival_counts
from darkmetrics.missingness.checks import CLEARLY, LEVEL, AbsentError, p_text

CLASSES = ("positives", "negatives")
# Odds of a label that differ by less than this, as a logarithm, move no metric that anyone would act on; and where no
# delays are known, a share of rows without a label that is off by less than this.
_SMALL, _SMALL_SHARE = 0.2, 0.02
# Labels of a class that each half of the cohorts needs, and rows that a stretch of ages should expect with and without.
_LEAST_LABELS, _LEAST_ROWS = 20.0, 5.0
# Prior standard deviation of the log of a factor on the odds of a label: hardly any.
_FACTOR_SD = 10.0


@dataclass(frozen=True)
class DelayCheck:
    """Whether delays are the same in two parts of the rows.

    Attributes
    ----------
    p_value : float
        Of a test that they are.
    effect : float
        How far they differ: the logarithm of the factor between the odds of getting the label in a stretch of time;
        where no delays are known, how far the share of rows without a label is off at some age.
    is_small : bool
        Whether that is too little to matter.
    words : str
        What was found, as a sentence.
    """

    p_value: float
    effect: float
    is_small: bool
    words: str

    @property
    def differs(self) -> bool:
        """Whether they differ at the 5% level, by more than a little."""
        return self.p_value < LEVEL and not self.is_small

    @property
    def is_clear(self) -> bool:
        """Whether they clearly do (0.1% level): worth a warning."""
        return self.p_value < CLEARLY and not self.is_small


def zeros_mean_not_so_far(data: EvaluationSet) -> bool:
    """Whether 0 seems to stand for labels that are yet to come: no row lacks one, and fewer young rows are positive.

    With a maturity, or with delays, it is known what a 0 means.
    """
    ages, cells = ages_of(data), data.cells
    if data.n_missing or ages.mature.any() or ages.timed.any():
        return False
    rows, positives = (np.bincount(ages.age, count) for count in (cells.total, cells.positives))
    young = np.cumsum(rows) <= rows.sum() / 2.0
    n, found = (np.array([part[young].sum(), part[~young].sum()]) for part in (rows, positives))
    of_all = found.sum() / n.sum()
    if not (n.all() and 0.0 < of_all < 1.0):
        return False
    less = found[1] / n[1] - found[0] / n[0]
    return bool(less > 0.0 and chdtrc(1, less**2 / (of_all * (1.0 - of_all) * (1.0 / n).sum())) < CLEARLY)


def by_score(fitted: Arrivals) -> DelayCheck:
    """Delays by the score: the factors of the model itself, against none."""
    grid = fitted.grid
    if not grid.cuts.size:
        raise AbsentError("all rows have one score.")
    factors = fitted.draws[:, -grid.cuts.size :]
    mean, covariance = factors.mean(axis=0), np.atleast_2d(np.cov(factors.T))
    # The prior at 0 makes this smaller than chi-square under equal delays, and false alarms rarer.
    p_value = float(chdtrc(mean.size, mean @ np.linalg.solve(covariance, mean)))
    at = int(np.argmax(np.abs(mean) / np.sqrt(np.diag(covariance))))
    low, high = np.exp(np.quantile(factors[:, at], [0.05, 0.95]))
    found = DelayCheck(p_value, float(mean[at]), bool(abs(mean[at]) < _SMALL), "")
    if not found.differs:
        return replace(found, words=f"Delays are about the same at low and high scores ({p_text(p_value)}).")
    soon = "sooner" if mean[at] > 0.0 else "later"
    ends = [f"{cut:.3g}" for cut in grid.cuts] + [""]
    rows = f"scores from {ends[at]}" + (f" to {ends[at + 1]}" if ends[at + 1] else " on")
    return replace(
        found,
        words=(
            f"Labels of rows with {rows} come {soon} than at low scores: at any age the odds of getting one are "
            f"{np.exp(mean[at]):.2g} times as high ({low:.2g} to {high:.2g}, {p_text(p_value)})."
        ),
    )


def by_cohort(fitted: Arrivals, data: EvaluationSet) -> DelayCheck:
    """Delays of rows scored early against those of rows scored late; without delays, what ages alone can refute."""
    ages = ages_of(data)
    bin_ = fitted.grid.bin_of(ages.age)
    rows = np.bincount(bin_, data.cells.total, fitted.grid.bins)
    # Rows of the first bins, about half of all, were scored last.
    late_bins = np.arange(rows.size) < max(1, int(np.argmin(np.abs(np.cumsum(rows) / rows.sum() - 0.5))) + 1)
    if not rows[~late_bins].sum():
        raise AbsentError("all rows are of about the same age.")
    if not ages.timed.any():
        return _by_age(fitted, ages)
    return _by_delay(fitted, data, ages, late_bins)


def _by_delay(fitted: Arrivals, data: EvaluationSet, ages: Ages, late_bins: BoolArray) -> DelayCheck:
    """Rao's score test of a factor on the odds of a label for rows scored late, one for each class."""
    grid, likelihood, cells = fitted.grid, fitted.likelihood, data.cells
    late = late_bins[grid.bin_of(ages.age)]
    known = ages.timed & ~ages.mature
    both = [[float(labels[known & (late == side)].sum()) for side in (False, True)] for labels in _labels(data)]
    tested = [y for y, counts in enumerate(both) if min(counts) >= _LEAST_LABELS]
    if not tested:
        raise AbsentError(f"fewer than {_LEAST_LABELS:.0f} delays of a class are known in each half of the rows.")
    # The likelihood of the fit with zones for early and for late rows, and a parameter more for each class.
    zones, width = 2 * grid.zones, likelihood.X.shape[1]
    zone = grid.zone_of(cells.score) + grid.zones * late
    split = likelihood.place + grid.zones * grid.bins * late_bins[likelihood.place % grid.bins]
    base = likelihood.map
    design = np.zeros((2, zones, grid.bins + 1, base.shape[3] + len(tested)))
    design[..., : base.shape[3]] = np.concatenate([base, base], axis=1)
    for k, y in enumerate(tested):
        design[y, grid.zones :, : grid.bins, base.shape[3] + k] = 1.0
    size = likelihood.prior_mean.size
    precision = np.diag(np.full(size + len(tested), _FACTOR_SD**-2.0))
    precision[:size, :size] = likelihood.prior_precision
    counts: dict[str, Any] = {**arrival_counts(grid, ages, data, zone.astype(np.int64), zones)}
    wider = replace(
        likelihood,
        **counts,
        place=split.astype(np.int64),
        prior_mean=np.append(likelihood.prior_mean, np.zeros(len(tested))),
        prior_precision=precision,
        design=design,
    )
    assert wider.map.shape[3] + width == size + len(tested)
    start = np.append(fitted.mode, np.zeros(len(tested)))
    at = wider.expand(start)
    # What the other parameters can explain is taken out.
    carried = np.linalg.solve(at.precision[:size, :size], at.precision[:size, size:])
    score = at.gradient[size:] - carried.T @ at.gradient[:size]
    information = at.precision[size:, size:] - at.precision[size:, :size] @ carried
    effect, best = np.linalg.solve(information, score), None
    statistic = float(score @ effect)
    if np.linalg.eigvalsh(information)[0] <= 0.0:
        # Bent the wrong way here, a mixture of classes has its best factors elsewhere: by the ratio of likelihoods.
        best = posterior_mode(wider.expand, start)[0]
        effect, statistic = best[size:], 2.0 * (wider.expand(best).value - at.value)
    p_value = float(chdtrc(len(tested), max(0.0, statistic)))
    most = int(np.argmax(np.abs(effect)))
    found = DelayCheck(p_value, float(effect[most]), bool(abs(effect[most]) < _SMALL), "")
    if not found.differs:
        return replace(found, words=f"Rows scored early and late get their labels equally fast ({p_text(p_value)}).")
    # The test needs no fit; how large the factors are does, away from 1.
    effect = (posterior_mode(wider.expand, start)[0] if best is None else best)[size:]
    found = replace(found, effect=float(effect[most]))
    soon = "sooner" if effect[most] > 0.0 else "later"
    return replace(
        found,
        words=(
            f"Rows scored late get labels of {CLASSES[tested[most]]} {soon} than rows scored early did: at any age the "
            f"odds of getting one are about {np.exp(effect[most]):.2g} times as high "
            f"({p_text(p_value)})."
        ),
    )


def _by_age(fitted: Arrivals, ages: Ages) -> DelayCheck:
    """How many rows have no label at each age, against the fit: equal delays leave no more of them at a higher age."""
    grid, likelihood = fitted.grid, fitted.likelihood
    mean = fitted.draws.mean(axis=0)
    survival = np.exp(likelihood.log_survival(likelihood.hazards(mean))).reshape(2, -1)[:, likelihood.place]
    p = chance(likelihood.X @ mean[: likelihood.X.shape[1]])
    left = p * survival[0] + (1.0 - p) * survival[1]
    count = likelihood.positives + likelihood.negatives + likelihood.missing
    bin_ = likelihood.place % grid.bins
    # Rows that have reached the maturity have all their labels by definition.
    last = int(grid.bin_of(ages.age[ages.mature]).min()) if ages.mature.any() else grid.bins
    if last < 2:
        raise AbsentError("all rows are of about the same age.")
    values = (likelihood.missing, count * left, count * left * (1.0 - left), count)
    columns: list[FloatArray] = [np.bincount(bin_, value, grid.bins)[:last].astype(np.float64) for value in values]
    group = _stretches(columns[1], columns[3] - columns[1])
    seen, expected, variance, n = (np.bincount(group, column) for column in columns)
    # The fit has a parameter for every age: this is smaller than chi-square, and false alarms are rarer.
    p_value = float(chdtrc(n.size, float(np.sum((seen - expected) ** 2 / np.maximum(variance, 1e-12)))))
    off = (seen - expected) / n
    most = int(np.argmax(np.abs(off)))
    found = DelayCheck(p_value, float(off[most]), bool(abs(off[most]) < _SMALL_SHARE), "")
    if not found.differs:
        words = f"The share of rows without a label falls with age, as equal delays have it ({p_text(p_value)})"
        return replace(found, words=f"{words}; more can be said where delays are known.")
    place = np.flatnonzero(group == most)
    low, high = grid.edges[place[0]], grid.edges[place[-1] + 1]
    return replace(
        found,
        words=(
            f"Of rows of age {low:.3g} to {high:.3g}, {seen[most] / n[most]:.1%} have no label where equal delays for "
            f"all rows would have {expected[most] / n[most]:.1%} ({p_text(p_value)})."
        ),
    )


def _stretches(first: FloatArray, second: FloatArray) -> IntArray:
    """Neighbours joined until both sums of each stretch are large enough, which one stretch need not be."""
    group, number, sums = np.zeros(first.size, dtype=np.int64), 0, np.zeros(2)
    for k in range(first.size):
        group[k] = number
        sums += (first[k], second[k])
        if sums.min() >= _LEAST_ROWS:
            number, sums = number + 1, np.zeros(2)
    # What is left at the end belongs to the last whole one.
    return np.minimum(group, max(0, number - 1))


def _labels(data: EvaluationSet) -> tuple[IntArray, IntArray]:
    return data.cells.positives, data.cells.negatives
