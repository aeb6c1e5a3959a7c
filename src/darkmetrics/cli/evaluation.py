"""What the commands that evaluate have in common."""

from __future__ import annotations  # names of the library in annotations must not import it

from collections.abc import Callable, Sequence

import darkmetrics as dm
from darkmetrics._text import number_from
from darkmetrics.cli.inputs import load, load_reference
from darkmetrics.cli.messages import WordedError
from darkmetrics.cli.options import LABEL_MODELS, EstimateOptions, EvaluationOptions
from darkmetrics.cli.output import Result, Table, in_words, say
from darkmetrics.cli.rows import Rows
from darkmetrics.cli.targets import metrics_wanted, targets_from
from darkmetrics.exceptions import unknown_name


def evaluated_file(
    options: EvaluationOptions, seed: int | None, begin: Callable[[], None]
) -> tuple[Rows, dm.Evaluation, dict[str, float]]:
    """The rows of a file, their evaluation, and the targets; `begin` is called before each of the two steps."""
    targets = targets_from(options.target)
    begin()
    rows = load(options, pred=options.pred, prob=options.prob)
    begin()
    with in_words(rows.names):
        return rows, evaluated(rows, metrics_wanted(options.metric, targets), options, seed), targets


def evaluated(rows: Rows, metrics: Sequence[str], options: EstimateOptions, seed: int | None) -> dm.Evaluation:
    """The evaluation that the options ask for."""
    model = label_model_of(options)
    return dm.evaluate(
        **rows.data(options.threshold),
        metrics=metrics,
        label_model=rows.columns.get("prob", model),
        missingness=options.missingness,
        reference=load_reference(options.reference, rows.names, rows.pos_label),
        method=options.method,
        zero_division=zero_division_of(options),
        rng=seed,
        confidence_level=options.confidence_level,
    )


def label_model_of(options: EstimateOptions) -> float | str:
    """The label model that the options name; beside a column of probabilities there is none."""
    if options.prob is not None and options.label_model != "auto":
        raise WordedError("--prob: --label-model already says where probabilities come from. Give one of them.")
    probability = number_from(options.label_model)
    if probability is None:
        if options.label_model not in LABEL_MODELS:
            raise unknown_name("label_model", "label model", options.label_model, LABEL_MODELS)
        return options.label_model
    if not 0 <= probability <= 1:
        raise WordedError(f"--label-model: {options.label_model}. A probability must lie in [0, 1].")
    return probability


def zero_division_of(options: EstimateOptions) -> float | str:
    """What a 0/0 counts as, or a word about it."""
    number = number_from(options.zero_division)
    return options.zero_division if number is None else number


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
