"""The law of a metric that is drawn otherwise, where so much is random that it has an expansion."""

from dataclasses import replace
from functools import partial

import numpy as np

from darkmetrics._kernels.auc.expansion import mixed_cdf
from darkmetrics.certificate import Certificate
from darkmetrics.distributions import MetricDistribution, NodeMoments
from darkmetrics.functional import DrawnFunctional
from darkmetrics.methods.base import Problem
from darkmetrics.methods.monte_carlo import MonteCarlo
from darkmetrics.methods.rank_laws import tabulated
from darkmetrics.methods.smooth import little_off
from darkmetrics.posterior import Posterior, columns_of

# Missing rows from which on an expansion is looked for; fewer are soon drawn.
_MANY = 1 << 13


def many_rows(functional: DrawnFunctional) -> bool:
    """Whether an expansion is looked for at all."""
    return int(functional.missing.sum()) >= _MANY


def expanded_law(functional: DrawnFunctional, nodes: Posterior) -> MetricDistribution | None:
    """The mixture over the nodes of four-cumulant expansions; None where it is not nearly right."""
    if not many_rows(functional):
        return None
    found = functional.expansion.at(nodes.probability, columns_of(nodes), nodes.weight)
    if found is None or not little_off(nodes, found.off):
        return None
    low, high, _ = functional.extremes
    cdf = mixed_cdf(found.expansions, nodes.weight / nodes.weight.sum(), low, high)
    law = tabulated(functional, cdf.grid, cdf.levels)
    by_node = NodeMoments.of(nodes.weight, cdf.mean, cdf.var)
    return replace(law, by_node=by_node, certify=partial(certificate_by_draws, functional, nodes))


def certificate_by_draws(functional: DrawnFunctional, nodes: Posterior, law: MetricDistribution) -> Certificate | None:
    """What random labelings prove of a law that was found without them; they are drawn when it is asked for."""
    drawn = MonteCarlo().law(functional, Problem(nodes), rng=np.random.default_rng(0)).certificate
    if drawn is None:
        return None
    # What is drawn beside the law is not the law.
    words = ("the law is that of", "the bound comes of"), ("drawn independently", "drawn beside the law, independently")
    assumptions = tuple(
        each._replace(statement=each.statement.replace(*words[0]).replace(*words[1])) for each in drawn.assumptions
    )
    return replace(drawn, assumptions=assumptions, approximation=law._cdf, known=None, stepwise=False)
