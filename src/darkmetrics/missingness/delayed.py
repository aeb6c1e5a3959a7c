"""Delayed labels: the age of a row says why its label is missing (model in `delay_model.py`)."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import chdtrc, softmax

from darkmetrics._kernels.age_grid import Ages, bin_start
from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.argument_types import Duration, PointInTime, RowValues
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.age_cells import (
    AgeGrid,
    ages_of,
    count_arrivals,
)
from darkmetrics.missingness.base import Mechanism, missing_prevalence, of_weight
from darkmetrics.missingness.checks import CLEARLY
from darkmetrics.missingness.class_tables import build_by_age
from darkmetrics.missingness.classes import by_table, class_fit_data
from darkmetrics.missingness.delay_fit import (
    DelayDraws,
    FittedSetting,
    MissingCounts,
    compute_label_probability,
    count_missing,
    expand_posterior,
)
from darkmetrics.missingness.delay_model import (
    COHORT_SD,
    QUICK_SD,
    WALK_SD,
    DelayData,
    Setting,
    build_drift_precision,
    build_rate_columns,
    declare,
)
from darkmetrics.missingness.fit_data import N_DRAWS, FitData
from darkmetrics.missingness.propensity import Propensity
from darkmetrics.missingness.reference import REFERENCE_CODE
from darkmetrics.missingness.sampling import draws_for
from darkmetrics.posterior import Posterior
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.posterior.likelihood import Likelihood
from darkmetrics.posterior.mode import find_mode
from darkmetrics.posterior.representatives import representatives
from darkmetrics.wording import named, setting

# Who may be reviewed.
REVIEWED = ("all", "by_score", "propensity")
# Where the evidence is less clear than this ratio, data cannot tell the two, and each keeps the smallest weight.
_CLEAR_RATIO, _MIN_WEIGHT = 20.0, 0.25
# Groups of scores by which the fit is tested, and fractions of rows without a label that do not matter.
SCORE_GROUPS, SMALL_FRACTION = 3, 0.02
# Probability of a review by score from which on it is mentioned; differences between old rows that are.
_MIN_MENTIONED, _MIN_DIFFERENCE, _CLEAR_SQUARE = 0.02, 0.1, 9.0


@dataclass(frozen=True, eq=False)
class Delayed(Mechanism):
    """Labels arrive with a delay: the age of a row says why its label is missing.

    Old rows are nearly complete, young ones are not; which labels come first (frauds confirmed late, good customers
    declared good by day 90) is seen from how positives and negatives fill up with age. Delays are taken to be the same
    for all times of scoring, and may depend on the class and on the score; the share of positives at a score may
    drift. What never arrives is what is left at the oldest age.

    Parameters
    ----------
    age : array-like of float or timedelta, optional
        Time since each row was scored; True: that of an EvaluationSet.
    delay : array-like of float or timedelta, optional
        Time from scoring to the arrival of the label, for each labeled row, in the unit of `age`: narrows intervals.
    scored_at : str, optional
        In place of `age`: the column of `data` with dates or datetimes at which rows were scored. If one of the two
        columns has dates alone, ages and delays are whole days.
    labeled_at : str, optional
        The column with the time when each label arrived, null where there is no label: narrows intervals. Times have a
        time zone in both columns or in neither.
    as_of : date, datetime or text like "2026-03-09", optional
        The day, up to its end, or the moment at which the table was taken; needed with `scored_at`. One in the past
        answers as of then: rows scored later are left out, and labels that arrived later are hidden. Without
        `labeled_at` these cannot be told from others, and a `MissingnessWarning` says so.
    maturity : float or timedelta, optional
        Only positives arrive (chargebacks): rows of at least this age (in days with `scored_at`) without a label are
        negative. Younger negatives are not known yet, unless they have a time of arrival.
    reviewed : {"all", "by_score"} or Propensity, optional
        Who is reviewed, so that a label can arrive: every row, a fraction of the rows that may depend on the score in
        any way, or each row with a known probability. If not passed, the first two are weighed by how well they explain
        which rows have a label.
    calibrator : {"flexible", "beta", "platt"}, Flexible, Beta or Platt
        The curve from scores to probabilities.
    n_draws : int
        Number of posterior draws.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(3000)
    >>> y = rng.random(3000) < y_score
    >>> age, delay = rng.integers(0, 100, 3000), np.where(y, rng.exponential(40, 3000), rng.exponential(10, 3000))
    >>> y_true = np.where(delay <= age, y, np.nan)
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Delayed(age=age), metrics="precision")
    >>> print(f"{result['precision'].mean():.2f}, in truth {y[y_score >= 0.5].mean():.2f}")
    0.72, in truth 0.73
    """

    row_fields: ClassVar[tuple[str, ...]] = ("age", "delay", "scored_at", "labeled_at", "as_of", "maturity")

    age: RowValues = field(default=None, repr=False)
    delay: RowValues = field(default=None, repr=False)
    scored_at: RowValues = None
    labeled_at: RowValues = None
    as_of: PointInTime | None = None
    maturity: Duration | None = None
    reviewed: str | Propensity | None = None
    calibrator: CalibratorLike = "flexible"
    n_draws: int = N_DRAWS

    def row_values(self) -> dict[str, Any]:
        review = self.reviewed.row_values() if isinstance(self.reviewed, Propensity) else {}
        return super().row_values() | review

    def without_rows(self) -> Self:
        changed: dict[str, Any] = dict.fromkeys(self.row_fields)
        if isinstance(self.reviewed, Propensity):
            changed["reviewed"] = "propensity"
        return replace(self, **changed)

    def posterior(self, data: EvaluationSet) -> Posterior:
        return self.learn(data)[1]

    def learn(self, data: EvaluationSet) -> tuple["FittedDelays", Posterior]:
        """Return what the rows of a set say about delays, and the posterior of the set."""
        fitted = self.fit(data)
        return fitted, fitted.posterior(data)

    def fit(self, data: EvaluationSet) -> "FittedDelays":
        """Return what the rows of a set say about delays, for the rows of this set or of a part of it."""
        ages = ages_of(data)
        fit_data = FitData.of(data)
        _check_classes(fit_data, ages)
        uses_propensity = self.reviewed == "propensity"
        grid = AgeGrid.of(data, fit_data.logistic_calibrator(self.calibrator), uses_propensity=uses_propensity)
        delay_data = DelayData.of(grid, data, fit_data.credit)
        reviewed_by = REVIEWED[:2] if self.reviewed is None else (str(self.reviewed),)
        fits = _fit_settings(delay_data, reviewed_by)
        best = max(fits, key=lambda fit: fit.log_evidence)
        misfit = count_missing(best, SCORE_GROUPS)
        weight = _weigh(fits)
        table, _ = delay_data.table.with_missing()
        sides = np.stack([table.decided, table.missing - table.decided], axis=1)
        sizes = np.diff(np.rint(self.n_draws * np.cumsum(weight)).astype(np.int64), prepend=0)
        parts = []
        for fit, size in zip(fits, sizes.tolist(), strict=True):
            if size:
                draws, w = fit.draw(draws_for(self.n_draws))
                above, below = (compute_label_probability(grid, draws, table) @ sides).T
                parts.append(draws.select(representatives(above, below, w, size)))
        draws = DelayDraws(*(np.concatenate(values) for values in zip(*parts, strict=True)))
        if is_misfit(misfit):  # counts vary more than those of independent rows, and so do the draws
            draws = draws.widen(np.sqrt(misfit.statistic / misfit.seen.size))
        reviewed = {name: _sum_weights(fits, weight, reviewed=name) for name in REVIEWED[:2]}
        turning = float(sum(w for fit, w in zip(fits, weight, strict=True) if fit.setting.walk_sd > WALK_SD))
        return FittedDelays(self, delay_data, draws, best, misfit, reviewed, turning)

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        if data.cells.ages is None:
            raise InputError("age", "missing", "", "Pass dm.missing.Delayed(age=...) with the age of each row.")
        if self.reviewed not in (None, "all"):
            finding = f"{self.reviewed!r} is for two classes (Delayed)"
            raise InputError("reviewed", finding, "", "With several classes, leave it out.")
        fit_data = class_fit_data(self, data)
        posterior, _ = by_table(fit_data, build_by_age(data, fit_data.curve), self.n_draws)
        times = "the delays of the labels" if data.cells.ages.timed.any() else "how labels fill up with age"
        posterior.assumption = (
            f"Assumed: labels arrive late, and how late may depend on the class: learned from {times}. Delays are the "
            "same for all times of scoring and all scores of a class."
        )
        return posterior

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return self.fit(data).describe(data, posterior)


def _fit_settings(data: DelayData, reviewed: tuple[str, ...]) -> list[FittedSetting]:
    """Fit the settings that may explain the data."""
    fits: list[FittedSetting] = []
    for name in reviewed:
        fits.append(FittedSetting.of(data, Setting(name), fits[-1] if fits else None))
    winner = max(fits, key=lambda fit: fit.log_evidence)
    drift = winner.mode.theta[winner.declared.drift]
    precision = build_drift_precision(data, winner.setting.walk_sd)
    if drift @ precision @ drift > drift.size:  # as far from 0 as the prior expects draws, not modes, to be
        fits.append(FittedSetting.of(data, winner.setting._replace(walk_sd=QUICK_SD), winner))
    return fits


def is_misfit(counts: MissingCounts) -> bool:
    """Return whether rows without a label clearly and visibly differ from the fit."""
    return counts.p_value < CLEARLY and bool(np.abs(counts.excess).max() >= SMALL_FRACTION)


def _sum_weights(fits: list[FittedSetting], weight: FloatArray, reviewed: str) -> float:
    return float(sum(w for fit, w in zip(fits, weight, strict=True) if fit.setting.reviewed == reviewed))


def _weigh(fits: list[FittedSetting]) -> FloatArray:
    """Return the posterior probabilities of settings; where data cannot tell who is reviewed, each keeps a minimum."""
    weight = np.asarray(softmax([fit.log_evidence for fit in fits]))
    fraction = {name: _sum_weights(fits, weight, name) for name in {fit.setting.reviewed for fit in fits}}
    less_likely = min(fraction, key=lambda name: fraction[name])
    if len(fraction) == 1 or not 1.0 / _CLEAR_RATIO < fraction[less_likely] < _MIN_WEIGHT:
        return weight
    bounded = {name: _MIN_WEIGHT if name == less_likely else 1.0 - _MIN_WEIGHT for name in fraction}
    return np.array(
        [
            w * bounded[fit.setting.reviewed] / fraction[fit.setting.reviewed]
            for fit, w in zip(fits, weight, strict=True)
        ]
    )


def _check_classes(fit_data: FitData, ages: Ages) -> None:
    """Refuse labels of one class: nothing is known about when those of the other arrive."""
    positives, negatives = fit_data.label_counts()
    if positives and negatives:
        return
    if positives:
        raise InputError(
            "y_true",
            f"all {positives:,} labels are positive, so ages do not show when negatives arrive (Delayed)",
            "",
            f"If only positives ever arrive, pass {setting('maturity')}: the age from which a row without a label is "
            f"negative. If you did, no row is that old (all are below {bin_start(ages.age.max() + 1):.3g}): pass older "
            "rows too.",
        )
    raise InputError(
        "y_true",
        f"{f'all {negatives:,} labels are negative' if negatives else 'no labeled row'}, so ages do not show when "
        "labels arrive (Delayed)",
        "",
        f"Leave {named('age')} and {named('scored_at')} out, and pass {REFERENCE_CODE} of fully labeled rows.",
    )


@dataclass(frozen=True, eq=False)
class FittedDelays(Mechanism):
    """When labels arrive, as learned from the rows of one set: a label model for that set and for parts of it.

    Attributes
    ----------
    model : Delayed
        The settings.
    data : DelayData
        What was observed.
    draws : DelayDraws
        Equally weighted posterior draws.
    best : FittedSetting
        The fit with the largest evidence.
    misfit : MissingCounts
        Rows without a label by score and age, next to those that this fit expects.
    reviewed : dict of str to float
        Posterior probability of each statement of who is reviewed.
    turning : float
        Posterior probability that the share of positives at a score changes quickly with the time of scoring.
    """

    model: Delayed
    data: DelayData
    draws: DelayDraws
    best: FittedSetting
    misfit: MissingCounts
    reviewed: dict[str, float]
    turning: float

    @property
    def grid(self) -> AgeGrid:
        """Bins of scores and ages."""
        return self.data.grid

    def posterior(self, data: EvaluationSet) -> Posterior:
        table, column = self.grid.table(data, fine=True).with_missing()
        p = compute_label_probability(self.grid, self.draws, table)
        return Posterior(np.full(len(p), 1.0 / len(p)), p, column=column[table.of_cell[data.missing_cells]])

    def arrival_log_odds(
        self, data: EvaluationSet, cells: IntArray, since: float, until: float
    ) -> tuple[FloatArray, BoolArray]:
        """Return log odds that labels of missing cells which arrive between two times from now are positive.

        The odds have shape (n_draws, n_cells). Also returns for which cells they are known: nothing is known about
        labels that take longer than any row is old.
        """
        grid, table = self.grid, self.grid.table(data, fine=True)
        rows = table.of_cell[cells]
        rate_bin = table.rate_bin[rows]
        first, passed, _ = grid.later(table.age[rows], since)
        last, passed_last, is_known = grid.later(table.age[rows], until)
        zone = grid.zone[table.score_bin[rows]]
        with np.errstate(divide="ignore"):
            log_passed, log_passed_last = np.log(passed), np.log(passed_last)
        left = self.draws.log_missing(zone, rate_bin, first, log_passed)
        change = np.minimum(self.draws.log_missing(zone, rate_bin, last, log_passed_last) - left, -1e-12)
        arrives = left + np.log(-np.expm1(change))
        columns = np.hstack([table.columns[rows], grid.drift[table.age[rows]]])
        return self.draws.curve @ columns.T + arrives[:, 1] - arrives[:, 0], is_known

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        ages, count = ages_of(data), int(data.missing_counts.sum())
        known = "ages and arrival times" if ages.timed.any() else "ages"
        text = f"Assumed: labels come with time, and later rows get them as earlier ones did ({known} of rows)."
        text += describe_review(self)
        if not count:
            return text
        share = missing_prevalence(data, posterior)
        return (
            f"{text} Of the {count:,} missing rows{of_weight(data)} {share.mean:.0%} ({share.low:.0%} to "
            f"{share.high:.0%}) are positive."
        )


def describe_review(fitted: FittedDelays) -> str:
    """Return who is reviewed, in words, with the labels of old rows at low and high scores."""
    text, (low, high, age) = "", _compare_old_rows(fitted.data)
    labels = fitted.data.counts.full + fitted.data.counts.partial
    by_score = min(1.0, fitted.reviewed["by_score"])
    if fitted.model.reviewed is None and by_score >= _MIN_MENTIONED:
        text += f" Not stated who is reviewed: all rows ({1.0 - by_score:.0%}) or chosen by score ({by_score:.0%})."
    elif fitted.model.reviewed == "by_score":
        text += " Rows are reviewed by score; rows that are not reviewed never get a label."
    elif fitted.model.reviewed == "propensity":
        text += " Each row is reviewed with the probability passed; rows that are not reviewed never get a label."
    # Where only positives arrive, rows without a label are those that are not positive.
    if (fitted.grid.maturity is None or labels[0].any()) and abs(low - high) >= _MIN_DIFFERENCE:
        text += (
            f" Of rows of age {age:.3g} and more, {low:.0%} at lower and {high:.0%} at higher scores have no label, so "
            "the score decides who is reviewed, or how long it takes."
        )
    return text


def _compare_old_rows(data: DelayData) -> tuple[float, float, float]:
    """Return the fractions of old rows without a label at lower and at higher scores, and from which age on.

    Old rows are those older than 19 of 20 observed delays; without arrival times the oldest quarter. Scores are
    separated at the threshold if there is one. The fractions are equal if they do not differ clearly.
    """
    table, grid = data.table, data.grid
    arrived = (data.counts.full + data.counts.partial).sum(axis=(0, 1))
    rows = np.bincount(table.age, table.positives + table.negatives + table.missing, grid.n_ages)
    weight, level = (arrived, 0.95) if arrived.any() else (rows, 0.75)
    first = min(int(np.searchsorted(np.cumsum(weight), level * weight.sum())) + 1, grid.n_ages - 1)
    above = build_rate_columns(grid)[:, 1] > 0.0
    above = grid.position > 0.0 if above.all() or not above.any() else above
    is_old = (table.age >= first) & (table.age < grid.n_ages - (grid.maturity is not None))
    groups = [is_old & (above[table.score_bin] == side) for side in (False, True)]
    missing, total = (
        np.array([values[g].sum() for g in groups])
        for values in (table.missing, table.positives + table.negatives + table.missing)
    )
    fraction = missing / np.maximum(total, 1.0)
    pooled = missing.sum() / max(1.0, total.sum())
    variance = pooled * (1.0 - pooled) * (1.0 / np.maximum(total, 1.0)).sum()
    if not total.all() or (fraction[1] - fraction[0]) ** 2 < _CLEAR_SQUARE * variance:
        fraction = np.full(2, pooled)
    return float(fraction[0]), float(fraction[1]), float(grid.edges[first])


def test_cohorts(
    fitted: FittedDelays, data: EvaluationSet, is_late: BoolArray, classes: Sequence[int]
) -> tuple[float, FloatArray]:
    """Test whether rows of some age bins get labels of these classes sooner or later than others.

    Returns the p-value of the likelihood ratio, and the difference of the log odds of arrivals by class.
    """
    grid, setting, theta = fitted.grid, fitted.best.setting, fitted.best.mode.theta
    n_zones = grid.zone_position.size
    late = is_late[grid.age_bin(ages_of(data).age)]
    zone = grid.zone[grid.score_bin(data.cells.score)] + n_zones * late
    counts = count_arrivals(grid, data, zone, 2 * n_zones)
    declared = declare(replace(fitted.data, counts=counts, is_late=is_late), setting)
    assert declared.cohort is not None
    likelihood = Likelihood(declared.model, fitted.data.credit)
    tested = declared.cohort[list(classes)]
    others = np.setdiff1d(np.arange(theta.size + 2), declared.cohort)
    start = np.zeros(theta.size + 2)
    start[others] = theta
    free = np.sort(np.append(others, tested))
    null = find_mode(partial(expand_posterior, likelihood), start, others)
    mode = find_mode(partial(expand_posterior, likelihood), null.theta, free)
    effect = mode.theta[tested]
    gain = mode.value - null.value + 0.5 * float(effect @ effect) / COHORT_SD**2
    return float(chdtrc(tested.size, 2.0 * max(0.0, gain))), effect
