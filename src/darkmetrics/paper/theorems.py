"""The paper's own bounds, for study: Lemma 1, Theorems 2 and 3, the corollary, and their hypotheses on your data.

Each function checks what its statement, and the proof of it, asks for. Where something fails there is no number, and
the result says what failed. What is corrected here, and why, is listed in `docs/reference/guarantees.md`; certificates
(`law.certificate`) are the bounds to rely on.
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

__all__ = [
    "CorollaryRate",
    "Hypothesis",
    "PaperBound",
    "corollary_rate",
    "lemma_1",
    "paper_bound",
    "theorem_2",
    "theorem_3",
]

# A standard deviation this small beside that of the denominator is the rounding error of a ratio that is constant.
_CONSTANT = 1e-12


@dataclass(frozen=True)
class Hypothesis:
    """What a theorem asks for: the statement, whether it holds, and what was found (the first value that breaks it).

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
    """How far is the law from a Gaussian at most, by the paper? A number, or None and what it lacks.

    Attributes
    ----------
    theorem : str
        Which statement of the paper it is.
    ks_bound : float or None
        Bound on the Kolmogorov-Smirnov distance; None as soon as one hypothesis fails. From 1 on it says nothing.
    hypotheses : tuple of Hypothesis
        What the statement and its proof ask for.
    mean, std : float or None
        The Gaussian that the bound is about; None where it cannot be computed.
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
        """Whether there is no bound, or one of 1 or more, which any two laws keep."""
        return self.ks_bound is None or self.ks_bound >= 1.0

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and text, ready for JSON."""
        return {**asdict(self), "hypotheses": [asdict(h) for h in self.hypotheses], "holds": self.holds}

    def __repr__(self) -> str:
        if self.ks_bound is None:
            failed = next(h for h in self.hypotheses if not h.holds)
            return f"<PaperBound: none by {self.theorem}, not so: {failed.statement} ({failed.found})>"
        return f"<PaperBound: {self.ks_bound:.4g} by {self.theorem}>"

    def __str__(self) -> str:
        if self.ks_bound is None:
            first = f"{self.theorem}: no bound, because a hypothesis does not hold."
        else:
            first = (
                f"{self.theorem}: at most {self.ks_bound:.4g} from a Gaussian with mean {self.mean:.4g} and standard "
                f"deviation {self.std:.3g}{', which any distribution is' if self.vacuous else ''}."
            )
        words = {True: "holds", False: "does not hold"}
        return "\n".join([first, *(f"{words[h.holds]:>14}: {h.statement} ({h.found})" for h in self.hypotheses)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def lemma_1(a: ArrayLike, p: Numbers | None) -> PaperBound:
    """How far is a weighted sum of independent labels from a Gaussian at most, by the paper's Lemma 1?

    The Gaussian has the sum's own mean `sum a p` and variance `sum a^2 p (1 - p)`; the paper prints `a` for `a^2`. The
    bound is `C0 (1 + max |a|) / (2 min |a| sqrt(n v))`, C0 = 0.56 and v the smallest p (1 - p).

    Parameters
    ----------
    a : array-like
        Weights of the labels: not 0, and at most 1 in absolute value, which the proof needs without saying so.
    p : array-like
        Chance of each label to be positive.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> dm.paper.lemma_1([1.0] * 400, [0.5] * 400)
    <PaperBound: 0.056 by Lemma 1>
    """
    a, p = _columns(a=a, p=p)
    size = np.abs(a)
    most = float(size.max(initial=0.0))
    hypotheses = (
        Hypothesis("there is a row", a.size > 0, f"{a.size:,} rows"),
        _every("no weight is zero", size > 0.0, a=a),
        _every("|a| <= 1, for the step from |a|^3 to a^2", size <= 1.0, f"; divide all weights by {most:g}", a=a),
        _every("0 < p < 1", _inside(p), p=p),
    )
    v = p * (1.0 - p)
    if not all(h.holds for h in hypotheses):
        return PaperBound("Lemma 1", None, hypotheses)
    bound = _lemma_1_term(a.size, float(v.min()), float(size.min()), most) / 2.0
    return PaperBound("Lemma 1", bound, hypotheses, dot(a, p), float(np.sqrt(dot(a**2, v))), {"sums": bound})


def theorem_2(
    mu_z: float, mu_w: float, sigma_z: float, sigma_w: float, rho: float, *, factor: float = 10.0
) -> PaperBound:
    """How far is the ratio Z / W of two correlated Gaussians from a Gaussian at most, by the paper's Theorem 2?

    Its two conditions say that something is much greater than 1; here that is `factor` or more. The second one is
    `2 |mu_z sigma_w - mu_w sigma_z| / mu_w`, as the theorem states it and its proof derives it; the last line of that
    derivation is misprinted. Where mu_z is negative, its absolute value takes its place: the proof drops rho, and the
    worst rho has the sign of mu_z.

    Parameters
    ----------
    mu_z, mu_w, sigma_z, sigma_w : float
        Means and standard deviations of numerator and denominator.
    rho : float
        Their correlation.
    factor : float
        From which number on something is much greater than 1.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> print(dm.paper.theorem_2(300, 1000, 20, 30, 0.5))
    Theorem 2: at most 0.07496 from a Gaussian with mean 0.3 and standard deviation 0.0173.
             holds: W has a positive mean, and |rho| is at most 1 (mu_w = 1000, rho = 0.5)
             holds: the ratio is not constant (standard deviation 0.0173)
             holds: mu_w / sigma_w is much greater than 1 (33.3, taken as such from 10 on)
             holds: 2 |mu_z sigma_w - mu_w sigma_z| / mu_w is much greater than 1 (22, taken as such from 10 on)
    """
    mu_z, mu_w, rho = (_number(value, name) for name, value in (("mu_z", mu_z), ("mu_w", mu_w), ("rho", rho)))
    sigma_z, sigma_w = number_argument(sigma_z, "sigma_z", above=0.0), number_argument(sigma_w, "sigma_w", above=0.0)
    factor = number_argument(factor, "factor", above=1.0)
    possible = mu_w > 0.0 and abs(rho) <= 1.0
    first = np.inf if sigma_w == 0.0 else mu_w / sigma_w
    second = 2.0 * abs(abs(mu_z) * sigma_w - mu_w * sigma_z) / mu_w if possible else 0.0
    part = sigma_w * mu_z / mu_w if possible else 0.0
    spread = (sigma_z - rho * part) ** 2 + (1.0 - rho**2) * part**2 if possible else 0.0
    hypotheses = (
        Hypothesis("W has a positive mean, and |rho| is at most 1", possible, f"mu_w = {mu_w:g}, rho = {rho:g}"),
        _varies(spread, sigma_z**2, mu_w),
        Hypothesis("mu_w / sigma_w is much greater than 1", first >= factor, _from(first, factor)),
        Hypothesis(
            "2 |mu_z sigma_w - mu_w sigma_z| / mu_w is much greater than 1", second >= factor, _from(second, factor)
        ),
    )
    if not all(h.holds for h in hypotheses):
        return PaperBound("Theorem 2", None, hypotheses)
    ratio = _ratio_term(mu_z, mu_w, sigma_z**2, sigma_w**2, spread)
    return PaperBound("Theorem 2", ratio, hypotheses, mu_z / mu_w, float(np.sqrt(spread)) / mu_w, {"ratio": ratio})


def theorem_3(alpha: float, a: ArrayLike, beta: float, b: ArrayLike, p: Numbers | None) -> PaperBound:
    """How far is a ratio of sums of labels from a Gaussian at most, by the paper's Theorem 3?

    The ratio is `(alpha + sum a Y) / (beta + sum b Y)`. The bound has a term from Lemma 1, "sums", and the one of
    Theorem 2, "ratio". Two hypotheses are not in the theorem but in its proof: no weight above 1 (without it the bound
    can be wrong), and no `b` below the smallest positive `a`.

    Parameters
    ----------
    alpha, beta : float
        What labeled rows contribute: 0 < alpha <= beta.
    a, b : array-like
        Weights of each label in numerator and denominator: 0 <= a <= b <= 1, 0 < b.
    p : array-like
        Chance of each label to be positive.

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
    used, least_b = a[a > 0.0], float(b.min(initial=np.inf))
    least_a, most = float(used.min(initial=np.inf)), float(np.maximum(a, b).max(initial=0.0))
    hypotheses = (
        Hypothesis("0 < alpha <= beta", 0.0 < alpha <= beta, f"alpha = {alpha:g}, beta = {beta:g}"),
        _every("a >= 0", a >= 0.0, a=a),
        Hypothesis("some a is above 0", used.size > 0, f"{used.size:,} of {a.size:,}"),
        _every("b > 0", b > 0.0, b=b),
        _every("b >= a", b >= a, a=a, b=b),
        _every("0 < p < 1", _inside(p), p=p),
        _every("no weight is above 1", np.maximum(a, b) <= 1.0, f"; divide alpha, a, beta and b by {most:g}", a=a, b=b),
        Hypothesis(
            "no b is below the smallest positive a, for the last step of the proof",
            used.size == 0 or least_b >= least_a,
            f"smallest b {least_b:g}, smallest positive a {least_a:g}",
        ),
        _varies(spread, var_w, mu_w),
    )
    if not all(h.holds for h in hypotheses):
        return PaperBound("Theorem 3", None, hypotheses)
    sums = _lemma_1_term(used.size, float(v.min()), least_a, float(b.max()))
    ratio = _ratio_term(mu_z, mu_w, dot(a**2, v), var_w, spread)
    terms = {"sums": sums, "ratio": ratio}
    return PaperBound("Theorem 3", sums + ratio, hypotheses, mu_z / mu_w, float(np.sqrt(spread)) / mu_w, terms)


def paper_bound(
    evaluation_set: EvaluationSet, metric: str | Metric, p: Numbers | Mechanism | None = None
) -> PaperBound:
    """How far is the law of this metric from its Gaussian at most, by the paper?

    Metrics whose denominator does not depend on the missing labels (precision, accuracy) fall under Lemma 1, the others
    (recall) under Theorem 3. F1 falls under none: a missing positive counts twice in the numerator and once in the
    denominator, so `b >= a` fails. Where every missing positive makes the denominator smaller (specificity), the
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
    <PaperBound: none by Theorem 3, not so: b >= a (a = 2, b = 1 at position 200)>
    """
    chance = known_probabilities(evaluation_set, p)
    record = metrics_from(metric)
    if len(record) != 1:
        raise InputError(f"metric: expected one, got {len(record)}.")
    functional = record[0].bind(evaluation_set, np.nan)
    ratio = functional.ratio if isinstance(functional, CountFunctional) else None
    if not isinstance(functional, CountFunctional) or ratio is None:
        raise MethodError(
            f"metric: {record[0].name!r} is not a ratio of two weighted sums of the labels, and the paper bounds "
            "nothing else. Such ratios are 'precision', 'recall' and 'accuracy'; law.certificate also has other bounds."
        )
    rows = functional.missing
    group = np.empty(rows.size, dtype=np.int64)
    for i, members in enumerate(functional.split.groups):
        group[members] = i
    weight = np.ones(rows.size) if functional.split.weight is None else functional.split.weight
    a, b = (np.repeat(weight * part[1:][group], rows) for part in (ratio.numerator, ratio.denominator))
    alpha, beta = (float(part[0] + part[1:] @ functional.offset) for part in (ratio.numerator, ratio.denominator))
    chance = np.repeat(chance, rows)
    if not b.any():
        if beta == 0.0:
            raise MethodError(f"metric: {record[0].name!r} is 0/0 on these rows, whatever the missing labels are.")
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
    """The corollary at one n: its leading term, and the bound of Theorem 3 that it is the limit of.

    Attributes
    ----------
    n : int
        Number of missing rows.
    leading : float
        `2 C0 / sqrt(r n p (1 - p))`, what the corollary keeps.
    bound : PaperBound
        Theorem 3 at this n; its term "ratio" is what the corollary calls O(1/n), and falls like n^(-1/2).

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
    """How fast does the paper's bound fall with the number of missing rows, in the setting of its corollary?

    All `b` are 1, a share `r` of the `a` is 1 and the rest 0, all probabilities are `p`.

    Parameters
    ----------
    n : int
        Number of missing rows.
    r, p : float
        Share of rows with a = 1, and the chance of every label; strictly between 0 and 1.
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
        raise InputError(f"n: {n!r}. It must be a whole number of at least 1.")
    for name, value in (("r", r), ("p", p)):
        if not 0.0 < _number(value, name) < 1.0:
            raise InputError(f"{name}: {value:g}. It must lie strictly between 0 and 1.")
    a = (np.arange(n) < np.floor(r * n)).astype(np.float64)
    leading = _lemma_1_term(r * n, p * (1.0 - p), 1.0, 1.0)
    return CorollaryRate(int(n), leading, theorem_3(alpha, a, beta, np.ones(n), np.full(n, p)))


def _lemma_1_term(n: float, v: float, least: float, most: float) -> float:
    """Twice the bound of Lemma 1, as Theorem 3 and the corollary have it."""
    return float(CONSTANT / np.sqrt(n * v) * (1.0 + most) / least)


def _ratio_term(mu_z: float, mu_w: float, var_z: float, var_w: float, spread: float) -> float:
    """The bound of Theorem 2; `spread` is the variance of Z - (mu_z / mu_w) W, so that sigma = sqrt(spread) / mu_w."""
    above = var_w * (abs(mu_z) + var_z) + mu_w**2
    return float(np.sqrt(2.0 / np.pi) * above / (np.sqrt(spread) * mu_w**2))


def _every(statement: str, kept: BoolArray, advice: str = "", **values: FloatArray) -> Hypothesis:
    """A hypothesis about every row: the range of the values if it holds, else the first row that breaks it."""
    if kept.all():
        found = ", ".join(f"{name} from {x.min():g} to {x.max():g}" for name, x in values.items() if x.size)
        return Hypothesis(statement, True, found or "no rows")
    first = int(np.argmin(kept))
    found = ", ".join(f"{name} = {x[first]:g}" for name, x in values.items())
    return Hypothesis(statement, False, f"{found} at position {first}{advice}")


def _varies(spread: float, variance: float, mu_w: float) -> Hypothesis:
    """The hypothesis that the ratio has a Gaussian at all."""
    varies = spread > _CONSTANT**2 * variance
    sd = f"{np.sqrt(spread) / mu_w:.3g}" if varies else "0"
    return Hypothesis("the ratio is not constant", varies, f"standard deviation {sd}")


def _from(value: float, factor: float) -> str:
    return f"{value:.3g}, taken as such from {factor:g} on"


def _inside(p: FloatArray) -> BoolArray:
    return (p > 0.0) & (p < 1.0)


def _number(value: Any, name: str) -> float:
    return number_argument(value, name, above=-np.inf)


def _columns(**given: Any) -> list[FloatArray]:
    """Columns of finite numbers of one length."""
    columns = {name: frames.number_column(values, name) for name, values in given.items()}
    frames.row_names(**given)
    sizes = {name: column.size for name, column in columns.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name} has {size:,}" for name, size in sizes.items())
        raise InputError(f"{next(iter(sizes))}: one value per row is needed of each, but {found}.")
    for name, column in columns.items():
        check_finite(column, name, "All values must be finite.")
    return list(columns.values())
