"""What the first call costs in a fresh process, imports included: most of it is what scipy loads.

`python -m benchmarks first_call` measures this tree beside scikit-learn and beside two imports.
`python -m benchmarks.first_call TREE` measures it beside another one, an older checkout, and prints the ratio.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.core import row

ROOT = Path(__file__).parents[1]
REPEATS = 7
LABELS, SCORES = "[1, 0, None, 1, 0, 1] * 10", "[0.9, 0.2, 0.7, 0.6, 0.4, 0.3] * 10"
EVALUATE = f"import darkmetrics as dm; dm.evaluate({LABELS}, {SCORES})"
ROC_AUC = f"from sklearn.metrics import roc_auc_score; roc_auc_score({LABELS.replace('None', '0')}, {SCORES})"

# What a data scientist's script has loaded before it does anything.
IMPORTS = "import scipy.stats, pandas"


def cpu_seconds(code: str, tree: Path = ROOT) -> float:
    """CPU time of a process that runs `code` with the library of a tree, from its start to its end."""
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], env=environment, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def in_turns(*codes: str) -> list[float]:
    """The best CPU time of each, taken in turns, so that a slow spell of the machine hits all."""
    rounds = [[cpu_seconds(code) for code in codes] for _ in range(REPEATS)]
    return [min(times) for times in zip(*rounds, strict=True)]


def beside_scikit_learn() -> Iterator[dict[str, Any]]:
    ours, theirs = in_turns(EVALUATE, ROC_AUC)
    yield row(
        "first evaluate of 60 rows / first roc_auc_score, imports included",
        ours / theirs,
        1.0,
        f"{ours:.2f} s against {theirs:.2f} s of CPU time, the best of {REPEATS} processes each",
    )


def beside_imports() -> Iterator[dict[str, Any]]:
    ours, theirs = in_turns(EVALUATE, IMPORTS)
    yield row(
        "first evaluate of 60 rows / import of scipy.stats and pandas",
        ours / theirs,
        0.8,
        f"{ours:.2f} s, import of the library included, against {theirs:.2f} s of CPU time, the best of {REPEATS} "
        "processes each",
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.first_call", description=__doc__)
    parser.add_argument("tree", type=Path, help="folder of the checkout to compare with")
    other = parser.parse_args().tree
    pairs = [(cpu_seconds(EVALUATE), cpu_seconds(EVALUATE, other)) for _ in range(REPEATS)]
    ours, theirs = (min(times) for times in zip(*pairs, strict=True))
    print(f"first evaluate: {ours / theirs:.2f} of the other tree's CPU time ({ours:.2f} s against {theirs:.2f} s)")


BENCHMARKS = (beside_scikit_learn, beside_imports)

if __name__ == "__main__":
    main()
