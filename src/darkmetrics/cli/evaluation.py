"""What the commands that evaluate have in common."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Sequence

import darkmetrics as dm
from darkmetrics.cli.inputs import Rows, load, load_reference
from darkmetrics.cli.options import DataOptions, DecisionOptions, ModelOptions, ReferenceOption, ZeroDivisionOption
from darkmetrics.cli.output import Result, Table, say
from darkmetrics.exceptions import InputError


def load_rows(data: DataOptions, decision: DecisionOptions, model: ModelOptions) -> Rows:
    """The rows with every column that an evaluation may need."""
    return load(data, pred=decision.pred, prob=model.prob)


def evaluated(
    rows: Rows,
    metrics: Sequence[str],
    decision: DecisionOptions,
    model: ModelOptions,
    reference: ReferenceOption,
    zero_division: ZeroDivisionOption,
    seed: int | None,
) -> dm.Evaluation:
    """The evaluation that the options ask for."""
    return dm.evaluate(
        **rows.data,
        metrics=metrics,
        threshold=decision.threshold,
        label_model=_label_model(rows, model),
        missingness=model.missingness,
        calibration=load_reference(reference.reference, rows),
        method=model.method,
        zero_division=zero_division_value(zero_division),
        rng=seed,
        confidence_level=model.confidence_level,
    )


def _label_model(rows: Rows, model: ModelOptions) -> object:
    if "prob" in rows.columns:
        if model.label_model != "auto":
            raise InputError("--prob: --label-model already says where probabilities come from. Give one of them.")
        return rows.columns["prob"]
    try:
        return float(model.label_model)
    except ValueError:
        return model.label_model


def zero_division_value(option: ZeroDivisionOption) -> object:
    """What the library takes for the option."""
    try:
        return float(option.zero_division)
    except ValueError:
        return option.zero_division


def say_words(result: dm.Evaluation) -> None:
    """What stands above the table."""
    say("\n".join([*result.words(), ""]))


def as_result(result: dm.Evaluation, targets: list[dict[str, object]]) -> Result:
    """An evaluation in the shapes that the formats want; targets have columns of their own."""
    document = result.to_dict()
    header, rows = result.table()
    records = [{"metric": name, **entry} for name, entry in document["metrics"].items()]
    if targets:
        document["targets"] = targets
        by_metric = {verdict["metric"]: verdict for verdict in targets}
        header = [*header, "target", "probability"]
        rows = [[*row, *_target_cells(by_metric.get(row[0]))] for row in rows]
        wanted = ("target", "probability", "met")
        for record in records:
            verdict = by_metric.get(record["metric"], {})
            record.update({f"target_{key}" if key != "target" else key: verdict.get(key) for key in wanted})
    return Result(document, records, [Table(header, rows)])


def _target_cells(verdict: dict[str, object] | None) -> list[str]:
    if verdict is None:
        return ["", ""]
    chance = verdict["probability"]
    return [f"{verdict['side']} {verdict['target']:g}", "undefined" if chance is None else f"{chance:.4g}"]
