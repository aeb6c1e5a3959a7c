"""Platt, Beta and Flexible: logistic regressions on the score, with a weak prior that the scores are right."""

from abc import abstractmethod
from typing import Self

import numpy as np
from scipy.special import expit, logit, ndtri

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import ArrayLike
from darkmetrics.calibrators.base import (
    Calibrator,
    check_in_unit_interval,
    checked_counts,
    checked_scores,
    uniform_points,
)
from darkmetrics.exceptions import InputError
from darkmetrics.posterior.logistic import find_logistic_mode

_SMALLEST_CLIP, _LARGEST_CLIP = 1e-12, 1e-3
_SUSPICIOUS_LOG_ODDS = 15.0


class LogisticCalibrator(Calibrator):
    """What Platt and Beta share: `P(positive) = expit(design(scores) @ coef_)` with independent Gaussian priors.

    `prepare` learns from the scores alone what `design` needs; `fit` then adds `coef_`, the posterior mode, and
    `covariance_`, the inverse of the Hessian there, which make the Gaussian that `draws` takes its curves from.
    """

    clip_: tuple[float, float]
    prior_mean_: FloatArray
    prior_scale_: FloatArray
    coef_: FloatArray
    covariance_: FloatArray

    def __init__(self, prior_sd: float | None = 1.0) -> None:
        self.prior_sd = prior_sd

    def prepare(self, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn what needs no labels: where to clip, how to standardise, and the prior (see `design`)."""
        self._check_settings()
        score = checked_scores(scores)
        count = checked_counts(sample_weight, score.size)
        self._prepare(score[count > 0.0], count[count > 0.0])
        return self

    @abstractmethod
    def _prepare(self, scores: FloatArray, counts: FloatArray) -> None:
        """Learn `clip_` and the like, and call `_set_prior`."""

    @abstractmethod
    def _design(self, scores: FloatArray) -> FloatArray:
        """The columns of the regression for checked scores."""

    def design(self, scores: ArrayLike) -> FloatArray:
        """The columns of the logistic regression, one row per score; needs `prepare` or `fit` first."""
        self._check_fitted("prior_mean_", "fit(scores, labels) or prepare(scores)")
        return self._design(checked_scores(scores))

    def line(self, scores: FloatArray) -> FloatArray:
        """The log odds of scores that are probabilities, the standardised score of others; needs `prepare` first."""
        line: FloatArray = self.design(scores)[:, 1:].sum(axis=1)
        return line

    def _set_prior(self, mean: list[float], scale: list[float]) -> None:
        factor = np.inf if self.prior_sd is None else float(self.prior_sd)
        self.prior_mean_, self.prior_scale_ = np.array(mean), factor * np.array(scale)

    def _fit(self, scores: FloatArray, positives: FloatArray, negatives: FloatArray) -> None:
        self._prepare(scores, positives + negatives)
        X = self._design(scores)
        if self.prior_sd is None:
            _check_determined(X, scores, positives, negatives, type(self).__name__)
        precision = self.prior_scale_**-2.0
        mode = find_logistic_mode(X, positives, negatives, self.prior_mean_, precision)
        # Without a mode the search runs off until nothing more can be gained, far beyond these odds; odds like these
        # also occur in earnest, so the slow exact test decides.
        if self.prior_sd is None and np.abs(X @ mode.theta).max() > _SUSPICIOUS_LOG_ODDS:
            _check_overlap(X, positives, negatives, type(self).__name__)
        self.coef_, self.covariance_ = mode.theta, _inverse(mode.precision, precision)

    def predict(self, scores: ArrayLike) -> FloatArray:
        self._check_fitted("coef_")
        return np.asarray(expit(self.design(scores) @ self.coef_), dtype=np.float64)

    def draws(self, scores: ArrayLike, n_draws: int) -> FloatArray:
        self._check_fitted("coef_")
        X = self.design(scores)
        normal = ndtri(uniform_points(n_draws, self.coef_.size))
        sd = np.sqrt(np.diag(self.covariance_))
        # Where one combination is known far better than the rest, rounding may leave less than nothing of its variance.
        correlation = self.covariance_ / np.outer(sd, sd) + 1e-12 * np.eye(sd.size)
        coefficients = self.coef_ + normal @ (sd[:, None] * np.linalg.cholesky(correlation)).T
        return np.asarray(expit(coefficients @ X.T), dtype=np.float64)


def _inverse(hessian: FloatArray, precision: FloatArray) -> FloatArray:
    """The covariance; what rounding hides of the Hessian is at least what the prior put there."""
    scale = np.sqrt(np.diag(hessian))
    values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
    min_value = max(float(np.min(precision / scale**2)), np.finfo(np.float64).tiny)
    half = vectors / np.sqrt(np.maximum(values, min_value)) / scale[:, None]
    covariance: FloatArray = half @ half.T
    return covariance


def _learned_clip(scores: FloatArray) -> tuple[float, float]:
    """Half the smallest gap to 0 and to 1 that was seen: the 0 of a forest of 100 trees is not minus infinity."""

    def margin(gaps: FloatArray) -> float:
        if gaps.size == 0:
            return _SMALLEST_CLIP  # nothing seen, so nothing is said about 0
        inner = gaps[gaps > 0.0]
        half = 0.5 * float(inner.min()) if inner.size else _LARGEST_CLIP
        return min(max(half, _SMALLEST_CLIP), _LARGEST_CLIP)

    return margin(scores), 1.0 - margin(1.0 - scores)


def _check_determined(
    X: FloatArray, scores: FloatArray, positives: FloatArray, negatives: FloatArray, name: str
) -> None:
    fix = "Keep the prior (prior_sd=1.0) or fit on more rows."
    if not (positives.any() and negatives.any()):
        labels = "only positives" if positives.any() else "only negatives" if negatives.any() else "no rows"
        raise InputError("labels", labels, f"{name} without a prior needs both classes.", fix)
    # log s and -log(1 - s) with the constant vanish together at two scores at most, so this counts the rank of X.
    distinct = np.unique(X[:, 1]).size
    if distinct < X.shape[1]:
        raise InputError(
            "scores",
            f"{distinct} distinct value{'s' if distinct > 1 else ''} (first {scores[0]:g})",
            f"{name} without a prior needs {X.shape[1]}, one per coefficient.",
            fix,
        )


def _check_overlap(X: FloatArray, positives: FloatArray, negatives: FloatArray, name: str) -> None:
    """No line separates the classes: then, and only then, does the likelihood have a mode."""
    from scipy.optimize import linprog

    sided = np.vstack([X[positives > 0.0], -X[negatives > 0.0]]) / np.abs(X).max(axis=0)
    # A direction in which no row is worse off and some row better; the solver keeps that to 1e-7.
    solution = linprog(-sided.sum(axis=0), A_ub=-sided, b_ub=np.zeros(len(sided)), bounds=(-1.0, 1.0))
    if (sided @ solution.x).max() > 1e-6:
        raise InputError(
            "labels",
            f"a cut of the scores separates the classes, so {name} without a prior would return 0 and 1 only",
            "",
            "Keep the prior: prior_sd=1.0.",
        )


class Platt(LogisticCalibrator):
    """Platt scaling: a logistic regression of the label on the log odds of the score.

    Where a score outside [0, 1] is seen in `fit`, the scores are not probabilities and the regression is on the
    standardised score instead.

    Parameters
    ----------
    prior_sd : float or None, default 1.0
        How far the coefficients may be from "the scores are right" before seeing labels, as a multiple of the default:
        intercept 0 with standard deviation 3, slope 1 with standard deviation 1. For standardised scores nothing is
        known beforehand: both are 0 with standard deviation 5. With a prior few labels are enough, even none. `None`
        means no prior: plain maximum likelihood, which needs both classes and overlap between them.

    Attributes
    ----------
    coef_, covariance_ : posterior mode and covariance of intercept and slope.
    is_probability_ : whether all scores lay in [0, 1].
    clip_ : where scores near 0 and 1 are cut: half the smallest distance seen, from 1e-12 to 1e-3.
    centre_, spread_ : mean and standard deviation of scores that are not probabilities.
    prior_mean_, prior_scale_ : mean and standard deviation of the prior.

    Examples
    --------
    >>> from darkmetrics.calibrators import Platt
    >>> platt = Platt().fit([0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> platt.predict([0.2, 0.7]).round(3)
    array([0.142, 0.717])
    >>> platt.draws([0.2, 0.7], n_draws=256).std(axis=0).round(2)  # six labels leave much open
    array([0.19, 0.21])
    """

    is_probability_: bool
    centre_: float
    spread_: float

    def _prepare(self, scores: FloatArray, counts: FloatArray) -> None:
        self.is_probability_ = bool(np.all((scores >= 0.0) & (scores <= 1.0)))
        if self.is_probability_:
            self.clip_ = _learned_clip(scores)
            self._set_prior([0.0, 1.0], [3.0, 1.0])
        else:
            self.centre_, self.spread_ = mean_and_sd(scores, counts)
            self._set_prior([0.0, 0.0], [5.0, 5.0])

    def _design(self, scores: FloatArray) -> FloatArray:
        if self.is_probability_:
            check_in_unit_interval(scores, "Those seen in fit were probabilities; these must be, too.")
            x = logit(np.clip(scores, *self.clip_))
        else:
            x = (scores - self.centre_) / self.spread_
        return np.column_stack([np.ones(scores.size), x])


def mean_and_sd(scores: FloatArray, counts: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation of scores that occur `counts` times; 1 for the latter where all are equal."""
    if np.all(scores == scores[0]):  # before rounding can make a tiny deviation of it
        return float(scores[0]), 1.0
    top = float(np.abs(scores).max())  # so that squares of huge scores stay finite
    mean = np.average(scores / top, weights=counts)
    return float(mean) * top, float(np.sqrt(np.average((scores / top - mean) ** 2, weights=counts))) * top


class Beta(LogisticCalibrator):
    """Beta calibration: a logistic regression of the label on `log s` and `-log(1 - s)`.

    One parameter more than Platt scaling, so that low and high scores can be off by different amounts. The scores must
    be probabilities.

    Parameters
    ----------
    prior_sd : float or None, default 1.0
        How far the coefficients may be from "the scores are right" before seeing labels, as a multiple of the default:
        intercept 0 with standard deviation 3, both slopes 1 with standard deviation 1. With a prior few labels are
        enough, even none. `None` means no prior: plain maximum likelihood, which needs both classes, overlap between
        them and three distinct scores.

    Attributes
    ----------
    coef_, covariance_ : posterior mode and covariance of intercept and slopes.
    clip_ : where scores near 0 and 1 are cut: half the smallest distance seen, from 1e-12 to 1e-3.
    prior_mean_, prior_scale_ : mean and standard deviation of the prior.

    References
    ----------
    Kull, Silva Filho and Flach (2017), Beta calibration: a well-founded and easily implemented improvement on logistic
    calibration for binary classifiers.

    Examples
    --------
    >>> from darkmetrics.calibrators import Beta
    >>> beta = Beta().fit([0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> beta.predict([0.2, 0.7]).round(3)
    array([0.156, 0.706])
    >>> Beta().fit([], []).predict([0.2, 0.7])  # without labels, the scores are taken at their word
    array([0.2, 0.7])
    """

    def _prepare(self, scores: FloatArray, counts: FloatArray) -> None:
        check_in_unit_interval(scores, "Beta calibrates probabilities; for other scores use Platt().")
        self.clip_ = _learned_clip(scores)
        self._set_prior([0.0, 1.0, 1.0], [3.0, 1.0, 1.0])

    def _design(self, scores: FloatArray) -> FloatArray:
        check_in_unit_interval(scores, "Beta calibrates probabilities; for other scores use Platt().")
        s = np.clip(scores, *self.clip_)
        return np.column_stack([np.ones(s.size), np.log(s), -np.log1p(-s)])


# Prior standard deviations, against those of the slopes (1): how far the curve may turn at each knot, on the log odds
# scale, and how far it may jump where the decision changes.
_HINGE, STEP_SD = 0.7, 0.7
_KNOTS = 5


class Flexible(LogisticCalibrator):
    """Beta calibration (Platt scaling where scores are not probabilities) that can bend at five scores, and jump once.

    The scores of a logistic regression, or of a network trained on other rows, are often wrong in ways that three
    coefficients cannot mend. The curve may turn at the quantiles 1/6, ..., 5/6 of the scores and jump at the threshold
    of the decision, each shrunk towards not doing so: a few labels leave the plain curve, many bend it.

    Parameters
    ----------
    prior_sd : float, default 1.0
        How far all coefficients may be from "the scores are right" before seeing labels, as a multiple of the default.
    threshold : float, optional
        The score from which the decision is positive.
    step_sd : float, default 0.7
        Prior standard deviation of the jump, in log odds, as a multiple of `prior_sd`. With 3 the rows on the two sides
        of the threshold have levels of their own.

    Attributes
    ----------
    coef_, covariance_ : posterior mode and covariance of the coefficients.
    base_ : the Beta or Platt that it extends.
    knots_ : where the curve may turn, in log odds of the score (or standardised scores).

    Examples
    --------
    >>> from darkmetrics.calibrators import Flexible
    >>> curve = Flexible(threshold=0.5).fit([0.1, 0.3, 0.4, 0.6, 0.8, 0.9], [0, 0, 1, 0, 1, 1])
    >>> curve.predict([0.2, 0.7]).round(2)
    array([0.16, 0.7 ])
    """

    base_: LogisticCalibrator
    knots_: FloatArray
    steps_: bool

    def __init__(self, prior_sd: float | None = 1.0, threshold: float | None = None, step_sd: float = STEP_SD) -> None:
        super().__init__(prior_sd)
        self.threshold = threshold
        self.step_sd = step_sd

    def _prepare(self, scores: FloatArray, counts: FloatArray) -> None:
        inside = bool(np.all((scores >= 0.0) & (scores <= 1.0)))
        self.base_ = (Beta if inside else Platt)().prepare(scores, counts)
        self.knots_, self.steps_ = np.zeros(0), False
        if scores.size:
            order = np.argsort(scores, kind="stable")
            level = np.cumsum(counts[order]) / counts.sum()
            inner = np.searchsorted(level, np.arange(1, _KNOTS + 1) / (_KNOTS + 1.0))
            x = np.unique(self.line(scores[order][np.minimum(inner, scores.size - 1)]))
            # A knot at the lowest score turns nothing: it is the slope once more.
            self.knots_ = x[x > self.line(scores[order[:1]])[0]]
            above = 0.0 if self.threshold is None else float(counts @ (scores >= self.threshold))
            self.steps_ = 0.0 < above < counts.sum()
        n_more = [self.knots_.size, int(self.steps_)]
        self._set_prior(
            [*self.base_.prior_mean_, *np.zeros(sum(n_more))],
            [*self.base_.prior_scale_, *np.repeat([_HINGE, self.step_sd], n_more)],
        )

    def line(self, scores: FloatArray) -> FloatArray:
        return self.base_.line(scores)

    def _design(self, scores: FloatArray) -> FloatArray:
        base = self.base_.design(scores)
        x = base[:, 1:].sum(axis=1)  # as `line` has it
        columns = [base, np.maximum(x[:, None] - self.knots_, 0.0)]
        if self.steps_:
            assert self.threshold is not None
            columns.append((scores >= self.threshold)[:, None].astype(np.float64))
        return np.hstack(columns)
