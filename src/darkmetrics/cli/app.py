"""All commands, with groups of options unfolded into options, and the meaning of exit codes."""

import functools
import inspect
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from typer.core import TyperGroup
from typer.main import get_command

import darkmetrics as dm
from darkmetrics.cli.commands import (
    bounds,
    change,
    check,
    compare,
    curves,
    demo,
    diagnose,
    evaluate,
    metrics,
    monitor,
    report,
    verify,
)
from darkmetrics.cli.other_options import option_for
from darkmetrics.cli.output import BAD_INPUT, DONE, INTERRUPTED, OWN_ERROR, TARGET_MISSED, fail, guarded
from darkmetrics.cli.settings import CONTEXT, NAME, from_file, use_settings
from darkmetrics.cli.streams import no_standard_output, patient_output
from darkmetrics.exceptions import InputError


def command(function: Callable[..., int | None]) -> Callable[..., int]:
    """Return a command: fields of dataclass parameters become options, and errors become exit codes."""
    hints = get_type_hints(function, include_extras=True)
    groups = {name: hint for name, hint in hints.items() if is_dataclass(hint) and isinstance(hint, type)}
    parameters = [_keyword("context", typer.Context)]
    for name, parameter in inspect.signature(function).parameters.items():
        if name in groups:
            types = get_type_hints(groups[name], include_extras=True)
            parameters += [_keyword(one.name, types[one.name], one.default) for one in fields(groups[name])]
        else:
            parameters.append(_keyword(name, hints[name], parameter.default))

    @functools.wraps(function)
    def unfolded(context: typer.Context, **values: Any) -> int:
        def work() -> int | None:
            CONTEXT.set(context)
            grouped = {field.name for group in groups.values() for field in fields(group)}
            arguments = {name: value for name, value in values.items() if name not in grouped}
            for name, group in groups.items():  # refuses options that cannot be combined
                arguments[name] = group(**{field.name: values[field.name] for field in fields(group)})
            return function(**arguments)

        return guarded(work, debug=values["debug"])

    unfolded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # functions may have one
    unfolded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # The help breaks lines where the screen ends, so those of the source must go.
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    unfolded.__doc__ = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return unfolded


def _keyword(name: str, annotation: Any, default: Any = MISSING) -> inspect.Parameter:
    default = inspect.Parameter.empty if default is MISSING else default
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


EXIT_CODES = {
    DONE: "done; also if the reader of the result, such as head, stopped before its end",
    TARGET_MISSED: "check misses a --fail-under or --fail-over, report a --target or compare its --gate; monitor has "
    "an alert (with --known-alerts a new one), change a decline over --max-decline; or verify rejects",
    BAD_INPUT: "an option, a file or a value in it is wrong, or the result cannot be written; one line tells what",
    OWN_ERROR: "an error in darkmetrics itself",
    INTERRUPTED: "interrupted (Ctrl-C)",
}


class _Commands(TyperGroup):
    """The commands; a file in place of one is evaluated."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args and args[0] not in self.commands and _is_data(args[0]):
            typed = shlex.split(ctx.obj)
            args = ["evaluate", *args]
            ctx.obj = shlex.join([*typed[: len(typed) - len(args) + 1], *args])
        return super().resolve_command(ctx, args)


def _is_data(word: str) -> bool:
    """Return whether a word is the name of a file, a folder or a pattern, and not a misspelled command."""
    return word == "-" or any(sign in word for sign in "./\\*?[") or Path(word).exists()


app = typer.Typer(
    name="darkmetrics",
    cls=_Commands,
    help="Estimate classifier metrics when part of the test labels is missing. darkmetrics FILE evaluates a file.",
    epilog="Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _module in (evaluate, check, compare, monitor, change, bounds, curves, diagnose, verify, report, metrics, demo):
    app.command(name=_module.__name__.rpartition(".")[2], epilog=_module.EXAMPLE)(command(_module.main))


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"darkmetrics {dm.__version__}")
        raise typer.Exit


@app.callback()
def _without_command(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help=f"TOML file with default options, which the command line overrides. [default: {NAME} if it exists]",
        ),
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
    elif not {"-h", "--help"} & set(shlex.split(context.obj)):
        use_settings(context, config)


def _other_option(error: Any, typed: str) -> str:
    """Return the message for an option that other tools have for one of ours, with the command to run; else nothing."""
    word, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if not word or context is None:
        return ""
    options = [option for parameter in context.command.params for option in parameter.opts if option.startswith("--")]
    if option_for(word, options) is None:
        return ""
    parts = [part if part in options else option_for(part, options) or part for part in shlex.split(typed)]
    return f"No such option: {word}. Run: {shlex.join(parts)}"


@functools.cache
def _parser() -> Callable[..., int | None]:
    """Return the parser of all commands, built once per process."""
    return get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    passed = sys.argv[1:] if arguments is None else list(arguments)
    typed = shlex.join(["darkmetrics", *passed])
    try:
        with patient_output():
            code = _parser()(passed, prog_name="darkmetrics", standalone_mode=False, obj=typed)
    except typer.Abort:
        return fail("interrupted", INTERRUPTED)
    except InputError as error:  # in the file of settings
        return fail(str(error), BAD_INPUT)
    except OSError as error:  # commands catch their own: this is help that could not be printed
        return fail(str(no_standard_output(error)), BAD_INPUT)
    except Exception as error:
        # A usage error: its class is click's or typer's own, depending on the version.
        if not hasattr(error, "format_message"):
            raise
        context, parameter = getattr(error, "ctx", None), getattr(error, "param", None)
        path = "darkmetrics" if context is None else context.command_path
        where = f" (set in {NAME} or --config)" if parameter is not None and from_file(context, parameter.name) else ""
        page = " The report command writes a page." if getattr(error, "option_name", "") == "--report" else ""
        message = _other_option(error, typed) or error.format_message().rstrip(".") + where
        stop = "" if message.endswith("?") else "."
        return fail(f"{message}{stop}{page} Try '{path} --help'.", BAD_INPUT)
    return int(code or 0)
