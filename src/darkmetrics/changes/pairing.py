"""Pairing of the posterior draws of several sets of rows.

Labels of different rows are independent given their probabilities, and so are probabilities learned from different
rows. Draws of several sets depend on each other only through what the sets share:

    a mechanism that is not stated   the same mechanism, and the same effect of the label, in all sets
    delays learned from all sets     the same posterior draw in all sets
    the same reference rows          errors of the curve have correlation R / sqrt((R + n) (R + m)), where the sets
                                     learned from R shared labels and from n and m labels that they do not share

Changes, trends, gaps and the total over groups use this pairing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from math import prod
from typing import Any

import numpy as np
from scipy.special import expit, logit

from darkmetrics._kernels.arrays import FloatArray, IntArray
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.distributions.joint import Block
from darkmetrics.evaluation import Evaluation
from darkmetrics.missing import ExponentialTilt, mechanism_from
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.delay_groups import GroupDelays
from darkmetrics.missingness.mixture import BOTH, BY_REFERENCE, BY_SCORE
from darkmetrics.posterior import Posterior, columns_of
from darkmetrics.posterior.representatives import representatives, sort_draws

# Cases of the errors that sets share because they learned from the same reference rows.
_REFERENCE_CASES = 128
# Random orders that are tried; the order with the smallest correlation with the sets before is used.
_N_ORDERS = 64
# Log odds beyond these are those of 0 and 1.
_MAX_LOG_ODDS = 35.0
_SEED = 23


@dataclass(frozen=True, eq=False)
class LearnedSet:
    """The posterior of the missing labels of a set, and the rows that it was learned from.

    `rows` has the missing rows of each probability column that are predicted positive, and negative (n_columns x 2).
    """

    posterior: Posterior
    rows: FloatArray
    n_labeled: int
    model: Mechanism | None

    @classmethod
    def of(cls, evaluation: Evaluation) -> "LearnedSet":
        """Return the posterior of an evaluation."""
        data, posterior = evaluation.data, evaluation.posterior
        column, predicted = columns_of(posterior), data.cells.decision[data.missing_cells]
        size = posterior.probability.shape[1]
        sides = [np.bincount(column, data.missing_counts * side, size) for side in (predicted, ~predicted)]
        return cls(posterior, np.stack(sides, axis=1).astype(np.float64), data.n_labeled, evaluation.model)

    @cached_property
    def positives(self) -> FloatArray:
        """Expected positives among the missing rows predicted positive, and negative, at each draw (n_draws x 2)."""
        return np.asarray(self.posterior.probability @ self.rows)

    @property
    def mechanism(self) -> IntArray:
        """Mechanism of each draw; 0 everywhere if only one was considered."""
        mechanism = self.posterior.mechanism
        return np.zeros(len(self.posterior), dtype=np.int64) if mechanism is None else mechanism

    @property
    def reference(self) -> Any:
        """Reference rows that the posterior was learned from; None if there are none or nothing depends on them."""
        model = self.model
        while isinstance(model, ExponentialTilt):
            model = mechanism_from(model.base)
        return getattr(model, "reference", None) if self.rows.any() else None

    @property
    def shared_error(self) -> float:
        """Correlation of the error of the curve with the error of a curve learned from the reference rows only."""
        shared = self.reference.n_labeled
        unshared = 0 if getattr(self.model, "data", "") == "reference" else self.n_labeled
        return float(np.sqrt(shared / max(1, shared + unshared)))


@dataclass(frozen=True, eq=False)
class Pairing:
    """Posteriors of several sets, and the pairing of their draws.

    Attributes
    ----------
    sets : sequence of LearnedSet
        The sets. Under "both", each draw has an effect of the label and a calibration; calibrations of different sets
        are put in different orders, because only the effects are shared.
    delays : list of int
        Sets with delays learned from all of them.
    effects : list of int
        Sets with the same effects of the label under the mechanism "both".
    reference : list of int
        Sets that learned from the same reference rows.
    """

    sets: Sequence[LearnedSet]
    delays: list[int]
    effects: list[int]
    reference: list[int]

    @classmethod
    def of(cls, sets: Sequence[LearnedSet]) -> "Pairing":
        """Return the pairing implied by the rows and mechanisms that the sets share."""
        delays, effects = _find_shared_delays(sets), _find_shared_effects(sets)
        if len(effects) > 1 and not delays:
            sets = _separate_calibrations(sets, effects)
        return cls(sets, delays, effects, _find_shared_reference(sets))

    @property
    def posteriors(self) -> list[Posterior]:
        """The posterior of each set."""
        return [learned.posterior for learned in self.sets]

    def describe(self) -> str:
        """Return a sentence on what the sets share; empty if they share nothing."""
        if self.delays:
            return (
                "When labels come was learned from all of them at once, and what is open about it is the same in each."
            )
        texts = []
        if sum(bool(posterior.mechanisms) for posterior in self.posteriors) > 1:
            texts.append("Why labels are missing is open; whatever the reason, it is taken to be the same in each.")
        if self.reference:
            texts.append(
                "They learned from the same reference rows, and as far as these are what they learned from, they err "
                "alike."
            )
        return " ".join(texts)

    @cached_property
    def blocks(self) -> list[Block]:
        """The joint distribution of the draws of all sets."""
        blocks = []
        for length, mechanisms in _split_by_mechanism(self.sets):
            shares = [
                _normalize(np.where(learned.mechanism == mechanism, learned.posterior.weight, 0.0))[None]
                for learned, mechanism in zip(self.sets, mechanisms, strict=True)
            ]
            weight = np.ones(1)
            paired = self.delays or [i for i in self.effects if mechanisms[i] == BOTH]
            following = [i for i in self.reference if self._follows_reference(i, mechanisms[i])]
            if len(paired) > 1:
                for i in paired:
                    draws = np.flatnonzero(shares[i][0])
                    weight = shares[i][0, draws]
                    shares[i] = np.eye(len(self.posteriors[i]))[draws]
            elif len(following) > 1:
                weight = np.full(_REFERENCE_CASES, 1.0 / _REFERENCE_CASES)
                for i in following:
                    followed, learned = _cases_along_path(self.sets[i], shares[i][0]), self.sets[i]
                    shares[i] = learned.shared_error * followed + (1.0 - learned.shared_error) * shares[i]
            blocks.append(Block(length * weight, tuple(shares)))
        return blocks

    def _follows_reference(self, number: int, mechanism: int) -> bool:
        """Return whether the draws of a set under a mechanism were learned from the reference rows."""
        return mechanism == BY_REFERENCE or not self.sets[number].posterior.mechanisms

    def select_cases(self, n: int) -> tuple[FloatArray, list[IntArray]]:
        """Return cases as the probability of each and the draw of each set in each: all of them, or at least n.

        Selected cases are equally likely and go evenly through the draws of each set. Where draws are independent,
        their order is one that leaves them uncorrelated with the sum of the sets before.
        """
        sizes = np.array([len(posterior) for posterior in self.posteriors])
        moving = np.flatnonzero(sizes > 1)
        if not moving.size:
            return np.ones(1), [np.zeros(1, dtype=np.int64) for _ in self.sets]
        n = max(n, int(sizes.max()))
        if moving.size == 1 or set(moving) <= set(self.delays):
            draws = np.arange(sizes.max())
            return self.posteriors[moving[0]].weight, [draws if size > 1 else 0 * draws for size in sizes]
        if prod(sizes[moving].tolist()) <= n:
            return self._all_cases(sizes)
        rng = np.random.default_rng([_SEED, 1])
        before = np.zeros((n, 2))
        selected = []
        for number, learned in enumerate(self.sets):
            draws, positives = np.zeros(n, dtype=np.int64), learned.positives
            if sizes[number] > 1:
                draws = self._select_draws(number, positives, before, rng)
            before += positives[draws]
            selected.append(draws)
        return np.full(n, 1.0 / n), selected

    def _all_cases(self, sizes: IntArray) -> tuple[FloatArray, list[IntArray]]:
        """Return every possible combination of draws with its probability."""
        moving = np.flatnonzero(sizes > 1)
        mass: FloatArray = np.zeros(sizes[moving])
        for block in self.blocks:
            for case, weight in enumerate(block.weight):
                rows = [block.shares[i][min(case, len(block.shares[i]) - 1)] for i in moving]
                mass += weight * reduce(np.multiply.outer, rows)
        possible = np.flatnonzero(mass)
        draws = [np.zeros(possible.size, dtype=np.int64) for _ in self.sets]
        for i, index in zip(moving, np.unravel_index(possible, mass.shape), strict=True):
            draws[i] = index
        return mass.ravel()[possible], draws

    def _select_draws(
        self, number: int, positives: FloatArray, before: FloatArray, rng: np.random.Generator
    ) -> IntArray:
        """Select the draw of a set in each case; mechanisms have the same order in all sets."""
        learned, n = self.sets[number], len(before)
        mechanism, weight = learned.mechanism, learned.posterior.weight
        level = (np.arange(n) + 0.5) / n
        reached = np.cumsum(np.bincount(mechanism, weight))
        kind = np.searchsorted(reached / reached[-1], level)
        draws, is_free = np.empty(n, dtype=np.int64), np.ones(n, dtype=np.bool_)
        expected, against = positives.copy(), before.copy()
        for k in np.unique(kind):
            cases, members = np.flatnonzero(kind == k), np.flatnonzero(mechanism == k)
            if number in self.delays or (k == BOTH and number in self.effects):
                draws[cases] = members[np.arange(cases.size) * members.size // cases.size]
                is_free[cases] = False
                continue
            probability = _normalize(weight[members])
            draws[cases] = members[
                representatives(positives[members, 0], positives[members, 1], probability, cases.size)
            ]
            if number in self.reference and self._follows_reference(number, int(k)):
                n_following = round(learned.shared_error * cases.size)
                is_free[rng.permutation(cases)[:n_following]] = False
            free = cases[is_free[cases]]
            if free.size:  # dependence through the mechanism is meant to stay
                expected[members] -= positives[draws[free]].mean(axis=0)
                against[free] -= before[free].mean(axis=0)
        free = np.flatnonzero(is_free)
        if not free.size:
            return draws
        orders = np.argsort(kind[free] + rng.random((_N_ORDERS, free.size)), axis=1)
        candidates = draws[free][orders]
        draws[free] = candidates[_least_correlated(against[free], expected[candidates])]
        return draws


def _normalize(weight: FloatArray) -> FloatArray:
    return np.asarray(weight / weight.sum())


def _find_shared_delays(sets: Sequence[LearnedSet]) -> list[int]:
    """Return the sets with jointly learned delays."""
    by_model: dict[int, list[int]] = {}
    for i, learned in enumerate(sets):
        if isinstance(learned.model, GroupDelays):
            by_model.setdefault(id(learned.model.arrivals), []).append(i)
    largest = max(by_model.values(), key=len, default=[])
    return largest if len(largest) > 1 else []


def _find_shared_effects(sets: Sequence[LearnedSet]) -> list[int]:
    """Return the sets with effects of the label under "both": the same effects in the same order."""
    sizes = [int(np.sum(learned.mechanism == BOTH)) if learned.posterior.mechanisms else 0 for learned in sets]
    largest = max(sizes, default=0)
    return [i for i, size in enumerate(sizes) if size == largest > 0]


def _find_shared_reference(sets: Sequence[LearnedSet]) -> list[int]:
    """Return the sets that learned from the same reference rows; of several references, the most frequent."""
    groups: list[tuple[Any, list[int]]] = []
    for i, learned in enumerate(sets):
        reference = learned.reference
        if reference is None:
            continue
        members = next(
            (members for group_reference, members in groups if _are_same_rows(group_reference, reference)), None
        )
        if members is None:
            groups.append((reference, [i]))
        else:
            members.append(i)
    largest = max((members for _, members in groups), key=len, default=[])
    return largest if len(largest) > 1 else []


def _are_same_rows(first: EvaluationSet, second: EvaluationSet) -> bool:
    if first is second:
        return True
    columns = [(rows.cells.score, rows.cells.positives, rows.cells.negatives) for rows in (first, second)]
    return all(np.array_equal(a, b) for a, b in zip(*columns, strict=True))


def _split_by_mechanism(sets: Sequence[LearnedSet]) -> list[tuple[float, list[int]]]:
    """Split probability 1 into intervals with one mechanism per set; mechanisms have the same order in all sets."""
    reached = [np.cumsum(np.bincount(learned.mechanism, learned.posterior.weight)) for learned in sets]
    reached = [total / total[-1] for total in reached]
    ends = np.unique(np.concatenate([np.round(total, 12) for total in reached]))
    lengths = np.diff(ends[ends > 0.0], prepend=0.0)
    middles = ends[ends > 0.0] - 0.5 * lengths
    mechanisms = np.array([np.searchsorted(total, middles) for total in reached])
    return list(zip(lengths.tolist(), mechanisms.T.tolist(), strict=True))


def _cases_along_path(learned: LearnedSet, weight: FloatArray) -> FloatArray:
    """Return the probability of each draw in each case (n_cases x n_draws): cases follow the errors of the curve."""
    path = sort_draws(learned.positives[:, 0], learned.positives[:, 1], weight)
    reached = np.cumsum(weight[path])
    ends = np.linspace(0.0, reached[-1], _REFERENCE_CASES + 1)
    overlap = np.minimum(ends[1:, None], reached) - np.maximum(ends[:-1, None], reached - weight[path])
    shares = np.zeros((_REFERENCE_CASES, weight.size))
    shares[:, path] = np.maximum(overlap, 0.0) / (reached[-1] / _REFERENCE_CASES)
    return shares


def _separate_calibrations(sets: Sequence[LearnedSet], effects: Sequence[int]) -> list[LearnedSet]:
    """Return the sets with calibrations under "both" in an order that is uncorrelated between the sets.

    Draw k under "both" is a calibration of "by score", moved by effect k. Effects are the same in all sets, but
    calibrations learned from different rows are independent.
    """
    result, before = list(sets), None
    rng = np.random.default_rng([_SEED, 2])
    # The order of the sets must not matter: the change from A to B mirrors that from B to A.
    for i in sorted(effects, key=lambda i: _rank(sets[i])):
        posterior, mechanism = sets[i].posterior, sets[i].mechanism
        draws, by_score = np.flatnonzero(mechanism == BOTH), np.flatnonzero(mechanism == BY_SCORE)
        if not by_score.size:
            continue
        calibration = np.arange(draws.size) % by_score.size
        error = sets[i].positives[by_score]
        error = error - error.mean(axis=0)
        error /= np.where(error.std(axis=0) > 0.0, error.std(axis=0), 1.0)
        if before is None:
            before = error[calibration]
            continue
        permuted = rng.permuted(np.tile(np.arange(by_score.size), (_N_ORDERS, 1)), axis=1)
        orders = permuted[:, calibration]
        # Another order of the calibrations must not change how they go together with the effects of the set itself.
        effect = sets[i].positives[draws] - sets[i].positives[by_score][calibration]
        order = orders[_least_correlated(before, error[orders], effect, error[calibration])]
        before = before + error[order]
        with np.errstate(divide="ignore"):
            calibrated, moved = (
                np.clip(logit(posterior.probability[rows]), -_MAX_LOG_ODDS, _MAX_LOG_ODDS) for rows in (by_score, draws)
            )
        probability = posterior.probability.copy()
        probability[draws] = expit(moved + (calibrated[order] - calibrated[calibration]))
        result[i] = replace(sets[i], posterior=replace(posterior, probability=probability))
    return result


def _rank(learned: LearnedSet) -> tuple[float, ...]:
    """Return a sort key from the contents of a set: the fewest labels first, because the order affects them most."""
    expected = learned.posterior.weight @ learned.positives
    return learned.n_labeled, float(learned.rows.sum()), *expected.tolist()


def _least_correlated(
    before: FloatArray, candidates: FloatArray, effect: FloatArray | None = None, original: FloatArray | None = None
) -> int:
    """Return the candidate (n_candidates x n x 2) with the smallest correlations with `before` (n x 2).

    Correlations with `effect` should be those of the `original` order.
    """
    distance = (_correlate(before, candidates) ** 2).sum(axis=(1, 2))
    if effect is not None and original is not None:
        difference = _correlate(effect, candidates) - _correlate(effect, original[None])
        distance = distance + (difference**2).sum(axis=(1, 2))
    return int(np.argmin(distance))


def _correlate(before: FloatArray, candidates: FloatArray) -> FloatArray:
    """Return the correlations of the columns of `before` and of each candidate (n_candidates x 2 x 2)."""
    first, second = (values - values.mean(axis=0) for values in (before, candidates[0]))
    scale = np.sqrt(np.outer((first * first).sum(axis=0), (second * second).sum(axis=0)))
    return np.asarray(first.T @ candidates / np.where(scale > 0.0, scale, 1.0))
