"""`python -m experiments.paper [run|tables|figures|docs|all] [--quick] [--jobs N]`: the study, step by step."""

import argparse
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from experiments.paper.cells import write_cells
from experiments.paper.config import Config, stand_ins
from experiments.paper.data_sets import FOLDER, available_sets
from experiments.paper.docs import fill_pages
from experiments.paper.figures import draw
from experiments.paper.results import Results
from experiments.paper.run import run_each
from experiments.paper.tables import write_center, write_run, write_swapped_classes, write_tables

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
    print(study(config, work, steps, quick=arguments.quick, n_jobs=arguments.jobs))


@dataclass(frozen=True)
class Summary:
    """What a call of the study did: the sets it used, and the files it wrote."""

    wanted: list[str]
    sets: list[str]
    written: list[Path]
    results: Path

    def __str__(self) -> str:
        if not self.sets:
            return (
                "No data set can be had, so nothing was computed. The stored results are in "
                f"{RESULTS.relative_to(ROOT)}, their tables in {PAGES.relative_to(ROOT)}.\n"
                f"To run the study, go online (OpenML needs no account) or name a folder: {FOLDER}"
            )
        lines = [f"{len(self.sets)} of {len(self.wanted)} data sets: {', '.join(self.sets)}."]
        if len(self.sets) < len(self.wanted):
            lines.append("The stored results are those of all sets, so they were left as they are.")
        return "\n".join([*lines, "Files written:", *(f"  {_short(path)}" for path in self.written)])


def study(config: Config, work: Path, steps: tuple[str, ...], *, quick: bool, n_jobs: int) -> Summary:
    """Do the steps with the sets that can be had."""
    wanted = config.sets
    folds = work / config.fingerprint
    sets = available_sets(wanted, stand_ins()) if "run" in steps else _finished_sets(folds, wanted)
    config = replace(config, sets=sets)
    runs: dict[str, list[Config]] = {"main": [config], "swapped": [config.swapped_classes()], **config.center_runs()}
    # Only a run of all sets replaces the stored results.
    in_repository = not quick and len(sets) == len(wanted)
    results = Results(RESULTS if in_repository else work / "results", RESULTS / "published.csv")
    pages = PAGES if in_repository else work / "pages"
    written: list[Path] = []
    if not sets:
        return Summary(wanted, sets, written, results.folder)
    if "run" in steps:
        run_each([(run, _started(work / run.fingerprint)) for way in runs.values() for run in way], n_jobs)
    folders = {way: [work / run.fingerprint for run in configs] for way, configs in runs.items()}
    files = {way: [_files(folder, sets) for folder in folders[way]] for way in runs}
    main_files, swapped_files = files.pop("main")[0], files.pop("swapped")[0]
    if "tables" in steps:
        written += write_tables(main_files, results.folder)
        written.append(write_swapped_classes(main_files, swapped_files, results.folder))
        written += write_cells(main_files, swapped_files, results)
        written.append(write_run(folders, sets, results.folder))
        complete = {
            way: [paths for paths in runs if len(paths) == len(sets) * config.folds] for way, runs in files.items()
        }
        if all(complete.values()):  # only complete seeds count
            written.append(write_center(complete, results.folder))
    if "figures" in steps:
        written += draw(results, config, pages / "figures")
    if "docs" in steps:
        if pages != PAGES:
            shutil.copytree(PAGES, pages, dirs_exist_ok=True, ignore=shutil.ignore_patterns("figures"))
        written += fill_pages(results, config, pages)
    return Summary(wanted, sets, written, results.folder)


def _files(folder: Path, sets: list[str]) -> list[Path]:
    """Return the finished folds of these sets."""
    return sorted(path for name in sets for path in folder.glob(f"{name}-*.csv"))


def _finished_sets(folder: Path, wanted: list[str]) -> list[str]:
    """Return the sets with folds from an earlier run, in the order of the configuration."""
    substitutes = stand_ins()
    present = {path.stem.rpartition("-")[0] for path in folder.glob("*.csv")}
    names = [name if name in present else substitutes.get(name, name) for name in wanted]
    return [name for name in names if name in present]


def _started(folder: Path) -> Path:
    """Note the commit at which folds are computed; a run that is resumed later can have several."""
    folder.mkdir(parents=True, exist_ok=True)
    note, commit = folder / "commits.txt", _commit()
    commits = note.read_text().splitlines() if note.exists() else []
    if commit not in commits:
        note.write_text("\n".join([*commits, commit]) + "\n")
    return folder


def _commit() -> str:
    command = ["git", "-C", str(ROOT), "rev-parse", "--short=10", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _short(path: Path) -> Path:
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else path


if __name__ == "__main__":
    main()
