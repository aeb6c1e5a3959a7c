"""What the models that learn from labels share: the table, the calibrator, the posterior and its nodes."""

import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.posterior.draws import Draws, gaussian_posterior, posterior_draws, representatives
from darkmetrics._kernels.posterior.likelihood import LabelLikelihood
from darkmetrics._kernels.posterior.summary import Along
from darkmetrics.calibrators import Calibrator, Flexible, Platt, calibrator_from
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_whole
from darkmetrics.exceptions import CalibrationWarning, InputError, warn
from darkmetrics.missingness.score_table import ScoreTable, reference_table, score_table
from darkmetrics.posterior import Posterior

N_NODES = 64
_FEW_LABELS = 5
_HALF_CREDIT, _LEAST_CREDIT = 4.0, 0.3
# Prior standard deviation of the log odds of a stratum, against those of all of them. With 0.7 intervals are as wide,
# but where six slices differ by three in all they hold less often (75% of 90% intervals for accuracy, not 95%).
STRATUM = 1.0
# Importance weights fail in many dimensions; there the Gaussian at the mode is taken as it is.
_MOST_WEIGHED = 20
# By how many standard deviations few rows that stand for many may move the posterior.
_MOVED = 0.02


def credit_of(rarer: float) -> float:
    """The power that the likelihood is raised to, by the number of labels of the rarer class (`FitData.credit`)."""
    return max(_LEAST_CREDIT, rarer / (rarer + _HALF_CREDIT))


@dataclass(frozen=True, eq=False)
class FitData:
    """An evaluation set as its score table, with the reference set beside it."""

    data: EvaluationSet
    table: ScoreTable
    reference: ScoreTable | None
    # What is calibrated, per cell of the set: its score, or the probability given with it.
    value: FloatArray

    @classmethod
    def of(
        cls, data: EvaluationSet, reference: Any = None, *, by_probability: bool = False, by_stratum: bool = False
    ) -> "FitData":
        """The tables of a set and of `reference`; `by_stratum`: what is learnt may differ between strata."""
        value = data.cells.probability if by_probability else data.cells.score
        assert value is not None
        table = score_table(data, by_probability=by_probability, by_stratum=by_stratum)
        return cls(data, table, reference_table(reference, data), value)

    @cached_property
    def scores(self) -> FloatArray:
        """All scores there are."""
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
        tables = [table for table in (self.table, self.reference) if table is not None]
        return int(sum(t.positives.sum() for t in tables)), int(sum(t.negatives.sum() for t in tables))

    @property
    def credit(self) -> float:
        """How much of what few labels say is believed: the true curve is never quite one of those that can be fitted.

        With m labels of the rarer class m / (m + 4), as a power of the likelihood: 90% intervals from 30 labels of real
        scores then hold about as often as Wilson's, and from hundreds nothing changes.
        """
        return credit_of(min(self.label_counts()))

    @cached_property
    def strata(self) -> FloatArray:
        """A column per stratum that is 1 on its rows of the table; none where strata play no part."""
        table = self.table
        if table.stratum is None or table.strata is None or table.strata.size == 1:
            return np.zeros((table.score.size, 0))
        return np.asarray(table.stratum[:, None] == np.arange(table.strata.size), dtype=np.float64)

    def calibrator(self, given: Any) -> Calibrator:
        """A fresh copy of the calibrator asked for; the word "beta" means Platt where scores are no probabilities."""
        if isinstance(given, str) and given in ("beta", "flexible") and not self.is_probability:
            self._check_one_scale()
        if isinstance(given, str) and given == "flexible":
            return Flexible(threshold=self.data.threshold)
        if isinstance(given, str) and given == "beta" and not self.is_probability:
            return Platt()
        return copy.deepcopy(calibrator_from(given))

    def _check_one_scale(self) -> None:
        """Not probabilities here and log odds there, which would calibrate to nonsense without a word."""
        if self.reference is None:
            return
        ranges = [(float(t.score.min()), float(t.score.max())) for t in (self.table, self.reference)]
        if len({low >= 0.0 and high <= 1.0 for low, high in ranges}) > 1:
            (low, high), (low_reference, high_reference) = ranges
            raise InputError(
                f"reference: scores from {low_reference:g} to {high_reference:g}, but y_score is from {low:g} to "
                f"{high:g}, and only one of them can be probabilities. Give both on the same scale; if it is the same, "
                "and not that of probabilities, say so: label_models.Selection((labels, scores), calibrator='platt')."
            )

    def logistic_calibrator(self, given: Any) -> LogisticCalibrator:
        """The same for models that need a logistic curve, prepared with all scores and not to be fitted."""
        return self._flexible if isinstance(given, str) and given == "flexible" else self._prepared(given)

    @cached_property
    def _flexible(self) -> LogisticCalibrator:
        """The default one, which several steps of an answer ask for."""
        return self._prepared("flexible")

    def _prepared(self, given: Any) -> LogisticCalibrator:
        calibrator = self.calibrator(given)
        if not isinstance(calibrator, LogisticCalibrator) or calibrator.prior_sd is None:
            raise InputError(
                f"calibrator: {given!r}. Here it must be 'beta', 'platt', Beta() or Platt() with its prior on."
            )
        rows = self.table.labelled + self.table.missing
        if self.reference is not None:
            rows = np.append(rows, self.reference.labelled)
        return calibrator.prepare(self.scores, rows)

    def along(self, calibrator: LogisticCalibrator) -> Along:
        """The columns of a curve along the scores, found once for all that ask."""
        if calibrator not in self._known:
            table = self.table
            self._known[calibrator] = Along(
                calibrator.design(table.score),
                calibrator.line(table.score),
                _breaks(calibrator, table.score),
                table.labelled,
                table.missing,
            )
        return self._known[calibrator]

    @cached_property
    def _known(self) -> dict[LogisticCalibrator, Along]:
        return {}

    def of_labels(self, calibrator: LogisticCalibrator) -> LabelLikelihood:
        """The posterior of a curve given labels alone, found once for all that ask."""
        if calibrator not in self._of_labels:
            self._of_labels[calibrator] = self.likelihood(calibrator, None)
        return self._of_labels[calibrator]

    @cached_property
    def _of_labels(self) -> dict[LogisticCalibrator, LabelLikelihood]:
        return {}

    def likelihood(
        self,
        calibrator: LogisticCalibrator,
        missingness: FloatArray | None,
        scale: tuple[float, ...] = (),
        heavy: tuple[bool, ...] = (),
        difference: FloatArray | None = None,
        credit: float = 1.0,
    ) -> LabelLikelihood:
        """The posterior of calibration and missingness; `scale` and `heavy` are the latter's prior, centred at 0."""
        table, none = self.table, np.zeros(0)
        reference = self.reference
        none_of_curve = np.zeros((0, calibrator.prior_mean_.size))
        of_reference = none_of_curve if reference is None else calibrator.design(reference.score)
        # An intercept per stratum, shrunk towards a common one, which is that of reference rows.
        n_strata = self.strata.shape[1]
        curve = [*calibrator.prior_scale_, *np.full(n_strata, STRATUM)]
        along = None if n_strata or reference is not None else self.along(calibrator)
        return LabelLikelihood(
            X=np.hstack([calibrator.design(table.score), self.strata]) if along is None else along.columns,
            Z=missingness,
            positives=table.positives,
            negatives=table.negatives,
            missing=table.missing,
            X_reference=np.hstack([of_reference, np.zeros((len(of_reference), n_strata))]),
            positives_reference=none if reference is None else reference.positives,
            negatives_reference=none if reference is None else reference.negatives,
            prior_mean=np.append(calibrator.prior_mean_, np.zeros(n_strata + len(scale))),
            prior_scale=np.append(curve, scale),
            heavy=np.append(np.zeros(len(curve), dtype=np.bool_), heavy) if heavy else None,
            D=difference,
            credit=credit,
            along=along,
        )


def _breaks(calibrator: LogisticCalibrator, scores: FloatArray) -> FloatArray:
    """Where columns of a curve bend or jump, on the line of rising scores."""
    if not isinstance(calibrator, Flexible):
        return np.zeros(0)
    above = scores[:0] if calibrator.threshold is None else scores[np.searchsorted(scores, calibrator.threshold) :]
    return np.sort(np.append(calibrator.knots_, calibrator.line(above[:1])))


@dataclass(frozen=True, eq=False)
class CurvePosterior:
    """Nodes with the log evidence of the model that they come from."""

    nodes: Posterior
    log_evidence: float


def posterior_nodes(likelihood: LabelLikelihood, table: ScoreTable, n_nodes: int) -> CurvePosterior:
    """The posterior as `n_nodes` equally likely nodes; `shift` is how far missing rows are from labelled ones."""
    short = likelihood.short
    draws = _drawn(short, draws_for(n_nodes))
    if short is not likelihood and not _stands_for(short, likelihood, draws):
        short, draws = likelihood, _drawn(likelihood, draws_for(n_nodes))
    sides = np.column_stack([table.decided, table.missing - table.decided])
    if short is not likelihood and likelihood.along is not None and likelihood.along.few is not None:
        sides = likelihood.along.few.counts(table.missing, sides)
    above, below = short.expected_positives(draws.parameters, sides).T
    chosen = representatives(above, below, draws.weight, n_nodes)
    rows, column = table.with_missing
    p = likelihood.of_rows(rows).share(draws.parameters[chosen])
    nodes = Posterior(np.full(n_nodes, 1.0 / n_nodes), p, bucket=column)
    if likelihood.Z is not None:
        mean_row = table.missing @ likelihood.difference / max(1.0, float(table.missing.sum()))
        nodes = replace(nodes, shift=draws.parameters[chosen, -mean_row.size :] @ mean_row)
    return CurvePosterior(nodes, draws.log_evidence)


def _drawn(likelihood: LabelLikelihood, n_draws: int) -> Draws:
    if likelihood.prior_mean.size > _MOST_WEIGHED:
        return gaussian_posterior(likelihood, likelihood.prior_mean, n_draws)
    return posterior_draws(likelihood, heavy=likelihood.heavy is not None, n_draws=n_draws)


def _stands_for(short: LabelLikelihood, likelihood: LabelLikelihood, draws: Draws) -> bool:
    """Whether all rows would move the posterior of the few by next to nothing, by one Newton step from its mean.

    A curve that rises from 0 to 1 within one bin is not smooth there, and what few rows are off by grows with the rows.
    """
    mean = draws.weight @ draws.parameters
    few = short.expand(mean)
    pull = likelihood.expand(mean).gradient - few.gradient
    return abs(float(pull @ np.linalg.solve(few.precision, pull))) <= _MOVED**2


def draws_for(n_nodes: int) -> int:
    """Four draws to choose each node from, so that no two are the same."""
    return 1 << max(8, (4 * n_nodes - 1).bit_length())


def check_n_nodes(n_nodes: Any) -> int:
    """The number of posterior nodes, checked."""
    if not is_whole(n_nodes) or not 1 <= n_nodes <= 4096:
        raise InputError(f"n_nodes: {n_nodes!r}. It must be a whole number from 1 to 4,096.")
    return int(n_nodes)


def check_labelled(fit_data: FitData, what: str) -> None:
    """There is a label to learn from."""
    if sum(fit_data.label_counts()) == 0:
        raise InputError(
            f"y_true: no labelled row, so there is nothing to learn from ({what}). Give reference=(labels, scores) "
            "of fully labelled rows; or label_model=y_score if the scores are probabilities you trust, or "
            "label_model='half'."
        )


def check_both_classes(fit_data: FitData, what: str) -> None:
    """Both classes have a label somewhere; else nothing can be said about the missing class."""
    check_labelled(fit_data, what)
    positives, negatives = fit_data.label_counts()
    if positives and negatives:
        return
    only, other = ("positive", "negatives") if positives else ("negative", "positives")
    n = positives + negatives
    where, wanted = "y_true", "Give reference=(labels, scores): fully labelled rows with both classes"
    if fit_data.reference is not None:
        where, wanted = "y_true and reference", "Give reference rows with both classes"
    raise InputError(
        f"{where}: {'the one label is' if n == 1 else f'all {n:,} labels are'} {only}, which says nothing about "
        f"{other} ({what}). {wanted}; or state the share of positives, such as "
        "label_models.Tilted('calibrated', prevalence=0.1)."
    )


def warn_if_few_labels(fit_data: FitData, what: str) -> None:
    """A warning when a class has so few labels that the prior matters."""
    help_by = "Give reference=(labels, scores) of fully labelled rows if you can."
    warn_if_few("y_true", fit_data.label_counts(), what, help_by if fit_data.reference is None else "")


def warn_if_few_reference_labels(fit_data: FitData, what: str) -> None:
    """The same for a model that leans on the reference rows."""
    reference = fit_data.reference
    assert reference is not None
    counts = int(reference.positives.sum()), int(reference.negatives.sum())
    warn_if_few("reference", counts, what, "Give more reference rows if you can.")


def warn_if_few(argument: str, counts: tuple[int, int], what: str, advice: str) -> None:
    """A warning about `argument` when a class has so few labels that the prior matters."""
    if min(counts) >= _FEW_LABELS:
        return
    found = " and ".join(f"{n:,} {kind}" for n, kind in zip(counts, ("positive", "negative"), strict=True))
    why = f"With fewer than {_FEW_LABELS} of a class the answer leans on the prior that the scores are roughly right."
    if min(counts) == 0 and max(counts) >= _FEW_LABELS:
        absent = "positives" if counts[0] == 0 else "negatives"
        why = f"The answer is right only if {absent} are that rare; if {absent} just never get a label, it is wrong."
    warn(
        f"{argument}: {found} labels to learn from ({what}). {why} {advice}".rstrip(),
        CalibrationWarning,
    )
