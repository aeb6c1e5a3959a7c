"""Tables in the pages: the study writes the text between two marks, and nothing else."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from darkmetrics.backtesting import Estimate
from experiments.paper.cells import CORRECTED, EXPLAINED, MATCHED, UNEXPLAINED, n_imputations
from experiments.paper.config import Config
from experiments.paper.files import write_whole
from experiments.paper.results import STATED, Results
from experiments.pieces import marks_of

MARKED = marks_of("study")
PAGES = ("does-it-work.md", "study-tables.md", "from-the-paper.md")
MEASURES = {
    "w1": "W1 distance of the PIT to uniform",
    "ks": "KS distance of the PIT to uniform",
    "mae": "Mean absolute error of the center",
    "rmse": "Root mean squared error of the center",
}
NAMES = {
    STATED: "ours, mechanism stated",
    "ours,calibrated": "ours, ByScore",
    "ours,label_shift": "ours, ByLabel",
    "ours,auto": "ours, no mechanism stated",
    "bootstrap": "bootstrap of labeled rows",
    "bootstrap,decisions": "the same, predictions for scores",
}
KINDS = {"half": "p = 1/2", "prevalence": "p = N+/N", "calibrated": "calibrated p"}
COMPARED = (STATED, "ours,auto", "pemi_gauss,calibrated", "bootstrap")
CLASSES = (MATCHED, CORRECTED, EXPLAINED, UNEXPLAINED)


def fill_pages(results: Results, config: Config, folder: Path) -> list[Path]:
    """Write every marked block of the pages; the text around them stays."""
    blocks: dict[str, Callable[[Results, Config], Iterable[str]]] = {
        "run": run_table,
        "mcar": mcar_table,
        "by-label": by_label_table,
        "by-label-extremes": by_label_extremes,
        "bound-widths": bound_widths,
        "gauss-or-bootstrap": gauss_or_bootstrap_table,
        "agreement": agreement_table,
        "classes": classes_table,
        "corrections": corrections_table,
        "codings": codings_table,
        "exceptions": exceptions,
        "center": center_table,
        "tables": all_tables,
    }
    written = []
    for page in PAGES:
        path = folder / page
        text = MARKED.sub(lambda m: "\n".join([m[1], *blocks[m["name"]](results, config), "", m[3]]), path.read_text())
        written.append(write_whole(path, text))
    return written


def run_table(results: Results, config: Config) -> Iterator[str]:
    """The sets of the stored run, with their masks of each kind, and the commit."""
    yield from _header("data set", "masks of each kind", "commit")
    for row in results.run:
        if row["run"] == "main":
            yield _row(row["set"], str(2 * int(row["folds"])), row["commits"])


def mcar_table(results: Results, config: Config) -> Iterator[str]:
    """Labels missing at random, the largest fraction: three measures of four algorithms."""
    p_m = results.fractions[-1]
    yield from _header("algorithm", "measure", *config.metrics)
    for algorithm in COMPARED:
        for measure, title in (("w1", "W1"), ("coverage", "coverage"), ("mae", "MAE")):
            figures = [results.figures[p_m, "mcar", algorithm, metric, measure] for metric in config.metrics]
            yield _row(_name(algorithm), title, *(_value(figure, measure) for figure in figures))


def by_label_table(results: Results, config: Config) -> Iterator[str]:
    """Labels missing by their value, the largest fraction: W1 and coverage of four algorithms for every eta."""
    p_m = results.fractions[-1]
    yield from _header("positives among missing", "algorithm", *config.metrics)
    for mechanism in results.prevalences:
        for algorithm in COMPARED:
            cells = []
            for metric in config.metrics:
                w1, coverage = (results.figures[p_m, mechanism, algorithm, metric, m] for m in ("w1", "coverage"))
                cells.append(f"{w1.value:.3f}, {coverage.value:.0%}")
            yield _row(_percent(mechanism), _name(algorithm), *cells)


def by_label_extremes(results: Results, config: Config) -> Iterator[str]:
    """The largest W1 and the lowest coverage over all eta and metrics, for each fraction missing."""
    yield from _header("algorithm", *(f"{float(p_m):.0%} missing" for p_m in results.fractions))
    for algorithm in COMPARED:
        cells = []
        for p_m in results.fractions:
            keys = [(p_m, eta, algorithm, metric) for eta in results.prevalences for metric in config.metrics]
            w1 = max(results.figures[*key, "w1"].value for key in keys)
            coverage = min(results.figures[*key, "coverage"].value for key in keys)
            cells.append(f"{w1:.3f}, {coverage:.0%}")
        yield _row(_name(algorithm), *cells)


def bound_widths(results: Results, config: Config) -> Iterator[str]:
    """Mean width of the oracle bounds of ROC-AUC as a fraction of that of the sharp bounds."""
    yield from _header("labels missing", "mean width of the oracle bounds of ROC-AUC, relative to the sharp bounds")
    for p_m in results.fractions:
        oracle, sharp = (results.widths[p_m, kind, "roc_auc"] for kind in ("oracle", "sharp"))
        yield _row(f"{float(p_m):.0%}", f"{sum(oracle) / sum(sharp):.0%}")


def gauss_or_bootstrap_table(results: Results, config: Config) -> Iterator[str]:
    """MNAR: the values of eta at which calibrated PEMI-Gauss is better than the bootstrap, and the others."""
    yield from _header("missing", "measure", "PEMI-Gauss or bootstrap better at eta", *config.metrics)
    for p_m in results.fractions:
        for measure in ("w1", "mae"):
            better: dict[str, list[str]] = {"PEMI-Gauss": [], "bootstrap": []}
            for metric in config.metrics:
                lists: dict[str, list[str]] = {name: [] for name in better}
                for mechanism in results.prevalences:
                    gauss, bootstrap = (
                        results.figures[p_m, mechanism, algorithm, metric, measure].value
                        for algorithm in ("pemi_gauss,calibrated", "bootstrap")
                    )
                    lists["PEMI-Gauss" if gauss < bootstrap else "bootstrap"].append(mechanism.removeprefix("eta="))
                for name, etas in lists.items():
                    better[name].append(", ".join(etas) or "none")
            for name, cells in better.items():
                yield _row(f"{float(p_m):.0%}", measure.upper(), name, *cells)


def agreement_table(results: Results, config: Config) -> Iterator[str]:
    """Per algorithm and measure: cells that overlap as they are, with all corrections, and with some of them."""
    yield from _header("algorithm", *MEASURES)
    for algorithm in sorted({cell["algorithm"] for cell in results.cells}, key=_order):
        counts = []
        for measure in MEASURES:
            cells = _cells_of(results, algorithm=algorithm, measure=measure)
            n = [sum(_overlaps(cell, way) for cell in cells) for way in ("as it is", "all", "some")]
            counts.append(f"{n[0]}, {n[1]}, {n[2]} of {len(cells)}" if cells else "none run")
        yield _row(_name(algorithm), *counts)


def _overlaps(cell: Mapping[str, str], way: str) -> bool:
    """Return whether a cell overlaps the published one as it is, with all corrections, or with some of them."""
    if way == "all":
        return cell["all_corrections"] == "yes"
    return cell["class"] == MATCHED or (way == "some" and cell["class"] == CORRECTED)


def classes_table(results: Results, config: Config) -> Iterator[str]:
    """Per measure and in total: published cells of each class."""
    yield from _header("measure", *CLASSES, "cells", "overlap with all corrections at once")
    for measure, title in {**MEASURES, "": "All"}.items():
        cells = _cells_of(results, measure=measure) if measure else results.cells
        count = Counter(cell["class"] for cell in cells)
        corrected = sum(_overlaps(cell, "all") for cell in cells)
        yield _row(title, *(str(count[name]) for name in CLASSES), str(len(cells)), str(corrected))


def corrections_table(results: Results, config: Config) -> Iterator[str]:
    """Published cells that each correction matches, and that each explanation covers."""
    count = Counter((cell["class"], cell["by"]) for cell in results.cells if cell["by"])
    yield from _header("class", "by", "cells")
    for (name, by), n in sorted(count.items(), key=lambda item: (CLASSES.index(item[0][0]), -item[1], item[0][1])):
        yield _row(name, by, str(n))


def codings_table(results: Results, config: Config) -> Iterator[str]:
    """The codings of the classes that match most cells of MAE, and the one without a swap."""
    yield from _header("rank", "sets with swapped classes", "cells of MAE that overlap")
    for rank, row in enumerate(results.codings, 1):
        if rank <= 5 or not row["swapped"] or row["swapped"] in ("german_credit", "adult german_credit"):
            swapped = row["swapped"].replace(" ", ", ") or "none"
            yield _row(str(rank), swapped, f"{row['matched']} of {row['cells']}")


def exceptions(results: Results, config: Config) -> Iterator[str]:
    """The published cells that are explained, and those that nothing explains."""
    yield from _header("missing", "algorithm", "measure", "metric", "here", "paper", "class")
    for cell in sorted(results.cells, key=lambda cell: (CLASSES.index(cell["class"]), _order(cell["algorithm"]))):
        if cell["class"] in (EXPLAINED, UNEXPLAINED):
            measure = cell["measure"]
            estimate = Estimate(*(float(cell[name]) for name in ("here", "here_low", "here_high")))
            paper = _published(results, cell["p_m"], cell["algorithm"], cell["metric"], measure)
            row_class = f"{cell['class']}{': ' + cell['by'] if cell['by'] else ''}"
            key = _name(cell["algorithm"]), measure.upper(), cell["metric"]
            yield _row(f"{float(cell['p_m']):.0%}", *key, _interval(estimate, measure), paper, row_class)


def center_table(results: Results, config: Config) -> Iterator[str]:
    """Errors of the center with other random numbers: ours against the paper's algorithm on the same masks."""
    yield from _header("folds", "metric", "masks", "ours", "PEMI-Gauss, calibrated p", "difference (90% interval)")
    for row in results.center:
        value, low, high = (float(row[name]) for name in ("difference", "ci90_low", "ci90_high"))
        errors = [f"{float(row[name]):.4f}" for name in ("ours", "pemi_gauss")]
        yield _row(row["folds"], row["metric"], row["repeats"], *errors, f"{value:+.4f} ({low:+.4f} to {high:+.4f})")


def all_tables(results: Results, config: Config) -> Iterator[str]:
    """The paper's twelve tables, its figures below ours."""
    algorithms = sorted({key[2] for key in results.figures} - {STATED}, key=_order)
    for p_m in results.fractions:
        for measure, title in MEASURES.items():
            yield from (f"### {title}, {float(p_m):.0%} missing at random", "")
            yield from _header("algorithm", "source", *config.metrics)
            for algorithm in algorithms:
                figures = [results.figures[p_m, "mcar", algorithm, metric, measure] for metric in config.metrics]
                yield _row(_name(algorithm), "here", *(_interval(figure, measure) for figure in figures))
                if any((p_m, algorithm, metric, measure) in results.paper for metric in config.metrics):
                    paper = [_published(results, p_m, algorithm, metric, measure) for metric in config.metrics]
                    yield _row("", "paper", *paper)
            yield ""


def _cells_of(results: Results, **values: str) -> list[dict[str, str]]:
    """Return the cells with these values."""
    return [cell for cell in results.cells if all(cell[name] == value for name, value in values.items())]


def _order(algorithm: str) -> tuple[int, int, int]:
    """Return the paper's order: bootstrap, then per kind of p by the number of imputations, ours last."""
    name, _, kind = algorithm.partition(",")
    kinds = ["", "decisions", *KINDS, "label_shift", "auto"]
    return (int(name == "ours"), kinds.index(kind), n_imputations(algorithm) or 10**9)


def _name(algorithm: str) -> str:
    if algorithm in NAMES:
        return NAMES[algorithm]
    b = n_imputations(algorithm)
    return f"{f'PEMI, B = {b}' if b else 'PEMI-Gauss'}, {KINDS[algorithm.partition(',')[2]]}"


def _percent(mechanism: str) -> str:
    return f"{float(mechanism.removeprefix('eta=')):.0%}"


def _value(figure: Estimate, measure: str) -> str:
    return f"{figure.value:.0%}" if measure == "coverage" else f"{figure.value:.{_digits(measure)}f}"


def _interval(figure: Estimate, measure: str) -> str:
    d = _digits(measure)
    return f"{figure.value:.{d}f} ({figure.low:.{d}f} to {figure.high:.{d}f})"


def _published(results: Results, p_m: str, algorithm: str, metric: str, measure: str) -> str:
    if (p_m, algorithm, metric, measure) not in results.paper:
        return ""
    value, low, high = results.paper[p_m, algorithm, metric, measure]
    d = _digits(measure)
    return f"{f'{float(value):.{d}f}' if value else ''} ({low:.{d}f} to {high:.{d}f})".strip()


def _digits(measure: str) -> int:
    return 4 if measure in {"mae", "rmse"} else 3


def _header(*names: str) -> tuple[str, str]:
    return _row(*names), _row(*("---" for _ in names))


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"
