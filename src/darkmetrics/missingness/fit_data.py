"""Data of a fit: score tables of a set and of reference rows, and the calibrator; checks that there are labels."""

import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.calibrators import Calibrator, Flexible, Platt, calibrator_from
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import CalibrationWarning, InputError, warn
from darkmetrics.missingness.level import level_sd
from darkmetrics.missingness.reference import REFERENCE_CODE
from darkmetrics.missingness.rows import Rows, build_rows
from darkmetrics.missingness.score_table import ScoreTable, reference_table, score_table
from darkmetrics.wording import code, named, setting

N_DRAWS = 64
_FEW_LABELS = 5
_HALF_CREDIT, _LEAST_CREDIT = 4.0, 0.3


def credit_of(rarer: float) -> float:
    """Return the exponent of the likelihood for a number of labels of the rarer class (`FitData.credit`)."""
    return max(_LEAST_CREDIT, rarer / (rarer + _HALF_CREDIT))


@dataclass(frozen=True, eq=False)
class FitData:
    """Score tables of an evaluation set and of its reference rows."""

    data: EvaluationSet
    table: ScoreTable
    reference: ScoreTable | None
    # What is calibrated, per cell of the set: its score, or the probability given with it.
    value: FloatArray

    @classmethod
    def of(
        cls, data: EvaluationSet, reference: Any = None, *, by_probability: bool = False, by_stratum: bool = False
    ) -> "FitData":
        """Return the tables of a set and of reference rows; `by_stratum` keeps strata apart."""
        value = data.cells.probability if by_probability else data.cells.score
        assert value is not None
        table = score_table(data, by_probability=by_probability, by_stratum=by_stratum)
        return cls(data, table, reference_table(reference, data), value)

    @cached_property
    def scores(self) -> FloatArray:
        """Scores of the set and of the reference rows."""
        return self.table.score if self.reference is None else np.append(self.table.score, self.reference.score)

    @property
    def is_probability(self) -> bool:
        """Whether every score could be a probability."""
        return bool(self.scores.min() >= 0.0 and self.scores.max() <= 1.0)

    def label_counts(self) -> tuple[int, int]:
        """Positive and negative labels, those of the reference set included."""
        return self._label_counts

    @cached_property
    def _label_counts(self) -> tuple[int, int]:
        return int(sum(t.positives.sum() for t in self.tables)), int(sum(t.negatives.sum() for t in self.tables))

    @property
    def tables(self) -> list[ScoreTable]:
        """Tables with labels: of the set, and of the reference."""
        return [table for table in (self.table, self.reference) if table is not None]

    @property
    def credit(self) -> float:
        """Exponent of the likelihood: it discounts few labels, because no fitted curve is exactly the true one.

        It is m / (m + 4) with m labels of the rarer class. 90% intervals from 30 labels of real scores then cover about
        as often as Wilson's intervals, and from hundreds of labels nothing changes.
        """
        return credit_of(min(self.label_counts()))

    @property
    def n_strata(self) -> int:
        """Number of strata that the model distinguishes; 0 if it does not."""
        table = self.table
        return 0 if table.stratum is None or table.strata is None or table.strata.size == 1 else table.strata.size

    def calibrator(self, choice: Any) -> Calibrator:
        """Return a new calibrator; "beta" is Platt scaling if scores are not probabilities."""
        if isinstance(choice, str) and choice in ("beta", "flexible") and not self.is_probability:
            self._check_scales()
        if isinstance(choice, str) and choice == "flexible":
            return Flexible(threshold=self.data.threshold, step_sd=level_sd(self.tables, self.data.threshold))
        if isinstance(choice, str) and choice == "beta" and not self.is_probability:
            return Platt()
        return copy.deepcopy(calibrator_from(choice))

    def _check_scales(self) -> None:
        """Refuse probabilities in the set and other scores in the reference rows, or the reverse."""
        if self.reference is None:
            return
        ranges = [(float(t.score.min()), float(t.score.max())) for t in (self.table, self.reference)]
        if len({low >= 0.0 and high <= 1.0 for low, high in ranges}) > 1:
            (low, high), (low_reference, high_reference) = ranges
            raise InputError(
                "reference",
                f"scores from {low_reference:g} to {high_reference:g}, but {named('y_score')} is from {low:g} to "
                f"{high:g}, and only one of them can be probabilities",
                "",
                f"Pass both on the same scale; if it is the same and not probabilities, set "
                f"{setting('calibrator', 'platt')}.",
            )

    def logistic_calibrator(self, choice: Any) -> LogisticCalibrator:
        """Return a logistic calibrator prepared with all scores; refuse others."""
        return self._flexible if isinstance(choice, str) and choice == "flexible" else self._prepared(choice)

    @cached_property
    def _flexible(self) -> LogisticCalibrator:
        """The default calibrator, prepared once."""
        return self._prepared("flexible")

    def _prepared(self, choice: Any) -> LogisticCalibrator:
        calibrator = self.calibrator(choice)
        if not isinstance(calibrator, LogisticCalibrator) or calibrator.prior_sd is None:
            rule = "Here it must be 'flexible', 'beta' or 'platt', or one of their objects with its prior on."
            raise InputError("calibrator", f"{choice!r}", rule)
        rows = self.table.labeled + self.table.missing
        if self.reference is not None:
            rows = np.append(rows, self.reference.labeled)
        return calibrator.prepare(self.scores, rows)

    def rows(self, calibrator: LogisticCalibrator) -> Rows:
        """Return the rows of a model with this curve, for all mechanisms."""
        if calibrator not in self._rows:
            score = self.table.score
            columns, line = calibrator.design(score), calibrator.line(score)
            self._rows[calibrator] = build_rows(self.table, columns, line, self.data.threshold)
        return self._rows[calibrator]

    @cached_property
    def _rows(self) -> dict[LogisticCalibrator, Rows]:
        return {}


def check_labeled(fit_data: FitData, mechanism: str) -> None:
    """Refuse a set without labels."""
    if sum(fit_data.label_counts()) == 0:
        raise InputError(
            "y_true",
            f"no labeled row, so there is nothing to learn from ({mechanism})",
            "",
            f"Pass {REFERENCE_CODE} of fully labeled rows; or "
            f"{code('dm.missing.Fixed(y_score)')} if the scores are probabilities you trust, or "
            f"{code('dm.missing.Fixed(0.5)')}.",
        )


def check_both_classes(fit_data: FitData, mechanism: str) -> None:
    """Refuse labels of a single class, which say nothing about the other class."""
    check_labeled(fit_data, mechanism)
    positives, negatives = fit_data.label_counts()
    if positives and negatives:
        return
    label, other = ("positive", "negatives") if positives else ("negative", "positives")
    n, has_reference = positives + negatives, fit_data.reference is not None
    fix = "Pass reference rows with both classes"
    if not has_reference:
        fix = f"Pass {REFERENCE_CODE}: fully labeled rows with both classes"
    tilt = "; or state the prevalence, such as dm.missing.ExponentialTilt('by_score', prevalence=0.1)"
    raise InputError(
        f"{named('y_true')} and {named('reference')}" if has_reference else "y_true",
        f"{'the only label is' if n == 1 else f'all {n:,} labels are'} {label}, so nothing is known about {other} "
        f"({mechanism})",
        "",
        f"{fix}{code(tilt, 'or a tilt')}.",
    )


def warn_if_few_labels(fit_data: FitData, mechanism: str) -> None:
    """Warn if a class has so few labels that the prior matters."""
    fix = f"Pass {REFERENCE_CODE} of fully labeled rows if you can."
    warn_if_few("y_true", fit_data.label_counts(), mechanism, fix if fit_data.reference is None else "")


def warn_if_few_reference_labels(fit_data: FitData, mechanism: str) -> None:
    """Warn if a class has so few reference labels that the prior matters."""
    reference = fit_data.reference
    assert reference is not None
    counts = int(reference.positives.sum()), int(reference.negatives.sum())
    warn_if_few("reference", counts, mechanism, "Pass more reference rows if you can.")


def warn_if_few(argument: str, counts: tuple[int, int], mechanism: str, fix: str) -> None:
    """Warn about `argument` if a class has so few labels that the prior matters."""
    if min(counts) >= _FEW_LABELS:
        return
    labels = " and ".join(f"{n:,} {kind}" for n, kind in zip(counts, ("positive", "negative"), strict=True))
    effect = (
        f"With fewer than {_FEW_LABELS} of a class, the estimates are dominated by the prior, which assumes roughly "
        "calibrated scores."
    )
    if min(counts) == 0 and max(counts) >= _FEW_LABELS:
        absent = "positives" if counts[0] == 0 else "negatives"
        effect = (
            f"The estimates are right only if {absent} are that rare. If {absent} never get a label, they are wrong."
        )
    warn(
        f"{named(argument)}: {labels} labels to learn from ({mechanism}). {effect} {fix}".rstrip(),
        CalibrationWarning,
    )
