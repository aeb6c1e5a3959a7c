"""Calls of the public API from a seed: metrics x weights x ties x draws x methods x engines x mechanisms.

A problem is a function of its number alone. What it answers is `to_dict()` of a result, so that a change of structure
can be held against what the library said before it.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import darkmetrics as dm

NUMBER = 560

_METRICS = (
    ["precision", "recall", "accuracy", "f1"],
    ["roc_auc", "prevalence"],
    ["mcc", "balanced_accuracy"],
    ["brier", "log_loss"],
    ["average_precision"],
    ["specificity", "npv", "fpr", "fnr"],
    ["precision_at_k(0.2)", "recall_at_k(5)", "lift_at_k(0.1)"],
    ["gini", "fbeta(beta=2)"],
)
_MODELS: tuple[Mapping[str, Any], ...] = (
    {},
    {"missingness": dm.missing.Fixed(0.5)},
    {"missingness": "by_score"},
    {"missingness": "by_label"},
    {"missingness": dm.missing.Fixed(0.3)},
    {"missingness": "by_score"},
    {"missingness": "by_label"},
    {"missingness": "unknown"},
    {"missingness": "reference"},
    {"missingness": "given"},
)
_METHODS = ("auto", "auto", "auto", "gaussian", "monte_carlo", "exact")
_ENGINES: Mapping[str, Callable[[pd.DataFrame], Any]] = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "lazy": lambda table: pl.from_pandas(table).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "duckdb": lambda table: duckdb.from_df(table),
}


def table_of(rng: np.random.Generator) -> pd.DataFrame:
    """Rows of three groups; scores with and without ties, weights on a coarse grid or none."""
    n = int(rng.choice([12, 30, 60, 150]))
    score = rng.beta(1.5, 2.5, n)
    digits = int(rng.choice([1, 2, 8]))
    score = np.clip(np.round(score, digits), 0.01, 0.99)
    truth = rng.random(n) < score**0.9
    truth[:4] = [True, False, True, False]  # both classes have labels
    kind = rng.integers(4)
    chance = np.full(n, rng.choice([0.0, 0.2, 0.6]))
    if kind == 1:
        chance = 0.9 * score
    elif kind == 2:
        chance = np.where(truth, 0.6, 0.2)
    elif kind == 3:
        chance = 1.0 * (score >= np.quantile(score, 0.7))  # neighbours in rank
    gone = rng.random(n) < chance
    gone[:4] = False
    return pd.DataFrame(
        {
            "y": np.where(gone, np.nan, truth),
            "p": score,
            "yes": score >= 0.4,
            "w": rng.choice([0.5, 1.0, 3.0], n),
            "chance": np.round(rng.random(n), 2),
            "g": rng.choice(["a", "b"], n),
        }
    )


def answer(number: int) -> dict[str, Any]:
    """What the library says to a problem."""
    rng = np.random.default_rng([15, number])
    table = table_of(rng)
    settings: dict[str, Any] = {"rng": number, "zero_division": [0, 1, float("nan"), "warn"][rng.integers(4)]}
    settings["metrics"] = _METRICS[number % len(_METRICS)]
    settings["method"] = _METHODS[rng.integers(len(_METHODS))]
    model = dict(_MODELS[rng.integers(len(_MODELS))])
    weighted = bool(rng.integers(3) == 0)
    given = model.get("missingness") == "given"
    if model.get("missingness") == "reference":
        held_out = table_of(np.random.default_rng([16, number]))
        known = held_out["y"].notna()
        model = {"missingness": dm.missing.Reference(held_out["y"][known].to_numpy(), held_out["p"][known].to_numpy())}
    if given:
        model = {"missingness": dm.missing.Fixed(table["chance"].to_numpy())}
    settings |= model
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return _asked(number % 7, table, settings, given=given, weighted=weighted, rng=rng)
        except dm.InputError as error:  # what is refused stays refused
            return {"refused": type(error).__name__}


def _asked(
    way: int, table: pd.DataFrame, settings: dict[str, Any], *, given: bool, weighted: bool, rng: np.random.Generator
) -> dict[str, Any]:
    arrays: dict[str, Any] = {"sample_weight": table["w"].to_numpy()} if weighted else {}
    if way in (0, 1, 2):
        if way == 2:
            arrays["y_pred"] = table["yes"].to_numpy()
        return dict(dm.evaluate(table["y"].to_numpy(), table["p"].to_numpy(), **settings, **arrays).to_dict())
    columns: dict[str, Any] = {"y_true": "y", "y_score": "p"} | ({"sample_weight": "w"} if weighted else {})
    if given:
        settings = settings | {"missingness": dm.missing.Fixed("chance")}
    engine = list(_ENGINES)[rng.integers(len(_ENGINES))]
    frame = _ENGINES[engine](table)
    if way in (3, 4):
        return dict(dm.evaluate(data=frame, **columns, **settings).to_dict())
    if way == 5:
        found = dm.evaluate_by(data=frame, by="g", **columns, **settings).to_dict()
        return {key: value for key, value in found.items() if key != "evaluated_on"}  # every day another
    settings.pop("zero_division")
    if given:
        del settings["missingness"]
    metrics = [name for name in settings.pop("metrics") if name not in ("roc_auc", "gini", "average_precision")]
    metrics = [name for name in metrics if not name.startswith(("brier", "log_loss", "prev")) and "_at_k" not in name]
    evaluation = dm.evaluate(table["y"].to_numpy(), table["p"].to_numpy(), **settings, **arrays)
    return dict(dm.threshold_curves(evaluation, metrics=metrics or "recall", thresholds=[0.2, 0.5]).to_dict())
