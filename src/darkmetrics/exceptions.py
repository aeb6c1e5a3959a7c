"""Errors and warnings, and the one way to suggest a name that was misspelt."""

import difflib
from collections.abc import Iterable


class InputError(ValueError):
    """Input that breaks a rule: the message names the argument, the rule and the first offending value."""


class UnknownNameError(InputError):
    """A metric, method or label model that does not exist; the message suggests the nearest one."""


class MethodError(InputError):
    """A method that cannot give the law of the metric asked for."""


class UndefinedMetricWarning(UserWarning):
    """A metric is 0/0 with a probability that shows: its value there follows `zero_division`."""


class CalibrationWarning(UserWarning):
    """Too few labels to calibrate on: the answer leans on a prior."""


class MissingnessWarning(UserWarning):
    """Missing rows look different from labelled ones, why they do changes the answer, and nobody has said why."""


class RefutedWarning(MissingnessWarning):
    """The reason that was stated for missing labels is one that the scores of the missing rows clearly refute."""


def unknown_name(argument: str, kind: str, name: str, choices: Iterable[str], hint: str = "") -> UnknownNameError:
    """The error for a name that is not among the choices, with the nearest one suggested."""
    known = sorted(choices)
    plain = name.lower()
    # What a name begins with says more than how many letters it shares: "acc" is accuracy, not mcc.
    begun = [choice for choice in known if choice.startswith(plain)] if plain else []
    near = [*begun, *difflib.get_close_matches(plain, known, n=1, cutoff=0.5)]
    suggestion = f" Did you mean {near[0]!r}?" if near else f" Choose from {', '.join(map(repr, known))}."
    return UnknownNameError(f"{argument}: unknown {kind} {name!r}.{suggestion}{' ' + hint if hint else ''}")
