"""What the four methods promise: the cdf within 0.01 of plain draws, wherever missing rows lie (`method_cases`)."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit

import darkmetrics as dm
import oracle
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
    distribution = dm.evaluate(y, score, metrics="precision", sample_weight=weight, missingness=dm.missing.Fixed(p))[
        "precision"
    ]
    t = np.linspace(3.3, 18.3, 31) + 0.2
    expected = cdf_of_sum(weight, p, t, 3.0 / blur)  # to 1e-7
    np.testing.assert_allclose(distribution.cdf(t / weight.sum()), expected, atol=0.01)


def test_formula_with_a_kink_is_close_to_its_counts():
    kink = dm.metrics.ConfusionMetric(name="kink", formula=lambda tp, fp, fn, tn: np.maximum(tp / 600, 1 - fn / 600))
    rng = np.random.default_rng(0)
    score = rng.random(4000)
    p = np.where(score >= 0.5, 0.15, 0.15)
    distribution = dm.evaluate(np.full(4000, np.nan), score, metrics=kink, missingness=dm.missing.Fixed(p))["kink"]
    yes = int((score >= 0.5).sum())
    tp, fn = rng.binomial(yes, 0.15, 400_000), rng.binomial(4000 - yes, 0.15, 400_000)
    values = np.maximum(tp / 600, 1 - fn / 600)
    assert distances(distribution, values)[0] < 0.01 + 0.004


@pytest.mark.parametrize("threshold", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("metric", ["recall", "f1", "youden_j", "mcc"])
def test_expansion_is_right_where_one_side_is_nearly_certain(threshold, metric):
    """Flagged rows are nearly all positive, so that their sum has next to no room above its mean."""
    rng = np.random.default_rng(0)
    score = rng.random(1000)
    p, weight = expit(20.0 * (score - 0.5)), rng.lognormal(0.0, 0.3, 1000)
    distribution = dm.evaluate(
        np.full(1000, np.nan),
        score,
        threshold=threshold,
        missingness=dm.missing.Fixed(p),
        sample_weight=weight,
        metrics=metric,
    )[metric]
    labels = (rng.random((2**15, 1000)) < p).astype(np.float64)
    values = oracle.definition_of(metric)(labels, score, (score >= threshold).astype(float), weight)
    assert distribution.method == "near exact"
    assert distances(distribution, values)[0] < 0.01 + 1.95 / np.sqrt(2**15)


@pytest.mark.parametrize(
    "formula",
    [lambda tp, fp, fn, tn: np.abs(tp - fn) / (tp + fn), lambda tp, fp, fn, tn: np.minimum(tp / (tp + fp), 0.7)],
    ids=["kink", "cap"],
)
def test_weighted_formula_with_a_kink_is_close_to_plain_draws(formula):
    rng = np.random.default_rng(3)
    score, weight = np.repeat([0.9, 0.1], [80, 120]), rng.lognormal(0.0, 0.5, 200)
    p = np.where(score > 0.5, 0.6, 0.4)
    metric = dm.metrics.ConfusionMetric(name="mine", formula=formula)
    distribution = dm.evaluate(
        np.full(200, np.nan), score, metrics=metric, missingness=dm.missing.Fixed(p), sample_weight=weight
    )["mine"]
    labels = (rng.random((2**16, 200)) < p) * weight
    tp, fn = labels[:, :80].sum(axis=1), labels[:, 80:].sum(axis=1)
    values = formula(tp, weight[:80].sum() - tp, fn, weight[80:].sum() - fn)
    assert distances(distribution, values)[0] < 0.01 + 1.95 / np.sqrt(2**16)
