"""Answer a call that a public function does not take with the call to make."""

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from darkmetrics import frames
from darkmetrics.call_as_code import as_code
from darkmetrics.exceptions import UnknownArgumentError

_SCORES = "y_score score scores prediction predictions pred preds y_prob y_proba y_pred_proba probas_pred y_hat"
# Our parameters, and the words for them in other libraries and other functions.
_PARAMETERS = {
    "y_true": "target label labels y y_test actual ground_truth",
    "y_score": _SCORES,
    "scores": _SCORES,
    "y_pred": "decision decisions",
    "sample_weight": "weight weights",
    "data": "frame df table",
    "metrics": "metric scoring",
    "missingness": "label_model label_models",
    "clusters": "cluster",
    "by": "segment segments groupby sensitive_features",
    "time": "timestamp timestamp_column_name chunk_column",
    "period": "chunk_period freq every",
    "rng": "random_state seed",
    "score_bins": "buckets bins",
    "methods": "method",
    "confidence_levels": "confidence_level",
    "mask": "mechanism",
    "known_alerts": "known",
    "last_periods": "last",
}
# Fields of mechanisms, with the mechanism that each states where no other is stated.
_FIELDS = {
    "reference": "Unknown",
    "strata": "ByScore",
    "propensity": "Propensity",
    "probability": "Fixed",
    "prevalence": "ExponentialTilt",
    **dict.fromkeys(["age", "delay", "scored_at", "labeled_at", "as_of", "maturity", "reviewed"], "Delayed"),
}
_OTHER_FIELDS = {"calibration": "reference", "stratum": "strata", "probabilities": "probability"}
# Those that a function can use which takes no column or no single score.
_OF_ANY_FUNCTION = ("reference", "probability", "prevalence")
_CLASSES = {"random": "Random", "by_score": "ByScore", "by_label": "ByLabel", "by_score_and_label": "ByScoreAndLabel"}
_CLUSTERS = "evaluate and EvaluationSet alone take clusters, rows that belong together. Keep one random row of each."
# Answers in a sentence, by word and by whether the function takes clusters; {0} is the value that was passed.
_SENTENCES = {
    ("score_bins", True): "Build the rows with it: evaluate(dm.EvaluationSet(..., score_bins={0})).",
    ("groups", True): "Pass clusters={0} for rows that belong together, such as those of one customer. Segments are "
    "evaluate_by(..., by={0}).",
    ("groups", False): f"{_CLUSTERS} Segments are evaluate_by(..., by={{0}}).",
    ("clusters", False): _CLUSTERS,
    **dict.fromkeys(
        [("n_resamples", True), ("n_resamples", False)], "Pass method=dm.methods.MonteCarlo(n_resamples={0})."
    ),
}
# The answer to more values without a name than a function takes, where it is not that of `elsewhere`.
_TOO_MANY = {
    "compare": 'Pass the scores of all models in one mapping: dm.compare(y, {"model_1": s, "model_2": s2}).',
}
# Parameters of evaluate_by that are looked for in evaluate, and those of evaluate that other functions may lack.
_OF_EVALUATE_BY = ("by", "time", "period")
_OF_ALERTS = frozenset(
    ["targets", "false_discovery_rate", "correction", "min_labels", "since", "last_periods", "known_alerts"]
)
_COLUMNS = ("y_true", "y_score", "y_pred", "sample_weight", "by", "time")
OF_EVALUATE = frozenset(
    [
        *("y_true", "y_score", "data", "metrics", "missingness", "threshold", "y_pred", "sample_weight", "clusters"),
        *("pos_label", "missing_label", "scope", "method", "zero_division", "confidence_level", "rng", "labels"),
    ]
)
_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def suggest_call(elsewhere: str = "") -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """Decorate a public function: a call with an argument that it does not take is answered with the call to make.

    `elsewhere` is the answer to an argument of `evaluate` for which the function has none, and to too many arguments.
    """

    def decorate(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
        signature = _Signature.of(function)

        @functools.wraps(function)
        def called(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
            call = _Call(signature, args[signature.is_method :], kwargs)
            if call.labels_are_a_table():
                raise call.table_error()
            try:
                return function(*args, **kwargs)
            except TypeError:
                error = call.error(elsewhere)
                if error is None:
                    raise
            raise error

        return called

    return decorate


class _Signature(NamedTuple):
    """A public function, its parameters, and those of them that may be passed by position."""

    name: str
    parameters: tuple[str, ...]
    positional: tuple[str, ...]
    is_method: bool

    @classmethod
    def of(cls, function: Callable[..., Any]) -> "_Signature":
        """Return the signature of a function or method; that of a class for its `__init__`."""
        known = inspect.signature(function).parameters
        names = tuple(name for name in known if name != "self")
        positional = tuple(name for name in names if known[name].kind is inspect.Parameter.POSITIONAL_OR_KEYWORD)
        is_init = function.__name__ == "__init__"
        name = function.__qualname__.partition(".")[0] if is_init else function.__name__
        return cls(name, names, positional, "self" in known)

    def meant(self, word: str) -> str | None:
        """Return the parameter that a word stands for, among those of `evaluate_by` for `evaluate`."""
        names = (*self.parameters, *(_OF_EVALUATE_BY if self.name == "evaluate" else ()))
        if word in names:
            return word
        takes_rows = {"data", "y_score"} <= {*names}
        field = _OTHER_FIELDS.get(word, word)
        if field in _FIELDS and "missingness" in names and (takes_rows or field in _OF_ANY_FUNCTION):
            return "missingness"
        if word == "alpha":
            return next((name for name in ("confidence_level", "confidence_levels") if name in names), None)
        listed = [name for name, words in _PARAMETERS.items() if name in names and word in words.split()]
        is_known = (
            field in _FIELDS or word in OF_EVALUATE or any(word in words.split() for words in _PARAMETERS.values())
        )
        near = (
            [] if is_known and "y_true" in names else difflib.get_close_matches(word.lower(), names, n=1, cutoff=0.65)
        )
        return next(iter([*listed, *near]), None)


class _Call(NamedTuple):
    """A call of a public function, without `self`."""

    signature: _Signature
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    def labels_are_a_table(self) -> bool:
        """Return whether a table stands where labels belong, in a function that takes one as `data`."""
        labels = self.args[0] if self.args else self.kwargs.get("y_true")
        return _is_table(labels) and {"y_true", "data"} <= {*self.signature.parameters}

    def table_error(self) -> UnknownArgumentError:
        """Return the error for a table in the place of labels, with the names of its columns."""
        columns = ", ".join(map(repr, self.columns()[:12]))
        call = self.corrected() or f"dm.{self.signature.name}(..., data=df)"
        rule = f"a table. Pass it as data= and name its columns: {call}. Its columns are {columns}."
        return UnknownArgumentError.about("y_true", rule)

    def columns(self) -> list[str]:
        """Return the columns of the table in the place of labels."""
        table = frames.lazy_frame(self.args[0] if self.args else self.kwargs["y_true"])
        return [str(name) for name in table.collect_schema().names()]

    def error(self, elsewhere: str) -> UnknownArgumentError | None:
        """Return the error for a call that Python refuses; None if its arguments exist, and one of them is missing."""
        name, names, positional, _ = self.signature
        word = next((word for word in self.kwargs if word not in names), None)
        if len(self.args) > len(positional) and (word is None or "y_true" not in names):
            call = self.corrected()
            answer = f"Write {call}." if call else _TOO_MANY.get(name, elsewhere)
            takes = f"{len(positional)} ({', '.join(positional)})"
            rule = f"{len(self.args)} values without a name, where {name} takes {takes}. {answer}"
            return UnknownArgumentError.about(name, rule.rstrip())
        if word is None and self.args and "y_true" in self.kwargs:
            return UnknownArgumentError.about("y_true", f"passed twice. Write {self.corrected()}.")
        if word is None:
            return None
        meant, code = self.signature.meant(word), _code(word, self.kwargs[word])
        sentence = _SENTENCES.get((word, "clusters" in names))
        if sentence is not None and "y_true" in names:
            answer = sentence.format(code)
        elif word in _OF_ALERTS and name == "evaluate_by":
            answer = "Alerts are asked of the result: evaluate_by(...).alerts({'recall': 0.8})."
            meant = None
        elif meant in _OF_EVALUATE_BY and name == "evaluate":
            answer = "evaluate_by evaluates groups of rows."
        elif word == "alpha" and meant is not None:
            answer = f"alpha={code} means {meant}={_level_of(self.kwargs[word])}."
        elif meant is not None:
            answer = f"Did you mean {meant!r}?"
        elif word in {*OF_EVALUATE, *_FIELDS, *_OTHER_FIELDS}:
            answer = elsewhere or "It is one of evaluate."
        else:
            answer = f"It takes {', '.join(names)}."
        call = self.corrected() if meant is not None else None
        return UnknownArgumentError.about(word, f"no argument of {name}. {answer}{f' Write {call}.' if call else ''}")

    def corrected(self) -> str | None:
        """Return the call in our words, with data under the names that the caller used; None if a word is unknown."""
        name, names, positional, _ = self.signature
        guesses = {word: self.signature.meant(word) for word in self.kwargs}
        meant = {word: guess for word, guess in guesses.items() if guess is not None}
        if "y_true" not in names or len(meant) < len(guesses):
            return None
        args, kwargs, codes = list(self.args), dict(self.kwargs), {}
        is_table = self.labels_are_a_table()
        if is_table or (args and "y_true" in meant.values()):  # with the columns by name a text is that of a file
            table = args.pop(0) if args else kwargs.pop("y_true")
            codes["data"] = _code("df", table)
        elif len(args) > len(positional) and _is_table(args[-1]) and "data" in names:
            codes["data"] = _code("df", args.pop())
        if len(args) > len(positional):
            return None
        codes |= {parameter: _code(parameter, value) for parameter, value in zip(positional, args, strict=False)}
        fields = {}
        for word, value in kwargs.items():
            field = _OTHER_FIELDS.get(word, word)
            if meant[word] == "missingness" and field in _FIELDS:
                fields[field] = _code(word, value)
            else:
                codes[meant[word]] = _level_of(value) if word == "alpha" else _code(word, value)
        if fields:
            codes["missingness"] = _mechanism(fields, kwargs.get("missingness"))
        if is_table:
            label, score = map(_quoted, frames.guess_columns(self.columns()))
            codes = {
                "y_true": label,
                **({"y_score": score} if "y_score" in names else {"scores": f"[{score}]"}),
            } | codes
        if not {*names} >= codes.keys():
            name = "evaluate_by"
            if "data" not in codes:
                arrays = {parameter: codes[parameter] for parameter in _COLUMNS if parameter in codes}
                codes |= {parameter: _quoted(parameter) for parameter in arrays}
                columns = ", ".join(f"{_quoted(key)}: {code}" for key, code in arrays.items())
                codes["data"] = f"pandas.DataFrame({{{columns}}})"
        rows = [codes.pop(parameter) for parameter in ("y_true", "y_score", "scores") if parameter in codes]
        data = [f"data={codes.pop('data')}"] if "data" in codes else []
        return f"dm.{name}({', '.join([*rows, *data, *(f'{key}={code}' for key, code in codes.items())])})"


def _is_table(value: Any) -> bool:
    return hasattr(type(value), "columns")  # the property of a lazy frame warns


def _mechanism(fields: Mapping[str, str], stated: Any) -> str:
    """Return the mechanism with these fields as code; `stated` is the word for one, if there is one."""
    if list(fields) == ["reference"] and stated is None:
        return "dm.missing.Reference(labels, scores)"
    name = _CLASSES.get(stated) if isinstance(stated, str) else None
    settings = ", ".join(f"{field}={code}" for field, code in fields.items())
    return f"dm.missing.{name or _FIELDS[next(iter(fields))]}({settings})"


def _level_of(alpha: Any) -> str:
    """Return the confidence level for the probability of an error as code."""
    return f"{1.0 - alpha:.12g}" if isinstance(alpha, float) else "1 - alpha"


def _code(name: str, value: Any) -> str:
    """Return a value as code, and data as a name."""
    code = as_code(value)
    return name if code is None else _quoted(value) if isinstance(value, str) else code


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and not {'"', "\\"} & {*text} else repr(text)
