"""How far metrics move when odds are off, against brute force over tilts; tipping points; what would narrow."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.special import expit, logit

import darkmetrics as dm
from brute_force_over_tilts import BruteForce, random_rows
from darkmetrics.exceptions import InputError
from darkmetrics.posterior import Posterior

NAMES = ["precision", "recall", "accuracy", "f1", "mcc", "prevalence", "roc_auc", "brier", "average_precision"]
LEVEL, ODDS = 0.9, 3.0


@pytest.mark.parametrize("block", range(3))
def test_sensitivity_equals_brute_force_over_all_tilts_for_few_missing_rows(block):
    for seed in range(8 * block, 8 * block + 8):
        label, score, p, odds = random_rows(seed)
        result = dm.evaluate(label, score, missingness=dm.missing.Fixed(p), metrics=NAMES).sensitivity(odds)
        expected = BruteForce(label, score, p, odds)
        for name in NAMES:
            assert result[name] == pytest.approx(expected.ends(name), abs=1e-9), (seed, name)


def test_brute_force_at_the_corners_alone_misses_ends():
    """Negative control: the extremes of ROC-AUC are not at the largest factors."""
    missed = 0
    for seed in range(24):
        label, score, p, odds = random_rows(seed)
        result = dm.evaluate(label, score, missingness=dm.missing.Fixed(p), metrics=["roc_auc"]).sensitivity(odds)[
            "roc_auc"
        ]
        missed += BruteForce(label, score, p, odds, corners_only=True).ends("roc_auc") != pytest.approx(result)
    assert missed >= 2


SEVEN_OPEN = (
    [np.nan] * 7 + [0, 1, 1, 1],
    [0.98, 0.54, 0.74, 0.99, 0.03, 0.6, 0.97, 0.12, 0.22, 0.55, 0.72],
    [0.42, 0.52, 0.16, 0.78, 0.5, 0.27, 0.75],
)


def test_roc_auc_is_lowest_inside_the_square_of_tilts():
    label, score, p = SEVEN_OPEN
    result = dm.evaluate(label, score, missingness=dm.missing.Fixed(p), metrics="roc_auc").sensitivity(odds=10)[
        "roc_auc"
    ]
    flagged = np.array(score[:7]) >= 0.5
    moved = expit(logit(p) + np.where(flagged, np.log(0.1496), np.log(10)))
    inside = dm.evaluate(label, score, missingness=dm.missing.Fixed(moved), metrics="roc_auc")["roc_auc"].interval(
        LEVEL
    )
    assert inside.low == pytest.approx(1 / 6)
    assert result.low <= inside.low <= 0.1667


def test_gaussian_method_reaches_its_own_ends_where_exact_quantiles_have_equal_steps():
    rng = np.random.default_rng(0)
    score = rng.random(40)
    label = np.where(np.arange(40) < 14, np.nan, rng.random(40) < score)
    p = rng.uniform(0.2, 0.8, 14)
    settings: dict[str, Any] = {"metrics": ["precision", "recall"], "method": "gaussian"}
    result = dm.evaluate(label, score, missingness=dm.missing.Fixed(p), **settings).sensitivity(odds=3)
    for above, below in product((-np.log(3), np.log(3)), repeat=2):
        moved = expit(logit(p) + np.where(score[:14] >= 0.5, above, below))
        for name, distribution in dm.evaluate(label, score, missingness=dm.missing.Fixed(moved), **settings).items():
            assert result[name].low <= distribution.interval(LEVEL).low + 1e-9, name
            assert result[name].high >= distribution.interval(LEVEL).high - 1e-9, name


@pytest.mark.parametrize("n", [11, 60])
def test_a_larger_factor_never_has_a_narrower_interval(n):
    rng = np.random.default_rng(3)
    label, score, p = map(np.array, SEVEN_OPEN)
    if n > 11:
        score = rng.random(n)
        label = np.where(rng.random(n) < 0.4, np.nan, rng.random(n) < score)
        p = rng.uniform(0.1, 0.9, int(np.isnan(label).sum()))
    result = dm.evaluate(label, score, missingness=dm.missing.Fixed(p), metrics=["roc_auc", "mcc", "brier", "recall"])
    last = result.intervals
    for odds in (1.2, 3, 10, 100, 1000):
        wider = result.sensitivity(odds)
        for name, (low, high) in last.items():
            assert wider[name].low <= low, (odds, name)
            assert wider[name].high >= high, (odds, name)
        last = wider


def many_rows():
    rng = np.random.default_rng(5)
    score = rng.beta(1.5, 1.5, 400)
    label = (rng.random(400) < score).astype(float)
    label[rng.random(400) < 0.4] = np.nan
    return label, score


@pytest.mark.parametrize(
    ("steps", "settings"),
    [(3, {}), (3, {"missingness": "by_score"}), (9, {"threshold": 0.3, "missingness": dm.missing.Fixed(0.5)})],
)
def test_many_rows_are_near_a_grid_of_laws_at_all_nodes(steps, settings):
    label, score = many_rows()
    names = ["recall", "f1", "mcc", "roc_auc", "brier"]
    result = dm.evaluate(label, score, metrics=names, **settings)
    found = result.sensitivity(odds=ODDS)
    rows, posterior = result.posterior.without_strata(result.data)
    decided = rows.cells.decision[rows.missing_cells]
    bound = [metric.bind(rows, result.fills[name]) for name, metric in result.metrics.items()]
    log_odds = logit(posterior.on_all_cells.probability)
    ends = []
    for tilt in product(np.linspace(-np.log(ODDS), np.log(ODDS), steps), repeat=2):
        moved = Posterior(posterior.weight, expit(log_odds + np.where(decided, *tilt)))
        ends.append([distribution.interval(LEVEL) for distribution in result.method.distributions(bound, moved, rng=0)])
    low, high = np.min(ends, axis=0)[:, 0], np.max(ends, axis=0)[:, 1]
    for i, name in enumerate(names):
        # The search looks at some shifts; the ends are those of the engine.
        assert found[name] == pytest.approx((low[i], high[i]), abs=0.02 * (high[i] - low[i])), name


@pytest.mark.parametrize("seed", range(2))
def test_average_precision_of_many_rows_is_near_random_labelings_at_all_tilts(seed):
    rng = np.random.default_rng(seed)
    score = np.sort(rng.random(400) ** 2)[::-1]
    label, missing = (rng.random(400) < score).astype(float), rng.random(400) < 0.4
    p = 0.9 * score + 0.02
    given = np.where(missing, np.nan, label)
    result = dm.evaluate(given, score, missingness=dm.missing.Fixed(p), metrics=["average_precision"], rng=0)
    found = result.sensitivity(odds=ODDS)["average_precision"]
    ends = []
    for tilt in product(np.log(ODDS) * np.array([-1.0, 0.0, 1.0]), repeat=2):
        drawn = rng.random((20_000, 400)) < expit(logit(p) + np.where(score >= 0.5, *tilt))
        positive = np.where(missing, drawn, label)
        above = np.cumsum(positive, axis=1)
        values = (positive * above / np.arange(1, 401)).sum(axis=1) / above[:, -1]
        ends.append(np.quantile(values, [0.05, 0.95]))
    low, high = np.min(ends, axis=0)[0], np.max(ends, axis=0)[1]
    assert found == pytest.approx((low, high), abs=0.012 * (high - low))


def test_a_factor_of_one_leaves_the_intervals_and_more_widens_them():
    label, score = many_rows()
    result = dm.evaluate(label, score, missingness="random")
    assert dict(result.sensitivity(odds=1)) == dict(result.intervals)
    last = result.sensitivity(odds=1)
    for odds in (1.5, 3, 10):
        found = result.sensitivity(odds=odds)
        assert all(found[name].low <= last[name].low and found[name].high >= last[name].high for name in result)
        last = found
    assert result.sensitivity(odds=3) is result.sensitivity()  # made once


def test_intervals_never_pass_what_is_possible():
    label, score = many_rows()
    result = dm.evaluate(label, score, missingness="random", metrics=NAMES)
    for name, (low, high) in result.sensitivity(odds=1e5).items():
        lowest, highest = result[name].support()
        assert lowest <= low <= high <= highest


def test_where_no_label_is_open_nothing_moves():
    score = np.linspace(0, 1, 40)
    label = (score > 0.4).astype(float)
    whole = dm.evaluate(label, score)
    assert all(
        whole.sensitivity()[name] == (distribution.mean(), distribution.mean()) for name, distribution in whole.items()
    )
    label[::4] = np.nan
    certain = dm.evaluate(label, score, missingness=dm.missing.Fixed((score > 0.6).astype(float)[::4]))
    assert all(
        certain.sensitivity()[name] == pytest.approx((distribution.mean(),) * 2)
        for name, distribution in certain.items()
    )


@pytest.mark.parametrize("odds", [0.5, 0, -1, np.nan, np.inf, "3", None, True])
def test_a_factor_that_is_none_is_refused(odds):
    result = dm.evaluate([1, 0, None], [0.9, 0.2, 0.6], missingness=dm.missing.Fixed(0.5))
    with pytest.raises(InputError, match=r"^odds: .* at least 1"):
        result.sensitivity(odds)


def test_black_boxes_and_draws_have_it_too():
    label, score = many_rows()
    metric = dm.metrics.CallableMetric(name="own", function=lambda y, s: float(np.mean(y * (s > 0.5))), better="higher")
    result = dm.evaluate(
        label[:160], score[:160], missingness="random", metrics=[metric, "recall"], method="monte_carlo", rng=0
    )
    for name, (low, high) in result.sensitivity().items():
        assert low < result.intervals[name].low < result.intervals[name].high < high


def test_tipping_point_is_where_the_chance_falls_below_the_level():
    label, score = many_rows()
    p = np.clip(score[np.isnan(label)], 0.05, 0.95)
    result = dm.evaluate(label, score, missingness=dm.missing.Fixed(p), metrics=["recall", "brier"])
    for name, target, signs in (("recall", 0.68, (-1, 1)), ("brier", 0.24, None)):
        point = result.tipping_point(name, target)
        assert 1 < float(point) < 100
        if signs is not None:
            assert (point.flagged, point.unflagged) == signs
        tilt = np.log(point.odds) * np.array([point.flagged, point.unflagged])
        moved = expit(logit(p) + np.where(score[np.isnan(label)] >= 0.5, *tilt))
        there = dm.evaluate(label, score, missingness=dm.missing.Fixed(moved), metrics=[name])
        assert there.target_probability(name, target) == pytest.approx(LEVEL, abs=0.02)


def test_tipping_point_in_words():
    label, score = many_rows()
    result = dm.evaluate(label, score, missingness="random", metrics=["recall", "brier"])
    assert str(result.tipping_point("recall", 0.6)).startswith(
        "recall is at least 0.6 with probability 90% or more unless the odds that missing rows are positive are "
    )
    assert str(result.tipping_point("brier", 0.3)).startswith("brier is at most 0.3")
    assert float(result.tipping_point("recall", 0.01)) == np.inf
    assert "however far off" in str(result.tipping_point("recall", 0.01))
    assert float(result.tipping_point("recall", 0.99)) == 1.0
    assert "even if the odds of the missing rows are as assumed" in str(result.tipping_point("recall", 0.99))
    with pytest.raises(KeyError, match="recall"):
        result.tipping_point("recal", 0.5)
    with pytest.raises(InputError, match=r"^target: "):
        result.tipping_point("recall", np.nan)


def test_text_json_and_frame_have_the_intervals():
    label, score = many_rows()
    result = dm.evaluate(label, score, missingness="random", metrics="recall")
    low, high = result.sensitivity()["recall"]
    assert f"{low:.3f} to {high:.3f}" in str(result.sensitivity())
    assert "sensitivity (odds x3)" in str(result.sensitivity())
    assert result.to_dict()["metrics"]["recall"]["sensitivity"] == {"odds": 3.0, "low": low, "high": high}
    frame = result.to_frame("polars")
    assert frame.select("sensitivity_low", "sensitivity_high").row(0) == (low, high)


def test_what_would_narrow_the_answer_is_said_with_widths_that_come_true():
    label, score = many_rows()
    result = dm.evaluate(label, score, metrics=["precision"])
    line = next(line for line in result._words() if line.startswith("Set missingness='random' or 'by_score'"))
    said = float(line.split("known to within ")[1].split()[0])
    stated = dm.evaluate(label, score, metrics=["precision"], missingness="by_score")
    assert said == pytest.approx(np.ptp(stated.intervals["precision"]), rel=0.15)
    assert f"instead of {np.ptp(result.intervals['precision']):.2g})" in line
    assert not any(line.startswith("Set missingness=") for line in stated._words())
