"""What the two sets of a change rest on: what was assumed of each, and what was warned of, told apart by name."""

from collections.abc import Sequence

from darkmetrics._text import short
from darkmetrics.evaluation import Evaluation

# Reasons that were stated, as they stand in a sentence; those of one model are the same.
_REASONS = {
    None: "not stated",
    "unknown": "not stated",
    "random": "by score or at random",
    "by_score": "by score or at random",
    "by_label": "by label",
    "by_score_and_label": "by score and label",
    "propensity": "as the chances to get a label say",
    "delayed": "labels are late",
    "probabilities": "probabilities given",
}
_CUSTOMERS = (
    "A cluster of rows (clusters=) that is in both, such as a customer, is taken as two: what it does in one says "
    "nothing about the other."
)


def told_apart(names: Sequence[str], texts: Sequence[Sequence[str]]) -> list[str]:
    """What holds of both sets, as it is, and what holds of one alone, with its name."""
    after, before = texts
    found = [text if text in before else f"{names[0]}: {text}" for text in after]
    return found + [f"{names[1]}: {text}" for text in before if text not in after]


def assumed_in_words(names: Sequence[str], both: Sequence[Evaluation]) -> list[str]:
    """What was assumed about missing labels, a sentence for both or for each; nothing where no label is missing."""
    texts = [[_first(one.assumption)] if one.data.n_missing and one.assumption else [] for one in both]
    return told_apart([short(name) for name in names], texts)


def reasons_in_words(names: Sequence[str], both: Sequence[Evaluation]) -> list[str]:
    """That the two rest on different reasons for missing labels; nothing where they do not."""
    said = [_REASONS.get(one.stated, str(one.stated)) for one in both if one.data.n_missing]
    if len(set(said)) < 2:
        return []
    stated = ", ".join(f"{reason} ({short(name)})" for reason, name in zip(said, names, strict=True))
    return [f"Why labels are missing is not the same in both: {stated}. Part of the change may be that."]


def warned_in_words(names: Sequence[str], both: Sequence[Evaluation]) -> list[str]:
    """What was warned of when the two were evaluated: the first sentence of each; `warnings` of each has all of it."""
    after, before = ([_first(warned.message) for warned in one.warnings] for one in both)
    return list(
        dict.fromkeys(
            f"Warning for {whose}: {text}"
            for text in [*after, *before]
            for whose in ["both" if text in after and text in before else short(names[0 if text in after else 1])]
        )
    )


def customers_in_words(both: Sequence[Evaluation]) -> list[str]:
    """What is taken for granted about groups of rows that are in both; nothing where rows have none."""
    return [_CUSTOMERS] if all(one.data.groups is not None for one in both) else []


def _first(text: str) -> str:
    """The first sentence."""
    first = text.partition("\n")[0].partition(". ")[0]
    return first if first.endswith(".") else f"{first}."
