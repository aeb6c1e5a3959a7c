"""The number of positives among missing rows: ours and two others against an oracle that adds positive terms only."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import PeerError, environment, script

SIZES, QUICK_SIZES = (1_000, 10_000, 100_000, 1_000_000), (1_000, 10_000)
WAYS = {
    "darkmetrics": ("pmf_darkmetrics.py", ()),
    "fast-poibin": ("pmf_fast_poibin.py", ("fast-poibin",)),
    "scipy.stats.poisson_binom": ("pmf_scipy.py", ()),
}
# Masses below this are nothing at all to a law whose largest one is above 1e-4; the oracle leaves them out as it goes.
FAINTEST = 1e-30
# Relative errors are compared where there is mass to speak of.
LEAST = 1e-12


def poisson_binomial(*, quick: bool = False) -> Iterator[dict[str, Any]]:
    """Seconds, memory and errors for every way and size."""
    sizes = QUICK_SIZES if quick else SIZES
    with tempfile.TemporaryDirectory() as folder:
        files = {n: Path(folder) / f"{n}.npz" for n in sizes}
        exact = {}
        for n, path in files.items():
            p = np.random.default_rng(n).random(n) ** 2
            np.savez(path, p=p)
            exact[n] = oracle(p)
        ours: dict[int, float] = {}
        for name, (file, requirements) in WAYS.items():
            try:
                with environment(requirements) as python:
                    for n, path in files.items():
                        found = {"way": name, "n": n}
                        found |= one_size(python, file, path, exact[n])
                        ours.setdefault(n, found.get("seconds", np.nan))
                        yield _row(found, ours[n])
            except PeerError as reason:
                yield _row({"way": name, "n": None, "skipped": str(reason)}, np.nan)


def one_size(python: Path, file: str, path: Path, exact: tuple[int, np.ndarray]) -> dict[str, Any]:
    """What one way said about one file of chances, beside the oracle."""
    saved = path.with_suffix(".out.npz")
    found = script(python, file, path, saved)
    if "skipped" in found:
        return found
    with np.load(saved) as answer:
        first, pmf = int(answer["first"]), answer["pmf"]
    start, truth = exact
    end = max(first + pmf.size, start + truth.size)
    both = np.zeros((2, end - min(first, start)), dtype=np.longdouble)
    for line, (offset, masses) in zip(both, ((first, pmf), exact), strict=True):
        line[offset - min(first, start) :][: masses.size] = masses
    difference = np.abs(both[0] - both[1])
    large = both[1] >= LEAST
    return found | {
        "error": float(difference.max()),
        "relative_error": float((difference[large] / both[1][large]).max()),
        "megabytes": found["megabytes"],
    }


def oracle(p: np.ndarray) -> tuple[int, np.ndarray]:
    """First count and masses, one trial after the other in extended precision: no cancellation, errors below 1e-13.

    A sum of n trials rounds n times; with 64 bits of mantissa a million of them leave 13 correct digits.
    """
    first, pmf = 0, np.ones(1, dtype=np.longdouble)
    for i, chance in enumerate(p.astype(np.longdouble), start=1):
        grown = np.empty(pmf.size + 1, dtype=np.longdouble)
        np.multiply(pmf, 1 - chance, out=grown[:-1])
        grown[-1] = 0
        pmf *= chance
        grown[1:] += pmf
        pmf = grown
        if i % 64 == 0:
            there = np.flatnonzero(pmf >= FAINTEST)
            first, pmf = first + int(there[0]), pmf[there[0] : there[-1] + 1].copy()
    return first, pmf


def _row(found: dict[str, Any], ours: float) -> dict[str, Any]:
    size = "" if found["n"] is None else f", n = {found['n']:,}"
    if "skipped" in found:
        what, measured, detail = f"Poisson-binomial{size}: {found['way']} skipped", float("nan"), found["skipped"]
    else:
        what, measured = f"Poisson-binomial{size}: {found['way']} / ours, time", found["seconds"] / ours
        detail = (
            f"{found['seconds']:.3g} s, {found['megabytes']:.0f} MB; largest error {found['error']:.1e}, "
            f"relative {found['relative_error']:.1e}"
        )
        found["ratio"] = measured
    return {"what": what, "measured": measured, "target": "", "met": None, "detail": detail, **found}
