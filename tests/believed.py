"""A label model for tests that believes what it is told."""

from dataclasses import dataclass
from typing import Any

from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missing import Mechanism, Posterior


@dataclass(frozen=True)
class Believed(Mechanism):
    """Nodes as given."""

    believed: Posterior

    def posterior(self, data: EvaluationSet) -> Posterior:
        return self.believed

    def describe(self, data: EvaluationSet, posterior: Any = None) -> str:
        return "Assumed: the nodes given."
