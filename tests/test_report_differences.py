"""Pages of a comparison and of a change: their numbers, what they warn of, and safety whatever names there are."""

import csv
import html
import re
import sys
from functools import cache
from io import StringIO
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics.report.changed import change_page
from darkmetrics.report.models import comparison_page, rows_hash
from darkmetrics.tables import chance_text
from test_report_groups import cells
from test_report_render import ATTRIBUTES, HOSTILE, TAGS, Page

METRICS = ["accuracy", "brier"]  # higher is better, and lower
NAMES = [name for name in HOSTILE if len(name) < 1000][:4]


def rows(n=40, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(3)
    return np.where(np.arange(n) % 4 == 0, np.nan, (rng.random(n) < p).astype(float)), p**power


@cache
def compared(names=("champion", "challenger"), metrics=tuple(METRICS), scope="rows"):
    y, p = rows()
    scores = {name: np.clip(p + 0.2 * np.sin(np.arange(p.size) + i), 0.0, 1.0) for i, name in enumerate(names)}
    return dm.compare(y, scores, metrics=list(metrics), missingness=dm.missing.Fixed(0.5), scope=scope, rng=0)


@cache
def changed(names=("June", "May"), scope="rows"):
    may, june = (
        dm.evaluate(
            *rows(seed=seed, power=power), metrics=METRICS, missingness=dm.missing.Fixed(0.5), scope=scope, rng=0
        )
        for seed, power in ((0, 1.0), (1, 1.5))
    )
    return dm.compare_evaluations(june, may, names=names)


def unescaped(table):
    return [[html.unescape(cell) for cell in line] for line in table]


def read_csv(page, name):
    address = html.unescape(re.findall(rf'download="{name}.csv" href="([^"]*)"', page)[0])
    return list(csv.DictReader(StringIO(unquote(address.partition(",")[2]))))


# --------------------------------------------------------------------------------------------------------- a comparison


def test_the_models_are_those_of_the_comparison():
    found = compared()
    _, expected = found._table()
    for line, (metric, *line_expected) in zip(
        unescaped(cells(comparison_page(found), "models-table")), expected, strict=True
    ):
        assert line[1:] == line_expected
        assert metric in ("", line[0])


def test_differences_are_those_of_the_comparison_in_print_and_in_full():
    found, page = compared(), comparison_page(compared())
    shown, saved = unescaped(cells(page, "differences-table")), read_csv(page, "differences")
    assert [line[:2] for line in shown] == [[metric, "challenger"] for metric in METRICS]
    for line, record, metric in zip(shown, saved, METRICS, strict=True):
        distribution = found.difference(metric, "challenger", "champion")
        low, high = distribution.interval(found.confidence_level)
        assert line[2:4] == [f"{distribution.mean():z.3f}", f"{low:z.3f} to {high:z.3f}"]
        chance = found.probability_better(metric, "challenger", "champion")
        for key, value in {"mean": distribution.mean(), "low": low, "high": high, "better": chance}.items():
            assert float(record[key]) == pytest.approx(value, rel=1e-8)  # nine digits are saved


def test_the_verdict_and_the_chances_are_in_words():
    found, page = compared(), html.unescape(comparison_page(compared()))
    (answer,) = re.findall(r'<p class="answer"><bdi>(.*?)</bdi></p>', page)
    for metric in METRICS:
        assert found.sentence(metric) in page
        pair = ("challenger", "champion")
        probability = max(found.probability_better(metric, *names) for names in (pair, pair[::-1]))
        assert (f"{metric} ({chance_text(probability)})" in answer) == (probability >= 0.9)
        assert metric in answer


def test_of_three_models_each_is_held_against_the_first_and_places_are_told():
    found = compared(("a", "b", "c"), ("accuracy",))
    page = comparison_page(found)
    assert [line[1] for line in cells(page, "differences-table")] == ["b", "c"]
    assert unescaped(cells(page, "places-table")) == found.rank_probabilities("accuracy")._table()[1]
    assert str(found.probability_best("accuracy")) in html.unescape(page)
    assert page.count('<svg id="distribution-') == 2


def test_places_that_are_drawn_need_a_seed_to_come_out_again():
    labels, p = rows(200)
    scores = {"a": p, "b": p**2, "c": 1.0 - p}
    for models, said in ((("a", "b", "c"), "No seed was given"), (("a", "b"), "Nothing was drawn at random")):
        found = dm.compare(
            labels, {name: scores[name] for name in models}, metrics="brier", missingness=dm.missing.Fixed(0.5)
        )
        assert (found.probability_best("brier").method == "monte carlo") == (len(models) == 3)
        assert said in comparison_page(found)


def test_the_page_of_a_population_is_about_it():
    found = compared(("a", "b", "c"), ("accuracy",), "population")
    page = comparison_page(found)
    assert "the population that the rows came from" in page.partition('id="facts"')[2].partition("</dl>")[0]
    low, high = compared(("a", "b", "c"), ("accuracy",))["a"].population["accuracy"].interval(found.confidence_level)
    assert cells(page, "models-table")[0][3] == f"{low:.3f} to {high:.3f}"
    low, high = found.difference("accuracy", "b", "a", scope="population").interval(found.confidence_level)
    assert cells(page, "differences-table")[0][3] == f"{low:.3f} to {high:.3f}"
    assert "scope=&#39;population&#39;" in page
    assert "possible" not in page.partition('id="distributions"')[2].partition('class="charts"')[0]


def test_zero_stands_in_every_picture_where_the_axis_has_it():
    page = comparison_page(compared()).partition('class="charts"')[2]
    pictures = page.split("</svg>")[:-1]
    assert len(pictures) == len(METRICS)
    for picture in pictures:
        (zero,) = re.findall(r'class="target" x1="([\d.]+)"', picture)
        ticks = re.findall(r'class="tick" x="([\d.]+)" y="175">(.*?)<', picture)
        assert [float(at) for at, text in ticks if float(text) == 0.0] == [float(zero)]


def test_a_metric_without_a_better_side_and_a_difference_that_is_never_defined():
    y, p = [0.0, 0.0, np.nan, 0.0], np.array([0.1, 0.2, 0.3, 0.4])
    found = dm.compare(
        y,
        {"a": p, "b": p / 2},
        metrics=["recall", "prevalence"],
        missingness=dm.missing.Fixed([0.0]),
        zero_division=np.nan,
    )
    page = Page(comparison_page(found))
    assert "0/0 for every label assignment" in "".join(page.text)
    assert "undefined (0/0) in recall" in "".join(page.text)


def test_warnings_stand_at_the_top():
    y, p = rows(400)
    y[(p > 0.5) & (np.arange(400) % 3 > 0)] = np.nan
    with pytest.warns(dm.MissingnessWarning):
        found = dm.compare(y, {"a": p, "b": p**2}, metrics="accuracy", rng=0)
    page = comparison_page(found)
    assert page.index('class="warning"') < page.index('class="counts"')
    assert html.escape(found.warnings[0].message, quote=False)[:60] in page


def test_the_hash_of_rows_is_that_of_the_same_rows_counted():
    y, p = rows()
    frame = pd.DataFrame({"y": y, "a": p, "b": p.round(1)})
    twice = pd.concat([frame, frame])
    how: dict[str, Any] = {"metrics": "accuracy", "missingness": dm.missing.Fixed(0.5)}
    counted = dm.compare("y", ["a", "b"], data=twice.sample(frac=1.0, random_state=0), **how)
    single = dm.compare(twice["y"], {"a": twice["a"], "b": twice["b"]}, **how)
    assert rows_hash(counted.rows) == rows_hash(single.rows)
    other = dm.compare(twice["y"], {"a": twice["b"], "b": twice["a"]}, **how)
    assert rows_hash(other.rows) != rows_hash(single.rows)
    assert rows_hash(single.rows) in comparison_page(single, audit={"model": "scorecard 3"})


# ------------------------------------------------------------------------------------------------------------- a change


def test_what_moved_is_the_table_of_the_change():
    change, page = changed(), change_page(changed())
    _, expected = change._table()
    shown, aside = unescaped(cells(page, "changes-table")), unescaped(cells(page, "aside-table"))
    for line, side, (name, _, _, moved, interval, fell, method) in zip(shown, aside, expected, strict=True):
        assert [line[0], *line[1:4], line[-1]] == [name, moved, interval, fell, method]
        for mean, evaluation in ((side[1], change.before), (side[3], change.after)):
            assert mean == f"{evaluation[name].mean():.3f}"
        assert change.sentence(name) in html.unescape(page)
    saved = read_csv(page, "changes")
    assert [float(one["probability_decreased"]) for one in saved] == pytest.approx(
        [change.probability_decreased(name) for name in METRICS], rel=1e-8
    )


def test_the_mix_of_rows_and_what_is_assumed_are_said():
    change = changed()
    text = "".join(Page(change_page(change)).text)
    for note in change._notes():
        assert note in text
    assert change._words()[0] in text
    assert "the populations that the rows came from" in change_page(changed(scope="population"))


def test_sets_that_look_identical_are_warned_of_at_the_top():
    one, other = (dm.evaluate(*rows(), metrics="accuracy", missingness=dm.missing.Fixed(0.5)) for _ in range(2))
    page = change_page(dm.compare_evaluations(one, other))
    assert page.count("The two sets look identical") == 1
    assert page.index("The two sets look identical") < page.index('class="counts"')


def test_the_code_makes_the_change_again():
    change = changed(("June\nimport os", "May"))
    code = "".join(Page(change_page(change, date="2026-07-01")).of_tag["code"])
    y_true, y_score = rows(seed=1, power=1.5)
    before: dict[str, Any] = {"y_true": rows()[0], "y_score": rows()[1]}
    lines = [line for line in code.split("\n") if not line.startswith(("change.report", "before"))]
    assert not any(line.startswith("import os") for line in lines)
    seen: dict[str, Any] = {"y_true": y_true, "y_score": y_score}
    exec("\n".join(line for line in lines if not line.startswith("change")), seen)
    exec("import darkmetrics as dm\n" + next(line for line in code.split("\n") if line.startswith("before")), before)
    assert seen["after"].to_dict() == change.after.to_dict()
    assert before["before"].to_dict() == change.before.to_dict()
    assert code.endswith("change.report(\"report.html\", date='2026-07-01')")


def test_a_change_between_groups_names_the_groups_in_its_code():
    y, p = rows(80)
    day = np.where(np.arange(80) < 40, np.datetime64("2026-05-03"), np.datetime64("2026-06-09"))
    frame = pd.DataFrame({"y": y, "p": p, "day": day, "shop": np.arange(80) % 2})
    how: dict[str, Any] = {
        "y_true": "y",
        "y_score": "p",
        "metrics": "accuracy",
        "missingness": dm.missing.Fixed(0.5),
    }
    result = dm.evaluate_by(data=frame, by="shop", time="day", period="month", **how)
    code = "".join(Page(change_page(result.compare((0, "2026-06"), (0, "2026-05")))).of_tag["code"])
    assert "change = result.compare((0, '2026-06'), (0, '2026-05'))" in code
    seen: dict[str, Any] = {"data": frame}
    exec(code.rpartition("\n")[0], seen)
    assert seen["change"].to_dict() == result.compare((0, "2026-06"), (0, "2026-05")).to_dict()


# ----------------------------------------------------------------------------------------------------------- both pages


@pytest.mark.parametrize("kind", ["comparison", "change"])
def test_names_make_no_markup(kind):
    about: dict[str, Any] = {
        "title": " ".join(NAMES),
        "source": dict(zip(NAMES, NAMES, strict=True)),
        "audit": {NAMES[0]: NAMES[1]},
    }
    if kind == "comparison":
        text = comparison_page(compared(tuple(NAMES), ("accuracy",)), **about)
    else:
        text = change_page(changed((NAMES[0], NAMES[1])), **about)
    page = Page(text)
    assert set(page.tags) <= set(TAGS)
    assert page.attributes <= set(ATTRIBUTES)
    assert page.tags.count("script") == 2
    assert "<script>alert(1)</script>" in "".join(page.text)
    levels = [int(level) for level in re.findall(r"<h(\d)", text)]
    assert levels[0] == 1
    assert all(b - a <= 1 for a, b in pairwise(levels))
    ids = re.findall(r' id="([^"]+)"', text)
    assert len(set(ids)) == len(ids)


RESULTS = pytest.mark.parametrize("result", [compared, changed])


@RESULTS
def test_the_file_is_written_whole_and_its_path_returned(tmp_path, result):
    path = result().report(tmp_path / "june.html", title="June", audit={"model": "scorecard 3"}, date="2026-07-01")
    assert path == tmp_path / "june.html"
    text = path.read_text(encoding="utf-8")
    assert result().report(title="June", audit={"model": "scorecard 3"}, date="2026-07-01").html == text
    assert "scorecard 3" in text
    assert [one.name for one in tmp_path.iterdir()] == ["june.html"]


@RESULTS
def test_a_page_that_fails_leaves_the_old_one_alone(tmp_path, result, monkeypatch):
    path = tmp_path / "june.html"
    path.write_text("old")
    with pytest.raises(dm.InputError, match=r"^date: "):
        result().report(path, date="yesterday")
    with pytest.raises(dm.InputError, match=r"^audit: "):
        result().report(path, audit=True)
    with pytest.raises(dm.InputError, match=r"^path: 'june\.doc' must end in \.html, \.md, \.json or \.pdf"):
        result().report(tmp_path / "june.doc")
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(dm.exceptions.MethodError, match="jinja2 is not installed"):
        result().report(path)
    assert path.read_text() == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["june.html"]
