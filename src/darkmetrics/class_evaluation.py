"""ClassEvaluation: the distributions of the metrics of several classes on one evaluation set."""

from dataclasses import dataclass
from typing import Any, NoReturn

from darkmetrics._text import counted
from darkmetrics.data.class_set import ClassSet, describe_labels
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError


@dataclass(frozen=True, eq=False, repr=False)
class ClassEvaluation(Evaluation):
    """The distribution of each metric on one evaluation set with several classes."""

    data: ClassSet  # type: ignore[assignment]  # several columns of scores

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header, rows = super()._table()
        return header, rows

    def _words(self) -> list[str]:
        n, m = self.data.n_rows, self.data.n_missing
        labels = describe_labels(self.data)
        words = [f"{counted(n, 'row')}: {n - m:,} labeled ({labels}), {m:,} missing ({m / n:.1%})"]
        return words if not m else [*words, *filter(None, self.assumption.split("\n"))]


def refuse_classes(what: str) -> NoReturn:
    """Refuse what is for two classes."""
    raise InputError(f"{what}: for two classes. Evaluate one class against the rest.")


def class_evaluation(**parts: Any) -> ClassEvaluation:
    """Return an evaluation of several classes."""
    return ClassEvaluation(**parts)
