"""Evaluations in MLflow: numbers with their intervals as metrics of a run, what was assumed as tags."""

import importlib
import re
from collections.abc import Mapping
from tempfile import TemporaryDirectory
from typing import Any

import darkmetrics as dm
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.targets import targets_from
from darkmetrics.monitoring import Alerts, GroupedEvaluation
from darkmetrics.tables import flat_numbers

__all__ = ["log_evaluation", "log_groups"]

# Of a tag; MLflow refuses longer ones, or cuts them.
_LONGEST_TAG = 5000


def log_evaluation(
    result: Evaluation,
    *,
    prefix: str = "",
    step: int | None = None,
    targets: Mapping[str, float] | None = None,
    report: bool = False,
) -> dict[str, float]:
    """Logs an evaluation to the active MLflow run: each metric with its interval, and what was assumed.

    For each metric the run gets its estimate ("recall"), the interval ("recall_low", "recall_high") and what dropping
    the unlabeled rows would have said ("recall_labeled_only"); "rows", "labeled" and "missing" say what they rest
    on. What is undefined is not logged, so that no chart has a NaN. What was assumed is a tag, and all of it is the
    artifact "darkmetrics/evaluation.json".

    Parameters
    ----------
    result : Evaluation
        What `evaluate` returned.
    prefix : str
        Before each name, such as "test_".
    step : int, optional
        Step of the run, for charts over time.
    targets : mapping from metric to number, optional
        Values to reach: the probability of each is logged as "recall_target_probability".
    report : bool
        Whether the page of `result.report()` is an artifact as well; needs jinja2.

    Returns
    -------
    dict
        The metrics as they were logged.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.integrations.mlflow import log_evaluation
    >>> result = dm.evaluate(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]), metrics="recall"
    ... )
    >>> with mlflow.start_run():  # doctest: +SKIP
    ...     log_evaluation(result, targets={"recall": 0.5})
    """
    if not isinstance(result, Evaluation):
        raise InputError("result", f"expected what evaluate returns, got {type(result).__name__}")
    numbers = result.to_dict(flat=True)
    _, goals = targets_from(targets, result.metrics.values(), more=False)
    chances = {name: result.target_probability(name, target) for name, target in goals.items()}
    numbers |= flat_numbers({name: {"target_probability": chance} for name, chance in chances.items()})
    numbers = _named(prefix, numbers)
    mlflow = _mlflow()
    mlflow.log_metrics(numbers, step=step)
    mlflow.set_tags({f"{_name(prefix)}darkmetrics.{key}": text[:_LONGEST_TAG] for key, text in _facts(result).items()})
    mlflow.log_dict(result.to_dict(), f"darkmetrics/{_name(prefix)}evaluation.json")
    if report:
        with TemporaryDirectory() as folder:
            page = result.report(f"{folder}/{_name(prefix)}report.html", targets=targets)
            mlflow.log_artifact(str(page), "darkmetrics")
    return numbers


def log_groups(result: GroupedEvaluation | Alerts, *, prefix: str = "") -> dict[str, dict[int, float]]:
    """Logs each period of a monitoring to the active MLflow run, one step per period, with its interval.

    Segments have their name before that of the metric, such as "web/recall". Groups are in the order of their keys; the
    first period is step 0. Groups that have no estimate, and numbers that are undefined, are not logged.

    Parameters
    ----------
    result : GroupedEvaluation or Alerts
        What `evaluate_by` returned, or its alerts, with which the probability of a miss is logged as well.
    prefix : str
        Before each name.

    Returns
    -------
    dict
        By name of the metric, its value at each step.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.integrations.mlflow import log_groups
    >>> months = dm.evaluate_by("fraud", "p", data=table, time="booked", period="month")  # doctest: +SKIP
    >>> log_groups(months)  # doctest: +SKIP
    """
    if not isinstance(result, GroupedEvaluation | Alerts):
        raise InputError("result", f"expected what evaluate_by returns, got {type(result).__name__}")
    plain, probability_missed = result.to_dict(), result._view.probability_missed
    result = result._view.grouped
    at = None if result.time is None else result.names.index(result.time)
    periods = sorted({key[at] for key in result.groups}, key=str) if at is not None else []
    logged: dict[str, dict[int, float]] = {}
    mlflow = _mlflow()
    for key, group in result.groups.items():
        step = 0 if at is None else periods.index(key[at])
        segment = "/".join(str(value) for place, value in enumerate(key) if place != at)
        entries = {
            name: {
                "": one.mean,
                "low": one.low,
                "high": one.high,
                "probability_missed": probability_missed.get(key, {}).get(name),
            }
            for name, one in group.metrics.items()
            if one.method != "bounds"
        }
        numbers = _named(f"{prefix}{_name(segment)}/" if segment else prefix, flat_numbers(entries))
        mlflow.log_metrics(numbers, step=step)
        for name, number in numbers.items():
            logged.setdefault(name, {})[step] = number
    mlflow.log_dict(plain, f"darkmetrics/{_name(prefix)}groups.json")
    return logged


def _facts(result: Evaluation) -> dict[str, str]:
    return {
        "assumption": result.assumption or "no label is missing",
        "scope": result.scope,
        "confidence_level": f"{result.confidence_level:g}",
        "version": dm.__version__,
    }


def _named(prefix: str, numbers: Mapping[str, float]) -> dict[str, float]:
    return {f"{_name(prefix)}{name}": number for name, number in numbers.items()}


def _name(text: str) -> str:
    """The text with signs that MLflow takes in names."""
    return re.sub(r"[^\w./ -]", "_", text)


def _mlflow() -> Any:
    try:
        return importlib.import_module("mlflow")
    except ModuleNotFoundError as error:
        if error.name != "mlflow":
            raise
        raise ModuleNotFoundError("MLflow is not installed: pip install mlflow-skinny", name="mlflow") from None
