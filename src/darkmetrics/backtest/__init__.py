"""Backtest: hide labels that are known, evaluate, and see how well the laws hold.

Import rule: knows `evaluate` and the mechanisms; results know nothing of how they came about.
"""

from darkmetrics.backtest.result import Backtest, Scores
from darkmetrics.backtest.run import backtest

__all__ = ["Backtest", "Scores", "backtest"]
