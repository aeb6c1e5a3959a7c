"""How long one call of `evaluate` takes: every metric, weighted or not, small and large, and cases that once took long.

`python -m benchmarks waits` measures this tree. `python -m benchmarks.waits TREE COMMIT` measures another one, an older
checkout, and writes `benchmarks/results/waits_before.json`, which the page shows beside it; after an interruption it
goes on where it stopped.
"""

import argparse
import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import darkmetrics as dm
from benchmarks.core import row

ROOT = Path(__file__).parents[1]
BEFORE = ROOT / "benchmarks" / "results" / "waits_before.json"
SIZES, SHARES = (1_000, 3_000, 30_000, 100_000), (0.3, 0.9)
QUICK_SIZES = SIZES[:1]
# Seconds of CPU that a call may take, and after how many it is not waited for any longer.
TARGET, LIMIT = 2.0, 10

# Cases that took long once, by name. `arrays`: rows, share of them missing, weighted or not (or the weights that rows
# have), and how many rows are much heavier; `counted`: missing rows and on how many scores they lie.
NAMED: dict[str, dict[str, Any]] = {
    "mcc, balanced_accuracy, 140 rows, weights": {
        "metrics": ["mcc", "balanced_accuracy"],
        "arrays": [140, 0.3, True],
    },
    "a formula of four undirected groups, 3,000 rows": {
        "metrics": ["four undirected groups"],
        "arrays": [3_000, 0.9, False],
    },
    "mcc, ten million missing rows": {"metrics": ["mcc"], "counted": [10_000_000, 50]},
    "default metrics, 3,000 rows, weights": {
        "metrics": ["precision", "recall", "accuracy", "f1", "roc_auc"],
        "arrays": [3_000, 0.3, True],
    },
    "log_loss, brier, 2,000 rows": {"metrics": ["log_loss", "brier"], "arrays": [2_000, 0.3, False]},
    "average_precision, 30,000 rows, 90% missing": {
        "metrics": ["average_precision"],
        "arrays": [30_000, 0.9, False],
    },
    "roc_auc by Monte Carlo, 2^31 missing rows of one score": {
        "metrics": ["roc_auc"],
        "counted": [2**31, 1],
        "method": "monte_carlo",
    },
    "average_precision, 2^31 missing rows of one score": {
        "metrics": ["average_precision"],
        "counted": [2**31, 1],
    },
    "recall, 10,000 rows, weights 1 and 10": {"metrics": ["recall"], "arrays": [10_000, 0.3, [1.0, 10.0]]},
    "recall, 100,000 rows, weights 1 and 10": {"metrics": ["recall"], "arrays": [100_000, 0.3, [1.0, 10.0]]},
    "recall, 100,000 rows, 90% missing, weights 1, 7.3 and 55": {
        "metrics": ["recall"],
        "arrays": [100_000, 0.9, [1.0, 7.3, 55.0]],
    },
    "roc_auc, 100,000 rows, 90% missing, five of them heavy": {
        "metrics": ["roc_auc"],
        "arrays": [100_000, 0.9, True, 5],
    },
}


def cases(*, quick: bool) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every call, with its name."""
    yield from NAMED.items()
    for n in QUICK_SIZES if quick else SIZES:
        for share in SHARES:
            for weighted in (False, True):
                for metric in ("all", *dm.metrics.registered_names()):
                    kind = "weights" if weighted else "no weights"
                    case = {"metrics": [metric], "arrays": [n, share, weighted]}
                    yield f"{metric}, {n:,} rows, {share:.0%} missing, {kind}", case


def seconds(tree: Path, case: dict[str, Any]) -> tuple[float, str]:
    """CPU time of one call with the library of a tree, infinite if it was not waited for, and why it has none."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tree / "src"), str(ROOT)])}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, "-m", "benchmarks.waits_worker", json.dumps(case | {"limit": LIMIT})]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=environment, check=False)
    if done.returncode == 0:
        return float(json.loads(done.stdout.splitlines()[-1])["seconds"]), ""
    if done.returncode < 0:  # the worker's own limit on CPU time ends it by a signal
        return math.inf, f"more than {LIMIT:g} s"
    # Notes may follow the error; its own line is the last that is not indented and names a class.
    errors = [line for line in done.stderr.splitlines() if re.match(r"[\w.]*Error\b", line)]
    return math.nan, errors[-1] if errors else done.stderr[-200:]


def measured(tree: Path, *, quick: bool = False, known: Sequence[dict[str, Any]] = ()) -> Iterator[dict[str, Any]]:
    """A row of the table for every call with the library of a tree; `known` rows are not measured again."""
    rows = {found["what"]: found for found in known}
    late: set[str] = set()
    for name, case in cases(quick=quick):
        what = json.dumps([case["metrics"], case.get("arrays", [])[1:], case.get("counted")])
        if name in rows:
            found = rows[name]
        elif what in late:
            found = _row(name, case, math.inf, f"more than {LIMIT} s with fewer rows already")
        else:
            found = _row(name, case, *seconds(tree, case))
        if found["failed"].startswith("more than"):
            late.add(what)
        yield found


def _row(name: str, case: dict[str, Any], time: float, why: str) -> dict[str, Any]:
    # What was not waited for counts as the limit, which is more than the target.
    found = row(name, min(time, LIMIT), TARGET, why or f"{time:.2f} s")
    return found | {"met": bool(found["met"] and not why), "case": case, "failed": why}


def this_tree(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    yield from measured(ROOT, quick=quick)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.waits", description=__doc__)
    parser.add_argument("tree", type=Path, help="folder of the checkout to measure")
    parser.add_argument("commit", help="its name, for the page")
    given = parser.parse_args()
    old = json.loads(BEFORE.read_text()) if BEFORE.exists() else {}
    known = old["rows"] if old.get("commit") == given.commit else []
    rows = []
    for found in measured(given.tree, known=known):
        rows.append(found | {"measured": None if math.isnan(found["measured"] or 0.0) else found["measured"]})
        print(f"{found['what']:<60} {found['detail']}", flush=True)
        if found not in known:  # what was measured before an interruption is kept
            kept = [row for row in known if row["what"] not in {row["what"] for row in rows}]
            BEFORE.write_text(json.dumps({"commit": given.commit, "rows": [*rows, *kept]}, indent=1) + "\n")


BENCHMARKS = (this_tree,)

if __name__ == "__main__":
    main()
