"""`python -m experiments.paper [run|tables|figures|docs|all] [--quick] [--jobs N]`: the study, step by step."""

import argparse
import shutil
import sys
from pathlib import Path

from experiments.paper.config import Config
from experiments.paper.docs import fill_pages
from experiments.paper.figures import draw
from experiments.paper.problems import NoDataError
from experiments.paper.results import Results
from experiments.paper.run import run_each
from experiments.paper.tables import write_centre, write_other_choices, write_tables

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results" / "paper"
PAGES = ROOT / "docs" / "explanation"
WORK = Path(__file__).parent / "work"
STEPS = ("run", "tables", "figures", "docs")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description="The paper's study, run again.")
    parser.add_argument("step", choices=[*STEPS, "all"], nargs="?", default="all")
    parser.add_argument(
        "--quick", action="store_true", help="a slice, in less than a minute; pages go to the work folder"
    )
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    config = Config.load(quick=arguments.quick)
    work = WORK / ("quick" if arguments.quick else "full")
    steps = STEPS if arguments.step == "all" else (arguments.step,)
    try:
        written = study(config, work, steps, quick=arguments.quick, n_jobs=arguments.jobs)
    except NoDataError as error:
        sys.exit(f"experiments.paper: {error}")
    for path in written:
        print(path.relative_to(ROOT))


def study(config: Config, work: Path, steps: tuple[str, ...], *, quick: bool, n_jobs: int) -> list[Path]:
    """The steps asked for; the files that the last of them wrote."""
    results = Results(work / "results" if quick else RESULTS, RESULTS / "published.csv")
    pages = work / "pages" if quick else PAGES
    folds = work / config.fingerprint
    other = work / config.other_choices().fingerprint
    centre = {way: [work / run.fingerprint for run in runs] for way, runs in config.centre_runs().items()}
    written: list[Path] = []
    if "run" in steps:
        more = [(one, work / one.fingerprint) for runs in config.centre_runs().values() for one in runs]
        written = run_each([(config, folds), (config.other_choices(), other), *more], n_jobs)
    if "tables" in steps:
        written = write_tables(sorted(folds.glob("*.csv")), results.folder)
        written.append(write_other_choices(sorted(other.glob("*.csv")), results.folder))
        files = {way: [sorted(folder.glob("*.csv")) for folder in folders] for way, folders in centre.items()}
        written.append(write_centre(files, results.folder))
    if "figures" in steps:
        written = draw(results, config, pages / "figures")
    if "docs" in steps:
        if quick:
            shutil.copytree(PAGES, pages, dirs_exist_ok=True, ignore=shutil.ignore_patterns("figures"))
        written = fill_pages(results, config, pages)
    return written


if __name__ == "__main__":
    main()
