"""Evaluation: the laws of all metrics on one evaluation set, with what was assumed, as words, table and numbers."""

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from darkmetrics._text import counted
from darkmetrics.argument_types import PathLike, Scope
from darkmetrics.calls import check_call, suggest_call
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.diagnosis import Diagnosis, diagnosis_of
from darkmetrics.distributions import Interval, MetricDistribution, chance_of_target
from darkmetrics.distributions.mixture import variance_shares
from darkmetrics.exceptions import RecordedWarning
from darkmetrics.footnotes import (
    describe_binning,
    describe_undefined,
    proven,
    scope_in_words,
    threshold_in_words,
    what_narrows,
)
from darkmetrics.methods import Auto, Method
from darkmetrics.metrics import Metric
from darkmetrics.metrics.metric import oracle_bounds
from darkmetrics.metrics.targets import name_in, target_from
from darkmetrics.missingness.arrival import Arrival
from darkmetrics.missingness.base import Mechanism, describe_prevalence
from darkmetrics.missingness.mixture import MIN_STATED, mechanism_weights, select_mechanism
from darkmetrics.missingness.reference import ReferenceLike
from darkmetrics.population import Population
from darkmetrics.posterior import Posterior
from darkmetrics.result import Result, load
from darkmetrics.tables import (
    decimals_for,
    finite,
    flat_numbers,
    interval_text,
    level_text,
    number_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SENSITIVITY_ODDS = 3.0
# Most decimals of the printed table, except for intervals that need more.
_MAX_DECIMALS = 5


@dataclass(frozen=True, eq=False)
class Evaluation(Result, Mapping[str, MetricDistribution]):
    """The law of each metric on one evaluation set: a mapping from metric name to `MetricDistribution`.

    Print it for a table in words, `to_dict()` for plain numbers, `to_frame()` for a DataFrame.
    """

    data: EvaluationSet
    metrics: Mapping[str, Metric]
    distributions: Mapping[str, MetricDistribution]
    # The metrics on the labeled rows alone: what dropping the unlabeled rows would have reported.
    labeled_only: Mapping[str, float]
    # What a 0/0 of each metric counts as; NaN: it is left out.
    fills: Mapping[str, float]
    assumption: str
    posterior: Posterior  # of the missing labels
    # What was said about why labels are missing (`missingness.choice.stated_mechanism`); None: nothing.
    stated: str | None = None
    reference: ReferenceLike | None = None  # `diagnosis` compares with these rows
    confidence_level: float = 0.9
    # Later questions about the same rows use the same method.
    method: Method = field(default_factory=Auto)
    # The arguments of `evaluate` that were not defaults, as code; data stand as the name of the argument.
    arguments: Mapping[str, str] = field(default_factory=dict)
    # The rows are those of so many groups with label models of their own, of which this is the sum; 0: there is one.
    groups: int = 0
    # When labels come, where rows have ages that the probabilities were learned from; else None.
    arrival: Arrival | None = None
    warnings: tuple[RecordedWarning, ...] = ()  # also issued as Python warnings
    # Where the probabilities came from, fitted if that takes time; None where it is more than one model.
    model: Mechanism | None = None
    scope: Scope = "rows"  # what the distributions are about
    on_rows: "Evaluation | None" = field(default=None, repr=False)
    _sensitivities: dict[float, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        at_level = {name: value.at_level(self.confidence_level) for name, value in self.distributions.items()}
        object.__setattr__(self, "distributions", at_level)

    def __getitem__(self, name: str) -> MetricDistribution:
        return self.distributions[name_in(self.distributions, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.distributions)

    def __len__(self) -> int:
        return len(self.distributions)

    def __sub__(self, other: object) -> Any:
        """Return the change from another evaluation to this one, as `compare_evaluations(self, other)` does."""
        return (
            load("changes.change:compare_evaluations")(self, other) if isinstance(other, Evaluation) else NotImplemented
        )

    def __getattr__(self, name: str) -> Any:
        distributions = self.__dict__.get("distributions", {})
        return distributions[name] if name in distributions else super().__getattr__(name)

    @cached_property
    def population(self) -> "Evaluation":
        """Evaluate the same metrics in the population that the rows came from (computed on first use, without a fit).

        The rows are assumed to be a random sample. Distributions include the variance of sampling rows and of learned
        probabilities; passed ones replace the labels, so the result can be narrower than on the rows. With every label
        known, precision has the Beta distribution of its two counts, and ROC-AUC has DeLong's variance.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> result = dm.evaluate(
        ...     [1, 0, 1, 1], [0.9, 0.2, 0.7, 0.4], metrics="precision", missingness=dm.missing.Fixed(0.5)
        ... )
        >>> result["precision"].interval(), [round(end, 3) for end in result.population["precision"].interval()]
        (Interval(low=1.0, high=1.0), [0.431, 0.999])
        """
        if self.scope == "population":
            return self
        asked = Population(self.data, self.posterior)
        distributions = {
            name: asked.distribution(self.metrics[name], distribution)
            for name, distribution in self.distributions.items()
        }
        return replace(self, distributions=distributions, scope="population", on_rows=self)

    @property
    def rows(self) -> "Evaluation":
        """The same metrics on the rows at hand, whatever the scope of this evaluation is."""
        return self if self.on_rows is None else self.on_rows

    def oracle_bounds(self, metric: str) -> Interval:
        """The paper's pessimistic and optimistic value: every missing row decided wrongly, and every one rightly.

        These are the extremes of metrics that rise with every right decision. They are not for ROC-AUC: use
        `self[metric].support()` for bounds that nothing can pass.
        """
        metric = name_in(self.distributions, metric)
        return Interval(*oracle_bounds(self.metrics[metric], self.data, self.fills[metric]))

    def target_probability(self, metric: str, target: float) -> float:
        """How likely is it that a metric meets a target: is at least as large, or at most where lower is better?

        NaN where the metric is never defined.
        """
        name = name_in(self.distributions, metric)
        value = target_from(target, self.metrics[name], "target", f"{target!r} for {name!r}")
        return chance_of_target(self.distributions[name], value, self.metrics[name].better)

    @cached_property
    def intervals(self) -> Mapping[str, Interval]:
        """The interval of each metric at the evaluation's confidence level (made on first use)."""
        return {name: distribution.interval(self.confidence_level) for name, distribution in self.distributions.items()}

    def sensitivity(self, odds: float = _SENSITIVITY_ODDS) -> Any:
        """Compute the interval of each metric if the odds of the missing rows are off by a factor.

        The result contains all intervals of a metric if the odds that a missing row is positive are up to `odds` times
        higher or lower than assumed. Rows predicted positive have one factor, rows predicted negative another. The data
        cannot contradict such factors; 1 leaves the intervals as they are. Computed on first use and kept.

        Parameters
        ----------
        odds : float
            The largest factor, at least 1.

        Notes
        -----
        Approximate distributions find the factors at which an end is lowest or highest; the evaluation's method
        computes the end there. If few combinations of labels are possible, the ends are exact. An interval contains
        those computed before for smaller factors.

        Examples
        --------
        >>> import numpy as np
        >>> import darkmetrics as dm
        >>> rng = np.random.default_rng(0)
        >>> y_score = rng.random(500)
        >>> y_true = np.where(rng.random(500) < 0.3, np.nan, rng.random(500) < y_score)
        >>> result = dm.evaluate(y_true, y_score, missingness="random", metrics=["precision", "recall"])
        >>> print(result.sensitivity(odds=2))
                      90% interval   sensitivity (odds x2)
        precision   0.736 to 0.791          0.697 to 0.812
        recall      0.767 to 0.806          0.734 to 0.828
        """
        odds = load("sensitivity:check_odds")(odds)
        if odds not in self._sensitivities:
            self._sensitivities[odds] = load("sensitivity:sensitivity_of")(self, odds, self._sensitivities)
        return self._sensitivities[odds]

    def tipping_point(self, metric: str, target: float) -> Any:
        """How far off may the odds of the missing rows be until a target is no longer met?

        The smallest factor, on the tilts of `sensitivity`, at which the probability that the metric meets the target
        falls below the evaluation's confidence level: a number (`float(...)`, `.odds`) that prints as a sentence. It is
        1 where the target is not met even as it is, and infinite where no factor (up to a million) does it.

        Parameters
        ----------
        metric : str
            One of the metrics.
        target : float
            What it should be at least, or at most where lower is better.

        Examples
        --------
        >>> import numpy as np
        >>> import darkmetrics as dm
        >>> rng = np.random.default_rng(0)
        >>> y_score = rng.random(500)
        >>> y_true = np.where(rng.random(500) < 0.3, np.nan, rng.random(500) < y_score)
        >>> result = dm.evaluate(y_true, y_score, missingness="random")
        >>> print(result.tipping_point("recall", 0.7))
        recall is at least 0.7 with probability 90% or more unless the odds that missing rows are positive are 4.22
        times lower for those decided positive and 4.22 times higher for those decided negative than assumed.
        """
        name = name_in(self.distributions, metric)
        return load("sensitivity:tipping_point_of")(
            self, name, target_from(target, self.metrics[name], "target", f"{target!r} for {name!r}")
        )

    def target_by_mechanism(self, metric: str, target: float) -> dict[str, float]:
        """How likely a metric meets a target if labels are missing for each of the mechanisms that were mixed.

        Empty where one mechanism was stated, or nothing is mixed.
        """
        metric, found = name_in(self.distributions, metric), dict[str, float]()
        if not self.posterior.mechanisms or not self.posterior.independent:
            return found
        for k in np.flatnonzero(mechanism_weights(self.posterior) >= MIN_STATED):
            rows, posterior = select_mechanism(self.posterior, int(k)).without_strata(self.data)
            functional = self.metrics[metric].bind(rows, self.fills[metric])
            distribution = next(self.method.distributions([functional], posterior, rng=0))
            if self.scope == "population":
                distribution = Population(rows, posterior).distribution(self.metrics[metric], distribution)
            found[self.posterior.mechanisms[k]] = chance_of_target(distribution, target, self.metrics[metric].better)
        return found

    @cached_property
    def diagnosis(self) -> Diagnosis:
        """What the data say about why labels are missing, and what that does to these metrics (made on first use)."""
        metrics = tuple(self.metrics.values())
        late = None if self.arrival is None else (self.arrival, self.posterior)
        return diagnosis_of(self.data, self.reference, metrics, self.fills, self.stated, self.groups, late)

    @cached_property
    def binning_error(self) -> Mapping[str, float]:
        """How far it can have moved each metric that scores were counted in bins (made on first use).

        A proven bound, whatever the missing labels are; 0 where scores are exact, and for metrics of the decisions;
        NaN where it is not known. What a label model makes of a bin's mean score is not in it.
        """
        return {name: metric.binning_error(self.data) for name, metric in self.metrics.items()}

    def variance_decomposition(self, metric: str) -> dict[str, float]:
        """Where the spread of a metric comes from, as shares of its variance that add up to one.

        "labels" goes away as labels arrive, "calibration" as more rows are labeled anywhere, and "prevalence" if the
        mechanism is stated or reference rows are passed. The population also has "sampling": more rows narrow it.
        """
        distribution = self[metric]
        if self.on_rows is not None:
            # Probabilities that are given stand for the labels; none is drawn.
            known = (
                0.0
                if self.posterior.given or not distribution.var() > 0.0
                else min(1.0, self.on_rows[metric].var() / distribution.var())
            )
            parts_of_rows = self.on_rows.variance_decomposition(metric)
            return {source: known * share for source, share in parts_of_rows.items()} | {"sampling": 1.0 - known}
        return variance_shares(distribution, self.posterior.shift)

    def plot(self, metric: str | Sequence[str] | None = None, *, ax: "Axes | None" = None, **settings: Any) -> Any:
        """All metrics, or some, in one forest plot (`plotting.plot_metrics`); of one named metric its law.

        The latter is `plotting.plot_distribution`. Needs matplotlib. Returns the Axes drawn on.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
        >>> result.plot("recall", target=0.6).get_xlabel()
        'recall'
        """
        draw = load(
            "plotting.distribution:plot_distribution" if isinstance(metric, str) else "plotting.forests:plot_metrics"
        )
        check_call(draw, "result.plot", [self, metric], {"ax": ax, **settings})
        return draw(self, metric, ax=ax, **settings)

    def confusion_matrix(self) -> Any:
        """Return the confusion matrix with the distribution of each entry (a `ConfusionMatrix`).

        Examples
        --------
        >>> import darkmetrics as dm
        >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
        >>> result.confusion_matrix().mean.round(3).tolist()
        [[1.0, 0.4], [1.0, 1.6]]
        """
        return load("class_results:binary_confusion")(self)

    def plot_arrival(self, ax: "Axes | None" = None) -> Any:
        """Labels that are in by age (`plotting.plot_arrival`); needs matplotlib. Returns the Axes drawn on."""
        return load("plotting.arrivals:plot_arrival")(self, ax=ax)

    def sentence(self, metric: str) -> str:
        """Return what is known of one metric in plain words, with what is assumed.

        Examples
        --------
        >>> import darkmetrics as dm
        >>> dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6])).sentence("recall")
        'recall is 0.600, 90% between 0.500 and 0.667; dropping unlabeled rows would have said 0.500. Assumed: missing
        labels are independent, with the probabilities given.'
        """
        metric = name_in(self.distributions, metric)
        entry = self[metric].to_dict(self.confidence_level) | {"labeled_only": finite(self.labeled_only[metric])}
        said = load("report.sentences:headline")(metric, entry, self.data.counts(), self.scope)
        return " ".join(filter(None, [f"{said}.", *self.assumption.split("\n")]))

    def to_dict(self, *, flat: bool = False) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/evaluation.md` has the schema).

        With `flat`, numbers alone, each by one name, as `mlflow.log_metrics` takes them: "recall", "recall_low",
        "recall_high", "recall_labeled_only", and how many rows there are. What is undefined is left out.
        """
        if flat:
            return flat_numbers(
                {"": self.data.counts()}
                | {
                    name: {"": distribution.mean(), "low": low, "high": high, "labeled_only": self.labeled_only[name]}
                    for (name, distribution), (low, high) in zip(
                        self.distributions.items(), self.intervals.values(), strict=True
                    )
                }
            )
        found: dict[str, Any] = {
            "schema": "darkmetrics.evaluation/1",
            "scope": self.scope,
            "counts": self.data.counts(),
            "threshold": self.data.threshold,
            "assumption": self.assumption,
            "warnings": [warned._asdict() for warned in self.warnings],
            "metrics": {
                name: {
                    "meaning": self.metrics[name].meaning,
                    "better": self.metrics[name].better,
                    "labeled_only": finite(self.labeled_only[name]),
                    **distribution.to_dict(self.confidence_level),
                    "sensitivity": self._moved_numbers(name),
                    **{f"variance_from_{source}": share for source, share in self.variance_decomposition(name).items()},
                }
                for name, distribution in self.distributions.items()
            },
        }
        if self.data.score_bins is not None:
            effects = {name: finite(effect) for name, effect in self.binning_error.items()}
            found |= {"score_bins": self.data.score_bins, "binning_error": effects}
        return found if self.arrival is None else found | {"arrival": self.arrival.to_dict()}

    def _moved_numbers(self, name: str) -> dict[str, float | None]:
        found = self.sensitivity()
        low, high = found[name]
        return {"odds": found.odds, "low": finite(low), "high": finite(high)}

    def to_records(self) -> list[dict[str, Any]]:
        """One flat record per metric, with its name: the rows of `to_frame`."""
        rows = []
        for name, entry in self.to_dict()["metrics"].items():
            moved = {f"sensitivity_{key}": value for key, value in entry.pop("sensitivity").items()}
            rows.append({"metric": name, "scope": self.scope, **entry, **moved})
        return rows

    @suggest_call()
    def report(  # type: ignore[override]  # names what it takes
        self,
        path: PathLike | None = None,
        *,
        targets: Mapping[str, float] | None = None,
        confidence: float = 0.9,
        title: str | None = None,
        source: str | Mapping[str, Any] | None = None,
        date: str | dt.date | None = None,
        audit: Mapping[str, Any] | None = None,
    ) -> Any:
        """Write a report to one file and return its path; without a path return the page, which a notebook shows.

        The suffix sets the format: ".html" for a page with pictures and sliders that opens offline (needs jinja2),
        ".pdf" for the same page in print (needs a browser as well), ".md" for Markdown, ".json" for the numbers. The
        file appears when it is complete.

        Parameters
        ----------
        path : str or path, optional
            The file to write; one that exists is replaced.
        targets : mapping from metric to number, optional
            Values to reach: the probability of each, and the missing labels at which it is crossed.
        confidence : float
            A target passes (PASS, else FAIL) if its probability is at least this.
        title : str, optional
            Heading of the report.
        source : str or mapping, optional
            Where the rows came from: a file name, or facts by name.
        date : str or date, optional
            Date of the report; that of SOURCE_DATE_EPOCH, else today, unless given.
        audit : mapping, optional
            Facts for an audit file by name: adds a section with these, a hash of the rows, and versions.

        Examples
        --------
        >>> import tempfile
        >>> import darkmetrics as dm
        >>> result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page = result.report(f"{folder}/four-rows.html", targets={"recall": 0.6})
        ...     page.name, page.stat().st_size < 1_500_000
        ('four-rows.html', True)
        """
        about = {"targets": targets, "confidence": confidence, "title": title, "source": source}
        return load("report.render:write_report")(self, path, **about, date=date, audit=audit)

    def __repr__(self) -> str:
        data, about = self.data, " for their population" if self.scope == "population" else ""
        return f"<Evaluation of {counted(data.n_rows, 'row')}, {data.n_missing:,} missing{about}: {', '.join(self)}>"

    def _words(self) -> list[str]:
        """What stands above the table: how many rows, what was assumed, how many missing rows are positive."""
        n, m = self.data.n_rows, self.data.n_missing
        words = [f"{counted(n, 'row')}: {n - m:,} labeled, {m:,} missing ({m / n:.1%})"]
        if not m:
            return words
        words += filter(None, self.assumption.split("\n"))
        if len(self.posterior) > 1 and self.data.missing_cells.size:
            words.append(describe_prevalence(self.data, self.posterior))
        if self.arrival is not None:
            words.append(self.arrival.headline())
        if self.stated is None:
            words += filter(
                None, [what_narrows(self.distributions, self.intervals, self.posterior, self.confidence_level)]
            )
        return words

    def _notes(self) -> list[str]:
        """What stands below the table: what the intervals are for, and what is proven about approximations."""
        notes = [scope_in_words(self.scope, self.data.n_rows), *threshold_in_words(self.data, self.metrics.values())]
        if any(not distribution.bounds_sharp for distribution in self.distributions.values()):
            notes.append("Bounds in brackets are valid, but perhaps no label assignment attains them.")
        undefined = {name: distribution.undefined for name, distribution in self.distributions.items()}
        notes += describe_undefined(undefined)
        # What is near exact is off by less than is printed, and what is proven of it takes time.
        approximate = {
            name: distribution
            for name, distribution in self.distributions.items()
            if distribution.method not in ("exact", "near exact")
        }
        if approximate and self.scope == "rows":
            notes.append(proven(approximate))
        if self.data.score_bins is not None:
            notes.append(describe_binning(self.data.score_bins, self.binning_error))
        return notes

    def _table(self) -> tuple[list[str], list[list[str]]]:
        """Return header and rows of the table as text, one row per metric; `to_frame` has further columns."""
        header = [
            "",
            "estimate",
            f"{level_text(self.confidence_level)} interval",
            "labeled only",
            *(["bounds"] if self.scope == "rows" else []),
        ]
        # All rows have the same decimals, except those of much narrower intervals.
        decimals = {name: decimals_for(high - low) for name, (low, high) in self.intervals.items()}
        common = max((number for number in decimals.values() if number <= _MAX_DECIMALS), default=_MAX_DECIMALS)
        return header, [self._row(name, max(common, decimals[name])) for name in self.distributions]

    def _row(self, name: str, decimals: int) -> list[str]:
        distribution = self.distributions[name]
        low, high = distribution.support()
        bounds = f"{number_text(low, 3)} to {number_text(high, 3)}" if np.isfinite([low, high]).any() else "undefined"
        return [
            name,
            number_text(distribution.mean(), decimals),
            interval_text(self.intervals[name], decimals),
            number_text(self.labeled_only[name], decimals) if self.data.n_labeled else "no labels",
            *([bounds if distribution.bounds_sharp else f"({bounds})"] if self.scope == "rows" else []),
        ]
