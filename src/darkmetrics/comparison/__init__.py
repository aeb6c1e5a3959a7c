"""compare(): models on the same rows, judged by the same labels, known or not.

Import rule: everything below may be used; sensitivities, curves and monitoring are siblings and are not known here.
"""

from darkmetrics.comparison.comparing import compare
from darkmetrics.comparison.ranking import Best, Ranks
from darkmetrics.comparison.result import Comparison

__all__ = ["Best", "Comparison", "Ranks", "compare"]
