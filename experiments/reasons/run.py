"""What can be said about who was looked at: features, and an old scorecard with overrides (reject inference)."""

import csv
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import darkmetrics as dm
from experiments.reasons.arms import answers
from experiments.reasons.problems import CLASSIFIERS, SETS, Rows, hidden, looked_at, model_of, rows_of

COLUMNS = ("set", "classifier", "split", "n", "reason", "told", "metric", "truth", "low", "high", "width")


def by_feature(name: str, classifier: str, split: int, n: int) -> Iterator[dict[str, Any]]:
    """Labels missing by a feature, for those who can give the features."""
    rows = rows_of(name, classifier, split, n)
    own = {"set": name, "classifier": classifier, "split": split, "n": n, "told": "features"}
    model = dm.missing.Covariates(model_of("xgboost"), rows.X.to_numpy())
    for answer in answers(rows, hidden(rows, "by a feature"), "by a feature", missingness=model):
        yield own | answer


def rejected(name: str, classifier: str, split: int, n: int) -> Iterator[dict[str, Any]]:
    """Reject inference: an old scorecard decides who gets a label, and one in ten of the others does at random."""
    rows = rows_of(name, classifier, split, n)
    own = {"set": name, "classifier": classifier, "split": split, "n": n}
    for high in (True, False):
        who = f"old scorecard, {'high' if high else 'low'} ones labeled"
        for answer in _told_of(rows, looked_at(name, split, n, high=high), who):
            yield own | answer


def _told_of(rows: Rows, propensity: Any, reason: str) -> Iterator[dict[str, Any]]:
    """Labels with these chances, and what is said when told more or less about them."""
    rng = np.random.default_rng((*rows.seed, 9))
    labels = np.where(rng.random(rows.y.size) < propensity, rows.y, np.nan)
    features = dm.missing.Covariates(model_of("xgboost"), rows.X.to_numpy())
    ways: dict[str, dict[str, Any]] = {
        "nothing": {},
        "by_score": {"missingness": "by_score"},
        "propensity": {"missingness": dm.missing.Propensity(propensity)},
        "features": {"missingness": features},
        "features and propensity": {"missingness": dm.missing.Propensity(propensity)},
    }
    for told, how in ways.items():
        for answer in answers(rows, labels, reason, **how):
            yield {"told": told} | answer


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
                    found = one(name, classifier, split, 2000)
                    writer.writerows({**row, "width": row["high"] - row["low"]} for row in found)


if __name__ == "__main__":
    main()
