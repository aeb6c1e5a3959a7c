"""Where missing rows lie by rank, and how far a law of ROC-AUC is from drawn labelings there."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

import darkmetrics as dm
from darkmetrics.methods.base import Method, Problem
from darkmetrics.methods.exact import Exact
from darkmetrics.posterior import Posterior

ROWS = 5000
SIZES = (16, 33, 66, 150, 300)
LAYOUTS = (
    "top block",
    "bottom block",
    "middle block",
    "two blocks",
    "three blocks",
    "uneven blocks",
    "one big tie",
    "several ties",
    "seven grades",
    "ties in a block",
    "alternating",
    "spread at random",
    "few labelled positives",
    "chances near 0",
    "chances near 1",
    "chances near 0 and 1",
    "one heavy row",
    "block and stragglers",
    "full ties in blocks",
)
# Of one node alone: a label model knows neither these chances nor what to do with weights.
GIVEN_ALONE = ("chances near 0", "chances near 1", "chances near 0 and 1")


@dataclass(frozen=True, eq=False)
class Layout:
    """Rows with partly missing labels (nan), a chance and a weight each."""

    y: np.ndarray
    s: np.ndarray
    p: np.ndarray
    w: np.ndarray | None
    metric: Any


def layout(name: str, m: int, n: int = ROWS) -> Layout:
    """`m` of `n` labels missing at the places that the name says; the same ones at every call."""
    rng = np.random.default_rng([m, n, *name.encode()])
    s = np.sort(rng.random(n))
    label_chance = 0.1 + 0.8 * s
    y = (rng.random(n) < label_chance).astype(float)
    p = np.clip(label_chance + 0.05 * rng.normal(size=n), 0.02, 0.98)
    w = None
    metric: Any = "roc_auc"
    match name:
        case "top block" | "chances near 0" | "chances near 1" | "chances near 0 and 1" | "ties in a block":
            at = np.arange(n - m, n)
        case "bottom block":
            at = np.arange(m)
        case "middle block" | "few labelled positives":
            at = np.arange(m) + n // 2 - m // 3
        case "two blocks" | "full ties in blocks":
            at = np.concatenate([np.arange(m // 2), np.arange(n - (m - m // 2), n)])
        case "three blocks":
            starts = (n // 20, 9 * n // 20, 9 * n // 10)
            at = np.concatenate([part + start for part, start in zip(parts(m, 3), starts, strict=True)])
        case "uneven blocks":
            at = np.concatenate([np.arange(max(2, m // 10)) + n // 4, n - 1 - np.arange(m - max(2, m // 10))])
        case "one big tie":
            at = np.arange(m) + 3 * n // 4
            s[at] = s[at[0]]
        case "several ties":
            at = np.concatenate([part + 500 + n // 6 * i for i, part in enumerate(parts(m, 5))])
            s[at] = s[np.concatenate([np.full(part.size, 500 + n // 6 * i) for i, part in enumerate(parts(m, 5))])]
        case "alternating":
            at = n - 2 * m + 2 * np.arange(m)
        case "block and stragglers":
            at = np.unique(np.concatenate([np.arange(n - m + 4, n), [7, n // 3, n // 2, 2 * n // 3]]))
        case _:
            at = rng.permutation(n)[:m]
    match name:
        case "few labelled positives":
            known = np.setdiff1d(np.arange(n), at)
            y[known] = 0.0
            y[known[-(known.size // 5) :: known.size // 50][:9]] = 1.0
            p = 0.1 + 0.2 * rng.random(n)
        case "chances near 0":
            p = 0.05 * rng.random(n)
        case "chances near 1":
            p = 1.0 - 0.05 * rng.random(n)
        case "chances near 0 and 1":
            p = rng.beta(0.1, 0.1, n).clip(1e-6, 1.0 - 1e-6)
        case "ties in a block" | "full ties in blocks":
            s[at] = np.round(s[at], 3 if m > 40 else 2)
            s[np.setdiff1d(np.arange(n), at)] += 1e-7
            metric = dm.metrics.roc_auc(ties="full") if name.startswith("full") else metric
        case "seven grades":
            s = np.floor(7.0 * np.arange(n) / n)
        case "one heavy row":
            w = np.ones(n)
            w[at[m // 2]] = n / 10.0
            p[at[m // 2]] = 0.4
    y[at] = np.nan
    return Layout(y, s, p, w, metric)


def parts(m: int, number: int) -> list[np.ndarray]:
    """Numbers from zero on, for each of so many parts of m rows."""
    return [np.arange(part.size) for part in np.array_split(np.arange(m), number)]


class Seen(Method):
    """The exact method, which remembers what it was asked."""

    name = "exact"

    def law(self, functional, problem, *, rng):
        self.asked: tuple[Any, Posterior] = functional, problem.nodes
        return Exact().law(functional, problem, rng=rng)

    def again(self):
        """The law once more."""
        functional, nodes = self.asked
        return Exact().law(functional, Problem(nodes), rng=np.random.default_rng(0))


def asked(case: Layout, *, default: bool) -> tuple[Any, Seen]:
    """The law of ROC-AUC where chances are given or, by default, found; and the method that found it."""
    seen = Seen()
    model: dict[str, Any] = {} if default else {"label_model": case.p}
    result = dm.evaluate(
        case.y,
        case.s,
        metrics=case.metric,
        method=seen,
        sample_weight=case.w,
        zero_division=np.nan,
        missingness="by_score" if default else None,
        **model,
    )
    return next(iter(result.values())), seen


def drawn_auc(case: Layout, nodes: Posterior, functional: Any, size: int, rng: np.random.Generator) -> np.ndarray:
    """ROC-AUC of drawn labelings, sorted: first the node, then each label."""
    missing = np.isnan(case.y)
    w = np.ones(case.y.size) if case.w is None else case.w
    order = np.argsort(case.s, kind="stable")
    below = np.cumsum(w[order])
    _, group = np.unique(case.s, return_inverse=True)
    group_w = np.bincount(group, w)
    rank = (np.cumsum(group_w) - 0.5 * group_w)[group]
    assert case.w is not None or np.allclose(rank, rankdata(case.s) - 0.5), below[-1]
    known = np.where(missing, 0.0, case.y) * w
    rows = np.flatnonzero(missing)[np.argsort(case.s[missing], kind="stable")]
    cell = np.repeat(np.arange(functional.missing.size), functional.missing)
    if case.w is not None:  # cells of one score are told apart by their weight
        assert functional.missing.max() == 1
    centre = float(np.rint(rank[rows].mean()))  # a whole number, so that sums of ranks have no rounding error
    columns = np.stack([w[rows], w[rows] * (rank[rows] - centre)], axis=1)
    _, tied = np.unique(case.s[rows], return_inverse=True)
    full = not isinstance(case.metric, str)
    open_groups = group[rows[np.flatnonzero(np.diff(tied, prepend=-1))]]
    group_known = np.bincount(group, known, group_w.size)
    known_pairs = 0.5 * group_known * (group_w - group_known)
    values = []
    for node, number in enumerate(rng.multinomial(size, nodes.weight / nodes.weight.sum())):
        p = nodes.of_cells(node)[cell].astype(np.float32)
        for start in range(0, number, 20_000):
            labels = rng.random((min(20_000, number - start), rows.size), dtype=np.float32) < p
            more, ranks = (
                labels.astype(np.float64 if case.w is not None else np.float32)
                @ columns.astype(np.float64 if case.w is not None else np.float32)
            ).T.astype(np.float64)
            positives = known.sum() + more
            wins = known @ rank + ranks + centre * more - 0.5 * positives**2
            if full:
                starts = np.flatnonzero(np.diff(tied, prepend=-1))
                own = group_known[open_groups] + np.add.reduceat(labels, starts, axis=1, dtype=np.int64)
                wins += known_pairs.sum() - known_pairs[open_groups].sum()
                wins += (0.5 * own * (group_w[open_groups] - own)).sum(axis=1)
            pairs = positives * (w.sum() - positives)
            values.append(wins[pairs > 0.0] / pairs[pairs > 0.0])
    return np.sort(np.concatenate(values))


def kolmogorov(cdf: Any, sample: np.ndarray, beside: float = 1e-9) -> float:
    """Distance of a cdf and the empirical one of a sorted sample, on both sides of every atom."""
    start = np.flatnonzero(np.concatenate(([True], np.diff(sample) > beside)))
    end = np.append(start[1:], sample.size)
    at = np.abs(cdf(sample[end - 1] + beside) - end / sample.size)
    before = np.abs(cdf(sample[start] - beside) - start / sample.size)
    return float(max(at.max(), before.max()))
