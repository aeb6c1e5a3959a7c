"""Errors and warnings: records that are worded once, and the one way to suggest a name that was misspelled."""

import difflib
import inspect
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NamedTuple, Self

from darkmetrics.wording import Message, named, reword

# What stands in quotes is the user's own: messages write it as Python does.
QUOTED = r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""

# More digits than any number has that is meant: a message is to be read.
_LONG_NUMBER = re.compile(r"(\d{6})\d{34,}")


class InputError(ValueError):
    """Input that breaks a rule: the message names the argument, the first offending value, the rule and the fix.

    Attributes
    ----------
    argument : str
        What the error is about: an argument, or a column such as "y_true column 'fraud'"; empty where it is about no
        single one.
    finding : str
        What was found, without a final period.
    rule : str
        What input must be like, in sentences; may be empty.
    fix : str
        What to do, in sentences; may be empty.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> try:
    ...     dm.evaluate([1, 0, None], [0.9, 0.2, 7.0], confidence_level=90)
    ... except dm.InputError as error:
    ...     error.argument
    'confidence_level'
    """

    def __init__(self, argument: str, finding: str | None = None, rule: str = "", fix: str = "") -> None:
        # The old form: one text. It goes when every error is a record.
        self.is_old = finding is None
        if finding is None:
            head, _, text = argument.partition(": ")
            argument, finding, rule = (head, "", text) if head.isidentifier() else ("", "", argument)
        super().__init__(argument, finding, rule, fix)

    def __reduce__(self) -> tuple[type, tuple[str, ...], dict[str, object]]:
        """Pickle and copy the parts with their references."""
        return type(self), self.args, self.__dict__

    @property
    def argument(self) -> str:
        """What the error is about."""
        return self._part(0)

    @property
    def finding(self) -> str:
        """What was found."""
        return self._part(1)

    @property
    def rule(self) -> str:
        """What input must be like."""
        return self._part(2)

    @property
    def fix(self) -> str:
        """What to do."""
        return self._part(3)

    def _part(self, index: int) -> str:
        return _LONG_NUMBER.sub(lambda match: f"{match[1]}…({len(match[0])} digits)", Message(self.args[index]))

    def __str__(self) -> str:
        finding = self.finding
        sentences = filter(None, [finding and f"{finding}.", self.rule, self.fix])
        return ": ".join(filter(None, [self.argument, " ".join(sentences)]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def replace(self, **parts: str) -> Self:
        """Return the same error with other parts, such as `argument=`."""
        names = ("argument", "finding", "rule", "fix")
        error = type(self)(*(parts.get(name, part) for name, part in zip(names, self.args, strict=True)))
        error.is_old = self.is_old
        return error

    def worded_for(self, names: Mapping[str, str]) -> Self:
        """Return the same error for a caller who has other names for the arguments (`wording.reword`)."""
        if self.is_old:
            return self._renamed_by_expression(names)
        argument = self.args[0]
        argument = named(argument) if argument.isidentifier() else argument
        argument, finding, rule, fix = (reword(part, names) for part in (argument, *self.args[1:]))
        return self.replace(argument=argument, finding=finding, rule=rule, fix=fix)

    @classmethod
    def about(cls, argument: object, rule: str) -> Self:
        """The old form for an argument, a column or a file, whatever its name. It goes with the old form of errors."""
        error = cls(str(argument), "", rule)
        error.is_old = True
        return error

    def renamed(self, names: Mapping[str, str]) -> Self:
        """The old name of `worded_for`."""
        return self.worded_for(names)

    def _renamed_by_expression(self, names: Mapping[str, str]) -> Self:
        """The same error for a caller who has other names for the arguments, in the old form.

        The argument that it is about is renamed, and, outside quotes, whatever else no plain sentence would hold: names
        with an underscore, and code.
        """
        code = sorted((name for name in names if "_" in name), key=len, reverse=True)
        known = "|".join([QUOTED, *(rf"(?<!\w){re.escape(name)}(?!\w)" for name in code)])
        texts = (re.sub(known, lambda match: names.get(match[0], match[0]), text) for text in self.args[1:])
        return self.replace(
            **dict(zip(("finding", "rule", "fix"), texts, strict=True)),
            argument=names.get(self.args[0], self.args[0]),
        )

    def also(self, text: str) -> Self:
        """The same error with more said at its end: the old way to `replace` the fix."""
        return self.replace(fix=" ".join(filter(None, [self.args[3], text])))


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
    """A warning that is part of a result: the name of its category, and its message, which keeps references."""

    category: str
    message: str

    def __str__(self) -> str:
        return self.message


_RECORDED: ContextVar[list[RecordedWarning] | None] = ContextVar("darkmetrics_recorded", default=None)


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the user's own line; the result being made keeps the warning as well (`record_warnings`).

    The text may have references (`wording.named`, `wording.setting`, `wording.code`).
    """
    message = text if isinstance(text, Message) else Message(text)
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


def unknown_name(
    argument: str,
    kind: str,
    name: str,
    choices: Iterable[str],
    hint: str = "",
    error: type[UnknownNameError] = UnknownNameError,
) -> UnknownNameError:
    """Return the error for a name that is not among the choices; it suggests the nearest one, or lists all."""
    known = sorted(choices)
    plain = {_letters(choice): choice for choice in known}
    # What a name begins with says more than how many letters it shares: "acc" is accuracy, not mcc.
    begun = [choice for letters, choice in plain.items() if letters.startswith(_letters(name) or " ")]
    near = [*begun, *map(plain.get, difflib.get_close_matches(_letters(name), plain, n=1, cutoff=0.6))]
    choose = f"Did you mean {near[0]!r}?" if near else f"Choose from {', '.join(map(repr, known))}." if known else ""
    return error(argument, f"unknown {kind} {name!r}", choose, hint)


def _letters(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())
