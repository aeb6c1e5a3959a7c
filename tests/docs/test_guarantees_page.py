"""The pages on assumptions and monitoring show the guarantees that are committed beside them."""

import shutil

import pytest

from guarantees.docs import PAGES, fill_page
from guarantees.known_missed import KNOWN_MISSED
from guarantees.lines import alarms
from guarantees.results import RESULTS, read

pytestmark = pytest.mark.skipif(
    not RESULTS.exists(),
    reason="no results: experiments are not shipped, or make guarantees has not ended yet",
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_page_shows_the_committed_results(page, tmp_path):
    shutil.copy(page, tmp_path)
    fill_page(read(), tmp_path / page.name)
    assert (tmp_path / page.name).read_text() == page.read_text(), f"{page.name} is behind; run make guarantees"


def test_every_missed_line_of_the_committed_results_is_listed_with_its_reason():
    assert not list(alarms(read()))


def test_every_listed_line_is_one_of_the_committed_results():
    assert set(KNOWN_MISSED) <= {line.key for line in read()}


def test_no_figure_of_the_committed_results_appears_twice():
    keys = [line.key for line in read()]
    assert len(set(keys)) == len(keys)
