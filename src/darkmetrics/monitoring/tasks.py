"""The evaluation of one group, and what is kept of it; the same in any process."""

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, NamedTuple

import numpy as np

from darkmetrics import frames
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import (
    CalibrationWarning,
    InputError,
    MethodError,
    MissingnessWarning,
    RecordedWarning,
    UndefinedMetricWarning,
    UnknownNameError,
    warn,
)
from darkmetrics.metrics import Metric
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.missingness.arrival_curves import arrival_of
from darkmetrics.missingness.base import Mechanism, missing_rows
from darkmetrics.missingness.delay_groups import GroupDelays
from darkmetrics.missingness.delayed import FittedDelays, describe_review
from darkmetrics.monitoring.groups import GroupSummary, Key, MetricSummary, is_small
from darkmetrics.monitoring.p_values import Verdict, verdict
from darkmetrics.monitoring.total import GroupPosterior, borrowed_in_words, in_words, stack_groups
from darkmetrics.posterior import Posterior
from darkmetrics.question import Question

# What a group may warn of: kept with the group instead of being said thousands of times.
KEPT = (MissingnessWarning, CalibrationWarning, UndefinedMetricWarning)
# The labels of no row.
_NONE = Posterior.single(np.zeros(0))


class Group(NamedTuple):
    """A group to evaluate; `name` is for messages, `model` is its own where one was learned from all groups."""

    key: Key
    name: str
    data: EvaluationSet
    seed: int
    model: Mechanism | None = None


def _delays_of(groups: Sequence[Group]) -> FittedDelays | None:
    """Return the delays that were learned from all groups, if they were."""
    model = next((group.model for group in groups), None)
    fitted = model.arrivals if isinstance(model, GroupDelays) else model
    return fitted if isinstance(fitted, FittedDelays) else None


def arrival_in(groups: Sequence[Group], as_of: date | None) -> Arrival | None:
    """Return when labels arrive, as the model learned from the rows of all groups; None if there is none."""
    fitted = _delays_of(groups)
    if fitted is None:
        return None
    return arrival_of(fitted, EvaluationSet.concat([group.data for group in groups]), as_of)


class GroupResult(NamedTuple):
    """Numbers of a group, the kinds of its warnings, and its posterior.

    The posterior is None if the labels do not suffice for a label model, the evaluation if it is too large to keep.
    """

    summary: GroupSummary
    warned: tuple[type[Warning], ...]
    posterior: GroupPosterior | None
    assumption: str
    evaluation: Evaluation | None


@dataclass(frozen=True)
class Task:
    """What is asked of every group.

    `arguments` are those of the question as code; `n_draws` is the number of draws in a Monte Carlo law. `expected`:
    positives and negatives that a reference or given probabilities expect among the missing rows count as labels do.
    `names` are what errors about arrays call columns of the table.
    """

    question: Question
    arguments: Mapping[str, str]
    n_draws: int
    n_groups: int
    expected: bool
    names: Mapping[str, str]

    def evaluated(self, group: Group) -> Evaluation:
        """The evaluation of a group, the same whenever it is asked for."""
        question = self.question
        if group.model is not None:
            question = replace(question, model=group.model, believes=False)
        with self.naming(group.name):
            if group.data.cells.weight is not None:  # those of all groups were checked together
                frames.check_weight_sizes(group.data.cells.weight, "weight")
            return question.answer(group.data, group.seed, self.arguments)

    @contextmanager
    def naming(self, name: str) -> Iterator[None]:
        """What goes wrong inside the block says with which rows it did."""
        try:
            yield
        except InputError as error:
            raise error.renamed(self.names).also(f"(Found in {name}.)") from None
        except Exception as error:
            error.add_note(f"darkmetrics was evaluating {name}.")
            raise

    def summarised(self, group: Group) -> GroupResult:
        """The same in a few numbers, with its warnings; bounds alone where too few labels are there for a law."""
        evaluation, lacking, notes = None, "", Notes()
        try:
            with notes.taken():
                evaluation = self.evaluated(group)
        except (MethodError, UnknownNameError):
            raise
        except InputError:
            # Without a label of each class most models have nothing to learn from, which is nobody's mistake.
            lacking = _lacking(group.data)
            if not lacking:
                raise
        summary = GroupSummary(
            key=group.key,
            counts=group.data.counts(),
            metrics={metric.name: self._summary(metric, group.data, evaluation) for metric in self.question.metrics},
            notes=tuple(notes.texts),
            warnings=() if evaluation is None else evaluation.warnings,
            lacking=lacking,
            expected={} if evaluation is None else self._expected(group.data, evaluation),
        )
        # Of rows that do not count nothing has to be said; for those that do a group that lacks labels borrows.
        posterior = evaluation.posterior if evaluation is not None else None if group.data.counts_at_all else _NONE
        kept_posterior = None if posterior is None else GroupPosterior.of(group.data, posterior, self.n_groups)
        assumption = "" if evaluation is None else evaluation.assumption
        kept = evaluation if evaluation is not None and is_small(evaluation, self.n_groups) else None
        return GroupResult(summary, tuple(notes.kinds), kept_posterior, assumption, kept)

    def added_up(
        self,
        groups: Sequence[Group],
        results: Sequence[GroupResult],
        seed: int,
        arguments: Mapping[str, str],
        notes: "Notes",
    ) -> Evaluation:
        """All groups together: the sum of what they say, and never a fit that contradicts them."""
        fitted = _delays_of(groups)
        if len(groups) == 1:
            with notes.taken():
                total = results[0].evaluation or self.evaluated(groups[0])
                return total if fitted is None else _warn_of(total, arrival_of(fitted, total.data).doubts())
        with self.naming("all rows together"), notes.taken():
            data, posterior, borrowing, shared = stack_groups(
                [group.data for group in groups],
                [result.posterior for result in results],
                [group.model or self.question.model_of(group.data) for group in groups],
                self._fit,
            )
            if borrowing:
                notes.texts.append(borrowed_in_words(borrowing))
            said = {result.assumption for result in results} - {""}
            text = ""
            if data.n_missing:
                late = None if fitted is None else describe_review(fitted)
                text = in_words(len(groups), borrowing, said, shared=shared and len(posterior) > 1, late=late)
            settings: dict[str, Any] = {"assumption": text, "arguments": arguments, "groups": len(groups)}
            total = self.question.answer_given(posterior, data, seed, **settings)
            doubts = self.question.doubts(total, None if fitted is None else arrival_of(fitted, data))
            return self.question.in_scope(_warn_of(total, doubts))

    def _fit(self, data: EvaluationSet) -> Posterior:
        return self.question.model_of(data).posterior(data)

    def of_all(self, total: Evaluation) -> GroupSummary:
        """All rows together, in the same numbers as a group."""
        return GroupSummary(
            key=(),
            counts=total.data.counts(),
            metrics={metric.name: self._summary(metric, total.data, total) for metric in self.question.metrics},
            expected=self._expected(total.data, total),
        )

    def _summary(self, metric: Metric, data: EvaluationSet, evaluation: Evaluation | None) -> MetricSummary:
        if not data.counts_at_all:
            return MetricSummary(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, "bounds")
        if evaluation is None:
            fill = self.question.fill_of(metric)
            lowest, highest = metric.bind(data, fill).extremes[:2]
            labeled_only = metric.value(data, fill) if data.n_labeled else np.nan
            effect = metric.binning_error(data)
            return MetricSummary(np.nan, np.nan, np.nan, labeled_only, lowest, highest, np.nan, "bounds", effect)
        distribution = evaluation[metric.name]
        low, high = distribution.interval(self.question.confidence_level)
        lowest, highest = distribution.support()
        labeled_only = evaluation.labeled_only[metric.name]
        effect = evaluation.binning_error[metric.name]
        return MetricSummary(
            distribution.mean(),
            low,
            high,
            labeled_only,
            lowest,
            highest,
            distribution.undefined,
            distribution.method,
            effect,
        )

    def verdicts(self, evaluation: Evaluation, targets: Mapping[str, float]) -> dict[str, Verdict]:
        """Return what an evaluation says about each target."""
        return {
            name: verdict(
                evaluation[name],
                evaluation.posterior,
                evaluation.metrics[name],
                target,
                fill=self.question.fill,
                n_draws=self.n_draws,
                binning_error=evaluation.binning_error[name],
            )
            for name, target in targets.items()
        }

    def verdicts_again(self, targets: Mapping[str, float], group: Group) -> dict[str, Verdict]:
        """Return the same for a group with an evaluation that was not kept."""
        with Notes().taken():  # they are among the notes of the group already
            evaluation = self.evaluated(group)
        return self.verdicts(evaluation, targets)

    def _expected(self, data: EvaluationSet, evaluation: Evaluation) -> dict[str, float]:
        """Return how many rows of each class are expected among those without a label, where these count."""
        if not (self.expected and data.n_missing):
            return {}
        count = missing_rows(data, evaluation.posterior)
        positive = float(evaluation.posterior.weight @ (evaluation.posterior.probability @ count))
        return {"positive": positive, "negative": float(count.sum()) - positive}


class Notes:
    """What the library warned of, in words and by kind."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.kinds: list[type[Warning]] = []

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Keeps what the library warns of inside the block; other warnings go their way."""
        with warnings.catch_warnings(record=True) as caught:
            for kind in KEPT:
                warnings.simplefilter("always", kind)
            yield
        for warning in caught:
            if issubclass(warning.category, KEPT):
                self.texts.append(str(warning.message))
                self.kinds.append(warning.category)
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


def _warn_of(total: Evaluation, doubts: Iterable[tuple[type[Warning], str]]) -> Evaluation:
    """Issue warnings about all rows, and return their evaluation with them."""
    for category, message in doubts:
        warn(message, category)
    warned = [RecordedWarning(category.__name__, message) for category, message in doubts]
    return replace(total, warnings=tuple(dict.fromkeys([*total.warnings, *warned])))


def _lacking(data: EvaluationSet) -> str:
    """Which labels are missing altogether; empty if both classes have one."""
    if not data.counts_at_all:
        return "weights that sum to zero"
    counts = data.counts()
    if not counts["labeled"]:
        return "no labeled row"
    return next((f"no labeled {name}" for name in ("positive", "negative") if not counts[name]), "")
