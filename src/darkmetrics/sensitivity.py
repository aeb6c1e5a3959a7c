"""Sensitivity analysis: metrics when the odds of the missing labels differ from what was assumed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._text import prints_plainly
from darkmetrics.constraints import check_value
from darkmetrics.distributions import Interval
from darkmetrics.evaluation import Evaluation
from darkmetrics.shifted_metrics import Shift, ShiftedDistributions, ShiftedMetrics
from darkmetrics.tables import decimals_for, interval_text, level_text, text_table

# Steps from 0 to the largest shift on the first grid of a search: of normal mixtures, of draws, and of exact results,
# where a step is at most so long up to a maximum number of steps.
_N_STEPS, _N_DRAWN_STEPS, _MAX_STEP, _MAX_STEPS = 2, 1, 0.3, 8
# The step is halved until it is at most so long, or this fraction of the largest shift; for exact results, until it is
# this fraction of the first step.
_FINEST_STEP, _FINEST_REACH, _FINEST_EXACT = 0.14, 2.0**-4, 2.0**-10
# Fraction of the range of values on a grid by which equal ones may differ.
_SAME = 1e-7
# Larger factors are reported as infinite.
_MAX_ODDS = 1e6

ShiftFunction = Callable[[Sequence[Shift]], FloatArray]


@prints_plainly
@dataclass(frozen=True, eq=False)
class Sensitivity(Mapping[str, Interval]):
    """The interval of each metric if the odds of missing rows are up to `odds` times higher or lower than assumed.

    A mapping from metric name to `Interval`; print it for a table. `assumed` has the intervals of the evaluation.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.9]), metrics=["precision", "recall"]
    ... )
    >>> print(result.sensitivity(odds=4))
                  90% interval   sensitivity (odds x4)
    precision   0.500 to 1.000          0.500 to 1.000
    recall      0.500 to 0.667          0.500 to 0.667
    """

    odds: float
    confidence_level: float
    assumed: Mapping[str, Interval]
    intervals: Mapping[str, Interval]

    def __getitem__(self, name: str) -> Interval:
        return self.intervals[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.intervals)

    def __len__(self) -> int:
        return len(self.intervals)

    def __repr__(self) -> str:
        return f"<Sensitivity to odds {self.odds:g} times off: {', '.join(self.intervals)}>"

    def __str__(self) -> str:
        header = ["", f"{level_text(self.confidence_level)} interval", self.column]
        return "\n".join(
            text_table(header, [[name, *map(_shown, (self.assumed[name], self[name]))] for name in self.intervals])
        )

    @property
    def column(self) -> str:
        """The heading of these intervals in a table."""
        return f"sensitivity (odds x{self.odds:g})"


@prints_plainly
@dataclass(frozen=True)
class TippingPoint:
    """The smallest factor on the odds of missing rows at which a target is no longer met, as a number and in words.

    Attributes
    ----------
    metric, target, side
        What is asked for: `side` is "at least", or "at most" where lower is better.
    odds : float
        The factor; 1 where the target is not met as it is, infinity where no factor does it.
    confidence_level : float
        A target is met when it is so with at least this probability.
    flagged, unflagged : int
        Whether it takes higher (1) or lower (-1) odds of the rows decided positive, and negative; 0: they do not
        matter.
    """

    metric: str
    target: float
    side: str
    confidence_level: float
    odds: float
    flagged: int = 0
    unflagged: int = 0

    def __float__(self) -> float:
        return self.odds

    def __str__(self) -> str:
        sure = f"with probability {level_text(self.confidence_level)} or more"
        claim = f"{self.metric} is {self.side} {self.target:g} {sure}"
        if np.isnan(self.odds):
            return f"Whether {self.metric} is {self.side} {self.target:g} cannot be said: it is 0/0."
        if self.odds == 1.0:
            return f"It is not so that {claim}, even if the odds of the missing rows are as assumed."
        if np.isinf(self.odds):
            return f"{claim}, however far off the odds of the missing rows are."
        sides = {"decided positive": self.flagged, "decided negative": self.unflagged}
        words = {1: "higher", -1: "lower"}
        times = f"{self.odds:.3g} times"
        moved = [f"{times} {words[sign]} for those {rows}" for rows, sign in sides.items() if sign]
        if len(moved) == 2 and self.flagged == self.unflagged:
            moved = [f"{times} {words[self.flagged]}"]
        odds = f"the odds that missing rows are positive are {' and '.join(moved)} than assumed"
        return f"{claim} unless {odds}."


def check_odds(odds: Any) -> float:
    """Return a factor on the odds, checked."""
    check_value("odds", odds)
    return float(odds)


def sensitivity_of(evaluation: Evaluation, odds: float, known: Mapping[float, Sensitivity]) -> Sensitivity:
    """Compute the intervals over all shifts by up to this factor on the odds (see `Evaluation.sensitivity`).

    They contain the intervals that are known for smaller factors.
    """
    level, assumed = evaluation.confidence_level, evaluation.intervals
    smaller = max((factor for factor in known if factor < odds), default=None)
    intervals = dict(assumed if smaller is None else known[smaller])
    result = partial(Sensitivity, odds, level, assumed)
    if not evaluation.data.missing_cells.size or evaluation.posterior.certain or odds == 1.0:
        return result(intervals)
    if not evaluation.posterior.independent:
        return result(dict.fromkeys(intervals, Interval(np.nan, np.nan)))
    names = [name for name in intervals if np.isfinite(assumed[name].low)]
    search = _Search(ShiftedMetrics(evaluation), names, float(np.log(odds)))
    tail = 0.5 * (1.0 - level)
    # Ends at the same shift share its posterior.
    ends: dict[Shift, list[tuple[str, int]]] = {}
    for name, sign in product(names, (-1, 1)):
        ends.setdefault(search.extreme_shift(name, 0.5 + sign * (0.5 - tail), sign), []).append((name, sign))
    for shift, questions in ends.items():
        problem = search.metrics.problem(shift)
        for name, sign in questions:
            value = search.metrics.distribution(name, problem).ppf(0.5 + sign * (0.5 - tail))
            low, high = intervals[name]
            intervals[name] = Interval(min(low, value), high) if sign < 0 else Interval(low, max(high, value))
    return result(intervals)


def tipping_point_of(evaluation: Evaluation, name: str, target: float) -> TippingPoint:
    """Find the smallest factor at which a target is no longer met (see `Evaluation.tipping_point`)."""
    assumed = evaluation[name]
    lower = evaluation.metrics[name].better == "lower"
    level = evaluation.confidence_level
    result = partial(TippingPoint, name, target, "at most" if lower else "at least", level)
    if np.isnan(assumed.mean()):
        return result(np.nan)
    if not evaluation.target_probability(name, target) >= level:
        return result(1.0)
    worst = assumed.support()[1 if lower else 0]
    if (worst <= target if lower else worst >= target) or not evaluation.data.missing_cells.size:
        return result(np.inf)
    if not evaluation.posterior.independent:
        return result(np.nan)
    sign, q = (1, level) if lower else (-1, 1.0 - level)
    metrics = ShiftedMetrics(evaluation)
    shifts: dict[float, Shift] = {}

    def margin(reach: float) -> float:
        """Return by how much the extreme quantile meets the target."""
        shifts[reach] = _Search(metrics, [name], reach).extreme_shift(name, q, sign)
        distribution = metrics.distribution(name, metrics.problem(shifts[reach]))
        return sign * (target - float(distribution.ppf(q)))

    from scipy.optimize import brentq

    end = float(np.log(_MAX_ODDS))
    if margin(end) >= 0.0:
        return result(np.inf)
    # Without a shift the target is met, so the margin is positive there.
    reach = float(brentq(lambda x: margin(x) if x > 0.0 else 1e-300, 0.0, end, xtol=1e-4))
    margin(reach)
    above, below = (int(np.sign(shift)) for shift in shifts[reach])
    return result(float(np.exp(reach)), above, below)


class _Search:
    """A search for the shift within reach at which a quantile of a metric is lowest or highest."""

    def __init__(self, metrics: ShiftedMetrics, names: Sequence[str], reach: float) -> None:
        self.metrics, self._reach = metrics, reach
        self._n_steps = {name: self._count_steps(name) for name in names}
        self._grids: dict[str, tuple[list[Shift], ShiftedDistributions]] = {}
        for n in sorted(set(self._n_steps.values())):
            axis = [reach * i / n for i in range(-n, n + 1)]
            grid = list(product(axis, axis))
            group = [name for name in names if self._n_steps[name] == n]
            self._grids |= {
                name: (grid, distributions) for name, distributions in metrics.approximate(group, grid).items()
            }

    def extreme_shift(self, name: str, q: float, sign: int) -> Shift:
        """Return the shift at which the quantile is lowest (`sign` -1) or highest (1), the smallest of equal ones."""
        grid, distributions = self._grids[name]

        def compute_quantiles(shifts: Sequence[Shift]) -> FloatArray:
            return sign * self.metrics.approximate([name], shifts)[name].quantiles(q)

        values = dict(zip(grid, (sign * distributions.quantiles(q)).tolist(), strict=True))
        if self.metrics.is_exact(name):
            return self._extreme_step(name, values, compute_quantiles, "lower" if sign > 0 else "higher", sign)
        if self.metrics.is_drawn(name):
            return _largest(values, _tolerance(values))
        return self._climb(name, values, compute_quantiles)

    def _extreme_step(
        self, name: str, values: dict[Shift, float], compute_quantiles: ShiftFunction, better: str, sign: int
    ) -> Shift:
        """Return the extreme shift of a quantile that is a step function of the shift.

        The probability of values beyond a step is smooth. Where it is largest, the quantile passes the step if it does
        so anywhere. Of shifts on the grid with the same step, the one with the largest probability up to the step suits
        methods whose quantiles have no steps.
        """
        grid, distributions = self._grids[name]
        extreme = _largest(values, 0.0)
        step = values[extreme]
        while np.isfinite(step):
            target = sign * step

            def compute_beyond(shifts: Sequence[Shift], target: float = target) -> FloatArray:
                return -self.metrics.approximate([name], shifts)[name].target_probabilities(target, better)

            beyond = -distributions.target_probabilities(target, better)
            shift = self._climb(name, dict(zip(grid, beyond.tolist(), strict=True)), compute_beyond)
            value = float(compute_quantiles([shift])[0])
            if not value > step:
                break
            extreme, step = shift, value
        reached = distributions.target_probabilities(sign * step, "higher" if sign > 0 else "lower")
        shift = _largest(dict(zip(grid, reached.tolist(), strict=True)), 0.0)
        return shift if float(compute_quantiles([shift])[0]) >= step else extreme

    def _count_steps(self, name: str) -> int:
        """Return the number of steps from 0 to the largest shift on the first grid."""
        if self.metrics.is_exact(name):
            return min(max(_N_STEPS, int(np.ceil(self._reach / _MAX_STEP))), _MAX_STEPS)
        return _N_DRAWN_STEPS if self.metrics.is_drawn(name) else _N_STEPS

    def _climb(self, name: str, values: dict[Shift, float], function: ShiftFunction) -> Shift:
        """Return the shift where a function is largest, from its values on the grid."""
        reach, tolerance = self._reach, _tolerance(values)
        extreme, step = _largest(values, tolerance), reach / self._n_steps[name]
        is_exact = self.metrics.is_exact(name)
        finest = _FINEST_EXACT * step if is_exact else max(_FINEST_STEP, _FINEST_REACH * reach)
        fixed = [not is_exact and self._rises(values, extreme, axis) for axis in range(2)]
        while step > finest:
            step *= 0.5
            axes = [
                (x,) if is_fixed else tuple(np.clip((x - step, x, x + step), -reach, reach).tolist())
                for x, is_fixed in zip(extreme, fixed, strict=True)
            ]
            shifts = [shift for shift in product(*axes) if shift not in values]
            if not shifts:
                break
            near = function(shifts)
            if np.abs(near - values[extreme]).max() <= tolerance:
                break  # the metric does not depend on these rows
            values |= zip(shifts, near.tolist(), strict=True)
            extreme = _largest(values, tolerance)
        return extreme

    def _rises(self, values: Mapping[Shift, float], shift: Shift, axis: int) -> bool:
        """Return whether the slope at the edge of the grid, from three values along an axis, points outward."""
        if abs(shift[axis]) < self._reach:
            return False
        above, below = shift
        points = [(above * f, below) if axis == 0 else (above, below * f) for f in (1.0, 0.5, 0.0)]
        last, middle, first = (values[point] for point in points)
        return bool(3.0 * last - 4.0 * middle + first > 0.0)


def _tolerance(values: Mapping[Shift, float]) -> float:
    """Return how much values on a grid may differ and count as equal."""
    return _SAME * float(np.ptp(list(values.values())))


def _largest(values: Mapping[Shift, float], tolerance: float) -> Shift:
    """Return the smallest of the shifts with the largest value."""
    largest = max(values.values())
    equal = (shift for shift, value in values.items() if value >= largest - tolerance)
    return min(equal, key=lambda shift: abs(shift[0]) + abs(shift[1]), default=(0.0, 0.0))  # all are NaN


def _shown(interval: Interval) -> str:
    return interval_text(interval, decimals_for(interval.high - interval.low))
