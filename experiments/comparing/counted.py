"""`python -m experiments.comparing.counted`: chances to be best in accuracy from the labeled rows alone.

The textbook answer beside ours, on the masks of the study whose labels are missing at random: how many rows each set of
models decides rightly is a multinomial count, its posterior a Dirichlet law (one half for each set that was seen), and
the missing rows are drawn from it. No score is looked at, and no label model is needed.
"""

import numpy as np
import pandas as pd

from experiments.comparing.__main__ import LABELS, drawn
from experiments.comparing.docs import COUNTED, EDGES

_MASKS, _DRAWS = 500, 2000


def _chances(right: np.ndarray, known: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The chance of each model to be best alone; `right` says which rows (rows x models) it decides rightly."""
    sets, of_row = np.unique(right[known], axis=0, return_inverse=True)
    seen = np.bincount(of_row.ravel(), minlength=len(sets))
    rest = rng.multinomial(len(right) - known.size, rng.dirichlet(seen + 0.5, _DRAWS))
    total = (seen + rest) @ sets
    first = total == total.max(axis=1, keepdims=True)
    return (first & (first.sum(axis=1, keepdims=True) == 1)).mean(axis=0)


def main() -> None:
    """Measure all masks and write what was said and what came true."""
    rows = []
    for mask in range(_MASKS):
        for labels in LABELS:
            y, scores, known, rng = drawn("random", labels, mask)
            right = np.stack([(score >= 0.5) == y for score in scores.values()], axis=1).astype(np.int64)
            true = right.sum(axis=0)
            alone = (true == true.max()) & ((true == true.max()).sum() == 1)
            rows += [(labels, *one) for one in zip(_chances(right, known, rng), alone, strict=True)]
    table = pd.DataFrame(rows, columns=["labels", "said", "came true"])
    table["bin"] = np.clip(np.digitize(table["said"], EDGES[1:-1]), 0, len(EDGES) - 2)
    grouped = table.groupby(["labels", "bin"])
    found = grouped[["said", "came true"]].mean().assign(cases=grouped.size()).round(4).reset_index()
    found.to_csv(COUNTED, index=False)
    print(found.to_string())


if __name__ == "__main__":
    main()
