"""Writes reference/command-line.md from the help of the commands: `python docs/command_line.py`."""

from enum import Enum
from pathlib import Path
from typing import Any

from typer.main import get_command

from darkmetrics.cli import app
from darkmetrics.cli.app import EXIT_CODES

PAGE = Path(__file__).parent / "reference/command-line.md"
BEFORE = """# Command line

<!-- Made by docs/command_line.py from the help of the commands; a test compares. -->

`darkmetrics COMMAND --help` says the same. Install it with `pip install 'darkmetrics[cli]'` (reports need
`darkmetrics[report]`, everything is in `darkmetrics[all]`); `python -m darkmetrics` works as well, and
`darkmetrics --install-completion` teaches your shell.

**Input.** CSV (comma, semicolon, tab or bar; also compressed), JSON lines, Parquet and Arrow/Feather, by suffix or by
content; `-` is standard input. Only the columns that are needed are read. Parquet and Arrow take Polars, PyArrow or
pandas, whichever is installed; text needs none of them. A column of text is numbers if every value in it is one.

**Columns.** `--label` and `--score` name them. Left out, they are guessed if exactly one column has a likely name
(label, target, y_true, ...; score, probability, y_score, ...), and the guess is printed.

**Output.** Results go to standard output or to `--output`, which is written under another name and renamed when it is
complete; everything else goes to standard error. `--format json` is `to_dict()` of the library's result, at full
precision.

**Exit codes.** {exit_codes}

A pipeline that must not go on unless recall is at least 0.8 with probability 90%:

```
darkmetrics evaluate june.parquet --label fraud --score p --missingness by_label --target recall=0.8 && ./deploy
```

With `--confidence 0.1` it stops only when it is 90% sure that the target is missed. The probabilities are printed, and
in JSON they are in `targets`.
"""


def page() -> str:
    """The whole page."""
    codes = EXIT_CODES.partition(": ")[2]
    commands = get_command(app).commands  # type: ignore[attr-defined]  # it is a group
    parts = [BEFORE.format(exit_codes=codes[0].upper() + codes[1:]).rstrip()]
    for name, command in commands.items():
        parts.append("\n\n".join(section(name, command)))
    return "\n\n".join(parts) + "\n"


def section(name: str, command: Any) -> list[str]:
    """What the help of one command says."""
    parts = [f"## {name}", " ".join(command.help.split("\n\n")[0].split())]
    parts += [" ".join(paragraph.split()) for paragraph in command.help.split("\n\n")[1:]]
    parts.append(f"```\n{command.epilog.removeprefix('Example: ')}\n```")
    panels: dict[str, list[str]] = {}
    for parameter in command.params:
        if "--help" in parameter.opts:
            continue
        panel = getattr(parameter, "rich_help_panel", None) or "Options"
        panels.setdefault(panel, []).append(line(parameter))
    for panel, lines in panels.items():
        parts.append("\n".join([f"| {panel} | | default |", "|:--|:--|:--|", *lines]))
    return parts


def line(parameter: Any) -> str:
    """One option, as a row of a table."""
    flag = parameter.default is False
    metavar = "" if flag or not parameter.metavar else f" {parameter.metavar}"
    if parameter.param_type_name == "argument":
        call = f"`{parameter.metavar}`"
    else:
        call = ", ".join(f"`{name}`" for name in parameter.opts[:-1]) + ", " * (len(parameter.opts) > 1)
        call += f"`{parameter.opts[-1]}{metavar}`"
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    shown = "" if flag or default is None or default == () else f"`{default}`"
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in (call, parameter.help, shown)) + " |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
