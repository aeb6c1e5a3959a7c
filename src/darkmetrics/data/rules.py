"""The rules that columns of input must keep, and what they mean: labels, decisions, weights, probabilities."""

from decimal import Decimal
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray, IntArray
from darkmetrics._text import counted
from darkmetrics.exceptions import InputError


def is_number(value: Any) -> bool:
    """Whether a setting is a single number; True and False are none."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """The same for a whole number: 3, and not 3.0."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_length(values: AnyArray, name: str, rows: int) -> None:
    """One value per row."""
    if values.size != rows:
        raise InputError.about(
            name, f"{counted(values.size, 'value')}, but y_score has {rows:,}. Both need one per row."
        )


def check_finite(values: FloatArray, name: str, advice: str) -> None:
    """No NaN and no infinity."""
    finite = np.isfinite(values)
    if not finite.all():
        bad = values[~finite]
        found = "NaN (first at" if np.isnan(bad).all() else f"not finite (first {_shown(bad[0])} at"
        raise InputError.about(
            name,
            f"{bad.size:,} of {values.size:,} values {'is' if bad.size == 1 else 'are'} {found} "
            f"row {int(np.argmin(finite))}). {advice}",
        )


def check_label_values(pos_label: Any, missing_label: Any) -> None:
    """`pos_label` is a single label, `missing_label` one or several, and none is both."""
    also_missing = frames.meaning_missing(missing_label)
    for name, value in (("pos_label", pos_label), *(("missing_label", one) for one in also_missing)):
        if frames.is_container(type(value)):
            rule = "one label value" if name == "pos_label" else "one label value or a list of some"
            raise InputError.about(name, f"expected {rule}, got {value!r} of type {type(value).__name__}.")
    if frames.is_missing(pos_label):
        raise InputError(f"pos_label: {pos_label!r} means a missing label. Say which label is positive.")
    both = next((one for one in also_missing if bool(pos_label == one)), None)
    if both is not None:
        raise InputError(f"missing_label: {both!r} is also pos_label. A label cannot be both.")


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
        found = _classes(labels, missing, frames.MOST_LABELS)
        third, besides, more = _odd_one_out(found, pos_label)
        rule = "Decisions take two values."
        if name == "y_true":
            besides, rule = besides + more, _rule_for_labels(found, pos_label, missing_label)
        at = int(np.argmax(equals(labels, missing, third)))
        raise InputError.about(name, f"a third value {_shown(third)} at row {at} besides {besides}. {rule}")
    _check_positive_there(classes, pos_label, name)
    return equals(labels, missing, pos_label), classes


def _check_positive_there(classes: list[Any], pos_label: Any, name: str) -> None:
    if classes and pos_label not in classes:
        # One class alone may well be the negative one, unless nobody has said which one is positive.
        unsaid = pos_label == 1 and not all(c in (-1, 0) for c in classes)
        if len(classes) >= 2 or unsaid:
            shown = " and ".join(_shown(c) for c in classes)
            hint = "Say which one is positive with pos_label=."
            word = next((c for c in classes if isinstance(c, str) and _is_gap_word(c)), None)
            if word is not None and not isinstance(pos_label, str):
                hint += f" If {word!r} means missing, say missing_label={word!r}; these labels are text, as '1' is."
            raise InputError.about(name, f"pos_label={pos_label!r} is not among the labels ({shown}). {hint}")


def check_classes(classes: list[Any], pos_label: Any, name: str, missing_label: Any = None) -> None:
    """The labels that an engine found obey the rules of `positive_labels`; which rows hold them is not known.

    `classes` has `pos_label`, if it occurs, and the first few of the others.
    """
    if len(classes) > 2:
        third, besides, more = _odd_one_out(classes, pos_label)
        rule = _rule_for_labels(classes, pos_label, missing_label)
        raise InputError.about(name, f"a third value {_shown(third)} besides {besides}{more}. {rule}")
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


def _rule_for_labels(classes: list[Any], pos_label: Any, missing_label: Any) -> str:
    rule = "Labels take two values; the rest must be missing."
    if pos_label not in classes and any(_is_code(c) for c in classes):
        rule += f" pos_label={pos_label!r} is none of them: say which one is positive with pos_label=."
    spelled: dict[str, str] = {}
    for word in (c for c in classes if isinstance(c, str)):
        twin = spelled.setdefault(word.strip().casefold(), word)
        if twin != word:
            rule += f" {twin!r} and {word!r} differ in case or spaces alone: spell them alike."
            classes = [c for c in classes if _is_gap_word(c)]
            break
    codes = [c for c in classes if c not in (0, 1, "0", "1", pos_label) and _is_code(c)]
    if codes:
        gaps = [c for c in codes if _is_gap_word(c)] or [c for c in codes[-1:] if not isinstance(c, str)]
        if not gaps:
            return f"{rule} If one of them means missing, say missing_label=."
        told = [c for c in frames.meaning_missing(missing_label) if not frames.is_missing(c)]
        every = ", ".join(_shown(c) for c in (*told, *gaps))
        words = " and ".join(_shown(c) for c in gaps)
        rule += f" If {words} {'means' if len(gaps) == 1 else 'mean'} missing, say missing_label="
        rule += f"{every}." if len(told) + len(gaps) == 1 else f"[{every}]."
    return rule


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
    """A threshold as a finite number: an infinite one has no place on an axis, in JSON or between two others."""
    try:
        if isinstance(threshold, (str, bytes)) or getattr(threshold, "ndim", 0) != 0:
            raise TypeError
        cut = float(threshold)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"threshold: expected a number, got {threshold!r}.") from None
    if np.isnan(cut):
        raise InputError("threshold: NaN. Scores are compared with the threshold, so it must be a number.")
    if np.isinf(cut):
        raise InputError(
            f"threshold: {cut:g}. It must be finite: to flag {'no row' if cut > 0 else 'every row'}, give a number "
            f"{'above' if cut > 0 else 'below'} all scores."
        )
    return cut


def decided_from(threshold: Any, given: str | None) -> float | None:
    """Return the validated threshold, by default `THRESHOLD`; None if the argument `given` has the predictions."""
    if threshold is None:
        return THRESHOLD if given is None else None
    cut = threshold_number(threshold)
    if given is not None:
        raise InputError(f"threshold: {cut!r}, but {given} already gives the decisions. Give one of them.")
    return cut


def given_decisions(y_pred: Any, rows: int, pos_label: Any, classes: list[Any]) -> BoolArray:
    """Which rows are decided positive; `classes` are those of the labels."""
    decisions, gaps = frames.label_column(y_pred, "y_pred")
    check_length(decisions, "y_pred", rows)
    if gaps.any():
        raise InputError(f"y_pred: missing at row {int(np.argmax(gaps))}. Every row needs a decision.")
    found = _classes(decisions, gaps)
    pos_label, known = frames.meant_decisions(found, pos_label, classes, truth=decisions.dtype.kind == "b")
    positive, found = positive_labels(decisions, gaps, pos_label, "y_pred")
    stranger = next((c for c in found if c not in known), None)
    if stranger is not None and len(known) > 1:
        at = int(np.argmax(equals(decisions, gaps, stranger)))
        labels = " and ".join(_shown(c) for c in known[:2])
        raise InputError(f"y_pred: {_shown(stranger)} at row {at} is none of the labels ({labels}).")
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
    check_finite(weight, "sample_weight", "Weights must be finite; a row that shall not count has weight 0.")
    if (weight < 0.0).any():
        first = int(np.argmax(weight < 0.0))
        raise InputError(f"sample_weight: {_shown(weight[first])} at row {first}. Weights must not be negative.")
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
            f"strata: {_shown(number[first])} at row {first}. Strata are text, or whole numbers below 2**52 in size; "
            "every row needs one."
        )
    return number.astype(np.int64)


def row_groups(groups: Any, rows: int) -> IntArray | None:
    """A number for the group of each row, if it was given: rows of one customer have one."""
    if groups is None:
        return None
    if not hasattr(groups, "__iter__") or isinstance(groups, str):
        raise InputError(f"clusters: {groups!r}. Give one value per row.")
    to_list = next((getattr(groups, name) for name in ("tolist", "to_pylist") if hasattr(groups, name)), None)
    values = list(groups) if to_list is None else to_list()
    check_length(np.empty(len(values)), "clusters", rows)
    absent = next((i for i, value in enumerate(values) if frames.is_missing(value)), None)
    if absent is not None:
        raise InputError(
            f"clusters: no value at row {absent}. Every row needs a cluster ID; give rows without a cluster a unique "
            "one."
        )
    try:
        different = set(values)
    except TypeError:
        raise InputError("clusters: values that cannot be compared. Give text, numbers or dates.") from None
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
        raise InputError(f"propensity: {_shown(chance[first])} at row {first}, {label}. {frames.PROPENSITY_RULE}")
    return chance


def row_probabilities(probability: Any, missing: BoolArray) -> FloatArray | None:
    """The chance of each row to be positive, NaN where it is labeled and none was given."""
    if probability is None:
        return None
    chance = frames.number_column(probability, "probability")
    rows, gaps = missing.size, int(missing.sum())
    if chance.size not in (rows, gaps):
        raise InputError(
            f"probability: {counted(chance.size, 'value')} for {rows:,} rows of which {gaps:,} are missing their "
            "label. Give one per row, or one per missing row."
        )
    per_row = chance.size == rows
    # Written so that NaN is bad, except where a label makes the probability superfluous.
    bad = ~((chance >= 0.0) & (chance <= 1.0))
    if per_row and bad.any():
        bad &= missing | ~np.isnan(chance)
    if bad.any():
        first = int(np.argmax(bad))
        place = f"row {first}" if per_row else f"position {first} of the {gaps:,} missing rows"
        raise InputError(f"probability: {_shown(chance[first])} at {place}. Probabilities must lie in [0, 1].")
    if not per_row:
        full = np.full(rows, np.nan)
        full[missing] = chance
        chance = full
    return chance
