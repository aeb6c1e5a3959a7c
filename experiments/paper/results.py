"""The committed results, read back: everything that is drawn or written comes from these files."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from darkmetrics.backtesting import Estimate
from experiments.paper.files import read_rows

STATED = "ours,stated"
Key = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Results:
    """A folder with the tables that the study wrote; `published` has the paper's figures."""

    folder: Path
    published: Path

    @cached_property
    def figures(self) -> dict[Key, Estimate]:
        """Share missing, mechanism, algorithm, metric, measure; "ours,stated" is the label model that is right."""
        found = _figures(self.folder / "summary.csv")
        return found | {
            (p_m, mechanism, STATED, metric, measure): figure
            for (p_m, mechanism, algorithm, metric, measure), figure in found.items()
            if algorithm == told(mechanism)
        }

    @cached_property
    def other_choices(self) -> dict[Key, Estimate]:
        """The same for the run with two choices made the other way."""
        return _figures(self.folder / "other_choices.csv")

    @cached_property
    def paper(self) -> dict[tuple[str, str, str, str], tuple[str, float | None, float | None]]:
        """Share missing, algorithm, metric, measure of the paper's MCAR tables: value (may be blank) and interval."""
        return {
            (row["p_m"], row["algorithm"], row["metric"], row["measure"]): (
                row["value"],
                float(row["ci90_low"]) if row["ci90_low"] else None,
                float(row["ci90_high"]) if row["ci90_high"] else None,
            )
            for row in read_rows(self.published)
        }

    @cached_property
    def widths(self) -> dict[tuple[str, str, str], list[float]]:
        """Share missing, kind of bound, metric: a width per mask."""
        found: dict[tuple[str, str, str], list[float]] = {}
        for row in read_rows(self.folder / "widths.csv"):
            found.setdefault((row["p_m"], row["kind"], row["metric"]), []).append(float(row["width"]))
        return found

    @cached_property
    def pit(self) -> dict[tuple[str, str, str], list[float]]:
        """Mechanism, algorithm, metric: the sorted PIT values at the largest share missing."""
        found: dict[tuple[str, str, str], list[float]] = {}
        for row in read_rows(self.folder / "pit.csv"):
            values = [float(value) for value in row["pit"].split()]
            found[row["mechanism"], row["algorithm"], row["metric"]] = values
            if row["algorithm"] == told(row["mechanism"]):
                found[row["mechanism"], STATED, row["metric"]] = values
        return found

    @cached_property
    def centre(self) -> list[dict[str, str]]:
        """Rows of centre.csv: errors of the centre with other random numbers."""
        return list(read_rows(self.folder / "centre.csv"))

    @cached_property
    def shares(self) -> list[str]:
        """Shares missing, in order."""
        return sorted({key[0] for key in self.figures})

    @cached_property
    def prevalences(self) -> list[str]:
        """Mechanisms by label, in order of the share of positives among the masked rows."""
        return sorted({key[1] for key in self.figures} - {"mcar"})


def told(mechanism: str) -> str:
    """Ours with the mechanism stated."""
    return "ours,calibrated" if mechanism == "mcar" else "ours,label_shift"


def _figures(path: Path) -> dict[Key, Estimate]:
    found = {}
    for row in read_rows(path):
        key = row["p_m"], row["mechanism"], row["algorithm"], row["metric"], row["measure"]
        found[key] = Estimate(float(row["value"]), float(row["ci90_low"]), float(row["ci90_high"]))
    return found
