"""What a backtest found, for every setup and metric: as words, as a table and as numbers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from darkmetrics import frames
from darkmetrics.backtesting.scores import Scores
from darkmetrics.exceptions import UnknownNameError, unknown_name
from darkmetrics.result import Result
from darkmetrics.tables import level_text


class Replayed(NamedTuple):
    """What was said of a metric at an earlier date, and what came true; `rows` and `labeled` are as they were then."""

    as_of: str
    setup: str
    metric: str
    rows: int
    labeled: int
    truth: float
    mean: float
    low: float
    high: float
    pit: float


@dataclass(frozen=True, eq=False, repr=False)
class Backtest(Result):
    """How well did the laws hold where the labels are known? One `Scores` per setup and metric.

    A setup is a label model with a method.

    Attributes
    ----------
    scores : mapping from setup to mapping from metric name to Scores
        What was found. `result[setup, metric]` is one of them, `result[metric]` if there is one setup.
    mechanism : str
        How labels were hidden.
    n_rows, n_repeats : int
        Labeled rows, and how often part of their labels was hidden.
    confidence_level : float
        What the intervals promise.
    notes : tuple of str
        What had to be given up, such as fewer rows hidden than asked for, and why repeats failed.
    history : tuple of Replayed
        With `as_of`, what was said at each date: one entry per date, setup and metric.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [0, 1, 0, 1, 1, 0, 1, 1] * 20, [0.1, 0.8, 0.3, 0.6, 0.9, 0.6, 0.2, 0.7] * 20
    >>> setups = {"prevalence": dm.missing.TrainingPrevalence(), "half": dm.missing.Fixed(0.5)}
    >>> result = dm.backtest(y_true, y_score, metrics="accuracy", n_repeats=20, rng=0, missingness=setups)
    >>> [round(result[setup, "accuracy"].mae.value, 3) for setup in setups]
    [0.061, 0.068]
    """

    _text_columns = 2

    scores: Mapping[str, Mapping[str, Scores]]
    mechanism: str
    n_rows: int
    n_repeats: int
    confidence_level: float
    notes: tuple[str, ...] = ()
    history: tuple[Replayed, ...] = ()

    # Neither setups nor metrics are "the" keys, so nothing is iterated; else Python would try 0, 1, 2 and so on.
    __iter__ = None

    def __getitem__(self, key: str | tuple[str, str]) -> Scores:
        if not isinstance(key, tuple):
            if len(self.scores) != 1:
                raise UnknownNameError(
                    "key",
                    f"{key!r}, with {len(self.scores)} setups",
                    "",
                    f"Write result[setup, metric]: {self._choices()}.",
                )
            key = (next(iter(self.scores)), key)
        if len(key) != 2:
            raise UnknownNameError("key", repr(key), "", f"Write result[setup, metric]: {self._choices()}.")
        setup, metric = key
        if setup not in self.scores:
            raise unknown_name("setup", "setup", str(setup), self.scores)
        if metric not in self.scores[setup]:
            raise unknown_name("metric", "metric", str(metric), self.scores[setup])
        return self.scores[setup][metric]

    def _choices(self) -> str:
        setups, metrics = list(self.scores), list(next(iter(self.scores.values())))
        return f"setups are {', '.join(map(repr, setups))}, metrics {', '.join(map(repr, metrics))}"

    def to_dict(self) -> dict[str, Any]:
        """Everything but the single repeats, ready for JSON; dates that were replayed are there one by one."""
        history = [one._asdict() for one in self.history]
        return {
            "schema": "darkmetrics.backtest/1",
            "mechanism": self.mechanism,
            "rows": self.n_rows,
            "repeats": self.n_repeats,
            "confidence_level": self.confidence_level,
            "notes": list(self.notes),
            "scores": {
                setup: {name: score.to_dict() for name, score in of_setup.items()}
                for setup, of_setup in self.scores.items()
            },
            **({"history": history} if history else {}),
        }

    def to_records(self) -> list[dict[str, Any]]:
        return [
            {"setup": setup, "metric": name, **score.to_dict()}
            for setup, of_setup in self.scores.items()
            for name, score in of_setup.items()
        ]

    def history_frame(self, backend: str | None = None) -> Any:
        """With `as_of`: one row per date, setup and metric, as a pandas, Polars or PyArrow frame."""
        columns = {name: [getattr(one, name) for one in self.history] for name in Replayed._fields}
        return frames.to_native_frame(columns, backend)

    def __repr__(self) -> str:
        setups, rows, repeats = (
            f"{number:,} {word}{'' if number == 1 else 's'}"
            for number, word in ((len(self.scores), "setup"), (self.n_rows, "row"), (self.n_repeats, self._repeat))
        )
        return f"<Backtest of {setups} on {rows}, {repeats}>"

    def _words(self) -> list[str]:
        if self.history:
            dates = f"{self.n_repeats:,} {self._repeat}{'' if self.n_repeats == 1 else 's'}"
            first, last = self.history[0].as_of, self.history[-1].as_of
            return [f"{self.n_rows:,} rows, {dates} replayed ({first} to {last}): {self.mechanism}", *self.notes]
        times = "once" if self.n_repeats == 1 else f"{self.n_repeats:,} times"
        return [f"{self.n_rows:,} labeled rows, labels hidden {times}: {self.mechanism}", *self.notes]

    def _notes(self) -> list[str]:
        level = level_text(self.confidence_level)
        alike = "Repeats share rows: right laws that learn from visible labels show about twice the floor, others more."
        if self.history:
            alike = "Dates may share rows, and err together then. history_frame() has each of them."
        return [
            f"Intervals are right if about {level} of them hold the truth, laws if W1 is near its floor.",
            alike,
            f"In brackets: 90% intervals over the {self._repeat}s, Wilson's for coverage, bootstrap for W1.",
        ]

    @property
    def _repeat(self) -> str:
        return "date" if self.history else "repeat"

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = ["setup", "metric", "coverage", "width", "mean abs. error", "W1 of PIT", "floor", "failed"]
        rows = [
            [setup, name, *_cells(score), str(score.n_failed)]
            for setup, of_setup in self.scores.items()
            for name, score in of_setup.items()
        ]
        return header, rows


def _cells(score: Scores) -> list[str]:
    if not score.n:
        return ["-"] * 5
    coverage, w1 = score.coverage, score.w1
    return [
        f"{coverage.value:.0%} ({coverage.low:.0%} to {coverage.high:.0%})",
        f"{score.width.value:.3f}",
        f"{score.mae.value:.4f}",
        f"{w1.value:.3f} ({w1.low:.3f} to {w1.high:.3f})",
        f"{score.w1_floor:.3f}",
    ]
