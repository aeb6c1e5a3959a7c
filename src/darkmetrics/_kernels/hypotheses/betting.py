"""Bets on labels as they come: test martingales for probabilities that were said beforehand (how-to, audit).

The probabilities of labels to come are a mixture over nodes. A better moves the log odds of all nodes by a tilt, and
multiplies the capital by the chance that the tilted mixture gives to what came, over the chance that the mixture gives.
Averaged over tilts that are fixed beforehand the capital is a martingale if the mixture is right, and grows where some
tilt fits better.
"""

import numpy as np
import scipy  # its parts are loaded when they are first used
from scipy.special import logsumexp

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray

# How far the log odds are moved, each as likely beforehand: from a quarter more odds to seven times as many.
TILTS: FloatArray = np.array([0.0, -2.0, -1.0, -0.5, -0.25, 0.25, 0.5, 1.0, 2.0])
# Of one tilt for rows that are flagged and one for the others.
_LOG_PAIRS = 2.0 * float(np.log(TILTS.size))
# Log odds beyond this are those of chances that are 0 or 1 to the last bit, of which no bet is infinite.
FARTHEST = 36.0


class Capital:
    """What has become of a stake of 1 put against a mixture of probabilities, after each batch of labels.

    Tilts are chosen apart for rows that are flagged and for those that are not.
    """

    def __init__(self, weight: FloatArray) -> None:
        self._log_weight = np.log(np.maximum(weight, 1e-300))
        self._likelihood = np.zeros((2, weight.size, TILTS.size))

    def add(self, log_odds: FloatArray, flagged: BoolArray, positives: IntArray, negatives: IntArray) -> None:
        """A batch of labels: so many positive and negative ones in each column of `log_odds` (nodes x columns)."""
        for side, own in enumerate((flagged, ~flagged)):
            if own.any():
                eta, yes, labels = log_odds[:, own], positives[own], (positives + negatives)[own]
                for at, tilt in enumerate(TILTS.tolist()):
                    tilted = eta + tilt
                    self._likelihood[side, :, at] += tilted @ yes - np.logaddexp(0.0, tilted) @ labels

    @property
    def log_value(self) -> float:
        """The logarithm of the capital."""
        null = self._likelihood[:, :, 0].sum(axis=0)
        bet = logsumexp(self._likelihood, axis=2).sum(axis=0) - _LOG_PAIRS
        return float(logsumexp(self._log_weight + bet) - logsumexp(self._log_weight + null))


def log_moments(weight: FloatArray, log_odds: FloatArray, flagged: BoolArray, rows: IntArray) -> FloatArray:
    """Logs of E exp(c A + d B) for each pair of tilts: A and B are the positives among flagged and other rows."""
    sides = []
    for own in (flagged, ~flagged):
        eta, count = log_odds[:, own], rows[own]
        none = np.logaddexp(0.0, eta) @ count
        sides.append(np.stack([np.logaddexp(0.0, eta + tilt) @ count - none for tilt in TILTS.tolist()]))
    both = sides[0][:, None, :] + sides[1][None, :, :]
    return np.asarray(logsumexp(both + np.log(np.maximum(weight, 1e-300)), axis=2), dtype=np.float64)


def least_log_capital(moments: FloatArray, low: FloatArray, high: FloatArray) -> float:
    """Log of the least of the mean over tilts of exp(c A + d B) / E exp(c A + d B), for A and B in a box.

    The logarithm is convex in (A, B): the tangent plane at a point near its minimum bounds it from below in the box,
    and the least of that plane is returned, so that an error of the search only makes it smaller.
    """

    def value(place: FloatArray) -> tuple[float, FloatArray]:
        terms = TILTS[:, None] * place[0] + TILTS[None, :] * place[1] - moments
        top = float(logsumexp(terms))
        share = np.exp(terms - top)
        return top - _LOG_PAIRS, np.array([share.sum(axis=1) @ TILTS, share.sum(axis=0) @ TILTS])

    width = high - low

    def scaled(u: FloatArray) -> tuple[float, FloatArray]:
        at, slope = value(low + u * width)
        return at, slope * width

    u = scipy.optimize.minimize(scaled, np.full(2, 0.5), jac=True, bounds=[(0.0, 1.0)] * 2, method="L-BFGS-B").x
    at, slope = scaled(u)
    return at + float(np.minimum(-slope * u, slope * (1.0 - u)).sum())
