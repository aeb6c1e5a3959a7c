"""Rows of one group share a part of their luck: labels that depend on each other, with the chances that they have.

Row i of group g is positive where `sqrt(rho) u_g + sqrt(1 - rho) e_i < z_i`, with standard normal u and e and
`z_i = Phi^-1(p_i)`: its chance is p_i whatever rho is, and rows with one chance have one label as rho goes to 1.
"""

import numpy as np
from scipy.special import ndtr, ndtri

from darkmetrics._kernels.arrays import FloatArray, IntArray

# What rho may be, and the prior of each: all values from 0 to 1 are equally likely.
RHO = np.array([0.0, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.96, 0.99, 0.999, 0.9999])
_PRIOR = np.gradient(RHO)
# Places of u and their masses.
LUCK = np.linspace(-5.0, 5.0, 101)
_MASS = np.exp(-0.5 * LUCK**2) / np.exp(-0.5 * LUCK**2).sum()
_LEAST = 1e-12


def thresholds(p: FloatArray) -> FloatArray:
    """Phi^-1 of chances, which may be 0 and 1."""
    return np.asarray(ndtri(np.clip(p, _LEAST, 1.0 - _LEAST)))


def chances_given_luck(z: FloatArray, rho: float) -> FloatArray:
    """The chance of each row at every place of u (rows x places)."""
    return np.asarray(ndtr((z[:, None] - np.sqrt(rho) * LUCK) / np.sqrt(1.0 - rho)))


def luck_of_groups(
    z: FloatArray, positives: FloatArray, negatives: FloatArray, group: IntArray, n_groups: int, rho: float
) -> tuple[FloatArray, float]:
    """The law of u in each group given its labels (groups x places), and the log likelihood of the labels."""
    log = np.zeros((n_groups, LUCK.size))
    chance = np.clip(chances_given_luck(z, rho), _LEAST, 1.0 - _LEAST)
    np.add.at(log, group, positives[:, None] * np.log(chance) + negatives[:, None] * np.log1p(-chance))
    top = log.max(axis=1, keepdims=True)
    mass = np.exp(log - top) * _MASS
    total = mass.sum(axis=1, keepdims=True)
    return mass / total, float((top + np.log(total)).sum())


def correlation(z: FloatArray, rows: FloatArray, rho: float) -> float:
    """How labels of two rows with one chance are correlated, over all rows."""
    p = np.asarray(ndtr(z))
    both = chances_given_luck(z, rho) ** 2 @ _MASS
    return float(rows @ (both - p**2) / max(float(rows @ (p * (1.0 - p))), 1e-300))


def posterior_of_rho(log_likelihood: FloatArray) -> FloatArray:
    """The probability of each value of rho."""
    weight = _PRIOR * np.exp(log_likelihood - log_likelihood.max())
    result: FloatArray = weight / weight.sum()
    return result


def updated_chances(z: FloatArray, law: FloatArray, rho: float) -> FloatArray:
    """The chance of each row given the luck of its group, whose law is taken as normal; `z` may have a row per node."""
    mean = law @ LUCK
    var = np.maximum(law @ LUCK**2 - mean**2, 0.0)
    return np.asarray(ndtr((z - np.sqrt(rho) * mean) / np.sqrt(1.0 - rho + rho * var)))
