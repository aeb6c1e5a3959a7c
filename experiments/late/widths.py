"""`python -m experiments.late.widths`: what each freedom of the model costs in width where ages alone are known.

Freedoms are taken away one by one, which nobody could do who does not know how the rows were made: how much narrower
intervals of precision get then, against "by label" stated on the same sets, and how many still hold the truth.
"""

import argparse
import contextlib
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
import pandas as pd
from scipy.special import logit
from scipy.stats import gamma

import darkmetrics as dm
from darkmetrics.missingness import delay_model, delayed
from darkmetrics.missingness.age_cells import AgeGrid
from experiments.late.answers import values
from experiments.late.problems import SIMULATED, SPEEDS, simulated
from experiments.pieces import measured, results_of, table_of

COLUMNS = ("problem", "told", "seed", "truth", "low", "high")
PROBLEMS = ("positives slower", "positives equal", "positives slower, 10% never", "prevalence rising by half")
_PIECE = 10
# Standard deviations that leave nothing open, and log odds that are as good as certain.
_NONE, _SURE = 1e-3, 7.0
_FIXED: dict[str, dict[str, Any]] = {
    "no drift": {"_TREND_SD": {True: _NONE, False: _NONE}, "QUICK_SD": _NONE},
    "scores do not matter": {"_SLOPE_SD": (_NONE, _NONE)},
}


class Piece(NamedTuple):
    """Some seeds of a problem."""

    problem: str
    first: int


def _never_known(how: dict[str, Any]) -> dict[str, Any]:
    share = how.get("never", 0.0)
    return {"_EVER_MEAN": -float(logit(share)) if share else _SURE, "_EVER_SD": 0.05}


def _delays_known(how: dict[str, Any]) -> Callable[[AgeGrid, int, float], tuple[Any, Any, Any]]:
    """The prior of someone who knows when labels come, in every bin."""
    prior = delay_model.build_hazard_prior

    def known(grid: AgeGrid, y: int, step_sd: float) -> tuple[Any, Any, Any]:
        _, _, is_certain = prior(grid, y, step_sd)
        days = SPEEDS[how.get("positives", "slower")][1 - y]
        left = gamma.sf(np.ceil(grid.edges), 1.5, scale=days / 1.5)  # whole days
        mean = np.clip(np.log(left[:-1] / left[1:] - 1.0), -12.0, 12.0)
        return mean, np.eye(grid.n_ages) * 0.02**-2.0, is_certain

    return known


@contextlib.contextmanager
def _without(names: list[str], how: dict[str, Any]) -> Iterator[None]:
    """The model without the freedoms of these names."""
    with contextlib.ExitStack() as stack:
        for name in names:
            if name == "delays known":
                stack.enter_context(mock.patch.object(delay_model, "build_hazard_prior", _delays_known(how)))
            for key, value in (_never_known(how) if name == "never known" else _FIXED.get(name, {})).items():
                module = delayed if hasattr(delayed, key) else delay_model
                stack.enter_context(mock.patch.object(module, key, value))
        yield


_DELAYS = ["never known", "delays known"]
TOLD: dict[str, list[str]] = {
    "ages": [],
    "no drift": ["no drift"],
    "scores do not matter": ["scores do not matter"],
    "never known": ["never known"],
    "delays known": _DELAYS,
    "delays known, no drift, scores do not matter": [*_DELAYS, "no drift", "scores do not matter"],
    "no drift, scores do not matter": ["no drift", "scores do not matter"],
}


def rows(piece: Piece) -> Iterator[dict[str, Any]]:
    """The rows of a piece's file."""
    how = SIMULATED[piece.problem]
    for seed in range(piece.first, piece.first + _PIECE):
        known = simulated(seed, **how)
        labels = np.where(known.known, known.y, np.nan)
        own = {"problem": piece.problem, "seed": seed, "truth": values(known.y, known.score, 0.3)["precision"]}
        ask: dict[str, Any] = {"threshold": 0.3, "metrics": "precision"}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = {"by_label": dm.evaluate(labels, known.score, missingness="by_label", **ask)["precision"]}
            for told, names in TOLD.items():
                with _without(names, how):
                    found[told] = dm.evaluate(
                        labels, known.score, missingness=dm.missing.Delayed(age=known.age), **ask
                    )["precision"]
        for told, distribution in found.items():
            low, high = distribution.interval(0.9)
            yield own | {"told": told, "low": low, "high": high}


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Per problem and what was told: intervals, how many held the truth, median width, and that against by label."""
    found = table.groupby(["problem", "told"], sort=False).agg(
        intervals=("held", "size"), held=("held", "sum"), width=("width", "median")
    )
    by_label = found["width"].xs("by_label", level="told")
    found["ratio"] = found["width"] / by_label.reindex(found.index.get_level_values("problem")).to_numpy()
    return found.round(5).reset_index()


def main() -> None:
    """Measure what is not on file, then write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--sets", type=int, default=40)
    chosen = parser.parse_args()
    pieces = [Piece(problem, first) for first in range(0, chosen.sets, _PIECE) for problem in PROBLEMS]
    found = summary(table_of(measured("late_widths", COLUMNS, rows, pieces, chosen.jobs)))
    found.to_csv(results_of("late_widths"), index=False)
    print(found.to_string())


if __name__ == "__main__":
    main()
