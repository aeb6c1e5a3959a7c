"""What the proof costs: the certificates of five Gaussian laws against the Gaussian method itself."""

from collections.abc import Iterator
from typing import Any

import numpy as np

import darkmetrics as dm
from benchmarks.core import problem, row, seconds


def certificates() -> Iterator[dict[str, Any]]:
    _, partly, score, probability = problem(1_000_000)
    ways: dict[str, dict[str, Any]] = {
        "known probabilities": {"missingness": dm.missing.Fixed(probability)},
        "default label model": {},
    }
    for name, settings in ways.items():
        method, proof = _times(lambda settings=settings: dm.evaluate(partly, score, method="gaussian", **settings))
        yield row(
            f"certificates / evaluate(method='gaussian'), {name}",
            proof / method,
            0.5,
            f"{proof:.3f} s on top of {method:.3f} s, five metrics, n = 1e6, best of 5 each",
        )
    result = dm.evaluate(partly, score, method="gaussian", missingness=dm.missing.Fixed(probability))
    functionals = [metric.bind(result.data, np.nan) for metric in result.metrics.values()]
    method, proof = _times(lambda: _laws(functionals, result.posterior))
    yield row(
        "certificates / the laws alone, the set being ready",
        proof / method,
        0.5,
        f"{proof:.3f} s on top of {method:.3f} s, five metrics, n = 1e6, best of 5 each",
    )


def _laws(functionals: list[Any], posterior: Any) -> dict[int, Any]:
    return dict(enumerate(dm.methods.Gaussian().distributions(functionals, posterior, rng=0)))


def _times(make: Any) -> tuple[float, float]:
    """Best of five, taken in turns: the laws, and then their certificates."""
    distributions: list[Any] = []
    pairs = []
    for _ in range(5):
        method = seconds(lambda: distributions.append(make()), 1)
        proof = seconds(lambda: [distribution.certificate.ks_bound for distribution in distributions[-1].values()], 1)
        pairs.append((method, proof))
    return min(pair[0] for pair in pairs), min(pair[1] for pair in pairs)


BENCHMARKS = [certificates]
