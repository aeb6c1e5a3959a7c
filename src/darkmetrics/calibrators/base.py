"""What every calibrator is: settings, `fit`, `predict` and `draws`; and the checks that they share."""

import inspect
from abc import ABC, abstractmethod
from typing import Any, Self, TypeAlias

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.sobol import sobol_points
from darkmetrics._text import counted
from darkmetrics.argument_types import ArrayLike, Classifier
from darkmetrics.constraints import check_value
from darkmetrics.data import rules
from darkmetrics.exceptions import InputError, unknown_name
from darkmetrics.wording import named

_SEED = 20190923  # any fixed one: draws are part of the answer, so they are the same in every run


class Calibrator(ABC):
    """A way to turn scores into probabilities, learned from labeled rows.

    It follows scikit-learn: the constructor stores settings and nothing else, what `fit` learns ends in an underscore,
    and `sklearn.base.clone` makes an unfitted copy. A calibrator of your own implements `_fit`, `predict` and `draws`.
    """

    def fit(self, scores: ArrayLike, labels: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from labeled rows.

        Parameters
        ----------
        scores : column of numbers
            One finite score per row.
        labels : column of 0 and 1
            One label per row; 1 is positive. No label may be missing.
        sample_weight : column of numbers, optional
            How often each row counts, whole or not; a row that counts 0 times is as good as absent. Fitting a table of
            counts gives the same as fitting the rows that it counts.
        """
        score = checked_scores(scores)
        frames.row_names(scores=scores, labels=labels, sample_weight=sample_weight)
        label, count = _checked_labels(labels, score.size), checked_counts(sample_weight, score.size)
        return self.fit_counts(score, count * label, count * (1.0 - label))

    def fit_counts(self, scores: FloatArray, positives: FloatArray, negatives: FloatArray) -> Self:
        """Learn from a table of how many positives and negatives each score has, which is taken as it is."""
        self._check_settings()
        has_labels = positives + negatives > 0.0
        self._fit(scores[has_labels], positives[has_labels], negatives[has_labels])
        return self

    @abstractmethod
    def _fit(self, scores: FloatArray, positives: FloatArray, negatives: FloatArray) -> None:
        """Learn from counts per row; rows may have equal scores, none counts 0 times."""

    @abstractmethod
    def predict(self, scores: ArrayLike) -> FloatArray:
        """The chance of each score to be that of a positive."""

    @abstractmethod
    def draws(self, scores: ArrayLike, n_draws: int) -> FloatArray:
        """Equally likely calibration curves given what was fitted: `predict` under `n_draws` sets of parameters.

        One row per curve, one column per score. The same call gives the same curves. Numbers of draws that are a power
        of two cover the posterior most evenly.
        """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The settings, as scikit-learn asks for them."""
        return {name: getattr(self, name) for name in _setting_names(type(self))}

    def set_params(self, **params: Any) -> Self:
        """Change settings; what was fitted stays until the next `fit`."""
        names = _setting_names(type(self))
        for name in params:
            if name not in names:
                raise unknown_name("set_params", f"setting of {type(self).__name__}", name, names)
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={value!r}" for name, value in self.get_params().items())
        return f"{type(self).__name__}({settings})"

    def _check_settings(self) -> None:
        """Refuse settings that break a constraint; a calibrator of a user has names of its own."""
        if type(self).__module__.partition(".")[0] == __name__.partition(".")[0]:
            for name, value in self.get_params().items():
                check_value(name, value, type(self).__name__)

    def _check_fitted(self, attribute: str, call: str = "fit(scores, labels)") -> None:
        if not hasattr(self, attribute):
            raise InputError(type(self).__name__, "not fitted yet", "", f"Call {call} first.")


def _setting_names(kind: type[Calibrator]) -> list[str]:
    if kind.__init__ is object.__init__:
        return []
    return [name for name in inspect.signature(kind.__init__).parameters if name != "self"]


# "beta", "platt", "isotonic", "scaling_binning", a calibrator, or a fitted classifier that is taken as it is.
CalibratorLike: TypeAlias = str | Calibrator | Classifier


def checked_scores(scores: Any) -> FloatArray:
    """The scores as finite numbers."""
    score = frames.number_column(scores, "scores")
    rules.check_finite(score, "scores", "Scores must be finite.", "Drop or impute those rows.")
    return score


def check_in_unit_interval(scores: FloatArray, fix: str) -> None:
    """Refuse scores that are not probabilities."""
    outside = (scores < 0.0) | (scores > 1.0)
    if outside.any():
        first = int(np.argmax(outside))
        raise InputError("scores", f"{scores[first]:g} at row {first} is outside [0, 1]", "", fix)


def _checked_labels(labels: Any, rows: int) -> FloatArray:
    label = frames.number_column(labels, "labels")
    _check_length(label, "labels", rows)
    bad = ~((label == 0.0) | (label == 1.0))  # NaN is bad too
    if bad.any():
        first = int(np.argmax(bad))
        value = "no label" if np.isnan(label[first]) else f"{label[first]:g}"
        raise InputError("labels", f"{value} at row {first}", "A calibrator learns from labels that are 0 or 1.")
    return label


def checked_counts(sample_weight: Any, rows: int) -> FloatArray:
    """How often each row counts; once where nothing is said."""
    if sample_weight is None:
        return np.ones(rows)
    count = rules.given_weights(sample_weight)
    _check_length(count, "sample_weight", rows)
    return count


def _check_length(values: FloatArray, name: str, rows: int) -> None:
    if values.size != rows:
        finding = f"{counted(values.size, 'value')}, but {named('scores')} has {rows:,}"
        raise InputError(name, finding, "Both need one per row.")


def checked_draws(n_draws: Any) -> int:
    """Return a number of curves, checked."""
    check_value("n_draws", n_draws, "draws")
    return int(n_draws)


def uniform_points(n_draws: Any, dimensions: int) -> FloatArray:
    """`n_draws` points in the open unit cube, spread evenly: a scrambled Sobol sequence with a fixed seed."""
    n = checked_draws(n_draws)
    points = sobol_points(n, dimensions, seed=_SEED)
    return np.asarray(np.clip(points, 1e-12, 1.0 - 1e-12), dtype=np.float64)  # 0 has no quantile


def random_generator() -> np.random.Generator:
    """A generator for draws that no sequence of points can give; the same one each time."""
    return np.random.default_rng(_SEED)
