"""The call that made a result, as code: so that a report can say how to make it again."""

import ast
import inspect
import itertools
import sys
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

import numpy as np

# Longer than any word or number that is an argument: what does not fit was data, and has a name of its own.
_MOST_CHARACTERS = 200


def arguments_given(function: Callable[..., Any], given: Mapping[str, Any]) -> dict[str, str]:
    """The arguments that are not defaults, each as code; data stand as the name of the argument.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.call_as_code import arguments_given
    >>> tilted = dm.missing.ExponentialTilt("by_score", prevalence=0.4)
    >>> arguments_given(dm.evaluate, {"missingness": tilted, "pos_label": 1, "sample_weight": [1.0] * 1000, "rng": 0})
    {'missingness': 'dm.missing.ExponentialTilt(prevalence=0.4)', 'sample_weight': 'sample_weight', 'rng': '0'}
    """
    defaults = {name: parameter.default for name, parameter in inspect.signature(function).parameters.items()}
    changed = {name: value for name, value in given.items() if not _same(value, defaults[name])}
    # A list of numbers is data, but not where it holds the labels that mean missing.
    code = {
        name: _labels_as_code(value) if name == "missing_label" else as_code(value) for name, value in changed.items()
    }
    return {name: said or name for name, said in code.items()}


def names_in(code: str) -> set[str]:
    """Return the names that code needs besides the package.

    Examples
    --------
    >>> from darkmetrics.call_as_code import names_in
    >>> names_in("dm.missing.ByScore(strata=strata)"), names_in('float("nan")')
    ({'strata'}, set())
    """
    return {node.id for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Name)} - {"dm", "float"}


def _labels_as_code(value: Any) -> str | None:
    several = isinstance(value, (list, tuple, set, frozenset))
    return f"[{', '.join(as_code(one) or '...' for one in value)}]" if several else as_code(value)


def as_code(value: Any) -> str | None:
    """Return code that makes the value again; None for data and functions, which code cannot repeat.

    Within an object of `dm.missing` these stand as the name of their field; those of reference rows begin with
    "reference_", because rows are called the same.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.call_as_code import as_code
    >>> as_code(dm.missing.Propensity("pi")), as_code(dm.missing.Propensity([0.5, 0.25]))
    ("dm.missing.Propensity(propensity='pi')", 'dm.missing.Propensity(propensity=propensity)')
    >>> as_code(dm.missing.Reference("fraud", "p", data={"fraud": [1, 0], "p": [0.9, 0.2]}))
    "dm.missing.Reference(y_true='fraud', y_score='p', data=reference_data)"
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        code = repr(value)
        return _numbers(code) if len(code) <= _MOST_CHARACTERS else None
    if isinstance(value, (list, tuple)):
        parts = [as_code(part) if isinstance(part, str) else None for part in value]
        code = f"[{', '.join(part or '' for part in parts)}]"
        return code if None not in parts and len(code) <= _MOST_CHARACTERS else None
    if isinstance(value, Mapping):
        pairs = [(as_code(key), as_code(one)) for key, one in itertools.islice(value.items(), _MOST_CHARACTERS)]
        code = f"{{{', '.join(f'{key}: {one}' for key, one in pairs)}}}"
        return code if None not in itertools.chain(*pairs) and len(code) <= _MOST_CHARACTERS else None
    package, _, inner = type(value).__module__.partition(".")
    name = type(value).__name__
    ours = package == __name__.partition(".")[0] and is_dataclass(value)
    # Mechanisms are public in another package than the one they are defined in.
    public = (inner.partition(".")[0], "missing")
    module = next((module for module in public if hasattr(sys.modules.get(f"{package}.{module}"), name)), None)
    if not ours or module is None:
        return None
    settings = []
    for field in fields(value):
        setting = getattr(value, field.name)
        if field.default is MISSING or not _same(setting, field.default):
            code_of_setting = as_code(setting)
            if code_of_setting is None:
                if module != "missing":
                    return None
                code_of_setting = f"reference_{field.name}" if name == "Reference" else field.name
            settings.append(f"{field.name}={code_of_setting}")
    return f"dm.{module}.{name}({', '.join(settings)})"


def _same(value: Any, default: Any) -> bool:
    """Whether a value is the default; only plain values are compared, since columns compare in ways of their own."""
    plain = (bool, int, float, str)
    if isinstance(value, plain) and isinstance(default, plain):
        return bool(value == default)
    return value is default


def _numbers(code: str) -> str:
    """Names that a float has in print, but not in code."""
    return f'float("{code}")' if code in ("nan", "inf", "-inf") else code
