"""Gaps as in Tox21: each task has its own fraction of missing labels, and some rows lack most of them.

The file of tmc2007_500 has one label, class19. The other 11 tasks are words of middling frequency, which are removed
from the features: does the report contain the word?

Run as `python -m experiments.multilabel.gaps [repeats]`; DARKMETRICS_DATA names the folder with tmc2007_500.
"""

import os
import sys
import warnings
from pathlib import Path

import numpy as np
from scipy.sparse import load_npz
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, roc_auc_score

import darkmetrics as dm

N_LABELS, N_TEST, N_TRAIN = 12, 2_000, 6_000


def read_scores(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return labels and scores of 12 tasks on rows that the models were not trained on."""
    table = load_npz(folder / "X.npz").toarray()
    frequency = table.mean(axis=0)
    words = np.flatnonzero((frequency > 0.05) & (frequency < 0.4))
    words = words[np.linspace(0, words.size - 1, N_LABELS - 1).astype(int)]
    y = np.column_stack([np.load(folder / "y.npy"), table[:, words]])
    table = np.delete(table, words, axis=1).astype(np.float32)
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:N_TRAIN], order[N_TRAIN:]
    scores = [
        LogisticRegression(C=0.1, max_iter=300).fit(table[train], label).predict_proba(table[test])[:, 1]
        for label in y[train].T
    ]
    return y[test].astype(float), np.stack(scores, axis=1)


def hide(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Hide labels by task (5 to 40% of a task) and by row (every fifth row lacks half of its labels)."""
    missing = rng.random(y.shape) < rng.uniform(0.05, 0.4, y.shape[1])
    missing |= (rng.random((len(y), 1)) < 0.2) & (rng.random(y.shape) < 0.5)
    return np.where(missing, np.nan, y)


def main(repeats: int) -> None:
    """Print the coverage of 90% intervals of each task's ROC-AUC and of averages."""
    y, score = read_scores(Path(os.environ["DARKMETRICS_DATA"]) / "tmc2007_500")
    averages = ("roc_auc_macro", "f1_macro", "f1_micro", "hamming", "subset_accuracy", "jaccard_samples")
    for missingness in ("random", None):
        by_task, covered, width = [], {name: [] for name in averages}, []
        for repeat in range(repeats):
            rng = np.random.default_rng(repeat)
            rows = rng.choice(len(y), N_TEST, replace=False)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = dm.evaluate(hide(y[rows], rng), score[rows], missingness=missingness, metrics=averages)
            truth = dm.evaluate(y[rows], score[rows], metrics=averages)
            for at, label in enumerate(result.labels):
                interval = result.labels[label]["roc_auc"].interval()
                by_task.append(interval.low <= roc_auc_score(y[rows, at], score[rows, at]) <= interval.high)
                width.append(interval.high - interval.low)
            for name in averages:
                interval = result[name].interval()
                covered[name].append(interval.low <= truth[name].mean() <= interval.high)
            assert abs(truth["f1_macro"].mean() - f1_score(y[rows], score[rows] >= 0.5, average="macro")) < 1e-9
        text = ", ".join(f"{name} {np.mean(values):.0%}" for name, values in covered.items())
        tasks = f"ROC-AUC of a task {np.mean(by_task):.1%} of {len(by_task)}, width {np.mean(width):.4f}"
        print(f"{missingness}: {tasks}; {text}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
