"""Text of the user, which may hold anything: the number that it is, and the same text made fit to be shown."""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import wraps
from math import isfinite
from typing import Any, TypeVar

_Class = TypeVar("_Class", bound=type)

# What is a number in a text, in a regular expression that all engines read alike.
NUMBER = r"^\s*[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?\s*$"
_NUMBER = re.compile(NUMBER)
_NOT_FINITE = {sign + word for sign in ("", "+", "-") for word in ("inf", "infinity", "nan")}
# Everything that Markdown, or HTML inside it, reads as a sign; also where it makes a link of an address by itself.
_SIGNS = re.compile(r"([\\`*_\[\]<>#|~$&@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)

# Explicit directions: they would turn around what stands after them.
_DIRECTIONS = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u200f", "\u061c"}
# Letters written from right to left.
_LEFTWARDS = {"R", "AL"}
_ISOLATE, _END = "\u2068", "\u2069"

# Longer names would push the numbers of a table off the screen.
_LONGEST_NAME = 40


def number_from(text: str) -> float | None:
    r"""The number that a text is, or None. The one rule for cells of text files and for options.

    Digits are 0 to 9, a dot may stand among them and an exponent behind them; inf and nan are numbers that are not
    finite. Python itself would also read 1_000, and digits of any script.

    Examples
    --------
    >>> from darkmetrics._text import number_from
    >>> number_from(" 1e3 "), number_from("1_000"), number_from("\u0661"), number_from("0x10")
    (1000.0, None, None, None)
    """
    return float(text) if _NUMBER.match(text) or text.strip().lower() in _NOT_FINITE else None


def whole_number_from(text: str) -> int | None:
    """The whole number that a text is, or None: digits and a sign, and nothing else."""
    number = number_from(text)  # infinite beyond all floats: no option means such a number
    return int(text) if number is not None and isfinite(number) and text.strip().lstrip("+-").isdigit() else None


def visible(text: object, most: int = 300) -> str:
    r"""The text in one line, with a sign for what cannot be shown, and cut if it is very long.

    Examples
    --------
    >>> from darkmetrics._text import visible
    >>> visible("re\x00call\nat 5%")
    're�call at 5%'
    >>> visible("a" * 10_000, most=12)
    'aaaaa…(10,000 characters)'
    """
    raw = str(text)
    clean = "".join(_shown(letter) for letter in raw[: most + 1])
    return clean if len(raw) <= most else f"{clean[: max(1, most - 7)]}…({len(raw):,} characters)"


def short(name: object) -> str:
    r"""A name in one line of a table: signs that cannot be shown are written out, and its middle is left out if long.

    Examples
    --------
    >>> from darkmetrics._text import short
    >>> short("two\nlines"), short("model " * 20)
    ('two\\nlines', 'model model model mo… model model model ')
    """
    raw = str(name)
    if len(raw) <= _LONGEST_NAME:
        return printable(raw)
    # Long names often differ at their end. Cut before it is written out: one of a million signs takes no time.
    half = _LONGEST_NAME // 2
    return f"{printable(raw[:half])[:half]}…{printable(raw[1 - half :])[1 - half :]}"


def printable(text: str, keep: str = "") -> str:
    r"""Return the text with visible escapes for characters that cannot be printed, except those in `keep`.

    Use it for all text that may reach a terminal, which control characters steer.

    Examples
    --------
    >>> from darkmetrics._text import printable
    >>> print(printable("re\x1b[31mcall"))
    re\x1b[31mcall
    """
    if text.isprintable():
        return text
    return "".join(
        sign if sign.isprintable() or sign in keep else sign.encode("unicode_escape").decode() for sign in text
    )


def prints_plainly(kind: _Class) -> _Class:
    """Make `str` and `repr` of a class printable: names of metrics and groups may hold control characters."""
    for name in ("__str__", "__repr__"):
        if name in vars(kind):
            setattr(kind, name, _made_printable(vars(kind)[name]))
    return kind


def _made_printable(method: Callable[[Any], str]) -> Callable[[Any], str]:
    @wraps(method)
    def printed(self: Any) -> str:
        return printable(method(self), keep="\n")

    return printed


# What spreadsheets take for the start of a formula.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def csv_text(text: str) -> str:
    r"""Return text for a cell of a CSV file: no control characters, and a quote before what looks like a formula.

    Examples
    --------
    >>> from darkmetrics._text import csv_text
    >>> csv_text("=1+1"), csv_text("a-b"), csv_text("\x1b[31m")
    ("'=1+1", 'a-b', '\\x1b[31m')
    """
    plain = printable(text, keep="\n\t")
    return f"'{plain}" if text.startswith(_FORMULA) else plain


def counted(number: int, word: str) -> str:
    """A number of things.

    Examples
    --------
    >>> from darkmetrics._text import counted
    >>> counted(1, "row"), counted(2000, "row")
    ('1 row', '2,000 rows')
    """
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def join_words(words: Sequence[str]) -> str:
    """Join words for a sentence.

    Examples
    --------
    >>> from darkmetrics._text import join_words
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    *others, last = words
    return f"{', '.join(others)} and {last}" if others else last


def a_kind_of(value: object) -> str:
    """What a value is, with its article, for a message.

    Examples
    --------
    >>> from darkmetrics._text import a_kind_of
    >>> a_kind_of([]), a_kind_of(1)
    ('a list', 'an int')
    """
    kind = type(value).__name__
    return f"{'an' if kind[0].lower() in 'aeio' else 'a'} {kind}"


def markdown_text(text: object, most: int = 300) -> str:
    r"""Text that Markdown shows as it is: no HTML, no links, no cell of a table more.

    Examples
    --------
    >>> from darkmetrics._text import markdown_text
    >>> print(markdown_text("<img> | [a](http://b)"))
    \<img\> \| \[a\](http\://b)
    """
    return _SIGNS.sub(r"\\\1", visible(text, most))


def called(name: object, most: int = 100) -> str:
    """A name within a sentence: visible, and with its own direction of writing if it has one."""
    clean = visible(name, most)
    leftwards = any(unicodedata.bidirectional(letter) in _LEFTWARDS for letter in clean)
    return f"{_ISOLATE}{clean}{_END}" if leftwards else clean


def _shown(letter: str) -> str:
    if letter in "\n\r\t\u2028\u2029\x85\x0b\x0c":
        return " "
    # Cc: control characters; Cs: halves of a pair, which no file can hold; Cn: not characters at all.
    unfit = letter in _DIRECTIONS or unicodedata.category(letter) in ("Cc", "Cs")
    return "\ufffd" if unfit or (ord(letter) & 0xFFFE) == 0xFFFE else letter
