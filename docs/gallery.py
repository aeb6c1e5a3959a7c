"""Draws the pictures of the documentation anew: `make gallery`. Look at them before they are committed."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd

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


def frauds_known_on(day: str) -> pd.DataFrame:
    """The 4,000 bookings of the page on plots: half a year, as far as labels had arrived on a day."""
    rng = np.random.default_rng(2)
    booked = pd.Timestamp("2026-01-01") + pd.to_timedelta(rng.integers(0, 181, 4000), unit="D")
    country = rng.choice(["AT", "DE", "FR", "IT", "PL"], 4000)
    chance = rng.beta(1, 2, 4000)
    fraud = rng.random(4000) < chance
    delay = pd.to_timedelta(rng.exponential(np.where(fraud, 90, 30)), unit="D")
    p = np.where((country == "FR") & (booked >= "2026-04-01"), chance**2.5, chance)
    labels = np.where(booked + delay <= day, fraud, np.nan)
    return pd.DataFrame({"booked": booked, "country": country, "fraud": labels, "p": p})


def monitored() -> dict[str, Any]:
    """Pictures of segments and of periods, these as evaluated in July and in August."""
    settings: dict[str, Any] = {"label": "fraud", "score": "p", "missingness": "by_label", "metrics": "recall"}
    settings["targets"] = {"recall": 0.45}
    july, august = (
        dm.evaluate_by(frauds_known_on(day), time="booked", every="month", **settings)
        for day in ("2026-07-01", "2026-08-15")
    )
    segments = dm.evaluate_by(frauds_known_on("2026-07-01"), "country", time="booked", every="month", **settings)
    return {
        "groups": dm.plotting.plot_groups(dm.evaluate_by(frauds_known_on("2026-07-01"), "country", **settings)),
        "over-time": dm.plotting.plot_over_time(august, before=july),
        "segments": dm.plotting.plot_segments(segments)[0],
    }


def compared() -> dict[str, Any]:
    """Pictures of a change and a trend (the page "Did it get worse?"), and of a gap ("Do groups differ?")."""
    settings: dict[str, Any] = {"label": "fraud", "score": "p", "missingness": "by_label", "metrics": "recall"}
    months = dm.evaluate_by(frauds_known_on("2026-08-15"), time="booked", every="month", **settings)
    countries = dm.evaluate_by(frauds_known_on("2026-08-15"), "country", **settings)
    return {
        "change": dm.plotting.plot_change(months.change("2026-06", "2026-02")),
        "trend": dm.plotting.plot_trend(months.trend("recall")),
        "gap": dm.plotting.plot_gap(countries.gap("recall")),
    }


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
        **monitored(),
        **compared(),
    }.items():
        ax.figure.savefig(FOLDER / f"{name}.png", dpi=120)
    photograph_report()


def photograph_report() -> None:
    """The top of the demo's report in light, its thresholds in dark."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        subprocess.run([sys.executable, DEMO], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name, scheme, place in (("report", "light", ""), ("report-dark", "dark", "#thresholds")):
            page = browser.new_page(viewport={"width": 1000, "height": 1290}, color_scheme=scheme)
            page.goto((Path(folder) / "demo-report.html").as_uri() + place)
            page.screenshot(path=FOLDER / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
