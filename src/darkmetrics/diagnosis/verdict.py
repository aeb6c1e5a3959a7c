"""The words of a diagnosis: what the data say, what they cannot say, what to do next."""

from typing import TYPE_CHECKING

import numpy as np

from darkmetrics._kernels.mixture_fit import LEAST_ROWS
from darkmetrics.diagnosis.parts import LEVEL

if TYPE_CHECKING:
    from darkmetrics.diagnosis.result import Diagnosis

_FEW_LABELS = 5


def missingness(found: "Diagnosis") -> str:
    """Why labels are missing, in a few words (see `Diagnosis.missingness`)."""
    if found.census["missing"] == 0:
        return "no missing labels"
    if found.score_difference is None:
        return "cannot be told"
    if not found.score_difference.differs:
        # With few rows on either side even a large difference would not show.
        few = min(found.census["labelled"], found.census["missing"]) < LEAST_ROWS
        return "cannot be told" if few else "looks random"
    if found.mixture is not None and found.mixture.refutes_by_label:
        return "not by label alone"
    return "by score or by label"


def census(found: "Diagnosis") -> str:
    """How many rows there are, with and without a label."""
    n, m = found.census["rows"], found.census["missing"]
    return f"{n:,} {'row' if n == 1 else 'rows'}: {n - m:,} labelled, {m:,} missing ({m / n:.1%})"


def sentences(found: "Diagnosis") -> list[str]:
    """The verdict, sentence by sentence."""
    kind = missingness(found)
    parts = (
        _of_groups(found),
        _of_scores(found, kind),
        _of_prevalence(found, kind),
        _of_calibration(found),
        _of_reference(found),
        "" if found.groups else _advice(found, kind),
    )
    return [text for text in parts if text]


def _of_groups(found: "Diagnosis") -> str:
    if not found.groups or not found.census["missing"]:
        return ""
    return (
        f"These are the rows of {found.groups:,} groups, each with a label model of its own. Where groups differ, the "
        "labelled and missing rows of all of them together differ too, whatever the reason in each: ask the groups."
    )


def _of_scores(found: "Diagnosis", kind: str) -> str:
    difference = found.score_difference
    if kind == "no missing labels":
        return "No label is missing, so nothing has to be assumed about any."
    if difference is None:
        return f"These rows cannot say why labels are missing: {found.absent['score_difference']}"
    if kind == "cannot be told":
        return "There are too few rows to compare the scores of labelled and missing ones."
    p = _p(difference.p_value)
    if kind == "looks random":
        return (
            f"Missing rows have about the same scores as labelled ones ({p}): as far as scores can tell, labels are "
            "missing at random."
        )
    if difference.words == "differently spread":
        text = f"The scores of missing rows are spread differently from those of labelled ones ({p})"
    else:
        text = (
            f"Missing rows have {difference.words} scores than labelled ones "
            f"(higher in {difference.effect:.0%} of pairs, {p})"
        )
    if found.mixture is None:
        return f"{text}; there is too little to check whether 'by label' could explain it."
    if found.mixture.refutes_by_label:
        mixture = f"no mixture of labelled positives and negatives ({_p(found.mixture.p_value)})"
        return f"{text} and are {mixture}, so 'by label' alone is refuted."
    return f"{text}; both 'by score' and 'by label' explain it, and the data cannot tell which is true."


def _of_prevalence(found: "Diagnosis", kind: str) -> str:
    """The share of positives among missing rows, and the metric that moves most."""
    # What was just refuted is left to the table.
    readings = {k: r for k, r in found.readings.items() if not (k == "by label" and kind == "not by label alone")}
    if not readings:
        return ""
    shown = [f"{reading.prevalence.mean:.1%} if {name}" for name, reading in readings.items()]
    text = f"Positive missing rows: {_listed(shown)}"
    if found.labelled_prevalence is not None:
        text += f" (labelled ones: {found.labelled_prevalence:.1%})"
    # From the first reading to the one that is farthest from it.
    first, *others = readings.values()
    moves = {
        (name, i): abs(other.metrics[name].mean - first.metrics[name].mean)
        for i, other in enumerate(others)
        for name in first.metrics
    }
    moves = {key: move for key, move in moves.items() if np.isfinite(move)}
    if moves and max(moves.values()) >= 0.0005:
        name, i = max(moves, key=lambda key: moves[key])
        text += f"; {name} moves most, from {first.metrics[name].mean:.3f} to {others[i].metrics[name].mean:.3f}"
    return f"{text}."


def _of_calibration(found: "Diagnosis") -> str:
    counts = {which: found.census[which] for which in ("positive", "negative")}
    which = min(counts, key=lambda name: counts[name])
    few = counts[which]
    if found.census["labelled"] and few < _FEW_LABELS:
        number = "no" if few == 0 else f"only {few}"
        return f"There {'is' if few == 1 else 'are'} {number} {which} label{'' if few == 1 else 's'} to learn from."
    if found.calibration is not None and not found.calibration.is_adequate:
        return (
            f"The calibration curve does not fit the labelled rows ({_p(found.calibration.p_value)}): see the table, "
            "and consider label_models.Calibrated('isotonic')."
        )
    return ""


def _of_reference(found: "Diagnosis") -> str:
    check = found.reference
    if check is None:
        return ""
    if check.p_value >= LEVEL:
        return f"The labelled rows agree with the reference rows ({_p(check.p_value)})."
    if not check.contradicts:
        return f"The labelled rows nearly agree with the reference rows: {check.gap:.1%} apart on average."
    return (
        f"The labelled rows contradict the reference rows ({_p(check.p_value)}; {check.positive:.1%} are positive "
        f"where {check.expected:.1%} were to be expected): either something has drifted since the reference was taken, "
        "or labels are missing because of what they are, and these data cannot say which."
    )


def _advice(found: "Diagnosis", kind: str) -> str:
    give = "give calibration=(labels, scores) of fully labelled rows"
    if kind == "no missing labels":
        return ""
    if found.reference is not None and found.reference.contradicts:
        return "If you know that it drifted, leave calibration= out; if you know that it did not, keep it."
    if found.n_reference:
        return "With reference rows nothing has to be stated about why labels are missing, as long as nothing drifts."
    if kind == "cannot be told":
        return f"{give.capitalize()}."
    if kind == "looks random":
        return "Nothing has to be done; missingness='random' states it."
    if kind == "not by label alone":
        return f"State missingness='by_score' if the label plays no part beyond the score; if it may, {give}."
    return f"State missingness='by_score' or missingness='by_label' if you know it, or {give}."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"


def _p(p_value: float) -> str:
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"
