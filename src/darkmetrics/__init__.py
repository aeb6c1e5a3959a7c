"""How good is this classifier when part of the test labels is missing?

>>> import darkmetrics as dm
>>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.6], label_model=[0.75])
>>> result["precision"].mean()
0.9166666666666666

Without `label_model` the probability of the missing label is learnt from the rows that have one.
"""

from darkmetrics import baselines, calibrators, label_models, mechanisms, methods, metrics, paper_bounds, plotting
from darkmetrics.backtest import Backtest, backtest
from darkmetrics.diagnosis import Diagnosis, diagnose
from darkmetrics.distribution import MetricDistribution
from darkmetrics.evaluate import evaluate
from darkmetrics.evaluation import Evaluation
from darkmetrics.evaluation_set import EvaluationSet
from darkmetrics.exceptions import (
    CalibrationWarning,
    InputError,
    MethodError,
    MissingnessWarning,
    UndefinedMetricWarning,
    UnknownNameError,
)
from darkmetrics.metrics import Metric, list_metrics, register_metric
from darkmetrics.robustness import beta_parameters, robustness

__version__ = "0.1.0"

__all__ = [
    "Backtest",
    "CalibrationWarning",
    "Diagnosis",
    "Evaluation",
    "EvaluationSet",
    "InputError",
    "MethodError",
    "Metric",
    "MetricDistribution",
    "MissingnessWarning",
    "UndefinedMetricWarning",
    "UnknownNameError",
    "backtest",
    "baselines",
    "beta_parameters",
    "calibrators",
    "diagnose",
    "evaluate",
    "label_models",
    "list_metrics",
    "mechanisms",
    "methods",
    "metrics",
    "paper_bounds",
    "plotting",
    "register_metric",
    "robustness",
]
