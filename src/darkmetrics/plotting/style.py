"""The skeleton of all plots: axes, colors, markers, line styles and hatches, legend, title and texts.

Series differ by marker, line style or hatch as well as by color: plots are printed in gray, too.
"""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from darkmetrics._text import counted
from darkmetrics.exceptions import InputError, MethodError
from darkmetrics.plotting.titles import keep_title_above
from darkmetrics.tables import chance_text, decimals_for, level_text, number_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's colors, told apart by color-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
MARKERS = ("o", "s", "^", "D", "v", "P")
# As dash patterns: solid, dashed, dash-dotted, dotted, long-dashed, dash-dot-dotted.
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (6, 2, 1, 2)), (0, (1, 1.5)), (0, (9, 3)), (0, (6, 2, 1, 2, 1, 2)))
HATCHES = ("", "////", "....")
# What is estimated, what dropping the unlabeled rows says, and what a user wants to reach.
ESTIMATE, LABELED_ONLY, TARGET = COLORS[0], COLORS[1], "0.1"
GRAY = "0.45"

# Inches; small, so that letters stay readable when the picture is shown 400 pixels wide.
WIDTH, HEIGHT = 4.8, 3.4
# Letters that fit into half of a legend of that width, and into its whole width.
_HALF, _WHOLE = 28, 46


def new_axes(ax: "Axes | None", height: float = HEIGHT, width: float = WIDTH) -> "Axes":
    """The axes to draw on: those given, or those of a new figure."""
    if ax is not None:
        return ax
    new: Axes = load_pyplot().subplots(figsize=(width, height), layout="constrained")[1]
    return new


def load_pyplot() -> Any:
    """Return the module that makes figures, or raise an error that says how to install it."""
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise MethodError("plot", "matplotlib is not installed", "", "pip install 'darkmetrics[plot]'.") from None
    return plt


def background_color(ax: "Axes") -> tuple[float, float, float]:
    """The color that is drawn on: of the axes, of the figure where these are clear, white where both are."""
    from matplotlib.colors import to_rgba

    red, green, blue, depth = to_rgba(ax.get_facecolor())
    if depth == 0.0:
        red, green, blue, depth = to_rgba(ax.figure.get_facecolor())
    return (red, green, blue) if depth > 0.0 else (1.0, 1.0, 1.0)


def is_dark(ax: "Axes") -> bool:
    """Whether the paper is dark, as with the style "dark_background"."""
    red, green, blue = background_color(ax)
    return 0.299 * red + 0.587 * green + 0.114 * blue < 0.5


def ink_color(ax: "Axes") -> str:
    """The color of lines and marks that are neither one side nor the other."""
    return "0.95" if is_dark(ax) else TARGET


def muted_color(ax: "Axes") -> str:
    """The color of what steps back."""
    return "0.65" if is_dark(ax) else GRAY


def grid_color(ax: "Axes") -> str:
    """The color of what is hardly seen: lines to read values by."""
    return "0.25" if is_dark(ax) else "0.9"


def area_alpha(ax: "Axes", on_white: float) -> float:
    """How dense the color of an area is that lies behind others: as plain to see on dark paper as it is on white."""
    return 1.5 * on_white + 0.05 if is_dark(ax) else on_white


def earlier_look(ax: "Axes") -> dict[str, Any]:
    """How something earlier looks: hatched, behind what is said now."""
    face, edge = ("0.15", "0.45") if is_dark(ax) else ("0.95", "0.7")
    return {"facecolor": face, "edgecolor": edge, "hatch": HATCHES[1]}


def draw_grid(ax: "Axes", axis: Literal["x", "y"]) -> None:
    """Lines to read values by, behind everything."""
    ax.grid(axis=axis, color=grid_color(ax), linewidth=0.8)
    ax.set_axisbelow(True)


def validate_result(argument: str, result: Any, kind: type, how: str) -> None:
    """What is drawn must be a result of the kind that a plot is for; `how` says where to get one."""
    if not isinstance(result, kind):
        raise InputError(argument, f"expected {how}, got {type(result).__name__}")


def series_style(number: int) -> dict[str, Any]:
    """Color, marker and line style of a series; after six they come back in other company."""
    shift = number // len(COLORS)
    return {
        "color": COLORS[number % len(COLORS)],
        "marker": MARKERS[(number + shift) % len(MARKERS)],
        "linestyle": LINES[(number + 2 * shift) % len(LINES)],
    }


def describe_scope(scope: str) -> str:
    """What intervals are for, as a line of a legend."""
    return "for the population" if scope == "population" else "for these rows"


def add_legend(ax: "Axes", notes: Sequence[str] = (), side: str = "left") -> None:
    """A legend above the axes, where no data are; `notes` are lines without a sign.

    It begins at the left of the axes, or ends at their right: where names on the left take much of the width.
    """
    from matplotlib.lines import Line2D

    handles, labels = ax.get_legend_handles_labels()
    handles, labels = [*handles, *(Line2D([], [], linestyle="none") for _ in notes)], [*labels, *notes]
    if not labels:
        return
    columns = 2 if len(labels) > 1 and max(map(len, labels)) <= _HALF else 1
    legend = ax.legend(
        handles,
        [shorten(label, _WHOLE) for label in labels],
        loc="lower left" if side == "left" else "lower right",
        bbox_to_anchor=(0.0 if side == "left" else 1.0, 1.01),
        ncols=columns,
        frameon=False,
        fontsize="small",
        borderaxespad=0.0,
        columnspacing=0.8,
        handlelength=2.2,
    )
    keep_title_above(ax, legend)


def finish_plot(
    ax: "Axes",
    *,
    x: str = "",
    y: str = "",
    title: str = "",
    notes: Sequence[str] = (),
    grid: Literal["x", "y"] | None = None,
    side: str = "left",
) -> "Axes":
    """Name the axes and add grid, legend and title: what every plot ends with. A title that is there is kept."""
    if x:
        ax.set_xlabel(x)
    if y:
        ax.set_ylabel(y)
    if grid is not None:
        draw_grid(ax, grid)
    add_legend(ax, notes, side)
    if title and not any(ax.get_title(place) for place in ("left", "center", "right")):
        ax.set_title(escape_text(title), fontsize="medium")
    return ax


def describe_rows(counts: Mapping[str, int]) -> str:
    """Return how many rows were evaluated and how many labels are missing, for a title."""
    missing = counts["missing"] / max(counts["rows"], 1)
    return f"{counted(counts['rows'], 'row')}, {chance_text(missing)} of labels missing"


def interval_label(level: float, low: float, high: float) -> str:
    """Return an interval with its level, as a line of a legend."""
    return f"{level_text(level)}: {format_value(low, high - low)} to {format_value(high, high - low)}"


def draw_on_axis(ax: "Axes", x: Any, label: str, color: str, **look: Any) -> None:
    """Draw a marker, or a bar between two values, on the horizontal axis."""
    place = {"transform": ax.get_xaxis_transform(), "clip_on": False, "zorder": 4}
    ax.plot(np.atleast_1d(x), np.zeros(np.size(x)), color=color, label=label, **{**place, **look})


def set_view(ax: "Axes", axis: Literal["x", "y"], values: Any, margin: float) -> tuple[float, float]:
    """Show all finite values with a margin, which is a fraction of their range; return both ends."""
    drawn = np.asarray(values, dtype=np.float64).ravel()
    drawn = drawn[np.isfinite(drawn)]
    low, high = (float(drawn.min()), float(drawn.max())) if drawn.size else (0.0, 1.0)
    space = margin * (high - low) or 0.05 * max(abs(low), 1.0)
    limits = low - space, high + space
    (ax.set_xlim if axis == "x" else ax.set_ylim)(*limits)
    return limits


def add_figure_legend(head: "Axes", axes: "Sequence[Axes]", notes: Sequence[str]) -> None:
    """One legend on the head of a figure, with every sign that is in one of its axes."""
    from matplotlib.lines import Line2D

    found: dict[str, Any] = {}
    for ax in axes:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    found |= {note: Line2D([], [], linestyle="none") for note in notes}
    figure = head.get_figure(root=True)
    assert figure is not None
    head.legend(
        list(found.values()),
        list(found),
        loc="lower left",
        bbox_to_anchor=(0.0, 0.0),
        borderaxespad=0.0,
        ncols=3 if figure.get_figwidth() > 6.0 else 2,  # as many as fit
        frameon=False,
        fontsize="small",
        columnspacing=1.0,
        handlelength=2.0,
    )


def draw_message(ax: "Axes", text: str) -> None:
    """A sentence in place of data, where there are none to draw."""
    # On a patch of its own, so that no line runs through it.
    patch = {"facecolor": background_color(ax), "edgecolor": "none"}
    folds = textwrap.fill(text, 36)
    ax.text(
        0.5, 0.5, folds, ha="center", va="center", color=muted_color(ax), bbox=patch, transform=ax.transAxes, zorder=5
    )


def escape_text(text: str) -> str:
    """A name as text: without what matplotlib takes for mathematics, a hidden label or a new line."""
    text = " ".join(text.split()).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text


def shorten(text: str, width: int) -> str:
    """The text, with its end cut off where it is longer than `width`."""
    return text if len(text) <= width else text[: width - 1] + "…"


def shorten_distinct(texts: Sequence[str], width: int) -> list[str]:
    """The texts, with their middle cut out where they are longer than `width`, or than it takes to tell them apart."""
    longest = max(map(len, texts), default=width)
    for most in range(width, max(width, longest) + 1):
        half = most // 2
        cut = [text if len(text) <= most else f"{text[: most - half]}…{text[len(text) - half + 1 :]}" for text in texts]
        if len(set(cut)) == len(set(texts)):
            return cut
    return list(texts)


def wrap_name(name: str, width: int = 22) -> str:
    """A name on up to four lines, broken after an underscore where there is one."""
    return wrap_text(escape_text(name).replace("_", "_ "), width).replace("_ ", "_")


def wrap_text(text: str, width: int, lines: int = 4) -> str:
    """A text on several lines; what does not fit on that many is cut off."""
    return "\n".join(textwrap.wrap(text, width, max_lines=lines, placeholder="…"))


def format_value(value: float, width: float = 1.0) -> str:
    """A value, with as many decimals as the width of its interval deserves."""
    return number_text(value, decimals_for(width))


def format_probability(p: float, *, certain: bool = False) -> str:
    """A probability as "= 0.31"; "= 0" and "= 1" only where that is certain, not where it rounds to them."""
    if not certain and p < 0.001:
        return "< 0.001"
    return "> 0.999" if not certain and p > 0.999 else f"= {p:.3g}"
