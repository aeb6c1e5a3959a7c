"""Folds and masks: everything that is the same for every algorithm."""

import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold, StratifiedKFold, train_test_split

import darkmetrics as dm
from experiments.paper.config import Config
from experiments.paper.data_sets import load


class Fold(NamedTuple):
    """Labels and scores of a test fold and of the rows for calibration, and N+/N of the training set."""

    y: Any
    score: Any
    calibration: tuple[Any, Any]
    training_prevalence: float


class Problem(NamedTuple):
    """A test fold with part of its labels masked."""

    missing: float
    mechanism: str  # "mcar", or "eta=0.6"
    half: int
    fold: Fold
    labels: Any  # NaN where masked
    seed: tuple[int, ...]


def fold_of(config: Config, name: str, number: int, folder: Path | None = None) -> Fold:
    """Return a fold: train on 90% of the other nine folds, score the fold and the remaining 10%.

    With a folder, a fold that was trained for another run is read from there.
    """
    key = f"{name}-{number}-{config.seed}-{config.folds}-{config.calibration_fraction}"
    key += f"-{'stratified' if config.stratified else 'unstratified'}{'-swapped' if config.swapped else ''}"
    path = None if folder is None else folder / f"{key}.npz"
    if path is not None and path.exists():
        with np.load(path) as stored:
            return Fold(stored["y"], stored["score"], tuple(stored["calibration"]), float(stored["prevalence"]))
    fold = _trained(config, name, number)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".tmp.npz")
        np.savez(
            unfinished,
            y=fold.y,
            score=fold.score,
            calibration=np.array(fold.calibration),
            prevalence=fold.training_prevalence,
        )
        unfinished.replace(path)
    return fold


def _trained(config: Config, name: str, number: int) -> Fold:
    import xgboost

    x, y = load(name)
    y = 1 - y if config.swapped else y
    rows_of: Any = x.iloc if isinstance(x, pd.DataFrame) else x
    folds = StratifiedKFold if config.stratified else KFold
    splits = folds(config.folds, shuffle=True, random_state=config.seed).split(np.zeros(y.size), y)
    train, test = list(splits)[number]
    fit, calibrate = train_test_split(train, test_size=config.calibration_fraction, random_state=config.seed)
    model = xgboost.XGBClassifier(enable_categorical=True, n_jobs=1, random_state=config.seed)
    model.fit(rows_of[fit], y[fit])

    def scored(rows: Any) -> tuple[Any, Any]:
        return y[rows].astype(float), model.predict_proba(rows_of[rows])[:, 1].astype(float)

    return Fold(*scored(test), scored(calibrate), float(y[train].mean()))


def problems_of(config: Config, name: str, number: int, fold: Fold) -> Iterator[Problem]:
    """Yield every mask of a fold: two halves, every fraction missing, every mechanism."""
    base = (config.seed, zlib.crc32(name.encode()), number)
    halves = np.array_split(np.random.default_rng(base).permutation(fold.y.size), 2)
    for half, rows in enumerate(halves):
        for m, missing in enumerate(config.missing):
            fraction = missing * fold.y.size / rows.size
            for w, mechanism in enumerate(["mcar", *(f"eta={eta:g}" for eta in config.prevalences)]):
                seed = (*base, half, m, w)
                rng = np.random.default_rng(seed)
                if mechanism == "mcar":
                    masked = dm.paper.mcar_mask(fold.y[rows], fraction, rng=rng)
                else:
                    masked = dm.paper.mnar_mask(fold.y[rows], fraction, config.prevalences[w - 1], rng=rng)
                labels = fold.y.copy()
                labels[rows[masked]] = np.nan
                yield Problem(missing, mechanism, half, fold, labels, seed)
