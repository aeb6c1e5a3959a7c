"""The geometry of the pictures: from numbers to places in a box, as plain strings that the templates put into SVG."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from darkmetrics._kernels.arrays import BoolArray, FloatArray
from darkmetrics.plotting.summaries import Column

# The box of the templates: 360 wide, the plane of the picture within these edges.
LEFT, RIGHT, TOP, BOTTOM = 46, 348, 12, 158
# Where the metric ends and the shares of missing labels begin, in pictures of periods.
_FOOT = 128
# Dots of more periods than these would touch.
_CROWD = 45
# A law that takes up less of its possible values than this is drawn larger, with arrows to the bounds.
_LEAST_SHARE = 0.25
# Room on both sides of what is shown.
_MARGIN = 0.04

Numbers = Sequence[float | None]


class Scale:
    """A straight line from values to places in the box, with ticks at round numbers."""

    def __init__(self, values: Sequence[float], start: float, end: float) -> None:
        low, high = min(values), max(values)
        # Halves, because the difference of two huge numbers may be none.
        room = (high / 2.0 - low / 2.0) * 2.0 * _MARGIN if high > low else 0.05 * max(abs(high), 1.0)
        self.low, self.high, self.start, self.end = low - room, high + room, start, end

    def __call__(self, values: Any) -> FloatArray:
        share = (np.asarray(values, dtype=np.float64) / 2.0 - self.low / 2.0) / (self.high / 2.0 - self.low / 2.0)
        return np.clip(self.start + share * (self.end - self.start), -1e4, 1e4)

    def at(self, value: float) -> float:
        """The place of one value."""
        return round(float(self(value)), 1)

    def ticks(self, most: int = 5) -> list[dict[str, Any]]:
        """Round numbers within the scale, with their places."""
        rough = (self.high - self.low) / most
        if not np.isfinite(rough):
            return []
        power = 10.0 ** np.floor(np.log10(rough))
        step = next(step for step in (power, 2 * power, 5 * power, 10 * power) if step >= rough * (1 - 1e-9))
        values = np.arange(np.ceil(self.low / step), np.floor(self.high / step) + 1) * step
        decimals = max(0, int(np.ceil(-np.log10(step) - 1e-9)))
        plain = step >= 1e-4 and max(abs(self.low), abs(self.high)) < 1e5
        return [
            {"at": self.at(value), "text": f"{value + 0.0:.{decimals}f}" if plain else f"{value:.3g}"}
            for value in values.tolist()
        ]


def line(x: FloatArray, y: FloatArray) -> str:
    """A path through points; where one is missing the line is broken."""
    parts, pen = [], "M"
    for place_x, place_y in zip(x.tolist(), y.tolist(), strict=True):
        if np.isfinite(place_y):
            parts.append(f"{pen}{_short(place_x)} {_short(place_y)}")
            pen = "L"
        else:
            pen = "M"
    return "".join(parts)


def area(x: FloatArray, low: FloatArray, high: FloatArray) -> str:
    """A path around what lies between two lines, for each stretch where both are known."""
    known = np.isfinite(low) & np.isfinite(high)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], known.astype(np.int8), [0]))))
    paths = []
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        there, back = slice(start, end), slice(end - 1, start - 1 if start else None, -1)
        paths.append(line(x[there], high[there]) + line(x[back], low[back]).replace("M", "L", 1) + "Z")
    return "".join(paths)


def distribution_chart(entry: dict[str, Any]) -> dict[str, Any] | None:
    """The law of one metric: density or bars, interval, mean, labeled-only value, bounds and target."""
    x, y = (np.array(entry["shape"][axis]) for axis in ("x", "y"))
    if x.size == 0:
        return None
    low, high, mean = entry["low"], entry["high"], entry["mean"]
    bounds = [entry["lowest_possible"], entry["highest_possible"]]
    target = entry["target"]["value"] if entry["target"] else None
    across = distribution_scale(entry)
    places, heights = across(x), BOTTOM - (BOTTOM - TOP) * y / float(y.max())
    floor = np.full(x.size, float(BOTTOM))
    bars = entry["shape"]["kind"] == "bars"
    inside = (x >= low) & (x <= high)
    return {
        "kind": entry["shape"]["kind"],
        "x_ticks": across.ticks(),
        "outline": "" if bars else line(places, heights),
        "interval": "" if bars else area(places[inside], floor[inside], heights[inside]),
        "bars": [
            {"x": _short(p), "y": _short(h), "inside": bool(i)}
            for p, h, i in zip(places.tolist(), heights.tolist(), inside.tolist(), strict=True)
        ]
        if bars
        else [],
        "span": {"x": across.at(low), "width": _short(max(1.0, across.at(high) - across.at(low)))},
        "mean": across.at(mean),
        "labeled_only": _place(across, entry["labeled_only"]),
        "target": _place(across, target),
        "bounds": [_bound(across, bound, side) for side, bound in zip((-1, 1), bounds, strict=True)],
    }


def distribution_scale(entry: dict[str, Any]) -> Scale:
    """The axis under the law of one metric."""
    x = entry["shape"]["x"]
    target = entry["target"]["value"] if entry["target"] else None
    drawn = (x[0], x[-1], entry["low"], entry["high"], entry["labeled_only"], target)
    shown = [value for value in drawn if value is not None]
    ends = [*shown, *(entry[end] for end in ("lowest_possible", "highest_possible") if entry[end] is not None)]
    return Scale(ends if max(shown) - min(shown) >= _LEAST_SHARE * (max(ends) - min(ends)) else shown, LEFT, RIGHT)


def unit_scale() -> Scale:
    """The axis under a rate."""
    return Scale([0.0, 1.0], LEFT, RIGHT)


def band_chart(x: Numbers, band: dict[str, Any], target: float | None) -> dict[str, Any] | None:
    """A metric along a threshold or a share: mean, interval, and what else is known at each place."""
    series = {name: _array(values) for name, values in band.items() if isinstance(values, list)}
    known = np.concatenate([series["low"], series["high"], series["mean"]])
    if not np.isfinite(known).any():
        return None
    wanted = [known, *(series[name] for name in ("labeled_only",) if name in series), _array([target])]
    heights = np.concatenate(wanted)
    across, up = Scale(_array(x).tolist(), LEFT, RIGHT), Scale(heights[np.isfinite(heights)].tolist(), BOTTOM, TOP)
    places = across(_array(x))
    chart = {
        "x_ticks": across.ticks(),
        "y_ticks": up.ticks(4),
        "interval": area(places, up(series["low"]), up(series["high"])),
        "mean": line(places, up(series["mean"])),
        "labeled_only": line(places, up(series["labeled_only"])) if "labeled_only" in series else "",
        "bounds": "",
        "target": _place(up, target),
    }
    if "lowest_possible" in series:
        # Bounds are often far away: what lies outside the box is cut at its edge.
        lowest, highest = (np.clip(up(series[name]), TOP, BOTTOM) for name in ("lowest_possible", "highest_possible"))
        chart["bounds"] = area(places, lowest, highest)
    return chart


def period_chart(
    x: FloatArray, names: Sequence[str], column: Column, new: BoolArray, target: float | None, values: FloatArray
) -> dict[str, Any] | None:
    """Return a metric over the periods: intervals, means, labeled-only values, and the missing labels at the foot.

    `x` are the places of the periods, one apart unless periods between them are missing; `new` marks new alerts. All
    pictures of a metric have the scale of the same `values`.
    """
    # Without a distribution, as with no labels at all, the bounds take its place.
    is_unknown = np.isnan(column.low) & column.small
    low, high = np.where(is_unknown, column.lowest, column.low), np.where(is_unknown, column.highest, column.high)
    if not np.isfinite(low).any():
        return None
    shown = values if np.isfinite(values).any() else np.concatenate([low, high])
    up = Scale(shown[np.isfinite(shown)].tolist(), _FOOT, TOP)
    places, step = period_places(x)
    width = max(0.4, min(14.0, 0.55 * step))
    tops, feet = (np.clip(up(end), TOP, _FOOT) for end in (high, low))
    missing = BOTTOM - (BOTTOM - _FOOT - 6.0) * column.missing
    bars = [
        _bar(place, width, top, foot, "few" if small else "interval")
        for place, top, foot, small in zip(places, tops, feet, column.small, strict=True)
        if np.isfinite(top + foot)
    ]
    bars += [_bar(place, width, top, BOTTOM, "absent") for place, top in zip(places, missing, strict=True)]
    apart = np.flatnonzero(np.diff(x) > 1.0) + 1
    means, only = np.clip(up(column.mean), TOP, _FOOT), np.clip(up(column.labeled_only), TOP, _FOOT)
    kinds = np.where(new, "new", np.where(column.alert, "alert", np.where(column.small, "few", "mean")))
    few = x.size <= _CROWD  # of more, alerts alone are marked
    marks = [_mark("labeled", *at) for at in zip(places, only, strict=True) if few and np.isfinite(at[1])]
    marks += [
        _mark(str(kind), place, y)
        for kind, place, y in zip(kinds, places, means, strict=True)
        if np.isfinite(y) and (few or kind in ("new", "alert"))
    ]
    letters = max(map(len, names)) * 6.2 + 8.0
    every = max(1, int(np.ceil(letters / step)))
    ticks = [{"at": round(float(places[i]), 1), "text": names[i]} for i in range(len(names) - 1, -1, -every)]
    return {
        "x_ticks": ticks,
        "y_ticks": up.ticks(4),
        "bars": bars,
        "mean": line(np.insert(places, apart, np.nan), np.insert(means, apart, np.nan)),
        "marks": marks,
        "target": _place(up, target),
    }


def period_places(x: FloatArray) -> tuple[FloatArray, float]:
    """Where periods stand across the picture, and how far apart."""
    step = (RIGHT - LEFT) / (float(x.max()) + 1.0)
    return LEFT + (x + 0.5) * step, step


def span_chart(scale: Scale, column: Column, place: int, target: float | None, *, new: bool) -> dict[str, Any] | None:
    """The interval of one group on a line that all groups share; None where nothing is known."""
    none = bool(np.isnan(column.low[place]))
    ends = (column.lowest[place], column.highest[place]) if none else (column.low[place], column.high[place])
    left, right = (float(np.clip(scale(end), 1.0, 159.0)) for end in ends)
    if not np.isfinite(left + right):
        return None
    kind = "new" if new else "alert" if column.alert[place] else "few" if column.small[place] else "mean"
    marks = [("labeled", column.labeled_only[place]), (kind, column.mean[place])]
    return {
        "kind": "few" if column.small[place] else "interval",
        "x": _short(left),
        "width": _short(max(1.0, right - left)),
        "target": _place(scale, target),
        "marks": [_mark(sign, float(scale(value)), 0.0) for sign, value in marks if np.isfinite(value)],
    }


def rate_chart(rates: dict[str, Any], current: float, *, diagonal: bool = False) -> dict[str, Any] | None:
    """Two rates against each other: mean, interval of the one above the mean of the other, and the point in use.

    The diagonal of a ROC curve is what guessing gives.
    """
    # From left to right: both rates of a threshold fall as it rises.
    series = {name: _array(values)[::-1] for name, values in rates.items() if isinstance(values, list)}
    x, mean = series["x"], series["mean"]
    if not np.isfinite(x + mean).any():
        return None
    across, up = unit_scale(), Scale([0.0, 1.0], BOTTOM, TOP)
    here = np.flatnonzero((series["thresholds"] == current) & np.isfinite(x + mean))
    seen = np.isfinite(series["labeled_only_x"])
    return {
        "x_ticks": across.ticks(),
        "y_ticks": up.ticks(4),
        "interval": area(across(x), *(up(np.clip(series[end], 0.0, 1.0)) for end in ("low", "high"))),
        "mean": line(across(x), up(mean)),
        "labeled_only": line(across(series["labeled_only_x"][seen]), up(series["labeled_only"][seen])),
        "bounds": "",
        "target": None,
        "diagonal": line(across([0.0, 1.0]), up([0.0, 1.0])) if diagonal else "",
        "dot": {"x": across.at(float(x[here[0]])), "y": up.at(float(mean[here[0]]))} if here.size else None,
    }


def cursor_places(x: Numbers) -> list[float]:
    """Where the cursor stands for each position of a slider."""
    return [round(place, 1) for place in Scale(_array(x).tolist(), LEFT, RIGHT)(_array(x)).tolist()]


def _bound(across: Scale, value: float | None, side: int) -> dict[str, Any] | None:
    """A bound on the axis: a bracket at its place, or an arrow at the edge that it lies beyond."""
    if value is None:
        return None
    place = across.at(value)
    outside = not LEFT - 0.5 <= place <= RIGHT + 0.5
    return {"x": (LEFT if side < 0 else RIGHT) if outside else place, "outside": outside, "side": side}


def _bar(place: float, width: float, top: float, foot: float, kind: str) -> dict[str, str]:
    height = max(1.0 if kind != "absent" else 0.0, foot - top)  # an interval of no width is seen too
    sizes = {"x": place - 0.5 * width, "y": 0.5 * (top + foot - height), "width": width, "height": height}
    return {"kind": kind, **{name: _short(float(size)) for name, size in sizes.items()}}


def _mark(kind: str, place: float, y: float) -> dict[str, Any]:
    return {"kind": kind, "x": round(float(place), 1), "y": round(float(y), 1)}


def _place(scale: Scale, value: float | None) -> float | None:
    return None if value is None else scale.at(value)


def _array(values: Numbers) -> FloatArray:
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _short(place: float) -> str:
    return f"{place:.1f}".removesuffix(".0")
