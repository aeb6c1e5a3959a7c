"""How good is this classifier when part of the test labels is missing?

>>> import darkmetrics as dm
>>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.6], label_model=[0.75])
>>> result["precision"].mean()
0.9166666666666666

Without `label_model` the probability of the missing label is learnt from the rows that have one.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

# What type checkers see. At run time a name is imported when it is first used (PEP 562), so that `import darkmetrics`
# and `darkmetrics --help` load neither numpy nor scipy.
if TYPE_CHECKING:
    from darkmetrics import (
        baselines,
        calibrators,
        label_models,
        mechanisms,
        methods,
        metrics,
        paper_bounds,
        plotting,
        report,
    )
    from darkmetrics import diagnosis as diagnosis
    from darkmetrics import distribution as distribution
    from darkmetrics import evaluation as evaluation
    from darkmetrics import evaluation_set as evaluation_set
    from darkmetrics import exceptions as exceptions
    from darkmetrics import frames as frames
    from darkmetrics.backtest import Backtest, backtest
    from darkmetrics.curves import Curves, curves
    from darkmetrics.diagnosis import Diagnosis
    from darkmetrics.diagnosis.diagnose import diagnose
    from darkmetrics.distribution import MetricDistribution
    from darkmetrics.evaluate import evaluate, evaluate_frame
    from darkmetrics.evaluation import Evaluation
    from darkmetrics.evaluation_set import EvaluationSet
    from darkmetrics.exceptions import (
        CalibrationWarning,
        InputError,
        MethodError,
        MissingnessWarning,
        RefutedWarning,
        UndefinedMetricWarning,
        UnknownNameError,
    )
    from darkmetrics.metrics import Metric, list_metrics, register_metric
    from darkmetrics.monitoring import GroupedEvaluation, evaluate_by
    from darkmetrics.robustness import beta_parameters, robustness

__version__ = "0.1.0"

__all__ = [
    "Backtest",
    "CalibrationWarning",
    "Curves",
    "Diagnosis",
    "Evaluation",
    "EvaluationSet",
    "GroupedEvaluation",
    "InputError",
    "MethodError",
    "Metric",
    "MetricDistribution",
    "MissingnessWarning",
    "RefutedWarning",
    "UndefinedMetricWarning",
    "UnknownNameError",
    "backtest",
    "baselines",
    "beta_parameters",
    "calibrators",
    "curves",
    "diagnose",
    "evaluate",
    "evaluate_by",
    "evaluate_frame",
    "label_models",
    "list_metrics",
    "mechanisms",
    "methods",
    "metrics",
    "paper_bounds",
    "plotting",
    "register_metric",
    "report",
    "robustness",
]

# The module that defines a name; the other names are modules themselves. A test holds this against the imports above.
_HOME = {
    name: module
    for module, names in {
        "backtest": ("Backtest", "backtest"),
        "curves": ("Curves", "curves"),
        "diagnosis": ("Diagnosis", "diagnose"),
        "distribution": ("MetricDistribution",),
        "evaluate": ("evaluate", "evaluate_frame"),
        "evaluation": ("Evaluation",),
        "evaluation_set": ("EvaluationSet",),
        "exceptions": (
            "CalibrationWarning",
            "InputError",
            "MethodError",
            "MissingnessWarning",
            "RefutedWarning",
            "UndefinedMetricWarning",
            "UnknownNameError",
        ),
        "metrics": ("Metric", "list_metrics", "register_metric"),
        "monitoring": ("GroupedEvaluation", "evaluate_by"),
        "robustness": ("beta_parameters", "robustness"),
    }.items()
    for name in names
}

# Modules that `darkmetrics.name` reaches besides those of `__all__`.
_MODULES = ("diagnosis", "distribution", "evaluation", "evaluation_set", "exceptions", "frames")


if not TYPE_CHECKING:  # or type checkers would take any name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in __all__ and name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = import_module(f"{__name__}.{_HOME.get(name, name)}")
        value = getattr(module, name) if name in _HOME else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})


class _Package(ModuleType):
    """Python sets a module on its package when it is imported; where a function has the same name, the function wins.

    Without this, `darkmetrics.evaluate` would be the module as soon as anything else had imported it.
    """

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(value, ModuleType) and _HOME.get(name) == name:
            value = getattr(value, name)
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
