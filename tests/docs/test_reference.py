"""The pages say what the library does: metrics, formulas, schema, and the code and tests the proofs point to."""

import ast
import inspect
import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import sklearn.metrics

import darkmetrics as dm
from darkmetrics.metrics import Family
from darkmetrics.metrics.confusion_metrics import CONFUSION_METRICS
from darkmetrics.metrics.ranking import RANKING_METRICS
from darkmetrics.metrics.scoring import SCORING_METRICS
from darkmetrics.missingness import by_label, by_score_and_label, mixture

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
RECORDS = [
    record.example if isinstance(record, Family) else record
    for record in (*CONFUSION_METRICS, *RANKING_METRICS, *SCORING_METRICS)
]


def metric_rows():
    """Name, formula, meaning, better, scikit-learn call and value of 0/0 of each metric, as the page has them."""
    lines = (DOCS / "reference/metrics.md").read_text(encoding="utf-8").splitlines()
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in lines if line[:3] == "| `"]
    return {row[0]: row for row in rows}


METRIC_ROWS = metric_rows()


def complete_data():
    rng = np.random.default_rng(0)
    s = rng.integers(1, 20, 60) / 20  # few distinct values, so that ties occur
    y = (rng.random(60) < s).astype(int)
    return y, s


def test_the_table_names_every_metric_in_order():
    assert list(METRIC_ROWS) == [record.name for record in RECORDS]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_the_table_agrees_with_the_record(record):
    _, _, meaning, better, _, undefined = METRIC_ROWS[record.name]
    value = "left out" if np.isnan(record.undefined_as) else f"{record.undefined_as:g}"
    assert (meaning, better) == (record.meaning, record.better)
    assert undefined in (value, "never")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_the_table_says_never_where_the_metric_cannot_be_undefined(record):
    # One class and one decision: whatever can be 0/0 is so for one of these four.
    extremes = [dm.EvaluationSet([label] * 3, [0.5] * 3, y_pred=[yes] * 3) for label in (0, 1) for yes in (0, 1)]
    always_defined = all(np.isfinite(record.value(data)) for data in extremes)
    assert (METRIC_ROWS[record.name][5] == "never") == always_defined


@pytest.mark.parametrize("record", [r for r in RECORDS if hasattr(r, "direction")], ids=lambda record: record.name)
def test_the_formula_in_the_table_gives_the_value_of_the_metric(record):
    y, s = complete_data()
    d = s >= 0.5
    tp, fp, fn, tn = (int(np.sum(rows)) for rows in (d & (y == 1), d & (y == 0), ~d & (y == 1), ~d & (y == 0)))
    said = eval(METRIC_ROWS[record.name][1], {"tp": tp, "fp": fp, "fn": fn, "tn": tn, "sqrt": math.sqrt})
    # The same arithmetic in another order: a few roundings of 1e-16.
    assert record.value(dm.EvaluationSet(y, s)) == pytest.approx(said, rel=1e-13)


@pytest.mark.parametrize("record", [r for r in RECORDS if METRIC_ROWS[r.name][4] != "none"], ids=lambda r: r.name)
def test_the_scikit_learn_call_in_the_table_gives_the_value_of_the_metric(record):
    y, s = complete_data()
    said = eval(METRIC_ROWS[record.name][4], vars(sklearn.metrics) | {"y": y, "s": s, "d": (s >= 0.5).astype(int)})
    # ROC-AUC is the sum of trapezoids there and of ranks here: some 60 roundings of 1e-16.
    assert record.value(dm.EvaluationSet(y, s)) == pytest.approx(said, rel=1e-12)


def test_the_pages_count_the_metrics():
    assert len(RECORDS) == 27
    assert "27 metrics by name" in (DOCS / "index.md").read_text(encoding="utf-8")
    for page in (ROOT / "README.md", DOCS / "index.md"):
        named = "precision, recall, ROC-AUC and 24 other metrics"
        assert named in " ".join(page.read_text(encoding="utf-8").split())


def test_the_schema_page_names_every_key_of_to_dict():
    result = dm.evaluate([1, 0, None], [0.9, 0.2, 0.7], missingness=dm.missing.Fixed(0.5), metrics="recall").to_dict()
    keys = {*result, *result["counts"], *result["metrics"]["recall"]}
    page = (DOCS / "reference/evaluation.md").read_text(encoding="utf-8")
    section = page.partition("## to_dict\n")[2].partition("\n## ")[0]
    said = set(re.findall(r"^\| `(\w+)` \|", section, flags=re.MULTILINE))
    assert keys == said


def test_the_page_on_numbers_quotes_the_warning_that_its_example_gives():
    text = (DOCS / "how-to/read-the-numbers.md").read_text(encoding="utf-8")
    quoted = text.partition("MissingnessWarning: ")[2].partition("```")[0]
    code = [
        line[4:] for line in text.partition("```python\n")[2].partition("```")[0].splitlines() if line[:4] == ">>> "
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        exec("\n".join(code), {})
    assert [warning.category for warning in caught] == [dm.MissingnessWarning]
    assert " ".join(quoted.split()) == str(caught[0].message)


def signature_rows(page):
    """Class name and arguments of every call that a table of the page shows, such as `Beta(prior_sd=1.0)`."""
    rows = [line for line in (DOCS / page).read_text(encoding="utf-8").splitlines() if line[:2] == "| "]
    calls = [match for line in rows for match in re.findall(r"^\|[^|]*\| `([A-Z]\w+)\(([^`]*)\)` \|", line)]
    return {name: ast.parse(f"f({arguments})", mode="eval").body for name, arguments in calls}


@pytest.mark.parametrize(
    ("page", "module"),
    [("reference/missing.md", dm.missing), ("reference/calibrators.md", dm.calibrators)],
    ids=["mechanisms", "calibrators"],
)
def test_the_tables_show_every_class_with_its_arguments(page, module):
    said = signature_rows(page)
    public = {name for name in module.__all__ if inspect.isclass(getattr(module, name))}
    assert public - {"Mechanism", "Posterior", "Calibrator"} == set(said)
    for name, call in said.items():
        parameters = inspect.signature(getattr(module, name)).parameters
        assert [arg.id for arg in call.args] + [keyword.arg for keyword in call.keywords] == list(parameters)
        for keyword in call.keywords:
            assert ast.literal_eval(keyword.value) == parameters[keyword.arg].default


def test_the_priors_on_the_page_are_those_of_the_code():
    page = (DOCS / "explanation/mathematics.md").read_text(encoding="utf-8")
    section = page.partition("### Priors\n")[2].partition("\n### ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if line[:2] == "| "]
    said = [([float(x) for x in row[3].split(",")], float(row[2]), row[4]) for row in cells[1:]]
    beta, platt = dm.calibrators.Beta().prepare([0.1, 0.9]), dm.calibrators.Platt().prepare([-1.0, 2.0])
    assert beta.prior_mean_.tolist() == [0.0, 1.0, 1.0]
    assert platt.prior_mean_.tolist() == [0.0, 0.0]
    assert platt.prior_scale_[0] == platt.prior_scale_[1]
    flexible = dm.calibrators.Flexible(threshold=0.5).prepare(np.linspace(0.1, 0.9, 20))
    assert set(flexible.prior_scale_[3:]) == {0.7}
    assert set(flexible.prior_mean_[3:]) == {0.0}
    curve = [*beta.prior_scale_[:2], platt.prior_scale_[0], flexible.prior_scale_[-1]]
    common = [by_score_and_label._LEVEL, by_score_and_label._RATE]
    missingness = [by_label._COMMON, dm.missing.ByLabel().prior_scale, *common, *by_score_and_label._DIFFERENCE]
    shapes = ["Gaussian", "Cauchy", *["Gaussian"] * 2, *["Cauchy"] * 2]
    assert said == [
        *(([scale], float(i == 1), "Gaussian") for i, scale in enumerate(curve)),
        *(([scale], 0.0, shape) for scale, shape in zip(missingness, shapes, strict=True)),
        (list(mixture._CURVE), 0.0, "Gaussian"),
    ]


def test_the_mathematics_points_to_tests_that_exist():
    page = (DOCS / "explanation/mathematics.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(test_\w+)`", page))
    written = {
        name
        for file in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(r"^ *def (test_\w+)\(", file.read_text(encoding="utf-8"), flags=re.MULTILINE)
    }
    assert named
    assert named <= written


def test_the_mathematics_points_to_code_that_exists():
    page = (DOCS / "explanation/mathematics.md").read_text(encoding="utf-8")
    passages = re.findall(r"^Code:(.*?)(?:Tests?\b|\n\n)", page, flags=re.DOTALL | re.MULTILINE)
    named = {name for passage in passages for name in re.findall(r"`([\w.]+)`", passage)}
    written = set()
    for file in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                written.add(node.name)
            if isinstance(node, ast.ClassDef):
                written |= {f"{node.name}.{part.name}" for part in node.body if isinstance(part, ast.FunctionDef)}
    assert named
    assert named <= written


@pytest.mark.parametrize("page", sorted(path.relative_to(ROOT) for path in DOCS.rglob("*.md")), ids=str)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\((?!https://)([^)#]+)", (ROOT / page).read_text(encoding="utf-8")):
        assert (ROOT / page.parent / target).exists(), target
        assert DOCS in (ROOT / page.parent / target).resolve().parents, f"{target} is not part of the site"


def slugs_of(page):
    """The anchors that GitHub makes of the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", sorted(path.relative_to(ROOT) for path in DOCS.rglob("*.md")), ids=str)
def test_anchors_lead_to_headings(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        assert anchor in slugs_of(ROOT / page.parent / target if target else ROOT / page), anchor
