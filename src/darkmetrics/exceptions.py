"""Errors and warnings, and the one way to suggest a name that was misspelt."""

import difflib
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Self

from darkmetrics._text import printable

# What stands in quotes is the user's own: messages write it as Python does.
QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

# More digits than any number has that is meant: a message is to be read.
_LONG_NUMBER = re.compile(r"(\d{6})\d{34,}")


class InputError(ValueError):
    """Input that breaks a rule: the message names the argument, the rule and the first offending value.

    Attributes
    ----------
    argument : str
        What the message begins with and is about: an argument, or a column such as "label column 'y'"; empty where it
        is about no single one.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> try:
    ...     dm.evaluate([1, 0, None], [0.9, 0.2, 7.0], confidence_level=90)
    ... except dm.InputError as error:
    ...     error.argument
    'confidence_level'
    """

    def __init__(self, text: str, argument: str | None = None) -> None:
        text = _LONG_NUMBER.sub(lambda found: f"{found[1]}…({len(found[0])} digits)", text)
        super().__init__(text)
        if argument is None:  # a word before a colon; names that are no word, such as columns, are given
            head = text.partition(": ")[0]
            argument = head if head.isidentifier() else ""
        self.argument = argument

    def __str__(self) -> str:
        return printable(str(self.args[0]), keep="\n")

    @classmethod
    def about(cls, argument: object, rule: str) -> Self:
        """The error for an argument, a column or a file, whatever its name."""
        return cls(f"{argument}: {rule}", str(argument))

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The same error for a caller who has other names for the arguments.

        The argument that it is about is renamed, and, outside quotes, whatever else no plain sentence would hold: names
        with an underscore, and code.
        """
        argument = names.get(self.argument, self.argument)
        code = sorted((name for name in names if "_" in name), key=len, reverse=True)
        known = "|".join([QUOTED, *(rf"(?<!\w){re.escape(name)}(?!\w)" for name in code)])
        rule = re.sub(known, lambda found: names.get(found[0], found[0]), self.args[0][len(self.argument) :])
        return type(self)(argument + rule, argument)

    def also(self, text: str) -> Self:
        """The same error with more said at its end."""
        return type(self)(f"{self.args[0]} {text}", self.argument)


class UnknownNameError(InputError):
    """A metric, method or label model that does not exist; the message suggests the nearest one."""


class MissingKeyError(UnknownNameError, KeyError):
    """A name that a result does not have: also a KeyError, as mappings raise, printed as it is written."""


class UnknownArgumentError(UnknownNameError, TypeError):
    """An argument that a function does not take, with where it belongs: also a TypeError, as Python raises."""


class MethodError(InputError):
    """A method that cannot give the law of the metric asked for."""


class UndefinedMetricWarning(UserWarning):
    """A metric is 0/0 with a probability that shows: its value there follows `zero_division`."""


class CalibrationWarning(UserWarning):
    """There are too few labels to calibrate on, or none where labels are missing: a prior dominates the estimates."""


class MissingnessWarning(UserWarning):
    """The estimates depend on the missingness mechanism, and none was stated.

    Or metrics contradict those on the reference rows; or labels that arrived after `as_of` are used because their times
    were not passed; or fractions of positives change quickly with time, which ages alone do not separate from delayed
    labels.
    """


class AssumptionWarning(MissingnessWarning):
    """The rows clearly contradict what was assumed about missing labels: a mechanism, or equal delays of all rows."""


class RecordedWarning(NamedTuple):
    """A warning that is part of a result: the name of its category, and what it says."""

    category: str
    message: str

    def __str__(self) -> str:
        return self.message


_RECORDED: ContextVar[list[RecordedWarning] | None] = ContextVar("darkmetrics_recorded", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """A Python warning, at the user's own line, that the result being made keeps as well (`record_warnings`)."""
    message = printable(message, keep="\n")
    kept = _RECORDED.get()
    if kept is not None:
        kept.append(RecordedWarning(category.__name__, message))
    warnings.warn(message, category, stacklevel=level_of_caller())


def level_of_caller() -> int:
    """The stack level of the first line outside this package, seen from the function that asks."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def record_warnings() -> Iterator[list[RecordedWarning]]:
    """What is warned of inside the block; a block around this one hears it too.

    Not `warnings.catch_warnings`, which changes filters for all threads, and hears nothing that a user silenced.
    """
    said: list[RecordedWarning] = []
    outer = _RECORDED.get()
    token = _RECORDED.set(said)
    try:
        yield said
    finally:
        _RECORDED.reset(token)
        if outer is not None:
            outer += said


def unknown_name(argument: str, kind: str, name: str, choices: Iterable[str], hint: str = "") -> UnknownNameError:
    """The error for a name that is not among the choices, with the nearest one suggested."""
    known = sorted(choices)
    plain = name.lower()
    # What a name begins with says more than how many letters it shares: "acc" is accuracy, not mcc.
    begun = [choice for choice in known if choice.startswith(plain)] if plain else []
    near = [*begun, *difflib.get_close_matches(plain, known, n=1, cutoff=0.5)]
    suggestion = f" Choose from {', '.join(map(repr, known))}." if known else ""
    suggestion = f" Did you mean {near[0]!r}?" if near else suggestion
    return UnknownNameError.about(argument, f"unknown {kind} {name!r}.{suggestion}{' ' + hint if hint else ''}")
