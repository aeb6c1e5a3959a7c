"""ClassEvaluation: the distributions of the metrics of several classes on one evaluation set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, cast

from darkmetrics._text import counted
from darkmetrics.class_results import ConfusionMatrix, PerClass, class_confusion
from darkmetrics.class_results import per_class as compute_per_class
from darkmetrics.data.class_set import ClassSet, describe_labels
from darkmetrics.diagnosis.classes import ClassDiagnosis, diagnose_classes
from darkmetrics.distributions import chance_of_target
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.footnotes import describe_undefined, scope_in_words
from darkmetrics.methods.classes import class_distributions
from darkmetrics.metrics.targets import name_in
from darkmetrics.posterior.classes import ClassPosterior
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
    3 rows: 2 labeled (1 cat, 1 dog, 0 fish), 1 missing (33.3%)
    Assumed: missing labels are independent, with the probabilities given.
    <BLANKLINE>
               estimate     90% interval   labeled only           bounds
    accuracy      0.833   0.667 to 1.000          1.000   0.667 to 1.000
    <BLANKLINE>
    Intervals are for these 3 rows, not for the population they came from.
    """

    data: ClassSet  # type: ignore[assignment]  # of several classes

    @property
    def population(self) -> NoReturn:
        """Refuse: results for the population are for two classes so far."""
        _refuse("population")

    @cached_property
    def diagnosis(self) -> ClassDiagnosis:  # type: ignore[override]  # of several classes
        """What the data show about why labels are missing: classes that are missing more often, and open confusions."""
        return diagnose_classes(self.data, self._class_posterior)

    @property
    def _class_posterior(self) -> ClassPosterior:
        posterior: Any = self.posterior
        assert isinstance(posterior, ClassPosterior)
        return posterior

    def target_by_mechanism(self, metric: str, target: float) -> dict[str, float]:
        name, posterior = name_in(self.distributions, metric), self._class_posterior
        functional = self.metrics[name].bind(cast("Any", self.data), self.fills[name])
        probabilities = {}
        for k, mechanism in enumerate(posterior.mechanisms):
            part = posterior.of_mechanism(k)
            if part is not None:
                parts = class_distributions(self.method, [cast("Any", functional)], part, self.data.missing_counts, 0)
                probabilities[mechanism] = chance_of_target(next(parts), target, self.metrics[name].better)
        return probabilities

    def per_class(self, metrics: str | Sequence[str] = ("precision", "recall", "f1")) -> PerClass:
        """Return metrics of two classes for each class against the rest.

        Parameters
        ----------
        metrics : str or sequence of str
            Any metrics of two classes, such as "recall" or "roc_auc".

        Examples
        --------
        >>> import darkmetrics as dm
        >>> scores = {"cat": [0.7, 0.2, 0.1], "dog": [0.2, 0.7, 0.3], "fish": [0.1, 0.1, 0.6]}
        >>> fixed = dm.missing.Fixed([[0.25, 0.25, 0.5]])
        >>> result = dm.evaluate(["cat", "dog", None], scores, missingness=fixed, metrics="accuracy")
        >>> print(result.per_class("recall"))
               labels   recall     90% interval
        cat        1*    0.875   0.500 to 1.000
        dog        1*    0.875   0.500 to 1.000
        fish       0*    0.500   0.000 to 1.000
        <BLANKLINE>
        * fewer than 20 labels
        """
        return compute_per_class(self, self.data, self._class_posterior, metrics)

    def confusion_matrix(self) -> ConfusionMatrix:
        """Return the confusion matrix with the distribution of each entry."""
        return class_confusion(self, self.data, self._class_posterior)

    def report(self, path: Any = None, **about: Any) -> NoReturn:
        """Refuse: reports are for two classes so far."""
        _refuse("report")

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
            notes.append("Bounds in brackets are valid, but perhaps no label assignment attains them.")
        undefined = {name: distribution.undefined for name, distribution in self.distributions.items()}
        return [*notes, *describe_undefined(undefined)]


def refuse_classes(what: str, *evaluations: object) -> None:
    """Refuse evaluations of several classes in a function that is for two."""
    if any(isinstance(evaluation, ClassEvaluation) for evaluation in evaluations):
        _refuse(what)


def _refuse(what: str) -> NoReturn:
    advice = "Evaluate a class against the rest: pass its scores, and y_true == label."
    raise InputError(what, "for two classes so far", "", advice)
