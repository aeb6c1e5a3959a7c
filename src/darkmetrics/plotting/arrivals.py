"""plot_arrival: how many labels are in by age."""

from typing import TYPE_CHECKING

import numpy as np

from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import InputError
from darkmetrics.missingness.delay_groups import GroupDelays
from darkmetrics.missingness.delayed import FittedDelays
from darkmetrics.monitoring import GroupedEvaluation
from darkmetrics.plotting import style
from darkmetrics.wording import setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_arrival(evaluation: Evaluation | GroupedEvaluation, *, ax: "Axes | None" = None) -> "Axes":
    """How many labels are in by age, of positives and of negatives?

    Lines are the shares of labels that have come by each age, bands their 90% intervals. Where the lines differ, young
    rows lack more labels of one class than of the other, and dropping the missing rows is off. What is left at the
    oldest age may come later or never.

    Parameters
    ----------
    evaluation : Evaluation or GroupedEvaluation
        The result of `evaluate` for rows with ages, or that of `evaluate_by`, which learns delays from all groups.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import numpy as np
    >>> import darkmetrics as dm
    >>> rng = np.random.default_rng(0)
    >>> y_score = rng.random(1000)
    >>> y = rng.random(1000) < y_score
    >>> age, delay = rng.integers(0, 100, 1000), np.where(y, rng.exponential(40, 1000), rng.exponential(10, 1000))
    >>> result = dm.evaluate(np.where(delay <= age, y, np.nan), y_score, missingness=dm.missing.Delayed(age=age))
    >>> ax = result.plot_arrival()
    >>> ax.get_ylabel()
    'share of labels that are in'
    """
    if not isinstance(evaluation, GroupedEvaluation):
        style.validate_result("evaluation", evaluation, Evaluation, "what evaluate returns")
    arrival = evaluation.arrival
    if arrival is None and isinstance(evaluation, Evaluation) and _learned_in_groups(evaluation):
        raise InputError(
            "evaluation",
            "it is one group of evaluate_by",
            "Delays are learned from all groups together.",
            "Pass the grouped result.",
        )
    if arrival is None:
        raise InputError(
            "evaluation", "its rows have no ages", "", f"Pass {setting('missingness')} an object of dm.missing.Delayed."
        )
    ax = style.new_axes(ax)
    age = np.array([0.0, *(b.high for b in arrival.bins)])
    for number, (name, of) in enumerate((("positives", arrival.positives), ("negatives", arrival.negatives))):
        looks = style.series_style(number)
        share, low, high = (np.append(0.0, values) for values in (of.share, of.low, of.high))
        ax.fill_between(age, low, high, color=looks["color"], alpha=style.area_alpha(ax, 0.2), linewidth=0.0)
        ax.plot(age, share, **looks, markersize=4, markevery=(number, 4), linewidth=1.6, label=name)
    unit = " in days" if arrival.days else ""
    ax.set(xlabel=f"age{unit}", ylabel="share of labels that are in", ylim=(-0.03, 1.03))
    ax.set_xlim(0.0, arrival.oldest)
    return style.finish_plot(ax, notes=["bands: 90%"])


def _learned_in_groups(evaluation: Evaluation) -> bool:
    """Whether it is a group, or the total, of an `evaluate_by` of rows with ages."""
    is_total = evaluation.groups > 0 and evaluation.data.cells.age is not None
    return is_total or isinstance(evaluation.model, (FittedDelays, GroupDelays))
