"""From the words a user gives to the label model they stand for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from darkmetrics._vocabulary import MECHANISMS
from darkmetrics.calibrators.choice import WORDS as CALIBRATORS
from darkmetrics.exceptions import InputError, UnknownNameError, reference_from, unknown_name
from darkmetrics.missingness.base import LabelModel
from darkmetrics.missingness.by_label import LabelShift
from darkmetrics.missingness.by_score import Calibrated
from darkmetrics.missingness.by_score_and_label import Selection
from darkmetrics.missingness.delay_groups import GroupDelays
from darkmetrics.missingness.delayed import FittedDelays, LateLabels
from darkmetrics.missingness.features import Features
from darkmetrics.missingness.given import Given, Half, Prevalence
from darkmetrics.missingness.mixture import Auto
from darkmetrics.missingness.propensity import Propensity
from darkmetrics.missingness.score_table import ReferenceLike

_KNOWN: dict[str, type[LabelModel]] = {
    "half": Half,
    "prevalence": Prevalence,
    "given": Given,
    "propensity": Propensity,
    "late": LateLabels,
}
# These learn from labels, and may learn from reference rows too.
_LEARNT: dict[str, Callable[..., LabelModel]] = {
    "auto": Auto,
    "calibrated": Calibrated,
    "label_shift": LabelShift,
    "selection": Selection,
}
# What can be said about why labels are missing.
REASONS = tuple(MECHANISMS)
# The same in the words of statisticians.
_ACRONYMS = {"mcar": "random", "mar": "by_score"}


def reason_from(missingness: Any) -> str | None:
    """The reason that was stated, in our own words; None: nothing was.

    Examples
    --------
    >>> from darkmetrics.missingness.choice import reason_from
    >>> reason_from("MAR"), reason_from("by_label")
    ('by_score', 'by_label')
    """
    if missingness is None:
        return None
    word = missingness.lower() if isinstance(missingness, str) else ""
    if word == "mnar":
        raise UnknownNameError.about(
            "missingness",
            f"{missingness!r} may mean two things. Say 'by_label' if the label alone decides, or 'by_score_and_label' "
            "with reference rows if the score does too.",
        )
    if word in _ACRONYMS:
        return _ACRONYMS[word]
    if not isinstance(missingness, str) or missingness not in MECHANISMS:
        raise unknown_name("missingness", "mechanism", str(missingness), MECHANISMS)
    return missingness


def label_model_from(
    label_model: Any,
    *,
    missingness: Any = None,
    reference: ReferenceLike | None = None,
    calibration: ReferenceLike | None = None,
    propensity: bool = False,
    strata: bool = False,
    age: bool = False,
) -> LabelModel:
    """The label model that a word or a record stands for, or the one for a stated mechanism.

    `propensity`, `strata`, `age`: whether rows come with them, for the model to use.
    """
    reference = reference_from(reference, calibration)
    stated = {"missingness": missingness, "reference": reference, "propensity": propensity, "strata": strata}
    if age:
        return _by_age(label_model, stated)
    if propensity:
        del stated["propensity"]
        return _select_by_column("propensity", label_model, (Propensity, Features), stated)
    if strata:
        return _within_strata(label_model_from(label_model, missingness=missingness, reference=reference))
    missingness = reason_from(missingness)
    if missingness is not None:
        if not (isinstance(label_model, str) and label_model == "auto"):
            raise InputError(
                f"missingness: {missingness!r}, but label_model={_named(label_model)} already says where probabilities "
                "come from. Give one of them."
            )
        label_model = MECHANISMS[missingness]
    if isinstance(label_model, str) and label_model in _LEARNT:
        return _LEARNT[label_model](reference=reference)
    if isinstance(label_model, str) and label_model in CALIBRATORS:
        return Calibrated(label_model, reference=reference)
    if reference is not None:
        raise InputError(
            f"reference: label_model={_named(label_model)} does not take it here. Give it to the label model itself, "
            "such as label_models.Calibrated(reference=(labels, scores)), or leave label_model out."
        )
    if isinstance(label_model, LabelModel):
        return label_model
    if isinstance(label_model, str):
        if label_model not in _KNOWN:
            raise unknown_name("label_model", "label model", label_model, [*_KNOWN, *_LEARNT])
        return _KNOWN[label_model]()
    words = ", ".join(map(repr, [*_LEARNT, *_KNOWN]))
    raise InputError(f"label_model: expected {words}, a label model or probabilities, got {label_model!r}.")


def _select_by_column(argument: str, label_model: Any, types: tuple[type[LabelModel], ...], others: Any) -> LabelModel:
    """Return the model for rows with propensities or ages, which state why labels are missing."""
    for name, value in others.items():
        if value is not None and value is not False:
            raise InputError(f"{argument}: {name} also says why labels are missing. Give one of them.")
    if isinstance(label_model, types):
        return label_model
    if label_model is None or (isinstance(label_model, str) and label_model in ("auto", _TAKEN[types[0]])):
        return types[0]()
    raise InputError(f"{argument}: label_model={_named(label_model)} does not use it. Leave one of them out.")


def _by_age(label_model: Any, others: dict[str, Any]) -> LabelModel:
    """The model for rows with ages, which say why labels are missing."""
    is_known = others["propensity"]
    others = {**others, "propensity": None}
    if others["missingness"] == "late":
        others["missingness"] = None
    for name, value in others.items():
        if value is not None and value is not False:
            raise InputError(f"age: {name} also says why labels are missing. Give one of them.")
    if isinstance(label_model, LateLabels):
        if is_known and label_model.reviewed != "propensity":
            raise InputError(
                f"propensity: LateLabels(reviewed={label_model.reviewed!r}) does not use it. Set "
                "reviewed='propensity', or leave propensity out."
            )
        return label_model
    if label_model is None or (isinstance(label_model, str) and label_model in ("auto", "late")):
        return LateLabels(reviewed="propensity" if is_known else None)
    raise InputError(f"age: label_model={_named(label_model)} does not use it. Leave one of them out.")


def _within_strata(model: LabelModel) -> LabelModel:
    if isinstance(model, Auto) and model.reference is not None:
        raise InputError(
            "strata: reference rows cannot be split by them. Leave strata or reference out, or state "
            "missingness='by_score' or 'by_label', which takes the reference rows as they are."
        )
    if isinstance(model, (Auto, Calibrated, LabelShift)):
        return replace(model, strata=True)
    raise InputError(
        f"strata: {type(model).__name__} does not fit within them. Auto, Calibrated and LabelShift do: leave strata "
        "out, or state missingness='by_score' or 'by_label'."
    )


# What a model that learns takes for the reason, as if it had been stated.
_TAKEN: dict[type[LabelModel], str] = {
    Calibrated: "by_score",
    LabelShift: "by_label",
    Selection: "by_score_and_label",
    Propensity: "propensity",
    LateLabels: "late",
    FittedDelays: "late",
    GroupDelays: "late",
}


def stated_reason(model: LabelModel, missingness: str | None) -> str | None:
    """What has been said about why labels are missing; None when nothing has, and the default has to see for itself.

    A mechanism by its name, or "probabilities" where a model gives these whatever the reason.
    """
    if missingness is not None:
        return missingness
    return None if isinstance(model, Auto) else _TAKEN.get(type(model), "probabilities")


def _named(label_model: Any) -> str:
    return repr(label_model) if isinstance(label_model, (str, int, float)) else type(label_model).__name__
