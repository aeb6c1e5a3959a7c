"""One score from those of all models, and what labels leave open about how they are best combined.

Models that are compared are mostly alike. Their average is trusted from the start; how far a model counts more than the
others is learned, shrunk towards not at all, and what a few labels cannot say about it stays open: it is what decides
which model is better.

Each model counts by the ranks of its scores, as normal scores. Log odds of different models are not on one scale: a
model that says one in a million where another says one in ten would outvote it, however little it knows there, and the
answer would depend on how each model was trained to exaggerate. Beside its normal score a model has the square of it: a
model may know less than others at its low end, or at both. And it has its decision: metrics that differ between models
differ by the rows that they decide differently, and a curve over ranks alone levels out what happens at a threshold.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit, ndtri

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics._kernels.sobol import normal_points
from darkmetrics.calibrators import Platt
from darkmetrics.missingness.fit_data import credit_of
from darkmetrics.posterior.logistic import approximate_log_integral, find_logistic_mode

# Standard deviations, before labels are seen, of how far a model's normal score, its square or its decision moves the
# log odds beyond what the average of all models does. Labels choose among them. The unit is what they would be if one
# of the models, any of them, were right alone.
_SPREADS = np.array([0.25, 0.5, 1.0, 2.0])
# The least slope of the average, up or down, that this unit is read off: where it says nothing of labels, a model may.
_LEAST_SLOPE = 0.5
# A decision counts as this many standard deviations of a normal score: more of it follows the labels of a few rows.
_STEP = 0.5
_SEED = 11


class Scale(NamedTuple):
    """The normal score of each score of a model, standardised over all rows; scores between them lie between."""

    score: FloatArray
    normal: FloatArray

    @classmethod
    def of(cls, score: FloatArray, rows: FloatArray) -> "Scale":
        """The scale of scores that occur in so many `rows`; those of rows that tie share the mean of their ranks."""
        distinct, place = np.unique(score, return_inverse=True)
        count = np.bincount(place, rows)
        normal = ndtri((np.cumsum(count) - 0.5 * count) / count.sum())
        normal -= normal @ count / count.sum()
        return cls(distinct, normal / (float(np.sqrt(normal**2 @ count / count.sum())) or 1.0))

    def line(self, score: FloatArray) -> FloatArray:
        """Normal scores, of these rows or of others."""
        return np.interp(score, self.score, self.normal)


class Axes(NamedTuple):
    """What the joint score is a sum of: the average of the models, and the directions in which they disagree."""

    scales: tuple[Scale, ...]
    # Each model decides for a row from this score on.
    thresholds: FloatArray
    # From normal scores (squares, decisions) to deviations from their average, the mean of these over all rows, and
    # what the average says of them.
    contrast: FloatArray
    middle: FloatArray
    along: FloatArray
    average_sd: float

    @classmethod
    def of(cls, score: FloatArray, rows: FloatArray, thresholds: FloatArray) -> "Axes":
        """Those of scores (models x cells) that occur in so many `rows`."""
        k, total = len(score), float(rows.sum())
        scales = tuple(Scale.of(one, rows) for one in score)
        z = np.stack([scale.line(one) for scale, one in zip(scales, score, strict=True)])
        # An orthonormal basis of what is left beside the average.
        contrast = np.linalg.qr(np.hstack([np.ones((k, 1)), np.eye(k)[:, : k - 1]]))[0][:, 1:]
        average = z.mean(axis=0)
        average_sd = float(np.sqrt(average**2 @ rows / total)) or 1.0
        apart = _apart(contrast, z, score >= thresholds[:, None])
        middle = apart @ rows / total
        along = (apart - middle[:, None]) @ (rows * average / average_sd) / total
        return cls(scales, thresholds, contrast, middle, along, average_sd)

    def design(self, score: FloatArray) -> FloatArray:
        """Columns: one, the average of the normal scores, and the deviations, less what it says of them.

        Deviations have no share in the level: labels settle that by themselves, and it would be left open twice.
        """
        z = np.stack([scale.line(one) for scale, one in zip(self.scales, score, strict=True)])
        average = z.mean(axis=0) / self.average_sd
        apart = _apart(self.contrast, z, score >= self.thresholds[:, None]).T - self.middle
        return np.column_stack([np.ones(average.size), average, apart - np.outer(average, self.along)])


@dataclass(frozen=True, eq=False)
class JointScore:
    """How the scores of all models become one: `of` the average, and a shrunk weight of each deviation from it."""

    axes: Axes
    # Mean and standard deviation of the log odds of an average model.
    centre: float
    spread: float
    # Whether all scores are probabilities; the joint score then is one, too.
    is_probability: bool
    # Intercept, slope of the average and of the deviations.
    coefficients: FloatArray
    line_sd: float
    # What the labels leave open of the last: for each of the `_SPREADS` its weight, its mode and a root of its
    # covariance.
    share: FloatArray
    modes: FloatArray
    roots: FloatArray

    @classmethod
    def fit(
        cls,
        score: FloatArray,
        rows: FloatArray,
        labeled: tuple[FloatArray, FloatArray, FloatArray],
        thresholds: FloatArray,
    ) -> "JointScore":
        """Learned from the scores of all `rows` (models x cells), and from labels: scores, positives, negatives."""
        total, axes = float(rows.sum()), Axes.of(score, rows, thresholds)
        odds = [Platt().prepare(one, rows) for one in score]
        inside = all(scale.is_probability_ for scale in odds)
        x = np.stack([scale.line(one) for scale, one in zip(odds, score, strict=True)])
        means = x @ rows / total
        sds = np.sqrt(np.maximum(((x - means[:, None]) ** 2) @ rows / total, 0.0))
        centre, spread = float(means.mean()), float(np.where(sds > 0.0, sds, 1.0).mean())
        X, credit = axes.design(labeled[0]), credit_of(min(float(counts.sum()) for counts in labeled[1:]))
        positives, negatives = (credit * counts for counts in labeled[1:])
        slope = spread if inside else 0.0
        start = np.array([centre if inside else 0.0, slope])
        wide = np.array([3.0, max(slope, 1e-3)]) if inside else np.array([5.0, 5.0])
        alone = find_logistic_mode(X[:, :2], positives, negatives, start, wide**-2.0)
        unit = max(abs(float(alone.theta[1])), _LEAST_SLOPE) / np.sqrt(len(score))
        modes = []
        for sd in _SPREADS * unit:
            prior = np.append(wide**-2.0, np.full(X.shape[1] - 2, sd**-2.0))
            at = np.append(start, np.zeros(X.shape[1] - 2))
            modes.append(find_logistic_mode(X, positives, negatives, at, prior))
        evidence = np.array([approximate_log_integral(mode) for mode in modes])
        share = np.exp(evidence - evidence.max())
        share /= share.sum()
        coefficients = share @ np.array([mode.theta for mode in modes])
        line = axes.design(score) @ coefficients
        mean = float(line @ rows / total)
        return cls(
            axes,
            centre,
            spread,
            inside,
            coefficients,
            line_sd=float(np.sqrt((line - mean) ** 2 @ rows / total)) or 1.0,
            share=share,
            modes=np.array([mode.theta[2:] for mode in modes]),
            roots=np.linalg.cholesky([np.linalg.inv(mode.precision)[2:, 2:] for mode in modes]),
        )

    def of(self, score: FloatArray) -> FloatArray:
        """The joint score: with the level and the spread of an average model, so that what is known of scores holds."""
        line = self.axes.design(score) @ self.coefficients
        line = (line - self.coefficients[0]) / self.line_sd
        if not self.is_probability:
            return np.asarray(line, dtype=np.float64)
        return np.asarray(expit(self.centre + self.spread * line), dtype=np.float64)

    def deviations(self, score: FloatArray) -> FloatArray:
        """How the models disagree about each row: cells x directions."""
        return self.axes.design(score)[:, 2:]

    def draws(self, number: int) -> FloatArray:
        """How far the weights of the deviations may be from those of the joint score: draws x directions."""
        size = self.modes.shape[1]
        normal = normal_points(number, size, _SEED)
        # One after the other in proportion to their weights, spread over the draws.
        spread = np.searchsorted(np.cumsum(self.share), (np.arange(number) * 0.6180339887498949) % 1.0)
        spread = np.minimum(spread, self.share.size - 1)
        result = np.empty_like(normal)
        for k, (mode, root) in enumerate(zip(self.modes, self.roots, strict=True)):
            result[spread == k] = mode + normal[spread == k] @ root.T
        return result - self.coefficients[2:]


def _apart(contrast: FloatArray, normal: FloatArray, decided: BoolArray) -> FloatArray:
    """How models disagree in normal scores, their squares and decisions (directions x cells), on one scale."""
    return np.vstack([contrast.T @ kind for kind in (normal, (normal**2 - 1.0) / np.sqrt(2.0), _STEP * decided)])


def moved(probability: FloatArray, by: FloatArray) -> FloatArray:
    """Probabilities whose log odds are moved; those of 0 and 1 stay."""
    return np.asarray(expit(logit(probability) + by), dtype=np.float64)
