"""The metrics of the confusion matrix, one record each."""

from typing import Any

import numpy as np

from darkmetrics.distributions.functionals import BentForm, RatioForm
from darkmetrics.metrics.confusion import ALL, FN, FP, TN, TP, ConfusionMetric
from darkmetrics.metrics.metric import UNIT, Family, Metric, number_argument


def _g_mean(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return np.sqrt(tp / (tp + fn) * (tn / (tn + fp)))


def _youden_j(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return tp / (tp + fn) - fp / (fp + tn)


def _markedness(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return tp / (tp + fp) - fn / (fn + tn)


def _balanced_accuracy(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    # As in scikit-learn, a class without rows is left out of the average.
    recall = np.where(tp + fn > 0.0, tp / (tp + fn), tn / (tn + fp))
    specificity = np.where(tn + fp > 0.0, tn / (tn + fp), tp / (tp + fn))
    return 0.5 * (recall + specificity)


def _mcc(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    # One square root per margin: the product of four counts of a billion rows would lose its last digits.
    return (tp * tn - fp * fn) / (np.sqrt(tp + fp) * np.sqrt(tp + fn) * np.sqrt(tn + fp) * np.sqrt(tn + fn))


def _cohen_kappa(tp: Any, fp: Any, fn: Any, tn: Any) -> Any:
    return 2.0 * (tp * tn - fp * fn) / ((tp + fp) * (fp + tn) + (tp + fn) * (fn + tn))


def _cohen_kappa_form(yes: float, no: float) -> RatioForm:
    # With the decisions fixed, TP TN - FP FN = no TP - yes FN, and the margins of the labels enter the rest linearly.
    return RatioForm(np.array([0.0, 2.0 * no, -2.0 * yes]), np.array([yes * (yes + no), no - yes, no - yes]))


def _markedness_form(yes: float, no: float) -> RatioForm:
    return RatioForm(np.array([0.0, no, -yes]), np.array([yes * no, 0.0, 0.0]))


def _youden_j_form(yes: float, no: float) -> BentForm:
    # TP / P - FP / N = (no TP - yes FN) / (P N), with P positives and N negatives
    return BentForm(np.array([0.0, no, -yes]), factor=1.0, power=1.0, total=yes + no)


def _balanced_accuracy_form(yes: float, no: float) -> BentForm:
    return _youden_j_form(yes, no)._replace(scale=0.5, shift=0.5)


def _mcc_form(yes: float, no: float) -> BentForm:
    return _youden_j_form(yes, no)._replace(factor=float(np.sqrt(yes * no)), power=0.5)


def _fbeta(beta: float) -> ConfusionMetric:
    b2 = number_argument(beta, "beta", above=0.0) ** 2
    return ConfusionMetric(
        name=f"fbeta({beta:g})",
        range=UNIT,
        formula=((1.0 + b2) * TP) / ((1.0 + b2) * TP + b2 * FN + FP),
        meaning=f"precision and recall in one number, recall counting {beta:g} times as much",
        direction=(1, -1),
        undefined_as=0.0,
    )


def _expected_cost(c_fp: float = 1.0, c_fn: float = 1.0) -> ConfusionMetric:
    c_fp, c_fn = number_argument(c_fp, "c_fp", above=0.0), number_argument(c_fn, "c_fn", above=0.0)
    return ConfusionMetric(
        name=f"expected_cost({c_fp:g}, {c_fn:g})",
        formula=(c_fp * FP + c_fn * FN) / ALL,
        meaning=f"cost per row when a false alarm costs {c_fp:g} and a miss {c_fn:g}",
        better="lower",
        range=(0.0, max(c_fp, c_fn)),
        direction=(-1, 1),
    )


def fbeta(beta: float) -> ConfusionMetric:
    """Which share of both worlds, precision and recall, does the classifier reach? Recall counts `beta` times as much.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> two = dm.metrics.fbeta(2)
    >>> round(
    ...     dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], metrics=two, missingness=dm.missing.Fixed([0.8]))[
    ...         "fbeta(2)"
    ...     ].mean(),
    ...     4,
    ... )
    0.9667
    """
    return _fbeta(beta)


def expected_cost(c_fp: float = 1.0, c_fn: float = 1.0) -> ConfusionMetric:
    """What do the errors cost per row? A false alarm costs `c_fp`, a miss `c_fn`, in any unit.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> cost = dm.metrics.expected_cost(c_fp=1, c_fn=10)
    >>> round(
    ...     dm.evaluate([1, 0, None], [0.9, 0.4, 0.2], metrics=cost, missingness=dm.missing.Fixed([0.3]))[
    ...         cost.name
    ...     ].mean(),
    ...     9,
    ... )
    1.0
    """
    return _expected_cost(c_fp, c_fn)


CONFUSION_METRICS: tuple[Metric | Family, ...] = (
    ConfusionMetric(
        name="accuracy",
        formula=(TP + TN) / ALL,
        range=UNIT,
        meaning="share of all rows that are decided rightly",
        direction=(1, -1),
    ),
    ConfusionMetric(
        name="precision",
        formula=TP / (TP + FP),
        range=UNIT,
        meaning="share of the positive decisions that are right",
        direction=(1, 0),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="recall",
        formula=TP / (TP + FN),
        range=UNIT,
        meaning="share of the positives that the classifier finds",
        direction=(1, -1),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="specificity",
        formula=TN / (TN + FP),
        range=UNIT,
        meaning="share of the negatives that are left alone",
        direction=(1, -1),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="npv",
        formula=TN / (TN + FN),
        range=UNIT,
        meaning="share of the negative decisions that are right",
        direction=(0, -1),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="fpr",
        formula=FP / (FP + TN),
        range=UNIT,
        meaning="share of the negatives that raise a false alarm",
        better="lower",
        direction=(-1, 1),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="fnr",
        formula=FN / (FN + TP),
        range=UNIT,
        meaning="share of the positives that are missed",
        better="lower",
        direction=(-1, 1),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="f1",
        formula=(2.0 * TP) / (2.0 * TP + FP + FN),
        range=UNIT,
        meaning="harmonic mean of precision and recall",
        direction=(1, -1),
        undefined_as=0.0,
    ),
    Family(name="fbeta", make=fbeta, example=_fbeta(2.0), needs_argument=True),
    ConfusionMetric(
        name="balanced_accuracy",
        formula=_balanced_accuracy,
        form=_balanced_accuracy_form,
        range=UNIT,
        meaning="mean of the shares of positives and of negatives decided rightly",
        direction=(1, -1),
    ),
    ConfusionMetric(
        name="mcc",
        formula=_mcc,
        form=_mcc_form,
        meaning="correlation between decision and label",
        range=(-1.0, 1.0),
        direction=(1, -1),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="cohen_kappa",
        formula=_cohen_kappa,
        form=_cohen_kappa_form,
        meaning="agreement of decision and label beyond chance",
        range=(-1.0, 1.0),
        direction=(1, -1),
    ),
    ConfusionMetric(
        name="jaccard",
        formula=TP / (TP + FP + FN),
        range=UNIT,
        meaning="true positives as a share of all rows that are positive or decided so",
        direction=(1, -1),
        undefined_as=0.0,
    ),
    ConfusionMetric(
        name="g_mean",
        formula=_g_mean,
        smooth=True,
        range=UNIT,
        meaning="geometric mean of recall and specificity",
        direction=(1, -1),
    ),
    ConfusionMetric(
        name="youden_j",
        formula=_youden_j,
        form=_youden_j_form,
        meaning="recall minus false-positive rate",
        range=(-1.0, 1.0),
        direction=(1, -1),
    ),
    ConfusionMetric(
        name="markedness",
        formula=_markedness,
        form=_markedness_form,
        meaning="how much more often positive decisions than negative ones are positive",
        range=(-1.0, 1.0),
        direction=(1, -1),
    ),
    ConfusionMetric(
        name="prevalence",
        formula=(TP + FN) / ALL,
        range=UNIT,
        meaning="share of all rows that are positive",
        better="neither",
        direction=(1, 1),
    ),
    Family(name="expected_cost", make=expected_cost, example=_expected_cost(1.0, 5.0), needs_argument=False),
    ConfusionMetric(
        name="predicted_to_actual",
        formula=(TP + FP) / (TP + FN),
        meaning="positive decisions per positive row; 1 means as many alarms as there should be",
        better="neither",
        range=(0.0, np.inf),
        direction=(-1, -1),
    ),
)
