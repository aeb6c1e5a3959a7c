"""darkmetrics.toml: default options, which the command line overrides."""

import shlex
import tomllib
from collections.abc import Mapping
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer

from darkmetrics.cli.output import say
from darkmetrics.exceptions import InputError, unknown_name

NAME = "darkmetrics.toml"
# The context of the command that runs.
CONTEXT: ContextVar[typer.Context] = ContextVar("context")


def read_settings(given: str | None, commands: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options that a file sets, by command; by default the file of this folder, if there is one.

    Keys at the top are for every command that has such an option, and a table such as [monitor] is for one command.
    """
    path = Path(NAME if given is None else given)
    if given is None and not _is_there(path):
        return {}
    content = _parsed(path)
    tables = {name: value for name, value in content.items() if isinstance(value, dict)}
    shared = {_option(name): value for name, value in content.items() if name not in tables}
    options = {
        name: {one.name: one for one in command.params if one.name != "help"} for name, command in commands.items()
    }
    for name in tables:
        if name not in options:
            raise unknown_name(str(path), "command", name, options)
    for name in shared:
        if not any(name in known for known in options.values()):
            raise unknown_name(str(path), "option", name, {one for known in options.values() for one in known})
    found: dict[str, dict[str, Any]] = {}
    for command, known in options.items():
        own = {_option(name): value for name, value in tables.get(command, {}).items()}
        for name in own:
            if name not in known:
                raise unknown_name(str(path), f"option of {command}", name, known)
        settings = {name: value for name, value in shared.items() if name in known} | own
        found[command] = {name: _value(path, known[name], value) for name, value in settings.items()}
    return found


def _is_there(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a folder that may not be looked into
        return False


def use_settings(context: typer.Context, config: str | None) -> None:
    """Make the options of the file the defaults of the command that follows."""
    commands = getattr(context.command, "commands", {})
    settings = read_settings(config, commands)
    own = settings.get(context.invoked_subcommand or "", {})
    if own:
        say(f"Settings of {config or NAME}: {', '.join(own)}.")
    context.default_map = settings


def from_file(context: Any, name: str | None) -> bool:
    """Return whether an option has its value from the file."""
    source = None if context is None or name is None else context.get_parameter_source(name)
    return getattr(source, "name", "") == "DEFAULT_MAP"


def command_line(guessed: Mapping[str, str] | None = None) -> str:
    """Return the command of this run, with options of the file of settings and `guessed` columns written out."""
    context = CONTEXT.get()
    words: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name or "")
        value = (guessed or {}).get(parameter.name or "", value if from_file(context, parameter.name) else None)
        for text in value if isinstance(value, (list, tuple)) else [value]:
            if isinstance(text, bool):
                words += [parameter.opts[0]] if text else []
            elif text is not None:
                words += [*([parameter.opts[0]] if parameter.opts[0].startswith("-") else []), str(text)]
    return " ".join([str(context.obj), *([shlex.join(words)] if words else [])])


def _parsed(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(str(path), f"is no TOML: {error}") from None
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}") from None


def _option(key: str) -> str:
    """Return the name of the option of a key: pos-label and pos_label are the same."""
    return key.replace("-", "_")


def _value(path: Path, parameter: Any, value: Any) -> Any:
    """Return a value as it would be typed; that of a repeatable option is a list."""
    name = parameter.name
    if isinstance(value, bool) != bool(getattr(parameter, "is_flag", False)):
        rule = "is true or false" if getattr(parameter, "is_flag", False) else "is not true or false"
        raise InputError(str(path), f"{name} = {str(value).lower()}", f"It {rule}.")
    if isinstance(value, bool):
        return value
    several = getattr(parameter, "multiple", False) or getattr(parameter, "nargs", 1) == -1
    if isinstance(value, list) and not several:
        raise InputError(str(path), f"{name} = {value}", "It takes one value.")
    if several:
        return [str(one) for one in (value if isinstance(value, list) else [value])]
    return str(value)
