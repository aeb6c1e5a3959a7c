"""Question: what is asked of rows, parsed and checked once."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from darkmetrics.argument_types import Scope
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number
from darkmetrics.distributions import MetricDistribution, check_level
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import (
    AssumptionWarning,
    CalibrationWarning,
    InputError,
    MethodError,
    MissingnessWarning,
    RecordedWarning,
    UndefinedMetricWarning,
    record_warnings,
    unknown_name,
    warn,
)
from darkmetrics.logs import LOGGER
from darkmetrics.methods import Method, method_from
from darkmetrics.metrics import Metric, metrics_from
from darkmetrics.missing import ByLabel, Delayed, Fixed, Mechanism, Propensity
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.missingness.arrival_curves import arrival_of, has_provisional_zeros
from darkmetrics.missingness.checks import CLEARLY
from darkmetrics.missingness.choice import mechanism_from, stated_reason, word_from
from darkmetrics.missingness.clusters import clustered, shared_in_words
from darkmetrics.missingness.mixture import (
    BY_LABEL,
    BY_REFERENCE,
    BY_SCORE,
    REFUTED,
    mixture_p_value,
    reasons_differ,
    reasons_in_words,
    weight_of_reasons,
)
from darkmetrics.missingness.score_table import score_table
from darkmetrics.posterior import Posterior
from darkmetrics.reference_check import contradiction_of_reference

# The arguments that public functions share and that make a question.
_ASKED = ("metrics", "missingness", "method", "zero_division", "confidence_level", "rng", "scope")
SCOPES: tuple[Scope, ...] = ("rows", "population")
# A chance of 0/0 below this moves no printed digit and is not worth a warning.
WARN_FROM = 1e-6
_REFUTED_MESSAGE = (
    "The rows contradict missingness='by_label': scores of missing rows are not a mixture of the scores of labeled "
    "positives and negatives. The estimates may be far off. Set missingness='by_score' if the score decides which "
    "labels are missing. If score and label do, pass missingness=dm.missing.Reference(labels, scores) of fully labeled "
    "rows. See .diagnosis."
)
_UNTOLD_MESSAGE = (
    "No missingness mechanism was stated. Missing and labeled rows have similar scores, which does not show that "
    "labels are missing at random: effects of score and label may cancel. The intervals allow for that."
)
_UNTOLD_REQUEST = "Set missingness= to narrow them if you know the mechanism."
_NOT_SO_FAR_MESSAGE = (
    "age: every row has a label, even the youngest, and fewer young rows are positive than old ones. If a label of 0 "
    "means 'not so far', the estimates are biased: pass maturity=, the age from which 0 is final. If all labels are "
    "final, leave age= out to silence this warning."
)
_CONTRADICTED_MESSAGE = (
    "The labeled rows contradict the reference rows. Either the relation between score and label has drifted since the "
    "reference rows were taken, or labels are missing by label; the data do not show which. Half of the posterior "
    "draws use the reference rows and half do not, so the intervals are wide. If nothing has drifted, set "
    "missingness='by_score_and_label'. If it has, leave the reference rows out. See .diagnosis."
)
_SILENCE = "Set missingness='unknown' to silence this warning. See .diagnosis."
# A warning that lists more metrics is not read.
_METRICS_NAMED = 5


@dataclass(frozen=True, eq=False)
class Question:
    """What is asked of rows, parsed and checked once, before they are read; `answer` takes any evaluation set.

    Attributes
    ----------
    metrics, method, confidence_level
        What to find, how, and for which intervals.
    fill : float or None
        What a 0/0 counts as; None: what each metric says, with a warning.
    model : Mechanism
        Where the probabilities of missing labels come from.
    missingness : str or None
        The reason stated.
    believes : bool
        Whether nothing was said about missing labels: probabilities that come with the rows are then believed.
    rng : numpy Generator
        Source of randomness, unless an answer is asked for with another one.
    scope : str
        Whether the answer is about the rows or about the population that they came from.
    """

    metrics: tuple[Metric, ...]
    method: Method
    confidence_level: float
    fill: float | None
    model: Mechanism
    missingness: str | None
    believes: bool
    rng: np.random.Generator
    scope: Scope = "rows"

    @classmethod
    def among(cls, given: Mapping[str, Any]) -> "Question":
        """Return the question among all arguments of a public function."""
        return cls.of(**{name: given[name] for name in _ASKED if name in given})

    @classmethod
    def of(
        cls,
        *,
        metrics: Any,
        missingness: Any = None,
        method: Any = "auto",
        zero_division: Any = "warn",
        confidence_level: float = 0.9,
        rng: Any = None,
        scope: Any = "rows",
    ) -> "Question":
        """Return the question for arguments of `evaluate`, checked."""
        return cls(
            metrics=tuple(metrics_from(metrics)),
            method=method_from(method),
            confidence_level=check_level(confidence_level),
            fill=fill_value(zero_division),
            model=mechanism_from(missingness),
            missingness=word_from(missingness) if isinstance(missingness, str) else None,
            believes=missingness is None,
            rng=generator_from(0 if rng is None else rng),
            scope=scope_from(scope),
        )

    def fill_of(self, metric: Metric) -> float:
        """What a 0/0 of a metric counts as."""
        return metric.undefined_as if self.fill is None else self.fill

    def model_of(self, data: EvaluationSet) -> Mechanism:
        """The label model for a set."""
        if not data.n_missing:
            return Fixed(0.5)  # nothing depends on the model, which may have nothing to learn from
        if self.believes and isinstance(data.missingness, Mechanism):
            return data.missingness
        if self.believes and data.cells.probability is not None:
            return Fixed()
        if self.believes and data.cells.age is not None:
            return Delayed(reviewed=None if data.cells.propensity is None else "propensity")
        return Propensity() if self.believes and data.cells.propensity is not None else self.model

    def doubts(self, found: Evaluation, arrival: Arrival | None) -> list[tuple[type[Warning], str]]:
        """Return what reference rows and ages of rows show against an answer, each with its category of warning."""
        contradiction = contradiction_of_reference(found)
        doubts: list[tuple[type[Warning], str]] = [(MissingnessWarning, contradiction)] if contradiction else []
        if arrival is not None:
            return doubts + arrival.doubts()
        is_late = found.data.cells.age is not None and (self.believes or isinstance(self.model, Delayed))
        if is_late and has_provisional_zeros(found.data):
            doubts.append((CalibrationWarning, _NOT_SO_FAR_MESSAGE))
        return doubts

    def answer(
        self,
        data: EvaluationSet,
        rng: np.random.Generator | int | None = None,
        arguments: Mapping[str, str] | None = None,
        as_of: date | None = None,
        warned: Sequence[RecordedWarning] = (),
    ) -> Evaluation:
        """The law of each metric on a set; warnings point to the caller of whoever calls this.

        `arguments` are those of the call as code, for a report to repeat it; `as_of`: when ages of rows were taken;
        `warned`: what was said of the rows when they were read.
        """
        rng, arguments, started = self.rng if rng is None else rng, arguments or {}, time.perf_counter()
        model = self.model_of(data)
        reason = stated_reason(model, self.missingness)
        with record_warnings() as said:
            learned, posterior = model.learn(data) if isinstance(model, Delayed) else (None, model.posterior(data))
            posterior = clustered(posterior, data)
            about = (learned or model).describe(data, posterior) if data.n_missing else ""
            about = " ".join(filter(None, (about, shared_in_words(posterior))))
            settings: dict[str, Any] = {"assumption": about, "arguments": arguments, "stated": reason}
            found = self.answer_given(posterior, data, rng, **settings)
            is_open = reason in (None, "unknown") and bool(posterior.reasons)
            if is_open and weight_of_reasons(posterior)[BY_REFERENCE]:
                warn(_CONTRADICTED_MESSAGE, MissingnessWarning)
            elif is_open:
                differ = reasons_differ(posterior)
                finding, request = (
                    _reasons_messages(data, posterior, found.distributions)
                    if differ
                    else (_UNTOLD_MESSAGE, _UNTOLD_REQUEST)
                )
                text = f"{finding} {request}" if reason is None else finding
                if differ and reason is None:
                    warn(text, MissingnessWarning)
                else:  # no Python warning, because "unknown" declines it, or nothing calls the results into question
                    said.append(RecordedWarning(MissingnessWarning.__name__, text))
            elif isinstance(model, ByLabel) and mixture_p_value(score_table(data)) < CLEARLY:
                warn(_REFUTED_MESSAGE, AssumptionWarning)
            arrival = None if learned is None else arrival_of(learned, data, as_of)
            for category, text in self.doubts(found, arrival):
                warn(text, category)
        found = self.in_scope(
            replace(found, arrival=arrival, model=learned or model, warnings=tuple(dict.fromkeys([*warned, *said])))
        )
        LOGGER.info(
            "evaluated %s of %d rows, %d without a label, by %s in %.3f s",
            ", ".join(found.distributions),
            data.n_rows,
            data.n_missing,
            type(model).__name__,
            time.perf_counter() - started,
        )
        return found

    def in_scope(self, found: Evaluation) -> Evaluation:
        """An answer about the rows, as one about what was asked for."""
        try:
            return found.population if self.scope == "population" else found
        except MethodError as error:
            raise InputError.about("scope", str(error).removeprefix("scope: ")) from None

    def answer_given(
        self,
        posterior: Posterior,
        data: EvaluationSet,
        rng: np.random.Generator | int,
        *,
        assumption: str,
        arguments: Mapping[str, str],
        stated: str | None = None,
        groups: int = 0,
        whose: str = "",
        known: Iterator[MetricDistribution] | None = None,
    ) -> Evaluation:
        """The law of each metric on a set whose missing labels have these probabilities; about the rows.

        `whose`: what warnings say after the name of a metric, such as " of champion". `known`: the distributions of the
        metrics, if they are known already.
        """
        distributions: dict[str, MetricDistribution] = {}
        fills = {metric.name: self.fill_of(metric) for metric in self.metrics}
        rows, cases = posterior.without_strata(data)
        labeled_only: dict[str, float] = {}
        warned: list[RecordedWarning] = []
        functionals = (metric.bind(rows, fills[metric.name]) for metric in self.metrics)
        found = known or self.method.distributions(functionals, cases, rng=rng)
        for metric in self.metrics:
            try:
                distribution = next(found)
            except MethodError as error:
                raise error.also(f"(metric: {metric.name!r})") from None
            except Exception as error:
                error.add_note(f"darkmetrics was computing the metric {metric.name!r}.")
                raise
            if self.fill is None and distribution.undefined > WARN_FROM:
                text = undefined_message(metric, distribution, self.scope, whose)
                warned.append(RecordedWarning(UndefinedMetricWarning.__name__, text))
                warn(warned[-1].message, UndefinedMetricWarning)
            distributions[metric.name] = distribution
            labeled_only[metric.name] = metric.value(rows, fills[metric.name]) if data.n_labeled else np.nan
        return Evaluation(
            data=data,
            metrics={metric.name: metric for metric in self.metrics},
            distributions=distributions,
            labeled_only=labeled_only,
            fills=fills,
            assumption=assumption,
            posterior=posterior,
            stated=stated,
            reference=getattr(self.model, "reference", None),
            confidence_level=self.confidence_level,
            method=self.method,
            arguments=arguments,
            groups=groups,
            warnings=tuple(warned),
        )


def scope_from(scope: Any) -> Scope:
    """What an answer is to be about, checked."""
    if isinstance(scope, str) and scope not in SCOPES:
        raise unknown_name("scope", "scope", scope, SCOPES)
    found = next((known for known in SCOPES if isinstance(scope, str) and scope == known), None)
    if found is None:
        raise InputError(f"scope: expected 'rows' or 'population', got {scope!r}.")
    return found


def generator_from(rng: Any) -> np.random.Generator:
    """The generator that a seed or a generator stands for."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"rng: expected None, a seed or a numpy Generator, got {rng!r}.") from None


def fill_value(zero_division: Any) -> float | None:
    """None for "warn" (each metric's own value), else the number that stands for 0/0."""
    if isinstance(zero_division, str) and zero_division == "warn":
        return None
    if is_number(zero_division) and (zero_division in (0, 1) or zero_division != zero_division):
        return float(zero_division)
    raise InputError(f"zero_division: expected 'warn', 0, 1 or nan, got {zero_division!r}.")


def undefined_message(metric: Any, distribution: MetricDistribution, scope: Scope, whose: str) -> str:
    """Return the warning that a metric, of two or of several classes, is 0/0 with some probability."""
    chance = "always" if distribution.undefined > 1.0 - 1e-12 else f"with probability {distribution.undefined:.3g}"
    if scope == "population":
        return (
            f"{metric.name}{whose} is undefined (0/0) on these rows {chance}. The results for the population leave "
            "this case out. Set zero_division to 0, 1 or nan to silence this warning; the results stay the same."
        )
    left_out = np.isnan(metric.undefined_as) or distribution.given_defined
    value = "its distribution leaves this case out" if left_out else f"it counts as {metric.undefined_as:g} then"
    return (
        f"{metric.name}{whose} is undefined (0/0) {chance}; {value}. Set zero_division to 0, 1 or nan to choose the "
        "value and to silence this warning."
    )


def _reasons_messages(
    data: EvaluationSet, posterior: Posterior, distributions: Mapping[str, MetricDistribution]
) -> tuple[str, str]:
    """Return the results under either mechanism, and the request to state one."""
    answers = []
    for name, distribution in list(distributions.items())[:_METRICS_NAMED]:
        if distribution.by_draw is not None:
            means = [f"{_mean_of(distribution, posterior.reason == k):.3f}" for k in (BY_SCORE, BY_LABEL)]
            answers.append(f"{name} {means[0]} either way" if len(set(means)) == 1 else f"{name} {' or '.join(means)}")
    text = (
        "Scores differ between labeled and missing rows, and the estimates depend on why labels are missing. Of the "
        f"missing rows, {reasons_in_words(data, posterior)} are positive; in this order, the estimates are "
        f"{', '.join(answers)}."
    )
    pass_reference = "pass missingness=dm.missing.Reference(labels, scores) of fully labeled rows"
    if weight_of_reasons(posterior)[BY_LABEL] < REFUTED:
        text += " The scores do not fit 'by label' alone; half of the posterior draws allow for score and label."
        return text, f"If only the score decides, set missingness='by_score'; otherwise {pass_reference}. {_SILENCE}"
    return text, f"Set missingness='by_score' or 'by_label', or {pass_reference}. {_SILENCE}"


def _mean_of(distribution: MetricDistribution, own: Any) -> float:
    assert distribution.by_draw is not None
    weight = distribution.by_draw.weight[own]
    if not weight.sum() > 0.0:
        weight = np.ones(weight.size)
    return float(weight @ distribution.by_draw.mean[own] / weight.sum())
