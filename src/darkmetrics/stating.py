"""What a statement about why labels are missing would change: the answers of each reason that is mixed."""

from collections.abc import Iterable, Mapping

import numpy as np

from darkmetrics._kernels.sums.normal_mixture import normal_mixture_quantile
from darkmetrics.distribution import Interval, MetricDistribution
from darkmetrics.label_models.auto import BY_LABEL, BY_REFERENCE, BY_SCORE, REFUTED, weight_of_reasons
from darkmetrics.nodes import Nodes

# Reasons as they follow "labels are missing".
_IN_WORDS = {
    "by score": "by score or at random",
    "by label": "by label alone",
    "both": "by score and label both",
    "as the reference says": "as the reference rows say",
}


def what_narrows(
    laws: Mapping[str, MetricDistribution], intervals: Mapping[str, Interval], nodes: Nodes, level: float
) -> str:
    """Which statements would narrow an answer that mixes reasons, with the width of the first metric under each.

    Empty where nothing is mixed, and where reference rows are there that the labelled ones contradict.
    """
    if not nodes.reasons or weight_of_reasons(nodes)[BY_REFERENCE]:
        return ""
    open_ = (name for name, law in laws.items() if law.by_node is not None and np.ptp(intervals[name]) > 0.0)
    name = next(open_, None)
    by_score = by_label = ""
    if name is not None:
        whole = float(np.ptp(intervals[name]))
        by_score = f" ({name} known to within {_width(laws[name], nodes, BY_SCORE, level)} instead of {_short(whole)})"
        by_label = f" ({_width(laws[name], nodes, BY_LABEL, level)})"
    said = f"Say missingness='random' or 'by_score'{by_score}"
    if weight_of_reasons(nodes)[BY_LABEL] >= REFUTED:
        said += f", 'by_label'{by_label}"
    return f"{said}, or give age=, reference= or propensity=."


def _width(law: MetricDistribution, nodes: Nodes, reason: int, level: float) -> str:
    """The width of a metric's interval at the nodes of one reason, each of which is nearly a Gaussian."""
    assert law.by_node is not None
    own = np.flatnonzero(nodes.reason == reason)
    weight, mean, var = (part[own] for part in law.by_node)
    if not weight.sum() > 0.0:
        return "nothing known"
    tail = 0.5 * (1.0 - level)
    low, high = (normal_mixture_quantile(q, weight / weight.sum(), mean, np.sqrt(var)) for q in (tail, 1.0 - tail))
    lowest, highest = law.support()
    return _short(min(high, highest) - max(low, lowest))


def _short(width: float) -> str:
    return f"{width:.2g}"


def met_in_words(chances: Mapping[str, float], enough: float) -> str:
    """Under which reasons a target is met and under which not, as the end of a sentence; empty where there is one."""
    if not chances:
        return ""
    met = {reason: chance >= enough for reason, chance in chances.items()}
    yes, no = (_listed(((r, chances[r]) for r, m in met.items() if m is side)) for side in (True, False))
    if not yes:
        return f"not met if labels are missing {no}"
    return f"met if labels are missing {yes}" + (f", not if {no}" if no else "")


def _listed(chances: Iterable[tuple[str, float]]) -> str:
    return " or ".join(f"{_IN_WORDS.get(reason, reason)} ({chance:.4g})" for reason, chance in chances)


def split_of_variance(law: MetricDistribution, nodes: Nodes) -> dict[str, float]:
    """Shares of a law's variance: due to the labels themselves, to calibration, and to the prevalence."""
    parts = law.by_node
    if parts is None or not law.var() > 0.0:
        return {"labels": 1.0, "calibration": 0.0, "prevalence": 0.0}
    within, between = float(parts.weight @ parts.var), float(parts.weight @ (parts.mean - law.mean()) ** 2)
    explained = 0.0
    if nodes.shift is not None and np.ptp(nodes.shift) > 0.0 and between > 0.0:
        # What a smooth function of the shift tells about the mean is due to the prevalence, the rest to
        # calibration.
        shift = (nodes.shift - nodes.shift.mean()) / nodes.shift.std()
        root = np.sqrt(parts.weight)
        curve = np.column_stack([np.ones(shift.size), shift, shift**2]) * root[:, None]
        fitted = curve @ np.linalg.lstsq(curve, root * parts.mean, rcond=None)[0]
        left = float(((root * parts.mean - fitted) ** 2).sum())
        explained = max(0.0, between - left)
    total = within + between
    return {
        "labels": within / total,
        "calibration": (between - explained) / total,
        "prevalence": explained / total,
    }
