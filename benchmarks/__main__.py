"""Runs every benchmark, prints a table and writes `benchmarks/results/core.json`."""

import json
import platform
from pathlib import Path

import numpy as np
import scipy
import sklearn

import darkmetrics as dm
from benchmarks.core import BENCHMARKS

RESULTS = Path(__file__).parent / "results" / "core.json"


def main() -> None:
    rows = []
    print(f"{'what':<58} {'measured':>12} {'target':>10}   verdict")
    for benchmark in BENCHMARKS:
        for row in benchmark():
            rows.append(row)
            verdict = "met" if row["met"] else "MISSED"
            print(f"{row['what']:<58} {row['measured']:>12.4g} {row['target']:>10}   {verdict}", flush=True)
            print(f"    {row['detail']}", flush=True)
    versions = {"darkmetrics": dm.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
    versions |= {"scikit-learn": sklearn.__version__, "python": platform.python_version()}
    RESULTS.parent.mkdir(exist_ok=True)
    unfinished = RESULTS.with_suffix(".tmp")
    unfinished.write_text(json.dumps({"versions": versions, "rows": rows}, indent=2) + "\n")
    unfinished.replace(RESULTS)
    print(f"written to benchmarks/results/{RESULTS.name}")


if __name__ == "__main__":
    main()
