"""Posterior draws of several sets: the correlations that pairing implies, next to simulations."""

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit

import darkmetrics as dm
from darkmetrics.changes.pairing import LearnedSet, Pairing
from darkmetrics.missingness.mixture import BOTH, BY_SCORE
from darkmetrics.posterior import Posterior


def sample(rng: np.random.Generator, n: int, missing: float) -> tuple[np.ndarray, np.ndarray]:
    """Labels, part of them missing at random, and scores that are calibrated."""
    score = rng.random(n)
    return np.where(rng.random(n) < missing, np.nan, rng.random(n) < score), score


def evaluate(rng: np.random.Generator, n: int, missing: float, **settings: Any) -> dm.Evaluation:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return dm.evaluate(*sample(rng, n, missing), metrics="prevalence", **settings)


def pair(*evaluations: dm.Evaluation) -> Pairing:
    return Pairing.of([LearnedSet.of(evaluation) for evaluation in evaluations])


def case_means(pairing: Pairing) -> tuple[np.ndarray, np.ndarray]:
    """Mass of each case, and mean number of positives of each set in it (n_cases x n_sets)."""
    mass, means = [], []
    positives = [learned.positives.sum(axis=1) for learned in pairing.sets]
    for block in pairing.blocks:
        rows = [
            np.broadcast_to(share @ x, block.weight.shape) for share, x in zip(block.shares, positives, strict=True)
        ]
        mass.append(block.weight)
        means.append(np.stack(rows, axis=1))
    return np.concatenate(mass), np.concatenate(means)


def correlation_of_blocks(pairing: Pairing) -> float:
    """Correlation of the expected positives of two sets over the joint distribution of their draws."""
    mass, means = case_means(pairing)
    centered = means - mass @ means
    covariance = mass @ (centered[:, 0] * centered[:, 1])
    variances = []
    for learned in pairing.sets:
        x, weight = learned.positives.sum(axis=1), learned.posterior.weight
        variances.append(weight @ (x - weight @ x) ** 2)
    return float(covariance / np.sqrt(np.prod(variances)))


def correlation_of_cases(pairing: Pairing, n: int = 128) -> float:
    """Correlation of the expected positives of two sets over the cases that the total uses."""
    _, draws = pairing.select_cases(n)
    first, second = (learned.positives.sum(axis=1)[draw] for learned, draw in zip(pairing.sets, draws, strict=True))
    return float(np.corrcoef(first, second)[0, 1])


@pytest.mark.parametrize(("n_reference", "n_labeled"), [(400, (100, 100)), (100, (300, 100)), (60, (600, 600))])
def test_errors_learned_from_shared_reference_rows_have_the_correlation_of_repeated_samples(n_reference, n_labeled):
    rng = np.random.default_rng(0)
    n_missing = 400
    errors: list[list[float]] = []
    paired: list[tuple[float, float]] = []
    score = rng.random(n_missing)
    for _ in range(120):
        reference = sample(rng, n_reference, 0.0)
        sets = []
        for n in n_labeled:
            labels, scores = sample(rng, n, 0.0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                model = dm.missing.ByScore(reference=dm.missing.Reference(*reference))
                sets.append(
                    dm.evaluate(
                        np.append(labels, np.full(n_missing, np.nan)),
                        np.append(scores, score),
                        metrics="prevalence",
                        missingness=model,
                    )
                )
        pairing = pair(*sets)
        errors.append([learned.posterior.weight @ learned.positives.sum(axis=1) for learned in pairing.sets])
        if len(paired) < 5:
            paired.append((correlation_of_blocks(pairing), correlation_of_cases(pairing)))
    expected = n_reference / np.sqrt(np.prod([n_reference + n for n in n_labeled]))
    # Of 120 pairs a correlation has a standard error of 0.09 at most.
    assert np.corrcoef(np.transpose(errors))[0, 1] == pytest.approx(expected, abs=0.25)
    of_blocks, of_cases = np.mean(paired, axis=0)
    assert of_blocks == pytest.approx(expected, abs=0.05)
    assert of_cases == pytest.approx(expected, abs=0.12)


def test_sets_that_learned_from_nothing_but_the_reference_move_together():
    rng = np.random.default_rng(1)
    model = dm.missing.ByScore(reference=dm.missing.Reference(*sample(rng, 200, 0.0)), data="reference")
    pairing = pair(*(evaluate(rng, 500, 0.5, missingness=model) for _ in range(2)))
    # Each set has its own 64 draws of the same posterior.
    assert correlation_of_blocks(pairing) > 0.9
    assert correlation_of_cases(pairing) > 0.9


def test_calibrations_of_different_rows_are_independent_when_no_mechanism_is_stated():
    """One set of 64 draws is too few to tell a correlation to 0.02, so sets are averaged over."""
    errors, controls = zip(*(correlation_errors(seed) for seed in range(8)), strict=True)
    assert np.mean(errors) == pytest.approx(0.0, abs=0.02)
    # The control: the same draw in both sets makes calibrations move together.
    assert np.mean(controls) > 0.06


def correlation_errors(seed: int) -> tuple[float, float]:
    """Return the correlation of two paired sets minus the expected one, and that of identical calibrations."""
    rng = np.random.default_rng(seed)
    sets = [evaluate(rng, 120, 0.5) for _ in range(2)]
    pairing, independent, identical = pair(*sets), [], []
    for learned in map(LearnedSet.of, sets):
        p, mechanism, rows = learned.posterior.probability, learned.mechanism, learned.rows.sum(axis=1)
        calibrations, moved = logit(p[mechanism == BY_SCORE]), logit(p[mechanism == BOTH])
        order = np.arange(len(moved)) % len(calibrations)
        effect = moved - calibrations[order]
        # Every calibration with every effect: effects are shared, calibrations are not.
        independent.append(np.stack([expit(calibrations + e) @ rows for e in effect]))
        identical.append(expit(moved) @ rows)
    spread = [np.std(x) for x in independent]
    means = [x.mean(axis=1) - x.mean() for x in independent]
    expected = np.mean(means[0] * means[1]) / np.prod(spread)
    draws = [learned.positives.sum(axis=1)[learned.mechanism == BOTH] for learned in pairing.sets]
    return np.corrcoef(draws)[0, 1] - expected, np.corrcoef(identical)[0, 1] - expected


@pytest.mark.parametrize("missingness", [None, "by_score"])
def test_independent_groups_add_up_in_the_total_as_in_a_change(missingness):
    rng = np.random.default_rng(3)
    tables = []
    for name in ("a", "b"):
        labels, scores = sample(rng, 400, 0.5)
        tables.append(pd.DataFrame({"g": name, "y": labels, "p": scores}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        result = dm.evaluate_by("y", "p", data=pd.concat(tables), by="g", metrics="prevalence", missingness=missingness)
    first, second, total = result["a"]["prevalence"].var(), result["b"]["prevalence"].var(), result.total["prevalence"]
    change = result.compare("b", "a")["prevalence"]
    of_total, of_change = 4.0 * total.var() - first - second, first + second - change.var()
    # Twice the covariance, from the variance of the sum (of halves) and of the difference.
    assert of_total == pytest.approx(of_change, abs=0.1 * (first + second))
    if missingness == "by_score":
        assert abs(of_total) < 0.05 * (first + second)


def test_blocks_keep_the_weights_of_every_set():
    rng = np.random.default_rng(4)
    reference = sample(rng, 100, 0.0)
    pairing = pair(
        evaluate(rng, 200, 0.5),
        evaluate(rng, 300, 0.3),
        evaluate(rng, 200, 0.5, missingness="by_score"),
        evaluate(rng, 200, 0.5, missingness=dm.missing.ByScore(reference=dm.missing.Reference(*reference))),
        evaluate(rng, 200, 0.4, missingness=dm.missing.ByScore(reference=dm.missing.Reference(*reference), n_draws=48)),
    )
    assert sum(float(block.weight.sum()) for block in pairing.blocks) == pytest.approx(1.0, abs=1e-12)
    for i, posterior in enumerate(pairing.posteriors):
        marginal = sum(
            block.weight @ np.broadcast_to(block.shares[i], (block.weight.size, len(posterior)))
            for block in pairing.blocks
        )
        assert marginal == pytest.approx(posterior.weight, abs=1e-10)


def learned_from(weight: Any, probability: Any, **facts: Any) -> LearnedSet:
    p = np.asarray(probability, dtype=np.float64)
    rows = np.stack([np.ones(p.shape[1]), np.zeros(p.shape[1])], axis=1)
    return LearnedSet(Posterior(np.asarray(weight, dtype=np.float64), p, **facts), rows, 10, None)


def test_all_combinations_of_few_draws_are_cases():
    sets = [learned_from([0.2, 0.3, 0.5], [[0.1], [0.2], [0.3]]), learned_from([0.4, 0.6], [[0.5], [0.7]])]
    weight, draws = Pairing.of([*sets, learned_from([1.0], [[0.5]])]).select_cases(128)
    assert dict(zip(zip(*(x.tolist() for x in draws), strict=True), weight.tolist(), strict=True)) == pytest.approx(
        {(i, j, 0): u * v for i, u in enumerate([0.2, 0.3, 0.5]) for j, v in enumerate([0.4, 0.6])}, abs=1e-12
    )


def test_cases_have_one_order_of_mechanisms_in_all_sets():
    rng = np.random.default_rng(5)
    sets = [
        learned_from(np.full(60, 1 / 60), rng.random((60, 2)), mechanism=np.repeat([0, 1], [n, 60 - n]))
        for n in (20, 40)
    ]
    pairing = Pairing.of(sets)
    _, draws = pairing.select_cases(120)
    mechanisms = [learned.mechanism[draw] for learned, draw in zip(sets, draws, strict=True)]
    for mechanism in mechanisms:
        assert all(a <= b for a, b in pairwise(mechanism))
    assert [int((mechanism == 0).sum()) for mechanism in mechanisms] == [40, 80]


def test_the_order_of_the_sets_changes_no_pairing():
    rng = np.random.default_rng(6)
    sets = [evaluate(rng, n, 0.5) for n in (80, 120)]
    forward, backward = pair(*sets), pair(*sets[::-1])
    for a, b in zip(forward.posteriors, backward.posteriors[::-1], strict=True):
        assert np.array_equal(a.probability, b.probability)
