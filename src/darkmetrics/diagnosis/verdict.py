"""The words of a diagnosis: what the data say, what they cannot say, what to do next."""

from typing import TYPE_CHECKING

import numpy as np

from darkmetrics._kernels.hypothesis_tests import LEAST_ROWS
from darkmetrics.missingness.checks import LEVEL, p_text
from darkmetrics.tables import number_text

if TYPE_CHECKING:
    from darkmetrics.diagnosis.mechanisms import MechanismEstimate
    from darkmetrics.diagnosis.result import Diagnosis
    from darkmetrics.missingness.arrival import Arrival

_FEW_LABELS = 5


def missingness(diagnosis: "Diagnosis") -> str:
    """Why labels are missing, in a few words (see `Diagnosis.missingness`)."""
    return "late" if diagnosis.arrival is not None and diagnosis.arrival.tells else _by_scores(diagnosis)


def _by_scores(diagnosis: "Diagnosis") -> str:
    """The same, as far as scores can tell."""
    if diagnosis.counts["missing"] == 0:
        return "no missing labels"
    if diagnosis.score_difference is None:
        return "cannot be told"
    if not diagnosis.score_difference.differs:
        # With few rows on either side even a large difference would not show.
        is_small = min(diagnosis.counts["labeled"], diagnosis.counts["missing"]) < LEAST_ROWS
        return "cannot be told" if is_small else "no difference in scores"
    if diagnosis.mixture is not None and diagnosis.mixture.refutes_by_label:
        return "not by label alone"
    return "by score or by label"


def size(diagnosis: "Diagnosis") -> str:
    """How many rows there are, with and without a label."""
    n, m = diagnosis.counts["rows"], diagnosis.counts["missing"]
    return f"{n:,} {'row' if n == 1 else 'rows'}: {n - m:,} labeled, {m:,} missing ({m / n:.1%})"


def sentences(diagnosis: "Diagnosis") -> list[str]:
    """The verdict, sentence by sentence."""
    kind = _by_scores(diagnosis)
    parts = (
        _of_groups(diagnosis),
        _of_chances(diagnosis, kind),
        _of_scores(diagnosis, kind),
        _of_prevalence(diagnosis, kind),
        *([] if diagnosis.arrival is None else diagnosis.arrival.in_short()),
        _of_calibration(diagnosis),
        _of_reference(diagnosis),
        _of_overlap(diagnosis),
        "" if diagnosis.groups else _advice(diagnosis, kind),
    )
    return [text for text in parts if text]


def _of_chances(diagnosis: "Diagnosis", kind: str) -> str:
    """Before all else where chances are known: what scores say would read as if it spoke against the answer."""
    if diagnosis.stated != "propensity" or kind == "no missing labels":
        return ""
    return "The chances given say why labels are missing, and the answer uses them. What the scores alone would say:"


def _of_groups(diagnosis: "Diagnosis") -> str:
    if not diagnosis.groups or not diagnosis.counts["missing"]:
        return ""
    return (
        f"These are the rows of {diagnosis.groups:,} groups, each with a label model of its own. Where groups differ, "
        "the labeled and missing rows of all of them together differ too, whatever the mechanism in each: ask the "
        "groups."
    )


def _of_scores(diagnosis: "Diagnosis", kind: str) -> str:
    difference = diagnosis.score_difference
    if kind == "no missing labels":
        return "No label is missing, so nothing has to be assumed about any."
    if difference is None:
        return f"These rows cannot say why labels are missing: {diagnosis.absent['score_difference']}"
    if kind == "cannot be told":
        return "There are too few rows to compare the scores of labeled and missing ones."
    p = p_text(difference.p_value)
    if kind == "no difference in scores":
        return (
            f"Missing rows have about the same scores as labeled ones ({p}). That fits 'at random', and it fits score "
            "and label pulling in opposite directions: scores cannot tell."
        )
    if difference.words == "differently spread":
        text = f"The scores of missing rows are spread differently from those of labeled ones ({p})"
    else:
        text = (
            f"Missing rows have {difference.words} scores than labeled ones "
            f"(higher in {difference.effect:.0%} of pairs, {p})"
        )
    if diagnosis.mixture is None:
        return f"{text}; there is too little to check whether 'by label' could explain it."
    if diagnosis.mixture.refutes_by_label:
        mixture = f"no mixture of labeled positives and negatives ({p_text(diagnosis.mixture.p_value)})"
        return f"{text} and are {mixture}, so 'by label' alone is refuted."
    cannot = "the scores" if missingness(diagnosis) == "late" else "the data"
    return f"{text}; both 'by score' and 'by label' explain it, and {cannot} cannot tell which is true."


def _of_prevalence(diagnosis: "Diagnosis", kind: str) -> str:
    """The share of positives among missing rows, and the metric that moves most."""
    # What was just refuted is left to the table.
    mechanisms = {
        k: r for k, r in diagnosis.mechanisms.items() if not (k == "by label" and kind == "not by label alone")
    }
    if not mechanisms:
        return ""
    texts = [f"{mechanism.prevalence.mean:.1%} if {name}" for name, mechanism in mechanisms.items()]
    text = f"Positive missing rows: {_listed(texts)}"
    if diagnosis.labeled_prevalence is not None:
        text += f" (labeled ones: {diagnosis.labeled_prevalence:.1%})"
    return text + _largest_move(list(mechanisms.values())) + "."


def _largest_move(mechanisms: "list[MechanismEstimate]") -> str:
    """Return the metric that moves most from the first mechanism to another, in the digits printed; or nothing."""
    first, *others = mechanisms
    moves = []
    for name, start in first.metrics.items():
        for other in others:
            end = other.metrics[name]
            distance = abs(_printed(end.mean) - _printed(start.mean))
            if abs(end.mean - start.mean) >= 0.0005 and distance > 0.0:
                moves.append((distance, f"; {name} moves most, from {_shown(start.mean)} to {_shown(end.mean)}"))
    return max(moves, key=lambda move: move[0])[1] if moves else ""


def _shown(value: float) -> str:
    return number_text(value, 3)


def _printed(value: float) -> float:
    """The number that a reader sees."""
    return float(_shown(value).replace(",", "")) if np.isfinite(value) else np.nan


def _of_calibration(diagnosis: "Diagnosis") -> str:
    counts = {label: diagnosis.counts[label] for label in ("positive", "negative")}
    label = min(counts, key=lambda name: counts[name])
    n_labels = counts[label]
    if diagnosis.counts["labeled"] and n_labels < _FEW_LABELS:
        number = "no" if n_labels == 0 else f"only {n_labels}"
        verb, ending = ("is", "") if n_labels == 1 else ("are", "s")
        return f"There {verb} {number} {label} label{ending} to learn from."
    check = diagnosis.calibration
    if check is None or check.is_adequate:
        return ""
    where = "see the table"
    if (off := check.off) is not None:
        where = (
            f"{off.positive:.1%} of {off.rows:,} rows with scores from {off.low:.3g} to {off.high:.3g} are positive "
            f"where it says {off.predicted:.1%}"
        )
    beyond = f" ({p_text(check.p_value)})" if check.p_value < LEVEL else " everywhere"
    return (
        f"The calibration curve does not fit the labeled rows{beyond}: {where}; consider missing.ByScore('isotonic')."
    )


def _of_reference(diagnosis: "Diagnosis") -> str:
    check = diagnosis.reference
    if check is None:
        return ""
    if check.p_value >= LEVEL:
        return f"The labeled rows agree with the reference rows ({p_text(check.p_value)})."
    if not check.contradicts:
        return f"The labeled rows nearly agree with the reference rows: {check.gap:.1%} apart on average."
    return (
        f"The labeled rows contradict the reference rows ({p_text(check.p_value)}; {check.positive:.1%} are positive "
        f"where {check.expected:.1%} were to be expected): either something has drifted since the reference was taken, "
        "or labels are missing because of what they are, and these data cannot say which."
    )


def _of_overlap(diagnosis: "Diagnosis") -> str:
    if diagnosis.overlap is None or diagnosis.overlap.is_wide:
        return ""
    return f"{diagnosis.overlap.words}: label a random sample of them if you can."


def _advice(diagnosis: "Diagnosis", kind: str) -> str:
    give = "give missingness=dm.missing.Reference(labels, scores) of fully labeled rows"
    time = "; where labels are late, pass missingness=dm.missing.Delayed(age=...)"
    if kind == "no missing labels":
        return ""
    if diagnosis.reference is not None and diagnosis.reference.contradicts:
        return "If you know that it drifted, leave the reference rows out; if you know that it did not, keep it."
    if diagnosis.n_reference:
        return "With reference rows nothing has to be stated about why labels are missing, as long as nothing drifts."
    if diagnosis.arrival is not None and diagnosis.stated in (None, "delayed"):
        return _of_ages(diagnosis.arrival)
    if diagnosis.stated is not None:
        return _of_statement(diagnosis.stated, kind, give)
    if kind == "cannot be told":
        return f"{give.capitalize()}{time}."
    if kind == "no difference in scores":
        return "State missingness='random' if they are, by design; equal scores alone do not show it."
    if kind == "not by label alone":
        return f"State missingness='by_score' if the label plays no part beyond the score; if it may, {give}."
    return f"State missingness='by_score' or missingness='by_label' if you know it, or {give}{time}."


def _of_ages(arrival: "Arrival") -> str:
    """What ages mean for the answer; what is in doubt about delays has been said."""
    if not arrival.tells:
        return ""
    if any(check.is_clear for check in arrival.checks):
        return "Ages say which labels are still to come, but delays are not what they are taken for: see above."
    return (
        "With ages nothing has to be stated about why labels are missing, as long as delays stay what they were; every "
        "label that comes checks it."
    )


def _of_statement(stated: str, kind: str, give: str) -> str:
    """What the data mean for a mechanism that has been stated."""
    if stated == "probabilities":
        return "The label model that was given has probabilities of its own, whatever the mechanism."
    if stated == "propensity":
        return ""  # said before all else
    if stated == "unknown":
        return f"missingness='unknown' keeps both answers; to tell them apart, {give}."
    statement = f"'{stated.replace('_', ' ')}' was stated, and"
    if stated == "by_label" and kind == "not by label alone":
        return (
            f"{statement} the scores refute it: if the label plays no part beyond the score it is "
            f"missingness='by_score'; if it may, {give}."
        )
    if kind == "no difference in scores":
        return f"{statement} the scores do not speak against it."
    if stated == "random" and kind != "cannot be told":
        answer = "the answer given is the one for 'by score'"
        return f"{statement} the scores refute it; {answer}. If the label may play a part, {give}."
    return f"{statement} the scores cannot say otherwise; to check it, {give}."


def _listed(items: list[str]) -> str:
    return items[0] if len(items) == 1 else f"{', '.join(items[:-1])} and {items[-1]}"
