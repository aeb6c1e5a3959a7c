"""Propensity: it is known who was looked at, with which chance."""

from dataclasses import dataclass

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.log_odds import chance
from darkmetrics._kernels.logistic import WeightedLabels, gaussian_draws, sandwich
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import LabelModel
from darkmetrics.missingness.checks import warn_if_extrapolated
from darkmetrics.missingness.fit_data import (
    N_NODES,
    FitData,
    check_labelled,
    check_n_nodes,
    credit_of,
    warn_if_few,
)
from darkmetrics.missingness.sampling import draws_for
from darkmetrics.missingness.score_table import ScoreTable
from darkmetrics.posterior import Posterior
from darkmetrics.posterior.representatives import representatives


@dataclass(frozen=True, eq=False)
class Propensity(LabelModel):
    """Rows got their labels with chances that are known: a policy, a sampling design or random overrides.

    A labelled row that had the chance pi to get its label stands for (1 - pi) / pi rows that got none. The curve from
    scores to probabilities is fitted to the labelled rows with these weights, and so is that of the missing rows,
    whatever else decided who was looked at. Rows that were sure to get a label (pi = 1) stand for no others.

    Parameters
    ----------
    calibrator : {"flexible", "beta", "platt"}, Flexible, Beta or Platt
        The curve from scores to probabilities.
    n_nodes : int
        How many curves stand for what the labels leave open.

    Notes
    -----
    Weights are scaled to sum to the number of equally weighted rows that they are worth, `(sum w)^2 / sum w^2`, so that
    the prior keeps its meaning. What is left open is a Gaussian with the sandwich covariance, which allows for weights.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> old, new = rng.normal(size=(2, 4000))  # what an old scorecard saw, and what the new one sees
    >>> y = rng.random(4000) < 1 / (1 + np.exp(1 - old - new))
    >>> pi = np.where(old < 0, 1.0, 0.1)  # low risks are let in, one in ten of the others at random
    >>> y_true = np.where(rng.random(4000) < pi, y, np.nan)
    >>> y_score = 1 / (1 + np.exp(1.2 - new))
    >>> for told in ({"missingness": "by_score"}, {"propensity": pi}):
    ...     low, high = dm.evaluate(y_true, y_score, metrics="precision", **told)["precision"].interval(0.9)
    ...     print(f"{low:.2f} to {high:.2f}, in truth {y[y_score >= 0.5].mean():.2f}")
    0.44 to 0.51, in truth 0.64
    0.49 to 0.64, in truth 0.64
    """

    calibrator: CalibratorLike = "flexible"
    n_nodes: int = N_NODES

    def __post_init__(self) -> None:
        check_n_nodes(self.n_nodes)

    def nodes(self, data: EvaluationSet) -> Posterior:
        fit_data = FitData.of(data)
        check_labelled(fit_data, type(self).__name__)
        calibrator = fit_data.logistic_calibrator(self.calibrator)
        X = calibrator.design(fit_data.table.score)
        prior = calibrator.prior_mean_, calibrator.prior_scale_
        nodes = weighted_nodes(X, *prior, fit_data.table, self.n_nodes, type(self).__name__)
        warn_if_extrapolated(fit_data, type(self).__name__)
        return nodes

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        rows = effective_rows(data)
        return (
            "Assumed: each row got its label with the chance given. Probabilities are calibrated on the "
            f"{data.n_labelled:,} labelled rows, which for the missing ones are worth {rows:,.0f}."
        )


def weights_for_missing(data: EvaluationSet, what: str) -> FloatArray:
    """How many missing rows a labelled row of each cell stands for."""
    propensity = data.cells.propensity
    if propensity is None:
        raise InputError(
            f"propensity: none with these rows ({what}). Give propensity=, the chance of each row to get its label, to "
            "evaluate, or when building the EvaluationSet."
        )
    labelled = data.cells.positives + data.cells.negatives > 0
    weight = np.zeros(propensity.size)
    # Against the smallest chance, so that squares of weights stay finite; their scale plays no part.
    least = float(np.min(propensity[labelled], initial=1.0))
    weight[labelled] = (1.0 - propensity[labelled]) * (least / propensity[labelled])
    return weight


def effective_rows(data: EvaluationSet) -> float:
    """How many equally weighted rows the labelled ones are worth to someone who asks about the missing ones."""
    weight = weights_for_missing(data, "Propensity")
    rows = data.cells.positives + data.cells.negatives
    return float((rows @ weight) ** 2 / (rows @ weight**2))


def weighted_nodes(
    X: FloatArray, prior_mean: FloatArray, prior_scale: FloatArray, table: ScoreTable, n_nodes: int, what: str
) -> Posterior:
    """The curve of the missing rows from labels weighted by propensity, with columns `X` for the rows of a table."""
    cells, size = table.cells, table.score.size
    weight = weights_for_missing(EvaluationSet.from_cells(cells), what)
    if not weight.any():
        raise InputError(
            f"propensity: 1 for every row with a label ({what}), so that none of them stands for a missing row and "
            "there is nothing to learn from. Chances below 1 are those of labels that a row could have missed: random "
            "overrides, a sample of the rejected. Without them state missingness= instead."
        )
    learnt = [int((counts * (weight > 0.0)).sum()) for counts in (cells.positives, cells.negatives)]
    warn_if_few("propensity", (learnt[0], learnt[1]), what, "Only labels of rows with a propensity below 1 count.")
    sums = [
        np.asarray(np.bincount(table.place, counts * weight**power, size), dtype=np.float64)
        for power in (1, 2)
        for counts in (cells.positives, cells.negatives)
    ]
    labels = WeightedLabels.normalised(*sums)
    credit = credit_of(float(min(labels.positives.sum(), labels.negatives.sum())))
    mode, covariance = sandwich(X, labels, prior_mean, prior_scale, credit)
    n_draws = draws_for(n_nodes)
    draws = gaussian_draws(mode, covariance, n_draws)
    some = np.flatnonzero(table.missing)
    p = chance(draws @ X[some].T)
    above, below = p @ table.decided[some], p @ (table.missing - table.decided)[some]
    chosen = representatives(above, below, np.full(n_draws, 1.0 / n_draws), n_nodes)
    return Posterior(np.full(n_nodes, 1.0 / n_nodes), chance(draws[chosen] @ X.T), bucket=table.column)
