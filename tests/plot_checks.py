"""What tests of plots ask of Axes."""

from typing import Any

import numpy as np
from matplotlib.colors import to_hex


def labels_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def signed(ax, label):
    """The artist that a label of the legend belongs to."""
    handles, labels = ax.get_legend_handles_labels()
    return handles[labels.index(label)]


def lay_out(ax, times=1):
    """Everything stands where a drawing would have it; nothing is painted, which would take a quarter longer.

    What settles after several times is laid out so often, and drawn at the last of them.
    """
    figure: Any = ax.figure
    for _ in range(times - 1):
        figure.get_layout_engine().execute(figure)
    figure.draw_without_rendering()


def check_readable(ax, width=400):
    """Axes have names, and at 400 pixels the legend stands outside the data and inside the picture."""
    assert ax.get_xlabel()
    assert ax.get_ylabel()
    figure = ax.figure
    figure.set_dpi(width / figure.get_size_inches()[0])
    lay_out(ax)
    legend = ax.get_legend()
    if legend is not None:
        box = legend.get_window_extent()
        # A pixel for rounding.
        assert box.y0 >= ax.bbox.y1 - 1.0
        assert figure.bbox.x0 - 1.0 <= box.x0
        assert box.x1 <= figure.bbox.x1 + 1.0
        assert box.y1 <= figure.bbox.y1 + 1.0
    texts = [ax.xaxis.label, ax.yaxis.label]
    for axis in (ax.xaxis, ax.yaxis):
        low, high = sorted(axis.get_view_interval())
        texts += [tick.label1 for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]
    for text in texts:
        box = text.get_window_extent()
        assert figure.bbox.x0 - 1.0 <= box.x0
        assert box.x1 <= figure.bbox.x1 + 1.0
    assert ax.bbox.width > 0.3 * width


def contrast(one, other):
    """Of two colours, as the rules for accessible pages count it: 1 is none, 21 is black on white."""
    values = np.array([one, other])
    linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
    low, high = sorted(linear @ (0.2126, 0.7152, 0.0722))
    return (high + 0.05) / (low + 0.05)


def areas_seen(ax, paper):
    """How plain each area that lets the paper through is to see on it."""
    found = [one.get_facecolor() for one in (*ax.collections, *ax.patches) if one.get_alpha() is not None]
    colours = [np.atleast_2d(colour)[0] for colour in found if np.size(colour)]
    return [contrast(c[3] * c[:3] + (1.0 - c[3]) * paper, np.full(3, paper)) for c in colours if c[3] > 0.0]


def signs(ax):
    """What tells the entries of a legend apart without colour: marker, dashes, width, hatch, filling, depth of grey."""
    found: list[tuple[Any, ...]] = []
    for artist in ax.get_legend_handles_labels()[0]:
        kind = type(artist).__name__
        if kind == "BarContainer":
            found.append((kind, artist[0].get_hatch()))
        elif kind == "ErrorbarContainer":
            found.append((kind, artist[0].get_marker() if artist[0] is not None else ""))
        elif hasattr(artist, "get_marker"):
            dashes = str(artist._dash_pattern) if artist.get_linestyle() != "None" else ""
            found.append((kind, artist.get_marker(), dashes, to_hex(artist.get_markerfacecolor()) == "#ffffff"))
        elif hasattr(artist, "get_linewidths"):  # areas and bundles of lines
            found.append((kind, *np.atleast_1d(artist.get_linewidths()).tolist(), artist.get_alpha()))
        else:
            found.append((kind, str(artist.get_linestyle()), artist.get_fill()))
    return found
