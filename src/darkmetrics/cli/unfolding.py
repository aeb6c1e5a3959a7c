"""A command whose groups of options become single options, read by the library's own rules."""

import copy
import functools
import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from math import inf
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.models import OptionInfo

from darkmetrics._text import number_from, whole_number_from
from darkmetrics.cli.output import guarded


def command(function: Callable[..., int | None]) -> Callable[..., int]:
    """A command whose dataclass parameters are unfolded into options, and whose errors become exit codes."""
    hints = get_type_hints(function, include_extras=True)
    parameters: list[inspect.Parameter] = []
    groups: dict[str, type] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if is_dataclass(hints[name]):
            groups[name] = hints[name]
            parameters += _unfolded(hints[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(function)
    def unfolded(**given: Any) -> int:
        def work() -> int | None:  # options that do not go together are refused where they are folded
            own = {name: {field.name: given[field.name] for field in fields(group)} for name, group in groups.items()}
            rest = {name: value for name, value in given.items() if not any(name in taken for taken in own.values())}
            return function(**{name: group(**own[name]) for name, group in groups.items()}, **rest)

        return guarded(work, debug=given["debug"])

    parameters = [parameter.replace(annotation=_strict(parameter.annotation)) for parameter in parameters]
    unfolded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    unfolded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return unfolded


def _strict(annotation: Any) -> Any:
    """The annotation of an option with the library's rule of what a number is: click also takes 1_000."""
    kind, *information = get_args(annotation) if get_origin(annotation) is Annotated else [annotation]
    number = next((one for one in (int, float) if one in (kind, *get_args(kind))), None)
    option = next((one for one in information if isinstance(one, OptionInfo)), None)
    if number is None or option is None:
        return annotation
    strict = copy.copy(option)

    def parsed(given: Any) -> Any:
        read: Callable[[str], float | None] = whole_number_from if number is int else number_from
        value: Any = read(given) if isinstance(given, str) else given
        if value is None:
            raise typer.BadParameter(f"{given!r} is not a {'whole ' * (number is int)}number.")
        low, high = -inf if option.min is None else option.min, inf if option.max is None else option.max
        if (low, high) != (-inf, inf) and not low <= value <= high:  # as it stands, so that NaN is refused
            rule = f"at least {low:g}" if high == inf else f"from {low:g} to {high:g}"
            raise typer.BadParameter(f"{given} is not {rule}.")
        return value

    strict.parser, strict.min, strict.max = parsed, None, None
    return Annotated[kind, strict]


def _unfolded(group: type) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
