"""evaluate(): from labels and scores to the law of every metric, and the Evaluation that holds them."""

import html
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics.distribution import Interval, MetricDistribution, check_level
from darkmetrics.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError, MethodError, UndefinedMetricWarning, unknown_name
from darkmetrics.label_models import LabelModel, Prevalence, label_model_from
from darkmetrics.methods import Memo, method_from
from darkmetrics.metrics import Metric, metrics_from

DEFAULT_METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
# A chance of 0/0 below this moves no printed digit and is not worth a warning.
_WARN_FROM = 1e-6


@dataclass(frozen=True, eq=False)
class Evaluation(Mapping[str, MetricDistribution]):
    """The law of each metric on one evaluation set: a mapping from metric name to `MetricDistribution`.

    Print it for a table in words, `to_dict()` for plain numbers, `to_frame()` for a DataFrame.
    """

    data: EvaluationSet
    metrics: Mapping[str, Metric]
    laws: Mapping[str, MetricDistribution]
    # The metrics on the labelled rows alone: what dropping the unlabelled rows would have reported.
    labelled_only: Mapping[str, float]
    # What a 0/0 of each metric counts as; NaN: it is left out.
    fills: Mapping[str, float]
    assumption: str
    confidence_level: float = 0.9

    def __getitem__(self, name: str) -> MetricDistribution:
        if name not in self.laws:
            raise _MissingMetricError(str(unknown_name("metric", "metric", str(name), self.laws)))
        return self.laws[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.laws)

    def __len__(self) -> int:
        return len(self.laws)

    def oracle_bounds(self, metric: str) -> Interval:
        """The paper's pessimistic and optimistic value: every missing row decided wrongly, and every one rightly.

        These are the extremes of metrics that rise with every right decision. They are not for ROC-AUC: use
        `self[metric].support()` for bounds that nothing can pass.
        """
        self[metric]  # an unknown name gets its error here
        functional = self.metrics[metric].bind(self.data, self.fills[metric])
        right = functional.missing * self.data.cells.decision[self.data.missing_cells]
        wrong = functional.missing - right
        values = functional.values(np.stack([wrong, right]))
        pessimistic, optimistic = np.where(np.isnan(values), functional.fill, values).tolist()
        return Interval(pessimistic, optimistic)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain numbers and text, ready for JSON (`docs/reference/evaluation.md` has the schema)."""
        return {
            "schema": "darkmetrics.evaluation/1",
            "census": self.data.census(),
            "threshold": self.data.threshold,
            "assumption": self.assumption,
            "metrics": {
                name: {
                    "meaning": self.metrics[name].meaning,
                    "better": self.metrics[name].better,
                    "labelled_only": _finite(self.labelled_only[name]),
                    **law.to_dict(self.confidence_level),
                }
                for name, law in self.laws.items()
            },
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """One row per metric, as a pandas, Polars or PyArrow frame (the first one installed, unless named)."""
        rows = [{"metric": name, **entry} for name, entry in self.to_dict()["metrics"].items()]
        numbers = {key for row in rows for key, value in row.items() if isinstance(value, float)}
        columns = {
            key: [np.nan if key in numbers and row[key] is None else row[key] for row in rows] for key in rows[0]
        }
        return frames.to_native_frame(columns, backend)

    def __repr__(self) -> str:
        n, m = self.data.n_rows, self.data.n_missing
        return f"<Evaluation of {n:,} rows, {m:,} missing: {', '.join(self.laws)}>"

    def __str__(self) -> str:
        header, rows = self._table()
        widths = [max(len(line[i]) for line in [header, *rows]) for i in range(len(header))]

        def line(cells: list[str]) -> str:
            first = cells[0].ljust(widths[0])
            return "   ".join([first, *(c.rjust(w) for c, w in zip(cells[1:], widths[1:], strict=True))]).rstrip()

        return "\n".join([*self._words(), "", line(header), *map(line, rows), "", *self._notes()])

    def _repr_html_(self) -> str:
        header, rows = self._table()
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        words = "".join(f"<p>{html.escape(text)}</p>" for text in self._words())
        notes = "".join(f"<p>{html.escape(text)}</p>" for text in self._notes())
        return f"<div>{words}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}</div>"

    def _words(self) -> list[str]:
        n, m = self.data.n_rows, self.data.n_missing
        census = f"{n:,} {'row' if n == 1 else 'rows'}: {n - m:,} labelled, {m:,} missing ({m / n:.1%})"
        return [census, self.assumption] if m else [census]

    def _notes(self) -> list[str]:
        these = "this row" if self.data.n_rows == 1 else f"these {self.data.n_rows:,} rows"
        notes = [f"Intervals are for {these}, not for the population they came from."]
        if any(not law.bounds_sharp for law in self.laws.values()):
            notes.append("Bounds in brackets hold, but perhaps no labeling attains them.")
        return notes

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = [
            "",
            "estimate",
            f"{self.confidence_level:.0%} interval",
            "labelled only",
            "worst to best",
            "method",
            "undefined",
        ]
        return header, [self._row(name, law) for name, law in self.laws.items()]

    def _row(self, name: str, law: MetricDistribution) -> list[str]:
        low, high = law.interval(self.confidence_level)
        worst, best = law.support()[:: -1 if self.metrics[name].better == "lower" else 1]
        # As many decimals as the width of the interval deserves: three at least, so that its two ends differ.
        width = high - low
        decimals = 3 if not 0.0 < width < 0.01 else min(8, int(np.ceil(-np.log10(width))) + 1)
        bounds = f"{_number(worst, 2)} to {_number(best, 2)}" if np.isfinite([worst, best]).any() else "undefined"
        return [
            name,
            _number(law.mean(), decimals),
            f"{_number(low, decimals)} to {_number(high, decimals)}" if np.isfinite(low) else "undefined",
            _number(self.labelled_only[name], 3) if self.data.n_labelled else "no labels",
            bounds if law.bounds_sharp else f"({bounds})",
            law.method,
            "0" if law.undefined == 0.0 else "<0.1%" if law.undefined < 0.001 else f"{law.undefined:.1%}",
        ]


class _MissingMetricError(KeyError):
    """A KeyError, as mappings raise, whose message is printed as it is written."""

    def __str__(self) -> str:
        return str(self.args[0])


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _number(value: float, decimals: int) -> str:
    if np.isnan(value):
        return "undefined"
    return f"{value:.{decimals}f}" if abs(value) < 100.0 else f"{value:,.4g}"


def evaluate(
    y_true: Any,
    y_score: Any = None,
    *,
    metrics: Any = DEFAULT_METRICS,
    threshold: float = 0.5,
    y_pred: Any = None,
    label_model: Any = None,
    method: Any = "auto",
    pos_label: Any = 1,
    missing_label: Any = None,
    sample_weight: Any = None,
    zero_division: Any = "warn",
    rng: Any = None,
    confidence_level: float = 0.9,
) -> Evaluation:
    """How good is this classifier on these rows, when part of their labels is missing?

    Returns, for each metric, the whole distribution of the value it would have if all labels were known, given
    probabilities for the missing ones. The spread is about these rows: it shrinks to nothing as labels arrive.

    Parameters
    ----------
    y_true : array-like or EvaluationSet
        Labels, missing ones NaN, None or null; or a ready set, and then no `y_score`.
    y_score : array-like of float
        Scores of the positive class: finite, higher means more likely positive.
    metrics : str, Metric, callable, or a sequence or mapping of these
        What to evaluate; `list_metrics()` shows all names, and "fbeta(2)" or "precision_at_k(100)" take a parameter.
    threshold, y_pred, pos_label, missing_label, sample_weight
        As in `EvaluationSet`.
    label_model : str, LabelModel, float or array-like
        Where the probabilities of the missing labels come from: an array with one per row or one per missing row,
        "half", "prevalence", or one number for all rows. Required unless the set was built with `probability=`.
    method : str or Method
        "auto" (exact where possible), "exact", "monte_carlo", "gaussian", or a settings object such as
        `methods.MonteCarlo(n_resamples=100_000)`.
    zero_division : {"warn", 0, 1, nan}
        Value of a metric that is 0/0. "warn" takes what scikit-learn would return, and warns; with NaN the law is
        conditional on the metric being defined.
    rng : None, int or numpy Generator
        Source of randomness for Monte Carlo; a seed makes the result repeatable.
    confidence_level : float
        Probability of the intervals in the printed table and in `to_dict()`.

    Returns
    -------
    Evaluation
        A mapping from metric name to `MetricDistribution`.

    Notes
    -----
    Missing labels are taken as independent given their probabilities. How the laws are computed, with proofs, is in
    `docs/explanation/mathematics.md`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true = [1, 0, None, 1, None, 0, 1, 0]
    >>> y_score = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, label_model=[0.7, 0.2], metrics=["precision", "recall"])
    >>> print(result)
    8 rows: 6 labelled, 2 missing (25.0%)
    Assumed: missing labels are independent, with the probabilities given.
    <BLANKLINE>
                estimate     90% interval   labelled only   worst to best   method   undefined
    precision      0.675   0.500 to 0.750           0.667    0.50 to 0.75    exact           0
    recall         0.694   0.500 to 0.750           0.667    0.50 to 0.75    exact           0
    <BLANKLINE>
    Intervals are for these 8 rows, not for the population they came from.
    >>> round(result["recall"].cdf(0.7), 3)
    0.44
    """
    chosen = metrics_from(metrics)
    how = method_from(method)
    check_level(confidence_level)
    fill = _fill_value(zero_division)
    data, model = _data_and_model(
        y_true,
        y_score,
        label_model,
        {
            "threshold": threshold,
            "y_pred": y_pred,
            "pos_label": pos_label,
            "missing_label": missing_label,
            "sample_weight": sample_weight,
        },
    )
    generator = generator_from(rng)
    (p,) = model.nodes(data).probability
    memo = Memo()
    laws: dict[str, MetricDistribution] = {}
    fills = {metric.name: metric.undefined_as if fill is None else fill for metric in chosen}
    labelled_only: dict[str, float] = {}
    for metric in chosen:
        try:
            functional = metric.bind(data, fills[metric.name])
            law = how.law(functional, p, rng=generator, memo=memo)
        except MethodError as error:
            raise MethodError(f"{error} (metric: {metric.name!r})") from None
        except Exception as error:
            error.add_note(f"darkmetrics was computing the metric {metric.name!r}.")
            raise
        if zero_division == "warn" and law.undefined > _WARN_FROM:
            warnings.warn(_undefined_message(metric, law), UndefinedMetricWarning, stacklevel=2)
        laws[metric.name] = law
        labelled_only[metric.name] = metric.value(data, fills[metric.name]) if data.n_labelled else np.nan
    return Evaluation(
        data=data,
        metrics={metric.name: metric for metric in chosen},
        laws=laws,
        labelled_only=labelled_only,
        fills=fills,
        assumption=model.describe(data) if data.n_missing else "",
        confidence_level=confidence_level,
    )


def _data_and_model(
    y_true: Any, y_score: Any, label_model: Any, settings: dict[str, Any]
) -> tuple[EvaluationSet, LabelModel]:
    if isinstance(label_model, (int, float, np.number)) and not isinstance(label_model, bool):
        label_model = Prevalence(float(label_model))
    named = isinstance(label_model, (str, LabelModel))
    if isinstance(y_true, EvaluationSet):
        # Only a plain value can be a default; columns of any engine compare in ways of their own.
        changed = [
            key
            for key, value in settings.items()
            if value is not None and not (isinstance(value, (int, float)) and value == _DEFAULTS.get(key))
        ]
        if y_score is not None or changed:
            extra = "y_score" if y_score is not None else changed[0]
            raise InputError(f"{extra}: an EvaluationSet already fixes it; give it when building the set.")
        if label_model is None and y_true.cells.probability is not None:
            label_model, named = "given", True
        if label_model is not None and not named:
            raise InputError(
                "label_model: an EvaluationSet has cells, not rows, so probabilities per row cannot be matched to it. "
                "Give them as EvaluationSet(..., probability=p)."
            )
        if y_true.n_rows == 0:
            raise InputError("y_true: the EvaluationSet has no rows. An evaluation needs at least one.")
        data = y_true
    else:
        if y_score is None:
            raise InputError("y_score: missing. Give the scores, or an EvaluationSet as the only data.")
        try:
            data = EvaluationSet(y_true, y_score, probability=None if named else label_model, **settings)
        except InputError as error:  # name the argument that the caller used
            raise InputError(re.sub(r"^probability:", "label_model:", str(error))) from None
        if label_model is not None and not named:
            label_model = "given"
    if label_model is None and data.n_missing == 0:
        label_model = "half"  # nothing is missing, so nothing depends on it
    if label_model is None:
        raise InputError(
            "label_model: missing. Say where the probabilities of the missing labels come from: an array with one per "
            "row or per missing row, 'prevalence' or 'half'."
        )
    return data, label_model_from(label_model)


_DEFAULTS = {"threshold": 0.5, "pos_label": 1}


def _fill_value(zero_division: Any) -> float | None:
    """None for "warn" (each metric's own value), else the number that stands for 0/0."""
    if isinstance(zero_division, str) and zero_division == "warn":
        return None
    if isinstance(zero_division, (int, float, np.number)) and (
        zero_division in (0, 1) or zero_division != zero_division
    ):
        return float(zero_division)
    raise InputError(f"zero_division: expected 'warn', 0, 1 or nan, got {zero_division!r}.")


def generator_from(rng: Any) -> np.random.Generator:
    """The generator that a seed or a generator stands for."""
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise InputError(f"rng: expected None, a seed or a numpy Generator, got {rng!r}.") from None


def _undefined_message(metric: Metric, law: MetricDistribution) -> str:
    chance = "always" if law.undefined > 1.0 - 1e-12 else f"with probability {law.undefined:.3g}"
    left_out = np.isnan(metric.undefined_as) or law.method == "gaussian"
    value = "left out of its law" if left_out else f"counted as {metric.undefined_as:g}"
    return (
        f"{metric.name} is undefined (0/0) {chance}; there it is {value}. "
        "Set zero_division to 0, 1 or nan to choose, and to silence this."
    )
