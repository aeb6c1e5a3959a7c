"""From the word a user gives to the label model it stands for."""

from typing import Any

from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.label_models.base import LabelModel
from darkmetrics.label_models.given import Given
from darkmetrics.label_models.maxent import Half, Prevalence

_WORDS: dict[str, type[LabelModel]] = {"half": Half, "prevalence": Prevalence, "given": Given}


def label_model_from(label_model: Any) -> LabelModel:
    """The label model that a word or a record stands for."""
    if isinstance(label_model, LabelModel):
        return label_model
    if isinstance(label_model, str):
        if label_model not in _WORDS:
            raise unknown_name("label_model", "label model", label_model, _WORDS)
        return _WORDS[label_model]()
    raise InputError(
        f"label_model: expected {', '.join(map(repr, _WORDS))}, a label model or probabilities, got {label_model!r}."
    )
