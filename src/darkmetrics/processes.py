"""Work in several processes: a random generator for each piece, and a progress bar."""

import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any

import numpy as np

from darkmetrics.argument_types import ProgressLike
from darkmetrics.constraints import check_value
from darkmetrics.exceptions import InputError
from darkmetrics.logs import LOGGER
from darkmetrics.question import generator_from
from darkmetrics.wording import setting


def generators_from(rng: Any, number: int) -> list[np.random.Generator]:
    """Return a generator for each piece of work, so that results do not depend on the number of processes."""
    generator = generator_from(rng)
    try:
        return generator.spawn(number)
    except TypeError:  # no seed sequence, as in an old RandomState
        return [np.random.default_rng(seed) for seed in generator.integers(2**63, size=number).tolist()]


def jobs_from(n_jobs: Any) -> int:
    """Return a number of processes; -1 means one per core."""
    check_value("n_jobs", n_jobs)
    return os.cpu_count() or 1 if n_jobs == -1 else int(n_jobs)


def run_each(
    function: Callable[[Any], Any], pieces: Sequence[Any], jobs: int, progress: ProgressLike, title: str
) -> list[Any]:
    """Return the results in order, from one process or several."""
    if not (progress is None or isinstance(progress, (bool, np.bool_)) or callable(progress)):
        raise InputError("progress", f"expected True, False, None or a function of (done, total), got {progress!r}")
    jobs = min(jobs, len(pieces))
    LOGGER.info("%s: %d pieces of work, %d at a time", title, len(pieces), max(jobs, 1))
    if jobs <= 1:
        return list(shown(map(function, pieces), len(pieces), progress, title))
    try:
        pickle.dumps(function)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputError(
            "n_jobs",
            f"a metric, label model or mechanism cannot be sent to other processes ({error})",
            "",
            f"Define it in a module, not on the fly, or use {setting('n_jobs', 1)}.",
        ) from None
    try:
        with _one_thread_each(), ProcessPoolExecutor(jobs, mp_context=_context()) as pool:
            results = pool.map(function, pieces, chunksize=max(1, len(pieces) // (8 * jobs)))
            return list(shown(results, len(pieces), progress, title))
    except BrokenProcessPool as error:
        raise InputError(
            "n_jobs",
            f"{jobs} processes could not be started, or one of them died ({error})",
            "A script that is run by Python needs its calls below `if __name__ == '__main__':`; "
            f"{setting('n_jobs', 1)} needs nothing.",
        ) from error


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Start processes inside the block with one thread for linear algebra, unless the user has set another number.

    Otherwise each process starts a thread per core for products of small matrices, which mostly wait.
    """
    names = [name for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS") if name not in os.environ]
    os.environ.update(dict.fromkeys(names, "1"))
    try:
        yield
    finally:
        for name in names:
            os.environ.pop(name, None)


def _context() -> Any:
    """Return a context without fork, which would copy the threads of an engine in the middle of their work."""
    clean = "forkserver" in multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if clean else None)


def shown(results: Iterable[Any], total: int, progress: ProgressLike, title: str) -> Iterator[Any]:
    """Return the results, with a progress bar on standard error, or calls of a progress function."""
    if callable(progress):
        return _report_progress(results, total, progress)
    if (progress is not None and not progress) or (progress is None and not (sys.stderr and sys.stderr.isatty())):
        return iter(results)
    try:
        from rich.console import Console
        from rich.progress import track
    except ImportError:
        if progress:
            raise InputError("progress", "needs the package rich; pip install 'darkmetrics[cli]'") from None
        return iter(results)
    return iter(track(results, title, total, console=Console(stderr=True), transient=True))


def _report_progress(results: Iterable[Any], total: int, progress: Callable[[int, int], object]) -> Iterator[Any]:
    for done, result in enumerate(results, start=1):
        progress(done, total)
        yield result
