"""Theorem 4 of the paper: noise in the probabilities of the missing labels, independent by row or shared by rows."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import betainc, betaincinv

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.cdf_bounds import dkw_radius
from darkmetrics._text import counted, prints_plainly
from darkmetrics.argument_types import Numbers, RngLike
from darkmetrics.constraints import check_value, is_number
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import Discrete, MetricDistribution, check_level
from darkmetrics.distributions.drawing import N_IMPUTATIONS
from darkmetrics.distributions.functional import Functional
from darkmetrics.exceptions import InputError
from darkmetrics.methods import Auto
from darkmetrics.methods.base import check_n_resamples
from darkmetrics.methods.proofs import band
from darkmetrics.metrics import DEFAULT_METRICS, metrics_from
from darkmetrics.metrics.metric import MetricsLike
from darkmetrics.missingness.base import Mechanism
from darkmetrics.paper.probabilities import known_probabilities
from darkmetrics.posterior import Posterior
from darkmetrics.question import generator_from
from darkmetrics.tables import html_lines, html_table, text_table
from darkmetrics.wording import setting

# A correct simulation is rejected once in a thousand times, per metric.
_CONFIDENCE = 0.999
# Default variance of the noise, as a fraction of each row's p (1 - p).
_FRACTION = 0.05
# Cases of an error that all rows share, equally likely.
_SHARED_CASES = 64
# If there are more different probabilities, the noise is computed at this number of them and interpolated.
_KNOTS = 1024
_CHUNK = 1 << 20
# Quantiles at which distributions are compared that do not list their atoms.
_PLACES = 1_000


@dataclass(frozen=True, eq=False)
class NoiseEffect:
    """The distribution of one metric with the probabilities known, and with noise in them.

    Attributes
    ----------
    known, independent, shared : MetricDistribution
        The distribution without noise, with independent noise in each row (simulated), and with noise that all rows
        share.
    independent_distance, shared_distance : float or None
        Kolmogorov-Smirnov distance to the distribution without noise; None for a metric that is always 0/0.
    slack : float
        Distance that the simulation may have by chance (99.9%, Dvoretzky-Kiefer-Wolfowitz).
    """

    known: MetricDistribution
    independent: MetricDistribution
    shared: MetricDistribution
    independent_distance: float | None
    shared_distance: float | None
    slack: float

    @property
    def agrees(self) -> bool:
        """Whether the simulation with independent noise is as close to the distribution without noise as expected."""
        return self.independent_distance is None or self.independent_distance <= self.slack

    @property
    def widening(self) -> float | None:
        """Standard deviation under the shared error, as a multiple of that without noise; None where that is zero."""
        return self.shared.std() / self.known.std() if self.known.std() > 0.0 else None


@prints_plainly
@dataclass(frozen=True, eq=False, repr=False)
class Robustness:
    """Result of `theorem_4`: each metric with independent and with shared noise in the probabilities.

    Attributes
    ----------
    v_star : float
        The smallest p (1 - p) of the missing rows: Beta noise exists around every p only below this variance.
    variance : float or None
        Variance of the noise, if it is the same for all rows.
    fraction : float or None
        Variance of the noise as a fraction of each row's p (1 - p), if not.
    p_at_v_star : float
        The probability that sets `v_star`.
    n_certain : int
        Missing rows with probability 0 or 1, which noise cannot move; `v_star` is that of the others.
    effects : mapping from metric name to NoiseEffect
        The distributions without noise, with independent noise and with shared noise.
    """

    counts: Mapping[str, int]
    v_star: float
    variance: float | None
    fraction: float | None
    p_at_v_star: float
    n_certain: int
    n_resamples: int
    confidence_level: float
    effects: Mapping[str, NoiseEffect]

    @property
    def agrees(self) -> bool:
        """Whether simulated independent noise left the distribution of every metric unchanged, up to chance."""
        return all(effect.agrees for effect in self.effects.values())

    def __getitem__(self, name: str) -> NoiseEffect:
        return self.effects[name]

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers at full precision, ready for JSON; what does not exist is None."""
        return {
            "schema": "darkmetrics.robustness/1",
            "counts": dict(self.counts),
            "v_star": self.v_star,
            "variance": self.variance,
            "fraction": self.fraction,
            "n_certain": self.n_certain,
            "n_resamples": self.n_resamples,
            "agrees": self.agrees,
            "metrics": {
                name: {
                    "known": effect.known.to_dict(self.confidence_level),
                    "independent": effect.independent.to_dict(self.confidence_level),
                    "independent_distance": effect.independent_distance,
                    "slack": effect.slack,
                    "agrees": effect.agrees,
                    "shared": effect.shared.to_dict(self.confidence_level),
                    "shared_distance": effect.shared_distance,
                    "widening": effect.widening,
                }
                for name, effect in self.effects.items()
            },
        }

    def __repr__(self) -> str:
        missing, effect = self.counts["missing"], "changes nothing" if self.agrees else "DISAGREES with the theory"
        return f"<Robustness of {missing:,} missing rows: v* {self.v_star:.3g}, independent noise {effect}>"

    def __str__(self) -> str:
        return "\n".join([*self._summary(), "", *text_table(*self._table()), "", *self._notes()])

    def _repr_html_(self) -> str:
        return f"<div>{html_lines(self._summary())}{html_table(*self._table())}{html_lines(self._notes())}</div>"

    def _summary(self) -> list[str]:
        n, m = self.counts["rows"], self.counts["missing"]
        if self.fraction is None:
            noise = f"the standard deviation is {np.sqrt(self.variance or 0.0):.2g} around every probability"
        else:
            half, tenth = (np.sqrt(self.fraction * p * (1.0 - p)) for p in (0.5, 0.1))
            noise = f"the standard deviation is {half:.2g} around p = 0.5 and {tenth:.2g} around p = 0.1"
        lines = [
            f"{counted(n, 'row')}: {n - m:,} labeled, {m:,} missing ({m / n:.1%})",
            f"Noise: {noise}.",
            f"Theorem 4 needs a variance below v* = {self.v_star:.3g}, that of p = {self.p_at_v_star:.3g}.",
        ]
        if self.n_certain:
            lines.append(
                f"{self.n_certain:,} missing rows have probability 0 or 1 and get no noise; v* is that of the other "
                "rows."
            )
        wrong = [name for name, effect in self.effects.items() if not effect.agrees]
        simulated = f"A simulation of size {self.n_resamples:,}"
        checked = f"{simulated} DISAGREES for {', '.join(wrong)}." if wrong else f"{simulated} agrees."
        lines.append(f"Independent noise in each row changes nothing. {checked}")
        ratios = [effect.widening for effect in self.effects.values() if effect.widening is not None]
        lines.append("The theorem does not cover noise that all rows share.")
        if ratios:
            lines.append(f"Shared noise raises standard deviations by a factor of up to {max(ratios):.3g}.")
        return lines

    def _notes(self) -> list[str]:
        slack = max(effect.slack for effect in self.effects.values())
        return [
            f"Distances (Kolmogorov-Smirnov) to p known; the simulation adds up to {slack:.2g}.",
            "A label with a random probability of mean p is positive with probability p.",
            "All rows share a calibrator's error; mechanisms that learn p include it.",
        ]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["", "p known", "independent noise", "distance", "shared noise", "distance"]
        rows = [
            [
                name,
                self._shown(effect.known),
                self._shown(effect.independent),
                _number(effect.independent_distance),
                self._shown(effect.shared),
                _number(effect.shared_distance),
            ]
            for name, effect in self.effects.items()
        ]
        return header, rows

    def _shown(self, distribution: MetricDistribution) -> str:
        low, high = distribution.interval(self.confidence_level)
        return f"{distribution.mean():.3f} ({low:.3f} to {high:.3f})" if np.isfinite(low) else "undefined"


def theorem_4(
    evaluation_set: EvaluationSet,
    p: Numbers | Mechanism | None = None,
    *,
    metrics: MetricsLike = DEFAULT_METRICS,
    variance: float | None = None,
    fraction: float | None = None,
    n_resamples: int = 2_000,
    confidence_level: float = 0.9,
    rng: RngLike = None,
) -> Robustness:
    """Return the effect of noise in the probabilities of the missing labels (robustness, the paper's Theorem 4).

    Independent Beta noise around every probability leaves the distribution of a metric unchanged, which a simulation
    checks. The theorem holds for noise of any shape: a label with a random probability of mean p is positive with
    probability p. It does not cover an error that all rows share, as that of a calibrator; the result has the effect of
    a shared error of the same size.

    Parameters
    ----------
    evaluation_set : EvaluationSet
        The rows.
    p : float, str or mechanism, optional
        Probability of a missing label to be positive: one for all, or a mechanism, whose mean is taken. By default that
        of the set: `EvaluationSet(..., missingness=dm.missing.Fixed(p))` takes one per row.
    metrics
        As in `evaluate`.
    variance : float, optional
        Variance of the noise, the same around every probability, as in the paper: below v*, the smallest p (1 - p).
    fraction : float, optional
        Variance of the noise as a fraction of each row's p (1 - p), unless `variance` is passed. Default: 0.05, a
        standard deviation of 0.11 around p = 0.5.
    n_resamples : int
        Imputations to simulate under independent noise. Each draws a probability and a label for every missing row;
        2,000 detect a distance of 0.05.
    confidence_level : float
        Probability of the intervals.
    rng : None, int or numpy Generator
        Source of randomness of the simulation; a seed makes it repeatable.

    Returns
    -------
    Robustness
        For each metric the distribution with known probabilities, with independent and with shared noise.

    Notes
    -----
    The shared error has the same Beta distribution around each probability, and all rows have the same quantile of it.
    It is a mixture over 64 equally likely cases; in each case a row has its mean probability.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> y_score = np.tile([0.2, 0.4, 0.6, 0.8], 100)
    >>> y_true = np.where(np.arange(400) < 100, np.arange(400) % 2, np.nan)
    >>> data = dm.EvaluationSet(y_true, y_score, missingness=dm.missing.Fixed(y_score))
    >>> result = dm.paper.theorem_4(data, metrics=["precision", "recall"], rng=0)
    >>> result
    <Robustness of 300 missing rows: v* 0.16, independent noise changes nothing>
    >>> effect = result["recall"]
    >>> round(effect.known.std(), 3), round(effect.independent.std(), 3), round(effect.shared.std(), 3)
    (0.02, 0.02, 0.03)
    """
    chance = known_probabilities(evaluation_set, p)
    chosen = metrics_from(metrics)
    size, level = check_n_resamples(n_resamples), check_level(confidence_level)
    generator = generator_from(rng)
    if not chance.size:
        raise InputError("evaluation_set", "no label is missing", "Noise is that of missing labels.")
    v = chance * (1.0 - chance)
    uncertain = v > 0.0
    if not uncertain.any():
        raise InputError("p", "every missing row has probability 0 or 1", "Around these there is no noise (v* = 0).")
    tightest = int(np.argmin(np.where(uncertain, v, np.inf)))
    v_star = float(v[tightest])
    variance, fraction = _checked_noise(variance, fraction, v_star)

    def variance_of(p: FloatArray) -> FloatArray:
        return np.full(p.shape, variance) if fraction is None else fraction * p * (1.0 - p)

    alpha, beta = np.ones((2, chance.size))  # those of certain rows are not used
    alpha[uncertain], beta[uncertain] = beta_parameters(chance[uncertain], variance_of(chance[uncertain]))

    functionals = [metric.bind(evaluation_set, metric.undefined_as) for metric in chosen]
    values = _simulate_values(functionals, chance, alpha, beta, size, generator)
    posteriors = Posterior.single(chance), _build_shared_posterior(chance, variance_of)
    distributions = (
        Auto(max(size, N_IMPUTATIONS)).distributions(functionals, posterior, rng=generator) for posterior in posteriors
    )
    effects = {}
    for metric, functional, drawn, known, shared in zip(chosen, functionals, values, *distributions, strict=True):
        counted = size if not functional.given_defined else int(np.isfinite(drawn).sum())
        slack = dkw_radius(max(counted, 1), _CONFIDENCE)
        certify = partial(band, radius=slack, theorem="Dvoretzky-Kiefer-Wolfowitz", n=counted, independent=True)
        facts: dict[str, Any] = {"method": "monte carlo", "bounds": known.bounds, "certify": certify}
        independent = Discrete.from_atoms(drawn, np.ones(size), functional.fill, **facts)
        if known.method == "monte carlo":
            slack += dkw_radius(size, _CONFIDENCE)
        distances = _distance(independent, known), _distance(shared, known)
        effects[metric.name] = NoiseEffect(known, independent, shared, *distances, slack)
    n_certain = int(evaluation_set.missing_counts[~uncertain].sum())
    counts = evaluation_set.counts()
    return Robustness(counts, v_star, variance, fraction, float(chance[tightest]), n_certain, size, level, effects)


def beta_parameters(mean: Numbers, variance: Numbers) -> tuple[Any, Any]:
    """Return the parameters (alpha, beta) of the Beta distribution with this mean and this variance.

    With `k = mean (1 - mean) / variance - 1` they are `k mean` and `k (1 - mean)`. It exists for
    0 < variance < mean (1 - mean).

    Parameters
    ----------
    mean : float or array-like
        Strictly between 0 and 1.
    variance : float or array-like
        Strictly between 0 and mean (1 - mean).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.beta_parameters(0.25, 0.0375)
    (1.0, 3.0)
    """
    try:
        m, v = np.broadcast_arrays(np.asarray(mean, dtype=np.float64), np.asarray(variance, dtype=np.float64))
    except (TypeError, ValueError):
        raise InputError("mean, variance", "expected numbers, or arrays of one shape") from None
    room = m * (1.0 - m)
    for name, good, rule in (
        ("mean", (m > 0.0) & (m < 1.0), "A Beta distribution has a mean strictly between 0 and 1."),
        ("variance", (v > 0.0) & (v < room), "With mean m it must lie strictly between 0 and m (1 - m)"),
    ):
        if not np.all(good):
            first = int(np.argmin(good.ravel()))
            value = (m if name == "mean" else v).ravel()[first]
            limit = f", here {room.ravel()[first]:g}." if name == "variance" else ""
            place = f" at position {first}" if m.ndim else ""
            raise InputError(name, f"{value:g}{place}", f"{rule}{limit}")
    with np.errstate(over="ignore"):
        k = room / v - 1.0
    alpha, beta = k * m, k * (1.0 - m)
    return (float(alpha), float(beta)) if m.ndim == 0 else (alpha, beta)


def _checked_noise(variance: Any, fraction: Any, v_star: float) -> tuple[float | None, float | None]:
    """Return the variance of the noise, or its fraction of each row's p (1 - p): one of the two is None."""
    if variance is None:
        fraction = _FRACTION if fraction is None else fraction
        check_value("fraction", fraction)
        return None, float(fraction)
    if fraction is not None:
        raise InputError(
            "fraction",
            f"{fraction!r}, but {setting('variance', variance)} sets the noise as well",
            fix="Pass one of them.",
        )
    number = is_number(variance)
    if not number or not 0.0 < variance < v_star:
        raise InputError(
            "variance",
            f"{variance!r}",
            f"It must lie strictly between 0 and v* = {v_star:.4g}, the smallest p (1 - p) of the missing rows. "
            "No Beta distribution of a larger variance has that row's p as its mean.",
        )
    return float(variance), None


def _simulate_values(
    functionals: Sequence[Functional], p: FloatArray, alpha: FloatArray, beta: FloatArray, size: int, rng: Any
) -> list[FloatArray]:
    """Simulate values of each metric: every missing row draws a probability, then its label."""
    missing = functionals[0].missing
    owner = np.repeat(np.arange(missing.size), missing)
    starts = np.concatenate(([0], np.cumsum(missing)[:-1]))
    certain = (p <= 0.0) | (p >= 1.0)
    chunk = max(1, min(size, _CHUNK // owner.size))
    parts = []
    for start in range(0, size, chunk):
        shape = (min(chunk, size - start), owner.size)
        chance = np.where(certain[owner], p[owner], rng.beta(alpha[owner], beta[owner], shape))
        labels = (rng.random(shape) < chance).astype(np.int64)
        positives: IntArray = np.add.reduceat(labels, starts, axis=1)
        parts.append([functional.values(positives) for functional in functionals])
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def _build_shared_posterior(p: FloatArray, variance_of: Callable[[FloatArray], FloatArray]) -> Posterior:
    """Return equally likely posterior draws with an error that all rows share.

    Each draw has the mean of the noise between two quantiles. Means, and not medians, average to p exactly.
    """
    inside = np.unique(p[(p > 0.0) & (p < 1.0)])
    if inside.size > _KNOTS:
        # The average is linear in p, so interpolation preserves it.
        inside = inside[np.linspace(0, inside.size - 1, _KNOTS).astype(np.int64)]
    alpha, beta = beta_parameters(inside, variance_of(inside))
    level = (np.arange(1, _SHARED_CASES) / _SHARED_CASES)[:, None]
    low, high = betaincinv(alpha, beta, level), betaincinv(beta, alpha, 1.0 - level)
    # E[P; P <= quantile], next to 1 by way of 1 - P: a quantile is rounded there.
    from_low = inside * betainc(alpha + 1.0, beta, low)
    from_high = (1.0 - inside) * betainc(beta + 1.0, alpha, high) - (1.0 - inside - level)
    below = np.where(low <= 0.5, from_low, from_high)
    bounds = np.concatenate([np.zeros((1, inside.size)), below, inside[None, :]])
    means = np.clip(_SHARED_CASES * np.diff(bounds, axis=0), 0.0, 1.0)
    # Probabilities of 0 and 1 are the same in every draw.
    knots, ends = np.concatenate(([0.0], inside, [1.0])), np.ones((_SHARED_CASES, 1))
    chance = [np.interp(p, knots, row) for row in np.hstack([0.0 * ends, means, ends])]
    return Posterior(np.full(_SHARED_CASES, 1.0 / _SHARED_CASES), np.array(chance))


def _distance(first: MetricDistribution, second: MetricDistribution) -> float | None:
    """Return the Kolmogorov-Smirnov distance: exact for two discrete distributions, else at many quantiles."""
    if np.isnan(first.mean()) or np.isnan(second.mean()):
        return None
    points = np.unique(np.concatenate([_evaluation_points(distribution) for distribution in (first, second)]))
    # Between two jumps of one distribution the other only rises, so the distance is largest next to a jump.
    return float(max(np.abs(first._cdf(points, left=x) - second._cdf(points, left=x)).max() for x in (False, True)))


def _evaluation_points(distribution: MetricDistribution) -> FloatArray:
    """Return the atoms, or quantiles of a continuous distribution."""
    if isinstance(distribution, Discrete):
        return distribution.atoms
    return np.asarray(distribution.ppf((np.arange(_PLACES) + 0.5) / _PLACES))


def _number(value: float | None) -> str:
    return "undefined" if value is None else f"{value:.3f}"
