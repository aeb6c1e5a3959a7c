"""Replications of one way on one scenario: the raw figures behind the promise about intervals."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

import oracle
from guarantees import scenarios, ways
from guarantees.pieces import Family, Piece, Row, files
from guarantees.scenarios import SCENARIOS, Quality, Sample, qualities_of, rows_of
from guarantees.ways import WAYS

CHUNK = 50
_BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}


@lru_cache(maxsize=4)
def _drawn(scenario: str, start: int, stop: int) -> list[Sample]:
    """Kept with their truths: ways that follow each other are tried on the same samples."""
    return list(_BY_NAME[scenario].samples(stop - start, start))


def _replications(way: str, scenario: str, start: int, stop: int) -> Iterator[Row]:
    for number, sample in enumerate(_drawn(scenario, start, stop), start):
        yield from ({"replication": number} | row for row in rows_of(WAYS[way], sample))


FAMILY = Family("coverage", _replications, files(__file__, oracle.__file__, scenarios.__file__, ways.__file__))


class Measurement(NamedTuple):
    """How well the laws of one way hold on one scenario, over `n` replications."""

    way: str
    scenario: str
    n: int

    def pieces(self) -> list[Piece]:
        starts = range(0, self.n, CHUNK)
        return [FAMILY.piece(self.way, self.scenario, start, min(start + CHUNK, self.n)) for start in starts]

    def quality(self) -> dict[str, Quality]:
        return qualities_of(row for piece in self.pieces() for row in piece.figures())
