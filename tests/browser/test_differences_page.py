"""The pages of a comparison and of a change in a real browser: they fit every screen, and everybody can use them."""

from typing import Any

import numpy as np
import pytest

import darkmetrics as dm
from browser.test_report_page import HOSTILE, LAYOUTS

pytestmark = pytest.mark.browser


def rows(seed, n=60):
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(3)
    return np.where(np.arange(n) % 4 == 0, np.nan, (rng.random(n) < p).astype(float)), p


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("differences")
    how: dict[str, Any] = {"metrics": ["accuracy", "brier"], "missingness": dm.missing.Fixed(0.5)}
    y, p = rows(0)
    names = dict(zip(HOSTILE, (p, p**2, p**3), strict=False))
    after, before = (dm.evaluate(*rows(seed), **how) for seed in (1, 0))
    return {
        "comparison": dm.compare(y, names, **how, rng=0).report(folder / "comparison.html", title=HOSTILE[0], audit={}),
        "change": dm.compare_evaluations(after, before, names=(HOSTILE[0], HOSTILE[1])).report(
            folder / "change.html", audit={}
        ),
    }


@pytest.mark.parametrize(("which", "layout"), [("comparison", "desktop"), ("comparison", "phone"), ("change", "dark")])
def test_it_opens_fits_and_axe_finds_nothing(open_page, pages, axe, which, layout):
    page = open_page(pages[which], **LAYOUTS[layout])
    assert page.complaints == []
    assert [url for url in page.asked_for if not url.startswith("data:")] == [pages[which].as_uri()]
    inner = "[...document.querySelectorAll('html, body *')].filter(e => e.clientWidth > 0"
    assert page.evaluate(f"{inner} && e.scrollWidth > e.clientWidth + 1 && !e.closest('svg')).length") == 0
    page.evaluate(axe)
    found = page.evaluate("axe.run(document).then(result => result.violations)")
    assert [(v["id"], v["nodes"][0]["html"]) for v in found if v["impact"] in ("serious", "critical")] == []
    assert page.evaluate("window.hacked") is None
    assert page.locator("script").count() == 2
    assert page.locator("img, iframe").count() == 0
