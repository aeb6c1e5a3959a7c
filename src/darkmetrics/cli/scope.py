"""The option that says what an answer is about."""

from dataclasses import dataclass
from typing import Annotated

import typer

from darkmetrics.cli import completion

ASSUMED = "What is assumed, and how it is computed"


@dataclass(frozen=True)
class ScopeOption:
    """What intervals and targets are about."""

    scope: Annotated[
        str,
        typer.Option(
            metavar="rows|population",
            help="Intervals and targets are about these rows, or about the population that they are a sample of.",
            autocompletion=completion.words("rows", "population"),
            rich_help_panel=ASSUMED,
        ),
    ] = "rows"
