"""How to make a report again: the call as code, the seed, versions, the date, and what an audit asks for."""

import datetime as dt
import hashlib
import os
import platform
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import scipy

from darkmetrics.call_as_code import as_code, names_in
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
        raise InputError("date", repr(date), "It must be a date such as '2026-06-30'.") from None


def source_facts(source: str | Mapping[str, Any] | None, name: str = "source") -> dict[str, str]:
    """Facts about the data by name, as text."""
    if source is None:
        return {}
    if isinstance(source, Mapping):
        return {str(k): str(v) for k, v in source.items()}
    if name != "source":
        raise InputError(name, f"expected facts by name, such as {{'model': 'scorecard 3'}}, got {source!r}")
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
    return columns_hash(f"{data.threshold!r} {data.score_bins!r}\n", columns)


def columns_hash(head: str, columns: Mapping[str, Any]) -> str:
    """SHA-256 of a line of text and of columns, whose rows may come in any order."""
    order = np.lexsort(list(columns.values())[::-1])
    digest = hashlib.sha256(head.encode())
    for name, array in columns.items():
        # The bytes of numbers on any machine: counts and numbers of strata as whole ones, the rest as doubles.
        kind = "<f8" if array.dtype.kind == "f" else "<i8"
        digest.update(name.encode() + b"\n" + np.ascontiguousarray(array[order].astype(kind)).tobytes())
    return digest.hexdigest()


def code_of(evaluation: Evaluation, said: str) -> list[str]:
    """The lines that evaluate again and write the report; `said` are the arguments of the latter, after its path."""
    notes, call = call_of(evaluation)
    return ["import darkmetrics as dm", "", *notes, f"result = {call}", f'result.report("report.html"{said})']


def call_of(evaluation: Evaluation) -> tuple[list[str], str]:
    """Comments on what the reader has to bring along, and the call that evaluates again."""
    arguments = dict(evaluation.arguments)
    if evaluation.groups:
        notes, call = code_of_call("evaluate_by", arguments)
        return notes, f"{call}.total"
    if "y_score" in arguments:
        return code_of_call("evaluate", arguments)
    # Without scores the rows came as an evaluation set.
    notes, call = code_of_call("evaluate", arguments | {"y_true": "data"})
    threshold = evaluation.data.threshold
    decided = "y_pred=..." if threshold is None else f"threshold={threshold!r}"
    return [*notes, f"# data = dm.EvaluationSet(y_true, y_score, {decided}, ...)"], call


# Arguments that calls have without their names.
_ROWS = ("y_true", "y_score", "scores")


def code_of_call(function: str, arguments: Mapping[str, str]) -> tuple[list[str], str]:
    """Return a comment on the data that the reader has to bring, and the call."""
    # Data come first: their names begin the sentence.
    order = sorted(arguments, key=lambda name: (name not in _ROWS, name != "data"))
    parts = [arguments[name] if name in _ROWS else f"{name}={arguments[name]}" for name in order]
    names = list(dict.fromkeys(name for argument in order for name in sorted(names_in(arguments[argument]))))
    notes = [f"# {', '.join(names)}: as you gave {'it' if len(names) == 1 else 'them'}"] if names else []
    return notes, f"dm.{function}({', '.join(parts)})"


def as_argument(name: str, value: Any) -> str:
    """An argument of the report as code, behind a comma; nothing where it was not given, its name where it is long."""
    if value is None:
        return ""
    code = repr(dict(value)) if isinstance(value, Mapping) else as_code(value)
    return f", {name}={code if code and len(code) <= 200 else name}"


def reproduction(
    code: list[str], arguments: Mapping[str, str], methods: Collection[str], source: Any = None
) -> dict[str, Any]:
    """How to make a report again: the code, what there is to say about the seed, and versions.

    Of a page whose source names a command it is that command, which names the files.
    """
    command = source_facts(source).get("command")
    seed_is = "rng=" if command is None else "--seed "
    # A method of the user's own may draw; only of these is it known that they do not.
    drawn = not set(methods) <= {"exact", "near exact", "gaussian", "first order", "bounds"}
    if "rng" in arguments:
        seed = f"The seed was {seed_is}{arguments['rng']}."
    elif drawn:
        seed = f"No seed was given ({seed_is}...), so that drawn numbers differ a little from run to run."
    else:
        seed = "Nothing was drawn at random, so that no seed is needed."
    from darkmetrics import __version__

    versions = {"darkmetrics": __version__, "Python": platform.python_version()}
    versions |= {package.__name__: package.__version__ for package in (np, scipy)}
    return {"code": "\n".join(code) if command is None else command, "seed": seed, "versions": versions}
