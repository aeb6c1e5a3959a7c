"""The study: each piece is a set, a classifier and a split; pieces that are on file are not run again."""

import csv
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import darkmetrics as dm
from experiments.reasons.problems import CLASSIFIERS, METRICS, REASONS, SETS, Rows, hidden, looked_at, model_of, rows_of

LEVEL = 0.9
COLUMNS = ("set", "classifier", "split", "n", "reason", "told", "metric", "truth", "low", "high", "width", "seconds")


def piece(name: str, classifier: str, split: int, n: int, told: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Every reason on one test set; `told`: "nothing", "reason"."""
    rows = rows_of(name, classifier, split, n)
    for reason, (word, _) in REASONS.items():
        labels = hidden(rows, reason)
        if labels is None:
            continue
        for what in told:
            if what == "reason" and word is None:
                continue
            for answer in answers(rows, labels, missingness=word if what == "reason" else None):
                yield {
                    "set": name,
                    "classifier": classifier,
                    "split": split,
                    "n": n,
                    "reason": reason,
                    "told": what,
                } | answer


def by_feature(name: str, classifier: str, split: int, n: int) -> Iterator[dict[str, Any]]:
    """Labels missing by a feature, for those who can give the features."""
    rows = rows_of(name, classifier, split, n)
    own = {"set": name, "classifier": classifier, "split": split, "n": n, "reason": "by a feature", "told": "features"}
    model = dm.label_models.Features(model_of("xgboost"), rows.X.to_numpy())
    for answer in answers(rows, hidden(rows, "by a feature"), label_model=model):
        yield own | answer


def rejected(name: str, classifier: str, split: int, n: int) -> Iterator[dict[str, Any]]:
    """Reject inference: an old scorecard decides who gets a label, and one in ten of the others does at random."""
    rows = rows_of(name, classifier, split, n)
    own = {"set": name, "classifier": classifier, "split": split, "n": n}
    for high in (True, False):
        who = f"old scorecard, {'high' if high else 'low'} ones labelled"
        for answer in _told_of(rows, looked_at(name, split, n, high=high)):
            yield own | {"reason": who} | answer


def _told_of(rows: Rows, propensity: Any) -> Iterator[dict[str, Any]]:
    """Labels with these chances, and what is said when told more or less about them."""
    rng = np.random.default_rng((*rows.seed, 9))
    labels = np.where(rng.random(rows.y.size) < propensity, rows.y, np.nan)
    features = dm.label_models.Features(model_of("xgboost"), rows.X.to_numpy())
    ways: dict[str, dict[str, Any]] = {
        "nothing": {},
        "by_score": {"missingness": "by_score"},
        "propensity": {"propensity": propensity},
        "features": {"label_model": features},
        "features and propensity": {"label_model": features, "propensity": propensity},
    }
    for told, how in ways.items():
        for answer in answers(rows, labels, **how):
            yield {"told": told} | answer


def answers(rows: Rows, labels: Any, **how: Any) -> Iterator[dict[str, Any]]:
    """Interval and truth of each metric."""
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = dm.evaluate(labels, rows.score, metrics=list(METRICS), **how)
        truth = dm.evaluate(rows.y, rows.score, metrics=list(METRICS), zero_division=0)
    seconds = time.process_time() - start
    for metric in METRICS:
        low, high = found[metric].interval(LEVEL)
        yield {
            "metric": metric,
            "truth": truth[metric].mean(),
            "low": low,
            "high": high,
            "width": high - low,
            "seconds": seconds,
        }


def main() -> None:
    """One arm on four sets, both classifiers: `python -m experiments.reasons.run ARM SPLITS FILE`."""
    arm, splits, path = sys.argv[1:]
    one = {"features": by_feature, "rejected": rejected}[arm]
    with Path(path).open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        for split in range(int(splits)):
            for name in SETS[:4]:
                for classifier in CLASSIFIERS:
                    writer.writerows(one(name, classifier, split, 2000))


if __name__ == "__main__":
    main()
