"""The evaluation of one group and the numbers that are kept of it, the same in any process; and the total."""

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
from darkmetrics.monitoring.groups import GroupSummary, Key, MetricSummary
from darkmetrics.monitoring.p_values import Judged, Verdict, count_numbers, verdict
from darkmetrics.monitoring.total import GroupPosterior, describe_borrowing, describe_total, stack_groups
from darkmetrics.posterior import Posterior
from darkmetrics.question import Question

# Warnings of groups that are collected, because thousands of groups would repeat them.
COLLECTED = (MissingnessWarning, CalibrationWarning, UndefinedMetricWarning)
# Numbers in the evaluations that are kept, of all groups together.
_MAX_KEPT = 2**24
_NO_ROWS = Posterior.single(np.zeros(0))


class Group(NamedTuple):
    """A group to evaluate; `name` is for messages, `model` was fitted to all groups if that is necessary."""

    key: Key
    name: str
    data: EvaluationSet
    seed: int
    model: Mechanism | None = None


class GroupResult(NamedTuple):
    """Numbers of a group, the kinds of its warnings, and what the total and alerts need of it.

    The posterior is None if the labels do not suffice for a label model, the evaluation if it is too large to keep.
    """

    summary: GroupSummary
    warning_kinds: tuple[type[Warning], ...]
    posterior: GroupPosterior | None
    assumption: str
    evaluation: Evaluation | None
    judged: Judged | None


class Notes:
    """Texts and kinds of the warnings that were collected."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.kinds: list[type[Warning]] = []

    @contextmanager
    def collect(self) -> Iterator[None]:
        """Collect warnings of the library that are issued inside the block; issue other warnings."""
        with warnings.catch_warnings(record=True) as caught:
            for kind in COLLECTED:
                warnings.simplefilter("always", kind)
            yield
        for warning in caught:
            if issubclass(warning.category, COLLECTED):
                self.texts.append(str(warning.message))
                self.kinds.append(warning.category)
            else:
                warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)


@dataclass(frozen=True)
class Task:
    """The evaluation that every group gets.

    `arguments` are those of the question as code; `n_draws` is the number of imputations of Monte Carlo. `expected`:
    rows expected among the missing rows, from a reference or from passed probabilities, count as labels do. `names` has
    the column of the table for each argument that is an array in error messages.
    """

    question: Question
    arguments: Mapping[str, str]
    n_draws: int
    n_groups: int
    expected: bool
    names: Mapping[str, str]

    def evaluate(self, group: Group) -> Evaluation:
        """Evaluate a group; the result is the same every time."""
        question = self.question
        if group.model is not None:
            question = replace(question, model=group.model, believes=False)
        with self.locate_errors(group.name):
            if group.data.cells.weight is not None:  # the weights of all groups were checked together
                frames.check_weight_sizes(group.data.cells.weight, "weight")
            return question.answer(group.data, group.seed, self.arguments)

    @contextmanager
    def locate_errors(self, name: str) -> Iterator[None]:
        """Add the name of the rows to errors that are raised inside the block."""
        try:
            yield
        except InputError as error:
            error = error.worded_for(self.names)
            raise error.replace(fix=f"{error.args[3]} (Found in {name}.)".lstrip()) from None
        except Exception as error:
            error.add_note(f"darkmetrics was evaluating {name}.")
            raise

    def summarize(self, group: Group) -> GroupResult:
        """Evaluate a group and return a few numbers; only bounds if there are too few labels for a distribution."""
        evaluation, lacking, notes = None, "", Notes()
        try:
            with notes.collect():
                evaluation = self.evaluate(group)
        except (MethodError, UnknownNameError):
            raise
        except InputError:
            # Without a label of each class most models cannot be fitted, which is no mistake of the user.
            lacking = _lacking_labels(group.data)
            if not lacking:
                raise
        summary = GroupSummary(
            key=group.key,
            counts=group.data.counts(),
            metrics=self._summarize_metrics(group.data, evaluation),
            notes=tuple(notes.texts),
            warnings=() if evaluation is None else evaluation.warnings,
            lacking=lacking,
            expected={} if evaluation is None else self._expected(group.data, evaluation),
        )
        kinds = tuple(notes.kinds)
        if evaluation is None:
            # A group of weight zero adds nothing to the total; other groups without a model borrow.
            posterior = None if group.data.counts_at_all else GroupPosterior.of(group.data, _NO_ROWS, self.n_groups)
            return GroupResult(summary, kinds, posterior, "", None, None)
        posterior = GroupPosterior.of(group.data, evaluation.posterior, self.n_groups)
        if count_kept(evaluation) * self.n_groups <= _MAX_KEPT:
            return GroupResult(summary, kinds, posterior, evaluation.assumption, evaluation, Judged.of(evaluation))
        judged = Judged.of(evaluation).limit_memory(self.n_groups)
        return GroupResult(summary, kinds, posterior, evaluation.assumption, None, judged)

    def combine(
        self,
        groups: Sequence[Group],
        results: Sequence[GroupResult],
        seed: int,
        arguments: Mapping[str, str],
        notes: Notes,
    ) -> Evaluation:
        """Evaluate all groups together, each with its own label model."""
        delays = _shared_delays(groups)
        if len(groups) == 1:
            with notes.collect():
                total = results[0].evaluation or self.evaluate(groups[0])
                return total if delays is None else _warn_of(total, arrival_of(delays, total.data).doubts())
        with self.locate_errors("all rows together"), notes.collect():
            data, posterior, n_borrowing, shared = stack_groups(
                [group.data for group in groups],
                [result.posterior for result in results],
                [group.model or self.question.model_of(group.data) for group in groups],
                lambda data: self.question.model_of(data).posterior(data),
            )
            if n_borrowing:
                notes.texts.append(describe_borrowing(n_borrowing))
            text = ""
            if data.n_missing:
                assumptions = {result.assumption for result in results} - {""}
                review = None if delays is None else describe_review(delays)
                shared = shared and len(posterior) > 1
                text = describe_total(len(groups), n_borrowing, assumptions, shared=shared, review=review)
            settings: dict[str, Any] = {"assumption": text, "arguments": arguments, "groups": len(groups)}
            total = self.question.answer_given(posterior, data, seed, **settings)
            doubts = self.question.doubts(total, None if delays is None else arrival_of(delays, data))
            return self.question.in_scope(_warn_of(total, doubts))

    def summarize_total(self, total: Evaluation) -> GroupSummary:
        """Return the numbers of all rows together."""
        return GroupSummary(
            key=(),
            counts=total.data.counts(),
            metrics=self._summarize_metrics(total.data, total),
            expected=self._expected(total.data, total),
        )

    def _summarize_metrics(self, data: EvaluationSet, evaluation: Evaluation | None) -> dict[str, MetricSummary]:
        return {metric.name: self._summarize_metric(metric, data, evaluation) for metric in self.question.metrics}

    def _summarize_metric(self, metric: Metric, data: EvaluationSet, evaluation: Evaluation | None) -> MetricSummary:
        if not data.counts_at_all:
            return MetricSummary(np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, np.nan, "bounds")
        if evaluation is None:
            fill = self.question.fill_of(metric)
            lowest, highest = metric.bind(data, fill).extremes[:2]
            labeled_only = metric.value(data, fill) if data.n_labeled else np.nan
            error = metric.binning_error(data)
            return MetricSummary(np.nan, np.nan, np.nan, labeled_only, lowest, highest, np.nan, "bounds", error)
        distribution = evaluation[metric.name]
        return MetricSummary(
            distribution.mean(),
            *distribution.interval(self.question.confidence_level),
            evaluation.labeled_only[metric.name],
            *distribution.support(),
            distribution.undefined,
            distribution.method,
            evaluation.binning_error[metric.name],
        )

    def judge(
        self, judged: Judged, summaries: Mapping[str, MetricSummary], targets: Mapping[str, float]
    ) -> dict[str, Verdict]:
        """Return the verdict of a group on each target."""
        metrics = {metric.name: metric for metric in self.question.metrics}
        return {
            name: verdict(
                judged.distributions[name],
                judged.mechanism,
                metrics[name],
                target,
                fill=self.question.fill,
                n_draws=self.n_draws,
                binning_error=summaries[name].binning_error,
            )
            for name, target in targets.items()
        }

    def evaluate_again(self, group: Group) -> Judged:
        """Return all distributions of a group that were not kept."""
        with Notes().collect():  # the summary of the group has them
            evaluation = self.evaluate(group)
        return Judged.of(evaluation)

    def _expected(self, data: EvaluationSet, evaluation: Evaluation) -> dict[str, float]:
        """Return how many rows of each class are expected among the missing rows, where these count."""
        if not (self.expected and data.n_missing):
            return {}
        count = missing_rows(data, evaluation.posterior)
        positive = float(evaluation.posterior.weight @ (evaluation.posterior.probability @ count))
        return {"positive": positive, "negative": float(count.sum()) - positive}


def count_kept(evaluation: Evaluation) -> int:
    """Count the numbers in the posterior and the distributions of an evaluation."""
    on_rows = 0 if evaluation.on_rows is None else count_kept(evaluation.on_rows)
    return evaluation.posterior.probability.size + sum(map(count_numbers, evaluation.distributions.values())) + on_rows


def fit_arrival(groups: Sequence[Group], as_of: date | None) -> Arrival | None:
    """Return when labels arrive, as the model learned from the rows of all groups; None if there is none."""
    delays = _shared_delays(groups)
    if delays is None:
        return None
    return arrival_of(delays, EvaluationSet.concat([group.data for group in groups]), as_of)


def _shared_delays(groups: Sequence[Group]) -> FittedDelays | None:
    """Return the delays that were learned from all groups; None if there are none."""
    model = groups[0].model
    fitted = model.arrivals if isinstance(model, GroupDelays) else model
    return fitted if isinstance(fitted, FittedDelays) else None


def _warn_of(total: Evaluation, doubts: Iterable[tuple[type[Warning], str]]) -> Evaluation:
    """Issue warnings about all rows, and return their evaluation with them."""
    for category, message in doubts:
        warn(message, category)
    warned = [RecordedWarning(category.__name__, message) for category, message in doubts]
    return replace(total, warnings=tuple(dict.fromkeys([*total.warnings, *warned])))


def _lacking_labels(data: EvaluationSet) -> str:
    """Return which labels are missing altogether; empty if both classes have labels."""
    if not data.counts_at_all:
        return "weights that sum to zero"
    counts = data.counts()
    if not counts["labeled"]:
        return "no labeled row"
    return next((f"no labeled {name}" for name in ("positive", "negative") if not counts[name]), "")
