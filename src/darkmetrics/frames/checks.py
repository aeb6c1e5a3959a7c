"""Rules for the values of columns in a query, checked on the cells; when one is broken, an offender is looked up."""

from typing import Any, NoReturn

import narwhals.stable.v2 as nw
import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.exceptions import InputError
from darkmetrics.frames.arrays import is_missing
from darkmetrics.frames.collecting import collected
from darkmetrics.frames.group_cells import Tally
from darkmetrics.frames.roles import ColumnNames
from darkmetrics.frames.strata import are_strata
from darkmetrics.wording import setting

_LARGEST_FLOAT = np.finfo(np.float64).max
LARGEST_WEIGHT, _WEIGHT_RATIO = 1e50, 1e9


def check_scores(frame: Any, columns: ColumnNames, part: str, bad: int, rows: int) -> NoReturn:
    """Raise the error for a column of scores, of which `bad` are not finite."""
    score = nw.col(part)
    finite = (score >= -_LARGEST_FLOAT) & (score <= _LARGEST_FLOAT)
    odd = frame.with_columns(odd=nw.when(finite).then(nw.lit(0.0)).otherwise(nw.lit(1.0))).filter(nw.col("odd") > 0.5)
    first = collected(odd.select(part).head(1))[part].to_list()
    found = "missing (null or NaN)" if not first or is_missing(first[0]) else f"not finite (such as {first[0]:g})"
    raise InputError(
        columns.title(part), f"{_of(bad, rows)} {found}", "Scores must be finite.", "Drop or impute those rows."
    )


def check_weights(columns: ColumnNames, tally: Tally) -> None:
    """Weights are finite, not negative, not all zero, and of comparable size."""
    name, weight, rows = columns.title("weight"), tally.keys["weight"], tally.rows
    odd = ~np.isfinite(weight)
    if odd.any():
        found = "missing (null or NaN)" if np.isnan(weight[odd]).all() else "not finite"
        raise InputError(
            name,
            f"{_of(int(rows[odd].sum()), int(rows.sum()))} {found}",
            "Weights must be finite.",
            "Pass weight 0 for rows to leave out.",
        )
    if (weight < 0.0).any():
        count = int(rows[weight < 0.0].sum())
        raise InputError(
            name,
            f"{_of(count, int(rows.sum()))} negative (such as {weight.min():g})",
            "Weights must not be negative.",
        )
    check_weight_sizes(weight, name)


def check_weight_sizes(weight: FloatArray, name: str) -> None:
    """Weights, finite and not negative, are not all zero and of comparable size; the same for columns and arrays."""
    if not weight.any():
        raise InputError(name, "the weights sum to zero", "At least one row must count.")
    low, high = float(weight[weight > 0.0].min()), float(weight.max())
    if high > LARGEST_WEIGHT or low < 1.0 / LARGEST_WEIGHT or high > _WEIGHT_RATIO * low:
        raise InputError(
            name,
            f"weights from {low:g} to {high:g}",
            f"They must lie between {1.0 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g} and differ by a factor of "
            f"{_WEIGHT_RATIO:g} at most: sums would lose the small ones.",
            "Rescale them, or give such rows weight 0.",
        )


def check_strata(columns: ColumnNames, tally: Tally) -> None:
    """Strata are whole numbers, and every row has one."""
    stratum, rows = tally.keys["stratum"], tally.rows
    bad = ~are_strata(stratum)
    if bad.any():
        first = stratum[bad][0]
        found = "missing (null or NaN)" if np.isnan(stratum[bad]).all() else f"no whole numbers (such as {first:g})"
        share = _of(int(rows[bad].sum()), int(rows.sum()))
        raise InputError(
            columns.title("stratum"), f"{share} {found}", "Strata are text, or whole numbers below 2**52 in size."
        )


PROPENSITY_RULE = (
    "Propensities lie in [0, 1]: above 0 where there is a label, and below 1 where there is none; every row needs one."
)


def odd_propensities(
    propensity: FloatArray, labeled: BoolArray, missing: BoolArray, *, aged: bool = False
) -> BoolArray:
    """Return which propensities the labels contradict. The label of a row with an age may be still to come."""
    inside = (propensity >= 0.0) & (propensity <= 1.0)  # written so that NaN is odd
    odd: BoolArray = ~inside | (labeled & (propensity == 0.0)) | (missing & (propensity == 1.0) & (not aged))
    return odd


def check_propensities(columns: ColumnNames, tally: Tally) -> None:
    """Propensities are chances that the labels do not contradict."""
    propensity, rows = tally.keys["propensity"], tally.rows
    aged = columns.scored_at is not None
    bad = odd_propensities(propensity, tally.rows > tally.missing, tally.missing > 0.0, aged=aged)
    if bad.any():
        found = (
            "missing (null or NaN)" if np.isnan(propensity[bad]).all() else f"wrong (such as {propensity[bad][0]:g})"
        )
        share = _of(int(rows[bad].sum()), int(rows.sum()))
        raise InputError(columns.title("propensity"), f"{share} {found}", PROPENSITY_RULE)


def check_chances(frame: Any, columns: ColumnNames, tally: Tally) -> None:
    """Probabilities lie in [0, 1], and rows without a label have one."""
    if tally.bad is None:
        chance = tally.keys["probability"]
        lacking = np.isnan(chance)
        bad = float((tally.rows * (~lacking & ~((chance >= 0.0) & (chance <= 1.0))) + tally.missing * lacking).sum())
    else:
        bad = float(tally.bad.sum())
    if not bad:
        return
    column = nw.col("probability")
    beyond = frame.filter((column < 0.0) | (column > 1.0)).select("probability").head(1000)
    known = [value for value in collected(beyond)["probability"].to_list() if not is_missing(value)]
    name, share = columns.title("probability"), _of(int(bad), int(tally.rows.sum()))
    if known:
        raise InputError(name, f"{share} wrong (such as {known[0]:g})", "Probabilities must lie in [0, 1].")
    raise InputError(name, f"{share} missing where the label is missing too", "Those rows need a probability.")


def decided(columns: ColumnNames, source: Any, tally: Tally, labels: list[Any]) -> BoolArray:
    """Which entries are decided positive: the values of the column are the classes of the labels, or 0 and 1."""
    name, codes, found = columns.title("decision"), tally.keys["decision"], list(tally.values["decision"])
    if None in found:
        gaps = codes == found.index(None)
        share = _of(int(tally.rows[gaps].sum()), int(tally.rows.sum()))
        raise InputError(name, f"{share} missing", "Every row needs a prediction.")
    pos_label, classes = source.pos_label, labels
    if source.rows.label.kind in ("number", "whole", "truth") and pos_label == 1 and all(c in (0, 1) for c in labels):
        classes = [0, 1]
    pos_label, known = meant_decisions(found, pos_label, classes, truth=source.rows.decision.kind == "truth")
    shown = " and ".join(map(_shown, found[:2]))
    if len(found) > 2:
        finding = f"a third value {_shown(found[2])} in addition to {shown}"
        raise InputError(name, finding, "Predictions take two values.")
    if pos_label not in found and (len(found) == 2 or (pos_label == 1 and found[0] not in (-1, 0))):
        raise InputError(
            name,
            f"{setting('pos_label', pos_label)} is not among the predictions ({shown})",
            "",
            f"Set {setting('pos_label')} to the positive label.",
        )
    stranger = next((value for value in found if value not in known), None)
    if stranger is not None and len(known) > 1:
        both = " and ".join(map(_shown, known[:2]))
        finding = f"{_shown(stranger)} is none of the labels ({both})"
        raise InputError(name, finding, "Predictions are labels, or 0 and 1.")
    yes = np.array([value == pos_label for value in found], dtype=np.bool_)
    return np.asarray(yes[codes], dtype=np.bool_)


def meant_decisions(found: list[Any], pos_label: Any, classes: list[Any], *, truth: bool) -> tuple[Any, list[Any]]:
    """The value that is a positive decision and all that decisions may be; the same for columns and arrays.

    `classes` are those of the labels; `truth`: decisions are False and True.
    """
    # 0/1 are no and yes where they cannot be meant as classes; False and True also where the classes are 1 and 2.
    as_answers = truth or not any(c in (0, 1) for c in classes)
    if as_answers and pos_label not in (0, 1) and all(value in (0, 1) for value in found):
        pos_label, classes = 1, []
    known = [pos_label, *(c for c in classes if c != pos_label)]
    if pos_label == 1:
        known += [c for c in (0, -1) if c not in known]  # beside 1, both are in use for negative
    return pos_label, known


def _of(count: int, rows: int) -> str:
    return f"{count:,} of {rows:,} values {'is' if count == 1 else 'are'}"


def _shown(value: Any) -> str:
    """As a user would write it: 1 and not 1.0, because nulls turn whole numbers into floats on the way here."""
    return f"{value:.17g}" if isinstance(value, float) and value.is_integer() else repr(value)
