"""ClassDiagnosis: which classes are missing more often, and which confusions the data leave open."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.class_set import ClassSet
from darkmetrics.missingness.base import Estimate, percent_text
from darkmetrics.missingness.classes import mixture_p_value
from darkmetrics.posterior.classes import ClassPosterior
from darkmetrics.result import Result
from darkmetrics.tables import finite

# Confusions are listed for at most this many classes, and at most this many of them.
_MAX_CLASSES, _MAX_CONFUSIONS = 50, 3
# Below this p-value the scores contradict labels that are missing by label alone.
_CLEARLY = 0.01


@dataclass(frozen=True, eq=False, repr=False)
class ClassDiagnosis(Result):
    """What the data show about missing labels of several classes.

    Attributes
    ----------
    classes : tuple
        The classes.
    labeled : tuple of int
        Labeled rows of each class.
    missing : tuple of Estimate
        Estimated number of missing rows of each class, with its 90% interval over the posterior draws.
    fractions : tuple of Estimate
        Estimated fraction of the rows of each class whose label is missing.
    confusions : tuple of (prediction, label, Estimate)
        Numbers of missing rows with a prediction and a label, the least certain one first.
    mixture_p_value : float
        p-value of a test that missing rows are a mixture of the labeled rows of all classes ("by label"); NaN if there
        are too few rows.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([0.3, 0.3, 0.3], 2000)
    >>> y = (p.cumsum(axis=1) > rng.random((2000, 1))).argmax(axis=1)
    >>> y_true = np.where(rng.random(2000) < np.array([0.2, 0.7, 0.2])[y], np.nan, y)
    >>> diagnosis = dm.evaluate(y_true, p, missingness="by_label").diagnosis
    >>> print(round(diagnosis.fractions[1].mean, 1), round(diagnosis.fractions[2].mean, 1))
    0.7 0.2
    """

    classes: tuple[Any, ...]
    labeled: tuple[int, ...]
    missing: tuple[Estimate, ...]
    fractions: tuple[Estimate, ...]
    confusions: tuple[tuple[Any, Any, Estimate], ...]
    mixture_p_value: float

    def __repr__(self) -> str:
        return f"<ClassDiagnosis of {len(self.classes)} classes>"

    def _words(self) -> list[str]:
        low, high = (pick(range(len(self.classes)), key=lambda k: self.fractions[k].mean) for pick in (min, max))
        most, least = (f"{self.classes[k]}, {percent_text(self.fractions[k])}" for k in (high, low))
        words = [f"Missing most often: {most} of its rows; least often: {least}."]
        if self.mixture_p_value < _CLEARLY:
            words.append(
                "Scores of missing rows are not a mixture of the scores of labeled rows of each class "
                f"(p = {self.mixture_p_value:.2g}), so labels are not missing by label alone."
            )
        return words

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [str(name), f"{n:,}", _count_text(missing), percent_text(fraction)]
            for name, n, missing, fraction in zip(self.classes, self.labeled, self.missing, self.fractions, strict=True)
        ]
        return ["class", "labeled", "missing (90%)", "fraction missing (90%)"], rows

    def _notes(self) -> list[str]:
        open_ = [f"{a} with label {b} {_count_text(estimate)}" for a, b, estimate in self.confusions]
        return [f"Least certain among the missing rows: predicted {'; '.join(open_)}."] if open_ else []

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "darkmetrics.class_diagnosis/1",
            "classes": self.to_records(),
            "confusions": [
                {"predicted": str(a), "label": str(b), **estimate._asdict()} for a, b, estimate in self.confusions
            ],
            "mixture_p_value": finite(self.mixture_p_value),
        }

    def to_records(self) -> list[dict[str, Any]]:
        columns = zip(self.classes, self.labeled, self.missing, self.fractions, strict=True)
        return [
            {
                "class": str(name),
                "labeled": n,
                **{f"missing_{key}": value for key, value in missing._asdict().items()},
                **{f"fraction_{key}": value for key, value in fraction._asdict().items()},
            }
            for name, n, missing, fraction in columns
        ]


def diagnose_classes(data: ClassSet, posterior: ClassPosterior) -> ClassDiagnosis:
    """Return the diagnosis of a set with several classes, from the posterior of its missing labels."""
    n_classes, few = data.n_classes, data.n_classes <= _MAX_CLASSES
    decision = data.cells.decision[data.missing_cells] if few else np.zeros(data.missing_cells.size, dtype=np.int64)
    predicted = (decision == np.arange(n_classes if few else 1)[:, None]) * data.missing_counts
    tables = np.array([predicted @ posterior.of_draw(draw) for draw in range(len(posterior))])
    labeled = data.label_counts
    totals = tables.sum(axis=1)
    missing = [_estimate(totals[:, k], posterior.weight) for k in range(n_classes)]
    fractions = [Estimate(*(m / max(m + labeled[k], 1e-300) for m in missing[k])) for k in range(n_classes)]
    confusions = []
    if few:
        estimates = {
            (j, k): _estimate(tables[:, j, k], posterior.weight) for j in range(n_classes) for k in range(n_classes)
        }
        widest = sorted(estimates, key=lambda pair: estimates[pair].low - estimates[pair].high)[:_MAX_CONFUSIONS]
        confusions = [(data.classes[j], data.classes[k], estimates[j, k]) for j, k in widest]
    return ClassDiagnosis(
        data.classes,
        tuple(int(n) for n in labeled),
        tuple(missing),
        tuple(fractions),
        tuple(confusions),
        mixture_p_value(data),
    )


def _estimate(values: FloatArray, weight: FloatArray) -> Estimate:
    """Return mean and 90% interval of weighted values."""
    order = np.argsort(values)
    level = np.cumsum(weight[order]) - 0.5 * weight[order]
    low, high = np.interp((0.05, 0.95), level, values[order])
    return Estimate(float(weight @ values), float(low), float(high))


def _count_text(estimate: Estimate) -> str:
    return f"{estimate.mean:,.0f} ({estimate.low:,.0f} to {estimate.high:,.0f})"
