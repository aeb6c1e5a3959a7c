"""Distributions of metrics over the missing labels, and the methods that compute them.

Import rule: distributions may import kernels and exceptions, but no metric, no method and no label model.
"""

from darkmetrics.distributions.base import DrawMoments, Interval, MetricDistribution, chance_of_target, check_level
from darkmetrics.distributions.beta import BetaMixture, Rational
from darkmetrics.distributions.kinds import Discrete, Normal, Tabulated, Undefined
from darkmetrics.distributions.mixture import Mixture, mix

__all__ = [
    "BetaMixture",
    "Discrete",
    "DrawMoments",
    "Interval",
    "MetricDistribution",
    "Mixture",
    "Normal",
    "Rational",
    "Tabulated",
    "Undefined",
    "chance_of_target",
    "check_level",
    "mix",
]
