"""plot_curves, plot_roc and plot_precision_recall: what another threshold would do."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from darkmetrics.curves import Band, RateCurve, ThresholdCurves
from darkmetrics.curves import threshold_curves as curves_of
from darkmetrics.curves.bands import nearest
from darkmetrics.evaluation import Evaluation
from darkmetrics.exceptions import unknown_name
from darkmetrics.plotting import style
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from darkmetrics._kernels.arrays import FloatArray

# Markers along a line: enough to tell lines apart in gray.
_MARKS = 8


def plot_curves(
    curves: ThresholdCurves | Evaluation, metrics: str | Sequence[str] | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """How good would the classifier be at other thresholds, and how sure is that?

    Lines are the means of the metrics at each threshold, bands the widest of the confidence levels, each threshold
    taken by itself. With a single metric all intervals are drawn, what dropping the unlabeled rows says (dashed) and
    the worst and best value that any labeling gives (hairlines). The dotted line is the threshold in use.

    Parameters
    ----------
    curves : Curves or Evaluation
        The result of `threshold_curves`; of an evaluation the curves are made first.
    metrics : str or sequence of str, optional
        Which of its metrics to draw; all by default.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> curves = dm.threshold_curves(dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2])))
    >>> ax = dm.plotting.plot_curves(curves, ["precision", "recall"])
    >>> ax.get_xlabel()
    'threshold'
    """
    curves = _curves_from(curves)
    names = list(curves) if metrics is None else [metrics] if isinstance(metrics, str) else list(metrics)
    for name in names:
        if name not in curves:
            raise unknown_name("metrics", "metric", str(name), list(curves))
    ax = style.new_axes(ax)
    x = curves.thresholds
    alone = len(names) == 1
    for number, name in enumerate(names):
        band = curves[name]
        _draw_band(ax, x, band, style.series_style(number)["color"], all_levels=alone, named=alone)
        marks: dict[str, Any] = {"markevery": _marks(x.size, number, len(names)), "markersize": 4.5, "linewidth": 1.6}
        ax.plot(
            x, band.mean, **style.series_style(number), **marks, label=style.escape_text(name) if not alone else "mean"
        )
        if alone:
            _draw_comparisons(ax, x, replace(band, labeled_only=_defined_labeled_only(curves, name)))
    ax.axvline(
        curves.current, color=style.ink_color(ax), linestyle=style.LINES[3], label=f"threshold {curves.current:.4g}"
    )
    ax.margins(x=0.02)
    _keep_to_bounds(ax, [curves[name] for name in names])
    y = style.wrap_name(names[0], 40) if alone else "value of the metric"
    return _finish(ax, curves, "threshold", y)


def plot_roc(curves: ThresholdCurves | Evaluation, *, ax: "Axes | None" = None) -> "Axes":
    """Which shares of positives found and of false alarms can be had together?

    The ROC curve: at each threshold the mean of the true positive rate above that of the false positive rate, with the
    intervals of the former. The dot is the threshold in use, the diagonal what guessing would give.

    Parameters
    ----------
    curves : Curves or Evaluation
        The result of `threshold_curves`; of an evaluation the curves are made first.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> curves = dm.threshold_curves(dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2])))
    >>> ax = dm.plotting.plot_roc(curves)
    >>> ax.get_ylabel()
    'recall'
    """
    curves = _curves_from(curves)
    ax = style.new_axes(ax)
    ax.plot(
        [0.0, 1.0], [0.0, 1.0], color=style.muted_color(ax), linewidth=0.8, linestyle=style.LINES[1], label="guessing"
    )
    _draw_rates(ax, curves.roc(), curves.current)
    return _finish(ax, curves, "false positive rate", "recall", _describe_auc(curves.evaluation.rows))


def _describe_auc(evaluation: Evaluation) -> list[str]:
    """Return the area under the ROC curve with its interval, if the evaluation has it."""
    if "roc_auc" not in evaluation or np.isnan(evaluation["roc_auc"].mean()):
        return []
    low, high = evaluation.intervals["roc_auc"]
    mean, *ends = (style.format_value(value, high - low) for value in (evaluation["roc_auc"].mean(), low, high))
    return [f"AUC {mean} ({' to '.join(ends)})"]


def plot_precision_recall(curves: ThresholdCurves | Evaluation, *, ax: "Axes | None" = None) -> "Axes":
    """How pure are the flagged rows when more of the positives are to be found?

    The precision-recall curve: at each threshold the mean of the precision above that of the recall, with the intervals
    of the former. The dot is the threshold in use.

    Parameters
    ----------
    curves : Curves or Evaluation
        The result of `threshold_curves`; of an evaluation the curves are made first.
    ax : Axes, optional
        Axes to draw on; a new figure if none are given.

    Returns
    -------
    Axes
        Those drawn on.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> curves = dm.threshold_curves(dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2])))
    >>> ax = dm.plotting.plot_precision_recall(curves)
    >>> ax.get_ylabel()
    'precision'
    """
    curves = _curves_from(curves)
    ax = style.new_axes(ax)
    _draw_rates(ax, curves.precision_recall(), curves.current)
    return _finish(ax, curves, "recall", "precision")


def _curves_from(result: Any) -> ThresholdCurves:
    """Curves as they are, or those of an evaluation."""
    if isinstance(result, Evaluation):
        return curves_of(result.rows)
    style.validate_result("curves", result, ThresholdCurves, "what threshold_curves(result) or evaluate returns")
    return cast("ThresholdCurves", result)


def _finish(ax: "Axes", curves: ThresholdCurves, x: str, y: str, notes: Sequence[str] = ()) -> "Axes":
    title = style.describe_rows(curves.evaluation.data.counts())
    return style.finish_plot(ax, x=x, y=y, title=title, notes=[*notes, style.describe_scope("rows")])


def _defined_labeled_only(curves: ThresholdCurves, name: str) -> "FloatArray":
    """Return a metric on the labeled rows, without thresholds at which it is 0/0 because they flag no labeled row."""
    cells = curves.evaluation.data.cells
    highest = np.max(cells.score, where=cells.positives + cells.negatives > 0, initial=-np.inf)
    positives, negatives = (np.float64(cells.mass(counts).sum()) for counts in (cells.positives, cells.negatives))
    with np.errstate(divide="ignore", invalid="ignore"):
        nothing_flagged = curves.metrics[name].formula(np.float64(0.0), np.float64(0.0), positives, negatives)
    if np.isfinite(nothing_flagged):
        return curves[name].labeled_only
    return np.where(curves.thresholds <= highest, curves[name].labeled_only, np.nan)


def _draw_rates(ax: "Axes", rates: RateCurve, current: float) -> None:
    ax.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03))
    if not np.isfinite(rates.x.mean + rates.y.mean).any():
        style.draw_message(ax, "undefined (0/0) at every threshold")
        return
    order = np.argsort(rates.x.mean, kind="stable")
    x, y = rates.x.mean[order], rates.y.take(order)
    _draw_band(ax, x, y, style.ESTIMATE, all_levels=True, named=True)
    ax.plot(rates.x.mean, rates.y.mean, color=style.ESTIMATE, linewidth=1.6, label="mean")
    seen = np.isfinite(rates.x.labeled_only) & np.isfinite(rates.y.labeled_only)
    if seen.any():
        ax.plot(
            rates.x.labeled_only[seen],
            rates.y.labeled_only[seen],
            color=style.LABELED_ONLY,
            linestyle=style.LINES[1],
            linewidth=1.2,
            label="labeled only",
        )
    here = nearest(rates.thresholds, current)
    ax.plot(
        rates.x.mean[[here]],
        rates.y.mean[[here]],
        "o",
        color=style.ink_color(ax),
        markersize=6,
        zorder=4,
        label=f"threshold {rates.thresholds[here]:.4g}",
    )


def _draw_band(ax: "Axes", x: "FloatArray", band: Band, color: str, *, all_levels: bool, named: bool) -> None:
    """Intervals as areas, the wider the paler."""
    levels = sorted(band.intervals, reverse=True)
    for number, level in enumerate(levels if all_levels else levels[:1]):
        low, high = band.intervals[level]
        label = f"{level_text(level)} interval" if named else "_"
        alpha = style.area_alpha(ax, 0.2 if number == 0 else 0.4)
        ax.fill_between(x, low, high, color=color, alpha=alpha, linewidth=0.0, label=label)


def _draw_comparisons(ax: "Axes", x: "FloatArray", band: Band) -> None:
    if np.isfinite(band.labeled_only).any():
        ax.plot(x, band.labeled_only, color=style.LABELED_ONLY, linestyle=style.LINES[1], label="labeled only")
    for ends, label in ((band.lowest_possible, "bounds"), (band.highest_possible, "_")):
        ax.plot(x, ends, color=style.muted_color(ax), linewidth=0.8, label=label)


def _keep_to_bounds(ax: "Axes", bands: "list[Band]") -> None:
    """Leave no space for values that no label assignment attains: Gaussian intervals may reach there."""
    ends = np.concatenate([end for band in bands for end in (band.lowest_possible, band.highest_possible)])
    ends = ends[np.isfinite(ends)]
    if ends.size:
        (low, high), margin = ax.get_ylim(), 0.04 * float(np.ptp(ends))
        low, high = max(low, float(ends.min()) - margin), min(high, float(ends.max()) + margin)
        if low < high:
            ax.set_ylim(low, high)


def _marks(places: int, number: int, lines: int) -> tuple[int, int]:
    """First marker and distance to the next; lines that lie on each other have theirs at different places."""
    every = max(1, places // _MARKS)
    return (every * number) // lines, every
