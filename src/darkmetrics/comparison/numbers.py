"""What a comparison says as numbers: a document, flat records, and a table."""

from typing import TYPE_CHECKING, Any

from darkmetrics._text import short
from darkmetrics.tables import decimals_for, finite, interval_text, level_text, number_text

if TYPE_CHECKING:
    from darkmetrics.comparison.result import Comparison


def table_of(comparison: "Comparison") -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table as text: one row per metric and model."""
    header = ["", "", "estimate", f"{level_text(comparison.confidence_level)} interval", "labeled only", "best"]
    rows = []
    for metric, record in comparison.metrics.items():
        best = None if record.better == "neither" else comparison.probability_best(metric)
        for place, model in enumerate(comparison.models):
            found = comparison[model]
            low, high = found.intervals[metric]
            decimals = decimals_for(high - low)
            rows.append(
                [
                    metric if place == 0 else "",
                    short(model),
                    number_text(found[metric].mean(), decimals),
                    interval_text((low, high), decimals),
                    number_text(found.labeled_only[metric], 3) if found.data.n_labeled else "no labels",
                    "" if best is None else best.text(model),
                ]
            )
    return header, rows


def numbers_of(comparison: "Comparison") -> dict[str, Any]:
    """Plain numbers at full precision; every other model is compared with the first."""
    level, first = comparison.confidence_level, comparison.models[0]
    in_buckets = comparison.rows.score_bins is not None
    found: dict[str, Any] = {}
    for metric, record in comparison.metrics.items():
        directed = record.better != "neither"
        differences = [
            {
                "model": model,
                "other": first,
                "better": finite(comparison.probability_better(metric, model, first)) if directed else None,
                **comparison.difference(metric, model, first).to_dict(level),
                **({"binning_error": finite(comparison.binning_error(metric, model, first))} if in_buckets else {}),
            }
            for model in comparison.models[1:]
        ]
        found[metric] = {
            "better": record.better,
            "models": {model: comparison[model][metric].to_dict(level) for model in comparison.models},
            "labeled_only": {model: finite(comparison[model].labeled_only[metric]) for model in comparison.models},
            "differences": differences,
            "best": comparison.probability_best(metric).to_dict() if directed else None,
        }
    return {
        "schema": "darkmetrics.comparison/1",
        "counts": comparison.rows.counts,
        "models": list(comparison.models),
        "thresholds": dict(zip(comparison.models, comparison.rows.thresholds, strict=True)),
        "score_bins": comparison.rows.score_bins,
        "scope": comparison.scope,
        "assumption": comparison.beliefs.assumption,
        "confidence_level": level,
        "warnings": [warned._asdict() for warned in comparison.warnings],
        "metrics": found,
    }


def records_of(comparison: "Comparison") -> list[dict[str, Any]]:
    """One flat record per metric and model."""
    rows = []
    for metric, entry in comparison.to_dict()["metrics"].items():
        against = {one["model"]: one for one in entry["differences"]}
        for model in comparison.models:
            distribution, one = entry["models"][model], against.get(model, {})
            rows.append(
                {
                    "metric": metric,
                    "model": model,
                    "scope": comparison.scope,
                    **{key: distribution[key] for key in ("mean", "low", "high", "method")},
                    "labeled_only": entry["labeled_only"][model],
                    "best": None if entry["best"] is None else entry["best"]["chances"][model],
                    "better_than_first": one.get("better"),
                    **{f"difference_{key}": one.get(key) for key in ("mean", "low", "high")},
                }
            )
    return rows
