"""Certificates of mixtures and of random draws: what holds at each node, or up to chance, holds for the law."""

import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import darkmetrics as dm
import oracle
from believed import Believed
from certificate_problems import (
    CERTIFIED,
    GROUPS,
    LEVELS,
    Recipe,
    fills,
    in_turn,
    level_of,
    metric_of,
    problem_of,
    recipes,
    solve,
    truths,
    violations,
    wrong_laws,
)
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.missing import Posterior
from oracle import Problem


def data_of(problem: Problem) -> EvaluationSet:
    weight = None if np.all(problem.weight == 1.0) else problem.weight
    return dm.EvaluationSet(problem.y, problem.score, y_pred=problem.decision, sample_weight=weight)


def node_chances(problem: Problem, data: EvaluationSet, posterior: Posterior) -> Any:
    """The chances of the missing rows at each node (nodes x rows); rows of weight zero matter to no metric."""
    cells, rows = data.cells, data.missing_cells
    weight = np.ones(rows.size) if cells.weight is None else cells.weight[rows]
    place = {key: i for i, key in enumerate(zip(cells.score[rows], cells.decision[rows], weight, strict=True))}
    keys = [(problem.score[i], bool(problem.decision[i]), problem.weight[i]) for i in problem.missing]
    per_cell = np.array([posterior.of_cells(k) for k in range(len(posterior))])
    return np.stack([per_cell[:, place[key]] if key in place else np.full(len(posterior), 0.5) for key in keys], axis=1)


def mixed_labelings(problem: Problem, data: EvaluationSet, posterior: Posterior):
    """All labelings, each with its probability averaged over the nodes."""
    chances = node_chances(problem, data, posterior)
    y, _ = oracle.labelings(problem._replace(p=chances[0]))
    labels = y[:, problem.missing]
    return y, posterior.weight @ np.array([np.prod(np.where(labels == 1.0, p, 1.0 - p), axis=1) for p in chances])


def believed(names, problem, posterior, zero_division=math.nan, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        return dm.evaluate(
            data_of(problem),
            metrics=[metric_of(name) for name in names],
            missingness=Believed(posterior),
            zero_division=zero_division,
            **{"method": "gaussian"} | options,
        )


def wrong_mixture(names, problem, posterior, zero_division=math.nan, levels=LEVELS):
    found = believed(names, problem, posterior, zero_division)
    labelings = mixed_labelings(problem, data_of(problem), posterior)
    return wrong_laws(found, names, problem, zero_division, labelings, levels)


def random_nodes(data, k, seed, *, binned):
    """Nodes far apart, some probabilities exactly 0 or 1; `binned`: rows of any score may share a probability."""
    rng = np.random.default_rng([seed, 1])
    cells = data.missing_cells.size
    bucket = rng.integers(0, 3, cells) if binned else None
    p = rng.random((k, cells if bucket is None else 3))
    p[rng.random(p.shape) < 0.15] = 1.0
    p[rng.random(p.shape) < 0.15] = 0.0
    return Posterior(rng.dirichlet(np.full(k, 0.7)), p, column=bucket)


mixable = recipes.filter(lambda recipe: recipe.weights != "apart" and recipe.missing <= 8)


@pytest.mark.parametrize("binned", [False, True], ids=["cells", "buckets"])
@pytest.mark.parametrize("kind", GROUPS)
def test_certificate_of_a_mixture_is_never_violated(kind, binned):
    @given(recipe=mixable, zero_division=fills, k=st.integers(1, 4))
    @settings(max_examples=30)
    def never(recipe, zero_division, k):
        problem = problem_of(recipe)
        posterior = random_nodes(data_of(problem), k, recipe.seed, binned=binned)
        assert wrong_mixture(in_turn(kind, recipe.seed), problem, posterior, zero_division, level_of(recipe)) == []

    never()


def test_nodes_at_which_the_metric_is_undefined_are_weighed_as_the_truth_weighs_them():
    y = np.array([0.0, 0.0, math.nan, math.nan, math.nan])
    problem = Problem(y, np.array([0.9, 0.1, 0.8, 0.7, 0.2]), np.array([1, 0, 1, 1, 0]), np.ones(5), None)
    # No positive at all at the first node, hardly ever one at the second.
    posterior = Posterior(np.array([0.5, 0.4, 0.1]), np.array([[0.0, 0.0, 0.0], [1e-3, 0.01, 1e-6], [0.5, 0.9, 0.2]]))
    for zero_division, levels in ((math.nan, [0.5]), (0, [0.9]), (1, [0.99]), ("warn", [0.9])):
        assert wrong_mixture(CERTIFIED, problem, posterior, zero_division, levels) == []


def test_ranks_far_apart_in_one_bucket_are_not_taken_for_their_mean():
    """The law is that of the mean rank of a bucket; the truth keeps the ranks apart."""
    rng = np.random.default_rng(0)
    score = np.linspace(0.0, 1.0, 40)
    y = (rng.random(40) < 0.5).astype(float)
    y[[0, 1, 2, 3, 4, 35, 36, 37, 38, 39]] = math.nan
    problem = Problem(y, score, (score >= 0.5).astype(int), np.ones(40), None)
    posterior = Posterior(np.array([0.3, 0.7]), np.array([[0.5], [0.4]]), column=np.zeros(10, dtype=np.int64))
    assert wrong_mixture(CERTIFIED, problem, posterior) == []


@pytest.mark.parametrize("n", [80, 2500])
@pytest.mark.parametrize("model", ["by_score", "by_label"])
def test_certificate_under_learned_probabilities_is_never_violated(model, n):
    rng = np.random.default_rng(n)
    score = rng.random(n)
    y = (rng.random(n) < score).astype(float)
    y[:7] = math.nan
    names = ["recall", "precision", "f1", "accuracy", "roc_auc", "brier"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        found = dm.evaluate(y, score, metrics=names, missingness=model, method="gaussian")
    assert len(found.posterior) > 1
    problem = Problem(y, score, (score >= 0.5).astype(int), np.ones(n), None)
    labelings = mixed_labelings(problem, found.data, found.posterior)
    assert wrong_laws(found, names, problem, "warn", labelings, levels=[0.9]) == []


# ---------------------------------------------------------------------------------------------------------- Monte Carlo


def test_certificate_of_draws_is_the_band_of_dvoretzky_kiefer_and_wolfowitz():
    problem = problem_of(Recipe())
    for size in (100, 10_000):
        for distribution in solve(
            ["recall", "roc_auc", "brier"], problem, method=dm.methods.MonteCarlo(size), rng=0
        ).values():
            assert distribution.certificate.ks_bound == pytest.approx(
                math.sqrt(math.log(2 / 0.001) / (2 * size)), rel=1e-12
            )
            assert distribution.certificate.confidence == 0.999


def test_bands_of_draws_miss_no_more_often_than_they_say():
    names = ["recall", "roc_auc", "brier", "average_precision", "mcc"]
    missed, tried = 0, 0
    for seed in range(150):
        recipe = Recipe(8, 12, scores="fine" if seed % 2 else "tied", chances="any", seed=seed)
        problem = problem_of(recipe)
        labelings = oracle.labelings(problem)
        distributions = solve(names, problem, method=dm.methods.MonteCarlo(400), rng=seed)
        for name in names:
            tried += 1
            missed += bool(violations(distributions[name], truths(name, problem, labelings=labelings)[0]))
    # A chance of at most 0.001 each, and the five metrics of a problem share its draws: more than 4 of 750 happens
    # once in a thousand times even if all were independent.
    assert missed <= 4, f"{missed} of {tried}"


def test_draws_shared_out_over_nodes_are_certified_for_the_mixture():
    names = ["recall", "roc_auc", "brier"]
    missed = 0
    for seed in range(40):
        problem = problem_of(Recipe(7, 10, seed=seed))
        data = data_of(problem)
        posterior = random_nodes(data, 5, seed, binned=False)
        distributions = believed(names, problem, posterior, method=dm.methods.MonteCarlo(300), rng=seed)
        labelings = mixed_labelings(problem, data, posterior)
        for name in names:
            assert distributions[name].certificate.confidence == 0.999
            missed += bool(violations(distributions[name], truths(name, problem, labelings=labelings)[0]))
    assert missed <= 2


def test_nodes_that_get_no_draw_are_part_of_the_band():
    """More nodes than draws: of four nodes in a row the first and the last get none, and only these are positive."""
    y, score = np.array([1.0, 0.0, math.nan]), np.array([0.9, 0.1, 0.8])
    problem = Problem(y, score, np.array([1, 0, 1]), np.ones(3), None)
    posterior = Posterior(np.full(128, 1 / 128), np.tile([0.999, 0.001, 0.001, 0.999], 32)[:, None])
    distribution = believed(["accuracy"], problem, posterior, method=dm.methods.MonteCarlo(64), rng=0)["accuracy"]
    truth = truths("accuracy", problem, labelings=mixed_labelings(problem, data_of(problem), posterior))[0]
    assert violations(distribution, truth) == []
