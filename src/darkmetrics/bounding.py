"""bounds(): between which values each metric must lie, whatever the missing labels are."""

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
    """What one metric can be at all; NaN where it is 0/0 and counts as nothing.

    Attributes
    ----------
    better : str
        "higher", "lower" or "neither".
    lowest_possible, highest_possible : float
        The smallest and the largest value over all labelings of the missing rows.
    oracle_pessimistic, oracle_optimistic : float
        The metric with every missing row decided wrongly, and with every one decided rightly.
    labeled_only : float
        The metric on the labeled rows alone.
    bounds_sharp : bool
        Whether some labels attain the smallest and the largest value.
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
        """The bounds of a metric on a set."""
        fill = metric.undefined_as
        extremes = metric.bind(data, fill).extremes
        oracle = oracle_bounds(metric, data, fill)
        return cls(metric.better, extremes.low, extremes.high, *oracle, metric.value(data, fill), extremes.sharp)

    @property
    def worst(self) -> float:
        """The worst case: the smallest value, or the largest where lower is better."""
        return self.highest_possible if self.better == "lower" else self.lowest_possible

    @property
    def best(self) -> float:
        """The best case."""
        return self.lowest_possible if self.better == "lower" else self.highest_possible

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        numbers = {name: finite(getattr(self, name)) for name in _NUMBERS}
        return {"better": self.better, **numbers, "bounds_sharp": self.bounds_sharp}


@dataclass(frozen=True, eq=False)
class Bounds(Result, Mapping[str, MetricBounds]):
    """Between which values each metric must lie: a mapping from metric name to `MetricBounds`.

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
        """Everything as plain numbers and text, ready for JSON (`docs/reference/bounds.md` has the schema)."""
        return {
            "schema": "darkmetrics.bounds/1",
            "counts": self.data.counts(),
            "threshold": self.data.threshold,
            "metrics": {name: one.to_dict() for name, one in self.bounds.items()},
        }

    def to_records(self) -> list[dict[str, Any]]:
        parts = ("better", *_NUMBERS, "bounds_sharp")
        return [{"metric": name, **{p: getattr(one, p) for p in parts}} for name, one in self.bounds.items()]

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
        """What stands below the table."""
        sharp = all(one.bounds_sharp for one in self.bounds.values())
        return [] if sharp else ["Bounds in brackets are valid, but perhaps no label assignment attains them."]

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
    """Between which values must each metric lie, whatever the missing labels are?

    The worst and the best case over all labelings of the missing rows. Nothing is assumed about these rows, so that the
    answer holds for everybody; it is wide where many labels are missing, and then `evaluate` says what is likely.

    Parameters
    ----------
    y_true, y_score, data, threshold, y_pred, sample_weight, pos_label, missing_label, score_bins
        As in `evaluate`: arrays, columns of a table, or an EvaluationSet as the only data.
    metrics : str, Metric, callable, or a sequence or mapping of these
        What to bound. A 0/0 counts as what scikit-learn would return.

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
    given = dict(locals())
    chosen = metrics_from(metrics)
    rows = evaluation_set_from(**{name: value for name, value in given.items() if name != "metrics"})
    warn_of_default_threshold([rows], chosen)
    return Bounds(rows, {metric.name: MetricBounds.of(metric, rows) for metric in chosen})
