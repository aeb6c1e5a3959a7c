"""References to arguments in messages, and the words that a caller has for them.

A message mentions an argument, a setting or a piece of code by a reference, so that a caller with other names (columns
of a table, options of the command line) can word the message without looking for names in prose. Without other names, a
message is worded as Python code.
"""

import ast
import re
import shlex
from collections.abc import Mapping
from typing import Self

from darkmetrics._text import printable

# Private-use characters, which `repr` escapes in whatever a user wrote.
_OPEN, _NEXT, _CLOSE = "\ue000", "\ue001", "\ue002"
_REFERENCE = re.compile(f"{_OPEN}([^{_OPEN}{_CLOSE}]*){_CLOSE}")


def named(argument: str, column: object = None) -> str:
    """Return a reference to an argument, or to the column of a table that has its part.

    Examples
    --------
    >>> from darkmetrics.wording import Message, named
    >>> Message(f"3 values, but {named('y_score')} has 4"), Message(f"no rows in {named('y_true', 'fraud')}")
    ('3 values, but y_score has 4', "no rows in y_true column 'fraud'")
    """
    return _mark("named", argument, *([] if column is None else [repr(column)]))


def setting(argument: str, *values: object) -> str:
    """Return a reference to an argument with a value, or with one of several values.

    Examples
    --------
    >>> from darkmetrics.wording import Message, setting
    >>> text = Message(f"Pass {setting('missingness', 'random', 'by_score')}, or {setting('zero_division')}.")
    >>> print(text)
    Pass missingness='random' or 'by_score', or zero_division=.
    >>> print(text.worded_for({"missingness": "--missingness", "zero_division": "--zero-division"}))
    Pass --missingness random or by_score, or --zero-division.
    """
    # Without an import of NumPy, which the command line does not load for an error in an option.
    plain = (value.item() if hasattr(value, "item") else value for value in values)
    return _mark("setting", argument, *map(repr, plain))


def code(text: str, key: str = "") -> str:
    """Return a reference to Python code, for which other callers may have words of their own, or none.

    The words are looked up by the text, then by the key: the name of what is called, if no key is passed.

    Examples
    --------
    >>> from darkmetrics.wording import Message, code
    >>> text = Message(f"Pass {code('missingness=dm.missing.Reference(labels, scores)')}.")
    >>> print(text)
    Pass missingness=dm.missing.Reference(labels, scores).
    >>> print(text.worded_for({"missing.Reference": "--reference FILE"}))
    Pass --reference FILE.
    """
    return _mark("code", key or text.partition("(")[0].rpartition("=")[2].removeprefix("dm."), text)


def verbatim(text: str) -> str:
    """Return a reference to a name of the user, such as that of a file, which is never taken for an argument."""
    return _mark("verbatim", text)


def reword(text: str, names: Mapping[str, str]) -> str:
    """Return a text in which references have a caller's names; those without a name stay references.

    `names` leads from arguments, and from code or its key, to names. A name that is an identifier is an argument again;
    a name that begins with a hyphen is an option, whose values follow as a shell reads them; any other name is text,
    such as the title of a column. A setting is looked up with "=" behind its name first.
    """
    return _REFERENCE.sub(lambda match: _reworded(match, names), text)


class Message(str):
    """Text worded for Python that keeps its references, so that another caller can word it."""

    marked: str

    def __new__(cls, text: str) -> Self:
        """Return the message of a text with references."""
        message = super().__new__(cls, printable(_REFERENCE.sub(_as_python, text), keep="\n"))
        message.marked = text
        return message

    def worded_for(self, names: Mapping[str, str]) -> "Message":
        """Return the message in the names of a caller (`reword`)."""
        return Message(reword(self.marked, names))


def _mark(kind: str, key: str, *parts: str) -> str:
    return _OPEN + _NEXT.join([kind, *map(printable, (key, *parts))]) + _CLOSE


def _as_python(match: re.Match[str]) -> str:
    kind, key, *parts = match[1].split(_NEXT)
    if kind in ("named", "verbatim"):
        return f"{key} column {parts[0]}" if parts else key
    return f"{key}={' or '.join(parts)}" if kind == "setting" else parts[0]


def _reworded(match: re.Match[str], names: Mapping[str, str]) -> str:
    kind, key, *parts = match[1].split(_NEXT)
    if kind == "verbatim":
        return match[0]
    name = names.get(parts[0], names.get(key)) if kind == "code" else names.get(key)
    if kind == "setting" or parts:
        name = names.get(f"{key}=", name)
    if name is None:
        return match[0]
    if kind == "code" or (kind == "named" and not parts):
        return named(name) if kind == "named" and name.isidentifier() else name
    if name.isidentifier():
        return _mark(kind, name, *parts)
    if kind == "named":
        return f"column {parts[0]} ({name})" if name.startswith("-") else name
    return _as_option(name, parts) if name.startswith("-") else match[0]


def _as_option(option: str, parts: list[str]) -> str:
    """Return an option with the values of a setting; that of a list is repeated."""
    values = [_value(part) for part in parts]
    if len(values) == 1 and isinstance(values[0], list):
        return " ".join(f"{option} {shlex.quote(str(item))}" for item in values[0])
    return " ".join([option, " or ".join(shlex.quote(str(value)) for value in values)]).rstrip()


def _value(part: str) -> object:
    try:
        return ast.literal_eval(part)
    except (SyntaxError, ValueError):
        return part
