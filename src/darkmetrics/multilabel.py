"""evaluate() for several labels per row: each label is a problem of two classes with its own fit.

Labels of one row are independent given the scores. Averages over labels combine independent distributions; metrics of
complete rows and of all labels pooled pair posterior draws of the labels at random.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray
from darkmetrics._text import counted
from darkmetrics.class_results import PerClass
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions import Discrete, Interval, MetricDistribution, Tabulated, Undefined
from darkmetrics.distributions.drawing import allocate
from darkmetrics.distributions.expansion import edgeworth_cdf, mix_draws
from darkmetrics.distributions.problem import Problem
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError, RecordedWarning, record_warnings
from darkmetrics.metrics import DEFAULT_METRICS
from darkmetrics.metrics.confusion import ALL, FN, FP, TP, ConfusionMetric
from darkmetrics.metrics.metric import UNIT, Metric, metric_from_text
from darkmetrics.metrics.targets import name_in
from darkmetrics.posterior import Posterior, columns_of
from darkmetrics.question import Question
from darkmetrics.result import Result
from darkmetrics.tables import decimals_for, finite, interval_text, level_text, number_text

DEFAULT_MULTILABEL_METRICS = ("f1_macro", "f1_micro", "roc_auc_macro", "hamming", "subset_accuracy")
"""What is evaluated for several labels per row if no metrics are passed."""

# Values that are combined for an average over labels; paired posterior draws.
_N_VALUES, _N_PAIRED = 2**15, 128
# With at most this many rows without all labels, Jaccard values are drawn, not expanded.
_FEW_ROWS, _N_DRAWN = 512, 2**14
_ACCURACY = ConfusionMetric(name="accuracy", formula=TP / (TP + FP), range=UNIT, direction=(1, 0))
_HAMMING = ConfusionMetric(name="hamming", formula=(FP + FN) / ALL, range=UNIT, better="lower", direction=(-1, 1))


def has_several_labels(y_true: Any) -> bool:
    """Return whether labels are a table with a column per label."""
    shape = getattr(y_true, "shape", None)
    if shape is None and isinstance(y_true, (list, tuple)) and y_true and isinstance(y_true[0], (list, tuple)):
        return len(y_true[0]) > 1
    return isinstance(shape, tuple) and len(shape) == 2 and shape[1] > 1


def _to_columns(table: Any, name: str) -> tuple[list[Any], list[str]]:
    """Return the columns of a table and their names."""
    columns = getattr(table, "columns", None)
    if columns is not None:
        return [table[column] for column in columns], [str(column) for column in columns]
    array = np.asarray(table, dtype=object)
    if array.ndim != 2:
        finding = f"an array with {counted(array.ndim, 'dimension')}"
        raise InputError(name, finding, "With several labels per row, it must be a table with a column per label.")
    return list(array.T), [str(i) for i in range(array.shape[1])]


@dataclass(frozen=True, eq=False, repr=False)
class MultilabelEvaluation(Result, Mapping[str, MetricDistribution]):
    """The distribution of each metric of rows with several labels, such as the tasks of an assay.

    Attributes
    ----------
    labels : mapping from label to Evaluation
        The evaluation of each label.
    distributions : mapping from metric to MetricDistribution
        Averages over labels, and metrics of complete rows.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> y_true = np.array([[1, 0], [np.nan, 1], [0, np.nan], [1, 1]])
    >>> y_score = np.array([[0.9, 0.2], [0.6, 0.8], [0.1, 0.4], [0.7, 0.6]])
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(0.5), metrics=["hamming", "f1"])
    >>> list(result), list(result.labels)
    (['hamming', 'f1_macro'], ['0', '1'])
    """

    labels: Mapping[str, Evaluation]
    distributions: Mapping[str, MetricDistribution]
    labeled_only: Mapping[str, float]
    confidence_level: float = 0.9
    warnings: tuple[RecordedWarning, ...] = ()

    def __getitem__(self, name: str) -> MetricDistribution:
        return self.distributions[name_in(self.distributions, name)]

    def __iter__(self) -> Iterator[str]:
        return iter(self.distributions)

    def __len__(self) -> int:
        return len(self.distributions)

    def per_class(self) -> PerClass:
        """Return the metrics of each label."""
        return PerClass(
            {name: result.data.n_labeled for name, result in self.labels.items()},
            {name: result.distributions for name, result in self.labels.items()},
            {name: result.labeled_only for name, result in self.labels.items()},
            self.confidence_level,
        )

    def _words(self) -> list[str]:
        counts = [evaluation.data.counts() for evaluation in self.labels.values()]
        n, missing = counts[0]["rows"], [count["missing"] / count["rows"] for count in counts]
        return [
            f"{n:,} rows with {len(counts)} labels; {min(missing):.1%} to {max(missing):.1%} of a label are missing",
            "Assumed: labels of one row are independent given the scores; each label has its own mechanism.",
        ]

    def _notes(self) -> list[str]:
        return [f"Intervals are for these {next(iter(self.labels.values())).data.n_rows:,} rows."]

    def _table(self) -> tuple[list[str], list[list[str]]]:
        header = [
            "",
            "estimate",
            f"{level_text(self.confidence_level)} interval",
            "labeled only",
            "method",
            "undefined",
        ]
        return header, [self._row(name, distribution) for name, distribution in self.distributions.items()]

    def _row(self, name: str, distribution: MetricDistribution) -> list[str]:
        low, high = distribution.interval(self.confidence_level)
        decimals = decimals_for(high - low)
        return [
            name,
            number_text(distribution.mean(), decimals),
            interval_text(Interval(low, high), decimals),
            number_text(self.labeled_only[name], 3),
            distribution.method,
            f"{distribution.undefined:.3g}",
        ]

    def to_dict(self) -> dict[str, Any]:
        return {
            "schema": "darkmetrics.multilabel/1",
            "metrics": {
                name: {"labeled_only": finite(self.labeled_only[name]), **distribution.to_dict(self.confidence_level)}
                for name, distribution in self.distributions.items()
            },
            "labels": {name: evaluation.to_dict() for name, evaluation in self.labels.items()},
            "warnings": [warned._asdict() for warned in self.warnings],
        }

    def to_records(self) -> list[dict[str, Any]]:
        return [{"metric": name, **entry} for name, entry in self.to_dict()["metrics"].items()]

    def plot(self, metric: str | None = None, **settings: Any) -> Any:
        """Draw a forest plot of the labels, of one metric."""
        return self.per_class().plot(metric, **settings)

    def __repr__(self) -> str:
        return f"<MultilabelEvaluation of {len(self.labels)} labels: {', '.join(self)}>"


@dataclass(frozen=True)
class _Named:
    """A metric of several labels: how the labels are combined, and the metric of one label."""

    name: str
    kind: str  # "macro", "micro", "label", "subset_accuracy", "jaccard_samples"
    binary: Metric | None = None
    label: str = ""


def _metric_of(text: Any, labels: Sequence[str]) -> _Named:
    if not isinstance(text, str):
        raise InputError("metrics", repr(text), "", "With several labels per row, pass names such as 'f1_macro'.")
    plain = text.strip().lower().replace("-", "_").removesuffix("_loss")
    if plain in ("subset_accuracy", "accuracy"):
        return _Named("subset_accuracy", "subset_accuracy")
    if plain in ("jaccard_samples", "hamming"):
        return _Named(plain, "micro" if plain == "hamming" else plain, _HAMMING if plain == "hamming" else None)
    if text.endswith("]") and "[" in text:
        name, _, label = text[:-1].partition("[")
        if label.strip() not in labels:
            raise InputError("metrics", f"{label.strip()!r} is no label", f"Labels are {', '.join(labels[:10])}.")
        return _Named(f"{metric_from_text(name).name}[{label.strip()}]", "label", metric_from_text(name), label.strip())
    stem, _, average = plain.rpartition("_")
    if average in ("weighted", "samples"):
        finding = f"{text!r} is not available for several labels per row"
        raise InputError("metrics", finding, "", "Use a macro or micro average.")
    if average in ("macro", "micro"):
        return _Named(plain, average, metric_from_text(stem))
    binary = metric_from_text(text)
    return _Named(f"{binary.name}_macro", "macro", binary)


def evaluate_labels(question_of: Any, given: Mapping[str, Any]) -> Any:
    """Return a MultilabelEvaluation of rows with several labels; `given` are all arguments of `evaluate`."""
    for name in ("data", "sample_weight", "y_pred", "clusters"):
        if given[name] is not None:
            raise InputError(name, "not available with several labels per row", "", "Evaluate one label at a time.")
    columns, labels = _to_columns(given["y_true"], "y_true")
    scores, _ = _to_columns(given["y_score"], "y_score")
    if len(scores) != len(columns):
        finding = f"{counted(len(scores), 'column')} for {counted(len(columns), 'label')}"
        raise InputError("y_score", finding, "", "Pass one column per label.")
    chosen = given["metrics"]
    chosen = (
        DEFAULT_MULTILABEL_METRICS if chosen is DEFAULT_METRICS else [chosen] if isinstance(chosen, str) else chosen
    )
    named = [_metric_of(text, labels) for text in chosen]
    binary = {
        metric.binary.name: metric.binary for metric in named if metric.binary is not None and metric.kind != "micro"
    }
    question: Question = question_of({**given, "metrics": list(binary.values()) or ["accuracy"]})
    evaluations = {}
    with record_warnings() as said:
        for name, y, s in zip(labels, columns, scores, strict=True):
            rows = EvaluationSet(
                y,
                np.asarray(s, dtype=np.float64),
                threshold=given["threshold"],
                pos_label=given["pos_label"],
                missing_label=given["missing_label"],
            )
            evaluations[name] = question.answer(rows)
    tables = LabelTable(
        evaluations, np.stack([np.asarray(s, dtype=np.float64) for s in scores], axis=1), columns, given
    )
    distributions = {metric.name: tables.distribution(metric, question) for metric in named}
    labeled_only = {metric.name: tables.labeled_only(metric) for metric in named}
    return MultilabelEvaluation(evaluations, distributions, labeled_only, question.confidence_level, tuple(said))


@dataclass(frozen=True, eq=False)
class LabelTable:
    """Rows with several labels, and the evaluation of each label."""

    evaluations: Mapping[str, Evaluation]
    score: FloatArray
    columns: Sequence[Any]
    given: Mapping[str, Any]

    @cached_property
    def _sets(self) -> list[tuple[EvaluationSet, Posterior]]:
        return [result.posterior.without_strata(result.data) for result in self.evaluations.values()]

    @cached_property
    def _paired(self) -> list[IntArray]:
        """Posterior draw of each label in each of the paired draws."""
        rng = np.random.default_rng(20)
        return [rng.permutation(allocate(posterior.weight, _N_PAIRED)) for _, posterior in self._sets]

    def distribution(self, metric: _Named, question: Question) -> MetricDistribution:
        """Return the distribution of one metric."""
        if metric.kind == "label":
            assert metric.binary is not None
            return self.evaluations[metric.label].distributions[metric.binary.name]
        if metric.kind == "macro":
            assert metric.binary is not None
            return _average([result.distributions[metric.binary.name] for result in self.evaluations.values()])
        if metric.kind == "jaccard_samples":
            return self._jaccard()
        binary = _ACCURACY if metric.binary is None else metric.binary
        rows, posterior = self._pooled if metric.kind == "micro" else self._complete_rows
        fill = binary.undefined_as if question.fill is None else question.fill
        return question.method.distribution(binary.bind(rows, fill), Problem(posterior))

    def labeled_only(self, metric: _Named) -> float:
        """Return the metric on the rows with a label, or with all labels."""
        if metric.kind in ("label", "macro"):
            assert metric.binary is not None
            results = [self.evaluations[metric.label]] if metric.kind == "label" else list(self.evaluations.values())
            return float(np.mean([result.labeled_only[metric.binary.name] for result in results]))
        if metric.kind == "jaccard_samples":
            state = self._state
            complete = (state >= 0).all(axis=1)
            both, either = ((state == 1) & self._decision), ((state == 1) | self._decision)
            counts = both[complete].sum(axis=1), either[complete].sum(axis=1)
            return float((counts[0] / np.maximum(counts[1], 1)).mean()) if complete.any() else np.nan
        if metric.kind == "subset_accuracy":
            complete = (self._state >= 0).all(axis=1)
            correct = (self._state == self._decision)[complete].all(axis=1)
            return float(correct.mean()) if complete.any() else np.nan
        assert metric.binary is not None
        return metric.binary.value(self._pooled[0], metric.binary.undefined_as)

    @cached_property
    def _pooled(self) -> tuple[EvaluationSet, Posterior]:
        """All labels as rows of one set of two classes."""
        names = ("score", "decision", "positives", "negatives", "missing")
        arrays = [np.concatenate([getattr(rows.cells, name) for rows, _ in self._sets]) for name in names]
        columns, table, start = [], [], 0
        for (rows, posterior), draws in zip(self._sets, self._paired, strict=True):
            column = np.full(rows.cells.score.size, -1)
            column[rows.missing_cells] = start + columns_of(posterior)
            columns.append(column)
            table.append(posterior.probability[draws])
            start += posterior.probability.shape[1]
        order = np.argsort(arrays[0], kind="stable")
        pooled = EvaluationSet.from_cells(Cells(*(array[order] for array in arrays)), threshold=self._threshold)
        bucket = np.concatenate(columns)[order][pooled.missing_cells]
        return pooled, Posterior(np.full(_N_PAIRED, 1.0 / _N_PAIRED), np.concatenate(table, axis=1), bucket)

    @property
    def _threshold(self) -> float | None:
        return self._sets[0][0].threshold

    @cached_property
    def _state(self) -> IntArray:
        """Label of each row and column: 1, 0, or -1 if it is missing."""
        state = np.empty(self.score.shape, dtype=np.int64)
        for at, y in enumerate(self.columns):
            one_row = partial(
                EvaluationSet, pos_label=self.given["pos_label"], missing_label=self.given["missing_label"]
            )
            # Scores that are row numbers keep the rows apart.
            cells = one_row(y, np.arange(len(self.score), dtype=np.float64), threshold=0.0).cells
            state[:, at] = np.where(cells.missing > 0, -1, cells.positives)
        return state

    @cached_property
    def _decision(self) -> BoolArray:
        return np.asarray(self.score >= (0.5 if self._threshold is None else self._threshold))

    def _probabilities(self, draw: int) -> FloatArray:
        """Return the probability of every label at one paired draw; known labels have 0 or 1."""
        p = (self._state == 1).astype(np.float64)
        for at, ((rows, posterior), draws) in enumerate(zip(self._sets, self._paired, strict=True)):
            missing = np.flatnonzero(self._state[:, at] < 0)
            cell = np.searchsorted(rows.cells.score[rows.missing_cells], self.score[missing, at])
            p[missing, at] = posterior.of_cells(int(draws[draw]))[cell]
        return np.asarray(p)

    @cached_property
    def _open(self) -> IntArray:
        """Rows with a missing label."""
        return np.flatnonzero((self._state < 0).any(axis=1))

    @cached_property
    def _complete_rows(self) -> tuple[EvaluationSet, Posterior]:
        """Rows with the event that all labels are predicted correctly, as positive predictions of two classes."""
        state, decision = self._state, self._decision
        is_wrong = ((state >= 0) & (state != decision)).any(axis=1)
        is_open = (state < 0).any(axis=1) & ~is_wrong
        open_rows = np.flatnonzero(is_open)
        table = np.empty((_N_PAIRED, open_rows.size))
        for draw in range(_N_PAIRED):
            p = self._probabilities(draw)[open_rows]
            table[draw] = np.where(decision[open_rows], p, 1.0 - p).prod(axis=1)
        n = open_rows.size + 1
        positives, negatives, missing = np.zeros((3, n), dtype=np.int64)
        positives[0], negatives[0], missing[1:] = (~is_wrong & ~is_open).sum(), is_wrong.sum(), 1
        cells = Cells(np.zeros(n), np.ones(n, dtype=np.bool_), positives, negatives, missing)
        rows = EvaluationSet.from_cells(cells)
        return rows, Posterior(np.full(_N_PAIRED, 1.0 / _N_PAIRED), table)

    def _jaccard(self) -> MetricDistribution:
        """Return the distribution of the mean over rows of the fraction of correct labels among all that are 1."""
        decision, rows = self._decision, self._open
        counts = [((self._state == 1) & event).sum(axis=1) for event in (decision, decision | (self._state == 1))]
        either = (decision | (self._state == 1)).sum(axis=1)
        known = counts[0] / np.maximum(either, 1)
        known[rows] = 0.0
        total, n = float(known.sum()), len(self.score)
        if not rows.size:
            return Discrete.from_atoms(np.array([total / n]), np.ones(1), 0.0, bounds=Interval(total / n, total / n))
        bounds = Interval(total / n, (total + rows.size) / n)
        if rows.size <= _FEW_ROWS:
            rng = np.random.default_rng(21)
            values = []
            for draw in range(_N_PAIRED):
                p = self._probabilities(draw)[rows]
                y = rng.random((_N_DRAWN // _N_PAIRED, *p.shape)) < p
                fraction = (y & decision[rows]).sum(axis=2) / np.maximum((y | decision[rows]).sum(axis=2), 1)
                values.append((total + fraction.sum(axis=1)) / n)
            drawn = np.concatenate(values)
            return Discrete.from_atoms(
                drawn, np.ones(drawn.size), 0.0, method="monte carlo", bounds=bounds, bounds_sharp=False
            )
        levels, cdfs = [], []
        for draw in range(_N_PAIRED):
            first, second, third = self._jaccard_moments(self._probabilities(draw)[rows], decision[rows])
            variance = (second - first**2).sum()
            skewness = (third - 3.0 * first * second + 2.0 * first**3).sum() / variance**1.5
            x = np.linspace(-4.5, 4.5, 33)
            levels.append((total + first.sum() + x * np.sqrt(variance)) / n)
            cdfs.append(edgeworth_cdf(x, skewness, np.zeros(())))
        grid, mixed = mix_draws(np.array(levels), np.array(cdfs), np.full(_N_PAIRED, 1.0 / _N_PAIRED))
        return Tabulated(
            grid=np.clip(grid, *bounds), levels=mixed, method="near exact", bounds=bounds, bounds_sharp=False
        )

    def _jaccard_moments(self, p: FloatArray, decision: BoolArray) -> FloatArray:
        """Return three moments of the Jaccard index of each row whose labels have these probabilities."""
        hits, misses = (_count_distribution(np.where(event, p, 0.0)) for event in (decision, ~decision))
        i, j = np.arange(hits.shape[1]), np.arange(misses.shape[1])
        predicted = decision.sum(axis=1)[:, None, None]
        value = i[:, None] / np.maximum(predicted + j, 1)
        return np.array([np.einsum("ri,rij,rj->r", hits, value**power, misses) for power in (1, 2, 3)])


def _count_distribution(p: FloatArray) -> FloatArray:
    """Return the distribution of the number of ones in each row (n x L + 1) of independent labels."""
    pmf = np.zeros((len(p), p.shape[1] + 1))
    pmf[:, 0] = 1.0
    for column in p.T:
        moved = pmf * column[:, None]
        pmf -= moved
        pmf[:, 1:] += moved[:, :-1]
    return pmf


def _average(distributions: Sequence[MetricDistribution]) -> MetricDistribution:
    """Return the distribution of the mean of independent metrics; a metric that is always 0/0 is left out."""
    defined = [distribution for distribution in distributions if not isinstance(distribution, Undefined)]
    if not defined:
        return Undefined(undefined=1.0)
    rng, levels = np.random.default_rng(22), (np.arange(_N_VALUES) + 0.5) / _N_VALUES
    values = np.zeros(_N_VALUES)
    for distribution in defined:
        values += rng.permutation(distribution.ppf(levels)) / len(defined)
    low, high = (float(np.mean([distribution.support()[end] for distribution in defined])) for end in (0, 1))
    undefined = 1.0 - float(np.prod([1.0 - distribution.undefined for distribution in distributions]))
    is_certain = all(distribution.var() == 0.0 for distribution in defined)
    facts: dict[str, Any] = {"bounds": Interval(low, high), "method": "exact" if is_certain else "monte carlo"}
    averaged = Discrete.from_atoms(values, np.ones(_N_VALUES), np.nan, noise=1e-14, given_defined=False, **facts)
    return replace(averaged, undefined=undefined)
