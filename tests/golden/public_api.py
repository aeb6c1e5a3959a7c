"""The public names with their signatures, one per line: what a change must not change without saying so."""

import inspect
import re
from types import ModuleType
from typing import Any

import darkmetrics as dm


def public_api() -> str:
    """One line per public name, and per public attribute of a public class."""
    lines: list[str] = []
    for where in (dm, *sorted((getattr(dm, name) for name in dm.__all__ if _is_module(name)), key=_name)):
        for name in sorted(getattr(where, "__all__", None) or _own(where)):
            value = getattr(where, name)
            lines.append(f"{_name(where)}.{name}{_signature(value)}")
            if inspect.isclass(value) and value.__module__.startswith("darkmetrics"):
                lines += [f"    .{member}" for member in _members(value)]
    return "\n".join(lines) + "\n"


def _is_module(name: str) -> bool:
    return isinstance(getattr(dm, name), ModuleType)


def _name(module: ModuleType) -> str:
    return module.__name__


def _own(module: ModuleType) -> list[str]:
    own = vars(module).items()
    return [name for name, value in own if name[0] != "_" and getattr(value, "__module__", "") == module.__name__]


def _members(value: type) -> list[str]:
    fields = getattr(value, "__dataclass_fields__", {})
    found = []
    for name in sorted({name for base in value.__mro__[:-1] for name in vars(base)} | set(fields)):
        if name.startswith("_"):
            continue
        member = inspect.getattr_static(value, name, None)
        member = getattr(member, "__func__", member)
        found.append(name + (_signature(member) if inspect.isfunction(member) else ""))
    return found


def _signature(value: Any) -> str:
    if not (inspect.isfunction(value) or inspect.isclass(value)):
        return ""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return ""
    # Annotations may become more telling; names, order, kinds and defaults are what a caller relies on.
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in parameters]
    return re.sub(r" at 0x[0-9a-f]+", "", str(inspect.Signature(bare)))
