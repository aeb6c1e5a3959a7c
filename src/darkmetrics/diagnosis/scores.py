"""Labeled and missing rows: do their scores differ, and can the missing ones be a mixture of the labeled classes?"""

from dataclasses import dataclass

import numpy as np

from darkmetrics._kernels.hypothesis_tests import LEAST_ROWS, compared, mixture_test
from darkmetrics.missingness.checks import (
    LEVEL,
    AbsentError,
    need_labeled,
    need_missing,
)
from darkmetrics.missingness.fit_data import FitData

# Score distributions closer than this are alike for any purpose, however many rows show the difference.
_ALIKE = 0.01


@dataclass(frozen=True)
class ScoreDifference:
    """Whether missing rows have other scores than labeled ones.

    Attributes
    ----------
    effect : float
        Chance that a missing row has a higher score than a labeled one, ties counted half; 0.5: neither is higher.
    distance : float
        Largest difference between the two distribution functions.
    p_location, p_shape : float
        P-values of the Mann-Whitney test (ties corrected) and of the Kolmogorov-Smirnov test.
    """

    effect: float
    distance: float
    p_location: float
    p_shape: float

    @property
    def p_value(self) -> float:
        """One p-value for both tests: twice the smaller."""
        return min(1.0, 2.0 * min(self.p_location, self.p_shape))

    @property
    def differs(self) -> bool:
        """Whether the scores differ: beyond chance, and by enough to matter."""
        return self.p_value < LEVEL and self.distance >= _ALIKE

    @property
    def words(self) -> str:
        """The scores of the missing rows beside those of the labeled ones: "about the same", "clearly lower"."""
        off = abs(self.effect - 0.5)
        if not self.differs:
            return "about the same"
        if off < 0.01:
            return "differently spread"
        # Where small and large effects begin by custom on this scale (Vargha and Delaney, 2000): 0.56 and 0.71.
        size = "slightly" if off < 0.06 else "clearly" if off < 0.21 else "much"
        return f"{size} {'higher' if self.effect > 0.5 else 'lower'}"


def score_difference(fit_data: FitData) -> ScoreDifference:
    """The scores of missing rows against those of labeled ones, cell by cell."""
    need_missing(fit_data)
    need_labeled(fit_data)
    cells = fit_data.data.cells
    labeled = np.asarray(cells.positives + cells.negatives, dtype=np.float64)
    missing = np.asarray(cells.missing, dtype=np.float64)
    if cells.tie_starts is not None:
        labeled, missing = (np.add.reduceat(counts, cells.tie_starts) for counts in (labeled, missing))
    if labeled.size == 1:
        raise AbsentError("all scores are equal.")
    comparison = compared(labeled, missing)
    return ScoreDifference(comparison.effect, comparison.distance, comparison.p_location, comparison.p_shape)


@dataclass(frozen=True)
class MixtureCheck:
    """Whether the scores of the missing rows are a mixture of those of labeled positives and labeled negatives.

    If labels are missing by label alone, they are. The check needs no calibration: it compares histograms.

    Attributes
    ----------
    statistic, dof, p_value : float, int, float
        Pearson's chi-square of the best mixture.
    share : float
        Share of positives in that mixture.
    """

    statistic: float
    dof: int
    p_value: float
    share: float

    @property
    def refutes_by_label(self) -> bool:
        """Whether labels are not missing by label alone."""
        return self.p_value < LEVEL


def mixture_check(fit_data: FitData) -> MixtureCheck:
    """The mixture test on up to eight bins that hold equally much of all three: positives, negatives, missing rows."""
    need_missing(fit_data)
    need_labeled(fit_data)
    groups = (fit_data.table.positives, fit_data.table.negatives, fit_data.table.missing)
    rows = [float(group.sum()) for group in groups]
    if min(rows) < LEAST_ROWS:
        raise AbsentError(
            f"needs {LEAST_ROWS} labeled positives, {LEAST_ROWS} labeled negatives and {LEAST_ROWS} missing rows; "
            f"there are {rows[0]:,.0f}, {rows[1]:,.0f} and {rows[2]:,.0f}."
        )
    fit = mixture_test(*groups)
    if fit is None:
        raise AbsentError("the scores take too few different values: any histogram over them may be a mixture.")
    return MixtureCheck(fit.statistic, fit.dof, fit.p_value, fit.share)
