"""The page on certificates says what was measured, and what was measured is what the library says."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import darkmetrics as dm

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results" / "certificates.json"
PAGE = ROOT / "docs" / "explanation" / "certificates.md"

pytestmark = pytest.mark.skipif(not (ROOT / "experiments").exists(), reason="experiments are not shipped")


@pytest.fixture(scope="module")
def measured():
    return json.loads(RESULTS.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


def table_after(page, heading):
    """The cells of the first table whose first column is headed so, without its two head lines."""
    lines = page.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def three(bound):
    """A bound as the page prints it: three digits."""
    return f"{bound:.3g}" if bound < 1.0 else f"{bound:.3g}, says nothing"


def two(distance):
    """A true distance: two digits, as it is known to within 5%."""
    return f"{distance:.2g}"


def test_tables_of_the_page_are_what_was_measured(measured, page):
    found = {(row["n"], row["decisions"], row["metric"]): row for row in measured["table"]}
    said = []
    for (n, decisions, metric), row in found.items():
        if metric == "recall":
            half = found[n, decisions, "half_miss"]
            papers = [
                three(x["paper"]) if x["paper"] is not None else f"fails: {x['paper_lacks']}" for x in (row, half)
            ]
            rows = [f"{n:,}", decisions, f"{row['missing']:,} ({row['missing_decided_positive']:,})"]
            said.append([*rows, three(row["certificate"]), two(row["true"]), *papers])
    assert table_after(page, "rows") == said

    curves = {(row["n"], row["metric"]): row for row in measured["curves"]}
    said = []
    for n in (100, 1_000, 2_000, 10_000, 20_000, 100_000, 200_000, 1_000_000):
        rows = [curves[n, metric] for metric in ("recall", "f1", "roc_auc")]
        said.append([f"{n:,}", *(cell for row in rows for cell in (three(row["certificate"]), two(row["true"])))])
    assert table_after(page, "n") == said


def test_no_measured_distance_exceeds_its_certificate(measured):
    rows = [*measured["table"], *measured["curves"]]
    assert len(rows) == 20 + 39
    for row in rows:
        assert row["true"] <= row["true_at_most"] <= row["certificate"]


def test_the_second_ratio_of_the_table_is_an_affine_image_of_recall(measured):
    ours = [
        [(row["certificate"], row["true"]) for row in measured["table"] if row["metric"] == metric]
        for metric in ("recall", "half_miss")
    ]
    # The grids over t are affine images too, up to rounding.
    assert np.array(ours[0]) == pytest.approx(np.array(ours[1]), rel=1e-6)


def test_what_the_text_says_of_the_tables_is_so(measured, page):
    table, curves = measured["table"], measured["curves"]
    assert not any(row["paper_smaller"] or row["paper_violated"] for row in table)
    factors = [row["paper"] / row["certificate"] for row in table]
    assert f"{min(factors):.2g} to {max(factors):.2g} times as large" in " ".join(page.split())
    factors = [row["certificate"] / row["true"] for row in table]
    assert f"The certificate is {min(factors):.2g} to {max(factors):.2g} times the true distance" in " ".join(
        page.split()
    )
    n, bound = np.array(
        [(row["n"], row["certificate"]) for row in curves if row["metric"] == "roc_auc" and row["n"] >= 1_000]
    ).T
    slope = np.polyfit(np.log(n), np.log(bound), 1)[0]
    assert f"like n to the power {slope:.2f}" in " ".join(page.split())
    assert -0.55 < slope < -0.45
    noise = {row["noise"] for row in curves if row["true_from"] == "monte carlo"}
    assert {f"{x:.4f}" for x in noise} == {"0.0019"}
    assert {row["n"] for row in curves if row["true_from"] == "monte carlo"} == {
        500,
        1_000,
        2_000,
        5_000,
        10_000,
        20_000,
    }
    assert f"{measured['draws']:,} random labelings" in page


@pytest.mark.parametrize("n", [100, 1_000, 10_000])
def test_certificates_on_the_page_are_those_of_the_library(measured, n):
    rng = np.random.default_rng(n)
    score = rng.random(n) ** 2
    y = (rng.random(n) < score).astype(float)
    y[rng.random(n) < 0.3] = np.nan
    distributions = dm.evaluate(
        y,
        score,
        metrics=["recall", "f1", "roc_auc"],
        missingness=dm.missing.Fixed(score),
        method="gaussian",
        zero_division=np.nan,
    )
    for row in measured["curves"]:
        if row["n"] == n:
            certificate = distributions[row["metric"]].certificate
            assert certificate is not None
            # Three digits are printed.
            assert certificate.ks_bound == pytest.approx(row["certificate"], rel=1e-3)


def test_the_plot_is_there_and_small():
    plot = (PAGE.parent / "certificates.png").read_bytes()
    assert plot.startswith(b"\x89PNG")
    assert len(plot) < 100_000


# ------------------------------------------------------------------------------------------- identities of the proofs


@pytest.mark.parametrize("seed", range(5))
def test_roc_auc_minus_t_is_a_linear_sum_and_one_square(seed):
    rng = np.random.default_rng(seed)
    score, w, p = rng.integers(0, 6, 12) / 5, rng.uniform(0.5, 2.0, 12), rng.uniform(0.05, 0.95, 12)
    y, t = rng.integers(0, 2, 12), rng.uniform(0.0, 1.0)
    above = np.where(score[:, None] > score, 1.0, np.where(score[:, None] == score, 0.5, 0.0))
    pairs, all_pairs = (w * y) @ above @ (w * (1 - y)), (w @ y) * (w @ (1 - y))
    rho, total = above @ w, w.sum()
    x, p0, r0 = w * (y - p), w @ p, (w * rho) @ p
    linear = (rho - (p0 + t * (total - 2 * p0))) @ x
    s = t * p0 * (total - p0) - r0 + p0**2 / 2
    # Terms up to 1e3, added up with a rounding of 1e-16 each.
    assert pairs - t * all_pairs == pytest.approx(linear - s + (t - 0.5) * x.sum() ** 2, abs=1e-11)


def labelings(p):
    """All labelings of rows with these chances, and the probability of each."""
    y = np.array(list(product((0.0, 1.0), repeat=len(p))))
    return y, np.prod(np.where(y == 1.0, p, 1.0 - p), axis=1)


def test_moments_of_a_label_and_of_the_squares_of_tied_groups_are_those_of_the_page():
    rng = np.random.default_rng(0)
    w, p, group = rng.uniform(0.5, 2.0, 9), rng.uniform(0.05, 0.95, 9), np.array([0, 0, 0, 1, 1, 2, 2, 2, 2])
    v = p * (1 - p)
    y, mass = labelings(p)
    # 512 terms of at most 1e2 are added up.
    assert mass @ np.abs(y - p) ** 3 == pytest.approx(v * (1 - 2 * v), rel=1e-12)
    squares = np.stack([(w * (y - p))[:, group == g].sum(axis=1) ** 2 for g in range(3)]).sum(axis=0)
    by_group = np.bincount(group, w**2 * v)
    assert mass @ squares == pytest.approx(by_group.sum(), rel=1e-12)
    said = 2 * (by_group**2).sum() + (w**4 * v * (1 - 6 * v)).sum()
    assert mass @ squares**2 - (mass @ squares) ** 2 == pytest.approx(said, rel=1e-11)


def test_denominator_of_mcc_bends_as_the_page_says():
    yes, no, p, step = 30.0, 70.0, np.linspace(5.0, 95.0, 19), 1e-3
    n = yes + no

    def g(x):
        return np.sqrt(yes * no * x * (n - x))

    bend = -(g(p + step) - 2 * g(p) + g(p - step)) / step**2
    # Values near 2e3 rounded at 1e-13 and divided by 1e-6: 1e-6 of rounding; the step itself errs by less.
    assert bend == pytest.approx(np.sqrt(yes * no) * n**2 / 4 * (p * (n - p)) ** -1.5, rel=1e-4)


def test_numerators_of_mcc_and_youden_are_linear_in_the_labels():
    tp, fp, fn, tn = 7.0, 5.0, 3.0, 11.0
    yes, no, p, n = tp + fp, fn + tn, tp + fn, tp + fp + fn + tn
    # The same fractions in another form: a few roundings.
    assert tp / p - fp / (n - p) == pytest.approx((no * tp - yes * fn) / (p * (n - p)), rel=1e-13)
    mcc = (tp * tn - fp * fn) / np.sqrt(yes * no * p * (n - p))
    assert mcc == pytest.approx((no * tp - yes * fn) / np.sqrt(yes * no * p * (n - p)), rel=1e-13)
