"""Sharp bounds of ROC-AUC where many missing rows share a score: found per cell, checked row by row."""

import numpy as np
import pytest

import darkmetrics as dm


def row_by_row(y, s, w, *, full):
    """Lowest and highest ROC-AUC when missing rows turn positive one after the other, worst or best scores first."""
    known, missing = ~np.isnan(y), np.flatnonzero(np.isnan(y))

    def auc(label):
        up, down = label == 1, label == 0
        if not (w[up].sum() > 0 and w[down].sum() > 0):
            return np.nan
        above = (s[up][:, None] > s[down]) + (1.0 if full else 0.5) * (s[up][:, None] == s[down])
        return float(w[up] @ above @ w[down] / (w[up].sum() * w[down].sum()))

    values = []
    for order in (missing[np.argsort(s[missing], kind="stable")], missing[np.argsort(-s[missing], kind="stable")]):
        label = np.where(known, y, 0.0)
        values.append(auc(label))
        for row in order:
            label[row] = 1.0
            values.append(auc(label))
    return np.nanmin(values), np.nanmax(values)


# Not both: with ties counted in full, bounds under unequal weights hold but are not sharp.
@pytest.mark.parametrize(("full", "weighted"), [(False, False), (True, False), (False, True)])
@pytest.mark.parametrize("seed", range(12))
def test_bounds_of_roc_auc_with_many_rows_per_score_equal_a_scan_over_rows(seed, full, weighted):
    rng = np.random.default_rng(seed)
    n, scores = int(rng.integers(20, 120)), int(rng.integers(1, 6))
    s = rng.integers(0, scores, n) / scores
    y = (rng.random(n) < 0.3 + 0.4 * s).astype(float)
    y[rng.random(n) < 0.6] = np.nan
    # Equal weights within a score: rows of one cell, which is where cells and rows could differ.
    w = (1.0 + (s * scores) % 2) if weighted else np.ones(n)
    metric = "roc_auc(ties='full')" if full else "roc_auc"
    result = dm.evaluate(
        y, s, metrics=metric, missingness=dm.missing.Fixed(0.5), sample_weight=w, method="gaussian", zero_division=0
    )
    low, high = row_by_row(y, s, w, full=full)
    found = result[metric].support()
    # Sums of at most 120 rows: a rounding error or two.
    assert found[0] == pytest.approx(low, abs=1e-12)
    assert found[1] == pytest.approx(high, abs=1e-12)


@pytest.mark.parametrize("factor", [1e-45, 1e-11, 1e-10, 1e19, 1e40])
@pytest.mark.parametrize("heavy", ["missing", "labeled"])
@pytest.mark.parametrize(("n_missing", "method"), [(12, "exact"), (20, "monte carlo"), (400, "near exact")])
@pytest.mark.parametrize("metric", ["roc_auc", "roc_auc(ties='full')"])
def test_roc_auc_is_equal_in_every_unit_of_weight(metric, n_missing, method, heavy, factor):
    rng = np.random.default_rng(3)
    y = np.concatenate([rng.integers(0, 2, 20).astype(float), np.full(n_missing, np.nan)])
    score, p = np.round(rng.random(y.size), 1), rng.random(n_missing)
    weight = np.where(np.isnan(y) == (heavy == "missing"), 2.0, 1.0)
    plain, scaled = (
        dm.evaluate(y, score, missingness=dm.missing.Fixed(p), sample_weight=unit * weight, metrics=metric)[metric]
        for unit in (1.0, factor)
    )
    assert plain.method == scaled.method == method
    assert (scaled.mean(), scaled.std()) == pytest.approx((plain.mean(), plain.std()), rel=1e-9)
