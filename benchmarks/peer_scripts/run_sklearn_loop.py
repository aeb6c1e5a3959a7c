"""The loop many write: calibrate on labeled rows, draw the missing labels, call scikit-learn for each drawing."""

import numpy as np
from harness import LEVEL, METRICS, THRESHOLD, Answer, main
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, precision_score, recall_score, roc_auc_score


def estimate(label: np.ndarray, score: np.ndarray, resamples: int) -> Answer:
    rng = np.random.default_rng(0)
    missing = np.isnan(label)
    logit = np.log(score / (1.0 - score))[:, None]
    model = LogisticRegression(C=np.inf).fit(logit[~missing], label[~missing])
    p = model.predict_proba(logit)[:, 1]
    decided = score >= THRESHOLD
    drawn = np.empty((resamples, len(METRICS)))
    for i in range(resamples):
        y = np.where(missing, rng.random(label.size) < p, label).astype(int)
        drawn[i] = (
            precision_score(y, decided),
            recall_score(y, decided),
            accuracy_score(y, decided),
            f1_score(y, decided),
            roc_auc_score(y, score),
        )
    low, high = np.quantile(drawn, [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0], axis=0)
    return {name: (drawn[:, i].mean(), low[i], high[i]) for i, name in enumerate(METRICS)}


if __name__ == "__main__":
    main("scikit-learn", estimate)
