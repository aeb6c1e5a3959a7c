"""Bounds of metrics over all label assignments to the missing rows."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from darkmetrics._text import counted
from darkmetrics.argument_types import ArrayLike, FrameLike, LabelValue
from darkmetrics.calls import suggest_call
from darkmetrics.data.arguments import evaluation_set_from
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.footnotes import warn_of_default_threshold
from darkmetrics.metrics import DEFAULT_METRICS, Metric, metrics_from
from darkmetrics.metrics.metric import MetricsLike, oracle_bounds
from darkmetrics.result import Result
from darkmetrics.tables import finite, interval_text, number_text

# Fields that are numbers.
_NUMBERS = ("lowest_possible", "highest_possible", "oracle_pessimistic", "oracle_optimistic", "labeled_only")


@dataclass(frozen=True, slots=True)
class MetricBounds:
    """The possible values of one metric; NaN where it is 0/0 without a value.

    Attributes
    ----------
    better : str
        "higher", "lower" or "neither".
    lowest_possible, highest_possible : float
        The smallest and the largest value over all label assignments to the missing rows.
    oracle_pessimistic, oracle_optimistic : float
        The metric if every missing row is predicted wrongly, and if every missing row is predicted correctly.
    labeled_only : float
        The metric on the labeled rows only.
    bounds_sharp : bool
        Whether label assignments attain the smallest and the largest value.
    """

    better: str
    lowest_possible: float
    highest_possible: float
    oracle_pessimistic: float
    oracle_optimistic: float
    labeled_only: float
    bounds_sharp: bool

    @classmethod
    def of(cls, metric: Metric, data: EvaluationSet) -> "MetricBounds":
        """Return the bounds of a metric on a set."""
        fill = metric.undefined_as
        extremes = metric.bind(data, fill).extremes
        oracle = oracle_bounds(metric, data, fill)
        return cls(metric.better, extremes.low, extremes.high, *oracle, metric.value(data, fill), extremes.sharp)

    @property
    def worst(self) -> float:
        """Worst case: the smallest value, or the largest if lower is better."""
        return self.highest_possible if self.better == "lower" else self.lowest_possible

    @property
    def best(self) -> float:
        """Best case."""
        return self.lowest_possible if self.better == "lower" else self.highest_possible

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        numbers = {name: finite(getattr(self, name)) for name in _NUMBERS}
        return {"better": self.better, **numbers, "bounds_sharp": self.bounds_sharp}


@dataclass(frozen=True, eq=False)
class Bounds(Result, Mapping[str, MetricBounds]):
    """Worst and best case of each metric: a mapping from metric name to `MetricBounds`.

    Print it for a table, `to_dict()` for plain numbers, `to_frame()` for a DataFrame.
    """

    data: EvaluationSet
    bounds: Mapping[str, MetricBounds]

    def __getitem__(self, name: str) -> MetricBounds:
        return self.bounds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.bounds)

    def __len__(self) -> int:
        return len(self.bounds)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain numbers and text, ready for JSON (schema: `docs/reference/bounds.md`)."""
        return {
            "schema": "darkmetrics.bounds/1",
            "counts": self.data.counts(),
            "threshold": self.data.threshold,
            "metrics": {name: entry.to_dict() for name, entry in self.bounds.items()},
        }

    def to_records(self) -> list[dict[str, Any]]:
        fields = ("better", *_NUMBERS, "bounds_sharp")
        return [{"metric": name, **{key: getattr(entry, key) for key in fields}} for name, entry in self.bounds.items()]

    def _words(self) -> list[str]:
        return str(self.data).splitlines()

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table as text, one row per metric."""
        rows = []
        for name, bounds in self.bounds.items():
            lowest, highest, pessimistic, optimistic, labeled_only = (getattr(bounds, number) for number in _NUMBERS)
            limits = interval_text((lowest, highest), 3)
            oracle = interval_text((min(pessimistic, optimistic), max(pessimistic, optimistic)), 3)
            rows.append([name, limits if bounds.bounds_sharp else f"({limits})", oracle, number_text(labeled_only, 3)])
        return ["", "bounds", "oracle bounds", "labeled only"], rows

    def _notes(self) -> list[str]:
        """Return the lines below the table."""
        return (
            []
            if all(entry.bounds_sharp for entry in self.bounds.values())
            else ["Bounds in brackets are valid, but perhaps no label assignment attains them."]
        )

    def __repr__(self) -> str:
        return (
            f"<Bounds of {counted(self.data.n_rows, 'row')}, {self.data.n_missing:,} missing: {', '.join(self.bounds)}>"
        )


@suggest_call("Bounds hold whatever the missing labels are; it is one of evaluate.")
def bounds(
    y_true: ArrayLike | str | EvaluationSet,
    y_score: ArrayLike | str | None = None,
    *,
    data: FrameLike | None = None,
    metrics: MetricsLike = DEFAULT_METRICS,
    threshold: float | None = None,
    y_pred: ArrayLike | str | None = None,
    sample_weight: ArrayLike | str | None = None,
    pos_label: LabelValue = 1,
    missing_label: LabelValue = None,
    score_bins: str | int = "auto",
) -> Bounds:
    """Compute the worst and best case of each metric over all label assignments to the missing rows.

    The bounds make no assumption about the missing labels, so they are wide if many labels are missing. Use `evaluate`
    for likely values.

    Parameters
    ----------
    y_true, y_score, data, threshold, y_pred, sample_weight, pos_label, missing_label, score_bins
        As in `evaluate`: arrays, columns of a table, or an EvaluationSet as the only data.
    metrics : str, Metric, callable, or a sequence or mapping of these
        Metrics. A 0/0 counts with the value that scikit-learn returns.

    Returns
    -------
    Bounds
        A mapping from metric name to `MetricBounds`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true = [1, 0, None, 1, None, 0, 1, 0]
    >>> y_score = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.bounds(y_true, y_score, metrics=["recall", "roc_auc"])
    >>> print(result)
    8 rows: 6 labeled (3 positive, 3 negative), 2 missing (25.0%)
    4 positive decisions (1 of them missing their label), 4 negative (1)
    <BLANKLINE>
                      bounds    oracle bounds   labeled only
    recall    0.500 to 0.750   0.500 to 0.750          0.667
    roc_auc   0.625 to 0.875   0.625 to 0.875          0.778
    >>> result["recall"].worst, result["recall"].best
    (0.5, 0.75)
    """
    arguments = {name: value for name, value in locals().items() if name != "metrics"}
    chosen = metrics_from(metrics)
    rows = evaluation_set_from(**arguments)
    warn_of_default_threshold([rows], chosen)
    return Bounds(rows, {metric.name: MetricBounds.of(metric, rows) for metric in chosen})
