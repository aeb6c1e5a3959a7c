"""ExponentialTilt: a stated prevalence of the missing rows is met exactly, and changes the base model the least."""

from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit, rel_entr

import darkmetrics as dm
from darkmetrics import EvaluationSet, InputError
from darkmetrics.missing import (
    ByLabel,
    ByScore,
    ExponentialTilt,
    Fixed,
    Mechanism,
    Posterior,
    TrainingPrevalence,
    Unknown,
)
from darkmetrics.missingness.tilted import find_shifts

NAN = float("nan")
PREVALENCES = [1e-6, 0.01, 0.2, 0.5, 0.75, 0.999]


def data_of(n=300, seed=0, decimals=2, probability=False):
    rng = np.random.default_rng(seed)
    s = np.round(rng.uniform(0.02, 0.98, n), decimals)
    y = np.where(rng.random(n) < 0.4, NAN, (rng.random(n) < s).astype(float))
    return EvaluationSet(y, s, missingness=Fixed(rng.random(n)) if probability else None)


def many_cells():
    return data_of(n=8000, decimals=9)


class Written(Mechanism):
    """Probabilities that a test writes down."""

    def __init__(self, *probability):
        self.probability = np.atleast_2d(probability)

    def posterior(self, data):
        k = len(self.probability)
        return Posterior(np.full(k, 1.0 / k), self.probability)

    def describe(self, data, posterior):
        return "Written."


BASES: dict[str, Any] = {
    "one half": (Fixed(0.5), data_of),
    "prevalence": (TrainingPrevalence(), data_of),
    "given": (Fixed(), lambda: data_of(probability=True)),
    "by score": (ByScore(), data_of),
    "one curve": (ByScore(uncertainty=False), data_of),
    "isotonic": (ByScore("isotonic"), data_of),
    "by label": (ByLabel(), data_of),
    "unknown": (Unknown(), data_of),
    "buckets": (ByScore(), many_cells),
}


def mean(data, posterior):
    """Mean probability over the missing rows and the nodes, row by row."""
    per_cell = posterior.on_all_cells.probability
    rows = np.repeat(np.arange(data.missing_cells.size), data.missing_counts)
    return float(posterior.weight @ per_cell[:, rows].mean(axis=1))


@pytest.mark.parametrize("base", BASES)
def test_the_mean_probability_is_the_stated_prevalence(base):
    model, make = BASES[base]
    data = make()
    before = None
    for e in PREVALENCES:
        if base == "isotonic" and not 0.2 <= e <= 0.75:
            continue  # its curves are sure of some labels, so that not every share can be reached
        posterior = ExponentialTilt(model, prevalence=e).posterior(data)
        assert mean(data, posterior) == pytest.approx(e, abs=1e-10)
        if before is not None:
            # Every single probability rises with the stated share; those of 0 and 1 stay.
            assert (posterior.probability >= before).all()
            assert posterior.probability.sum() > before.sum()
        before = posterior.probability


def test_any_share_is_met_whatever_the_last_bit_of_a_step_is():
    # Where a Newton step has no length, the search once ended in the middle of its bracket: a stated 0.01 became 0.09.
    rng = np.random.default_rng(0)
    for _ in range(2000):
        p = rng.choice([0.5, 0.25, rng.random()], size=(1, rng.integers(1, 6)))
        rows = rng.integers(1, 100, p.size).astype(float)
        e = rng.choice([rng.random(), 10.0 ** rng.uniform(-9.0, -0.1)])
        [shift] = find_shifts(Posterior(np.ones(1), p), rows, [e])
        found = expit(logit(p[0]) + shift) @ rows / rows.sum()
        assert found == pytest.approx(e, rel=1e-9)


@pytest.mark.parametrize("base", BASES)
def test_at_its_own_mean_the_base_stays_as_it_is(base):
    model, make = BASES[base]
    data = make()
    own = dm.missing.mechanism_from(model).posterior(data)
    posterior = ExponentialTilt(model, prevalence=mean(data, own)).posterior(data)
    np.testing.assert_allclose(posterior.probability, own.probability, atol=1e-10)
    np.testing.assert_array_equal(posterior.weight, own.weight)


@pytest.mark.parametrize("base", BASES)
def test_delta_moves_all_log_odds_alike(base):
    model, make = BASES[base]
    data = make()
    own = dm.missing.mechanism_from(model).posterior(data)
    assert ExponentialTilt(model, delta=0.0).posterior(data).probability.tolist() == own.probability.tolist()
    moved = ExponentialTilt(model, delta=0.7).posterior(data)
    odds = own.probability / np.maximum(1.0 - own.probability, 1e-300) * np.exp(0.7)
    expected = np.where(own.probability == 1.0, 1.0, odds / (1.0 + odds))
    np.testing.assert_allclose(moved.probability, expected, rtol=1e-9)


def test_no_other_probabilities_with_that_mean_are_nearer_to_the_base():
    rng = np.random.default_rng(0)
    p = np.array([0.1, 0.25, 0.5, 0.9])
    data = EvaluationSet([None] * 4 + [1, 0], [0.1, 0.2, 0.3, 0.4, 0.9, 0.05])
    q = ExponentialTilt(Written(p), prevalence=0.6).posterior(data).probability[0]

    def divergence(a):
        """Kullback-Leibler divergence of independent labels with chances `a` from the base."""
        return float((rel_entr(a, p) + rel_entr(1.0 - a, 1.0 - p)).sum())

    best = divergence(q)
    for _ in range(2000):
        step = rng.normal(size=4) * rng.choice([0.3, 0.03, 0.003])
        other = q + step - step.mean()  # the same mean
        if ((other > 0.0) & (other < 1.0)).all():
            assert divergence(other) > best
    # The control: the stated share for every row has the same mean and is much farther off.
    assert divergence(np.full(4, 0.6)) > best + 0.01


def test_rows_count_and_not_cells():
    data = EvaluationSet([None] * 9 + [None, 1, 0], [0.2] * 9 + [0.8, 0.9, 0.1])
    p = ExponentialTilt(Written([0.3, 0.6]), prevalence=0.5).posterior(data).probability[0]
    assert (9 * p[0] + p[1]) / 10 == pytest.approx(0.5, abs=1e-12)
    assert logit(p[1]) - logit(p[0]) == pytest.approx(logit(0.6) - logit(0.3), abs=1e-12)


def test_what_is_certain_stays_certain():
    data = EvaluationSet([None] * 4 + [1], [0.1, 0.2, 0.3, 0.4, 0.9])
    p = ExponentialTilt(Written([0.0, 0.2, 0.7, 1.0]), prevalence=0.6).posterior(data).probability[0]
    assert p[0] == 0.0
    assert p[3] == 1.0
    assert p.mean() == pytest.approx(0.6, abs=1e-12)


@pytest.mark.parametrize(("prevalence", "chances"), [(0.1, [1.0, 0.5, 0.5]), (0.9, [0.0, 0.5, 0.5]), (0.5, [0.0] * 3)])
def test_a_share_that_cannot_be_reached_is_refused(prevalence, chances):
    data = EvaluationSet([None] * 3 + [1], [0.1, 0.2, 0.3, 0.9])
    with pytest.raises(
        InputError, match=r"prevalence: .* cannot be reached\. Some labels are certain under the base mechanism"
    ):
        ExponentialTilt(Written(chances), prevalence=prevalence).posterior(data)


@pytest.mark.parametrize("prevalence", [0, 1, 0.0, 1.0, -0.1, 1.5])
def test_a_prevalence_outside_is_refused(prevalence):
    with pytest.raises(InputError, match=r"prevalence: .* It must lie strictly between 0 and 1\."):
        ExponentialTilt(Fixed(0.5), prevalence=prevalence)


@pytest.mark.parametrize("number", [NAN, float("inf"), "0.4", [0.4], True])
@pytest.mark.parametrize("name", ["prevalence", "delta"])
def test_what_is_no_finite_number_is_refused(name, number):
    with pytest.raises(InputError, match=rf"{name}: .* It must be a finite number\."):
        ExponentialTilt(Fixed(0.5), **{name: number})


def test_one_statement_is_needed_and_no_more():
    for settings in ({}, {"prevalence": 0.2, "delta": 0.1}):
        with pytest.raises(
            InputError, match=r"prevalence: (neither|both) of prevalence= and delta= passed\. State one"
        ):
            ExponentialTilt(Fixed(0.5), **settings)


def test_a_base_that_does_not_exist_is_refused():
    with pytest.raises(InputError, match=r"missingness: unknown mechanism 'by_scor'\. Did you mean 'by_score'\?"):
        ExponentialTilt("by_scor", prevalence=0.2).posterior(data_of())


def test_the_sentence_has_the_statement_and_the_base():
    data = data_of()
    for model, start in [
        (
            ExponentialTilt(Fixed(0.5), prevalence=0.4),
            "Stated: 0.4 of the missing rows are positive, on average. Before that,",
        ),
        (
            ExponentialTilt(delta=-0.5),
            "Stated: the log odds of missing rows are moved by -0.5. Before that, assumed: labels are",
        ),
    ]:
        assert model.describe(data, model.posterior(data)).startswith(start)


def test_a_stated_move_does_not_look_like_a_difference_found():
    rng = np.random.default_rng(1)
    s = rng.random(1000)
    y = np.where(rng.random(1000) < 0.3, NAN, (rng.random(1000) < s).astype(float))
    # Labels are missing at random: no warning, and the base still says so.
    result = dm.evaluate(y, s, missingness=ExponentialTilt("unknown", delta=1.0))
    assert "Before that, not stated why labels are missing" in result.assumption
    assert "Missing rows have" not in result.assumption


def test_tilts_add_up():
    data = data_of()
    twice = ExponentialTilt(ExponentialTilt(Fixed(0.5), delta=0.3), delta=0.4).posterior(data)
    np.testing.assert_allclose(twice.probability, expit(0.7), rtol=1e-12)


def test_the_estimate_follows_the_statement():
    data = data_of()
    previous = -1.0
    for e in (0.1, 0.4, 0.8):
        distribution = dm.evaluate(data, missingness=ExponentialTilt(Fixed(0.3), prevalence=e), metrics="precision")[
            "precision"
        ]
        assert distribution.mean() > previous
        previous = distribution.mean()


def test_without_weight_on_missing_rows_there_is_nothing_to_tilt():
    data = EvaluationSet([1, 0, None], [0.9, 0.1, 0.5], sample_weight=[1, 1, 0])
    result = dm.evaluate(data, missingness=ExponentialTilt(Fixed(0.5), prevalence=0.3), metrics="accuracy")
    assert result["accuracy"].mean() == 1.0


@pytest.mark.parametrize("shift", [-800.0, -30.0, -0.7, 0.0, 2.5, 40.0, 800.0])
def test_shifted_log_odds_neither_overflow_nor_move_certain_labels(shift):
    p = np.array([[0.0, 1e-300, 0.2, 0.5, 1.0 - 1e-12, 1.0], [0.0, 1e-6, 0.3, 0.9, 0.99, 1.0]])
    shifted = Posterior(np.array([0.4, 0.6]), p).shift_log_odds(shift).probability
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(shifted, expit(logit(p) + shift), rtol=1e-12, atol=1e-300)
    assert shifted[:, [0, -1]].tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_split_columns_shift_cells_of_one_kind():
    posterior = Posterior(np.ones(1), np.array([[0.2, 0.6]]), column=np.array([0, 0, 1, 1]))
    kind = np.array([0, 1, 1, 1])
    split, of_column = posterior.split_columns(kind)
    np.testing.assert_array_equal(split.on_all_cells.probability, posterior.on_all_cells.probability)
    np.testing.assert_array_equal(of_column[split.column], kind)
    shifted = split.shift_log_odds(np.where(of_column == 1, 0.5, 0.0)).on_all_cells.probability[0]
    np.testing.assert_allclose(shifted, expit(logit([0.2, 0.2, 0.6, 0.6]) + 0.5 * kind))
