"""Rows with scores of several classes, and the ways in which labels go missing."""

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.datasets import load_digits, load_wine
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from darkmetrics._kernels.arrays import BoolArray, FloatArray, IntArray

# Sets, with the number of rows drawn in each repetition.
SETS = {
    "multi_nli resample": 1000,
    "multi_nli reweight": 1000,
    "multi_nli irm": 1000,
    "digits logistic": 1000,
    "digits forest": 1000,
    "digits naive Bayes": 1000,
    "wine": 120,
    "simulated, 12 classes": 1000,
}
MISSING = ("random", "by score", "by label")
FRACTIONS = (0.3, 0.7)


class ScoredRows(NamedTuple):
    """Scores of each class, and labels."""

    score: FloatArray
    label: IntArray


@cache
def load_set(name: str) -> ScoredRows:
    """Return all rows of a set."""
    if name.startswith("multi_nli"):
        table = pd.read_csv(Path(os.environ["DARKMETRICS_DATA"]) / "multi_nli_scores.csv.gz")
        model = name.split()[1]
        return ScoredRows(table[[f"{model}_{k}" for k in range(3)]].to_numpy(), table["label"].to_numpy())
    if name.startswith("simulated"):
        return _simulate(int(name.split()[1]))
    features, label = (load_wine if name == "wine" else load_digits)(return_X_y=True)
    order = np.random.default_rng(5).permutation(label.size)
    features, label, n_train = features[order], label[order], 40 if name == "wine" else 300
    model = {
        "wine": GaussianNB(var_smoothing=1e-4),
        "digits logistic": LogisticRegression(C=0.01, max_iter=2000),
        "digits forest": RandomForestClassifier(100, max_depth=6, random_state=0),
        "digits naive Bayes": GaussianNB(var_smoothing=1e-2),
    }[name]
    scores = model.fit(features[:n_train], label[:n_train]).predict_proba(features[n_train:])
    return ScoredRows(scores, label[n_train:])


def _simulate(n_classes: int) -> ScoredRows:
    """Return rows of classes with frequencies from 25% to under 1%, and overconfident scores with wrong priors."""
    rng, n = np.random.default_rng(3), 20_000
    frequency = np.sort(rng.dirichlet(np.full(n_classes, 0.7)))[::-1] + 0.004
    frequency /= frequency.sum()
    label = rng.choice(n_classes, n, p=frequency)
    center = rng.normal(size=(n_classes, 6))
    features = center[label] + rng.normal(size=(n, 6))
    log_score = -0.5 * ((features[:, None] - center) ** 2).sum(axis=2) + 0.7 * np.log(frequency)
    log_score = 1.5 * log_score + 0.3 * np.sin(2.0 * log_score) + 0.4 * rng.normal(size=n_classes)
    score = np.exp(log_score - log_score.max(axis=1, keepdims=True))
    return ScoredRows(score / score.sum(axis=1, keepdims=True), label)


def draw_rows(name: str, seed: int) -> ScoredRows:
    """Return some rows of a set."""
    rows = load_set(name)
    chosen = np.random.default_rng((seed, 1)).choice(rows.label.size, SETS[name], replace=False)
    return ScoredRows(rows.score[chosen], rows.label[chosen])


def draw_missing(rows: ScoredRows, kind: str, fraction: float, seed: int) -> BoolArray:
    """Return which labels are missing; by label, those of the second class are missing most often."""
    rng, n = np.random.default_rng((seed, 2)), rows.label.size
    if kind == "random":
        return rng.random(n) < fraction
    if kind == "by score":  # less certain rows more often
        rank = (np.argsort(np.argsort(rows.score.max(axis=1), kind="stable")) + 0.5) / n
        return rng.random(n) < expit(logit(fraction) + 2.0 * (0.5 - rank))
    return rng.random(n) < expit(logit(fraction) + np.where(rows.label == 1, 1.2, -0.2))
