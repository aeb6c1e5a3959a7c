"""Unknown: the default, which never silently picks a mechanism."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.hypothesis_tests import mixture_test
from darkmetrics.argument_types import RowValues
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism, missing_rows
from darkmetrics.missingness.by_label import ByLabel, fit_by_label
from darkmetrics.missingness.by_score import ByScore, add_by_score, fit_by_score
from darkmetrics.missingness.by_score_and_label import ByScoreAndLabel, fit_with_warnings
from darkmetrics.missingness.checks import contradicted
from darkmetrics.missingness.classes import class_fit_data, unknown
from darkmetrics.missingness.curve import add_curve
from darkmetrics.missingness.fit_data import N_DRAWS, FitData, check_both_classes, check_n_draws
from darkmetrics.missingness.level import describe_few_labels
from darkmetrics.missingness.sampling import MechanismPosterior
from darkmetrics.missingness.score_table import ReferenceLike, ScoreTable
from darkmetrics.missingness.unidentified import add_unidentified_effect
from darkmetrics.posterior import Model, Posterior, approximate_log_evidence
from darkmetrics.posterior.classes import ClassPosterior

REASONS = ("by score", "by label", "both", "as the reference says")
BY_SCORE, BY_LABEL, BOTH, BY_REFERENCE = range(len(REASONS))
# No data can refute that score and label both play a part, so that this keeps half of the weight.
_WEIGHT_BOTH = 0.5
# Of the other half, what a reason keeps that is not refuted. Any pattern of missing scores can come about by score, so
# no data refute that one.
_LEAST_SHARE = 1.0 / 3.0
# What the reference rows keep where the labeled ones contradict them.
_WEIGHT_REFERENCE = 0.5
_DOUBTED, _REFUTED_AT = 0.05, 0.05
# "By label" is called refuted below this weight.
REFUTED = 0.01
# Prior standard deviations of the log odds of being missing, by score: level, slope, bend and twist over the ranks.
_CURVE = (3.0, 2.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Unknown(Mechanism):
    """The default: nothing is known about why labels are missing, and the answer says so.

    Without reference rows it mixes three reasons: by score, or at random (`ByScore`); by label (`ByLabel`); and
    both at once, the calibrated curve with an effect of the label on top, whose size is not known. No data can tell how
    large that effect is, so that this reason keeps half of the weight. The other two share the rest by how well each
    explains which rows are missing. The interval is wide because little is known; stating a reason narrows it.

    With a reference set it is `ByScoreAndLabel`, which needs no statement about why labels are missing. If labeled
    rows contradict the reference rows (drift, or labels missing by label: data cannot tell), half of the answer comes
    from each of the two.

    Parameters
    ----------
    reference : (labels, scores) or EvaluationSet, optional
        Fully labeled rows from the same population, since which nothing has drifted.
    calibrator : {"flexible", "beta", "platt"}, Flexible, Beta or Platt
        The curve from scores to probabilities.
    n_draws : int
        How many cases stand for the posterior: half as many each for "by score" and "by label".
    strata : bool
        Fit the reasons within the strata of the set; reference rows are taken as they are.

    Notes
    -----
    "Both" moves the log odds of the missing rows by an amount with standard deviation 1.5 (positives may be missing
    four times as often as negatives with the same score, or a quarter as often), which may differ between rows decided
    positive and negative (correlation 0.7) and along the score. Of the other half "by score" keeps at least a third;
    so does "by label" unless the scores of the missing rows refute it (`mixture` of the diagnosis).

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(1)
    >>> y_score = rng.random(1000)
    >>> y_true = np.where(rng.random(1000) < 0.3, np.nan, rng.random(1000) < y_score)
    >>> print(dm.evaluate(y_true, y_score).assumption.split(". ")[0])
    Not stated why labels are missing: by score or at random (17%), by label (33%), both (50%).
    """

    row_fields: ClassVar[tuple[str, ...]] = ("strata",)

    reference: ReferenceLike | None = field(default=None, repr=False)
    calibrator: CalibratorLike = "flexible"
    strata: RowValues = None
    n_draws: int = N_DRAWS

    def __post_init__(self) -> None:
        check_n_draws(self.n_draws)
        if self.reference is not None and self.strata is not None:
            raise InputError(
                "strata: reference rows cannot be split by them. Leave strata or reference out, or pass "
                "dm.missing.ByScore or ByLabel, which take the reference rows as they are."
            )

    def posterior(self, data: EvaluationSet) -> Posterior:
        if self.reference is None:
            return mix_posteriors(self._of_labels(FitData.of(data, by_stratum=self.strata is not None)), REASONS)
        fit_data = FitData.of(data, self.reference)
        selection = fit_with_warnings(ByScoreAndLabel(self.reference, self.calibrator, self.n_draws), fit_data)
        if not contradicted(fit_data):
            return selection
        try:
            parts = self._of_labels(FitData.of(data, by_stratum=self.strata is not None))
        except InputError:
            return selection  # with labels of one class alone the reference is all there is to go by
        halved = {
            reason: (posterior, (1.0 - _WEIGHT_REFERENCE) * weight) for reason, (posterior, weight) in parts.items()
        }
        return mix_posteriors({**halved, BY_REFERENCE: (selection, _WEIGHT_REFERENCE)}, REASONS)

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        if self.reference is not None:
            return ByScoreAndLabel(self.reference, self.calibrator, self.n_draws).class_posterior(data)
        return unknown(class_fit_data(self, data), self.n_draws)

    def _of_labels(self, fit_data: FitData) -> dict[int, tuple[Posterior, float]]:
        """The nodes and weights of three reasons, of which data can weigh the first two against each other alone."""
        positives, negatives = fit_data.label_counts()
        # If positives are rare, a batch may have none; its scores are then the only information.
        if positives or not negatives:
            check_both_classes(fit_data, "Unknown")
        fit_data.logistic_calibrator(self.calibrator)  # refuses those that no effect of the label can be added to
        n_each, rest = max(1, self.n_draws // 2), 1.0 - _WEIGHT_BOTH
        score = fit_by_score(ByScore(self.calibrator, n_draws=n_each), fit_data, "Unknown")
        both = add_unidentified_effect(score, fit_data, self.n_draws), _WEIGHT_BOTH
        try:
            label = fit_by_label(ByLabel(self.calibrator, n_draws=n_each), fit_data)
        except InputError:
            # Without labels of a class, or in a stratum, nothing is known by label.
            return {BY_SCORE: (score, rest), BOTH: both}
        by_label = rest * _share_by_label(fit_data, self.calibrator, label)
        return {
            BY_SCORE: (score, rest - by_label),
            BY_LABEL: (_thinned(label.posterior, by_label), by_label),
            BOTH: both,
        }

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        if not posterior.reasons:
            return ByScoreAndLabel(self.reference).describe(data, posterior)
        weight = weight_of_reasons(posterior)
        names = ("by score or at random", *REASONS[1:])
        found = [f"{name} ({w:.0%})" for name, w in zip(names, weight, strict=True) if w >= REFUTED]
        text = f"Not stated why labels are missing: {', '.join(found)}."
        if weight[BY_REFERENCE]:
            text += " Labeled rows contradict the reference rows: something drifted, or labels are missing by label."
        elif 0.0 < weight[BY_LABEL] < REFUTED:
            text += " The scores of missing rows do not fit 'by label' alone."
        elif reasons_differ(posterior):
            direction = "higher" if _missing_score_higher(data) else "lower"
            text += f" Missing rows have {direction} scores than labeled ones."
        return text + describe_few_labels(FitData.of(data).tables, data.threshold)


def _thinned(label: Posterior, weight: float) -> Posterior:
    """The nodes of "by label"; once refuted it is still named, for which every eighth does: they lie along a path."""
    assert label.shift is not None
    kept = slice(None, None, 8 if weight < REFUTED else 1)
    return replace(label, weight=label.weight[kept], probability=label.probability[kept], shift=label.shift[kept])


def _share_by_label(fit_data: FitData, calibrator: Any, label: MechanismPosterior) -> float:
    """Weight of "by label" against "by score", by how well each explains which rows are missing."""
    by_score = _evidence_by_score(fit_data, calibrator, label.fitted.mode)
    by_label = min(float(expit(label.log_evidence - by_score)), 1.0 - _LEAST_SHARE)
    if by_label >= _DOUBTED:
        return max(by_label, _LEAST_SHARE)
    # A calibration curve that fits badly counts against "by label" alone, which leans on it. The mixture test does not,
    # so only what it refutes may fall below its least share.
    return max(by_label, 1e-6 if mixture_p_value(fit_data.table) < _REFUTED_AT else _LEAST_SHARE)


def nodes_of_reason(posterior: Posterior, reason: int) -> Posterior:
    """The nodes of one reason alone."""
    assert posterior.reason is not None
    own = np.flatnonzero(posterior.reason == reason)
    weight = posterior.weight[own]
    total = float(weight.sum())
    weight = weight / total if total > 0.0 else np.full(own.size, 1.0 / own.size)
    return Posterior(weight, posterior.probability[own], bucket=posterior.bucket)


def _missing_score_higher(data: EvaluationSet) -> bool:
    """Whether missing rows rank higher on average than labeled ones."""
    cells = data.cells
    counts = np.stack([cells.missing, cells.total - cells.missing]).astype(np.float64)
    missing, labeled = counts if cells.tie_starts is None else np.add.reduceat(counts, cells.tie_starts, axis=1)
    below = np.cumsum(labeled) - 0.5 * labeled  # labeled rows of a lower score, and half of those of the same one
    return float(missing @ below) > 0.5 * float(missing.sum()) * float(labeled.sum())


def weight_of_reasons(posterior: Posterior) -> FloatArray:
    """The weight of each of the `REASONS`."""
    assert posterior.reason is not None
    return np.asarray(np.bincount(posterior.reason, posterior.weight, len(REASONS)), dtype=np.float64)


def reasons_differ(posterior: Posterior) -> bool:
    """Whether the scores of missing rows, taken as "by label", say clearly that their prevalence is another one."""
    if not posterior.reasons or not np.any(posterior.reason == BY_LABEL):
        return False
    assert posterior.shift is not None
    shift = posterior.shift[posterior.reason == BY_LABEL]
    # Less than 5% in the odds moves no metric that anyone would act on.
    return abs(float(shift.mean())) > max(2.0 * float(shift.std()), 0.05)


def reasons_in_words(data: EvaluationSet, posterior: Posterior) -> str:
    """Return the fraction of missing rows that are positive by score, and by label."""
    fractions, rows = [], missing_rows(data, posterior)
    for mechanism in (BY_SCORE, BY_LABEL):
        selected = nodes_of_reason(posterior, mechanism)
        fractions.append(float(selected.weight @ (selected.probability @ rows) / rows.sum()))
    return " and ".join(f"{fraction:.1%} {name!r}" for fraction, name in zip(fractions, REASONS, strict=False))


def mixture_p_value(table: ScoreTable) -> float:
    """How well the scores of the missing rows pass for a mixture of labeled positives and negatives; nan: not tested.

    It compares histograms and needs no calibration. Labels missing by label alone must pass.
    """
    fit = mixture_test(table.positives, table.negatives, table.missing)
    return np.nan if fit is None else fit.p_value


def _evidence_by_score(fit_data: FitData, calibrator: Any, start: FloatArray) -> float:
    """Return the log evidence of "by score": of the labels, and of which rows are missing (a cubic in the rank).

    Ranks, because by score nothing singles out the log odds, and an extreme score must not decide. Both posteriors are
    nearly Gaussian, so that the evidence needs no draws. `start` begins with
    coefficients of the curve near its mode.
    """
    curve, model, missingness = fit_data.logistic_calibrator(calibrator), Model(), Model()
    rows = fit_data.rows(curve)
    add_by_score(model, add_curve(model, curve, rows), rows)
    columns: FloatArray = np.polynomial.legendre.legvander(2.0 * rows.rank - 1.0, len(_CURVE) - 1).astype(np.float64)
    indices = missingness.add_parameters(np.zeros(len(_CURVE)), np.array(_CURVE))
    is_missing = missingness.add_decisions((indices, columns))
    missingness.add_cells(rows.positives + rows.negatives, [(0, [is_missing[:, 0]])])
    missingness.add_cells(rows.missing, [(0, [is_missing[:, 1]])])
    return approximate_log_evidence(model, start[: model.n_parameters]) + approximate_log_evidence(missingness)


def mix_posteriors(parts: Mapping[int, tuple[Posterior, float]], reasons: tuple[str, ...]) -> Posterior:
    """The nodes of several of the reasons, with the weight of each."""
    posterior = [part for part, _ in parts.values()]
    return replace(
        posterior[0],
        weight=np.concatenate([weight * part.weight / part.weight.sum() for part, weight in parts.values()]),
        probability=np.concatenate([part.probability for part in posterior]),
        shift=np.concatenate([np.zeros(len(part)) if part.shift is None else part.shift for part in posterior]),
        reason=np.repeat(list(parts), [len(part) for part in posterior]),
        reasons=reasons,
    )
