"""Ends of sensitivity intervals by brute force: every label assignment, at a grid of tilts and by local search."""

from itertools import product

import numpy as np
from scipy.special import expit, logit

from oracle import Problem, definition_of, labelings, undefined_as

# Steps around a pair of tilts.
AROUND = np.array([step for step in product((-1, 0, 1), repeat=2) if any(step)])


def random_rows(seed):
    """Return labels, scores and probabilities of 1 to 9 missing rows and a few labeled ones, and a factor."""
    rng = np.random.default_rng(seed)
    n_missing, n_labeled = int(rng.integers(1, 10)), int(rng.integers(2, 14))
    score = rng.random(n_missing + n_labeled).round(int(rng.integers(1, 4)))
    label = (rng.random(score.size) < score).astype(float)
    label[:n_missing] = np.nan
    label[n_missing : n_missing + 2] = 0, 1
    return label, score, rng.uniform(0.05, 0.95, n_missing).round(2), float(rng.choice([1.5, 3, 10, 100, 1000]))


class BruteForce:
    """The ends of intervals over all tilts, through all label assignments: a grid of tilts, and a local search.

    `corners_only` restricts the tilts to the largest factors, without the search.
    """

    def __init__(self, label, score, p, odds, n_grid=41, *, corners_only=False):
        self.reach, self.p, self.predicted = np.log(odds), p, score[np.isnan(label)] >= 0.5
        self.score, self.decision, self.corners_only = score, (score >= 0.5).astype(int), corners_only
        self.labels, _ = labelings(Problem(label, score, self.decision, np.ones(score.size), p))
        self.imputed = self.labels[:, np.isnan(label)] == 1
        grid = np.array(list(product(np.linspace(-self.reach, self.reach, n_grid), repeat=2)))
        self.grid = grid[np.isclose(np.abs(grid), self.reach).all(axis=1)] if corners_only else grid
        self.mass = self.mass_at(self.grid)
        self.step = 2 * self.reach / (n_grid - 1)

    def mass_at(self, tilts):
        q = expit(logit(self.p) + np.where(self.predicted, tilts[:, :1], tilts[:, 1:]))
        result = np.ones((len(tilts), len(self.labels)))
        for i in range(self.p.size):
            result *= np.where(self.imputed[:, i], q[:, i : i + 1], 1 - q[:, i : i + 1])
        return result

    def largest_probability(self, event, enough=np.inf):
        """Return the largest probability of an event over all tilts, or a probability on the grid above `enough`."""
        on_grid = self.mass @ event
        largest = on_grid.max()
        for start in [] if self.corners_only or largest > enough else np.argsort(-on_grid)[:3]:
            tilt, value, step = self.grid[start], on_grid[start], self.step
            while step > 1e-6:
                near = np.clip(tilt + step * AROUND, -self.reach, self.reach)
                values = self.mass_at(near) @ event
                if values.max() > value + 1e-15:
                    tilt, value = near[values.argmax()], values.max()
                else:
                    step /= 2
            largest = max(largest, value)
        return largest

    def ends(self, name):
        """Return the lowest 5% and the highest 95% quantile over all tilts."""
        values = definition_of(name)(self.labels, self.score, self.decision, np.ones(self.score.size))
        values = np.where(np.isnan(values), undefined_as(name), values)
        if np.isnan(values).all():  # no row is predicted positive, or none negative
            return np.nan, np.nan
        steps = np.unique(values.round(12))
        low = next(v for v in steps if self.largest_probability(values <= v + 1e-9, 0.05) >= 0.05)
        high = next(v for v in steps[::-1] if self.largest_probability(values >= v - 1e-9, 0.05) > 0.05)
        return low, high
