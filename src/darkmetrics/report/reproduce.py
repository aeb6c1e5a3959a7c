"""How to make a report again: the call as code, the seed, versions, the date, and what an audit asks for."""

import datetime as dt
import hashlib
import os
import platform
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import scipy

from darkmetrics.calls import as_code
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError


def date_of(date: Any = None) -> str:
    """The date of a report: as given, else of SOURCE_DATE_EPOCH, else today.

    Builds that shall give the same bytes again set SOURCE_DATE_EPOCH, in seconds since 1970.

    Examples
    --------
    >>> from darkmetrics.report.reproduce import date_of
    >>> date_of("2026-06-30")
    '2026-06-30'
    """
    if date is None:
        epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
        if epoch.strip().isdecimal():
            return dt.datetime.fromtimestamp(int(epoch), dt.UTC).date().isoformat()
        return dt.datetime.now().astimezone().date().isoformat()
    if isinstance(date, dt.datetime):
        return date.date().isoformat()
    if isinstance(date, dt.date):
        return date.isoformat()
    try:
        return dt.date.fromisoformat(date).isoformat()
    except (TypeError, ValueError):
        raise InputError(f"date: {date!r}. It must be a date such as '2026-06-30'.") from None


def source_facts(source: str | Mapping[str, Any] | None, name: str = "source") -> dict[str, str]:
    """Facts about the data by name, as text."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return {str(k): str(v) for k, v in source.items()}
    if name != "source":
        raise InputError(f"{name}: expected facts by name, such as {{'model': 'scorecard 3'}}, got {source!r}.")
    return {"data": str(source)}


def audit_facts(data: EvaluationSet, facts: Mapping[str, Any] | None, versions: Mapping[str, str]) -> Any:
    """What an audit file holds: facts of the user, the hash of the rows, and versions; None where nobody asks."""
    if facts is None:
        return None
    given = source_facts(facts, "audit")
    return {"facts": given, "rows": data.n_rows, "sha256": data_hash(data), "versions": dict(versions)}


def data_hash(data: EvaluationSet) -> str:
    """SHA-256 of what was evaluated; the same rows in any order have the same.

    That is scores, decisions and labels, what else the rows came with (weights, probabilities, propensities, strata,
    ages, groups), the threshold, and the number of buckets if scores were put into some.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> from darkmetrics.report.reproduce import data_hash
    >>> one, two = dm.EvaluationSet([1, None], [0.9, 0.2]), dm.EvaluationSet([None, 1], [0.2, 0.9])
    >>> data_hash(one) == data_hash(two), data_hash(one) == data_hash(dm.EvaluationSet([0, None], [0.9, 0.2]))
    (True, False)
    """
    columns = {name: array for name, array in data.cells.arrays().items() if array is not None}
    if data.groups is not None:
        columns["groups"] = data.groups
    order = np.lexsort(list(columns.values())[::-1])
    digest = hashlib.sha256(f"{data.threshold!r} {data.buckets!r}\n".encode())
    for name, array in columns.items():
        # The bytes of numbers on any machine: counts and numbers of strata as whole ones, the rest as doubles.
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        digest.update(name.encode() + b"\n" + np.ascontiguousarray(array[order].astype(kind)).tobytes())
    return digest.hexdigest()


def code_of(evaluation: Evaluation, said: str) -> list[str]:
    """The lines that evaluate again and write the report; `said` are the arguments of the latter, after its path."""
    arguments = dict(evaluation.arguments)
    function = "evaluate_by" if evaluation.groups else "evaluate_frame" if "frame" in arguments else "evaluate"
    if "frame" in arguments:
        data = [arguments.pop("frame")]
    else:
        data = [arguments.pop("y_true", "y_true")]
        # Without scores the rows came as an evaluation set.
        data = [*data, arguments.pop("y_score")] if "y_score" in arguments else ["data"]
    code = ["import darkmetrics as dm", ""]
    yours = sorted(name for name, value in arguments.items() if value == name)
    # A table in files is named in the call itself.
    names = [*(name for name in data if name.isidentifier()), *yours]
    if names:
        code.append(f"# {', '.join(names)}: as you gave {'it' if len(names) == 1 else 'them'}")
    if data == ["data"]:
        threshold = evaluation.data.threshold
        decided = "y_pred=..." if threshold is None else f"threshold={threshold!r}"
        code.append(f"# data = dm.EvaluationSet(y_true, y_score, {decided}, ...)")
    settings = "".join(f", {name}={value}" for name, value in arguments.items())
    code.append(f"result = dm.{function}({', '.join(data)}{settings}){'.total' if evaluation.groups else ''}")
    code.append(f'result.report("report.html"{said})')
    return code


def as_argument(name: str, value: Any) -> str:
    """An argument of the report as code, behind a comma; nothing where it was not given, its name where it is long."""
    if value is None:
        return ""
    code = repr(dict(value)) if isinstance(value, Mapping) else as_code(value)
    return f", {name}={code if code and len(code) <= 200 else name}"


def reproduction(code: list[str], arguments: Mapping[str, str], methods: Collection[str]) -> dict[str, Any]:
    """How to make a report again: the code, what there is to say about the seed, and versions."""
    # A method of the user's own may draw; only of these is it known that they do not.
    drawn = not set(methods) <= {"exact", "near exact", "gaussian", "first order", "bounds"}
    if "rng" in arguments:
        seed = f"The seed was rng={arguments['rng']}."
    elif drawn:
        seed = "No seed was given (rng=...), so that drawn numbers differ a little from run to run."
    else:
        seed = "Nothing was drawn at random, so that no seed is needed."
    from darkmetrics import __version__

    versions = {"darkmetrics": __version__, "Python": platform.python_version()}
    versions |= {package.__name__: package.__version__ for package in (np, scipy)}
    return {"code": "\n".join(code), "seed": seed, "versions": versions}
