"""Errors and warnings, and the one way to suggest a name that was misspelt."""

import difflib
import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple, ParamSpec, Self, TypeVar

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
        known = "|".join([QUOTED, *(rf"\b{re.escape(name)}\b" for name in code)])
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


class RefutedWarning(MissingnessWarning):
    """The rows clearly contradict what was assumed about missing labels: a mechanism, or equal delays of all rows."""


class Warned(NamedTuple):
    """A warning that is part of a result: the name of its category, and what it says."""

    category: str
    message: str

    def __str__(self) -> str:
        return self.message


_HEARD: ContextVar[list[Warned] | None] = ContextVar("darkmetrics_heard", default=None)


def warn(message: str, category: type[Warning]) -> None:
    """A Python warning, at the user's own line, that the result being made keeps as well (`heard`)."""
    message = printable(message, keep="\n")
    kept = _HEARD.get()
    if kept is not None:
        kept.append(Warned(category.__name__, message))
    warnings.warn(message, category, stacklevel=level_of_caller())


def level_of_caller() -> int:
    """The stack level of the first line outside this package, seen from the function that asks."""
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] == __name__.split(".")[0]:
        frame, level = frame.f_back, level + 1
    return level


@contextmanager
def heard() -> Iterator[list[Warned]]:
    """What is warned of inside the block; a block around this one hears it too.

    Not `warnings.catch_warnings`, which changes filters for all threads, and hears nothing that a user silenced.
    """
    said: list[Warned] = []
    outer = _HEARD.get()
    token = _HEARD.set(said)
    try:
        yield said
    finally:
        _HEARD.reset(token)
        if outer is not None:
            outer += said


def reference_from(reference: Any, calibration: Any) -> Any:
    """Reference rows, given by this name or as `calibration`, which they were called before."""
    if calibration is None:
        return reference
    if reference is not None:
        raise InputError("calibration: an older word for reference, which is given too. Give reference alone.")
    text = "calibration: deprecated, and will be removed. Pass reference= instead."
    warnings.warn(text, FutureWarning, stacklevel=level_of_caller())
    return calibration


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


# Arguments that are meant where another function has another word, or another way.
_TWINS = {
    "y_pred": "decision",
    "decision": "y_pred",
    "sample_weight": "weight",
    "weight": "sample_weight",
    "age": "scored_at",
    "scored_at": "age",
    "labelled_at": "delay",
    "method": "methods",
    "label_model": "label_models",
    "missingness": "label_models",
    "score": "scores",
    "confidence_level": "confidence_levels",
    "random_state": "rng",
    "seed": "rng",
}
_WAYS = {
    "groups": "Rows that share their fate, as those of one customer do, are known to evaluate and evaluate_frame "
    "alone. Here keep one random row of each group.",
    "n_resamples": "Say method=methods.MonteCarlo(n_resamples=...).",
    "prevalence": "A share of positives that you know is label_model=label_models.Tilted(prevalence=...).",
}
_AGES = frozenset(["age", "delay", "maturity", "scored_at", "labelled_at", "as_of"])
# What evaluate takes, and others may not: a word that is right elsewhere is no misspelling of one that is right here.
ARGUMENTS_OF_EVALUATE = frozenset(
    [
        "y_true",
        "y_score",
        "metrics",
        "threshold",
        "y_pred",
        "label_model",
        "missingness",
        "reference",
        "propensity",
        "strata",
        "age",
        "delay",
        "maturity",
        "groups",
        "method",
        "pos_label",
        "missing_label",
        "sample_weight",
        "zero_division",
        "rng",
        "confidence_level",
        "scope",
        "calibration",
        "label",
        "score",
    ]
)
_Given = ParamSpec("_Given")
_Found = TypeVar("_Found")


def says_where(elsewhere: str = "") -> Callable[[Callable[_Given, _Found]], Callable[_Given, _Found]]:
    """For public functions: an argument that is not taken is answered with where it belongs.

    `elsewhere` is said of an argument of `evaluate` for which the function has no word.
    """

    def decorated(function: Callable[_Given, _Found]) -> Callable[_Given, _Found]:
        @functools.wraps(function)
        def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Found:
            try:
                return function(*args, **kwargs)
            except TypeError:
                wrong = _not_taken(function, args, kwargs, elsewhere)
                if wrong is None:
                    raise
            raise wrong

        return called

    return decorated


def _not_taken(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any], elsewhere: str
) -> UnknownArgumentError | None:
    """What to say of a call that cannot be: None where its arguments are those of the function, or lack one."""
    taken = inspect.signature(function).parameters
    name, beside = function.__name__, [one.name for one in taken.values() if one.kind is one.POSITIONAL_OR_KEYWORD]
    if len(args) > len(beside):
        own = beside.count("self")
        takes = f"{len(beside) - own} ({', '.join(beside[own:])})"
        words = f"{len(args) - own} values without a name, where {name} takes {takes}."
        return UnknownArgumentError.about(name, f"{words} {elsewhere}".rstrip())
    unknown = next((one for one in kwargs if one not in taken), None)
    if unknown is None:
        return None
    if unknown in _AGES and "scores" in taken:
        where = "Comparisons take no ages of rows; evaluate and evaluate_frame do, one model at a time."
    elif _TWINS.get(unknown) in taken:
        where = f"Did you mean {_TWINS[unknown]!r}?"
    elif unknown in _WAYS and {"method", "label_model"} <= taken.keys():
        where = _WAYS[unknown]
    elif unknown in ARGUMENTS_OF_EVALUATE:
        where = elsewhere or "It is one of evaluate."
    else:
        near = difflib.get_close_matches(unknown.lower(), taken, n=1, cutoff=0.65)
        where = f"Did you mean {near[0]!r}?" if near else f"It takes {', '.join(taken)}."
    return UnknownArgumentError.about(unknown, f"no argument of {name}. {where}")
