"""The pages of the study show the committed results."""

import shutil

from experiments.paper.__main__ import PAGES, RESULTS
from experiments.paper.config import Config
from experiments.paper.docs import agreement_table, classes_table, corrections_table, fill_pages
from experiments.paper.results import Results


def test_pages_show_the_committed_results(tmp_path):
    for path in PAGES.glob("*.md"):
        shutil.copy(path, tmp_path)
    for path in fill_pages(Results(RESULTS, RESULTS / "published.csv"), Config.load(), tmp_path):
        assert path.read_text() == (PAGES / path.name).read_text(), f"{path.name} is behind; run make paper"


def test_a_page_counts_the_classes_of_the_published_cells(tmp_path):
    (tmp_path / "cells.csv").write_text(
        "p_m,measure,algorithm,metric,class,by,all_corrections\n"
        "0.3,w1,bootstrap,recall,matched,,no\n"
        "0.3,w1,bootstrap,f1,matched after a correction,classes,yes\n"
        "0.3,w1,bootstrap,accuracy,unexplained,,no\n"
    )
    results = Results(tmp_path, tmp_path / "published.csv")
    assert "| bootstrap of labeled rows | 1, 1, 2 of 3 | none run |" in "\n".join(
        agreement_table(results, Config.load())
    )
    assert "| All | 1 | 1 | 0 | 1 | 3 | 1 |" in "\n".join(classes_table(results, Config.load()))
    assert "| matched after a correction | classes | 1 |" in "\n".join(corrections_table(results, Config.load()))
