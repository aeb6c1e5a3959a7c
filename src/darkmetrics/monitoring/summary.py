"""What is kept of each group: a few numbers per metric, not the laws, which would not fit into memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from darkmetrics.exceptions import Warned
from darkmetrics.tables import decimals_for, number_text

Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class MetricSummary:
    """One metric in one group, in numbers; NaN where there is none.

    Attributes
    ----------
    mean, low, high : float
        Mean of the law and ends of its interval.
    labelled_only : float
        The metric on the labelled rows alone.
    lowest_possible, highest_possible : float
        What the metric can be at all, over all labelings of the missing rows.
    undefined : float
        Probability of a 0/0.
    method : str
        How the law was found; "bounds" where the labels do not suffice for one, and only what is possible holds.
    bucket_effect : float
        How far score buckets can have moved the metric: 0 where scores are exact or the metric counts decisions, NaN
        where it is not known.
    """

    mean: float
    low: float
    high: float
    labelled_only: float
    lowest_possible: float
    highest_possible: float
    undefined: float
    method: str
    bucket_effect: float = 0.0


@dataclass(frozen=True, slots=True)
class GroupSummary:
    """One group in numbers.

    Attributes
    ----------
    key : tuple
        The value of each grouping column; None where it is null.
    counts : dict
        Counts: "rows", "labelled", "positive", "negative", "missing".
    metrics : mapping from metric name to MetricSummary
        The numbers.
    chance_missed : mapping from metric name to float
        Probability that the target is missed, for each metric that has one; NaN where the metric is never defined or
        the group has no law.
    too_small : str
        Why the group says too little to take part in the alerts; empty if it does take part.
    notes : tuple of str
        Warnings about this group.
    warnings : tuple of Warned
        The same with their categories, as the evaluation of the group keeps them.
    """

    key: Key
    counts: Mapping[str, int]
    metrics: Mapping[str, MetricSummary]
    chance_missed: Mapping[str, float]
    too_small: str
    notes: tuple[str, ...]
    warnings: tuple[Warned, ...] = ()


def cell_text(one: MetricSummary) -> str:
    """What a table says of one metric in a group."""
    if one.method == "bounds":
        return f"{number_text(one.lowest_possible, 2)} to {number_text(one.highest_possible, 2)} at all"
    if np.isnan(one.mean):
        return "undefined"
    decimals = decimals_for(one.high - one.low)
    mean, low, high = (number_text(x, decimals) for x in (one.mean, one.low, one.high))
    return f"{mean} ({low} to {high})"
