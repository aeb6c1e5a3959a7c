"""Metrics of the confusion matrix: formulas of true and false positives and negatives at the decision."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.cells import Cells
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.functionals import BentForm, CountFunctional, RatioForm, Split
from darkmetrics.exceptions import InputError
from darkmetrics.metrics.metric import Metric

# What is left of terms that cancel is rounding below this share of their size, as for the weight of a class.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Linear:
    """A weighted sum of the four counts; sums, multiples and ratios of such sums read like the formula they are."""

    tp: float = 0.0
    fp: float = 0.0
    fn: float = 0.0
    tn: float = 0.0

    def __add__(self, other: "Linear") -> "Linear":
        return Linear(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn, self.tn + other.tn)

    def __rmul__(self, factor: float) -> "Linear":
        return Linear(factor * self.tp, factor * self.fp, factor * self.fn, factor * self.tn)

    def __truediv__(self, other: "Linear") -> "Ratio":
        return Ratio(self, other)

    def __call__(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return self.tp * tp + self.fp * fp + self.fn * fn + self.tn * tn

    @property
    def of_one_sign(self) -> bool:
        """Whether nothing is subtracted."""
        return min(self.tp, self.fp, self.fn, self.tn) >= 0.0

    def without_rounding(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        """The sum; zero where all that subtraction leaves of its terms is their rounding."""
        value, size = self(tp, fp, fn, tn), Linear(*map(abs, (self.tp, self.fp, self.fn, self.tn)))
        return value if self.of_one_sign else np.where(np.abs(value) <= _ROUNDING * size(tp, fp, fn, tn), 0.0, value)


@dataclass(frozen=True)
class Ratio:
    """A ratio of two weighted sums of the counts: the form for which the paper gives mean, variance and bounds."""

    numerator: Linear
    denominator: Linear

    def __call__(self, tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
        return self.numerator(tp, fp, fn, tn) / self.denominator.without_rounding(tp, fp, fn, tn)

    @property
    def of_one_sign(self) -> bool:
        """Whether nothing is subtracted in numerator and denominator."""
        return self.numerator.of_one_sign and self.denominator.of_one_sign

    def at(self, yes: Any, no: Any) -> RatioForm:
        """The ratio in terms of TP and FN alone, when `yes` rows are decided positive and `no` negative.

        Arrays of such numbers give arrays of coefficients, one row for the constant and one for each slope.
        """

        def reduced(part: Linear) -> FloatArray:
            form = part.fp * yes + part.tn * no, part.tp - part.fp, part.fn - part.tn
            return np.array(form if np.ndim(form[0]) == 0 else np.broadcast_arrays(*form))

        return RatioForm(reduced(self.numerator), reduced(self.denominator))


class Share(NamedTuple):
    """A metric that is a function of one share J = A / (A + B): which counts make up A and B, and the function.

    `first` and `second` have a one for each of TP, FP, FN and TN that is in A, or in B; the metric is
    `(p J + q (1 - J)) / (r J + s (1 - J))`, which rises with J.
    """

    first: FloatArray
    second: FloatArray
    form: tuple[float, float, float, float]


TP = Linear(tp=1.0)
"""True positives, to write formulas with: `TP / (TP + FN)`."""
FP = Linear(fp=1.0)
"""False positives, to write formulas with."""
FN = Linear(fn=1.0)
"""False negatives, to write formulas with."""
TN = Linear(tn=1.0)
"""True negatives, to write formulas with."""
ALL = TP + FP + FN + TN
"""All rows, to write formulas with."""


@dataclass(frozen=True, kw_only=True)
class ConfusionMetric(Metric):
    """A metric that is a formula `f(tp, fp, fn, tn)` of (weighted) counts; numpy arrays go in, so write it with numpy.

    Attributes
    ----------
    formula : callable
        The metric; nan or infinity means undefined (0/0).
    direction : tuple
        How the metric moves when a missing row decided positive (first) or negative (second) turns out positive:
        +1 up, -1 down, 0 not at all, None (default) unknown. Knowing it makes large sets fast and bounds sharp.
    form : callable, optional
        The formula as a ratio of sums of TP and FN, or over a concave function of TP + FN, given how many rows are
        decided positive and negative; laws of such formulas carry a certificate. Formulas that are written as a
        ratio of counts need none.
    smooth : bool
        Whether the formula has derivatives everywhere: no `minimum`, `abs` or condition. A smooth formula of many
        weighted rows is expanded, any other drawn.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> waste = dm.metrics.ConfusionMetric(name="waste", formula=lambda tp, fp, fn, tn: fp / (tp + fp), better="lower")
    >>> round(
    ...     dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], metrics=waste, missingness=dm.missing.Fixed([0.8]))[
    ...         "waste"
    ...     ].mean(),
    ...     9,
    ... )
    0.1
    """

    formula: Callable[..., Any]
    direction: tuple[int | None, int | None] = (None, None)
    form: Callable[[float, float], RatioForm | BentForm] | None = None
    smooth: bool = False

    def bind(self, data: EvaluationSet, fill: float) -> CountFunctional:
        (tp, fn), (fp, tn), (open_yes, open_no) = (
            data.by_decision[name] for name in ("positives", "negatives", "missing")
        )
        yes, no = tp + fp + open_yes, fn + tn + open_no
        form = self.form_at(yes, no)
        if self.form is not None and form is not None:
            self._check_form(form, yes, no)
        return CountFunctional(
            missing=data.missing_counts,
            fill=fill,
            range=self.range,
            split=Split(data.missing_by_decision, data.missing_weight),
            offset=(tp, fn),
            formula=self.of_positives(yes, no, data.dust),
            direction=self.direction,
            ratio=form if isinstance(form, RatioForm) else None,
            bent=form if isinstance(form, BentForm) else None,
            has_derivatives=self.smooth,
            cancels=not (isinstance(self.formula, Ratio) and self.formula.of_one_sign),
        )

    def form_at(self, yes: Any, no: Any) -> RatioForm | BentForm | None:
        """The form of the formula, if it has one, when `yes` rows are decided positive and `no` negative."""
        form = self.formula.at if isinstance(self.formula, Ratio) else self.form
        return None if form is None else form(yes, no)

    def of_positives(self, yes: Any, no: Any, dust: float) -> Callable[[Any, Any], Any]:
        """The formula as a function of TP and FN, when `yes` rows are decided positive and `no` negative.

        Sums of weights carry rounding errors, which must not turn an empty class into a tiny one: what is below `dust`
        is zero.
        """
        return partial(_at_positives, self.formula, yes, no, dust)

    def as_share(self) -> Share | None:
        """The metric as a function of one share; None where it depends on more than one."""
        if not isinstance(self.formula, Ratio):
            return None
        numerator, denominator = (
            np.array([part.tp, part.fp, part.fn, part.tn])
            for part in (self.formula.numerator, self.formula.denominator)
        )
        pairs = sorted({*zip(numerator.tolist(), denominator.tolist(), strict=True)} - {(0.0, 0.0)})
        if (
            len(pairs) != 2
            or min(denominator[denominator != 0.0], default=-1.0) <= 0.0
            or pairs[0][1] * pairs[1][1] == 0.0
        ):
            return None
        (q, s), (p, r) = sorted(pairs, key=lambda pair: pair[0] / pair[1])
        members = ((numerator == n) & (denominator == d) for n, d in ((p, r), (q, s)))
        first, second = (member.astype(np.float64) for member in members)
        return None if p * s == q * r else Share(first, second, (p, q, r, s))

    def row_influence(self, cells: Cells, counts: FloatArray) -> FloatArray:
        negatives, positives = counts
        yes = cells.decision.astype(np.float64)
        (tp, fp), (fn, tn) = ((positives @ side, negatives @ side) for side in (yes, 1.0 - yes))
        # Half a row more of each kind: a class without rows has not been seen yet, but the population may have it.
        rows = float(counts.sum() / counts.shape[1]) / max(1.0, float(cells.total.sum()))
        totals = np.stack([tp, fp, fn, tn]) + 0.5 * rows
        return _of_rows(cells, *self._slopes(totals)[:, :, None])

    def rests_on(self, cells: Cells) -> FloatArray:
        if not isinstance(self.formula, Ratio):
            return super().rests_on(cells)
        below = self.formula.denominator
        return _of_rows(cells, *map(abs, (below.tp, below.fp, below.fn, below.tn)))[None]

    def _slopes(self, totals: FloatArray) -> FloatArray:
        """Derivatives of the formula by each of the four counts, which are all positive; sets are columns."""
        slopes = np.empty_like(totals)
        for i in range(4):
            step = np.zeros_like(totals)
            step[i] = 1e-4 * totals[i]
            with np.errstate(divide="ignore", invalid="ignore"):
                near, far = (
                    np.asarray(self.formula(*(totals + m * step))) - np.asarray(self.formula(*(totals - m * step)))
                    for m in (1.0, 2.0)
                )
            slopes[i] = (8.0 * near - far) / (12.0 * step[i])
        return slopes

    def _check_form(self, form: RatioForm | BentForm, yes: float, no: float) -> None:
        """A form that is not the formula would make false promises."""
        for share in (0.3, 0.8):
            tp, fn = share * yes, 0.5 * share * no
            with np.errstate(divide="ignore", invalid="ignore"):
                value = float(self.formula(*map(np.float64, (tp, yes - tp, fn, no - fn))))
                by_form = form.at(tp, fn)
            if np.isfinite([value, by_form]).all() and abs(value - by_form) > 1e-6 * max(1.0, abs(value)):
                raise InputError(
                    "form",
                    f"{self.name!r} has the value {value:.6g} by its formula and {by_form:.6g} by its form, with "
                    f"{tp:g} true positives among {yes:g} rows predicted positive and {fn:g} false negatives among "
                    f"{no:g} others",
                    "Both must have one value.",
                )

    def _binning_error(self, data: EvaluationSet) -> float:
        return 0.0  # bins are cut at the threshold, and keep given decisions apart

    def value(self, data: EvaluationSet, fill: float = np.nan) -> float:
        (tp, fn), (fp, tn) = data.by_decision["positives"], data.by_decision["negatives"]
        with np.errstate(divide="ignore", invalid="ignore"):
            value = float(self.formula(*(np.float64(count) for count in (tp, fp, fn, tn))))
        return value if np.isfinite(value) else fill

    def of_counts(self, cells: Cells, counts: FloatArray) -> FloatArray:
        negatives, positives = counts
        yes, no = cells.decision.astype(np.float64), (~cells.decision).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = self.formula(positives @ yes, negatives @ yes, positives @ no, negatives @ no)
        value = np.asarray(value, dtype=np.float64)
        return np.where(np.isfinite(value), value, np.nan)


def _of_rows(cells: Cells, tp: Any, fp: Any, fn: Any, tn: Any) -> FloatArray:
    """What each kind of row has, for negatives and positives of all cells."""
    return np.stack([np.where(cells.decision, fp, tn), np.where(cells.decision, tp, fn)])


# What laws are made of are functions of modules, and not of the moment: so that results can be stored and sent.
def _at_positives(formula: Callable[..., Any], yes: Any, no: Any, dust: float, tp: Any, fn: Any) -> Any:
    fp, tn = yes - tp, no - fn
    if dust > 0.0:
        tp, fp, fn, tn = (np.where(np.abs(count) <= dust, 0.0, count) for count in (tp, fp, fn, tn))
    return formula(tp, fp, fn, tn)
