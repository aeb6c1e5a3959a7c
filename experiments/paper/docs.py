"""Tables in the pages: what stands between two marks is written by the study, the words around it are not."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from darkmetrics.backtesting import Estimate
from experiments.paper.config import Config
from experiments.paper.files import write_whole
from experiments.paper.results import STATED, Results
from experiments.pieces import marks_of

MARKED = marks_of("study")
PAGES = ("does-it-work.md", "study-tables.md")
MEASURES = {
    "w1": "W1 distance of the PIT to uniform",
    "ks": "KS distance of the PIT to uniform",
    "mae": "Mean absolute error of the centre",
    "rmse": "Root mean squared error of the centre",
}
WORDS = {
    STATED: "ours, mechanism stated",
    "ours,calibrated": "ours, ByScore",
    "ours,label_shift": "ours, ByLabel",
    "ours,auto": "ours, told nothing (auto)",
    "bootstrap": "bootstrap of labeled rows",
    "bootstrap,decisions": "the same, decisions for scores",
}
KINDS = {"half": "p = 1/2", "prevalence": "p = prevalence", "calibrated": "calibrated p"}
COMPARED = (STATED, "ours,auto", "pemi_gauss,calibrated", "bootstrap")
# The algorithms whose agreement with the paper is judged.
JUDGED = ("pemi_gauss,calibrated", "pemi_100,calibrated")


def fill_pages(results: Results, config: Config, folder: Path) -> list[Path]:
    """Write every marked block of the pages anew; the words around them stay."""
    blocks: dict[str, Callable[[Results, Config], Iterable[str]]] = {
        "mcar": mcar_table,
        "by-label": by_label_table,
        "agreement": agreement_table,
        "exceptions": exceptions,
        "centre": centre_table,
        "tables": all_tables,
    }
    written = []
    for page in PAGES:
        path = folder / page
        text = MARKED.sub(lambda m: "\n".join([m[1], *blocks[m["name"]](results, config), "", m[3]]), path.read_text())
        written.append(write_whole(path, text))
    return written


def mcar_table(results: Results, config: Config) -> Iterator[str]:
    """Missing at random, the largest share: three measures of four algorithms."""
    share = results.shares[-1]
    yield from _header("algorithm", "measure", *config.metrics)
    for algorithm in COMPARED:
        for measure, words in (("w1", "W1"), ("coverage", "coverage"), ("mae", "MAE")):
            found = [results.figures[share, "mcar", algorithm, metric, measure] for metric in config.metrics]
            yield _row(_words(algorithm), words, *(_value(figure, measure) for figure in found))


def by_label_table(results: Results, config: Config) -> Iterator[str]:
    """Missing by label, the largest share: W1 and coverage of four algorithms for every prevalence."""
    share = results.shares[-1]
    yield from _header("positives among missing", "algorithm", *config.metrics)
    for mechanism in results.prevalences:
        for algorithm in COMPARED:
            cells = []
            for metric in config.metrics:
                w1, coverage = (results.figures[share, mechanism, algorithm, metric, m] for m in ("w1", "coverage"))
                cells.append(f"{w1.value:.3f}, {coverage.value:.0%}")
            yield _row(f"{float(mechanism.removeprefix('eta=')):.0%}", _words(algorithm), *cells)


def agreement_table(results: Results, config: Config) -> Iterator[str]:
    """Per algorithm and measure: cells whose 90% interval overlaps the published one."""
    algorithms = list(dict.fromkeys(key[1] for key in sorted(results.paper)))
    yield from _header("algorithm", *MEASURES)
    for algorithm in sorted(algorithms, key=_place):
        counts = []
        for measure in MEASURES:
            found = [overlap for _, overlap in _overlaps(results, config, algorithm, measure)]
            counts.append(f"{sum(found)} of {len(found)}" if found else "none run")
        yield _row(_words(algorithm), *counts)


def exceptions(results: Results, config: Config) -> Iterator[str]:
    """The cells of the judged algorithms, W1 and MAE, that do not overlap."""
    yield from _header("missing", "algorithm", "measure", "metric", "here", "paper", "other choices")
    for algorithm in JUDGED:
        for measure in ("w1", "mae"):
            for (share, metric), overlap in _overlaps(results, config, algorithm, measure):
                if not overlap:
                    key = share, "mcar", algorithm, metric, measure
                    here, other = (
                        _interval(figures[key], measure) for figures in (results.figures, results.other_choices)
                    )
                    paper = _published(results, share, algorithm, metric, measure)
                    yield _row(f"{float(share):.0%}", _words(algorithm), measure.upper(), metric, here, paper, other)


def centre_table(results: Results, config: Config) -> Iterator[str]:
    """Errors of the centre with other random numbers: ours against the paper's algorithm on the same masks."""
    yield from _header("folds", "metric", "masks", "ours", "PEMI-Gauss, calibrated p", "difference (90% interval)")
    for row in results.centre:
        value, low, high = (float(row[name]) for name in ("difference", "ci90_low", "ci90_high"))
        errors = [f"{float(row[name]):.4f}" for name in ("ours", "pemi_gauss")]
        yield _row(row["folds"], row["metric"], row["repeats"], *errors, f"{value:+.4f} ({low:+.4f} to {high:+.4f})")


def all_tables(results: Results, config: Config) -> Iterator[str]:
    """The paper's twelve tables, its figures below ours."""
    algorithms = sorted({key[2] for key in results.figures} - {STATED}, key=_place)
    for share in results.shares:
        for measure, words in MEASURES.items():
            yield from (f"### {words}, {float(share):.0%} missing at random", "")
            yield from _header("algorithm", "whose", *config.metrics)
            for algorithm in algorithms:
                found = [results.figures[share, "mcar", algorithm, metric, measure] for metric in config.metrics]
                yield _row(_words(algorithm), "here", *(_interval(figure, measure) for figure in found))
                if any((share, algorithm, metric, measure) in results.paper for metric in config.metrics):
                    theirs = [_published(results, share, algorithm, metric, measure) for metric in config.metrics]
                    yield _row("", "paper", *theirs)
            yield ""


def _overlaps(results: Results, config: Config, algorithm: str, measure: str) -> Iterator[tuple[tuple[str, str], bool]]:
    for share in results.shares:
        for metric in config.metrics:
            _, low, high = results.paper.get((share, algorithm, metric, measure), ("", None, None))
            if low is not None and high is not None:
                ours = results.figures[share, "mcar", algorithm, metric, measure]
                yield (share, metric), ours.low <= high and low <= ours.high


def _place(algorithm: str) -> tuple[int, int, int]:
    """The paper's order: bootstrap, then per kind of p by the number of draws, ours last."""
    name, _, kind = algorithm.partition(",")
    number = int(name.removeprefix("pemi_")) if name.removeprefix("pemi_").isdigit() else 10**9
    kinds = ["", "decisions", *KINDS, "label_shift", "auto"]
    return (int(name == "ours"), kinds.index(kind), number)


def _words(algorithm: str) -> str:
    if algorithm in WORDS:
        return WORDS[algorithm]
    name, _, kind = algorithm.partition(",")
    draws = name.removeprefix("pemi_")
    return f"{f'PEMI, {draws} draws' if draws.isdigit() else 'PEMI-Gauss'}, {KINDS[kind]}"


def _value(figure: Estimate, measure: str) -> str:
    return f"{figure.value:.0%}" if measure == "coverage" else f"{figure.value:.{_digits(measure)}f}"


def _interval(figure: Estimate, measure: str) -> str:
    d = _digits(measure)
    return f"{figure.value:.{d}f} ({figure.low:.{d}f} to {figure.high:.{d}f})"


def _published(results: Results, share: str, algorithm: str, metric: str, measure: str) -> str:
    value, low, high = results.paper.get((share, algorithm, metric, measure), ("", None, None))
    d = _digits(measure)
    ends = f"({low:.{d}f} to {high:.{d}f})" if low is not None and high is not None else ""
    return f"{f'{float(value):.{d}f}' if value else ''} {ends}".strip()


def _digits(measure: str) -> int:
    return 4 if measure in {"mae", "rmse"} else 3


def _header(*names: str) -> tuple[str, str]:
    return _row(*names), _row(*("---" for _ in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
