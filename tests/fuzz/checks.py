"""Is a law of the library the true one? Everything it says of itself is held against the truth."""

import math
import signal
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

import darkmetrics as dm
import oracle
from believed import Believed
from darkmetrics.missing import Posterior
from fuzz.measures import MEASURES, Measure
from fuzz.problems import Case
from fuzz.truth import Truth, dkw, drawn_off

LEVELS = (0.0, 1e-6, 0.05, 0.3, 0.5, 0.77, 0.95, 0.999, 1.0)
# Exact probabilities are sums of at most 2^20 products, each rounded to 1e-16 of its size.
EXACT = 1e-9
# What is documented of near exact laws; with fewer missing rows, what the tests of the lattices promise.
NEAR, NEAR_FEW = 0.005, 0.01
# Lattices move atoms by a small share of the standard deviation, and heavy ones with them.
MOVED = 1.0 / 64.0
# Average precision of a random labeling is found to within this, blocks of neighbouring ranks as one.
DRAWN_BLUR = 1e-4
# ROC-AUC with many missing rows neglects that a class may be empty: exp(-16).
NEGLECTED = 2e-7
# Processor seconds that one question about one problem may take.
SECONDS = 20.0


class TooSlowError(Exception):
    """A question took longer than it may."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises where a block takes more processor time than this; where there is no such clock, nothing happens."""
    if not hasattr(signal, "ITIMER_PROF"):
        yield
        return

    def ring(*_: Any) -> None:
        raise TooSlowError(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


# ------------------------------------------------------------------------------------------------- asking the library


def evaluation_set(case: Case) -> dm.EvaluationSet:
    return dm.EvaluationSet(case.y, case.score, **_decisions(case), sample_weight=case.weight)


def _decisions(case: Case) -> dict[str, Any]:
    return {"y_pred": case.decision} if case.threshold is None else {"threshold": case.threshold}


def believed(case: Case, data: dm.EvaluationSet) -> Believed:
    """The nodes of the problem, with a column for each cell that has missing rows."""
    rows = case.missing
    keys = zip(case.score[rows].tolist(), case.decision[rows].tolist(), case.mass[rows].tolist(), strict=True)
    columns = dict(zip(keys, case.chance.T.tolist(), strict=True))
    cells, own = data.cells, data.missing_cells
    weight = np.ones(own.size) if cells.weight is None else cells.weight[own]
    of_cells = zip(cells.score[own].tolist(), cells.decision[own].astype(int).tolist(), weight.tolist(), strict=True)
    chance = np.array([columns[key] for key in of_cells]).reshape(own.size, case.node_weight.size).T
    if not case.binned or not own.size:
        return Believed(Posterior(case.node_weight, chance))
    _, first, bucket = np.unique(np.vstack([cells.score[own], chance]), axis=1, return_index=True, return_inverse=True)
    return Believed(Posterior(case.node_weight, chance[:, first], column=bucket.ravel()))


def ask(case: Case, names: list[str], method: Any = "auto", **options: Any) -> dm.Evaluation:
    """The library's laws; any warning but that of 0/0 is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        asked: dict[str, Any] = {
            "metrics": [MEASURES[name].asked for name in names],
            "method": method,
            "zero_division": case.zero_division,
            **options,
        }
        if case.node_weight.size > 1:
            data = evaluation_set(case)
            return dm.evaluate(data, missingness=believed(case, data), **asked)
        return dm.evaluate(
            case.y,
            case.score,
            sample_weight=case.weight,
            missingness=dm.missing.Fixed(case.chance[0]),
            **_decisions(case),
            **asked,
        )


def fills_of(case: Case, names: list[str]) -> dict[str, float]:
    """What 0/0 counts as."""
    if case.zero_division != "warn":
        return dict.fromkeys(names, float(case.zero_division))
    return {name: oracle.undefined_as(name) if MEASURES[name].registered else math.nan for name in names}


# --------------------------------------------------------------------------------------------------------- comparing


def blur_of(measure: Measure, case: Case) -> tuple[float, float]:
    """How far rounding moves a value: a share of its own size, and never less than that share of the second number.

    A count that is found as the difference of two sums is off by the rounding of the larger one.
    """
    mass = case.mass[case.mass > 0.0]
    return 1e-12 + 1e-15 * float(mass.sum() / mass.min()), 1.0 if measure.difference else 0.0


def _places(truth: Truth, move: Callable[[Any], Any]) -> Any:
    """Where cdfs are compared: at atoms, light and heavy, between neighbours, and outside."""
    values = truth.values
    last = np.append(np.diff(values) > 4.0 * move(values[1:]), True)  # the last of those that rounding keeps apart
    atoms = values[last]
    if atoms.size > 60:
        mass = np.diff(truth.level[last], prepend=0.0)
        chosen = np.concatenate([np.argsort(-mass)[:30], np.linspace(0, atoms.size - 1, 30).round().astype(int)])
        chosen = np.unique(np.concatenate([chosen, np.minimum(chosen + 1, atoms.size - 1)]))
        atoms = atoms[chosen]
    wide = max(1.0, float(atoms[-1] - atoms[0]))
    return np.concatenate([atoms, 0.5 * (atoms[1:] + atoms[:-1]), [atoms[0] - wide, atoms[-1] + wide]])


def wrong_cdf(distribution: Any, truth: Truth, move: Callable[[Any], Any], off: float) -> Iterator[str]:
    """Where P(X <= t) or P(X < t) is further than `off` from the truth at every place that `move` allows."""
    every = _places(truth, move)
    level, some = np.asarray(distribution.cdf(every)), slice(None, None, 3)
    before = 2.0 * np.asarray(distribution.pit(every[some])) - level[some]
    for what, t, found, left in (("P(X <= t)", every, level, False), ("P(X < t)", every[some], before, True)):
        least, most = truth.cdf(t - move(t), left=left), truth.cdf(t + move(t), left=left)
        gap = np.maximum(found - most, least - found)
        if not np.all(gap <= off):
            at = int(np.argmax(np.where(np.isnan(gap), np.inf, gap)))
            yield f"{what} is {found[at]:.6g} at t = {float(t[at])!r}, true {least[at]:.6g} to {most[at]:.6g}"


def wrong_quantiles(distribution: Any, truth: Truth, move: Callable[[Any], Any], off: float) -> Iterator[str]:
    """Quantiles that too little or too much lies below."""
    inside = [q for q in LEVELS if 0.0 < q < 1.0]
    for q, x in zip(inside, np.asarray(distribution.ppf(inside)).tolist(), strict=True):
        room = float(move(np.array([x]))[0])
        if math.isnan(x) or truth.cdf(x + room) < q - off or truth.cdf(x - room, left=True) > q + off:
            yield f"ppf({q:g}) = {x!r}: true P(X < x) {truth.cdf(x, left=True):.6g}, P(X <= x) {truth.cdf(x):.6g}"


def _wrong_moments(
    distribution: Any, truth: Truth, method: str, room: float, floor: float, off: float
) -> Iterator[str]:
    mean, std = truth.mean(), truth.std()
    scale = max(1e-300, floor, float(np.abs(truth.values).max()))
    width = truth.high - truth.low  # wider than what was drawn: a rare labeling may be far away
    if method == "exact":
        allowed = (room + 1e-9) * scale
    elif method == "near exact":
        allowed = 0.02 * std + (room + 1e-9) * scale
    else:  # Hoeffding, with the doubt of a billionth
        allowed = off * width + 1e-9 * scale
    if truth.doubt:
        allowed += truth.doubt * width
    if not abs(distribution.mean() - mean) <= allowed:
        yield f"mean {distribution.mean()!r}, true {mean!r}"
    if method == "exact" and not truth.doubt and not abs(distribution.std() - std) <= math.sqrt(room + 1e-9) * scale:
        yield f"std {distribution.std()!r}, true {std!r}"
    if (
        method == "near exact"
        and not truth.doubt
        and not abs(distribution.std() - std) <= 0.05 * std + (room + 1e-9) * scale
    ):
        yield f"std {distribution.std()!r}, true {std!r}"


def _wrong_ends(distribution: Any, truth: Truth, measure: Measure, room: float, floor: float) -> Iterator[str]:
    low, high = distribution.support()
    scale = max(abs(truth.low), abs(truth.high), floor, 1e-300)
    slack = (room + 1e-11) * scale
    if not (low <= truth.low + slack and high >= truth.high - slack):
        yield f"bounds {low!r} to {high!r} do not enclose {truth.low!r} to {truth.high!r}"
    sure = truth.complete or (measure.registered and measure.name != "average_precision")
    if distribution.bounds_sharp and sure and not (abs(low - truth.low) <= slack and abs(high - truth.high) <= slack):
        yield f"bounds {low!r} to {high!r} are called sharp, true {truth.low!r} to {truth.high!r}"
    first, last = distribution.ppf([0.0, 1.0])
    if not (np.isclose(first, low, 0.0, slack) and np.isclose(last, high, 0.0, slack)):
        yield f"ppf(0), ppf(1) = {float(first)!r}, {float(last)!r}, but support() is {low!r} to {high!r}"
    start, end = distribution.interval(0.9)
    if not (low - slack <= start <= end <= high + slack):
        yield f"interval {start!r} to {end!r} leaves the bounds {low!r} to {high!r}"
    drawn = np.asarray(distribution.rvs(20, rng=0))
    if not (np.all(drawn >= low - slack) and np.all(drawn <= high + slack)):
        yield f"rvs from {float(drawn.min())!r} to {float(drawn.max())!r} leave the bounds {low!r} to {high!r}"
    if np.isnan(drawn).any():
        yield "rvs has NaN"


def _wrong_certificate(distribution: Any, truth: Truth, move: Callable[[Any], Any]) -> Iterator[str]:
    proof = distribution.certificate
    if proof is None:
        return
    slack = 1e-9 + truth.doubt
    t = _places(truth, move)
    t = t[:: 1 + t.size // 60]
    least, most = truth.cdf(t - move(t)), truth.cdf(t + move(t))
    lower, upper = proof.cdf_bounds(t)
    for what, gap in (("below cdf_bounds", lower - most), ("above cdf_bounds", least - upper)):
        if not np.all(gap <= slack):
            at = int(np.argmax(gap))
            yield f"certificate: the true cdf is {what} by {gap[at]:.3g} at t = {float(t[at])!r}"
    level = np.asarray(distribution.cdf(t))
    gap = np.maximum(level - most, least - level)
    if not 0.0 <= proof.ks_bound <= 1.0 or not np.all(gap <= proof.ks_bound + slack):
        yield f"certificate: ks_bound {proof.ks_bound:.6g}, distance {gap.max():.6g}"


def wrong_law(distribution: Any, truth: Truth, case: Case, measure: Measure, counts: Counter[str]) -> list[str]:
    """Everything about the law that is not true, in words."""
    method = distribution.method
    counts[method] += 1
    off_undefined = {"monte carlo": dkw(10_000), "near exact": NEGLECTED if measure.rank else EXACT}.get(method, EXACT)
    found = []
    if not abs(distribution.undefined - truth.undefined) <= off_undefined + truth.undefined_doubt:
        found.append(f"undefined {distribution.undefined!r}, true {truth.undefined!r}")
    if not truth.values.size or distribution.undefined >= 1.0:
        if truth.values.size and truth.undefined < 1.0 - off_undefined - truth.undefined_doubt:
            found.append("no law, although the metric can be defined")
        repr(distribution)
        return found
    room, floor = blur_of(measure, case)

    def rounding(t: Any) -> Any:
        # A value far beyond one is a ratio to a difference that nearly vanishes: rounding of its terms, as large as t.
        return room * np.maximum(np.abs(t), floor) + floor * 1e-14 * np.square(t)

    move = rounding
    off = EXACT
    if method == "near exact":
        few = case.missing.size < 60
        off, width = NEAR_FEW if few else NEAR, MOVED * truth.std()

        def move(t: Any) -> Any:
            return rounding(t) + width

    elif method == "monte carlo":
        off = drawn_off(distribution, case.node_weight.size)
        if measure.name == "average_precision":

            def move(t: Any) -> Any:
                return rounding(t) + DRAWN_BLUR

    off += truth.doubt
    if method != "gaussian":
        found += wrong_cdf(distribution, truth, move, off)
        found += wrong_quantiles(distribution, truth, move, off)
        found += _wrong_moments(distribution, truth, method, room, floor, off)
    found += _wrong_ends(distribution, truth, measure, room, floor)
    # That of drawn labelings holds in 999 of 1,000 cases, which is not an alarm; `off` above is for them.
    if method != "monte carlo" and (method != "near exact" or case.y.size % 4 == 0):
        found += _wrong_certificate(distribution, truth, rounding)
    return found


def guarded(question: Callable[[], Any], seconds: float = SECONDS) -> tuple[Any, str]:
    """The answer, or what no user should see in its place; a refusal in words is passed on."""
    try:
        with at_most(seconds):
            return question(), ""
    except dm.InputError:
        raise
    except TooSlowError as error:
        return None, f"slow: {error}"
    except Exception as error:  # noqa: BLE001, because whatever it is, it is the finding
        place = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"raw {type(error).__name__}: {error} ({Path(place.filename).name}:{place.lineno})"
