"""Comparison: two or more models on the same rows, whose missing labels they share."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._text import counted, short
from darkmetrics.comparison.beliefs import ALL_TOGETHER, Beliefs, own_beliefs
from darkmetrics.comparison.models import ComparedModels, mirror
from darkmetrics.comparison.numbers import numbers_of, records_of, table_of
from darkmetrics.comparison.ranking import Best, Ranks, best_of, ranks_of, sides_of
from darkmetrics.comparison.rows import SharedRows
from darkmetrics.comparison.wording import few_labels_of, notes_of, sentence_of, words_of
from darkmetrics.data.rules import is_number
from darkmetrics.distributions import MetricDistribution
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, RecordedWarning
from darkmetrics.metrics import Metric
from darkmetrics.metrics.targets import name_in
from darkmetrics.missingness.reference import Reference
from darkmetrics.question import Question, scope_from
from darkmetrics.result import Result, load
from darkmetrics.storing import made_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Comparison(Result, Mapping[str, Evaluation]):
    """Models compared on the same rows: a mapping from the name of a model to its `Evaluation`.

    All distributions assume the same probabilities of the missing labels, learned from the scores of all models.
    `difference` is the distribution of a difference under labels that the models share, never the difference of two
    independent distributions. Distributions are computed on first use and kept. Those of more than eight models are
    drawn, from the label assignments that also rank the models.

    Attributes
    ----------
    models : tuple of str
        Names of the models.
    metrics : mapping from str to Metric
        What they are compared in.
    confidence_level : float
        Probability of the intervals in print and in `to_dict()`.
    scope : str
        What all of it is about unless a question says otherwise: "rows", or the "population" that they came from.
    warnings : tuple
        What was warned of.
    """

    _report: ClassVar[str] = "report.models:write_comparison_report"
    _text_columns = 2

    rows: SharedRows
    question: Question
    beliefs: Beliefs
    # Fully labeled rows, if any were given: labels, and scores by model.
    reference: Reference | None = None
    # Of random labelings, where there are any: a law is drawn alike whenever it is asked for.
    seed: int = 0
    warnings: tuple[RecordedWarning, ...] = ()
    # The arguments of the call that were not defaults, as code; data stand as the name of the argument.
    arguments: Mapping[str, str] = field(default_factory=dict)
    _laws: dict[tuple[str, str, str, str], MetricDistribution] = field(default_factory=dict, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        return made_of(self)

    @property
    def models(self) -> tuple[str, ...]:
        """Names of the models."""
        return self.rows.names

    @property
    def confidence_level(self) -> float:
        """Probability of the intervals in print and in `to_dict()`."""
        return self.question.confidence_level

    @property
    def scope(self) -> str:
        """What laws and chances are about: "rows" or "population"."""
        return self.question.scope

    @cached_property
    def metrics(self) -> Mapping[str, Metric]:
        """What the models are compared in, by name."""
        return {metric.name: metric for metric in self.question.metrics}

    def __getitem__(self, model: str) -> Evaluation:
        return self.question.in_scope(self._models.evaluation(self.rows.index(model, "model")))

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)

    def __contains__(self, model: object) -> bool:
        return model in self.models

    def _metric(self, metric: str) -> Metric:
        return self.metrics[name_in(self.metrics, metric)]

    @cached_property
    def _models(self) -> ComparedModels:
        return ComparedModels(self.rows, self.question, self.beliefs, self.seed)

    def difference(self, metric: str, model: str, other: str, *, scope: str | None = None) -> MetricDistribution:
        """Return the distribution of the metric of one model minus that of another.

        With `scope="population"` each model has the distribution that `evaluate` computes for the population. Labels
        and sampling errors of the same rows are shared, as in McNemar's test for accuracy and DeLong's for ROC-AUC.

        A 0/0 counts as `zero_division` sets. If `zero_division` leaves it out, the distribution is conditional on both
        metrics being defined. `difference(metric, b, a)` mirrors `difference(metric, a, b)`.

        Parameters
        ----------
        metric : str
            One of the metrics compared.
        model, other : str
            Names of two models.
        scope : {"rows", "population"}, optional
            What the law is about; what the comparison is about unless given.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> scores = {"champion": [0.9, 0.2, 0.7, 0.4], "challenger": [0.8, 0.6, 0.3, 0.7]}
        >>> found = dm.compare([1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy")
        >>> law = found.difference("accuracy", "challenger", "champion")
        >>> law.atoms.round(2).tolist(), law.masses.round(2).tolist()
        ([-0.25, 0.25], [0.6, 0.4])
        """
        scope, record = self._scope(scope), self._metric(metric)
        b, a = self._pair(model, other)
        key = (record.name, model, other, scope)
        if key not in self._laws:
            mirrored = mirror(self.difference(metric, other, model, scope=scope)) if b < a else None
            difference = self._models.difference(record, b, a, scope) if mirrored is None else mirrored
            self._laws[key] = difference.at_level(self.confidence_level)
        return self._laws[key]

    def _scope(self, scope: str | None) -> str:
        return self.scope if scope is None else scope_from(scope)

    def _pair(self, model: str, other: str) -> tuple[int, int]:
        b, a = self.rows.index(model, "model"), self.rows.index(other, "other")
        if a == b:
            raise InputError(
                "other",
                f"{other!r} is the model itself",
                "",
                f"Pass two different models of {list(self.models)}.",
            )
        return b, a

    def probability_better(
        self, metric: str, model: str, other: str, by: float = 0.0, *, scope: str | None = None
    ) -> float:
        """How likely is it that one model is better than another in a metric, by more than so much?

        Better is higher, or lower where that is better. A tie is not better: with `by=0` the chances that either is
        better and that both are equal add up to one. NaN where the difference is never defined.

        Parameters
        ----------
        metric : str
            One of the metrics compared, with a direction that is better.
        model, other : str
            Names of two models.
        by : float
            What the difference has to exceed.
        scope : {"rows", "population"}, optional
            On these rows, or in the population that they came from, as in `difference`.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> scores = {"champion": [0.9, 0.2, 0.7, 0.4], "challenger": [0.8, 0.6, 0.3, 0.7]}
        >>> found = dm.compare([1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy")
        >>> round(found.probability_better("accuracy", "challenger", "champion"), 9)
        0.4
        """
        if not is_number(by) or not np.isfinite(by):
            raise InputError("by", f"{by!r}", "It must be a finite number.")
        distribution, higher = self.difference(metric, model, other, scope=scope), self._better_when(metric) == "higher"
        return sides_of(distribution, float(by) if higher else -float(by), self._scope(scope))[higher]

    def effects(self, metric: str) -> FloatArray:
        """How far buckets can have moved the metric of each model: a proven bound, as `Evaluation.binning_error`."""
        if metric not in self._effects:
            record, models = self._metric(metric), range(len(self.models))
            self._effects[metric] = np.array([record.binning_error(self.rows.of(at).data) for at in models])
        return self._effects[metric]

    @cached_property
    def _effects(self) -> dict[str, FloatArray]:
        return {}

    def binning_error(self, metric: str, model: str, other: str) -> float:
        """How far can it have moved a difference that scores were counted in buckets?

        A bound for whatever the missing labels are and wherever in their buckets the scores lie: what either model's
        metric can have moved, added up. 0 where scores are exact, and for metrics of the decisions; NaN where it is not
        known.
        """
        return float(self.effects(metric)[list(self._pair(model, other))].sum())

    def better_range(self, metric: str, model: str, other: str, *, scope: str | None = None) -> tuple[float, float]:
        """Between which ends is `probability_better` with exact scores, wherever in their buckets these lie?

        Under the same probabilities of the missing labels; both ends are `probability_better` itself if scores are
        exact.
        """
        by = self.binning_error(metric, model, other)
        if np.isnan(by):
            return 0.0, 1.0
        low, high = (self.probability_better(metric, model, other, one, scope=scope) for one in (by, -by))
        return low, high

    def _better_when(self, metric: str) -> str:
        better = self._metric(metric).better
        if better == "neither":
            raise InputError(
                "metric",
                f"{metric!r}",
                "It must be better when higher, or when lower.",
                "Call difference(), which needs no direction.",
            )
        return better

    def probability_best(self, metric: str, *, scope: str | None = None) -> Best:
        """Return the probability of each model to be the best in a metric, and of ties.

        Two models are ranked by the distribution of their difference. More models are ranked by all label assignments
        if these are few, else by random ones that all metrics share; `method` names the way.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> scores = {"a": [0.9, 0.2, 0.7, 0.4], "b": [0.8, 0.6, 0.3, 0.7], "c": [0.8, 0.1, 0.9, 0.3]}
        >>> print(
        ...     dm.compare(
        ...         [1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy"
        ...     ).probability_best("accuracy")
        ... )
        Best accuracy: b 40%, a 0%, c 0%; a and c share it 60%.
        """
        better, (a, b) = self._better_when(metric), self.models[:2]
        distribution = None if len(self.models) > 2 else self.difference(metric, b, a, scope=scope)
        effects = None if self.rows.score_bins is None else self.effects(metric)
        if distribution is None or distribution.undefined >= 1.0:
            drawn = self._models.draw(self._metric(metric), self._scope(scope))
            return best_of(metric, better, self.models, drawn, effects)
        # Both from one law: that of a - b would be found anew, to say the same.
        sides = sides_of(distribution, 0.0, scope or self.scope)
        chances = dict(zip((a, b), sides if better == "higher" else sides[::-1], strict=True))
        tie = max(0.0, 1.0 - sum(chances.values()))
        ends = {}
        if self.binning_error(metric, b, a) != 0.0:
            ends = {one: self.better_range(metric, one, rest, scope=scope) for one, rest in ((a, b), (b, a))}
        return Best(
            metric, chances, {(a, b): tie} if tie > 1e-12 else {}, distribution.method, scope or self.scope, ends
        )

    def rank_probabilities(self, metric: str, *, scope: str | None = None) -> Ranks:
        """Return the probability of each rank of each model in a metric; models that tie share the better rank.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> scores = {"a": [0.9, 0.2, 0.7, 0.4], "b": [0.8, 0.6, 0.3, 0.7], "c": [0.8, 0.1, 0.9, 0.3]}
        >>> print(
        ...     dm.compare(
        ...         [1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy"
        ...     ).rank_probabilities("accuracy")
        ... )
        accuracy   mean place     1     2     3
        a                1.40   60%   40%    0%
        c                1.40   60%   40%    0%
        b                2.20   40%    0%   60%
        """
        better = self._better_when(metric)
        return ranks_of(metric, better, self.models, self._models.draw(self._metric(metric), self._scope(scope)))

    def by_calibration(self, metric: str, model: str, other: str) -> dict[str, MetricDistribution]:
        """How does the difference depend on whose calibration is believed?

        The law of the difference under the probabilities of all scores together, and under those of each of the two
        models by itself, which lean towards it: what the other one knows beyond it counts as noise there.
        """
        b, a = self._pair(model, other)
        if ALL_TOGETHER in (model, other):
            raise InputError(
                "model",
                f"{ALL_TOGETHER!r} is the name of the joint distribution",
                "",
                "Rename the model.",
            )
        distributions = {ALL_TOGETHER: self.difference(metric, model, other)}
        for at in (b, a):
            distributions[self.models[at]] = self._calibrated_by(at).difference(self._metric(metric), b, a, self.scope)
        return distributions

    @cached_property
    def _calibrated(self) -> dict[int, ComparedModels]:
        return {}

    def _calibrated_by(self, model: int) -> ComparedModels:
        """All models under the probabilities of one model's calibration."""
        if model not in self._calibrated:
            beliefs = own_beliefs(self.rows, model, self.question, self.reference)
            self._calibrated[model] = self._models.believing(beliefs)
        return self._calibrated[model]

    def estimates(self, metric: str) -> dict[str, float]:
        """Return the metric of each model with every missing label replaced by its probability.

        The probabilities are learned from the scores of all models. NaN for metrics that are no function of sums.
        """
        record = self._metric(metric)
        return {name: self._models.plug_in_estimate(record, at) for at, name in enumerate(self.models)}

    def own_estimates(self, metric: str) -> dict[str, float]:
        """The same with each model calibrated by itself, as if it had been evaluated alone.

        Where the order of two models is another one here, the answer depends on which calibration is right, and
        `compare` warns of it.
        """
        record = self._metric(metric)
        return {name: self._calibrated_by(at).plug_in_estimate(record, at) for at, name in enumerate(self.models)}

    def by_draw(self, metric: str, model: str) -> FloatArray:
        """Return the metric of a model at every posterior draw, with missing labels replaced by probabilities."""
        return self._models.plug_in_estimates(self._metric(metric), self.rows.index(model, "model"))

    def sentence(self, metric: str, model: str | None = None, other: str | None = None) -> str:
        """Which of two models is better in a metric, in words; the last against the first unless named.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> scores = {"champion": [0.9, 0.2, 0.7, 0.4], "challenger": [0.8, 0.6, 0.3, 0.7]}
        >>> print(
        ...     dm.compare([1, 0, None, 1], scores, missingness=dm.missing.Fixed([0.6]), metrics="accuracy").sentence(
        ...         "accuracy"
        ...     )
        ... )
        challenger is worse than champion in accuracy with probability 60%: the difference is -0.050 (90%: -0.250 to
        0.250).
        """
        return sentence_of(self, metric, model or self.models[-1], other or self.models[0])

    def plot(self, metric: str | None = None, *, ax: "Axes | None" = None) -> Any:
        """Plot one metric, by default the first: the difference of two models, or several models in rows.

        `plotting.plot_difference` and `plotting.plot_models` have more options.
        """
        name = "differences:plot_difference" if len(self.models) == 2 else "forests:plot_models"
        return load(f"plotting.{name}")(self, metric or next(iter(self.metrics)), ax=ax)

    def _words(self) -> list[str]:
        """What stands above the table: how many rows, what was assumed, and for two models which one is better."""
        return words_of(self)

    def few_labels(self) -> list[str]:
        """What so few labels do to the chance to be best among several models; nothing where there are enough."""
        return few_labels_of(self)

    def _notes(self) -> list[str]:
        """What stands below the table: what the intervals are for, few labels, and how far buckets move metrics."""
        return notes_of(self)

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Header and rows of the table as text: one row per metric and model."""
        return table_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers at full precision, ready for JSON, None where there is none; differences are from the first."""
        return numbers_of(self)

    def to_records(self) -> list[dict[str, Any]]:
        """One flat record per metric and model, the rows of `to_frame`; differences are against the first model."""
        return records_of(self)

    def __repr__(self) -> str:
        counts = self.rows.counts
        models, metrics = ", ".join(map(short, self.models)), ", ".join(self.metrics)
        return f"<Comparison of {models} on {counted(counts['rows'], 'row')}, {counts['missing']:,} missing: {metrics}>"
