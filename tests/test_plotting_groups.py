"""Plots of segments and periods draw the numbers of every group, and can be read whatever the groups are called."""

import datetime as dt
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

import darkmetrics as dm
import oracle
from alerting import alerts_by
from darkmetrics.plotting import style
from plot_checks import check_readable, labels_of, lay_out, signed, signs

SCORE = np.array([0.9, 0.2, 0.8, 0.6, 0.3, 0.7, 0.4, 0.1, 0.55])
GAPS = [2, 4, 8]
P = np.array([0.7, 0.2, 0.5])
LABELS = {"A": [1, 0, 1, 0, 1, 0], "B": [1, 0, 1, 0, 0, 0], "C": [0, 0, 1, 0, 1, 1]}
HOSTILE = ["$x_1$ and $", "_hidden", "<b>bold</b>", "two\nlines", "\\frac{1}{2} \\$", "a" * 300, "", None, "bell \x07"]


def labels(group):
    """The nine labels of a group: three are missing."""
    y = np.full(9, np.nan)
    y[np.setdiff1d(np.arange(9), GAPS)] = LABELS[group]
    return y


@pytest.fixture(scope="module")
def table():
    """Nine rows for each of three groups, so that every law can be listed."""
    own = np.full(9, np.nan)
    own[GAPS] = P
    parts = [pd.DataFrame({"group": group, "y": labels(group), "s": SCORE, "p": own}) for group in LABELS]
    return pd.concat(parts, ignore_index=True)


def evaluated(table, by="group", **settings: Any):
    roles: dict[str, Any] = {"y_true": "y", "y_score": "s"}
    if "p" in table:
        roles |= {"missingness": dm.missing.Fixed("p")}
    if "targets" in settings:
        return alerts_by(data=table, by=by, min_labels=0, **{**roles, **settings})
    return dm.evaluate_by(data=table, by=by, **{**roles, **settings})


def brute_force(group, name):
    problem = oracle.Problem(labels(group), SCORE, (SCORE >= 0.5).astype(int), np.ones(9), P)
    return oracle.distribution(oracle.definition_of(name), problem)


def quantile(distribution, q):
    # Cumulated probabilities may miss a level by rounding.
    return distribution.values[np.searchsorted(np.cumsum(distribution.masses), q - 1e-12)]


def names_of(ax):
    return [tick.get_text() for tick in ax.get_yticklabels()]


def signed_lines(ax: Any, start) -> list[Any]:
    return [line for line in ax.lines if line.get_label().startswith(start)]


def rows(n=4000, seed=0, late=0.0):
    """Months and countries; scores fall in France from April on, and the last month lacks labels."""
    rng = np.random.default_rng(seed)
    month, country = rng.integers(1, 7, n), rng.choice(["DE", "FR", "IT"], n)
    chance = rng.beta(1, 2, n)
    y = (rng.random(n) < chance).astype(float)
    y[rng.random(n) < np.where(month == 6, 0.6 + late, 0.2)] = np.nan
    return pd.DataFrame(
        {
            "booked": pd.to_datetime([dt.date(2026, m, 1 + i % 28) for i, m in enumerate(month.tolist())]),
            "month": [f"2026-{m:02}" for m in month],
            "country": country,
            "y": y,
            "s": np.where((country == "FR") & (month >= 4), chance**2, chance),
        }
    )


def of_rows(table=None, by=None, **settings: Any):
    given: dict[str, Any] = {"y_true": "y", "y_score": "s", "missingness": "random", "metrics": ["recall", "precision"]}
    given |= settings
    if given.get("targets") is None:
        given.pop("targets", None)
        return dm.evaluate_by(data=rows() if table is None else table, by=by, **given)
    return alerts_by(data=rows() if table is None else table, by=by, **given)


@pytest.fixture(scope="module")
def by_country():
    return of_rows(by="country", targets={"recall": 0.4})


@pytest.fixture(scope="module")
def by_month():
    return of_rows(time="booked", period="month", targets={"recall": 0.44})


@pytest.fixture(scope="module")
def by_both():
    return of_rows(by="country", time="booked", period="month", targets={"recall": 0.4})


# ---------------------------------------------------------------------------------------------------- segments


def test_the_forest_draws_brute_force_with_the_likeliest_miss_first(table):
    distributions = {group: brute_force(group, "recall") for group in LABELS}
    # An atom at the target has reached it.
    missed = {
        group: distribution.masses[distribution.values < 0.65 - 1e-9].sum()
        for group, distribution in distributions.items()
    }
    order = sorted(LABELS, key=lambda group: -missed[group])
    ax = dm.plotting.plot_groups(evaluated(table, targets={"recall": 0.65}))
    assert names_of(ax) == order
    expected = [distributions[group] for group in order]
    interval = np.array(signed(ax, "90% interval").get_segments())[:, :, 0]
    assert interval == pytest.approx(
        np.array([[quantile(distribution, 0.05), quantile(distribution, 0.95)] for distribution in expected])
    )
    bounds = np.array(signed(ax, "bounds").get_segments())[:, :, 0]
    assert bounds == pytest.approx(np.array([[distribution.low, distribution.high] for distribution in expected]))
    dots = np.concatenate([line.get_xdata() for line in signed_lines(ax, "mean")])
    assert sorted(dots) == pytest.approx(sorted(distribution.mean() for distribution in expected))
    assert signed(ax, "labeled only").get_xdata() == pytest.approx([_labeled_recall(group) for group in order])
    assert signed(ax, "target 0.65").get_xdata()[0] == 0.65
    texts = [text.get_text() for text in ax.texts]
    certain = {0.0: "0", 1.0: "1"}
    assert texts == [*(certain.get(missed[group], f"{missed[group]:.3f}") for group in order), "P(missed)"]


def _labeled_recall(group):
    y = labels(group)
    return np.sum((y == 1) & (SCORE >= 0.5)) / np.sum(y == 1)


@pytest.mark.parametrize(("name", "sign"), [("recall", 1), ("brier", -1)])
def test_without_a_target_the_worst_mean_is_first(table, name, sign):
    ax = dm.plotting.plot_groups(evaluated(table, metrics=name))
    assert names_of(ax) == sorted(LABELS, key=lambda group: sign * brute_force(group, name).mean())
    assert not ax.texts


def test_the_first_target_is_drawn_unless_told_otherwise(by_country):
    assert dm.plotting.plot_groups(by_country).get_xlabel() == "recall"
    assert dm.plotting.plot_groups(by_country, "precision").get_xlabel() == "precision"
    assert not any(label.startswith("target") for label in labels_of(dm.plotting.plot_groups(by_country, "precision")))
    with pytest.raises(dm.InputError, match=r"metric: unknown metric 'precison'. Did you mean 'precision'"):
        dm.plotting.plot_groups(by_country, "precison")


def test_alerts_are_diamonds_and_groups_with_few_labels_open_dots():
    given = rows()
    few = given[given["country"] == "IT"].index[8:]
    result = of_rows(given.drop(few), "country", targets={"recall": 0.4})
    assert [alert.key for alert in result] == [("FR",)]
    ax = dm.plotting.plot_groups(result)
    assert names_of(ax) == ["FR", "DE", "IT"]  # too small comes last
    diamond, dot = signed(ax, "mean, alert"), signed(ax, "mean")
    assert (diamond.get_marker(), diamond.get_ydata().tolist()) == ("D", [0.0])
    assert (dot.get_marker(), dot.get_ydata().tolist()) == ("o", [1.0])
    summary = result.grouped.groups[("IT",)]
    assert ("IT",) in result.too_small
    if np.isfinite(summary.metrics["recall"].mean):
        assert signed(ax, "mean, too few labels").get_markerfacecolor() == (1.0, 1.0, 1.0)
    else:
        assert "(too few labels)" in ax.get_yticklabels()[2].get_text()


def test_groups_beyond_the_most_are_counted_and_the_worst_are_kept(by_both):
    table = rows().assign(day=np.arange(4000) % 28)
    result = of_rows(table, "day", metrics="recall")
    ax = dm.plotting.plot_groups(result, most=5)
    worst = sorted(result.groups.values(), key=lambda group: group.metrics["recall"].mean)[:5]
    assert names_of(ax) == [str(group.key[0]) for group in worst]
    assert labels_of(ax)[-1] == "23 groups not drawn"
    assert len(names_of(dm.plotting.plot_groups(result))) == 20
    for wrong in (0, 2.5, True):
        most: Any = wrong
        with pytest.raises(dm.InputError, match=r"most: .* whole number of at least 1"):
            dm.plotting.plot_groups(by_both, most=most)


def test_of_segments_and_periods_the_newest_period_is_drawn_or_the_one_asked_for(by_both):
    for period, month in ((None, 6), (dt.date(2026, 4, 1), 4), ("2026-04", 4)):
        ax = dm.plotting.plot_groups(by_both, period=period)
        assert sorted(names_of(ax)) == ["DE", "FR", "IT"]
        assert ax.get_ylabel() == "country"
        assert labels_of(ax)[-1] == f"booked 2026-{month:02}"
        mean = [by_both.grouped.groups[name, dt.date(2026, month, 1)].metrics["recall"].mean for name in names_of(ax)]
        drawn = np.concatenate([line.get_xydata() for line in signed_lines(ax, "mean")])
        assert drawn[np.argsort(drawn[:, 1]), 0] == pytest.approx(mean)
    with pytest.raises(dm.InputError, match=r"period: no group of '2027'. There are '2026-01', "):
        dm.plotting.plot_groups(by_both, period="2027")


def test_periods_alone_can_be_drawn_as_groups(by_month):
    assert sorted(names_of(dm.plotting.plot_groups(by_month))) == [f"2026-0{month}" for month in range(1, 7)]
    with pytest.raises(dm.InputError, match="period: there are no segments to draw at one period"):
        dm.plotting.plot_groups(by_month, period="2026-01")


# ----------------------------------------------------------------------------------------------------- periods


def bars(ax, hatch=None):
    """Middle, bottom and top of the bars of one look."""
    found = [bar for bar in ax.patches if bar.get_hatch() == hatch]
    return np.array(
        [[bar.get_x() + 0.5 * bar.get_width(), bar.get_y(), bar.get_y() + bar.get_height()] for bar in found]
    )


def foot_of(ax):
    return next(other for other in ax.figure.axes if other is not ax)


def test_bars_dots_and_squares_are_the_numbers_of_each_period(by_month):
    ax = dm.plotting.plot_over_time(by_month)
    groups = list(by_month.grouped.groups.values())
    recall = [group.metrics["recall"] for group in groups]
    drawn = bars(ax)
    assert drawn[:, 0] == pytest.approx(np.arange(6))
    assert drawn[:, 1:] == pytest.approx(np.array([[one.low, one.high] for one in recall]))
    (line,) = signed_lines(ax, "_")
    assert line.get_ydata() == pytest.approx([one.mean for one in recall])
    assert signed(ax, "labeled only").get_ydata() == pytest.approx([one.labeled_only for one in recall])
    assert signed(ax, "target 0.44").get_ydata()[0] == 0.44
    table = rows()
    share = table["y"].isna().groupby(table["month"]).mean()
    assert bars(foot_of(ax))[:, 2] == pytest.approx(share.to_numpy())
    assert ax.get_xlabel() == "booked"
    assert ax.get_xticklabels()[0].get_text() == "2026-06"  # the newest has its name in any case


def test_shares_of_missing_labels_stand_below_the_values(by_month):
    ax = dm.plotting.plot_over_time(by_month)
    foot = foot_of(ax)
    top = ax.transData.inverted().transform(foot.transData.transform((0.0, 1.0)))[1]
    lowest = min(one.metrics["recall"].low for one in by_month.grouped.groups.values())
    assert top < min(lowest, *signed(ax, "labeled only").get_ydata())
    assert min(ax.get_yticks()) >= top


def test_a_column_that_is_time_by_its_name_alone_will_do():
    ax = dm.plotting.plot_over_time(of_rows(by="month"))
    assert ax.get_xlabel() == "month"
    assert len(bars(ax)) == 6


def test_periods_without_rows_leave_a_gap():
    table = rows()
    result = of_rows(table[~table["month"].isin(["2026-03", "2026-04"])], time="booked", period="month")
    ax = dm.plotting.plot_over_time(result)
    assert bars(ax)[:, 0].tolist() == [0.0, 1.0, 4.0, 5.0]
    (line,) = signed_lines(ax, "_")
    assert np.isnan(line.get_xdata()[2])  # the line does not cross it


def test_rows_without_a_date_are_no_period():
    table = rows()
    table.loc[::10, "booked"] = pd.NaT
    result = of_rows(table, time="booked", period="month")
    assert (None,) in result.groups
    assert len(bars(dm.plotting.plot_over_time(result))) == 6


def test_a_segment_is_chosen_by_its_value(by_both):
    ax = dm.plotting.plot_over_time(by_both, segment="FR")
    expected = [group.metrics["recall"] for key, group in by_both.grouped.groups.items() if key[0] == "FR"]
    assert bars(ax)[:, 1:] == pytest.approx(np.array([[one.low, one.high] for one in expected]))
    assert ax.get_ylabel() == "recall\nFR"
    with pytest.raises(
        dm.InputError,
        match=r"there are 3 of country. Pass the one to draw, or draw all with plot_segments: 'DE'",
    ):
        dm.plotting.plot_over_time(by_both)
    with pytest.raises(dm.InputError, match=r"segment: there is none 'ES'. Pass the one to draw: 'DE', 'FR', 'IT'"):
        dm.plotting.plot_over_time(by_both, segment="ES")


def test_rows_without_a_segment_are_drawn_when_asked_for_and_only_then():
    table = rows()
    table.loc[table["country"] == "IT", "country"] = None
    result = of_rows(table, "country", time="booked", period="month")
    with pytest.raises(
        dm.InputError, match=r"segment: there are 3 of country. Pass the one to draw, .*: 'DE', 'FR', None"
    ):
        dm.plotting.plot_over_time(result)
    ax = dm.plotting.plot_over_time(result, segment=None)
    expected = [group.metrics["recall"] for key, group in result.groups.items() if key[0] is None]
    assert bars(ax)[:, 1:] == pytest.approx(np.array([[one.low, one.high] for one in expected]))
    assert ax.get_ylabel() == "recall\n(missing)"


def test_periods_with_few_labels_are_in_the_legend():
    table = rows()
    last = table.index[table["month"] == "2026-06"]
    table.loc[last[4:], "y"] = np.nan
    ax = dm.plotting.plot_over_time(of_rows(table, time="booked", period="month"))
    assert {"90% interval", "90% interval, too few labels"} <= set(labels_of(ax))
    check_readable(ax)


def test_groups_that_are_no_periods_say_how_to_get_some(by_month):
    with pytest.raises(dm.InputError, match=r"result: has no periods, only 'month' and 'country'. .*time='booked'"):
        dm.plotting.plot_over_time(of_rows(by=["month", "country"]))
    with pytest.raises(dm.InputError, match=r"result: has no periods, only 'country'\. "):  # nothing to join by a line
        dm.plotting.plot_over_time(of_rows(by="country"))
    with pytest.raises(dm.InputError, match="segment: 'FR', but there are periods only"):
        dm.plotting.plot_over_time(by_month, segment="FR")


def test_what_was_known_before_is_drawn_behind(by_month):
    earlier = rows(late=0.3)
    before = of_rows(earlier[earlier["month"] != "2026-01"], time="booked", period="month")
    ax: Any = dm.plotting.plot_over_time(by_month, before=before)
    hatched = bars(ax, hatch="////")
    expected = [group.metrics["recall"] for group in before.groups.values()]
    assert hatched[:, 0].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]  # January had not been evaluated
    assert hatched[:, 1:] == pytest.approx(np.array([[one.low, one.high] for one in expected]))
    wide = {round(bar.get_width(), 6) for bar in ax.patches if bar.get_hatch()}
    narrow = {round(bar.get_width(), 6) for bar in ax.patches if not bar.get_hatch()}
    assert min(wide) > max(narrow)
    share = earlier["y"].isna().groupby(earlier["month"]).mean()
    assert bars(foot_of(ax), hatch="////")[:, 2] == pytest.approx([0.0, *share.to_numpy()[1:]])


def test_what_was_known_before_must_be_of_the_same_kind(by_month, by_country):
    with pytest.raises(dm.InputError, match=r"before: is by 'country', but result is by 'booked'"):
        dm.plotting.plot_over_time(by_month, before=by_country)
    with pytest.raises(dm.InputError, match=r"before: has no 'recall'. Evaluate it with the same metrics"):
        dm.plotting.plot_over_time(by_month, before=of_rows(time="booked", period="month", metrics="precision"))
    wrong: Any = 3
    with pytest.raises(dm.InputError, match="before: expected what evaluate_by returns, got int"):
        dm.plotting.plot_over_time(by_month, before=wrong)


def test_many_periods_have_small_signs_and_few_names():
    table = rows()
    table["booked"] = pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(4000) % 100, unit="D")
    result = of_rows(table, time="booked", period="day", metrics="recall")
    ax = dm.plotting.plot_over_time(result)
    assert len(ax.get_xticks()) <= 4
    assert signed(ax, "labeled only").get_markersize() < 3
    check_readable(ax)
    # One band, which holds the interval of every period that has enough labels, and has no bars that would be hair.
    assert not ax.patches
    label = "90% interval"
    (band,) = [one for one in ax.collections if one.get_label() == label]
    ends = np.concatenate([path.vertices for path in band.get_paths()])
    for place, group in enumerate(result.groups.values()):
        if not group.too_small:
            here = ends[np.isclose(ends[:, 0], place - 0.5), 1]
            one = group.metrics["recall"]
            assert np.isclose(here, one.low).any()
            assert np.isclose(here, one.high).any()


# ------------------------------------------------------------------------------------------- both, and extremes

PLOTS = {
    "groups": lambda country, month, both: dm.plotting.plot_groups(country),
    "groups of a period": lambda country, month, both: dm.plotting.plot_groups(both),
    "over time": lambda country, month, both: dm.plotting.plot_over_time(month, before=month),
    "over time, no target": lambda country, month, both: dm.plotting.plot_over_time(both, "precision", segment="DE"),
}


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_a_plot_is_readable_at_400_pixels_and_in_grey(plot, by_country, by_month, by_both):
    ax = plot(by_country, by_month, by_both)
    check_readable(ax)
    drawn = [label for label in labels_of(ax) if not label.startswith(("booked", "for these rows"))]
    assert len(set(signs(ax))) == len(drawn)
    palette = {to_hex(colour) for colour in style.COLORS}
    for line in ax.lines:
        colour = to_hex(line.get_color())
        assert colour in palette or len({colour[i : i + 2] for i in (1, 3, 5)}) == 1  # or a grey


@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_a_plot_is_drawn_on_the_axes_given(plot, by_country, by_month, by_both, monkeypatch):
    figure, ax = plt.subplots()
    count = len(plt.get_fignums())
    for name in ("plot_groups", "plot_over_time"):
        function = getattr(dm.plotting, name)
        monkeypatch.setattr(dm.plotting, name, lambda *a, function=function, **k: function(*a, **k, ax=ax))
    assert plot(by_country, by_month, by_both) is ax
    assert len(plt.get_fignums()) == count
    assert ax.figure is figure


def test_shortcuts_of_a_result_draw_the_same(by_country, by_month):
    assert labels_of(by_country.plot()) == labels_of(dm.plotting.plot_groups(by_country))
    assert labels_of(by_month.plot_over_time("precision")) == labels_of(
        dm.plotting.plot_over_time(by_month, "precision")
    )


def hostile():
    table = pd.concat([rows(400, seed).assign(country=name) for seed, name in enumerate(HOSTILE)], ignore_index=True)
    return table.rename(columns={"country": "$c_1$ <i>\nof"})


def test_names_are_text_and_not_mathematics_or_hidden():
    result = of_rows(hostile(), "$c_1$ <i>\nof", metrics="recall")
    ax = dm.plotting.plot_groups(result)
    check_readable(ax)
    texts = [name.replace("\n", " ").strip() for name in names_of(ax)]
    assert {"\\$x_1\\$ and \\$", "_hidden", "<b>bold</b>", "two\\nlines", "(missing)", "''", "bell \\x07"} <= set(texts)
    assert ax.get_ylabel().startswith("\\$c_1\\$ <i>")
    assert max(map(len, texts)) < 60
    dated = of_rows(hostile(), "$c_1$ <i>\nof", time="booked", period="quarter", metrics="recall")
    for name in HOSTILE:
        check_readable(dm.plotting.plot_over_time(dated, segment=name))


@pytest.mark.parametrize(
    "case", ["one group", "nothing missing", "nothing labeled", "undefined", "one class", "equal values"]
)
def test_extreme_groups_are_drawn_and_readable(case):
    table = rows(600)
    settings: dict[str, Any] = {"missingness": dm.missing.Fixed(0.5)}
    if case == "one group":
        table["country"] = "DE"
    elif case == "nothing missing":
        table["y"] = table["y"].fillna(0.0)
    elif case == "nothing labeled":
        table.loc[table["country"] == "DE", "y"] = np.nan
        settings |= {"missingness": "by_score"}
    elif case == "undefined":
        table["y"], settings["zero_division"] = 0.0, np.nan
    elif case == "one class":
        table["y"] = np.where(table["country"] == "DE", 0.0, table["y"])
        settings |= {"missingness": "by_score"}
    else:
        table["y"], table["s"] = 1.0, 0.7
    for targets in (None, {"recall": 0.4}):
        result = of_rows(table, "country", targets=targets, **settings)
        check_readable(dm.plotting.plot_groups(result))
        check_readable(dm.plotting.plot_over_time(of_rows(table, "month", targets=targets, **settings)))
        check_readable(dm.plotting.plot_over_time(of_rows(table, time="country", targets=targets, **settings)))


def test_plots_of_something_else_say_what_they_want():
    wrong: Any = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    for plot in (dm.plotting.plot_groups, dm.plotting.plot_over_time):
        with pytest.raises(dm.InputError, match="result: expected what evaluate_by returns, got Evaluation"):
            plot(wrong)


# ---------------------------------------------------------------------------------------------------- small multiples


def test_small_multiples_have_the_periods_of_each_segment_on_one_scale(by_both):
    axes = dm.plotting.plot_segments(by_both)
    assert sorted(ax.get_title("left") for ax in axes) == ["DE", "FR", "IT"]
    for ax in axes:
        expected = [g.metrics["recall"] for key, g in by_both.grouped.groups.items() if key[0] == ax.get_title("left")]
        assert bars(ax)[:, 1:] == pytest.approx(np.array([[one.low, one.high] for one in expected]))
        assert ax.get_ylim() == axes[0].get_ylim()
        assert ax.get_xlim() == axes[0].get_xlim()
    figure = axes[0].figure
    lay_out(axes[0])
    assert head_of(figure).get_window_extent().y0 >= max(ax.bbox.y1 for ax in axes)


def head_of(figure):
    """The one legend of small multiples."""
    (legend,) = [ax.get_legend() for ax in figure.axes if ax.get_legend() is not None]
    return legend


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_title_of_small_multiples_stands_above_their_legend_and_all_inside_the_picture(by_both, most):
    axes = dm.plotting.plot_segments(by_both, most=most)
    figure = axes[0].figure
    title = figure.suptitle("Recall of card payments")
    lay_out(axes[0], times=2)  # it settles at the second
    legend = head_of(figure).get_window_extent()
    assert title.get_window_extent().y0 >= legend.y1 - 1.0
    assert legend.y0 >= max(ax.title.get_window_extent().y0 for ax in axes)
    assert legend.x1 <= figure.bbox.x1 + 1.0
    assert title.get_window_extent().y1 <= figure.bbox.y1 + 1.0
    assert sum(ax.bbox.width for ax in axes) > 0.6 * figure.bbox.width


def test_small_multiples_that_are_left_out_are_counted(by_both):
    axes = dm.plotting.plot_segments(by_both, most=2)
    assert len(axes) == 2
    assert "1 segment not drawn" in [text.get_text() for text in head_of(axes[0].figure).get_texts()]
    with pytest.raises(dm.InputError, match="most: 0"):
        dm.plotting.plot_segments(by_both, most=0)
