"""Audit: what labels that came since say about an earlier evaluation, as words, table and numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._text import prints_plainly
from darkmetrics.distributions import Interval
from darkmetrics.tables import (
    decimals_for,
    finite,
    html_lines,
    html_table,
    interval_text,
    level_text,
    number_text,
    text_table,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ASSUMED = {
    "alike": "Taken for granted: among rows of one score, labels that came are like those that did not.",
    "late": "Allowed for: positives and negatives come at speeds of their own, as they did before.",
}
# Largest finite logarithm, so that a finite e-value does not overflow.
_LARGEST = 690.0


class KnownMetric(NamedTuple):
    """A metric that the labels still missing cannot move: its value, what was said of it, and its PIT.

    `pit` is where the value falls in the law that was predicted: uniform on [0, 1] if laws are right.
    """

    value: float
    mean: float
    interval: Interval
    pit: float


@prints_plainly
@dataclass(frozen=True, eq=False)
class Audit:
    """Were the probabilities of an earlier evaluation right? A bet against them, and what came beside what was said.

    Print it for words and a table, `to_dict()` for plain numbers, `plot()` for the bet over time.

    Attributes
    ----------
    arrival : str
        What is assumed of which labels come first: "alike", "late" or "any".
    alpha : float
        The largest chance of an alarm if the probabilities are right, however often one looks.
    stated : str or None
        The reason for missing labels that was stated then.
    n_missing : int
        Labels that were missing.
    labels, positives : array
        Labels that had come, and positive ones among them, after each batch.
    times : array or None
        When each batch ended, as time since the evaluation, if that is known.
    log_path : array
        Logarithm of the e-value after each batch.
    expected : Interval
        Between how many positives were expected: among the labels that came, and with arrival "any" among all that
        were missing.
    n_skipped : int
        Labels that no bet was made on, because they took longer than any row was old.
    known : mapping from str to KnownMetric
        The metrics that are known by now.
    metrics : tuple of str
        All metrics of the evaluation.
    """

    arrival: str
    alpha: float
    stated: str | None
    n_missing: int
    labels: IntArray
    positives: IntArray
    times: FloatArray | None
    log_path: FloatArray
    expected: Interval
    confidence_level: float
    n_skipped: int
    known: Mapping[str, KnownMetric]
    metrics: tuple[str, ...]

    @property
    def n_labels(self) -> int:
        """Labels that have come."""
        return int(self.labels[-1])

    @property
    def n_positives(self) -> int:
        """Positive ones among them."""
        return int(self.positives[-1])

    @property
    def path(self) -> FloatArray:
        """The e-value after each batch."""
        finite_path = np.exp(np.minimum(self.log_path, _LARGEST))
        return np.where(np.isposinf(self.log_path), np.inf, finite_path)

    @property
    def e_value(self) -> float:
        """What has become of a stake of 1 that was bet against the probabilities.

        It is infinite if the labels that arrived have probability zero.
        """
        return float(self.path[-1])

    @property
    def largest_e_value(self) -> float:
        """The most that it has been."""
        return float(self.path.max())

    @property
    def p_value(self) -> float:
        """A p-value that stays valid however often one looks: one over the largest e-value."""
        return min(1.0, 1.0 / self.largest_e_value)

    @property
    def refuted(self) -> bool:
        """Whether the e-value has ever been `1 / alpha`."""
        return bool(self.log_path.max() >= -np.log(self.alpha))

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """The e-value over the labels that came (`plotting.plot_audit`); needs matplotlib. Returns the Axes."""
        from darkmetrics.plotting.backtests import plot_audit

        return plot_audit(self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/audit.md` has the schema)."""
        return {
            "schema": "darkmetrics.audit/1",
            "refuted": self.refuted,
            "alpha": self.alpha,
            "e_value": finite(self.e_value),
            "largest_e_value": finite(self.largest_e_value),
            "p_value": self.p_value,
            "arrival": self.arrival,
            "stated": self.stated,
            "missing": self.n_missing,
            "labels": self.n_labels,
            "positives": self.n_positives,
            "expected_low": self.expected.low,
            "expected_high": self.expected.high,
            "confidence_level": self.confidence_level,
            "skipped": self.n_skipped,
            "path": self.records(),
            "metrics": {name: _numbers(one) for name, one in self.known.items()},
        }

    def records(self) -> list[dict[str, Any]]:
        """One flat record per batch of labels."""
        times = [None] * self.labels.size if self.times is None else self.times.tolist()
        columns = (times, self.labels.tolist(), self.positives.tolist(), self.path.tolist())
        return [
            {"time": time, "labels": n, "positives": yes, "e_value": finite(value)}
            for time, n, yes, value in zip(*columns, strict=True)
        ]

    def words(self) -> list[str]:
        """What came beside what was expected, the verdict, what it rests on."""
        if not self.n_labels:
            return [f"No label has come since; {self.n_missing:,} are missing."]
        words = [f"{self._counts()}: {self._verdict()}", self._bet()]
        if np.isinf(self.e_value):
            words.append("The e-value is infinite because the labels have probability zero under these probabilities.")
        words.append(self._assumed())
        if self.n_skipped:
            one = self.n_skipped == 1
            words.append(
                f"{self.n_skipped:,} {'label' if one else 'labels'} took longer than any row was old, and "
                f"{'says' if one else 'say'} nothing: no bet was made on {'it' if one else 'them'}."
            )
        return words

    def _counts(self) -> str:
        n, yes = self.n_labels, self.n_positives
        low, high = (f"{int(end):,}" for end in self.expected)
        level = level_text(self.confidence_level)
        came = f"Of {n:,} {'label' if n == 1 else 'labels'} that came since, {yes:,} "
        came += "was positive" if yes == 1 else "were positive"
        if self.arrival != "any":
            return f"{came}; {low} to {high} were expected ({level})"
        left = self.n_missing - n
        many = f"{yes:,}" if not left else f"{yes:,} to {yes + left:,}"
        return f"{came}; so {many} of all {self.n_missing:,} are, and {low} to {high} were expected ({level})"

    def _verdict(self) -> str:
        what = (
            "the probabilities are"
            if self.stated in (None, "probabilities")
            else f"the reason stated, {self.stated!r}, is"
        )
        return f"{what} {'' if self.refuted else 'not '}refuted."

    def _bet(self) -> str:
        limit = f"{1.0 / self.alpha:,.4g} refutes them"
        most = f", at most {_large(self.largest_e_value)}" if self.largest_e_value > 1.01 * self.e_value else ""
        return (
            f"A stake of 1 against the probabilities has become {_large(self.e_value)}{most}; {limit}. Right ones ever "
            f"are with a chance of at most {level_text(self.alpha)}."
        )

    def _assumed(self) -> str:
        if self.arrival != "any":
            return _ASSUMED[self.arrival]
        rest = "; what is still missing may be anything." if self.n_labels < self.n_missing else "."
        return f"Nothing is assumed about which labels came first{rest}"

    def notes(self) -> list[str]:
        """What stands below the table of metrics that are known."""
        open_ = [name for name in self.metrics if name not in self.known]
        left = self.n_missing - self.n_labels
        if not open_:
            return [
                "PIT is where a value falls in the law that was predicted: uniform over many audits if laws are right."
            ]
        return [f"Not known while {left:,} {'label is' if left == 1 else 'labels are'} missing: {', '.join(open_)}."]

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table of known metrics as text."""
        rows = []
        for name, one in self.known.items():
            decimals = decimals_for(one.interval.high - one.interval.low)
            values = (number_text(one.mean, decimals), interval_text(one.interval, decimals))
            rows.append([name, *values, number_text(one.value, decimals), f"{one.pit:.3f}"])
        return ["", "estimate", f"{level_text(self.confidence_level)} interval", "now known", "PIT"], rows

    def __repr__(self) -> str:
        verdict = "refuted" if self.refuted else "not refuted"
        return f"<Audit of {self.n_labels:,} labels: e-value {_large(self.e_value)}, {verdict}>"

    def __str__(self) -> str:
        table = ["", *text_table(*self.table())] if self.known else []
        return "\n".join([*self.words(), *table, "", *self.notes()])

    def _repr_html_(self) -> str:
        table = html_table(*self.table()) if self.known else ""
        return f"<div>{html_lines(self.words())}{table}{html_lines(self.notes())}</div>"


def _large(value: float) -> str:
    if np.isinf(value):
        return "infinite"
    return f"{value:.2g}" if value < 1.0 else f"{value:,.3g}" if value < 1e6 else f"{value:.0e}"


def _numbers(one: KnownMetric) -> dict[str, float | None]:
    numbers = {"value": one.value, "mean": one.mean, "low": one.interval.low, "high": one.interval.high, "pit": one.pit}
    return {name: finite(value) for name, value in numbers.items()}
