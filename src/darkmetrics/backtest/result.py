"""What a backtest found: for every way and metric, how the predicted laws compare with what came true."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.uniformity import floors, ks_to_uniform, w1_to_uniform
from darkmetrics.tables import html_lines, html_table, text_table

_BOOTSTRAPS = 1000
_CONFIDENCE = 0.9


class Estimate(NamedTuple):
    """A figure with its 90% bootstrap interval over the repeats."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Scores:
    """One way and one metric: the truth and the predicted law in every repeat.

    Attributes
    ----------
    truth : array
        The metric with all labels.
    centre, low, high : array
        Mean and interval of the predicted law.
    pit : array
        Where the truth falls in the law; uniform on [0, 1] if laws are right.
    n_failed : int
        Repeats without a law: the metric was undefined, or the label model found too little to learn from.
    """

    truth: FloatArray
    centre: FloatArray
    low: FloatArray
    high: FloatArray
    pit: FloatArray
    n_failed: int = 0

    @property
    def n(self) -> int:
        """Repeats that count."""
        return self.truth.size

    @cached_property
    def coverage(self) -> Estimate:
        """Share of repeats whose interval held the truth."""
        return self._mean(((self.low <= self.truth + 1e-12) & (self.truth <= self.high + 1e-12)).astype(np.float64))

    @cached_property
    def width(self) -> Estimate:
        """Mean width of the intervals."""
        return self._mean(self.high - self.low)

    @cached_property
    def mae(self) -> Estimate:
        """Mean absolute error of the centre."""
        return self._mean(np.abs(self.centre - self.truth))

    @cached_property
    def rmse(self) -> Estimate:
        """Root mean squared error of the centre."""
        return Estimate(*(float(np.sqrt(end)) for end in self._mean((self.centre - self.truth) ** 2)))

    @cached_property
    def w1(self) -> Estimate:
        """Wasserstein-1 distance of the PIT values to uniform; `w1_floor` is what a perfect law shows."""
        return self._of_pit(w1_to_uniform)

    @cached_property
    def ks(self) -> Estimate:
        """Kolmogorov-Smirnov distance of the PIT values to uniform; `ks_floor` is what a perfect law shows."""
        return self._of_pit(ks_to_uniform)

    @property
    def w1_floor(self) -> float:
        """Mean W1 of as many values that are uniform."""
        return floors(self.n)[0]

    @property
    def ks_floor(self) -> float:
        """Mean KS distance of as many values that are uniform."""
        return floors(self.n)[1]

    def _mean(self, values: FloatArray) -> Estimate:
        return self._interval(float(values.mean()), values[self._resamples].mean(axis=1))

    def _of_pit(self, distance: Callable[[FloatArray], FloatArray]) -> Estimate:
        resampled = distance(np.sort(self.pit[self._resamples], axis=1))
        return self._interval(float(distance(np.sort(self.pit))), resampled)

    @cached_property
    def _resamples(self) -> Any:
        # Always the same draws, so that figures can be compared and repeated.
        return np.random.default_rng(0).integers(0, self.n, (_BOOTSTRAPS, self.n))

    @staticmethod
    def _interval(value: float, resampled: FloatArray) -> Estimate:
        low, high = np.quantile(resampled, [0.5 - _CONFIDENCE / 2, 0.5 + _CONFIDENCE / 2])
        # Resampling adds some distance to uniform of its own, so that a small one may fall below all of its resamples.
        return Estimate(value, min(float(low), value), max(float(high), value))

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain numbers; each with the ends of its 90% bootstrap interval."""
        figures = {name: getattr(self, name) for name in ("w1", "ks", "mae", "rmse", "coverage", "width")}
        flat = {
            key: value
            for name, (value, low, high) in figures.items()
            for key, value in ((name, value), (f"{name}_low", low), (f"{name}_high", high))
        }
        return {
            "repeats": self.n,
            "failed": self.n_failed,
            **flat,
            "w1_floor": self.w1_floor,
            "ks_floor": self.ks_floor,
        }


@dataclass(frozen=True, eq=False, repr=False)
class Backtest:
    """How well did the laws hold where the labels are known? One `Scores` per way (label model and method) and metric.

    Attributes
    ----------
    scores : mapping from way to mapping from metric name to Scores
        What was found. `result[way, metric]` is one of them, `result[metric]` if there is one way.
    mechanism : str
        How labels were hidden.
    notes : tuple of str
        What had to be given up on the way, such as fewer rows hidden than asked for.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> ways = ["prevalence", "half"]
    >>> result = dm.backtest(y_true, y_score, label_models=ways, metrics="accuracy", n_repeats=20, rng=0)
    >>> [round(result[way, "accuracy"].mae.value, 3) for way in ways]
    [0.061, 0.068]
    """

    scores: Mapping[str, Mapping[str, Scores]]
    mechanism: str
    n_rows: int
    n_repeats: int
    confidence_level: float
    notes: tuple[str, ...] = ()

    def __getitem__(self, key: str | tuple[str, str]) -> Scores:
        if isinstance(key, tuple):
            return self.scores[key[0]][key[1]]
        (only,) = self.scores.values() if len(self.scores) == 1 else (self.scores[key],)
        return only[key]

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single repeats, ready for JSON."""
        return {
            "schema": "darkmetrics.backtest/1",
            "mechanism": self.mechanism,
            "rows": self.n_rows,
            "repeats": self.n_repeats,
            "confidence_level": self.confidence_level,
            "notes": list(self.notes),
            "scores": {
                way: {name: score.to_dict() for name, score in of_way.items()} for way, of_way in self.scores.items()
            },
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per way and metric, as a pandas, Polars or PyArrow frame."""
        rows = [
            {"way": way, "metric": name, **score.to_dict()}
            for way, of_way in self.scores.items()
            for name, score in of_way.items()
        ]
        return frames.to_native_frame({key: [row[key] for row in rows] for key in rows[0]}, backend)

    def __repr__(self) -> str:
        return f"<Backtest of {len(self.scores)} ways on {self.n_rows:,} rows, {self.n_repeats:,} repeats>"

    def __str__(self) -> str:
        return "\n".join([*self._words(), "", *text_table(*self._table(), words=2), "", *self._notes()])

    def _repr_html_(self) -> str:
        return f"<div>{html_lines(self._words())}{html_table(*self._table())}{html_lines(self._notes())}</div>"

    def _words(self) -> list[str]:
        return [f"{self.n_rows:,} labelled rows, labels hidden {self.n_repeats:,} times: {self.mechanism}", *self.notes]

    def _notes(self) -> list[str]:
        level = f"{self.confidence_level:.0%}"
        return [
            f"Intervals are right if about {level} of them hold the truth, laws if W1 is near its floor.",
            "In brackets: 90% bootstrap intervals over the repeats.",
        ]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["way", "metric", "coverage", "width", "mean abs. error", "W1 of PIT", "floor", "failed"]
        rows = [
            [
                way,
                name,
                f"{score.coverage.value:.0%} ({score.coverage.low:.0%} to {score.coverage.high:.0%})",
                f"{score.width.value:.3f}",
                f"{score.mae.value:.4f}",
                f"{score.w1.value:.3f} ({score.w1.low:.3f} to {score.w1.high:.3f})",
                f"{score.w1_floor:.3f}",
                str(score.n_failed),
            ]
            for way, of_way in self.scores.items()
            for name, score in of_way.items()
        ]
        return header, rows
