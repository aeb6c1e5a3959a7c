"""The page of segments and periods in a real browser: it fits every screen, and everybody can use it."""

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from alerting import alerts_by
from browser.test_report_page import HOSTILE, LAYOUTS

pytestmark = pytest.mark.browser


def rows(n=900):
    rng = np.random.default_rng(5)
    score = rng.beta(1.2, 2.0, n).round(3)
    label = np.where(rng.random(n) < 0.3, np.nan, (rng.random(n) < score).astype(float))
    month = (np.datetime64("2026-01") + np.arange(n) % 6).astype("datetime64[D]")
    return pd.DataFrame({"booked": month, "fraud": label, "p": score, "shop": np.arange(n) % 2})


def evaluated(frame, **settings):
    given = {
        "y_true": "fraud",
        "y_score": "p",
        "metrics": ["precision", "recall"],
        "missingness": dm.missing.Fixed(0.5),
    }
    return alerts_by(data=frame, targets={"recall": 0.6}, **given | settings)


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder, frame = tmp_path_factory.mktemp("groups"), rows()
    months = {"by": "shop", "time": "booked", "period": "month"}
    before = evaluated(frame[frame["booked"] < "2026-04"], **months)
    named = frame.assign(shop=[HOSTILE[i % len(HOSTILE)] for i in range(len(frame))])
    return {
        "periods": evaluated(frame, known_alerts=before, **months).report(folder / "periods.html", source="june.csv"),
        "segments": evaluated(frame, by="shop").report(folder / "segments.html"),
        "hostile": evaluated(named, by="shop").report(folder / "hostile.html", title=" ".join(HOSTILE)),
    }


@pytest.mark.parametrize("which", ["periods", "segments", "hostile"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_nothing_overflows(open_page, pages, layout, which):
    page = open_page(pages[which], **LAYOUTS[layout])
    assert page.complaints == []
    assert [url for url in page.asked_for if not url.startswith("data:")] == [pages[which].as_uri()]
    size = page.evaluate("(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])(document.documentElement)")
    assert size[0] <= size[1]
    inner = "[...document.querySelectorAll('body *')].filter(e => e.clientWidth > 0"
    assert page.evaluate(f"{inner} && e.scrollWidth > e.clientWidth + 1 && !e.closest('svg')).length") == 0


@pytest.mark.parametrize("which", ["periods", "segments", "hostile"])
@pytest.mark.parametrize("layout", ["desktop", "dark", "phone"])
def test_axe_finds_nothing_serious(open_page, pages, axe, layout, which):
    page = open_page(pages[which], **LAYOUTS[layout])
    page.evaluate(axe)
    found = page.evaluate("axe.run(document).then(result => result.violations)")
    serious = [(v["id"], v["help"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")]
    assert serious == []


def test_names_of_groups_are_text(open_page, pages):
    page = open_page(pages["hostile"])
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe").count() == 0
    assert "<script>window.hacked = 1</script>" in page.locator("main").inner_text()


def test_new_alerts_are_marked_in_words(open_page, pages):
    page = open_page(pages["periods"])
    marked = page.locator("#groups-table .new").all_inner_texts()
    assert marked
    assert set(marked) == {"new"}
    assert page.locator("#alerts-table .new").count() == len(marked)
