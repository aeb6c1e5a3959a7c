"""The options that say what an answer is about, and which of its rows go together."""

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


@dataclass(frozen=True)
class ClustersOption:
    """Which rows share their fate."""

    groups: Annotated[
        str | None,
        typer.Option(
            metavar="COL",
            help="Column that says which rows share their fate, such as the customer: their labels may depend on each "
            "other.",
            rich_help_panel=ASSUMED,
        ),
    ] = None
