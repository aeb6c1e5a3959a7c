"""What a law says of a 0/0 hangs on its `given_defined`, never on the name of the method that found it."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

import darkmetrics as dm
from darkmetrics.distributions import Discrete, Normal, mix
from darkmetrics.exceptions import UndefinedMetricWarning
from darkmetrics.methods import Method
from darkmetrics.metrics import registered
from darkmetrics.monitoring.p_values import verdict
from darkmetrics.report.summarize import summarize

# No row is known to be positive, so that recall is 0/0 with the chance that both missing rows are negative.
Y, SCORE, P = [0, 0, None, None], [0.9, 0.2, 0.8, 0.3], [0.6, 0.5]
NONE_POSITIVE = 0.4 * 0.5


@dataclass(frozen=True)
class Delta(Method):
    """A Gaussian law by a method of the user's own, with a name of its own."""

    name = "delta"

    def distribution(self, functional: Any, problem: Any) -> Any:
        return Normal(loc=0.5, scale=0.1, undefined=NONE_POSITIVE, method="delta")


@dataclass(frozen=True)
class Counting(Method):
    """Laws of atoms, by a method of the user's own that calls them after another one."""

    name = "counting"

    def distribution(self, functional: Any, problem: Any) -> Any:
        values, masses = np.array([np.nan, 0.5, 1.0]), np.array([NONE_POSITIVE, 0.5, 0.3])
        return Discrete.from_atoms(values, masses, functional.fill, method="gaussian")


def evaluated(method: Any, **more: Any) -> Any:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics="recall", method=method, rng=0, **more)
    return result, [str(one.message) for one in caught if one.category is UndefinedMetricWarning]


@pytest.mark.parametrize(
    ("method", "said"),
    [
        ("exact", "it counts as 0 then"),
        ("monte_carlo", "it counts as 0 then"),
        ("gaussian", "its distribution leaves this case out"),
        (Delta(), "its distribution leaves this case out"),
        (Counting(), "it counts as 0 then"),
    ],
    ids=lambda value: str(value),
)
def test_the_warning_says_what_the_law_does_with_a_0_0(method, said):
    result, (text,) = evaluated(method)
    assert f"; {said}." in text
    assert result["recall"].given_defined == (said != "it counts as 0 then")


@pytest.mark.parametrize("method", ["exact", "monte_carlo", "gaussian", Delta(), Counting()], ids=str)
def test_a_law_without_a_value_for_0_0_is_given_that_the_metric_is_defined(method):
    result, said = evaluated(method, zero_division=np.nan)
    assert result["recall"].given_defined
    assert said == []


@pytest.mark.parametrize(("method", "said"), [(Delta(), "left out"), (Counting(), "counts as 0")], ids=str)
def test_a_plot_says_what_the_law_does_with_a_0_0(method, said):
    result, _ = evaluated(method)
    ax = dm.plotting.plot_distribution(result, "recall")
    assert f"0/0 (P = 0.2) {said}" in " ".join(text.get_text() for text in ax.figure.findobj(Text))


@pytest.mark.parametrize("name", ["delta", "gaussian"])
def test_a_target_is_missed_only_where_the_metric_is_defined(name):
    distribution = Normal(loc=0.5, scale=0.1, undefined=NONE_POSITIVE, method=name)
    recall: Any = registered("recall")
    found = verdict(distribution, None, recall, 0.5, fill=None, n_draws=1)
    assert found.missed == pytest.approx(0.5 * (1.0 - NONE_POSITIVE), abs=1e-12)


@pytest.mark.parametrize("name", ["delta", "gaussian"])
def test_laws_given_that_the_metric_is_defined_are_mixed_by_how_likely_that_is(name):
    distributions = [Normal(loc=loc, scale=0.1, undefined=u, method=name) for loc, u in ((0.2, 0.0), (0.6, 0.5))]
    distribution = mix(distributions, np.array([0.5, 0.5]), given_defined=True)
    assert distribution.given_defined
    assert distribution.mean() == pytest.approx((0.5 * 0.2 + 0.25 * 0.6) / 0.75, abs=1e-12)


def test_nothing_is_proven_of_a_law_by_a_method_of_ones_own():
    result, _ = evaluated(Delta(), zero_division=np.nan)
    assert "No error bound is proven for recall." in str(result)


def test_a_report_does_not_say_of_a_method_of_ones_own_that_nothing_was_drawn():
    for method, drawn in ((Delta(), True), ("gaussian", False), ("monte_carlo", True)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = dm.evaluate(Y, SCORE, missingness=dm.missing.Fixed(P), metrics="recall", method=method)
        seed = summarize(result)["reproduce"]["seed"]
        assert ("No seed was given" in seed) == drawn


def test_a_gaussian_law_without_a_spread_lies_in_its_bounds():
    """One missing row that is sure: rounding put the point at 1 + 2e-16, and the cdf at 1 was 0."""
    asked: dict[str, Any] = {
        "method": "gaussian",
        "metrics": "roc_auc",
        "zero_division": 1,
        "missingness": dm.missing.Fixed([0.5, 1.0 - 0.999999]),
    }
    distribution = dm.evaluate([0.0, np.nan], [1.0 - 0.45996094, 1.0 - 0.06347656], **asked)["roc_auc"]
    assert distribution.cdf(1.0) == 1.0
    assert distribution.ppf(0.5) <= 1.0
