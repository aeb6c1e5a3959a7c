"""What a backtest tries: every label model with every method, made ready and checked before the first repeat."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import is_number, row_probabilities
from darkmetrics.exceptions import InputError
from darkmetrics.masks import Mask
from darkmetrics.methods import Method, method_from
from darkmetrics.missing import Covariates, Delayed, ExponentialTilt, Fixed, Mechanism, mechanism_from
from darkmetrics.missingness.fixed import has_probabilities
from darkmetrics.missingness.score_table import reference_table
from darkmetrics.posterior import Posterior
from darkmetrics.wording import code, named


@dataclass(frozen=True, eq=False)
class Dropping(Mechanism):
    """What people do today: rows without a label are dropped, and one number is reported."""

    def posterior(self, data: EvaluationSet) -> Posterior:
        return Fixed(0.5).posterior(data)

    def describe(self, data: EvaluationSet, posterior: Posterior) -> str:
        return "Rows without a label are dropped."


@dataclass(frozen=True, eq=False)
class Setup:
    """One mechanism, which may have values of all rows, with one method."""

    mechanism: Mechanism
    method: Method

    @property
    def model(self) -> Mechanism:
        """The mechanism for rows that are counted."""
        return self.mechanism.without_rows()

    def rows_of(self, data: EvaluationSet) -> EvaluationSet:
        """The rows that are evaluated: all, unless those without a label are dropped."""
        if not isinstance(self.mechanism, Dropping):
            return data
        if not data.n_labeled:
            raise InputError("missingness", "'dropping' leaves no rows", "At least one row needs a label.")
        return data.labeled()


@dataclass(frozen=True, eq=False)
class Ground:
    """What label models are made ready for: how labels are hidden, how they are named, and which rows have one."""

    # None where labels come with time, and nothing has to be hidden.
    mask: Mask | None
    pos_label: Any
    missing_label: Any
    # All labeled rows, with 0 and 1 for labels as every repeat will see them.
    complete: EvaluationSet
    n_given: int
    # What the labeled rows are called, if they have names.
    names: frames.RowNames | None = None

    def setups(self, choices: Any, methods: Any) -> dict[str, Setup]:
        """Return every mechanism with every method, by name."""
        models = {}
        for name, given in _named(choices, "missingness").items():
            with _speaking_of("missingness", "probability"):
                models[name] = self._mechanism(given)
        how = {}
        for name, given in _named(methods, "methods").items():
            with _speaking_of("methods", "method"):
                how[name] = method_from("auto" if given is None else given)
        return {
            f"{model}, {method}" if len(how) > 1 else model: Setup(chosen, by)
            for model, chosen in models.items()
            for method, by in how.items()
        }

    def _mechanism(self, given: Any) -> Mechanism:
        if isinstance(given, str) and given == "dropping":
            return Dropping()
        if self.mask is None and (given is None or given == "stated"):
            return Delayed()
        if isinstance(given, str) and given == "stated":
            word = getattr(self.mask, "missingness", None)
            if word is None:
                raise InputError(
                    "missingness",
                    f"'stated' with {type(self.mask).__name__}, which has no `missingness`",
                    "'stated' states the mechanism by which labels are hidden.",
                    "Set its `missingness`, for example to 'by_score'.",
                )
            return mechanism_from(word)
        return self._own(mechanism_from(given))

    def _own(self, model: Mechanism) -> Mechanism:
        """Return a mechanism whose reference rows are read with the labels as the user named them."""
        if isinstance(model, ExponentialTilt):
            return replace(model, base=self._own(model.base_mechanism))
        if isinstance(model, Fixed) and has_probabilities(model) and model.probability is not None:
            return self._with_probabilities(model)
        if isinstance(model, Covariates):
            X: Any = model.X
            self._check_rows(X, int(X.shape[0]) if hasattr(X, "shape") else len(X), "rows of features")
        read = model.with_reference_set(self.pos_label, self.missing_label)
        reference = getattr(read, "reference", None)
        if isinstance(reference, EvaluationSet):
            reference_table(reference, self.complete)  # refuses rows that cannot be a reference
        return read

    def _with_probabilities(self, fixed: Fixed) -> Fixed:
        """Return given probabilities as numbers: any row may be hidden, so every row needs one."""
        probability = frames.number_column(fixed.probability, "probability")
        self._check_rows(fixed.probability, probability.size, "probabilities")
        row_probabilities(probability, np.ones(probability.size, dtype=np.bool_))
        return Fixed(probability)

    def _check_rows(self, given: Any, rows: int, what: str) -> None:
        labeled = self.complete.n_rows
        if rows == labeled:
            if self.names is not None:
                self.names.check("missingness", given)
            return
        if labeled < self.n_given:
            raise InputError(
                "missingness",
                f"{rows:,} {what}, but only {labeled:,} of {self.n_given:,} rows have a label",
                "A backtest leaves out rows without a label.",
                f"Pass {what} of the labeled rows.",
            )
        raise InputError(
            "missingness",
            f"{rows:,} {what}, but {named('y_true')} has {labeled:,} rows",
            "Both need one per row.",
        )


def _named(given: Any, argument: str) -> dict[str, Any]:
    """Choices by name: as given in a dictionary, else the word or the type."""
    if isinstance(given, Mapping):
        named = {str(name): choice for name, choice in given.items()}
    else:
        choices = list(given) if isinstance(given, (list, tuple)) else [given]
        if len(choices) > 1 and all(map(is_number, choices)):
            raise InputError(
                argument,
                f"a list of {len(choices):,} numbers",
                "Each item of a list is one choice.",
                f"Pass probabilities per row as {code('dm.missing.Fixed(...)')}.",
            )
        names = [_name_of(choice) for choice in choices]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise InputError(
                argument,
                f"{names.count(twice)} choices are called {twice!r}",
                "Choices need different names.",
                "Pass a dictionary.",
            )
        named = dict(zip(names, choices, strict=True))
    if not named:
        raise InputError(argument, "none given", "", "Name at least one, or leave it out.")
    return named


def _name_of(choice: Any) -> str:
    if choice is None:
        return "not stated"
    return choice if isinstance(choice, str) else type(choice).__name__


@contextmanager
def _speaking_of(argument: str, *own: str) -> Iterator[None]:
    """Errors name the argument of `backtest`, not that of the function which found the mistake."""
    try:
        yield
    except InputError as error:
        raise error.worded_for(dict.fromkeys(own, argument)) from None
