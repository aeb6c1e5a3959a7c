"""Covariates: probabilities of missing labels from more than the score."""

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeGuard

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.argument_types import ArrayLike, FrameLike, Learner
from darkmetrics.calibrators import Beta, Platt
from darkmetrics.calibrators.base import CalibratorLike
from darkmetrics.calibrators.logistic import LogisticCalibrator
from darkmetrics.data.building import covariates_need_rows
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.by_score import fit_by_score, fit_columns
from darkmetrics.missingness.checks import warn_if_extrapolated
from darkmetrics.missingness.curve import Columns
from darkmetrics.missingness.fit_data import (
    N_DRAWS,
    FitData,
    check_labeled,
    warn_if_few_labels,
)
from darkmetrics.missingness.propensity import build_propensity_columns, check_informative
from darkmetrics.missingness.score_table import ScoreTable, joint_table
from darkmetrics.posterior import Posterior
from darkmetrics.wording import named, setting


@dataclass(frozen=True, eq=False)
class Covariates(Mechanism):
    """Labels are missing at random given features that the score does not contain.

    A classifier learns from the features of the labeled rows, each row predicted by a model that has not seen it
    (cross-fitting); its predictions are then calibrated like scores, with the uncertainty of that.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Anything with `fit` and `predict_proba`; it is copied, never changed.
    X : array-like or DataFrame (rows, features), or list of str
        Features of all rows, labeled or not, in the order of `y_true`; or names of columns of `data`, in memory.
    n_folds : int
        Parts for cross-fitting.
    calibrator : {"beta", "platt", "scaling_binning", "isotonic"} or Calibrator
        The curve from predictions to probabilities.
    propensity : array-like or str, optional
        Probability of each row to get its label, if known, as in `Propensity`.
    n_draws : int
        Number of posterior draws.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import LogisticRegression
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(2000, 2))
    >>> y = rng.random(2000) < 1 / (1 + np.exp(-X.sum(axis=1)))
    >>> y_score = 1 / (1 + np.exp(-X[:, 0]))  # the model judged does not know the second feature
    >>> y_true = np.where(X[:, 1] > 0.5, np.nan, y)  # which decides who gets a label
    >>> model = dm.missing.Covariates(LogisticRegression(), X)
    >>> result = dm.evaluate(y_true, y_score, missingness=model, metrics="precision")
    >>> dropped = result.labeled_only["precision"]
    >>> low, high = result["precision"].interval(0.9)
    >>> print(f"{low:.2f} to {high:.2f}, in truth {y[y_score >= 0.5].mean():.2f}; dropping rows says {dropped:.2f}")
    0.60 to 0.64, in truth 0.61; dropping rows says 0.53
    """

    row_fields: ClassVar[tuple[str, ...]] = ("propensity",)

    estimator: Learner
    X: FrameLike | Sequence[str] = field(repr=False)
    n_folds: int = 5
    calibrator: CalibratorLike = "flexible"
    propensity: ArrayLike | str | None = field(default=None, repr=False)
    n_draws: int = N_DRAWS

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.estimator, type) or not (
            callable(getattr(self.estimator, "fit", None)) and callable(getattr(self.estimator, "predict_proba", None))
        ):
            rule = "It must be an object with fit and predict_proba."
            raise InputError("estimator", f"{self.estimator!r}", rule)
        if self.X is None:
            raise InputError("X", "None", "It must be a table with one row per label, or names of columns of data.")

    @property
    def features(self) -> Any:
        return self.X

    def learn_rows(self, positive: BoolArray, missing: BoolArray, data: Any) -> dict[str, Any]:
        return {"probability": self.predictions(positive, missing, data)} if missing.any() else {}

    def predictions(self, positive: BoolArray, missing: BoolArray, data: Any = None) -> FloatArray:
        """Return the probability of each row to be positive, from models that have not seen its label."""
        X = _features_in(data, self.X) if _are_names(self.X) else _indexable(self.X)
        rows = frames.row_count(X, "X")
        if rows != missing.size:
            finding = f"{rows:,} rows, but {named('y_true')} has {missing.size:,}"
            raise InputError("X", finding, "", "Pass the features of every row.")
        labeled = np.flatnonzero(~missing)
        for name, n in (("positive", int(positive.sum())), ("negative", int((~positive & ~missing).sum()))):
            if n < self.n_folds:
                raise InputError(
                    "y_true",
                    f"{n} {name} label{'' if n == 1 else 's'}, fewer than the {self.n_folds} folds of Covariates",
                    "",
                    "Lower n_folds, or use another mechanism.",
                )
        fold = np.empty(labeled.size, dtype=np.int64)
        for of_class in (positive[labeled], ~positive[labeled]):
            # Row after row to the next fold: every fold has its share of both classes, and no seed is needed.
            fold[of_class] = np.arange(int(of_class.sum())) % self.n_folds
        chance = np.zeros(missing.size)
        gaps = np.flatnonzero(missing)
        for k in range(self.n_folds):
            learn, ask = labeled[fold != k], labeled[fold == k]
            model = copy.deepcopy(self.estimator)
            try:
                model.fit(frames.take_rows(X, learn), positive[learn].astype(np.int64))
                chance[ask] = _second_column(model, frames.take_rows(X, ask))
                if gaps.size:
                    chance[gaps] += _second_column(model, frames.take_rows(X, gaps)) / self.n_folds
            except InputError:
                raise
            except ValueError as error:  # such as NaN, infinity or text; also numpy's LinAlgError
                raise InputError(
                    "X",
                    f"{type(model).__name__} does not accept these features: "
                    f"{str(error).partition(chr(10))[0].rstrip('.')}",
                    "",
                    "Impute or drop such values, or pass an estimator that accepts them.",
                ) from error
        return np.clip(chance, 0.0, 1.0)

    def posterior(self, data: EvaluationSet) -> Posterior:
        if data.cells.probability is None or np.isnan(data.cells.probability).any():
            raise covariates_need_rows()
        fit_data = FitData.of(data, by_probability=True)
        calibrator = fit_data.calibrator(self.calibrator)
        if not isinstance(calibrator, LogisticCalibrator) or calibrator.prior_sd is None:
            if data.cells.propensity is not None:
                raise InputError(
                    "calibrator",
                    f"{self.calibrator!r}",
                    "With propensities it must be 'flexible', 'beta' or 'platt', or one of these with its prior on.",
                )
            return fit_by_score(fit_data, "Covariates", self.calibrator, n_draws=self.n_draws)
        check_labeled(fit_data, "Covariates")
        warn_if_extrapolated(FitData.of(data), "Covariates")
        values, power = [data.cells.probability], fit_data.credit
        if data.cells.propensity is None:
            warn_if_few_labels(fit_data, "Covariates")
        else:
            values.append(data.cells.propensity)
            power = check_informative(data, data.cells.propensity, "Covariates")
        table, (prediction, *propensities) = joint_table(data, *values)
        blocks, line = _build_columns(calibrator, table, prediction)
        rows = table.labeled + table.missing
        blocks += [build_propensity_columns(p, list(blocks), line, rows) for p in propensities]
        return fit_columns(table, blocks, line, self.n_draws, power)

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return (
            "Assumed: labels are missing at random given the features. Probabilities come from "
            f"{type(self.estimator).__name__}, cross-fitted and calibrated on the {data.n_labeled:,} labeled rows."
        )


def _build_columns(
    calibrator: LogisticCalibrator, table: ScoreTable, prediction: FloatArray
) -> tuple[list[Columns], FloatArray]:
    """Return columns of predictions and scores, and the positions of the rows on the axis of predictions.

    The score, which the predictions may have lost, adds its logarithms (itself if it is no probability). The prior is
    that it adds no information.
    """
    rows = table.labeled + table.missing
    calibrator.prepare(prediction, rows)
    is_probability = bool(table.score.min() >= 0.0 and table.score.max() <= 1.0)
    score = (Beta if is_probability else Platt)().prepare(table.score, rows)
    sd = score.prior_scale_[1:]
    blocks = [
        Columns(calibrator.design(prediction), calibrator.prior_mean_, calibrator.prior_scale_),
        Columns(score.design(table.score)[:, 1:], np.zeros(sd.size), sd),
    ]
    return blocks, calibrator.line(prediction)


def _are_names(X: Any) -> TypeGuard[Sequence[str]]:
    return isinstance(X, (list, tuple)) and len(X) > 0 and all(isinstance(name, str) for name in X)


def _features_in(data: Any, names: Sequence[str]) -> Any:
    """Return columns of a table in memory."""
    if data is None:
        raise InputError("X", f"{names[0]!r} is the name of a column", "", f"Pass its table as {setting('data')}.")
    columns = frames.columns_of(data, "data")
    for name in names:
        if name not in columns:
            raise frames.unknown_column("X", name, list(columns))
    return frames.select_columns(data, names)


def _indexable(X: Any) -> Any:
    """The features as something whose rows can be taken: lists become an array, sparse matrices are kept by row."""
    if hasattr(X, "shape"):
        return X.tocsr() if callable(getattr(X, "tocsr", None)) else X
    try:
        return np.asarray(X)
    except ValueError:
        raise InputError(
            "X", "rows of different lengths", "", "Pass a table: one row per label, one column per feature."
        ) from None


def _second_column(model: Any, X: Any) -> FloatArray:
    answer = np.asarray(model.predict_proba(X), dtype=np.float64)
    if answer.ndim != 2 or answer.shape[1] != 2 or not np.isfinite(answer).all():
        raise InputError(
            "estimator",
            f"{type(model).__name__}.predict_proba returned an array of shape {answer.shape}"
            f"{'' if np.isfinite(answer).all() else ' with values that are not finite'}",
            "It must have two columns, the probabilities of the negative and of the positive class.",
        )
    chance: FloatArray = answer[:, 1]
    return chance
