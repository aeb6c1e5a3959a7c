"""Messages of the library in the words of the command line: columns and options instead of arguments."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from darkmetrics.exceptions import InputError

# Options that are called like the argument; a value given to it follows the option.
_OPTIONS = (
    "by",
    "confidence_level",
    "correction",
    "every",
    "label_model",
    "method",
    "min_labels",
    "missing_label",
    "missingness",
    "pos_label",
    "resolution",
    "risk",
    "threshold",
    "thresholds",
    "time",
    "zero_division",
)
_ANY = "|".join(_OPTIONS)


def _option(argument: str) -> str:
    return "--" + argument.replace("_", "-")


_PHRASES: tuple[tuple[str, str | Callable[[re.Match[str]], str]], ...] = (
    # What is for Python alone.
    (r"Give it to the label model itself, such as label_models\.\w+\(.*\), or leave label_model out", "Leave one out"),
    (r"; if it is the same, and not that of probabilities, say so: label_models\.Selection\(.*\)", ""),
    (r"[;,] or state the share of positives, such as label_models\.Tilted\([^)]*\)", ""),
    (r"\blabel_models\.Prevalence\(([\d.]+)\)", r"--label-model \1"),
    (r"\bmetrics\.expected_cost\(1, 10\)", "'expected_cost(1, 10)'"),
    (r"calibration=\(labels, scores\)( of fully labelled rows|: fully labelled rows)?", r"--reference with a file\1"),
    (r"\(calibration=\)", "(--reference)"),
    (r"Give one per row, or one per missing row\.", "Give one per row."),
    (
        r"\blabel_model=y_score if the scores are probabilities you trust, or 'half'",
        "--prob with the score column if the scores are probabilities you trust, or --label-model half",
    ),
    (r"\bprobability='([^']*)' if the scores are", r"--prob \1 if the scores are"),
    (r"; see to_frame\(\)\.", "; --format csv has them."),
    (r"\blist_metrics\(\) shows", "`darkmetrics metrics` shows"),
    (r"\bSee \.diagnosis\.", "`darkmetrics diagnose` says more."),
    (r"\b(y_pred|decision) already", "--pred already"),
    (r"\blabel_model already gives", "--prob already gives"),
    (r"The notes of each group \(groups\[key\]\.notes\) and of the result say more", "--format json has the notes"),
    (r": groups\[key\]\.notes\.", "; --format json has the notes."),
    (r"^false_discovery_rate: ", "--fdr: "),
    (r"^n_jobs: ", "--jobs: "),
    (r"\bn_jobs=(\d+)", r"--jobs \1"),
    (r"^targets: ", "--target: "),
    (r"^metric: ", "--best: "),
    (r"^rng: ", "--seed: "),
    (r"\bmissingness='(\w+)' or (?:missingness=)?'(\w+)'", r"--missingness \1 or \2"),
    # In code a text has quotes, on the command line it need not.
    (rf"\b({_ANY})='([^']*)'", lambda found: f"{_option(found[1])} {found[2]}"),
    (rf"\b({_ANY})=(-?\w[\w.]*)", lambda found: f"{_option(found[1])} {found[2]}"),
    (rf"\b({_ANY})=", lambda found: _option(found[1])),
    (rf"^({_ANY}): ", lambda found: f"{_option(found[1])}: "),
    # A word with a line in it is no word of a sentence.
    (rf"(?<![-\w])({'|'.join(name for name in _OPTIONS if '_' in name)})\b", lambda found: _option(found[1])),
    (r"^calibration: ", "--reference: "),
)
_ROLES = {"y_true": "label", "y_score": "score", "y_pred": "pred", "sample_weight": "weight"}
# Columns of a table, as the library names them: by part and name.
_PARTS = {"decision": "pred", "probability": "prob"}
_OF_TABLE = re.compile(r"^(label|score|weight|decision|probability|by|time) column (?=')")
# Names and values that are the user's own: messages write them as Python does.
_QUOTED = re.compile(r"""(?<!\w)(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")


class WordedError(InputError):
    """An error that is already in the words of the command line."""


@contextmanager
def worded() -> Iterator[None]:
    """Errors about files and columns, which are said in the user's own words and stay as they are."""
    try:
        yield
    except WordedError:
        raise
    except InputError as error:
        raise WordedError(str(error)) from error


def for_the_command_line(text: str, names: Mapping[str, str] | None = None, metrics: str = "--metric") -> str:
    """The message with options for arguments and, where `names` has them (by role), columns.

    `metrics` is the option that the metrics came from. What stands in quotes is left as it is.
    """
    names = names or {}
    part = _OF_TABLE.match(text)
    if part is not None:
        text = re.sub(r"^('(?:[^'\\]|\\.)*')", rf"column \1 (--{_PARTS.get(part[1], part[1])})", text[part.end() :])
    if "label" in names:
        # What a table has counted of its labels is said with the name of the column alone.
        said = rf"^{re.escape(names['label'])}: (?=a third value|pos_label=)"
        text = _replaced(said, lambda found: f"column {names['label']!r} (--label): ", text)
    text = _replaced(r"^metrics: ", lambda found: f"{metrics}: ", text)
    for pattern, words in _PHRASES:
        text = _replaced(pattern, words, text)
    if "prob" in names:
        text = _replaced(r"^--label-model: ", lambda found: f"column {names['prob']!r} (--prob): ", text)

    def column(found: re.Match[str]) -> str:
        role = _ROLES[found[0]]
        return f"column {names[role]!r} (--{role})" if role in names else f"--{role}"

    return _replaced(rf"\b({'|'.join(_ROLES)})\b", column, text)


def _replaced(pattern: str, words: str | Callable[[re.Match[str]], str], text: str) -> str:
    """The text with the words for the pattern wherever it begins outside quotes."""
    quoted = [found.span() for found in _QUOTED.finditer(text)]

    def replaced(found: re.Match[str]) -> str:
        if any(start <= found.start() < end for start, end in quoted):
            return found[0]
        return found.expand(words) if isinstance(words, str) else words(found)

    return re.sub(pattern, replaced, text)


def one_line(text: str) -> str:
    """The text on one line, with signs that steer a terminal written out."""
    joined = " ".join(text.split())
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in joined)
