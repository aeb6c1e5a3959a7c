"""What every label model is: a record with `nodes`."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.evaluation_set import EvaluationSet


class Nodes(NamedTuple):
    """Weighted sets of probabilities: `probability[k, i]` for cell `i` of `missing_cells`, with weight `weight[k]`.

    One node means that the probabilities are taken as known.
    """

    weight: FloatArray
    probability: FloatArray

    @classmethod
    def single(cls, probability: FloatArray) -> "Nodes":
        """Probabilities taken as known."""
        return cls(np.ones(1), probability[None, :])


class LabelModel(ABC):
    """A way to find the probabilities of the missing labels."""

    @abstractmethod
    def nodes(self, data: EvaluationSet) -> Nodes:
        """Probabilities that a missing row of each of the set's `missing_cells` is positive."""

    @abstractmethod
    def describe(self, data: EvaluationSet) -> str:
        """What is assumed about the missing labels, in one sentence."""
