"""The rules that columns of input must keep, and what they mean: labels, decisions, weights, probabilities."""

from decimal import Decimal
from typing import Any

import numpy as np

from darkmetrics import constraints, frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics._text import counted
from darkmetrics.constraints import check_value
from darkmetrics.exceptions import InputError
from darkmetrics.wording import code, named, setting

# Packages that still import these from here.
is_number, is_whole = constraints.is_number, constraints.is_whole


def check_length(values: AnyArray, name: str, rows: int) -> None:
    """One value per row."""
    if values.size != rows:
        raise InputError(
            name,
            f"{counted(values.size, 'value')}, but {named('y_score')} has {rows:,}",
            "Both need one per row.",
        )


def check_finite(values: FloatArray, name: str, rule: str, fix: str = "") -> None:
    """No NaN and no infinity."""
    finite = np.isfinite(values)
    if not finite.all():
        bad = values[~finite]
        found = "NaN (first at" if np.isnan(bad).all() else f"not finite (first {_shown(bad[0])} at"
        raise InputError(
            name,
            f"{bad.size:,} of {values.size:,} values {'is' if bad.size == 1 else 'are'} {found} row "
            f"{int(np.argmin(finite))})",
            rule,
            fix,
        )


def check_label_values(pos_label: Any, missing_label: Any) -> None:
    """`pos_label` is a single label, `missing_label` one or several, and none is both."""
    also_missing = frames.meaning_missing(missing_label)
    for name, value in (("pos_label", pos_label), *(("missing_label", one) for one in also_missing)):
        if frames.is_container(type(value)):
            rule = "a single label" if name == "pos_label" else "a label, or a list of labels"
            raise InputError(name, f"{value!r} of type {type(value).__name__}", f"It must be {rule}.")
    if frames.is_missing(pos_label):
        fix = f"Set {setting('pos_label')} to the positive label."
        raise InputError("pos_label", f"{pos_label!r} means a missing label", "", fix)
    both = next((one for one in also_missing if bool(pos_label == one)), None)
    if both is not None:
        raise InputError("missing_label", f"{both!r} is also {named('pos_label')}", "A label cannot be both.")


def equals(labels: AnyArray, missing: BoolArray, value: Any) -> BoolArray:
    """Where the labels are present and equal `value`; text never equals a number."""
    if frames.is_missing(value):
        return np.zeros(labels.size, dtype=np.bool_)
    if labels.dtype.kind == "O":
        pairs = zip(labels.tolist(), missing.tolist(), strict=True)
        return np.fromiter((not gap and bool(item == value) for item, gap in pairs), dtype=np.bool_, count=labels.size)
    if (labels.dtype.kind in "SU") != isinstance(value, (str, bytes)):
        return np.zeros(labels.size, dtype=np.bool_)
    try:
        return np.asarray(labels == value, dtype=np.bool_) & ~missing
    except OverflowError:  # a whole number beyond every float equals none of them
        return np.zeros(labels.size, dtype=np.bool_)


def _classes(labels: AnyArray, missing: BoolArray, most: int = 3) -> list[Any]:
    """The different labels in the order of the rows, at most so many; 1, 1.0 and True are one."""
    present = labels[~missing]
    if labels.dtype.kind != "O":
        _, first = np.unique(present, return_index=True)
        present = present[np.sort(first)]
    classes: list[Any] = []
    for value in present.tolist():
        if value not in classes:
            classes.append(value)
            if len(classes) == most:
                break
    return classes


def positive_labels(
    labels: AnyArray, missing: BoolArray, pos_label: Any, name: str, missing_label: Any = None
) -> tuple[BoolArray, list[Any]]:
    """Which labels are positive, and the classes there are: at most two, of which `pos_label` can be one."""
    if labels.dtype.kind in "fiub" and pos_label == 1:
        one = labels == 1
        if bool(np.all(one | (labels == 0) | missing)):
            return np.asarray(one & ~missing, dtype=np.bool_), [0, 1]
    classes = _classes(labels, missing)
    if len(classes) > 2:
        classes = _classes(labels, missing, frames.MOST_LABELS)
        third, _, _ = _odd_one_out(classes, pos_label)
        row = int(np.argmax(equals(labels, missing, third)))
        raise _third_class_error(classes, pos_label, missing_label, name, f" at row {row}")
    _check_positive_there(classes, pos_label, name)
    return equals(labels, missing, pos_label), classes


def _check_positive_there(classes: list[Any], pos_label: Any, name: str) -> None:
    if not classes or pos_label in classes:
        return
    # One class alone may well be the negative one, unless nobody has said which one is positive.
    unsaid = pos_label == 1 and not all(c in (-1, 0) for c in classes)
    if len(classes) >= 2 or unsaid:
        finding = f"{setting('pos_label', pos_label)} is not among the labels ({' and '.join(map(_shown, classes))})"
        fix = f"Set {setting('pos_label')} to the positive label."
        word = next((c for c in classes if isinstance(c, str) and _is_gap_word(c)), None)
        if word is not None and not isinstance(pos_label, str):
            fix += (
                f" If {word!r} means missing, pass {setting('missing_label', word)}; these labels are text, as '1' is."
            )
        raise InputError(name, finding, "", fix)


def check_classes(classes: list[Any], pos_label: Any, name: str, missing_label: Any = None) -> None:
    """The labels that an engine found obey the rules of `positive_labels`; which rows hold them is not known.

    `classes` has `pos_label`, if it occurs, and the first few of the others.
    """
    if len(classes) > 2:
        raise _third_class_error(classes, pos_label, missing_label, name)
    _check_positive_there(classes, pos_label, name)


def read_labels(
    labels: AnyArray, missing: BoolArray, pos_label: Any, missing_label: Any, name: str
) -> tuple[BoolArray, BoolArray, list[Any]]:
    """Which labels are positive, which are missing, and the classes there are, with labels as the user named them."""
    check_label_values(pos_label, missing_label)
    for one in frames.meaning_missing(missing_label):
        missing = missing | equals(labels, missing, one)
    positive, classes = positive_labels(labels, missing, pos_label, name, missing_label)
    return positive, missing, classes


def _odd_one_out(classes: list[Any], pos_label: Any) -> tuple[Any, str, str]:
    """The third class, which looks like a code for missing or else is the first too many; two others and the rest."""
    likely = sorted(classes, key=lambda c: (c != pos_label, _is_gap_word(c)))  # stays in order among its likes
    kept, odd = likely[:2], likely[2:]
    third = next((c for c in odd if _is_gap_word(c)), odd[0])
    more = [_shown(c) for c in classes if c not in [*kept, third] and _is_code(c)]
    more += ["..."] if more and len(classes) >= frames.MOST_LABELS else []
    pair = " and ".join(_shown(c) for c in classes if c in kept)
    return third, pair, f", and more: {', '.join(more)}" if more else ""


def _third_class_error(
    classes: list[Any], pos_label: Any, missing_label: Any, name: str, where: str = ""
) -> InputError:
    """Return the error for more than two classes: which is the third, and what it may mean."""
    third, pair, more = _odd_one_out(classes, pos_label)
    finding = f"a third value {_shown(third)}{where} in addition to {pair}"
    if name == "y_pred":
        return InputError(name, finding, "Predictions take two values.")
    rule, fixes = "Labels take two values, or are missing.", []
    spelled: dict[str, str] = {}
    for word in (c for c in classes if isinstance(c, str)):
        twin = spelled.setdefault(word.strip().casefold(), word)
        if twin != word:
            fixes.append(f"Spell {twin!r} and {word!r} alike, which differ in case or spaces alone.")
            break
    if pos_label not in classes and any(map(_is_code, classes)):
        fixes.append(f"{setting('pos_label', pos_label)} is none of them: set it to the positive label.")
    gaps = [c for c in classes if c != pos_label and _is_gap_word(c)]
    if gaps:
        stated = [c for c in frames.meaning_missing(missing_label) if not frames.is_missing(c)]
        codes = [int(c) if isinstance(c, float) and c.is_integer() else c for c in (*stated, *gaps)]
        words = " and ".join(_shown(c) for c in gaps)
        mean = "means" if len(gaps) == 1 else "mean"
        fixes.append(
            f"If {words} {mean} missing, pass {setting('missing_label', codes[0] if len(codes) == 1 else codes)}."
        )
    elif not fixes and all(map(_is_code, classes)):
        one_class = code(f"{name} == {_shown(pos_label)}", "one class") if name == "y_true" else "a column of 0 and 1"
        fixes.append(f"To evaluate {_shown(pos_label)} against all other classes, pass {one_class} as the labels.")
        fixes.append(f"If a value means missing, pass {setting('missing_label')}.")
    return InputError(name, finding + more, rule, " ".join(fixes))


_GAP_WORDS = ("", "-1", "?", "<na>", "n/a", "na", "nan", "nat", "none", "null", "missing", "unknown")


def _is_gap_word(value: Any) -> bool:
    return bool(value == -1) or str(value).lower() in _GAP_WORDS


def _is_code(value: Any) -> bool:
    """Whole numbers and words are often codes; of a measured value nobody says "this one means missing"."""
    return isinstance(value, str) or _is_whole(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _shown(value: Any) -> str:
    """A value as a user would write it: 1 and not 1.0, because nulls turn whole numbers into floats on the way here."""
    if isinstance(value, (float, np.floating)):
        return "NaN" if np.isnan(value) else f"{value:.17g}" if _is_whole(float(value)) else f"{value:g}"
    return str(value) if isinstance(value, Decimal) else repr(value)


class DefaultThreshold(float):
    """The threshold of rows for which neither a threshold nor predictions were passed."""


# Suits probabilities.
THRESHOLD = DefaultThreshold(0.5)


def threshold_number(threshold: Any) -> float:
    """Return a threshold as a finite number: an infinite one has no place on an axis, in JSON or between two others."""
    check_value("threshold", threshold)
    return float(threshold)


def decided_from(threshold: Any, given: str | None) -> float | None:
    """Return the validated threshold, by default `THRESHOLD`; None if the argument `given` has the predictions."""
    if threshold is None:
        return THRESHOLD if given is None else None
    cut = threshold_number(threshold)
    if given is not None:
        finding = f"{cut!r}, but {named(given)} already has the predictions"
        raise InputError("threshold", finding, "", "Pass one of the two.")
    return cut


def given_decisions(y_pred: Any, rows: int, pos_label: Any, classes: list[Any]) -> BoolArray:
    """Which rows are decided positive; `classes` are those of the labels."""
    decisions, gaps = frames.label_column(y_pred, "y_pred")
    check_length(decisions, "y_pred", rows)
    if gaps.any():
        raise InputError("y_pred", f"missing at row {int(np.argmax(gaps))}", "Every row needs a prediction.")
    found = _classes(decisions, gaps)
    pos_label, known = frames.meant_decisions(found, pos_label, classes, truth=decisions.dtype.kind == "b")
    positive, found = positive_labels(decisions, gaps, pos_label, "y_pred")
    stranger = next((c for c in found if c not in known), None)
    if stranger is not None and len(known) > 1:
        at = int(np.argmax(equals(decisions, gaps, stranger)))
        labels = " and ".join(_shown(c) for c in known[:2])
        finding = f"{_shown(stranger)} at row {at} is none of the labels ({labels})"
        raise InputError("y_pred", finding, "Predictions are labels, or 0 and 1.")
    return positive


def row_weights(sample_weight: Any, rows: int) -> FloatArray | None:
    """The weights of the rows; None when every row counts once."""
    if sample_weight is None:
        return None
    weight = given_weights(sample_weight)
    check_length(weight, "sample_weight", rows)
    frames.check_weight_sizes(weight, "sample_weight")
    return None if bool(np.all(weight == 1.0)) else weight


def given_weights(sample_weight: Any) -> FloatArray:
    """Weights as numbers: finite, and not negative."""
    weight = frames.number_column(sample_weight, "sample_weight")
    check_finite(weight, "sample_weight", "Weights must be finite.", "Pass weight 0 for rows to leave out.")
    if (weight < 0.0).any():
        first = int(np.argmax(weight < 0.0))
        raise InputError("sample_weight", f"{_shown(weight[first])} at row {first}", "Weights must not be negative.")
    return weight


def row_strata(strata: Any, rows: int) -> IntArray | None:
    """Return the number of the stratum of each row, if there are strata."""
    if strata is None:
        return None
    number = frames.stratum_column(strata)
    check_length(number, "strata", rows)
    good = frames.are_strata(number)
    if not good.all():
        first = int(np.argmin(good))
        raise InputError(
            "strata",
            f"{_shown(number[first])} at row {first}",
            "Every row needs a stratum: text, or a whole number below 2**52 in size.",
        )
    return number.astype(np.int64)


def row_groups(groups: Any, rows: int) -> IntArray | None:
    """A number for the group of each row, if it was given: rows of one customer have one."""
    if groups is None:
        return None
    if not hasattr(groups, "__iter__") or isinstance(groups, str):
        raise InputError("clusters", repr(groups), "", "Pass one value per row.")
    to_list = next((getattr(groups, name) for name in ("tolist", "to_pylist") if hasattr(groups, name)), None)
    values = list(groups) if to_list is None else to_list()
    check_length(np.empty(len(values)), "clusters", rows)
    absent = next((i for i, value in enumerate(values) if frames.is_missing(value)), None)
    if absent is not None:
        raise InputError(
            "clusters",
            f"no value at row {absent}",
            "Every row needs a cluster ID.",
            "Pass a unique ID for a row without a cluster.",
        )
    try:
        different = set(values)
    except TypeError:
        raise InputError("clusters", "values that cannot be compared", "", "Pass text, numbers or dates.") from None
    # In the order of the values, as tables have them, so that neither rows nor their order say what is drawn for whom.
    try:
        ordered = sorted(different)
    except TypeError:  # text beside numbers
        ordered = sorted(different, key=lambda value: (type(value).__name__, str(value)))
    numbers = {value: number for number, value in enumerate(ordered)}
    return np.array([numbers[value] for value in values], dtype=np.int64)


def row_propensities(propensity: Any, missing: BoolArray, *, aged: bool = False) -> FloatArray | None:
    """Return the propensities of rows, if they were passed; `aged`: labels may be still to come."""
    if propensity is None:
        return None
    chance = frames.number_column(propensity, "propensity")
    check_length(chance, "propensity", missing.size)
    odd = frames.odd_propensities(chance, ~missing, missing, aged=aged)
    if odd.any():
        first = int(np.argmax(odd))
        label = "without a label" if missing[first] else "with a label"
        raise InputError("propensity", f"{_shown(chance[first])} at row {first}, {label}", frames.PROPENSITY_RULE)
    return chance


def row_probabilities(probability: Any, missing: BoolArray) -> FloatArray | None:
    """The chance of each row to be positive, NaN where it is labeled and none was given."""
    if probability is None:
        return None
    chance = frames.number_column(probability, "probability")
    rows, gaps = missing.size, int(missing.sum())
    if chance.size not in (rows, gaps):
        raise InputError(
            "probability",
            f"{counted(chance.size, 'value')} for {rows:,} rows, {gaps:,} of them without a label",
            "",
            "Pass one per row, or one per row without a label.",
        )
    per_row = chance.size == rows
    # Written so that NaN is bad, except where a label makes the probability superfluous.
    bad = ~((chance >= 0.0) & (chance <= 1.0))
    if per_row and bad.any():
        bad &= missing | ~np.isnan(chance)
    if bad.any():
        first = int(np.argmax(bad))
        place = f"row {first}" if per_row else f"position {first} of the {gaps:,} missing rows"
        raise InputError("probability", f"{_shown(chance[first])} at {place}", "Probabilities must lie in [0, 1].")
    if not per_row:
        full = np.full(rows, np.nan)
        full[missing] = chance
        chance = full
    return chance
