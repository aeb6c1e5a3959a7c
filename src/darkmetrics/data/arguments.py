"""The set that the data of a public function stand for."""

from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._text import a_kind_of
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import threshold_number
from darkmetrics.exceptions import InputError


def evaluation_set_from(y_true: Any, y_score: Any, *, threshold: Any = None, **settings: Any) -> EvaluationSet:
    """The set that the data of a public function stand for: arrays, or a ready set that nothing is added to."""
    if not isinstance(y_true, EvaluationSet):
        # The `data` of an array is its buffer, which arrays of dates refuse to give.
        if not isinstance(y_true, np.ndarray) and isinstance(getattr(y_true, "data", None), EvaluationSet):
            raise InputError(
                f"y_true: got {a_kind_of(y_true)}, which is an answer. Its rows are result.data, and what they say "
                "about why labels are missing is result.diagnosis."
            )
        if y_score is None:
            raise InputError("y_score: missing. Give the scores, or an EvaluationSet as the only data.")
        return EvaluationSet(y_true, y_score, threshold=threshold, **settings)
    changed = [name for name, value in {"y_score": y_score, **settings}.items() if not _as_is(name, value, y_true)]
    if changed:
        raise InputError(f"{changed[0]}: an EvaluationSet already fixes it; give it when building the set.")
    if threshold is not None:
        _check_same_threshold(threshold_number(threshold), y_true.threshold)
    if y_true.n_rows == 0:
        raise InputError("y_true: the EvaluationSet has no rows. An evaluation needs at least one.")
    return y_true


def _as_is(name: str, value: Any, data: EvaluationSet) -> bool:
    """Whether an argument was left out, or says what the set says."""
    if value is None or name != "pos_label":
        return value is None
    # 1 is the default, and may not have been said. What holds values, or is none, compares in ways of its own.
    return not (frames.is_container(type(value)) or frames.is_missing(value)) and value in (data.pos_label, 1)


def _check_same_threshold(said: float, own: float | None) -> None:
    if own is None:
        raise InputError(
            f"threshold: {said!r}, but the decisions of the EvaluationSet were given (y_pred). Leave it out."
        )
    if said != own:
        raise InputError(
            f"threshold: {said!r}, but the EvaluationSet was decided at {own!r}. Leave it out, or move the set with "
            f".with_threshold({said!r})."
        )
