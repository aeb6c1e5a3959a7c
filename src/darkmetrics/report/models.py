"""The page of a comparison: which model is better, and how sure that is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from darkmetrics._text import called
from darkmetrics.argument_types import PageSettings, PathLike
from darkmetrics.comparison.ranking import range_text
from darkmetrics.comparison.result import Comparison
from darkmetrics.comparison.rows import SharedRows
from darkmetrics.distributions import MetricDistribution
from darkmetrics.report import sentences
from darkmetrics.report.differences import SCOPES, About, Difference, Table, differences_page, law_entry, saved
from darkmetrics.report.numbers import interval_shown, percent, shown
from darkmetrics.report.render import ReportPage, write_or_show
from darkmetrics.report.reproduce import code_of_call, columns_hash, reproduction, source_facts
from darkmetrics.tables import chance_text, finite, level_text

# Models with a tile of their own, and models whose places fit side by side.
_TILES, _PLACES = 8, 10


def write_comparison_report(
    found: Comparison, path: PathLike | None = None, **about: Unpack[PageSettings]
) -> Path | ReportPage:
    """Writes the page of a comparison. See `Comparison.report`."""
    title = about.get("title") or _title(found)
    return write_or_show(path, title, lambda: comparison_page(found, **about))


def comparison_page(found: Comparison, **told: Unpack[PageSettings]) -> str:
    """The page as text."""
    about = About.of(**told)
    judged = [metric for metric, record in found.metrics.items() if record.better != "neither"]
    differences = [_difference(found, metric, model) for metric in found.metrics for model in found.models[1:]]
    methods = {one.entry["method"] for one in differences}
    # Chances of places among several are drawn, unless all labelings were gone through.
    if len(found.models) > 2 and any(found.probability_best(metric).method != "exact" for metric in judged):
        methods.add("monte carlo")
    reproduce = _reproduce(found, about, methods)
    counts = found.rows.counts
    missing = counts["missing"] / max(counts["rows"], 1)
    of_rows = f"{counts['missing']:,} of {counts['rows']:,} rows"
    return differences_page(
        title=_title(found) if about.title is None else str(about.title),
        warnings=[warned.message for warned in found.warnings],
        counts=found._words()[0],
        facts={
            "assumed": _assumption(found).partition("\n")[0].removeprefix("Assumed: "),
            "intervals for": SCOPES[found.scope],
            "threshold": _thresholds(found),
            "date": about.date,
        },
        about=about,
        audit=_audit(found, about, reproduce),
        reproduce=reproduce,
        tiles=[*_tiles(found, judged), ("labels missing", percent(missing), of_rows)],
        words=_words(found, judged),
        tables=[*_tables(found, differences), *_places(found, judged)],
        differences=differences,
        zero="no difference",
        spread="How likely each difference is",
        level=level_text(found.confidence_level),
        assumed=_assumed(found, differences),
    )


def _title(found: Comparison) -> str:
    if len(found.models) > 2:
        return f"Which of {len(found.models):,} models is best?"
    return f"Which model is better: {' or '.join(called(model, 60) for model in found.models)}?"


def _assumption(found: Comparison) -> str:
    return found.beliefs.assumption or "nothing: no label is missing"


def _thresholds(found: Comparison) -> str:
    cuts = found.rows.thresholds
    if len(set(cuts)) == 1:
        return f"{cuts[0]:.6g}"
    return ", ".join(f"{cut:.6g} ({called(model, 40)})" for model, cut in zip(found.models, cuts, strict=True))


def _tiles(found: Comparison, judged: Sequence[str]) -> list[tuple[str, str, str]]:
    """The chance of each model to be best in the first metric."""
    if not judged:
        return []
    metric = judged[0]
    best, what = found.probability_best(metric), f"chance to be best in {called(metric, 40)}"
    chances, tie = dict(best.chances), best.tie
    # Those that are likeliest to be best, where there is no room for all.
    likeliest = sorted(chances, key=lambda model: -np.nan_to_num(chances[model]))[:_TILES]
    tiles = [(model, best.text(model), what) for model in chances if model in likeliest]
    return [*tiles, ("a tie", chance_text(tie), f"for the best {called(metric, 40)}")] if tie >= 0.005 else tiles


def _words(found: Comparison, judged: Sequence[str]) -> list[str]:
    if len(found.models) == 2:
        return [found.sentence(metric) for metric in found.metrics]
    if judged:
        return [*(str(found.probability_best(metric)) for metric in judged), *found.few_labels()]
    return [found.sentence(next(iter(found.metrics)), model, found.models[0]) for model in found.models[1:]]


def _difference(found: Comparison, metric: str, model: str) -> Difference:
    """A model against the first one."""
    first = found.models[0]
    distribution = found.difference(metric, model, first)
    only = found[model].labeled_only[metric] - found[first].labeled_only[metric]
    entry = law_entry(distribution, found.confidence_level, found.scope, only)
    directed = found.metrics[metric].better != "neither"
    better = finite(found.probability_better(metric, model, first)) if directed else None
    caption = f"{called(model, 60)} is better with probability {_chance(better)}" if directed else ""
    if directed:
        left_open = range_text(np.nan if better is None else better, found.better_range(metric, model, first))
        caption += f" ({left_open} with exact scores)" if left_open else ""
    about = {"metric": metric, "model": model, "other": first, "better": better, "directed": directed}
    name = f"{called(metric, 60)}: {called(model, 40)} less {called(first, 40)}"
    return Difference(name, found.sentence(metric, model, first), caption, entry | about)


def _chance(chance: float | None) -> str:
    return chance_text(np.nan if chance is None else chance)


def _tables(found: Comparison, differences: Sequence[Difference]) -> list[Table]:
    interval = f"{level_text(found.confidence_level)} interval"
    records = [_model(found, metric, model) for metric in found.metrics for model in found.models]
    labels = bool(found.rows.counts["labeled"])
    models = Table(
        "models",
        "The models",
        ["metric", "model", "estimate", interval, "labeled only", "best"],
        [
            [
                one["metric"],
                one["model"],
                shown(one["mean"], one["low"], one["high"]),
                interval_shown(one["low"], one["high"]),
                shown(one["labeled_only"]) if labels else "no labels",
                _chance(one["best"]) if one["directed"] else "",
            ]
            for one in records
        ],
        words=2,
        note="Best: the chance to be better than every other model. A tie is not better.",
        csv=saved([{key: value for key, value in one.items() if key != "directed"} for one in records]),
    )
    keys = ("metric", "model", "other", "mean", "low", "high", "better", "labeled_only", "method")
    against = Table(
        "differences",
        f"Against {called(found.models[0], 60)}",
        ["metric", "model", "difference", interval, "better", "labeled only", "method"],
        [
            [
                one["metric"],
                one["model"],
                shown(one["mean"], one["low"], one["high"]),
                interval_shown(one["low"], one["high"]),
                _chance(one["better"]) if one["directed"] else "",
                shown(one["labeled_only"]) if labels else "no labels",
                one["method"],
            ]
            for one in (difference.entry for difference in differences)
        ],
        words=2,
        note=f"Difference: the metric of the model less that of {called(found.models[0], 60)}, under labels that both "
        "share. Better: the chance that the model is better; a tie is not better.",
        csv=saved([{key: one.entry[key] for key in keys} for one in differences]),
    )
    return [models, against]


def _model(found: Comparison, metric: str, model: str) -> dict[str, Any]:
    evaluation = found[model]
    low, high = evaluation.intervals[metric]
    distribution: MetricDistribution = evaluation[metric]
    directed = found.metrics[metric].better != "neither"
    numbers = {"mean": distribution.mean(), "low": low, "high": high, "labeled_only": evaluation.labeled_only[metric]}
    record = {"metric": metric, "model": model, "directed": directed, **{k: finite(v) for k, v in numbers.items()}}
    return record | {"best": finite(found.probability_best(metric)[model]) if directed else None}


def _places(found: Comparison, judged: Sequence[str]) -> list[Table]:
    """The chance of every place in the first metric, of three models or more."""
    if not judged or not 2 < len(found.models) <= _PLACES:
        return []
    header, rows = found.rank_probabilities(judged[0])._table()
    note = "The chance of each place; models that tie share the better one."
    heading = f"Places in {called(judged[0], 60)}"
    return [Table("places", heading, ["model", *header[1:2], *(f"place {at}" for at in header[2:])], rows, note=note)]


def _assumed(found: Comparison, differences: Sequence[Difference]) -> list[str]:
    words = [*filter(None, _assumption(found).split("\n")), *found._notes()]
    ways = sentences.methods(((one.entry["metric"], one.entry["method"]) for one in differences), found.scope)
    return words + [f"Differences in {way}" for way in ways]


def _reproduce(found: Comparison, about: About, methods: set[str]) -> dict[str, Any]:
    notes, call = code_of_call("compare", found.arguments)
    code = ["import darkmetrics as dm", "", *notes, f"found = {call}", f'found.report("report.html"{about.said})']
    return reproduction(code, found.arguments, methods, about.source)


def _audit(found: Comparison, about: About, reproduce: dict[str, Any]) -> dict[str, Any] | None:
    if about.audit is None:
        return None
    facts, rows = source_facts(about.audit, "audit"), found.rows
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
