"""Few labels where they matter: rows on a side of the threshold where a class was hardly seen get a level of their own.

A smooth curve extrapolates from the rows above the threshold to those below it. Labels below refute a wrong level only
if both classes are among them. Until then the step of the curve at the threshold has a wide prior, and up to half of
the posterior draws take the positive rate below the threshold from the labels there alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.special import betaincinv, expit

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.calibrators.logistic import STEP_SD
from darkmetrics.missingness.score_table import ScoreTable
from darkmetrics.posterior import Posterior

# Prior standard deviation of the step where a class was not seen on a side. Jeffreys' Beta(1/2, 1/2) has 3.1 in log
# odds. It shrinks to that of a curve that was checked, as the labels of the class become this many.
_LEVEL_SD, _CHECKED = 3.0, 10.0
# Few labels matter where the uncertain rows are this fraction of the rows in the denominator of the metric.
_RELEVANT = 0.05
# Fraction of the draws that take the rate from the labels below the threshold, where none of these is positive.
_LEVEL_WEIGHT = 0.5
# Multiples of this number, modulo 1, are spread evenly.
_GOLDEN = 0.5 * (np.sqrt(5.0) - 1.0)
_MAX_LOG_ODDS, _N_HALVINGS = 40.0, 30


def count_by_side(tables: Sequence[ScoreTable], threshold: float) -> FloatArray:
    """Return the number of labels below and above the threshold (rows), negative and positive (columns)."""
    counts = np.zeros((2, 2))
    for table in tables:
        first = int(np.searchsorted(table.score, threshold))
        for side, rows in enumerate((slice(None, first), slice(first, None))):
            counts[side] += table.negatives[rows].sum(), table.positives[rows].sum()
    return counts


def level_sd(tables: Sequence[ScoreTable], threshold: float | None) -> float:
    """Return the prior standard deviation of the step at the threshold: wide if a class was hardly seen on a side."""
    if threshold is None:
        return STEP_SD
    unchecked = max(0.0, 1.0 - float(count_by_side(tables, threshold).min()) / _CHECKED)
    return STEP_SD + (_LEVEL_SD - STEP_SD) * unchecked


class FewLabels(NamedTuple):
    """Labels on a side of the threshold that a metric depends on.

    Attributes
    ----------
    metric : str
        "Recall" depends on positives below the threshold, "Precision" on negatives above.
    labels, seen : float
        Number of labels on this side, and of those that are of this class.
    """

    metric: str
    labels: float
    seen: float


def find_few_labels(tables: Sequence[ScoreTable], threshold: float | None) -> list[FewLabels]:
    """Return where few labels matter; the first table has the missing rows."""
    if threshold is None:
        return []
    labels, is_above, matches = count_by_side(tables, threshold), tables[0].score >= threshold, []
    for metric, side, kind in (("Recall", 0, 1), ("Precision", 1, 0)):
        n, seen, missing = labels[side].sum(), labels[side, kind], tables[0].missing[is_above == side].sum()
        total = labels[:, 1].sum() if metric == "Recall" else n + missing
        error = missing * np.sqrt(seen + 0.5) / (n + 1.0)  # standard deviation under Jeffreys' prior, nearly
        if seen < _CHECKED and error > _RELEVANT * total > 0.0:
            matches.append(FewLabels(metric, float(n), float(seen)))
    return matches


def describe_few_labels(tables: Sequence[ScoreTable], threshold: float | None) -> str:
    """Return a sentence for recall and for precision if it depends on few labels; empty if none does."""
    sentences = []
    for metric, n, seen in find_few_labels(tables, threshold):
        side, kind = ("below", "positive") if metric == "Recall" else ("at or above", "negative")
        text = f"{n:,.0f} labels {side} the threshold, {f'{seen:.0f}' if seen else 'none'} {kind}"
        sentences.append(f" {metric} depends on {text if n else f'rows {side} the threshold, none of them labeled'}.")
    return "".join(sentences)


def add_level(posterior: Posterior, tables: Sequence[ScoreTable], threshold: float | None) -> Posterior:
    """Let up to half of the draws take the positive rate below the threshold from the labels there alone.

    The rate has the posterior of Jeffreys' prior, Beta(1/2, 1/2). The log odds of the missing rows below the threshold
    move by an amount per draw that gives them this rate. Without labels there, and where many matter, nothing changes.

    Parameters
    ----------
    posterior : Posterior
        Equally weighted draws, with a column per row of the first table that has missing rows.
    tables : sequence of ScoreTable
        Tables with labels; the first has the missing rows.
    threshold : float, optional
        Score from which rows are predicted positive.
    """
    regions = [region for region in find_few_labels(tables, threshold) if region.metric == "Recall" and region.labels]
    if threshold is None or not regions:
        return posterior
    _, n, seen = regions[0]
    rows = tables[0].with_missing[0]
    columns = np.flatnonzero(tables[0].score[rows] < threshold)
    position = (np.arange(len(posterior)) + 0.5) * _GOLDEN % 1.0
    draws = np.flatnonzero(position < _LEVEL_WEIGHT * (1.0 - seen / _CHECKED))
    if not (draws.size and columns.size):
        return posterior
    order = np.argsort(np.argsort(np.arange(draws.size) * _GOLDEN % 1.0))
    rate = betaincinv(seen + 0.5, n - seen + 0.5, (order + 0.5) / draws.size)
    probability, fraction = posterior.probability.copy(), tables[0].missing[rows][columns]
    fraction = fraction / fraction.sum()
    with np.errstate(divide="ignore"):
        log_odds = np.log(p := probability[np.ix_(draws, columns)]) - np.log1p(-p)
    log_odds = np.clip(log_odds, -_MAX_LOG_ODDS, _MAX_LOG_ODDS)
    shift, step = np.zeros(draws.size), 2.0 * _MAX_LOG_ODDS
    for _ in range(_N_HALVINGS):
        step *= 0.5
        shift += np.where(expit(log_odds + shift[:, None]) @ fraction < rate, step, -step)
    probability[np.ix_(draws, columns)] = expit(log_odds + shift[:, None])
    return replace(posterior, probability=probability)
