"""Problems that try a certificate, their true laws by brute force, and the check that finds a certificate wrong.

The truth comes from `oracle` and from sums over counts written out here; of the library only its answer is used.
"""

import math
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.stats
from hypothesis import strategies as st

import darkmetrics as dm
import oracle
from oracle import Problem

# A cdf is a sum of at most 1e6 masses of relative error 1e-14, a bound a few more operations on such sums: what is less
# is rounding. One violation of a theorem is of the size of its terms, 1e-3 and more.
TOLERANCE = 1e-10
LEVELS = (0.5, 0.9, 0.99)

# ------------------------------------------------------------------------------------------------------------ metrics

TP, FP, FN, TN = dm.metrics.TP, dm.metrics.FP, dm.metrics.FN, dm.metrics.TN


def _scored(loss):
    """A loss of the library's kind, f(y, score), as one of the oracle's."""
    return oracle.mean_of_loss(lambda y, score: np.where(y == 1.0, loss(1.0, score), loss(0.0, score)))


def _confusion(name, ratio, **options):
    """A metric of the library by its ratio, and the same ratio for the oracle: 0 or a number over 0 is undefined.

    Weights such as 0.1 do not add up without rounding: equal terms that are subtracted leave some last digits.
    """
    metric = dm.metrics.ConfusionMetric(name=name, formula=ratio, **options)
    below = ratio.denominator

    def quotient(*counts):
        numerator, denominator = ratio.numerator(*counts), below(*counts)
        terms = zip((below.tp, below.fp, below.fn, below.tn), counts, strict=True)
        defined = np.abs(denominator) > 1e-13 * sum(np.abs(factor * count) for factor, count in terms)
        return np.divide(numerator, denominator, out=np.full(denominator.shape, np.nan), where=defined)

    return metric, oracle.confusion(quotient)


def _loss(name, loss, **options):
    return dm.metrics.LossMetric(name=name, loss=loss, **options), _scored(loss)


def _rank(name, scale, shift, *, full_ties=False):
    ties = "full" if full_ties else "half"
    metric = dm.metrics.RankMetric(name=name, scale=scale, shift=shift, full_ties=full_ties, better="lower")
    auc = oracle.FAMILIES["roc_auc"](ties)
    return metric, lambda *problem: shift + scale * auc(*problem)


# Metrics that nobody registered: coefficients above one and below zero, a denominator that changes its sign, losses far
# apart in size or the same for both labels, an order turned round.
OWN: dict[str, tuple[Any, oracle.Definition]] = {
    metric.name: (metric, definition)
    for metric, definition in (
        _confusion("net_gain", (5.0 * TP + -2.0 * FP) / (TP + FP + FN + TN)),
        _confusion("net_share", (TP + -1.0 * FN) / (TP + FN), direction=(1, -1)),
        _confusion("lopsided", (TP + 3.0 * FN) / (TP + FP + FN)),
        _confusion("odds_of_error", (FP + FN) / (TP + TN), better="lower", direction=(-1, 1)),
        _confusion("either_sign", TP / (TP + -1.0 * FN)),
        _confusion("falling", (-1.0 * TP + 2.0 * FN) / (3.0 * TP + FP + 0.25 * FN), better="lower"),
        _loss("off", lambda y, s: np.abs(y - s), better="lower"),
        _loss("far_apart", lambda y, s: y * np.exp(12.0 * np.clip(s, 0.0, 1.0)), better="lower"),
        _loss("only_high", lambda y, s: np.where(s > 0.6, y - s, 1.0), better="neither"),
        _rank("misranked", -1.0, 1.0),
        _rank("misranked_full", -3.0, 0.5, full_ties=True),
    )
}

GROUPS: dict[str, list[str]] = {
    "linear": [
        "accuracy",
        "precision",
        "npv",
        "prevalence",
        "expected_cost(1, 5)",
        "expected_cost(3, 0)",
        "precision_at_k(1)",
        "precision_at_k(0.5)",
        "brier",
        "log_loss",
    ],
    "ratio": [
        "recall",
        "specificity",
        "fpr",
        "fnr",
        "f1",
        "fbeta(2)",
        "fbeta(0)",
        "jaccard",
        "predicted_to_actual",
        "recall_at_k(0.4)",
        "lift_at_k(0.3)",
    ],
    "rank": ["roc_auc", "gini", "roc_auc(ties='full')", "misranked", "misranked_full"],
    "formula": ["balanced_accuracy", "mcc", "cohen_kappa", "g_mean", "youden_j", "markedness"],
    "own": [name for name in OWN if not name.startswith("misranked")],
}
# Means of what each row adds, ratios of such sums, and ROC-AUC: here a bound is proven, and None is not an answer.
CERTIFIED = [name for kind in ("linear", "ratio", "rank") for name in GROUPS[kind]] + [
    name for name in GROUPS["own"] if name != "either_sign"
]


def metric_of(name: str) -> Any:
    return OWN[name][0] if name in OWN else name


def definition_of(name: str) -> oracle.Definition:
    return OWN[name][1] if name in OWN else oracle.definition_of(name)


# ----------------------------------------------------------------------------------------------------------- problems


class Recipe(NamedTuple):
    """How a problem is made; every field but the numbers names a way that `problem_of` knows."""

    missing: int = 8
    known: int = 12
    labels: str = "both"
    scores: str = "fine"
    decisions: str = "threshold"
    weights: str = "unit"
    chances: str = "any"
    seed: int = 0


def _labels(how, n, rng):
    share = {"both": 0.5, "rare": 0.04, "common": 0.96, "negative": 0.0, "positive": 1.0}[how]
    return (rng.random(n) < share).astype(float)


def _scores(how, n, rng):
    match how:
        case "fine":
            return rng.random(n).round(3)
        case "tied":
            return rng.integers(0, 5, n) / 4
        case "two":
            return rng.integers(0, 2, n) * 0.6 + 0.2
        case "constant":
            return np.full(n, 0.6)
        case "ends":  # log loss of an impossible label: 36 nats
            return rng.choice([0.0, 1.0, 0.5], n)
        case _:
            raise ValueError(how)


def _decisions(how, score, rng):
    match how:
        case "threshold":
            return (score >= 0.5).astype(int)
        case "strict":
            return (score >= 0.95).astype(int)
        case "any":  # equal scores are decided both ways
            return rng.integers(0, 2, score.size)
        case "all":
            return np.ones(score.size, dtype=int)
        case "none":
            return np.zeros(score.size, dtype=int)
        case _:
            raise ValueError(how)


def _weights(how, n, rng):
    match how:
        case "unit":
            return np.ones(n)
        case "whole":
            return rng.integers(1, 5, n).astype(float)
        case "real":
            return rng.integers(100, 1000, n) / 100
        case "zeros":
            weight = rng.integers(0, 3, n).astype(float)
            weight[-1] = 2.0
            return weight
        case "apart":  # one row may outweigh all others a million times
            return 10.0 ** rng.integers(0, 7, n)
        case _:
            raise ValueError(how)


def _chances(how, score, rng):
    n = score.size
    match how:
        case "any":
            return rng.integers(1, 1000, n) / 1000
        case "half":
            return np.full(n, 0.5)
        case "third":
            return np.full(n, 1 / 3)
        case "low":
            return rng.choice([0.01, 0.02, 0.05], n)
        case "high":
            return rng.choice([0.99, 0.98, 0.95], n)
        case "ends":
            return rng.choice([1e-12, 1e-6, 1e-3, 1.0 - 1e-3, 1.0 - 1e-6, 1.0 - 1e-12], n)
        case "sure":
            return rng.choice([0.0, 1.0, 0.3, 0.5], n)
        case "one open":
            p = rng.choice([0.0, 1.0], n)
            p[rng.integers(n)] = rng.choice([0.5, 0.1, 0.999])
            return p
        case "score":
            return np.clip(score, 0.0, 1.0)
        case "against":
            return 1.0 - np.clip(score, 0.0, 1.0)
        case _:
            raise ValueError(how)


CHOICES: dict[str, list[Any]] = {
    "missing": [1, 2, 3, 4, 6, 8, 10],
    "known": [0, 1, 3, 8, 15, 40],
    "labels": ["both", "rare", "common", "negative", "positive"],
    "scores": ["fine", "tied", "two", "constant", "ends"],
    "decisions": ["threshold", "threshold", "any", "strict", "all", "none"],
    "weights": ["unit", "unit", "unit", "whole", "real", "zeros", "apart"],
    "chances": ["any", "half", "third", "low", "high", "ends", "sure", "one open", "score", "against"],
}


def problem_of(recipe: Recipe) -> Problem:
    rng = np.random.default_rng(recipe.seed)
    n = recipe.missing + recipe.known
    score = _scores(recipe.scores, n, rng)
    y = _labels(recipe.labels, n, rng)
    y[rng.permutation(n)[: recipe.missing]] = math.nan
    decision = _decisions(recipe.decisions, score, rng)
    weight = _weights(recipe.weights, n, rng)
    return Problem(y, score, decision, weight, _chances(recipe.chances, score[np.isnan(y)], rng))


def adversarial() -> Iterator[Recipe]:
    """What breaks bounds, one thing at a time and each several times over."""
    base = Recipe()
    for seed in range(2):
        for field, values in CHOICES.items():
            for value in dict.fromkeys(values):
                yield base._replace(**{field: value}, seed=seed)
        # Recall with few positives; one group of decisions empty among the missing rows; everything unknown.
        for missing in (1, 5, 9):
            yield Recipe(missing, 30, "negative", "fine", "threshold", "unit", "low", seed)
            yield Recipe(missing, 30, "negative", "tied", "strict", "apart", "any", seed)
            yield Recipe(missing, 0, "both", "fine", "threshold", "unit", "half", seed)
            yield Recipe(missing, 0, "both", "tied", "any", "unit", "ends", seed)
            yield Recipe(missing, 0, "both", "two", "all", "whole", "third", seed)
            yield Recipe(missing, 300, "rare", "fine", "threshold", "unit", "low", seed)
            yield Recipe(missing, 300, "common", "tied", "any", "real", "high", seed)


# Metrics of its kind that are tried in each problem, in turn: all of them in all problems would take minutes.
PER_PROBLEM = 2
recipes = st.builds(
    Recipe, **{field: st.sampled_from(values) for field, values in CHOICES.items()}, seed=st.integers(0, 2**32 - 1)
)
fills = st.sampled_from([math.nan, 0, 1, "warn"])


def in_turn(kind, number) -> list[str]:
    """Some metrics of the kind, others for the next number."""
    names = GROUPS[kind]
    start = number % len(names)
    return (names[start:] + names[:start])[:PER_PROBLEM]


# -------------------------------------------------------------------------------------------------------------- truth


def law_of(values, probability, fill=math.nan) -> oracle.Law:
    """As `oracle.law_of_values`, for laws of a million atoms: values that differ by rounding are one."""
    nan = np.isnan(values)
    undefined = float(probability[nan].sum())
    values, probability = np.where(nan, fill, values), np.asarray(probability)
    kept = ~np.isnan(values) & (probability > 0.0)
    if not kept.any():
        return oracle.Law(np.empty(0), np.empty(0), undefined, math.nan, math.nan)
    values, probability = values[kept], probability[kept]
    order = np.argsort(values)
    values, probability = values[order], probability[order]
    last = np.append(np.diff(values) > oracle.ATOM * np.maximum(1.0, np.abs(values[1:])), True)
    masses = np.diff(np.cumsum(probability)[last], prepend=0.0)
    atoms = values[last]
    return oracle.Law(atoms, masses / masses.sum(), undefined, float(atoms[0]), float(atoms[-1]))


def count_pmf(p):
    """The law of the number of successes; scipy's own function, which takes no chance of exactly 0 or 1 for granted."""
    return scipy.stats.poisson_binom.pmf(np.arange(len(p) + 1), p)


def labelings_by_count(problem: Problem):
    """As `oracle.labelings`, but of rows that every metric treats alike only the number of positives is gone through.

    Rows with the same score, decision and weight may have different chances; how many of them are positive follows
    their Poisson-binomial law.
    """
    missing = problem.missing
    keys = np.stack([problem.score, problem.decision, problem.weight], axis=1)[missing]
    _, owner = np.unique(keys, axis=0, return_inverse=True)
    rows = [missing[owner.ravel() == k] for k in range(owner.max() + 1)]
    pmfs = [count_pmf(problem.p[owner.ravel() == k]) for k in range(len(rows))]
    counts = np.stack(np.meshgrid(*(np.arange(len(pmf)) for pmf in pmfs), indexing="ij"), axis=-1).reshape(
        -1, len(rows)
    )
    y = np.tile(np.where(np.isnan(problem.y), 0.0, problem.y), (len(counts), 1))
    probability = np.ones(len(counts))
    for k, (own, pmf) in enumerate(zip(rows, pmfs, strict=True)):
        y[:, own] = np.arange(len(own)) < counts[:, k, None]
        probability *= pmf[counts[:, k]]
    return y, probability


def auc_law(problem: Problem) -> oracle.Law:
    """ROC-AUC through its two sums, P and R of doubled mid-ranks, which are whole numbers: a table, row by row."""
    ranks = np.rint(2.0 * scipy.stats.rankdata(problem.score)).astype(int)
    known = problem.y == 1
    missing = problem.missing
    table = oracle.count_and_sum_pmf(ranks[missing], problem.p)
    count, doubled = np.nonzero(table > 1e-18)  # a million of them weigh 1e-12
    positives = known.sum() + count
    pairs = positives * (problem.y.size - positives)
    above = 0.5 * (ranks[known].sum() + doubled) - 0.5 * positives * (positives + 1.0)
    values = np.divide(above, pairs, out=np.full(pairs.shape, np.nan), where=pairs > 0)
    return law_of(values, table[count, doubled])


# ----------------------------------------------------------------------------------------------------------- the check


def solve(names, problem: Problem, zero_division: Any = math.nan, method: Any = "gaussian", **options):
    """The library's laws: from labels, scores, decisions, weights and chances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.UndefinedMetricWarning)
        return dm.evaluate(
            problem.y,
            problem.score,
            y_pred=problem.decision,
            sample_weight=None if np.all(problem.weight == 1.0) else problem.weight,
            metrics=[metric_of(name) for name in names],
            missingness=dm.missing.Fixed(problem.p),
            method=method,
            zero_division=zero_division,
            **options,
        )


def solved(names, problem: Problem, zero_division: Any, **options) -> dict[str, Any]:
    """The laws of those metrics that have one: a ratio whose denominator is zero on average has no Gaussian law."""
    try:
        return dict(solve(names, problem, zero_division, **options).items())
    except dm.exceptions.MethodError:
        if len(names) == 1:
            return {}
        one_by_one = [solved([name], problem, zero_division, **options) for name in names]
        return {name: distribution for found in one_by_one for name, distribution in found.items()}


def places(distribution, truth: oracle.Law) -> Any:
    """Where cdfs are compared: at the atoms of the truth and close to them on either side, between, and far away."""
    atoms = truth.values
    if atoms.size > 200:  # some from everywhere, and those where the two are furthest apart
        furthest = np.argsort(-np.abs(truth.cdf(atoms) - 0.5 * truth.masses - distribution.cdf(atoms)))
        heaviest = np.argsort(-truth.masses)
        spread = np.linspace(0, atoms.size - 1, 100).round().astype(int)
        atoms = atoms[np.unique(np.concatenate([furthest[:50], heaviest[:50], spread]))]
    step = 1e-9 * max(1.0, float(np.abs(atoms).max()))
    low, high = distribution.mean() - 6.0 * distribution.std(), distribution.mean() + 6.0 * distribution.std()
    wide = max(1.0, high - low, truth.high - truth.low)
    grid = np.linspace(min(low, truth.low), max(high, truth.high), 25)
    far = [-np.inf, truth.low - wide, truth.high + wide, -1e9 * wide, 1e9 * wide, np.inf]
    return np.concatenate([atoms, atoms - step, atoms + step, 0.5 * (atoms[1:] + atoms[:-1]), grid, far])


def level_of(recipe: Recipe) -> tuple[float, ...]:
    """One of the levels, another for the next problem: three intervals each were two thirds of the time."""
    return (LEVELS[(recipe.seed + recipe.missing) % len(LEVELS)],)


def blur_of(problem: Problem) -> float:
    """How far rounding may move an atom, as a share of the largest: weights far apart leave few digits of a class."""
    weight = problem.weight[problem.weight > 0.0]
    if np.all(weight == weight.round()) and weight.max() < 100.0:
        return 1e-13
    return 1e-12 if weight.max() < 1e4 * weight.min() else 1e-7


def violations(distribution, *truths: oracle.Law, blur=1e-13, levels=LEVELS, slack=TOLERANCE) -> list[str]:
    """Every way in which the certificate of a law contradicts the truths, in words; empty when it does in none.

    Atoms are where they are up to `blur` of the largest, so that right at one of them the cdf is known between two
    values; `slack` is what cdfs may be off by.
    """
    certificate, found = distribution.certificate, []
    if not (0.0 <= certificate.ks_bound <= 1.0 and certificate.vacuous == (certificate.ks_bound >= 1.0)):
        found.append(f"ks_bound {certificate.ks_bound}, vacuous {certificate.vacuous}")
    intervals = {level: distribution.interval(level, certified=True) for level in levels}
    for truth in truths:
        moved = blur * max(1.0, float(np.abs(truth.values).max()))
        found += _wrong_bounds(distribution, truth, moved, slack)
        for level, (low, high) in intervals.items():
            held = float(truth.masses[(truth.values >= low - moved) & (truth.values <= high + moved)].sum())
            if not held >= level - slack:
                found.append(f"the certified {level} interval, {low!r} to {high!r}, holds {held:.6g}")
    return found


def _wrong_bounds(distribution, truth: oracle.Law, moved: float, slack: float) -> Iterator[str]:
    certificate, t = distribution.certificate, places(distribution, truth)
    least, most, level = truth.cdf(t - moved), truth.cdf(t + moved), distribution.cdf(t)
    bound, (lower, upper) = np.asarray(certificate.bound_at(t)), certificate.cdf_bounds(t)
    gap = np.maximum(level - most, least - level)
    for what, off in (
        ("distance above ks_bound", gap - certificate.ks_bound),
        ("distance above bound_at", gap - bound),
        ("bound_at above ks_bound", bound - certificate.ks_bound),
        ("cdf below cdf_bounds", lower - most),
        ("cdf above cdf_bounds", least - upper),
    ):
        if not np.all(off <= slack):
            at = int(np.argmax(np.where(np.isnan(off), np.inf, off)))
            yield (
                f"{what} by {off[at]:.3g} at t = {float(t[at])!r}: true {most[at]:.6g}, law {level[at]:.6g}, bound_at "
                f"{bound[at]:.6g}, cdf_bounds {lower[at]:.6g} to {upper[at]:.6g}, ks_bound {certificate.ks_bound:.6g}"
            )


def truths(name, problem: Problem, fill=math.nan, labelings=None) -> list[oracle.Law]:
    """The law given that the metric is defined and, if 0/0 has a value, the law in which it counts as that."""
    y, probability = oracle.labelings(problem) if labelings is None else labelings
    values = definition_of(name)(y, problem.score, problem.decision, problem.weight)
    distributions = [law_of(values, probability)]
    if not math.isnan(fill) and distributions[0].undefined > 0.0:
        distributions.append(law_of(values, probability, fill))
    return distributions


def wrong_laws(found, names, problem: Problem, zero_division, labelings, levels) -> list[str]:
    """All violations among the laws found, with the metric in front.

    A law may be held against the truth with 0/0 left out and with 0/0 filled in, unless it is exact for one of them.
    """
    result = []
    for name in names:
        distribution = found[name]
        if distribution.certificate is None:
            continue
        fill = oracle.undefined_as(name) if isinstance(zero_division, str) else float(zero_division)
        distributions = [truth for truth in truths(name, problem, fill, labelings) if truth.values.size]
        truth = distributions[-1:] if distribution.method == "exact" else distributions
        words = violations(distribution, *truth, blur=blur_of(problem), levels=levels)
        result += [f"{name}: {one}" for one in words]
    return result


def wrong(
    names, problem: Problem, zero_division: Any = math.nan, *, by_count=False, levels=LEVELS, **options
) -> list[str]:
    """All violations in one problem."""
    found = solved(names, problem, zero_division, **options)
    labelings = labelings_by_count(problem) if by_count else oracle.labelings(problem)
    return wrong_laws(found, list(found), problem, zero_division, labelings, levels)
