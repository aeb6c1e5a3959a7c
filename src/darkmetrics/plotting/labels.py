"""plot_reliability and plot_scores: the label model next to the labels, and scores of labeled and missing rows."""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics._kernels.hypothesis_tests import equal_bins
from darkmetrics.class_evaluation import refuse_classes
from darkmetrics.evaluation import Evaluation
from darkmetrics.plotting import style
from darkmetrics.tables import level_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BINS = 10
# Labeled rows, and missing ones, that a bin should hold.
_ROWS_PER_BIN = 5
_MOST_BARS = 40


def plot_reliability(evaluation: Evaluation, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the probabilities of missing rows against the labels of labeled rows with similar scores.

    Each dot is a bin of scores. The horizontal axis has the mean probability of its missing rows, the vertical axis the
    fraction of positives among its labeled rows. Both have bars of the evaluation's confidence level; dots grow with
    the number of labeled rows. On the diagonal the label model assumes that missing rows are like labeled rows.
    Elsewhere it assumes that they differ, as it should if labels are missing by label, or it is not calibrated.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes

    Notes
    -----
    Up to ten bins have nearly equal numbers of both kinds of rows. Bins without labeled or without missing rows are
    left out, and the legend has their number. Weights are ignored. Vertical bars are equal-tailed intervals of a Beta
    distribution (Jeffreys).

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0] * 20, [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1] * 20
    >>> result = dm.evaluate(y_true, y_score, missingness="by_score")
    >>> ax = dm.plotting.plot_reliability(result)
    >>> ax.get_ylabel()
    'fraction of positive labels'
    """
    style.validate_result("evaluation", evaluation, Evaluation, "what evaluate returns")
    refuse_classes("plot_reliability", evaluation)
    ax = style.new_axes(ax)
    ax.set(
        xlim=(-0.03, 1.03),
        ylim=(-0.03, 1.03),
        xlabel="label model: probability of missing rows",
        ylabel="fraction of positive labels",
    )
    if not evaluation.data.missing_cells.size or not evaluation.data.n_labeled:
        style.draw_message(ax, "no missing labels" if evaluation.data.n_labeled else "no labeled rows to compare with")
        return ax
    bins = _reliability(evaluation)
    if not bins.modeled.size:
        style.draw_message(ax, "no scores that both labeled and missing rows have")
        return ax
    ax.plot([0.0, 1.0], [0.0, 1.0], color=style.muted_color(ax), linewidth=0.8, linestyle=style.LINES[1], zorder=1)
    level = level_text(evaluation.confidence_level)
    ax.errorbar(
        bins.modeled,
        bins.share,
        xerr=_reach(bins.modeled, bins.modeled_ends),
        yerr=_reach(bins.share, bins.share_ends),
        fmt="none",
        ecolor=style.ESTIMATE,
        elinewidth=1.2,
        label=f"{level} bars",
    )
    ax.scatter(
        bins.modeled,
        bins.share,
        s=25.0 + 100.0 * bins.labeled / bins.labeled.max(),
        color=style.ESTIMATE,
        edgecolor=style.background_color(ax),
        zorder=3,
        label=_size_label(bins.labeled),
    )
    left_out = f"{bins.left_out} of {bins.left_out + bins.modeled.size} bins left out"
    return style.finish_plot(ax, notes=[left_out] if bins.left_out else [])


class _Bins(NamedTuple):
    """Rows with similar scores: probabilities of the missing rows, and fractions of positives of the labeled rows."""

    modeled: FloatArray
    modeled_ends: FloatArray
    share: FloatArray
    share_ends: FloatArray
    labeled: FloatArray
    left_out: int


def _reliability(evaluation: Evaluation) -> _Bins:
    from scipy.special import betaincinv

    data, posterior = evaluation.data, evaluation.posterior
    cells, rows = data.cells, data.missing_counts
    score, of_score = np.unique(cells.score, return_inverse=True)
    positives, negatives = (_sums(of_score, counts, score.size) for counts in (cells.positives, cells.negatives))
    missing = _sums(of_score[data.missing_cells], rows, score.size)
    labeled = positives + negatives
    most = int(np.clip(min(labeled.sum(), missing.sum()) // _ROWS_PER_BIN, 1, _MOST_BINS))
    bins = equal_bins(labeled / labeled.sum() + missing / missing.sum(), most)
    size = int(bins[-1]) + 1
    count, right, gone = (_sums(bins, column, size) for column in (labeled, positives, missing))
    kept = (count > 0.0) & (gone > 0.0)
    of_bin = bins[of_score[data.missing_cells]]
    sums = np.array([_sums(of_bin, rows * posterior.of_cells(k), size) for k in range(len(posterior))])
    count, right, means = count[kept], right[kept], sums[:, kept] / gone[kept]
    tails = np.array([0.5, -0.5]) * (1.0 - evaluation.confidence_level) + np.array([0.0, 1.0])
    ends = np.quantile(means, tails, axis=0, weights=posterior.weight, method="inverted_cdf")
    share_ends = np.array([betaincinv(right + 0.5, count - right + 0.5, tail) for tail in tails])
    share = right / count
    # Jeffreys's interval may leave out a share of 0 or 1, which it never should.
    share_ends = np.array([np.minimum(share_ends[0], share), np.maximum(share_ends[1], share)])
    return _Bins(posterior.weight @ means, ends, share, share_ends, count, int(np.sum(~kept)))


def _sums(place: Any, values: Any, size: int) -> FloatArray:
    """Return the sums of values at each of `size` positions."""
    return np.asarray(np.bincount(place, weights=values, minlength=size), dtype=np.float64)


def _reach(centre: FloatArray, ends: FloatArray) -> FloatArray:
    """Return the lengths of error bars; a mean may be outside the quantiles of a skewed distribution."""
    reach: FloatArray = np.maximum(np.stack([centre - ends[0], ends[1] - centre]), 0.0)
    return reach


def _size_label(count: FloatArray) -> str:
    low, high = int(count.min()), int(count.max())
    return f"{low:,} to {high:,} labels each" if low < high else f"{low:,} labels each"


def plot_scores(evaluation: Evaluation, *, ax: "Axes | None" = None) -> "Axes":
    """Plot the scores of labeled and of missing rows as two histograms.

    If the histograms differ, labels are not missing at random, and metrics of the labeled rows alone may be biased.

    Parameters
    ----------
    evaluation : Evaluation
        The result of `evaluate`. Its threshold is drawn too, unless decisions were given as `y_pred`.
    ax : Axes, optional
        Axes to draw on; by default a new figure.

    Returns
    -------
    Axes

    Examples
    --------
    >>> import darkmetrics as dm
    >>> y_true, y_score = [1, 0, None, 1, None, 0, 1, 0], [0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1]
    >>> result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed([0.7, 0.2]))
    >>> ax = dm.plotting.plot_scores(result)
    >>> ax.get_xlabel()
    'score'
    """
    style.validate_result("evaluation", evaluation, Evaluation, "what evaluate returns")
    refuse_classes("plot_scores", evaluation)
    ax = style.new_axes(ax)
    data, cells = evaluation.data, evaluation.data.cells
    edges = _edges(cells.score, min(n for n in (data.n_labeled, data.n_missing) if n))
    for words, count, filled, color, line in (
        ("labeled", cells.positives + cells.negatives, True, style.LABELED_ONLY, style.LINES[0]),
        ("missing", cells.missing, False, style.ESTIMATE, style.LINES[1]),
    ):
        rows = int(count.sum())
        label = f"{words} ({rows:,} {'row' if rows == 1 else 'rows'})"
        height = np.histogram(cells.score, edges, weights=count)[0] / max(rows, 1)
        if not rows:
            ax.plot([], [], color=color, linestyle=line, label=label)
            continue
        if filled:
            ax.stairs(height, edges, fill=True, color=color, alpha=style.area_alpha(ax, 0.25))
        ax.stairs(height, edges, color=color, linestyle=line, linewidth=1.6, label=label)
    if data.threshold is not None:
        ax.axvline(
            data.threshold, color=style.ink_color(ax), linestyle=style.LINES[3], label=f"threshold {data.threshold:g}"
        )
    ax.set(xlabel="score", ylabel="fraction of rows")
    ax.set_ylim(bottom=0.0)
    return style.finish_plot(ax)


def _edges(score: FloatArray, rows: int) -> FloatArray:
    """Return edges of bars of equal width by Rice's rule; those of probabilities begin at 0 and end at 1."""
    low, high = float(score[0]), float(score[-1])
    if low >= 0.0 and high <= 1.0:
        low, high = 0.0, 1.0
    if low == high:
        half = 0.5 * max(abs(low), 1.0)
        low, high = low - half, high + half
    return np.linspace(low, high, int(np.clip(2.0 * np.cbrt(rows), 5, _MOST_BARS)) + 1)
