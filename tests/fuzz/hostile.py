"""Input that nobody should give and somebody does: each is understood, or refused with the argument in front.

The table names what is expected: "works", or the argument that the message begins with.
"""

import datetime as dt
import decimal
import fractions
import io
import json
import math
import warnings
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

import darkmetrics as dm
from fuzz import checks

NAN, INF = math.nan, math.inf
Y = [1, 0, None, 1, None, 0, 1, 0, None, 0]
S = [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1, 0.55, 0.35]
P = [0.7, 0.2, 0.5]
N = len(Y)


def ev(y: Any = Y, s: Any = S, **options: Any) -> Any:
    """An evaluation with given probabilities, unless something else is said of the labels."""
    return dm.evaluate(y, s, **{"missingness": dm.missing.Fixed(0.5)} | options)


def table(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"y": Y, "s": S, "g": list("aabbaabbab"), "day": [dt.date(2026, 1, 1)] * N, **columns})


def ef(frame: Any = None, **options: Any) -> Any:
    given: dict[str, Any] = {"y_true": "y", "y_score": "s", "missingness": dm.missing.Fixed(0.5), **options}
    return dm.evaluate(data=table() if frame is None else frame, **given)


def counted(**options: Any) -> Any:
    return dm.EvaluationSet("y", "s", data=table(), **options)


def by(frame: Any = None, by: Any = "g", **options: Any) -> Any:
    given: dict[str, Any] = {
        "y_true": "y",
        "y_score": "s",
        "missingness": dm.missing.Fixed(0.5),
        **options,
    }
    return dm.evaluate_by(data=table() if frame is None else frame, by=by, **given)


def alerts(targets: Any = None, **options: Any) -> Any:
    return by().alerts({"recall": 0.5} if targets is None else targets, **{"min_labels": 1, **options})


def cu(**options: Any) -> Any:
    return dm.threshold_curves(ev(), **options)


def bt(y: Any = None, s: Any = None, **options: Any) -> Any:
    rng = np.random.default_rng(0)
    score = rng.random(60) if s is None else s
    label = (rng.random(60) < score).astype(float) if y is None else y
    given: dict[str, Any] = {
        "n_repeats": 2,
        "missingness": dm.missing.Fixed(0.5),
        "metrics": "accuracy",
        "rng": 0,
        **options,
    }
    return dm.backtest(label, score, **given)


def di(y: Any = Y, s: Any = S, **options: Any) -> Any:
    return dm.diagnose(y, s, **options)


def loop() -> list[Any]:
    endless: list[Any] = [0.5]
    endless.append(endless)
    return endless


def formula(f: Any, **options: Any) -> Any:
    return dm.metrics.ConfusionMetric(name="mine", formula=f, **options)


# What happens, and what is expected of it.
HOSTILE: dict[str, tuple[Callable[[], Any], str]] = {
    # ------------------------------------------------------------------------------------------------ labels
    "no rows": (lambda: ev([], []), "y_true"),
    "one row": (lambda: ev([1], [0.5]), "works"),
    "one missing row": (lambda: ev([None], [0.5]), "works"),
    "no label at all": (lambda: ev([None] * N), "works"),
    "labels of one class": (lambda: ev([0] * 9 + [None]), "works"),
    "labels as text": (lambda: ev(["1", "0"] * 5), "y_true"),
    "labels as yes and no": (lambda: ev(["yes", "no"] * 5, pos_label="yes"), "works"),
    "a third label": (lambda: ev([0, 1, 2] + [0] * 7), "y_true"),
    "a label of one half": (lambda: ev([0, 1, 0.5] + [0] * 7), "y_true"),
    "an infinite label": (lambda: ev([INF] + [0, 1, 0] * 3), "y_true"),
    "labels as booleans": (lambda: ev([True, False] * 4 + [None, None]), "works"),
    "labels as objects": (lambda: ev([object() for _ in range(N)]), "y_true"),
    "labels as dictionaries": (lambda: ev([{}] * N), "y_true"),
    "labels as a dictionary": (lambda: ev({"a": 1}), "y_true"),
    "labels as one number": (lambda: ev(1), "y_true"),
    "labels as one word": (lambda: ev("labels"), "y_true"),
    "labels in two columns": (lambda: ev(np.zeros((N, 2))), "y_score"),
    "labels as a matrix of one column": (lambda: ev(np.zeros((N, 1))), "y_true"),
    "too few labels": (lambda: ev([0, 1]), "y_true"),
    "labels that are None": (lambda: ev(None), "y_true"),
    "labels as a generator": (lambda: ev(x for x in [0, 1] * 5), "y_true"),
    "labels as a set": (lambda: ev({0, 1}), "y_true"),
    "labels as dates": (lambda: ev([dt.date(2026, 1, 1)] * N), "y_true"),
    "labels as complex numbers": (lambda: ev(np.array([1j] * N)), "y_true"),
    "labels as decimals": (lambda: ev([decimal.Decimal(0), decimal.Decimal(1)] * 5), "works"),
    "labels as fractions": (lambda: ev([fractions.Fraction(0), fractions.Fraction(1)] * 5), "works"),
    "labels of mixed kinds": (lambda: ev([0, "1", None, 1.0, True] * 2), "y_true"),
    "labels as huge whole numbers": (lambda: ev([10**400, 0] * 5), "y_true"),
    "labels masked": (lambda: ev(np.ma.masked_equal([1, 0, 9] * 3 + [0], 9)), "works"),
    "labels as pandas categories": (lambda: ev(pd.Series(["a", "b"] * 5, dtype="category"), pos_label="a"), "works"),
    "labels as Arrow": (lambda: ev(pa.array(Y)), "works"),
    "labels as a lazy column": (lambda: ev(pl.col("y")), "y_true"),
    "labels as a whole frame": (lambda: ev(table()), "y_true"),
    "a list that holds itself": (lambda: ev(loop()), "y_true"),
    # ------------------------------------------------------------------------------------------------ scores
    "no scores": (lambda: ev(Y, None), "y_score"),
    "scores with NaN": (lambda: ev(Y, [NAN, *S[1:]]), "y_score"),
    "scores with infinity": (lambda: ev(Y, [INF, *S[1:]]), "y_score"),
    "scores with None": (lambda: ev(Y, [None, *S[1:]]), "y_score"),
    "scores as text": (lambda: ev(Y, ["high"] * N), "y_score"),
    "scores as text of numbers": (lambda: ev(Y, ["0.5"] * N), "y_score"),
    "scores as complex numbers": (lambda: ev(Y, [1j] * N), "y_score"),
    "scores as objects": (lambda: ev(Y, [object()] * N), "y_score"),
    "scores in two columns": (lambda: ev(Y, np.column_stack([1.0 - np.array(S), S])), "works"),
    "scores of different length": (lambda: ev(Y, S[:-1]), "y_true"),
    "scores as dates": (lambda: ev(Y, [dt.datetime(2026, 1, 1)] * N), "y_score"),
    "scores as durations": (lambda: ev(Y, np.array([1] * N, dtype="m8[s]")), "y_score"),
    "scores as booleans": (lambda: ev(Y, [True, False] * 5), "works"),
    "scores as decimals": (lambda: ev(Y, [decimal.Decimal("0.5")] * N), "works"),
    "scores of half precision": (lambda: ev(Y, np.array(S, dtype=np.float16)), "works"),
    "scores that are huge": (lambda: ev(Y, [1e308, -1e308] * 5, threshold=0.0), "works"),
    "scores that are tiny": (lambda: ev(Y, [5e-324, 0.0] * 5), "works"),
    "scores all alike": (lambda: ev(Y, [0.5] * N), "works"),
    "scores that differ in the last bit": (lambda: ev(Y, [0.5, math.nextafter(0.5, 1)] * 5), "works"),
    "scores of both zeros": (lambda: ev(Y, [0.0, -0.0] * 5), "works"),
    "scores as whole numbers beyond floats": (lambda: ev(Y, [10**400] * N), "y_score"),
    "scores outside [0, 1] for a loss": (lambda: ev(Y, [2.0] * N, metrics="log_loss"), "y_score"),
    "scores ragged": (lambda: ev(Y, [[0.1], [0.2, 0.3]] * 5), "y_score"),
    # ------------------------------------------------------------------------------------ thresholds and decisions
    "a threshold of NaN": (lambda: ev(threshold=NAN), "threshold"),
    "a threshold of infinity": (lambda: ev(threshold=INF), "threshold"),
    "a threshold as text": (lambda: ev(threshold="0.5"), "threshold"),
    "a threshold that is None": (lambda: ev(threshold=None), "works"),
    "a threshold as a list": (lambda: ev(threshold=[0.5]), "threshold"),
    "a threshold as an array of one": (lambda: ev(threshold=np.array([0.5])), "threshold"),
    "a threshold as a fraction": (lambda: ev(threshold=fractions.Fraction(1, 2)), "works"),
    "a threshold beyond all scores": (lambda: ev(threshold=1e300), "works"),
    "a threshold that is a score": (lambda: ev(threshold=0.55), "works"),
    "decisions and a threshold": (lambda: ev(threshold=0.3, y_pred=[0, 1] * 5), "threshold"),
    "decisions with a gap": (lambda: ev(y_pred=[None, *[0] * 9]), "y_pred"),
    "decisions of three kinds": (lambda: ev(y_pred=[0, 1, 2, *[0] * 7]), "y_pred"),
    "decisions as scores": (lambda: ev(y_pred=S), "y_pred"),
    "too few decisions": (lambda: ev(y_pred=[0, 1]), "y_pred"),
    "decisions as one word": (lambda: ev(y_pred="yes"), "y_pred"),
    # ---------------------------------------------------------------------------------------- pos_label, missing
    "pos_label that is not there": (lambda: ev(pos_label=7), "y_true"),
    "pos_label that is NaN": (lambda: ev(pos_label=NAN), "pos_label"),
    "pos_label that is None": (lambda: ev(pos_label=None), "pos_label"),
    "pos_label as a list": (lambda: ev(pos_label=[1]), "pos_label"),
    "missing_label that is pos_label": (lambda: ev(missing_label=1), "missing_label"),
    "missing_label as a list": (lambda: ev(missing_label=[-1]), "works"),
    "missing_label as a list in a list": (lambda: ev(missing_label=[[-1]]), "missing_label"),
    "missing_label that hides every label": (lambda: ev([-1] * N, missing_label=-1), "works"),
    # ------------------------------------------------------------------------------------------------ weights
    "weights with a negative one": (lambda: ev(sample_weight=[-1, *[1] * 9]), "sample_weight"),
    "weights with NaN": (lambda: ev(sample_weight=[NAN, *[1] * 9]), "sample_weight"),
    "weights with infinity": (lambda: ev(sample_weight=[INF, *[1] * 9]), "sample_weight"),
    "weights of zero": (lambda: ev(sample_weight=[0] * N), "sample_weight"),
    "weights from 1e-8 to 1e8": (lambda: ev(sample_weight=10.0 ** np.linspace(-8, 8, N)), "sample_weight"),
    "weights of 1e300": (lambda: ev(sample_weight=[1e300] * N), "sample_weight"),
    "weights of 1e-300": (lambda: ev(sample_weight=[1e-300] * N), "sample_weight"),
    "weights as one number": (lambda: ev(sample_weight=2.0), "sample_weight"),
    "weights as text": (lambda: ev(sample_weight="balanced"), "sample_weight"),
    "too few weights": (lambda: ev(sample_weight=[1.0]), "sample_weight"),
    "weight on labeled rows alone": (lambda: ev(sample_weight=[float(y is not None) for y in Y]), "works"),
    "weight on missing rows alone": (lambda: ev(sample_weight=[float(y is None) for y in Y]), "works"),
    "weights as booleans": (lambda: ev(sample_weight=[True] * N), "works"),
    # ---------------------------------------------------------------------------------------------- label models
    "probabilities above one": (lambda: ev(missingness=dm.missing.Fixed([0.5, 1.5, 0.5])), "probability"),
    "probabilities with NaN": (lambda: ev(missingness=dm.missing.Fixed([0.5, NAN, 0.5])), "probability"),
    "probabilities of another length": (lambda: ev(missingness=dm.missing.Fixed([0.5, 0.5])), "probability"),
    "probabilities as text": (lambda: ev(missingness=dm.missing.Fixed(["a", "b", "c"])), "probability"),
    "probabilities in two columns": (lambda: ev(missingness=dm.missing.Fixed(np.zeros((3, 2)))), "probability"),
    "a probability above one": (lambda: ev(missingness=dm.missing.Fixed(1.5)), "probability"),
    "a probability of NaN": (lambda: ev(missingness=dm.missing.Fixed(NAN)), "probability"),
    "a probability that is True": (lambda: ev(missingness=dm.missing.Fixed(True)), "probability"),
    "huge scores to learn from": (
        lambda: dm.evaluate(Y, [1e308, -1e308] * 5, missingness="unknown", threshold=0.0),
        "works",
    ),
    "tiny scores to learn from": (lambda: dm.evaluate(Y, [5e-324, 0.0] * 5, missingness="unknown"), "works"),
    "an unknown mechanism": (lambda: ev(missingness="clairvoyant"), "missingness"),
    "a mechanism as a class": (lambda: ev(missingness=dm.missing.Fixed), "missingness"),
    "a mechanism as a dictionary": (lambda: ev(missingness={"a": 1}), "missingness"),
    "nothing to learn from": (lambda: ev([None] * N, missingness="by_score"), "y_true"),
    "no share to learn from": (lambda: ev([None] * N, missingness=dm.missing.TrainingPrevalence()), "missingness"),
    "an unknown reason": (lambda: ev(missingness="by_magic"), "missingness"),
    "a reason as a number": (lambda: ev(missingness=3), "missingness"),
    "probabilities as they are": (lambda: ev(missingness=P), "missingness"),
    "both reasons without reference rows": (lambda: ev(missingness="by_score_and_label"), "reference"),
    "reference rows as a frame": (
        lambda: ev(missingness=dm.missing.Unknown(reference=cast("Any", table()))),
        "reference",
    ),
    "reference rows with gaps": (lambda: ev(missingness=dm.missing.Reference(Y, S)), "reference"),
    "reference rows of different length": (lambda: ev(missingness=dm.missing.Reference([0, 1], S)), "reference"),
    "no reference rows": (lambda: ev(missingness=dm.missing.Reference([], [])), "reference"),
    "reference rows as three columns": (
        lambda: ev(missingness=dm.missing.Unknown(reference=cast("Any", ([0], [0.1], [1])))),
        "reference",
    ),
    # ------------------------------------------------------------------------------------------- metrics, methods
    "an unknown metric": (lambda: ev(metrics="roc-aus"), "metrics"),
    "no metric": (lambda: ev(metrics=[]), "metrics"),
    "a metric twice": (lambda: ev(metrics=["recall", "recall"]), "metrics"),
    "a metric as a number": (lambda: ev(metrics=3), "metrics"),
    "a metric that is None": (lambda: ev(metrics=None), "metrics"),
    "an unfinished parameter": (lambda: ev(metrics="fbeta("), "metrics"),
    "a parameter that is code": (lambda: ev(metrics="fbeta(__import__('os'))"), "metrics"),
    "a missing parameter": (lambda: ev(metrics="precision_at_k"), "metrics"),
    "a parameter too many": (lambda: ev(metrics="recall(2)"), "metrics"),
    "a negative beta": (lambda: ev(metrics="fbeta(-1)"), "beta"),
    "an infinite beta": (lambda: ev(metrics="fbeta(1e999)"), "beta"),
    "a huge beta": (lambda: ev(metrics="fbeta(1e200)"), "beta"),
    "huge costs": (lambda: ev(metrics="expected_cost(1e308, 1e308)"), "c_fp"),
    "the top none": (lambda: ev(metrics="precision_at_k(0)"), "k"),
    "the top of more rows than there are": (lambda: ev(metrics="precision_at_k(1000)"), "k"),
    "the top of half a row": (lambda: ev(metrics="precision_at_k(1.5)"), "k"),
    "a tiny share at the top": (lambda: ev(metrics="recall_at_k(1e-300)"), "works"),
    "unknown ties": (lambda: ev(metrics="roc_auc(ties='thirds')"), "ties"),
    "a formula that is always 0/0": (
        lambda: ev(metrics=formula(lambda tp, fp, fn, tn: (tp - tp) / (tp - tp))),
        "works",
    ),
    "a formula that is infinite": (lambda: ev(metrics=formula(lambda tp, fp, fn, tn: tp / (tp - tp))), "works"),
    "a formula of one number": (lambda: ev(metrics=formula(lambda tp, fp, fn, tn: 0.5)), "works"),
    "a formula with the wrong direction": (
        lambda: ev(metrics=formula(lambda tp, fp, fn, tn: tp / (tp + fn), direction=(-1, 1))),
        "works",
    ),
    "a loss that is infinite": (
        lambda: ev(metrics=dm.metrics.LossMetric(name="mine", loss=lambda y, s: np.where(y > 0.0, INF, s))),
        "loss",
    ),
    "a loss of one number": (lambda: ev(metrics=dm.metrics.LossMetric(name="mine", loss=lambda y, s: 1.0)), "loss"),
    "a function that returns text": (lambda: ev(metrics={"mine": lambda y, s: "good"}), "metrics"),
    "a function that returns None": (lambda: ev(metrics={"mine": lambda y, s: None}), "metrics"),
    "a function that returns NaN": (lambda: ev(metrics={"mine": lambda y, s: NAN}), "works"),
    "a function that returns an array": (lambda: ev(metrics={"mine": lambda y, s: np.ones(2)}), "metrics"),
    "an unknown method": (lambda: ev(method="magic"), "method"),
    "a method as a number": (lambda: ev(method=1), "method"),
    "no draws": (lambda: ev(method=dm.methods.MonteCarlo(n_resamples=0)), "n_resamples"),
    "half a draw": (lambda: ev(method=dm.methods.MonteCarlo(n_resamples=0.5)), "n_resamples"),  # type: ignore[arg-type]
    "one draw": (lambda: ev(method=dm.methods.MonteCarlo(n_resamples=1), rng=0), "works"),
    "a Gaussian without a slope": (lambda: ev(metrics="ks", method="gaussian"), "method"),
    "zero_division of two": (lambda: ev(zero_division=2), "zero_division"),
    "zero_division as text": (lambda: ev(zero_division="0"), "zero_division"),
    "zero_division that is None": (lambda: ev(zero_division=None), "zero_division"),
    "a level of one": (lambda: ev(confidence_level=1.0), "confidence_level"),
    "a level of 90": (lambda: ev(confidence_level=90), "confidence_level"),
    "a level of NaN": (lambda: ev(confidence_level=NAN), "confidence_level"),
    "a level as text": (lambda: ev(confidence_level="90%"), "confidence_level"),
    "a level close to one": (lambda: ev(confidence_level=1.0 - 1e-15), "works"),
    "a seed as text": (lambda: ev(rng="seed"), "rng"),
    "a negative seed": (lambda: ev(rng=-1), "rng"),
    "a seed as a fraction": (lambda: ev(rng=1.5), "rng"),
    "a quantile above one": (lambda: ev()["recall"].ppf(1.5), "q"),
    "a quantile of NaN": (lambda: ev()["recall"].ppf(NAN), "q"),
    # ------------------------------------------------------------------------------------------------ ready sets
    "a set and scores": (lambda: ev(dm.EvaluationSet(Y, S), S), "y_score"),
    "a set and a threshold": (lambda: ev(dm.EvaluationSet(Y, S), None, threshold=0.3), "threshold"),
    "a set and probabilities": (
        lambda: ev(dm.EvaluationSet(Y, S), None, missingness=dm.missing.Fixed(P)),
        "probability",
    ),
    "a set without rows": (lambda: ev(dm.EvaluationSet([1], [0.5]) - dm.EvaluationSet([1], [0.5]), None), "y_true"),
    # ---------------------------------------------------------------------------------------------------- tables
    "a table without the label": (lambda: ef(y_true="z"), "y_true"),
    "a table without the score": (lambda: ef(y_score="z"), "y_score"),
    "a column name that is a number": (lambda: ef(y_true=3), "y_true"),
    "label and score the same column": (lambda: ef(y_true="s"), "y_score"),
    "a table that is None": (lambda: dm.evaluate("y", "s", data=None), "y_true"),
    "a table that is a number": (lambda: ef(3), "data"),
    "a table that is an array": (lambda: ef(np.zeros((3, 2))), "data"),
    "a table that is a buffer": (lambda: ef(io.StringIO("y,s\n1,0.5\n")), "data"),
    "a file that is not there": (lambda: ef("no-such-file.parquet"), "no-such-file.parquet"),
    "a pattern of no file": (lambda: ef("no-such-*.parquet"), "no-such-*.parquet"),
    "no files": (lambda: ef([]), "data"),
    "a table without rows": (lambda: ef(table().head(0)), "data"),
    "a table with NaN scores": (lambda: ef(table(s=[NAN, *S[1:]])), "y_score column 's'"),
    "a table with null scores": (lambda: ef(table(s=[None, *S[1:]])), "y_score column 's'"),
    "a table with text scores": (lambda: ef(table(s=["a"] * N)), "y_score column 's'"),
    "a table with a third label": (lambda: ef(table(y=[0, 1, 2] + [0] * 7)), "y_true column 'y'"),
    "a table with lists for labels": (lambda: ef(table(y=[[1]] * N)), "y_true column 'y'"),
    "a table with negative weights": (lambda: ef(table(w=[-1.0] * N), sample_weight="w"), "sample_weight column 'w'"),
    "a table with weights of zero": (lambda: ef(table(w=[0.0] * N), sample_weight="w"), "sample_weight column 'w'"),
    "a table with probabilities above one": (
        lambda: ef(table(p=[2.0] * N), missingness=dm.missing.Fixed("p")),
        "probability column 'p'",
    ),
    "a table with gaps in the decisions": (lambda: ef(table(d=[None, *[1] * 9]), y_pred="d"), "y_pred column 'd'"),
    "probabilities beside a table": (lambda: ef(missingness=dm.missing.Fixed(P)), "works"),
    "no buckets": (lambda: counted(score_bins=0), "score_bins"),
    "NaN buckets": (lambda: counted(score_bins=NAN), "score_bins"),
    "an unknown word for buckets": (lambda: counted(score_bins="fine"), "score_bins"),
    "a table of one label in pandas": (lambda: ef(pd.DataFrame({"y": [1.0, NAN], "s": [0.5, 0.6]})), "works"),
    "columns of one name in pandas": (lambda: ef(pd.DataFrame([[1, 0.5, 2]], columns=["y", "s", "s"])), "data"),
    # ---------------------------------------------------------------------------------------------------- groups
    "groups by no column": (lambda: by(by=None), "by"),
    "groups by an unknown column": (lambda: by(by="z"), "by"),
    "groups by a number": (lambda: by(by=3), "by"),
    "groups by the score": (lambda: by(by="s"), "works"),
    "groups by a column twice": (lambda: by(by=["g", "g"]), "by"),
    "groups of one row": (lambda: by(table(g=list("abcdefghij"))), "works"),
    "groups with null names": (lambda: by(table(g=[None, *"abababaab"])), "works"),
    "periods without a time": (lambda: by(period="month"), "period"),
    "unknown periods": (lambda: by(by=None, time="day", period="fortnight"), "period"),
    "periods of text": (lambda: by(by=None, time="g", period="month"), "time column 'g'"),
    "an unknown target": (lambda: alerts(targets={"speed": 0.5}), "targets"),
    "a target of NaN": (lambda: alerts(targets={"recall": NAN}), "targets"),
    "a target as text": (lambda: alerts(targets={"recall": "high"}), "targets"),
    "targets as a list": (lambda: alerts(targets=["recall"]), "targets"),
    "a rate above one": (lambda: alerts(false_discovery_rate=2), "false_discovery_rate"),
    "an unknown correction": (lambda: alerts(correction="bonferroni"), "correction"),
    "a negative number of labels": (lambda: alerts(min_labels=-1), "min_labels"),
    "no process": (lambda: by(n_jobs=0), "n_jobs"),
    "processes as text": (lambda: by(n_jobs="all"), "n_jobs"),
    # ---------------------------------------------------------------------------------------------------- curves
    "curves of no evaluation": (lambda: dm.threshold_curves(Y), "evaluation"),  # type: ignore[arg-type]
    "curves of given decisions": (lambda: dm.threshold_curves(ev(y_pred=[0, 1] * 5)), "evaluation"),
    "curves at NaN": (lambda: cu(thresholds=[NAN]), "thresholds"),
    "curves at no threshold": (lambda: cu(thresholds=[]), "thresholds"),
    "curves at none": (lambda: cu(thresholds=0), "thresholds"),
    "curves at infinity": (lambda: cu(thresholds=[INF]), "thresholds"),
    "curves at a word": (lambda: cu(thresholds="some"), "thresholds"),
    "curves far outside": (lambda: cu(thresholds=[-1e300, 1e300]), "works"),
    "curves of ROC-AUC": (lambda: cu(metrics="roc_auc"), "metrics"),
    "curves of no metric": (lambda: cu(metrics=[]), "metrics"),
    "curves by Monte Carlo": (lambda: cu(method="monte_carlo"), "works"),
    "curves by magic": (lambda: cu(method="magic"), "method"),
    "curves at a level of one": (lambda: cu(confidence_levels=[1.0]), "confidence_levels"),
    "curves at no level": (lambda: cu(confidence_levels=[]), "confidence_levels"),
    "curves at one level": (lambda: cu(confidence_levels=0.9), "works"),
    # ------------------------------------------------------------------------------------------------- backtests
    "a backtest without labels": (lambda: bt([NAN] * 60), "y_true"),
    "a backtest of one class": (lambda: bt([0.0] * 60), "y_true"),
    "a backtest that hides all": (lambda: bt(mask=1.0), "mask"),
    "a backtest that hides nothing": (lambda: bt(mask=0.0), "mask"),
    "a backtest that hides NaN": (lambda: bt(mask=NAN), "mask"),
    "a backtest of an unknown mechanism": (lambda: bt(mask="mcar"), "mask"),
    "no repeats": (lambda: bt(n_repeats=0), "n_repeats"),
    "half a repeat": (lambda: bt(n_repeats=0.5), "n_repeats"),
    "no mechanisms": (lambda: bt(missingness=[]), "missingness"),
    "no methods": (lambda: bt(methods=[]), "methods"),
    "a backtest of two rows": (lambda: bt([0.0, 1.0], [0.1, 0.9]), "works"),
    # ------------------------------------------------------------------------------------------------- diagnoses
    "a diagnosis without missing rows": (lambda: di([0, 1] * 5), "works"),
    "a diagnosis without labels": (lambda: di([None] * N), "works"),
    "a diagnosis of one row": (lambda: di([None], [0.5]), "works"),
    "a diagnosis of huge scores": (lambda: di(Y, [1e308, -1e308] * 5), "works"),
    "a diagnosis of an unknown metric": (lambda: di(metrics="speed"), "metrics"),
    "a diagnosis with reference rows of one class": (
        lambda: di(missingness=dm.missing.Reference([0, 0], [0.1, 0.2])),
        "works",
    ),
}


def outcome(call: Callable[[], Any]) -> str:
    """What a call leads to: "works", the argument that a refusal names first, or what is wrong with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for known in (dm.UndefinedMetricWarning, dm.MissingnessWarning, dm.CalibrationWarning):
            warnings.simplefilter("ignore", known)
        try:
            wrong, problem = checks.guarded(lambda: _silent_nan(call()))
            return problem or wrong or "works"
        except dm.InputError as error:
            name, colon, rest = str(error).partition(": ")
            return name if colon and rest.strip() else f"refused without a name: {error}"


def _silent_nan(result: Any) -> str:
    """NaN that nothing explains, or what cannot be printed or stored."""
    str(result), repr(result)
    if hasattr(result, "to_dict"):
        json.dumps(result.to_dict(), allow_nan=False)
    distributions = result.items() if isinstance(result, dm.Evaluation) else []
    for name, distribution in distributions:
        numbers = [
            distribution.mean(),
            distribution.std(),
            *distribution.interval(),
            *distribution.ppf([0.25, 0.75]),
            distribution.cdf(0.5),
        ]
        if distribution.undefined < 1.0 and np.isnan(numbers).any():
            return f"NaN in silence: {name} {numbers}"
    return ""
