"""What late labels take for likely before any label is seen, and what was seen says of it.

Some standard deviations are not known beforehand: what scores add to the hazards, and how the log odds of a positive at
one score move over the times of scoring. Each has a few values, which the data weigh against each other.
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
# wide bins have more of them; how far all hazards may be off that, and how far from bin to bin. (The same hazard for
# every bin would say that ever fewer come: what is late is then hard to tell from what never comes, and where one bin
# holds most of the time, nearly all labels have to come in it against the prior.)
_MEAN_DELAY, _LEVEL_SD, _STEP = 0.25, 2.5, 1.0
# Log odds of a hazard in the bin of the maturity: by then every positive has come, by definition.
_SURELY = 6.0
# Prior of the log odds that a label never comes; where only positives come, those that never do are none by definition.
_NEVER, _NEVER_SD, _HARDLY_EVER = -3.0, 2.0, -12.0
# How far the log odds of a hazard may jump on a day on which labels of a class come at once.
_STEP_JUMP = 6.0


class Setting(NamedTuple):
    """Standard deviations of one prior."""

    # What a zone of scores adds to the log odds of hazards.
    zone: float
    # How far the log odds of a positive wander over all times of scoring, and rise or fall steadily.
    wander: float
    trend: float


# Values that are equally likely beforehand; the first ones are the usual case. Without a trend one of 0.6 is too much
# for the first walk and too little for the last, so that it is taken for none; and where a portfolio changes within
# weeks, a last walk of 1.5 is too slow. (With zones of 0.03 four times as likely as others, and hazards that may be
# smoother, intervals are a tenth narrower, and hold 72 to 78% of real events where these hold 80 and more.)
_ZONES = (0.1, 0.7)
_DRIFTS = ((0.15, 0.0), (0.15, 0.7), (3.0, 0.0))
# A walk from which on shares of positives turn quickly.
_QUICK = 1.0
# Two that are not usual at once are left out where each alone makes it clear that they would hardly get a draw.
_RARELY = 0.01


def usual() -> Setting:
    """The setting that is taken first."""
    return Setting(_ZONES[0], *_DRIFTS[0])


def prior(grid: Grid, setting: Setting) -> tuple[FloatArray, FloatArray]:
    """Mean and precision: the calibrator's own, drift, a random walk of log hazards for each class, never, zones."""
    bins, moves = grid.bins, grid.knots.size - 1
    calibrator = grid.calibrator
    curve = calibrator.prior_scale_
    steps = np.tile(np.append(_LEVEL_SD, np.full(bins, _STEP)), (2, 1))
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
    found: dict[tuple[int, int], Draws] = {}
    for place in sorted(product(range(len(_ZONES)), range(len(drifts))), key=min):  # those with one of the firsts first
        if min(place) and _expected(found, place) < _RARELY:
            continue
        zone, drift = place
        own = replace(likelihood, prior_precision=prior(grid, Setting(_ZONES[zone], *drifts[drift]))[1])
        near = found.get((0, drift))
        found[place] = gaussian_posterior(own, mode if near is None else near.parameters.mean(axis=0), size)
    weight = softmax([draws.log_evidence for draws in found.values()])
    ends = np.rint(size * np.cumsum(weight)).astype(np.int64)
    first = np.append(0, ends[:-1])
    parameters = [draws.parameters[a:b] for draws, a, b in zip(found.values(), first, ends, strict=True)]
    turning = sum(share for share, (_, drift) in zip(weight, found, strict=True) if drifts[drift][0] > _QUICK)
    return PriorsWeighed(np.concatenate(parameters), float(turning))


def _expected(found: dict[tuple[int, int], Draws], place: tuple[int, int]) -> float:
    """The weight that both settings at once would get, if what one adds to the evidence did not depend on the other."""
    alone = {at: draws.log_evidence for at, draws in found.items() if not min(at)}
    both = alone[place[0], 0] + alone[0, place[1]] - alone[0, 0]
    return float(softmax([both, *alone.values()])[0])
