"""How large are certificates, the paper's bound and the true distance? The tables and the plot of the explanation page.

`make certificates` writes `experiments/results/certificates.json` and `docs/explanation/certificates.png`.
"""

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy

import darkmetrics as dm
from darkmetrics.metrics import FN, TP

RESULTS = Path(__file__).parent / "results" / "certificates.json"
PLOT = Path(__file__).parents[1] / "docs" / "explanation" / "certificates.png"

TABLE_SIZES = (100, 1_000, 10_000, 100_000, 1_000_000)
PLOT_SIZES = (*(k * 10**e for e in (2, 3, 4, 5) for k in (1, 2, 5)), 1_000_000)
# Those that the page prints besides plotting them.
PRINTED = (100, 1_000, 2_000, 10_000, 20_000, 100_000, 200_000, 1_000_000)
# Up to here the true law of ROC-AUC, where it has no exact form, is that of random labelings; then the near exact one.
DRAWN_UP_TO, DRAWS = 20_000, 1_000_000
KEYS = ("n", "certificate", "true", "noise")
# A distance is searched for until its lower and its upper bound are this close.
TOLERANCE = 0.05

HALF_MISS = dm.metrics.ConfusionMetric(
    name="half_miss",
    formula=(TP + 0.5 * FN) / (TP + FN),
    meaning="recall in which a miss counts half",
    range=(0.5, 1.0),
    direction=(1, -1),
)


def distance(truth: dm.MetricDistribution, distribution: dm.MetricDistribution) -> tuple[float, float]:
    """The largest difference of two cdfs: one that was found, and one that is nowhere exceeded.

    Both cdfs rise, so between two places neither passes the other by more than its level at the right place minus the
    other's at the left one. Stretches where that leaves room for more than was found are cut in four.
    """
    place = distribution.mean() + distribution.std() * np.linspace(-12.0, 12.0, 769)
    level = [place, truth.cdf(place), distribution.cdf(place)]
    found = float(np.abs(level[1] - level[2]).max())
    most = max(float(x) for cdf in level[1:] for x in (cdf[0], 1.0 - cdf[-1]))
    ends = [np.stack([x[:-1], x[1:]]) for x in level]
    while True:
        _, f, g = ends
        room = np.maximum(f[1] - g[0], g[1] - f[0])
        wide = room > (1.0 + TOLERANCE) * found
        most = max(most, float(room[~wide].max(initial=0.0)))
        if not wide.any():
            return found, most
        left, right = (np.stack([x[side, wide] for x in ends]) for side in (0, 1))
        inner = left[0] + (right[0] - left[0]) * np.array([[0.25], [0.5], [0.75]])
        new = [inner, truth.cdf(inner), distribution.cdf(inner)]
        found = max(found, float(np.abs(new[1] - new[2]).max()))
        rows = [np.concatenate([left[i][None], new[i], right[i][None]]) for i in range(3)]
        ends = [np.stack([x[:-1].ravel(), x[1:].ravel()]) for x in rows]


def problem(n: int, least: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Labels, 30% of them missing at random, scores U^2, and probabilities: the scores, kept away from 0 and 1."""
    score = rng.random(n) ** 2
    p = np.clip(score, least, 1.0 - least)
    y = (rng.random(n) < p).astype(np.float64)
    y[rng.random(n) < 0.3] = np.nan
    return y, score, p


def decisions(how: str, y: np.ndarray, score: np.ndarray) -> np.ndarray:
    """Which rows are decided positive: half of them, or few of high score, one with a missing label among them."""
    order = np.argsort(-score)
    first_missing = int(np.argmax(np.isnan(y[order])))
    yes = score.size // 2 if how == "balanced" else max(math.ceil(0.005 * score.size), first_missing + 1)
    decided = np.zeros(score.size, dtype=int)
    decided[order[:yes]] = 1
    return decided


def table() -> Iterator[dict[str, Any]]:
    """Certificate, Theorem 3 and true distance of two ratios whose weights are at most 1."""
    metrics: dict[str, Any] = {"recall": "recall", HALF_MISS.name: HALF_MISS}
    for n in TABLE_SIZES:
        y, score, p = problem(n, 0.02, np.random.default_rng(n))
        for how in ("balanced", "very unbalanced"):
            decided = decisions(how, y, score)
            data = dm.EvaluationSet(y, score, y_pred=decided, missingness=dm.missing.Fixed(p))
            chosen = list(metrics.values())
            gauss = dm.evaluate(data, metrics=chosen, method="gaussian", zero_division=np.nan)
            exact = dm.evaluate(data, metrics=chosen, method="exact", zero_division=np.nan)
            for name, metric in metrics.items():
                paper = dm.paper.paper_bound(data, metric)
                found, most = distance(exact[name], gauss[name])
                bound = gauss[name].certificate.ks_bound
                failed = [h for h in paper.hypotheses if not h.holds]
                yield {
                    "n": n,
                    "decisions": how,
                    "metric": name,
                    "missing": int(np.isnan(y).sum()),
                    "decided_positive": int(decided.sum()),
                    "missing_decided_positive": int(np.isnan(y[decided == 1]).sum()),
                    "certificate": bound,
                    "paper": paper.ks_bound,
                    "paper_lacks": f"{failed[0].statement} ({failed[0].found})" if failed else None,
                    "true": found,
                    "true_at_most": most,
                    "true_from": exact[name].method,
                    "paper_smaller": paper.ks_bound is not None and paper.ks_bound < bound,
                    "paper_violated": paper.ks_bound is not None and paper.ks_bound < found,
                }


def curves() -> Iterator[dict[str, Any]]:
    """Certificate and true distance of three metrics against n, probabilities equal to the scores."""
    for n in PLOT_SIZES:
        y, score, p = problem(n, 0.0, np.random.default_rng(n))
        metrics = ["recall", "f1", "roc_auc"]
        gauss = dm.evaluate(
            y, score, metrics=metrics, missingness=dm.missing.Fixed(p), method="gaussian", zero_division=np.nan
        )
        exact = dm.evaluate(
            y, score, metrics=metrics, missingness=dm.missing.Fixed(p), method="exact", zero_division=np.nan
        )
        for name in metrics:
            truth, noise = exact[name], 0.0
            if truth.method != "exact" and n <= DRAWN_UP_TO:
                drawn = dm.methods.MonteCarlo(n_resamples=DRAWS)
                truth = dm.evaluate(y, score, metrics=name, missingness=dm.missing.Fixed(p), method=drawn, rng=n)[name]
                noise = truth.certificate.ks_bound
            found, most = distance(truth, gauss[name])
            yield {
                "n": n,
                "metric": name,
                "certificate": gauss[name].certificate.ks_bound,
                "true": found,
                "true_at_most": most,
                "true_from": truth.method,
                "noise": noise,
            }


def told(rows: Iterator[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, each told when it is there."""
    kept = []
    for row in rows:
        facts = [row[key] for key in ("n", "metric", "decisions", "certificate", "paper", "true") if key in row]
        print(*(f"{fact:.4g}" if isinstance(fact, float) else fact for fact in facts), flush=True)
        kept.append(row)
    return kept


def lines_of_the_page(result: dict[str, Any]) -> Iterator[str]:
    """The rows of the two tables, as the page has them: bounds with three digits, true distances with two."""

    def shown(bound: float) -> str:
        return f"{bound:.3g}" if bound < 1.0 else f"{bound:.3g}, says nothing"

    pairs = zip(result["table"][::2], result["table"][1::2], strict=True)
    for row, half in pairs:
        missing = f"{row['missing']:,} ({row['missing_decided_positive']:,})"
        papers = [shown(r["paper"]) if r["paper"] is not None else f"fails: {r['paper_lacks']}" for r in (row, half)]
        cells = [f"{row['n']:,}", row["decisions"], missing, shown(row["certificate"]), f"{row['true']:.2g}", *papers]
        yield f"| {' | '.join(cells)} |"
    yield ""
    for n in PRINTED:
        own = [row for row in result["curves"] if row["n"] == n]
        cells = [f"{n:,}", *(cell for row in own for cell in (shown(row["certificate"]), f"{row['true']:.2g}"))]
        yield f"| {' | '.join(cells)} |"


def plot(rows: list[dict[str, Any]], path: Path) -> None:
    """Bound and true distance against n: one panel for each metric, so that no two curves lie on each other."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    titles = {"recall": "Recall", "f1": "F1", "roc_auc": "ROC-AUC"}
    # Blue and vermilion of Okabe and Ito: apart for every kind of colour vision, and dark and light in grey.
    blue, vermilion = "#0072B2", "#D55E00"
    with mpl.rc_context({"font.size": 9.0, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(4.8, 2.8), dpi=200, layout="constrained")
        panels = figure.subplots(1, 3, sharex=True, sharey=True)
        for panel, (name, title) in zip(panels, titles.items(), strict=True):
            own = [row for row in rows if row["metric"] == name]
            n, bound, true, noise = (np.array([row[key] for row in own]) for key in KEYS)
            panel.loglog(n, bound, color=blue, linestyle="-", linewidth=1.6, marker="o", markersize=3)
            panel.loglog(n, true, color=vermilion, linestyle="--", linewidth=1.3, marker="s", markersize=3)
            drawn = noise > 0.0
            panel.vlines(n[drawn], (true - noise)[drawn], (true + noise)[drawn], color=vermilion, linewidth=0.8)
            panel.set(title=title, xticks=[1e2, 1e4, 1e6], ylim=(1e-4, 1.0))
            panel.title.set_size(9.0)
            panel.minorticks_off()
            panel.grid(color="0.9", linewidth=0.5)
            panel.set_axisbelow(True)
        figure.supxlabel("rows, 30% of them without a label", fontsize=9.0)
        panels[0].set_ylabel("distance to the true law")
        panels[0].text(1.5e3, 0.11, "certificate", color=blue)
        panels[0].text(1.2e2, 1.2e-3, "true\ndistance", color=vermilion, va="top")
        guide = np.array([2e4, 1e6])
        panels[2].plot(guide, 0.5 * (guide / guide[0]) ** -0.5, color="0.4", linestyle=":", linewidth=1.0)
        panels[2].text(1.3e5, 0.25, "$n^{-1/2}$", color="0.3")
        unfinished = path.with_suffix(".tmp")
        figure.savefig(unfinished, format="png", metadata={"Software": None}, pil_kwargs={"optimize": True})
    unfinished.replace(path)


def main() -> None:
    versions = {"darkmetrics": dm.__version__, "numpy": np.__version__, "scipy": scipy.__version__}
    result = {"versions": versions, "draws": DRAWS, "table": told(table()), "curves": told(curves())}
    RESULTS.parent.mkdir(exist_ok=True)
    unfinished = RESULTS.with_suffix(".tmp")
    unfinished.write_text(json.dumps(result, indent=2) + "\n")
    unfinished.replace(RESULTS)
    plot(result["curves"], PLOT)
    print(*lines_of_the_page(result), sep="\n")
    print(f"written to experiments/results/{RESULTS.name} and docs/explanation/{PLOT.name}")


if __name__ == "__main__":
    main()
