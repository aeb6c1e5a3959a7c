"""Metrics from functions: any function of labels and scores, and the functions and scorers of scikit-learn."""

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import AnyArray, FloatArray, IntArray
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functional import ScenarioFunctional
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.confusion import ConfusionMetric
from darkmetrics.metrics.metric import Metric, metric_from_text
from darkmetrics.metrics.scoring import LossMetric

# Complete labelings are built this many numbers at a time, so that memory does not grow with their number.
_CHUNK = 1 << 20
# Names of a second parameter that takes predictions, and names of one that takes scores.
_PREDICTIONS = frozenset(
    [
        "y_pred",
        "y_predicted",
        "y_hat",
        "yhat",
        "pred",
        "preds",
        "prediction",
        "predictions",
        "predicted",
        "decision",
        "d",
    ]
)
_SCORES = frozenset(
    [
        *("y_score", "y_scores", "y_prob", "y_probs", "y_proba", "y_probas", "y_pred_proba", "y_pred_prob", "score"),
        *("scores", "prob", "probs", "proba", "probas", "probability", "probabilities", "pred_decision", "probas_pred"),
        "s",
    ]
)
# Functions of scikit-learn, and the metric that each computes with its defaults.
_SKLEARN_METRICS = {
    **{f"{name}_score": name for name in ("accuracy", "precision", "recall", "f1", "jaccard", "roc_auc")},
    **{f"{name}_score": name for name in ("balanced_accuracy", "average_precision", "cohen_kappa")},
    "matthews_corrcoef": "mcc",
    "brier_score_loss": "brier",
    "log_loss": "log_loss",
    "zero_one_loss": "expected_cost(1, 1)",
    "hamming_loss": "expected_cost(1, 1)",
}
# Values of arguments of these functions that leave the metric of two classes as it is.
_SKLEARN_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "average": ("binary",),
    "pos_label": (1,),
    "normalize": (True,),
    "adjusted": (False,),
    **dict.fromkeys(["labels", "sample_weight", "weights", "max_fpr"], (None,)),
    "scale_by_half": (True, "auto"),
    "zero_division": ("warn",),
}
# Functions of scikit-learn that take probabilities in a parameter that was once called y_pred.
_SKLEARN_OF_SCORES = ("log_loss", "d2_log_loss_score")


@dataclass(frozen=True, kw_only=True)
class CallableMetric(Metric):
    """Any function `f(y_true, y_score)` or `f(y_true, y_pred)` of complete labels.

    The function is called once per label assignment: all of them for up to 15 missing rows, random ones above. With
    sample weights it is called with `sample_weight=`. NaN means undefined. Its value must not depend on the order of
    rows.

    Attributes
    ----------
    function : callable
        The function.
    takes_predictions : bool
        Whether its second argument is the predictions (0 or 1) in place of the scores.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from scipy.stats import somersd
    >>> metric = dm.metrics.CallableMetric(name="somers_d", function=lambda y, s: somersd(y, s).statistic)
    >>> result = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], metrics=metric, missingness=dm.missing.Fixed([0.8]))
    >>> round(result["somers_d"].mean(), 9)
    1.0
    """

    function: Callable[..., Any]
    takes_predictions: bool = False

    def bind(self, data: EvaluationSet, fill: float) -> ScenarioFunctional:
        call = partial(self._compute_values, data, {})
        return ScenarioFunctional(missing=data.missing_counts, fill=fill, range=self.range, call=call)

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        weight = np.ones(cells.score.size) if cells.weight is None else cells.weight
        values = np.empty(counts.shape[1])
        for i, of_set in enumerate(np.swapaxes(counts, 0, 1) / np.where(weight > 0.0, weight, 1.0)):
            zeros, ones = np.rint(of_set).astype(np.int64)
            cell, position = _expand_cells(zeros + ones)
            labels = (position < ones[cell]).astype(np.int64)
            values[i] = self._call(labels, self._second_argument(cells)[cell], _weights_by_name(cells, cell))
        return values

    def _compute_values(
        self, data: EvaluationSet, known: dict[tuple[int, int], float], positives: IntArray
    ) -> FloatArray:
        """Return the value for each label assignment (row: positives among the missing rows of each missing cell).

        `known` keeps values of earlier calls.
        """
        if not self.takes_predictions or data.cells.weight is not None:
            return self._call_for_each(data, positives)
        # A function of unweighted predictions depends on two counts alone: positives per predicted class.
        decision = data.cells.decision[data.missing_cells].astype(np.int64)
        counts = list(zip((positives @ decision).tolist(), (positives @ (1 - decision)).tolist(), strict=True))
        new = {pair: index for index, pair in enumerate(counts) if pair not in known}
        known.update(zip(new, self._call_for_each(data, positives[list(new.values())]).tolist(), strict=True))
        return np.array([known[pair] for pair in counts])

    def _call_for_each(self, data: EvaluationSet, positives: IntArray) -> FloatArray:
        cells, missing = data.cells, data.missing_cells
        # Rows of weight zero do not count.
        cell, position = _expand_cells(
            cells.total if cells.weight is None else np.where(cells.weight > 0.0, cells.total, 0)
        )
        rank = position - cells.positives[cell]
        labeled, second = (rank < 0).astype(np.int64), self._second_argument(cells)[cell]
        # Of rows that differ in nothing else, the first ones are positive.
        missing_index = np.full(cells.score.size, -1)
        missing_index[missing] = np.arange(missing.size)
        rows = np.flatnonzero(missing_index[cell] >= 0)
        rank, column = rank[rows], missing_index[cell[rows]]
        values = np.empty(len(positives))
        step = max(1, _CHUNK // max(1, cell.size))
        for start in range(0, len(positives), step):
            ones = np.take(positives[start : start + step], column, axis=1)
            labels = np.tile(labeled, (len(ones), 1))
            labels[:, rows] = rank < ones
            for i, label in enumerate(labels, start):
                # The function may write into its arguments.
                values[i] = self._call(label, second.copy(), _weights_by_name(cells, cell))
        return values

    def _second_argument(self, cells: Cells) -> AnyArray:
        """Return what the function takes after the labels, for each cell."""
        return cells.decision.astype(np.int64) if self.takes_predictions else cells.score

    def _call(self, y_true: IntArray, second: AnyArray, weights: dict[str, Any]) -> float:
        value = self.function(y_true, second, **weights)
        try:
            return float(value)
        except (TypeError, ValueError):
            raise InputError("metrics", f"{self.name!r} returned {value!r}", "A metric returns one number.") from None


def _expand_cells(total: IntArray) -> tuple[IntArray, IntArray]:
    """Return the cell of every row, and the position of the row in its cell."""
    cell = np.repeat(np.arange(total.size), total)
    return cell, np.arange(cell.size) - (np.cumsum(total) - total)[cell]


def _weights_by_name(cells: Cells, cell: IntArray) -> dict[str, Any]:
    return {} if cells.weight is None else {"sample_weight": cells.weight[cell]}


def metric_from_callable(function: Callable[..., Any], name: str | None = None) -> Metric:
    """Return the metric for a function of labels and of scores or predictions.

    Functions and scorers of scikit-learn, also in a `functools.partial`, become the metric that they compute if there
    is one. Any other function gets scores or predictions, whichever the name of its second parameter stands for.

    Examples
    --------
    >>> from functools import partial
    >>> from sklearn.metrics import fbeta_score
    >>> from darkmetrics.metrics.callables import metric_from_callable
    >>> metric = metric_from_callable(partial(fbeta_score, beta=2))
    >>> metric.name, type(metric).__name__
    ('fbeta_score', 'ConfusionMetric')
    """
    if _is_scorer(function):
        return _metric_from_scorer(function, name)
    plain, settings = _without_partial(function)
    name = name or str(getattr(plain, "__name__", type(plain).__name__))
    metric = _sklearn_metric(plain, settings)
    if metric is not None:
        return replace(metric, name=name)
    return _callable_metric(function, name, _takes_predictions(plain, function, name))


def _callable_metric(function: Callable[..., Any], name: str, takes_predictions: bool) -> CallableMetric:
    meaning = (inspect.getdoc(_without_partial(function)[0]) or "").partition("\n")[0]
    settings: dict[str, Any] = {"meaning": meaning, "takes_predictions": takes_predictions}
    return CallableMetric(name=name, function=function, better="neither", **settings)


def _is_scorer(function: Any) -> bool:
    return _is_of_sklearn(type(function)) and hasattr(function, "_score_func")


def _metric_from_scorer(scorer: Any, name: str | None) -> Metric:
    """Return the metric of a scorer of scikit-learn, with its sign and its arguments."""
    function, sign, settings = scorer._score_func, getattr(scorer, "_sign", 1), dict(getattr(scorer, "_kwargs", {}))
    prefix = "neg_" if sign < 0 else ""
    name = name or prefix + str(getattr(function, "__name__", type(function).__name__))
    metric = _sklearn_metric(*_without_partial(partial(function, **settings)))
    if metric is not None and sign < 0:
        metric = negate(metric)
    if metric is not None:
        return replace(metric, name=name)
    responses = getattr(scorer, "_response_method", None)
    is_unknown = responses is None
    takes_predictions = _takes_predictions(function, function, name) if is_unknown else responses == "predict"
    return _callable_metric(partial(_compute_signed, function, sign, settings), name, takes_predictions)


def _compute_signed(
    function: Callable[..., Any], sign: int, settings: dict[str, Any], *arguments: Any, **named: Any
) -> Any:
    return sign * function(*arguments, **settings, **named)


def _without_partial(function: Any) -> tuple[Any, dict[str, Any]]:
    """Return the function inside of a partial, and its arguments by name; "" stands for arguments without a name."""
    settings: dict[str, Any] = {}
    while isinstance(function, functools.partial):
        settings = {**function.keywords, **({"": function.args} if function.args else {}), **settings}
        function = function.func
    return function, settings


def _is_of_sklearn(function: Any) -> bool:
    return str(getattr(function, "__module__", "")).startswith("sklearn.metrics")


def _sklearn_metric(function: Any, settings: Mapping[str, Any]) -> Metric | None:
    """Return the metric that a function of scikit-learn computes with these arguments; None if there is none."""
    if not _is_of_sklearn(function):
        return None
    name = function.__name__
    others = dict(settings)
    if name == "fbeta_score" and "beta" in others:
        metric = metric_from_text(f"fbeta({others.pop('beta')!r})")
    elif name in _SKLEARN_METRICS:
        metric = metric_from_text(_SKLEARN_METRICS[name])
    else:
        return None
    undefined_as = others.get("zero_division")
    if isinstance(undefined_as, (int, float)) and not isinstance(undefined_as, bool):
        metric = replace(metric, undefined_as=float(others.pop("zero_division")))
    is_same = all(
        any(value is default or (isinstance(value, type(default)) and value == default) for default in defaults)
        for value, defaults in ((value, _SKLEARN_DEFAULTS.get(key, ())) for key, value in others.items())
    )
    return metric if is_same else None


def _takes_predictions(plain: Any, function: Any, name: str) -> bool:
    """Return whether a function takes predictions after the labels; a name that stands for nothing is refused."""
    second = _second_parameter(function)
    if second.lower() in _SCORES or (_is_of_sklearn(plain) and plain.__name__ in _SKLEARN_OF_SCORES):
        return False
    if second.lower() in _PREDICTIONS or _is_of_sklearn(plain):
        return True
    seen = (
        f"the second parameter of {name!r} is called {second!r}"
        if second
        else f"the parameters of {name!r} are unknown"
    )
    raise InputError(
        "metrics",
        seen,
        "A function gets scores if it is called y_score, and predictions if it is called y_pred.",
        f"Rename it, or pass dm.metrics.CallableMetric(name={name!r}, function=..., takes_predictions=True or False).",
    )


def _second_parameter(function: Callable[..., Any]) -> str:
    """Return the name of the second parameter; empty if there is none, or it is unknown."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some functions of C have no signature
        return ""
    is_named = len(parameters) > 1 and parameters[1].kind is not inspect.Parameter.VAR_POSITIONAL
    return parameters[1].name if is_named else ""


def negate(metric: Metric) -> Metric | None:
    """Return a metric with the other sign, as scikit-learn's neg_brier_score; None if only calls can compute it.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> result = dm.evaluate([1, 0, 1], [0.9, 0.2, 0.6], metrics=["brier", "neg_brier_score"])
    >>> [round(value.mean(), 3) for value in result.values()]
    [0.07, -0.07]
    """
    low, high = metric.range
    better: Any = {"higher": "lower", "lower": "higher"}.get(metric.better, metric.better)
    common: dict[str, Any] = {"range": (-high, -low), "undefined_as": -metric.undefined_as, "better": better}
    common["meaning"] = f"{metric.meaning}, with the other sign"
    if isinstance(metric, LossMetric):
        return replace(metric, loss=partial(_compute_negative, metric.loss), **common)
    if isinstance(metric, ConfusionMetric):
        direction: Any = tuple(None if sign is None else -sign for sign in metric.direction)
        formula = partial(_compute_negative, metric.formula)
        return replace(metric, formula=formula, form=None, direction=direction, **common)
    return None


def _compute_negative(function: Callable[..., Any], *arguments: Any) -> Any:
    return -function(*arguments)
