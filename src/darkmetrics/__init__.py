"""Classifier metrics for test sets with missing labels.

>>> import darkmetrics as dm
>>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.6], missingness=dm.missing.Fixed([0.75]))
>>> result["precision"].mean()
0.9166666666666666

Without `missingness` the probability of the missing label is learned from the rows that have one.
"""

import importlib as _importlib
import typing as _typing

# What type checkers see. At run time a name is imported when it is first used (PEP 562), so that `import darkmetrics`
# and `darkmetrics --help` load neither numpy nor scipy.
if _typing.TYPE_CHECKING:
    from darkmetrics import (
        calibrators,
        masks,
        methods,
        metrics,
        missing,
        paper,
        plotting,
        report,
        testing,
    )
    from darkmetrics.backtesting import Backtest, backtest
    from darkmetrics.bounding import bounds
    from darkmetrics.changes import EvaluationChange, compare_evaluations
    from darkmetrics.comparison import Comparison, compare
    from darkmetrics.curves import ThresholdCurves, threshold_curves
    from darkmetrics.data.evaluation_set import EvaluationSet
    from darkmetrics.diagnosis.run import diagnose
    from darkmetrics.distributions import MetricDistribution
    from darkmetrics.evaluating import evaluate
    from darkmetrics.evaluation import Evaluation
    from darkmetrics.exceptions import (
        AssumptionWarning,
        CalibrationWarning,
        InputError,
        MissingnessWarning,
        UndefinedMetricWarning,
    )
    from darkmetrics.metrics import list_metrics, register_metric
    from darkmetrics.monitoring import GroupedEvaluation, evaluate_by
    from darkmetrics.verification import Verification, verify

__version__ = "0.1.0"

__all__ = [
    "AssumptionWarning",
    "Backtest",
    "CalibrationWarning",
    "Comparison",
    "Evaluation",
    "EvaluationChange",
    "EvaluationSet",
    "GroupedEvaluation",
    "InputError",
    "MetricDistribution",
    "MissingnessWarning",
    "ThresholdCurves",
    "UndefinedMetricWarning",
    "Verification",
    "backtest",
    "bounds",
    "calibrators",
    "compare",
    "compare_evaluations",
    "diagnose",
    "evaluate",
    "evaluate_by",
    "list_metrics",
    "masks",
    "methods",
    "metrics",
    "missing",
    "paper",
    "plotting",
    "register_metric",
    "report",
    "testing",
    "threshold_curves",
    "verify",
]

# The module that defines a name; the other names are modules themselves. A test holds this against the imports above.
_HOME = {
    name: module
    for module, names in {
        "verification": ("Verification", "verify"),
        "backtesting": ("Backtest", "backtest"),
        "bounding": ("bounds",),
        "changes": ("EvaluationChange", "compare_evaluations"),
        "comparison": ("Comparison", "compare"),
        "curves": ("ThresholdCurves", "threshold_curves"),
        "diagnosis": ("diagnose",),
        "distributions": ("MetricDistribution",),
        "evaluating": ("evaluate",),
        "evaluation": ("Evaluation",),
        "data.evaluation_set": ("EvaluationSet",),
        "exceptions": (
            "AssumptionWarning",
            "CalibrationWarning",
            "InputError",
            "MissingnessWarning",
            "UndefinedMetricWarning",
        ),
        "metrics": ("list_metrics", "register_metric"),
        "monitoring": ("GroupedEvaluation", "evaluate_by"),
    }.items()
    for name in names
}

if not _typing.TYPE_CHECKING:  # or type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name not in __all__:
            try:
                return _importlib.import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":
                    raise
            answer = _importlib.import_module(f"{__name__}.calls").answer_name
            raise AttributeError(answer(name, __all__))
        module = _importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
        value = getattr(module, name) if name in _HOME else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
