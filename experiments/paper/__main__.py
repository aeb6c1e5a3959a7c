"""`python -m experiments.paper run|tables [--quick] [--jobs N]`: predictions, and then figures from them."""

import argparse
from pathlib import Path

from experiments.paper.config import Config
from experiments.paper.run import run
from experiments.paper.tables import summarise

RESULTS = Path(__file__).parents[1] / "results" / "paper"
WORK = Path(__file__).parent / "work"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.paper", description="The paper's study, run again.")
    parser.add_argument("step", choices=["run", "tables"])
    parser.add_argument("--quick", action="store_true", help="a slice, in about a minute")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    config = Config.load(quick=arguments.quick)
    work = WORK / ("quick" if arguments.quick else "full")
    if arguments.step == "run":
        files = run(config, work, arguments.jobs)
        print(f"{len(files)} folds are in {work}")
    else:
        files = sorted(work.glob("*.csv"))
        results = work / "tables" if arguments.quick else RESULTS
        print(f"{len(files)} of {len(config.sets) * config.folds} folds: {summarise(files, results / 'summary.csv')}")


if __name__ == "__main__":
    main()
