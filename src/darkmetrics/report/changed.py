"""The page of a change: what moved from one set of rows to another, and how sure that is."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Unpack

from darkmetrics._text import called, visible
from darkmetrics.argument_types import PageSettings, PathLike
from darkmetrics.changes.change import EvaluationChange
from darkmetrics.changes.wording import drop_negative_zero, name_differences
from darkmetrics.evaluation import Evaluation
from darkmetrics.report import sentences
from darkmetrics.report.differences import About, Difference, Table, differences_page, law_entry, saved
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.report.render import ReportPage, write_or_show
from darkmetrics.report.reproduce import call_of, code_of_call, data_hash, reproduction, source_facts
from darkmetrics.tables import chance_text, finite, level_text

# Metrics with a tile of their own.
_TILES = 8


def write_change_report(
    change: EvaluationChange, path: PathLike | None = None, **about: Unpack[PageSettings]
) -> Path | ReportPage:
    """Writes the page of a change. See `EvaluationChange.report`."""
    title = about.get("title") or _title(change)
    return write_or_show(path, title, lambda: change_page(change, **about))


def change_page(change: EvaluationChange, **told: Unpack[PageSettings]) -> str:
    """The page as text."""
    about = About.of(**told)
    differences = [_difference(change, metric) for metric in change]
    reproduce = _reproduce(change, about)
    both = change.after, change.before
    above = [change.same_rows, *change.warned()]
    warned = _name_differences(change, [[one.message for one in evaluation.warnings] for evaluation in both])
    return differences_page(
        title=_title(change) if about.title is None else str(about.title),
        warnings=[*filter(None, [change.same_rows]), *warned],
        counts=change._words()[0],
        facts={
            "assumed": _in_a_line(_name_differences(change, [[sentences.assumed(one)] for one in both])),
            "intervals for": "these rows" if change.scope == "rows" else "the populations that the rows came from",
            "threshold": _in_a_line(_name_differences(change, [[_threshold(one)] for one in both])),
            "date": about.date,
        },
        about=about,
        audit=_audit(change, about, reproduce),
        reproduce=reproduce,
        tiles=[_tile(change, one) for one in islice(differences, _TILES)],
        words=[change.sentence(metric) for metric in dict.fromkeys([change.surest, *change])],
        tables=_tables(change, differences),
        differences=differences,
        zero="no change",
        spread="How likely each change is",
        level=level_text(change.confidence_level),
        assumed=[
            *_name_differences(change, [[*filter(None, one.assumption.split("\n"))] for one in both]),
            *(text for text in change._notes() if text not in above),
            *(f"Change in {way}" for way in sentences.methods(_methods(change), change.scope)),
        ],
    )


def _methods(change: EvaluationChange) -> list[tuple[str, str]]:
    return [(name, distribution.method) for name, distribution in change.items()]


def _title(change: EvaluationChange) -> str:
    after, before = (called(name, 60) for name in change.names)
    return f"Did it get worse from {before} to {after}?"


def _name_differences(change: EvaluationChange, texts: Sequence[Sequence[str]]) -> list[str]:
    """What holds of after and of before; what holds of one alone says of which."""
    return name_differences([called(name) for name in change.names], texts)


def _in_a_line(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else "; ".join(text.rstrip(".") for text in texts)


def _threshold(evaluation: Evaluation) -> str:
    threshold = evaluation.data.threshold
    return "decisions were given" if threshold is None else f"{threshold:.6g}"


def _difference(change: EvaluationChange, metric: str) -> Difference:
    distribution, both = change[metric], (change.after, change.before)
    after, before = (one.labeled_only[metric] for one in both)
    entry = law_entry(distribution, change.confidence_level, change.scope, after - before)
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


def _tile(change: EvaluationChange, one: Difference) -> tuple[str, str, str]:
    mean, low, high = (one.entry[key] for key in ("mean", "low", "high"))
    level = level_text(change.confidence_level)
    note = f"change {shown(mean, low, high)} ({level}: {interval_shown(low, high)})"
    return f"P({called(one.name, 40)} fell)", chance_text(change.probability_decreased(one.name)), note


def _tables(change: EvaluationChange, differences: Sequence[Difference]) -> list[Table]:
    level = level_text(change.confidence_level)
    after, before = change.names
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
    moved = Table(
        "changes",
        "What moved",
        ["metric", "change", f"{level} interval", "P(fell)", "P(rose)", "labeled only", "method"],
        [
            [
                one["metric"],
                shown(one["mean"], one["low"], one["high"]),
                interval_shown(one["low"], one["high"]),
                chance_text(change.probability_decreased(one["metric"])),
                chance_text(change.probability_increased(one["metric"])),
                shown(one["labeled_only"]),
                one["method"],
            ]
            for one in (difference.entry for difference in differences)
        ],
        note=f"Change: {called(after, 60)} less {called(before, 60)}. Fell and rose are chances, whichever is better.",
        csv=saved([{key: one.entry[key] for key in keys} for one in differences]),
    )
    both = (before, change.before), (after, change.after)
    header = [text for name, _ in both for text in (name, f"{name}, {level} interval")]
    aside = [[metric, *(text for _, one in both for text in _estimate(change, one, metric))] for metric in change]
    return [
        moved,
        Table("aside", "Side by side", ["metric", *header], aside),
        Table("rows", "The rows", ["rows", before, after], _rows([one for _, one in both])),
    ]


def _estimate(change: EvaluationChange, evaluation: Evaluation, metric: str) -> list[str]:
    low, high = map(finite, evaluation[metric].interval(change.confidence_level))
    return [shown(finite(evaluation[metric].mean()), low, high), interval_shown(low, high)]


def _rows(both: Sequence[Evaluation]) -> list[list[str]]:
    """How many rows there are, and how many of them of each kind: what the mix of rows shows of itself."""
    counts = [one.data.counts() for one in both]
    return [
        ["number", *(f"{one['rows']:,}" for one in counts)],
        ["labels missing", *(percent(one["missing"] / one["rows"]) for one in counts)],
        [
            "positive among labeled",
            *(percent(one["positive"] / one["labeled"]) if one["labeled"] else "no labels" for one in counts),
        ],
    ]


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
    code = ["import darkmetrics as dm", "", *code, f'change.report("report.html"{about.said})']
    return reproduction(code, arguments, methods, about.source)


def _audit(change: EvaluationChange, about: About, reproduce: dict[str, Any]) -> dict[str, Any] | None:
    if about.audit is None:
        return None
    sets = [
        {"name": name, "rows": one.data.n_rows, "sha256": data_hash(one.data)}
        for name, one in zip(change.names, (change.after, change.before), strict=True)
    ]
    return {"facts": source_facts(about.audit, "audit"), "sets": sets, "versions": reproduce["versions"]}
