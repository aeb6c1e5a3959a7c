"""Labels of Adult and Bank masked by label, as in the paper's MNAR study.

Ten stratified folds; on nine of them a default XGBoost learns from 90% of the rows and the rest is kept for
calibration; the tenth is the test fold, whose labels go missing in one of two random halves at a time: 20 replications.
30% of the test fold is masked, a share eta of it positive, fewer rows where the half has too few of a class.
"""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import darkmetrics as dm
import oracle
from guarantees import scenarios
from guarantees.pieces import PACKAGES, Family, Row, files
from guarantees.scenarios import MISSING, Sample, Way, masked_counts, rows_of

SETS = ("adult", "bank")
FOLDS = 10
SHARES = (0.1, 0.4, 0.6, 0.9)
SEED = 2026
N_BINS = 10
DATA = Path(os.environ.get("DARKMETRICS_DATA", "data-sets-are-not-here"))


def lacking() -> str:
    """What is missing on this machine to measure it; empty if nothing is."""
    if not DATA.is_dir():
        return "DARKMETRICS_DATA does not name the folder with the data sets"
    if importlib.util.find_spec("xgboost") is None:
        return "xgboost is not installed (pip install 'darkmetrics[study]')"
    return ""


class Fold:
    """The test rows of one fold with their scores, and the rows kept for calibration with theirs."""

    def __init__(self, table: Any, fit: Any, calibrate: Any, test: Any) -> None:
        import xgboost

        x, y = table.drop(columns="target"), table["target"].to_numpy()
        model = xgboost.XGBClassifier(enable_categorical=True, n_jobs=1, random_state=SEED)
        model.fit(x.iloc[fit], y[fit])

        def labels_and_scores(rows: Any) -> tuple[Any, Any]:
            return y[rows].astype(float), model.predict_proba(x.iloc[rows])[:, 1].astype(float)

        self.calibration = labels_and_scores(calibrate)
        self.y, self.score = labels_and_scores(test)


def fold_of(name: str, number: int) -> Fold:
    """One of the ten folds of a data set, with its own model."""
    import pandas as pd
    from sklearn.model_selection import StratifiedKFold, train_test_split

    table = pd.read_csv(DATA / f"{name}.csv.gz", na_values="?")
    words = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
    table = table.astype(dict.fromkeys(words, "category"))
    splits = list(StratifiedKFold(FOLDS, shuffle=True, random_state=SEED).split(table, table["target"]))
    train, test = splits[number]
    fit, calibrate = train_test_split(train, test_size=0.1, random_state=SEED)
    return Fold(table, fit, calibrate, test)


def masked(fold: Fold, number: int, eta: float) -> Iterator[Sample]:
    """Two samples: the fold with labels missing from its one half, then from its other."""
    rng = np.random.default_rng([SEED, number])  # the halves of a fold are the same for every eta
    for half in np.array_split(rng.permutation(fold.y.size), 2):
        rows = [half[fold.y[half] == 1], half[fold.y[half] == 0]]
        counts = masked_counts(rows[0].size, rows[1].size, round(MISSING * fold.y.size), eta, 1.0)
        y = fold.y.copy()
        for of_class, count in zip(rows, counts, strict=True):
            y[rng.choice(of_class, count, replace=False)] = np.nan
        yield Sample(y, fold.score, fold.calibration, fold.y, chance=None)


def label_shift(sample: Sample) -> Any:
    return dm.evaluate(sample.y, sample.score, missingness="by_label")


def scaling_binning(sample: Sample) -> Any:
    """The paper's calibrated probabilities: fitted on the rows kept for calibration, taken as known."""
    labels, scores = sample.reference
    probability = dm.calibrators.ScalingBinning(n_bins=N_BINS).fit(scores, labels).predict(sample.score)
    return dm.evaluate(sample.y, sample.score, missingness=dm.missing.Fixed(probability))


def complete_case_bootstrap(sample: Sample) -> Any:
    """Today's practice: drop what has no label, bootstrap the rest."""
    return dm.paper.bootstrap(dm.EvaluationSet(sample.y, sample.score), n_resamples=200, rng=0)


WAYS: dict[str, Way] = {
    "label shift": label_shift,
    "scaling-binning": scaling_binning,
    "bootstrap": complete_case_bootstrap,
}


def _fold(name: str, number: int) -> Iterator[Row]:
    """Every way on every mask of one fold."""
    fold = fold_of(name, number)
    for eta in SHARES:
        for half, sample in enumerate(masked(fold, number, eta)):
            for way, laws_of in WAYS.items():
                yield from ({"eta": eta, "half": half, "way": way} | row for row in rows_of(laws_of, sample))


_DATA_FILES = [path for path in (DATA / f"{name}.csv.gz" for name in SETS) if path.exists()]
FAMILY = Family(
    "real data",
    _fold,
    files(__file__, oracle.__file__, scenarios.__file__, *_DATA_FILES),
    (*PACKAGES, "xgboost", "xgboost-cpu"),
)
