"""All public functions, classes and methods, by name."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import darkmetrics as dm


def public_callables() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public names of the package, of its public modules, and of the methods of its classes."""
    for name in dm.__all__:
        value = getattr(dm, name)
        if inspect.ismodule(value):
            own = [key for key, item in vars(value).items() if getattr(item, "__module__", "") == value.__name__]
            for inner in getattr(value, "__all__", [key for key in own if not key.startswith("_")]):
                yield from _with_methods(f"{name}.{inner}", getattr(value, inner))
        else:
            yield from _with_methods(name, value)


def _with_methods(name: str, value: Any) -> Iterator[tuple[str, Callable[..., Any]]]:
    if inspect.isfunction(value):
        yield name, value
    elif inspect.isclass(value) and not issubclass(value, Exception):
        yield name, value
        for method, function in vars(value).items():
            if not method.startswith("_") and inspect.isfunction(function):
                yield f"{name}.{method}", function


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the parameters without `self`."""
    try:
        known = inspect.signature(function).parameters
    except ValueError:  # a class without a signature
        return {}
    return {name: parameter for name, parameter in known.items() if name not in ("self", "args", "kwargs")}
