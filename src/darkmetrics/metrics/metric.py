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
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.distributions.functional import Functional
from darkmetrics.exceptions import InputError, unknown_name

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
        """How far can it have moved the metric that scores were counted in buckets? NaN: it is not known.

        A bound for whatever the missing labels are and wherever in their buckets the scores lie; 0 for exact scores.
        """
        if data.score_bins is None:
            return 0.0
        return float(np.minimum(self._binning_error(data), self.range[1] - self.range[0]))

    def _binning_error(self, data: EvaluationSet) -> float:
        """The same for scores in buckets; a family that knows its answer says it here."""
        return np.nan


@dataclass(frozen=True, kw_only=True)
class Family:
    """Metrics that differ in a parameter: `make` builds one, `example` is one for tests and documentation."""

    name: str
    make: Callable[..., Metric]
    example: Metric
    needs_argument: bool


_REGISTRY: dict[str, Metric | Family] = {}
# Understood, but not listed: other names of metrics, and what users ask for that is no quality by itself.
_ALSO: dict[str, Metric] = {}
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
        raise InputError(f"metric: expected a Metric such as ConfusionMetric(...), got {metric!r}.")
    if metric.name in _REGISTRY and not overwrite:
        raise InputError(f"metric: {metric.name!r} is already registered; pass overwrite=True to replace it.")
    _REGISTRY[metric.name] = metric
    return metric


def list_metrics() -> list[str]:
    """Return the names of all registered metrics.

    Other spellings work, too: "F1", "ROC-AUC", "tpr", "pr_auc", "recall_score"; see `metrics.aliases()`. Counts are
    available as "tp", "fp", "fn" and "tn".

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.list_metrics()[:4]
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


def understand(metric: Metric, alias_of: str = "") -> None:
    """Make a metric available by its name without listing it; a registered metric takes precedence."""
    _ALSO[metric.name] = metric
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
        found = _REGISTRY.get(spelling) or _ALSO.get(spelling)
        if found is not None:
            return found
    raise unknown_name("metrics", "metric", name, _REGISTRY, f"list_metrics() shows all {len(_REGISTRY)}.")


def metric_from_text(text: str) -> Metric:
    """The metric that a text stands for: a name, or a name with arguments such as "fbeta(2)"."""
    name, bracket, _ = text.partition("(")
    record = registered(name.strip())
    if not bracket:
        if isinstance(record, Metric):
            return record
        if record.needs_argument:
            raise InputError(f"metrics: {text!r} needs a parameter, for example {record.example.name!r}.")
        return record.make()
    if isinstance(record, Metric):
        raise InputError(f"metrics: {record.name!r} takes no parameter, got {text!r}.")
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
        raise InputError(f"metrics: cannot read {text!r}. Write it like {record.example.name!r}.") from None


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
        raise InputError(f"{name}: expected a finite number, got {value!r}.")
    if value < above:
        raise InputError(f"{name}: {value!r}. It must be at least {above:g}.")
    if value > _LARGEST:
        raise InputError(f"{name}: {value!r}. It must be at most {_LARGEST:g}.")
    return float(value)


def oracle_bounds(metric: Metric, data: EvaluationSet, fill: float) -> tuple[float, float]:
    """The metric when every missing row is decided wrongly, and when every one is decided rightly."""
    functional = metric.bind(data, fill)
    right = functional.missing * data.cells.decision[data.missing_cells]
    wrong = functional.missing - right
    values = functional.values(np.stack([wrong, right]))
    pessimistic, optimistic = np.where(np.isnan(values), functional.fill, values).tolist()
    return pessimistic, optimistic
