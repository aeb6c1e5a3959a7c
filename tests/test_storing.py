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
from darkmetrics import calibrators, masks, methods, missing, paper
from darkmetrics.backtesting.setups import Dropping
from darkmetrics.calibrators import Calibrator
from darkmetrics.certificate import Certificate
from darkmetrics.data.class_set import ClassSet
from darkmetrics.distributions import Normal, Tabulated, Undefined
from darkmetrics.exceptions import InputError
from darkmetrics.masks import Mask
from darkmetrics.methods import Method
from darkmetrics.metrics import Family, registered
from darkmetrics.missing import Mechanism
from darkmetrics.missingness.delay_groups import GroupDelays, fit_groups
from darkmetrics.missingness.delayed import FittedDelays

RNG = np.random.default_rng(0)
SCORE = RNG.random(400)
TRUTH = (RNG.random(400) < SCORE).astype(float)
Y = np.where(RNG.random(400) < 0.3, np.nan, TRUTH)
WEIGHT = RNG.choice([0.5, 1.0, 2.25], 400)
DATA = dm.EvaluationSet(Y, SCORE)
KNOWN = dm.EvaluationSet(Y, SCORE, missingness=dm.missing.Fixed(SCORE))
AGED = dm.EvaluationSet(Y, SCORE, missingness=dm.missing.Delayed(age=RNG.integers(0, 60, 400)))
REFERENCE = (TRUTH[:100], SCORE[:100])
FRAME = pd.DataFrame({"y": Y, "p": SCORE, "k": np.repeat(["a", "b"], 200)})
FEW = ("precision", "roc_auc")


def every_metric() -> dict[str, Any]:
    """The record of each registered metric, and an example of each family."""
    records = {name: registered(name) for name in dm.metrics.registered_names()}
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
    "mechanism Unknown": missing.Unknown(reference=dm.missing.Reference(*REFERENCE)),
    "Random": missing.Random(),
    "ByScore": missing.ByScore("isotonic"),
    "Covariates": missing.Covariates(LogisticRegression(), SCORE[:, None]),
    "Fixed": missing.Fixed(),
    "Fixed at a half": missing.Fixed(0.5),
    "ByLabel": missing.ByLabel(),
    "Delayed": missing.Delayed(),
    "FittedDelays": missing.Delayed().fit(AGED),
    "GroupDelays": fit_groups(missing.Delayed(), [AGED, AGED])[0],
    "Dropping": Dropping(),
    "TrainingPrevalence": missing.TrainingPrevalence(),
    "Propensity": missing.Propensity(),
    "CalibratedScores": dm.paper.scaling_binning([0, 1, 0, 1], [0.1, 0.4, 0.6, 0.9], n_bins=2),
    "ByScoreAndLabel": missing.ByScoreAndLabel(reference=dm.missing.Reference(*REFERENCE)),
    "ExponentialTilt": missing.ExponentialTilt(missing.Fixed(0.5), prevalence=0.4),
    "method Auto": methods.Auto(n_resamples=100),
    "Exact": methods.Exact(),
    "Gaussian": methods.Gaussian(),
    "MonteCarlo": methods.MonteCarlo(100),
    "MCAR": masks.MCAR(0.3),
    "mask ByScore": masks.ByScore(0.3),
    "mask ByLabel": masks.ByLabel(0.3, prevalence=0.6),
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
        assert "Probabilities have an error of at most" in str(result)
        assert result.diagnosis.mechanisms
    return result


def modelled(model: Any) -> dm.Evaluation:
    if isinstance(model, missing.Covariates):
        return dm.evaluate(Y, SCORE, missingness=model, metrics=FEW)
    if isinstance(model, (missing.Delayed, FittedDelays, GroupDelays)):
        return dm.evaluate(AGED, missingness=model, metrics=FEW)
    if isinstance(model, missing.Propensity):
        return dm.evaluate(Y, SCORE, missingness=dm.missing.Propensity(np.full(len(SCORE), 0.6)), metrics=FEW)
    return dm.evaluate(KNOWN, missingness=model, metrics=FEW)


def curved() -> dm.ThresholdCurves:
    return dm.threshold_curves(evaluated(), metrics=["precision", "f1"], thresholds=5)


@cache
def compared(models: int) -> dm.Comparison:
    scores = {"one": SCORE, "two": 1.0 - SCORE, "three": SCORE**2}
    told = dict(list(scores.items())[:models])
    return dm.compare(Y, told, missingness=missing.Fixed(SCORE), metrics=FEW, rng=0)


# A result of every kind.
def by_month() -> dm.GroupedEvaluation:
    """Two months of 200 rows."""
    table = FRAME.assign(k=np.repeat(["2026-05", "2026-06"], 200))
    return dm.evaluate_by("y", "p", data=table, by="k", metrics=("precision", "recall"), missingness="random")


def by_key() -> dm.GroupedEvaluation:
    return dm.evaluate_by("y", "p", data=FRAME, by="k", metrics=FEW)


@cache
def of_classes() -> Any:
    """Three classes, whose labels are missing by label."""
    rng = np.random.default_rng(2)
    score = rng.dirichlet([0.5, 0.5, 0.5], 300)
    label = (score.cumsum(axis=1) > rng.random((300, 1))).argmax(axis=1)
    y = np.where(rng.random(300) < 0.3, np.nan, label)
    return dm.evaluate(y, score, missingness="by_label", metrics=("accuracy", "f1_macro"), rng=0)


@cache
def of_labels() -> Any:
    """Two labels per row."""
    y, score = np.stack([Y, Y[::-1]], axis=1), np.stack([SCORE, SCORE[::-1] ** 2], axis=1)
    return dm.evaluate(y, score, missingness="by_score", metrics=("f1", "hamming", "subset_accuracy"), rng=0)


RESULTS: dict[str, Callable[[], Any]] = {
    "20,000 rows": lambda: evaluated(n=20_000),
    **{f"method {word}": partial(evaluated, word) for word in ("exact", "gaussian", "monte_carlo")},
    "weighted": lambda: dm.evaluate(Y, SCORE, sample_weight=WEIGHT, metrics=("recall", "mcc", "roc_auc"), rng=0),
    "losses": lambda: dm.evaluate(
        Y[:120], SCORE[:120], metrics=("brier", "log_loss"), missingness=dm.missing.Fixed(SCORE[:120])
    ),
    "every metric": lambda: dm.evaluate(Y[:60], SCORE[:60], missingness=dm.missing.Fixed(0.5), metrics=METRICS, rng=0),
    "population": lambda: dm.evaluate(
        Y, SCORE, metrics=("recall", "log_loss"), missingness="random", scope="population"
    ),
    "share": lambda: dm.evaluate(Y, SCORE, metrics="f1", missingness="random").population["f1"],
    "customers": lambda: dm.evaluate(Y[:60], SCORE[:60], metrics="recall", clusters=np.arange(60) // 3, rng=0),
    "bins": lambda: dm.evaluate(DATA.binned(32), metrics=FEW),
    **{f"by {k}": partial(modelled, model) for k, model in SETTINGS.items() if isinstance(model, Mechanism)},
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
    "change": lambda: by_month().compare("2026-06", "2026-05"),
    "trend": lambda: by_month().trend("recall"),
    "gap": lambda: by_month().disparity("recall"),
    "groups": by_key,
    "alerts": lambda: by_key().alerts({"precision": 0.99}),
    "diagnosis": lambda: dm.diagnose(
        Y, SCORE, missingness=dm.missing.Unknown(reference=dm.missing.Reference(*REFERENCE)), metrics=FEW
    ),
    "backtest": lambda: dm.backtest(TRUTH, SCORE, metrics="recall", n_repeats=2, rng=0, missingness="by_score"),
    "robustness": lambda: dm.paper.theorem_4(KNOWN, fraction=0.2, metrics="recall", n_resamples=50, rng=0),
    "verification": lambda: dm.verify(
        KNOWN, dm.EvaluationSet(TRUTH, SCORE, missingness=dm.missing.Fixed(SCORE)), metrics=FEW
    ),
    "bounds": lambda: dm.bounds(Y, SCORE, metrics=FEW),
    "comparison": lambda: compared(2),
    "best": lambda: compared(3).probability_best("precision"),
    "ranks": lambda: compared(3).rank_probabilities("precision"),
    "paper bound": lambda: paper.paper_bound(KNOWN, "recall"),
    "rate": lambda: paper.corollary_rate(100, 0.5, 0.5),
    "classes": of_classes,
    "diagnosis of classes": lambda: of_classes().diagnosis,
    "metrics of each class": lambda: of_classes().per_class("recall"),
    "confusion matrix": lambda: of_classes().confusion_matrix(),
    "set of classes": lambda: of_classes().data,
    "labels": of_labels,
    "set": lambda: DATA,
    "set with everything": lambda: dm.EvaluationSet(
        Y, SCORE, sample_weight=WEIGHT, missingness=dm.missing.Fixed(SCORE)
    ).binned(32),
}


@cache
def result_of(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RESULTS[name]()


@cache
def said_by(distribution: dm.MetricDistribution) -> list[Any]:
    t = distribution.mean() + np.array([-1.0, 0.0, 1.0]) * distribution.std()
    return [
        type(distribution).__name__,
        distribution.to_dict(),
        distribution.cdf(t).tolist(),
        distribution.given_defined,
    ]


def plain(thing: Any) -> Any:
    """What a thing says, as plain values and arrays; functions are left out, since what they give is compared."""
    if isinstance(thing, np.ndarray):
        return thing
    if isinstance(thing, dm.MetricDistribution):
        return said_by(thing)
    if isinstance(thing, Certificate):  # stored it is its bound, and what it says of single places is not kept
        return thing.to_dict()
    if isinstance(thing, dm.EvaluationSet):
        return [thing.counts(), thing.threshold, thing.pos_label, thing.score_bins, plain(thing.cells.arrays())]
    if isinstance(thing, ClassSet):
        return [thing.counts(), thing.classes, thing.decided_by, plain(thing.cells.arrays())]
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


@pytest.mark.parametrize("kind", [Mechanism, Method, Mask, Calibrator])
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
    made = [c for c in public if not issubclass(c, (Exception, dm.metrics.Metric)) and not inspect.isabstract(c)]
    assert {c.__name__ for c in made if c not in kinds} == set()
    # Records that results hold or return: every public dataclass of the packages that make results.
    where = (
        "verification",
        "backtesting",
        "curves",
        "diagnosis",
        "monitoring",
        "paper",
        "certificate",
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
    str(result), evaluation.posterior.on_all_cells, evaluation.posterior.rows, evaluation.data.counts()
    for distribution in evaluation.values():
        distribution.cdf(0.5), distribution.ppf(0.5), distribution.certificate
    assert len(pickle.dumps(result)) <= len(fresh) + 200


def test_a_copy_of_a_law_keeps_what_is_proven_at_single_places():
    distribution = result_of("Mixture")
    again = copy.deepcopy(distribution)
    t = distribution.ppf([0.01, 0.3, 0.9])
    np.testing.assert_array_equal(again.certificate.bound_at(t), distribution.certificate.bound_at(t))
    assert again.interval(0.9, certified=True) == distribution.interval(0.9, certified=True)


def test_a_deep_copy_shares_no_numbers_with_its_original():
    distribution = result_of("Discrete")
    again = copy.deepcopy(distribution)
    again.atoms[:] = 7.0
    assert distribution.support().high <= 1.0
    assert (distribution.atoms <= 1.0).all()


def test_every_metric_is_sent_to_other_processes():
    told: Any = {
        "metrics": METRICS,
        "missingness": missing.Fixed(0.5),
        "methods": methods.Auto(200),
        "n_repeats": 2,
        "rng": 0,
    }
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
    result = dm.evaluate(Y, SCORE, metrics=own, missingness=dm.missing.Fixed(0.5))
    assert copy.deepcopy(result).to_dict() == result.to_dict()
