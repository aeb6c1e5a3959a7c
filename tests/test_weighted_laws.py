"""Laws of weighted counts where they are hard: 0/0 on a lattice, weights far apart, formulas of many combinations."""

import itertools
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.methods import Auto
from darkmetrics.posterior import Posterior

pytestmark = pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")

WITHOUT_POSITIVES = ["recall", "fnr", "predicted_to_actual", "recall_at_k(0.2)", "lift_at_k(0.2)", "mcc", "youden_j"]


def without_positives(missing=24, seed=0):
    """Rows among which no label is positive: whether a positive is there at all is open."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.full(missing, np.nan), np.zeros(50)])
    return y, rng.random(y.size), rng.lognormal(size=y.size), np.full(missing, 0.05)


@pytest.mark.parametrize("missing", [24, 80])
@pytest.mark.parametrize("metric", WITHOUT_POSITIVES)
def test_chance_of_0_over_0_is_that_of_no_positive(metric, missing):
    y, score, weight, p = without_positives(missing)
    distribution = dm.evaluate(y, score, metrics=metric, sample_weight=weight, missingness=dm.missing.Fixed(p), rng=0)[
        metric
    ]
    # A sampled law has it to within its draws: four standard deviations of 10,000.
    assert distribution.undefined == pytest.approx(
        0.95**missing, rel=1e-9 if distribution.method != "monte carlo" else 0.31
    )


@pytest.mark.parametrize("metric", ["recall", "fnr", "predicted_to_actual"])
def test_gaussian_has_the_chance_of_0_over_0_too(metric):
    y, score, weight, p = without_positives()
    distribution = dm.evaluate(
        y, score, metrics=metric, sample_weight=weight, missingness=dm.missing.Fixed(p), method="gaussian"
    )[metric]
    assert distribution.undefined == pytest.approx(0.95**24, rel=1e-9)


def test_chance_of_0_over_0_with_several_nodes_is_their_mean():
    y, score, weight, p = without_positives()
    data = dm.EvaluationSet(y, score, sample_weight=weight)
    posterior = Posterior(np.array([0.25, 0.75]), np.array([p, 2.0 * p]))
    functional = dm.metrics.metrics_from("recall")[0].bind(data, np.nan)
    distribution = next(Auto().distributions([functional], posterior))
    assert distribution.undefined == pytest.approx(0.25 * 0.95**24 + 0.75 * 0.9**24, rel=1e-9)


@pytest.mark.parametrize("zero_division", [0, 1, np.nan])
@pytest.mark.parametrize("metric", ["recall", "fnr", "mcc"])
def test_law_beside_0_over_0_is_that_of_drawn_labels(metric, zero_division):
    y, score, weight, p = without_positives()
    distribution = dm.evaluate(
        y, score, metrics=metric, sample_weight=weight, missingness=dm.missing.Fixed(p), zero_division=zero_division
    )[metric]
    rng = np.random.default_rng(1)
    labels = rng.random((200_000, p.size)) < p
    flagged = score[: p.size] >= 0.5
    tp, fn = labels[:, flagged] @ weight[: p.size][flagged], labels[:, ~flagged] @ weight[: p.size][~flagged]
    yes, no = weight[score >= 0.5].sum(), weight[score < 0.5].sum()
    with np.errstate(invalid="ignore"):
        values = {
            "recall": tp / (tp + fn),
            "fnr": fn / (tp + fn),
            "mcc": (tp * (no - fn) - (yes - tp) * fn) / np.sqrt((tp + fn) * (yes + no - tp - fn) * yes * no),
        }[metric]
    values = values[~np.isnan(values)] if np.isnan(zero_division) else np.nan_to_num(values, nan=zero_division)
    values = np.sort(values)
    slack = np.sqrt(np.log(2.0 / 1e-6) / (2.0 * values.size))  # by which draws stray (DKW)
    for t in np.quantile(values, [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98]):
        # Atoms of a near exact law may be moved by a step of its lattice, a thousandth of the range.
        below, above = (np.searchsorted(values, t + d, side="right") / values.size for d in (-4e-3, 4e-3))
        assert below - slack - 0.003 <= distribution.cdf(t) <= above + slack + 0.003


@pytest.mark.parametrize("metric", WITHOUT_POSITIVES)
def test_law_beside_0_over_0_prints(metric):
    y, score, weight, p = without_positives()
    result = dm.evaluate(y, score, metrics=metric, sample_weight=weight, missingness=dm.missing.Fixed(p))
    low, high = result[metric].interval()
    assert np.isfinite([low, high, result[metric].mean()]).all()
    assert metric in str(result)


def test_a_group_without_positives_does_not_end_evaluate_by():
    y, score, weight, _ = without_positives()
    rng = np.random.default_rng(2)
    other = np.where(rng.random(200) < 0.3, np.nan, rng.random(200) < 0.4)
    frame = {
        "y": [*y, *other],
        "p": [*score, *rng.random(200)],
        "w": [*weight, *rng.lognormal(size=200)],
        "g": ["a"] * y.size + ["b"] * 200,
    }
    table = pytest.importorskip("polars").DataFrame(frame).with_columns(own=0.05)
    grouped = dm.evaluate_by(
        "y", "p", data=table, sample_weight="w", by="g", missingness=dm.missing.Fixed("own"), metrics="recall"
    )
    assert grouped["a"]["recall"].undefined == pytest.approx(0.95**24, rel=1e-9)


# ------------------------------------------------------------------------------------------------- weights far apart

FORMULAS = {
    "recall": lambda tp, fp, fn, tn: (tp, tp + fn),
    "precision": lambda tp, fp, fn, tn: (tp, tp + fp),
    "fpr": lambda tp, fp, fn, tn: (fp, fp + tn),
    "f1": lambda tp, fp, fn, tn: (2 * tp, 2 * tp + fp + fn),
    "jaccard": lambda tp, fp, fn, tn: (tp, tp + fp + fn),
    "predicted_to_actual": lambda tp, fp, fn, tn: (tp + fp, tp + fn),
}


@pytest.mark.parametrize("metric", FORMULAS)
@pytest.mark.parametrize("seed", [6, 35, 36, 44, 45])
def test_small_values_are_told_apart_beside_large_ones(metric, seed):
    rng = np.random.default_rng(seed)
    m, k = int(rng.integers(3, 8)), int(rng.integers(2, 6))
    y = np.concatenate([np.full(m, np.nan), rng.integers(0, 2, k)])
    score, weight, p = rng.random(m + k), 10.0 ** rng.uniform(0.0, 8.9, m + k), rng.uniform(0.05, 0.95, m)
    distribution = dm.evaluate(
        y, score, metrics=metric, sample_weight=weight, missingness=dm.missing.Fixed(p), zero_division=0
    )[metric]
    rows = [Fraction(float(w)) for w in weight]
    atoms = []
    for labels in itertools.product([0, 1], repeat=m):
        counts = [Fraction(0)] * 4
        for w, label, flagged in zip(rows, [*labels, *y[m:]], score >= 0.5, strict=True):
            counts[(0 if label else 1) if flagged else (2 if label else 3)] += w
        numerator, denominator = FORMULAS[metric](*counts)
        value = numerator / denominator if denominator else Fraction(0)
        atoms.append((value, float(np.prod(np.where(labels, p, 1.0 - p)))))
    atoms.sort()
    total = np.cumsum([mass for _, mass in atoms])
    for (value, _), (following, _), level in zip(atoms[:-1], atoms[1:], total[:-1], strict=True):
        # Where the difference of two values is not lost in the sixteen digits that sums have.
        if following - value > Fraction(1, 10**9) * following:
            assert distribution.cdf(float((value + following) / 2)) == pytest.approx(level, abs=1e-9)


def test_quantiles_rise_where_values_reach_far():
    rng = np.random.default_rng(3)
    y = np.concatenate([np.full(40, np.nan), np.zeros(20)])
    weight = 10.0 ** rng.uniform(0.0, 8.0, y.size)
    distribution = dm.evaluate(
        y,
        rng.random(y.size),
        metrics="predicted_to_actual",
        sample_weight=weight,
        missingness=dm.missing.Fixed(np.full(40, 0.2)),
    )["predicted_to_actual"]
    assert np.all(np.diff(distribution.ppf([0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.99])) >= 0.0)


# Enumerated, expanded, and one size for the methods that answer any.
@pytest.mark.parametrize(("method", "rows"), [("exact", 24), ("exact", 1200), ("gaussian", 120), ("monte_carlo", 120)])
@pytest.mark.parametrize("metric", ["precision", "recall", "mcc", "roc_auc", "brier"])
def test_quantiles_of_0_and_1_are_the_worst_and_best_case(metric, method, rows):
    rng = np.random.default_rng(4)
    score = rng.random(rows)
    y = np.where(rng.random(rows) < 0.4, np.nan, rng.random(rows) < score)
    weight = rng.uniform(0.5, 2.0, rows) if metric != "roc_auc" else None
    distribution = dm.evaluate(
        y, score, metrics=metric, missingness=dm.missing.Fixed(score), method=method, sample_weight=weight, rng=0
    )[metric]
    assert distribution.ppf([0.0, 1.0]).tolist() == list(distribution.support())
    inside = distribution.ppf(np.linspace(0.001, 0.999, 23))
    assert inside.min() >= distribution.support()[0]
    assert inside.max() <= distribution.support()[1]


def many_weights(rows=1_500, seed=0, weights=None):
    """Rows of which all labels are missing, each with its own chance and weight."""
    rng = np.random.default_rng(seed)
    score = rng.random(rows)
    weight = rng.lognormal(size=rows) if weights is None else weights(rng, rows)
    return np.append(np.full(rows, np.nan), [1.0, 0.0]), np.append(score, [0.9, 0.1]), np.append(weight, [1.0, 1.0])


@cache
def drawn_confusion(draws=40_000, seed=1):
    """Weights of the four kinds of rows of `many_weights` in random labelings of all but the last two."""
    _, score, weight = many_weights()
    p, rng = score[:-2], np.random.default_rng(seed)
    labels = (rng.random((draws, p.size), dtype=np.float32) < p).astype(np.float32)
    labels = np.hstack([labels, np.tile(np.array([1.0, 0.0], dtype=np.float32), (draws, 1))])
    flagged = score >= 0.5
    tp, fn = (labels[:, rows] @ weight[rows] for rows in (flagged, ~flagged))
    return tp, weight[flagged].sum() - tp, fn, weight[~flagged].sum() - fn


@pytest.mark.parametrize(
    ("metric", "formula"),
    [
        ("precision", lambda tp, fp, fn, tn: tp / (tp + fp)),
        ("recall", lambda tp, fp, fn, tn: tp / (tp + fn)),
        ("f1", lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn)),
        ("mcc", lambda tp, fp, fn, tn: (tp * tn - fp * fn) / np.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))),
    ],
)
def test_law_of_very_many_weights_is_that_of_drawn_labels(metric, formula):
    y, score, weight = many_weights()
    distribution = dm.evaluate(
        y, score, metrics=metric, sample_weight=weight, missingness=dm.missing.Fixed(score[:-2])
    )[metric]
    assert type(distribution).__name__ == "Tabulated"
    values = np.sort(formula(*drawn_confusion()))
    slack = np.sqrt(np.log(2.0 / 1e-6) / (2.0 * values.size))  # by which draws stray (DKW)
    gap = np.abs(distribution.cdf(values) - (np.arange(values.size) + 0.5) / values.size).max()
    assert gap <= slack + 0.005
    assert distribution.mean() == pytest.approx(values.mean(), abs=5.0 * values.std() / np.sqrt(values.size))


def test_roc_auc_of_weights_without_a_mean_is_that_of_drawn_labels():
    rng = np.random.default_rng(7)
    # The second set of this seed, with which it was found.
    parts = [(rng.random((3, 2000)), rng.pareto(1.1, 2000) + 1.0) for _ in range(2)]
    (score, chance, gone), weight = parts[1]
    y = np.where(gone < 0.5, np.nan, chance < score)
    found = dm.evaluate(y, score, sample_weight=weight, metrics="roc_auc", missingness="by_score", rng=0)
    order = np.argsort(score)
    y, weight, gaps = y[order], weight[order], np.isnan(y[order])
    posterior = found.posterior.on_all_cells
    drawn = []
    for _ in range(10):
        node = rng.choice(posterior.weight.size, 1000, p=posterior.weight)
        labels = np.tile(y, (1000, 1))
        labels[:, gaps] = rng.random((1000, int(gaps.sum()))) < posterior.probability[node]
        positive, negative = labels * weight, (1.0 - labels) * weight
        pairs = positive.sum(axis=1) * negative.sum(axis=1)
        drawn.append((positive * (np.cumsum(negative, axis=1) - negative)).sum(axis=1) / pairs)
    values = np.sort(np.concatenate(drawn))
    place = np.quantile(values, np.linspace(0.01, 0.99, 99))
    apart = np.abs(found["roc_auc"].cdf(place) - np.searchsorted(values, place, side="right") / values.size).max()
    assert apart < 0.035  # both are drawn: 0.028 in one of a thousand


@pytest.mark.parametrize("above", [False, True], ids=["missing below", "missing above"])
@pytest.mark.parametrize("metric", ["accuracy", "recall", "mcc"])
def test_missing_rows_on_one_side_of_the_threshold_alone(metric, above):
    rng = np.random.default_rng(0)
    score, weight = rng.random(3000), rng.lognormal(sigma=0.7, size=3000)
    y = (rng.random(3000) < score).astype(float)
    gaps = ((score >= 0.5) == above) & (rng.random(3000) < 0.6)
    y[gaps] = np.nan
    chance = np.clip(score[gaps] + 0.05 * rng.normal(size=(64, 1)), 0.01, 0.99)
    data = dm.EvaluationSet(y, score, sample_weight=weight)
    functional = dm.metrics.metrics_from(metric)[0].bind(data, np.nan)
    order = np.argsort(score[gaps], kind="stable")
    distribution = next(Auto().distributions([functional], Posterior(np.full(64, 1 / 64), chance[:, order])))
    labels, believed = np.tile(y, (8192, 1)), chance[np.arange(8192) % 64]
    labels[:, gaps] = rng.random(believed.shape) < believed
    p, tp, flagged = labels @ weight, labels @ (weight * (score >= 0.5)), float(weight @ (score >= 0.5))
    n, total = weight.sum() - p, weight.sum()
    fp = flagged - tp
    drawn = {
        "accuracy": (tp + n - fp) / total,
        "recall": tp / p,
        "mcc": (tp * (n - fp) - fp * (p - tp)) / np.sqrt(flagged * (total - flagged) * p * n),
    }[metric]
    # Four standard deviations of 8,192 draws.
    assert distribution.mean() == pytest.approx(drawn.mean(), abs=4 * drawn.std() / 8192**0.5)
    assert distribution.std() == pytest.approx(drawn.std(), rel=4 / (2 * 8192) ** 0.5)
