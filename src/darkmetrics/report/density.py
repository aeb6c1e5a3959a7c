"""The shape of a distribution, as few enough numbers to draw."""

from typing import Any

import numpy as np

from darkmetrics.distributions import MetricDistribution
from darkmetrics.plotting.shape import density_curve, few_atoms


def shape(distribution: MetricDistribution) -> dict[str, Any]:
    """Return values and heights that show where the probability lies, the same that `plot_distribution` draws.

    "bars": each value with its probability. "line": the density, smoothed a little. "none": the metric has no value.
    "up_to" is the probability of that value or less.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.report.density import shape
    >>> recall = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))["recall"]
    >>> shape(recall)
    {'kind': 'bars', 'x': [0.5, 0.6666666666666666], 'y': [0.4, 0.6], 'up_to': [0.4, 1.0]}
    """
    if not np.isfinite(distribution.mean()):
        return {"kind": "none", "x": [], "y": [], "up_to": []}
    atoms = few_atoms(distribution)
    x, y = density_curve(distribution) if atoms is None else atoms
    kind = "line" if atoms is None else "bars"
    return {"kind": kind, "x": x.tolist(), "y": y.tolist(), "up_to": np.asarray(distribution.cdf(x)).tolist()}
