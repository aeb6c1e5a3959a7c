"""Ours, told nothing but labels and scores; or, as a fourth argument, why labels are missing."""

import sys
import warnings

import numpy as np
from harness import LEVEL, METRICS, THRESHOLD, Answer, main

import darkmetrics as dm


def estimate(label: np.ndarray, score: np.ndarray, resamples: int) -> Answer:
    told = sys.argv[4] if len(sys.argv) > 4 else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dm.MissingnessWarning)
        result = dm.evaluate(label, score, threshold=THRESHOLD, metrics=list(METRICS), missingness=told)
    return {name: (distribution.mean(), *distribution.interval(LEVEL)) for name, distribution in result.items()}


if __name__ == "__main__":
    main("darkmetrics", estimate)
