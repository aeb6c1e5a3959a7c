"""Backtest: hide labels that are known, evaluate, and see how well the laws hold.

Import rule: knows `evaluate` and the mechanisms; results know nothing of how they came about.
"""

from darkmetrics.backtesting.result import Backtest
from darkmetrics.backtesting.run import backtest
from darkmetrics.backtesting.scores import Estimate, Scores

__all__ = ["Backtest", "Estimate", "Scores", "backtest"]
