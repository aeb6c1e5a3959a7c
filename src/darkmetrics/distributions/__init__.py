"""MetricDistribution: the law of a metric over everything the missing labels could be, and its kinds.

Import rule: laws know kernels and exceptions; they know no metric, no method and no label model.
"""

from darkmetrics.distributions.base import Interval, MetricDistribution, NodeMoments, chance_of_target, check_level
from darkmetrics.distributions.beta import BetaMixture, Rational
from darkmetrics.distributions.kinds import Discrete, Normal, Tabulated, Undefined
from darkmetrics.distributions.mixture import Mixture, mix

__all__ = [
    "BetaMixture",
    "Discrete",
    "Interval",
    "MetricDistribution",
    "Mixture",
    "NodeMoments",
    "Normal",
    "Rational",
    "Tabulated",
    "Undefined",
    "chance_of_target",
    "check_level",
    "mix",
]
