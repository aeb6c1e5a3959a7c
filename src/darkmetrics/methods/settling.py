"""Whether a law is settled: found more coarsely, it would be the same."""

import numpy as np

from darkmetrics.distribution import MetricDistribution, Undefined

# The quantiles at which two laws are compared, those between which the middle of a law lies, and the weight of nodes
# that are too unlikely to matter; then how far apart they may be there.
_TRIED, _MIDDLE, _LITTLE = np.linspace(0.05, 0.95, 11), np.array([0.15, 0.85]), 0.01
STEP_MOVED, LEVEL_MOVED = 0.05, 0.004


def settled(law: MetricDistribution, coarse: MetricDistribution | None, *, step: float = STEP_MOVED) -> bool:
    """Whether half as many places, or clusters, lead to the same law, but for steps moved by a little."""
    if isinstance(law, Undefined) or coarse is None or isinstance(coarse, Undefined):
        return isinstance(law, Undefined)
    t = law._ppf(_TRIED)
    # The scale of what is likely: a far tail, or nodes far from each other, say nothing of how fine a lattice must be.
    scales = [law.std(), float(np.ptp(law._ppf(_MIDDLE))) / 2.0]
    if law.by_node is not None:
        scales.append(float(np.sqrt(law.by_node.var[law.by_node.weight > _LITTLE]).min(initial=np.inf)))
    moved = step * min((scale for scale in scales if scale > 0.0), default=0.0)
    level = law._cdf(t, left=False)
    return bool(
        abs(law.mean() - coarse.mean()) <= moved
        and abs(law.std() - coarse.std()) <= 2.0 * moved
        and np.all(coarse._cdf(t - moved, left=False) <= level + LEVEL_MOVED)
        and np.all(level <= coarse._cdf(t + moved, left=False) + LEVEL_MOVED)
    )
