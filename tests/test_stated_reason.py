"""Someone who has said why labels are missing is not asked to say it, and a diagnosis does not contradict its table."""

import re
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy import stats

import darkmetrics as dm
from darkmetrics.diagnosis import CalibrationCheck, MechanismEstimate, ReliabilityBin
from darkmetrics.missing import ByLabel, ByScore, ByScoreAndLabel, ExponentialTilt, Mechanism, Unknown
from darkmetrics.missingness.base import Estimate

METRICS = ("precision", "recall")


def late_frauds(n: int = 1000, seed: int = 2) -> tuple[Any, Any, Any]:
    """Labels, scores and truth of rows whose labels are missing by label: scores of missing rows are higher."""
    rng = np.random.default_rng(seed)
    score = rng.beta(1, 3, n)
    fraud = rng.random(n) < score
    late = rng.random(n) < np.where(fraud, 0.6, 0.2)
    return np.where(late, np.nan, fraud), score, fraud.astype(float)


def by_score(n: int = 2000, seed: int = 0) -> tuple[Any, Any]:
    """Labels and scores of rows whose labels are missing in the middle of the scores: no mixture of the classes."""
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    y = (rng.random(n) < score).astype(float)
    return np.where(rng.random(n) < np.where(np.abs(score - 0.5) < 0.2, 0.8, 0.1), np.nan, y), score


@dataclass(frozen=True)
class Own(Mechanism):
    """A mechanism of the user's own, which builds on the default one."""

    def posterior(self, data: Any) -> Any:
        return Unknown().posterior(data)

    def describe(self, data: Any, posterior: Any) -> str:
        return "Assumed: my own."


Y, SCORE, TRUTH = late_frauds()
REFERENCE = (TRUTH[:400], SCORE[:400])
# Every way to say why labels are missing, or what their probabilities are.
STATED: dict[str, dict[str, Any]] = {
    **{word: {"missingness": word} for word in ("random", "by_score", "by_label", "unknown")},
    "by_score_and_label": {"missingness": dm.missing.ByScoreAndLabel(reference=dm.missing.Reference(*REFERENCE))},
    "ByScore": {"missingness": ByScore()},
    "ByLabel": {"missingness": ByLabel()},
    "ByScoreAndLabel": {"missingness": ByScoreAndLabel(dm.missing.Reference(*REFERENCE))},
    "TrainingPrevalence": {"missingness": dm.missing.TrainingPrevalence()},
    "one half": {"missingness": dm.missing.Fixed(0.5)},
    "ExponentialTilt": {"missingness": ExponentialTilt(Unknown(), prevalence=0.4)},
    "ExponentialTilt by nothing": {"missingness": ExponentialTilt(Unknown(), delta=0.0)},
    "ExponentialTilt twice": {"missingness": ExponentialTilt(ExponentialTilt(Unknown(), delta=0.1), delta=0.1)},
    "a model of one's own": {"missingness": Own()},
    "a number": {"missingness": dm.missing.Fixed(0.3)},
    "an array": {"missingness": dm.missing.Fixed(SCORE)},
    "reference rows": {"missingness": dm.missing.Reference(*REFERENCE)},
    "reference rows of Unknown": {"missingness": dm.missing.Unknown(reference=dm.missing.Reference(*REFERENCE))},
}


@pytest.mark.parametrize("said", STATED.values(), ids=STATED)
def test_no_warning_about_the_reason_where_one_was_stated(said):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", dm.MissingnessWarning)
        dm.evaluate(Y, SCORE, metrics=METRICS, **said)
    # Reference rows are no statement: that the labeled rows contradict them is told.
    assert all("contradict the reference rows" in str(warning.message) for warning in caught)
    assert len(caught) == any(said is STATED[name] for name in ("reference rows", "reference rows of Unknown"))


@pytest.mark.parametrize("rows", [(Y, SCORE), by_score(seed=5), (Y[::7], SCORE[::7])], ids=["differ", "score", "few"])
def test_unknown_silences_only_the_request_to_state_a_mechanism(rows):
    def evaluate(missingness: str | None) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dm.MissingnessWarning)
            return dm.evaluate(*rows, metrics=METRICS, missingness=missingness)

    default, unknown = evaluate(None), evaluate("unknown")
    (reported,) = (str(warned) for warned in default.warnings if warned.category == "MissingnessWarning")
    (kept,) = (str(warned) for warned in unknown.warnings if warned.category == "MissingnessWarning")
    assert reported.startswith(kept)
    assert re.match(r" (Set missingness=|If only the score decides)", reported.removeprefix(kept))
    assert unknown.assumption == default.assumption
    assert unknown.assumption in str(unknown)


def test_unknown_does_not_silence_that_the_reference_rows_are_contradicted():
    with pytest.warns(dm.MissingnessWarning, match="contradict the reference rows"):
        dm.evaluate(
            Y, SCORE, metrics=METRICS, missingness=dm.missing.Unknown(reference=dm.missing.Reference(*REFERENCE))
        )


def test_unknown_keeps_what_a_comparison_reports():
    scores = {"one": SCORE, "two": SCORE**2}
    with pytest.warns(dm.MissingnessWarning) as caught:
        dm.compare(Y, scores, metrics=METRICS)
    with warnings.catch_warnings():
        warnings.simplefilter("error", dm.MissingnessWarning)
        unknown = dm.compare(Y, scores, metrics=METRICS, missingness="unknown")
    (kept,) = (str(warned) for warned in unknown.warnings if warned.category == "MissingnessWarning")
    assert any(str(warning.message).startswith(f"{kept} Set missingness='by_score' or") for warning in caught)


@pytest.mark.parametrize("said", STATED.values(), ids=STATED)
def test_a_diagnosis_asks_nobody_to_state_what_was_stated(said):
    for y, score in ((Y, SCORE), by_score(n=Y.size), (Y[:60], SCORE[:60])):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            told = {"missingness": dm.missing.Fixed(score)} if said is STATED["an array"] else said
            verdict = dm.evaluate(y, score, metrics=METRICS, **told).diagnosis.verdict
        assert "State missingness" not in verdict


@pytest.mark.parametrize("said", [{}, {"missingness": None}, {"missingness": dm.missing.Unknown(n_draws=32)}], ids=str)
def test_who_has_said_nothing_is_warned_and_asked(said):
    with pytest.warns(dm.MissingnessWarning, match="Set missingness='by_score' or 'by_label'"):
        result = dm.evaluate(Y, SCORE, metrics=METRICS, **said)
    assert result.diagnosis.stated is None
    assert "State missingness='by_score' or missingness='by_label' if you know it" in result.diagnosis.verdict


@pytest.mark.parametrize("said", [{"missingness": "by_label"}, {"missingness": ByLabel()}], ids=str)
def test_a_stated_reason_that_the_scores_refute_is_told_to_who_stated_it(said):
    with pytest.warns(dm.AssumptionWarning, match="The rows contradict missingness='by_label'") as caught:
        result = dm.evaluate(*by_score(), metrics=METRICS, **said)
    assert len(caught) == 1
    assert "'by label' was stated, and the scores refute it" in result.diagnosis.verdict


@pytest.mark.parametrize(
    "said",
    [{"missingness": "by_score"}, {"missingness": dm.missing.Fixed(0.5)}, {"missingness": dm.missing.Fixed(0.4)}],
    ids=str,
)
def test_the_scores_refute_no_other_statement(said):
    with warnings.catch_warnings():
        warnings.simplefilter("error", dm.MissingnessWarning)
        dm.evaluate(*by_score(), metrics=METRICS, **said)


def test_groups_are_told_of_a_refuted_statement_in_its_own_words():
    pd = pytest.importorskip("pandas")
    y, score = by_score()
    table = pd.DataFrame({"y": y, "p": score, "k": ["a", "b"] * 1000})
    with pytest.warns(dm.AssumptionWarning, match="the rows contradict what was assumed about missing labels"):
        dm.evaluate_by("y", "p", data=table, by="k", metrics=METRICS, missingness="by_label")


def test_answers_that_agree_in_print_are_not_given_as_two():
    still = dm.metrics.LossMetric(name="still", loss=lambda y, score: 0.5 + 1e-6 * y)
    with pytest.warns(dm.MissingnessWarning) as caught:
        dm.evaluate(Y, SCORE, metrics=["prevalence", still])
    text = str(caught[0].message)
    assert "still 0.500 either way" in text
    (prevalence,) = re.findall(r"prevalence ([\d.]+) or ([\d.]+)", text)
    assert prevalence[0] != prevalence[1]


# ------------------------------------------------------------------------------------------------------- the words


def diagnosis_with(**changed: Any) -> dm.diagnosis.Diagnosis:
    rng = np.random.default_rng(7)
    score = rng.random(2000)
    y = np.where(rng.random(2000) < 0.3, np.nan, rng.random(2000) < score)
    found = dm.diagnose(y, score, metrics=METRICS)
    for name, value in changed.items():
        object.__setattr__(found, name, value)
    return found


def reasons(*precision: float, recall: float = 0.5) -> dict[str, MechanismEstimate]:
    names = ("by score", "by label")
    return {
        name: MechanismEstimate(
            Estimate(0.3, 0.2, 0.4), {"precision": Estimate(p, p, p), "recall": Estimate(recall, 0.4, 0.6)}
        )
        for name, p in zip(names, precision, strict=True)
    }


@pytest.mark.parametrize("pair", [(0.91651, 0.91749), (0.9170001, 0.9174), (0.5, 0.5), (0.0, 0.0004), (1.0, 0.9996)])
def test_no_metric_moves_from_a_number_to_the_same_number(pair):
    assert "moves" not in diagnosis_with(mechanisms=reasons(*pair)).verdict


def test_a_metric_that_moves_is_shown_in_digits_that_differ():
    assert "; precision moves most, from 0.916 to 0.918." in diagnosis_with(mechanisms=reasons(0.9164, 0.9176)).verdict


def test_a_metric_that_is_undefined_under_a_reason_does_not_move():
    assert "moves" not in diagnosis_with(mechanisms=reasons(0.9, np.nan)).verdict


# ----------------------------------------------------------------------------------------------------- calibration


def bins(*rows: tuple[int, float, float], p_value: float) -> CalibrationCheck:
    """A check with bins of so many rows, predicted and actual share of positives."""
    table = tuple(ReliabilityBin(i / 10, (i + 1) / 10, n, e, o) for i, (n, e, o) in enumerate(rows))
    return CalibrationCheck(statistic=1.0, dof=7, p_value=p_value, table=table)


FITS = [(1000, share / 10, share / 10) for share in range(1, 10)]


@pytest.mark.parametrize("p_value", [1e-6, 0.2], ids=["refuted", "not refuted"])
def test_a_bin_that_is_clearly_off_is_named(p_value):
    found = diagnosis_with(calibration=bins((113, 0.231, 12 / 113), *FITS, p_value=p_value))
    assert found.missingness == "no difference in scores"
    assert found.calibration is not None
    assert found.calibration.error < 0.05 * 0.5  # over all rows it is next to nothing
    assert "10.6% of 113 rows with scores from 0 to 0.1 are positive where it says 23.1%" in found.verdict


def test_a_curve_that_does_not_fit_is_named():
    rng = np.random.default_rng(4)
    score = rng.random(2000)
    y = (rng.random(2000) < 0.5 + 0.4 * np.sin(12.0 * score)).astype(float)
    verdict = dm.diagnose(np.where(rng.random(2000) < 0.3, np.nan, y), score, metrics=METRICS).verdict
    assert "does not fit" in verdict


def test_equal_scores_do_not_reassure():
    verdict = diagnosis_with().verdict
    assert verdict.endswith("State missingness='random' if they are, by design; equal scores alone do not show it.")


@pytest.mark.parametrize(("rows", "predicted", "positive"), [(113, 0.231, 12 / 113), (40, 0.5, 0.5), (30, 0.1, 0.0)])
def test_the_p_value_of_a_bin_is_that_of_the_binomial(rows, predicted, positive):
    distribution, k = stats.binom(rows, predicted), round(rows * positive)
    expected = min(1.0, 2.0 * min(distribution.cdf(k), distribution.sf(k - 1)))
    assert ReliabilityBin(0.0, 0.1, rows, predicted, positive).p_value == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize(
    "one", [(20, 0.231, 0.1), (10**6, 0.23, 0.228), (10**6, 0.001, 0.00105)], ids=["chance", "a little", "rare"]
)
def test_a_bin_that_is_off_by_chance_or_by_little_is_not_called_off(one):
    assert bins(one, *FITS, p_value=0.2).off is None
