"""ClassEvaluation: the distributions of the metrics of several classes on one evaluation set."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

from darkmetrics._text import counted
from darkmetrics.data.class_set import ClassSet, describe_labels
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.footnotes import scope_in_words
from darkmetrics.tables import finite


@dataclass(frozen=True, eq=False, repr=False)
class ClassEvaluation(Evaluation):
    """The distribution of each metric on one evaluation set with several classes.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> scores = {"cat": [0.7, 0.2, 0.1], "dog": [0.2, 0.7, 0.3], "fish": [0.1, 0.1, 0.6]}
    >>> fixed = dm.missing.Fixed([[0.25, 0.25, 0.5]])
    >>> print(dm.evaluate(["cat", "dog", None], scores, missingness=fixed, metrics="accuracy"))
    """

    data: ClassSet

    _has_sensitivity: ClassVar[bool] = False

    @property
    def population(self) -> NoReturn:  # type: ignore[override]  # for two classes
        """Refuse: results for the population are for two classes so far."""
        _refuse("population")

    def sensitivity(self, odds: float = 3.0) -> NoReturn:
        """Refuse: odds of a label and of its absence are for two classes."""
        _refuse("sensitivity")

    def tipping_point(self, metric: str, target: float) -> NoReturn:
        """Refuse: as `sensitivity`."""
        _refuse("tipping_point")

    def oracle_bounds(self, metric: str) -> NoReturn:
        """Refuse: every row predicted right or wrong is known for two classes alone; use `support()`."""
        _refuse("oracle_bounds")

    @property
    def binning_error(self) -> Mapping[str, float]:
        """How far score bins can have moved each metric: not at all, because scores are exact."""
        return dict.fromkeys(self.distributions, 0.0)

    def to_dict(self, *, flat: bool = False) -> dict[str, Any]:
        if flat:
            return super().to_dict(flat=True)
        return {
            "schema": "darkmetrics.evaluation/1",
            "scope": self.scope,
            "classes": [str(name) for name in self.data.classes],
            "counts": self.data.counts(),
            "assumption": self.assumption,
            "warnings": [warned._asdict() for warned in self.warnings],
            "metrics": {
                name: {
                    "meaning": self.metrics[name].meaning,
                    "better": self.metrics[name].better,
                    "labeled_only": finite(self.labeled_only[name]),
                    **distribution.to_dict(self.confidence_level),
                    **{f"variance_from_{source}": share for source, share in self.variance_decomposition(name).items()},
                }
                for name, distribution in self.distributions.items()
            },
        }

    def to_records(self) -> list[dict[str, Any]]:
        entries = self.to_dict()["metrics"].items()
        return [{"metric": name, "scope": self.scope, **entry} for name, entry in entries]

    def _words(self) -> list[str]:
        n, m = self.data.n_rows, self.data.n_missing
        labels = describe_labels(self.data)
        words = [f"{counted(n, 'row')}: {n - m:,} labeled ({labels}), {m:,} missing ({m / n:.1%})"]
        return words if not m else [*words, *filter(None, self.assumption.split("\n"))]

    def _notes(self) -> list[str]:
        notes = [scope_in_words(self.scope, self.data.n_rows)]
        if any(not distribution.bounds_sharp for distribution in self.distributions.values()):
            notes.append("Bounds in brackets contain all values, but perhaps no labels attain them.")
        return notes


def _refuse(what: str) -> NoReturn:
    advice = "Evaluate a class against the rest: pass its scores, and y_true == label."
    raise InputError(f"{what}: for two classes so far. {advice}")
