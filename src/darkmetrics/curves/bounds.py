"""A metric at neighboring thresholds: its formula, its bounds and the probability of 0/0."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.curves.bands import Swept
from darkmetrics.curves.sums import ThresholdRange
from darkmetrics.distributions.functionals import RatioForm
from darkmetrics.metrics import ConfusionMetric
from darkmetrics.metrics.confusion import Ratio


class MetricRange:
    """A metric at a range of thresholds, as a function of the positive weight above and below each threshold."""

    def __init__(self, metric: ConfusionMetric, fill: float, window: ThresholdRange) -> None:
        self.metric, self.fill, self.window = metric, fill, window
        self._formula = metric.of_positives(window.n_positive, window.n_negative, window.data.dust)

    def at(self, positives: Sequence[FloatArray]) -> FloatArray:
        """Return the metric at the positive weight of the missing rows above and below (... x n_thresholds)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(
                self._formula(self.window.tp + positives[0], self.window.fn + positives[1]), dtype=np.float64
            )
        return np.where(np.isfinite(value), value, np.nan)

    @cached_property
    def _corners(self) -> FloatArray:
        """The metric at the ends of both sums and next to them (4 x 4 x n_thresholds): its extremes, and 0/0."""
        above, below = (
            _ends(total, smallest) for total, smallest in zip(self.window.missing, self.window.smallest, strict=True)
        )
        return self.at([above[:, None], below[None, :]])

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Smallest and largest value over all label assignments."""
        low, high = (np.asarray(end.reduce(self._corners, axis=(0, 1)), np.float64) for end in (np.fmin, np.fmax))
        if np.isnan(self.fill):
            return low, high
        undefined = np.isnan(self._corners).any(axis=(0, 1))
        return np.where(undefined, np.fmin(low, self.fill), low), np.where(undefined, np.fmax(high, self.fill), high)

    @property
    def labeled_only(self) -> FloatArray:
        """The metric on the labeled rows only."""
        window = self.window
        if not window.data.n_labeled:
            return np.full(window.n_thresholds, np.nan)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.asarray(self.metric.formula(window.tp, window.fp, window.fn, window.tn), dtype=np.float64)
        return np.where(np.isfinite(value), value, self.fill)

    @cached_property
    def form(self) -> RatioForm | None:
        """Coefficients of a ratio at each threshold (3 x n_thresholds); None for other formulas."""
        window, metric = self.window, self.metric
        if isinstance(metric.formula, Ratio):
            return metric.formula.at(window.n_positive, window.n_negative)
        pairs = zip(window.n_positive.tolist(), window.n_negative.tolist(), strict=True)
        forms = [metric.form_at(*pair) for pair in pairs] if metric.form is not None else []
        if not forms or not all(isinstance(form, RatioForm) for form in forms):
            return None
        return RatioForm(*(np.array(column).T for column in zip(*forms, strict=True)))

    @property
    def excluded(self) -> BoolArray:
        """Thresholds at which bounds or the probability of 0/0 have to be computed one by one."""
        return ~self._has_simple_extremes | self._undefined[1]

    @property
    def undefined_mass(self) -> FloatArray:
        """Probability of 0/0 at every draw (n_draws x n_thresholds)."""
        return self._undefined[0]

    @property
    def _has_simple_extremes(self) -> BoolArray:
        """Thresholds at which the metric is monotone in both sums, or a ratio with a denominator of constant sign."""
        window = self.window
        monotone = np.full(window.n_thresholds, None not in self.metric.direction)
        if self.form is None:
            return monotone
        constant, *slopes = self.form.denominator
        start = constant + slopes[0] * window.tp + slopes[1] * window.fn
        change = np.stack([slope * total for slope, total in zip(slopes, window.missing, strict=True)])
        falls, rises = np.minimum(change, 0.0).sum(axis=0), np.maximum(change, 0.0).sum(axis=0)
        return np.asarray(monotone | (start + falls >= 0.0) | (start + rises <= 0.0), dtype=np.bool_)

    @cached_property
    def _undefined(self) -> tuple[FloatArray, BoolArray]:
        """Probability of 0/0, and the thresholds at which it is unknown.

        It is known if 0/0 occurs only at an end of a sum, or at ends of both sums.
        """
        window, nan = self.window, np.isnan(self._corners)
        mass, unknown = np.zeros((window.n_draws, window.n_thresholds)), np.zeros(window.n_thresholds, dtype=np.bool_)
        mass[:, nan.all(axis=(0, 1))] = 1.0
        index = np.flatnonzero(nan.any(axis=(0, 1)) & ~nan.all(axis=(0, 1)))
        if not index.size:
            return mass, unknown
        nan = nan[:, :, index]
        # Probability of the two ends of a sum; a sum without missing rows has a single end.
        above, below = (
            {0: none[:, index], 3: np.where(total[index] > 0.0, every[:, index], 0.0)}
            for none, every, total in zip(window.probability_none, window.probability_all, window.missing, strict=True)
        )
        # Ends of a sum at which the metric is 0/0 for every value of the other sum.
        rows, columns = np.asarray(nan.all(axis=1)), np.asarray(nan.all(axis=0))
        first, second = (
            np.asarray(sum(np.where(faces[end], ends[end], 0.0) for end in (0, 3)))
            for faces, ends in ((rows, above), (columns, below))
        )
        result = first + second - first * second
        explained = np.zeros(nan.shape, dtype=np.bool_)
        for i in (0, 3):
            explained[i] |= rows[i]
            explained[:, i] |= columns[i]
            for j in (0, 3):
                corner = nan[i, j] & ~rows[i] & ~columns[j]
                result += np.where(corner, above[i] * below[j], 0.0)
                explained[i, j] |= corner
        mass[:, index] = np.clip(result, 0.0, 1.0)
        unknown[index] = (nan & ~explained).any(axis=(0, 1))
        return mass, unknown

    def swept(self, mean: FloatArray, quantiles: FloatArray, undefined: FloatArray) -> Swept:
        """Return the range of a curve, with quantiles inside the bounds."""
        low, high = self.bounds
        return Swept(mean, np.clip(quantiles, low, high), low, high, undefined, self.labeled_only)

    def certain(self, levels: FloatArray) -> Swept:
        """Return the range of a curve if nothing is random: a single value, with `fill` for 0/0."""
        value = self.at([mean[0] for mean in self.window.means])
        undefined = np.isnan(value)
        value = np.where(undefined, self.fill, value)
        return self.swept(value, np.broadcast_to(value, (levels.size, value.size)), undefined.astype(np.float64))


def _ends(total: FloatArray, smallest: FloatArray) -> FloatArray:
    return np.stack([np.zeros_like(total), np.minimum(smallest, total), np.maximum(0.0, total - smallest), total])
