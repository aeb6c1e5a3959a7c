"""A mixture of Gaussians in one dimension: the first guess for the quantiles of laws that are nearly one."""

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import FloatArray


def normal_mixture_density(t: float, weight: FloatArray, mean: FloatArray, sd: FloatArray) -> float:
    """Density at t; components without spread have none."""
    wide = sd > 0.0
    z = (t - mean[wide]) / sd[wide]
    return float(weight[wide] @ (np.exp(-0.5 * z**2) / sd[wide])) / float(np.sqrt(2.0 * np.pi))


def normal_mixture_quantile(q: float, weight: FloatArray, mean: FloatArray, sd: FloatArray) -> float:
    """Place where the cdf reaches q, to a millionth of the smallest spread; 0 < q < 1."""
    ends = mean + sd * float(ndtri(q))
    a, b = float(ends.min()), float(ends.max())
    wide = sd > 0.0
    scale = np.where(wide, sd, 1.0)
    enough = 1e-6 * float(sd[wide].min()) if wide.any() else 0.0
    for _ in range(200):  # more halvings than a double has bits
        if b - a <= enough:
            break
        middle = 0.5 * (a + b)
        level = np.where(wide, ndtr((middle - mean) / scale), middle >= mean)
        a, b = (middle, b) if float(weight @ level) < q else (a, middle)
    return 0.5 * (a + b)
