"""The report in a real browser: it says what Python says, asks nobody, and everybody can use it."""

import base64
import io
import re
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from believed import Believed

pytestmark = pytest.mark.browser

METRICS = ["precision", "recall", "accuracy", "f1", "roc_auc"]
TARGETS = {"recall": 0.6}
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 1'>",
    '"\' onmouseover=window.hacked=1 x="',
    "</script><script>window.hacked = 1</script>",
    "<!-- {{ 7 * 7 }} {% raw %}",
    "M" * 10_000,
    "שלום \u202e olleh",
    "🧪👩‍🔬 emoji",
    "two\nlines\r\nor three",
    "nothing\x00here",
]


def rows(n=300):
    rng = np.random.default_rng(5)
    y_score = rng.beta(1.2, 2.0, n)
    y = rng.random(n) < y_score
    return np.where(rng.random(n) < np.where(y_score > 0.5, 0.2, 0.5), np.nan, y), y_score


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The summary behind the page, and the page."""
    y_true, y_score = rows()
    result = dm.evaluate(y_true, y_score, missingness="by_score", metrics=METRICS)
    # As result.report() makes it, from a summary that is made once.
    summary = dm.report.summarize(result, targets=TARGETS, source="june.csv")
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(dm.report.render(summary, "html"), encoding="utf-8")
    return summary, path


@pytest.fixture(scope="module")
def hostile_report(tmp_path_factory):
    y_true, y_score = rows(60)
    metrics = {name: "roc_auc" if i < 2 else "recall" for i, name in enumerate(HOSTILE)}
    result = dm.evaluate(y_true, y_score, missingness=dm.missing.Fixed(0.3), metrics=metrics)
    path = tmp_path_factory.mktemp("hostile") / "report.html"
    result.report(path, title=" ".join(HOSTILE), source=dict(zip(HOSTILE, reversed(HOSTILE), strict=True)))
    return path


def cells(page, table):
    """The texts of a table of the page, by metric."""
    found = page.locator(f"#{table} tbody tr").all()
    return {row.locator("th").inner_text(): row.locator("td").all_inner_texts() for row in found}


def agrees(text, value):
    """Whether a printed number is the value, rounded to the digits that are shown."""
    decimals = len(text.partition(".")[2])
    return abs(float(text) - value) <= 0.5 * 10.0**-decimals + 1e-9


def law_agrees(shown, distribution):
    low, high = distribution.interval(0.9)
    ends = shown[1].split(" to ")
    return agrees(shown[0], distribution.mean()) and agrees(ends[0], low) and agrees(ends[1], high)


def test_the_page_opens_without_complaint_and_asks_for_nothing(open_page, report):
    page = open_page(report[1])
    page.locator("#threshold-slider").press("ArrowRight")
    assert page.complaints == []
    assert [url for url in page.asked_for if not url.startswith("data:")] == [report[1].as_uri()]


def test_the_headline_is_what_evaluate_says(open_page, report):
    y_true, y_score = rows()
    shown = cells(open_page(report[1]), "headline-table")
    result = dm.evaluate(y_true, y_score, missingness="by_score", metrics=METRICS)
    assert list(shown) == METRICS
    for name, distribution in result.items():
        assert law_agrees(shown[name], distribution)
        assert agrees(shown[name][2], result.labeled_only[name])


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_the_threshold_slider_shows_what_evaluate_says_at_that_threshold(open_page, report, share):
    summary, path = report
    page = open_page(path)
    thresholds = summary["curves"]["thresholds"]
    place = round(share * (len(thresholds) - 1))
    slider = page.locator("#threshold-slider")
    assert int(slider.get_attribute("max")) == len(thresholds) - 1
    before = cells(page, "threshold-table")
    slider.press({0.0: "Home", 1.0: "End"}.get(share, "ArrowRight"))  # the keyboard reaches it
    slider.fill(str(place))
    shown = cells(page, "threshold-table")
    assert shown != before
    y_true, y_score = rows()
    confusion = METRICS[:4]
    assert summary["curves"]["method"] == "exact"
    # A label model that learns may look at the threshold; the page keeps the probabilities of the evaluation.
    believed = Believed(dm.evaluate(y_true, y_score, missingness="by_score", metrics=confusion).posterior)
    result = dm.evaluate(y_true, y_score, missingness=believed, metrics=confusion, threshold=thresholds[place])
    assert list(shown) == confusion
    for name, distribution in result.items():
        assert law_agrees(shown[name], distribution), name
    said = page.locator("#threshold-output").inner_text()
    assert agrees(re.findall(r"(\S+)% of the rows", said)[0], 100.0 * np.mean(y_score >= thresholds[place]))
    assert agrees(re.findall(r"Threshold ([-.\de]+\d)", said)[0], thresholds[place])
    assert slider.get_attribute("aria-valuetext") in said.replace("Threshold", "threshold")


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_share_slider_shows_what_a_tilted_label_model_says(open_page, report, share):
    summary, path = report
    page = open_page(path)
    place = summary["what_if"]["shares"].index(share)
    page.locator("#share-slider").fill(str(place))
    shown = cells(page, "share-table")
    y_true, y_score = rows()
    tilted = dm.missing.ExponentialTilt("by_score", prevalence=share)
    result = dm.evaluate(y_true, y_score, missingness=tilted, metrics=METRICS)
    assert list(shown) == METRICS
    for name, distribution in result.items():
        assert law_agrees(shown[name], distribution), name
    chance = result["recall"].sf(TARGETS["recall"] - 1e-9)
    assert shown["recall"][2] in (f"{chance:.1%}", "<0.1%", ">99.9%")
    assert page.locator("#share-output").inner_text().startswith(f"{share:.1%} of the missing rows")


def test_both_sliders_start_at_what_was_evaluated_and_come_back(open_page, report):
    page = open_page(report[1])
    headline = cells(page, "headline-table")
    start = {name: cells(page, f"{name}-table") for name in ("threshold", "share")}
    for name, found in start.items():
        for metric in METRICS[:4]:
            assert found[metric][:2] == headline[metric][:2]
        page.locator(f"#{name}-slider").press("Home")
        assert cells(page, f"{name}-table") != found
        page.locator(f"#{name}-reset").click()
        assert cells(page, f"{name}-table") == found


LAYOUTS: dict[str, dict[str, Any]] = {
    "desktop": {},
    "dark": {"dark": True},
    "phone": {"width": 360, "height": 740},
    "dark phone": {"width": 360, "height": 740, "dark": True},
    "print": {"width": 794, "height": 1123, "media": "print"},
}


def painted(page):
    """The share of lines of the whole page that have something on them, in a picture of a quarter of its size."""
    width, height = page.evaluate("(({scrollWidth, scrollHeight}) => [scrollWidth, scrollHeight])(document.body)")
    whole = {"x": 0, "y": 0, "width": width, "height": height, "scale": 0.25}
    session = page.context.new_cdp_session(page)  # Playwright's own pictures have every pixel
    taken = session.send("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": whole})
    session.detach()
    picture = plt.imread(io.BytesIO(base64.b64decode(taken["data"])))[..., :3]
    return np.mean(np.ptp(picture, axis=1).max(axis=1) > 0.1)


@pytest.mark.parametrize("which", ["report", "hostile_report"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_overflows(open_page, request, layout, which):
    found = request.getfixturevalue(which)
    page = open_page(found if which == "hostile_report" else found[1], **LAYOUTS[layout])
    size = page.evaluate("(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])(document.documentElement)")
    assert size[0] <= size[1]
    # No table or box of the page scrolls sideways by itself either.
    inner = "[...document.querySelectorAll('body *')].filter(e => e.tagName !== 'OUTPUT' && e.clientWidth > 0"
    assert page.evaluate(f"{inner} && e.scrollWidth > e.clientWidth + 1 && !e.closest('svg')).length") == 0
    # More than half of the lines, as fonts and spaces are here.
    assert painted(page) > 0.4


def test_a_page_that_shows_nothing_is_not_painted(open_page, report):
    page = open_page(report[1])
    page.evaluate("document.body.style.visibility = 'hidden'")
    assert painted(page) == 0.0


def test_dark_mode_is_dark_and_paper_is_white(open_page, report):
    colour = "getComputedStyle(document.body).backgroundColor"
    shades = {}
    for name in ("desktop", "dark", "print"):
        numbers = re.findall(r"\d+", open_page(report[1], **LAYOUTS[name]).evaluate(colour))
        shades[name] = sum(map(int, numbers[:3])) / 3
    assert shades["desktop"] > 240
    assert shades["dark"] < 60
    assert shades["print"] == 255


@pytest.mark.parametrize("layout", ["desktop", "dark", "phone"])
def test_axe_finds_nothing_serious(open_page, report, axe, layout):
    page = open_page(report[1], **LAYOUTS[layout])
    page.evaluate(axe)
    found = page.evaluate("axe.run(document).then(result => result.violations)")
    serious = [(v["id"], v["help"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")]
    assert serious == []


def test_axe_would_find_something(open_page, report, axe):
    page = open_page(report[1])
    page.evaluate("document.querySelector('label[for=threshold-slider]').remove()")
    page.evaluate(axe)
    found = page.evaluate("axe.run(document).then(result => result.violations)")
    assert any(v["impact"] in ("serious", "critical") for v in found)


def test_hostile_names_are_text(open_page, hostile_report, axe):
    page = open_page(hostile_report)
    assert page.complaints == []
    assert [url for url in page.asked_for if not url.startswith("data:")] == [hostile_report.as_uri()]
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe, object, embed").count() == 0
    text = page.locator("main").inner_text()
    for name in ("<script>window.hacked = 1</script>", "<!-- {{ 7 * 7 }} {% raw %}", "🧪👩‍🔬 emoji", "שלום"):
        assert name in text
    assert "(10,000 characters)" in text
    page.evaluate(axe)
    found = page.evaluate("axe.run(document).then(result => result.violations)")
    assert [v["id"] for v in found if v["impact"] in ("serious", "critical")] == []


def test_the_policy_stops_a_script_that_got_in(open_page, report):
    page = open_page(report[1])
    page.evaluate(
        "() => { const script = document.createElement('script'); script.textContent = 'window.hacked = 1';"
        " document.body.append(script); const image = new Image(); image.src = 'https://example.org/x.png';"
        " document.body.append(image); }"
    )
    page.wait_for_function("() => true")
    assert page.evaluate("window.hacked") is None
    assert any("Content Security Policy" in text for text in page.complaints)


def test_without_scripts_every_number_is_there(browser, report):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(report[1].as_uri())
    assert not page.locator("#threshold-slider").is_visible()
    assert page.locator("#share-table tbody tr").count() == len(METRICS)
    assert page.locator("noscript p").is_visible()
    context.close()


def test_a_long_name_of_a_fact_leaves_room_for_the_fact(open_page, tmp_path):
    result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    path = result.report(tmp_path / "facts.html", source={"a_rather_long_name_of_a_fact_about_the_data": "june.csv"})
    page = open_page(path, width=360)
    assert page.evaluate("document.querySelector('dd').clientWidth") >= 150


def test_a_pointer_reads_the_value_under_it(open_page, report):
    summary, path = report
    page = open_page(path)
    curves = summary["curves"]
    page.locator("#threshold-2").hover()
    said = re.fullmatch(r"(\S+): (\S+) \((\S+) to (\S+)\)", page.locator("#threshold-2 .readout").text_content())
    assert said is not None
    threshold, value, low, high = said.groups()
    (place,) = [i for i, one in enumerate(curves["thresholds"]) if agrees(threshold, one)]
    recall = curves["metrics"]["recall"]
    assert agrees(value, recall["mean"][place])
    assert agrees(low, recall["low"][place])
    assert agrees(high, recall["high"][place])
    page.locator("#rates-1").hover()
    assert page.locator("#threshold-2 .readout").text_content() == ""
    assert "false positive rate" in page.locator("#rates-1 .readout").text_content()
    assert page.complaints == []


def test_a_picture_is_saved_as_png(open_page, report, tmp_path):
    page = open_page(report[1], dark=True)
    with page.expect_download() as waiting:
        page.locator("#rates-1 ~ button.save").click()
    assert waiting.value.suggested_filename == "rates-1.png"
    waiting.value.save_as(tmp_path / "roc.png")
    picture = plt.imread(tmp_path / "roc.png")
    assert picture.shape[:2] == (3 * (194 + 24), 3 * 360)
    # Dark paper, and lines of the colours that are seen on it.
    assert picture[5, 5, :3].max() < 0.15
    assert picture[..., :3].max() > 0.8
    assert page.complaints == []


def test_tables_are_saved_as_csv(open_page, report, tmp_path):
    summary, path = report
    page = open_page(path)
    with page.expect_download() as waiting:
        page.get_by_text("metrics as CSV").click()
    waiting.value.save_as(tmp_path / "metrics.csv")
    table = pd.read_csv(tmp_path / "metrics.csv", index_col="metric")
    for name, entry in summary["metrics"].items():
        for column in ("mean", "low", "high", "labeled_only"):
            assert table.loc[name, column] == pytest.approx(entry[column], rel=1e-8)
    assert page.locator("a[download]").count() == 6


def test_on_paper_there_is_no_word_of_a_slider(open_page, report):
    page = open_page(report[1], **LAYOUTS["print"])
    text = page.locator("body").inner_text()
    assert "slider" not in text
    assert "as CSV" not in text
    assert page.locator("button:visible").count() == 0
    assert "slider" in open_page(report[1]).locator("body").inner_text()


def test_a_notebook_shows_the_page_in_a_frame(open_page, tmp_path):
    result = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], missingness=dm.missing.Fixed([0.6]))
    outside = tmp_path / "notebook.html"
    outside.write_text(f"<!doctype html><title>x</title>{result.report()._repr_html_()}", encoding="utf-8")
    page = open_page(outside)
    inside = page.frame_locator("iframe")
    inside.locator("#threshold-slider").press("Home")
    assert "Threshold 0.2" in inside.locator("#threshold-output").inner_text()
    assert page.complaints == []
