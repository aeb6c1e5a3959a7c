"""The long form: random problems on all cores for as long as asked, or one seed again (make fuzz).

Prints what it has tried every half a minute, and an alarm at once with the line that reproduces it. Leaves with 1 if
there was one.
"""

import argparse
import itertools
import multiprocessing
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from fuzz import kin, seeds
from fuzz.hostile import HOSTILE, outcome
from fuzz.problems import case_of

_DRAWS = 200_000
_MEMORY = 4 << 30
_EVERY = 30.0


class Found(NamedTuple):
    """What a seed led to."""

    seed: int
    alarms: list[str]
    counts: Counter[str]


def of_seed(seed: int) -> Found:
    """All that is tried with one seed."""
    counts: Counter[str] = Counter()
    alarms = seeds.alarms(seed, counts=counts, draws=_DRAWS)
    alarms += kin.alarms(seed, counts=counts)
    return Found(seed, alarms, counts)


def of_hostile_input() -> Iterator[str]:
    """What hostile input leads to, where that is not what is expected."""
    for title, (call, expected) in HOSTILE.items():
        found = outcome(call)
        if found != expected:
            yield f"{title}: {found}, expected: {expected}"


def _confined() -> None:
    """A problem that wants all memory gets an error, and does not take others with it."""
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, ValueError):
        pass


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _say_alarms(found: Found) -> None:
    _say(f"ALARM  seed {found.seed}: {', '.join(case_of(found.seed).words)}")
    for alarm in found.alarms:
        _say(f"       {alarm}")
    _say(f"       again: PYTHONPATH=src:tests .venv/bin/python -m fuzz --seed {found.seed}")


def _until(end: float, first: int) -> Iterator[int]:
    """Seeds, as long as there is time."""
    return itertools.takewhile(lambda _: time.monotonic() < end, itertools.count(first))


def run(seconds: float, first: int, jobs: int) -> int:
    """Tries seeds until the time is up, and says how many had an alarm."""
    start = last = time.monotonic()
    counts: Counter[str] = Counter()
    bad = tried = slowest = 0
    for alarm in of_hostile_input():
        bad += 1
        _say(f"ALARM  hostile input: {alarm}")
    _say(f"{len(HOSTILE)} hostile inputs; then seeds from {first} for {seconds:,.0f} s on {jobs} cores")
    with multiprocessing.get_context("spawn").Pool(jobs, _confined, maxtasksperchild=200) as pool:
        # Seeds are taken as they are worked off: a pool that is handed an iterator would read it to its end at once.
        waiting = _until(start + seconds, first)
        under_way = [pool.apply_async(of_seed, (seed,)) for seed in itertools.islice(waiting, 2 * jobs)]
        while under_way:
            time.sleep(0.1)
            done = [result for result in under_way if result.ready()]
            under_way = [result for result in under_way if result not in done]
            under_way += [pool.apply_async(of_seed, (seed,)) for seed in itertools.islice(waiting, len(done))]
            for found in (result.get() for result in done):
                tried += 1
                slowest = max(slowest, found.counts.pop("slowest (ms)", 0))
                counts += found.counts
                if found.alarms:
                    bad += 1
                    _say_alarms(found)
            if time.monotonic() - last > _EVERY:
                last = time.monotonic()
                _say(f"{last - start:6,.0f} s: {tried:,} seeds, {_in_words(counts)}, {bad} with alarms")
    _say(f"{tried:,} seeds, {_in_words(counts)}; the slowest evaluation took {slowest / 1000:.1f} s; {bad} with alarms")
    for name, number in sorted(counts.items()):
        _say(f"  {number:8,}  {name}")
    return bad


def _in_words(counts: Counter[str]) -> str:
    distributions = sum(counts[name] for name in ("exact", "near exact", "monte carlo", "gaussian"))
    pairs = sum(counts[name] for name in (*kin.RELATIONS, *kin.WAYS))
    return f"{distributions:,} laws, {pairs:,} comparisons"


def main() -> int:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=1800.0, help="how long (default: half an hour)")
    parser.add_argument(
        "--first-seed", type=int, default=100_000, help="where to begin; another one tries other problems"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--seed", type=int, help="this seed alone")
    given = parser.parse_args()
    if given.seed is None:
        return int(run(given.seconds, given.first_seed, given.jobs) > 0)
    found = of_seed(given.seed)
    _say(f"seed {found.seed}: {', '.join(case_of(found.seed).words)}")
    for alarm in found.alarms:
        _say(f"  {alarm}")
    _say(f"{len(found.alarms)} alarms")
    return int(bool(found.alarms))
