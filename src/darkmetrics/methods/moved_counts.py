"""Numbers of positives when the log odds of all missing rows are moved alike: one law gives those of many moves."""

from functools import partial

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics._kernels.sums.poisson_binomial import CONVOLUTION_LIMIT, poisson_binomial_pmfs
from darkmetrics._kernels.sums.related_counts import MovablePmfs
from darkmetrics.methods.problem import CountLaws, chances_of
from darkmetrics.nodes import Nodes


class MovedCounts:
    """Laws of the number of positives among some of the missing cells, kept from one move to the next."""

    def __init__(self, missing: IntArray) -> None:
        self._missing = missing
        # The last law that was found from scratch, by the cells it counts, and the move it belongs to.
        self._found: dict[bytes, tuple[float, MovablePmfs]] = {}

    def at(self, delta: float, nodes: Nodes) -> CountLaws | None:
        """The laws at nodes whose log odds were moved by `delta`; None where there are too many rows for this."""
        if self._missing.sum() > CONVOLUTION_LIMIT:
            return None
        return partial(self._law, delta, nodes)

    def _law(self, delta: float, nodes: Nodes, rows: IntArray) -> tuple[int, FloatArray]:
        key = rows.tobytes()
        if key in self._found:
            start, law = self._found[key]
            moved = law.moved(delta - start)
            if moved is not None:
                return moved
        p, counts = chances_of(rows, self._missing, nodes)
        self._found[key] = delta, MovablePmfs.of(p, counts)
        return self._found[key][1].moved(0.0) or poisson_binomial_pmfs(p, counts)
