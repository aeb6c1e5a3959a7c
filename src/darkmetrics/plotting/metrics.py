"""plot_metrics and plot_variance: all metrics of an evaluation, one line each."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from darkmetrics.evaluation import Evaluation
from darkmetrics.plotting import style
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches that a line of text takes, and all that is not lines.
_LINE, _REST = 0.27, 1.3
# How far under its line the labeled-only value stands, in lines; on the line it would hide the interval.
_BELOW = 0.27
_SOURCES = {
    "labels": "missing labels",
    "calibration": "calibration",
    "prevalence": "prevalence",
    "sampling": "sampling of rows",
}


def plot_metrics(
    evaluation: Evaluation,
    metrics: str | Sequence[str] | None = None,
    *,
    bounds: bool = True,
    ax: "Axes | None" = None,
) -> "Axes":
    """How good is the classifier by every metric, and how sure is that?

    A forest plot: one line per metric with its mean (tick), the interval that holds it with probability 50% (thick) and
    with that of the evaluation (thinner, 90% unless changed), the latter if the odds of the missing rows are up to
    three times off (thin, behind it), what dropping the unlabeled rows would have said (open square, a little lower),
    and the worst and best value that any labeling gives (hairline).

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`.
    metrics : str or sequence of str, optional
        Which of its metrics to draw, on a common axis. By default those that lie between -1 and 1; others, such as
        log loss or lift, have other units, and a note under the axis names them.
    bounds : bool
        Whether worst and best values are drawn, on an axis from 0 to 1. Without them the axis goes as far as the other
        intervals do: narrow ones are told apart.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given, as high as the metrics need.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2]))
    >>> ax = dm.plotting.plot_metrics(result)
    >>> ax.get_xlabel()
    'value of the metric'
    >>> ax = result.plot()  # the same
    """
    style.checked("evaluation", evaluation, Evaluation, "what evaluate returns")
    names = list(evaluation) if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        evaluation[name]  # an unknown name gets its error here
    left_out = [] if metrics is not None else [name for name in names if not _on_common_scale(evaluation, name)]
    if len(left_out) == len(names):
        left_out = []
    names = [name for name in names if name not in left_out]
    ax = _rows_of(ax, names, extra=_LINE * (1 + len(", ".join(left_out)) // 40 if left_out else 0))
    place = np.arange(len(names), dtype=np.float64)
    distribution = [evaluation[name] for name in names]
    defined = [i for i, one in enumerate(distribution) if np.isfinite(one.mean())]
    level = evaluation.confidence_level
    bounds = bounds and evaluation.scope == "rows"
    moved = evaluation.sensitivity()
    for low_high, label, width, colour in (
        *([([one.support() for one in distribution], "worst to best", 0.8, style.grey(ax))] if bounds else []),
        ([moved[name] for name in names], moved.column, 1.2, style.ESTIMATE),
        ([evaluation.intervals[name] for name in names], f"{level_text(level)} interval", 3.5, style.ESTIMATE),
        ([one.interval(0.5) for one in distribution], "50% interval", 7.0, style.ESTIMATE),
    ):
        ends = np.array(low_high, dtype=np.float64).reshape(-1, 2)[defined]
        ax.hlines(place[defined], ends[:, 0], ends[:, 1], color=colour, linewidth=width, label=label)
    mean = [distribution[i].mean() for i in defined]
    # Thin, and higher than the bars: a dot would hide intervals that are narrow.
    ax.plot(mean, place[defined], "|", color=style.ink(ax), markersize=13, markeredgewidth=1.2, zorder=4, label="mean")
    only = np.array([evaluation.labeled_only[name] for name in names])
    seen = np.isfinite(only)
    if seen.any():
        ax.plot(
            only[seen],
            place[seen] + _BELOW,
            "s",
            markersize=4.5,
            markerfacecolor=style.paper(ax),
            color=style.LABELED,
            markeredgewidth=1.3,
            label="labeled only",
        )
    _set_scale(ax, evaluation, names, bounds=bounds)
    for i in set(range(len(names))) - set(defined):
        ax.text(
            0.02, place[i], "undefined (0/0)", color=style.grey(ax), va="center", transform=ax.get_yaxis_transform()
        )
    note = f"other units, not drawn: {', '.join(style.plain(name).strip() for name in left_out)}" if left_out else ""
    ax.set_xlabel("value of the metric" + ("\n" + _note(note) if note else ""))
    style.legend_above(ax, [style.scope_note(evaluation.scope)])
    return ax


def plot_variance(evaluation: Evaluation, *, ax: "Axes | None" = None) -> "Axes":
    """What would make each metric surer: more labels, a better calibration, or knowing why labels are missing?

    Bars split the variance of each metric into what the missing labels would leave open were their probabilities known,
    what calibration adds because it is learned from few labels, and what is not known about how missing rows differ
    from labeled ones; for the population also what another sample of rows would change. The standard deviation (sd)
    stands at the right: a large share of very little is very little.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`; the shares are those of its `variance_decomposition`.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given, as high as the metrics need.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2]))
    >>> ax = dm.plotting.plot_variance(result)
    >>> ax.get_xlabel()
    'share of the variance'
    """
    style.checked("evaluation", evaluation, Evaluation, "what evaluate returns")
    names = list(evaluation)
    ax = _rows_of(ax, names)
    sd = np.array([evaluation[name].std() for name in names])
    spread = np.flatnonzero(sd > 0.0)
    splits = [evaluation.variance_decomposition(names[i]) for i in spread]
    start = np.zeros(spread.size)
    sources = evaluation.variance_decomposition(names[0])
    for number, (source, words) in enumerate(_SOURCES.items()):
        if source not in sources:
            continue
        share = np.array([split[source] for split in splits])
        ax.barh(
            spread,
            share,
            left=start,
            height=0.6,
            color=style.COLOURS[(0, 4, 2, 1)[number]],
            hatch=style.HATCHES[number],
            edgecolor=style.paper(ax),
            linewidth=0.0,
            label=words,
        )
        start = start + share
    for i, one in enumerate(sd.tolist()):
        if one > 0.0:
            ax.text(1.02, i, f"{one:.2g}", va="center", fontsize="small", transform=ax.get_yaxis_transform())
        else:
            text = "undefined (0/0)" if np.isnan(one) else "known exactly"
            ax.text(0.02, i, text, va="center", color=style.grey(ax), transform=ax.get_yaxis_transform())
    ax.set(xlim=(0.0, 1.0), xlabel="share of the variance")
    if spread.size:
        ax.text(1.02, 1.01, "sd", va="bottom", fontsize="small", transform=ax.transAxes)
        style.legend_above(ax)
    return ax


def _rows_of(ax: "Axes | None", names: list[str], extra: float = 0.0) -> "Axes":
    """Axes with a line for each metric, from the top."""
    labels = [style.wrapped(name) for name in names]
    ax = style.axes(ax, height=_REST + extra + _LINE * sum(1.1 + 0.7 * label.count("\n") for label in labels))
    ax.set_yticks(range(len(names)), labels, fontsize="small" if len(names) > 12 else None)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_ylabel("metric")
    return ax


def _on_common_scale(evaluation: Evaluation, name: str) -> bool:
    """Whether a metric lies between -1 and 1: by its record, or by its values where the record does not say."""
    low, high = evaluation.metrics[name].range
    if np.isinf(low) and np.isinf(high):
        low, high = evaluation[name].support()
    return bool(low >= -1.0 and high <= 1.0)


def _set_scale(ax: "Axes", evaluation: Evaluation, names: list[str], *, bounds: bool) -> None:
    """From 0 to 1, further down where something is negative, or as far as the values of other units go.

    Without bounds as far as what is drawn; those of the population have none that say something.
    """
    moved, zoomed = evaluation.sensitivity(), not bounds and evaluation.scope == "rows"
    values = [
        [
            *(moved[name] if zoomed else evaluation[name].support()),
            *evaluation.intervals[name],
            evaluation.labeled_only[name],
        ]
        for name in names
    ]
    drawn = np.array(values, dtype=np.float64).ravel()
    drawn = drawn[np.isfinite(drawn)]
    low, high = (float(drawn.min()), float(drawn.max())) if drawn.size else (0.0, 1.0)
    if not zoomed and all(_on_common_scale(evaluation, name) for name in names):
        low, high = min(low, 0.0), max(high, 1.0)
    margin = 0.03 * (high - low) or 0.05 * max(abs(low), 1.0)
    ax.set_xlim(low - margin, high + margin)
    style.grid(ax, "x")


def _note(text: str) -> str:
    return style.folded(text, 44, lines=6)
