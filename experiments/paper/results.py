"""The committed results, read back: everything that is drawn or written comes from these files."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from darkmetrics.backtesting import Estimate
from experiments.paper.files import read_rows

STATED = "ours,stated"
Key = tuple[str, str, str, str, str]
# The measures of the paper's tables.
MEASURES = ("w1", "ks", "mae", "rmse")


@dataclass(frozen=True)
class Results:
    """A folder with the tables that the study wrote; `published` has the paper's figures."""

    folder: Path
    published: Path

    @cached_property
    def figures(self) -> dict[Key, Estimate]:
        """Figures by fraction missing, mechanism, algorithm, metric, measure; "ours,stated" has the right mechanism."""
        figures = _figures(self.folder / "summary.csv")
        return figures | {
            (p_m, mechanism, STATED, metric, measure): figure
            for (p_m, mechanism, algorithm, metric, measure), figure in figures.items()
            if algorithm == stated_algorithm(mechanism)
        }

    @cached_property
    def paper(self) -> dict[tuple[str, str, str, str], tuple[str, float, float]]:
        """Value (may be blank) and interval of each cell, by fraction missing, algorithm, metric, measure."""
        return {
            (row["p_m"], row["algorithm"], row["metric"], row["measure"]): (
                row["value"],
                float(row["ci90_low"]),
                float(row["ci90_high"]),
            )
            for row in read_rows(self.published)
        }

    @cached_property
    def cells(self) -> list[dict[str, str]]:
        """Rows of cells.csv: the class of every published cell."""
        return list(read_rows(self.folder / "cells.csv"))

    @cached_property
    def codings(self) -> list[dict[str, str]]:
        """Rows of codings.csv: cells of MAE that each coding of the classes matches, best first."""
        return list(read_rows(self.folder / "codings.csv"))

    @cached_property
    def run(self) -> list[dict[str, str]]:
        """Rows of run.csv: finished folds and commits of every run and set."""
        return list(read_rows(self.folder / "run.csv"))

    @cached_property
    def widths(self) -> dict[tuple[str, str, str], list[float]]:
        """Width per mask, by fraction missing, kind of bound and metric."""
        widths: dict[tuple[str, str, str], list[float]] = {}
        for row in read_rows(self.folder / "widths.csv"):
            widths.setdefault((row["p_m"], row["kind"], row["metric"]), []).append(float(row["width"]))
        return widths

    @cached_property
    def pit(self) -> dict[tuple[str, str, str], list[float]]:
        """Sorted PIT values at the largest fraction missing, by mechanism, algorithm and metric."""
        pits: dict[tuple[str, str, str], list[float]] = {}
        for row in read_rows(self.folder / "pit.csv"):
            values = [float(value) for value in row["pit"].split()]
            pits[row["mechanism"], row["algorithm"], row["metric"]] = values
            if row["algorithm"] == stated_algorithm(row["mechanism"]):
                pits[row["mechanism"], STATED, row["metric"]] = values
        return pits

    @cached_property
    def center(self) -> list[dict[str, str]]:
        """Rows of center.csv: errors of the center with other random numbers."""
        return list(read_rows(self.folder / "center.csv"))

    @cached_property
    def fractions(self) -> list[str]:
        """Fractions missing, in order."""
        return sorted({key[0] for key in self.figures})

    @cached_property
    def prevalences(self) -> list[str]:
        """Mechanisms by label, in order of the fraction of positives among the masked rows."""
        return sorted({key[1] for key in self.figures} - {"mcar"})


def stated_algorithm(mechanism: str) -> str:
    """Return the library's algorithm with the mechanism stated."""
    return "ours,calibrated" if mechanism == "mcar" else "ours,label_shift"


def _figures(path: Path) -> dict[Key, Estimate]:
    figures = {}
    for row in read_rows(path):
        key = row["p_m"], row["mechanism"], row["algorithm"], row["metric"], row["measure"]
        figures[key] = Estimate(float(row["value"]), float(row["ci90_low"]), float(row["ci90_high"]))
    return figures
