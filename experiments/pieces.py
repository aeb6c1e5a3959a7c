"""What all studies share: pieces of work that are on file are not done again, and shares of intervals that held."""

import csv
import os
import re
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

ROOT = Path(__file__).parents[1]


def work_of(study: str) -> Path:
    """The folder of a study's pieces; delete it after a change of laws."""
    return ROOT / "build" / study


def results_of(study: str) -> Path:
    """The file of a study's results, which its page is written from."""
    return ROOT / "experiments" / "results" / f"{study}.csv"


def marks_of(study: str) -> re.Pattern[str]:
    """The blocks of a page that are written from a study's results, by name."""
    return re.compile(rf"(<!-- {study}: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(
    page: str, marks: re.Pattern[str], tables: Mapping[str, Callable[[pd.DataFrame], str]], found: pd.DataFrame
) -> str:
    """The page with every marked block made anew; the words around them stay."""
    return marks.sub(lambda mark: f"{mark[1]}\n{tables[mark['name']](found)}\n\n{mark[3]}", page)


def _on_file(
    work: Path, columns: Sequence[str], rows: Callable[[Any], Iterable[dict[str, Any]]], piece: Sequence[Any]
) -> Path:
    """The file of a piece, made now if it is not there; what is written is written whole."""
    name = "-".join(map(str, piece)).replace(" ", "_").replace(",", "").replace("%", "")
    path = work / f"{name}.csv"
    if not path.exists():
        fresh = path.with_suffix(f".{os.getpid()}.tmp")
        with warnings.catch_warnings(), fresh.open("w", newline="") as file:
            warnings.simplefilter("ignore")
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows(piece))
        fresh.replace(path)
    return path


def measured(
    study: str,
    columns: Sequence[str],
    rows: Callable[[Any], Iterable[dict[str, Any]]],
    pieces: Iterable[Sequence[Any]],
    jobs: int,
) -> list[Path]:
    """The files of all pieces; `rows` makes those of one that is not there."""
    work = work_of(study)
    work.mkdir(parents=True, exist_ok=True)
    with ProcessPoolExecutor(jobs) as pool:
        return list(pool.map(partial(_on_file, work, columns, rows), pieces))


def table_of(paths: Iterable[Path]) -> pd.DataFrame:
    """All rows of these files, with whether each interval held the truth (`held`) and how wide it is (`width`)."""
    table = pd.concat([pd.read_csv(path) for path in paths], ignore_index=True)
    table["held"] = (table["low"] - 1e-9 <= table["truth"]) & (table["truth"] <= table["high"] + 1e-9)
    table["width"] = (table["high"] - table["low"]).round(5)
    return table
