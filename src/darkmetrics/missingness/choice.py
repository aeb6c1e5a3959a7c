"""From what a user passes as `missingness` to the mechanism it stands for."""

import difflib
from collections.abc import Callable
from typing import Any

from darkmetrics._text import a_kind_of
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.by_label import ByLabel
from darkmetrics.missingness.by_score import ByScore, Random
from darkmetrics.missingness.by_score_and_label import ByScoreAndLabel
from darkmetrics.missingness.delay_groups import GroupDelays
from darkmetrics.missingness.delayed import Delayed, FittedDelays
from darkmetrics.missingness.mixture import Unknown
from darkmetrics.missingness.propensity import Propensity
from darkmetrics.missingness.reference import Reference
from darkmetrics.wording import code

# Words for why labels are missing.
WORDS: dict[str, Callable[[], Mechanism]] = {
    "random": Random,
    "by_score": ByScore,
    "by_label": ByLabel,
    "by_score_and_label": ByScoreAndLabel,
    "delayed": Delayed,
    "unknown": Unknown,
}
# The same in the words of statisticians.
_ACRONYMS = {"mcar": "random", "mar": "by_score", "mnar": "by_label"}


def word_from(missingness: str) -> str:
    """Return the word for a mechanism in its only spelling.

    Examples
    --------
    >>> from darkmetrics.missingness.choice import word_from
    >>> word_from("MAR"), word_from("by_label")
    ('by_score', 'by_label')
    """
    word = _ACRONYMS.get(missingness.lower(), missingness)
    if word in WORDS:
        return word
    # Near words are suggested only if they are nearly the same: the wrong mechanism gives wrong answers.
    near = difflib.get_close_matches(word.lower(), WORDS, n=1, cutoff=0.75)
    if near:
        raise unknown_name("missingness", "mechanism", missingness, near)
    more = code(", or pass an object of dm.missing", "an object of dm.missing")
    raise InputError(
        "missingness",
        f"unknown mechanism {missingness!r}",
        "",
        f"Choose from {', '.join(map(repr, WORDS))}{more}.",
    )


def mechanism_from(missingness: Any) -> Mechanism:
    """Return the mechanism for a word, a mechanism, reference rows or None."""
    if missingness is None:
        return Unknown()
    if isinstance(missingness, Mechanism):
        return missingness
    if isinstance(missingness, Reference):
        return Unknown(reference=missingness)
    if isinstance(missingness, str):
        return WORDS[word_from(missingness)]()
    if isinstance(missingness, type) and issubclass(missingness, (Mechanism, Reference)):
        name = missingness.__name__
        raise InputError("missingness", f"{name} is a class", "", f"Pass dm.missing.{name}(...).")
    raise InputError(
        "missingness",
        f"expected a word such as 'by_score' or an object of dm.missing, got {a_kind_of(missingness)}",
        "",
        "Pass probabilities of the missing labels as dm.missing.Fixed(...), reference rows as "
        "dm.missing.Reference(labels, scores).",
    )


# What a mechanism states, in a word.
_STATED: dict[type[Mechanism], str] = {
    Random: "random",
    ByScore: "by_score",
    ByLabel: "by_label",
    ByScoreAndLabel: "by_score_and_label",
    Propensity: "propensity",
    Delayed: "delayed",
    FittedDelays: "delayed",
    GroupDelays: "delayed",
}


def stated_mechanism(mechanism: Mechanism, missingness: str | None) -> str | None:
    """Return what has been stated about why labels are missing; None if nothing has.

    A mechanism by its word, or "probabilities" if a mechanism of another kind gives them.
    """
    if missingness is not None:
        return missingness
    return None if isinstance(mechanism, Unknown) else _STATED.get(type(mechanism), "probabilities")
