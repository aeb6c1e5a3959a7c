"""Data sets from a folder or from OpenML, with the same rows and the same positive class either way."""

import os
from collections.abc import Callable, Iterable
from http.client import HTTPException
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import scipy.sparse

# How a folder is named.
FOLDER = "DARKMETRICS_DATA=/path/to/data python -m experiments.paper"


class DataSet(NamedTuple):
    """A data set: what identifies it in OpenML, its positive class there, and its size, by which both are checked."""

    rows: int
    positives: int
    openml_name: str = ""  # empty: OpenML does not have it
    version: int = 1
    positive_class: str = ""


SETS = {
    "diabetes": DataSet(768, 268, "diabetes", 1, "tested_positive"),
    "german_credit": DataSet(1_000, 300, "credit-g", 1, "bad"),
    "bank": DataSet(45_211, 5_289, "bank-marketing", 1, "2"),
    "adult": DataSet(48_842, 11_687, "adult", 2, ">50K"),
    "imdb_drama": DataSet(120_919, 43_779, "IMDB.drama", 1, "1"),
    "dota2": DataSet(102_944, 54_284, "Dota2-Games-Results-Data-Set", 1, "1"),
    "ohsumed": DataSet(13_929, 3_952),
}


class NoDataError(Exception):
    """A data set cannot be had; the message is one line that says why, and what to do."""


def load(name: str) -> tuple[Any, Any]:
    """Return features and labels (0 and 1) of a data set: from the folder DARKMETRICS_DATA if it is set, or OpenML."""
    folder = os.environ.get("DARKMETRICS_DATA")
    x, y = _from_folder(Path(folder), name) if folder else _from_openml(name)
    rows, positives = y.size, int(y.sum())
    expected = SETS[name]
    if (rows, positives) != (expected.rows, expected.positives):
        raise NoDataError(
            f"{name}: {rows:,} rows and {positives:,} positives instead of {expected.rows:,} and "
            f"{expected.positives:,}. These are not the rows of the study."
        )
    return x, y


def available_sets(
    wanted: Iterable[str], stand_ins: dict[str, str], report: Callable[[str], None] = print
) -> list[str]:
    """Return the sets that can be had; one line reports each other set, and its stand-in if there is one."""
    sets = []
    for name in wanted:
        try:
            load(name)
            sets.append(name)
        except NoDataError as error:
            substitute = stand_ins.get(name)
            try:
                if substitute is None:
                    raise
                load(substitute)
                sets.append(substitute)
                report(f"{error} Used instead: {substitute}.")
            except NoDataError:
                report(f"{error} Skipped.")
    return sets


def _from_folder(folder: Path, name: str) -> tuple[Any, Any]:
    if (folder / name).is_dir():
        return scipy.sparse.load_npz(folder / name / "X.npz"), np.load(folder / name / "y.npy")
    if not (folder / f"{name}.csv.gz").is_file():
        raise NoDataError(f"{name}: the folder that DARKMETRICS_DATA names has no {name}.csv.gz.")
    table = pd.read_csv(folder / f"{name}.csv.gz", na_values="?")
    texts = [column for column in table if not pd.api.types.is_numeric_dtype(table[column])]
    table = table.astype(dict.fromkeys(texts, "category"))
    return table.drop(columns="target"), table["target"].to_numpy()


def _from_openml(name: str) -> tuple[Any, Any]:
    from sklearn.datasets import fetch_openml

    data_set = SETS[name]
    if not data_set.openml_name:
        raise NoDataError(f"{name}: OpenML does not have it. A folder may: {FOLDER}.")
    try:
        # "auto": sparse sets come as a sparse matrix, the others as a DataFrame.
        bunch = fetch_openml(data_set.openml_name, version=data_set.version, as_frame="auto")
    except (OSError, HTTPException, ValueError) as error:  # no network, a broken download, an unknown name
        first_line = str(error).partition("\n")[0].rstrip(".")
        raise NoDataError(
            f"{name}: OpenML cannot be reached ({first_line}). Try again online, or name a folder: {FOLDER}."
        ) from None
    x, target = bunch.data, bunch.target
    if target is None:  # nobody has told OpenML which column is the label
        x, target = _split_target(name, x)
    labels = pd.Series(np.asarray(target)).astype(str).str.removesuffix(".0")
    return x, (labels == data_set.positive_class).to_numpy().astype(int)


def _split_target(name: str, table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """Split off the only column with the two values 1 and -1, as in the results of games."""
    columns = [column for column in table if set(table[column].astype(str)) in ({"1", "-1"}, {"1.0", "-1.0"})]
    if len(columns) != 1:
        raise NoDataError(f"{name}: OpenML does not say which of its columns is the label.")
    return table.drop(columns=columns), table[columns[0]]
