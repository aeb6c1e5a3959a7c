"""Labels missing by score and by label at once, with nothing to tell how much of each: a wide prior over tilts."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.posterior.sobol import normal_points
from darkmetrics.label_models.fitting import Material
from darkmetrics.nodes import Nodes

# Prior of the log odds of being missing, positives against negatives with the same score. Its standard deviation,
# the correlation between rows decided positive and rows decided negative, and how it may drift along the ranks.
_SPREAD, _TOGETHER, _ALONG = 1.5, 0.7, 0.5
# Log odds beyond these are those of 0 and 1.
_SURE = 35.0
_SEED = 11


def both_nodes(score: Nodes, material: Material, n_nodes: int) -> Nodes:
    """The nodes of a calibration, moved by an effect of the label that no data can tell.

    At equal score the odds of a missing row are those of a labelled one times `exp(d)`, with `d` the log odds of being
    missing, positives against negatives: Bayes' rule, whatever the chance to be missing does along the scores. Every
    set gets the same effects in the same order, so that sets can be taken together.
    """
    table = material.table
    points = normal_points(n_nodes, 3, _SEED)
    flagged, drift = points[:, :1], points[:, 2:3]
    unflagged = _TOGETHER * flagged + np.sqrt(1.0 - _TOGETHER**2) * points[:, 1:2]
    threshold = material.data.threshold
    above = 2.0 * table.decided >= table.missing if threshold is None else table.score >= threshold
    move = _SPREAD * np.where(above, flagged, unflagged) + _ALONG * drift * table.rank
    with np.errstate(divide="ignore"):
        log_odds = np.clip(logit(score.probability), -_SURE, _SURE)
    return replace(
        score,
        weight=np.full(n_nodes, 1.0 / n_nodes),
        probability=np.asarray(expit(log_odds[np.arange(n_nodes) % len(score)] + move)),
        shift=move @ table.missing / max(1.0, float(table.missing.sum())),
    )


def mixed_nodes(parts: Mapping[int, tuple[Nodes, float]], reasons: tuple[str, ...]) -> Nodes:
    """The nodes of several of the reasons, with the weight of each."""
    nodes = [part for part, _ in parts.values()]
    return replace(
        nodes[0],
        weight=np.concatenate([weight * part.weight / part.weight.sum() for part, weight in parts.values()]),
        probability=np.concatenate([part.probability for part in nodes]),
        shift=np.concatenate([np.zeros(len(part)) if part.shift is None else part.shift for part in nodes]),
        reason=np.repeat(list(parts), [len(part) for part in nodes]),
        reasons=reasons,
    )
