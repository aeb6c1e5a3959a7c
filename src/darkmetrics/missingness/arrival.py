"""Arrival: when labels come, how many positives are still to come, and whether delays are what they are taken for."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.argument_types import PointInTime
from darkmetrics.data.rules import is_number
from darkmetrics.exceptions import AssumptionWarning, CalibrationWarning, InputError, MissingnessWarning
from darkmetrics.missingness.base import Estimate, percent_text
from darkmetrics.missingness.checks import CLEARLY, LEVEL
from darkmetrics.result import Result
from darkmetrics.tables import plain_numbers
from darkmetrics.wording import named, setting

# With labels in fewer bins of ages, or more of all rows in one of them, ages do not say why labels are missing.
_LEAST_BINS, _NEARLY_ALL = 3, 0.95
# From this chance on that shares of positives turn quickly, ages alone are said not to tell such a turn of new rows.
_LIKELY = 0.5

CLASSES = ("positives", "negatives")


class DelayCheck(NamedTuple):
    """Whether delays are the same in two parts of the rows.

    Attributes
    ----------
    p_value : float
        Of a test that they are.
    effect : float
        How far they differ: the logarithm of the factor between the odds of getting the label in a stretch of time;
        where no delays are known, how far the share of rows without a label is off at some age.
    is_small : bool
        Whether that is too little to matter.
    words : str
        The result, as a sentence.
    """

    p_value: float
    effect: float
    is_small: bool
    words: str

    @property
    def differs(self) -> bool:
        """Whether they differ at the 5% level, by more than a little."""
        return self.p_value < LEVEL and not self.is_small

    @property
    def is_clear(self) -> bool:
        """Whether they clearly do (0.1% level): worth a warning."""
        return self.p_value < CLEARLY and not self.is_small


@dataclass(frozen=True)
class AgeBin:
    """A stretch of ages that the model tells apart, with its rows, and how many labels took so long (0: not known)."""

    low: float
    high: float
    rows: int
    positive: int
    negative: int
    missing: int
    arrived: int


@dataclass(frozen=True, eq=False)
class ClassArrival:
    """When the labels of one class come; estimates have 90% intervals.

    Attributes
    ----------
    share, low, high : array
        Share of labels that are in by the end of each bin of ages, of all rows of the class, with its 90% band.
    missing : Estimate
        How many of the missing rows are of this class.
    to_come : Estimate
        How many of these get their label by the oldest age.
    wait : Estimate
        Time until nine in ten of those have it. How these few labels happen to fall is part of the interval.
    half, most : Estimate
        The age by which half, and nine in ten, of the labels that come by the oldest age are in.
    never : Estimate
        The share that has no label at the oldest age.
    """

    share: FloatArray
    low: FloatArray
    high: FloatArray
    missing: Estimate
    to_come: Estimate
    wait: Estimate
    half: Estimate
    most: Estimate
    never: Estimate


@dataclass(frozen=True, eq=False, repr=False)
class Arrival(Result):
    """When labels come, as the ages of rows say (`Evaluation.arrival`). Print it for words.

    Attributes
    ----------
    bins : tuple of AgeBin
        The stretches of ages that were told apart, with their counts.
    positives, negatives : ClassArrival
        For each class the share of labels that are in by age, what is still to come, and what never comes.
    wait : Estimate
        Time until nine in ten of the labels that are still to come, of both classes, are in.
    missing : int
        Rows without a label.
    by_score, by_cohort : DelayCheck or None
        Are delays the same at low and high scores, and for rows scored early and late?
    by_age_and_score : DelayCheck or None
        Does the model fit the rows without a label at all ages and scores? Where it clearly does not, intervals are
        widened by the dispersion of these counts.
    absent : mapping
        For each check that is None: why.
    days : bool
        Whether ages are in days; else they are in a unit of the user's own.
    timed : bool
        Whether delays are known, and not ages alone.
    turning : float
        How likely it is that the share of positives at a score turns quickly with the time of scoring.
    maturity : float or None
        Rows of about this age and without a label count as negative.
    as_of : date, datetime or None
        When ages were taken: makes dates of what is to come.

    Notes
    -----
    Nothing is known beyond the oldest age: what has not come by then may come later, or never. Where a share never
    comes the wait errs on the long side, since no row can say that nothing comes at a high age, only that little does.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(3000)
    >>> y = rng.random(3000) < y_score
    >>> age, delay = rng.integers(0, 100, 3000), np.where(y, rng.exponential(40, 3000), rng.exponential(10, 3000))
    >>> days = age.astype("timedelta64[D]")
    >>> result = dm.evaluate(
    ...     np.where(delay <= age, y, np.nan), y_score, missingness=dm.missing.Delayed(age=days), metrics="recall"
    ... )
    >>> print(result.arrival.headline().split("(")[0])
    Of the 715 missing rows about 513
    >>> int(y[delay > age].sum())
    558
    """

    bins: tuple[AgeBin, ...]
    positives: ClassArrival
    negatives: ClassArrival
    wait: Estimate
    missing: int
    by_score: DelayCheck | None
    by_cohort: DelayCheck | None
    absent: Mapping[str, str]
    days: bool
    timed: bool
    turning: float = 0.0
    maturity: float | None = None
    as_of: date | None = None
    by_age_and_score: DelayCheck | None = None

    def at(self, as_of: PointInTime | None) -> "Arrival":
        """The same with the date at which ages were taken: a date, a datetime or ISO text, as `as_of` of tables."""
        return replace(self, as_of=None if as_of is None else frames.AsOf.of(as_of).given)

    @property
    def oldest(self) -> float:
        """The end of the oldest bin of ages."""
        return self.bins[-1].high

    @property
    def tells(self) -> bool:
        """Whether ages can say why labels are missing: they differ, and there are labels at several of them."""
        rows = sum(b.rows for b in self.bins)
        labeled = sum(b.positive + b.negative > 0 for b in self.bins)
        return labeled >= _LEAST_BINS and max(b.rows for b in self.bins) <= _NEARLY_ALL * rows

    def date_of(self, wait: float) -> date | None:
        """The date after so many days, where it is known when ages were taken and they are in days.

        None where it is not, and where it is beyond the year 9999, the last one of the calendar.
        """
        if not is_number(wait) or np.isnan(wait):
            raise InputError("wait", f"{wait!r}", "It must be a number of days.")
        if self.as_of is None or not self.days:
            return None
        start = self.as_of.date() if isinstance(self.as_of, datetime) else self.as_of
        left = (date.max - start).days
        return start + timedelta(days=int(np.ceil(wait))) if -start.toordinal() < wait <= left else None

    def headline(self) -> str:
        """How many positives are still to come, and by when, in a sentence."""
        estimate = self.positives.missing
        rows = "the missing row" if self.missing == 1 else f"the {self.missing:,} missing rows"
        day = self.date_of(0.0)
        since = "Of" if day is None else f"As of {day.isoformat()}, of"
        number = f"{estimate.mean:,.0f} ({estimate.low:,.0f} to {estimate.high:,.0f})"
        text = f"{since} {rows} about {number} are positives not confirmed yet"
        if not self.positives.to_come.mean >= 0.5:
            return f"{text}; hardly any will be before the age of {self._time(self.oldest)}."
        when = self.date_of(self.positives.wait.mean)
        wait = self._time(self.positives.wait.mean)
        by = f"by {when.isoformat()}" if when is not None else f"within {'' if self.days else 'a time of '}{wait}"
        number = "nine in ten of those that ever are will be" if self.maturity is None else "nine in ten will be"
        return f"{text}; {by} {number}."

    def _words(self) -> list[str]:
        """What is known about when labels come, sentence by sentence."""
        lines = [self.headline()]
        if not self.tells:
            return [*lines, f"R{self._cannot_tell()[1:]}"]
        parts = [
            f"{name} by the age of {self._time(of.half.mean)} and {self._time(of.most.mean)}"
            for name, of in self._classes()
        ]
        ever = "" if self.maturity is not None else " (of those that ever come)"
        lines.append(f"Half and nine in ten of the labels{ever} are in: {'; '.join(parts)}.")
        if self.maturity is None:
            left = [f"{percent_text(of.never)} of {name}" for name, of in self._classes()]
            lines.append(
                f"At the end of the oldest bin of ages ({self._time(self.oldest)}) {' and '.join(left)} have no label; "
                "whether these ever come, no row is old enough to say."
            )
        else:
            lines.append(
                "Rows that have reached the maturity without a label count as negative; it is about "
                f"{self._time(self.maturity)}."
            )
        checks = [check.words for check in self.checks]
        return [*lines, *checks, *self._young(), *self._turns()]

    def in_short(self) -> list[str]:
        """What is still to come, and what was found about delays where it is not that they are equal."""
        lines = self._words()
        checks = [check.words for check in self.checks if check.differs]
        return [lines[0], *checks, *self._turns()] if self.tells else lines

    def doubts(self) -> list[tuple[type[Warning], str]]:
        """What calls the answer into question, each with the warning that it is worth."""
        if not self.tells:
            return [(CalibrationWarning, f"{named('age')}: {self._cannot_tell()}")]
        if self.by_cohort is not None and self.by_cohort.is_clear:
            text = (
                f"{self.by_cohort.words} The model assumes the same delays for all rows, so the estimates may be "
                "biased. Leave out rows from before the delays changed. If the labels were taken earlier than the day "
                f"up to which ages are counted ({named('as_of')}), pass the day of the labels. See .arrival."
            )
            return [(AssumptionWarning, text)]
        # Where cohorts differ the fit is off, and what it says of scores and of turns is not to be trusted.
        doubts: list[tuple[type[Warning], str]] = []
        if self.timed and self.by_score is not None and self.by_score.is_clear:
            text = (
                f"{self.by_score.words} The estimates allow for delays that change evenly with the rank of the score. "
                "If delays depend on the score in another way, the estimates are biased."
            )
            doubts.append((AssumptionWarning, text))
        if self.by_age_and_score is not None and self.by_age_and_score.is_clear:
            text = (
                f"{self.by_age_and_score.words} The model of delays does not fit these rows. Intervals are widened for "
                "this, and the estimates may still be biased. See .arrival."
            )
            doubts.append((AssumptionWarning, text))
        return doubts + [(MissingnessWarning, text) for text in self._turns()]

    @property
    def checks(self) -> list[DelayCheck]:
        """The checks that could be made."""
        return [check for check in (self.by_score, self.by_cohort, self.by_age_and_score) if check is not None]

    def _young(self) -> list[str]:
        """How many rows ages alone say little of: hardly a label of theirs can show that they are of another kind."""
        half = self.positives.half.mean
        young = sum(b.missing for b in self.bins if b.high <= half)
        if self.timed or not young:
            return []
        text = (
            f"{young:,} of the missing rows are younger than the age of {self._time(half)}, by which half of the "
            "labels of positives are in: that positives are as common among them as among older rows of the same "
            "score is taken for granted, and ages alone would not show otherwise."
        )
        return [text]

    def _turns(self) -> list[str]:
        """That a turn of the newest rows cannot be told from late labels, where shares of positives do turn."""
        if self.timed or not self.turning > _LIKELY:
            return []
        text = (
            "The fraction of positives at a score changes quickly with the time of scoring. Ages alone do not separate "
            "a change in the newest rows from delayed labels, so estimates for these rows depend on a prior. Pass the "
            f"times at which labels arrived ({setting('delay')} or {setting('labeled_at')})."
        )
        return [text]

    def _cannot_tell(self) -> str:
        return (
            "rows have too few different ages, or labels at too few ages, to estimate delays. The estimates are "
            "dominated by the prior for delays. Pass older rows, or state another mechanism."
        )

    def _classes(self) -> list[tuple[str, ClassArrival]]:
        return list(zip(CLASSES, (self.positives, self.negatives), strict=True))

    def _time(self, value: float) -> str:
        shown = f"{value:,.0f}" if value >= 10.0 else f"{value:.2g}"
        return f"{shown} days" if self.days else shown

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/evaluation.md` has the keys)."""
        mean = self.positives.wait.mean
        wait = None if np.isnan(mean) else self.date_of(mean)
        classes = {
            name: {
                **{key: getattr(of, key).tolist() for key in ("share", "low", "high")},
                **{key: _estimate(getattr(of, key)) for key in ("missing", "to_come", "wait", "half", "most", "never")},
            }
            for name, of in self._classes()
        }
        return {
            "words": self._words(),
            "missing": self.missing,
            "oldest": self.oldest,
            "unit": "days" if self.days else None,
            "as_of": None if self.as_of is None else self.as_of.isoformat(),
            "by_date": None if wait is None else wait.isoformat(),
            "wait": _estimate(self.wait),
            "timed": self.timed,
            "turning": self.turning,
            "maturity": self.maturity,
            "tells": self.tells,
            "bins": [asdict(b) for b in self.bins],
            **classes,
            "by_score": _check(self.by_score),
            "by_cohort": _check(self.by_cohort),
            "by_age_and_score": _check(self.by_age_and_score),
            "absent": dict(self.absent),
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per bin of ages, as a pandas, Polars or PyArrow frame (the first one installed, unless named)."""
        columns: dict[str, Any] = {
            f"age_{key}" if key in ("low", "high") else key: [getattr(b, key) for b in self.bins]
            for key in AgeBin.__dataclass_fields__
        }
        for name, of in self._classes():
            columns |= {
                f"{name}_in": of.share.tolist(),
                f"{name}_in_low": of.low.tolist(),
                f"{name}_in_high": of.high.tolist(),
            }
        return frames.to_native_frame(columns, backend)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text: a row for each bin of ages."""
        header = ["age in days" if self.days else "age", "rows", "positive", "negative", "missing"]
        header += [f"{name} in by its end" for name in CLASSES]
        rows = []
        for k, b in enumerate(self.bins):
            counts = [f"{n:,}" for n in (b.rows, b.positive, b.negative, b.missing)]
            shares = [percent_text(Estimate(of.share[k], of.low[k], of.high[k])) for _, of in self._classes()]
            older = self.maturity is not None and k == len(self.bins) - 1
            rows.append([f"{b.low:.4g} and more" if older else f"{b.low:.4g} to {b.high:.4g}", *counts, *shares])
        return header, rows

    def __repr__(self) -> str:
        return f"<Arrival of labels in {len(self.bins)} bins of ages, {self.missing:,} missing>"


def _estimate(estimate: Estimate) -> dict[str, float | None]:
    return plain_numbers(estimate._asdict())


def _check(check: DelayCheck | None) -> dict[str, Any] | None:
    return (
        None if check is None else plain_numbers(check._asdict()) | {"differs": check.differs, "clear": check.is_clear}
    )
