"""Unknown: the default, which averages over mechanisms."""

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
from darkmetrics.missingness.by_label import fit_by_label
from darkmetrics.missingness.by_score import add_by_score, fit_by_score
from darkmetrics.missingness.by_score_and_label import ByScoreAndLabel, fit_by_score_and_label
from darkmetrics.missingness.checks import contradicted
from darkmetrics.missingness.classes import class_fit_data, unknown
from darkmetrics.missingness.curve import add_curve
from darkmetrics.missingness.fit_data import N_DRAWS, FitData, check_both_classes
from darkmetrics.missingness.level import describe_few_labels
from darkmetrics.missingness.reference import ReferenceLike, check_reference
from darkmetrics.missingness.sampling import MechanismPosterior
from darkmetrics.missingness.score_table import ScoreTable
from darkmetrics.missingness.unidentified import add_unidentified_effect
from darkmetrics.posterior import Model, Posterior, approximate_log_evidence
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.wording import named

MECHANISMS = ("by score", "by label", "both", "as the reference says")
BY_SCORE, BY_LABEL, BOTH, BY_REFERENCE = range(len(MECHANISMS))
# No data can refute that score and label both play a part, so that this keeps half of the weight.
_WEIGHT_BOTH = 0.5
# Of the other half, what a mechanism keeps that is not refuted. Any pattern of missing scores can come about by score,
# so no data refute that one.
_MIN_WEIGHT = 1.0 / 3.0
# What the reference rows keep where the labeled ones contradict them.
_WEIGHT_REFERENCE = 0.5
_DOUBTED, _CONTRADICTED_AT = 0.05, 0.05
# Mechanisms with a smaller weight are not stated in output.
MIN_STATED = 0.01
# Prior standard deviations of the log odds of being missing, by score: level, slope, bend and twist over the ranks.
_CURVE = (3.0, 2.0, 1.0, 1.0)


@dataclass(frozen=True, eq=False)
class Unknown(Mechanism):
    """The default: the missingness mechanism is not known, and the posterior averages over several.

    Without reference rows it mixes three mechanisms: by score, or at random (`ByScore`); by label (`ByLabel`); and
    both at once, the calibrated curve with an added effect of the label of unknown size. No data determine the size of
    that effect, so this mechanism keeps half of the weight. The other two divide the remaining half by how well they
    explain which rows are missing. The interval is wide because little is known; stating a mechanism narrows it.

    With a reference set it is `ByScoreAndLabel`, which needs no statement about why labels are missing. If labeled
    rows contradict the reference rows (drift, or labels missing by label: data cannot tell), half of the answer comes
    from each of the two.

    Parameters
    ----------
    reference : Reference or EvaluationSet, optional
        Fully labeled rows from the same population, since which nothing has drifted.
    calibrator : {"flexible", "beta", "platt"}, Flexible, Beta or Platt
        The curve from scores to probabilities.
    n_draws : int
        Number of posterior draws under "both"; half as many each under "by score" and "by label".
    strata : bool
        Fit the mechanisms within the strata of the set.

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
        super().__post_init__()
        check_reference(self.reference)
        if self.reference is not None and self.strata is not None:
            raise InputError(
                "strata",
                "reference rows cannot be split by them",
                "",
                f"Leave {named('strata')} or {named('reference')} out, or pass dm.missing.ByScore or ByLabel, which "
                "join the reference rows of all strata.",
            )

    def posterior(self, data: EvaluationSet) -> Posterior:
        if self.reference is None:
            return mix_posteriors(self._of_labels(FitData.of(data, by_stratum=self.strata is not None)), MECHANISMS)
        fit_data = FitData.of(data, self.reference)
        selection = fit_by_score_and_label(fit_data, self.calibrator, self.n_draws)
        if not contradicted(fit_data):
            return selection
        try:
            components = self._of_labels(FitData.of(data, by_stratum=self.strata is not None))
        except InputError:
            return selection  # with labels of a single class only the reference rows are informative
        halved = {
            mechanism: (posterior, (1.0 - _WEIGHT_REFERENCE) * weight)
            for mechanism, (posterior, weight) in components.items()
        }
        return mix_posteriors({**halved, BY_REFERENCE: (selection, _WEIGHT_REFERENCE)}, MECHANISMS)

    def class_posterior(self, data: ClassSet) -> ClassPosterior:
        if self.reference is not None:
            return ByScoreAndLabel(self.reference, self.calibrator, self.n_draws).class_posterior(data)
        return unknown(class_fit_data(self, data), self.n_draws)

    def _of_labels(self, fit_data: FitData) -> dict[int, tuple[Posterior, float]]:
        """Return posteriors and weights of three mechanisms; data can weigh only the first two against each other."""
        positives, negatives = fit_data.label_counts()
        # If positives are rare, a batch may have none; its scores are then the only information.
        if positives or not negatives:
            check_both_classes(fit_data, "Unknown")
        fit_data.logistic_calibrator(self.calibrator)  # refuses those that no effect of the label can be added to
        n_each, remaining = max(1, self.n_draws // 2), 1.0 - _WEIGHT_BOTH
        score = fit_by_score(fit_data, "Unknown", self.calibrator, n_draws=n_each)
        unidentified = add_unidentified_effect(score, fit_data, self.n_draws), _WEIGHT_BOTH
        try:
            label = fit_by_label(fit_data, self.calibrator, n_draws=n_each)
        except InputError:
            # Without labels of a class, or in a stratum, nothing is known by label.
            return {BY_SCORE: (score, remaining), BOTH: unidentified}
        by_label = remaining * _weigh_by_label(fit_data, self.calibrator, label)
        return {
            BY_SCORE: (score, remaining - by_label),
            BY_LABEL: (_thinned(label.posterior, by_label), by_label),
            BOTH: unidentified,
        }

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        if not posterior.mechanisms:
            return ByScoreAndLabel(self.reference).describe(data, posterior)
        weight = mechanism_weights(posterior)
        names = ("by score or at random", *MECHANISMS[1:])
        weights = [f"{name} ({w:.0%})" for name, w in zip(names, weight, strict=True) if w >= MIN_STATED]
        text = f"Not stated why labels are missing: {', '.join(weights)}."
        if weight[BY_REFERENCE]:
            text += " Labeled rows contradict the reference rows: something drifted, or labels are missing by label."
        elif 0.0 < weight[BY_LABEL] < MIN_STATED:
            text += " The scores of missing rows do not fit 'by label' alone."
        elif mechanisms_differ(posterior):
            direction = "higher" if _missing_score_higher(data) else "lower"
            text += f" Missing rows have {direction} scores than labeled ones."
        return text + describe_few_labels(FitData.of(data).tables, data.threshold)


def _thinned(label: Posterior, weight: float) -> Posterior:
    """Return the draws of "by label"; if it is contradicted, every eighth of them."""
    assert label.shift is not None
    draws = slice(None, None, 8 if weight < MIN_STATED else 1)
    return replace(label, weight=label.weight[draws], probability=label.probability[draws], shift=label.shift[draws])


def _weigh_by_label(fit_data: FitData, calibrator: Any, label: MechanismPosterior) -> float:
    """Weight of "by label" against "by score", by how well each explains which rows are missing."""
    by_score = _evidence_by_score(fit_data, calibrator, label.fitted.mode)
    by_label = min(float(expit(label.log_evidence - by_score)), 1.0 - _MIN_WEIGHT)
    if by_label >= _DOUBTED:
        return max(by_label, _MIN_WEIGHT)
    # A curve that fits badly counts only against "by label", which depends on it. The mixture test does not use it, so
    # only a mechanism that this test contradicts may fall below the minimum.
    return max(by_label, 1e-6 if mixture_p_value(fit_data.table) < _CONTRADICTED_AT else _MIN_WEIGHT)


def select_mechanism(posterior: Posterior, mechanism: int) -> Posterior:
    """Return the posterior under a single mechanism."""
    assert posterior.mechanism is not None
    draws = np.flatnonzero(posterior.mechanism == mechanism)
    weight = posterior.weight[draws]
    total = float(weight.sum())
    weight = weight / total if total > 0.0 else np.full(draws.size, 1.0 / draws.size)
    return Posterior(weight, posterior.probability[draws], column=posterior.column)


def _missing_score_higher(data: EvaluationSet) -> bool:
    """Whether missing rows rank higher on average than labeled ones."""
    cells = data.cells
    counts = np.stack([cells.missing, cells.total - cells.missing]).astype(np.float64)
    missing, labeled = counts if cells.tie_starts is None else np.add.reduceat(counts, cells.tie_starts, axis=1)
    below = np.cumsum(labeled) - 0.5 * labeled  # labeled rows of a lower score, and half of those of the same one
    return float(missing @ below) > 0.5 * float(missing.sum()) * float(labeled.sum())


def mechanism_weights(posterior: Posterior) -> FloatArray:
    """Return the weight of each of the `MECHANISMS`."""
    assert posterior.mechanism is not None
    return np.asarray(np.bincount(posterior.mechanism, posterior.weight, len(MECHANISMS)), dtype=np.float64)


def mechanisms_differ(posterior: Posterior) -> bool:
    """Return whether the prevalence of the missing rows clearly differs between "by label" and "by score"."""
    if not posterior.mechanisms or not np.any(posterior.mechanism == BY_LABEL):
        return False
    assert posterior.shift is not None
    shift = posterior.shift[posterior.mechanism == BY_LABEL]
    # Changes of the odds by less than 5% do not matter.
    return abs(float(shift.mean())) > max(2.0 * float(shift.std()), 0.05)


def describe_prevalences(data: EvaluationSet, posterior: Posterior) -> str:
    """Return the fraction of missing rows that are positive by score, and by label."""
    fractions, rows = [], missing_rows(data, posterior)
    for mechanism in (BY_SCORE, BY_LABEL):
        selected = select_mechanism(posterior, mechanism)
        fractions.append(float(selected.weight @ (selected.probability @ rows) / rows.sum()))
    return " and ".join(f"{fraction:.1%} {name!r}" for fraction, name in zip(fractions, MECHANISMS, strict=False))


def mixture_p_value(table: ScoreTable) -> float:
    """Return the p-value of the test that missing rows are a mixture of labeled positives and negatives; NaN: no test.

    It compares histograms and needs no calibration. Labels that are missing by label pass.
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


def mix_posteriors(components: Mapping[int, tuple[Posterior, float]], mechanisms: tuple[str, ...]) -> Posterior:
    """Return the posterior of several mechanisms, with the weight of each."""
    posteriors = [posterior for posterior, _ in components.values()]
    return replace(
        posteriors[0],
        weight=np.concatenate([weight * p.weight / p.weight.sum() for p, weight in components.values()]),
        probability=np.concatenate([p.probability for p in posteriors]),
        shift=np.concatenate([np.zeros(len(p)) if p.shift is None else p.shift for p in posteriors]),
        mechanism=np.repeat(list(components), [len(p) for p in posteriors]),
        mechanisms=mechanisms,
    )
