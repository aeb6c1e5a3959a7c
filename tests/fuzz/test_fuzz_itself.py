"""The fuzzers' own parts: definitions that agree with the oracle's, truths that agree with each other, and controls.

A control is a law that is wrong in one way; the checks must see it.
"""

import math
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.distributions import Discrete, Interval
from fuzz import checks, kin, truth
from fuzz.measures import MEASURES, one_weight
from fuzz.problems import Case, case_of
from fuzz.seeds import choice_of

SEEDS = range(30)


def test_every_registered_metric_is_tried():
    assert {name.partition("(")[0] for name in MEASURES} >= set(dm.metrics.registered_names())


@pytest.mark.parametrize("seed", [3, 8, 21])
def test_a_seed_is_always_the_same_problem(seed):
    one, other = case_of(seed), case_of(seed)
    np.testing.assert_array_equal(one.y, other.y)
    np.testing.assert_array_equal(one.chance, other.chance)
    assert choice_of(seed, one, 6) == choice_of(seed, other, 6)


def test_problems_are_of_all_kinds():
    words = Counter(word for seed in range(300) for word in case_of(seed).words[1:])
    assert len(words) >= 35
    assert min(words.values()) >= 5


def _small(seed: int) -> Case:
    return case_of(seed, largest=8)


@pytest.mark.parametrize("name", [name for name, measure in MEASURES.items() if measure.grouped is not None])
def test_definitions_over_tied_scores_equal_the_oracle(name):
    measure = MEASURES[name]
    for seed in SEEDS:
        case = _small(seed)
        if case.y.size > 100 or (name == "precision_at_k(1)" and case.weight is not None):
            continue
        y, _ = truth._all_labelings(case, truth._classes(case))
        score, owner = np.unique(case.score, return_inverse=True)
        groups = np.eye(score.size)[owner]
        positive, total = (y * case.mass) @ groups, case.mass @ groups
        assert measure.grouped is not None
        found = measure.grouped(positive, total, score, one_weight(case.mass))
        expected = measure.definition(y, case.score, case.decision, case.mass)
        room, _ = checks.blur_of(measure, case)
        np.testing.assert_allclose(found, expected, 10 * room, 10 * room, err_msg=f"seed {seed}")


@pytest.mark.parametrize("name", ["recall", "mcc", "f1", "either_sign", "roc_auc", "gini"])
def test_counted_truths_equal_those_over_all_labelings(name):
    compared = 0
    for seed in SEEDS:
        case = _small(seed).changed(weight=None) if MEASURES[name].rank else _small(seed)
        (listed,) = truth.truths([name], case, {name: math.nan}).values()
        counted = truth._counted(MEASURES[name], case)
        if counted is None or not listed.values.size:
            continue
        compared += 1
        distribution = truth._law(*counted, math.nan)
        room = 1e-8 * max(1.0, float(np.abs(listed.values).max()))
        t = np.concatenate([listed.values - room, listed.values + room])
        np.testing.assert_allclose(distribution.cdf(t), listed.cdf(t), 0, 1e-12, err_msg=f"seed {seed}")
        assert distribution.undefined == pytest.approx(listed.undefined, abs=1e-12)
    assert compared >= 10


@pytest.mark.parametrize("name", ["recall", "average_precision", "log_loss", "interplay", "lift_at_k(0.1)"])
def test_drawn_truths_are_within_their_doubt_of_those_over_all_labelings(name, monkeypatch):
    for seed in range(12):
        case = _small(seed)
        (listed,) = truth.truths([name], case, {name: math.nan}).values()
        with monkeypatch.context() as patched:
            patched.setattr(truth, "_MOST_LABELINGS", 0)
            patched.setattr(truth, "_counted", lambda measure, case: None)
            (drawn,) = truth.truths([name], case, {name: math.nan}, draws=2_000).values()
        assert abs(drawn.undefined - listed.undefined) <= drawn.undefined_doubt + 1e-12
        if not listed.values.size or not drawn.values.size:
            continue
        room = 1e-8 * max(1.0, float(np.abs(listed.values).max()))
        t = np.concatenate([listed.values, 0.5 * (listed.values[1:] + listed.values[:-1])])
        assert np.all(drawn.cdf(t + room) >= listed.cdf(t) - drawn.doubt)
        assert np.all(drawn.cdf(t - room) <= listed.cdf(t) + drawn.doubt)


# --------------------------------------------------------------------------------------------------------- controls


def _twelve() -> tuple[Case, Any, Any]:
    """Twelve missing rows with unequal weights, the library's law of recall, and the true one."""
    rng = np.random.default_rng(0)
    score = np.sort(rng.permutation(1024)[:40]) / 1024
    y = (rng.random(40) < score).astype(float)
    y[rng.permutation(40)[:12]] = math.nan
    decision = (score >= 0.5).astype(np.int64)
    weight = rng.lognormal(0.0, 1.0, 40)
    chance = rng.integers(300, 700, (1, 12)) / 1024
    case = Case(y, score, decision, 0.5, weight, np.ones(1), chance, math.nan)
    (true,) = truth.truths(["recall"], case, {"recall": math.nan}).values()
    return case, checks.ask(case, ["recall"])["recall"], true


def _alarms(distribution: Any) -> list[str]:
    case, _, true = _twelve()
    return checks.wrong_law(distribution, true, case, MEASURES["recall"], Counter())


def test_the_right_law_raises_no_alarm():
    assert not _alarms(_twelve()[1])


def _moved(distribution: Any, mass: float) -> Any:
    """So much of the mass from above the median to below it."""
    below = distribution.atoms < distribution.median()
    low, high = (np.where(side, distribution.masses, 0.0) / distribution.masses[side].sum() for side in (below, ~below))
    return replace(distribution, masses=distribution.masses + mass * (low - high))


def _merged_coarsely(distribution: Any) -> Any:
    atoms = np.round(distribution.atoms, 2)
    values, owner = np.unique(atoms, return_inverse=True)
    return replace(distribution, atoms=values, masses=np.bincount(owner, distribution.masses))


def _merged_finely(distribution: Any) -> Any:
    """As if equality were judged by the largest of values that reach a billion."""
    close = np.concatenate(([True], np.diff(distribution.atoms) > 1e-13 * 1e9))
    starts = np.flatnonzero(close)
    return replace(distribution, atoms=distribution.atoms[starts], masses=np.add.reduceat(distribution.masses, starts))


WRONG: dict[str, Any] = {
    "a hundredth of the mass elsewhere": lambda distribution: _moved(distribution, 0.01),
    "a millionth of the mass elsewhere": lambda distribution: _moved(distribution, 1e-6),
    "atoms merged to two digits": _merged_coarsely,
    "atoms merged to four digits": _merged_finely,
    "all atoms a little to the right": lambda distribution: replace(distribution, atoms=distribution.atoms + 1e-6),
    "a chance of 0/0 that there is not": lambda distribution: replace(distribution, undefined=1e-6),
    "bounds that are too wide": lambda distribution: replace(
        distribution, bounds=Interval(distribution.bounds.low - 0.01, distribution.bounds.high)
    ),
    "bounds that are too narrow": lambda distribution: replace(
        distribution, bounds=Interval(distribution.bounds.low, distribution.bounds.high - 0.01)
    ),
    "the mass of a rounded lattice": lambda distribution: replace(_moved(distribution, 0.02), method="near exact"),
    "draws from another law": lambda distribution: replace(_moved(distribution, 0.05), method="monte carlo"),
}


@pytest.mark.parametrize("title", WRONG)
def test_a_wrong_law_raises_an_alarm(title):
    _, distribution, _ = _twelve()
    assert isinstance(distribution, Discrete)
    assert _alarms(WRONG[title](distribution))


@pytest.mark.parametrize("title", ["a hundredth of the mass elsewhere", "all atoms a little to the right"])
def test_a_law_that_differs_from_its_kin_raises_an_alarm(title):
    _, distribution, _ = _twelve()
    assert not list(kin.differences(distribution, distribution, checks.EXACT, 1e-12, 0.0))
    assert list(kin.differences(distribution, WRONG[title](distribution), checks.EXACT, 1e-12, 0.0))


def test_what_takes_too_long_raises_an_alarm():
    _, problem = checks.guarded(lambda: [None for _ in iter(int, 1)], seconds=0.05)
    assert problem.startswith("slow")


def test_a_raw_error_raises_an_alarm():
    _, problem = checks.guarded(lambda: [].pop())
    assert problem.startswith("raw IndexError")
