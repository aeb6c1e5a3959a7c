"""Which values the parameters of public functions take: declared once, by the name of the parameter.

A parameter that means the same in several functions has one constraint. Where a name has another meaning in one
function or class, the constraint is declared for "function.parameter". None is accepted where it is the default.
"""

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ParamSpec, TypeVar

import numpy as np

from darkmetrics._vocabulary import (
    ARRIVALS,
    CORRECTIONS,
    DISPARITIES,
    LABEL_SOURCES,
    METHODS,
    PERIODS,
    REVIEWED,
    SCOPES,
)
from darkmetrics.exceptions import InputError, unknown_name

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def is_number(value: Any) -> bool:
    """Return whether a value is a single number; True and False are not."""
    return isinstance(value, (int, float, np.number)) and not isinstance(value, bool)


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number: 3, and not 3.0 or True."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def shortened(value: Any) -> str:
    """Return a value as Python writes it, in one line and cut if it is long.

    Examples
    --------
    >>> from darkmetrics.constraints import shortened
    >>> shortened([1] * 100)
    '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1...'
    """
    text = " ".join(repr(value).split())
    # An error itself cuts a number of many digits.
    return text if len(text) <= 60 or is_whole(value) else text[:57] + "..."


@dataclass(frozen=True)
class Constraint:
    """What a parameter accepts.

    Attributes
    ----------
    rule : str
        The values, in a sentence.
    accepts : callable
        Whether a value is one of them.
    bad : tuple
        Values that are not, for tests.
    choices : tuple of str
        Texts that are accepted, of which an unknown text may be a misspelling.
    fix : callable
        What to pass instead of a value that is not accepted, in a sentence; may be empty.
    """

    rule: str
    accepts: Callable[[Any], bool]
    bad: tuple[Any, ...]
    choices: tuple[str, ...] = ()
    fix: Callable[[Any], str] = lambda value: ""

    def check(self, name: str, value: Any) -> None:
        """Raise the error for a value that is not accepted."""
        if self.accepts(value):
            return
        if self.choices and isinstance(value, str):
            raise unknown_name(name, name.replace("_", " "), value, self.choices)
        raise InputError(name, shortened(value), self.rule, self.fix(value))


def _between(low: float, high: float, rule: str, *, strictly: bool = False, fix: Any = lambda value: "") -> Constraint:
    def accepts(value: Any) -> bool:
        return _is_plain(value) and bool(low < value < high if strictly else low <= value <= high)

    step = 0.0 if strictly else 0.5
    ends = [bound + sign * step for bound, sign in ((low, -1.0), (high, 1.0)) if math.isfinite(bound)]
    return Constraint(rule, accepts, (*ends, math.inf, math.nan, "0.5", True, [0.5]), fix=fix)


def _is_plain(value: Any) -> bool:
    """Return whether a value is a number that a float can hold."""
    return is_number(value) and _is_finite(value)


def _whole(low: int, high: int | None = None, also: Sequence[Any] = (), rule: str = "") -> Constraint:
    limits = f"of at least {low}" if high is None else f"from {low:,} to {high:,}"

    def accepts(value: Any) -> bool:
        return is_whole(value) and (value in also or (value >= low and (high is None or value <= high)))

    bad = (low - 1, low + 0.5, str(low), True, *(() if high is None else (high + 1,)))
    return Constraint(rule or f"It must be a whole number {limits}.", accepts, bad)


def _among(*choices: str, other: Callable[[Any], bool] = lambda value: False, rule: str = "") -> Constraint:
    words = ", ".join(map(repr, choices[:-1])) + f" or {choices[-1]!r}"
    return Constraint(
        rule or f"It must be {words}.",
        lambda value: (isinstance(value, str) and value in choices) or other(value),
        (f"{choices[0]}x", 3, [choices[0]]),
        choices,
    )


def _or_none(constraint: Constraint, rule: str) -> Constraint:
    return replace(constraint, rule=rule, accepts=lambda value: value is None or constraint.accepts(value))


def _percent(value: Any) -> str:
    """Return the fix for a percentage."""
    return f"Pass {value / 100.0:.6g} for {value:.6g}%." if is_number(value) and 50.0 <= value < 100.0 else ""


def _is_levels(value: Any) -> bool:
    levels = [value] if is_number(value) else list(value) if isinstance(value, (list, tuple, np.ndarray)) else []
    inside = all(is_number(level) and 0.0 < level < 1.0 for level in levels)
    return inside and 0 < len(levels) == len(set(levels))


def _is_generator(value: Any) -> bool:
    try:
        np.random.default_rng(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_finite(value: Any) -> bool:
    """Return whether a scalar of any kind is a finite number; True and False are not."""
    if isinstance(value, (str, bytes, bool, np.bool_)) or getattr(value, "ndim", 0) != 0:
        return False
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _threshold_fix(value: Any) -> str:
    if not is_number(value) or not math.isinf(value):
        return ""
    rows, side = ("no row", "above") if value > 0 else ("every row", "below")
    return f"To predict {rows} positive, pass a number {side} all scores."


_FRACTION = "It must lie strictly between 0 and 1."
_POSITIVE = _between(1e-6, 1e6, "It must be a positive number from 1e-6 to 1e6.")
_UNIT = _between(0.0, 1.0, "It must lie in [0, 1].")
_STRICT_UNIT = _between(0.0, 1.0, _FRACTION, strictly=True)
_LEVEL = _between(0.0, 1.0, _FRACTION, strictly=True, fix=_percent)
_TRUTH = Constraint("It must be True or False.", lambda value: isinstance(value, (bool, np.bool_)), (None, 1, "yes"))

_THRESHOLD = Constraint(
    "It must be a finite number, with which scores are compared.",
    _is_finite,
    ("0.5", math.nan, math.inf, -math.inf, [0.5], 1j, True),
    fix=_threshold_fix,
)

CONSTRAINTS: Mapping[str, Constraint] = {
    "alpha": _LEVEL,
    "arrival": _among(*ARRIVALS),
    "confidence": _UNIT,
    "confidence_level": _LEVEL,
    "confidence_levels": Constraint(
        "They must be different numbers, strictly between 0 and 1.",
        _is_levels,
        (1.5, [], [0.5, 0.5], [0.5, 90], "0.5", math.nan),
    ),
    "correction": _among(*CORRECTIONS),
    "false_discovery_rate": _LEVEL,
    "fraction": _STRICT_UNIT,
    "kind": _among(*DISPARITIES),
    "last_periods": _whole(1),
    "mask": Constraint(
        "It must be a fraction strictly between 0 and 1, or an object such as dm.masks.ByScore(0.3).",
        lambda value: _STRICT_UNIT.accepts(value) or (hasattr(value, "mask") and not isinstance(value, type)),
        (0, 1.0, 30, math.nan, "random"),
    ),
    "method": _among(
        *METHODS,
        # Names in the paper, and objects of dm.methods.
        other=lambda value: (
            value.lower().replace("-", "_") in ("pemi", "pemi_gauss")
            if isinstance(value, str)
            else callable(getattr(value, "distributions", None)) and not isinstance(value, type)
        ),
        rule=f"It must be {', '.join(map(repr, METHODS))}, or an object of dm.methods.",
    ),
    "min_labels": _whole(0),
    "n_bins": _whole(1, 10_000),
    "n_draws": _whole(1, 4096),
    "n_folds": _whole(2),
    "n_jobs": _whole(1, also=(-1,), rule="It must be a whole number of at least 1, or -1 for one per core."),
    "n_repeats": _whole(1),
    "n_resamples": _whole(1),
    "odds": _between(
        1.0,
        math.inf,
        "It must be a finite number of at least 1.",
        fix=lambda value: "For bounds whatever the missing labels are, call result[metric].support().",
    ),
    "period": _among(*PERIODS),
    "prevalence": _STRICT_UNIT,
    "prior_scale": _POSITIVE,
    "prior_sd": _or_none(_POSITIVE, "It must be a positive number from 1e-6 to 1e6, or None for no prior."),
    "probability": _STRICT_UNIT,
    "risk": Constraint(
        "It must be 'mean' or a number strictly between 0 and 1.",
        lambda value: (isinstance(value, str) and value == "mean") or (is_number(value) and 0.0 < value < 1.0),
        ("median", 0, 1.0, math.nan, True),
    ),
    "rng": Constraint("It must be None, a seed or a numpy Generator.", _is_generator, ("seed", -1, 1.5)),
    "scope": _among(*SCOPES),
    # Steeper than this nothing changes: the probability of going missing already jumps from 0 to 1 between two scores.
    "slope": _between(-1e6, 1e6, "It must be a number from -1e6 to 1e6."),
    "step_sd": _POSITIVE,
    "threshold": _THRESHOLD,
    "uncertainty": _TRUTH,
    "zero_division": Constraint(
        "It must be 'warn', 0, 1 or nan.",
        lambda value: (
            (isinstance(value, str) and value == "warn") or (is_number(value) and (value in (0, 1) or value != value))
        ),
        ("ignore", 2, -1, True, [0]),
    ),
    # Where a name has another meaning, or other limits.
    "ByScore.data": _among(*LABEL_SOURCES),
    "Delayed.reviewed": _among(*REVIEWED, other=lambda value: hasattr(value, "propensity")),
    "ExponentialTilt.delta": Constraint("It must be a finite number.", _is_plain, (math.inf, math.nan, "1", True)),
    "Fixed.probability": Constraint(
        "It must lie in [0, 1].",
        lambda value: not is_number(value) or bool(0.0 <= value <= 1.0),
        (1.5, -0.1, math.nan),
    ),
    "Flexible.prior_sd": _POSITIVE,
    "Flexible.threshold": _or_none(_THRESHOLD, "It must be a finite number, or None for a curve without a jump."),
    "draws.n_draws": _whole(1, 1 << 20),
    "threshold_curves.method": _among(*METHODS),
    "evaluate.threshold": Constraint(
        "It must be a finite number, or with several classes a table of costs.",
        lambda value: _is_finite(value) or np.ndim(value) == 2,
        ("0.5", math.nan, math.inf, [0.5], 1j),
        fix=_threshold_fix,
    ),
    "compare.threshold": Constraint(
        "It must be a finite number, or a mapping from models to numbers.",
        lambda value: isinstance(value, Mapping) or _is_finite(value),
        ("0.5", math.nan, math.inf, [0.5], True),
    ),
}


def constraint_of(owner: str, parameter: str) -> Constraint | None:
    """Return the constraint of a parameter of a function or class; None if none is declared."""
    return CONSTRAINTS.get(f"{owner}.{parameter}", CONSTRAINTS.get(parameter))


def check_value(name: str, value: Any, owner: str = "") -> None:
    """Refuse a value that the constraint of a parameter does not accept."""
    constraint = constraint_of(owner, name)
    if constraint is not None:
        constraint.check(name, value)


def check_fields(record: Any) -> None:
    """Refuse settings of a dataclass that break a constraint; classes of users have names of their own."""
    owner = type(record)
    if owner.__module__.partition(".")[0] == __name__.partition(".")[0]:
        for field in fields(record):
            value = getattr(record, field.name)
            if not (value is None and field.default is None):
                check_value(field.name, value, owner.__name__)


def argument_checker(function: Callable[..., Any]) -> Callable[[Sequence[Any], Mapping[str, Any]], None]:
    """Return a check of the arguments of a function or method, which include `self`."""
    name = function.__qualname__.partition(".")[0] if function.__name__ == "__init__" else function.__name__
    parameters = inspect.signature(function).parameters
    constraints = {key: constraint_of(name, key) for key in parameters}
    declared = {key: (known, parameters[key].default) for key, known in constraints.items() if known is not None}
    positions = [key for key, known in parameters.items() if known.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]

    def check(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        for key, value in (*zip(positions, args, strict=False), *kwargs.items()):
            constraint, default = declared.get(key, (None, None))
            if constraint is not None and not (value is None and default is None):
                constraint.check(key, value)

    return check


def checked(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Decorate a public function or method: its arguments keep the constraints of their names."""
    check = argument_checker(function)

    @functools.wraps(function)
    def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        check(args, kwargs)
        return function(*args, **kwargs)

    return called
