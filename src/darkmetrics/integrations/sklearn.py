"""Evaluations of scikit-learn's classifiers, and displays as its users know them; scikit-learn is not imported.

Anything with `predict_proba` or `decision_function` will do, such as a pipeline, a search, or a classifier of another
package that follows scikit-learn.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import darkmetrics as dm
from darkmetrics.argument_types import ArrayLike
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["MetricsDisplay", "PrecisionRecallDisplay", "RocCurveDisplay", "from_estimator", "from_predictions"]

_METHODS = ("predict_proba", "decision_function")


def from_estimator(
    estimator: Any, X: Any, y: ArrayLike, *, response_method: str = "auto", **settings: Any
) -> Evaluation:
    """How good is this fitted classifier on these rows, when part of their labels is missing?

    Scores are its probabilities of the positive class, or, without these, its decision function, which decides at 0.
    The positive class is the second of `classes_`, as scikit-learn has it, unless `pos_label` says otherwise.

    Parameters
    ----------
    estimator : classifier
        Fitted, for two classes.
    X : array-like or DataFrame
        Features of the rows, as the classifier takes them.
    y : array-like
        Labels, missing ones NaN, None or null.
    response_method : {"auto", "predict_proba", "decision_function"}
        Where scores come from.
    **settings
        Arguments of `evaluate`, such as `missingness` or `metrics`.

    Returns
    -------
    Evaluation
        What `evaluate` returns.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> from darkmetrics.integrations.sklearn import from_estimator
    >>> X = np.linspace(-2, 2, 40)[:, None]
    >>> model = LogisticRegression().fit(X, X[:, 0] > 0.3)
    >>> y = [None if i % 3 == 0 else i > 20 for i in range(40)]
    >>> from_estimator(model, X, y, missingness="random", metrics="roc_auc")
    <Evaluation of 40 rows, 14 missing: roc_auc>
    """
    pos_label, scores, threshold = _response(estimator, X, response_method, settings.pop("pos_label", None))
    if settings.get("y_pred") is None:
        settings.setdefault("threshold", threshold)
    return dm.evaluate(y, scores, pos_label=pos_label, **settings)


def from_predictions(y_true: ArrayLike, y_score: ArrayLike, **settings: Any) -> Evaluation:
    """The same from labels and scores: `evaluate` by the name that scikit-learn's users look for.

    Examples
    --------
    >>> from darkmetrics.integrations.sklearn import from_predictions
    >>> from_predictions([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed([0.8]), metrics="accuracy")
    <Evaluation of 3 rows, 1 missing: accuracy>
    """
    return dm.evaluate(y_true, y_score, **settings)


class _Display(ABC):
    """What the displays have in common: made from a classifier, from scores or from an evaluation, and drawn."""

    # Metrics that it shows, evaluated unless others are asked for.
    _metrics: ClassVar[tuple[str, ...] | None] = None

    def __init__(self, evaluation: Evaluation, *, name: str | None = None) -> None:
        if not isinstance(evaluation, Evaluation):
            raise InputError("evaluation", f"expected what evaluate returns, got {type(evaluation).__name__}")
        self.evaluation = evaluation
        self.name = name
        self.ax_: Axes | None = None
        self.figure_: Figure | None = None

    @classmethod
    def from_estimator(
        cls, estimator: Any, X: Any, y: ArrayLike, *, name: str | None = None, ax: "Axes | None" = None, **settings: Any
    ) -> Self:
        """Evaluates a fitted classifier (`from_estimator`), and draws; `name` is its class unless given."""
        evaluation = from_estimator(estimator, X, y, **cls._asked(settings))
        return cls(evaluation, name=name or type(estimator).__name__).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_score: ArrayLike,
        *,
        name: str | None = None,
        ax: "Axes | None" = None,
        **settings: Any,
    ) -> Self:
        """Evaluates labels and scores (`evaluate`), and draws."""
        return cls(from_predictions(y_true, y_score, **cls._asked(settings)), name=name).plot(ax=ax)

    @classmethod
    def _asked(cls, settings: dict[str, Any]) -> dict[str, Any]:
        return settings if cls._metrics is None else {"metrics": cls._metrics, **settings}

    def plot(self, ax: "Axes | None" = None, *, name: str | None = None) -> Self:
        """Draws on the axes given, or on new ones; afterwards `ax_` and `figure_` are there."""
        drawn = self._draw(ax)
        title = name or self.name
        if title:
            drawn.set_title(title)
        self.ax_, self.figure_ = drawn, drawn.get_figure(root=True)
        return self

    @abstractmethod
    def _draw(self, ax: "Axes | None") -> "Axes": ...

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.evaluation!r}>"


class MetricsDisplay(_Display):
    """Every metric with its intervals, as a display of scikit-learn: `from_estimator`, `from_predictions`, `plot`.

    Examples
    --------
    >>> from darkmetrics.integrations.sklearn import MetricsDisplay
    >>> display = MetricsDisplay.from_predictions(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6])
    ... )
    >>> display.evaluation
    <Evaluation of 4 rows, 1 missing: precision, recall, accuracy, f1, roc_auc>
    """

    def _draw(self, ax: "Axes | None") -> "Axes":
        return dm.plotting.plot_metrics(self.evaluation, ax=ax)


class RocCurveDisplay(_Display):
    """The ROC curve with the band that missing labels leave open, as a display of scikit-learn.

    `roc_auc` is the law of the area under it.

    Examples
    --------
    >>> from darkmetrics.integrations.sklearn import RocCurveDisplay
    >>> display = RocCurveDisplay.from_predictions(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6])
    ... )
    >>> round(display.roc_auc.mean(), 3)
    0.9
    """

    _metrics = ("roc_auc",)

    @property
    def roc_auc(self) -> MetricDistribution:
        """The law of the area under the curve."""
        return self.evaluation["roc_auc"]

    def _draw(self, ax: "Axes | None") -> "Axes":
        return dm.plotting.plot_roc(dm.threshold_curves(self.evaluation), ax=ax)


class PrecisionRecallDisplay(_Display):
    """Precision against recall with the band that missing labels leave open, as a display of scikit-learn.

    `average_precision` is the law of the mean precision.

    Examples
    --------
    >>> from darkmetrics.integrations.sklearn import PrecisionRecallDisplay
    >>> display = PrecisionRecallDisplay.from_predictions(
    ...     [1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6])
    ... )
    >>> round(display.average_precision.mean(), 3)
    0.933
    """

    _metrics = ("average_precision",)

    @property
    def average_precision(self) -> MetricDistribution:
        """The law of average precision."""
        return self.evaluation["average_precision"]

    def _draw(self, ax: "Axes | None") -> "Axes":
        return dm.plotting.plot_precision_recall(dm.threshold_curves(self.evaluation), ax=ax)


def _response(estimator: Any, X: Any, method: str, pos_label: Any) -> tuple[Any, Any, float]:
    """The label that is positive, its scores, and from which score on it is decided."""
    if method not in ("auto", *_METHODS):
        raise InputError("response_method", repr(method), "", f"Choose from 'auto', {', '.join(map(repr, _METHODS))}.")
    wanted = _METHODS if method == "auto" else (method,)
    way = next((one for one in wanted if callable(getattr(estimator, one, None))), None)
    if way is None:
        finding = f"{type(estimator).__name__} has no {' and no '.join(wanted)}"
        raise InputError("estimator", finding, "", "Pass a fitted classifier that has scores.")
    classes = getattr(estimator, "classes_", None)
    if classes is None or len(classes) != 2:
        found = "no classes_, so it is not fitted" if classes is None else f"{len(classes)} classes"
        raise InputError("estimator", f"{type(estimator).__name__} has {found}", "It must be fitted, for two classes.")
    known = [value.item() if hasattr(value, "item") else value for value in classes]
    pos_label = known[1] if pos_label is None else pos_label
    if pos_label not in known:
        raise InputError("pos_label", f"{pos_label!r} is none of the classes {known}")
    place = known.index(pos_label)
    scores = getattr(estimator, way)(X)
    if way == "predict_proba":
        return pos_label, scores[:, place], 0.5
    return pos_label, scores if place == 1 else -scores, 0.0
