"""Diagnosis: the parts together, as words, tables and plain numbers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from darkmetrics.diagnosis import verdict
from darkmetrics.diagnosis.mechanisms import MechanismEstimate
from darkmetrics.diagnosis.scores import MixtureCheck, ScoreDifference
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.missingness.base import Estimate, percent_text
from darkmetrics.missingness.checks import CalibrationCheck, OverlapCheck, ReferenceCheck
from darkmetrics.result import Result
from darkmetrics.tables import html_lines, html_table, number_text, plain_numbers, text_table


@dataclass(frozen=True, eq=False, repr=False)
class Diagnosis(Result):
    """What the data say about why labels are missing, and what they cannot say.

    Attributes
    ----------
    counts : mapping
        Rows, labeled, positive, negative and missing ones.
    n_reference : int
        Rows of the reference set.
    score_difference : ScoreDifference or None
        Do missing rows have other scores than labeled ones?
    mechanisms : mapping from name to MechanismEstimate
        Share of positives among the missing rows, and the metrics, if labels are missing "by score", "by label",
        (with reference rows) "by score and label" or (with ages) "late".
    labeled_only : mapping
        The metrics on the labeled rows alone.
    mixture : MixtureCheck or None
        Can the missing rows be a mixture of labeled positives and negatives, as "by label" says?
    calibration, raw_scores : CalibrationCheck or None
        Do the probabilities fitted to the labeled rows, and the scores as they are, agree with the labels?
    reference : ReferenceCheck or None
        Do the labeled rows contradict the reference rows?
    overlap : OverlapCheck or None
        How many of the missing rows have scores at which there are hardly any labels?
    absent : mapping
        For each part that is None, or mechanism that is not there: why.
    stated : str or None
        What the evaluation was told about why labels are missing: the word for `missingness=`, or "probabilities" where
        a label model gives these whatever the mechanism; None when nothing was said.
    groups : int
        The rows are the sum of so many groups, each with a label model of its own; 0: they are one.
    arrival : Arrival or None
        When labels come, where rows have ages.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.diagnose([1, 0, None, 1, None], [0.9, 0.2, 0.7, 0.6, 0.3])
    <Diagnosis of 5 rows: 3 labeled, 2 missing (40.0%): cannot be told>
    """

    counts: Mapping[str, int]
    n_reference: int
    mechanisms: Mapping[str, MechanismEstimate]
    labeled_only: Mapping[str, float]
    score_difference: ScoreDifference | None
    mixture: MixtureCheck | None
    calibration: CalibrationCheck | None
    raw_scores: CalibrationCheck | None
    reference: ReferenceCheck | None
    overlap: OverlapCheck | None
    absent: Mapping[str, str]
    stated: str | None = None
    groups: int = 0
    arrival: Arrival | None = None

    @property
    def labeled_prevalence(self) -> float | None:
        """Share of positives among the labeled rows."""
        return self.counts["positive"] / self.counts["labeled"] if self.counts["labeled"] else None

    @property
    def missingness(self) -> str:
        """In a few words why labels are missing, as far as the data can tell.

        "no missing labels"; "cannot be told" (too few rows, or scores, to compare); "no difference in scores" (missing
        rows have the scores of labeled ones); "by score or by label" (they have not, and both may explain it); "not by
        label alone" (their scores are no mixture of the labeled classes); "late" (rows have ages, and these tell).
        """
        return verdict.missingness(self)

    @property
    def verdict(self) -> str:
        """What the data say, what they cannot say, and what to do next, in a few sentences."""
        return " ".join(verdict.sentences(self))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/how-to/diagnose.md` has the keys)."""
        return {
            "schema": "darkmetrics.diagnosis/1",
            "counts": dict(self.counts),
            "n_reference": self.n_reference,
            "missingness": self.missingness,
            "stated": self.stated,
            "verdict": self.verdict,
            "score_difference": _plain(self.score_difference, "p_value", "differs", "words"),
            "labeled_prevalence": self.labeled_prevalence,
            "mechanisms": {
                name: {
                    "prevalence": plain_numbers(mechanism.prevalence._asdict()),
                    "metrics": {key: plain_numbers(value._asdict()) for key, value in mechanism.metrics.items()},
                }
                for name, mechanism in self.mechanisms.items()
            },
            "labeled_only": plain_numbers(self.labeled_only),
            "mixture": _plain(self.mixture, "refutes_by_label"),
            "calibration": _plain(self.calibration, "error", "is_adequate"),
            "raw_scores": _plain(self.raw_scores, "error", "is_adequate"),
            "reference": _plain(self.reference, "contradicts"),
            "overlap": _plain(self.overlap, "is_wide"),
            "absent": dict(self.absent),
            **({} if self.arrival is None else {"arrival": self.arrival.to_dict()}),
        }

    def __repr__(self) -> str:
        return f"<Diagnosis of {verdict.size(self)}: {self.missingness}>"

    def __str__(self) -> str:
        lines = self.sentences()
        for title, header, rows in self.tables():
            lines += ["", title, *text_table(header, rows)]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        tables = (html_table(header, rows, title) for title, header, rows in self.tables())
        return f"<div>{html_lines([verdict.size(self), self.verdict])}{''.join(tables)}</div>"

    def sentences(self) -> list[str]:
        """How many rows, and the verdict, a line each."""
        return [verdict.size(self), *verdict.sentences(self)]

    def tables(self) -> list[tuple[str, list[str], list[list[str]]]]:
        """Title, header and rows of each table that has something to show."""
        tables = []
        if self.mechanisms:
            prevalence = self.labeled_prevalence
            rows = [["positive", "no labels" if prevalence is None else f"{prevalence:.1%}"]]
            rows[0] += [percent_text(mechanism.prevalence) for mechanism in self.mechanisms.values()]
            for name, value in self.labeled_only.items():
                cells = [_interval(mechanism.metrics[name]) for mechanism in self.mechanisms.values()]
                rows.append([name, "no labels" if prevalence is None else number_text(value, 3), *cells])
            without = ", had no chances been given" if self.stated == "propensity" else ""
            title = f"Positive missing rows, and the metrics, by what labels are missing by{without} (90% intervals)"
            tables.append((title, ["", "labeled only", *self.mechanisms], rows))
        if self.calibration is not None:
            header = ["scores", "labeled rows", "positive", "calibrated"]
            bins = [
                [f"{b.low:.3g} to {b.high:.3g}", f"{b.rows:,}", f"{b.positive:.1%}", f"{b.predicted:.1%}"]
                for b in self.calibration.table
            ]
            if self.raw_scores is not None:
                header.append("score")
                for row, b in zip(bins, self.raw_scores.table, strict=True):
                    row.append(f"{b.predicted:.1%}")
            tables.append(("Calibration on the labeled rows", header, bins))
        return tables


def _plain(record: Any, *properties: str) -> dict[str, Any] | None:
    """A record with some of its properties, as plain values."""
    if record is None:
        return None
    table = {"table": [plain_numbers(asdict(b)) for b in record.table]} if isinstance(record, CalibrationCheck) else {}
    values = {key: value for key, value in asdict(record).items() if key != "table"}
    return plain_numbers(values) | {key: getattr(record, key) for key in properties} | table


def _interval(estimate: Estimate) -> str:
    if np.isnan(estimate.mean):
        return "undefined"
    return f"{number_text(estimate.mean, 3)} ({number_text(estimate.low, 3)} to {number_text(estimate.high, 3)})"
