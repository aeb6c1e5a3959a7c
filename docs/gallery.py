"""Draws the pictures of the documentation anew: `make gallery`. Look at them before they are committed."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib as mpl
import numpy as np

import darkmetrics as dm

FOLDER = Path(__file__).parent / "gallery"
DEMO = Path(__file__).parents[1] / "examples" / "demo.py"


def frauds() -> tuple[np.ndarray, np.ndarray]:
    """The 1,000 transactions of the README: frauds take longer to confirm."""
    rng = np.random.default_rng(2)
    y_score = rng.beta(1, 3, 1000)
    fraud = rng.random(1000) < y_score
    late = rng.random(1000) < np.where(fraud, 0.6, 0.2)
    return np.where(late, np.nan, fraud), y_score


def main() -> None:
    """Write every picture."""
    mpl.use("Agg")
    mpl.rcdefaults()
    result = dm.evaluate(*frauds(), missingness="by_label")
    curves = dm.curves(result, metrics=["precision", "recall", "accuracy"], thresholds=60, method="exact")
    FOLDER.mkdir(exist_ok=True)
    for name, ax in {
        "distribution": dm.plotting.plot_distribution(result, "precision", target=0.6),
        "metrics": dm.plotting.plot_metrics(result),
        "curves": dm.plotting.plot_curves(curves),
    }.items():
        ax.figure.savefig(FOLDER / f"{name}.png", dpi=120)
    photograph_report()


def photograph_report() -> None:
    """The top of the demo's report, light and dark."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        subprocess.run([sys.executable, DEMO], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, scheme in (("report", "light"), ("report-dark", "dark")):
            page = browser.new_page(viewport={"width": 1000, "height": 1290}, color_scheme=scheme)
            page.goto((Path(folder) / "demo-report.html").as_uri())
            page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
