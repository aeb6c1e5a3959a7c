"""Results, metrics and settings are pickled, copied and sent to other processes, and say the same there.

A result or metric that is new is found by itself: the tables below must have an example of everything there is.
"""

import copy
import dataclasses
import importlib
import inspect
import json
import pickle
import pkgutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression

import darkmetrics as dm
from darkmetrics import calibrators, label_models, mechanisms, methods, paper_bounds
from darkmetrics.backtesting.setups import Dropping
from darkmetrics.calibrators import Calibrator
from darkmetrics.certificate import Certificate
from darkmetrics.distributions import Normal, Tabulated, Undefined
from darkmetrics.exceptions import InputError
from darkmetrics.label_models import LabelModel
from darkmetrics.mechanisms import Mechanism
from darkmetrics.methods import Method
from darkmetrics.metrics import Family, registered
from darkmetrics.missingness.delay_groups import GroupDelays, fit_groups
from darkmetrics.missingness.delayed import FittedDelays

RNG = np.random.default_rng(0)
SCORE = RNG.random(400)
TRUTH = (RNG.random(400) < SCORE).astype(float)
Y = np.where(RNG.random(400) < 0.3, np.nan, TRUTH)
WEIGHT = RNG.choice([0.5, 1.0, 2.25], 400)
DATA = dm.EvaluationSet(Y, SCORE)
KNOWN = dm.EvaluationSet(Y, SCORE, probability=SCORE)
AGED = dm.EvaluationSet(Y, SCORE, age=RNG.integers(0, 60, 400))
REFERENCE = (TRUTH[:100], SCORE[:100])
FRAME = pd.DataFrame({"y": Y, "p": SCORE, "k": np.repeat(["a", "b"], 200)})
FEW = ("precision", "roc_auc")


def every_metric() -> dict[str, Any]:
    """The record of each registered metric, and an example of each family."""
    records = {name: registered(name) for name in dm.list_metrics()}
    examples = {f"example of {name}": one.example for name, one in records.items() if isinstance(one, Family)}
    return {**records, **examples}


METRICS = [one for one in every_metric().values() if not isinstance(one, Family)]


def classes(*without: str) -> Iterator[type]:
    """Every class that the package defines, in modules whose names do not begin with these."""
    for found in pkgutil.walk_packages(dm.__path__, "darkmetrics."):
        if not found.name.startswith(tuple(f"darkmetrics.{name}" for name in ("__main__", *without))):
            module = importlib.import_module(found.name)
            yield from (c for c in vars(module).values() if inspect.isclass(c) and c.__module__ == found.name)


SETTINGS: dict[str, Any] = {
    "label model Auto": label_models.Auto(reference=REFERENCE),
    "Calibrated": label_models.Calibrated("isotonic"),
    "Features": label_models.Features(LogisticRegression(), SCORE[:, None]),
    "Given": label_models.Given(),
    "Half": label_models.Half(),
    "LabelShift": label_models.LabelShift(),
    "LateLabels": label_models.LateLabels(),
    "FittedDelays": label_models.LateLabels().fit(AGED),
    "GroupDelays": fit_groups(label_models.LateLabels(), [AGED, AGED])[0],
    "Dropping": Dropping(),
    "Prevalence": label_models.Prevalence(0.3),
    "Propensity": label_models.Propensity(),
    "Selection": label_models.Selection(REFERENCE),
    "Tilted": label_models.Tilted("half", prevalence=0.4),
    "method Auto": methods.Auto(n_resamples=100),
    "Exact": methods.Exact(),
    "Gaussian": methods.Gaussian(),
    "MonteCarlo": methods.MonteCarlo(100),
    "MCAR": mechanisms.MCAR(0.3),
    "ByScore": mechanisms.ByScore(0.3),
    "ByLabel": mechanisms.ByLabel(0.3, prevalence=0.6),
    **{word: calibrators.calibrator_from(word) for word in ("beta", "platt", "isotonic", "scaling_binning")},
    "Flexible": calibrators.Flexible(threshold=0.5),
    "Fitted": calibrators.Fitted(LogisticRegression().fit(SCORE[:, None], TRUTH)),
}


@cache
def evaluated(method: str = "auto", n: int = 400) -> dm.Evaluation:
    rng = np.random.default_rng(1)
    score = rng.random(n)
    y = np.where(rng.random(n) < 0.3, np.nan, rng.random(n) < score)
    # With the reason stated, nodes are a third of those of Auto, which has an example of its own.
    settings: dict[str, Any] = {"missingness": "by_score", "metrics": ("precision", "recall", "roc_auc")}
    result = dm.evaluate(y, score, method=method, rng=0, **settings)
    if method == "gaussian":  # what was looked at before must not matter
        assert "Proven" in str(result)
        assert result.diagnosis.reasons
    return result


def modelled(model: Any) -> dm.Evaluation:
    if isinstance(model, label_models.Features):
        return dm.evaluate(Y, SCORE, label_model=model, metrics=FEW)
    if isinstance(model, (label_models.LateLabels, FittedDelays, GroupDelays)):
        return dm.evaluate(AGED, label_model=model, metrics=FEW)
    if isinstance(model, label_models.Propensity):
        return dm.evaluate(Y, SCORE, label_model=model, propensity=np.full(len(SCORE), 0.6), metrics=FEW)
    return dm.evaluate(KNOWN, label_model=model, metrics=FEW)


def curved() -> dm.Curves:
    return dm.curves(evaluated(), metrics=["precision", "f1"], thresholds=5)


@cache
def compared(models: int) -> dm.Comparison:
    scores = {"one": SCORE, "two": 1.0 - SCORE, "three": SCORE**2}
    told = dict(list(scores.items())[:models])
    return dm.compare(Y, told, label_model=SCORE, metrics=FEW, rng=0)


# A result of every kind.
def by_month() -> dm.GroupedEvaluation:
    """Two months of 200 rows."""
    table = FRAME.assign(k=np.repeat(["2026-05", "2026-06"], 200))
    return dm.evaluate_by(table, "k", label="y", score="p", metrics=("precision", "recall"), missingness="random")


RESULTS: dict[str, Callable[[], Any]] = {
    "20,000 rows": lambda: evaluated(n=20_000),
    **{f"method {word}": partial(evaluated, word) for word in ("exact", "gaussian", "monte_carlo")},
    "weighted": lambda: dm.evaluate(Y, SCORE, sample_weight=WEIGHT, metrics=("recall", "mcc", "roc_auc"), rng=0),
    "losses": lambda: dm.evaluate(Y[:120], SCORE[:120], metrics=("brier", "log_loss"), label_model=SCORE[:120]),
    "every metric": lambda: dm.evaluate(Y[:60], SCORE[:60], label_model="half", metrics=METRICS, rng=0),
    "population": lambda: dm.evaluate(
        Y, SCORE, metrics=("recall", "log_loss"), missingness="random", scope="population"
    ),
    "share": lambda: dm.evaluate(Y, SCORE, metrics="f1", missingness="random").population["f1"],
    "customers": lambda: dm.evaluate(Y[:60], SCORE[:60], metrics="recall", groups=np.arange(60) // 3, rng=0),
    "buckets": lambda: dm.evaluate(DATA.coarsened(32), metrics=FEW),
    **{f"by {k}": partial(modelled, model) for k, model in SETTINGS.items() if isinstance(model, LabelModel)},
    "Discrete": lambda: evaluated()["precision"],
    "ProductLaw": lambda: evaluated(n=20_000)["recall"],
    "near exact": lambda: evaluated(n=20_000)["roc_auc"],
    "Mixture": lambda: evaluated("gaussian")["precision"],
    "draws": lambda: evaluated("monte_carlo")["precision"],
    "Normal": lambda: Normal(loc=0.5, scale=0.1),
    "Undefined": lambda: Undefined(undefined=1.0),
    "Tabulated": lambda: Tabulated(grid=np.array([0.0, 1.0]), levels=np.array([0.0, 1.0])),
    "certificate of a mixture": lambda: evaluated("gaussian")["roc_auc"].certificate,
    "certificate of draws": lambda: evaluated("monte_carlo")["precision"].certificate,
    "certificate, exact": lambda: evaluated()["precision"].certificate,
    "certificate, near exact": lambda: evaluated(n=20_000)["roc_auc"].certificate,
    "curves": curved,
    "roc": lambda: curved().roc(),
    "best threshold": lambda: curved().best_threshold("f1", rng=0, n_resamples=50),
    "threshold for targets": lambda: curved().threshold_for(f1=0.3),
    "change": lambda: by_month().change("2026-06", "2026-05"),
    "trend": lambda: by_month().trend("recall"),
    "gap": lambda: by_month().gap("recall"),
    "groups": lambda: dm.evaluate_by(FRAME, "k", label="y", score="p", metrics=FEW, targets={"precision": 0.99}),
    "diagnosis": lambda: dm.diagnose(Y, SCORE, reference=REFERENCE, metrics=FEW),
    "backtest": lambda: dm.backtest(TRUTH, SCORE, metrics="recall", label_models="calibrated", n_repeats=2, rng=0),
    "robustness": lambda: dm.robustness(KNOWN, share=0.2, metrics="recall", n_resamples=50, rng=0),
    "verification": lambda: dm.verify(KNOWN, dm.EvaluationSet(TRUTH, SCORE, probability=SCORE), metrics=FEW),
    "bounds": lambda: dm.bounds(Y, SCORE, metrics=FEW),
    "comparison": lambda: compared(2),
    "best": lambda: compared(3).best("precision"),
    "ranks": lambda: compared(3).ranks("precision"),
    "paper bound": lambda: paper_bounds.paper_bound(KNOWN, "recall"),
    "rate": lambda: paper_bounds.corollary_rate(100, 0.5, 0.5),
    "set": lambda: DATA,
    "set with everything": lambda: dm.EvaluationSet(Y, SCORE, sample_weight=WEIGHT, probability=SCORE).coarsened(32),
}


@cache
def result_of(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RESULTS[name]()


@cache
def said_by(law: dm.MetricDistribution) -> list[Any]:
    t = law.mean() + np.array([-1.0, 0.0, 1.0]) * law.std()
    return [type(law).__name__, law.to_dict(), law.cdf(t).tolist(), law.given_defined]


def plain(thing: Any) -> Any:
    """What a thing says, as plain values and arrays; functions are left out, since what they give is compared."""
    if isinstance(thing, np.ndarray):
        return thing
    if isinstance(thing, dm.MetricDistribution):
        return said_by(thing)
    if isinstance(thing, Certificate):  # stored it is its bound, and what it says of single places is not kept
        return thing.to_dict()
    if isinstance(thing, dm.EvaluationSet):
        return [thing.counts(), thing.threshold, thing.pos_label, thing.buckets, plain(thing.cells.arrays())]
    if isinstance(thing, Mapping) and not dataclasses.is_dataclass(thing):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(value) for value in thing]
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        said = thing.to_dict() if hasattr(thing, "to_dict") else {}
        return [type(thing).__name__, said, {f.name: plain(getattr(thing, f.name)) for f in dataclasses.fields(thing)}]
    if thing is None or isinstance(thing, (bool, int, float, str, np.generic, Enum)):
        return thing
    return type(thing).__name__


@cache
def said_of(name: str) -> Any:
    return plain(result_of(name))


def reached(thing: Any, seen: dict[int, Any]) -> None:
    """Everything that a thing is made of."""
    if id(thing) in seen or isinstance(thing, (str, bytes, np.ndarray, type)):
        return
    seen[id(thing)] = thing
    parts = list(thing.values()) if isinstance(thing, Mapping) else []
    parts += list(thing) if isinstance(thing, (list, tuple)) else []
    parts += [getattr(thing, f.name) for f in dataclasses.fields(thing)] if dataclasses.is_dataclass(thing) else []
    for part in [*parts, *getattr(thing, "__dict__", {}).values()]:
        reached(part, seen)


COPIES = {
    "pickle": lambda thing: pickle.loads(pickle.dumps(thing)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", RESULTS)
def test_a_copy_of_a_result_says_what_the_result_says(name, way):
    result = result_of(name)
    again = way(result)
    assert type(again) is type(result)
    np.testing.assert_equal(plain(again), said_of(name))


@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", every_metric())
def test_a_copy_of_a_metric_is_the_metric(name, way):
    metric = every_metric()[name]
    again = way(metric)
    np.testing.assert_equal(plain(again), plain(metric))
    functions = [f.name for f in dataclasses.fields(metric) if inspect.isfunction(getattr(metric, f.name))]
    assert all(getattr(again, field) is getattr(metric, field) for field in functions)


@pytest.mark.parametrize("way", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_copy_of_a_setting_says_what_the_setting_says(name, way):
    np.testing.assert_equal(plain(way(SETTINGS[name])), plain(SETTINGS[name]))


@pytest.mark.parametrize("kind", [LabelModel, Method, Mechanism, Calibrator])
def test_there_is_an_example_of_every_setting(kind):
    there = {c for c in classes() if issubclass(c, kind) and not inspect.isabstract(c)}
    private = {c for c in there if c.__name__.startswith("_")}
    assert there - private - {type(one) for one in SETTINGS.values()} == set()


def test_there_is_an_example_of_every_result():
    found: dict[int, Any] = {}
    for name in RESULTS:
        reached(result_of(name), found)
    kinds = {type(thing) for thing in found.values()}
    there = [c for c in classes("cli", "report") if hasattr(c, "to_dict") or hasattr(c, "_repr_html_")]
    # What is reached may be of a kind that builds on another.
    left = {c for c in there if not inspect.isabstract(c) and not any(issubclass(kind, c) for kind in kinds)}
    assert {c.__name__ for c in left} == set()
    public = [getattr(dm, name) for name in dm.__all__ if inspect.isclass(getattr(dm, name))]
    made = [c for c in public if not issubclass(c, (Exception, dm.Metric)) and not inspect.isabstract(c)]
    assert {c.__name__ for c in made if c not in kinds} == set()
    # Records that results hold or return: every public dataclass of the packages that make results.
    where = (
        "verification",
        "backtesting",
        "threshold_curves",
        "diagnosis",
        "monitoring",
        "noise",
        "paper_bounds",
        "certificate",
        "distribution",
    )
    records = [
        c
        for c in classes()
        if dataclasses.is_dataclass(c) and c.__module__.split(".")[1] in where and c.__name__[0] != "_"
    ]
    # These are of the run of a backtest, batches of that of a verification, and in none of their results.
    of_runs = {"Setup", "Ground", "History", "Batch"}
    assert {c.__name__ for c in records if not inspect.isabstract(c) and c not in kinds} == of_runs


def test_what_was_stored_is_read_in_another_process(tmp_path):
    names = ["20,000 rows", "every metric", "method gaussian", "curves", "groups", "diagnosis", "robustness"]
    (tmp_path / "all.pickle").write_bytes(pickle.dumps({name: result_of(name) for name in names}))
    code = (
        "import json, pickle, sys\n"
        "found = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(json.dumps({name: one.to_dict() for name, one in found.items()}))"
    )
    told = [sys.executable, "-c", code, str(tmp_path / "all.pickle")]
    said = subprocess.run(told, capture_output=True, text=True, check=True).stdout
    assert json.loads(said) == json.loads(json.dumps({name: result_of(name).to_dict() for name in names}))


@pytest.mark.parametrize("name", ["20,000 rows", "method gaussian", "groups"])
def test_what_was_found_out_since_is_not_stored(name):
    fresh = pickle.dumps(copy.deepcopy(result_of(name)))
    result = pickle.loads(fresh)
    evaluation = result.total if isinstance(result, dm.GroupedEvaluation) else result
    str(result), evaluation.nodes.on_all_cells, evaluation.nodes.rows, evaluation.data.counts()
    for law in evaluation.values():
        law.cdf(0.5), law.ppf(0.5), law.certificate
    assert len(pickle.dumps(result)) <= len(fresh) + 200


def test_a_copy_of_a_law_keeps_what_is_proven_at_single_places():
    law = result_of("Mixture")
    again = copy.deepcopy(law)
    t = law.ppf([0.01, 0.3, 0.9])
    np.testing.assert_array_equal(again.certificate.bound_at(t), law.certificate.bound_at(t))
    assert again.interval(0.9, certified=True) == law.interval(0.9, certified=True)


def test_a_deep_copy_shares_no_numbers_with_its_original():
    law = result_of("Discrete")
    again = copy.deepcopy(law)
    again.atoms[:] = 7.0
    assert law.support().high <= 1.0
    assert (law.atoms <= 1.0).all()


def test_every_metric_is_sent_to_other_processes():
    told: Any = {"metrics": METRICS, "label_models": "half", "methods": methods.Auto(200), "n_repeats": 2, "rng": 0}
    several, one = (dm.backtest(TRUTH[:60], SCORE[:60], n_jobs=jobs, **told) for jobs in (2, 1))
    # The last digit of a sum hangs on where its numbers lie in memory.
    assert rounded(several.to_dict()) == rounded(one.to_dict())


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: rounded(part) for key, part in value.items()}
    return float(f"{value:.12g}") if isinstance(value, float) else value


def test_a_metric_defined_on_the_fly_is_refused_by_other_processes():
    own = dm.metrics.ConfusionMetric(name="own", formula=lambda tp, fp, fn, tn: tp / (tp + fp))
    with pytest.raises(InputError, match=r"n_jobs: a metric.* cannot be sent to other processes"):
        dm.backtest(TRUTH, SCORE, metrics=own, n_repeats=2, n_jobs=2)


def test_an_evaluation_of_a_metric_defined_on_the_fly_can_be_copied():
    own = dm.metrics.ConfusionMetric(name="own", formula=lambda tp, fp, fn, tn: tp / (tp + fp))
    result = dm.evaluate(Y, SCORE, metrics=own, label_model="half")
    assert copy.deepcopy(result).to_dict() == result.to_dict()
