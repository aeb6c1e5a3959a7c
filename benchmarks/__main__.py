"""Runs every benchmark, prints a table and writes `benchmarks/results/*.json`."""

import json
import platform
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import sklearn

import darkmetrics as dm
from benchmarks import certificates, cli, core, curves, label_models

RESULTS = Path(__file__).parent / "results"
GROUPS = {
    "core": core.BENCHMARKS,
    "label_models": label_models.BENCHMARKS,
    "certificates": certificates.BENCHMARKS,
    "cli": cli.BENCHMARKS,
    "curves": curves.BENCHMARKS,
}


def main() -> None:
    print(f"{'what':<58} {'measured':>12} {'target':>10}   verdict")
    for name, benchmarks in GROUPS.items():
        run(name, benchmarks)


def run(name: str, benchmarks: Iterable[Callable[[], Iterable[dict[str, Any]]]]) -> None:
    rows = []
    for benchmark in benchmarks:
        for row in benchmark():
            rows.append(row)
            verdict = "met" if row["met"] else "MISSED"
            print(f"{row['what']:<58} {row['measured']:>12.4g} {row['target']:>10}   {verdict}", flush=True)
            print(f"    {row['detail']}", flush=True)
    versions = {"darkmetrics": dm.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
    versions |= {"scikit-learn": sklearn.__version__, "python": platform.python_version()}
    RESULTS.mkdir(exist_ok=True)
    finished = RESULTS / f"{name}.json"
    unfinished = finished.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"versions": versions, "rows": rows}, indent=2) + "\n")
    unfinished.replace(finished)
    print(f"written to benchmarks/results/{finished.name}")


if __name__ == "__main__":
    main()
