"""Messages of the library with options for arguments and columns."""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from darkmetrics._text import printable
from darkmetrics.exceptions import QUOTED, InputError
from darkmetrics.wording import Message

# Arguments that name columns of rows, and fields of mechanisms that do, with their options.
ROWS = {"y_true": "label", "y_score": "score", "y_pred": "pred", "sample_weight": "weight", "clusters": "clusters"}
COLUMNS = ROWS | {"probability": "prob"}
COLUMNS |= {name: name for name in ("strata", "propensity", "scored_at", "labeled_at", "age")}
_SAME = (
    *("alpha", "arrival", "as_of", "by", "calibrator", "confidence_level", "correction", "elapsed", "known_alerts"),
    *("last_periods", "maturity", "method", "min_labels", "missing_label", "missingness", "period", "pos_label"),
    *("reference", "reviewed", "risk", "scope", "score_bins", "since", "threshold", "thresholds", "time"),
    "zero_division",
)
_OPTIONS = {name: f"--{name.replace('_', '-')}" for name in _SAME}
_OPTIONS |= {argument: f"--{option.replace('_', '-')}" for argument, option in COLUMNS.items()}
# Arguments with options of another name.
_OPTIONS |= {"after": "FILE", "before": "BEFORE", "false_discovery_rate": "--fdr", "metric": "--best"}
_OPTIONS |= {"age": "--scored-at", "n_jobs": "--jobs", "rng": "--seed", "scores": "--score", "targets": "--target"}
# Code that no single option replaces.
PHRASES = {
    "metrics.expected_cost(1, 10)": "'expected_cost(1, 10)'",
    "Give what .alerts() returned, its to_dict(), or a file with that as JSON": "Give what --format json wrote",
    "no result of .alerts()": "no result of this command",
    "; see .grouped.": "; --format csv has them.",
    "See .diagnosis.": "`darkmetrics diagnose` says more.",
    "The notes of each group (groups[key].notes) and of the result say more": "--format json has the notes",
    ": groups[key].notes.": "; --format json has the notes.",
}
# Python code, by its key or text, in the words of the command line.
CODE = {
    "missing.Reference": "--reference FILE",
    "missing.Delayed": "--scored-at and --as-of",
    "missing.Propensity": "--propensity",
    "missing.Fixed": "--prob",
    "dm.missing.Fixed(y_score)": "--prob with the score column",
    "dm.missing.Fixed(0.5)": "--prob 0.5",
    "an object of dm.missing": "",
    "or a tilt": "",
    "metrics.expected_cost": "'expected_cost(1, 10)'",
    "list_metrics": "`darkmetrics metrics`",
    "diagnosis": "Run darkmetrics diagnose for details.",
    "mechanisms": "--reference, --scored-at or --propensity",
    "input format": ", or pass --input-format",
    "one class": "a column of 0 and 1",
}
# Quotes come first, so that nothing inside them is replaced. Then a setting as code, `name='value'` or two values with
# "or" between them; last a name that has an underscore, which no plain word has.
_NAMES = "|".join(_OPTIONS)
_PYTHON = re.compile(
    rf"{QUOTED}|(?P<phrase>{'|'.join(map(re.escape, PHRASES))})"
    rf"|\b(?P<name>{_NAMES})=(?P<value>\[(?:{QUOTED}|[-\w., ])+\]|{QUOTED}(?: or (?:(?P=name)=)?'\w+')?|-?\w[\w.]*)?"
    rf"|(?:dm\.)?missing\.Fixed\((?P<fixed>[^()]*)\)"
    rf"|(?<![-\w])(?P<word>{'|'.join(name for name in _OPTIONS if '_' in name)})\b"
)


class WordedError(InputError):
    """An error that is already in the words of the command line."""


@contextmanager
def worded() -> Iterator[None]:
    """Leave errors about files and columns as they are: they have the user's own words."""
    try:
        yield
    except WordedError:
        raise
    except InputError as error:
        raise WordedError(str(error)) from error


def for_the_command_line(
    message: InputError | str, names: Mapping[str, str] | None = None, metrics: str = "--metric"
) -> str:
    """Return a message with options for arguments and, where `names` has them (by option), columns.

    `metrics` is the option that the metrics came from. Text in quotes stays as it is.
    """
    names = names or {}
    columns = {
        argument: f"column {names[option]!r} (--{option.replace('_', '-')})"
        for argument, option in COLUMNS.items()
        if option in names
    }
    options = _OPTIONS | {"metrics": metrics}
    words = options | CODE | {f"{argument}=": option for argument, option in options.items()} | columns
    old = options | {argument: columns[argument] for argument in ROWS if argument in columns}
    if isinstance(message, Message):
        text = message.worded_for(words)
        return text if text != message else _replaced(str(message), old)
    error = message if isinstance(message, InputError) else InputError(message)
    if not error.is_old:
        return str(error.worded_for(words))
    argument, is_column, name = error.argument.partition(" column ")
    if is_column and argument in _OPTIONS:
        head = f"column {name} ({_OPTIONS[argument]})"
    else:
        head = words.get(error.argument, error.argument)
    return str(error.replace(argument=head, rule=_replaced(error.rule, old), fix=_replaced(error.fix, old)))


def _replaced(text: str, options: Mapping[str, str]) -> str:
    """Return the text of a message in the old form with options for arguments."""

    def as_option(match: re.Match[str]) -> str:
        if match["phrase"] is not None:
            return PHRASES[match["phrase"]]
        if match["fixed"] is not None:
            return f"--prob {'with the score column' if match['fixed'] == 'y_score' else match['fixed']}"
        if match["word"] is not None:
            return options[match["word"]]
        if match["name"] is None:
            return match[0]
        option, value = _OPTIONS[match["name"]], match["value"] or ""
        if value.startswith("["):  # the option is repeated
            items = [item[0] for item in re.finditer(rf"{QUOTED}|[-\w.]+", value)]
            texts = [str(ast.literal_eval(item)) if item[0] in "'\"" else item for item in items]
            return " ".join(f"{option} {shlex.quote(text)}" for text in texts)
        values = value.replace(f"{match['name']}=", "").split(" or ")
        return " ".join(filter(None, [option, " or ".join(text.strip("'\"") for text in values)]))

    return _PYTHON.sub(as_option, text)


def one_line(text: str) -> str:
    """Return text on one line, with signs that steer a terminal written out."""
    return printable(" ".join(text.split()))
