"""What a backtest tries: every label model with every method, made ready and checked before the first repeat."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number, row_probabilities
from darkmetrics.exceptions import InputError, UnknownNameError
from darkmetrics.label_models import Features, Given, Half, LabelModel, Prevalence, Tilted, label_model_from
from darkmetrics.mechanisms import Mechanism
from darkmetrics.methods import Method, method_from
from darkmetrics.missingness.choice import REASONS
from darkmetrics.missingness.score_table import reference_set, reference_table
from darkmetrics.posterior import Posterior


@dataclass(frozen=True, eq=False)
class Dropping(LabelModel):
    """What people do today: rows without a label are dropped, and one number is reported."""

    def nodes(self, data: EvaluationSet) -> Posterior:
        return Half().nodes(data)

    def describe(self, data: EvaluationSet, nodes: Posterior) -> str:
        return "Rows without a label are dropped."


@dataclass(frozen=True, eq=False)
class Setup:
    """One label model, or the probabilities of all rows, with one method."""

    label_model: LabelModel | FloatArray
    method: Method

    @property
    def model(self) -> LabelModel:
        """The label model; with probabilities per row they are believed."""
        return self.label_model if isinstance(self.label_model, LabelModel) else Given()

    def rows_of(self, data: EvaluationSet) -> EvaluationSet:
        """The rows that are evaluated: all, unless those without a label are dropped."""
        if not isinstance(self.label_model, Dropping):
            return data
        if not data.n_labelled:
            raise InputError("label_models: 'dropping' leaves no rows: none has a label.")
        return data.labelled()


@dataclass(frozen=True, eq=False)
class Ground:
    """What label models are made ready for: how labels are hidden, how they are named, and which rows have one."""

    # None where labels come with time, and nothing has to be hidden.
    mechanism: Mechanism | None
    pos_label: Any
    missing_label: Any
    # All labelled rows, with 0 and 1 for labels as every repeat will see them.
    complete: EvaluationSet
    n_given: int
    # What the labelled rows are called, if they have names.
    names: frames.RowNames | None = None

    def setups(self, label_models: Any, methods: Any, rows: Any) -> dict[str, Setup]:
        """Every label model with every method, by name; `rows` are the reference rows."""
        reference = self._reference(rows)
        models = {}
        for name, given in _named(label_models, "label_models").items():
            with _speaking_of("label_models", "label_model", "probability"):
                models[name] = self._model(given, reference)
        if reference is not None and not any(getattr(m, "reference", None) is reference for m in models.values()):
            raise InputError(
                "reference: none of the label models takes it here. It goes to 'auto', 'stated', 'calibrated', "
                "'label_shift' and 'selection'; give it to others themselves, or leave it out."
            )
        how = {}
        for name, given in _named(methods, "methods").items():
            with _speaking_of("methods", "method"):
                how[name] = method_from(given)
        return {
            f"{model}, {method}" if len(how) > 1 else model: Setup(chosen, by)
            for model, chosen in models.items()
            for method, by in how.items()
        }

    def _model(self, given: Any, reference: EvaluationSet | None) -> LabelModel | FloatArray:
        if isinstance(given, str) and given == "dropping":
            return Dropping()
        if isinstance(given, str) and given in REASONS:
            return label_model_from("auto", missingness=given, reference=reference)
        if self.mechanism is None and isinstance(given, str) and given in ("auto", "stated"):
            return label_model_from("late")
        if isinstance(given, str) and given == "stated":
            word = getattr(self.mechanism, "missingness", None)
            if word is None:
                raise InputError(
                    f"label_models: 'stated' needs to know what {type(self.mechanism).__name__} is called in evaluate. "
                    "Set its `missingness`, for example to 'by_score'."
                )
            return label_model_from("auto", missingness=word, reference=reference)
        if isinstance(given, str):
            try:
                return label_model_from(given, reference=reference)
            except UnknownNameError:
                raise
            except InputError:  # "half" and the like learn nothing, and may stand beside those that do
                return label_model_from(given)
        if is_number(given):
            return Prevalence(float(given))
        return self._own(given) if isinstance(given, LabelModel) else self._probabilities(given)

    def _own(self, model: LabelModel) -> LabelModel:
        """A label model of the user's: its reference rows are read with the labels as the user named them."""
        if isinstance(model, Tilted) and isinstance(model.base, LabelModel):
            return replace(model, base=self._own(model.base))
        if isinstance(model, Features):
            X: Any = model.X
            self._check_rows(X, int(X.shape[0]) if hasattr(X, "shape") else len(X), "rows of features")
        own: Any = model
        given = getattr(own, "reference", None)
        if given is None or isinstance(given, EvaluationSet) or not hasattr(own, "__dataclass_fields__"):
            return model
        read: LabelModel = replace(own, reference=self._reference(given))
        return read

    def _probabilities(self, given: Any) -> FloatArray:
        chance = frames.number_column(given, "label_models")
        self._check_rows(given, chance.size, "probabilities")
        # Any row may be hidden, so every row needs one.
        row_probabilities(chance, np.ones(chance.size, dtype=np.bool_))
        return chance

    def _check_rows(self, given: Any, rows: int, what: str) -> None:
        labelled = self.complete.n_rows
        if rows == labelled:
            if self.names is not None:
                self.names.check("label_models", given)
            return
        if labelled < self.n_given:
            raise InputError(
                f"label_models: {rows:,} {what}, but only {labelled:,} of {self.n_given:,} rows have a label, and a "
                "backtest leaves out the others. Give those of the labelled rows."
            )
        raise InputError(f"label_models: {rows:,} {what}, but y_true has {labelled:,} rows. Give one per row.")

    def _reference(self, rows: Any) -> EvaluationSet | None:
        """Reference rows, read once with the labels as the user named them: repeats know only 0 and 1."""
        if rows is not None and not isinstance(rows, EvaluationSet):
            rows = reference_set(rows, self.pos_label, self.missing_label)
        reference_table(rows, self.complete)  # has a message for rows that cannot be a reference
        reference: EvaluationSet | None = rows
        return reference


def _named(given: Any, argument: str) -> dict[str, Any]:
    """Choices by name: as given in a dictionary, else the word or the type."""
    if isinstance(given, Mapping):
        named = {str(name): choice for name, choice in given.items()}
    else:
        choices = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(choices) > 1 and all(map(is_number, choices)):
            raise InputError(
                f"{argument}: a list of {len(choices):,} numbers; each item of a list is one choice. Probabilities per "
                "row go into an array, several constant ones into a dictionary with names."
            )
        names = [_name_of(choice) for choice in choices]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{argument}: {names.count(twice)} choices are called {twice!r}. Give a dictionary.")
        named = dict(zip(names, choices, strict=True))
    if not named:
        raise InputError(f"{argument}: none given. Name at least one, or leave it out.")
    return {name: "auto" if choice is None else choice for name, choice in named.items()}


def _name_of(choice: Any) -> str:
    if choice is None:
        return "auto"
    return choice if isinstance(choice, str) else type(choice).__name__


@contextmanager
def _speaking_of(argument: str, *own: str) -> Iterator[None]:
    """Errors name the argument of `backtest`, not that of the function which found the mistake."""
    try:
        yield
    except InputError as error:
        raise error.renamed(dict.fromkeys(own, argument)) from None
