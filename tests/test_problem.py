"""Metrics of one set are asked for together: what they share is found once, and none of them notices."""

import numpy as np
import pytest

import darkmetrics as dm
from darkmetrics.distributions import MetricDistribution
from darkmetrics.exceptions import MethodError
from darkmetrics.functional import CountFunctional, RankFunctional
from darkmetrics.label_models import Posterior
from darkmetrics.methods import Problem, base
from darkmetrics.methods.gaussian import moments_at_nodes

# Precision and recall count by decision; the first two of the others in the same top, the last one in another.
NAMES = ["precision", "recall", "roc_auc", "brier", "mcc"]
TOPS = [dm.metrics.precision_at_k(20), dm.metrics.recall_at_k(20), dm.metrics.recall_at_k(30)]
RNG = np.random.default_rng(3)
SCORE = RNG.random(120).round(2)
WEIGHT = RNG.integers(1, 4, 120).astype(float)
Y = np.where(RNG.random(120) < 0.4, np.nan, RNG.random(120) < SCORE)


def bound(metrics, *, weighted=False):
    data = dm.EvaluationSet(Y, SCORE, sample_weight=WEIGHT if weighted else None)
    return [metric.bind(data, 0.0) for metric in dm.metrics.metrics_from(metrics)]


def some_nodes(functional, k=3):
    """Nodes whose probabilities are the same for the cells of a bucket."""
    bucket = np.arange(functional.missing.size) // 4
    chance = np.random.default_rng(k).uniform(0.1, 0.9, (k, int(bucket[-1]) + 1))
    return Posterior(np.full(k, 1.0 / k), chance, bucket)


def figures(law):
    return [law.mean(), law.std(), law.undefined, *law.ppf([0.05, 0.5, 0.95]), law.certificate.ks_bound]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("method", ["auto", "exact", "monte_carlo", "gaussian"])
def test_laws_found_together_are_those_found_one_by_one(method, k, weighted):
    functionals = bound([*NAMES, *TOPS], weighted=weighted)
    nodes, how = some_nodes(functionals[0], k), dm.methods.method_from(method)
    together = list(how.laws(functionals, nodes, rng=0))
    for functional, law in zip(functionals, together, strict=True):
        alone = how.law(functional, Problem(nodes), rng=np.random.default_rng(0))
        assert figures(law) == figures(alone)


def test_laws_of_groups_are_found_once_for_equal_groups(monkeypatch):
    found = []
    make = base._counts_of_groups

    def counted(split, *others, **more):
        found.append(len(split.groups))
        return make(split, *others, **more)

    monkeypatch.setattr(base, "_counts_of_groups", counted)
    functionals = bound([*NAMES, *TOPS])
    list(dm.methods.Exact().laws(functionals, some_nodes(functionals[0]), rng=0))
    # By decision, in the top 20 and in the top 30, although every metric of a top has sorted its rows by itself.
    assert found == [2, 3, 3]


def test_groups_of_other_rows_or_weights_are_not_the_same():
    of_decisions, of_top, *_ = bound(["precision", TOPS[0]])
    [weighted] = bound(["precision"], weighted=True)
    assert all(isinstance(one, CountFunctional) for one in (of_decisions, of_top, weighted))
    here = Problem(some_nodes(of_decisions))
    first = here.groups(of_decisions)
    assert here.groups(of_top) is not first
    assert here.groups(bound(["recall"])[0]) is first
    assert not first.are_of(weighted)


def test_a_seed_starts_anew_for_each_metric_and_a_generator_goes_on():
    [functional] = bound(["recall"])
    nodes, how = some_nodes(functional), dm.methods.MonteCarlo(50)
    of_seed = [law.mean() for law in how.laws([functional, functional], nodes, rng=0)]
    of_generator = [law.mean() for law in how.laws([functional, functional], nodes, rng=np.random.default_rng(0))]
    assert of_seed[0] == of_seed[1] == of_generator[0]
    assert of_generator[0] != of_generator[1]


def test_laws_are_found_when_they_are_asked_for():
    functionals = bound(["recall", "average_precision"])
    laws = dm.methods.Exact().laws(functionals, some_nodes(functionals[0]), rng=0)
    assert isinstance(next(laws), MetricDistribution)
    with pytest.raises(MethodError, match="every labeling"):
        next(laws)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_problems_that_are_alike_are_those_of_problems_made_anew(weighted):
    """What is added up over the rows of a column is shared; chances are not."""
    functionals = [*bound([*NAMES, *TOPS], weighted=weighted)]
    like = some_nodes(functionals[0])
    other = Posterior(np.full(2, 0.5), like.probability[:2] ** 2, like.bucket)
    kept = base.Problem(like)
    for functional in functionals:
        if not isinstance(functional, CountFunctional | RankFunctional):
            continue
        moments_at_nodes(functional, kept)  # so that what is kept is there
        found = moments_at_nodes(functional, base.alike(kept, other))
        np.testing.assert_array_equal(found, moments_at_nodes(functional, Problem(other)))
