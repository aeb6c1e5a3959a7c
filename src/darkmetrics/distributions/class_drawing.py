"""Random label assignments of several classes: row by row, or only the rows that leave their most likely label.

In large sets, labels of the rarest classes are drawn as events; classes of many rows contribute a nearly normal term.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics.distributions.class_expansion import SumMoments, compute_class_derivatives
from darkmetrics.distributions.class_pairs import PairSums
from darkmetrics.distributions.class_sums import ClassFunctional, ClassSums
from darkmetrics.distributions.drawing import N_IMPUTATIONS, Draws, allocate
from darkmetrics.exceptions import MethodError
from darkmetrics.posterior.classes import ClassPosterior

# Labels that are drawn row by row in total, and events in total; fewer imputations are drawn if there would be more.
_MAX_LABELS, _MAX_EVENTS = 2**27, 2**23
# Maximum number of rows that are drawn row by row, and least number of imputations.
_MAX_ROWS, _MIN_IMPUTATIONS = 2**13, 2**14
# Labels drawn at a time.
_BATCH = 2**19
# Time of an event relative to that of a label drawn row by row.
_COST_OF_EVENT = 30.0
# Probabilities this near to 1 are certain.
_CERTAIN = 1e-15
# Sums below this fraction of their expectation are rounding errors.
_ROUNDING = 1e-9


def draw_categories(q: FloatArray, n: int, rng: np.random.Generator) -> IntArray:
    """Draw n label assignments (n x n_rows) with probabilities q (n_rows x K); a random byte decides most of them."""
    n_rows, n_bounds = len(q), q.shape[1] - 1
    cumulative = np.cumsum(q, axis=1)[:, :-1]
    # A byte decides a label unless a bound between two labels lies in its interval.
    interval = np.clip(cumulative * 256.0, 0.0, 256.0).astype(np.int64) + 257 * np.arange(n_rows)[:, None]
    n_inside = np.bincount(interval.ravel(), minlength=257 * n_rows).reshape(n_rows, 257)[:, :256]
    below = np.cumsum(n_inside, axis=1) - n_inside
    table = np.where(n_inside > 0, n_bounds + 1, below).astype(np.min_scalar_type(n_bounds + 1)).ravel()
    byte = np.frombuffer(rng.bytes(n * n_rows), np.uint8).reshape(n, n_rows)
    labels = np.take(table, byte + 256 * np.arange(n_rows))
    at, row = np.divmod(np.flatnonzero(labels == n_bounds + 1), max(1, n_rows))
    uniform = (byte[at, row] + rng.random(at.size)) / 256.0
    labels[at, row] = (cumulative[row] <= uniform[:, None]).sum(axis=1)
    return labels.astype(np.int64)


@dataclass(frozen=True, eq=False)
class ClassDrawing:
    """Metrics of one set whose values are drawn together.

    Attributes
    ----------
    functionals : sequence of ClassFunctional
        The metrics.
    moments : sequence of SumMoments
        Moments of the sums of each metric.
    posterior : ClassPosterior
        Probabilities of the missing labels.
    missing : array of int
        Rows of each missing cell.
    seed : int
        Seed of the random numbers.
    n : int, optional
        Number of imputations; None: 65,536, fewer if each takes long.
    """

    functionals: Sequence[ClassFunctional]
    moments: Sequence[SumMoments]
    posterior: ClassPosterior
    missing: IntArray
    seed: int
    n: int | None = None

    def draw(self) -> list[Draws]:
        """Return the values of each metric."""
        n_rows = self._cell_of_row.size
        if self.n is not None:
            return self._collect(self._draw_rows(self.n))
        events = float(self._n_events.sum()) if self._event_classes.all() else np.inf
        if n_rows <= _MAX_ROWS and n_rows <= _COST_OF_EVENT * events:
            n = int(np.clip(_MAX_LABELS // max(1, n_rows), _MIN_IMPUTATIONS, N_IMPUTATIONS))
            return self._collect(self._draw_rows(n))
        return self._collect(self._draw_events())

    def _collect(self, portions: Iterator[tuple[int, list[FloatArray]]]) -> list[Draws]:
        values: list[list[FloatArray]] = [[] for _ in self.functionals]
        draws = []
        for draw, portion in portions:
            draws.append(np.full(portion[0].size, draw, dtype=np.int64))
            for collected, new in zip(values, portion, strict=True):
                collected.append(new)
        draw_of = np.concatenate(draws)
        mass = np.full(draw_of.size, 1.0 / draw_of.size)
        return [Draws(np.concatenate(collected), mass, draw_of, exact_labels=True) for collected in values]

    def _sizes(self, n: int) -> list[tuple[int, int]]:
        """Return posterior draws and the number of imputations at each."""
        draws, sizes = np.unique(allocate(self.posterior.weight, n), return_counts=True)
        return list(zip(draws.tolist(), sizes.tolist(), strict=True))

    @cached_property
    def _by_sums(self) -> list[tuple[ClassSums, list[int]]]:
        """Distinct sums, and the metrics of each."""
        groups: dict[int, tuple[ClassSums, list[int]]] = {}
        for i, functional in enumerate(self.functionals):
            groups.setdefault(id(functional.sums), (functional.sums, []))[1].append(i)
        return list(groups.values())

    def _draw_rows(self, n: int) -> Iterator[tuple[int, list[FloatArray]]]:
        """Draw all labels row by row; yield a posterior draw and the values of all metrics there."""
        rng = np.random.default_rng([self.seed, 11])
        cell = self._cell_of_row
        for draw, size in self._sizes(n):
            probability = self.posterior.of_draw(draw)
            q = probability[cell]
            step = max(1, _BATCH // max(1, cell.size))
            for start in range(0, size, step):
                labels = draw_categories(q, min(step, size - start), rng)
                yield draw, self._values_of_labels(labels, cell, probability)

    def _values_of_labels(self, labels: IntArray, cell: IntArray, q: FloatArray) -> list[FloatArray]:
        """Return the values of all metrics for label assignments (n x n_rows), given the cell of each row."""
        values: list[FloatArray] = [np.zeros(0)] * len(self.functionals)
        for sums, metrics in self._by_sums:
            drawn = sums.for_drawing(q).of_labels(labels, cell)
            for i in metrics:
                values[i] = self.functionals[i].at(drawn)
        return values

    @cached_property
    def _average_probability(self) -> FloatArray:
        """Probabilities at a few posterior draws on average (n_cells x K)."""
        draws = np.unique(np.linspace(0, len(self.posterior) - 1, 5).astype(np.int64))
        return np.asarray(sum(self.posterior.of_draw(int(draw)) for draw in draws) / draws.size)

    @cached_property
    def _likely(self) -> IntArray:
        """Most likely label of each cell."""
        return np.asarray(self._average_probability.argmax(axis=1))

    @cached_property
    def _n_events(self) -> FloatArray:
        """Expected number of rows that leave their most likely label for each class."""
        q = self._average_probability.copy()
        q[np.arange(len(q)), self._likely] = 0.0
        return np.asarray(self.missing @ q)

    @cached_property
    def _event_classes(self) -> BoolArray:
        """Classes whose labels are drawn as events: all of them, or the rarest ones that can be afforded."""
        order = np.argsort(self._n_events, kind="stable")
        affordable = np.cumsum(self._n_events[order]) * _MIN_IMPUTATIONS <= _MAX_EVENTS
        result = np.zeros(order.size, dtype=np.bool_)
        result[order[affordable]] = True
        return result

    def _draw_events(self) -> Iterator[tuple[int, list[FloatArray]]]:
        """Draw rows that leave their most likely label for an event class; the other labels are nearly normal.

        A row with an event leaves the label that it would have otherwise, which is drawn, too.
        """
        self._check_pairs()
        rng = np.random.default_rng([self.seed, 12])
        expected = float(self._n_events[self._event_classes].sum())
        n = int(np.clip(_MAX_EVENTS / max(expected, 1.0), _MIN_IMPUTATIONS, N_IMPUTATIONS))
        at, is_complete = np.arange(self.missing.size), bool(self._event_classes.all())
        base = np.zeros((self.missing.size, self._event_classes.size))
        base[at, self._likely] = 1.0
        normal_terms = None if is_complete else [self._normal_terms(i) for i in range(len(self.functionals))]
        for draw, size in self._sizes(n):
            q = self.posterior.of_draw(draw)
            rates = q * self._event_classes
            rates[at, self._likely] = 0.0
            event = np.minimum(rates.sum(axis=1), 1.0 - _CERTAIN)
            if not is_complete:
                base = (q - rates) / (1.0 - event)[:, None]
            rate, step = -np.log1p(-event), max(1, int(_BATCH / max(1.0, expected)))
            local = [(sums.at_draws(q), metrics) for sums, metrics in self._by_sums]
            expectations = [sums.expect(base) for sums, _ in local]
            for start in range(0, size, step):
                n_drawn = min(step, size - start)
                imputation, cell = self._draw_event_cells(rate, n_drawn, rng)
                label = _pick_labels(rates, cell, rng)
                replaced = self._likely[cell] if is_complete else _pick_labels(base, cell, rng)
                values: list[FloatArray] = [np.zeros(0)] * len(self.functionals)
                for (sums, metrics), expectation in zip(local, expectations, strict=True):
                    drawn = np.repeat(expectation[:, None], n_drawn, axis=1)
                    sums.add_changes(drawn, imputation, cell, label, 1.0)
                    sums.add_changes(drawn, imputation, cell, replaced, -1.0)
                    drawn[np.abs(drawn) <= _ROUNDING * (1.0 + np.abs(expectation))[:, None]] = 0.0
                    for i in metrics:
                        values[i] = self.functionals[i].at(drawn)
                        if normal_terms is not None:
                            sd, skewness = (np.interp(draw, self.moments[i].draws, term) for term in normal_terms[i])
                            x = rng.standard_normal(n_drawn)
                            values[i] += sd * (x + skewness / 6.0 * (x**2 - 1.0))
                yield draw, values

    def _check_pairs(self) -> None:
        """Refuse one-against-one ROC-AUC of classes that may have no row, because it is linearized here."""
        for sums, _ in self._by_sums:
            if isinstance(sums, PairSums) and (sums.totals(sums.constant) <= 0.0).any():
                raise MethodError(
                    "metrics",
                    "'roc_auc_ovo' has a class without a label, and too many rows without one to draw them all",
                    "",
                    "Use 'roc_auc_ovr', or leave the class out.",
                )

    def _draw_event_cells(self, rate: FloatArray, size: int, rng: np.random.Generator) -> tuple[IntArray, IntArray]:
        """Draw the imputation and cell of each row with an event; a row has at most one."""
        cumulative = np.cumsum(rate * self.missing)
        imputation = np.repeat(np.arange(size), rng.poisson(cumulative[-1], size))
        uniform = rng.random(imputation.size) * cumulative[-1]
        cell = np.minimum(np.searchsorted(cumulative, uniform, side="right"), cumulative.size - 1)
        row = self._first_row[cell] + (rng.random(cell.size) * self.missing[cell]).astype(np.int64)
        imputation, row = np.divmod(np.unique(imputation * self._cell_of_row.size + row), self._cell_of_row.size)
        return imputation, self._cell_of_row[row]

    @cached_property
    def _cell_of_row(self) -> IntArray:
        return np.repeat(np.arange(self.missing.size), self.missing)

    @cached_property
    def _first_row(self) -> IntArray:
        return np.cumsum(self.missing) - self.missing

    def _normal_terms(self, i: int) -> tuple[FloatArray, FloatArray]:
        """Return standard deviation and skewness that labels of other classes add to a metric, at the kept draws."""
        functional, moments = self.functionals[i], self.moments[i]
        sd, skewness = np.zeros((2, len(moments.q)))
        spread = np.sqrt(np.maximum(np.einsum("bjj->jb", moments.covariance), 0.0))
        gradient, _ = compute_class_derivatives(functional, moments.mean[:, moments.draws], spread, hessian=False)
        for k, (q, g) in enumerate(zip(moments.q, gradient, strict=True)):
            is_likely = np.arange(q.shape[1]) == q.argmax(axis=1)[:, None]
            base = q * (~self._event_classes | is_likely)
            base = base / base.sum(axis=1, keepdims=True)
            sums = moments.rows.at_draws(base)
            z = sums.project(g)
            z = z - (base * z).sum(axis=1, keepdims=True)
            variance, third = (float(np.einsum("i,ik,ik->", sums.rows, base * z, x)) for x in (z, z * z))
            if variance > 0.0:
                sd[k], skewness[k] = np.sqrt(variance), np.clip(third / variance**1.5, -1.0, 1.0)
        return sd, skewness


def _pick_labels(probability: FloatArray, cell: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw a label for each of the given cells in proportion to the probabilities of its row."""
    cumulative = np.cumsum(probability[cell], axis=1)
    uniform = rng.random(cell.size) * cumulative[:, -1]
    return np.asarray((uniform[:, None] >= cumulative[:, :-1]).sum(axis=1))
