"""What may be passed is said by its type: parameters typed `Any` are few, and each has a reason."""

import inspect
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import darkmetrics as dm

# Parameters that no type could describe, with the reason.
ANY = {
    "verify(evaluate_arguments)": "handed on to evaluate, which has the types",
    "Evaluation.plot(settings)": "handed on to plot_metrics and plot_distribution, which have the types",
    "Backtest.plot(arguments)": "handed on to plot_backtest, which has the types; so it is of every result",
    "Backtest.plot(settings)": "handed on to plot_backtest, which has the types; so it is of every result",
    "Backtest.report(path)": "handed on to the function that writes the report, which has the types",
    "Backtest.report(about)": "handed on to the function that writes the report, which has the types",
    "GroupedEvaluation.plot_over_time(settings)": "handed on to plot_over_time, which has the types",
    "report.write_report(about)": "handed on to summarize, which has the types",
    "calibrators.Beta.set_params(params)": "scikit-learn's protocol: the parameters of any calibrator",
    "calibrators.calibrator_from(calibrator)": "finds out what it was given, and refuses what it does not know",
    "methods.method_from(method)": "finds out what it was given, and refuses what it does not know",
    "missing.mechanism_from(missingness)": "finds out what it was given, and refuses what it does not know",
    "missing.Reference(y_true)": "rows of evaluate, of compare or a set: what is read says which",
    "missing.Reference(y_score)": "rows of evaluate, of compare or none: what is read says which",
    "missing.ByLabel.learn_rows(data)": "a table of any kind, or arrays by name",
    "missing.Covariates.learn_rows(data)": "a table of any kind, or arrays by name",
    "missing.Covariates.predictions(data)": "a table of any kind, or arrays by name",
    "missing.ExponentialTilt.learn_rows(data)": "a table of any kind, or arrays by name",
    "masks.mask_from(mask)": "finds out what it was given, and refuses what it does not know",
    "metrics.ConfusionMetric.form_at(yes)": "three numbers, or three arrays of them, one place per threshold",
    "metrics.ConfusionMetric.form_at(no)": "three numbers, or three arrays of them, one place per threshold",
    "metrics.ConfusionMetric.of_positives(yes)": "three numbers, or three arrays of them, one place per threshold",
    "metrics.ConfusionMetric.of_positives(no)": "three numbers, or three arrays of them, one place per threshold",
}


def public_things() -> Iterator[tuple[str, Any]]:
    """Everything that is reached from `__all__`, by its name below `darkmetrics`."""
    modules = [getattr(dm, name) for name in dm.__all__ if isinstance(getattr(dm, name), ModuleType)]
    for module in (dm, *modules):
        own = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
        for name in getattr(module, "__all__", own):
            if not name.startswith("_"):
                yield f"{module.__name__}.{name}".removeprefix("darkmetrics."), getattr(module, name)


def public_functions() -> dict[Callable[..., Any], str]:
    """Functions, methods and constructors, each once."""
    found: dict[Callable[..., Any], str] = {}
    for name, thing in public_things():
        if inspect.isclass(thing) and issubclass(thing, Warning):
            continue  # made by Python, which says nothing about their arguments
        if inspect.isclass(thing) and thing.__module__.startswith("darkmetrics"):
            found.setdefault(thing, name)
            for member in filter(lambda member: not member.startswith("_"), dir(thing)):
                method = inspect.getattr_static(thing, member)
                method = getattr(method, "__func__", method)
                if inspect.isfunction(method) and method.__module__.startswith("darkmetrics"):
                    found.setdefault(method, f"{name}.{member}")
        elif inspect.isfunction(thing):
            found.setdefault(thing, name)
    return found


def parameters() -> dict[str, Any]:
    """The type of every public parameter, by function and name."""
    found = {}
    for function, name in public_functions().items():
        for one in inspect.signature(function).parameters.values():
            if one.name not in ("self", "cls"):
                found[f"{name}({one.name})"] = one.annotation
    return found


def test_parameters_of_any_type_are_those_with_a_reason():
    assert {name for name, kind in parameters().items() if kind is Any} == set(ANY)


def test_every_parameter_has_a_type():
    bare = {name for name, kind in parameters().items() if kind is inspect.Parameter.empty}
    assert not bare


def test_most_of_the_public_parameters_are_seen():
    assert len(parameters()) > 400
