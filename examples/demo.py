"""How good is a tumour classifier when half of the test labels have not come back yet?

Run with `make demo`. Real data (scikit-learn's breast-cancer set), a deliberately plain model, labels hidden by a
stated rule. Because the rule hides labels that are known, the truth can be shown beside the answer at the end.
"""

import textwrap
import warnings
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
MISSING_IF_FLAGGED, MISSING_IF_NOT = 0.10, 0.75
REPORT = Path("demo-report.html")
# One split may go well or badly by chance; so many others say how often it does.
MORE_SPLITS = 40


def split_data(seed):
    """Rows to fit the model and rows to test it on; a malignant tumour is the positive class."""
    cancer = load_breast_cancer()
    columns = [list(cancer.feature_names).index(name) for name in FEATURES]
    x, y = cancer.data[:, columns], (cancer.target == 0).astype(int)
    return train_test_split(x, y, test_size=0.5, stratify=y, random_state=seed)


def scored_rows(seed=SEED):
    """True labels of the test rows, what the model says of them, and whose labels are hidden."""
    x_fit, x_test, y_fit, y_test = split_data(seed)
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x_fit, y_fit)
    score = model.predict_proba(x_test)[:, 1]
    rng = np.random.default_rng(seed)
    return y_test, score, rng.random(score.size) < np.where(score >= 0.5, MISSING_IF_FLAGGED, MISSING_IF_NOT)


def evaluate_and_catch(labels, score):
    """The default evaluation, and what it warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = dm.evaluate(labels, score)
    return result, [f"{warning.category.__name__}: {warning.message}" for warning in caught]


def interval_in_words(distribution):
    low, high = distribution.interval(0.9)
    return f"{low:.3f} to {high:.3f}"


def comparison(result, truth):
    """One line per metric: the truth beside what was said without it."""
    rows = []
    for name, distribution in result.items():
        low, high = distribution.interval(0.9)
        true, dropped = truth[name], result.labeled_only[name]
        verdict = "inside the interval" if low <= true <= high else "OUTSIDE the interval"
        missed_by, dropped_by = abs(distribution.mean() - true), abs(dropped - true)
        estimate = distribution.mean()
        rows.append((name, true, interval_in_words(distribution), verdict, estimate, missed_by, dropped, dropped_by))
    return rows


def over_more_splits():
    """Shares of true values inside their interval, told nothing and told the reason, and mean errors for recall."""
    held, errors = [], []
    for seed in range(1, MORE_SPLITS + 1):
        y_test, score, hidden = scored_rows(seed)
        labels = np.where(hidden, np.nan, y_test)
        truth = dm.paper.complete_case(dm.EvaluationSet(y_test, score))
        results = evaluate_and_catch(labels, score)[0], dm.evaluate(labels, score, missingness="by_score")
        held.append([[row[3].startswith("inside") for row in comparison(result, truth)] for result in results])
        stated = results[1]
        errors.append(
            [abs(value - truth["recall"]) for value in (stated["recall"].mean(), stated.labeled_only["recall"])]
        )
    return np.mean(held, axis=(0, 2)), np.mean(errors, axis=0)


def main():
    y_test, score, hidden = scored_rows()
    labels = np.where(hidden, np.nan, y_test)

    print("A logistic regression on three features says which tumours are malignant. Flagged cases are examined")
    print(f"first: {MISSING_IF_FLAGGED:.0%} of their labels are still missing, and {MISSING_IF_NOT:.0%} of all others.")
    print("What are its metrics on the test rows? Labels and scores, and nothing else:")
    print()
    result, said = evaluate_and_catch(labels, score)
    print(result)
    for text in said:
        print()
        print(textwrap.fill(text, 110))
    print()
    print("The clinic knows why labels are missing: the score decides who is examined. Saying so:")
    print()
    stated = dm.evaluate(labels, score, missingness="by_score")
    print(stated)

    # The hidden labels, uncovered: nothing above has seen them.
    truth = dm.paper.complete_case(dm.EvaluationSet(y_test, score))
    rows = comparison(stated, truth)
    print()
    print("Now the hidden labels are uncovered. The truth on the same rows:")
    for name, true, interval, verdict, *_ in rows:
        print(f"  {name:<9} is {true:.3f}: {verdict} {interval}")
    print()
    print("How far off was the estimate, and how far off is dropping the unlabeled rows?")
    for name, _, _, _, estimate, missed_by, dropped, dropped_by in rows:
        print(
            f"  {name:<9} estimate {estimate:.3f} is off by {missed_by:.3f}, "
            f"labeled only {dropped:.3f} is off by {dropped_by:.3f}"
        )

    inside = sum(verdict.startswith("inside") for _, _, _, verdict, *_ in rows)
    inside_unstated = sum(verdict.startswith("inside") for _, _, _, verdict, *_ in comparison(result, truth))
    nearer = sum(missed_by < dropped_by for *_, missed_by, _, dropped_by in rows)
    target = 0.6
    shares, errors = over_more_splits()
    summary = [
        f"{inside} of {len(rows)} true values lie in their 90% interval; with no reason stated, {inside_unstated} do.",
        f"The estimate is nearer to the truth than the labeled-only value for {nearer} of {len(rows)} metrics.",
        f"With the labels still hidden, the chance that recall exceeds {target} was {stated['recall'].sf(target):.0%}.",
        f"This is one split. In {MORE_SPLITS} others, {shares[1]:.0%} of the true values lie in their 90% interval;",
        f"with no reason stated, {shares[0]:.0%} do.",
        f"Recall is off by {errors[0]:.3f} on average; dropping rows is off by {errors[1]:.3f}.",
    ]
    print()
    print("\n".join(summary))

    path = stated.report(
        REPORT,
        targets={"recall": target},
        title="A tumour classifier, with half of its test labels still missing",
        source={
            "data": "scikit-learn's breast-cancer set, test half",
            "labels hidden": "rarely if flagged, else often",
        },
    )
    print(f"\nReport: {path.resolve()}")


if __name__ == "__main__":
    main()
