"""Mechanisms for several classes: what each of them says about the labels of missing rows."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, gammaincc

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sobol import normal_points
from darkmetrics.data.class_set import ClassSet
from darkmetrics.exceptions import CalibrationWarning, InputError, warn
from darkmetrics.missingness.class_tables import BinnedTable, build_by_label
from darkmetrics.posterior import Model, approximate_log_evidence
from darkmetrics.posterior.class_curve import ClassCurve, CurvePosterior
from darkmetrics.posterior.class_fit import ClassFit, ClassLikelihood, ClassRows, MissingTable, fit_classes
from darkmetrics.posterior.representatives import representatives
from darkmetrics.wording import code, named

MECHANISMS = ("by score", "by label", "both")
BY_SCORE, BY_LABEL, BOTH = range(3)
# Weight of "both"; least fraction of the remainder that "by score" and "by label" keep; p-value below which "by label"
# is refuted.
_WEIGHT_BOTH, _LEAST_SHARE, _REFUTED_AT = 0.5, 1.0 / 3.0, 0.05
# Prior of the effect of the label that data cannot identify: standard deviation of the log odds ratio of two classes,
# correlation between rows that differ in the prediction, and standard deviation of its slope.
_EFFECT, _CORRELATION, _EFFECT_SLOPE, _SEED = 1.5, 0.7, 0.8, 11
# Prior standard deviations of the log odds that a label is missing by score: level, prediction, log score of a class.
_BY_SCORE_SD = 3.0, 1.5, 1.0
# Evidence is compared on at most this many cells: the data then decide anyway.
_MAX_CELLS = 5_000
_MAX_LINE = 3.0
# Sets with more missing rows times classes get half as many draws.
_MANY_NUMBERS = 1 << 19
# Settings of mechanisms that several classes do not take, with their defaults.
_DEFAULTS = {"calibrator": "flexible", "data": "all", "uncertainty": True, "strata": None}
_MAX_NAMED = 5
# Smallest bin of the mixture test, and steps of its fit.
_MIN_BIN, _STEPS = 10.0, 5
# Number of labels at which half of what they show is believed, per class with labels: no curve is exactly right.
_HALF_CREDIT = 1.0


@dataclass(frozen=True, eq=False)
class ClassFitData:
    """A set with its curve, and fully labeled reference rows.

    Attributes
    ----------
    data : ClassSet
        The set.
    reference : ClassSet, optional
        Reference rows.
    more : array (n_cells, n_more), optional
        Further columns of the curve, such as the log odds of a propensity.
    """

    data: ClassSet
    reference: ClassSet | None = None
    more: FloatArray | None = None

    @cached_property
    def curve(self) -> ClassCurve:
        """The columns of the curve."""
        return ClassCurve.of(self.data, 0 if self.more is None else self.more.shape[1])

    @cached_property
    def label_counts(self) -> IntArray:
        """Labels of each class, those of the reference rows included."""
        counts = self.data.label_counts
        return counts if self.reference is None else counts + self.reference.label_counts

    def likelihood(self, table: MissingTable | None, bins: IntArray | None = None) -> ClassLikelihood:
        """Return the likelihood of the labels, and of the missing labels if a table has their probabilities."""
        cells, curve = self.data.cells, self.curve
        kept = np.flatnonzero(cells.n_labeled if table is None else cells.total)
        missing = np.zeros(kept.size) if table is None else cells.missing[kept].astype(np.float64)
        line = curve.log_score(cells.score[kept])
        rows = ClassRows(
            line,
            cells.decision[kept],
            curve.rank(line, cells.decision[kept]),
            cells.labeled[kept].astype(np.float64),
            missing,
            np.zeros(kept.size, dtype=np.int64) if bins is None else bins[kept],
            None if self.more is None else self.more[kept],
        )
        if self.reference is not None:
            rows = _append_reference(rows, curve, self.reference)
        n = float(self.label_counts.sum())
        power = n / (n + _HALF_CREDIT * np.count_nonzero(self.label_counts))
        return ClassLikelihood(curve, rows, table, power)

    def posterior(self, fit: ClassFit, n_draws: int, table: MissingTable | None, bins: Any = None) -> CurvePosterior:
        """Return equally weighted draws of a fit."""
        n_groups, width = self.curve.shape
        n_curve, rows = n_groups * width, self.data.missing_cells
        posterior = CurvePosterior(
            self.curve,
            self.data,
            fit.theta[:, :n_curve].reshape(-1, n_groups, width),
            fit.weight,
            None if table is None else np.moveaxis(table.log_missing(fit.theta[:, n_curve:].T), -1, 0),
            None if bins is None else bins[rows],
            None if self.more is None else self.more[rows],
        )
        return select_draws(posterior, n_draws)


def _append_reference(rows: ClassRows, curve: ClassCurve, reference: ClassSet) -> ClassRows:
    cells, n = reference.cells, len(reference.cells.decision)
    none, line = np.zeros(n), curve.log_score(cells.score)
    return ClassRows(
        np.concatenate([rows.line, line]),
        np.concatenate([rows.decision, cells.decision]),
        np.concatenate([rows.rank, curve.rank(line, cells.decision)]),
        np.concatenate([rows.labeled, cells.labeled]),
        np.concatenate([rows.missing, none]),
        np.concatenate([rows.bins, none.astype(np.int64)]),
        rows.more,
    )


def select_draws(posterior: CurvePosterior, n_draws: int) -> CurvePosterior:
    """Return equally weighted draws that represent weighted ones, by two sums over the missing rows."""
    if len(posterior) <= n_draws or not posterior.data.missing_cells.size:
        return posterior
    data = posterior.data
    decision, counts = data.cells.decision[data.missing_cells], data.missing_counts.astype(np.float64)
    classes = np.arange(data.n_classes)
    frequent = np.bincount(decision, counts, data.n_classes).argmax()
    events = [decision[:, None] == classes, np.broadcast_to(classes == frequent, (decision.size, classes.size))]
    first, second = (event.probability @ counts for event in posterior.of_events(events))
    selected = representatives(first, second, posterior.weight, n_draws)
    log_missing = None if posterior.log_missing is None else posterior.log_missing[selected]
    return CurvePosterior(
        posterior.curve,
        data,
        posterior.theta[selected],
        np.full(n_draws, 1.0 / n_draws),
        log_missing,
        posterior.bins,
        posterior.more,
    )


def class_fit_data(mechanism: Any, data: ClassSet, more: FloatArray | None = None) -> ClassFitData:
    """Return what a mechanism learns from, with warnings about classes that have few labels.

    Settings of the mechanism that are for two classes are refused.
    """
    name = type(mechanism).__name__
    for field, default in _DEFAULTS.items():
        value = getattr(mechanism, field, default)
        if value is not default and value != default:
            finding = f"{value!r} is for two classes ({name})"
            raise InputError(field, finding, "", "With several classes, leave it out.")
    fit_data = ClassFitData(data, getattr(mechanism, "reference", None), more)
    counts = fit_data.label_counts
    reference = code("missingness=dm.missing.Reference(labels, scores)")
    if not counts.any():
        raise InputError(
            "y_true",
            f"no labeled row, so there is nothing to learn from ({name})",
            "",
            f"Pass {reference} of fully labeled rows, or dm.missing.Fixed(y_score) if you trust the scores.",
        )
    absent = [str(data.classes[k]) for k in np.flatnonzero(counts == 0)]
    if absent:
        shown = ", ".join(absent[:_MAX_NAMED]) + (f" and {len(absent) - _MAX_NAMED} more" * (len(absent) > _MAX_NAMED))
        warn(
            f"{named('y_true')}: no label of {shown}. Probabilities of "
            f"{'this class' if len(absent) == 1 else 'these classes'} depend on the scores and the prior. "
            f"Pass {reference} of fully labeled rows if you can.",
            CalibrationWarning,
        )
    return fit_data


def by_score(fit_data: ClassFitData, n_draws: int) -> CurvePosterior:
    """Return the posterior of labels that are missing at random or by score."""
    return fit_data.posterior(fit_classes(fit_data.likelihood(None), n_draws), n_draws, None)


def describe_by_score(fit_data: ClassFitData) -> str:
    """Return what "by score" assumes."""
    text = f"Probabilities of each class are calibrated on the {fit_data.data.n_labeled:,} labeled rows"
    if fit_data.reference is not None:
        text += f" and {fit_data.reference.n_rows:,} reference rows (assumed: no drift since)"
    return f"Assumed: labels are missing at random or by score. {text}."


def by_table(
    fit_data: ClassFitData, binned: BinnedTable, n_draws: int, start: FloatArray | None = None
) -> tuple[CurvePosterior, ClassFit]:
    """Return the posterior of labels that are missing with the probabilities of a table, and the fit.

    `start` has the parameters of a curve near the mode, if they are known.
    """
    table, bins = binned
    fit = fit_classes(fit_data.likelihood(table, bins), n_draws, start)
    return fit_data.posterior(fit, n_draws, table, bins), fit


def by_label(fit_data: ClassFitData, n_draws: int, start: FloatArray | None = None) -> tuple[CurvePosterior, ClassFit]:
    """Return the posterior of labels that are missing by label, and the fit."""
    return by_table(fit_data, build_by_label(fit_data.data, fit_data.curve), n_draws, start)


def add_unidentified_effect(posterior: CurvePosterior, n_draws: int) -> CurvePosterior:
    """Return draws whose log weights are moved by an effect of the label, drawn from its prior.

    The effect of a class has a level, one for rows that are predicted to be of this class, and a slope in the log
    score. It moves the bias, the step and the slope of the curve of the missing rows alone.
    """
    curve, (n_groups, _) = posterior.curve, posterior.curve.shape
    z = normal_points(n_draws, 4 * n_groups, _SEED).reshape(n_draws, 4, n_groups) / np.sqrt(2.0)
    first = [members[0] for members in curve.members]
    theta = posterior.theta[np.arange(n_draws) % len(posterior)].copy()
    spread = curve.spread[first]
    own, other = np.sqrt(_CORRELATION), np.sqrt(1.0 - _CORRELATION)
    theta[:, :, 0] += _EFFECT * (own * z[:, 0] + other * z[:, 1])
    theta[:, :, curve.kinds.index("step")] += _EFFECT * other * (z[:, 2] - z[:, 1])
    theta[:, :, 1] += _EFFECT_SLOPE * z[:, 3] / spread
    weight = np.full(n_draws, 1.0 / n_draws)
    return CurvePosterior(curve, posterior.data, theta, weight, more=posterior.more)


def unknown(fit_data: ClassFitData, n_draws: int) -> CurvePosterior:
    """Return the mixture of mechanisms if none is stated."""
    if fit_data.data.missing_cells.size * fit_data.data.n_classes > _MANY_NUMBERS:
        n_draws = max(1, n_draws // 2)
    n_each = max(1, n_draws // 2)
    score = by_score(fit_data, n_each)
    label, fit = by_label(fit_data, n_each, score.theta.mean(axis=0).ravel())
    both = add_unidentified_effect(score, n_draws)
    share = _share_by_label(fit_data, fit)
    rest = 1.0 - _WEIGHT_BOTH
    parts = {BY_SCORE: (score, rest * (1.0 - share)), BY_LABEL: (label, rest * share), BOTH: (both, _WEIGHT_BOTH)}
    n_classes = fit_data.data.n_classes
    names = ("by score or at random", *MECHANISMS[1:])
    stated = [f"{name} ({weight:.0%})" for name, (_, weight) in zip(names, parts.values(), strict=True)]
    posterior = CurvePosterior(
        fit_data.curve,
        fit_data.data,
        np.concatenate([part.theta for part, _ in parts.values()]),
        np.concatenate([weight * part.weight for part, weight in parts.values()]),
        np.concatenate(
            [
                np.zeros((len(part), n_classes, 1)) if part.log_missing is None else part.log_missing
                for part, _ in parts.values()
            ]
        ),
        None,
        score.more,
        np.repeat(list(parts), [len(part) for part, _ in parts.values()]),
        MECHANISMS,
    )
    posterior.assumption = f"Not stated why labels are missing: {', '.join(stated)}."
    return posterior


def _share_by_label(fit_data: ClassFitData, fit: ClassFit) -> float:
    """Return the weight of "by label" against "by score", by how well each explains which rows are missing."""
    table, bins = build_by_label(fit_data.data, fit_data.curve)
    joint = fit_data.likelihood(table, bins)
    step = max(1, len(joint.rows.line) // _MAX_CELLS)
    sample = joint.rows.select(slice(None, None, step))
    counts = np.bincount(fit_data.curve.group, sample.labeled.sum(axis=0), fit_data.curve.shape[0])
    table = replace(table, arrived=counts.astype(np.float64))
    joint = ClassLikelihood(joint.curve, sample, table)
    labels = ClassLikelihood(joint.curve, replace(sample, missing=np.zeros(len(sample.missing))), None)
    n_curve = joint.n_curve
    difference = joint.laplace(fit.mode).log_integral - labels.laplace(fit.mode[:n_curve]).log_integral
    share = float(expit(difference - _evidence_of_missing(sample, joint.curve)))
    share = min(share, 1.0 - _LEAST_SHARE)
    if share >= _LEAST_SHARE:
        return share
    return max(share, 1e-6 if mixture_p_value(fit_data.data) < _REFUTED_AT else _LEAST_SHARE)


def _evidence_of_missing(rows: ClassRows, curve: ClassCurve) -> float:
    """Return the log evidence of missing labels whose probability depends on the prediction and the log scores."""
    n_classes = rows.line.shape[1]
    line = np.clip((rows.line - curve.center) / curve.spread, -_MAX_LINE, _MAX_LINE)
    blocks = [np.ones((len(line), 1)), rows.decision[:, None] == np.arange(n_classes), line]
    columns = np.concatenate(blocks, axis=1)
    sd = np.repeat(_BY_SCORE_SD, [1, n_classes, n_classes])
    model = Model()
    is_missing = model.add_decisions((model.add_parameters(np.zeros(sd.size), sd), columns))
    model.add_cells(rows.labeled.sum(axis=1), [(0, [is_missing[:, 0]])])
    model.add_cells(rows.missing, [(0, [is_missing[:, 1]])])
    return approximate_log_evidence(model)


def mixture_p_value(data: ClassSet) -> float:
    """Return the p-value of a test that missing rows are a mixture of the labeled rows of all classes.

    Rows are counted by prediction and tercile of its score. Labels missing by label alone must pass; the test needs no
    calibration. NaN if there are too few rows.
    """
    from scipy.optimize import nnls

    cells = data.cells
    top = np.take_along_axis(cells.score, cells.decision[:, None], axis=1)[:, 0] / cells.score.sum(axis=1)
    bins = np.empty(top.size, dtype=np.int64)
    for k in np.unique(cells.decision):
        own = cells.decision == k
        cuts = np.quantile(top[own], (1 / 3, 2 / 3))
        bins[own] = 3 * k + np.searchsorted(cuts, top[own])
    labeled = np.column_stack([np.bincount(bins, counts, 3 * data.n_classes) for counts in cells.labeled.T])
    missing = np.bincount(bins, cells.missing, 3 * data.n_classes)
    is_small = labeled.sum(axis=1) + missing < _MIN_BIN
    labeled = np.concatenate([labeled[~is_small], labeled[is_small].sum(axis=0, keepdims=True)])
    missing = np.append(missing[~is_small], missing[is_small].sum())
    labeled, missing = (counts[labeled.sum(axis=1) + missing > 0.0] for counts in (labeled, missing))
    labeled = labeled[:, labeled.any(axis=0)]
    dof = len(missing) - labeled.shape[1]
    if dof < 1 or not missing.sum() > 0.0:
        return np.nan
    variance, expected = missing + 1.0, missing
    for _ in range(_STEPS):
        ratio, _ = nnls(labeled / np.sqrt(variance)[:, None], missing / np.sqrt(variance))
        expected = labeled @ ratio
        variance = expected + labeled @ ratio**2 + 0.5
    return float(gammaincc(0.5 * dof, 0.5 * float(((missing - expected) ** 2 / variance).sum())))
