"""How far are laws of ROC-AUC from drawn labelings, wherever missing rows lie by rank, and how long do they take?

`make roc-auc` writes `experiments/results/roc_auc.csv`, a line per law as soon as it is measured, and after an
interruption goes on where it stopped; remove the file to measure all of them anew. The layouts are those of the tests
(`auc_layouts`), which draw fewer labelings at fewer sizes.
"""

import csv
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from auc_layouts import GIVEN_ALONE, LAYOUTS, ROWS, SIZES, asked, drawn_auc, kolmogorov, layout

RESULTS = Path(__file__).parent / "results" / "roc_auc.csv"
DRAWS = 1_000_000
KEY = ("layout", "missing", "chances")
HEADER = (*KEY, "method", "distance", "seconds")
# Of so many times the law is found the fastest counts: the others say what else the machine did.
REPEATS = 3


def cases() -> Iterator[tuple[str, int, str]]:
    """Every layout at every size, with chances that are given (one node) and with those of the default label model."""
    for name in LAYOUTS:
        for missing in SIZES:
            yield name, missing, "given"
            if name not in GIVEN_ALONE:
                yield name, missing, "default model"


def measured(name: str, missing: int, chances: str) -> dict[str, Any]:
    """The distance of the law from drawn labelings, and the CPU seconds it takes to find it among 5,000 rows."""
    case = layout(name, missing, ROWS)
    law, seen = asked(case, default=chances == "default model")
    functional, nodes = seen.asked
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        seen.again()
        times.append(time.process_time() - start)
    distance = kolmogorov(law.cdf, drawn_auc(case, nodes, functional, DRAWS, np.random.default_rng(missing)))
    figures = (law.method, f"{distance:.5f}", f"{min(times):.4f}")
    return dict(zip(HEADER, (name, missing, chances, *figures), strict=True))


def main() -> None:
    warnings.simplefilter("ignore")
    there = RESULTS.exists()
    known = set()
    if there:
        with RESULTS.open(encoding="utf-8") as file:
            known = {tuple(row[key] for key in KEY) for row in csv.DictReader(file)}
    with RESULTS.open("a", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, HEADER, lineterminator="\n")
        if not there:
            table.writeheader()
        for case in cases():
            if tuple(map(str, case)) in known:
                continue
            found = measured(*case)
            table.writerow(found)
            file.flush()
            print(*found.values(), flush=True)


if __name__ == "__main__":
    main()
