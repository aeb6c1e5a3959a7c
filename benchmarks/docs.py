"""Tables of the page on benchmarks: what stands between two marks is written from the results, the words are not."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "benchmarks.md"
MARKED = re.compile(r"(<!-- benchmark: (?P<name>[\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
METRICS = ("precision", "recall", "accuracy", "f1", "roc_auc")
# The groups that have targets of their own, in the order of the page.
OWN = ("core", "label_models", "comparison", "curves", "certificates", "cli", "first_call")

Rows = list[dict[str, Any]]


def fill_page(results: Path, page: Path) -> None:
    """Write every marked block anew from the files in a folder; the words around them stay."""
    found: dict[str, Rows] = defaultdict(list)  # a group that has not run yet has empty tables
    found |= {path.stem: json.loads(path.read_text())["rows"] for path in sorted(results.glob("*.json"))}
    blocks: Mapping[str, Callable[[], Iterable[str]]] = {
        "speed": lambda: speed_table(found["peers"]),
        "random": lambda: quality_table(found["peers"], "random"),
        "by-label": lambda: quality_table(found["peers"], "by_label"),
        "population": lambda: population_table(found["peers"]),
        "skipped": lambda: skipped(found["peers"]),
        "poisson-binomial": lambda: poisson_binomial_table(found["peers"]),
        "scale": lambda: targets_table(found["scale"]),
        "waits-named": lambda: waits_table(found["waits_before"], found["waits"]),
        "waits-plain": lambda: waits_by_metric(found["waits_before"], found["waits"], weighted=False),
        "waits-weighted": lambda: waits_by_metric(found["waits_before"], found["waits"], weighted=True),
        "own": lambda: targets_table([row for name in OWN for row in found[name]]),
    }
    text = MARKED.sub(lambda m: "\n".join([m[1], *blocks[m["name"]](), "", m[3]]), page.read_text())
    unfinished = page.with_suffix(".tmp")
    unfinished.write_text(text)
    unfinished.replace(page)


def speed_table(rows: Rows) -> Iterator[str]:
    """Time and memory of every peer that ran."""
    yield from _header("tool", "version", "its interval is about", "time", "times ours", "memory")
    for row in _peers(rows):
        time, memory = _seconds(row["seconds"]), f"{row['megabytes']:,.0f} MB"
        yield _row(row["peer"], row["version"], row["about"], time, _ratio(row["ratio"]), memory)


def quality_table(rows: Rows, mechanism: str) -> Iterator[str]:
    """Mean error, mean width and coverage per metric."""
    yield from _header("tool", *METRICS)
    for row in _peers(rows):
        yield _row(row["peer"], *(_quality(row["quality"][mechanism].get(metric)) for metric in METRICS))


def population_table(rows: Rows) -> Iterator[str]:
    """Coverage of the value on these rows beside coverage of the population's value, labels missing at random."""
    yield from _header("tool", "its interval is about", "holds the value on these rows", "holds the population's value")
    for row in _peers(rows):
        found = list(row["quality"]["random"].values())
        shares = [sum(each[key] for each in found) / len(found) for key in ("coverage", "population_coverage")]
        yield _row(row["peer"], row["about"], *(f"{share:.0%}" for share in shares))


def skipped(rows: Rows) -> Iterator[str]:
    """Peers that did not install or run, and why."""
    found = [row for row in rows if "peer" in row and "skipped" in row]
    yield from (f"- {row['peer']}: {row['skipped']}" for row in found)
    if not found:
        yield "All peers installed and ran." if any("peer" in row for row in rows) else "Not measured yet."


def poisson_binomial_table(rows: Rows) -> Iterator[str]:
    """Time, memory and error per way and number of trials."""
    yield from _header("trials", "way", "time", "times ours", "memory", "largest error", "largest relative error")
    found = [row for row in rows if "way" in row]
    for row in sorted(found, key=lambda row: row["n"] or 0):
        name = f"{row['way']} {row.get('version', '')}".strip()
        trials = "any" if row["n"] is None else f"{row['n']:,}"
        if "skipped" in row:
            yield _row(trials, name, row["skipped"], "", "", "", "")
        else:
            errors = (f"{row[key]:.0e}" for key in ("error", "relative_error"))
            memory = f"{row['megabytes']:,.0f} MB"
            yield _row(trials, name, _seconds(row["seconds"]), _ratio(row["ratio"]), memory, *errors)


def targets_table(rows: Rows) -> Iterator[str]:
    """What was measured, the target, and the figures behind it."""
    yield from _header("what", "measured", "target", "figures")
    for row in rows:
        measured = "" if row["measured"] is None else f"{row['measured']:.3g}"
        target = row["target"] if row["met"] is not False else f"{row['target']}, missed"
        yield _row(row["what"], measured, target.replace("<=", "at most").replace(">=", "at least"), row["detail"])


def waits_table(before: Rows, after: Rows) -> Iterator[str]:
    """Cases that once took long: CPU seconds of one call before and after."""
    yield from _header("call", "before", "after")
    now = {row["what"]: row for row in after}
    for name in (row["what"] for row in before if row["what"] not in _grid(before)):
        yield _row(name, *(_wait(rows.get(name)) for rows in ({row["what"]: row for row in before}, now)))


def waits_by_metric(before: Rows, after: Rows, *, weighted: bool) -> Iterator[str]:
    """Every metric at every size and share of missing labels: CPU seconds of one call before and after."""
    old, new = ({tuple(case): row for case, row in _grid(rows).values()} for rows in (before, after))
    keys = [key for key in (new or old) if key[3] is weighted]
    columns = list(dict.fromkeys(key[1:3] for key in keys))
    yield from _header("metric", *(f"{n:,} rows, {share:.0%}" for n, share in columns))
    for metric in dict.fromkeys(key[0] for key in keys):
        places = [(metric, *column, weighted) for column in columns]
        yield _row(metric, *(f"{_wait(old.get(place))} / {_wait(new.get(place))}" for place in places))


def _grid(rows: Rows) -> dict[str, tuple[list[Any], dict[str, Any]]]:
    """The rows that belong to one metric on rows made up: metric, number of rows, share missing, weighted."""
    cases = {row["what"]: (row["case"], row) for row in rows}
    ours = {name: found for name, found in cases.items() if name.startswith(f"{found[0]['metrics'][0]}, ")}
    return {
        name: ([case["metrics"][0], *case["arrays"]], row)
        for name, (case, row) in ours.items()
        if name.endswith(("% missing, weights", "% missing, no weights"))
    }


def _wait(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "not yet"
    if not row["failed"]:
        return f"{row['measured']:.2g}"
    if row["failed"].startswith("more than"):
        return "> 10"
    return "MemoryError" if "MemoryError" in row["failed"] else row["failed"].partition(":")[0]


def _peers(rows: Rows) -> Rows:
    return [row for row in rows if "peer" in row and "skipped" not in row]


def _quality(found: Mapping[str, float] | None) -> str:
    if found is None:
        return "no answer"
    return f"{found['error']:.4f}, {found['width']:.3f}, {found['coverage']:.0%}"


def _seconds(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.1 else f"{seconds:.2g} s" if seconds < 10 else f"{seconds:,.0f} s"


def _ratio(ratio: float) -> str:
    return f"{ratio:.2g}" if ratio < 10 else f"{ratio:,.0f}"


def _header(*names: str) -> tuple[str, str]:
    return _row(*names), _row(*("---" for _ in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    fill_page(Path(__file__).parent / "results", PAGE)
