"""A comparison as plain numbers: for JSON, and flat for tables."""

from typing import TYPE_CHECKING, Any

from darkmetrics.tables import finite

if TYPE_CHECKING:
    from darkmetrics.comparison.result import Comparison


def as_numbers(found: "Comparison") -> dict[str, Any]:
    """Everything at full precision; every other model is compared with the first."""
    level, first = found.confidence_level, found.models[0]
    metrics: dict[str, Any] = {}
    for metric, record in found.metrics.items():
        directed = record.better != "neither"
        differences = [
            {
                "model": model,
                "other": first,
                "better": finite(found.better(metric, model, first)) if directed else None,
                **found.difference(metric, model, first).to_dict(level),
            }
            for model in found.models[1:]
        ]
        metrics[metric] = {
            "better": record.better,
            "models": {model: found[model][metric].to_dict(level) for model in found.models},
            "labelled_only": {model: finite(found[model].labelled_only[metric]) for model in found.models},
            "differences": differences,
            "best": found.best(metric).to_dict() if directed else None,
        }
    return {
        "schema": "darkmetrics.comparison/1",
        "counts": found.rows.counts,
        "models": list(found.models),
        "thresholds": dict(zip(found.models, found.rows.thresholds, strict=True)),
        "buckets": found.rows.buckets,
        "scope": "rows",
        "assumption": found.beliefs.assumption,
        "confidence_level": level,
        "warnings": [warned._asdict() for warned in found.warnings],
        "metrics": metrics,
    }


def records_of(found: "Comparison") -> list[dict[str, Any]]:
    """One flat record per metric and model."""
    rows = []
    for metric, entry in as_numbers(found)["metrics"].items():
        against = {one["model"]: one for one in entry["differences"]}
        for model in found.models:
            law, one = entry["models"][model], against.get(model, {})
            rows.append(
                {
                    "metric": metric,
                    "model": model,
                    **{key: law[key] for key in ("mean", "low", "high", "method")},
                    "labelled_only": entry["labelled_only"][model],
                    "best": None if entry["best"] is None else entry["best"]["chances"][model],
                    "better_than_first": one.get("better"),
                    **{f"difference_{key}": one.get(key) for key in ("mean", "low", "high")},
                }
            )
    return rows
