"""How good is this classifier when part of the test labels is missing?

>>> import darkmetrics as dm
>>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.6], label_model=[0.75])
>>> result["precision"].mean()
0.9166666666666666
"""

from darkmetrics import baselines, label_models, methods, metrics
from darkmetrics.distribution import MetricDistribution
from darkmetrics.evaluate import Evaluation, evaluate
from darkmetrics.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError, MethodError, UndefinedMetricWarning, UnknownNameError
from darkmetrics.metrics import Metric, list_metrics, register_metric

__version__ = "0.1.0"

__all__ = [
    "Evaluation",
    "EvaluationSet",
    "InputError",
    "MethodError",
    "Metric",
    "MetricDistribution",
    "UndefinedMetricWarning",
    "UnknownNameError",
    "baselines",
    "evaluate",
    "label_models",
    "list_metrics",
    "methods",
    "metrics",
    "register_metric",
]
