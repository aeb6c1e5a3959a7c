"""The report as a file: safe whatever names the data have, complete, and written whole or not at all."""

import base64
import hashlib
import json
import math
import os
import re
import sys
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

import darkmetrics as dm

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</style><img src=x onerror=alert(1)>",
    "\"' onload='alert(1)' x=\"",
    "<!-- --> ]]> {{ 7 * 7 }} {% raw %} &lt;",
    "A" * 10_000,
    "שלום\u202eabc",
    "🧪👩‍🔬",
    "two\nlines",
    "nul\x00l",
    "half \ud800",
    "a\u2028b",
    "| `code` | *x* [a](javascript:alert(1)) #1",
]
Y_TRUE, Y_SCORE = [1, 0, None, 1, None], [0.9, 0.2, 0.8, 0.6, 0.3]
# With which the template is written; what has another name, or an attribute outside the list, came from the data.
TAGS = re.findall(
    r"\w+",
    """html head meta link title style script body a header main footer section h1 h2 h3 p ul li dl dt dd bdi div table
    caption thead tbody tr th td figure figcaption svg desc line path rect text label input output button pre code
    noscript nav strong span""",
)
ATTRIBUTES = re.findall(
    r"[\w-]+",
    """aria-hidden aria-label aria-labelledby aria-live aria-valuetext autocomplete charset class content d data-column
    data-line data-row data-slider dir download for height hidden href http-equiv id lang max min name rel role
    scope step type value viewbox width x x1 x2 y y1 y2""",
)


class Page(HTMLParser):
    """Tags, attributes, and text as a browser would show it."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text, self.inside, self.of_tag = [], set(), [], [], {}
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("meta", "link", "input"):
            self.inside.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        tag = self.inside[-1] if self.inside else ""
        self.of_tag.setdefault(tag, []).append(data)
        if tag not in ("script", "style"):
            self.text.append(data)


@cache
def hostile_summary():
    metrics = dict.fromkeys(HOSTILE, dm.metrics.registered("recall"))
    result = dm.evaluate(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed([0.6, 0.3]), metrics=metrics)
    targets = dict.fromkeys(HOSTILE, 0.5)
    source = dict(zip(HOSTILE, reversed(HOSTILE), strict=True))
    return dm.report.summarize(result, title=" ".join(HOSTILE), source=source, targets=targets)


@pytest.fixture(scope="module")
def hostile_page():
    return dm.report.render(hostile_summary())


def plain_evaluation():
    return dm.evaluate(Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed([0.6, 0.3]), metrics=["precision", "recall"])


def test_names_from_the_data_make_no_markup(hostile_page):
    page = Page(hostile_page)
    assert set(page.tags) <= set(TAGS)
    assert page.attributes <= set(ATTRIBUTES)
    assert page.tags.count("script") == 2
    assert page.tags.count("style") == 1


def test_names_from_the_data_are_there_as_text(hostile_page):
    text = "".join(Page(hostile_page).text)
    for name in [*HOSTILE[:5], HOSTILE[7], HOSTILE[12]]:
        assert name in text
    assert "two lines" in text
    assert "nul�l" in text
    assert "half �" in text
    assert "A" * 80 in text
    assert "A" * 1000 not in text


def test_the_file_can_be_stored_and_has_no_control_characters(hostile_page):
    hostile_page.encode("utf-8")
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", hostile_page)


def test_the_page_with_hostile_names_is_small(hostile_page):
    assert len(hostile_page.encode()) < 1_500_000


@pytest.mark.parametrize("which", ["plain", "hostile"])
def test_the_policy_allows_the_two_blocks_of_the_page_and_nothing_else(which):
    summary = hostile_summary() if which == "hostile" else dm.report.summarize(plain_evaluation())
    page = dm.report.render(summary)
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', page)
    policy = policy.replace("&#39;", "'")
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        (block,) = re.findall(rf"<{tag}>(.*?)</{tag}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(block.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert "unsafe" not in policy


def test_the_page_needs_no_network_and_no_inline_styles_or_handlers():
    page = dm.report.render(dm.report.summarize(plain_evaluation()))
    assert not re.search(r"(https?:)?//[a-z]", re.sub(r"<script>.*?</script>", "", page, flags=re.DOTALL))
    parsed = Page(page)
    assert "style" not in parsed.attributes
    assert "src" not in parsed.attributes
    assert not any(name.startswith("on") for name in parsed.attributes)


def test_the_policy_holds_where_a_checkout_has_other_line_ends(monkeypatch):
    jinja2 = pytest.importorskip("jinja2")
    summary = dm.report.summarize(plain_evaluation())
    expected = dm.report.render(summary)
    read = jinja2.PackageLoader.get_source

    def with_crlf(self, environment, name):
        text, *rest = read(self, environment, name)
        return text.replace("\n", "\r\n"), *rest

    monkeypatch.setattr(jinja2.PackageLoader, "get_source", with_crlf)
    # Browsers take every end of line for a newline, and hash that.
    assert dm.report.render(summary) == expected


def points(path):
    return [tuple(map(float, point)) for point in re.findall(r"[ML]([-.\d]+) ([-.\d]+)", path)]


def test_the_rates_are_drawn_from_corner_to_corner_with_a_dot_for_the_threshold_in_use():
    page = dm.report.render(dm.report.summarize(plain_evaluation()))
    (pictures,) = re.findall(r'id="rates-charts">(.*?)</div>', page, flags=re.DOTALL)
    roc, precision_recall = re.findall(r"<svg.*?</svg>", pictures, flags=re.DOTALL)
    assert "recall along the false positive rate" in roc
    assert "precision along the recall" in precision_recall
    path = points(re.findall(r'class="estimate" d="([^"]+)"', roc)[0])
    # The box is 302 by 146 from (46, 158), with 4% of the scale from 0 to 1 left free on both sides.
    left, bottom, across, up = 46 + 302 * 0.04 / 1.08, 158 - 146 * 0.04 / 1.08, 302 / 1.08, 146 / 1.08
    assert path[0] == pytest.approx((left, bottom), abs=0.06)
    assert path[-1] == pytest.approx((left + across, bottom - up), abs=0.06)
    result = dm.evaluate(
        Y_TRUE, Y_SCORE, missingness=dm.missing.Fixed([0.6, 0.3]), metrics=["fpr", "recall", "precision"]
    )
    mean = {name: distribution.mean() for name, distribution in result.items()}
    for picture, x, y in ((roc, "fpr", "recall"), (precision_recall, "recall", "precision")):
        (dot,) = re.findall(r'class="here" d="([^"]+)h0"', picture)
        assert points(dot)[0] == pytest.approx((left + across * mean[x], bottom - up * mean[y]), abs=0.06)


@pytest.mark.filterwarnings("ignore::darkmetrics.UndefinedMetricWarning")
def test_rates_that_are_undefined_have_no_picture():
    result = dm.evaluate([0, 0, 0], [0.9, 0.2, 0.7], metrics=["accuracy", "recall"], zero_division=math.nan)
    page = dm.report.render(dm.report.summarize(result))
    assert "rates-charts" not in page
    assert "NaN" not in page


def test_data_for_the_script_cannot_end_its_block(hostile_page):
    (data,) = re.findall(r'<script type="application/json" id="report-data">(.*?)</script>', hostile_page, re.DOTALL)
    assert not re.search("[<>&\u2028\u2029]", data)
    assert set(json.loads(data)) == {"sliders", "hover"}
    assert set(json.loads(data)["sliders"]) == {"threshold", "share"}


def test_headings_are_in_order_and_ids_are_unique(hostile_page):
    levels = [int(tag[1]) for tag in Page(hostile_page).tags if tag in ("h1", "h2", "h3")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))
    ids = re.findall(r'\bid="([^"]*)"', hostile_page)
    assert len(set(ids)) == len(ids)


def test_every_picture_has_words(hostile_page):
    for picture in re.findall(r"<svg.*?</svg>", hostile_page, flags=re.DOTALL):
        assert 'aria-hidden="true"' in picture or ('role="img"' in picture and "<title" in picture)


def test_every_slider_position_has_a_text_for_every_cell():
    page = dm.report.render(dm.report.summarize(plain_evaluation(), targets={"recall": 0.5}))
    (data,) = re.findall(r'id="report-data">(.*?)</script>', page, flags=re.DOTALL)
    for name, grid in json.loads(data)["sliders"].items():
        count = len(grid["text"])
        assert f'id="{name}-slider" min="0" max="{count - 1}"' in page
        assert len(grid["note"]) == len(grid["cursor"]) == len(grid["short"]) == count
        assert len(set(grid["text"])) == count
        for columns in grid["rows"]:
            assert all(len(column) == count and all(isinstance(text, str) for text in column) for column in columns)


def test_markdown_shows_names_as_text():
    text = dm.report.render(hostile_summary(), "markdown")
    prose = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert not re.search(r"(?<!\\)[<>]", prose)
    assert "\\<script\\>alert(1)\\</script\\>" in prose
    assert "\x00" not in text
    tables = [block.splitlines() for block in prose.split("\n\n") if block.startswith("|")]
    assert len(tables) >= 3
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


def test_json_is_the_summary():
    summary = hostile_summary()
    assert json.loads(dm.report.render(summary, "json")) == summary


def test_a_page_can_be_made_from_stored_json():
    summary = dm.report.summarize(plain_evaluation())
    stored = json.loads(dm.report.render(summary, "json"))
    assert dm.report.render(stored) == dm.report.render(summary)


def test_an_unknown_format_and_a_foreign_dictionary_are_refused():
    with pytest.raises(dm.exceptions.UnknownNameError, match="Did you mean 'html'"):
        dm.report.render(dm.report.summarize(plain_evaluation()), "htm")
    with pytest.raises(dm.InputError, match=r"darkmetrics\.report/1"):
        dm.report.render({"schema": "other"})


@pytest.mark.parametrize(("name", "start"), [("a.html", "<!doctype html>"), ("a.MD", "# Classifier"), ("a.json", "{")])
def test_the_suffix_says_what_is_written(tmp_path, name, start):
    path = plain_evaluation().report(tmp_path / name)
    assert path == tmp_path / name
    assert path.read_text(encoding="utf-8").lstrip().startswith(start)
    assert [file.name for file in tmp_path.iterdir()] == [name]


def test_another_suffix_is_refused_before_the_work(tmp_path):
    with pytest.raises(dm.InputError, match=r"must end in \.html, \.md, \.json or \.pdf"):
        plain_evaluation().report(tmp_path / "report.doc")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(dm.InputError, match="cannot write"):
        plain_evaluation().report(tmp_path / "nowhere" / "a.html")


def test_a_folder_in_place_of_the_file_leaves_nothing_behind(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(dm.InputError, match="cannot write"):
        plain_evaluation().report(tmp_path / "a.html")
    assert [file.name for file in tmp_path.iterdir()] == ["a.html"]


def test_an_interrupted_write_leaves_the_old_report(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_text("old")

    def interrupted(self, target):
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        plain_evaluation().report(path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


@pytest.mark.skipif(os.name != "posix", reason="rights of files are a matter of POSIX")
def test_the_report_can_be_read_like_any_new_file(tmp_path):
    (tmp_path / "other").touch()
    path = plain_evaluation().report(tmp_path / "a.json")
    assert path.stat().st_mode == (tmp_path / "other").stat().st_mode


def test_without_jinja2_the_page_says_what_to_install_and_the_others_work(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(dm.exceptions.MethodError, match=r"pip install 'darkmetrics\[report\]'"):
        plain_evaluation().report(tmp_path / "a.html")
    assert plain_evaluation().report(tmp_path / "a.md").exists()
    assert plain_evaluation().report(tmp_path / "a.json").exists()
