"""What the cells of a table are, told without any engine: rows in a Python loop."""

import math
from collections import defaultdict
from typing import Any

import numpy as np

from darkmetrics._kernels.bin_grid import bin_index

COUNTS = ("positives", "negatives", "missing")


def exact_cells(rows, threshold=0.5):
    """Cells of rows (score, label, decision or None, weight or None, chance or None), in the order of a set's cells."""
    cells: Any = defaultdict(lambda: [0, 0, 0])
    for score, label, decision, weight, chance in rows:
        yes = score >= threshold if decision is None else decision
        key = (score + 0.0, -1.0 if chance is None else chance, 1.0 if weight is None else weight, yes)
        cells[key][2 if label is None else 0 if label else 1] += 1
    ordered = sorted(cells)
    counts = np.array([cells[key] for key in ordered])
    score, chance, weight, decision = (np.array(column) for column in zip(*ordered, strict=True))
    found = {"score": score, "decision": decision, **dict(zip(COUNTS, counts.T, strict=True))}
    if any(row[3] is not None for row in rows):
        found["weight"] = weight
    if any(row[4] is not None for row in rows):
        found["probability"] = np.where(chance < 0.0, np.nan, chance)
    return found


def bined_cells(rows, score_bins, threshold=0.5):
    """The same for bins: scores of a bin (on one side of the threshold) share their mean and their ends."""
    place = dict(zip((row[0] for row in rows), bin_index(np.array([row[0] for row in rows]), score_bins), strict=True))
    counts: Any = defaultdict(lambda: [0, 0, 0])
    scores, chances = defaultdict(list), defaultdict(list)
    for score, label, decision, weight, chance in rows:
        side = score >= threshold if decision is None else False
        tie = (place[score], side)
        cell = (*tie, 1.0 if weight is None else weight, side if decision is None else decision)
        counts[cell][2 if label is None else 0 if label else 1] += 1
        scores[tie].append(score)
        if label is None:
            chances[cell].append(chance)
    ordered = sorted(counts)
    ties = [cell[:2] for cell in ordered]
    found = {
        "score": np.array([math.fsum(scores[tie]) / len(scores[tie]) for tie in ties]),
        "low": np.array([min(scores[tie]) for tie in ties]),
        "high": np.array([max(scores[tie]) for tie in ties]),
        "decision": np.array([cell[3] for cell in ordered]),
        **dict(zip(COUNTS, np.array([counts[cell] for cell in ordered]).T, strict=True)),
    }
    if any(row[3] is not None for row in rows):
        found["weight"] = np.array([cell[2] for cell in ordered])
    if any(row[4] is not None for row in rows):
        found["probability"] = np.array(
            [math.fsum(chances[cell]) / len(chances[cell]) if chances[cell] else np.nan for cell in ordered]
        )
    return found


def assert_same(counted, expected):
    """Counts, keys and ends are identical; means of sums that engines add up in their own order agree to 1e-12."""
    names = ("score", "decision", *COUNTS, "weight", "probability", "low", "high")
    for name in names:
        found, wanted = getattr(counted, name), expected.get(name)
        if wanted is None:
            assert found is None, name
        elif counted.score_bins is not None and name in ("score", "probability"):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=0.0, err_msg=name)
        else:
            np.testing.assert_array_equal(found, wanted, err_msg=name)
