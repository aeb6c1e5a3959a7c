"""First guesses: calls that people type who know other libraries, before they read anything.

Each one works, or is refused with a call that works. The fifty were written before reading the code, and are followed
by those of the interface's design and by calls that show the rules.
"""

import re
import warnings
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, fbeta_score, make_scorer

import darkmetrics as dm

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

N = 200
RNG = np.random.default_rng(0)
S = RNG.random(N)
COMPLETE = (RNG.random(N) < S).astype(float)
Y = np.where(RNG.random(N) < 0.3, np.nan, COMPLETE)
S2 = np.clip(S + 0.1 * RNG.normal(size=N), 0.0, 1.0)
TABLE = pd.DataFrame(
    {
        "label": Y,
        "score": S,
        "score2": S2,
        "pred": (S >= 0.5).astype(int),
        "weight": 1.0 + np.arange(N) % 2,
        "segment": np.where(np.arange(N) % 2, "a", "b"),
        "day": pd.date_range("2026-01-01", periods=N),
    }
)


@pytest.fixture(scope="module")
def variables() -> dict[str, Any]:
    """What the callers have at hand."""
    features = np.column_stack([S, S2])
    scores = {"y_score": S, "s": S, "s2": S2, "s_a": S, "s_b": S2, "s_old": S, "s_before": S[:150], "s_after": S[150:]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dm.evaluate(Y, S, missingness="random")
        june = dm.evaluate(Y[150:], S[150:], missingness="random")
        may = dm.evaluate(Y[:150], S[:150], missingness="random")
    return {
        "dm": dm,
        "np": np,
        "partial": partial,
        "f1_score": f1_score,
        "fbeta_score": fbeta_score,
        "make_scorer": make_scorer,
        "df": TABLE,
        "old": TABLE.assign(label=COMPLETE),
        "y_true": Y,
        "y": Y,
        "y_old": COMPLETE,
        "y_before": Y[:150],
        "y_after": Y[150:],
        "w": TABLE["weight"],
        "pred": TABLE["pred"],
        "seg": TABLE["segment"].to_numpy(),
        "X": features,
        **scores,
        "model": LogisticRegression().fit(features, COMPLETE),
        "result": result,
        "r": result,
        "june": june,
        "may": may,
        "after": june,
        "before": may,
        "earlier": may,
        "grouped": dm.evaluate_by("label", "score", data=TABLE, by="segment", missingness="random"),
    }


def pairs(text: str) -> dict[str, str]:
    """Return the indented lines of a text by the line above each; "-" is empty, and comments are left out."""
    lines = [line for line in text.strip().splitlines() if not line.startswith("#")]
    indented = [line.removeprefix("    ") for line in lines[1::2]]
    assert all(line.startswith("    ") for line in lines[1::2])
    return {typed: "" if other == "-" else other for typed, other in zip(lines[::2], indented, strict=True)}


# What is typed, and the code with the same result. Both are of the same kind, and equal as text and numbers.
WORK = pairs(
    r"""
# Written before reading the code.
dm.evaluate(data=df, targets="label", predictions="score")
    dm.evaluate("label", "score", data=df)
dm.evaluate("label", "score", df)
    dm.evaluate("label", "score", data=df)
dm.evaluate(y, s, metrics=f1_score)["f1_score"]
    dm.evaluate(y, s, metrics="f1")["f1"]
dm.evaluate(y, s, metrics=[partial(fbeta_score, beta=2)])['fbeta_score']
    dm.evaluate(y, s, metrics='fbeta(2)')['fbeta(2)']
dm.evaluate(y, s, metrics=[make_scorer(fbeta_score, beta=2)])['fbeta_score']
    dm.evaluate(y, s, metrics='fbeta(2)')['fbeta(2)']
dm.evaluate(y, s, scoring="roc_auc")
    dm.evaluate(y, s, metrics="roc_auc")
dm.evaluate(y, s, scoring="neg_brier_score")["neg_brier_score"].mean()
    -dm.evaluate(y, s, metrics="brier")["brier"].mean()
dm.evaluate(y, s, metrics={"f1": f1_score, "rec": "recall"})["f1"]
    dm.evaluate(y, s, metrics="f1")["f1"]
dm.evaluate(y[:40], s[:40], metrics={"m": lambda y_true, y_pred: np.mean(y_true == y_pred)}, method="exact")["m"].mean()
    dm.evaluate(y[:40], s[:40], metrics="accuracy")["accuracy"].mean()
dm.compare(data=df, y_true="label", y_score=["score", "score2"])
    dm.compare("label", ["score", "score2"], data=df)
dm.compare(y, [s, s2])
    dm.compare(y, {"model_1": s, "model_2": s2})
dm.compare(y, {"a": s, "b": s2}, metric="roc_auc")
    dm.compare(y, {"a": s, "b": s2}, metrics="roc_auc")
r["ROC AUC"].mean() + r["Recall"].mean()
    r["roc_auc"].mean() + r["recall"].mean()
dm.evaluate(y, s, mechanism="mnar")
    dm.evaluate(y, s, missingness="by_label")
dm.evaluate(y, s, confidence=0.95)["recall"].interval()
    dm.evaluate(y, s)["recall"].interval(0.95)
r["recall"].confidence_interval(0.95).low
    r["recall"].interval(0.95).low
r.describe()
    r.summary()
r["recall"].sample(100, rng=1).mean()
    r["recall"].rvs(100, rng=1).mean()
r.recall.ci(0.5)
    r["recall"].interval(0.5)
# Of the design of the interface.
dm.evaluate(data=df, y_true="label", y_score="score")
    dm.evaluate("label", "score", data=df)
dm.evaluate(y, s, scoring=["recall", "roc_auc"])
    dm.evaluate(y, s, metrics=["recall", "roc_auc"])
dm.evaluate(y, s, alpha=0.05)
    dm.evaluate(y, s, confidence_level=0.95)
dm.evaluate(y, s, metrics=[f1_score])['f1_score']
    dm.evaluate(y, s, metrics='f1')['f1']
june - may
    dm.compare_evaluations(june, may)
result.to_html("x.html").name
    "x.html"
result.to_pandas()
    result.to_frame('pandas')
result.to_json()
    result.to_json()
result["recall"].confidence_interval()
    result["recall"].interval()
result.recall
    result["recall"]
dm.evaluate(y, model.predict_proba(X))["recall"]
    dm.evaluate(y, model.predict_proba(X)[:, 1])["recall"]
# Words of other libraries for arguments.
dm.evaluate(y, s, sample_weights=w, random_state=3, cutoff=0.4)["recall"]
    dm.evaluate(y, s, sample_weight=w, threshold=0.4)["recall"]
dm.evaluate("label", "score", data=df, weights="weight", missing="MAR", level=0.5)
    dm.evaluate("label", "score", data=df, sample_weight="weight", missingness="by_score", confidence_level=0.5)
dm.evaluate(ground_truth=y, y_pred_proba=s)["recall"]
    dm.evaluate(y, s)["recall"]
dm.evaluate(y, s, predictions=pred)["recall"]
    dm.evaluate(y, s, y_pred=pred)["recall"]
dm.evaluate_by(target="label", prediction="score", df=df, timestamp="day", chunk_period="Q", metric="recall").to_frame()
    dm.evaluate_by("label", "score", data=df, time="day", period="quarter", metrics="recall").to_frame()
dm.evaluate_by(y, s, sensitive_features=seg).to_frame()
    dm.evaluate_by(y, s, by=seg).to_frame()
dm.missing.ByScore(segment="region")
    dm.missing.ByScore(strata="region")
dm.missing.Fixed(p=0.3)
    dm.missing.Fixed(0.3)
dm.evaluate(y, s, metrics=["F1", "tpr", "pr_auc"])["F1"]
    dm.evaluate(y, s, metrics="f1")["f1"]
"""
)

# What is typed and refused, and the call in the error, which is made.
ANSWERED = pairs(
    r"""
# Written before reading the code.
dm.evaluate(df, "label", "score")
    dm.evaluate("label", "score", data=df)
dm.evaluate(data=df, x="score", y="label", hue="segment")
    dm.evaluate_by("label", "score", data=df, by="segment")
dm.evaluate(y, s, sensitive_features=seg)
    dm.evaluate_by(y_true, y_score, by=seg)
dm.MetricFrame(metrics=f1_score, y_true=y, y_pred=pred, sensitive_features=seg)
    dm.evaluate_by('label', 'score', data=df, by='segment')
dm.CBPE(y_true="label", y_pred_proba="score", timestamp_column_name="day")
    dm.evaluate_by('label', 'score', data=df, time='day', period='week')
dm.evaluate(df, y_true="label", y_pred_proba="score", timestamp_column_name="day", chunk_period="M")
    dm.evaluate_by("label", "score", data=df, time="day", period="month")
dm.Report(metrics=["recall"]).run(reference_data=old, current_data=df)
    dm.evaluate('label', 'score', data=df).report('report.html')
dm.bootstrap((y, s), f1_score, n_resamples=999)
    dm.paper.bootstrap(dm.EvaluationSet(y_true, y_score))
r["recall"].standard_error
    result['recall'].std()
dm.ppi_mean_ci(y, pred, s, alpha=0.1)
    dm.evaluate(y_true, y_score)['recall'].interval(0.95)
dm.evaluate(y, s, thresholds=[0.3, 0.5])
    dm.threshold_curves(dm.evaluate(y_true, y_score), thresholds=[0.3, 0.5])
dm.precision_recall_curve(y, s)
    dm.threshold_curves(dm.evaluate(y_true, y_score))
dm.evaluate(y, s, n_bootstrap=1000, random_state=0)
    dm.evaluate(y_true, y_score, method=dm.methods.MonteCarlo(n_resamples=1000), rng=0)
dm.evaluate(y, s, average="binary")
    dm.evaluate(y_true, y_score)
r.plot(kind="hist")
    -
r["roc_auc"].plot()
    result.plot('recall')
dm.confusion_matrix(y, pred)
    dm.evaluate(y_true, y_score, metrics=['tp', 'fp', 'fn', 'tn'])
r.to_csv("x.csv")
    result.to_frame('pandas').to_csv('result.csv')
dm.get_scorer_names()
    dm.list_metrics()
dm.evaluate(model, X, y)
    dm.evaluate(y_true, model.predict_proba(X)[:, 1])
dm.RocCurveDisplay.from_predictions(y, s)
    dm.plotting.plot_roc(dm.evaluate(y_true, y_score))
dm.roc_auc_score(y, s)
    dm.evaluate(y_true, y_score, metrics='roc_auc')['roc_auc']
dm.evaluate(y, s, reference=(y_old, s_old))
    dm.evaluate(y_true, y_score, missingness=dm.missing.Reference(y_old, y_score))
dm.evaluate(df["label"], df["score"], groupby="segment")
    dm.evaluate_by("label", "score", data=df, by="segment")
dm.calibration_curve(y, s)
    dm.plotting.plot_reliability(dm.evaluate(y_true, y_score))
r["recall"].hist()
    result.plot('recall')
dm.load_evaluation("x.json")
    dm.EvaluationSet.from_parquet('counts.parquet')
dm.evaluate(y, s, cv=5)
    dm.evaluate(y_true, y_score)
dm.evaluate(y, s, metrics="recall").to_markdown()
    result.report('report.md')
# Of the design of the interface.
dm.evaluate(df, target="label", prediction="score")
    dm.evaluate("label", "score", data=df)
dm.evaluate(df, y_true="label", y_score="score", by="segment")
    dm.evaluate_by("label", "score", data=df, by="segment")
dm.compare(y, s, s2)
    dm.compare(y_true, {"model_1": y_score, "model_2": s2})
dm.compare(june, may)
    dm.compare_evaluations(after, before)
dm.recall_score(y, pred)
    dm.evaluate(y_true, y_score, metrics='recall')['recall']
dm.classification_report(y, pred)
    dm.evaluate(y_true, y_score)
dm.best_threshold(y, s, metric="f1")
    dm.threshold_curves(dm.evaluate(y_true, y_score)).best_threshold('f1')
dm.evaluate(y, s, metrics="precision_at_recall(0.8)")
    .best_threshold("precision", constraint={"recall": 0.8})
# The rules: what has to be guessed, other functions, assumptions, and names that are nearly ours.
dm.evaluate(df)
    dm.evaluate("label", "score", data=df)
dm.evaluate("label", ["score", "score2"], data=df)
    dm.compare("label", ['score', 'score2'], data=df)
dm.evaluate(y, y_pred=pred)
    dm.evaluate(y_true, pred)
dm.evaluate(y, s, metrcs=['recall'])
    dm.evaluate(y_true, y_score, metrics=['recall'])
dm.evaluate(y, s, strata=seg)
    dm.evaluate(y_true, y_score, missingness=dm.missing.ByScore(strata=seg))
dm.evaluate(y, s, propensity=np.full(200, 0.7))
    -
dm.evaluate(y, s, s2)
    dm.compare(y_true, {"model_1": y_score, "model_2": s2})
dm.evaluate_by("label", "score", data=df, by="segment", targets={"recall": 0.8})
    dm.evaluate_by("label", "score", data=df, by="segment").alerts({'recall': 0.8})
dm.threshold_curves(y, s)
    dm.threshold_curves(dm.evaluate(y_true, y_score))
dm.missing.Reference(old)
    dm.missing.Reference("label", "score", data=old)
dm.missing.ByScore(stratas=seg)
    dm.missing.ByScore(strata=seg)
dm.jaccard_score(y, pred)
    dm.evaluate(y_true, y_score, metrics='jaccard')['jaccard']
dm.evalute(y, s)
    -
r.best_threshold
    dm.threshold_curves(result).best_threshold('f1')
r.suggest_labels()
    result.variance_decomposition('recall')
dm.evaluate(y, s, groups=seg)
    -
dm.evaluate(y, s, metrics=lambda y, p: 0.0)
    -
"""
)


def run(code: str, variables: dict[str, Any]) -> Any:
    """Return the value of code; warnings are those of guesses and of rows with few labels."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return eval(code, variables)


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    dm.EvaluationSet(Y, S).to_parquet("counts.parquet")


@pytest.mark.parametrize("typed", WORK)
def test_a_first_guess_works(typed, variables):
    value, expected = run(typed, variables), run(WORK[typed], variables)
    assert type(value) is type(expected)
    if isinstance(value, float):
        assert value == pytest.approx(expected, abs=0.02 if "lambda" in typed else 1e-12)
    elif hasattr(value, "equals"):
        assert value.equals(expected)
    else:
        assert str(value) == str(expected)


@pytest.mark.parametrize("typed", ANSWERED)
def test_a_first_guess_is_answered_with_a_call_that_works(typed, variables):
    with pytest.raises((dm.InputError, AttributeError)) as error:
        run(typed, variables)
    call = re.search(r"[Ww]rite ((?:dm|result)\b.*?)(?:, or .*)?\.?$", str(error.value))
    assert ANSWERED[typed] in str(error.value)
    if ANSWERED[typed].startswith(("dm.", "result")):
        assert call is not None
        assert call[1] == ANSWERED[typed]
        run(call[1], variables)


def test_most_first_guesses_work():
    assert len(WORK) >= 30


@pytest.mark.parametrize(
    ("typed", "warning"),
    [
        (
            'dm.evaluate(y, s, scoring="recall")',
            "evaluate: scoring= was read as metrics=. Write dm.evaluate(y_true, y_score",
        ),
        ("dm.evaluate(y, s, alpha=0.2)", "alpha=0.2 was read as confidence_level=0.8. Write dm.evaluate(y_true"),
        ('dm.evaluate("label", "score", df)', "the last value was read as data=. Write dm.evaluate("),
        ('result["recall"].conf_int(0.9)', "has no 'conf_int'. Write .interval()."),
        ("result.to_pandas()", "Evaluation has no 'to_pandas'. Write .to_frame('pandas')."),
    ],
)
def test_a_call_in_other_words_warns_with_the_call_in_ours(typed, warning, variables):
    with pytest.warns(UserWarning, match=re.escape(warning)) as caught:
        eval(typed, variables)
    assert caught[0].filename == "<string>"  # the line of the caller


def test_a_word_for_an_argument_that_is_passed_is_refused(variables):
    with pytest.raises(
        dm.InputError, match=r"target: no argument of evaluate\. Did you mean 'y_true'\? It is passed, too"
    ):
        run("dm.evaluate(y, s, target=y)", variables)


def test_a_function_gets_what_the_name_of_its_second_parameter_stands_for():
    seen: dict[str, set[float]] = {"predictions": set(), "scores": set()}

    def of_predictions(y_true, y_pred):
        seen["predictions"] |= {*y_pred.tolist()}
        return 0.0

    def of_scores(y_true, y_prob):
        seen["scores"] |= {*y_prob.tolist()}
        return 0.0

    dm.evaluate(Y[:20], S[:20], metrics=[of_predictions, of_scores], missingness="random", method="monte_carlo")
    assert seen == {"predictions": {0, 1}, "scores": {*S[:20].tolist()}}
    with pytest.raises(
        dm.InputError, match=r"the second parameter of 'value' is called 'p'\. A function gets scores if"
    ):
        dm.evaluate(Y[:20], S[:20], metrics={"value": lambda y, p: 0.0})


def test_attributes_without_a_counterpart_are_python_errors():
    result = dm.evaluate([1, 0, 1], [0.9, 0.2, 0.6], metrics="recall")
    for owner in (dm, result, result["recall"]):
        assert not hasattr(owner, "no_such_attribute")
    with pytest.raises(AttributeError, match="Did you mean 'to_frame'"):
        result.to_frames  # noqa: B018  # the access is the test
