"""The page on `verify` shows how often it rejects, as measured by `make verification`."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


def of_cases(truth):
    from experiments import verification as study

    for case, (said, _) in study.CASES.items():
        own = [line for line in study.results() if line["case"] == case]
        if said == truth:
            yield case, *(sum(int(line[name]) for line in own) for name in study.HEADER[2:])


def test_the_table_is_what_was_measured():
    from experiments import verification as study

    page = study.PAGE.read_text(encoding="utf-8")
    assert study.written(page, study.results()) == page


@pytest.mark.parametrize("case", ["by score", "late, positives slower"])
def test_right_probabilities_alarm_in_at_most_6_percent_of_1000_streams(case):
    found = {name: figures for name, *figures in of_cases("right")}
    streams, alarmed, _ = found[case]
    assert streams == 1000
    assert alarmed <= 0.06 * streams


def test_wrong_ones_are_refuted_in_90_percent_before_half_of_the_labels_are_in():
    for _, streams, _, early in of_cases("wrong"):
        assert streams >= 200
        assert early >= 0.9 * streams


def test_the_control_fails():
    for _, streams, alarmed, _ in of_cases("control"):
        assert alarmed > 0.06 * streams
