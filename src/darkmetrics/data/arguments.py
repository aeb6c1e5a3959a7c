"""The set that the data of a public function stand for."""

from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._text import a_kind_of
from darkmetrics.data.building import count_rows, covariates_need_rows, row_values_of
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import threshold_number
from darkmetrics.exceptions import InputError
from darkmetrics.wording import named

# Values per row of a mechanism, and what the cells of a set call them.
_KINDS = {"propensity": "propensity", "strata": "stratum", "age": "age", "probability": "probability"}


def evaluation_set_from(
    y_true: Any, y_score: Any, *, missingness: Any = None, threshold: Any = None, **settings: Any
) -> EvaluationSet:
    """Return the set for arrays or columns of a table, or a ready set, to which nothing is added."""
    if not isinstance(y_true, EvaluationSet):
        # The `data` of an array is its buffer, which arrays of dates refuse to give.
        if not isinstance(y_true, np.ndarray) and isinstance(getattr(y_true, "data", None), EvaluationSet):
            raise InputError(
                "y_true",
                f"{a_kind_of(y_true)}, which is a result",
                "",
                "Pass its rows, result.data. Its diagnosis is result.diagnosis.",
            )
        asked = next(
            (name for name in getattr(missingness, "row_fields", ()) if getattr(missingness, name) is True), None
        )
        if asked is not None:
            rule = "True stands for the values of an EvaluationSet."
            raise InputError(asked, "True, but the rows are no EvaluationSet", rule, "Pass the values of the rows.")
        counted = count_rows(y_true=y_true, y_score=y_score, missingness=missingness, threshold=threshold, **settings)
        return EvaluationSet.from_cells(
            counted.cells,
            threshold=counted.threshold,
            pos_label=settings.get("pos_label", 1),
            score_bins=counted.score_bins,
            groups=counted.clusters,
        )
    if missingness is not None and missingness.features is not None:
        raise covariates_need_rows()
    defaults = {"score_bins": "auto"}
    changed = [
        name
        for name, value in {"y_score": y_score, **settings}.items()
        if not (name in defaults and value == defaults[name]) and not _as_is(name, value, y_true)
    ]
    changed += list(row_values_of(missingness))
    if changed:
        finding = "passed with an EvaluationSet, which already fixes it"
        raise InputError(changed[0], finding, "", "Pass it when building the set.")
    for name, kind in _KINDS.items():
        if getattr(missingness, name, None) is True and getattr(y_true.cells, kind) is None:
            raise InputError(name, "True, but the EvaluationSet has none", "", "Pass them when building the set.")
    if threshold is not None:
        _check_same_threshold(threshold_number(threshold), y_true.threshold)
    if y_true.n_rows == 0:
        raise InputError("y_true", "the EvaluationSet has no rows", "An evaluation needs at least one.")
    return y_true


def _as_is(name: str, value: Any, data: EvaluationSet) -> bool:
    """Return whether an argument was left out, or repeats what the set has."""
    if value is None or name != "pos_label":
        return value is None
    # 1 is the default, and may not have been passed. Containers and missing values compare in ways of their own.
    return not (frames.is_container(type(value)) or frames.is_missing(value)) and value in (data.pos_label, 1)


def _check_same_threshold(passed: float, own: float | None) -> None:
    if own is None:
        raise InputError(
            "threshold",
            f"{passed!r}, but the EvaluationSet was built with predictions ({named('y_pred')})",
            "No threshold changes such predictions.",
            f"Leave {named('threshold')} out.",
        )
    if passed != own:
        raise InputError(
            "threshold",
            f"{passed!r}, but the EvaluationSet has {own!r}",
            "",
            f"Leave {named('threshold')} out, or pass data.with_threshold({passed!r}).",
        )
