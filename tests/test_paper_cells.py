"""The classes of the published cells, and the explanations of those that the study does not match as it is."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from experiments.paper.__main__ import RESULTS
from experiments.paper.cells import (
    CLASSES,
    CORRECTED,
    EXPLAINED,
    GRID,
    MATCHED,
    PREDICTIONS,
    SIXTH_SET,
    UNEXPLAINED,
    Predictions,
    grid_distance,
    n_imputations,
    on_grid,
    overlap,
    write_cells,
)
from experiments.paper.results import Results
from scipy.integrate import trapezoid

from darkmetrics.backtesting import Estimate, Scores

STORED = Results(RESULTS, RESULTS / "published.csv")
SMALL_B = {"pemi_5": 5, "pemi_10": 10}


def published_values(measure, algorithm):
    """Point values that the paper prints, with six digits."""
    return [
        float(value)
        for (_, name, _, its_measure), (value, _, _) in STORED.paper.items()
        if value and its_measure == measure and name.partition(",")[0] == algorithm
    ]


# ------------------------------------------------------------------- the paper's PIT on the grid k / B


@pytest.mark.parametrize("algorithm", SMALL_B)
def test_published_w1_of_few_imputations_are_multiples_of_the_grid_rule(algorithm):
    # 120 PIT values and the trapezoid rule on k / B: a multiple of 1 / (240 B), up to the six printed digits.
    values = published_values("w1", algorithm)
    assert len(values) == 15
    multiples = np.array(values) * 240 * SMALL_B[algorithm]
    assert np.abs(multiples - np.round(multiples)).max() <= 0.5e-6 * 240 * SMALL_B[algorithm] * 1.001
    # Numbers that follow no such rule would be as near to a multiple with a probability of 10^-40.
    assert (2 * 0.5e-6 * 240 * SMALL_B[algorithm]) ** 15 < 1e-36


@pytest.mark.parametrize(("algorithm", "cap"), [("pemi_5", 0.361), ("pemi_10", 0.417)])
def test_a_pit_kept_away_from_its_ends_would_contradict_published_values(algorithm, cap):
    b = SMALL_B[algorithm]
    # PIT values 1 / (B + 1) and B / (B + 1) for a truth beyond all imputations: W1 of all at one end.
    end = 1 / (b + 1)
    assert 0.5 * (end**2 + (1 - end) ** 2) == pytest.approx(cap, abs=5e-4)
    assert max(published_values("w1", algorithm)) > cap
    # The grid rule allows all published values.
    ends = [grid_distance(np.full((1, 120), k), b, "w1")[0] for k in (0, b)]
    assert ends == pytest.approx([0.5, (b - 1) / (2 * b)])
    assert max(published_values("w1", algorithm)) <= max(ends)


@pytest.mark.parametrize("measure", ["w1", "ks"])
def test_the_distance_on_the_grid_is_that_of_its_definition(measure):
    level = np.random.default_rng(0).integers(0, 11, (3, 40))
    for row in level:
        gap = [abs(sum(value <= k for value in row) / 40 - k / 10) for k in range(11)]
        expected = max(gap) if measure == "ks" else trapezoid(gap, dx=0.1)
        assert grid_distance(row[None, :], 10, measure)[0] == pytest.approx(expected, abs=1e-12)
    nothing = np.zeros(40)
    scores = Scores(nothing, nothing, nothing, nothing, level[0] / 10)
    estimate = on_grid(scores, measure, 10)
    assert estimate.low <= estimate.value <= estimate.high
    assert estimate.value == pytest.approx(grid_distance(level[:1], 10, measure)[0], abs=1e-12)


# ---------------------------------------------------------------------------------- the stored classes


def test_every_published_cell_has_one_class():
    keys = [(cell["p_m"], cell["algorithm"], cell["metric"], cell["measure"]) for cell in STORED.cells]
    assert len(set(keys)) == len(keys) == 780
    assert set(keys) == set(STORED.paper)
    assert {cell["class"] for cell in STORED.cells} <= {MATCHED, CORRECTED, EXPLAINED, UNEXPLAINED}


def test_no_correction_or_explanation_contradicts_a_published_value():
    for cell in STORED.cells:
        published = STORED.paper[cell["p_m"], cell["algorithm"], cell["metric"], cell["measure"]][1:]
        estimate = Estimate(*(float(cell[name]) for name in ("here", "here_low", "here_high")))
        # Under what stands in `by`, the intervals overlap; without an explanation they do not.
        # (The stored figures have six digits.)
        assert overlap(estimate, published) == (cell["class"] != UNEXPLAINED), cell


def test_corrections_and_explanations_are_those_that_can_change_the_cell():
    for cell in STORED.cells:
        parts = cell["by"].split(" + ") if cell["by"] else []
        corrections = [name for name in parts if not name.startswith(SIXTH_SET)]
        assert (cell["class"] in (CORRECTED, EXPLAINED)) == bool(parts)
        assert (cell["class"] == EXPLAINED) == (len(corrections) < len(parts))
        assert set(corrections) <= {CLASSES, GRID, PREDICTIONS}
        if GRID in corrections:
            assert n_imputations(cell["algorithm"])
            assert cell["measure"] in ("w1", "ks")
        if PREDICTIONS in corrections:
            assert (cell["algorithm"], cell["metric"]) == ("bootstrap", "roc_auc")


def test_matched_cells_have_the_figures_of_the_summary():
    for cell in STORED.cells:
        if cell["class"] in (MATCHED, UNEXPLAINED):
            figure = STORED.figures[cell["p_m"], "mcar", cell["algorithm"], cell["metric"], cell["measure"]]
            figures = [float(cell[name]) for name in ("here", "here_low", "here_high")]
            assert figures == pytest.approx(figure, rel=1e-5), cell


def test_codings_are_all_choices_of_swapped_sets():
    assert len({row["swapped"] for row in STORED.codings}) == len(STORED.codings) == 64
    assert {row["cells"] for row in STORED.codings} == {"195"}
    matched = [int(row["matched"]) for row in STORED.codings]
    assert matched == sorted(matched, reverse=True)


# ------------------------------------------------------------------------ the classes of made-up cells


def fold_file(folder, name, error, *, algorithm="pemi_gauss,half", pit=0.5):
    """Twenty masks of a set with one error of the center."""
    table = pd.DataFrame({"set": [name] * 20, "p_m": "0.3", "mechanism": "mcar", "algorithm": algorithm})
    table = table.assign(metric="recall", truth=0.5, center=0.5 + error, low=0.4, high=0.6, pit=pit, pit_below=pit)
    path = folder / f"{name}-0.csv"
    table.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("published", "expected", "by"),
    [
        ("0.02,0.03", MATCHED, ""),
        ("0.049,0.051", CORRECTED, CLASSES),
        ("0.0299,0.0301", EXPLAINED, f"{CLASSES} + {SIXTH_SET} like bank"),
        ("0.9,1.0", UNEXPLAINED, ""),
    ],
)
def test_a_cell_is_matched_corrected_explained_or_not(tmp_path, published, expected, by):
    main, swapped, out = (tmp_path / name for name in ("main", "swapped", "out"))
    for folder in (main, swapped, out):
        folder.mkdir()
    sets = {"bank": 0.01, "german_credit": 0.01, "ohsumed": 0.055}  # mean 0.025; 0.05 with the set swapped
    files = [fold_file(main, name, error) for name, error in sets.items()]
    other = [fold_file(swapped, name, 0.085 if name == "german_credit" else error) for name, error in sets.items()]
    table = tmp_path / "published.csv"
    if expected == EXPLAINED:  # swapped, and the sixth set like bank: (0.01 + 0.085 + 0.01) / 3 = 0.035
        published = "0.0349,0.0351"
    table.write_text(
        f'p_m,measure,algorithm,metric,value,ci90_low,ci90_high\n0.3,mae,"pemi_gauss,half",recall,,{published}\n'
    )
    (path, _) = write_cells(files, other, Results(out, table))
    (row,) = pd.read_csv(path, keep_default_na=False).to_dict("records")
    assert (row["class"], row["by"]) == (expected, by)


def test_predictions_pool_the_chosen_coding_of_every_set(tmp_path):
    main, swapped = tmp_path / "main", tmp_path / "swapped"
    main.mkdir()
    swapped.mkdir()
    names = ("bank", "ohsumed")
    predictions = Predictions.read(
        [fold_file(main, name, 0.01) for name in names], [fold_file(swapped, name, 0.05) for name in names]
    )
    key = ("0.3", "pemi_gauss,half", "recall")
    assert predictions.scores(key).mae.value == pytest.approx(0.01)
    assert predictions.scores(key, ["bank"]).mae.value == pytest.approx(0.03)
    assert predictions.scores(key, ["bank"], ("ohsumed", "bank")).mae.value == pytest.approx(0.05)
    errors = np.abs(predictions.scores(key, ["bank"]).centre - 0.5)
    assert Counter(errors.round(3)) == {0.05: 20, 0.01: 20}
