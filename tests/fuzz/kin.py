"""Problems that must have the same answer: rows in another order, other units, other names, the same thing twice.

No truth is needed, so these reach problems of any size. Each relation takes a problem and gives the related one, with
the name that each metric has there.
"""

import math
import pickle
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import darkmetrics as dm
from fuzz import checks
from fuzz.measures import MEASURES
from fuzz.problems import Case, case_of
from fuzz.truth import drawn_off

LEVELS = np.array([0.001, 0.1, 0.5, 0.8, 0.99])
# Near exact laws choose their lattice by the data as given: twice what each may be off.
NEAR = 2 * checks.NEAR_FEW

TOP = [name for name in MEASURES if "_at_k" in name]
LOSSES = [name for name, measure in MEASURES.items() if measure.kind == "loss"]
QUARTERS = [name for name, measure in MEASURES.items() if measure.kind == "quarters"]
ALL = list(MEASURES)


class Kin(NamedTuple):
    """The related problem, and how the metrics that the relation holds for are called there."""

    case: Case
    names: dict[str, str]


def _same(case: Case, without: list[str]) -> Kin:
    return Kin(case, {name: name for name in ALL if name not in without})


def permuted(case: Case, rng: Any) -> Kin:
    """Rows in another order."""
    order = rng.permutation(case.y.size)
    place = np.full(case.y.size, -1)
    place[case.missing] = np.arange(case.missing.size)
    old = place[order]
    return _same(
        case.changed(
            y=case.y[order],
            score=case.score[order],
            decision=case.decision[order],
            weight=None if case.weight is None else case.weight[order],
            chance=case.chance[:, old[old >= 0]],
        ),
        [],
    )


def scaled(case: Case, rng: Any) -> Kin:
    """All weights times a number; a count of rows in the top and a formula with a number in it are not the same."""
    factor = float(rng.choice([0.25, 8.0, 3.7, 2.0**-66, 2.0**66]))
    unitless = [*QUARTERS, "undirected", *(TOP if case.weight is None else [])]
    if factor == 3.7:
        unitless.append("either_sign")  # whether a difference of two sums is zero is then up to rounding
    return _same(case.changed(weight=factor * case.mass), unitless)


def split_rows(case: Case, rng: Any) -> Kin:
    """A labeled row of weight k as k rows of weight one."""
    if case.weight is None or not np.all(case.weight == np.rint(case.weight)) or case.weight.max() > 50:
        return permuted(case, rng)
    times = np.where(np.isnan(case.y), 1, case.weight.astype(int))
    own = np.repeat(np.arange(case.y.size), times)
    weight = np.where(np.isnan(case.y[own]), case.weight[own], 1.0)
    return _same(case.changed(y=case.y[own], score=case.score[own], decision=case.decision[own], weight=weight), TOP)


def weightless(case: Case, rng: Any) -> Kin:
    """Rows of weight zero beside the others."""
    extra = rng.integers(0, case.y.size, 3)
    labels = np.array([0.0, 1.0, math.nan])
    return _same(
        case.changed(
            y=np.r_[case.y, labels],
            score=np.r_[case.score, case.score[extra]],
            decision=np.r_[case.decision, case.decision[extra]],
            weight=np.r_[case.mass, np.zeros(3)],
            chance=np.c_[case.chance, np.full(case.node_weight.size, 0.5)],
        ),
        TOP if case.weight is None else [],
    )


_FLIPPED = {
    "recall": "specificity",
    "specificity": "recall",
    "precision": "npv",
    "npv": "precision",
    "fpr": "fnr",
    "fnr": "fpr",
}
_UNFLIPPED = ("accuracy", "mcc", "cohen_kappa", "balanced_accuracy", "g_mean", "youden_j", "markedness")


def flipped(case: Case, rng: Any) -> Kin:
    """Positive and negative exchanged, and all that goes with them."""
    names = _FLIPPED | {name: name for name in (*_UNFLIPPED, "roc_auc", "gini", "brier", "log_loss", "misranked_full")}
    return Kin(
        case.changed(
            y=1.0 - case.y, score=1.0 - case.score, decision=1 - case.decision, threshold=None, chance=1.0 - case.chance
        ),
        names,
    )


def node_twice(case: Case, rng: Any) -> Kin:
    """One node as two with a part of its weight each; a single one needs cells, which only several know."""
    if case.node_weight.size == 1:
        return permuted(case, rng)
    part = float(rng.uniform(0.1, 0.9)) * case.node_weight[0]
    weight = np.r_[part, case.node_weight[0] - part, case.node_weight[1:]]
    return _same(case.changed(node_weight=weight, chance=np.r_[case.chance[:1], case.chance]), [])


def stretched(case: Case, rng: Any) -> Kin:
    """Scores that are in the same order, with the decisions given."""
    power = float(rng.choice([1.0, 3.0]))
    return _same(case.changed(score=4.0 * case.score**power + 1.0, threshold=None), [*LOSSES, *QUARTERS])


RELATIONS: dict[str, Callable[[Case, Any], Kin]] = {
    kin.__name__: kin for kin in (permuted, scaled, split_rows, weightless, flipped, node_twice, stretched)
}


# --------------------------------------------------------------------------------------- the same data another way in


def _options(case: Case, names: list[str]) -> dict[str, Any]:
    return {"metrics": [MEASURES[name].asked for name in names], "zero_division": case.zero_division, "rng": 0}


def merged(case: Case, names: list[str], rng: Any) -> dm.Evaluation:
    """Two sets added up."""
    first = rng.random(case.y.size) < 0.5
    first[rng.permutation(case.y.size)[:2]] = [True, False] if case.y.size > 1 else [True]
    chance = np.full(case.y.size, 0.5)
    chance[case.missing] = case.chance[0]
    parts = []
    for own in (first, ~first):
        how: dict[str, Any] = {"y_pred": case.decision[own]}
        if case.threshold is not None:
            how = {"threshold": case.threshold}
        weight = None if case.weight is None else case.weight[own]
        if not own.any() or (weight is not None and not weight.any()):
            return checks.ask(case, names, rng=0)
        parts.append(
            dm.EvaluationSet(
                case.y[own], case.score[own], sample_weight=weight, missingness=dm.missing.Fixed(chance[own]), **how
            )
        )
    return dm.evaluate(parts[0] + parts[1], missingness=dm.missing.Fixed(), **_options(case, names))


def from_frame(case: Case, names: list[str], rng: Any) -> dm.Evaluation:
    """The rows as a table."""
    chance = np.full(case.y.size, 0.5)
    chance[case.missing] = case.chance[0]
    columns: dict[str, Any] = {"y": case.y, "s": case.score, "d": case.decision, "w": case.mass, "p": chance}
    how: dict[str, Any] = {"y_pred": "d"} if case.threshold is None else {"threshold": case.threshold}
    frame = pl.DataFrame(columns)
    named: dict[str, Any] = {"y_true": "y", "y_score": "s", "sample_weight": "w", "missingness": dm.missing.Fixed("p")}
    return dm.evaluate(data=frame, **named, **how, **_options(case, names))


def pickled(case: Case, names: list[str], rng: Any) -> Any:
    """What is left of the answer after a trip through pickle."""
    registered = [name for name in names if MEASURES[name].registered] or ["recall"]
    return pickle.loads(pickle.dumps(checks.ask(case, registered, rng=0)))


def sampled(case: Case, names: list[str], rng: Any) -> dm.Evaluation:
    """The same by Monte Carlo."""
    return checks.ask(case, names, "monte_carlo", rng=int(rng.integers(1000)))


WAYS: dict[str, Callable[[Case, list[str], Any], Any]] = {
    way.__name__: way for way in (merged, from_frame, pickled, sampled)
}


def wrong_bands(case: Case, rng: Any) -> Iterator[str]:
    """What curves say at the threshold of the problem and is not what the law says there; bands beyond the bounds."""
    ratios = [name for name, measure in MEASURES.items() if measure.kind == "confusion"]
    names = [str(name) for name in rng.choice(ratios, 4, replace=False)]
    method = str(rng.choice(["exact", "gaussian"]))
    result = checks.ask(case, names, method, rng=0)
    assert case.threshold is not None
    thresholds = np.unique(np.r_[case.threshold, rng.choice(case.score, 5)])
    curves = dm.threshold_curves(
        result, metrics=[MEASURES[name].asked for name in names], thresholds=thresholds, method=method
    )
    at = int(np.searchsorted(thresholds, case.threshold))
    for name, distribution in result.items():
        band, room = curves[name], checks.blur_of(MEASURES[name], case)[0]
        if distribution.undefined < 1.0:
            numbers = [distribution.mean(), *distribution.interval(0.9), *distribution.support()]
            there = [
                band.mean[at],
                *(end[at] for end in band.intervals[0.9]),
                band.lowest_possible[at],
                band.highest_possible[at],
            ]
            # Quantiles of a mixture are searched for, there and here each in its own way.
            if not np.allclose(numbers, there, room + 1e-6, room + 1e-6):
                by_curves = [float(x) for x in there]
                yield f"{name} ({distribution.method}): mean, interval, bounds {numbers}, by curves {by_curves}"
        slack = (room + 1e-9) * np.maximum(1.0, np.abs(band.highest_possible))
        ends = np.stack([band.lowest_possible, *band.intervals[0.9], band.highest_possible])
        if np.any(np.diff(ends, axis=0) < -slack):
            yield f"{name} ({curves.method}): bands {ends.T.tolist()} leave their bounds"


# -------------------------------------------------------------------------------------------------------- comparing


def differences(one: Any, other: Any, off: float, room: float, floor: float) -> Iterator[str]:
    """How two laws differ by more than `off` where rounding (`room`, of a value or of `floor`) does not explain it."""
    if not abs(one.undefined - other.undefined) <= off:
        yield f"undefined {one.undefined!r} and {other.undefined!r}"
    if one.undefined >= 1.0 or other.undefined >= 1.0:
        return
    t = np.unique(np.concatenate([one.ppf(LEVELS), other.ppf(LEVELS)]))
    t = np.concatenate([t, 0.5 * (t[1:] + t[:-1])])
    if one.bounds_sharp != other.bounds_sharp:
        # The bounds of a formula of which nothing is known are found where there are few sums; a Gaussian ends there.
        low, high = (one if one.bounds_sharp else other).support()
        t = t[(t >= low) & (t < high)]
        if not t.size:
            return
    std = 0.5 * (one.std() + other.std())
    move = room * np.maximum(np.abs(t), floor) + (checks.MOVED * std if off > checks.EXACT else 0.0)
    for first, second in ((one, other), (other, one)):
        level, least, most = first.cdf(t), second.cdf(t - move), second.cdf(t + move)
        gap = np.maximum(level - most, least - level)
        if not np.all(gap <= off):
            at = int(np.argmax(np.where(np.isnan(gap), np.inf, gap)))
            yield f"cdf({float(t[at])!r}) {level[at]:.6g} and {least[at]:.6g} to {most[at]:.6g}"
    scale = max(float(np.abs(t).max()), floor)
    # Where nearly all mass lies at 0 the mean comes from rare values, and is larger than any quantile tried. Below the
    # rounding of a probability it says nothing: 1e-12 and one less 1 - 1e-12 differ by a ten thousandth of either.
    largest = max((abs(end) for end in one.support() if math.isfinite(end)), default=scale)
    allowed = (room + 1e-9) * max(scale, abs(one.mean())) + 1e-15 * largest
    if off <= checks.EXACT and not abs(one.mean() - other.mean()) <= allowed:
        yield f"mean {one.mean()!r} and {other.mean()!r}"
    if one.bounds_sharp and other.bounds_sharp:
        ends = max(
            scale, *(abs(end) for distribution in (one, other) for end in distribution.support() if math.isfinite(end))
        )
        if not np.allclose(one.support(), other.support(), 0.0, (room + 1e-9) * ends):
            yield f"bounds {tuple(one.support())} and {tuple(other.support())}"


def _off(one: Any, other: Any, posterior: int) -> float:
    methods = {one.method, other.method}
    off = checks.EXACT
    if "near exact" in methods:
        off = NEAR
    if "gaussian" in methods:
        off = 1e-6
    if "monte carlo" in methods:
        off += sum(
            drawn_off(distribution, posterior) for distribution in (one, other) if distribution.method == "monte carlo"
        )
    return off


def alarms(seed: int, *, counts: Counter[str], largest: int = 600, number: int = 5) -> list[str]:
    """In which respects the related problems of a seed have another answer."""
    rng = np.random.default_rng([seed, 2])
    case = case_of(seed, largest=largest)
    found = []
    bands = ["wrong_bands"] if case.threshold is not None and rng.random() < 0.3 else []
    for title in (str(rng.choice(list(RELATIONS))), str(rng.choice(list(WAYS))), *bands):
        counts[title] += 1
        try:
            wrong, problem = checks.guarded(partial(_differing, title, case, rng, number), 2 * checks.SECONDS)
            found += [f"{title}: {one}" for one in ([problem] if problem else wrong)]
        except dm.exceptions.MethodError:
            counts["refused"] += 1
    return found


def _differing(title: str, case: Case, rng: Any, number: int) -> list[str]:
    return list(_relation(title, case, rng, number))


def _relation(title: str, case: Case, rng: Any, number: int) -> Iterator[str]:
    if title == "wrong_bands":
        yield from wrong_bands(case, rng)
        return
    usable = [name for name in ALL if name != "precision_at_k(1)"]
    if title in RELATIONS:
        kin = RELATIONS[title](case, rng)
        names = [
            str(name) for name in rng.choice([name for name in usable if name in kin.names], number, replace=False)
        ]
        method = str(rng.choice(["auto", "auto", "gaussian"]))
        one, other = checks.ask(case, names, method, rng=0), _asked_of(kin, names, method)
        renamed = {name: kin.names[name] for name in names}
    else:
        if title in ("merged", "from_frame") and case.node_weight.size > 1:
            # Probabilities are a column there: one node.
            case = case.changed(node_weight=np.ones(1), chance=case.chance[:1], binned=False)
        names = [str(name) for name in rng.choice(usable, number, replace=False)]
        one = checks.ask(case, names, rng=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
            other = WAYS[title](case, names, rng)
        renamed = {name: name for name in names if name in other}
    for name, there in renamed.items():
        if one[name].method == "gaussian" and _class_of_rounding(case):
            continue
        room, floor = checks.blur_of(MEASURES[name], case)
        off = _off(one[name], other[there], case.node_weight.size)
        for one_difference in differences(one[name], other[there], off, room, floor):
            yield f"{name} ({one[name].method}, {other[there].method}): {one_difference}"


def _class_of_rounding(case: Case) -> bool:
    """Whether so little of a class is expected that it may be taken for rounding: a Gaussian law is about that."""
    total, known = case.mass.sum(), case.mass[case.y == 1.0].sum()
    positive = known + case.chance @ case.mass[np.isnan(case.y)]
    return bool(np.any(np.minimum(positive, total - positive) <= 1e-11 * total))


def _asked_of(kin: Kin, names: list[str], method: str) -> dm.Evaluation:
    return checks.ask(kin.case, [kin.names[name] for name in names], method, rng=0)
