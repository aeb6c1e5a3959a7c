"""Text that came with the data, made fit to be shown: it may hold anything."""

import unicodedata

# Explicit directions: they would turn around what stands after them.
_DIRECTIONS = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\u200e", "\u200f", "\u061c"}
# Letters written from right to left.
_LEFTWARDS = {"R", "AL"}
_ISOLATE, _END = "\u2068", "\u2069"


def visible(text: object, most: int = 300) -> str:
    r"""The text in one line, with a sign for what cannot be shown, and cut if it is very long.

    Examples
    --------
    >>> from darkmetrics.report.text import visible
    >>> visible("re\x00call\nat 5%")
    're�call at 5%'
    >>> visible("a" * 10_000, most=12)
    'aaaaa…(10,000 characters)'
    """
    raw = str(text)
    clean = "".join(_shown(letter) for letter in raw[: most + 1])
    return clean if len(raw) <= most else f"{clean[: max(1, most - 7)]}…({len(raw):,} characters)"


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
