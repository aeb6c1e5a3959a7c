"""Data sets, folds and masks: everything that is the same for every algorithm."""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

import darkmetrics as dm
from experiments.paper.config import Config

# Names and versions at OpenML, for use without a data folder; ohsumed is not there.
OPENML = {"adult": 2, "bank-marketing": 1, "diabetes": 1, "credit-g": 1, "Dota2-Games-Results-Data-Set": 1}
ALIASES = {"bank": "bank-marketing", "german_credit": "credit-g", "dota2": "Dota2-Games-Results-Data-Set"}


# How a folder is named.
FOLDER = "DARKMETRICS_DATA=/path/to/data python -m experiments.paper"


class NoDataError(Exception):
    """A data set is neither in a folder nor to be had online; the message says what to do."""


class Fold(NamedTuple):
    """Labels and scores of a test fold, and of the rows kept for calibration."""

    y: Any
    score: Any
    calibration: tuple[Any, Any]


class Problem(NamedTuple):
    """A test fold with part of its labels masked."""

    missing: float
    mechanism: str  # "mcar", or "eta=0.6"
    half: int
    fold: Fold
    labels: Any  # NaN where masked
    seed: tuple[int, ...]


def load(name: str) -> tuple[Any, Any]:
    """Features and labels of a data set, from the folder DARKMETRICS_DATA or from OpenML."""
    folder = os.environ.get("DARKMETRICS_DATA")
    if folder and (Path(folder) / name).is_dir():
        return scipy.sparse.load_npz(Path(folder) / name / "X.npz"), np.load(Path(folder) / name / "y.npy")
    if folder and not (Path(folder) / f"{name}.csv.gz").is_file():
        raise NoDataError(f"{name}: there is no {name}.csv.gz in the folder that DARKMETRICS_DATA names ({folder}).")
    if folder:
        table = pd.read_csv(Path(folder) / f"{name}.csv.gz", na_values="?")
        words = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
        table = table.astype(dict.fromkeys(words, "category"))
        return table.drop(columns="target"), table["target"].to_numpy()
    from sklearn.datasets import fetch_openml

    known = ALIASES.get(name, name)
    if known not in OPENML:
        raise NoDataError(f"{name}: OpenML does not have it. Name a folder that does: {FOLDER}")
    try:
        found = fetch_openml(known, version=OPENML[known], as_frame=True)
    except OSError as error:  # what urllib raises is one
        raise NoDataError(
            f"{name}: OpenML cannot be reached ({error}). Try again online, or name a folder with the data: {FOLDER}"
        ) from None
    return found.data, (found.target == found.target.value_counts().index[-1]).to_numpy().astype(int)


def fold_of(config: Config, name: str, number: int) -> Fold:
    """Train on nine folds less a tenth of them, score the rest."""
    import xgboost

    x, y = load(name)
    y = 1 - y if name in config.swapped else y
    take: Any = x.iloc if isinstance(x, pd.DataFrame) else x
    folds = StratifiedKFold if config.stratified else KFold
    splits = folds(config.folds, shuffle=True, random_state=config.seed).split(np.zeros(y.size), y)
    train, test = list(splits)[number]
    fit, calibrate = train_test_split(train, test_size=config.calibration_share, random_state=config.seed)
    model = xgboost.XGBClassifier(enable_categorical=True, n_jobs=1, random_state=config.seed)
    model.fit(take[fit], y[fit])

    def scored(rows: Any) -> tuple[Any, Any]:
        return y[rows].astype(float), model.predict_proba(take[rows])[:, 1].astype(float)

    return Fold(*scored(test), scored(calibrate))


def problems_of(config: Config, name: str, number: int, fold: Fold) -> Iterator[Problem]:
    """Every mask of a fold: two halves, every share missing, every mechanism."""
    base = (config.seed, zlib.crc32(name.encode()), number)
    halves = np.array_split(np.random.default_rng(base).permutation(fold.y.size), 2)
    for half, rows in enumerate(halves):
        for m, missing in enumerate(config.missing):
            share = missing * fold.y.size / rows.size
            ways: dict[str, dm.masks.Mask] = {"mcar": dm.masks.MCAR(share)}
            ways |= {f"eta={eta:g}": dm.masks.ByLabel(share, prevalence=eta) for eta in config.prevalences}
            for w, (mechanism, how) in enumerate(ways.items()):
                seed = (*base, half, m, w)
                masked = how.mask(fold.y[rows] == 1, fold.score[rows], np.random.default_rng(seed)).missing
                labels = fold.y.copy()
                labels[rows[masked]] = np.nan
                yield Problem(missing, mechanism, half, fold, labels, seed)
