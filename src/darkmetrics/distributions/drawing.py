"""Method "draw": random label assignments (imputations), drawn in the cheapest of three ways.

    by kind   the number of positives of each kind of row, from its exact distribution
    by flips  the rows that leave their most likely label; the assignment without any is not drawn but counted exactly
    by row    every influential row, and the others as a nearly normal sum

Imputations are allocated to the posterior draws in proportion to their weights. All metrics of a call that are drawn by
flips share their imputations.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from darkmetrics._kernels.arrays import AnyArray, FloatArray, IntArray
from darkmetrics.distributions.combined import Combined
from darkmetrics.distributions.functional import Functional
from darkmetrics.distributions.pairs import PairTerm
from darkmetrics.distributions.problem import Problem
from darkmetrics.posterior import Posterior

N_IMPUTATIONS = 2**16
# Measured nanoseconds per imputation and kind, per flip, and per row.
_COST_PER_KIND, _COST_PER_FLIP, _COST_PER_ROW = 100.0, 80.0, 3.0
# With fewer flips per imputation, the assignment without a flip has most of the mass and is counted exactly.
_FEW_FLIPS = 4.0
# Effective number of rows that makes a sum nearly normal; cells of more rows are drawn as one binomial number.
_NEARLY_NORMAL, _MAX_SINGLE = 64.0, 32
# Numbers drawn at a time, and the maximum for one result.
_BATCH, _MAX_NUMBERS, MAX_LABELS = 2**19, 2**28, 2**28
# Label probabilities this near to 0 or 1 are certain.
_CERTAIN = 1e-15
# Memory for label assignments that metrics share.
_MAX_SHARED_BYTES = 2**26


class Draws(NamedTuple):
    """Values drawn jointly: of one metric (n), or of several metrics (n_metrics x n)."""

    values: FloatArray
    mass: FloatArray  # of each imputation; sums to 1
    draw: IntArray  # posterior draw of each imputation
    exact_labels: bool  # labels were drawn; otherwise the sums have a nearly normal term
    n_fixed: int = 0  # imputations at the end that were not drawn: their mass is exact


def allocate(weight: FloatArray, n: int) -> IntArray:
    """Return the posterior draw of each of n imputations, in order and in proportion to the weights."""
    ends = np.rint(n * np.cumsum(weight) / weight.sum()).astype(np.int64)
    return np.repeat(np.arange(weight.size), np.diff(ends, prepend=0))


def draw_values(functional: Functional, problem: Problem, n: int = N_IMPUTATIONS) -> Draws:
    """Draw values of a functional from about n imputations."""
    if _cheapest_way(functional, problem, n) == "flips":
        drawn = Flips.of(problem, functional.missing).imputations(n)
        return Draws(functional.at(drawn.sums(functional)), drawn.mass, drawn.draw, True, problem.weight.size)
    draw = allocate(problem.weight, n)
    values, exact = draw_values_at(functional, problem, draw)
    return Draws(values, np.full(draw.size, 1.0 / draw.size), draw, exact)


def draw_values_at(functional: Functional, problem: Problem, draw: IntArray) -> tuple[FloatArray, bool]:
    """Draw one value at each of the given posterior draws; also return whether labels were drawn, not normal sums."""
    way = _cheapest_way(functional, problem, draw.size)
    if way == "labels":
        return _values_of_assignments(functional, problem, draw), True
    if way == "kind":
        return functional.at(_draw_by_kind(functional, problem, draw)), True
    if way == "flips":
        drawn = Flips.of(problem, functional.missing).at_draws(draw)
        return functional.at(drawn.sums(functional)), True
    return _draw_by_row(functional, problem, draw)


def _cheapest_way(functional: Functional, problem: Problem, n: int) -> str:
    """Return the way of drawing with the lowest estimated cost; "labels" if complete assignments are needed."""
    if not problem.posterior.independent or functional.columns is None:
        return "labels"
    expected = Flips.of(problem, functional.missing).expected
    if expected < _FEW_FLIPS:
        return "flips"
    costs = {"row": _COST_PER_ROW * float(functional.moving.sum()) * (3.0 if functional.pairs else 1.0)}
    if expected * n <= _MAX_NUMBERS:
        costs["flips"] = _COST_PER_FLIP * max(1.0, expected)
    if isinstance(functional, Combined) and functional.combine is None and functional.missing.sum() * n <= MAX_LABELS:
        # Metrics that are drawn jointly are compared: ties show in labels, not in nearly normal sums.
        costs["labels"] = costs.pop("row")
    elif functional.kinds is not None:
        costs["kind"] = _COST_PER_KIND * len(functional.kinds[0])
    return min(costs, key=lambda name: costs[name])


def _draw_by_kind(functional: Functional, problem: Problem, draw: IntArray) -> FloatArray:
    """Draw sums from the number of positives of each kind."""
    assert functional.kinds is not None
    columns, kind = functional.kinds
    rng = np.random.default_rng([problem.seed, 1])
    sums = np.repeat(functional.constant[:, None], draw.size, axis=1)
    for k, increments in enumerate(columns):
        cells = np.flatnonzero(kind == k)
        if not cells.size or not increments.any():
            continue
        low, pmf = problem.count_pmfs(cells, functional.missing)
        sums += increments[:, None] * (low + pick(pmf, draw, rng))
    return sums


def pick(pmf: FloatArray, row: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a column of a table of probabilities for each of the given rows."""
    return pick_at(pmf, row, rng.random(row.size))


def pick_at(pmf: FloatArray, row: IntArray, uniform: FloatArray) -> IntArray:
    """Return the column of a table of probabilities at which the cdf of each of the given rows exceeds `uniform`."""
    cumulative = np.cumsum(pmf, axis=1)
    # Row i is shifted by i, so one search serves all rows.
    shifted_cdf = (cumulative / cumulative[:, -1:] + np.arange(len(pmf))[:, None]).ravel()
    index = np.searchsorted(shifted_cdf, row + uniform, side="right") - row * pmf.shape[1]
    return np.asarray(np.clip(index, 0, pmf.shape[1] - 1))


@dataclass(frozen=True, eq=False)
class Flips:
    """Rows that leave their most likely label, as events of a Poisson process: a row flips if it has an event."""

    posterior: Posterior
    missing: IntArray
    seed: int
    cached: "dict[int, Imputations]" = field(default_factory=dict)

    @classmethod
    def of(cls, problem: Problem, missing: IntArray) -> "Flips":
        """Return the flips of a problem, the same object for all its metrics."""
        cached = problem.shared.get("flips")
        if not (isinstance(cached, Flips) and np.array_equal(cached.missing, missing)):
            cached = problem.shared["flips"] = cls(problem.posterior, missing, problem.seed)
        return cached

    @cached_property
    def likely(self) -> FloatArray:
        """Most likely label of each cell."""
        posterior = self.posterior
        mean = posterior.weight @ posterior.probability
        likely = (mean > 0.5 * posterior.weight.sum()).astype(np.float64)
        return np.asarray(likely if posterior.column is None else likely[posterior.column])

    @cached_property
    def _column_rate(self) -> FloatArray:
        """Poisson rate of the flips of one row, at each draw and probability column."""
        posterior = self.posterior
        likely = posterior.weight @ posterior.probability > 0.5 * posterior.weight.sum()
        flip = np.where(likely, 1.0 - posterior.probability, posterior.probability)
        return -np.log1p(-np.minimum(flip, 1.0 - _CERTAIN))

    @cached_property
    def _rows_of_column(self) -> FloatArray:
        posterior = self.posterior
        if posterior.column is None:
            return self.missing.astype(np.float64)
        return np.asarray(np.bincount(posterior.column, self.missing, posterior.probability.shape[1]))

    @cached_property
    def rate(self) -> FloatArray:
        """Poisson rate of all flips at each draw; the probability of no flip is exp(-rate)."""
        return np.asarray(self._column_rate @ self._rows_of_column)

    @property
    def expected(self) -> float:
        """Expected number of flips of an imputation."""
        return float(self.posterior.weight @ self.rate / self.posterior.weight.sum())

    def imputations(self, n: int) -> "Imputations":
        """Draw n imputations with at least one flip, and add the assignment without a flip at every draw."""
        if n not in self.cached:
            self.cached[n] = self._draw_imputations(n)
        return self.cached[n]

    def _draw_imputations(self, n: int) -> "Imputations":
        posterior, rng = self.posterior, np.random.default_rng([self.seed, 2])
        weight = posterior.weight / posterior.weight.sum()
        without_flip = np.exp(-self.rate)
        with_flip = weight * -np.expm1(-self.rate)
        draw = allocate(with_flip, n) if with_flip.sum() > 0.0 else np.zeros(0, dtype=np.int64)
        size = np.bincount(draw, minlength=weight.size)
        mass = np.divide(with_flip, size, out=np.zeros(weight.size), where=size > 0)[draw]
        n_events, uniform = self._draw_n_events(draw, size, rng)
        imputation, cell = self._draw_flips(draw, n_events, uniform, rng)
        # Imputations without a flip come last, one for each draw.
        mass = np.concatenate([mass, weight * without_flip])
        return Imputations(self.likely, imputation, cell, mass, np.concatenate([draw, np.arange(weight.size)]))

    def at_draws(self, draw: IntArray) -> "Imputations":
        """Draw one imputation at each of the given posterior draws; it may have no flip."""
        rng = np.random.default_rng([self.seed, 6])
        order = np.argsort(draw, kind="stable")
        n_events = rng.poisson(self.rate[draw[order]])
        imputation, cell = self._draw_flips(draw[order], n_events, rng.random(n_events.size), rng)
        return Imputations(self.likely, order[imputation], cell, np.full(draw.size, 1.0 / draw.size), draw)

    def _draw_n_events(self, draw: IntArray, size: IntArray, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Draw the number of events of each imputation, at least one, and a uniform number for a single event's row.

        Both come from one number in each of `size` intervals per posterior draw, so that single flips have nearly
        their exact probability.
        """
        if not draw.size:
            return draw, np.zeros(0)
        max_rate = float(self.rate.max())
        n = np.arange(1.0, max_rate + 10.0 * np.sqrt(max_rate) + 20.0)
        log_pmf = n * np.log(np.maximum(self.rate, 1e-300))[:, None] - gammaln(n + 1.0)
        pmf = np.exp(log_pmf - log_pmf.max(axis=1, keepdims=True))
        pmf /= pmf.sum(axis=1, keepdims=True)
        position = np.arange(draw.size) - np.repeat(np.cumsum(size) - size, size)
        uniform = (position + rng.random(draw.size)) / np.repeat(size, size)
        return 1 + pick_at(pmf, draw, uniform), np.minimum(uniform / pmf[draw, 0], 1.0)

    def _draw_flips(
        self, draw: IntArray, n_events: IntArray, uniform: FloatArray, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray]:
        """Draw the imputation and cell of each flip; `draw` has the posterior draw of each imputation, in order."""
        imputation = np.repeat(np.arange(draw.size), n_events)
        row = self._draw_rows_of_events(draw, n_events, uniform, rng)
        # A row with several events flips once.
        n_rows = max(1, int(self.missing.sum()))
        key = np.sort(imputation * n_rows + row)
        imputation, row = np.divmod(key[np.diff(key, prepend=-1) > 0], n_rows)
        return imputation, np.repeat(np.arange(self.missing.size), self.missing)[row]

    def _draw_rows_of_events(
        self, draw: IntArray, n_events: IntArray, uniform: FloatArray, rng: np.random.Generator
    ) -> IntArray:
        """Draw the row of each event in proportion to the rates at the event's posterior draw.

        `uniform` has a number for each imputation, which decides the row of its event if it has only one.
        """
        posterior = self.posterior
        row = np.empty(int(n_events.sum()), dtype=np.int64)
        # Draw a column, then a row of that column.
        column = np.arange(self.missing.size) if posterior.column is None else posterior.column
        row_column = np.repeat(column, self.missing)
        order = np.argsort(row_column, kind="stable")
        starts = np.searchsorted(row_column[order], np.arange(self._column_rate.shape[1]))
        at_event = rng.random(row.size)
        at_event[np.repeat(n_events == 1, n_events)] = uniform[n_events == 1]
        at = 0
        for k, events in enumerate(np.bincount(draw, n_events, posterior.weight.size).astype(np.int64).tolist()):
            if not events:
                continue
            cumulative = np.cumsum(self._column_rate[k] * self._rows_of_column)
            u = at_event[at : at + events] * cumulative[-1]
            chosen = np.minimum(np.searchsorted(cumulative, u, side="right"), cumulative.size - 1)
            n_rows = self._rows_of_column[chosen]
            within = np.minimum((rng.random(events) * n_rows).astype(np.int64), n_rows.astype(np.int64) - 1)
            row[at : at + events] = order[starts[chosen] + within]
            at += events
        return row


@dataclass(frozen=True, eq=False)
class Imputations:
    """Random label assignments as the cells that flip."""

    likely: FloatArray
    imputation: IntArray
    cell: IntArray
    mass: FloatArray
    draw: IntArray

    def sums(self, functional: Functional) -> FloatArray:
        """Return the sums of a functional (n_sums x n_imputations)."""
        sums, increments = functional.linearize(self.likely)
        n, sign = self.mass.size, 1.0 - 2.0 * self.likely[self.cell]
        result = np.repeat(sums[:, None], n, axis=1)
        for i, increment in enumerate(increments):
            result[i] += np.bincount(self.imputation, sign * increment[self.cell], n)
        for pair in functional.pairs:
            result[pair.sum_index] += self._pair_values(pair, sign)
        return result

    def _pair_values(self, pair: PairTerm, sign: FloatArray) -> FloatArray:
        """Return the pair term of the flips in each imputation."""
        group, n = pair.group[self.cell], self.mass.size
        order = np.lexsort([group, self.imputation])
        imputation, group = self.imputation[order], group[order]
        flipped = (sign * pair.weight[self.cell])[order]
        if not flipped.size:
            return np.zeros(n)
        cumulative = np.cumsum(flipped)
        last = np.flatnonzero(np.append((np.diff(imputation) != 0) | (np.diff(group) != 0), True))
        x = np.diff(cumulative[last], prepend=0.0)
        imputation_of_group, group = imputation[last], group[last]
        before = np.concatenate([[0.0], cumulative])[np.searchsorted(imputation, imputation_of_group)]
        above = cumulative[last] - x - before
        return np.asarray(np.bincount(imputation_of_group, x * (pair.outer[group] * above + pair.inner[group] * x), n))


def _draw_by_row(functional: Functional, problem: Problem, draw: IntArray) -> tuple[FloatArray, bool]:
    """Draw the labels of influential rows one by one, and the sums of the others as a nearly normal vector."""
    rng = np.random.default_rng([problem.seed, 3])
    if not functional.pairs:
        functional, cells = problem.cells(functional)
        p = cells.probability
    else:
        p = problem.posterior.on_all_cells.probability
    columns, rows = functional.columns, functional.moving
    assert columns is not None
    n_normal, order = (0, np.arange(rows.size)) if functional.pairs else _n_nearly_normal(columns, rows, p, problem)
    normal, leading = order[:n_normal], np.repeat(order[n_normal:], rows[order[n_normal:]])
    p_leading, increments = p[:, leading], columns[leading]
    sums = np.repeat(functional.constant[:, None], draw.size, axis=1)
    for batch in _batches(draw.size, leading.size):
        labels = draw_labels(p_leading, draw[batch], rng)
        sums[:, batch] += (labels @ increments).T
        for pair in functional.pairs:
            by_row = PairTerm(0, pair.group[leading], pair.weight[leading], pair.outer, pair.inner)
            sums[pair.sum_index, batch] += pair.value(by_row.sum_by_group(labels * by_row.weight))
    if normal.size and columns.shape[1]:
        sums += _draw_nearly_normal(columns[normal], rows[normal], p[:, normal], draw, rng)
    return functional.at(sums), not normal.size


def _n_nearly_normal(increments: FloatArray, rows: IntArray, p: FloatArray, problem: Problem) -> tuple[int, IntArray]:
    """Return how many cells of the least influential rows have a nearly normal sum, and the order of all cells."""
    if not increments.shape[1]:
        return rows.size, np.arange(rows.size)
    variance = (problem.weight @ (p * (1.0 - p)))[:, None] * increments**2
    total = np.maximum(rows @ variance, 1e-300)
    order = np.argsort((variance / total).max(axis=1), kind="stable")
    variance *= rows[:, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        fourth = np.cumsum((variance * increments**2)[order], axis=0)
        effective_rows = np.cumsum(variance[order], axis=0) ** 2 / fourth
    is_nearly_normal = (effective_rows >= _NEARLY_NORMAL).all(axis=1)
    return int(np.flatnonzero(is_nearly_normal).max(initial=-1)) + 1, order


def draw_labels(p: FloatArray, draw: IntArray, rng: np.random.Generator) -> FloatArray:
    """Draw labels (n x n_rows) with probabilities p (n_draws x n_rows); a random byte decides 255 of 256 of them."""
    if len(p) > draw.size:
        chosen, draw = np.unique(draw, return_inverse=True)
        p = p[chosen]
    threshold = np.minimum(256.0 * p, 255.0).astype(np.uint8)
    byte = np.frombuffer(rng.bytes(draw.size * p.shape[1]), np.uint8).reshape(draw.size, p.shape[1])
    limit = threshold[draw] if len(p) > 1 else threshold
    labels = (byte < limit).astype(np.float64)
    at, row = np.divmod(np.flatnonzero(byte == limit), max(1, p.shape[1]))
    labels[at, row] = rng.random(at.size) < 256.0 * p[draw[at], row] - threshold[draw[at], row]
    return labels


def _draw_nearly_normal(
    increments: FloatArray, rows: IntArray, p: FloatArray, draw: IntArray, rng: np.random.Generator
) -> FloatArray:
    """Draw sums of many labels: normal along uncorrelated axes, with a Cornish-Fisher correction of the skewness."""
    result = rng.standard_normal((draw.size, increments.shape[1]))
    order = np.argsort(draw, kind="stable")
    ends = np.searchsorted(draw[order], np.arange(len(p) + 1))
    for k, probability in enumerate(p):
        at = order[ends[k] : ends[k + 1]]
        variance = rows * probability * (1.0 - probability)
        values, axes = np.linalg.eigh((increments.T * variance) @ increments)
        spread = np.sqrt(np.maximum(values, 1e-30 * max(values[-1], 1e-300)))
        along = increments @ (axes / spread)
        skew = np.clip((variance * (1.0 - 2.0 * probability)) @ (along * along * along), -1.0, 1.0)
        z = result[at]
        z += skew / 6.0 * (z**2 - 1.0) - skew**2 / 36.0 * z * (2.0 * z**2 - 5.0)
        result[at] = (rows * probability) @ increments + z @ (axes * spread).T
    return result.T


def _values_of_assignments(functional: Functional, problem: Problem, draw: IntArray) -> FloatArray:
    """Draw label assignments from the posterior: for dependent labels, and for metrics that are no function of sums."""
    order = np.argsort(draw, kind="stable")
    assignments = _draw_assignments(functional, problem, draw[order])
    if functional.columns is None:
        drawn = np.concatenate([functional.values(positives.astype(np.int64)) for positives in assignments], axis=-1)
        values = np.empty_like(drawn)
        values[..., order] = drawn
        return values
    sums, start = np.empty((functional.columns.shape[1], draw.size)), 0
    for positives in assignments:
        sums[:, order[start : start + len(positives)]] = functional.sums(positives.astype(np.float64))
        start += len(positives)
    return functional.at(sums)


def _draw_assignments(functional: Functional, problem: Problem, draw: IntArray) -> Iterator[AnyArray]:
    """Draw label assignments (n x n_cells) in portions; the metrics of a problem share them if they fit into memory."""
    missing, posterior, n = functional.missing, problem.posterior, draw.size
    single = missing.max(initial=0) <= 1
    portions = problem.packed.get(draw.tobytes())
    if portions is not None:
        for portion in portions:
            yield np.unpackbits(portion, axis=1, count=missing.size) if single else portion
        return
    is_shared = n * missing.size // (8 if single else 1) <= _MAX_SHARED_BYTES and missing.max(initial=0) <= 255
    packed = []
    rng = np.random.default_rng([problem.seed, 4])
    tie_rng = np.random.default_rng([problem.seed, 5])
    p = posterior.on_all_cells.probability if single and missing.all() and posterior.independent else None
    size = int(missing[missing <= _MAX_SINGLE].sum()) + missing.size
    for batch in _batches(n, size):
        starts = np.flatnonzero(np.diff(draw[batch], prepend=-1))
        lengths = np.diff(np.append(starts, draw[batch].size))
        if p is not None:
            positives = draw_labels(p, draw[batch], rng)
        else:
            drawn = [
                posterior.draw(int(draw[batch][start]), missing, int(length), rng, tie_rng)
                for start, length in zip(starts, lengths, strict=True)
            ]
            positives = np.concatenate(drawn)
        if is_shared:
            packed.append(np.packbits(positives.astype(np.uint8), axis=1) if single else positives.astype(np.uint8))
        yield positives
    if is_shared:
        problem.packed[draw.tobytes()] = packed


def _batches(n: int, numbers_per_imputation: float) -> list[slice]:
    """Split imputations into batches of about half a million numbers, which fit into the processor's cache."""
    size = max(1, int(_BATCH / max(1.0, numbers_per_imputation)))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]
