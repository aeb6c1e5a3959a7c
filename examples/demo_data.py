"""Writes the data of `darkmetrics demo`, which runs without scikit-learn: what the model of `demo.py` says of its rows.

Run with `python examples/demo_data.py` after changing the model or the rule that hides labels.
"""

from pathlib import Path

from demo import scored_rows

FILE = Path(__file__).parents[1] / "src/darkmetrics/_demo/breast_cancer.csv"


def csv_lines():
    """Label (empty where hidden), score and true label of each test row."""
    rows = zip(*scored_rows(), strict=True)
    return ["label,score,truth", *(f"{'' if hidden else truth},{score:.6f},{truth}" for truth, score, hidden in rows)]


if __name__ == "__main__":
    lines = csv_lines()
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(lines) - 1} rows written to {FILE}")
