"""What is checked before a model of the labels is believed; a diagnosis shows the same checks.

Does a curve fit the labeled rows, do reference rows follow the same one, and are there labels at the scores at which
labels are missing?
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import bdtr, bdtrc, chdtrc, expit

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._kernels.hypothesis_tests import (
    LEAST_ROWS,
    equal_bins,
    logistic_score_test,
    n_bins,
    per_bin,
)
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.exceptions import CalibrationWarning, InputError, warn
from darkmetrics.missingness.fit_data import FitData
from darkmetrics.missingness.reference import REFERENCE_CODE
from darkmetrics.posterior.logistic import find_logistic_mode
from darkmetrics.wording import named

# Below this chance of a result as extreme, what was tested is called refuted.
LEVEL = 0.05
# The same for a warning, which nobody asked for: once in a thousand times without cause.
CLEARLY = 1e-3
# A curve that misplaces a smaller part of the rarer class is good enough, however many rows show it.
_MISPLACED = 0.05
# A bin is off by enough to matter when it is by this part of its own rarer class.
_OFF = 0.25
_MOST_BINS = 10


class AbsentError(Exception):
    """A check that cannot be made; the message says why."""


def run_check(name: str, absent: dict[str, str], compute: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of a check, or None; `absent` then has the message of the error."""
    try:
        return compute(*arguments)
    except (AbsentError, InputError) as error:
        absent[name] = str(error)
        return None


def need_missing(fit_data: FitData) -> None:
    """There are rows without a label."""
    if fit_data.data.n_missing == 0:
        raise AbsentError("no label is missing.")


def need_labeled(fit_data: FitData) -> None:
    """There are rows with a label."""
    if fit_data.data.n_labeled == 0:
        raise AbsentError("no row has a label.")


@dataclass(frozen=True)
class ReliabilityBin:
    """Labeled rows with similar scores: how many are positive, and how many were predicted to be.

    Attributes
    ----------
    low, high : float
        Smallest and largest score.
    rows : int
        Labeled rows.
    predicted, positive : float
        Mean probability, and share of positives.
    """

    low: float
    high: float
    rows: int
    predicted: float
    positive: float

    @property
    def apart(self) -> float:
        """Distance between predicted and actual share of positives."""
        return abs(self.predicted - self.positive)

    @property
    def p_value(self) -> float:
        """Chance of a share of positives as far off, if the rows were as predicted; never too small.

        Binomial: rows whose probabilities differ vary less than rows that all have the mean.
        """
        positives = round(self.rows * self.positive)
        # P(at most as many) and P(at least as many)
        below, above = bdtr(positives, self.rows, self.predicted), bdtrc(positives - 1, self.rows, self.predicted)
        return float(min(1.0, 2.0 * min(below, above if positives else 1.0)))


@dataclass(frozen=True)
class CalibrationCheck:
    """Whether probabilities agree with the labeled rows, bin by bin.

    Attributes
    ----------
    statistic, dof, p_value : float, int, float
        Chi-square test of "the probabilities are right".
    table : tuple of ReliabilityBin
        Up to ten bins that hold equally much information.
    """

    statistic: float
    dof: int
    p_value: float
    table: tuple[ReliabilityBin, ...]

    @property
    def error(self) -> float:
        """Mean distance between predicted and actual share of positives, over labeled rows."""
        rows = sum(b.rows for b in self.table)
        return sum(b.rows * b.apart for b in self.table) / rows

    @property
    def off(self) -> ReliabilityBin | None:
        """The bin that is furthest off, if one clearly is: beyond chance in view of all, and by enough to matter."""
        level = LEVEL / len(self.table)
        clearly = [b for b in self.table if b.apart >= _OFF * min(b.predicted, 1.0 - b.predicted) and b.p_value < level]
        return max(clearly, key=lambda b: b.apart, default=None)

    @property
    def is_adequate(self) -> bool:
        """Whether the labeled rows are compatible with the probabilities, or nearly so, in every bin."""
        positive = sum(b.rows * b.positive for b in self.table) / sum(b.rows for b in self.table)
        if self.off is not None:
            return False
        return self.p_value >= LEVEL or self.error < _MISPLACED * min(positive, 1.0 - positive)


def calibration_check(fit_data: FitData) -> CalibrationCheck:
    """Test the calibration curve that is fitted to the labeled rows against those rows (Tsiatis 1980)."""
    rows, curve, bins = _fitted_to_labels(fit_data)
    in_bin = np.eye(int(bins[-1]) + 1)[bins]
    test = logistic_score_test(curve.X, in_bin, rows.positives, rows.negatives, curve.beta)
    if test.dof == 0:
        raise AbsentError("the scores take too few different values: any shares of positives fit them.")
    return CalibrationCheck(test.statistic, test.dof, test.p_value, _reliability(rows, curve.p, bins))


def raw_check(fit_data: FitData) -> CalibrationCheck:
    """The scores as they are, against the labeled rows: Pearson's test in the same bins."""
    if not fit_data.is_probability:
        raise AbsentError("the scores are not probabilities.")
    rows, _, bins = _fitted_to_labels(fit_data)
    p = rows.score
    off = per_bin(bins, rows.positives - rows.total * p)
    variance = per_bin(bins, rows.total * p * (1.0 - p))
    is_certain = variance <= 0.0  # scores of 0 and 1 only, which one label the other way refutes
    statistic = (
        np.inf if np.any(off[is_certain] != 0.0) else float(np.sum(off[~is_certain] ** 2 / variance[~is_certain]))
    )
    dof = max(1, int(np.sum(~is_certain)))
    return CalibrationCheck(statistic, dof, float(chdtrc(dof, statistic)), _reliability(rows, p, bins))


class _Labeled(NamedTuple):
    """Labeled rows counted by score."""

    score: FloatArray
    positives: FloatArray
    negatives: FloatArray

    @property
    def total(self) -> FloatArray:
        return self.positives + self.negatives


class _Curve(NamedTuple):
    """A calibration curve: its columns, coefficients and probabilities."""

    X: FloatArray
    beta: FloatArray
    p: FloatArray


def _fit_curve(calibrator: LogisticCalibrator, rows: _Labeled) -> _Curve:
    """Fit a curve to counts; the calibrator was prepared with all scores, so that curves are comparable."""
    X, prior = calibrator.design(rows.score), (calibrator.prior_mean_, calibrator.prior_scale_**-2.0)
    beta = find_logistic_mode(X, rows.positives, rows.negatives, *prior).theta
    return _Curve(X, beta, np.asarray(expit(X @ beta), dtype=np.float64))


def _labeled_rows(fit_data: FitData) -> _Labeled:
    need_labeled(fit_data)
    table = fit_data.table
    has_labels: BoolArray = table.labeled > 0.0
    return _Labeled(table.score[has_labels], table.positives[has_labels], table.negatives[has_labels])


def _fitted_to_labels(fit_data: FitData) -> tuple[_Labeled, _Curve, IntArray]:
    """The labeled rows, the curve fitted to them, and their bins."""
    rows = _labeled_rows(fit_data)
    positives, negatives = float(rows.positives.sum()), float(rows.negatives.sum())
    max_bins = n_bins(min(positives, negatives), _MOST_BINS)
    if max_bins == 0:
        raise AbsentError(
            f"needs {LEAST_ROWS} labeled rows of either class; there are {positives:,.0f} positives and "
            f"{negatives:,.0f} negatives."
        )
    curve = _fit_curve(fit_data.logistic_calibrator("flexible"), rows)
    # Equally much variance: with rare positives, equally many rows would leave most bins without any.
    return rows, curve, equal_bins(rows.total * curve.p * (1.0 - curve.p), max_bins)


def _reliability(rows: _Labeled, p: FloatArray, bins: IntArray) -> tuple[ReliabilityBin, ...]:
    count = per_bin(bins, rows.total)
    predicted, positive = per_bin(bins, rows.total * p) / count, per_bin(bins, rows.positives) / count
    starts = np.flatnonzero(np.diff(bins, prepend=-1))
    ends = np.append(starts[1:], bins.size) - 1
    columns = zip(rows.score[starts], rows.score[ends], count, predicted, positive, strict=True)
    return tuple(ReliabilityBin(float(a), float(b), int(n), float(e), float(o)) for a, b, n, e, o in columns)


@dataclass(frozen=True)
class ReferenceCheck:
    """Whether labeled rows and reference rows follow one calibration curve.

    If not, something has drifted since the reference rows were taken, or labels are missing because of what they are.
    The data cannot say which.

    Attributes
    ----------
    statistic, dof, p_value : float, int, float
        Chi-square test of one common curve.
    positive, expected : float
        Share of positives among the labeled rows, and what the reference rows lead to expect at their scores.
    gap : float
        Mean distance between the two curves over the labeled rows.
    """

    statistic: float
    dof: int
    p_value: float
    positive: float
    expected: float
    gap: float

    @property
    def contradicts(self) -> bool:
        """Whether the labeled rows contradict the reference: beyond chance, and by enough to matter."""
        return self.p_value < LEVEL and self.gap >= _MISPLACED * min(self.expected, 1.0 - self.expected)


def reference_check(fit_data: FitData) -> ReferenceCheck:
    """One curve for labeled and reference rows against one for each: the score test, from the common fit alone."""
    if fit_data.reference is None:
        raise AbsentError("no reference rows were given (reference=).")
    labeled = _labeled_rows(fit_data)
    reference = _Labeled(fit_data.reference.score, fit_data.reference.positives, fit_data.reference.negatives)
    joined = _Labeled(*(np.append(a, b) for a, b in zip(labeled, reference, strict=True)))
    if not (joined.positives.any() and joined.negatives.any()):
        raise AbsentError("all labels, those of the reference rows included, are of one class.")
    calibrator = fit_data.logistic_calibrator("beta")
    common, now, then = (_fit_curve(calibrator, rows) for rows in (joined, labeled, reference))
    of_labeled = common.X * (np.arange(joined.score.size) < labeled.score.size)[:, None]
    test = logistic_score_test(common.X, of_labeled, joined.positives, joined.negatives, common.beta)
    expected = expit(now.X @ then.beta)
    weight = labeled.total / labeled.total.sum()
    return ReferenceCheck(
        statistic=test.statistic,
        dof=test.dof,
        p_value=test.p_value,
        positive=float(labeled.positives.sum() / labeled.total.sum()),
        expected=float(expected @ weight),
        gap=float(np.abs(now.p - expected) @ weight),
    )


def warn_if_misfit(fit_data: FitData, mechanism: str) -> None:
    """Warn if the curve clearly does not fit the labeled rows: less than once in a thousand times without cause."""
    try:
        check = calibration_check(fit_data)
    except AbsentError:
        return
    if check.p_value >= CLEARLY or check.is_adequate:
        return
    off = max(check.table, key=lambda b: b.apart)
    warn(
        f"{named('y_true')}: the calibration curve does not fit the labeled rows ({mechanism}), so the estimates may "
        f"be biased. Of {off.rows:,} rows with scores from {off.low:.3g} to {off.high:.3g}, {off.positive:.1%} are "
        f"positive, and the curve predicts {off.predicted:.1%}. Try another calibrator, such as "
        "missing.ByScore('isotonic'). See .diagnosis.",
        CalibrationWarning,
    )


def contradicted(fit_data: FitData) -> bool:
    """Whether the labeled rows contradict the reference rows."""
    try:
        return reference_check(fit_data).contradicts
    except AbsentError:
        return False


def p_text(p_value: float) -> str:
    """A p-value in words."""
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


# Labels are hardly there where they are so many times rarer, against missing rows, than among all rows.
_RARER = 20.0
# Stretches of scores, which as many missing rows fall into: so many at most, and only so many that each would hold
# this many labels if they were spread like the missing rows. None of 20 is then no accident.
_MOST_STRETCHES, _EXPECTED = 20, 20.0
# Above this share of the missing rows, and this many of them, it is worth a warning.
MUCH, MANY = 0.1, 20


@dataclass(frozen=True)
class OverlapCheck:
    """How many of the missing rows have scores (or strata, or propensities) at which there are hardly any labels.

    Attributes
    ----------
    share : float
        Their share of the missing rows: what is said of them is extrapolated.
    rows : int
        How many they are.
    low, high : float
        The lowest and the highest of their scores; NaN where there are none.
    """

    share: float
    rows: int
    low: float
    high: float

    @property
    def is_wide(self) -> bool:
        """Whether they are so few that it hardly matters: a tenth of the missing rows at most, or below 20."""
        return self.share <= MUCH or self.rows < MANY

    @property
    def words(self) -> str:
        """What was found, as the beginning of a sentence."""
        return (
            f"{self.share:.0%} of the missing rows (scores from {self.low:.3g} to {self.high:.3g}) are where there are "
            "hardly any labels, and their rate of positives is extrapolated"
        )


def overlap_check(fit_data: FitData) -> OverlapCheck:
    """Where missing rows have company; rows of the reference set count as labeled."""
    table, cells = fit_data.table, fit_data.data.cells
    n_missing = float(table.missing.sum())
    if not n_missing:
        raise AbsentError("no label is missing.")
    labeled = table.labeled
    if cells.propensity is not None:
        # Rows that were sure to get their label stand for none of those that got none.
        counts = (cells.total - cells.missing) * (cells.propensity < 1.0)
        labeled = np.asarray(np.bincount(table.row_of_cell, counts, labeled.size), dtype=np.float64)
    if fit_data.reference is not None:
        labeled = labeled + _nearest_counts(table.score, fit_data.reference.score, fit_data.reference.labeled)
    if labeled.sum() < _EXPECTED:
        raise AbsentError(f"{int(labeled.sum()):,} labels are too few to say where there are none.")
    alone = np.zeros(table.score.size, dtype=np.bool_)
    for rows in _strata_rows(fit_data):
        expected = labeled.sum() * table.missing[rows].sum() / n_missing
        rare = bool(expected >= _EXPECTED and labeled[rows].sum() < expected / _RARER)
        alone[rows] = rare or _far_from_labels(table.missing[rows], labeled[rows])
    far = alone[table.row_of_cell]
    if cells.propensity is not None:
        # Nobody like them was ever looked at.
        far |= cells.propensity < np.min(cells.propensity, where=cells.total > cells.missing, initial=1.0)
    far &= cells.missing > 0
    n = int(cells.missing[far].sum())
    low, high = (float(fit_data.value[far].min()), float(fit_data.value[far].max())) if n else (np.nan, np.nan)
    return OverlapCheck(n / int(cells.missing.sum()), n, low, high)


def _strata_rows(fit_data: FitData) -> list[BoolArray]:
    """The rows of the table in each of the strata that a model fits within; all in one where it does not."""
    table = fit_data.table
    if table.stratum is None:
        return [np.ones(table.score.size, dtype=np.bool_)]
    return [table.stratum == k for k in np.unique(table.stratum)]


def _far_from_labels(missing: FloatArray, labeled: FloatArray) -> BoolArray:
    """Which rows of a table, sorted by score, lie in a stretch with hardly any labels."""
    # No more than there are places with missing rows: else a stretch is one such row, without the scores around it.
    max_stretches = min(_MOST_STRETCHES, int(np.count_nonzero(missing)))
    n_stretches = int(np.clip(labeled.sum() // _EXPECTED, 1, max(1, max_stretches)))
    level = (np.cumsum(missing) - 0.5 * missing) / max(1.0, float(missing.sum()))
    stretch = np.minimum((level * n_stretches).astype(np.int64), n_stretches - 1)
    in_stretch = np.bincount(stretch, labeled, n_stretches)
    expected = labeled.sum() * np.bincount(stretch, missing, n_stretches) / max(1.0, float(missing.sum()))
    far: BoolArray = (in_stretch < expected / _RARER)[stretch]
    return far


def _nearest_counts(scores: FloatArray, others: FloatArray, counts: FloatArray) -> FloatArray:
    """Counts at other scores, each added to the nearest of the scores from below."""
    index = np.clip(np.searchsorted(scores, others, side="right") - 1, 0, scores.size - 1)
    return np.asarray(np.bincount(index, counts, scores.size), dtype=np.float64)


def warn_if_extrapolated(fit_data: FitData, mechanism: str) -> None:
    """Warn if many of the missing rows are where there are hardly any labels."""
    try:
        overlap = overlap_check(fit_data)
    except AbsentError:
        return
    if not overlap.is_wide:
        warn(
            f"{named('y_true')}: {overlap.words} from other rows ({mechanism}). Label a random sample of them, or pass "
            f"{REFERENCE_CODE} of fully labeled rows.",
            CalibrationWarning,
        )
