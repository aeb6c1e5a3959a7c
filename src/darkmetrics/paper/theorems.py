"""The paper's bounds: Lemma 1, Theorems 2 and 3, the corollary and Remark 9, with their hypotheses on your data.

Each function checks the hypotheses of its statement and of the proof. If one fails there is no number, and the result
names it. `docs/reference/guarantees.md` lists the corrections; rely on certificates (`distribution.certificate`).
"""

import html
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from darkmetrics import frames
from darkmetrics._kernels.arrays import BoolArray, FloatArray, dot
from darkmetrics._kernels.cdf_bounds import CONSTANT
from darkmetrics._text import prints_plainly
from darkmetrics.argument_types import ArrayLike, Numbers
from darkmetrics.data.evaluation_set import EvaluationSet
from darkmetrics.data.rules import check_finite, is_whole
from darkmetrics.distributions.functionals import CountFunctional
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.metrics import Metric, metrics_from
from darkmetrics.metrics.metric import number_argument
from darkmetrics.missing import Mechanism
from darkmetrics.paper.probabilities import known_probabilities
from darkmetrics.wording import named

__all__ = [
    "CorollaryRate",
    "Hypothesis",
    "PaperBound",
    "corollary_rate",
    "lemma_1",
    "paper_bound",
    "remark_9",
    "theorem_2",
    "theorem_3",
]

# A standard deviation this small, compared with that of the denominator, is the rounding error of a constant ratio.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Hypothesis:
    """A hypothesis of a theorem: the statement, whether it holds, and the values (the first one that breaks it).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.lemma_1([1.0, 2.0], [0.5, 0.5]).hypotheses[2].found
    'a = 2 at position 1; divide all weights by 2'
    """

    statement: str
    holds: bool
    found: str


@prints_plainly
@dataclass(frozen=True, repr=False)
class PaperBound:
    """A bound of the paper on the distance to a Gaussian, with the hypotheses that were checked.

    Attributes
    ----------
    theorem : str
        Which statement of the paper it is.
    ks_bound : float or None
        Bound on the Kolmogorov-Smirnov distance; None if a hypothesis fails. A bound of 1 or more is vacuous.
    hypotheses : tuple of Hypothesis
        Hypotheses of the statement and of its proof.
    mean, std : float or None
        Mean and standard deviation of the Gaussian; None without a bound.
    terms : mapping
        The summands of the bound: "sums" (Lemma 1) and "ratio" (Theorem 2); empty without a bound.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> print(dm.paper.lemma_1([1.0, -1.0, 1.0], [0.5, 0.4, 1.0]))
    Lemma 1: no bound, because a hypothesis does not hold.
             holds: there is a row (3 rows)
             holds: no weight is zero (a from -1 to 1)
             holds: |a| <= 1, for the step from |a|^3 to a^2 (a from -1 to 1)
     does not hold: 0 < p < 1 (p = 1 at position 2)
    """

    theorem: str
    ks_bound: float | None
    hypotheses: tuple[Hypothesis, ...]
    mean: float | None = None
    std: float | None = None
    terms: Mapping[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Whether every hypothesis holds."""
        return all(hypothesis.holds for hypothesis in self.hypotheses)

    @property
    def vacuous(self) -> bool:
        """Whether there is no bound, or one of 1 or more, which holds for any two distributions."""
        return self.ks_bound is None or self.ks_bound >= 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {**asdict(self), "hypotheses": [asdict(h) for h in self.hypotheses], "holds": self.holds}

    def __repr__(self) -> str:
        if self.ks_bound is None:
            failed = next(h for h in self.hypotheses if not h.holds)
            return f"<PaperBound: none by {self.theorem}, fails: {failed.statement} ({failed.found})>"
        return f"<PaperBound: {self.ks_bound:.4g} by {self.theorem}>"

    def __str__(self) -> str:
        if self.ks_bound is None:
            first = f"{self.theorem}: no bound, because a hypothesis does not hold."
        else:
            first = (
                f"{self.theorem}: at most {self.ks_bound:.4g} from a Gaussian with mean {self.mean:.4g} and standard "
                f"deviation {self.std:.3g}{', which any distribution is' if self.vacuous else ''}."
            )
        verdicts = {True: "holds", False: "does not hold"}
        return "\n".join([first, *(f"{verdicts[h.holds]:>14}: {h.statement} ({h.found})" for h in self.hypotheses)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def lemma_1(a: ArrayLike, p: Numbers | None) -> PaperBound:
    """Return the bound of Lemma 1 on the distance of a weighted sum of labels to a Gaussian.

    The Gaussian has the sum's own mean `sum a p` and variance `sum a^2 p (1 - p)`; the paper prints `a` for `a^2`. The
    bound is `C0 (1 + max |a|) / (2 min |a| sqrt(n v))`, C0 = 0.56 and v the smallest p (1 - p).

    Parameters
    ----------
    a : array-like
        Weights of the labels: not 0, and at most 1 in absolute value, as the proof requires.
    p : array-like
        Probability of each label to be positive.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.lemma_1([1.0] * 400, [0.5] * 400)
    <PaperBound: 0.056 by Lemma 1>
    """
    a, p = _columns(a=a, p=p)
    size = np.abs(a)
    max_weight = float(size.max(initial=0.0))
    hypotheses = (
        Hypothesis("there is a row", a.size > 0, f"{a.size:,} rows"),
        _check_rows("no weight is zero", size > 0.0, a=a),
        _check_rows(
            "|a| <= 1, for the step from |a|^3 to a^2", size <= 1.0, f"; divide all weights by {max_weight:g}", a=a
        ),
        _check_rows("0 < p < 1", _is_inside(p), p=p),
    )
    v = p * (1.0 - p)
    if not all(h.holds for h in hypotheses):
        return PaperBound("Lemma 1", None, hypotheses)
    bound = _lemma_1_term(a.size, float(v.min()), float(size.min()), max_weight) / 2.0
    return PaperBound("Lemma 1", bound, hypotheses, dot(a, p), float(np.sqrt(dot(a**2, v))), {"sums": bound})


def theorem_2(
    mu_z: float, mu_w: float, sigma_z: float, sigma_w: float, rho: float, *, factor: float = 10.0
) -> PaperBound:
    """Return the bound of Theorem 2 on the distance of the ratio Z / W of two correlated Gaussians to a Gaussian.

    Its two conditions ask for numbers much greater than 1; here these are at least `factor`. The second number is
    `2 |mu_z sigma_w - mu_w sigma_z| / mu_w`, as in the theorem; the last line of its derivation is misprinted. For a
    negative mu_z the absolute value is used: the proof drops rho, and the worst rho has the sign of mu_z.

    Parameters
    ----------
    mu_z, mu_w, sigma_z, sigma_w : float
        Means and standard deviations of numerator and denominator.
    rho : float
        Their correlation.
    factor : float
        Numbers of at least this size count as much greater than 1.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> print(dm.paper.theorem_2(300, 1000, 20, 30, 0.5))
    Theorem 2: at most 0.07496 from a Gaussian with mean 0.3 and standard deviation 0.0173.
             holds: W has a positive mean, and |rho| is at most 1 (mu_w = 1000, rho = 0.5)
             holds: the ratio is not constant (standard deviation 0.0173)
             holds: mu_w / sigma_w is much greater than 1 (33.3, at least 10 is required)
             holds: 2 |mu_z sigma_w - mu_w sigma_z| / mu_w is much greater than 1 (22, at least 10 is required)
    """
    mu_z, mu_w, rho = (_number(value, name) for name, value in (("mu_z", mu_z), ("mu_w", mu_w), ("rho", rho)))
    sigma_z, sigma_w = number_argument(sigma_z, "sigma_z", above=0.0), number_argument(sigma_w, "sigma_w", above=0.0)
    factor = number_argument(factor, "factor", above=1.0)
    possible = mu_w > 0.0 and abs(rho) <= 1.0
    first = np.inf if sigma_w == 0.0 else mu_w / sigma_w
    second = 2.0 * abs(abs(mu_z) * sigma_w - mu_w * sigma_z) / mu_w if possible else 0.0
    scaled = sigma_w * mu_z / mu_w if possible else 0.0
    spread = (sigma_z - rho * scaled) ** 2 + (1.0 - rho**2) * scaled**2 if possible else 0.0
    hypotheses = (
        Hypothesis("W has a positive mean, and |rho| is at most 1", possible, f"mu_w = {mu_w:g}, rho = {rho:g}"),
        _check_varies(spread, sigma_z**2, mu_w),
        Hypothesis("mu_w / sigma_w is much greater than 1", first >= factor, _describe_size(first, factor)),
        Hypothesis(
            "2 |mu_z sigma_w - mu_w sigma_z| / mu_w is much greater than 1",
            second >= factor,
            _describe_size(second, factor),
        ),
    )
    if not all(h.holds for h in hypotheses):
        return PaperBound("Theorem 2", None, hypotheses)
    ratio = _ratio_term(mu_z, mu_w, sigma_z**2, sigma_w**2, spread)
    return PaperBound("Theorem 2", ratio, hypotheses, mu_z / mu_w, float(np.sqrt(spread)) / mu_w, {"ratio": ratio})


def remark_9(mu_z: float, mu_w: float, sigma_z: float, sigma_w: float, rho: float) -> dict[str, float]:
    """Return the factors and summands of Theorem 2's bound that the paper's Remark 9 interprets.

    The bound is `sqrt(2 / pi)` times both factors times the sum of the three summands. It falls if the mean of the
    denominator is farther from zero or the ratio varies more. It grows with the numerator's mean and both variances.

    Parameters
    ----------
    mu_z, mu_w, sigma_z, sigma_w, rho
        As in `theorem_2`; its conditions are not checked.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> terms = dm.paper.remark_9(300, 1000, 20, 30, 0.5)
    >>> for name, value in terms.items():
    ...     print(f"{name:<20} {value:.3g}")
    1 / mu_w^3           1e-09
    1 / sigma            57.6
    |mu_z| sigma_w^2     2.7e+05
    mu_w^2               1e+06
    sigma_w^2 sigma_z^2  3.6e+05
    """
    mu_z, mu_w, rho = (_number(value, name) for name, value in (("mu_z", mu_z), ("mu_w", mu_w), ("rho", rho)))
    sigma_z, sigma_w = number_argument(sigma_z, "sigma_z", above=0.0), number_argument(sigma_w, "sigma_w", above=0.0)
    if not mu_w > 0.0 or abs(rho) > 1.0:
        raise InputError("mu_w, rho", f"{mu_w:g}, {rho:g}", "mu_w must be above 0, and rho must lie in [-1, 1].")
    slope = mu_z / mu_w
    variance = (sigma_z**2 - 2.0 * rho * sigma_z * sigma_w * slope + (slope * sigma_w) ** 2) / mu_w**2
    return {
        "1 / mu_w^3": mu_w**-3.0,
        "1 / sigma": float(np.inf) if variance <= 0.0 else float(variance**-0.5),
        "|mu_z| sigma_w^2": abs(mu_z) * sigma_w**2,
        "mu_w^2": mu_w**2,
        "sigma_w^2 sigma_z^2": (sigma_w * sigma_z) ** 2,
    }


def theorem_3(alpha: float, a: ArrayLike, beta: float, b: ArrayLike, p: Numbers | None) -> PaperBound:
    """Return the bound of Theorem 3 on the distance of a ratio of sums of labels to a Gaussian.

    The ratio is `(alpha + sum a Y) / (beta + sum b Y)`. The bound has a term from Lemma 1, "sums", and the one of
    Theorem 2, "ratio". Two hypotheses are not in the theorem but in its proof: no weight above 1 (otherwise the bound
    can be wrong), and no `b` below the smallest positive `a`.

    Parameters
    ----------
    alpha, beta : float
        Contributions of the labeled rows: 0 < alpha <= beta.
    a, b : array-like
        Weights of each label in numerator and denominator: 0 <= a <= b <= 1, 0 < b.
    p : array-like
        Probability of each label to be positive.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> decided = [1.0] * 1000 + [0.0] * 1000
    >>> recall = dm.paper.theorem_3(300, decided, 400, [1.0] * 2000, [0.3] * 2000)
    >>> recall, {name: round(term, 3) for name, term in recall.terms.items()}
    (<PaperBound: 0.1796 by Theorem 3>, {'sums': 0.077, 'ratio': 0.102})
    """
    alpha, beta = _number(alpha, "alpha"), _number(beta, "beta")
    a, b, p = _columns(a=a, b=b, p=p)
    v = p * (1.0 - p)
    mu_z, mu_w = alpha + dot(a, p), beta + dot(b, p)
    var_w = dot(b**2, v)
    spread = dot((a - mu_z / mu_w * b) ** 2, v) if mu_w > 0.0 else 0.0
    positive_a, min_b = a[a > 0.0], float(b.min(initial=np.inf))
    min_a, max_weight = float(positive_a.min(initial=np.inf)), float(np.maximum(a, b).max(initial=0.0))
    hypotheses = (
        Hypothesis("0 < alpha <= beta", 0.0 < alpha <= beta, f"alpha = {alpha:g}, beta = {beta:g}"),
        _check_rows("a >= 0", a >= 0.0, a=a),
        Hypothesis("some a is above 0", positive_a.size > 0, f"{positive_a.size:,} of {a.size:,}"),
        _check_rows("b > 0", b > 0.0, b=b),
        _check_rows("b >= a", b >= a, a=a, b=b),
        _check_rows("0 < p < 1", _is_inside(p), p=p),
        _check_rows(
            "no weight is above 1",
            np.maximum(a, b) <= 1.0,
            f"; divide alpha, a, beta and b by {max_weight:g}",
            a=a,
            b=b,
        ),
        Hypothesis(
            "no b is below the smallest positive a, for the last step of the proof",
            positive_a.size == 0 or min_b >= min_a,
            f"smallest b {min_b:g}, smallest positive a {min_a:g}",
        ),
        _check_varies(spread, var_w, mu_w),
    )
    if not all(h.holds for h in hypotheses):
        return PaperBound("Theorem 3", None, hypotheses)
    sums = _lemma_1_term(positive_a.size, float(v.min()), min_a, float(b.max()))
    ratio = _ratio_term(mu_z, mu_w, dot(a**2, v), var_w, spread)
    terms = {"sums": sums, "ratio": ratio}
    return PaperBound("Theorem 3", sums + ratio, hypotheses, mu_z / mu_w, float(np.sqrt(spread)) / mu_w, terms)


def paper_bound(
    evaluation_set: EvaluationSet, metric: str | Metric, p: Numbers | Mechanism | None = None
) -> PaperBound:
    """Return the paper's bound on the distance of a metric's distribution to its Gaussian.

    Lemma 1 applies to metrics with a denominator that does not depend on the missing labels (precision, accuracy),
    Theorem 3 to the others (recall). Neither applies to F1: a missing positive counts twice in the numerator and once
    in the denominator, so `b >= a` fails. If every missing positive makes the denominator smaller (specificity), the
    theorem is applied to the negatives.

    Parameters
    ----------
    evaluation_set : EvaluationSet
        The rows.
    metric : str or Metric
        A ratio of two weighted sums of the counts of the confusion matrix.
    p : float, str or mechanism, optional
        Probability of a missing label to be positive: one for all, or a mechanism, whose mean is taken. By default that
        of the set: `EvaluationSet(..., missingness=dm.missing.Fixed(p))` takes one per row.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 1, 0, 0] + [None] * 400, [0.9, 0.3, 0.8, 0.1] + [0.4, 0.7] * 200
    >>> data = dm.EvaluationSet(y_true, y_score, missingness=dm.missing.Fixed(y_score))
    >>> dm.paper.paper_bound(data, "precision")
    <PaperBound: 0.08641 by Lemma 1>
    >>> dm.paper.paper_bound(data, "f1")
    <PaperBound: none by Theorem 3, fails: b >= a (a = 2, b = 1 at position 200)>
    """
    chance = known_probabilities(evaluation_set, p)
    record = metrics_from(metric)
    if len(record) != 1:
        raise InputError("metric", f"expected one, got {len(record)}")
    functional = record[0].bind(evaluation_set, np.nan)
    ratio = functional.ratio if isinstance(functional, CountFunctional) else None
    if not isinstance(functional, CountFunctional) or ratio is None:
        raise MethodError(
            "metric",
            f"{record[0].name!r} is not a ratio of two weighted sums of the labels",
            "The paper bounds nothing else. Such ratios are 'precision', 'recall' and 'accuracy'.",
            "Use the certificate of the distribution, which covers other metrics.",
        )
    rows = functional.missing
    group = np.empty(rows.size, dtype=np.int64)
    for i, members in enumerate(functional.split.groups):
        group[members] = i
    weight = np.ones(rows.size) if functional.split.weight is None else functional.split.weight
    sums = ratio.numerator, ratio.denominator
    a, b = (np.repeat(weight * coefficients[1:][group], rows) for coefficients in sums)
    alpha, beta = (float(coefficients[0] + coefficients[1:] @ functional.offset) for coefficients in sums)
    chance = np.repeat(chance, rows)
    if not b.any():
        if beta == 0.0:
            raise MethodError("metric", f"{record[0].name!r} is 0/0 on these rows, whatever the missing labels are")
        counted = a != 0.0
        result = lemma_1(a[counted], chance[counted])
        if result.mean is None or result.std is None:
            return result
        return replace(result, mean=(alpha + result.mean) / beta, std=result.std / abs(beta))
    if b.max() < 0.0:
        alpha, beta, a, b, chance = alpha + a.sum(), beta + b.sum(), -a, -b, 1.0 - chance
    counted = (a != 0.0) | (b != 0.0)
    return theorem_3(alpha, a[counted], beta, b[counted], chance[counted])


@dataclass(frozen=True)
class CorollaryRate:
    """The corollary at one n: its leading term, and the bound of Theorem 3.

    Attributes
    ----------
    n : int
        Number of missing rows.
    leading : float
        `2 C0 / sqrt(r n p (1 - p))`, the leading term in the corollary.
    bound : PaperBound
        Theorem 3 at this n; its term "ratio", O(1/n) in the corollary, falls like n^(-1/2).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> for n in (10_000, 1_000_000):
    ...     rate = dm.paper.corollary_rate(n, r=0.5, p=0.3)
    ...     print(f"{n:>9,}: {rate.leading:.4f} leads, {rate.bound.terms['ratio']:.4f} is the other term")
       10,000: 0.0346 leads, 0.0555 is the other term
    1,000,000: 0.0035 leads, 0.0056 is the other term
    """

    n: int
    leading: float
    bound: PaperBound

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {"n": self.n, "leading": self.leading, "bound": self.bound.to_dict()}


def corollary_rate(n: int, r: float, p: float, *, alpha: float = 1.0, beta: float = 1.0) -> CorollaryRate:
    """Return how fast the paper's bound falls with the number of missing rows, in the setting of its corollary.

    All `b` are 1, a fraction `r` of the `a` is 1 and the others are 0, all probabilities are `p`.

    Parameters
    ----------
    n : int
        Number of missing rows.
    r, p : float
        Fraction of rows with a = 1, and the probability of every label; strictly between 0 and 1.
    alpha, beta : float
        Contributions of labeled rows, as in `theorem_3`.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> rate = dm.paper.corollary_rate(40_000, r=0.5, p=0.5)
    >>> round(rate.leading, 4), rate.bound
    (0.0158, <PaperBound: 0.03778 by Theorem 3>)
    """
    if not is_whole(n) or n < 1:
        raise InputError("n", f"{n!r}", "It must be a whole number of at least 1.")
    for name, value in (("r", r), ("p", p)):
        if not 0.0 < _number(value, name) < 1.0:
            raise InputError(name, f"{value:g}", "It must lie strictly between 0 and 1.")
    a = (np.arange(n) < np.floor(r * n)).astype(np.float64)
    leading = _lemma_1_term(r * n, p * (1.0 - p), 1.0, 1.0)
    return CorollaryRate(int(n), leading, theorem_3(alpha, a, beta, np.ones(n), np.full(n, p)))


def _lemma_1_term(n: float, v: float, min_weight: float, max_weight: float) -> float:
    """Return twice the bound of Lemma 1, as in Theorem 3 and the corollary."""
    return float(CONSTANT / np.sqrt(n * v) * (1.0 + max_weight) / min_weight)


def _ratio_term(mu_z: float, mu_w: float, var_z: float, var_w: float, spread: float) -> float:
    """Return the bound of Theorem 2; `spread` is the variance of Z - (mu_z / mu_w) W: sigma = sqrt(spread) / mu_w."""
    above = var_w * (abs(mu_z) + var_z) + mu_w**2
    return float(np.sqrt(2.0 / np.pi) * above / (np.sqrt(spread) * mu_w**2))


def _check_rows(statement: str, holds: BoolArray, advice: str = "", **values: FloatArray) -> Hypothesis:
    """Return a hypothesis about every row: the range of the values if it holds, else the first row that breaks it."""
    if holds.all():
        found = ", ".join(f"{name} from {x.min():g} to {x.max():g}" for name, x in values.items() if x.size)
        return Hypothesis(statement, True, found or "no rows")
    first = int(np.argmin(holds))
    found = ", ".join(f"{name} = {x[first]:g}" for name, x in values.items())
    return Hypothesis(statement, False, f"{found} at position {first}{advice}")


def _check_varies(spread: float, variance: float, mu_w: float) -> Hypothesis:
    """Return the hypothesis that the ratio varies."""
    varies = spread > _CONSTANT**2 * variance
    sd = f"{np.sqrt(spread) / mu_w:.3g}" if varies else "0"
    return Hypothesis("the ratio is not constant", varies, f"standard deviation {sd}")


def _describe_size(value: float, factor: float) -> str:
    return f"{value:.3g}, at least {factor:g} is required"


def _is_inside(p: FloatArray) -> BoolArray:
    return (p > 0.0) & (p < 1.0)


def _number(value: Any, name: str) -> float:
    return number_argument(value, name, above=-np.inf)


def _columns(**arguments: Any) -> list[FloatArray]:
    """Return columns of finite numbers of one length."""
    columns = {name: frames.number_column(values, name) for name, values in arguments.items()}
    frames.row_names(**arguments)
    sizes = {name: column.size for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        lengths = ", ".join(f"{named(name)} has {size:,}" for name, size in sizes.items())
        raise InputError(next(iter(sizes)), f"expected columns of one length, but {lengths}")
    for name, column in columns.items():
        check_finite(column, name, "All values must be finite.")
    return list(columns.values())
