"""Runs benchmarks, prints a table and writes `benchmarks/results/*.json` and the page that shows them.

`python -m benchmarks` runs all, `python -m benchmarks scale peers` the groups named; `--quick` takes small sizes where
a group has them, to see that everything runs, and writes nothing.
"""

import argparse
import json
import math
import platform
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import darkmetrics as dm
from benchmarks import certificates, cli, comparison, core, curves, first_call, label_models, peers, scale, waits
from benchmarks.docs import PAGE, fill_page

RESULTS = Path(__file__).parent / "results"
GROUPS: dict[str, Any] = {
    "core": core,
    "label_models": label_models,
    "comparison": comparison,
    "certificates": certificates,
    "cli": cli,
    "first_call": first_call,
    "curves": curves,
    "waits": waits,
    "scale": scale,
    "peers": peers,
}
# Those whose benchmarks take small sizes too; and how long they take on two cores, which is worth knowing beforehand.
SIZED = {"waits", "scale", "peers"}
MINUTES = {
    "core": 2,
    "label_models": 1,
    "comparison": 1,
    "certificates": 1,
    "cli": 1,
    "first_call": 1,
    "curves": 2,
    "waits": 20,
    "scale": 15,
    "peers": 15,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="group", help=f"of {', '.join(GROUPS)}; all if none is named")
    parser.add_argument("--quick", action="store_true", help="small sizes, nothing written")
    given = parser.parse_args()
    names = given.groups or list(GROUPS)
    if unknown := sorted(set(names) - set(GROUPS)):  # "choices" would refuse an empty list
        parser.error(f"unknown group {unknown[0]!r}; there are {', '.join(GROUPS)}")
    if not given.quick:
        print(f"{', '.join(names)}: about {sum(MINUTES[name] for name in names)} minutes on two cores")
    print(f"{'what':<58} {'measured':>12} {'target':>10}   verdict")
    for name in names:
        start = time.perf_counter()
        found = run(name, GROUPS[name].BENCHMARKS, {"quick": given.quick} if name in SIZED else {})
        if not given.quick:
            write(name, found)
            print(f"written to benchmarks/results/{name}.json after {(time.perf_counter() - start) / 60:.1f} minutes")
    if not given.quick:
        fill_page(RESULTS, PAGE)


def run(
    name: str, benchmarks: Iterable[Callable[..., Iterable[dict[str, Any]]]], settings: dict[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    for benchmark in benchmarks:
        for row in benchmark(**settings):
            rows.append(row)
            verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
            print(f"{row['what']:<58} {row['measured']:>12.4g} {row['target']:>10}   {verdict}", flush=True)
            print(f"    {row['detail']}", flush=True)
    return rows


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """The rows of a group, whole or not at all."""
    versions = {"darkmetrics": dm.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
    versions |= {"scikit-learn": sklearn.__version__, "python": platform.python_version()}
    for row in rows:  # JSON has no NaN
        row |= {key: None for key, value in row.items() if isinstance(value, float) and math.isnan(value)}
    RESULTS.mkdir(exist_ok=True)
    unfinished = RESULTS / f"{name}.tmp"
    unfinished.write_text(json.dumps({"versions": versions, "rows": rows}, indent=2, allow_nan=False) + "\n")
    unfinished.replace(RESULTS / f"{name}.json")


if __name__ == "__main__":
    main()
