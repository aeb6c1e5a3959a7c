"""The confusion matrix of a report: how many rows of each kind, with what missing labels leave open."""

from typing import Any

from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import MethodError
from darkmetrics.methods import Gaussian
from darkmetrics.metrics.confusion import FN, FP, TN, TP, ConfusionMetric, Linear
from darkmetrics.metrics.metric import UNIT
from darkmetrics.tables import finite

# Each count with the way it moves when a missing row decided positive, or negative, turns out positive.
_COUNTS: dict[str, tuple[Linear, tuple[int, int]]] = {
    "tp": (TP, (1, 0)),
    "fp": (FP, (-1, 0)),
    "fn": (FN, (0, 1)),
    "tn": (TN, (0, -1)),
}


def confusion(evaluation: Evaluation) -> dict[str, Any] | None:
    """Known rows, estimate and interval of each of the four counts; None where no law of them is known.

    Counts are of these rows, whatever the scope of the evaluation is; weights count where rows have some.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.report.confusion import confusion
    >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], label_model=[0.6])
    >>> confusion(result)["tp"]
    {'known': 1.0, 'mean': 1.6, 'low': 1.0, 'high': 2.0}
    """
    evaluation = evaluation.rows
    data, everything = evaluation.data, TP + FP + FN + TN
    sums = data.by_decision
    total = sum(sum(both) for both in sums.values())
    known = dict(zip(("tp", "fn"), sums["positives"], strict=True)) | dict(
        zip(("fp", "tn"), sums["negatives"], strict=True)
    )
    metrics = [
        ConfusionMetric(name=name, formula=count / everything, range=UNIT, direction=direction)
        for name, (count, direction) in _COUNTS.items()
    ]
    # Sums of unequal weights take a third of a second each, and nobody tells a normal law from them.
    method = Gaussian() if data.unequal_weights else evaluation.method
    try:
        laws = list(method.laws([one.bind(data, 0.0) for one in metrics], evaluation.nodes, rng=0))
    except MethodError:
        return None
    found: dict[str, Any] = {"weighted": data.cells.weight is not None}
    for metric, law in zip(metrics, laws, strict=True):
        ends = law.interval(evaluation.confidence_level)
        mean, low, high = (finite(round(total * value, 9)) for value in (law.mean(), *ends))
        found[metric.name] = {"known": known[metric.name], "mean": mean, "low": low, "high": high}
    return found
