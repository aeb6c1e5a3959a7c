"""rapidstats: its own bootstrap of the labeled rows, in Rust."""

import numpy as np
import polars as pl
from harness import LEVEL, Answer, labeled_rows, main
from rapidstats import Bootstrap


def estimate(label: np.ndarray, score: np.ndarray, resamples: int) -> Answer:
    y, s, d = labeled_rows(label, score)
    truth, decided = pl.Series(y == 1), pl.Series(d == 1)
    bootstrap = Bootstrap(iterations=resamples, confidence=LEVEL, seed=0)
    matrix, auc = bootstrap.confusion_matrix(truth, decided), bootstrap.roc_auc(truth, pl.Series(s))
    found = {"precision": matrix.precision, "recall": matrix.tpr, "accuracy": matrix.acc, "f1": matrix.fbeta}
    return {name: (point, low, high) for name, (low, point, high) in (found | {"roc_auc": auc}).items()}


if __name__ == "__main__":
    main("rapidstats", estimate)
