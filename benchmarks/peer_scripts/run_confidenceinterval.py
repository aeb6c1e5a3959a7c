"""confidenceinterval on the labeled rows: formulas (Wilson, Takahashi, DeLong) in place of resampling."""

import confidenceinterval as ci
import numpy as np
from harness import LEVEL, Answer, labeled_rows, main


def estimate(label: np.ndarray, score: np.ndarray, resamples: int) -> Answer:
    y, s, d = labeled_rows(label, score)
    found = {
        "precision": ci.precision_score(y, d, confidence_level=LEVEL, average="binary", method="wilson"),
        "recall": ci.recall_score(y, d, confidence_level=LEVEL, average="binary", method="wilson"),
        "accuracy": ci.accuracy_score(y, d, confidence_level=LEVEL, method="wilson"),
        "f1": ci.f1_score(y, d, confidence_level=LEVEL, average="binary"),
        "roc_auc": ci.roc_auc_score(y, s, confidence_level=LEVEL),
    }
    return {name: (float(value), float(low), float(high)) for name, (value, (low, high)) in found.items()}


if __name__ == "__main__":
    main("confidenceinterval", estimate)
