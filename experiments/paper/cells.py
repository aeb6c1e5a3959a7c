"""Every published cell in one of four classes: matched, matched after a correction, explained, unexplained."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd

from darkmetrics.backtesting import Estimate, Scores
from experiments.paper.config import stand_ins
from experiments.paper.files import write_table
from experiments.paper.results import Results

CELLS = (
    *("p_m", "measure", "algorithm", "metric", "published", "published_low", "published_high"),
    *("class", "by", "here", "here_low", "here_high"),
    "all_corrections",  # whether the intervals overlap with all corrections at once
)
CODINGS = ("swapped", "matched", "cells")
MATCHED, CORRECTED, EXPLAINED, UNEXPLAINED = "matched", "matched after a correction", "explained", "unexplained"
# The named corrections, in the order of the trials; then pairs of them.
CLASSES, GRID, PREDICTIONS = "classes", "grid", "predictions"
# The correction of classes makes the larger class of these sets positive.
SWAPPED = ("german_credit", "adult")
# The sixth set is another one here; the explanation gives it the values of one of the other five.
SIXTH_SET = "sixth set"
_KEY = ["p_m", "algorithm", "metric"]


@dataclass(frozen=True)
class Predictions:
    """Predictions under MCAR in both codings of the classes: one row per mask, algorithm and metric."""

    table: pd.DataFrame

    @classmethod
    def read(cls, main: Iterable[Path], swapped: Iterable[Path]) -> "Predictions":
        """Return the predictions of fold files."""
        tables = []
        for paths, is_swapped in ((main, False), (swapped, True)):
            for path in paths:
                table = pd.read_csv(path, dtype={"p_m": str})
                table = table[(table["mechanism"] == "mcar") & ~table["algorithm"].str.startswith("bounds")]
                tables.append(table.assign(swapped=is_swapped))
        return cls(pd.concat(tables, ignore_index=True))

    @cached_property
    def groups(self) -> Mapping[tuple[str, str, str], dict[tuple[str, bool], np.ndarray]]:
        """Truth, center, ends and PIT of the masks of each set and coding, by fraction missing, algorithm, metric."""
        result: dict[tuple[str, str, str], dict[tuple[str, bool], np.ndarray]] = {}
        columns = ["truth", "center", "low", "high", "pit"]
        for (*key, name, swapped), rows in self.table.groupby([*_KEY, "set", "swapped"], sort=True):
            p_m, algorithm, metric = map(str, key)
            values = result.setdefault((p_m, algorithm, metric), {})
            values[str(name), bool(swapped)] = rows[columns].to_numpy(dtype=np.float64)
        return result

    @cached_property
    def sets(self) -> list[str]:
        """Names of the sets."""
        return sorted(self.table["set"].unique())

    def scores(
        self, key: tuple[str, str, str], swapped: Sequence[str] = (), sixth_like: tuple[str, str] | None = None
    ) -> Scores:
        """Return pooled scores, with these sets swapped; `sixth_like` gives a set the values of another one."""
        of_set = self.groups[key]
        names = [sixth_like[1] if sixth_like is not None and name == sixth_like[0] else name for name in self.sets]
        rows = np.concatenate([of_set[name, name in swapped] for name in names])
        truth, center, low, high, pit = rows[np.isfinite(rows).all(axis=1)].T
        return Scores(truth, center, low, high, pit)


def on_grid(scores: Scores, measure: str, n_resamples: int) -> Estimate:
    """Return W1 or KS of PIT values with both cdfs evaluated at k / B alone, the integral by the trapezoid rule."""
    level = np.rint(scores.pit * n_resamples).astype(np.int64)
    chosen = np.random.default_rng(0).integers(0, scores.n, (1000, scores.n))  # as in Scores
    value = grid_distance(level[None, :], n_resamples, measure)[0]
    low, high = np.quantile(grid_distance(level[chosen], n_resamples, measure), [0.05, 0.95])
    return Estimate(float(value), min(float(low), float(value)), max(float(high), float(value)))


def grid_distance(level: np.ndarray, n_resamples: int, measure: str) -> np.ndarray:
    """Return the distance to uniform on the grid of each row of PIT values k / B, given as k."""
    steps = np.arange(n_resamples + 1)
    gap = np.abs(np.stack([(level <= k).mean(axis=1) for k in steps], axis=1) - steps / n_resamples)
    if measure == "ks":
        return np.asarray(gap.max(axis=1))
    return np.asarray(0.5 * (gap[:, 1:] + gap[:, :-1]).sum(axis=1) / n_resamples)


def write_cells(main: Iterable[Path], swapped: Iterable[Path], results: Results) -> list[Path]:
    """Write cells.csv, and codings.csv: how many cells of MAE each of the 64 codings of the classes matches."""
    predictions = Predictions.read(main, swapped)
    return [
        write_table(results.folder / "cells.csv", CELLS, _cells(predictions, results)),
        write_table(results.folder / "codings.csv", CODINGS, _codings(predictions, results)),
    ]


def _cells(predictions: Predictions, results: Results) -> Iterator[tuple[object, ...]]:
    for (p_m, algorithm, metric, measure), published in sorted(results.paper.items()):
        value, low, high = published
        if (p_m, algorithm, metric) not in predictions.groups:
            continue
        key = p_m, algorithm, metric
        name, by, estimate = _classify(predictions, key, measure, (low, high))
        corrected = _estimate(predictions, key, measure, _corrections(key, measure))
        figures = *(f"{x:.6g}" for x in estimate), "yes" if overlap(corrected, (low, high)) else "no"
        yield p_m, measure, algorithm, metric, value, f"{low:.6g}", f"{high:.6g}", name, by, *figures


def _classify(
    predictions: Predictions, key: tuple[str, str, str], measure: str, published: tuple[float, float]
) -> tuple[str, str, Estimate]:
    """Return the class of a cell, the correction or explanation, and the estimate under it (else the plain one)."""
    plain = _estimate(predictions, key, measure, ())
    if overlap(plain, published):
        return MATCHED, "", plain
    possible = _corrections(key, measure)
    corrections: list[tuple[str, ...]] = [(name,) for name in possible]
    corrections += combinations(possible, 2)
    for chosen in corrections:
        estimate = _estimate(predictions, key, measure, chosen)
        if overlap(estimate, published):
            return CORRECTED, " + ".join(chosen), estimate
    for chosen in [(), *corrections]:
        for sixth in stand_ins().values():
            for other in predictions.sets if sixth in predictions.sets else ():
                estimate = _estimate(predictions, key, measure, chosen, (sixth, other))
                if overlap(estimate, published):
                    return EXPLAINED, " + ".join([*chosen, f"{SIXTH_SET} like {other}"]), estimate
    return UNEXPLAINED, "", plain


def _corrections(key: tuple[str, str, str], measure: str) -> list[str]:
    """Return the corrections that can change a cell."""
    _, algorithm, metric = key
    possible = [CLASSES]
    if n_imputations(algorithm) and measure in {"w1", "ks"}:
        possible.append(GRID)
    if algorithm == "bootstrap" and metric == "roc_auc":
        possible.append(PREDICTIONS)
    return possible


def _estimate(
    predictions: Predictions,
    key: tuple[str, str, str],
    measure: str,
    corrections: Sequence[str],
    sixth_like: tuple[str, str] | None = None,
) -> Estimate:
    p_m, algorithm, metric = key
    if PREDICTIONS in corrections:
        algorithm = "bootstrap,decisions"
    scores = predictions.scores((p_m, algorithm, metric), SWAPPED if CLASSES in corrections else (), sixth_like)
    if GRID in corrections:
        return on_grid(scores, measure, n_imputations(algorithm))
    estimate: Estimate = getattr(scores, measure)
    return estimate


def n_imputations(algorithm: str) -> int:
    """Return B of PEMI, and 0 for other algorithms."""
    number = algorithm.partition(",")[0].removeprefix("pemi_")
    return int(number) if number.isdigit() else 0


def overlap(estimate: Estimate, published: tuple[float, float]) -> bool:
    """Return whether two 90% intervals overlap."""
    return estimate.low <= published[1] and published[0] <= estimate.high


def _codings(predictions: Predictions, results: Results) -> Iterator[tuple[object, ...]]:
    """Count overlapping cells of MAE for every choice of sets with swapped classes, best first."""
    counts = []
    possible = sorted({name for values in predictions.groups.values() for name, is_swapped in values if is_swapped})
    published = {key[:3]: (low, high) for key, (_, low, high) in results.paper.items() if key[3] == "mae"}
    for flags in product((False, True), repeat=len(possible)):
        swapped = [name for name, flag in zip(possible, flags, strict=True) if flag]
        matched = [
            overlap(predictions.scores(key, swapped).mae, interval)
            for key, interval in published.items()
            if key in predictions.groups
        ]
        counts.append((" ".join(swapped), sum(matched), len(matched)))
    return iter(sorted(counts, key=lambda row: (-row[1], row[0])))
