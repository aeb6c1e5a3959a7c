"""History replayed: what would have been said at earlier dates, with the labels known then, against what came true.

The truth is made of labels that are known now. Rows without one take no part, neither then nor now: those whose label
never comes are no bias for the others. But of rows that were scored lately, only those with fast labels are known now;
a date counts only if hardly any label takes longer than the time that has passed since.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import AnyArray, BoolArray, FloatArray
from darkmetrics.argument_types import ProgressLike
from darkmetrics.backtesting.result import Backtest, Replayed
from darkmetrics.backtesting.scores import Found, check_any, collected, notes_of
from darkmetrics.backtesting.setups import Ground, Setup
from darkmetrics.data.ages import positive_span
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import check_finite, check_length
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.missing import Covariates, Delayed, Fixed, Mechanism
from darkmetrics.missingness.delay_groups import fit_groups
from darkmetrics.missingness.fixed import has_probabilities
from darkmetrics.processes import generators_from, run_each
from darkmetrics.question import Question
from darkmetrics.wording import named

# A date counts if at most this share of the labels of either class takes longer than the time since.
_STILL_TO_COME = 0.05
# Stretches of rows, as long as the window, in which levels may differ; what is older is one.
_STRETCHES = 60


@dataclass(frozen=True, eq=False)
class History:
    """Rows whose label is known now: when they were scored and when the label came (NaN: the maturity declared it)."""

    y: BoolArray
    score: FloatArray
    scored: FloatArray
    came: FloatArray
    clock: frames.Times
    now: float
    maturity: float | None
    n_open: int

    def set_of(self, rows: AnyArray, when: float, threshold: float | None, setup: Setup | None = None) -> EvaluationSet:
        """Rows with their ages and the labels known at a date."""
        known = self.came[rows] <= when
        partly = np.where(known, self.y[rows], np.nan)
        age, delay = when - self.scored[rows], np.where(known, self.came[rows] - self.scored[rows], np.nan)
        maturity = self.maturity
        settings: dict[str, Any] = {"age": age, "delay": delay, "maturity": maturity}
        if self.clock.days:
            day = np.timedelta64(1, "D") / np.timedelta64(1, "us")
            settings = {
                "age": (age * day).round().astype("timedelta64[us]"),
                "delay": (delay * day).round().astype("timedelta64[us]") if known.any() else None,
                "maturity": None if maturity is None else np.timedelta64(round(maturity * day), "us"),
            }
        mechanism: Mechanism = Delayed(**settings)
        if setup is not None and isinstance(setup.mechanism, Fixed) and has_probabilities(setup.mechanism):
            mechanism = Fixed(np.asarray(setup.mechanism.probability)[rows])
        return EvaluationSet(partly, self.score[rows], threshold=threshold, missingness=mechanism)

    def slower(self, span: float) -> float:
        """The share of labels that took longer than this, of the class that takes longer."""
        if self.maturity is not None:
            return 0.0 if span >= self.maturity else 1.0
        age, delay = self.now - self.scored, self.came - self.scored
        # Of rows that are hardly older none can have been seen to take longer; twice the span is older enough.
        old = age >= 2.0 * span if np.any(age >= 2.0 * span) else age >= span
        shares = [float(np.mean(delay[old & kind] > span)) for kind in (self.y, ~self.y) if np.any(old & kind)]
        return max(shares, default=1.0)


def history_from(
    labels: tuple[BoolArray, BoolArray], score: FloatArray, scored_at: Any, labeled_at: Any, maturity: Any, dates: Any
) -> tuple[History, BoolArray, dict[str, float]]:
    """The rows whose label is known now, which they are, and the dates with their ends; `labels`: positive, missing."""
    positive, missing = labels
    for name, value in (("scored_at", scored_at), ("labeled_at", labeled_at)):
        if value is None:
            raise InputError(
                name,
                "missing",
                f"{named('as_of')} replays history, which needs {named('scored_at')} and {named('labeled_at')}.",
            )
    scored, came = frames.time_column(scored_at, "scored_at"), frames.time_column(labeled_at, "labeled_at")
    if not score.size:
        raise InputError("y_true", "no rows", "A backtest needs some of both classes.")
    # One date will do, and a text is one; what can be gone through only once, or has no order, is a list of them too.
    if isinstance(dates, (Iterator, Set)):
        dates = list(dates)
    when = frames.time_column([dates] if isinstance(dates, str) or not hasattr(dates, "__len__") else dates, "as_of")
    if not when.number.size or np.isnan(when.number).any():
        raise InputError("as_of", "no dates, or a missing one", "It must be a list of the dates to replay.")
    check_length(scored.number, "scored_at", score.size)
    check_length(came.number, "labeled_at", score.size)
    check_finite(scored.number, "scored_at", "Every row needs the time at which it was scored.")
    timed = ~np.isnan(came.number)
    _check_alike(scored, came if timed.any() else scored, when)
    _refuse("labeled_at", timed & (came.number < scored.number), "comes before scored_at, and no label can")
    _refuse("labeled_at", timed & missing, "has a time, but the row has no label")
    limit = _span("maturity", maturity, scored)
    _refuse("labeled_at", ~timed & ~missing & (positive if limit is not None else True), "has none, but has a label")
    # A date is over when its day is: of columns with the time of day, all of that day counts.
    until = when.number + (1.0 if when.days and when.whole and not (scored.whole and came.whole) else 0.0)
    now = float(np.nanmax(np.concatenate([scored.number, came.number[timed], until])))
    known = timed if limit is None else timed | (now - scored.number >= limit)
    history = History(
        positive[known] & timed[known],
        score[known],
        scored.number[known],
        came.number[known],
        scored,
        now,
        limit,
        int((~known).sum()),
    )
    return history, known, dict(zip(map(when.shown, when.number.tolist()), until.tolist(), strict=True))


def _span(name: str, value: Any, clock: frames.Times) -> float | None:
    """A span of time, in days or in the unit of the user's numbers."""
    if value is None:
        return None
    return positive_span(name, value, days=clock.days)


def _check_alike(scored: frames.Times, *others: frames.Times) -> None:
    for name, other in zip(("labeled_at", "as_of"), others, strict=True):
        if other.days != scored.days:
            raise InputError(
                name,
                f"{_kind(other)}, but {named('scored_at')} has {_kind(scored)}",
                "All times must be of one kind.",
            )
        if other.zoned != scored.zoned and not (name == "as_of" and other.whole and scored.zoned):
            zone = "has a time zone" if other.zoned else "has no time zone"
            raise InputError(
                name,
                f"{zone}, unlike {named('scored_at')}",
                "All times need a zone, or none.",
                "Pass all of them with a zone, or none.",
            )


def _kind(times: frames.Times) -> str:
    return "dates or times" if times.days else "numbers"


def _refuse(name: str, bad: BoolArray, rule: str) -> None:
    if bad.any():
        raise InputError(name, f"row {int(np.argmax(bad))} {rule}")


class _Date(NamedTuple):
    """A date to replay, when it ends, and the source of randomness for it."""

    name: str
    when: float
    rng: np.random.Generator


@dataclass(frozen=True, eq=False)
class _Task:
    """What every date needs."""

    history: History
    setups: Mapping[str, Setup]
    questions: Mapping[str, Question]
    threshold: float | None
    window: float | None

    def run(self, date: _Date) -> tuple[Found, dict[str, int]]:
        """Evaluate with the labels known then, compare with those known now."""
        history, when = self.history, date.when
        rows = np.flatnonzero(history.scored <= when)
        stretch = np.zeros(rows.size, dtype=np.int64)
        if self.window is not None:
            stretch = np.minimum((when - history.scored[rows]) // self.window, _STRETCHES - 1).astype(np.int64)
        asked = rows[stretch == 0]
        complete = EvaluationSet(history.y[asked].astype(np.float64), history.score[asked], threshold=self.threshold)
        metrics = next(iter(self.questions.values())).metrics
        found = Found({metric.name: metric.value(complete, metric.undefined_as) for metric in metrics}, {}, {})
        within = float(date.rng.random())
        for name, setup in self.setups.items():
            found.add(name, partial(self._answer, name, setup, rows, stretch, date), within)
        then = history.set_of(asked, when, self.threshold)
        return found, {"rows": then.n_rows, "labeled": then.n_labeled}

    def _answer(self, name: str, setup: Setup, rows: AnyArray, stretch: AnyArray, date: _Date) -> Evaluation:
        question = self.questions[name]
        data = setup.rows_of(self.history.set_of(rows[stretch == 0], date.when, self.threshold, setup))
        if isinstance(setup.model, Delayed) and stretch.any() and data.n_missing:
            older = [rows[stretch == number] for number in np.unique(stretch)]
            sets = [self.history.set_of(part, date.when, self.threshold) for part in older]
            question = replace(question, model=fit_groups(setup.model, sets)[0])
        return question.answer(data, date.rng)


def replayed(
    asked: Question,
    history: History,
    dates: Mapping[str, float],
    ground: Ground,
    setups: Mapping[str, Setup],
    *,
    window: Any,
    rng: Any,
    jobs: int,
    progress: ProgressLike,
) -> Backtest:
    """The backtest over dates."""
    if any(isinstance(setup.model, Covariates) for setup in setups.values()):
        raise InputError(
            "missingness",
            f"Covariates with {named('as_of')}",
            "Covariates belong to all rows, and a date has only some of them.",
            "Leave one of the two out.",
        )
    span = _span("window", window, history.clock)
    left_out = {name: _left_out(history, when, span) for name, when in dates.items()}
    notes = [f"{name} is left out: {why}" for name, why in left_out.items() if why]
    kept = sorted((when, name) for name, when in dates.items() if not left_out[name])
    if not kept:
        raise InputError("as_of", "no date that can be compared with the labels known now", " ".join(notes))
    questions = {
        name: replace(asked, model=setup.model, method=setup.method, believes=False) for name, setup in setups.items()
    }
    task = _Task(history, setups, questions, ground.complete.threshold, span)
    sources = generators_from(rng, len(kept))
    pieces = [_Date(name, when, source) for (when, name), source in zip(kept, sources, strict=True)]
    results: list[tuple[Found, dict[str, int]]] = run_each(task.run, pieces, jobs, progress, "Dates")
    found = [one for one, _ in results]
    scores = {setup: {name: collected(found, setup, name) for name in found[0].truth} for setup in setups}
    if history.n_open:
        now = history.clock.shown(history.now)
        notes.append(f"{history.n_open:,} rows have no label by {now} and take no part, then or now.")
    notes += notes_of(found, setups, "date")
    check_any(scores, notes, f"any of {len(kept):,} dates")
    records = [
        Replayed(date.name, setup, metric, counts["rows"], counts["labeled"], one.truth[metric], *distribution)
        for date, (one, counts) in zip(pieces, results, strict=True)
        for (setup, metric), distribution in one.distributions.items()
    ]
    what = "rows scored until then" if span is None else f"rows scored in the {_span_text(span, history)} before"
    mechanism = f"the labels known at each date, {what}"
    confidence_level = asked.confidence_level
    return Backtest(scores, mechanism, history.y.size, len(kept), confidence_level, tuple(notes), tuple(records))


def _span_text(span: float, history: History) -> str:
    return f"{span:g} days" if history.clock.days else f"{span:g}"


def _left_out(history: History, when: float, window: float | None) -> str:
    """Why a date cannot be compared with what is known now; empty if it can."""
    age = when - history.scored
    asked = (age >= 0.0) & (age < (np.inf if window is None else window))
    if not asked.any():
        return "no rows were scored before it."
    if not np.any(history.came[asked] > when) and not np.any(np.isnan(history.came[asked])):
        return "all of its labels were known then."
    slower = history.slower(history.now - when)
    if slower > _STILL_TO_COME:
        return f"{slower:.0%} of the labels of a class take longer than the time since."
    return ""
