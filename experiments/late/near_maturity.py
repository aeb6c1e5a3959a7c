"""`python -m experiments.late.near_maturity`: rows that have nearly reached the maturity hold hardly a positive.

Simulated rows like those of FLChain at the last cut, which come with scikit-survival: patients who die at rates that
the score knows in part, a horizon of five years, four of admission, ages alone known.
"""

import argparse

import numpy as np

from experiments.late.answers import METRICS, answers
from experiments.late.problems import LateRows

_HORIZON, _ADMISSION, _RATE, _SPREAD = 5 * 365.0, 4 * 365.0, 0.032 / 365.0, 1.2


def rows_of(seed: int, cut: float, *, n: int = 3650) -> LateRows:
    """Patients looked at when a share `cut` of the whole time has passed; who lives to the horizon is negative."""
    rng = np.random.default_rng((99, seed))
    frail = rng.normal(size=n)
    died = rng.exponential(size=n) / (_RATE * np.exp(_SPREAD * frail - _SPREAD**2 / 2.0))
    seen = frail + 0.5 * rng.normal(size=n)
    score = -np.expm1(-_HORIZON * _RATE * np.exp(_SPREAD * seen / 1.25 - _SPREAD**2 / 2.0))
    admitted = _ADMISSION * rng.random(n)
    age = cut * (_ADMISSION + _HORIZON) - admitted
    y = (died < _HORIZON).astype(float)
    score = np.clip(score, 1e-4, 1.0 - 1e-4)
    here, delay = age >= 0.0, np.where(y == 1.0, died, _HORIZON)
    return LateRows(y[here], score[here], age[here], delay[here], threshold=0.15, maturity=_HORIZON)


def main() -> None:
    """Print how many intervals held the truth, and the median width, from ages alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=16)
    parser.add_argument("--cut", type=float, default=0.94)
    chosen = parser.parse_args()
    found = [
        answer
        for seed in range(chosen.sets)
        for answer in answers(rows_of(seed, chosen.cut), seed=seed, others=False)
        if answer["told"] == "ages"
    ]
    for metric in METRICS:
        own = [one for one in found if one["metric"] == metric]
        held = sum(one["low"] - 1e-9 <= one["truth"] <= one["high"] + 1e-9 for one in own)
        width = np.median([one["high"] - one["low"] for one in own])
        print(f"{metric:<10} {held} of {len(own)}, width {width:.4f}")


if __name__ == "__main__":
    main()
