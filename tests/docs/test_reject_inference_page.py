"""The table of the page on reject inference is that of the results file, and so is what is said of it."""

import csv
from pathlib import Path

ROOT = Path(__file__).parents[2]
METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
TOLD = {
    "none": "nothing",
    '`missingness="by_score"`': "by_score",
    "`Propensity`": "propensity",
    "`Covariates`": "features",
    "`Covariates` with `propensity=`": "features and propensity",
}


def results():
    with (ROOT / "experiments/results/reasons_who.csv").open(encoding="utf-8") as file:
        return {(row["reason"], row["told"], row["metric"]): row for row in csv.DictReader(file)}


def test_the_table_is_that_of_the_results():
    found = results()
    lines = (ROOT / "docs/how-to/reject-inference.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if " old scores |" in line]
    assert len(rows) == 2 * len(TOLD)
    for side, told, *shown in rows:
        reason = f"old scorecard, {side.split()[0]} ones labeled"
        for metric, cell in zip(METRICS, shown, strict=True):
            row = found[reason, TOLD[told], metric]
            assert cell == f"{100 * float(row['coverage']):.0f}% ({float(row['width']):.3f})"
            assert row["intervals"] == "80"


def test_propensities_and_features_hold_as_often_as_they_must():
    for (_, told, metric), row in results().items():
        if told == "propensity" and metric == "roc_auc":
            assert float(row["coverage"]) >= 0.85
        if told == "features" and row["reason"] == "by a feature":
            assert float(row["coverage"]) >= 0.83
