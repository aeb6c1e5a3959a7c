"""The page on Spark runs as it stands."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "spark.md"
CODE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@pytest.mark.heavy_engines
def test_the_code_of_the_page_runs(spark, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)  # the page writes a file
    blocks = CODE.findall(PAGE.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, PAGE.name, "exec"), names)
    assert len(blocks) == 3
    assert "2,000,000 rows" in capsys.readouterr().out
    assert (tmp_path / "cells.parquet").exists()
