"""What a metric is: a record that binds to an evaluation set, and the registry that finds records by name."""

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._text import number_from
from darkmetrics.constraints import is_number
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functional import Functional
from darkmetrics.exceptions import InputError, UnknownNameError, unknown_name
from darkmetrics.wording import code

# The range of most metrics.
UNIT = (0.0, 1.0)
# Its square times the largest sum of weights is a number.
_LARGEST = 1e100


@dataclass(frozen=True, kw_only=True)
class MetricRecord:
    """What is known of a metric of two or several classes without any data.

    Attributes
    ----------
    name : str
        The key under which results appear.
    meaning : str
        What the number tells a reader, in a phrase.
    better : str
        "higher", "lower" or "neither".
    range : tuple of float
        Smallest and largest value the metric can have on any data; unknown (infinite) unless given.
    undefined_as : float
        Value of a 0/0 when `zero_division="warn"`: what scikit-learn returns, NaN where it returns NaN.
    """

    name: str
    meaning: str = ""
    better: Literal["higher", "lower", "neither"] = "higher"
    range: tuple[float, float] = (-np.inf, np.inf)
    undefined_as: float = np.nan


@dataclass(frozen=True, kw_only=True)
class Metric(MetricRecord, ABC):
    """A metric of two classes as data: what it is called, what it means, and how it binds to an evaluation set."""

    @abstractmethod
    def bind(self, data: EvaluationSet, fill: float) -> Functional:
        """The metric on these rows as a function of the missing labels; `fill` stands for a 0/0."""

    @abstractmethod
    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        """The metric of many fully labeled sets; nan for 0/0.

        `counts` has the weight of each class in each cell (classes x sets x cells): `negatives, positives = counts`.
        """

    def value(self, data: EvaluationSet, fill: float = np.nan) -> float:
        """The metric on the labeled rows of a set; `fill` (NaN by default) where it is 0/0."""
        cells = data.cells
        counts = np.stack([cells.mass(cells.negatives), cells.mass(cells.positives)])
        value = float(self.of_counts(cells, counts[:, None])[0])
        return fill if np.isnan(value) else value

    def row_influence(self, cells: Cells, counts: FloatArray) -> FloatArray | None:
        """How far one more row would move the metric, per unit of its weight; None: it is known by its values alone.

        `counts` are as in `of_counts`, and so is the result: an influence for each class, set and cell. Summed over the
        rows, its square is the variance that the metric has because these rows are a sample.
        """
        return None

    def rests_on(self, cells: Cells) -> FloatArray:
        """How much each row counts in what the metric is a mean over (kinds of rows, for both classes and all cells).

        Of every kind there must be many for a value near the end of the range to say much: as it is not told otherwise,
        of positives and of negatives.
        """
        return np.eye(2)[:, :, None] * np.ones(cells.score.size)

    def binning_error(self, data: EvaluationSet) -> float:
        """How far can it have moved the metric that scores were counted in bins? NaN: it is not known.

        A bound for whatever the missing labels are and wherever in their bins the scores lie; 0 for exact scores.
        """
        if data.score_bins is None:
            return 0.0
        return float(np.minimum(self._binning_error(data), self.range[1] - self.range[0]))

    def _binning_error(self, data: EvaluationSet) -> float:
        """The same for scores in bins; a family that knows its answer says it here."""
        return np.nan


@dataclass(frozen=True, kw_only=True)
class Family:
    """Metrics that differ in a parameter: `make` builds one, `example` is one for tests and documentation."""

    name: str
    make: Callable[..., Metric]
    example: Metric
    needs_argument: bool


_REGISTRY: dict[str, Metric | Family] = {}
# Metrics that "all" does not stand for: counts, other names, and those with the sign of scikit-learn's scorers.
_NOT_IN_ALL: dict[str, Metric] = {}
_ALIASES: dict[str, str] = {}


def register_metric(metric: Metric | Family, *, overwrite: bool = False) -> Metric | Family:
    """Make a metric available by its name, everywhere a name is accepted.

    Parameters
    ----------
    metric : Metric or Family
        For example a `ConfusionMetric`, a `LossMetric` or a `CallableMetric`.
    overwrite : bool
        Replace a metric of the same name; otherwise that is an error.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> wasted = dm.metrics.ConfusionMetric(
    ...     name="wasted_reviews",
    ...     formula=lambda tp, fp, fn, tn: fp / (tp + fp),
    ...     meaning="share of alerts in vain",
    ...     better="lower",
    ...     direction=(-1, 0),
    ... )
    >>> _ = dm.register_metric(wasted, overwrite=True)
    >>> dm.evaluate([1, 0, 1], [0.9, 0.8, 0.7], metrics="wasted_reviews", missingness=dm.missing.Fixed(0.5))[
    ...     "wasted_reviews"
    ... ].mean()
    0.3333333333333333
    """
    if not isinstance(metric, (Metric, Family)):
        raise InputError("metric", repr(metric), "It must be a Metric such as ConfusionMetric(...).")
    if metric.name in _REGISTRY and not overwrite:
        raise InputError("metric", f"{metric.name!r} is already registered", "", "Pass overwrite=True to replace it.")
    _REGISTRY[metric.name] = metric
    return metric


def list_metrics() -> list[str]:
    """Return all names that `metrics=` accepts, in alphabetical order: names of metrics and their aliases.

    Other spellings work, too: "F1", "ROC-AUC", "recall_score". `metrics.aliases()` shows which names are the same
    metric. A name that needs a parameter takes it in brackets: "fbeta(2)".

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.list_metrics()[:4]
    ['acc', 'accuracy', 'ap', 'auc']
    >>> "ks" in dm.list_metrics()
    True
    """
    return sorted({*_REGISTRY, *_NOT_IN_ALL})


def registered_names() -> list[str]:
    """Return one name for each registered metric, without aliases, counts and the like.

    Examples
    --------
    >>> from darkmetrics.metrics.metric import registered_names
    >>> registered_names()[:4]
    ['accuracy', 'precision', 'recall', 'specificity']
    """
    return list(_REGISTRY)


def aliases() -> dict[str, list[str]]:
    """Return the other names of each metric that has some.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.metrics.aliases()["recall"]
    ['sensitivity', 'tpr', 'hit_rate']
    """
    names: dict[str, list[str]] = {}
    for alias, name in _ALIASES.items():
        names.setdefault(name, []).append(alias)
    return names


def accept_metric(metric: Metric, alias_of: str = "") -> None:
    """Make a metric available by its name, although "all" does not stand for it; a registered metric has precedence."""
    _NOT_IN_ALL[metric.name] = metric
    if alias_of:
        _ALIASES[metric.name] = alias_of


def _spellings(name: str) -> Iterator[str]:
    """Yield a name as it is, in lower case with underscores, and without the endings of scikit-learn."""
    yield name
    plain = re.sub(r"[\s-]+", "_", name.strip().lower())
    yield plain
    for ending in ("_score", "_score_loss", "_loss", "_coef"):
        yield plain.removesuffix(ending)


def registered(name: str) -> Metric | Family:
    """Return the record behind a name, in any of its spellings.

    Examples
    --------
    >>> from darkmetrics.metrics.metric import registered
    >>> [registered(name).name for name in ("F1", "ROC-AUC", "recall_score")]
    ['f1', 'roc_auc', 'recall']
    """
    for spelling in _spellings(name):
        record = _REGISTRY.get(spelling) or _NOT_IN_ALL.get(spelling)
        if record is not None:
            return record
    names = list_metrics()
    raise unknown_name("metrics", "metric", name, names, f"{code('list_metrics()')} shows all {len(names)}.")


def metric_from_text(text: str) -> Metric:
    """Return the metric that a text stands for: a name, or a name with arguments such as "fbeta(2)"."""
    name, bracket, _ = text.partition("(")
    _refuse_value_at_value(text)
    record = registered(name.strip())
    if not bracket:
        if isinstance(record, Metric):
            return record
        if record.needs_argument:
            fix = f"Pass one, such as {record.example.name!r}."
            raise InputError("metrics", f"{text!r} has no parameter", "", fix)
        return record.make()
    if isinstance(record, Metric):
        raise InputError("metrics", repr(text), f"{record.name!r} takes no parameter.")
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
            raise ValueError
        positional = [_argument(argument, text) for argument in call.args]
        named = {str(keyword.arg): _argument(keyword.value, text) for keyword in call.keywords}
        return record.make(*positional, **named)
    except InputError:
        raise
    except (SyntaxError, ValueError, TypeError):
        raise InputError("metrics", f"cannot read {text!r}", "", f"Write it like {record.example.name!r}.") from None


def _refuse_value_at_value(text: str) -> None:
    """Raise the error for "precision_at_recall(0.8)" and the like, with the call that finds the threshold."""
    parts = re.fullmatch(r"(\w+)_at_(\w+)(?:\((.*)\))?", re.sub(r"[\s-]+", "_", text.strip().lower()))
    if parts is None:
        return
    metric, condition, value = parts.groups()
    if all(isinstance(_REGISTRY.get(_ALIASES.get(name, name)), Metric) for name in (metric, condition)):
        metric, condition = (_ALIASES.get(name, name) for name in (metric, condition))
        target = value if value and number_from(value) is not None else "0.8"
        raise UnknownNameError(
            "metrics",
            f"{text!r} is a metric at a threshold that has to be found",
            "",
            f'Write dm.threshold_curves(dm.evaluate(y_true, y_score), metrics=["{metric}", "{condition}"])'
            f'.best_threshold("{metric}", constraint={{"{condition}": {target}}}).',
        )


# One metric: its name, its record, or a function of labels and scores.
MetricLike: TypeAlias = str | MetricRecord | Family | Callable[..., Any]
# What to evaluate: a metric, several, or several with names of their own.
MetricsLike: TypeAlias = MetricLike | Iterable[MetricLike] | Mapping[str, MetricLike]


def _argument(node: ast.expr, text: str) -> Any:
    """The value of an argument; a number of Python's own kind, such as 1_000 or 0x10, is none."""
    value = ast.literal_eval(node)
    if isinstance(value, (int, float, complex)) and not isinstance(value, bool):
        written = (ast.get_source_segment(text.strip(), node) or "").replace(" ", "")
        if number_from(written) is None:
            raise ValueError
    return value


def number_argument(value: Any, name: str, *, above: float) -> float:
    """A parameter of a metric as a float, checked to be large enough and not so large that a formula overflows."""
    if not is_number(value) or not np.isfinite(value):
        raise InputError(name, repr(value), "It must be a finite number.")
    if value < above:
        raise InputError(name, f"{value!r}", f"It must be at least {above:g}.")
    if value > _LARGEST:
        raise InputError(name, f"{value!r}", f"It must be at most {_LARGEST:g}.")
    return float(value)


def oracle_bounds(metric: Metric, data: EvaluationSet, fill: float) -> tuple[float, float]:
    """The metric when every missing row is decided wrongly, and when every one is decided rightly."""
    functional = metric.bind(data, fill)
    right = functional.missing * data.cells.decision[data.missing_cells]
    wrong = functional.missing - right
    values = functional.values(np.stack([wrong, right]))
    pessimistic, optimistic = np.where(np.isnan(values), functional.fill, values).tolist()
    return pessimistic, optimistic
