"""What late labels take for likely before any label is seen, and what was seen says of it.

Some standard deviations are not known beforehand: how far hazards differ from bin to bin, what scores add to them, how
the log odds of a positive at one score move over the times of scoring. Each has a few values, which the data weigh
against each other. What is mostly not so is unlikely beforehand too: allowing for it costs width.
"""

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy  # its parts are loaded when they are first used
from scipy.special import softmax

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.posterior.arrival import ArrivalLikelihood
from darkmetrics._kernels.posterior.draws import Draws, gaussian_posterior
from darkmetrics.label_models.late_grid import Grid

# Prior of the log odds of a hazard: labels come evenly in time, on average after this share of the oldest age, so that
# wide bins have more of them; how far all hazards may be off that. (The same hazard for every bin would say that ever
# fewer come: what is late is then hard to tell from what never comes, and where one bin holds most of the time, nearly
# all labels have to come in it against the prior.)
_MEAN_DELAY, _LEVEL_SD = 0.25, 2.5
# Log odds of a hazard in the bin of the maturity: by then every positive has come, by definition.
_SURELY = 6.0
# Prior of the log odds that a label never comes; where only positives come, those that never do are none by definition.
_NEVER, _NEVER_SD, _HARDLY_EVER = -3.0, 2.0, -12.0
# How far the log odds of a hazard may jump on a day on which labels of a class come at once.
_STEP_JUMP = 6.0


class Setting(NamedTuple):
    """Standard deviations of one prior."""

    # From bin to bin of the log odds of hazards, and what a zone of scores adds to them.
    step: float
    zone: float
    # How far the log odds of a positive wander over all times of scoring, and rise or fall steadily.
    wander: float
    trend: float


# Values and how likely they are beforehand; the first ones are the usual case. Without a trend one of 0.6 is too much
# for the first walk and too little for the last, so that it is taken for none; and where a portfolio changes within
# weeks, a last walk of 1.5 is too slow.
_STEPS = ((0.4, 0.5), (1.0, 0.5))
_ZONES = ((0.03, 0.8), (0.7, 0.2))
_DRIFTS = (((0.05, 0.0), 1.0 / 3.0), ((0.15, 0.7), 1.0 / 3.0), ((3.0, 0.0), 1.0 / 3.0))
# A walk from which on shares of positives turn quickly.
_QUICK = 1.0
# Two that are not usual at once are left out where each alone makes it clear that they would hardly get a draw.
_RARELY = 0.01


def usual() -> Setting:
    """The setting that is taken first."""
    return Setting(_STEPS[0][0], _ZONES[0][0], *_DRIFTS[0][0])


def prior(grid: Grid, setting: Setting) -> tuple[FloatArray, FloatArray]:
    """Mean and precision: the calibrator's own, drift, a random walk of log hazards for each class, never, zones."""
    bins, moves = grid.bins, grid.knots.size - 1
    calibrator = grid.calibrator
    curve = calibrator.prior_scale_
    steps = np.tile(np.append(_LEVEL_SD, np.full(bins, setting.step)), (2, 1))
    for day in grid.days:
        steps[day.class_, day.bin_ : day.bin_ + 2] = _STEP_JUMP
    walks = [_walk(own[:bins]) for own in steps]
    # The oldest knot is 0, and the steps to the others grow with the root of the time between them.
    times = -np.diff(grid.knots) / max(float(np.ptp(grid.knots)), 1e-300)
    path = _walk(setting.wander * np.sqrt(times))
    paths = [_with_trend(path, setting.trend * np.cumsum(times)), path]
    zones = np.eye(grid.zones - 1) * setting.zone**-2.0
    parts = [np.diag(curve**-2.0), *paths, *walks, np.eye(2) * _NEVER_SD**-2.0, zones]
    never = np.array([_NEVER if grid.maturity is None else _HARDLY_EVER, _NEVER])
    even = np.log(np.expm1(np.diff(grid.edges) / (_MEAN_DELAY * grid.oldest)))
    positives = even if grid.maturity is None else _even_until(grid, grid.maturity, even)
    mean = [calibrator.prior_mean_, np.zeros(2 * moves), positives, even, never, np.zeros(grid.zones - 1)]
    return np.concatenate(mean), scipy.linalg.block_diag(*parts)


def _even_until(grid: Grid, maturity: float, even: FloatArray) -> FloatArray:
    """Log odds of hazards of labels that come evenly, and all of them by the maturity."""
    last = int(np.searchsorted(grid.edges, maturity, side="left")) - 1
    if last < 0:
        return even
    left = np.exp(-grid.edges[: last + 1] / (_MEAN_DELAY * grid.oldest)) - np.exp(
        -maturity / (_MEAN_DELAY * grid.oldest)
    )
    result = even.copy()
    result[:last] = np.minimum(np.log(left[:-1] / left[1:] - 1.0), _SURELY)
    result[last] = _SURELY
    return result


def _walk(steps: FloatArray) -> FloatArray:
    """Precision of a random walk that starts at its mean, with these standard deviations of steps."""
    moves = np.eye(steps.size) - np.eye(steps.size, k=-1)
    return np.asarray((moves.T * steps**-2.0) @ moves, dtype=np.float64)


def _with_trend(precision: FloatArray, trend: FloatArray) -> FloatArray:
    """The precision with a multiple of `trend` added to what it is of, which is standard normal."""
    pulled = precision @ trend
    return precision - np.outer(pulled, pulled) / (1.0 + float(trend @ pulled))


class PriorsWeighed(NamedTuple):
    """Draws of the parameters, as many from each prior as what was seen gives it weight."""

    parameters: FloatArray
    # How likely it is that the share of positives at a score turns quickly with the time of scoring.
    turning: float


def weighed_draws(likelihood: ArrivalLikelihood, grid: Grid, mode: FloatArray, size: int) -> PriorsWeighed:
    """Draws from the posteriors of all settings, each a Gaussian at its mode; the search starts at `mode`."""
    drifts = _DRIFTS if grid.knots.size > 1 else _DRIFTS[:1]
    places = product(range(len(_STEPS)), range(len(_ZONES)), range(len(drifts)))
    found: dict[tuple[int, int, int], Draws] = {}
    log_weight: dict[tuple[int, int, int], float] = {}
    for place in sorted(places, key=np.count_nonzero):  # those with at most one that is not usual come first
        if np.count_nonzero(place) > 1 and _expected(log_weight, place) < _RARELY:
            continue
        (step, likely), (zone, as_likely), (drift, so_likely) = (_STEPS[place[0]], _ZONES[place[1]], drifts[place[2]])
        own = replace(likelihood, prior_precision=prior(grid, Setting(step, zone, *drift))[1])
        near = found.get((0, 0, place[2]))
        found[place] = gaussian_posterior(own, mode if near is None else near.parameters.mean(axis=0), size)
        log_weight[place] = found[place].log_evidence + float(np.log(likely * as_likely * so_likely))
    weight = softmax(list(log_weight.values()))
    ends = np.rint(size * np.cumsum(weight)).astype(np.int64)
    first = np.append(0, ends[:-1])
    parameters = [draws.parameters[a:b] for draws, a, b in zip(found.values(), first, ends, strict=True)]
    turning = sum(share for share, place in zip(weight, found, strict=True) if drifts[place[2]][0][0] > _QUICK)
    return PriorsWeighed(np.concatenate(parameters), float(turning))


def _expected(log_weight: dict[tuple[int, int, int], float], place: tuple[int, int, int]) -> float:
    """The share of the weight that a place would get, if what one setting adds to it did not depend on the others."""
    alone = {at: value for at, value in log_weight.items() if np.count_nonzero(at) <= 1}
    none = alone[0, 0, 0]
    ones = [tuple(index if i == axis else 0 for i in range(3)) for axis, index in enumerate(place) if index]
    both = none + sum(alone[one[0], one[1], one[2]] - none for one in ones)
    return float(softmax([both, *alone.values()])[0])
