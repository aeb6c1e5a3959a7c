"""The page of segments and periods: its numbers, its alerts, and safety whatever names groups have."""

import html
import json
import re
import sys
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from alerting import alerts_by
from darkmetrics.exceptions import MethodError
from darkmetrics.report.groups import groups_page
from test_report_render import ATTRIBUTES, HOSTILE, TAGS, Page

NAMES = [name for name in HOSTILE if "\ud800" not in name]  # no table holds half a character


def rows(n=600, **columns):
    rng = np.random.default_rng(0)
    score = rng.random(n).round(3)
    label = np.where(rng.random(n) < 0.3, np.nan, (rng.random(n) < score).astype(float))
    month = np.datetime64("2026-01") + np.arange(n) % 4
    return pd.DataFrame({"booked": month.astype("datetime64[D]"), "fraud": label, "p": score} | columns)


def evaluated(frame, **settings: Any):
    given: dict[str, Any] = {
        "y_true": "fraud",
        "y_score": "p",
        "metrics": "recall",
        "missingness": dm.missing.Fixed(0.5),
    }
    ask: Any = alerts_by if "targets" in settings else dm.evaluate_by
    return ask(data=frame, **given | settings)


@cache
def monthly():
    months = {"time": "booked", "period": "month"}
    frame = rows(country=np.where(np.arange(600) < 300, "DE", "FR"))
    low = frame.assign(p=np.where(frame["country"] == "FR", frame["p"] / 2, frame["p"]))
    before = evaluated(low[low["booked"] < "2026-03"], by="country", targets={"recall": 0.5}, **months)
    return evaluated(low, by="country", targets={"recall": 0.5}, known_alerts=before, **months)


@cache
def hostile_page():
    name = "<b>{{ 7 * 7 }}</b> \" onload='x'"
    frame = rows(**{name: [NAMES[i % len(NAMES)] for i in range(600)]})
    first = evaluated(frame, by=name, targets={"recall": 0.9})
    result = evaluated(frame, by=name, targets={"recall": 0.9}, known_alerts=first)
    source = dict(zip(NAMES, reversed(NAMES), strict=True))
    return groups_page(result, title=" ".join(NAMES), source=source)


def cells(page, table):
    """The cells of a table of the page, line by line."""
    part = page.partition(f'id="{table}"')[2].partition("</table>")[0].partition("<tbody>")[2]
    return [
        [
            re.sub(r"<svg.*?</svg>|<[^>]*>", "", cell, flags=re.DOTALL).strip()
            for cell in re.findall(r"<t[hd].*?</t[hd]>", line, re.DOTALL)
        ]
        for line in part.split("</tr>")[:-1]
    ]


def test_the_table_is_that_of_the_result():
    result = monthly()
    shown = cells(groups_page(result), "groups-table")
    _, expected = result._table(most=None)
    assert len(shown) == 9
    for row, (state, country, booked, rows, missing, estimate, missed) in zip(shown, expected, strict=True):
        interval = estimate.partition(" (")[2].removesuffix(")")
        cells_expected = [
            state,
            country,
            booked,
            f"{rows} {missing} missing",
            f"{estimate.split()[0]} {interval}",
            missed,
        ]
        assert [html.unescape(cell) for cell in row] == cells_expected


def test_alerts_come_with_the_new_ones_first_and_marked():
    result = monthly()
    page = groups_page(result)
    assert {(alert.group, alert.new) for alert in result} == {
        ("FR, 2026-01", False),
        ("FR, 2026-02", False),
        ("FR, 2026-03", True),
        ("FR, 2026-04", True),
    }
    shown = cells(page, "alerts-table")
    assert [row[-1] for row in shown] == ["new", "new", *[f"known since {result.grouped.evaluated_on}"] * 2]
    assert {row[0] for row in shown[:2]} == {"FR, 2026-03", "FR, 2026-04"}
    assert page.count('<span class="new">') == 4  # in both tables
    assert page.count('class="ring"') == 3  # two in the picture, one in the legend


def test_a_picture_stands_for_each_segment_and_those_with_new_alerts_come_first():
    page = groups_page(monthly())
    titles = re.findall(r'<title id="period-\d+-title">(.*?)</title>', page)
    assert titles == ["recall, FR", "recall, DE"]
    assert "4 periods from 2026-01 to 2026-04." in page
    part = page.partition('id="periods-charts"')[2].partition("</section>")[0]
    assert part.count('class="interval"') == 8
    assert part.count('class="absent"') == 8


def test_what_differs_is_said_of_each_segment():
    result, page = monthly().grouped, groups_page(monthly())
    part = html.unescape(page.partition('id="compared"')[2].partition("</section>")[0])
    for country in ("DE", "FR"):
        change = result.compare((country, "2026-04"), (country, "2026-03"))
        assert f"{country}: 2026-04 against 2026-03: {change.sentence('recall')}" in part
        assert f"{country}: {result.trend('recall', country)._words()[0]}" in part


def test_without_periods_the_gap_is_what_differs():
    result = evaluated(rows(country=np.arange(600) % 3), by="country")
    assert result.disparity("recall")._words()[0] in groups_page(result)


def test_bars_and_marks_are_where_the_numbers_are():
    result = monthly()
    part = groups_page(result).partition('id="periods-charts"')[2].split("</svg>")[1]
    ticks = {float(text): float(at) - 4 for at, text in re.findall(r'level" x="42" y="([\d.]+)">([\d.]+)<', part)}
    (first, at), (last, end) = min(ticks.items()), max(ticks.items())
    bars = re.findall(r'class="interval" x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', part)
    groups = [group for key, group in result.grouped.groups.items() if key[0] == "DE"]
    for (top, height), group in zip(bars, groups, strict=True):
        for place, value in (
            (float(top), group.metrics["recall"].high),
            (float(top) + float(height), group.metrics["recall"].low),
        ):
            # Places are rounded to a tenth of a pixel, and so are the two ticks.
            assert place == pytest.approx(at + (value - first) / (last - first) * (end - at), abs=0.5)


def test_without_periods_each_line_has_a_picture_of_its_own():
    result = evaluated(rows(country=np.arange(600) % 3), by="country")
    page = groups_page(result)
    assert "From period to period" not in page
    assert page.count('<svg class="span"') == 4
    assert "Alerts" not in page


def test_warnings_stand_at_the_top_and_name_the_groups():
    frame = rows(country=np.arange(600) % 3)
    frame.loc[frame["p"] > 0.5, "fraud"] = np.where(np.arange((frame["p"] > 0.5).sum()) % 3 > 0, np.nan, 1.0)
    with pytest.warns(dm.MissingnessWarning):
        result = evaluated(frame, by="country", missingness=None)
    page = groups_page(result)
    assert page.index('class="warning"') < page.index('class="counts"')
    assert re.search(r"In \d of 3 groups \(\d(; \d)*\)", page)


def test_many_groups_are_cut_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr("darkmetrics.report.groups._GROUPS", 3)
    monkeypatch.setattr("darkmetrics.report.groups._PICTURES", 1)
    result = monthly()
    page = groups_page(result)
    assert [row[0] for row in cells(page, "groups-table")][1:3] == ["new"] * 2
    assert "5 more groups are left out; those with alerts come first." in page
    assert "1 more pictures are left out; those with alerts come first." in page


def test_it_says_how_to_make_it_again():
    result = evaluated(rows(), time="booked", period="month", last_periods=2, targets={"recall": 0.5}, rng=3)
    page = Page(groups_page(result, title="June", date="2026-07-01"))
    code = "".join(page.of_tag["code"])
    assert "time='booked', period='month'" in code
    assert "last_periods=2" in code
    assert "targets={'recall': 0.5}" in code
    assert code.endswith("alerts.report(\"report.html\", title='June', date='2026-07-01')")
    assert "The seed was rng=3." in "".join(page.text)


# ------------------------------------------------------------------------------------------------------------ any names


def test_names_of_groups_make_no_markup():
    page = Page(hostile_page())
    assert set(page.tags) <= {*TAGS, "circle"}
    assert page.attributes <= {*ATTRIBUTES, "cx", "cy", "r"}
    assert page.tags.count("script") == 2
    text = "".join(page.text)
    for name in ("<script>alert(1)</script>", "</style><img src=x onerror=alert(1)>", "🧪👩‍🔬"):
        assert name in text
    assert "{{ 7 * 7 }}" in text


def test_the_policy_lets_one_script_in():
    policy = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', hostile_page())[0]
    assert len(re.findall(r"script-src &#39;sha256-[^;&]+&#39;;", policy)) == 1
    assert "default-src &#39;none&#39;" in policy
    assert not re.search(r"https?:", hostile_page())


def test_headings_are_in_order_and_ids_are_unique():
    for page in (hostile_page(), groups_page(monthly())):
        levels = [int(level) for level in re.findall(r"<h(\d)", page)]
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))
        ids = re.findall(r' id="([^"]+)"', page)
        assert len(set(ids)) == len(ids)


# ------------------------------------------------------------------------------------------------------------- the file


def test_the_file_is_written_whole_and_its_path_returned(tmp_path):
    path = monthly().report(tmp_path / "june.html", source="june.parquet")
    assert path == tmp_path / "june.html"
    assert path.read_text(encoding="utf-8") == groups_page(monthly(), source="june.parquet")
    assert [one.name for one in tmp_path.iterdir()] == ["june.html"]


@pytest.mark.parametrize("name", ["june.txt", "june"])
def test_another_suffix_is_refused(tmp_path, name):
    with pytest.raises(dm.InputError, match=rf"^path: '{re.escape(name)}' must end in \.html, \.md, \.json or \.pdf"):
        monthly().report(tmp_path / name)


def test_the_same_report_is_markdown_and_its_numbers_json(tmp_path):
    text = monthly().report(tmp_path / "june.md").read_text(encoding="utf-8")
    headings = re.findall(r'<h2 id="[^"]+">([^<]+)</h2>', groups_page(monthly()))
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == headings
    written = json.loads(monthly().report(tmp_path / "june.json").read_text(encoding="utf-8"))
    assert written == json.loads(json.dumps(monthly().to_dict()))


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(dm.InputError, match=r"^path: cannot write '.*june\.html': No such file or directory\."):
        monthly().report(tmp_path / "no" / "june.html")


def test_without_jinja2_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MethodError, match=r"jinja2 is not installed\. pip install 'darkmetrics\[report\]'"):
        monthly().report(tmp_path / "june.html")
