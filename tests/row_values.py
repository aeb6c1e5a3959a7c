"""Values per row of several kinds at once, which no single mechanism has: sets count by all of them."""

from typing import Any

from darkmetrics import EvaluationSet


class RowValues:
    """What an EvaluationSet asks of a mechanism."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def row_values(self) -> dict[str, Any]:
        return self.values

    features = None

    def without_rows(self) -> None:
        """Several kinds of values state no mechanism."""

    def learn_rows(self, positive: Any, missing: Any, data: Any) -> dict[str, Any]:
        return {}


KINDS = ("probability", "strata", "propensity", "age", "delay", "maturity", "scored_at", "labeled_at", "as_of")


def build_set(*columns: Any, **arguments: Any) -> EvaluationSet:
    """Return the set of arguments that may have values per row among them."""
    values = {name: arguments.pop(name) for name in KINDS if name in arguments}
    known = {name: value for name, value in values.items() if value is not None}
    return EvaluationSet(*columns, missingness=RowValues(**known) if known else None, **arguments)
