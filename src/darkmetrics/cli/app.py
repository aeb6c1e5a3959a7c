"""The commands together, and what an exit code means."""

import shlex
import sys
from collections.abc import Sequence
from typing import Annotated

import typer

import darkmetrics as dm
from darkmetrics.cli.commands import (
    audit,
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
)
from darkmetrics.cli.output import BAD_INPUT, DONE, INTERRUPTED, OWN_ERROR, TARGET_MISSED, fail
from darkmetrics.cli.settings import NAME, from_file, use_settings
from darkmetrics.cli.streams import no_standard_output, patient_output
from darkmetrics.cli.unfolding import command
from darkmetrics.exceptions import InputError

EXIT_CODES = {
    DONE: "done; also when the reader of the result, such as head, stopped before its end",
    TARGET_MISSED: "a --target or a --gate is not met with the probability asked for, monitor has an alert (with "
    "--known a new one), a metric of change --worse got worse, or audit refutes",
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

for _module in (evaluate, compare, monitor, change, bounds, curves, diagnose, audit, report, metrics, demo):
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


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with patient_output():
            code = app(given, prog_name="darkmetrics", standalone_mode=False, obj=shlex.join(["darkmetrics", *given]))
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
        return fail(f"{error.format_message().rstrip('.')}{where}. Try '{command_path} --help'.", BAD_INPUT)
    return int(code or 0)
