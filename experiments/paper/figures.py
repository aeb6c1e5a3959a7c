"""The paper's figures, with the library next to its algorithms."""

import io
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import beta

import darkmetrics as dm
from darkmetrics.plotting.style import COLORS, MARKERS
from experiments.paper.config import Config
from experiments.paper.files import write_whole
from experiments.paper.results import STATED, Results

SERIES = {
    STATED: "ours, mechanism stated",
    "ours,auto": "ours, no mechanism stated",
    "pemi_gauss,calibrated": "PEMI-Gauss, calibrated",
    "bootstrap": "bootstrap of labeled rows",
    "pemi_gauss,prevalence": "PEMI-Gauss, prevalence",
    "pemi_gauss,half": "PEMI-Gauss, one half",
}
# The paper's Figure 1: why labels go missing, and what an arrow to M comes from.
MECHANISMS = {
    "MCAR": ("at random", ()),
    "MAR": ("because of the features", ("X",)),
    "MNAR": ("because of their value", ("Y",)),
}
MEASURES = {"w1": "W1 of PIT", "ks": "KS of PIT", "mae": "MAE", "rmse": "RMSE"}
DPI = 120
# The illustration of the paper's Theorem 4.
VARIANCE, MEANS = 0.0009, (0.1, 0.7, 0.95)


def draw(results: Results, config: Config, folder: Path) -> list[Path]:
    """Draw all figures; each file appears when it is complete."""
    figures: dict[str, Callable[[Any], Any]] = {
        "mechanisms": _mechanisms,
        "bounds": partial(_bounds, results=results, config=config),
        "beta": _beta,
        "pit": partial(_pit, results=results, config=config),
    }
    for p_m in results.fractions:
        figures[f"by-label-{p_m}"] = partial(_by_label, results=results, config=config, p_m=p_m)
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    paths = []
    for name, make in figures.items():
        with plt.rc_context({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False}):
            figure = make(plt)
            image = io.BytesIO()
            # Without the name of the program that wrote it the same figure is the same file.
            figure.savefig(image, dpi=DPI, format="png", metadata={"Software": None})
            plt.close(figure)
        paths.append(write_whole(folder / f"{name}.png", image.getvalue()))
    return paths


def _mechanisms(plt: Any) -> Any:
    """Draw a graph per mechanism: X features, Y label, M whether the label is missing, Y* the observed label."""
    positions = {"X": (0.0, 1.0), "Y": (1.0, 1.0), "M": (1.0, 0.0), "Y*": (2.0, 1.0)}
    figure, panels = plt.subplots(1, 3, figsize=(8, 2.1), layout="constrained")
    for panel, (name, (title, causes)) in zip(panels, MECHANISMS.items(), strict=True):
        for text, position in positions.items():
            panel.annotate(text, position, ha="center", va="center", fontsize=12, color="0.1")
        for start, end in (("X", "Y"), ("Y", "Y*"), ("M", "Y*"), *((cause, "M") for cause in causes)):
            arrow = {"arrowstyle": "->", "shrinkA": 11, "shrinkB": 11, "linewidth": 1.2}
            arrow["color"] = COLORS[1] if end == "M" else "0.3"
            panel.annotate("", positions[end], positions[start], arrowprops=arrow)
        panel.set(xlim=(-0.4, 2.4), ylim=(-0.5, 1.5))
        panel.set_title(f"{name}: labels go missing\n{title}")
        panel.axis("off")
    return figure


def _bounds(plt: Any, results: Results, config: Config) -> Any:
    figure, panels = plt.subplots(
        1, len(results.fractions), figsize=(9, 3), sharey=True, squeeze=False, layout="constrained"
    )
    for panel, p_m in zip(panels[0], results.fractions, strict=True):
        for number, (kind, label) in enumerate({"oracle": "all right or all wrong", "sharp": "sharp"}.items()):
            drawn = panel.boxplot(
                [results.widths[p_m, kind, metric] for metric in config.metrics],
                positions=np.arange(len(config.metrics)) + (number - 0.5) * 0.36,
                widths=0.3,
                whis=(0, 100),
                patch_artist=True,
                medianprops={"color": "black"},
                boxprops={"facecolor": COLORS[number], "alpha": 0.6, "hatch": ("", "///")[number]},
            )
            drawn["boxes"][0].set_label(label)
        panel.set_xticks(range(len(config.metrics)), config.metrics, rotation=30)
        panel.set_title(f"{float(p_m):.0%} of labels missing")
    panels[0, 0].set_ylabel("width between bounds")
    panels[0, 0].legend(frameon=False, loc="upper left")
    return figure


def _beta(plt: Any) -> Any:
    figure, panel = plt.subplots(figsize=(5, 3), layout="constrained")
    grid = np.linspace(0.0005, 0.9995, 1000)
    for mean, color, dash in zip(MEANS, COLORS, ("-", "--", "-."), strict=False):
        a, b = dm.paper.beta_parameters(mean, VARIANCE)
        panel.plot(grid, beta.pdf(grid, a, b), color=color, linestyle=dash, label=f"true probability {mean:g}")
        panel.axvline(mean, color=color, linewidth=0.6, linestyle=":")
    panel.set(xlabel="output of the calibrator", ylabel="density", xlim=(0, 1), ylim=(0, None))
    panel.legend(frameon=False, loc="upper center")
    return figure


def _by_label(plt: Any, results: Results, config: Config, p_m: str) -> Any:
    etas = [float(mechanism.removeprefix("eta=")) for mechanism in results.prevalences]
    shape = len(MEASURES), len(config.metrics)
    figure, panels = plt.subplots(*shape, figsize=(11, 8.5), sharex=True, sharey="row", squeeze=False)
    for row, (measure, title) in zip(panels, MEASURES.items(), strict=True):
        for panel, metric in zip(row, config.metrics, strict=True):
            for number, algorithm in enumerate(SERIES):
                figures = [results.figures[p_m, m, algorithm, metric, measure] for m in results.prevalences]
                value, low, high = np.array(figures).T
                panel.errorbar(
                    np.array(etas) + (number - 2.5) * 0.008,
                    value,
                    yerr=(value - low, high - value),
                    color=COLORS[number],
                    marker=MARKERS[number],
                    markersize=3,
                    linewidth=1.6 if number < 2 else 0.8,
                    elinewidth=0.8,
                )
            panel.set(ylim=(0, None))
        row[0].set_ylabel(title)
    for panel, metric in zip(panels[0], config.metrics, strict=True):
        panel.set_title(metric)
    for panel in panels[-1]:
        panel.set_xlabel("positives among missing")
    figure.suptitle(f"up to {float(p_m):.0%} of labels missing by their value")
    _legend(figure, panels[0, 0].containers, list(SERIES.values()), columns=3)
    return figure


def _pit(plt: Any, results: Results, config: Config) -> Any:
    rows = ["mcar", *results.prevalences[:: max(1, len(results.prevalences) - 1)]]
    series = list(SERIES)[:4]
    figure, panels = plt.subplots(
        len(rows), len(config.metrics), figsize=(11, 2.3 * len(rows) + 0.6), sharex=True, sharey=True, squeeze=False
    )
    for row, mechanism in zip(panels, rows, strict=True):
        for panel, metric in zip(row, config.metrics, strict=True):
            for number, algorithm in enumerate(series):
                pit = np.array(results.pit[mechanism, algorithm, metric])
                level = (np.arange(pit.size) + 0.5) / pit.size
                panel.plot(level, pit, color=COLORS[number], linestyle=("-", "--", "-.", ":")[number], linewidth=1.4)
            # The k-th of n uniform values has the distribution Beta(k, n - k + 1).
            n = len(results.pit[mechanism, series[0], metric])
            k = np.arange(1, n + 1)
            low, high = (beta.ppf(q, k, n - k + 1) for q in (0.05, 0.95))
            panel.fill_between((k - 0.5) / n, low, high, color="0.85", linewidth=0, zorder=0)
        title = "at random" if mechanism == "mcar" else f"{float(mechanism.removeprefix('eta=')):.0%} positive"
        row[0].set_ylabel(f"missing {title}\nPIT, sorted")
    for panel, metric in zip(panels[0], config.metrics, strict=True):
        panel.set_title(metric)
    for panel in panels[-1]:
        panel.set_xlabel("fraction of masks")
    _legend(figure, panels[0, 0].lines, [SERIES[name] for name in series], columns=4)
    return figure


def _legend(figure: Any, handles: Any, labels: list[str], columns: int) -> None:
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
    figure.set_layout_engine("constrained")
