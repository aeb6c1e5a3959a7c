"""What the scripts of all peers share; numpy and the standard library only, as each has an environment of its own.

A script is started as `python run_x.py data.npz speed|quality resamples` and prints one line of JSON. The file has
`label` (one row per repeat, missing ones NaN) and `score`; the truth is not in it.
"""

import contextlib
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
THRESHOLD, LEVEL = 0.5, 0.9
# A call that takes longer than this is timed once, a shorter one several times.
LONG, REPEATS = 2.0, 5
# More memory than a laptop has to spare is as good as no answer.
MOST_BYTES = 8 << 30

# What a peer answers: estimate, lower and upper end of its 90% interval, per metric.
Answer = dict[str, tuple[float, float, float]]


def main(package: str, estimate: Callable[[np.ndarray, np.ndarray, int], Answer]) -> None:
    """Answers for the data named on the command line."""
    path, how, resamples = sys.argv[1], sys.argv[2], int(sys.argv[3])
    with np.load(path) as file:
        labels, scores = file["label"], file["score"]
    with quiet():
        if how == "speed":
            found = speed(lambda: estimate(labels[0], scores[0], resamples))
        else:
            answers = [estimate(label, score, resamples) for label, score in zip(labels, scores, strict=True)]
            found = {"answers": {name: [answer.get(name) for answer in answers] for name in METRICS}}
    print(json.dumps({"version": version(package), **found}))


def speed(call: Callable[[], Any]) -> dict[str, Any]:
    """Seconds of the fastest call and the largest memory of the process, in megabytes."""
    before = peak_memory()
    times: list[float] = []
    while len(times) < REPEATS and (len(times) < 2 or min(times) < LONG):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
        if len(times) == 1 and times[0] > 10.0 * LONG:  # nothing that a first call prepares takes that long
            break
    return {"seconds": min(times), "megabytes": peak_memory(), "megabytes_before": before}


def peak_memory() -> float:
    """In megabytes. Linux is asked for the high-water mark of this program: getrusage counts what started it, too."""
    status = Path("/proc/self/status")
    if status.exists():
        (line,) = (line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
        return int(line.split()[1]) / 1e3
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


@contextlib.contextmanager
def quiet() -> Any:
    """Progress bars and log lines go nowhere: only the result may stand on standard output."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):  # noqa: PTH123
        yield


def labeled_rows(label: np.ndarray, score: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, scores and decisions of the rows whose label is known: what dropping the others leaves."""
    known = ~np.isnan(label)
    return label[known].astype(np.int64), score[known], (score[known] >= THRESHOLD).astype(np.int64)


def main_pmf(package: str, pmf: Callable[[np.ndarray], tuple[int, np.ndarray]]) -> None:
    """Masses of the number of successes for the chances in a file; they are saved beside it, with the first count."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    with np.load(sys.argv[1]) as file:
        p = file["p"]
    try:
        with quiet():
            found = speed(lambda: pmf(p))
            first, masses = pmf(p)
    except MemoryError:
        print(json.dumps({"version": version(package), "skipped": f"wants more than {MOST_BYTES >> 30} GB"}))
        return
    np.savez(sys.argv[2], first=first, pmf=masses)
    print(json.dumps({"version": version(package), **found}))
