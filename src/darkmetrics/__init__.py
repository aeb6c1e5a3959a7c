"""How good is this classifier when part of the test labels is missing?

>>> import darkmetrics as dm
>>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.6], label_model=[0.75])
>>> result["precision"].mean()
0.9166666666666666

Without `label_model` the probability of the missing label is learnt from the rows that have one.
"""

import importlib as _importlib
import typing as _typing

# What type checkers see. At run time a name is imported when it is first used (PEP 562), so that `import darkmetrics`
# and `darkmetrics --help` load neither numpy nor scipy.
if _typing.TYPE_CHECKING:
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
    from darkmetrics import distributions as distributions
    from darkmetrics import evaluation as evaluation
    from darkmetrics import exceptions as exceptions
    from darkmetrics import frames as frames
    from darkmetrics.backtesting import Backtest, backtest
    from darkmetrics.bounding import Bounds, bounds
    from darkmetrics.changes import Change, Gap, Trend, change
    from darkmetrics.comparison import Comparison, compare, compare_frame
    from darkmetrics.data.evaluation_set import EvaluationSet
    from darkmetrics.diagnosis import Diagnosis
    from darkmetrics.diagnosis.run import diagnose
    from darkmetrics.distributions import MetricDistribution
    from darkmetrics.evaluating import evaluate, evaluate_frame
    from darkmetrics.evaluation import Evaluation
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
    from darkmetrics.noise import beta_parameters, robustness
    from darkmetrics.threshold_curves import Curves, curves
    from darkmetrics.verification import Verification, verify

__version__ = "0.1.0"

__all__ = [
    "Backtest",
    "Bounds",
    "CalibrationWarning",
    "Change",
    "Comparison",
    "Curves",
    "Diagnosis",
    "Evaluation",
    "EvaluationSet",
    "Gap",
    "GroupedEvaluation",
    "InputError",
    "MethodError",
    "Metric",
    "MetricDistribution",
    "MissingnessWarning",
    "RefutedWarning",
    "Trend",
    "UndefinedMetricWarning",
    "UnknownNameError",
    "Verification",
    "backtest",
    "baselines",
    "beta_parameters",
    "bounds",
    "calibrators",
    "change",
    "compare",
    "compare_frame",
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
    "verify",
]

# The module that defines a name; the other names are modules themselves. A test holds this against the imports above.
_HOME = {
    name: module
    for module, names in {
        "verification": ("Verification", "verify"),
        "backtesting": ("Backtest", "backtest"),
        "bounding": ("Bounds", "bounds"),
        "changes": ("Change", "Gap", "Trend", "change"),
        "comparison": ("Comparison", "compare", "compare_frame"),
        "threshold_curves": ("Curves", "curves"),
        "diagnosis": ("Diagnosis", "diagnose"),
        "distributions": ("MetricDistribution",),
        "evaluating": ("evaluate", "evaluate_frame"),
        "evaluation": ("Evaluation",),
        "data.evaluation_set": ("EvaluationSet",),
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
        "noise": ("beta_parameters", "robustness"),
    }.items()
    for name in names
}

# Modules that `darkmetrics.name` reaches besides those of `__all__`.
_MODULES = ("diagnosis", "distributions", "evaluation", "exceptions", "frames")


if not _typing.TYPE_CHECKING:  # or type checkers would take any name for one that exists

    def __getattr__(name: str) -> object:
        if name not in __all__ and name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = _importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
        value = getattr(module, name) if name in _HOME else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})
