"""How good is a tumour classifier when four in ten test labels have not come back yet?

Run with `make demo`. Real data (scikit-learn's breast-cancer set), a deliberately plain model, labels hidden by a
stated rule. Because the rule hides labels that are known, the truth can be shown beside the answer at the end.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import darkmetrics as dm

SEED = 0
# Three weak features instead of all thirty, so that the model makes mistakes worth measuring.
FEATURES = ["mean texture", "mean smoothness", "mean symmetry"]
# The clinic examines flagged cases first, so their labels are rarely outstanding.
MISSING_IF_FLAGGED, MISSING_IF_NOT = 0.15, 0.60
REPORT = Path("demo-report.md")


def split_data():
    """Rows to fit the model, rows to calibrate it and rows to test it on; a malignant tumour is the positive class."""
    cancer = load_breast_cancer()
    columns = [list(cancer.feature_names).index(name) for name in FEATURES]
    x, y = cancer.data[:, columns], (cancer.target == 0).astype(int)
    x_rest, x_test, y_rest, y_test = train_test_split(x, y, test_size=0.5, stratify=y, random_state=SEED)
    x_fit, x_calibrate, y_fit, y_calibrate = train_test_split(
        x_rest, y_rest, test_size=0.4, stratify=y_rest, random_state=SEED
    )
    return (x_fit, y_fit), (x_calibrate, y_calibrate), (x_test, y_test)


def logit(score):
    return np.log(score / (1.0 - score))[:, None]


def interval_in_words(law):
    low, high = law.interval(0.9)
    return f"{low:.3f} to {high:.3f}"


def comparison(result, truth):
    """One line per metric: the truth beside what was said without it."""
    rows = []
    for name, law in result.items():
        low, high = law.interval(0.9)
        true, dropped = truth[name], result.labelled_only[name]
        verdict = "inside the interval" if low <= true <= high else "OUTSIDE the interval"
        missed_by, dropped_by = abs(law.mean() - true), abs(dropped - true)
        rows.append((name, true, interval_in_words(law), verdict, law.mean(), missed_by, dropped, dropped_by))
    return rows


def write_atomically(path, text):
    """A reader sees the old report or the new one, never half of one."""
    unfinished = path.with_name(path.name + ".tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def main():
    fit, (x_calibrate, y_calibrate), (x_test, y_test) = split_data()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(*fit)
    score = model.predict_proba(x_test)[:, 1]

    # Probabilities for the missing labels: the model's scores, calibrated on rows that neither it nor the test saw.
    calibrator = LogisticRegression(C=np.inf).fit(logit(model.predict_proba(x_calibrate)[:, 1]), y_calibrate)
    probability = calibrator.predict_proba(logit(score))[:, 1]

    rng = np.random.default_rng(SEED)
    hidden = rng.random(score.size) < np.where(score >= 0.5, MISSING_IF_FLAGGED, MISSING_IF_NOT)
    labels = np.where(hidden, np.nan, y_test)

    print("A logistic regression on three features says which tumours are malignant. Flagged cases are examined")
    print(f"first: {MISSING_IF_FLAGGED:.0%} of their labels are still missing, and {MISSING_IF_NOT:.0%} of all others.")
    print("What are its metrics on the test rows?")
    print()
    result = dm.evaluate(labels, score, label_model=probability)
    print(result)

    # The hidden labels, uncovered: nothing above has seen them.
    truth = dm.baselines.complete_case(dm.EvaluationSet(y_test, score))
    rows = comparison(result, truth)
    print()
    print("Now the hidden labels are uncovered. The truth on the same rows:")
    for name, true, interval, verdict, *_ in rows:
        print(f"  {name:<9} is {true:.3f}: {verdict} {interval}")
    print()
    print("How far off was the estimate, and how far off is dropping the unlabelled rows?")
    for name, _, _, _, estimate, missed_by, dropped, dropped_by in rows:
        print(
            f"  {name:<9} estimate {estimate:.3f} is off by {missed_by:.3f}, "
            f"labelled only {dropped:.3f} is off by {dropped_by:.3f}"
        )

    inside = sum(verdict.startswith("inside") for _, _, _, verdict, *_ in rows)
    nearer = sum(missed_by < dropped_by for *_, missed_by, _, dropped_by in rows)
    target = 0.6
    summary = [
        f"{inside} of {len(rows)} true values lie inside their 90% interval.",
        f"The estimate is nearer to the truth than the labelled-only value for {nearer} of {len(rows)} metrics.",
        f"With the labels still hidden, the chance that recall exceeds {target} was {result['recall'].sf(target):.0%}.",
        "This is one split. The intervals take the calibrated probabilities as known, so over many splits they hold",
        "the truth less often than nine times in ten: docs/explanation/assumptions.md has the count.",
    ]
    print()
    print("\n".join(summary))

    table = [
        "| metric | truth | estimate | 90% interval | labelled only |",
        "|---|---|---|---|---|",
        *(
            f"| {name} | {true:.3f} | {estimate:.3f} | {interval} | {dropped:.3f} |"
            for name, true, interval, _, estimate, _, dropped, _ in rows
        ),
    ]
    report = ["# darkmetrics demo", "", "```", str(result), "```", "", *table, "", *summary]
    write_atomically(REPORT, "\n".join(report) + "\n")
    print(f"\nReport: {REPORT.resolve()}")


if __name__ == "__main__":
    main()
