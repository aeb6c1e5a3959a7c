"""The report of a change: what moved between two sets of rows, and how sure that is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

from darkmetrics._text import called, visible
from darkmetrics.argument_types import PageSettings, PathLike
from darkmetrics.changes.change import EvaluationChange
from darkmetrics.changes.wording import drop_negative_zero, name_differences
from darkmetrics.evaluation import Evaluation
from darkmetrics.report import sentences
from darkmetrics.report.differences import (
    About,
    Difference,
    difference_entry,
    differences_hover,
    differences_section,
)
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.report.render import ReportPage, render_html, write_or_show
from darkmetrics.report.reproduce import call_of, code_of_call, data_hash, reproduction, source_facts
from darkmetrics.report.sections import Block, Report, Section, csv_link, list_block, table_block
from darkmetrics.tables import chance_text, finite, level_text


def write_change_report(
    change: EvaluationChange, path: PathLike | None = None, **about: Unpack[PageSettings]
) -> Path | ReportPage:
    """Write the report of a change. See `EvaluationChange.report`."""
    return write_or_show(path, lambda: change_report(change, **about), change.to_dict)


def change_page(change: EvaluationChange, **about: Unpack[PageSettings]) -> str:
    """Return the report as a page."""
    return render_html(change_report(change, **about))


def change_report(change: EvaluationChange, **settings: Unpack[PageSettings]) -> Report:
    """Return the report of a change."""
    about = About.of(**settings)
    differences = [_difference(change, metric) for metric in change]
    reproduce = _reproduce(change, about)
    both = change.after, change.before
    above = [change.same_rows, *change.warned()]
    warned = _name_differences(change, [[record.message for record in evaluation.warnings] for evaluation in both])
    assumptions = [
        *_name_differences(change, [[*filter(None, evaluation.assumption.split("\n"))] for evaluation in both]),
        *(text for text in change._notes() if text not in above),
        *(f"Change in {way}" for way in sentences.methods(_methods(change), change.scope)),
    ]
    facts = {
        "assumed": _in_a_line(_name_differences(change, [[sentences.assumed(evaluation)] for evaluation in both])),
        "intervals for": "these rows" if change.scope == "rows" else "the populations that the rows came from",
        "threshold": _in_a_line(_name_differences(change, [[_threshold(evaluation)] for evaluation in both])),
        "date of the report": about.date,
    }
    level = level_text(change.confidence_level)
    return Report(
        title=_title(change) if about.title is None else str(about.title),
        answer=change.sentence(change.surest),
        counts=change._words()[0],
        warnings=[*filter(None, [change.same_rows]), *warned],
        facts=facts,
        source=about.source,
        sections=[
            Section("changes", "What changed", [_changes_table(change, differences)]),
            Section("aside", "Side by side", [_estimates_table(change)]),
            Section("rows", "The rows", [_rows_table(change)]),
            differences_section(differences, "How likely each change is", "no change", level),
            Section("assumed", "Assumptions and methods", [list_block(assumptions)]),
        ],
        reproduce=reproduce,
        audit=_audit(change, about, reproduce),
        hover=differences_hover(differences),
    )


def _methods(change: EvaluationChange) -> list[tuple[str, str]]:
    return [(name, distribution.method) for name, distribution in change.items()]


def _title(change: EvaluationChange) -> str:
    after, before = (called(name, 60) for name in change.names)
    return f"Change from {before} to {after}"


def _name_differences(change: EvaluationChange, texts: Sequence[Sequence[str]]) -> list[str]:
    """What holds of after and of before; what holds of one alone says of which."""
    return name_differences([called(name) for name in change.names], texts)


def _in_a_line(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else "; ".join(text.rstrip(".") for text in texts)


def _threshold(evaluation: Evaluation) -> str:
    threshold = evaluation.data.threshold
    return "predictions were passed" if threshold is None else f"{threshold:.6g}"


def _difference(change: EvaluationChange, metric: str) -> Difference:
    distribution, both = change[metric], (change.after, change.before)
    after, before = (one.labeled_only[metric] for one in both)
    entry = difference_entry(distribution, change.confidence_level, change.scope, after - before)
    chances = {
        "probability_decreased": finite(change.probability_decreased(metric)),
        "probability_increased": finite(change.probability_increased(metric)),
    }
    fell, rose = (
        chance_text(chance(metric)) for chance in (change.probability_decreased, change.probability_increased)
    )
    caption = f"fell: {fell}, rose: {rose}"
    means = {name: finite(one[metric].mean()) for name, one in zip(("after", "before"), both, strict=True)}
    if entry["mean"] is not None:
        entry["mean"] = drop_negative_zero(entry["mean"])
    return Difference(metric, change.sentence(metric), caption, entry | {"metric": metric, **means, **chances})


def _changes_table(change: EvaluationChange, differences: Sequence[Difference]) -> Block:
    entries = [difference.entry for difference in differences]
    rows = [
        [
            entry["metric"],
            shown(entry["mean"], entry["low"], entry["high"]),
            interval_shown(entry["low"], entry["high"]),
            chance_text(change.probability_decreased(entry["metric"])),
            chance_text(change.probability_increased(entry["metric"])),
            shown(entry["labeled_only"]),
            entry["method"],
        ]
        for entry in entries
    ]
    after, before = (called(name, 60) for name in change.names)
    level = level_text(change.confidence_level)
    header = ["metric", "change", f"{level} interval", "P(fell)", "P(rose)", "labeled only", "method"]
    note = f"Change: {after} minus {before}. P(fell) and P(rose) do not say which of the two is better."
    keys = (
        "metric",
        "before",
        "after",
        "mean",
        "low",
        "high",
        "probability_decreased",
        "probability_increased",
        "labeled_only",
        "method",
    )
    csv = csv_link("changes", [{key: entry[key] for key in keys} for entry in entries])
    return table_block("changes-table", header, rows, note=note, csv=csv)


def _estimates_table(change: EvaluationChange) -> Block:
    after, before = change.names
    level = level_text(change.confidence_level)
    header = ["metric", before, f"{before}, {level} interval", after, f"{after}, {level} interval"]
    both = (change.before, change.after)
    rows = [[metric, *(text for one in both for text in _estimate(change, one, metric))] for metric in change]
    return table_block("aside-table", header, rows)


def _estimate(change: EvaluationChange, evaluation: Evaluation, metric: str) -> list[str]:
    low, high = map(finite, evaluation[metric].interval(change.confidence_level))
    return [shown(finite(evaluation[metric].mean()), low, high), interval_shown(low, high)]


def _rows_table(change: EvaluationChange) -> Block:
    """Return how many rows there are of each kind, which shows how the mix of rows changed."""
    counts = [evaluation.data.counts() for evaluation in (change.before, change.after)]
    positive = [percent(n["positive"] / n["labeled"]) if n["labeled"] else "no labels" for n in counts]
    rows = [
        ["number", *(f"{n['rows']:,}" for n in counts)],
        ["labels missing", *(percent(n["missing"] / n["rows"]) for n in counts)],
        ["positive among labeled", *positive],
    ]
    after, before = change.names
    return table_block("rows-table", ["rows", before, after], rows)


def _reproduce(change: EvaluationChange, about: About) -> dict[str, Any]:
    own = "" if change.confidence_level == change.after.confidence_level else f"{change.confidence_level!r}"
    level = f", confidence_level={own}" if own else ""
    groups = change.of_groups
    if groups is not None:
        notes, call = code_of_call("evaluate_by", groups.arguments)
        arguments = dict(groups.arguments)
        code = [*notes, f"result = {call}", f"change = result.compare({groups.after}, {groups.before}{level})"]
    else:
        code, arguments = [], dict(change.before.arguments) | dict(change.after.arguments)
        for name, one in (("after", change.after), ("before", change.before)):
            notes, call = call_of(one)
            # In a line of its own a name would be code.
            whose = visible(change.names[name == "before"], 60)
            code += [*(f"{note}, of {whose}" for note in notes[:1]), *notes[1:]]
            code.append(f"{name} = {call}")
        named = "" if change.names == ("after", "before") else f", names={change.names!r}"
        code.append(f"change = dm.compare_evaluations(after, before{named}{level})")
    methods = {distribution.method for distribution in change.values()}
    code = ["import darkmetrics as dm", "", *code, f'change.report("report.html"{about.code})']
    return reproduction(code, arguments, methods, about.source)


def _audit(change: EvaluationChange, about: About, reproduce: dict[str, Any]) -> dict[str, Any] | None:
    if about.audit is None:
        return None
    sets = [
        {"name": name, "rows": one.data.n_rows, "sha256": data_hash(one.data)}
        for name, one in zip(change.names, (change.after, change.before), strict=True)
    ]
    return {"facts": source_facts(about.audit, "audit"), "sets": sets, "versions": reproduce["versions"]}
