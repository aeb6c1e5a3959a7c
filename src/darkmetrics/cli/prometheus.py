"""Results as text for Prometheus: one gauge for each kind of number."""

import re
from collections.abc import Mapping
from typing import Any

from darkmetrics._text import printable
from darkmetrics.cli.rendering import Result

# What is sent, by column of the records, and what it means; other columns are for reading, not for watching.
GAUGES = {
    "rows": "Rows of the group.",
    "labeled": "Rows that have a label.",
    "missing": "Rows without a label.",
    "mean": "Estimate of the metric: the mean of its distribution.",
    "low": "Lower end of the interval of the metric.",
    "high": "Upper end of the interval of the metric.",
    "confidence_level": "Probability of the interval.",
    "lowest_possible": "Smallest value of the metric over all missing labels.",
    "highest_possible": "Largest value of the metric over all missing labels.",
    "labeled_only": "The metric when rows without a label are dropped.",
    "undefined": "Probability that the metric is 0/0.",
    "target": "Value that the metric is to reach.",
    "target_probability": "Probability that the target is reached.",
    "target_met": "Whether that probability is as large as was asked for: 1 or 0.",
    "probability_missed": "Probability that the target is missed.",
    "q_value": "Smallest false-discovery rate at which there is an alert.",
    "alert": "Whether there is an alert: 1 or 0.",
    "new": "Whether the alert is new: 1 or 0.",
    "change_mean": "Estimate of the metric on the later rows less that on the earlier ones.",
    "change_low": "Lower end of the interval of that change.",
    "change_high": "Upper end of the interval of that change.",
    "change_lowest_possible": "Smallest change over all missing labels.",
    "change_highest_possible": "Largest change over all missing labels.",
    "change_undefined": "Probability that the metric is 0/0 on the later or the earlier rows.",
    "before": "Estimate of the metric on the earlier rows.",
    "after": "Estimate of the metric on the later rows.",
    "probability_decreased": "Probability that the metric decreased.",
    "probability_increased": "Probability that the metric increased.",
    "best": "Probability that the model is better than all others.",
    "better_than_first": "Probability that the model is better than the first one.",
    "difference_mean": "Estimate of the metric less that of the first model.",
    "difference_low": "Lower end of the interval of that difference.",
    "difference_high": "Upper end of the interval of that difference.",
}


def as_prometheus(result: Result) -> str:
    """Return the numbers of the records, labeled with their metric or group; unknown numbers are left out."""
    labels = _label_names(result.about)
    lines = []
    columns = {gauge: gauge for gauge in GAUGES if gauge not in result.gauges}
    columns |= {gauge: column for column, gauge in result.gauges.items()}
    for gauge, meaning in GAUGES.items():
        if gauge not in columns:
            continue
        name, column = f"darkmetrics_{gauge}", columns[gauge]
        found = [
            f"{name}{_labels(record, labels)} {_number(record[key])}"
            for record in result.records
            for key in (column + "_" if column in result.about else column,)
            if record.get(key) is not None
        ]
        if found:
            lines += [f"# HELP {name} {meaning}", f"# TYPE {name} gauge", *found]
    missed = sum(check.passed is False for check in result.checks)
    if result.checks:
        lines += ["# HELP darkmetrics_checks_failed Targets and gates that do not hold."]
        lines += ["# TYPE darkmetrics_checks_failed gauge", f"darkmetrics_checks_failed {missed}"]
    return "\n".join(lines) + "\n"


def _label_names(columns: Any) -> dict[str, str]:
    """Return names of columns as Prometheus allows them, each once."""
    found: dict[str, str] = {}
    for column in columns:
        name = re.sub(r"[^a-zA-Z0-9_]", "_", str(column))
        name = f"_{name}" if not name or name[0].isdigit() else name
        # What begins with two underscores is Prometheus's own.
        name = re.sub(r"^__+", "_", name)
        while name in found.values():
            name += "_"
        found[column] = name
    return found


def _labels(record: Mapping[str, Any], names: Mapping[str, str]) -> str:
    pairs = [f'{name}="{_escaped(record[column])}"' for column, name in names.items() if column in record]
    return "{" + ",".join(pairs) + "}" if pairs else ""


def _escaped(value: Any) -> str:
    text = "" if value is None else printable(str(value), keep="\n\r")
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n").replace("\r", r"\r")


def _number(value: Any) -> str:
    # Digits after the twelfth differ between processors.
    return str(int(value)) if isinstance(value, bool) else f"{float(value):.12g}"
