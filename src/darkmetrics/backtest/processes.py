"""How repeats are run: a generator for each, one process or several, and a progress bar."""

import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from darkmetrics.evaluate import generator_from
from darkmetrics.exceptions import InputError
from darkmetrics.methods.base import check_n_resamples


def generators_from(rng: Any, repeats: int) -> list[np.random.Generator]:
    """One generator for each repeat, so that it does not matter which process draws from it."""
    generator = generator_from(rng)
    try:
        return generator.spawn(repeats)
    except TypeError:  # made without a seed sequence, as an old RandomState is
        return [np.random.default_rng(seed) for seed in generator.integers(2**63, size=repeats).tolist()]


def jobs_from(n_jobs: Any) -> int:
    """A number of processes; -1 stands for all cores."""
    if isinstance(n_jobs, (int, np.integer)) and n_jobs == -1:
        return os.cpu_count() or 1
    return check_n_resamples(n_jobs, "n_jobs")


def run_each(
    function: Callable[[Any], Any], sources: list[np.random.Generator], jobs: int, progress: bool | None
) -> list[Any]:
    """The results in order, by one process or several."""
    if jobs == 1:
        return list(_shown(map(function, sources), len(sources), progress))
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            f"n_jobs: a metric, label model or mechanism cannot be sent to other processes ({error}). Define it in a "
            "module, not on the fly, or use n_jobs=1."
        ) from None
    with ProcessPoolExecutor(jobs) as pool:
        results = pool.map(function, sources, chunksize=max(1, len(sources) // (8 * jobs)))
        return list(_shown(results, len(sources), progress))


def _shown(results: Iterable[Any], total: int, progress: bool | None) -> Iterator[Any]:
    """The same, with a progress bar on standard error where one is wanted."""
    if progress is False or (progress is None and not sys.stderr.isatty()):
        return iter(results)
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        if progress:
            raise InputError("progress: needs the package rich; pip install 'darkmetrics[cli]'.") from None
        return iter(results)
    return iter(track(results, "Backtest", total, console=Console(stderr=True)))
