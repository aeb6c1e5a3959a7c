"""darkmetrics demo."""

from __future__ import annotations  # names of the library in annotations must not import it

from dataclasses import replace
from importlib.resources import as_file, files
from pathlib import Path

import darkmetrics as dm
from darkmetrics.cli.commands.report import page_output
from darkmetrics.cli.evaluation import as_result
from darkmetrics.cli.options import PageOptions
from darkmetrics.cli.output import progress, publish, say
from darkmetrics.files import DataFile

EXAMPLE = "Example: darkmetrics demo"

_REPORT = "darkmetrics-demo.html"
_STORY = (
    "A logistic regression says which tumours are malignant (scikit-learn's breast-cancer data, 285 test rows).",
    "Flagged cases are examined first, so most missing labels belong to rows that were not flagged: by_score.",
)


def main(common: PageOptions) -> None:
    """Evaluate real data with half of the labels hidden, compare with the truth, and write a report.

    The report is written to --output, by default darkmetrics-demo.html.
    """
    output = page_output(_REPORT if common.output is None else common.output)
    with progress("reading", "evaluating", "drawing the report") as begin:
        begin()
        with as_file(files("darkmetrics") / "_demo" / "breast_cancer.csv") as path:
            columns = DataFile.of_path(path).read(["label", "score", "truth"])
        begin()
        result = dm.evaluate(columns["label"], columns["score"], missingness="by_score", rng=common.seed)
        truth = dm.paper.complete_case(dm.EvaluationSet(columns["truth"], columns["score"]))
        begin()
        result.report(output, title="darkmetrics demo", source="scikit-learn's breast-cancer data")
    shown = as_result(result)
    uncovered = ["", "The hidden labels, uncovered; nothing above has seen them:", *_compared(result, truth)]
    told = replace(shown, above=[*_STORY, "", *shown.above], below=[*shown.below, *uncovered])
    publish(told, common.result_format, None)
    say(f"\nReport: {Path(output).resolve()}")


def _compared(result: dm.Evaluation, truth: dict[str, float]) -> list[str]:
    lines = []
    for name, distribution in result.items():
        low, high = distribution.interval(result.confidence_level)
        where = "inside" if low <= truth[name] <= high else "OUTSIDE"
        dropped = result.labeled_only[name]
        lines.append(f"  {name:<9} is {truth[name]:.3f}, {where} the interval; dropping rows says {dropped:.3f}")
    return lines
