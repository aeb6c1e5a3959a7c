"""Messages of the library with options for arguments and columns."""

from collections.abc import Mapping

from darkmetrics._text import printable
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
# Python code, by its text or key (`wording.code`), in the words of the command line.
CODE = {
    "missing.Reference": "--reference FILE",
    "missing.Propensity": "--propensity",
    "missing.Delayed": "--scored-at and --as-of",
    "missing.Fixed": "--prob",
    "dm.missing.Fixed(y_score)": "--prob with the score column",
    "dm.missing.Fixed(0.5)": "--prob 0.5",
    "an object of dm.missing": "",
    "mechanisms": "--reference, --scored-at or --propensity",
    "metrics.expected_cost": "'expected_cost(1, 10)'",
    "list_metrics": "`darkmetrics metrics`",
    "diagnosis": "Run darkmetrics diagnose for details.",
    "input format": ", or pass --input-format",
    "one class": "a column of 0 and 1",
    "alerts": "what --format json wrote",
    "result of alerts": "no result of this command",
    "grouped": "; --format csv has them.",
    "group notes": "; --format json has the notes.",
    "notes of groups": "--format json has the notes.",
}


def option_words(names: Mapping[str, str] | None = None, metrics: str = "--metric") -> dict[str, str]:
    """Return the words of the command line for arguments, settings and code.

    `names` has the columns by option, `metrics` is the option that the metrics came from.
    """
    options = _OPTIONS | {"metrics": metrics}
    columns = {
        argument: f"column {names[option]!r} (--{option.replace('_', '-')})"
        for argument, option in COLUMNS.items()
        if names is not None and option in names
    }
    return options | CODE | {f"{argument}=": option for argument, option in options.items()} | columns


def worded(text: str, names: Mapping[str, str] | None = None) -> str:
    """Return a text of the library in the words of the command line."""
    return text.worded_for(option_words(names)) if isinstance(text, Message) else text


def one_line(text: str) -> str:
    """Return text on one line, with signs that steer a terminal written out."""
    return printable(" ".join(text.split()))
