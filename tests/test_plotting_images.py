"""A few plots look as they did when someone last looked at them.

`python tests/test_plotting_images.py` writes the pictures anew; look at them before they are committed.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

import darkmetrics as dm

FOLDER = Path(__file__).parent / "plots"
# Root mean square of the difference in grey, from 0 to 1. Matplotlib 3.9.4 and 3.11.2 differ by 0.001 at most; a
# picture moved by one pixel differs by 0.11 and more, a target line in another place by 0.07.
TOLERANCE = 0.02


def evaluation():
    score = (np.arange(120) + 0.5) / 120
    y = (np.arange(120) * 7 % 10 < 10 * score).astype(float)
    y[::3] = np.nan
    return dm.evaluate(
        y, score, missingness=dm.missing.Fixed(score), metrics=["precision", "recall", "accuracy", "mcc"]
    )


def months():
    """Half a year: few rows in February, a drop in April that is an alert, labels of June that are late."""
    place = np.arange(2400)
    month = place // 400 + 1
    chance = (place * 37 % 100 + 0.5) / 100
    score = np.where(month == 4, chance**1.5, chance)
    y = (place * 73 % 100 < 100 * chance).astype(float)
    y[place % 10 < np.where(month == 6, 7, 2)] = np.nan
    table = pd.DataFrame({"month": [f"2026-{m:02}" for m in month], "y": y, "s": score, "p": chance})
    months = dm.evaluate_by(
        "y",
        "s",
        data=table[(month != 2) | (place % 16 == 0)],
        by="month",
        missingness=dm.missing.Fixed("p"),
        metrics="recall",
    )
    return months.alerts({"recall": 0.7}, min_labels=20)


PICTURES = {
    "distribution": lambda result, ax: dm.plotting.plot_distribution(result, "recall", target=0.75, ax=ax),
    "metrics": lambda result, ax: dm.plotting.plot_metrics(result, ax=ax),
    "scores": lambda result, ax: dm.plotting.plot_scores(result, ax=ax),
    "curves": lambda result, ax: dm.plotting.plot_curves(
        dm.threshold_curves(result, thresholds=20, method="exact"), ax=ax
    ),
    "groups": lambda result, ax: dm.plotting.plot_groups(months(), ax=ax),
    "over_time": lambda result, ax: dm.plotting.plot_over_time(months(), ax=ax),
}


def picture(plot, result):
    """Shades of grey of a plot of 300 x 200 pixels, without letters: these change with every version."""
    with plt.style.context("default"):
        figure = Figure(figsize=(3.0, 2.0), dpi=100)
        canvas = FigureCanvasAgg(figure)
        ax = figure.add_axes((0.02, 0.04, 0.96, 0.92))
        plot(result, ax)
        legend = ax.get_legend()
        assert legend is not None
        legend.remove()
        for one in figure.axes:
            one.set(xlabel="", ylabel="", title="")
            one.tick_params(labelbottom=False, labelleft=False, labelright=False)
            for text in list(one.texts):
                text.remove()
        canvas.draw()
        colours = np.asarray(canvas.buffer_rgba())[:, :, :3] / 255.0
    return colours @ np.array([0.299, 0.587, 0.114])


def distance(first, second):
    return float(np.sqrt(np.mean((first - second) ** 2)))


@pytest.fixture(scope="module")
def result():
    return evaluation()


@pytest.mark.parametrize("name", PICTURES)
def test_the_plot_looks_as_before(name, result):
    before = plt.imread(FOLDER / f"{name}.png")
    assert distance(picture(PICTURES[name], result), before) < TOLERANCE


def test_another_plot_does_not_pass_for_the_same(result):
    before = plt.imread(FOLDER / "distribution.png")
    moved = picture(lambda r, ax: dm.plotting.plot_distribution(r, "recall", target=0.7, ax=ax), result)
    assert distance(moved, before) > 2.0 * TOLERANCE


def write():
    from PIL import Image

    FOLDER.mkdir(exist_ok=True)
    result = evaluation()
    for name, plot in PICTURES.items():
        Image.fromarray(np.rint(255.0 * picture(plot, result)).astype(np.uint8)).save(
            FOLDER / f"{name}.png", optimize=True
        )


if __name__ == "__main__":
    write()
