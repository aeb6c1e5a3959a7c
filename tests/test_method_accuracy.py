"""What the four methods promise: the cdf within 0.01 of plain draws, wherever missing rows lie (`method_cases`)."""

from functools import cache

import numpy as np
import pytest

import darkmetrics as dm
from method_cases import build, cases, compute, distances, simulate

DRAWS = 2**17
# Plain draws are this far from their distribution once in a million times (Dvoretzky, Kiefer and Wolfowitz).
NOISE = float(np.sqrt(np.log(2e6) / (2.0 * DRAWS)))
SMALL = [case for case in cases(400, seed=3) if case.size <= 400]
# An expansion answers few of these; KS takes a sort of all rows for each plain draw.
CASES = [
    *(case for case in SMALL[:48] if case.metric != "ks"),
    *[case for case in SMALL if case.metric == "ks" and case.n_rows <= 80][:3],
    *[case for case in SMALL if case.size == 400 and case.chance in ("half", "calibrated") and case.weight == "none"][
        :8
    ],
]


@cache
def computed(case):
    return compute(*build(case))


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.number}-{case.metric}-{case.place}-{case.chance}")
def test_distribution_is_close_to_plain_draws(case):
    values = simulate(*build(case), DRAWS, np.random.default_rng(1))
    if values.size < 1_000:
        pytest.skip("the metric is nearly never defined in plain draws")
    error, _ = distances(computed(case), values)
    assert error <= 0.01 + NOISE * np.sqrt(DRAWS / values.size)


def test_cases_use_every_method():
    assert {computed(case).method for case in CASES} == {"exact", "near exact", "monte carlo"}


@pytest.mark.parametrize("case", CASES[:5], ids=lambda case: case.metric)
def test_other_probabilities_are_not_close_to_plain_draws(case):
    """The control."""
    functional, posterior = build(case)
    wrong = type(posterior)(posterior.weight, np.clip(posterior.probability + 0.2, 0.0, 1.0))
    values = simulate(functional, posterior, DRAWS, np.random.default_rng(1))
    assert distances(compute(functional, wrong), values)[0] > 0.02


def cdf_of_sum(weight, p, t, last):
    """P(sum of weights of positive rows <= t): the characteristic function inverted up to a frequency (Davies)."""
    mean, sd = weight @ p, np.sqrt(weight**2 @ (p * (1.0 - p)))
    step = 2.0 * np.pi / (24.0 * sd)
    u = step * (np.arange(int(last / step)) + 0.5)
    phi = np.exp(-1j * mean * u)
    for w, q in zip(weight.tolist(), p.tolist(), strict=True):
        phi *= 1.0 - q + q * np.exp(1j * w * u)
    terms = phi / (u / step)
    return 0.5 - np.imag(np.exp(-1j * np.multiply.outer(t - mean, u)) @ terms) / np.pi


@pytest.mark.parametrize("blur", [1e-3, 1e-2, 0.3], ids=["nearly alike", "slightly different", "different"])
def test_weights_near_one_number_keep_their_steps(blur):
    rng = np.random.default_rng(0)
    rows = 200
    weight, p = 1.0 + blur * rng.standard_normal(rows), rng.uniform(0.02, 0.1, rows)
    y, score = np.full(rows, np.nan), np.full(rows, 0.9)
    score += 1e-6 * np.arange(rows)  # rows apart
    distribution = dm.evaluate(y, score, metrics="precision", sample_weight=weight, label_model=p)["precision"]
    t = np.linspace(3.3, 18.3, 31) + 0.2
    expected = cdf_of_sum(weight, p, t, 3.0 / blur)  # to 1e-7
    np.testing.assert_allclose(distribution.cdf(t / weight.sum()), expected, atol=0.01)


def test_formula_with_a_kink_is_close_to_its_counts():
    kink = dm.metrics.ConfusionMetric(name="kink", formula=lambda tp, fp, fn, tn: np.maximum(tp / 600, 1 - fn / 600))
    rng = np.random.default_rng(0)
    score = rng.random(4000)
    p = np.where(score >= 0.5, 0.15, 0.15)
    distribution = dm.evaluate(np.full(4000, np.nan), score, metrics=kink, label_model=p)["kink"]
    yes = int((score >= 0.5).sum())
    tp, fn = rng.binomial(yes, 0.15, 400_000), rng.binomial(4000 - yes, 0.15, 400_000)
    values = np.maximum(tp / 600, 1 - fn / 600)
    assert distances(distribution, values)[0] < 0.01 + 0.004
