"""Overlap: are there labels at the scores at which labels are missing?"""

from dataclasses import dataclass

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.exceptions import CalibrationWarning, warn
from darkmetrics.label_models.agreement import AbsentError
from darkmetrics.label_models.fitting import Material, level_of_caller

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
            "hardly any labels, and what is said of them is extrapolated"
        )


def overlap_check(material: Material) -> OverlapCheck:
    """Where missing rows have company; rows of the reference set count as labelled."""
    table, cells = material.table, material.data.cells
    gone = float(table.missing.sum())
    if not gone:
        raise AbsentError("no label is missing.")
    labelled = table.labelled
    if cells.propensity is not None:
        # Rows that were sure to get their label stand for none of those that got none.
        counts = (cells.total - cells.missing) * (cells.propensity < 1.0)
        labelled = np.asarray(np.bincount(table.place, counts, labelled.size), dtype=np.float64)
    if material.reference is not None:
        labelled = labelled + _nearest_counts(table.score, material.reference.score, material.reference.labelled)
    if labelled.sum() < _EXPECTED:
        raise AbsentError(f"{int(labelled.sum()):,} labels are too few to say where there are none.")
    alone = np.zeros(table.score.size, dtype=np.bool_)
    for rows in _strata_rows(material):
        expected = labelled.sum() * table.missing[rows].sum() / gone
        rare = bool(expected >= _EXPECTED and labelled[rows].sum() < expected / _RARER)
        alone[rows] = rare or _far_from_labels(table.missing[rows], labelled[rows])
    far = alone[table.place]
    if cells.propensity is not None:
        # Nobody like them was ever looked at.
        far |= cells.propensity < np.min(cells.propensity, where=cells.total > cells.missing, initial=1.0)
    far &= cells.missing > 0
    n = int(cells.missing[far].sum())
    low, high = (float(material.value[far].min()), float(material.value[far].max())) if n else (np.nan, np.nan)
    return OverlapCheck(n / int(cells.missing.sum()), n, low, high)


def _strata_rows(material: Material) -> list[BoolArray]:
    """The rows of the table in each of the strata that a model fits within; all in one where it does not."""
    table = material.table
    if table.stratum is None:
        return [np.ones(table.score.size, dtype=np.bool_)]
    return [table.stratum == k for k in np.unique(table.stratum)]


def _far_from_labels(missing: FloatArray, labelled: FloatArray) -> BoolArray:
    """Which rows of a table, sorted by score, lie in a stretch with hardly any labels."""
    # No more than there are places with missing rows: else a stretch is one such row, without the scores around it.
    most = min(_MOST_STRETCHES, int(np.count_nonzero(missing)))
    n_stretches = int(np.clip(labelled.sum() // _EXPECTED, 1, max(1, most)))
    level = (np.cumsum(missing) - 0.5 * missing) / max(1.0, float(missing.sum()))
    stretch = np.minimum((level * n_stretches).astype(np.int64), n_stretches - 1)
    there = np.bincount(stretch, labelled, n_stretches)
    expected = labelled.sum() * np.bincount(stretch, missing, n_stretches) / max(1.0, float(missing.sum()))
    far: BoolArray = (there < expected / _RARER)[stretch]
    return far


def _nearest_counts(scores: FloatArray, others: FloatArray, counts: FloatArray) -> FloatArray:
    """Counts at other scores, each added to the nearest of the scores from below."""
    place = np.clip(np.searchsorted(scores, others, side="right") - 1, 0, scores.size - 1)
    return np.asarray(np.bincount(place, counts, scores.size), dtype=np.float64)


def warn_if_extrapolated(material: Material, what: str) -> None:
    """A warning when many of the missing rows are where there are hardly any labels."""
    try:
        found = overlap_check(material)
    except AbsentError:
        return
    if not found.is_wide:
        warn(
            f"y_true: {found.words} from other rows ({what}). Label a random sample of them, or give "
            "reference=(labels, scores) of fully labelled rows.",
            CalibrationWarning,
            stacklevel=level_of_caller(),
        )
