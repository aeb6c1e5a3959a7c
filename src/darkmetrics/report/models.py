"""The report of a comparison: which model is better, and how sure that is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from darkmetrics._text import called
from darkmetrics.argument_types import PageSettings, PathLike
from darkmetrics.comparison.ranking import range_text
from darkmetrics.comparison.result import Comparison
from darkmetrics.comparison.rows import SharedRows
from darkmetrics.report import sentences
from darkmetrics.report.differences import (
    SCOPES,
    About,
    Difference,
    difference_entry,
    differences_hover,
    differences_section,
)
from darkmetrics.report.numbers import interval_shown, shown
from darkmetrics.report.render import ReportPage, render_html, write_or_show
from darkmetrics.report.reproduce import code_of_call, columns_hash, reproduction, source_facts
from darkmetrics.report.sections import Block, Report, Section, csv_link, list_block, table_block
from darkmetrics.tables import chance_text, finite, level_text

# Maximum number of models in a table of ranks.
_RANKS = 10
# From this probability on a difference is called one in the answer.
_CLEAR = 0.9


def write_comparison_report(
    comparison: Comparison, path: PathLike | None = None, **about: Unpack[PageSettings]
) -> Path | ReportPage:
    """Write the report of a comparison. See `Comparison.report`."""
    return write_or_show(path, lambda: comparison_report(comparison, **about), comparison.to_dict)


def comparison_page(comparison: Comparison, **about: Unpack[PageSettings]) -> str:
    """Return the report as a page."""
    return render_html(comparison_report(comparison, **about))


def comparison_report(comparison: Comparison, **settings: Unpack[PageSettings]) -> Report:
    """Return the report of a comparison."""
    about = About.of(**settings)
    directed = [metric for metric, record in comparison.metrics.items() if record.better != "neither"]
    differences = [
        _difference(comparison, metric, model) for metric in comparison.metrics for model in comparison.models[1:]
    ]
    methods = {difference.entry["method"] for difference in differences}
    # Ranks among several models are drawn, unless every label assignment was enumerated.
    if len(comparison.models) > 2 and any(comparison.probability_best(metric).method != "exact" for metric in directed):
        methods.add("monte carlo")
    reproduce = _reproduce(comparison, about, methods)
    facts = {
        "assumed": _assumption(comparison).partition("\n")[0].removeprefix("Assumed: "),
        "intervals for": SCOPES[comparison.scope],
        "threshold": _thresholds(comparison),
        "date of the report": about.date,
    }
    level = level_text(comparison.confidence_level)
    return Report(
        title=_title(comparison) if about.title is None else str(about.title),
        answer=_answer(comparison, directed),
        counts=comparison._words()[0],
        warnings=[warned.message for warned in comparison.warnings],
        facts=facts,
        source=about.source,
        sections=[
            *_sentences_section(comparison, directed),
            Section(
                "differences",
                f"Differences from {called(comparison.models[0], 60)}",
                [_differences_table(comparison, differences)],
            ),
            Section("models", "The models", [_models_table(comparison)]),
            *_ranks_section(comparison, directed),
            differences_section(differences, "How likely each difference is", "no difference", level),
            Section("assumed", "Assumptions and methods", [list_block(_assumptions(comparison, differences))]),
        ],
        reproduce=reproduce,
        audit=_audit(comparison, about, reproduce),
        hover=differences_hover(differences),
    )


def _answer(comparison: Comparison, directed: Sequence[str]) -> str:
    """Return the first sentence: the metrics in which each model is better, with probabilities."""
    if len(comparison.models) > 2:
        best = [f"{_leader(comparison, metric)[0]} in {called(metric)}" for metric in directed]
        return f"Most likely best: {', '.join(best)}." if best else "No metric says which model is better."
    other, model = comparison.models
    name = called(model, 60)
    parts: dict[str, list[str]] = {"better": [], "worse": [], "not clearly different": [], "undefined (0/0)": []}
    for metric in directed:
        better, worse = (comparison.probability_better(metric, *pair) for pair in ((model, other), (other, model)))
        side, probability = ("better", better) if not better < worse else ("worse", worse)
        if np.isnan(probability):
            parts["undefined (0/0)"].append(called(metric))
        elif probability < _CLEAR:
            parts["not clearly different"].append(called(metric))
        else:
            parts[side].append(f"{called(metric)} ({chance_text(probability)})")
    texts = [f"{side} in {', '.join(metrics)}" for side, metrics in parts.items() if metrics]
    return f"{name} is {'; '.join(texts)}." if texts else "No metric says which model is better."


def _leader(comparison: Comparison, metric: str) -> tuple[str, str]:
    """Return the model that is most likely best in a metric, and its probability."""
    best = comparison.probability_best(metric)
    model = max(comparison.models, key=lambda name: float(np.nan_to_num(best[name])))
    return called(model, 60), best.text(model)


def _title(comparison: Comparison) -> str:
    if len(comparison.models) > 2:
        return f"Comparison of {len(comparison.models):,} models"
    first, second = (called(model, 60) for model in comparison.models)
    return f"Comparison of {second} with {first}"


def _assumption(comparison: Comparison) -> str:
    return comparison.beliefs.assumption or "nothing: no label is missing"


def _thresholds(comparison: Comparison) -> str:
    cuts = comparison.rows.thresholds
    if len(set(cuts)) == 1:
        return f"{cuts[0]:.6g}"
    return ", ".join(f"{cut:.6g} ({called(model, 40)})" for model, cut in zip(comparison.models, cuts, strict=True))


def _sentences_section(comparison: Comparison, directed: Sequence[str]) -> list[Section]:
    """Return the probability of each of several models to be best; of two models the first sentence has it."""
    if len(comparison.models) == 2:
        return []
    if directed:
        texts = [*(str(comparison.probability_best(metric)) for metric in directed), *comparison.few_labels()]
    else:
        metric, first = next(iter(comparison.metrics)), comparison.models[0]
        texts = [comparison.sentence(metric, model, first) for model in comparison.models[1:]]
    return [Section("words", "Which model is best", [list_block(texts)])]


def _difference(comparison: Comparison, metric: str, model: str) -> Difference:
    """A model against the first one."""
    first = comparison.models[0]
    distribution = comparison.difference(metric, model, first)
    only = comparison[model].labeled_only[metric] - comparison[first].labeled_only[metric]
    entry = difference_entry(distribution, comparison.confidence_level, comparison.scope, only)
    directed = comparison.metrics[metric].better != "neither"
    better = finite(comparison.probability_better(metric, model, first)) if directed else None
    caption = f"{called(model, 60)} is better with probability {_chance(better)}" if directed else ""
    if directed:
        left_open = range_text(np.nan if better is None else better, comparison.better_range(metric, model, first))
        caption += f" ({left_open} with exact scores)" if left_open else ""
    about = {"metric": metric, "model": model, "other": first, "better": better, "directed": directed}
    name = f"{called(metric, 60)}: {called(model, 40)} minus {called(first, 40)}"
    return Difference(name, comparison.sentence(metric, model, first), caption, entry | about)


def _chance(chance: float | None) -> str:
    return chance_text(np.nan if chance is None else chance)


def _models_table(comparison: Comparison) -> Block:
    rows, records = [], []
    for metric in comparison.metrics:
        is_directed = comparison.metrics[metric].better != "neither"
        best = comparison.probability_best(metric) if is_directed else None
        for model in comparison.models:
            evaluation = comparison[model]
            mean, (low, high) = finite(evaluation[metric].mean()), map(finite, evaluation.intervals[metric])
            only = finite(evaluation.labeled_only[metric])
            record = {"metric": metric, "model": model, "mean": mean, "low": low, "high": high, "labeled_only": only}
            records.append(record | {"best": None if best is None else finite(best[model])})
            row = [metric, model, shown(mean, low, high), interval_shown(low, high), _only(comparison, only)]
            rows.append([*row, "" if best is None else _chance(finite(best[model]))])
    level = level_text(comparison.confidence_level)
    header = ["metric", "model", "estimate", f"{level} interval", "labeled only", "P(best)"]
    note = "P(best): the probability that the model is better than every other one. A tie is not better."
    return table_block("models-table", header, rows, words=2, note=note, csv=csv_link("models", records))


def _only(comparison: Comparison, value: float | None) -> str:
    return shown(value) if comparison.rows.counts["labeled"] else "no labels"


def _differences_table(comparison: Comparison, differences: Sequence[Difference]) -> Block:
    entries = [difference.entry for difference in differences]
    rows = [
        [
            entry["metric"],
            entry["model"],
            shown(entry["mean"], entry["low"], entry["high"]),
            interval_shown(entry["low"], entry["high"]),
            _chance(entry["better"]) if entry["directed"] else "",
            _only(comparison, entry["labeled_only"]),
            entry["method"],
        ]
        for entry in entries
    ]
    keys = ("metric", "model", "other", "mean", "low", "high", "better", "labeled_only", "method")
    csv = csv_link("differences", [{key: entry[key] for key in keys} for entry in entries])
    level, first = level_text(comparison.confidence_level), called(comparison.models[0], 60)
    header = ["metric", "model", "difference", f"{level} interval", "P(better)", "labeled only", "method"]
    note = (
        f"Difference: the metric of the model minus that of {first}, for the same labels. P(better): the probability "
    )
    note += "that the model is better; a tie is not better."
    return table_block("differences-table", header, rows, words=2, note=note, csv=csv)


def _ranks_section(comparison: Comparison, directed: Sequence[str]) -> list[Section]:
    """Return the probability of every rank in the first metric, of three models or more."""
    if not directed or not 2 < len(comparison.models) <= _RANKS:
        return []
    header, rows = comparison.rank_probabilities(directed[0])._table()
    header = ["model", header[1], *(f"rank {rank}" for rank in header[2:])]
    note = "The probability of each rank; models that tie share the better one."
    table = table_block("places-table", header, rows, note=note)
    return [Section("places", f"Ranks in {called(directed[0], 60)}", [table])]


def _assumptions(comparison: Comparison, differences: Sequence[Difference]) -> list[str]:
    words = [*filter(None, _assumption(comparison).split("\n")), *comparison._notes()]
    ways = sentences.methods(((one.entry["metric"], one.entry["method"]) for one in differences), comparison.scope)
    return words + [f"Differences in {way}" for way in ways]


def _reproduce(comparison: Comparison, about: About, methods: set[str]) -> dict[str, Any]:
    notes, call = code_of_call("compare", comparison.arguments)
    code = ["import darkmetrics as dm", "", *notes, f"found = {call}", f'found.report("report.html"{about.code})']
    return reproduction(code, comparison.arguments, methods, about.source)


def _audit(comparison: Comparison, about: About, reproduce: dict[str, Any]) -> dict[str, Any] | None:
    if about.audit is None:
        return None
    facts, rows = source_facts(about.audit, "audit"), comparison.rows
    counts = {"rows": rows.counts["rows"], "sha256": rows_hash(rows)}
    return {"facts": facts, **counts, "versions": reproduce["versions"]}


def rows_hash(rows: SharedRows) -> str:
    """SHA-256 of the rows that models were compared on; the same whether rows were counted before or not.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.report.models import rows_hash
    >>> def of(labels, a, b):
    ...     return rows_hash(
    ...         dm.compare(labels, {"a": a, "b": b}, missingness=dm.missing.Fixed(0.5), metrics="accuracy").rows
    ...     )
    >>> first = of([1, 0, None], [0.9, 0.2, 0.7], [0.8, 0.3, 0.1])
    >>> first == of([None, 1, 0], [0.7, 0.9, 0.2], [0.1, 0.8, 0.3]), first == of([1, 0, None], [0.9] * 3, [0.8] * 3)
    (True, False)
    """
    told = [*rows.score, *rows.decision.astype(np.float64)]
    told += [np.nan_to_num(column, nan=-1.0) for column in (rows.weight, rows.probability) if column is not None]
    kinds, number = np.unique(np.stack(told, axis=1), axis=0, return_inverse=True)
    columns = {f"column {i}": column for i, column in enumerate(kinds.T)}
    for name in ("positives", "negatives", "missing"):
        counts = np.zeros(len(kinds), dtype=np.int64)
        np.add.at(counts, number.reshape(-1), getattr(rows, name).astype(np.int64))
        columns[name] = counts
    return columns_hash(f"{rows.names!r} {rows.thresholds!r} {rows.score_bins!r}\n", columns)
