"""Titles that users set later: above the legend, and folded where they are longer than the picture is wide.

Matplotlib moves a title above the inner axes of axes, not above their legend; and its own wrapping goes by where a text
stands while the layout is still being found, which for a title is often outside of the picture.
"""

import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.legend import Legend
    from matplotlib.text import Text

# The empty axes behind a legend.
_HELD = "_darkmetrics_legend"
# Points between a title and the edge of the picture.
_MARGIN = 3.0


def keep_title_above(ax: "Axes", legend: "Legend") -> None:
    """A title, whenever it is set, stands above the legend and inside the picture."""
    for old in [inner for inner in ax.child_axes if inner.get_label() == _HELD]:
        old.remove()
    held = ax.inset_axes((0.0, 1.0, 1.0, 0.0), label=_HELD)
    held.set_axis_off()
    held.set_in_layout(False)
    held.set_axes_locator(_Held(ax, legend))


class _Held:
    """Where an empty inner axes stands: at the legend. Asked just before titles are placed, it folds them first.

    Not a function within a function, so that figures can be pickled.
    """

    def __init__(self, ax: "Axes", legend: "Legend") -> None:
        self.axes = ax
        self.legend = legend
        # What each title was set to, and what was made of it.
        self.folded: dict[Text, tuple[str, str]] = {}

    def __call__(self, ax: Any, renderer: Any) -> Any:
        from matplotlib.transforms import Bbox, TransformedBbox

        if renderer is not None:
            self._fold_titles(renderer)
        axes: Any = self.legend.axes
        if axes is None or axes.get_legend() is not self.legend:  # it was removed, or made anew by the user
            return Bbox.from_bounds(0.0, 0.0, 0.0, 0.0)
        box = self.legend.get_window_extent(renderer)
        return TransformedBbox(box, axes.figure.transSubfigure.inverted())

    def _fold_titles(self, renderer: Any) -> None:
        from matplotlib.text import Text

        drawn = set(self.axes.texts)
        for title in self.axes.get_children():
            if isinstance(title, Text) and title not in drawn and title.get_text():
                self._fold(title, renderer)

    def _fold(self, title: "Text", renderer: Any) -> None:
        text = title.get_text()
        given, made = self.folded.get(title, (text, text))
        if text != made:  # it was set anew
            given = text
        folded = "\n".join(_folded(line, title, renderer) for line in given.split("\n"))
        self.folded[title] = given, folded
        if folded != text:  # a text that is set anew, even to the same, has everything drawn once more
            title.set_text(folded)


def _folded(line: str, title: "Text", renderer: Any) -> str:
    """A line of a title, on as many lines as it needs."""

    def wide(text: str) -> float:
        return float(renderer.get_text_width_height_descent(text, title.get_fontproperties(), False)[0])

    room = _room(title) - 2.0 * renderer.points_to_pixels(_MARGIN)
    letters, lines = len(line), [line]
    while letters > 1 and (widest := max(map(wide, lines))) > room:
        letters = min(letters - 1, max(1, int(letters * room / widest)))
        lines = textwrap.wrap(line, letters, break_long_words=False) or [line]
        if max(map(len, lines)) > letters:  # a single word; narrower lines would not help it
            break
    return "\n".join(lines)


def _room(title: "Text") -> float:
    """Pixels that a title has from where it stands to the edges of the figure."""
    figure: Any = title.get_figure()
    x, _ = title.get_transform().transform(title.get_position())
    left, right = float(x - figure.bbox.x0), float(figure.bbox.x1 - x)
    return {"left": right, "right": left}.get(title.get_horizontalalignment(), 2.0 * min(left, right))
