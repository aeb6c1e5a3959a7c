"""What arguments may be: names for the types that public functions share. What is passed is checked when it is read."""

import datetime as dt
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, TypedDict

import numpy as np


class ArrayLike(Protocol):
    """A column in memory: a list, a NumPy array, a pandas or Polars Series, an Arrow array."""

    def __len__(self) -> int: ...

    def __getitem__(self, key: Any, /) -> Any: ...


class Classifier(Protocol):
    """A classifier as scikit-learn's are: it says with which probability each row belongs to each class."""

    def predict_proba(self, X: Any, /) -> Any: ...


class Learner(Classifier, Protocol):
    """A classifier that can be fitted too."""

    def fit(self, X: Any, y: Any, /) -> Any: ...


# A number, or a column of them.
Numbers: TypeAlias = float | np.number[Any] | ArrayLike
# Values per row of a mechanism: an array, the name of a column, or True for those of an EvaluationSet.
RowValues: TypeAlias = ArrayLike | str | bool | None
# A table of any engine: pandas, Polars, PyArrow, DuckDB, PySpark, Dask, Ibis; or files, by path, folder, pattern or
# list of paths. These have nothing in common that a type could say.
FrameLike: TypeAlias = object
# A value that labels have: a number, a text, a bool, or whatever else the column holds.
LabelValue: TypeAlias = object
# A group: a value of the column that tells groups apart, whatever that holds, or a tuple of several columns' values.
GroupLike: TypeAlias = object
PathLike: TypeAlias = str | os.PathLike[str]
# A seed, or a source of random numbers: what `numpy.random.default_rng` takes.
RngLike: TypeAlias = (
    int | np.integer[Any] | Sequence[int] | np.random.Generator | np.random.BitGenerator | np.random.SeedSequence | None
)
# Why labels are missing: "random", "by_score", "by_label", "by_score_and_label" or "unknown"; None: nothing is said.
Missingness: TypeAlias = str | None
# What intervals are for: the rows at hand, or the population that they came from.
Scope: TypeAlias = Literal["rows", "population"]
# What a 0/0 counts as: 0, 1, nan, or "warn" for each metric's own value.
ZeroDivision: TypeAlias = float | str
# A span of time: a number in the unit of the ages given, or a timedelta.
Duration: TypeAlias = float | dt.timedelta | np.timedelta64
# A day, or a moment: a date, a datetime, either of NumPy's, or text in ISO form.
PointInTime: TypeAlias = dt.date | np.datetime64 | str
# Whether long work shows how far it is: a bar, nothing, a bar where there is a terminal (None), or a function that is
# called with how many pieces are done and how many there are.
ProgressLike: TypeAlias = bool | Callable[[int, int], object] | None


class PageSettings(TypedDict, total=False):
    """What every report is told besides its path."""

    title: str | None
    source: str | Mapping[str, Any] | None
    date: str | dt.date | None
    audit: Mapping[str, Any] | None


class ReportSettings(PageSettings, total=False):
    """What the report of an evaluation is told besides."""

    targets: Mapping[str, float] | None
    confidence: float
