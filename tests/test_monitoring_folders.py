"""A folder of daily counts is one set."""

import darkmetrics as dm


def test_the_files_of_a_folder_are_added_up(tmp_path):
    days = [dm.EvaluationSet([1, 0, None], [0.9, 0.2, 0.7]), dm.EvaluationSet([0, None], [0.4, 0.7])]
    (tmp_path / "2026").mkdir()
    for day, path in zip(days, ("monday.parquet", "2026/tuesday.pq"), strict=True):
        day.to_parquet(tmp_path / path)
    (tmp_path / "_SUCCESS").touch()
    assert dm.EvaluationSet.from_parquet(tmp_path).n_rows == 5
    (tmp_path / ".monday.parquet").write_bytes(b"half of it")
    for folder in (tmp_path, str(tmp_path), f"{tmp_path}/**"):
        found = dm.EvaluationSet.from_parquet(folder)
        assert found.counts() == {"rows": 5, "labeled": 3, "positive": 1, "negative": 2, "missing": 2}
