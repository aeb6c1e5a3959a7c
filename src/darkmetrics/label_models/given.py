"""Probabilities that the user supplies, one per row."""

from dataclasses import dataclass

import numpy as np

from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.label_models.base import LabelModel
from darkmetrics.nodes import Nodes


@dataclass(frozen=True)
class Given(LabelModel):
    """The probabilities given with the evaluation set (`probability=`), taken as known.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> data = dm.EvaluationSet([1, 0, None], [0.9, 0.4, 0.7], probability=[0.8])
    >>> round(dm.evaluate(data, label_model="given", metrics="precision")["precision"].mean(), 9)
    0.9
    """

    def nodes(self, data: EvaluationSet) -> Nodes:
        if data.cells.probability is None:
            raise InputError("label_model: 'given' needs an EvaluationSet built with probability=.")
        chance = data.cells.probability[data.missing_cells]
        without = int(data.missing_counts[np.isnan(chance)].sum())
        if without:
            raise InputError(
                f"probability: {without:,} of {data.n_missing:,} rows without a label have none. "
                "Give one for every row when building the set."
            )
        return Nodes.single(chance)

    def describe(self, data: EvaluationSet, nodes: Nodes) -> str:
        return "Assumed: missing labels are independent, with the probabilities given."
