"""What is asked is parsed once, however many groups it is asked of."""

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
import darkmetrics.question as questions
from darkmetrics.question import Question

ASKED: dict[str, Any] = {
    "metrics": ["recall", "accuracy"],
    "method": "auto",
    "zero_division": "warn",
    "confidence_level": 0.9,
}


def table_of(groups: int) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    score = rng.random(60 * groups)
    label = np.where(rng.random(score.size) < 0.3, np.nan, rng.random(score.size) < score)
    return pd.DataFrame({"g": np.arange(score.size) % groups, "y": label, "p": score})


def counting(monkeypatch: Any, module: Any, name: str) -> list[Any]:
    calls: list[Any] = []
    plain = getattr(module, name)

    def counted(*given: Any, **named: Any) -> Any:
        calls.append(given)
        return plain(*given, **named)

    monkeypatch.setattr(module, name, counted)
    return calls


PARSERS = ("metrics_from", "method_from", "mechanism_from", "fill_value", "check_level")


@pytest.mark.parametrize("name", PARSERS)
def test_arguments_are_parsed_once_for_all_groups(monkeypatch, name):
    calls = counting(monkeypatch, questions, name)
    dm.evaluate_by("y", "p", data=table_of(7), by="g", missingness="by_score", metrics="recall")
    assert len(calls) == 1


@pytest.mark.parametrize("name", PARSERS)
def test_arguments_of_one_evaluation_are_parsed_once(monkeypatch, name):
    calls = counting(monkeypatch, questions, name)
    rows = table_of(1)
    dm.evaluate(rows["y"], rows["p"], missingness="by_score", metrics="recall")
    dm.evaluate("y", "p", data=rows, missingness="by_score", metrics="recall")
    assert len(calls) == 2


def test_metrics_are_parsed_once_for_all_targets_and_repeats(monkeypatch):
    """Wherever it is imported: each module that parses metrics is watched."""
    modules = [module for name, module in sys.modules.items() if name.startswith("darkmetrics.")]
    calls = [counting(monkeypatch, m, "metrics_from") for m in modules if hasattr(m, "metrics_from")]
    targets = {"recall": 0.5, "precision": 0.5, "fbeta(2)": 0.5}
    groups = dm.evaluate_by("y", "p", data=table_of(6), by="g", missingness="by_score", metrics=list(targets))
    groups.alerts(targets)
    assert sum(map(len, calls)) == 1
    rows = table_of(1)
    dm.backtest(
        rows["y"],
        rows["p"],
        n_repeats=3,
        metrics="recall",
        missingness=[dm.missing.Fixed(0.5), dm.missing.TrainingPrevalence()],
    )
    assert sum(map(len, calls)) == 2


def test_reference_rows_are_read_once_for_all_groups(monkeypatch):
    calls = counting(monkeypatch, dm.EvaluationSet, "__init__")
    reference = ([1, 0] * 20, np.tile([0.8, 0.3], 20) + np.linspace(0.0, 0.1, 40))
    settings: dict[str, Any] = {"y_true": "y", "y_score": "p", "metrics": "recall"}
    dm.evaluate_by(
        data=table_of(5),
        by="g",
        missingness=dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(*reference)),
        **settings,
    )
    assert len(calls) == 1


def test_a_question_answers_what_evaluate_says():
    rows = table_of(1)
    data = dm.EvaluationSet(rows["y"], rows["p"])
    answer = Question.of(**ASKED).answer(data, np.random.default_rng(0), {})
    said = dm.evaluate(rows["y"], rows["p"], metrics=["recall", "accuracy"])
    assert answer.to_dict() == said.to_dict()


def test_a_question_believes_probabilities_unless_something_else_is_said():
    data = dm.EvaluationSet([1, 0, None], [0.9, 0.2, 0.7], missingness=dm.missing.Fixed([0.25]))
    believed = Question.of(**ASKED).answer(data, np.random.default_rng(0), {})
    assert believed.posterior.probability.tolist() == [[0.25]]
    half = Question.of(**ASKED | {"missingness": dm.missing.Fixed(0.5)}).answer(data, np.random.default_rng(0), {})
    assert half.posterior.probability.tolist() == [[0.5]]
