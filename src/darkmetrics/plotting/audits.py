"""plot_audit: how a bet against earlier probabilities went."""

from typing import TYPE_CHECKING

import numpy as np

from darkmetrics.auditing import Audit
from darkmetrics.plotting import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_audit(result: Audit, *, ax: "Axes | None" = None) -> "Axes":
    """Do labels that came since refute earlier probabilities? The e-value over these labels, on a log scale.

    The line across is `1 / alpha`: if the probabilities are right the e-value ever reaches it with a chance of alpha at
    most.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> may = dm.evaluate([1, 0, None, None], [0.9, 0.2, 0.7, 0.4], label_model="half", metrics="accuracy")
    >>> ax = dm.plotting.plot_audit(dm.audit(may, [1, 0], [0.7, 0.4], arrival="alike"))
    >>> ax.get_xlabel()
    'labels that came'
    """
    style.checked("result", result, Audit, "what audit returns")
    ax = style.axes(ax)
    labels, values = np.append(0, result.labels), np.append(1.0, result.path)
    ax.plot(labels, values, **style.style_of(0), markersize=3, linewidth=1, label="e-value")
    ax.axhline(
        1.0 / result.alpha, color=style.grey(ax), linewidth=0.8, linestyle="--", label="refuted from here on", zorder=0
    )
    ax.set(yscale="log", xlabel="labels that came", ylabel="stake of 1 against the probabilities")
    style.legend_above(ax)
    return ax
