"""Messages of the library in the words of the command line: columns and options instead of arguments."""

import re
from collections.abc import Mapping

# Options that are called like the argument; a value given to it follows the option.
_OPTIONS = (
    "confidence_level",
    "label_model",
    "method",
    "missing_label",
    "missingness",
    "pos_label",
    "threshold",
    "zero_division",
)
_PHRASES = (
    (r"calibration=\(labels, scores\)( of fully labelled rows|: fully labelled rows)?", r"--reference with a file\1"),
    (r"Give one per row, or one per missing row\.", "Give one per row."),
    (r"[;,] or state the share of positives, such as label_models\.Tilted\([^)]*\)", ""),
    (r"label_model=y_score if", "--prob with the score column if"),
    (r"\blist_metrics\(\) shows", "`darkmetrics metrics` shows"),
    (r"See \.diagnosis\.", "`darkmetrics diagnose` says more."),
    (r"\bmetrics: ", "--metric: "),
    (r"\brng: ", "--seed: "),
    (r"\by_pred already", "--pred already"),
    (r"\blabel_model already gives", "--prob already gives"),
    # In code a text has quotes, on the command line it need not.
    (rf"\b({'|'.join(_OPTIONS)})='([^']*)'", lambda found: f"{_option(found[1])} {found[2]}"),
    (rf"\b({'|'.join(_OPTIONS)})=(-?\w[\w.]*)", lambda found: f"{_option(found[1])} {found[2]}"),
    (rf"\b({'|'.join(_OPTIONS)})=", lambda found: _option(found[1])),
    (rf"^({'|'.join(_OPTIONS)}): ", lambda found: f"{_option(found[1])}: "),
)
_ROLES = {
    "y_true": "label",
    "y_score": "score",
    "y_pred": "pred",
    "sample_weight": "weight",
    "labels": "label",
    "scores": "score",
}


def _option(argument: str) -> str:
    return "--" + argument.replace("_", "-")


def for_the_command_line(text: str, names: Mapping[str, str] | None = None) -> str:
    """The message with options for arguments and, where `names` has them (by role), columns."""
    for pattern, words in _PHRASES:
        text = re.sub(pattern, words, text)
    names = names or {}
    text = re.sub(r"^calibration: (\w+): ", lambda found: f"--reference: {found[1]}: ", text)
    text = re.sub(r"^calibration: ", "--reference: ", text)
    if "prob" in names:
        text = re.sub(r"^--label-model: ", f"column {names['prob']!r} (--prob): ", text)

    def column(found: re.Match[str]) -> str:
        role = _ROLES[found[1]]
        known = f"column {names[role]!r} " if role in names else ""
        return f"{known}(--{role})" if known else f"--{role}"

    return re.sub(r"\b(y_true|y_score|y_pred|sample_weight)\b", column, text)


def one_line(text: str) -> str:
    """The text on one line, with signs that steer a terminal written out."""
    joined = " ".join(text.split())
    return "".join(sign if sign.isprintable() else sign.encode("unicode_escape").decode() for sign in joined)
