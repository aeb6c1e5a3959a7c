"""Metrics as functions of the share of positives among the missing rows, for the sliders of the report."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy.interpolate import PchipInterpolator

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distributions import chance_of_target
from darkmetrics.evaluation import Evaluation
from darkmetrics.metrics import Metric
from darkmetrics.missingness.base import missing_prevalence, missing_rows
from darkmetrics.missingness.tilted import find_shifts
from darkmetrics.shifted_metrics import ShiftedMetrics
from darkmetrics.tables import finite

STEPS = 40
# Missing rows beyond which metrics whose labels have to be drawn are left out.
_MAX_DRAWN_ROWS = 20_000
# Closer to the end than this, a curve touches a value and does not cross it.
_TOUCH = 1e-6
# Shares that are equal but for rounding.
_SAME = 1e-9


def what_if(
    evaluation: Evaluation,
    metrics: Mapping[str, Metric],
    references: Mapping[str, Mapping[str, float]],
    targets: Mapping[str, float],
) -> dict[str, Any]:
    """Compute the metrics if a stated share of the missing rows were positive, from 0 to 1 in steps of 2.5%.

    At every share the log odds of all missing rows are shifted as by `missing.ExponentialTilt`; shares that no shift
    reaches are left out. The share that the evaluation estimates is included, with the evaluation's distributions.

    Parameters
    ----------
    evaluation : Evaluation
        An evaluation of these rows.
    metrics : mapping
        The metrics to compute, by name.
    references : mapping
        For each metric, values to look for crossings of, by description.
    targets : mapping
        Values of metrics to compute the probability of.
    """
    data = evaluation.data
    if not data.missing_cells.size:
        return {"absent": "No label is missing, so there is nothing to ask."}
    estimate = missing_prevalence(data, evaluation.posterior)
    shares = np.arange(STEPS + 1) / STEPS
    if np.abs(shares - estimate.mean).min() > _SAME:
        shares = np.sort(np.append(shares, estimate.mean))
    shifts = np.array(find_shifts(evaluation.posterior, missing_rows(data, evaluation.posterior), shares.tolist()))
    shares, shifts = shares[~np.isnan(shifts)], shifts[~np.isnan(shifts)]
    if shares.size < 2:
        return {"absent": "The model is sure of every missing label, so that no other share is possible."}
    shifted = ShiftedMetrics(evaluation)
    absent = {
        name: f"its distribution has to be drawn, which takes too long for {data.n_missing:,} missing rows"
        for name in metrics
        if data.n_missing > _MAX_DRAWN_ROWS and shifted.is_drawn(name)
    }
    summary: dict[str, Any] = {
        "absent": None,
        "shares": shares.tolist(),
        "estimate": {"mean": estimate.mean, "low": estimate.low, "high": estimate.high},
        "metrics": {},
        "tipping_points": [],
        "left_out": absent,
    }
    names = [name for name in metrics if name not in absent]
    known = np.abs(shares - estimate.mean) <= _SAME
    for name, answer in shifted.approximate(names, [(shift, shift) for shift in shifts.tolist()]).items():
        tail, distribution = 0.5 * (1.0 - evaluation.confidence_level), evaluation[name]
        low, high = distribution.interval(evaluation.confidence_level)
        means = np.where(known, distribution.mean(), answer.means())
        summary["metrics"][name] = {
            "mean": _column(means),
            "low": _column(np.where(known, low, answer.quantiles(tail))),
            "high": _column(np.where(known, high, answer.quantiles(1.0 - tail))),
            "method": answer.method,
        }
        if name in targets:
            better = metrics[name].better
            probability = answer.target_probabilities(targets[name], better)
            probability[known] = chance_of_target(distribution, targets[name], better)
            summary["metrics"][name]["target_probability"] = _column(probability)
        for description, value in references[name].items():
            point = {"metric": name, "what": description, "value": finite(value)}
            summary["tipping_points"].append({**point, "shares": crossings(shares, means, value)})
    return summary


def crossings(shares: np.ndarray, means: np.ndarray, value: float) -> list[float]:
    """Return the shares at which the mean crosses a value, by a monotone cubic through the grid.

    Examples
    --------
    >>> import numpy as np
    >>> from darkmetrics.report.what_if import crossings
    >>> shares = np.linspace(0, 1, 41)
    >>> [round(share, 5) for share in crossings(shares, shares**2, 0.3)]  # the root of 0.3
    [0.54772]
    """
    known = np.isfinite(means)
    # A flat line crosses nothing, even if it equals the value up to rounding.
    if known.sum() < 2 or not np.isfinite(value) or np.ptp(means[known]) < 1e-9:
        return []
    curve = PchipInterpolator(shares[known], means[known], extrapolate=False)
    roots = np.unique(np.round(curve.solve(value, extrapolate=False), 9))
    # A curve that starts or ends at the value does not cross it there, such as recall without further positive rows.
    first, last = shares[known][[0, -1]]
    return [float(root) for root in roots if first + _TOUCH < root < last - _TOUCH]


def _column(values: FloatArray) -> list[float | None]:
    return [finite(value) for value in values.tolist()]
