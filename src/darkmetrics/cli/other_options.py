"""Options in words of other tools, and of the library in Python."""

from collections.abc import Iterable

from darkmetrics.cli.messages import COLUMNS
from darkmetrics.foreign_words import PARAMETERS

# Arguments of the library with an option of another name.
_ARGUMENTS = {**{option: argument for argument, option in COLUMNS.items()}, "metric": "metrics", "seed": "rng"}


def option_for(word: str, options: Iterable[str]) -> str | None:
    """Return the option of a command that a word stands for; None if there is none.

    Examples
    --------
    >>> from darkmetrics.cli.other_options import option_for
    >>> option_for("--y-true", ["--label", "--score"]), option_for("--proba", ["--label", "--score"])
    ('--label', '--score')
    >>> option_for("--metrics", ["--metric"]), option_for("--zzz", ["--metric"])
    ('--metric', None)
    """
    if not word.startswith("--"):
        return None
    plain = word.lstrip("-").replace("-", "_").lower()
    matches = [option for option in options if plain in _words(option)]
    # Of several, the one that more commands have, such as --by before --strata.
    order = [*PARAMETERS]
    return min(matches, key=lambda option: order.index(_argument(option)), default=None)


def _argument(option: str) -> str:
    name = option.lstrip("-").replace("-", "_")
    return _ARGUMENTS.get(name, name)


def _words(option: str) -> set[str]:
    argument, name = _argument(option), option.lstrip("-").replace("-", "_")
    if argument not in PARAMETERS:
        return set()
    return {argument, f"{name}s", f"{name}_column", *PARAMETERS[argument]}
