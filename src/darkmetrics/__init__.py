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

# What people look for by the names of other libraries, and the call to make.
_INSTEAD = {
    **{
        f"{name}_score": f"evaluate(y_true, y_score, metrics={name!r}); y_pred= takes predictions"
        for name in ("accuracy", "precision", "recall", "f1", "roc_auc", "average_precision", "balanced_accuracy")
    },
    "auc": "evaluate(y_true, y_score, metrics='roc_auc')",
    "brier_score_loss": "evaluate(y_true, y_score, metrics='brier')",
    "log_loss": "evaluate(y_true, y_score, metrics='log_loss')",
    "classification_report": "evaluate(y_true, y_score), and print it",
    "confusion_matrix": "evaluate(y_true, y_score, metrics=['tp', 'fp', 'fn', 'tn'])",
    "roc_curve": "threshold_curves(evaluate(y_true, y_score))",
    "precision_recall_curve": "threshold_curves(evaluate(y_true, y_score))",
    "best_threshold": "threshold_curves(evaluate(y_true, y_score)).best_threshold('f1')",
    "RocCurveDisplay": "plotting.plot_roc(evaluate(y_true, y_score))",
    "PrecisionRecallDisplay": "plotting.plot_precision_recall(evaluate(y_true, y_score))",
    "plot_roc": "plotting.plot_roc(evaluate(y_true, y_score))",
    "CBPE": "evaluate_by('label', 'score', data=df, time='day', period='week')",
    "load": "EvaluationSet.from_parquet(path) for counts; results are written, not read",
    "MetricFrame": "evaluate_by('label', 'score', data=df, by='segment'), with .disparity('recall')",
    "evaluate_frame": "evaluate('label', 'score', data=df)",
    "compare_frame": "compare('label', ['score_a', 'score_b'], data=df)",
    "bootstrap": "paper.bootstrap(EvaluationSet(y_true, y_score))",
    "label_models": "missing, whose objects are passed as missingness=",
    "change": "compare_evaluations(after, before)",
    "curves": "threshold_curves(evaluation)",
    "audit": "verify(before, after)",
    "monitor": "evaluate_by('label', 'score', data=df, time='day', period='month')",
    "suggest_labels": "evaluate(...).variance_decomposition('recall'), which shows what more labels would narrow",
}


if not _typing.TYPE_CHECKING:  # or type checkers would accept any name

    def __getattr__(name: str) -> object:
        if name in _INSTEAD:
            raise AttributeError(f"darkmetrics has no {name!r}. Use darkmetrics.{_INSTEAD[name]}.")
        if name not in __all__:
            try:
                return _importlib.import_module(f"{__name__}.{name}")
            except ModuleNotFoundError:
                raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
        module = _importlib.import_module(f"{__name__}.{_HOME.get(name, name)}")
        value = getattr(module, name) if name in _HOME else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
