"""Reference: fully labeled rows, such as those of an earlier month."""

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from darkmetrics._text import a_kind_of
from darkmetrics.argument_types import FrameLike
from darkmetrics.data.class_set import ClassSet
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.wording import code


@dataclass(frozen=True, eq=False)
class Reference:
    """Fully labeled reference rows; nothing has to be known about why other labels are missing.

    Assumes that the relation of score and label has not drifted since. If the labeled rows contradict the reference
    rows, `evaluate` warns, and half of the answer does not use the reference rows. To state that nothing has drifted,
    pass them to a mechanism: `ByScoreAndLabel(reference=Reference(...))`.

    Parameters
    ----------
    y_true : array-like, str or EvaluationSet
        Labels, none of them missing; the name of a column of `data`; or the rows as an EvaluationSet.
    y_score : array-like, mapping or str, optional
        Scores, or the name of a column of `data`; for `compare`, a mapping from models to scores.
    data : DataFrame, path or anything else that `evaluate` reads, optional
        Table with the columns.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(3000)
    >>> y = (rng.random(3000) < y_score).astype(float)
    >>> y_true = np.where(rng.random(3000) < np.where(y == 1, 0.6, 0.2), np.nan, y)[:2000]  # positives are missing
    >>> earlier = dm.missing.Reference(y[2000:], y_score[2000:])
    >>> stated = dm.missing.ByScoreAndLabel(reference=earlier)
    >>> result = dm.evaluate(y_true, y_score[:2000], missingness=stated, metrics="recall")
    >>> print(f"{result['recall'].mean():.2f}; in truth {y[:2000][y_score[:2000] >= 0.5].sum() / y[:2000].sum():.2f}")
    0.74; in truth 0.73
    """

    y_true: Any
    y_score: Any = None
    data: FrameLike | None = field(default=None, repr=False)


# The call that messages suggest.
REFERENCE_CODE = code("missingness=dm.missing.Reference(labels, scores)")
# Reference rows of a mechanism.
ReferenceLike: TypeAlias = Reference | EvaluationSet


def check_reference(reference: Any) -> None:
    """Refuse reference rows in another form."""
    if not isinstance(reference, (Reference, EvaluationSet, ClassSet, type(None))):
        raise InputError(
            "reference",
            f"expected dm.missing.Reference(labels, scores) or an EvaluationSet, got {a_kind_of(reference)}",
        )


def reference_set(reference: ReferenceLike, pos_label: Any, missing_label: Any = None) -> EvaluationSet:
    """Return reference rows as a set."""
    if isinstance(reference, EvaluationSet):
        return reference
    if isinstance(reference.y_true, EvaluationSet):
        return reference.y_true
    try:
        return EvaluationSet(
            reference.y_true,
            reference.y_score,
            data=reference.data,
            pos_label=pos_label,
            missing_label=missing_label,
        )
    except InputError as error:
        raise error.replace(argument="reference", finding=f"{error.argument}: {error.finding}") from None
