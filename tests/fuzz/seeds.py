"""One seed: a problem, some metrics, a method; the library's laws held against the truth."""

import json
import math
import time
from collections import Counter
from functools import partial
from typing import Any

import numpy as np

import darkmetrics as dm
from fuzz import checks
from fuzz.measures import MEASURES
from fuzz.problems import Case, case_of
from fuzz.truth import truths

METHODS = ("auto", "auto", "auto", "exact", "gaussian", "monte_carlo")


def choice_of(seed: int, case: Case, number: int) -> tuple[list[str], str]:
    """The metrics and the method of a seed."""
    rng = np.random.default_rng([seed, 1])
    names = [name for name in MEASURES if _fits(name, case)]
    return [str(name) for name in rng.choice(names, min(number, len(names)), replace=False)], str(rng.choice(METHODS))


def _fits(name: str, case: Case) -> bool:
    """Whether a metric exists on these rows: the top row needs a weight of one."""
    return name != "precision_at_k(1)" or (case.weight is None)


def alarms(seed: int, *, counts: Counter[str], largest: int = 600, number: int = 6, draws: int = 40_000) -> list[str]:
    """What is wrong with the laws of a seed, each with its metric and method in front; empty if nothing is."""
    case = case_of(seed, largest=largest)
    names, method = choice_of(seed, case, number)
    found: list[str] = []
    distributions = _laws(case, names, method, found, counts)
    fills = checks.fills_of(case, names)
    true = truths(list(distributions), case, fills, draws)
    gaussian = [name for name, distribution in distributions.items() if distribution.method == "gaussian"]
    if gaussian:
        # Such a law describes the metric where it is defined; its bounds hold the value of a 0/0 all the same.
        for name, distribution in truths(gaussian, case, dict.fromkeys(gaussian, math.nan), draws).items():
            true[name] = distribution._replace(low=true[name].low, high=true[name].high)
    for name, distribution in distributions.items():
        question = partial(checks.wrong_law, distribution, true[name], case, MEASURES[name], counts)
        wrong, problem = checks.guarded(question)
        found += [f"{name} ({distribution.method}): {one}" for one in ([problem] if problem else wrong)]
    return found


def _laws(case: Case, names: list[str], method: str, found: list[str], counts: Counter[str]) -> dict[str, Any]:
    """The laws that there are; a method may refuse a metric in words, and nothing else."""
    start = time.process_time()
    try:
        result, problem = checks.guarded(partial(_printed, case, names, method))
        counts["slowest (ms)"] = max(counts["slowest (ms)"], int(1000 * (time.process_time() - start)))
        if not problem:
            return dict(result.items())
    except dm.exceptions.MethodError as error:
        counts["refused"] += 1
        problem = "" if str(error).startswith("method: ") else f"refused without the argument in front: {error}"
    if len(names) > 1:  # one by one: which of them it was, and what the others are
        each = [_laws(case, [name], method, found, counts) for name in names]
        return {name: distribution for one in each for name, distribution in one.items()}
    if problem:
        found.append(f"{names[0]} ({method}): {problem}")
    return {}


def _printed(case: Case, names: list[str], method: str) -> dm.Evaluation:
    """The laws, after all that a user looks at first has been made of them."""
    result = checks.ask(case, names, method, rng=0)
    result._repr_html_(), repr(result[names[0]])
    json.dumps(result.to_dict(), allow_nan=False)
    return result
