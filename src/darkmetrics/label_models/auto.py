"""Auto: the default, which never silently picks a reason for the missing labels."""

from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import eval_legendre, expit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.hypotheses.mixture_fit import mixture_test
from darkmetrics._kernels.posterior.draws import posterior_draws
from darkmetrics._kernels.posterior.likelihood import LabelLikelihood
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.label_models.base import LabelModel, missing_prevalence, takes_calibration
from darkmetrics.label_models.calibrated import Calibrated, calibrated_nodes
from darkmetrics.label_models.fitting import N_NODES, Material, check_both_classes, check_n_nodes
from darkmetrics.label_models.label_shift import LabelShift, shifted_nodes
from darkmetrics.label_models.score_table import ReferenceLike, ScoreTable, score_table
from darkmetrics.label_models.selection import Selection
from darkmetrics.nodes import Nodes

REASONS = ("by score", "by label")
# A reason that is not refuted keeps this weight. Any pattern of missing scores can come about by score, so no data
# refute that one.
_LEAST_WEIGHT = 0.2
_REFUTED_AT = 0.05
# "By label" is called refuted below this weight.
REFUTED = 0.01
# Prior standard deviations of the log odds of being missing, by score: level, slope, bend and twist over the ranks.
_CURVE = (3.0, 2.0, 1.0, 1.0)


@takes_calibration
@dataclass(frozen=True, eq=False)
class Auto(LabelModel):
    """The default: makes use of what there is, and says what it could not decide.

    With a reference set it is `Selection`, which needs no statement about why labels are missing. Without one it mixes
    two reasons, "by score" (`Calibrated`) and "by label" (`LabelShift`), weighted by how well each explains which rows
    are missing. Where missing rows look like labelled ones both agree; where they do not, the law spans both
    answers and a `MissingnessWarning` names them.

    Parameters
    ----------
    reference : (labels, scores) or EvaluationSet, optional
        Fully labelled rows from the same population, since which nothing has drifted.
    calibrator : {"beta", "platt"}, Beta or Platt
        The curve from scores to probabilities.
    n_nodes : int
        How many cases stand for the posterior of each reason.

    Notes
    -----
    A reason that is not refuted keeps a weight of one fifth. Any distribution of missing scores can come about "by
    score", so data can refute "by label" (`mixture` of the diagnosis) but never "by score".

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(1)
    >>> y_score = rng.random(1000)
    >>> y_true = np.where(rng.random(1000) < 0.3, np.nan, rng.random(1000) < y_score)
    >>> print(dm.evaluate(y_true, y_score).assumption.split(". ")[0])
    Assumed: labels are missing at random, as far as scores can tell
    """

    reference: ReferenceLike | None = field(default=None, repr=False)
    calibrator: CalibratorLike = "beta"
    n_nodes: int = N_NODES

    def __post_init__(self) -> None:
        check_n_nodes(self.n_nodes)

    def nodes(self, data: EvaluationSet) -> Nodes:
        if self.reference is not None:
            return Selection(self.reference, self.calibrator, self.n_nodes).nodes(data)
        material = Material.of(data)
        positives, negatives = material.label_counts()
        if positives == 0 < negatives:
            # A batch without a positive is nothing unusual where they are rare; its scores are all there is to go by.
            return calibrated_nodes(Calibrated(self.calibrator, n_nodes=self.n_nodes), material, "Auto").nodes
        check_both_classes(material, "Auto")
        score = calibrated_nodes(Calibrated(self.calibrator, n_nodes=self.n_nodes), material, "Auto")
        label = shifted_nodes(LabelShift(self.calibrator, n_nodes=self.n_nodes), material)
        log_evidence = score.log_evidence + _curve_evidence(material.table)
        by_label = min(float(expit(label.log_evidence - log_evidence)), 1.0 - _LEAST_WEIGHT)
        if by_label < _LEAST_WEIGHT:
            # A calibration curve that fits badly counts against "by label" alone, which leans on it. The mixture test
            # does not, so only what it refutes may fall below a fifth.
            by_label = max(by_label, 1e-6 if mixture_p_value(material.table) < _REFUTED_AT else _LEAST_WEIGHT)
        return _both(score.nodes, label.nodes, by_label)

    def describe(self, data: EvaluationSet, nodes: Nodes) -> str:
        if self.reference is not None:
            return Selection(self.reference).describe(data, nodes)
        if not nodes.reasons:
            return Calibrated(self.calibrator).describe(data, nodes)
        by_label = weight_by_label(nodes)
        if by_label < REFUTED:
            return "Assumed: labels are missing by score; the scores of missing rows do not fit 'by label' alone."
        if not reasons_differ(nodes):
            return (
                "Assumed: labels are missing at random, as far as scores can tell. Allowance is made for what the "
                "scores of the missing rows leave open."
            )
        direction = "higher" if _missing_score_higher(data) else "lower"
        return (
            f"Missing rows look different from labelled ones: their scores are {direction}. Not known why: mixed "
            f"'by score' ({1.0 - by_label:.0%}) and 'by label' ({by_label:.0%})."
        )


def nodes_of_reason(nodes: Nodes, reason: int) -> Nodes:
    """The nodes of one reason alone."""
    assert nodes.reason is not None
    own = np.flatnonzero(nodes.reason == reason)
    weight = nodes.weight[own]
    total = float(weight.sum())
    weight = weight / total if total > 0.0 else np.full(own.size, 1.0 / own.size)
    return Nodes(weight, nodes.probability[own], bucket=nodes.bucket)


def _missing_score_higher(data: EvaluationSet) -> bool:
    """Whether missing rows rank higher on average than labelled ones."""
    table = score_table(data)
    rows = table.labelled + table.missing
    rank = np.cumsum(rows) - 0.5 * rows
    return float(np.average(rank, weights=table.missing)) > float(np.average(rank, weights=table.labelled))


def weight_by_label(nodes: Nodes) -> float:
    """The weight of the reason "by label"."""
    return float(nodes.weight[nodes.reason == 1].sum())


def reasons_differ(nodes: Nodes) -> bool:
    """Whether the scores of missing rows, read "by label", say clearly that their prevalence is another one."""
    if not nodes.reasons:
        return False
    mean, sd = _shift(nodes)
    return abs(mean) > max(2.0 * sd, 0.05)  # less than 5% in the odds moves no metric that anyone would act on


def reasons_in_words(data: EvaluationSet, nodes: Nodes) -> str:
    """How many of the missing rows are positive under either reason."""
    shares = [missing_prevalence(data, nodes_of_reason(nodes, k)) for k in range(len(REASONS))]
    return " and ".join(f"{share.mean:.1%} {name!r}" for share, name in zip(shares, REASONS, strict=True))


def _shift(nodes: Nodes) -> tuple[float, float]:
    """Mean and standard deviation of the move in log odds under "by label"."""
    assert nodes.shift is not None
    shift = nodes.shift[nodes.reason == 1]
    return float(shift.mean()), float(shift.std())


def _both(score: Nodes, label: Nodes, by_label: float) -> Nodes:
    assert label.shift is not None
    # Once refuted it is still named in the warning, for which a few of its nodes do: they lie along a path, so every
    # eighth is a fair choice.
    kept = slice(None, None, 8 if by_label < REFUTED else 1)
    own = label.weight[kept] / label.weight[kept].sum()
    return replace(
        score,
        weight=np.append((1.0 - by_label) * score.weight, by_label * own),
        probability=np.concatenate([score.probability, label.probability[kept]]),
        shift=np.append(np.zeros(len(score)), label.shift[kept]),
        reason=np.repeat([0, 1], [len(score), own.size]),
        reasons=REASONS,
    )


def mixture_p_value(table: ScoreTable) -> float:
    """How well the scores of the missing rows pass for a mixture of labelled positives and negatives; nan: not tested.

    It compares histograms and needs no calibration. Labels missing by label alone must pass.
    """
    fit = mixture_test(table.positives, table.negatives, table.missing)
    return np.nan if fit is None else fit.p_value


def _curve_evidence(table: ScoreTable) -> float:
    """Log evidence of "by score" for which rows are missing: a cubic curve over the ranks, whatever the labels.

    Ranks, because by score nothing singles out the log odds, and a far-out score must not decide.
    """
    rows = table.labelled + table.missing
    place = 2.0 * (np.cumsum(rows) - 0.5 * rows) / rows.sum() - 1.0
    X = np.column_stack([eval_legendre(k, place) for k in range(len(_CURVE))])
    none: FloatArray = np.zeros(0)
    curve = LabelLikelihood(
        X=X,
        Z=None,
        positives=table.missing,
        negatives=table.labelled,
        missing=none,
        X_reference=np.zeros((0, X.shape[1])),
        positives_reference=none,
        negatives_reference=none,
        prior_mean=np.zeros(X.shape[1]),
        prior_scale=np.array(_CURVE),
    )
    return posterior_draws(curve, curve.prior_mean).log_evidence
