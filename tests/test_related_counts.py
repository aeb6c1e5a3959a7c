"""Laws of counts that are found from one another, against convolutions in long doubles that are written out here."""

import numpy as np
import pytest
from scipy.special import expit, logit

import darkmetrics as dm
from darkmetrics._kernels.sums.related_counts import MovablePmfs, split_pmfs
from darkmetrics.label_models.tilted import Moves
from darkmetrics.methods import Exact, Problem
from darkmetrics.methods.counts import MovedCounts
from darkmetrics.posterior import Posterior


def whole_pmf(p):
    """The mass of every number of successes, by convolution in long doubles."""
    pmf = np.ones(1, dtype=np.longdouble)
    for chance in np.asarray(p, dtype=np.longdouble):
        pmf = np.convolve(pmf, np.array([1.0 - chance, chance]))
    return pmf


def assert_same(law, p, rtol=1e-11):
    """Every mass that is worth keeping is there, to its own last digits; nothing else is."""
    first, pmfs = law
    for found, chances in zip(pmfs, p, strict=True):
        expected = whole_pmf(chances)
        shown = np.zeros(expected.size)
        shown[first : first + found.size] = found
        large = expected > 1e-28
        np.testing.assert_allclose(shown[large], expected[large].astype(float), rtol=rtol)
        assert shown[~large].max(initial=0.0) < 1e-27


def cells_of(seed, cells=60):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.5, 0.8, (7, cells))
    p[2, ::5], p[3, ::7] = 0.0, 1.0
    return p, rng.integers(0, 4, cells)


CUTS = {
    "each cell": np.arange(61),
    "ties": np.array([0, 0, 3, 3, 3, 41, 60, 60]),
    "one": np.array([17]),
    "far apart": np.array([2, 58]),
    "none below": np.array([0]),
}


@pytest.mark.parametrize("name", CUTS)
def test_laws_on_both_sides_of_every_cut_equal_those_from_scratch(name):
    p, counts = cells_of(1)
    laws = list(split_pmfs(p, counts, CUTS[name]))
    assert len(laws) == CUTS[name].size
    for cut, (below, above) in zip(CUTS[name], laws, strict=True):
        assert_same(below, np.repeat(p[:, :cut], counts[:cut], axis=1))
        assert_same(above, np.repeat(p[:, cut:], counts[cut:], axis=1))


@pytest.mark.parametrize("delta", [-6.0, -0.3, 0.0, 1.1, 5.0])
def test_moved_laws_equal_those_of_moved_chances(delta):
    p, counts = cells_of(2)
    law = MovablePmfs.of(p, counts).moved(delta)
    assert law is not None
    with np.errstate(divide="ignore"):
        moved = expit(logit(p) + delta)
    # A move multiplies the logarithms of masses of 1e-200 and numbers of 100: three digits of the sixteen.
    assert_same(law, np.repeat(moved, counts, axis=1), rtol=1e-11)


def test_a_move_beyond_what_is_known_is_refused():
    p = np.random.default_rng(3).uniform(0.05, 0.2, (3, 900))
    law = MovablePmfs.of(p, np.ones(900, dtype=np.int64))
    assert law.moved(0.2) is not None
    assert law.moved(6.0) is None
    assert law.moved(-12.0) is not None  # down to zero successes everything is known


@pytest.mark.parametrize("missing", [40, 700])
def test_what_is_kept_between_moves_gives_the_laws_of_each(missing):
    rng = np.random.default_rng(missing)
    score = rng.random(missing + 60).round(3)
    y = np.where(rng.random(score.size) < score, 1.0, 0.0)
    y[rng.permutation(score.size)[:missing]] = np.nan
    data = dm.EvaluationSet(y, score)
    p = expit(logit(np.clip(score[np.isnan(y)], 0.01, 0.99)) + rng.normal(0.0, 0.5, (5, 1)))
    p = p[:, np.argsort(score[np.isnan(y)], kind="stable")]
    cells = np.repeat(np.arange(data.missing_cells.size), data.missing_counts)
    nodes = Posterior(np.full(5, 0.2), p[:, np.searchsorted(cells, np.arange(data.missing_cells.size))])
    moves, counts = Moves(nodes, data.missing_counts.astype(float)), MovedCounts(data.missing_counts)
    (metric,) = dm.metrics.metrics_from("recall")
    functional = metric.bind(data, np.nan)
    for share in (0.02, 0.3, 0.6, 0.97):
        there = moves.by(moves.to(share))
        assert float(there.weight @ (there.probability @ data.missing_counts)) / missing == pytest.approx(share)
        law, alone = (
            Exact().law(functional, problem, rng=np.random.default_rng(0))
            for problem in (Problem(there, counts.at(moves.to(share), there)), Problem(there))
        )
        assert law.mean() == pytest.approx(alone.mean(), rel=1e-12)
        assert law.std() == pytest.approx(alone.std(), rel=1e-10)
        np.testing.assert_allclose(law.ppf([0.05, 0.95]), alone.ppf([0.05, 0.95]), rtol=1e-12)
