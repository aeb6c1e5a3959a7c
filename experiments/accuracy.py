"""Measure the error of each of the four methods against plain simulation: `make accuracy`.

Writes `experiments/results/accuracy.csv`, one line per case, and the tables of the page on methods. Cases that are in
the file are not measured again; remove the file to measure all of them. The cases are those of the tests
(`method_cases`), which simulate fewer of them with fewer label assignments.
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from typing import Any

import numpy as np
import pandas as pd

from experiments.pieces import ROOT, filled, marks_of, results_of
from method_cases import Case, build, cases, compute, distances, simulate

RESULTS, PAGE = results_of("accuracy"), ROOT / "docs" / "explanation" / "choosing-a-method.md"
MARKED = marks_of("accuracy")
N_CASES, N_DRAWS = 300, 2**20
# Cases in which a metric is defined in fewer draws than these are not judged.
MIN_DEFINED = 2**16
KEY = tuple(Case.__dataclass_fields__)
HEADER = (*KEY, "method", "defined", "cdf_error", "quantile_error", "seconds")
_METHOD = {"exact": "enumerate or count", "near exact": "expand", "monte carlo": "draw"}


def measure(case: Case) -> dict[str, Any]:
    """Compare the distribution of a case with plain draws."""
    warnings.simplefilter("ignore")
    functional, posterior = build(case)
    start = time.process_time()
    distribution = compute(functional, posterior)
    distribution.interval(0.9)
    seconds = time.process_time() - start
    values = simulate(functional, posterior, N_DRAWS, np.random.default_rng([case.number, 1]))
    cdf, quantile = distances(distribution, values) if values.size >= MIN_DEFINED else (np.nan, np.nan)
    return {
        **asdict(case),
        "method": _METHOD[distribution.method],
        "defined": values.size,
        "cdf_error": f"{cdf:.5f}",
        "quantile_error": f"{quantile:.4f}",
        "seconds": f"{seconds:.4f}",
    }


_METHODS = """
| method | when | accuracy |
|:--|:--|:--|
| enumerate | at most 2^15 label assignments | exact |
| count | at most four kinds of rows, up to 2^19 combinations of counts | exact |
| expand | many rows decide (estimated error at most 0.008) | cdf within 0.01 |
| draw | few rows decide: 2^16 imputations | cdf within 0.01 |
"""


def describe_methods(measured: pd.DataFrame) -> str:
    """Return the table of methods: when each is used and the accuracy it promises."""
    return _METHODS.strip()


def describe_errors(measured: pd.DataFrame) -> str:
    """Return the table of measured errors per method."""
    lines = [
        "| method | cases | cdf error: median | 99% of cases | worst | quantile error in sd: worst | median time |",
        "|:--|--:|--:|--:|--:|--:|--:|",
    ]
    judged = measured[measured["defined"] >= MIN_DEFINED]
    for name, rows in judged.groupby("method", sort=False):
        cdf, quantile = rows["cdf_error"], rows["quantile_error"]
        cells = [f"{cdf.median():.4f}", f"{cdf.quantile(0.99):.4f}", f"{cdf.max():.4f}", f"{quantile.max():.3f}"]
        lines.append(f"| {name} | {len(rows)} | {' | '.join(cells)} | {1000 * rows['seconds'].median():.0f} ms |")
    return "\n".join(lines)


TABLES: dict[str, Callable[[pd.DataFrame], str]] = {"methods": describe_methods, "errors": describe_errors}


def fill_page(page: str, measured: pd.DataFrame) -> str:
    """Return the page with its tables of these results."""
    return filled(page, MARKED, TABLES, measured.sort_values("method", ascending=False))


def _missing_cases(n_cases: int) -> Iterable[Case]:
    done = set(pd.read_csv(RESULTS)["number"]) if RESULTS.exists() else set()
    return (case for case in cases(n_cases) if case.number not in done)


def main() -> None:
    """Measure the cases that are not in the file, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=N_CASES)
    parser.add_argument("--jobs", type=int, default=1)
    chosen = parser.parse_args()
    todo = list(_missing_cases(chosen.cases))
    is_new = not RESULTS.exists()
    with RESULTS.open("a", encoding="utf-8", newline="") as file, ProcessPoolExecutor(chosen.jobs) as pool:
        table = csv.DictWriter(file, HEADER, lineterminator="\n")
        if is_new:
            table.writeheader()
        for row in pool.map(measure, todo):
            table.writerow(row)
            file.flush()
    measured = pd.read_csv(RESULTS).sort_values("number", ignore_index=True)
    PAGE.write_text(fill_page(PAGE.read_text(encoding="utf-8"), measured), encoding="utf-8")
    print(describe_errors(measured))


if __name__ == "__main__":
    main()
