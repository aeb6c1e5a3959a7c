"""The commands together, their groups of options as single options, and what an exit code means."""

import copy
import functools
import inspect
import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import MISSING, fields, is_dataclass
from math import inf
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer
from typer.main import get_command
from typer.models import OptionInfo

import darkmetrics as dm
from darkmetrics._text import number_from, whole_number_from
from darkmetrics.cli.commands import (
    bounds,
    change,
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
from darkmetrics.cli.output import BAD_INPUT, DONE, INTERRUPTED, OWN_ERROR, TARGET_MISSED, fail, guarded
from darkmetrics.cli.settings import NAME, from_file, use_settings
from darkmetrics.cli.streams import no_standard_output, patient_output
from darkmetrics.exceptions import InputError


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
    # The help breaks lines where the screen ends; those of the source would come on top of that.
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    unfolded.__doc__ = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
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


EXIT_CODES = {
    DONE: "done; also when the reader of the result, such as head, stopped before its end",
    TARGET_MISSED: "a --target or a --gate is not met with the probability asked for, monitor has an alert (with "
    "--known a new one), a metric of change --worse got worse, or verify rejects",
    BAD_INPUT: "an option, a file or a value in it is wrong, or the result cannot be written (a full disk, a closed "
    "standard output); one line says what",
    OWN_ERROR: "an error in darkmetrics itself",
    INTERRUPTED: "interrupted (Ctrl-C)",
}

app = typer.Typer(
    name="darkmetrics",
    help="How good is this classifier when part of the test labels is missing?",
    epilog="Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for _module in (evaluate, compare, monitor, change, bounds, curves, diagnose, verify, report, metrics, demo):
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
            help=f"Options that need not be typed, in TOML; {NAME} of this folder unless given. What is typed goes "
            "first.",
        ),
    ] = None,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
    elif not {"-h", "--help"} & set(shlex.split(context.obj)):
        use_settings(context, config)


@functools.cache
def _parser() -> Callable[..., int | None]:
    """What reads the words of all commands, made once: a process that runs several would make it for each."""
    return get_command(app)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with patient_output():
            code = _parser()(
                given, prog_name="darkmetrics", standalone_mode=False, obj=shlex.join(["darkmetrics", *given])
            )
    except typer.Abort:
        return fail("interrupted", INTERRUPTED)
    except InputError as error:  # what is wrong with the file of settings
        return fail(str(error), BAD_INPUT)
    except OSError as error:  # commands catch their own: this is help that could not be printed
        return fail(str(no_standard_output(error)), BAD_INPUT)
    except Exception as error:
        # What is wrong with the words of a command; its class is click's or typer's own, depending on the version.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        command_path = "darkmetrics" if context is None else context.command_path
        parameter = getattr(error, "param", None)
        where = f" (set in {NAME} or --config)" if parameter is not None and from_file(context, parameter.name) else ""
        page = " A page is what the report command makes." if getattr(error, "option_name", "") == "--report" else ""
        said = error.format_message().rstrip(".") + where
        said += "" if said.endswith("?") else "."  # that asks whether another word was meant
        return fail(f"{said}{page} Try '{command_path} --help'.", BAD_INPUT)
    return int(code or 0)
