"""What users would pick instead, on the same rows in the same run: time, memory, error, and whether intervals hold.

Each peer is installed into a throw-away environment of its own and runs as a script (`peer_scripts/`) that reads the
same file and is not told the truth: all labels are known here first, then hidden. A peer that does not install or run
is in the table with the reason.
"""

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score

from benchmarks.environments import PeerError, environment, script
from benchmarks.poisson_binomial import poisson_binomial

METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
THRESHOLD = 0.5
# Rows and resamples of the timing; rows, repeats and resamples of the comparison with the truth.
SPEED, QUALITY = (100_000, 200), (2_000, 50, 100)
QUICK_SPEED, QUICK_QUALITY = (5_000, 50), (1_000, 4, 50)
POPULATION = 4_000_000
# Share of labels that is missing, by mechanism: among negatives and among positives. About 30% of all in both.
MECHANISMS = {"random": (0.3, 0.3), "by_label": (0.2, 0.55)}


@dataclass(frozen=True)
class Peer:
    """A way to get five metrics with intervals from partly labeled rows."""

    name: str
    script: str
    requirements: tuple[str, ...] = ()
    # What its interval is about: the value on these rows if all labels were known, or on the population behind them.
    about: str = "population"
    told: bool = False


OURS = Peer("darkmetrics, told nothing", "run_darkmetrics.py", about="these rows")
PEERS = (
    OURS,
    Peer("darkmetrics, told why labels are missing", "run_darkmetrics.py", about="these rows", told=True),
    Peer("scikit-learn in a loop over drawn labels", "run_sklearn_loop.py", about="these rows"),
    Peer("scipy.stats.bootstrap of labeled rows", "run_scipy_bootstrap.py"),
    Peer("confidenceinterval on labeled rows", "run_confidenceinterval.py", ("confidenceinterval",)),
    Peer("rapidstats bootstrap of labeled rows", "run_rapidstats.py", ("rapidstats", "numpy", "pyarrow")),
    Peer("ppi-python, score as prediction", "run_ppi.py", ("ppi-python",)),
    # 0.13.1 imports statsmodels without asking for it.
    Peer("NannyML CBPE", "run_nannyml.py", ("nannyml==0.13.1", "statsmodels"), about="these rows"),
)


def against_the_truth(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """One row per peer: seconds and memory on many rows, errors and intervals on many small sets."""
    here = Path(sys.executable)
    n_speed, resamples_speed = QUICK_SPEED if quick else SPEED
    n, repeats, resamples = QUICK_QUALITY if quick else QUALITY
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.npz"
        label, score = rows(n_speed, 1, seed=0)
        np.savez(large, label=hidden(label, "random", seed=1), score=score)
        label, score = rows(n, repeats, seed=2)
        truth = np.array([metrics_of(*pair) for pair in zip(label, score, strict=True)])
        population = metrics_of(*(column[0] for column in rows(POPULATION // (10 if quick else 1), 1, seed=3)))
        small = {name: Path(folder) / f"{name}.npz" for name in MECHANISMS}
        for seed, (name, path) in enumerate(small.items(), start=4):
            np.savez(path, label=hidden(label, name, seed=seed), score=score)
        for peer in PEERS:
            about = {"peer": peer.name, "about": peer.about, "n": n_speed, "resamples": resamples_speed}
            try:
                with environment(peer.requirements) as python:
                    # Ours directly before and after, so that a slow spell of the machine hits both.
                    turns = [(OURS, here), (peer, python), (OURS, here)]
                    before, found, after = (
                        script(where, who.script, large, "speed", str(resamples_speed), *_told(who, "random"))
                        for who, where in turns
                    )
                    quality = {
                        name: compared(
                            script(python, peer.script, path, "quality", str(resamples), *_told(peer, name))["answers"],
                            truth,
                            population,
                        )
                        for name, path in small.items()
                    }
            except PeerError as reason:
                yield _row(f"{peer.name}: skipped", float("nan"), str(reason)) | about | {"skipped": str(reason)}
                continue
            ours = min(before["seconds"], after["seconds"])
            about |= {
                **{key: found[key] for key in ("version", "seconds", "megabytes")},
                "ratio": found["seconds"] / ours,
                "rows_per_set": n,
                "sets": repeats,
                "quality": quality,
            }
            detail = (
                f"{found['seconds']:.3g} s against {ours:.3g} s; at most {found['megabytes']:.0f} MB; "
                + "; ".join(
                    f"{name}: mean error {_mean(each, 'error'):.4f}, width {_mean(each, 'width'):.4f}, "
                    f"holds {_mean(each, 'coverage'):.0%}"
                    for name, each in quality.items()
                )
            )
            yield _row(f"{peer.name} / ours, time", found["seconds"] / ours, detail) | about


def rows(n: int, repeats: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of sets of n rows: a good classifier whose scores are too high and too close to the middle."""
    rng = np.random.default_rng(seed)
    logit = -1.2 + 1.8 * rng.standard_normal((repeats, n))
    label = (rng.random((repeats, n)) < _expit(logit)).astype(np.float64)
    return label, _expit(0.2 + 0.8 * logit)


def hidden(label: np.ndarray, mechanism: str, seed: int) -> np.ndarray:
    """The labels with part of them NaN."""
    share = np.where(label == 1.0, MECHANISMS[mechanism][1], MECHANISMS[mechanism][0])
    return np.where(np.random.default_rng(seed).random(label.shape) < share, np.nan, label)


def metrics_of(label: np.ndarray, score: np.ndarray) -> list[float]:
    """The five metrics by scikit-learn, all labels known."""
    decided = score >= THRESHOLD
    counted = (precision_score, recall_score, accuracy_score, f1_score)
    return [*(float(metric(label, decided)) for metric in counted), float(roc_auc_score(label, score))]


def compared(answers: dict[str, list[Any]], truth: np.ndarray, population: list[float]) -> dict[str, Any]:
    """Per metric: mean absolute error, mean width, and how often an interval holds the value of the rows it is of."""
    found = {}
    for j, name in enumerate(METRICS):
        given = np.array([answer or (np.nan,) * 3 for answer in answers[name]], dtype=np.float64)
        there = np.isfinite(given).all(axis=1)
        if there.any():
            (value, low, high), exact = given[there].T, truth[there, j]
            found[name] = {
                "error": float(np.abs(value - exact).mean()),
                "width": float((high - low).mean()),
                # The ends of an interval of a discrete law are values of the metric: equal is inside, up to rounding.
                "coverage": float(((low - 1e-12 <= exact) & (exact <= high + 1e-12)).mean()),
                "population_coverage": float(((low <= population[j]) & (population[j] <= high)).mean()),
                "answered": float(there.mean()),
            }
    return found


def _told(peer: Peer, mechanism: str) -> tuple[str, ...]:
    return (mechanism,) if peer.told else ()


def _row(what: str, measured: float, detail: str) -> dict[str, Any]:
    """A measurement without a target: what others need is not ours to meet."""
    return {"what": what, "measured": measured, "target": "", "met": None, "detail": detail}


def _mean(quality: dict[str, Any], measure: str) -> float:
    return float(np.mean([each[measure] for each in quality.values()]))


def _expit(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


BENCHMARKS = (against_the_truth, poisson_binomial)
