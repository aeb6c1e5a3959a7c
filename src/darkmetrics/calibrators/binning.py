"""Scaling-binning: Platt scaling, then equal-mass bins whose value is the mean of the scaled scores in them."""

from typing import Any

import numpy as np
from scipy.special import betaincinv, expit, logit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import ArrayLike
from darkmetrics.calibrators.base import (
    Calibrator,
    check_in_unit_interval,
    checked_scores,
    uniform_points,
)
from darkmetrics.exceptions import InputError
from darkmetrics.posterior.logistic import find_logistic_mode

# Both as in the authors' package: `LogisticRegression(C=1e10)` on log odds clipped here.
_CLIP, _SLOPE_PRECISION = 1e-12, 1e-10


class ScalingBinning(Calibrator):
    """Scaling-binning, as Kumar et al. define it and their package `uncertainty-calibration` computes it.

    Platt scaling, equal-mass bins of the scaled scores, and for every score the mean scaled score of its bin. All
    scores of a bin get one probability, so the ranking inside a bin is lost: prefer `Beta` where ROC-AUC matters.

    Parameters
    ----------
    n_bins : int, default 10
        Number of bins; never more than rows. Ties can merge bins.

    Attributes
    ----------
    coef_ : intercept and slope of the scaling.
    edges_ : upper ends of the bins on the scale of the scaled scores; the last is 1.
    values_ : probability of each bin.
    positives_, negatives_ : labels seen in each bin, from which `draws` takes its uncertainty: a Beta posterior
        per bin, whose prior weighs as much as one row with the bin's value.

    References
    ----------
    Kumar, Liang and Ma (2019), Verified uncertainty calibration.

    Examples
    --------
    >>> from darkmetrics.calibrators import ScalingBinning
    >>> binning = ScalingBinning(n_bins=2).fit([0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> binning.predict([0.2, 0.3, 0.7]).round(3)
    array([0.187, 0.187, 0.813])
    """

    coef_: FloatArray
    edges_: FloatArray
    values_: FloatArray
    positives_: FloatArray
    negatives_: FloatArray

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def _fit(self, scores: FloatArray, positives: FloatArray, negatives: FloatArray) -> None:
        n_bins = int(self.n_bins)
        check_in_unit_interval(scores, _ADVICE)
        if not (positives.any() and negatives.any()):
            raise InputError(
                "labels",
                "only positives" if positives.any() else "only negatives" if negatives.any() else "no rows",
                "Scaling-binning needs both classes; Beta() and Platt() do not.",
            )
        precision = np.array([0.0, _SLOPE_PRECISION])
        self.coef_ = find_logistic_mode(_design(scores), positives, negatives, np.zeros(2), precision).theta
        scaled, counts = self._scaled(scores), positives + negatives
        self.edges_ = _equal_mass_edges(scaled, counts, n_bins)
        of_bin = self._bin_of(scaled)

        def per_bin(amounts: FloatArray) -> FloatArray:
            return np.asarray(np.bincount(of_bin, amounts, self.edges_.size), dtype=np.float64)

        self.positives_, self.negatives_ = per_bin(positives), per_bin(negatives)
        size, total = per_bin(counts), per_bin(counts * scaled)
        # Where ties leave a bin empty, the middle of it is its value.
        middle = (self.edges_ + np.concatenate([[0.0], self.edges_[:-1]])) / 2.0
        self.values_ = np.where(size > 0.0, total / np.where(size > 0.0, size, 1.0), middle)

    def _scaled(self, scores: FloatArray) -> FloatArray:
        return np.asarray(expit(_design(scores) @ self.coef_), dtype=np.float64)

    def _bin_of(self, scaled: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        return np.searchsorted(self.edges_, scaled)  # a value on an edge belongs to the bin below

    def _bins(self, scores: Any) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
        self._check_fitted("values_")
        score = checked_scores(scores)
        check_in_unit_interval(score, _ADVICE)
        return self._bin_of(self._scaled(score))

    def predict(self, scores: ArrayLike) -> FloatArray:
        bins = self._bins(scores)
        return self.values_[bins]

    def draws(self, scores: ArrayLike, n_draws: int) -> FloatArray:
        bins = self._bins(scores)
        value = np.clip(self.values_, _CLIP, 1.0 - _CLIP)  # a Beta law needs two positive parameters
        points = uniform_points(n_draws, value.size)
        curves = betaincinv(value + self.positives_, 1.0 - value + self.negatives_, points)
        return np.asarray(curves[:, bins], dtype=np.float64)


_ADVICE = "Scaling-binning needs probabilities; for other scores use Platt()."


def _design(scores: FloatArray) -> FloatArray:
    return np.column_stack([np.ones(scores.size), logit(np.clip(scores, _CLIP, 1.0 - _CLIP))])


def _equal_mass_edges(values: FloatArray, counts: FloatArray, n_bins: int) -> FloatArray:
    """Middles between the last value of each part and the first of the next, when the values are cut into equal parts.

    Parts are those of `numpy.array_split` on the sorted values, each repeated `counts` times: the first ones are larger
    by one where the number does not divide.
    """
    order = np.argsort(values)
    ordered, ends = values[order], np.cumsum(counts[order])
    n_bins = max(1, min(n_bins, int(ends[-1])))
    size = ends[-1] // n_bins
    inner = np.arange(1, n_bins)
    cuts = inner * size + np.minimum(inner, ends[-1] - n_bins * size)
    last = np.searchsorted(ends, cuts, side="left")
    following = np.minimum(np.searchsorted(ends, cuts, side="right"), ordered.size - 1)
    return np.unique(np.append((ordered[last] + ordered[following]) / 2.0, 1.0))
