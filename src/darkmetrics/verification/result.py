"""Verification: result of a sequential test of an earlier evaluation, as text, table and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.distributions import Interval
from darkmetrics.result import Result
from darkmetrics.tables import (
    decimals_for,
    finite,
    interval_text,
    level_text,
    number_text,
)

if TYPE_CHECKING:
    pass

_ASSUMPTIONS = {
    "alike": "Assumption: among rows with the same score, labels that arrived are like labels that are still missing.",
    "late": "Assumption: positive and negative labels arrive at the same speeds as before.",
}
# Largest finite logarithm, so that a finite e-value does not overflow.
_MAX_LOG = 690.0


class ResolvedMetric(NamedTuple):
    """A metric that the labels still missing cannot change: its value, the earlier estimate and interval, and the PIT.

    `pit` is the position of the value in the predicted distribution: uniform on [0, 1] if predictions are calibrated.
    """

    value: float
    mean: float
    interval: Interval
    pit: float


@dataclass(frozen=True, eq=False)
class Verification(Result):
    """Result of a sequential test of an earlier evaluation against labels that arrived later.

    Print it for a summary and a table, `to_dict()` for plain numbers, `plot()` for the e-value over time.

    Attributes
    ----------
    arrival : str
        Assumption about which labels arrive first: "alike", "late" or "any".
    alpha : float
        Level of the test: the probability of ever rejecting correct probabilities is at most `alpha`.
    stated : str or None
        Missingness mechanism that was stated in the earlier evaluation.
    n_missing : int
        Number of labels that were missing.
    labels, positives : array
        Number of labels that have arrived, and of positive labels, after each batch.
    times : array or None
        End of each batch, as time since the evaluation, if known.
    log_e_values : array
        Logarithm of the e-value after each batch.
    expected_positives : Interval
        Predicted number of positives: among the labels that arrived, or with arrival "any" among all missing labels.
    n_skipped : int
        Number of labels that the test ignores, because they took longer than any row was old.
    resolved_metrics : mapping from str to ResolvedMetric
        Metrics that no missing label can change any more.
    metrics : tuple of str
        All metrics of the evaluation.
    """

    _plot: ClassVar[str] = "plotting.backtests:plot_verification"

    arrival: str
    alpha: float
    stated: str | None
    n_missing: int
    labels: IntArray
    positives: IntArray
    times: FloatArray | None
    log_e_values: FloatArray
    expected_positives: Interval
    confidence_level: float
    n_skipped: int
    resolved_metrics: Mapping[str, ResolvedMetric]
    metrics: tuple[str, ...]

    @property
    def n_labels(self) -> int:
        """Number of labels that have arrived."""
        return int(self.labels[-1])

    @property
    def n_positives(self) -> int:
        """Number of positive labels that have arrived."""
        return int(self.positives[-1])

    @property
    def e_values(self) -> FloatArray:
        """The e-value after each batch."""
        finite_values = np.exp(np.minimum(self.log_e_values, _MAX_LOG))
        return np.where(np.isposinf(self.log_e_values), np.inf, finite_values)

    @property
    def e_value(self) -> float:
        """The e-value after all labels; infinite if the labels have probability zero."""
        return float(self.e_values[-1])

    @property
    def max_e_value(self) -> float:
        """The largest e-value so far."""
        return float(self.e_values.max())

    @property
    def p_value(self) -> float:
        """The p-value, 1 / `max_e_value`; it stays valid however often the test is repeated."""
        return min(1.0, 1.0 / self.max_e_value)

    @property
    def is_rejected(self) -> bool:
        """Whether the e-value has ever reached `1 / alpha`."""
        return bool(self.log_e_values.max() >= -np.log(self.alpha))

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and text for JSON (schema in `docs/reference/verification.md`)."""
        return {
            "schema": "darkmetrics.verification/1",
            "is_rejected": self.is_rejected,
            "alpha": self.alpha,
            "e_value": finite(self.e_value),
            "max_e_value": finite(self.max_e_value),
            "p_value": self.p_value,
            "arrival": self.arrival,
            "stated": self.stated,
            "missing": self.n_missing,
            "labels": self.n_labels,
            "positives": self.n_positives,
            "expected_low": self.expected_positives.low,
            "expected_high": self.expected_positives.high,
            "confidence_level": self.confidence_level,
            "skipped": self.n_skipped,
            "batches": self.to_records(),
            "metrics": {name: _numbers(metric) for name, metric in self.resolved_metrics.items()},
        }

    def to_records(self) -> list[dict[str, Any]]:
        """Return one flat record per batch of labels."""
        times = [None] * self.labels.size if self.times is None else self.times.tolist()
        columns = (times, self.labels.tolist(), self.positives.tolist(), self.e_values.tolist())
        return [
            {"time": time, "labels": n, "positives": yes, "e_value": finite(value)}
            for time, n, yes, value in zip(*columns, strict=True)
        ]

    def _words(self) -> list[str]:
        """Return the text above the table: counts, verdict, e-value and assumption."""
        if not self.n_labels:
            return [f"No label has arrived since; {self.n_missing:,} are missing."]
        words = [f"{self._describe_counts()}.", f"{self._describe_verdict()} {self._describe_test()}"]
        if np.isinf(self.e_value):
            words.append("The e-value is infinite: under the predicted probabilities, these labels are impossible.")
        words.append(self._describe_assumption())
        if self.n_skipped:
            noun = "label" if self.n_skipped == 1 else "labels"
            words.append(f"The test ignores {self.n_skipped:,} {noun} that took longer than any row was old.")
        return words

    def _describe_counts(self) -> str:
        n, n_positives = self.n_labels, self.n_positives
        low, high = (f"{int(end):,}" for end in self.expected_positives)
        level = level_text(self.confidence_level)
        counts = f"Of {n:,} {'label' if n == 1 else 'labels'} that arrived since, {n_positives:,} "
        counts += "is positive" if n_positives == 1 else "are positive"
        if self.arrival != "any":
            return f"{counts}; the evaluation predicted {low} to {high} ({level})"
        n_left = self.n_missing - n
        total = f"{n_positives:,}" if not n_left else f"{n_positives:,} to {n_positives + n_left:,}"
        return (
            f"{counts}. Of all {self.n_missing:,} missing labels {total} are positive; the evaluation predicted {low} "
            f"to {high} ({level})"
        )

    def _describe_verdict(self) -> str:
        has_mechanism = self.stated not in (None, "probabilities")
        subject = f"The stated mechanism {self.stated!r} is" if has_mechanism else "The predicted probabilities are"
        return f"{subject} {'' if self.is_rejected else 'not '}rejected."

    def _describe_test(self) -> str:
        peak = f" (maximum {_large(self.max_e_value)})" if self.max_e_value > 1.01 * self.e_value else ""
        limit = f"{1.0 / self.alpha:,.4g}"
        return (
            f"e-value {_large(self.e_value)}{peak}, rejected at {limit}. Correct probabilities ever reach {limit} with "
            f"probability at most {level_text(self.alpha)}."
        )

    def _describe_assumption(self) -> str:
        if self.arrival != "any":
            return _ASSUMPTIONS[self.arrival]
        text = "No assumption about which labels arrive first"
        return f"{text}; labels still missing may have any value." if self.n_labels < self.n_missing else f"{text}."

    def _notes(self) -> list[str]:
        """Return the text below the table."""
        unresolved = [name for name in self.metrics if name not in self.resolved_metrics]
        n_left = self.n_missing - self.n_labels
        if not unresolved:
            return ["PIT: position of the value in the predicted distribution; uniform if predictions are calibrated."]
        verb = "label is" if n_left == 1 else "labels are"
        return [f"Not known while {n_left:,} {verb} missing: {', '.join(unresolved)}."]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table of resolved metrics."""
        rows = []
        for name, metric in self.resolved_metrics.items():
            decimals = decimals_for(metric.interval.high - metric.interval.low)
            values = (number_text(metric.mean, decimals), interval_text(metric.interval, decimals))
            rows.append([name, *values, number_text(metric.value, decimals), f"{metric.pit:.3f}"])
        return ["", "estimate", f"{level_text(self.confidence_level)} interval", "true value", "PIT"], rows

    def __repr__(self) -> str:
        verdict = "rejected" if self.is_rejected else "not rejected"
        return f"<Verification with {self.n_labels:,} labels: e-value {_large(self.e_value)}, {verdict}>"


def _large(value: float) -> str:
    if np.isinf(value):
        return "infinite"
    return f"{value:.2g}" if value < 1.0 else f"{value:,.3g}" if value < 1e6 else f"{value:.0e}"


def _numbers(metric: ResolvedMetric) -> dict[str, float | None]:
    low, high = metric.interval
    numbers = {"value": metric.value, "mean": metric.mean, "low": low, "high": high, "pit": metric.pit}
    return {name: finite(value) for name, value in numbers.items()}
