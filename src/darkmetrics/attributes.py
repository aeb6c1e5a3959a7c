"""Names that the package or a result does not have: called if they have one meaning here, else answered."""

import difflib
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from darkmetrics.exceptions import UnknownNameError, level_of_caller
from darkmetrics.foreign_words import FUNCTIONS


def answer_attribute(
    owner: object, name: str, methods: Mapping[str, tuple[str, tuple[str, ...]]], hints: Mapping[str, str]
) -> Callable[..., Any]:
    """Return the method that another library calls `name`; it warns. Raise an AttributeError if there is none.

    `methods` has the name of a method, and its first arguments, for each word; `hints` has the code after the object.
    """
    kind = type(owner).__name__
    method, first = methods.get(name, ("", ()))
    if method and hasattr(type(owner), method):
        code = f"{method}({', '.join(map(repr, first))})"

        def called(*args: Any, **kwargs: Any) -> Any:
            text = f"{kind} has no {name!r}. Write .{code}."
            warnings.warn(text, UserWarning, stacklevel=level_of_caller())
            return getattr(owner, method)(*first, *args, **kwargs)

        return called
    public = [attribute for attribute in dir(type(owner)) if not attribute.startswith("_")]
    near = difflib.get_close_matches(name, public, n=1, cutoff=0.75)
    hint = f" Write {hints[name]}." if name in hints else f" Did you mean {near[0]!r}?" if near else ""
    raise AttributeError(f"{kind!r} object has no attribute {name!r}.{hint}")


def answer_name(name: str, public: Sequence[str]) -> str:
    """Return the message for a name that the package does not have, with the call to make.

    Examples
    --------
    >>> from darkmetrics.attributes import answer_name
    >>> print(answer_name("recall_score", ["evaluate"]))
    darkmetrics has no 'recall_score'. Write dm.evaluate(y_true, y_score, metrics='recall')['recall'].
    """
    refused = f"darkmetrics has no {name!r}."
    if name in FUNCTIONS:
        return f"{refused} Write dm.{FUNCTIONS[name]}."
    if name.startswith("ppi_"):
        return f"{refused} Write dm.{FUNCTIONS['confidence_interval']}."
    if name.startswith("plot_"):
        near = difflib.get_close_matches(name, import_module(f"{__package__}.plotting").__all__, n=1)
        return f"{refused} Write dm.plotting.{near[0]}(result)." if near else refused
    registered = import_module(f"{__package__}.metrics").registered
    try:
        example = "fbeta(2)" if name == "fbeta_score" else registered(name).name
        return f"{refused} Write dm.evaluate(y_true, y_score, metrics={example!r})[{example!r}]."
    except UnknownNameError:
        pass
    near = difflib.get_close_matches(name, public, n=1, cutoff=0.7)
    return f"{refused} Did you mean {near[0]!r}?" if near else refused
