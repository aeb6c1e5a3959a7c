"""The pages of the study show the results that are committed beside them."""

import shutil
from dataclasses import replace

from experiments.paper.__main__ import PAGES, RESULTS
from experiments.paper.config import Config
from experiments.paper.docs import agreement_table, fill_pages
from experiments.paper.results import Results


def test_pages_show_the_committed_results(tmp_path):
    for path in PAGES.glob("*.md"):
        shutil.copy(path, tmp_path)
    for path in fill_pages(Results(RESULTS, RESULTS / "published.csv"), Config.load(), tmp_path):
        assert path.read_text() == (PAGES / path.name).read_text(), f"{path.name} is behind; run make paper"


def test_a_page_says_how_many_cells_overlap_the_published_ones(tmp_path):
    # Two cells by hand: the first interval overlaps the published one, the second does not.
    (tmp_path / "summary.csv").write_text(
        "p_m,mechanism,algorithm,metric,repeats,measure,value,ci90_low,ci90_high\n"
        "0.3,mcar,bootstrap,recall,120,w1,0.05,0.03,0.07\n"
        "0.3,mcar,bootstrap,f1,120,w1,0.05,0.03,0.07\n"
    )
    published = tmp_path / "published.csv"
    published.write_text(
        "p_m,measure,algorithm,metric,value,ci90_low,ci90_high\n"
        "0.3,w1,bootstrap,recall,0.08,0.065,0.09\n"
        "0.3,w1,bootstrap,f1,0.08,0.071,0.09\n"
    )
    small = replace(Config.load(), metrics=["recall", "f1"])
    assert "| bootstrap of labeled rows | 1 of 2 |" in "\n".join(agreement_table(Results(tmp_path, published), small))
