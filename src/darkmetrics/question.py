"""Question: what is asked of rows, parsed and checked once."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

import numpy as np

from darkmetrics.argument_types import Scope
from darkmetrics.constraints import check_value
from darkmetrics.data.evaluation_set import EvaluationSet
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
    warn,
)
from darkmetrics.logs import LOGGER
from darkmetrics.methods import Method, method_from
from darkmetrics.metrics import Metric, metrics_from
from darkmetrics.missing import ByLabel, Delayed, Fixed, Mechanism, Propensity
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.missingness.arrival_curves import arrival_of, has_provisional_zeros
from darkmetrics.missingness.checks import CLEARLY
from darkmetrics.missingness.choice import mechanism_from, stated_mechanism, word_from
from darkmetrics.missingness.clusters import clustered, describe_correlation
from darkmetrics.missingness.mixture import (
    BY_LABEL,
    BY_REFERENCE,
    BY_SCORE,
    MIN_STATED,
    describe_prevalences,
    mechanism_weights,
    mechanisms_differ,
    mixture_p_value,
)
from darkmetrics.missingness.score_table import score_table
from darkmetrics.posterior import Posterior
from darkmetrics.reference_check import contradiction_of_reference
from darkmetrics.wording import Message, code, named, setting

# The arguments that public functions share and that make a question.
_ASKED = ("metrics", "missingness", "method", "zero_division", "confidence_level", "rng", "scope")
# A chance of 0/0 below this moves no printed digit and is not worth a warning.
WARN_FROM = 1e-6
_PASS_REFERENCE = f"pass {code('missingness=dm.missing.Reference(labels, scores)')} of fully labeled rows"
_DETAILS = code("See .diagnosis.", "diagnosis")
_REFUTED_MESSAGE = (
    f"The rows contradict {setting('missingness', 'by_label')}: scores of missing rows are not a mixture of the scores "
    "of labeled positives and negatives. The estimates may be far off. Set "
    f"{setting('missingness', 'by_score')} if the score decides which labels are missing. If score and label do, "
    f"{_PASS_REFERENCE}. {_DETAILS}"
)
_UNTOLD_MESSAGE = (
    "No missingness mechanism was stated. Missing and labeled rows have similar scores, which does not show that "
    "labels are missing at random: effects of score and label may cancel. The intervals allow for that."
)
_UNTOLD_REQUEST = f"Set {setting('missingness')} to narrow them if you know the mechanism."
_NOT_SO_FAR_MESSAGE = (
    f"{named('age')}: every row has a label, even the youngest, and fewer young rows are positive than old ones. If a "
    f"label of 0 means 'not so far', the estimates are biased: pass {setting('maturity')}, the age from which 0 is "
    f"final. If all labels are final, leave {named('age')} out to silence this warning."
)
_CONTRADICTED_MESSAGE = (
    "The labeled rows contradict the reference rows. Either the relation between score and label has drifted since the "
    "reference rows were taken, or labels are missing by label; the data do not show which. Half of the posterior "
    "draws use the reference rows and half do not, so the intervals are wide. If nothing has drifted, set "
    f"{setting('missingness', 'by_score_and_label')}. If it has, leave the reference rows out. {_DETAILS}"
)
_SILENCE = f"Set {setting('missingness', 'unknown')} to silence this warning. {_DETAILS}"
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
        The mechanism stated.
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
        stated = stated_mechanism(model, self.missingness)
        with record_warnings() as said:
            learned, posterior = model.learn(data) if isinstance(model, Delayed) else (None, model.posterior(data))
            posterior = clustered(posterior, data)
            about = (learned or model).describe(data, posterior) if data.n_missing else ""
            about = " ".join(filter(None, (about, describe_correlation(posterior))))
            settings: dict[str, Any] = {"assumption": about, "arguments": arguments, "stated": stated}
            found = self.answer_given(posterior, data, rng, **settings)
            is_open = stated in (None, "unknown") and bool(posterior.mechanisms)
            if is_open and mechanism_weights(posterior)[BY_REFERENCE]:
                warn(_CONTRADICTED_MESSAGE, MissingnessWarning)
            elif is_open:
                differ = mechanisms_differ(posterior)
                finding, request = (
                    _mechanisms_messages(data, posterior, found.distributions)
                    if differ
                    else (_UNTOLD_MESSAGE, _UNTOLD_REQUEST)
                )
                text = f"{finding} {request}" if stated is None else finding
                if differ and stated is None:
                    warn(text, MissingnessWarning)
                else:  # no Python warning, because "unknown" declines it, or nothing calls the results into question
                    said.append(RecordedWarning(MissingnessWarning.__name__, Message(text)))
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
            raise InputError("scope", *error.args[1:]) from None

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
                raise error.replace(finding=f"{error.args[1]} (metric: {metric.name!r})") from None
            except Exception as error:
                error.add_note(f"darkmetrics was computing the metric {metric.name!r}.")
                raise
            if self.fill is None and distribution.undefined > WARN_FROM:
                text = Message(undefined_message(metric, distribution, self.scope, whose))
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
    """Return a scope, checked."""
    check_value("scope", scope)
    return "rows" if scope == "rows" else "population"


def generator_from(rng: Any) -> np.random.Generator:
    """Return the generator that a seed or a generator stands for."""
    check_value("rng", rng)
    return np.random.default_rng(rng)


def fill_value(zero_division: Any) -> float | None:
    """Return None for "warn" (each metric's own value), else the number that stands for 0/0."""
    check_value("zero_division", zero_division)
    return None if isinstance(zero_division, str) else float(zero_division)


def undefined_message(metric: Any, distribution: MetricDistribution, scope: Scope, whose: str) -> str:
    """Return the warning that a metric, of two or of several classes, is 0/0 with some probability."""
    chance = "always" if distribution.undefined > 1.0 - 1e-12 else f"with probability {distribution.undefined:.3g}"
    if scope == "population":
        return (
            f"{metric.name}{whose} is undefined (0/0) on these rows {chance}. The results for the population leave "
            f"this case out. Set {named('zero_division')} to 0, 1 or nan to silence this warning; the results stay the "
            "same."
        )
    left_out = np.isnan(metric.undefined_as) or distribution.given_defined
    value = "its distribution leaves this case out" if left_out else f"it counts as {metric.undefined_as:g} then"
    return (
        f"{metric.name}{whose} is undefined (0/0) {chance}; {value}. Set {named('zero_division')} to 0, 1 or nan to "
        "choose the value and to silence this warning."
    )


def _mechanisms_messages(
    data: EvaluationSet, posterior: Posterior, distributions: Mapping[str, MetricDistribution]
) -> tuple[str, str]:
    """Return the results under either mechanism, and the request to state one."""
    answers = []
    for name, distribution in list(distributions.items())[:_METRICS_NAMED]:
        if distribution.by_draw is not None:
            means = [f"{_mean_of(distribution, posterior.mechanism == k):.3f}" for k in (BY_SCORE, BY_LABEL)]
            answers.append(f"{name} {means[0]} either way" if len(set(means)) == 1 else f"{name} {' or '.join(means)}")
    text = (
        "Scores differ between labeled and missing rows, and the estimates depend on why labels are missing. Of the "
        f"missing rows, {describe_prevalences(data, posterior)} are positive; in this order, the estimates are "
        f"{', '.join(answers)}."
    )
    if mechanism_weights(posterior)[BY_LABEL] < MIN_STATED:
        text += " The scores do not fit 'by label' alone; half of the posterior draws allow for score and label."
        by_score = setting("missingness", "by_score")
        return text, f"If only the score decides, set {by_score}; otherwise {_PASS_REFERENCE}. {_SILENCE}"
    return text, f"Set {setting('missingness', 'by_score', 'by_label')}, or {_PASS_REFERENCE}. {_SILENCE}"


def _mean_of(distribution: MetricDistribution, own: Any) -> float:
    assert distribution.by_draw is not None
    weight = distribution.by_draw.weight[own]
    if not weight.sum() > 0.0:
        weight = np.ones(weight.size)
    return float(weight @ distribution.by_draw.mean[own] / weight.sum())
