"""PEMI and PEMI-Gauss, the paper's Algorithms 1 and 2, step by step, and its bounds by an oracle."""

from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.cdf_bounds import dkw_radius
from darkmetrics.argument_types import Numbers, RngLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import Discrete, Interval, MetricDistribution, Normal
from darkmetrics.distributions.rank_functionals import RankFunctional
from darkmetrics.methods import Gaussian
from darkmetrics.methods.base import check_n_resamples
from darkmetrics.methods.proofs import band
from darkmetrics.metrics import DEFAULT_METRICS, metrics_from
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.metrics.metric import oracle_bounds as values_of_oracle
from darkmetrics.missing import Mechanism
from darkmetrics.paper.probabilities import check_set, known_probabilities
from darkmetrics.posterior import Posterior
from darkmetrics.question import generator_from

# The certificate of PEMI is wrong in one of a thousand runs.
_CONFIDENCE = 0.999
# Label counts drawn at a time.
_CHUNK = 1 << 20
# Imputations from which the paper takes mean and variance of ROC-AUC.
_N_FOR_MOMENTS = 10_000


class OracleBounds(NamedTuple):
    """Values of a metric if every missing row is predicted wrongly, and if every missing row is predicted rightly.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.oracle_bounds(dm.EvaluationSet([1, 0, None], [0.9, 0.8, 0.2]), "recall")["recall"].pessimistic
    0.5
    """

    pessimistic: float
    optimistic: float


def pemi(
    evaluation_set: EvaluationSet,
    metrics: MetricsLike = DEFAULT_METRICS,
    p: Numbers | Mechanism | None = None,
    *,
    n_resamples: int = 10_000,
    rng: RngLike = None,
) -> dict[str, MetricDistribution]:
    """Return the empirical distributions of metrics over random label assignments (PEMI, Algorithm 1).

    Every missing label is drawn from its Bernoulli distribution, every metric is evaluated on the imputed rows, and
    this is repeated. All metrics use the same imputations. `evaluate(method="pemi")` samples the same distribution, and
    draws counts where these suffice.

    Parameters
    ----------
    evaluation_set : EvaluationSet
        The rows.
    metrics
        As in `evaluate`.
    p : float, str or mechanism, optional
        Probability of a missing label to be positive: one for all, or a mechanism such as `maximum_entropy()`,
        `training_prevalence(...)` and `scaling_binning(...)`. By default that of the set, which
        `EvaluationSet(..., missingness=dm.missing.Fixed(p))` has for each row.
    n_resamples : int
        Number of imputations, B in the paper, which uses 5, 10 and 100.
    rng : None, int or numpy Generator
        Source of randomness.

    Returns
    -------
    dict
        The empirical distribution of each metric.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, 1, None], [0.9, 0.8, 0.7, 0.1, 0.4])
    >>> distribution = dm.paper.pemi(data, "accuracy", dm.paper.maximum_entropy(), n_resamples=100, rng=0)["accuracy"]
    >>> distribution.atoms
    array([0.2, 0.4, 0.6])
    """
    size, generator = check_n_resamples(n_resamples), generator_from(rng)
    chosen = metrics_from(metrics)
    probability = known_probabilities(evaluation_set, p)
    functionals = [metric.bind(evaluation_set, metric.undefined_as) for metric in chosen]
    missing = evaluation_set.missing_counts
    chunk = max(1, min(size, _CHUNK // max(1, missing.size)))
    blocks: list[list[FloatArray]] = []
    for start in range(0, size, chunk):
        # Rows with equal score, prediction and weight share a cell; their positives are a sum of Bernoulli labels.
        positives = generator.binomial(missing, probability, (min(chunk, size - start), missing.size))
        blocks.append([functional.values(positives) for functional in functionals])
    radius = dkw_radius(size, _CONFIDENCE)
    certify = partial(band, radius=radius, theorem="Dvoretzky-Kiefer-Wolfowitz", n=size, independent=True)
    distributions: dict[str, MetricDistribution] = {}
    for metric, functional, values in zip(chosen, functionals, zip(*blocks, strict=True), strict=True):
        low, high, sharp = functional.extremes
        distributions[metric.name] = Discrete.from_atoms(
            np.concatenate(values),
            np.ones(size),
            functional.fill,
            method="monte carlo",
            bounds=Interval(low, high),
            bounds_sharp=sharp,
            noise=functional.noise,
            certify=certify,
        )
    return distributions


def pemi_gauss(
    evaluation_set: EvaluationSet,
    metrics: MetricsLike = DEFAULT_METRICS,
    p: Numbers | Mechanism | None = None,
    *,
    simulate_above: int | None = None,
    rng: RngLike = None,
) -> dict[str, MetricDistribution]:
    """Return the Gaussian distributions of metrics (PEMI-Gauss, Algorithm 2).

    The cdf is that of a Gaussian everywhere, also beyond the values that the metric can have. In contrast,
    `evaluate(method="pemi_gauss")` moves the probability beyond these bounds onto them, which is nearer to the truth.

    Parameters
    ----------
    evaluation_set, metrics, p
        As in `pemi`.
    simulate_above : int, optional
        Take mean and variance of ROC-AUC from 10,000 imputations if there are more rows. The paper does so above 120.
        By default they come from the paper's formulas for every number of rows.
    rng : None, int or numpy Generator
        Source of randomness of these imputations.

    Returns
    -------
    dict
        The Gaussian of each metric; a single point where no label is uncertain.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, 1], [0.9, 0.8, 0.7, 0.1], missingness=dm.missing.Fixed([0.6]))
    >>> gaussian = dm.paper.pemi_gauss(data, "precision")["precision"]
    >>> round(gaussian.mean(), 3), round(gaussian.std(), 3), round(gaussian.cdf(1 / 3), 3)
    (0.533, 0.163, 0.11)
    """
    chosen = metrics_from(metrics)
    posterior = Posterior.single(known_probabilities(evaluation_set, p))
    functionals = [metric.bind(evaluation_set, metric.undefined_as) for metric in chosen]
    names = [metric.name for metric in chosen]
    gaussians = dict(zip(names, Gaussian().distributions(functionals, posterior), strict=True))
    if simulate_above is not None and evaluation_set.n_rows > simulate_above:
        for metric, functional in zip(chosen, functionals, strict=True):
            gaussian = gaussians[metric.name]
            if isinstance(functional, RankFunctional) and isinstance(gaussian, Normal):
                drawn = pemi(evaluation_set, metric, p, n_resamples=_N_FOR_MOMENTS, rng=rng)[metric.name]
                gaussians[metric.name] = replace(gaussian, loc=drawn.mean(), scale=drawn.std())
    unbounded = Interval(-np.inf, np.inf)
    return {
        name: replace(gaussian, bounds=unbounded, bounds_sharp=False) if isinstance(gaussian, Normal) else gaussian
        for name, gaussian in gaussians.items()
    }


def oracle_bounds(evaluation_set: EvaluationSet, metrics: MetricsLike = DEFAULT_METRICS) -> dict[str, OracleBounds]:
    """Return the paper's pessimistic and optimistic values of metrics: every missing row predicted wrongly, or rightly.

    They enclose every value of precision, recall, accuracy and F1. For ROC-AUC label assignments can lie outside;
    `bounds` has the lowest and highest possible value.

    Parameters
    ----------
    evaluation_set : EvaluationSet
        The rows.
    metrics
        As in `evaluate`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None, 1], [0.9, 0.8, 0.7, 0.1])
    >>> dm.paper.oracle_bounds(data, "precision")["precision"]
    OracleBounds(pessimistic=0.3333333333333333, optimistic=0.6666666666666666)
    """
    check_set(evaluation_set)
    return {
        metric.name: OracleBounds(*values_of_oracle(metric, evaluation_set, metric.undefined_as))
        for metric in metrics_from(metrics)
    }
