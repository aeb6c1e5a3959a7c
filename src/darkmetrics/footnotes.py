"""What stands below the table of an evaluation: what its intervals are for, and what is proven of approximations."""

from collections.abc import Mapping

import numpy as np

from darkmetrics.distribution import MetricDistribution
from darkmetrics.tables import level_text


def scope_in_words(scope: str, rows: int) -> str:
    """Which of the two the intervals are for: the rows, or the population that they came from."""
    these = "this row" if rows == 1 else f"these {rows:,} rows"
    if scope == "population":
        return f"Intervals are for the population that {these} came from, not for the rows."
    return f"Intervals are for {these}, not for the population they came from."


def proven(laws: dict[str, MetricDistribution]) -> str:
    """What is proven about the error of approximate laws, in a sentence."""
    proofs = {name: law.certificate for name, law in laws.items()}
    useful = [
        f"{proof.ks_bound:.2g} ({name}{'' if proof.confidence == 1.0 else f', {level_text(proof.confidence)} sure'})"
        for name, proof in proofs.items()
        if proof is not None and not proof.vacuous
    ]
    useless = [name for name, proof in proofs.items() if proof is None or proof.vacuous]
    text = f"Proven: no probability of these laws is off by more than {', '.join(useful)}." if useful else ""
    return text + (f" Nothing is proven of {', '.join(useless)}." if useless else "")


def buckets_in_words(buckets: int, effects: Mapping[str, float]) -> str:
    """How far buckets can have moved the metrics, in a sentence."""
    moved = [f"{name} by at most {_rounded_up(effect):.2g}" for name, effect in effects.items() if effect > 0.0]
    unknown = [name for name, effect in effects.items() if np.isnan(effect)]
    exact = [name for name, effect in effects.items() if effect == 0.0]
    text = f"Scores are in {buckets:,} buckets"
    if moved:
        text += f": that moves {', '.join(moved)}"
    if exact:
        text += f"{';' if moved else ':'} {', '.join(exact)} {'is' if len(exact) == 1 else 'are'} exact"
    return text + "." + (f" How far it moves {', '.join(unknown)} is not known." if unknown else "")


def _rounded_up(bound: float) -> float:
    """Two digits of a bound, which must not become smaller in print."""
    unit = 10.0 ** (np.floor(np.log10(bound)) - 1.0)
    return float(np.ceil(bound / unit) * unit)
