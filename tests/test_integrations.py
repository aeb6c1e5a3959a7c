"""MLflow and scikit-learn: what is logged is what the result says, and what is shown is what its users expect."""

import json
import math
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import darkmetrics as dm
from darkmetrics.integrations import sklearn as displays
from darkmetrics.integrations.mlflow import log_evaluation, log_groups

mpl.use("Agg")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    truth = rng.random(150) < 1.0 / (1.0 + np.exp(-2.0 * X[:, 0]))
    return SimpleNamespace(X=X, truth=truth, y=np.where(rng.random(150) < 0.3, np.nan, truth))


# MLflow, with real stores: files in a folder, and a database, which is what MLflow makes by itself -----------------


@pytest.fixture(scope="module", params=["files", "database"])
def store(request, tmp_path_factory):
    """A tracking store of its own; MLflow wants to be told that it may be one of files."""
    mlflow = pytest.importorskip("mlflow")
    folder, before = tmp_path_factory.mktemp("runs"), mlflow.get_tracking_uri()
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        patch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        warnings.simplefilter("ignore")
        if request.param == "database":
            for needed in ("sqlalchemy", "alembic"):
                pytest.importorskip(needed)
        mlflow.set_tracking_uri(folder.as_uri() if request.param == "files" else f"sqlite:///{folder}/runs.db")
        mlflow.create_experiment("darkmetrics", artifact_location=(folder / "artifacts").as_uri())
        mlflow.set_experiment("darkmetrics")
        yield mlflow
        mlflow.set_tracking_uri(before)


@pytest.fixture
def logged(store):
    """Runs a function inside a run; the run as the store has it, and its client."""

    def go(function):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MLflow's own
            with store.start_run() as run:
                returned = function()
            client = store.MlflowClient()
            return SimpleNamespace(run=client.get_run(run.info.run_id), client=client, returned=returned)

    return go


def test_a_run_has_each_metric_with_its_interval_and_what_was_assumed(logged, store, rows):
    result = dm.evaluate(
        rows.y, 1.0 / (1.0 + np.exp(-rows.X[:, 0])), missingness="random", metrics=["recall", "fbeta(2)"]
    )
    done = logged(lambda: log_evaluation(result, targets={"recall": 0.5}, report=True))
    metrics = done.run.data.metrics
    assert metrics == done.returned
    assert metrics == pytest.approx(
        result.to_dict(flat=True) | {"recall_target_probability": result.target_probability("recall", 0.5)}
    )
    assert (metrics["recall_low"], metrics["recall_high"]) == pytest.approx(result["recall"].interval(0.9))
    assert "fbeta_2_low" in metrics
    assert done.run.data.tags["darkmetrics.assumption"] == result.assumption
    assert done.run.data.tags["darkmetrics.scope"] == "rows"
    files = {file.path for file in done.client.list_artifacts(done.run.info.run_id, "darkmetrics")}
    assert files == {"darkmetrics/evaluation.json", "darkmetrics/report.html"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = store.artifacts.download_artifacts(
            run_id=done.run.info.run_id, artifact_path="darkmetrics/evaluation.json"
        )
    assert json.loads(Path(path).read_text(encoding="utf-8")) == json.loads(json.dumps(result.to_dict()))


def test_no_nan_is_logged(logged):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = dm.evaluate([0, 0, None], [0.1, 0.2, 0.3], missingness=dm.missing.Fixed(0.0), zero_division=math.nan)
    assert any(math.isnan(distribution.mean()) for distribution in result.values())
    metrics = logged(lambda: log_evaluation(result, prefix="odd (", step=3)).run.data.metrics
    assert all(math.isfinite(value) for value in metrics.values())
    assert "odd _rows" in metrics
    assert "odd _roc_auc" not in metrics


def test_periods_are_steps_and_segments_come_before_the_name(logged, rows):
    table = pd.DataFrame({"y": rows.y, "p": 1.0 / (1.0 + np.exp(-rows.X[:, 0])), "shop": np.arange(150) % 2})
    table["month"] = pd.to_datetime([f"2026-0{1 + i // 50}-01" for i in range(150)])
    told: dict[str, Any] = {"time": "month", "period": "month", "y_true": "y", "y_score": "p", "metrics": "recall"}
    told["missingness"] = "random"
    months = dm.evaluate_by(data=table, **told)
    done = logged(lambda: log_groups(months))
    history = done.client.get_metric_history(done.run.info.run_id, "recall_low")
    lows = [group.metrics["recall"].low for group in months.groups.values()]
    assert [(point.step, point.value) for point in history] == list(enumerate(lows))
    both = dm.evaluate_by(data=table, by="shop", **told).alerts({"recall": 0.5})
    done = logged(lambda: log_groups(both))
    assert sorted(done.returned) == sorted(
        f"{shop}/recall{end}" for shop in (0, 1) for end in ("", "_low", "_high", "_probability_missed")
    )
    assert set(done.run.data.metrics) == set(done.returned)


def test_another_kind_of_result_is_refused():
    with pytest.raises(dm.InputError, match="result: expected what evaluate returns, got dict"):
        log_evaluation({})  # type: ignore[arg-type]
    with pytest.raises(dm.InputError, match="result: expected what evaluate_by returns, got dict"):
        log_groups({})  # type: ignore[arg-type]


def test_without_mlflow_it_says_what_to_install(monkeypatch, rows):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with pytest.raises(ModuleNotFoundError, match="pip install mlflow-skinny"):
        log_evaluation(dm.evaluate([1, 0, 1], [0.9, 0.2, 0.7]))


def test_importing_the_package_or_the_integrations_imports_none_of_theirs():
    code = """
import sys, darkmetrics
assert not any(name.startswith("darkmetrics.integrations") for name in sys.modules)
import darkmetrics.integrations.mlflow, darkmetrics.integrations.sklearn
print([name for name in ("mlflow", "sklearn", "matplotlib") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# scikit-learn ------------------------------------------------------------------------------------------------------


def test_an_estimator_is_evaluated_as_its_probabilities_are(rows):
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows.X, rows.truth)
    found = displays.from_estimator(model, rows.X, rows.y, missingness="random")
    scores = model.predict_proba(rows.X)[:, 1]
    assert found.to_dict() == dm.evaluate(rows.y, scores, missingness="random").to_dict()
    assert displays.from_predictions(rows.y, scores, missingness="random").to_dict() == found.to_dict()


def test_a_decision_function_decides_at_zero(rows):
    model = RidgeClassifier().fit(rows.X, rows.truth)
    found = displays.from_estimator(model, rows.X, rows.y, missingness="random")
    assert found.data.threshold == 0.0
    decided = dm.EvaluationSet(rows.y, model.decision_function(rows.X), y_pred=model.predict(rows.X).astype(int))
    assert found.data.counts() == decided.counts()
    assert found.labeled_only["accuracy"] == dm.paper.complete_case(decided)["accuracy"]


@pytest.mark.parametrize("model", [LogisticRegression(), RidgeClassifier()], ids=lambda model: type(model).__name__)
def test_words_are_labels_too_and_either_may_be_positive(rows, model):
    words = np.where(rows.truth, "fraud", "fine")
    model.fit(rows.X, words)
    partly = [None if np.isnan(y) else word for y, word in zip(rows.y, words, strict=True)]
    told: dict[str, Any] = {"missingness": "random", "metrics": ["recall", "specificity", "roc_auc"]}
    # The second of the sorted classes is positive, as in scikit-learn.
    fraud = displays.from_estimator(model, rows.X, partly, **told)
    fine = displays.from_estimator(model, rows.X, partly, pos_label="fine", **told)
    assert fraud.data.pos_label == "fraud"
    assert fraud.labeled_only["recall"] == pytest.approx(fine.labeled_only["specificity"])
    assert fraud.labeled_only["roc_auc"] == pytest.approx(fine.labeled_only["roc_auc"])


@pytest.mark.parametrize("kind", ["MetricsDisplay", "RocCurveDisplay", "PrecisionRecallDisplay"])
def test_displays_are_as_those_of_scikit_learn(rows, kind):
    from sklearn.metrics import RocCurveDisplay

    cls = getattr(displays, kind)
    X, y = rows.X[:50], rows.y[:50]  # what a display can be asked does not depend on how many rows there are
    model = LogisticRegression().fit(rows.X, rows.truth)
    _, ax = plt.subplots()
    shown = cls.from_estimator(model, X, y, missingness="random", ax=ax)
    assert isinstance(shown, cls)
    assert shown.ax_ is ax
    assert shown.figure_ is ax.figure
    assert ax.get_title() == "LogisticRegression"
    theirs = {name for name in dir(RocCurveDisplay) if name in ("from_estimator", "from_predictions", "plot")}
    assert theirs <= set(dir(cls))
    again = cls.from_predictions(y, model.predict_proba(X)[:, 1], missingness="random", name="mine")
    assert again.ax_.get_title() == "mine"
    assert again.plot(name="other") is again
    assert again.ax_.get_title() == "other"


def test_the_display_of_roc_has_the_law_of_its_area(rows):
    model = LogisticRegression().fit(rows.X, rows.truth)
    shown = displays.RocCurveDisplay.from_estimator(model, rows.X, rows.y, missingness="random")
    expected = dm.evaluate(rows.y, model.predict_proba(rows.X)[:, 1], missingness="random")["roc_auc"]
    assert shown.roc_auc.mean() == expected.mean()
    known = displays.PrecisionRecallDisplay.from_estimator(model, rows.X, rows.truth)
    assert known.average_precision.std() == 0.0


@pytest.mark.parametrize(
    ("call", "answer"),
    [
        (
            lambda rows: displays.from_estimator(LogisticRegression(), rows.X, rows.y),
            "no classes_, so it is not fitted",
        ),
        (lambda rows: displays.from_estimator(object(), rows.X, rows.y), "object has no predict_proba and no decision"),
        (
            lambda rows: displays.from_estimator(fitted(rows), rows.X, rows.y, pos_label=7),
            r"pos_label: 7 is none of the classes \[False, True\]",
        ),
        (
            lambda rows: displays.from_estimator(fitted(rows), rows.X, rows.y, response_method="predict"),
            "response_method: 'predict'. Choose from",
        ),
        (
            lambda rows: displays.from_estimator(LogisticRegression().fit(rows.X, np.arange(150) % 3), rows.X, rows.y),
            "has 3 classes. It must be fitted, for two classes",
        ),
        (lambda rows: displays.RocCurveDisplay(rows), "evaluation: expected what evaluate"),
    ],
)
def test_mistakes_get_one_clear_error(rows, call, answer):
    with pytest.raises(dm.InputError, match=answer):
        call(rows)


def fitted(rows):
    return LogisticRegression().fit(rows.X, rows.truth)
