"""From flat options to a mechanism of `dm.missing`: options that are passed fill the fields of one class."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from darkmetrics._text import number_from
from darkmetrics.cli.options import DelayOptions, MechanismOptions, MissingnessOptions
from darkmetrics.exceptions import InputError

if TYPE_CHECKING:
    from darkmetrics.missing import Mechanism

# Options that decide which class is meant where no word is passed.
_DELAYED = ("scored_at", "labeled_at", "as_of", "maturity", "reviewed")
# The field of an option that has another name.
_FIELDS = {"prob": "probability"}


def mechanism_from(options: MechanismOptions | DelayOptions, reference: Any = None) -> str | Mechanism | None:
    """Return the mechanism that the options describe; a word, or None, if there is nothing else to state.

    `reference` are the rows of the file that --reference names.
    """
    from darkmetrics import missing

    names = [field.name for field in fields(MissingnessOptions)]
    passed = {name: getattr(options, name) for name in names if getattr(options, name, None) is not None}
    word: str | None = passed.pop("missingness", None)
    if not passed:
        return word
    if "reference" in passed:
        passed["reference"] = reference
    kind = _kind(word, passed)
    timed = next((name for name in ("labeled_at", "as_of", "maturity") if name in passed), None)
    if timed is not None and "scored_at" not in passed:
        fix = "Pass --scored-at, the column with the time when each row was scored."
        raise InputError(_option(timed), "no times of scoring", "", fix)
    if kind is missing.Delayed and "propensity" in passed:
        passed["reviewed"] = missing.Propensity(passed.pop("propensity"))
    if "prob" in passed:
        number = number_from(passed["prob"])
        passed["prob"] = passed["prob"] if number is None else _probability(number)
    known = {field.name for field in fields(kind)}
    odd = next((name for name in passed if _FIELDS.get(name, name) not in known), None)
    if odd is not None:
        stated = f"--missingness {word}" if word else f"{_option(next(name for name in passed if name != odd))}"
        raise InputError(_option(odd), f"cannot be combined with {stated}", "", "Leave one of the two out.")
    settings = {_FIELDS.get(name, name): value for name, value in passed.items()}
    mechanism: Mechanism = kind(**settings)
    return mechanism


def _kind(word: str | None, passed: Mapping[str, Any]) -> Any:
    """Return the class that a word, or the options alone, stand for."""
    from darkmetrics import missing
    from darkmetrics.missingness.choice import WORDS, word_from

    implied: type[Mechanism] = missing.Unknown
    for names, kind in ((("propensity",), missing.Propensity), (_DELAYED, missing.Delayed), (("prob",), missing.Fixed)):
        if any(name in passed for name in names):
            implied = kind
    return implied if word is None else WORDS[word_from(word)]


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _probability(number: float) -> float:
    if not 0.0 <= number <= 1.0:
        raise InputError("--prob", f"{number:g}", "A probability must lie in [0, 1].")
    return number
