"""Real rows, two classifiers, and the reasons why part of their labels goes missing."""

import os
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from scipy.special import expit, logit

SETS = ("adult", "bank", "credit_default", "online_shoppers", "civil_comments_scores")
CLASSIFIERS = ("xgboost", "logistic")
METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
_TRAIN = 4000
# Scores that come with the data stand in for classifiers.
_GIVEN = {"civil_comments_scores": {"xgboost": "erm", "logistic": "irm"}}
# The feature that decides who gets a label where a feature does: one that says something about the label.
_FEATURE = {"adult": "age", "bank": "duration", "credit_default": "LIMIT_BAL", "online_shoppers": "ProductRelated"}


class Rows(NamedTuple):
    """Rows of a test set with all labels, in the order of the file."""

    y: Any
    score: Any
    X: Any
    feature: Any
    seed: tuple[int, ...]

    def take(self, rows: Any) -> "Rows":
        """Some of the rows."""
        X = None if self.X is None else self.X.iloc[rows]
        feature = None if self.feature is None else self.feature[rows]
        return self._replace(y=self.y[rows], score=self.score[rows], X=X, feature=feature)


@cache
def table_of(name: str) -> pd.DataFrame:
    """A data set from the folder DARKMETRICS_DATA; words are numbered, so that both classifiers can take them."""
    table = pd.read_csv(Path(os.environ["DARKMETRICS_DATA"]) / f"{name}.csv.gz", na_values="?")
    for column in table:
        if not pd.api.types.is_numeric_dtype(table[column]):
            table[column] = table[column].astype("category").cat.codes
    return table.astype(float)


def rows_of(name: str, classifier: str, split: int, n: int, *, in_time: bool = False) -> Rows:
    """A test set of `n` rows, scored by a classifier that was trained on 4,000 others.

    `in_time`: the training rows come first in the file, the test rows are drawn from the rest.
    """
    seed = (zlib.crc32(name.encode()), split, n)
    rng = np.random.default_rng(seed)
    table = table_of(name)
    order = np.arange(len(table)) if in_time else rng.permutation(len(table))
    if name in _GIVEN:
        test = np.sort(order[:n])
        y = table["label"].to_numpy()[test]
        return Rows(y, table[_GIVEN[name][classifier]].to_numpy()[test], None, None, seed)
    X, y = table.drop(columns="target"), table["target"].to_numpy()
    train, rest = order[:_TRAIN], order[_TRAIN:]
    test = np.sort(rng.choice(rest, n, replace=False)) if not in_time else rest
    model = model_of(classifier).fit(X.iloc[train], y[train])
    score = model.predict_proba(X.iloc[test])[:, 1].astype(float)
    return Rows(y[test], score, X.iloc[test], X[_FEATURE[name]].to_numpy()[test], seed)


def model_of(classifier: str) -> Any:
    """A classifier that has not been trained."""
    if classifier == "xgboost":
        import xgboost

        return xgboost.XGBClassifier(n_estimators=60, max_depth=4, learning_rate=0.15, n_jobs=1, random_state=0)
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=1000))


# An old scorecard lets in half of the rows, and of the others one in ten at random.
OVERRIDES = 0.1


def looked_at(name: str, split: int, n: int, *, high: bool) -> Any:
    """The chance of each row of `rows_of` to get a label where an old scorecard decides.

    The scorecard is a logistic regression on half of the features, trained on the same rows as the classifier. Those
    above its median (below, unless `high`) are always labeled, the others at random.
    """
    rng = np.random.default_rng((zlib.crc32(name.encode()), split, n))
    table = table_of(name)
    order = rng.permutation(len(table))
    test = np.sort(rng.choice(order[_TRAIN:], n, replace=False))
    X, y = table.drop(columns="target"), table["target"].to_numpy()
    half = X.columns[np.random.default_rng((split, 5)).permutation(X.shape[1])[: X.shape[1] // 2]]
    train = order[:_TRAIN]
    old = model_of("logistic").fit(X.iloc[train][half], y[train]).predict_proba(X.iloc[test][half])[:, 1]
    return np.where((old >= np.median(old)) == high, 1.0, OVERRIDES)


def _rank(values: Any) -> Any:
    """Log odds of the mid-rank: the same for every set, whatever the scale of its scores."""
    order = pd.Series(values).rank().to_numpy()
    return logit((order - 0.5) / order.size)


def _at(share: float, steep: Any) -> Any:
    """Chances to be missing with these log odds, up to the constant that makes `share` of them on average."""
    return expit(steep + brentq(lambda c: float(np.mean(expit(c + steep))) - share, -60.0, 60.0))


def _step(rows: Rows) -> Any:
    """Of the fifth with the highest scores nine in ten are looked at, of the others four in ten."""
    return np.where(rows.score >= np.quantile(rows.score, 0.8), 0.1, 0.6)


def _delayed(rows: Rows) -> Any:
    """Rows of all ages; a positive takes three times as long to be confirmed as a negative."""
    age = np.random.default_rng((*rows.seed, 77)).random(rows.y.size)
    return np.exp(-age / np.where(rows.y == 1, 0.6, 0.2))


REASONS: dict[str, tuple[str | None, Callable[[Rows], Any]]] = {
    # The word that states the reason (None: there is none), and the chance of each row to have no label.
    "random": ("random", lambda rows: np.full(rows.y.size, 0.4)),
    "by score": ("by_score", lambda rows: _at(0.5, -0.8 * _rank(rows.score))),
    "by score, high ones missing": ("by_score", lambda rows: _at(0.4, 0.8 * _rank(rows.score))),
    "by score, step": ("by_score", _step),
    "by label, positives missing": ("by_label", lambda rows: np.where(rows.y == 1, 0.6, 0.3)),
    "by label, negatives missing": ("by_label", lambda rows: np.where(rows.y == 1, 0.25, 0.5)),
    "score and label, opposite": (None, lambda rows: _at(0.5, 1.2 * rows.y - 0.8 * _rank(rows.score))),
    "score and label, opposite, strong": (None, lambda rows: _at(0.5, 1.5 * rows.y - 0.6 * _rank(rows.score))),
    "score and label, same": (None, lambda rows: _at(0.4, 1.2 * rows.y + 0.5 * _rank(rows.score))),
    "score and label, negatives": (None, lambda rows: _at(0.5, -1.2 * rows.y - 0.6 * _rank(rows.score))),
    "by a feature": (None, lambda rows: _at(0.45, 0.8 * _rank(rows.feature))),
    "delayed": (None, _delayed),
}


def hidden(rows: Rows, reason: str) -> Any:
    """The labels, NaN where missing; None where the set has no such reason."""
    if reason == "by a feature" and rows.feature is None:
        return None
    chance = REASONS[reason][1](rows)
    rng = np.random.default_rng((*rows.seed, zlib.crc32(reason.encode())))
    return np.where(rng.random(rows.y.size) < chance, np.nan, rows.y)
