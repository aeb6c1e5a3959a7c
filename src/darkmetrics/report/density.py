"""The shape of a law, as few enough numbers to draw."""

from typing import Any

import numpy as np

from darkmetrics.distributions import MetricDistribution, Mixture, Normal
from darkmetrics.plotting.shape import density_curve, few_atoms

# Up to so many missing rows an exact law answers in milliseconds; beyond, a normal one differs by less than is seen.
MANY_MISSING = 20_000


def shape(law: MetricDistribution, missing: int = 0) -> dict[str, Any]:
    """Values and heights that show where the probability of a law lies, the same that `plot_distribution` draws.

    "bars": each value with its probability. "line": the density, smoothed a little. "none": the metric has no value.
    "up_to" is the probability of that value or less.
    With many rows missing the law is drawn as the mixture of normal laws that has its moments at every node, which
    nobody can tell from it.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.report.density import shape
    >>> law = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], label_model=[0.6])["recall"]
    >>> shape(law)
    {'kind': 'bars', 'x': [0.5, 0.6666666666666666], 'y': [0.4, 0.6], 'up_to': [0.4, 1.0]}
    """
    if not np.isfinite(law.mean()):
        return {"kind": "none", "x": [], "y": [], "up_to": []}
    if missing > MANY_MISSING and law.std() > 0.0:
        law = _normal(law)
    atoms = few_atoms(law)
    x, y = density_curve(law) if atoms is None else atoms
    kind = "line" if atoms is None else "bars"
    return {"kind": kind, "x": x.tolist(), "y": y.tolist(), "up_to": np.asarray(law.cdf(x)).tolist()}


def _normal(law: MetricDistribution) -> MetricDistribution:
    """A normal law for each node: hundreds of probabilities of it take no time, however many rows there are."""
    nodes = law.by_node
    if nodes is None:
        return Normal(loc=law.mean(), scale=law.std(), bounds=law.bounds)
    laws = [Normal(loc=m, scale=s) for m, s in zip(nodes.mean.tolist(), np.sqrt(nodes.var).tolist(), strict=True)]
    return Mixture(components=laws, weight=nodes.weight, bounds=law.bounds)
