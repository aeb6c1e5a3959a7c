"""Calls in words of other libraries: made where they have one meaning, else answered with the call to make."""

import difflib
import functools
import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, ParamSpec, TypeVar

from darkmetrics import frames
from darkmetrics.call_as_code import as_code
from darkmetrics.constraints import argument_checker
from darkmetrics.exceptions import UnknownArgumentError, level_of_caller
from darkmetrics.foreign_words import (
    ASKED_OF_RESULT,
    FIELDS,
    NOT_NEEDED,
    OTHER_FIELDS,
    PARAMETERS,
    PERIOD_WORDS,
    RESAMPLES,
)

# Parameters that tell evaluate_by from evaluate, and those of evaluate, which other functions may lack.
_OF_EVALUATE_BY = ("by", "time", "period")
OF_EVALUATE = (
    *("y_true", "y_score", "data", "metrics", "missingness", "threshold", "y_pred", "sample_weight", "clusters"),
    *("pos_label", "labels", "missing_label", "scope", "method", "zero_division", "confidence_level", "rng"),
)
# Parameters that are written without their names.
_WITHOUT_NAME = ("y_true", "y_score", "scores")
# Fields of mechanisms that a function can use although it takes no columns or several scores.
_FIELDS_OF_ANY = ("reference", "probability", "prevalence")
_CLASSES = {"random": "Random", "by_score": "ByScore", "by_label": "ByLabel", "by_score_and_label": "ByScoreAndLabel"}
# Longer lists of numbers are data.
_MAX_NUMBERS = 8
_ALONE = "evaluate and EvaluationSet alone take clusters, rows that belong together. Keep one random row of each."
_CLUSTERS_OR_SEGMENTS = (
    "Pass clusters={0} for rows that belong together, such as those of one customer. Segments are "
    "evaluate_by(..., by={0})."
)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def suggest_call(
    elsewhere: str = "", name: str = ""
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Decorate a public function so that it understands words of other libraries.

    A call in which every word has one meaning is made, with a warning that shows the call in our words. Any other call
    that does not fit the signature is refused with the call to make.

    `elsewhere` answers an argument of `evaluate` that the function does not take; `name` is the name of the function,
    if it is not its own.
    """

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        signature, check = _Signature.of(function, name), argument_checker(function)

        @functools.wraps(function)
        def called(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            call = _Call(signature, args[signature.is_method :], kwargs)
            if call.fits():
                check(args, kwargs)
                return function(*args, **kwargs)
            make: Callable[..., _Result] = function
            return make(*args[: signature.is_method], **call.translate_or_refuse(elsewhere))

        return called

    return decorate


def check_call(function: Callable[..., Any], name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise the error for arguments that a function does not take; `name` is what its caller knows it by."""
    call = _Call(_Signature.of(function, name), args, kwargs)
    if not call.fits():
        call.translate_or_refuse("", refuse=True)


class _Signature(NamedTuple):
    """A public function, its parameters, and those of them that may be passed by position."""

    name: str
    parameters: tuple[str, ...]
    positional: tuple[str, ...]
    is_method: bool
    takes_any: bool = False

    @classmethod
    def of(cls, function: Callable[..., Any], name: str = "") -> "_Signature":
        """Return the signature of a function or method; that of a class for its `__init__`."""
        parameters = inspect.signature(function).parameters
        named = {
            key: parameter
            for key, parameter in parameters.items()
            if key != "self" and parameter.kind is not inspect.Parameter.VAR_KEYWORD
        }
        positional = tuple(
            key for key, parameter in named.items() if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
        )
        if not name:
            is_init, is_method = function.__name__ == "__init__", "self" in parameters
            name = function.__qualname__.partition(".")[0] if is_init else function.__name__
            name = f"result.{name}" if is_method and not is_init else name
        takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in parameters.values())
        return cls(name, tuple(named), positional, "self" in parameters, takes_any)

    @property
    def takes_rows(self) -> bool:
        """Whether labels are passed to the function."""
        return "y_true" in self.parameters

    @property
    def takes_one_model(self) -> bool:
        """Return whether the function takes one column of scores, of one model; `evaluate` takes several classes."""
        return {"y_score", "threshold"} <= {*self.parameters} and "labels" not in self.parameters

    def meanings(self, word: str) -> list[str]:
        """Return the parameters that a word stands for, in another library or as a field of a mechanism."""
        names = (*self.parameters, *(_OF_EVALUATE_BY if self.name == "evaluate" else ()))
        if word in names:
            return [word]
        field = OTHER_FIELDS.get(word, word)
        has_fields = {"data", "y_score"} <= {*self.parameters} or field in _FIELDS_OF_ANY
        if field in FIELDS and "missingness" in names and has_fields:
            return ["missingness"]
        return [name for name in PARAMETERS if name in names and word.lower() in PARAMETERS[name]]

    def nearest(self, word: str) -> str | None:
        """Return the parameter with nearly the same name; None for a word that belongs to another function."""
        belongs_elsewhere = self.takes_rows and (
            word in OF_EVALUATE or word in FIELDS or any(word in words for words in PARAMETERS.values())
        )
        near = [] if belongs_elsewhere else difflib.get_close_matches(word.lower(), self.parameters, n=1, cutoff=0.65)
        return next(iter(near), None)


class _Translation:
    """What the arguments of a call are in our words, as values and as code."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.code: dict[str, str] = {}
        self.fields: dict[str, str] = {}
        # Code around the call, of questions that are asked of its result.
        self.around = "{call}"
        # The first word that is not ours, what is wrong with it, and the sentences that answer it.
        self.word, self.finding, self.answer = "", "", ""
        # What each foreign word was read as.
        self.readings: list[str] = []
        # The columns of a table that was passed in the place of labels.
        self.columns: list[str] = []
        # Whether there is a call at all, and whether it needs no guess.
        self.exists, self.is_certain = True, True

    def explain(self, word: str, finding: str, answer: str = "") -> None:
        """Keep what is wrong with the first word that is not ours, and the answer."""
        if not self.word:
            self.word, self.finding, self.answer = word, finding, answer

    def add(self, parameter: str, value: Any, code: str) -> None:
        """Add an argument by our name."""
        self.values[parameter], self.code[parameter] = value, code


class _Call(NamedTuple):
    """A call of a public function, without `self`."""

    signature: _Signature
    args: Sequence[Any]
    kwargs: Mapping[str, Any]

    def fits(self) -> bool:
        """Return whether the function takes these arguments; missing ones are left to Python."""
        names, positional = self.signature.parameters, self.signature.positional
        if len(self.args) > len(positional) or not {*positional[: len(self.args)]}.isdisjoint(self.kwargs):
            return False
        if not self.signature.takes_any and not self.kwargs.keys() <= {*names}:
            return False
        if not self.signature.takes_rows:
            return True
        arguments = {**dict(zip(positional, self.args, strict=False)), **self.kwargs}
        labels, scores = arguments.get("y_true"), arguments.get("y_score") if self.signature.takes_one_model else None
        is_set = hasattr(type(labels), "n_rows")
        passes_y_pred = arguments.get("y_score") is None and arguments.get("y_pred") is not None
        if {"y_score", "threshold"} <= {*names} and passes_y_pred and not is_set:
            return False
        return not (_is_table(labels) and "data" in names) and not _is_model(labels) and not _is_several(scores)

    def translate_or_refuse(self, elsewhere: str, *, refuse: bool = False) -> dict[str, Any]:
        """Return the arguments in our words, and warn with the call; raise an error where there is no such call."""
        signature, translation = self.signature, _Translation()
        variables = _caller_variables()
        self._translate_positional(translation, variables)
        for word, value in self.kwargs.items():
            self._translate_word(translation, word, value, variables, elsewhere)
        self._guess_columns(translation)
        if "y_score" in signature.positional and "y_score" not in translation.values and "y_pred" in translation.code:
            translation.explain("y_score", "missing", "Where there are no scores, pass the predictions in their place.")
            translation.is_certain = False
            translation.code["y_score"] = translation.code.pop("y_pred")
        code = self._call_code(translation) if translation.exists else None
        written = f" Write {code}." if code else ""
        if translation.is_certain and code is not None and not refuse:
            read = ", ".join(translation.readings)
            warnings.warn(f"{signature.name}: {read}.{written}", UserWarning, stacklevel=level_of_caller())
            return translation.values
        word = translation.word or signature.name
        raise UnknownArgumentError(word, translation.finding, translation.answer, written.strip())

    # Arguments by position --------------------------------------------------------------------------------------------

    def _translate_positional(self, translation: _Translation, variables: Mapping[int, str]) -> None:
        """Add what is passed without a name: labels and scores, or a table or a model before or behind them."""
        signature, args = self.signature, list(self.args)
        name, positional = signature.name, signature.positional
        takes = f"{name} takes {len(positional)} ({', '.join(positional)})"
        if not signature.takes_rows:
            if len(args) > len(positional):
                translation.is_certain, translation.exists = False, positional[0] == "evaluation"
                translation.explain(name, f"{len(args)} values without a name, where {takes}")
                rows = ", ".join(_code(f"y_{i}", value, variables) for i, value in enumerate(args))
                translation.around = f"dm.{name}(dm.evaluate({rows}))"
                return
            self._add_in_order(translation, args, variables)
            return
        has_column_names = "data" not in self.kwargs and any(
            "y_true" in signature.meanings(word) and (name, word) not in ASKED_OF_RESULT for word in self.kwargs
        )
        if args and _is_model(args[0]):
            self._translate_model(translation, args, variables)
            return
        labels = args[0] if args else self.kwargs.get("y_true")
        if _is_table(labels) and "data" in signature.parameters:
            self._translate_table(translation, labels, variables)
            args = args[1:]
        elif (
            args and isinstance(args[0], str) and has_column_names
        ):  # with the columns by name a text is that of a file
            translation.explain("y_true", "passed twice")
            translation.is_certain = False
            translation.add("data", args[0], _code("df", args[0], variables))
            args = args[1:]
        elif len(args) > len(positional) and _is_table(args[-1]) and "data" in signature.parameters:
            translation.explain(name, f"{len(args)} values without a name, where {takes}", "The table is data=.")
            translation.readings.append("the last value was read as data=")
            translation.add("data", args[-1], _code("df", args[-1], variables))
            args = args[:-1]
        if len(args) > len(positional):
            translation.is_certain = False
            several = ["compare", "evaluate"]
            answer = "Compare models by name." if name in several else ""
            translation.explain(name, f"{len(args)} values without a name, where {takes}", answer)
            translation.exists = name in several
            models = (f'"model_{i}": {_code(f"s{i}", value, variables)}' for i, value in enumerate(args[1:], 1))
            translation.around = f"dm.compare({_code('y_true', args[0], variables)}, {{{', '.join(models)}}})"
            return
        self._add_in_order(translation, args, variables)
        scores = translation.values.get("y_score", self.kwargs.get("y_score"))
        if signature.takes_one_model and _is_several(scores):
            translation.is_certain = False
            answer = "Scores of several classes are for dm.evaluate; compare takes those of several models."
            translation.explain("y_score", "several columns of scores", answer)

    def _add_in_order(self, translation: _Translation, args: Sequence[Any], variables: Mapping[int, str]) -> None:
        for parameter, value in zip(self.signature.positional, args, strict=False):
            translation.add(parameter, value, _code(parameter, value, variables))

    def _translate_table(self, translation: _Translation, table: Any, variables: Mapping[int, str]) -> None:
        columns = [str(name) for name in frames.lazy_frame(table).collect_schema().names()]
        shown = ", ".join(map(repr, columns[:12]))
        translation.explain("y_true", "a table", f"Pass it as data= and name its columns, which are {shown}.")
        translation.is_certain = False
        translation.add("data", table, _code("df", table, variables))
        translation.columns = columns

    def _guess_columns(self, translation: _Translation) -> None:
        """Add the columns of a table that hold labels and scores, where the caller named none."""
        if not translation.columns:
            return
        label, score = frames.guess_columns(translation.columns)
        if "y_true" not in translation.values:
            translation.add("y_true", label, _quoted(label))
        if "y_score" in self.signature.parameters and "y_score" not in translation.values:
            translation.add("y_score", score, _quoted(score))
        elif "scores" in self.signature.parameters and "scores" not in translation.values:
            translation.add("scores", [score], f"[{_quoted(score)}]")

    def _translate_model(self, translation: _Translation, args: list[Any], variables: Mapping[int, str]) -> None:
        """Add labels and scores of a call such as evaluate(model, X, y)."""
        translation.explain("y_true", "a model", "Pass labels, and the scores that the model gives.")
        translation.is_certain = False
        model, features = _code("model", args[0], variables), _code("X", args[1], variables) if args[1:] else "X"
        translation.add("y_true", None, _code("y", args[2], variables) if args[2:] else "y")
        translation.add("y_score", None, f"{model}.predict_proba({features})[:, 1]")

    # Arguments by name ------------------------------------------------------------------------------------------------

    def _translate_word(
        self, translation: _Translation, word: str, value: Any, variables: Mapping[int, str], elsewhere: str
    ) -> None:
        """Add an argument by our name for its word, and explain the first word that is not ours."""
        signature, code = self.signature, _code(word, value, variables)
        name, names = signature.name, signature.parameters
        if word == "y_true" and _is_table(value) and "data" in names:
            return  # has been added as data
        refused = f"no argument of {name}"
        if signature.takes_rows and (word == "groups" or (word == "clusters" and "clusters" not in names)):
            takes_clusters = "clusters" in names
            text = _CLUSTERS_OR_SEGMENTS if takes_clusters else f"{_ALONE} Segments are evaluate_by(..., by={{0}})."
            translation.explain(word, refused, (text if word == "groups" else _ALONE).format(code))
            translation.exists = False
            return
        if (name, word) in ASKED_OF_RESULT:
            translation.explain(word, refused, "It is asked of the result.")
            translation.around = ASKED_OF_RESULT[name, word].replace("{value}", code)
            translation.is_certain = False
            return
        meanings = signature.meanings(word)
        parameter = next((name for name in meanings if name not in translation.values), None)
        if parameter is None and word in NOT_NEEDED and signature.takes_rows:
            translation.explain(word, refused, f"{NOT_NEEDED[word]}.")
            translation.is_certain = False
        elif word in RESAMPLES and "method" in names:
            translation.explain(word, refused, "Draws are a setting of the method.")
            translation.add("method", value, f"dm.methods.MonteCarlo(n_resamples={code})")
            translation.is_certain = False
        elif word == "alpha" and (level := next((n for n in names if n.startswith("confidence_level")), None)):
            self._translate_alpha(translation, level, value, code)
        elif parameter is None and meanings and meanings[0] != "missingness":
            translation.explain(word, refused, f"Did you mean {meanings[0]!r}? It is passed, too.")
            translation.exists = False
        elif parameter is None and not meanings:
            self._explain_unknown(translation, word, value, code, elsewhere)
        else:
            self._translate_meaning(translation, parameter or "missingness", word, value, variables)

    def _translate_alpha(self, translation: _Translation, level: str, alpha: Any, code: str) -> None:
        is_number = isinstance(alpha, float) and 0.0 < alpha < 1.0
        level_code = f"{1.0 - alpha:.12g}" if is_number else "1 - alpha"
        translation.explain(
            "alpha", f"no argument of {self.signature.name}", f"alpha={code} means {level}={level_code}."
        )
        translation.readings.append(f"alpha={code} was read as {level}={level_code}")
        translation.is_certain &= is_number
        translation.add(level, float(level_code) if is_number else None, level_code)

    def _translate_meaning(
        self, translation: _Translation, parameter: str, word: str, value: Any, variables: Mapping[int, str]
    ) -> None:
        code = _code(word, value, variables)
        name, field = self.signature.name, OTHER_FIELDS.get(word, word)
        if word == parameter:
            translation.add(parameter, value, code)
            if parameter in _OF_EVALUATE_BY and name == "evaluate":
                translation.explain(word, f"no argument of {name}", "evaluate_by evaluates groups of rows.")
                translation.is_certain = False
            return
        if parameter == "period" and isinstance(value, str) and value in PERIOD_WORDS:
            value = PERIOD_WORDS[value]
            code = _quoted(value)
        if parameter == "missingness" and field in FIELDS:
            pair = value if field == "reference" and isinstance(value, tuple) and len(value) == 2 else ()
            parts = (_code(name, part, variables) for name, part in zip(("labels", "scores"), pair, strict=False))
            translation.fields[field] = ", ".join(parts) or code
            translation.is_certain = False
        else:
            translation.add(parameter, value, code)
        if parameter in _OF_EVALUATE_BY and name == "evaluate":
            translation.explain(word, f"no argument of {name}", "evaluate_by evaluates groups of rows.")
            translation.is_certain = False
        else:
            translation.readings.append(f"{word}= was read as {parameter}=")
            translation.explain(word, f"no argument of {name}", f"Did you mean {parameter!r}?")

    def _explain_unknown(self, translation: _Translation, word: str, value: Any, code: str, elsewhere: str) -> None:
        """Explain a word that has no meaning here, or nearly that of a parameter."""
        name, near = self.signature.name, self.signature.nearest(word)
        translation.is_certain = False
        if near is not None:
            translation.explain(word, f"no argument of {name}", f"Did you mean {near!r}?")
            if near in translation.values:
                translation.exists = False
            else:
                translation.add(near, value, code)
            return
        translation.exists = False
        is_of_evaluate = word in OF_EVALUATE or OTHER_FIELDS.get(word, word) in FIELDS
        if is_of_evaluate and self.signature.takes_rows | bool(elsewhere):
            answer = elsewhere or "It is one of evaluate."
        else:
            known = [parameter for parameter in self.signature.parameters if parameter != "evaluation"]
            answer = f"It takes {', '.join(known)}."
            answer += " Set titles, colors and limits on the Axes that it returns." if "ax" in known else ""
        translation.explain(word, f"no argument of {name}", answer)

    # The call as code -------------------------------------------------------------------------------------------------

    def _call_code(self, translation: _Translation) -> str | None:
        """Return the call to make, with what is asked of its result."""
        name, codes = self.signature.name, dict(translation.code)
        if translation.fields:
            codes["missingness"] = _mechanism_code(translation.fields, self.kwargs.get("missingness"))
        if "{call}" not in translation.around:
            return translation.around
        if self.signature.takes_rows and "y_true" not in codes:
            return None
        if self.signature.takes_one_model and _is_several(translation.values.get("y_score")):
            name, codes["scores"] = "compare", codes.pop("y_score")
        elif name == "evaluate" and any(parameter in codes for parameter in _OF_EVALUATE_BY):
            if "clusters" in codes:
                return None
            name = "evaluate_by"
        if name == "evaluate_by" and isinstance(translation.values.get("by"), str) and "data" not in codes:
            columns = {key: getattr(translation.values.get(key), "name", None) for key in ("y_true", "y_score")}
            codes |= {key: _quoted(str(column or key)) for key, column in columns.items()} | {"data": "df"}
        rows = [codes.pop(parameter) for parameter in _WITHOUT_NAME if parameter in codes]
        if not self.signature.takes_rows:
            rows = [codes.pop(parameter) for parameter in self.signature.positional[: len(self.args)]]
        data = [f"data={codes.pop('data')}"] if "data" in codes else []
        prefix = "" if name.startswith("result.") else "dm."
        call = f"{prefix}{name}({', '.join([*rows, *data, *(f'{key}={code}' for key, code in codes.items())])})"
        return translation.around.replace("{call}", call)


def _is_table(value: Any) -> bool:
    return hasattr(type(value), "columns")  # the property of a lazy frame warns


def _is_model(value: Any) -> bool:
    return hasattr(type(value), "predict") and not _is_table(value)


def _is_several(scores: Any) -> bool:
    """Return whether scores of several models stand where those of one belong."""
    names = isinstance(scores, (list, tuple)) and len(scores) > 1 and all(isinstance(name, str) for name in scores)
    return names or isinstance(scores, Mapping)


def _mechanism_code(fields: Mapping[str, str], stated: Any) -> str:
    """Return the mechanism with these fields as code; `stated` is the word for one, if there is one."""
    if list(fields) == ["reference"] and stated is None:
        return f"dm.missing.Reference({fields['reference']})"
    fields = {name: f"({code})" if ", " in code and name == "reference" else code for name, code in fields.items()}
    name = _CLASSES.get(stated) if isinstance(stated, str) else None
    settings = ", ".join(f"{field}={code}" for field, code in fields.items())
    return f"dm.missing.{name or FIELDS[next(iter(fields))]}({settings})"


def _caller_variables() -> dict[int, str]:
    """Return the names of the caller's variables by the identity of their values."""
    frame = inspect.currentframe()
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == __package__:
        frame = frame.f_back
    if frame is None:
        return {}
    names = {**frame.f_globals, **frame.f_locals}
    # Of several names of a value, the one that was assigned first.
    return {id(value): name for name, value in reversed(names.items()) if not name.startswith("_")}


def _code(name: str, value: Any, variables: Mapping[int, str]) -> str:
    """Return a value as code; data as the caller's variable, or else a name."""
    code = as_code(value)
    if code is not None:
        return _quoted(value) if isinstance(value, str) else code
    is_short = isinstance(value, (list, tuple)) and len(value) <= _MAX_NUMBERS
    if is_short and all(isinstance(number, (int, float)) for number in value):
        return variables.get(id(value), repr(value))
    return variables.get(id(value), name)


def _quoted(text: str) -> str:
    return f'"{text}"' if text.isprintable() and not {'"', "\\"} & {*text} else repr(text)
