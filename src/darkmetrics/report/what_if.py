"""What if e% of the missing rows were positive? The metrics on a grid of e, and where they cross a value."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from darkmetrics.distributions import MetricDistribution, chance_of_target
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.functional import Functional
from darkmetrics.label_models.base import missing_prevalence, missing_rows
from darkmetrics.label_models.tilted import Moves
from darkmetrics.methods import Auto, Gaussian, Method, MonteCarlo, Problem
from darkmetrics.methods.counts import MovedCounts
from darkmetrics.metrics import ConfusionMetric, Metric
from darkmetrics.report.density import MANY_MISSING
from darkmetrics.tables import finite

STEPS = 40
# So far down or up in log odds a probability that was not certain is 0 or 1 to the last bit.
_ALL_THE_WAY = 800.0
_DRAWS = 2_000
# Up to here all labelings are gone through, whatever the metric.
_FEW_MISSING = 10
# Nearer to the end than this, a curve touches a value and does not cross it.
_TOUCH = 1e-6
# Two shares that are one.
_SAME = 1e-9


def what_if(
    evaluation: Evaluation,
    metrics: Mapping[str, Metric],
    references: Mapping[str, Mapping[str, float]],
    targets: Mapping[str, float],
) -> dict[str, Any]:
    """The metrics if a stated share of the missing rows were positive, for shares from 0 to 1 in steps of 2.5%.

    The share that the evaluation itself finds is among them. Every share is what `label_models.Tilted` makes of the
    probabilities that the evaluation found; shares that these cannot reach are left out. `references` are the values by
    metric whose crossing is of interest, with what they are.
    """
    data = evaluation.data
    if not data.missing_cells.size:
        return {"absent": "No label is missing, so there is nothing to ask."}
    found = missing_prevalence(data, evaluation.nodes)
    shares = np.arange(STEPS + 1) / STEPS
    if np.abs(shares - found.mean).min() > _SAME:
        shares = np.sort(np.append(shares, found.mean))
    moves = Moves(evaluation.nodes, missing_rows(data, evaluation.nodes))
    tilted = _moves_to(moves, shares.tolist())
    if len(tilted) < 2:
        return {"absent": "The model is sure of every missing label, so that no other share is possible."}
    summary: dict[str, Any] = {
        "absent": None,
        "shares": list(tilted),
        "estimate": {"mean": found.mean, "low": found.low, "high": found.high},
        "metrics": {},
        "tipping_points": [],
        "left_out": {},
    }
    laws: dict[str, list[MetricDistribution]] = {name: [] for name in metrics}
    # Bound once: what a functional finds out about itself, such as its bounds, is the same at every share.
    functionals = {name: metric.bind(data, evaluation.fills[name]) for name, metric in metrics.items()}
    counts = MovedCounts(data.missing_counts)
    for share, delta in tilted.items():
        nodes = moves.by(delta)
        problem = Problem(nodes, counts.at(delta, nodes))
        for name, metric in metrics.items():
            if name not in summary["left_out"]:
                try:
                    # At the share that was found stands what was found, by whatever method: one chance, printed once.
                    here = abs(share - found.mean) <= _SAME
                    own = evaluation[name] if here else _law(evaluation, metric, functionals[name], problem)
                    laws[name].append(own)
                except MethodError as error:
                    summary["left_out"][name] = str(error)
    for name in metrics:
        if name in summary["left_out"]:
            continue
        summary["metrics"][name] = _band(laws[name], evaluation[name], evaluation.confidence_level)
        if name in targets:
            better = metrics[name].better
            chances = [finite(chance_of_target(law, targets[name], better)) for law in laws[name]]
            summary["metrics"][name]["target_probability"] = chances
        means = np.array([law.mean() for law in laws[name]])
        for what, value in references[name].items():
            summary["tipping_points"].append(
                {
                    "metric": name,
                    "what": what,
                    "value": finite(value),
                    "shares": crossings(np.array(summary["shares"]), means, value),
                }
            )
    return summary


def crossings(shares: np.ndarray, means: np.ndarray, value: float) -> list[float]:
    """Shares at which the mean crosses a value, by a monotone cubic through the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from darkmetrics.report.what_if import crossings
    >>> shares = np.linspace(0, 1, 41)
    >>> [round(share, 5) for share in crossings(shares, shares**2, 0.3)]  # the root of 0.3
    [0.54772]
    """
    known = np.isfinite(means)
    # A flat line crosses nothing, even where it lies on the value but for rounding.
    if known.sum() < 2 or not np.isfinite(value) or np.ptp(means[known]) < 1e-9:
        return []
    curve = PchipInterpolator(shares[known], means[known], extrapolate=False)
    roots = np.unique(np.round(curve.solve(value, extrapolate=False), 9))
    # A curve that starts or ends at the value does not cross it there: recall with no positive row more is that of the
    # labelled rows.
    first, last = shares[known][[0, -1]]
    return [float(root) for root in roots if first + _TOUCH < root < last - _TOUCH]


def _moves_to(moves: Moves, shares: Iterable[float]) -> dict[float, float]:
    """How far to move the log odds for each share that can be reached, in rising order."""
    found: dict[float, float] = {}
    near = 0.0
    for share in shares:
        if 0.0 < share < 1.0:
            try:
                found[share] = near = moves.to(share, near)
            except InputError:
                continue
        else:
            # A label that the model is sure of stays what it is.
            delta = _ALL_THE_WAY * (2.0 * share - 1.0)
            if np.all(moves.by(delta).probability[:, moves.nodes.used] == share):
                found[share] = delta
    return found


def _law(evaluation: Evaluation, metric: Metric, functional: Functional, problem: Problem) -> MetricDistribution:
    # The same draws at every share, so that sampled curves are smooth.
    rng = np.random.default_rng(0)
    try:
        return _method(evaluation, metric).law(functional, problem, rng=rng)
    except MethodError:
        if evaluation.data.n_missing > MANY_MISSING:
            raise MethodError(
                f"its law is known by draws only, which take too long for {evaluation.data.n_missing:,} missing rows"
            ) from None
        return MonteCarlo(_DRAWS).law(functional, problem, rng=rng)


def _method(evaluation: Evaluation, metric: Metric) -> Method:
    """The evaluation's own method, or the Gaussian one where 41 laws of it would take long."""
    own, missing = evaluation.method, evaluation.data.n_missing
    if isinstance(own, (Auto, MonteCarlo)):
        own = replace(own, n_resamples=min(own.n_resamples, _DRAWS))
    counts = (
        isinstance(metric, ConfusionMetric)
        and evaluation[metric.name].method != "near exact"
        and not evaluation.data.unequal_weights
    )
    quick = missing <= (MANY_MISSING if counts else _FEW_MISSING)
    return own if quick else Gaussian()


def _band(laws: list[MetricDistribution], own: MetricDistribution, confidence_level: float) -> dict[str, Any]:
    """Mean and interval of each law, and how they were found."""
    intervals = [law.interval(confidence_level) for law in laws]
    # At the ends nothing is random, and every method gives the point, and one was there before; what is said is about
    # the others.
    middle = laws[len(laws) // 2 :]
    return {
        "mean": [finite(law.mean()) for law in laws],
        "low": [finite(interval.low) for interval in intervals],
        "high": [finite(interval.high) for interval in intervals],
        "method": next((law.method for law in middle if law is not own), own.method),
    }
