"""A ratio of linear sums of independent variables (mathematics, section 2)."""

from typing import Any


def ratio_variance(mean: Any, numerator: Any, denominator: Any, sums: Any, variances: Any) -> Any:
    """The paper's variance of `(a_0 + sum a_i X_i) / (b_0 + sum b_i X_i)` with independent X_i; nan where 0/0.

    `mean` is the ratio at the means `sums` of the X_i. Each of the other arguments is a sequence, of numbers or of
    arrays of one shape for many ratios at once.
    """
    below = denominator[0] + sum(b * x for b, x in zip(denominator[1:], sums, strict=True))
    pairs = zip(numerator[1:], denominator[1:], variances, strict=True)
    return sum(((a - mean * b) / below) ** 2 * variance for a, b, variance in pairs)
