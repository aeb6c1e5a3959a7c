"""What the package shows: every public name is documented by example, and importing it does nothing else."""

import doctest
import inspect
import pydoc
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import darkmetrics as dm
from darkmetrics.foreign_words import PARAMETERS

MODULES = {module.__name__: module for module in (dm, dm.methods, dm.metrics, dm.missing, dm.calibrators, dm.paper)}
NAMES = {f"{where}.{name}": getattr(module, name) for where, module in MODULES.items() for name in module.__all__}
DOCUMENTED = {name: value for name, value in NAMES.items() if inspect.isclass(value) or inspect.isfunction(value)}

# Named in signatures and results, or raised: a user reads of them but does not call them.
NOT_CALLED = {
    *(
        "Verification",
        "Comparison",
        "Evaluation",
        "GroupedEvaluation",
        "MetricDistribution",
        "Metric",
        "Family",
        "Method",
        "Mechanism",
        "Posterior",
    ),
    *("InputError", "UndefinedMetricWarning"),
    *("Robustness", "CalibrationWarning", "MissingnessWarning", "AssumptionWarning", "Calibrator"),
    # What stands behind a word or a name; `evaluate` calls them.
    *("method_from", "mechanism_from", "metrics_from", "registered"),
    # Built by roc_auc(), gini(), precision_at_k() and the like.
    *("RankMetric", "TopMetric"),
}


@pytest.mark.parametrize("module", MODULES.values(), ids=MODULES)
def test_every_name_in_all_exists_once_and_in_order(module):
    assert len(set(module.__all__)) == len(module.__all__)
    assert all(hasattr(module, name) for name in module.__all__)


def test_the_public_modules_are_documented():
    for module in MODULES.values():
        assert module.__doc__


@pytest.mark.parametrize("name", DOCUMENTED)
def test_every_public_function_and_class_has_a_docstring(name):
    text = DOCUMENTED[name].__doc__ or ""
    first = text.strip().splitlines()[0] if text.strip() else ""
    # A dataclass without a docstring gets its own signature for one.
    assert first
    assert not first.startswith(f"{name.rsplit('.', 1)[-1]}(")
    assert first.endswith((".", "?", ";", ":")) or len(text.strip().splitlines()) > 1


@pytest.mark.parametrize("name", [name for name in DOCUMENTED if name.rsplit(".", 1)[-1] not in NOT_CALLED])
def test_every_name_a_user_calls_shows_an_example(name):
    text = inspect.getdoc(DOCUMENTED[name]) or ""
    assert "Examples\n--------" in text
    assert doctest.DocTestParser().get_examples(text)


def test_the_names_without_an_example_are_public():
    assert {name.rsplit(".", 1)[-1] for name in DOCUMENTED} >= NOT_CALLED


@pytest.mark.parametrize(
    "kind", [dm.EvaluationSet, dm.Evaluation, dm.MetricDistribution, dm.metrics.Metric], ids=lambda kind: kind.__name__
)
def test_every_public_method_has_a_docstring(kind):
    for name, member in inspect.getmembers(kind):
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
            assert inspect.getdoc(member), name


@pytest.mark.parametrize("name", ["evaluate", "EvaluationSet"])
def test_the_docstring_names_every_parameter(name):
    text = inspect.getdoc(getattr(dm, name)) or ""
    for parameter in inspect.signature(getattr(dm, name)).parameters:
        assert parameter in text


def test_the_signatures_share_their_defaults():
    ours = inspect.signature(dm.EvaluationSet).parameters
    evaluate = inspect.signature(dm.evaluate).parameters
    for name in ("threshold", "y_pred", "pos_label", "missing_label", "sample_weight"):
        assert ours[name].default == evaluate[name].default
        assert ours[name].kind is evaluate[name].kind is inspect.Parameter.KEYWORD_ONLY


def test_the_package_has_few_names():
    assert len(dm.__all__) <= 35


def test_a_version_is_named():
    assert dm.__version__.count(".") == 2


def test_errors_are_value_errors():
    assert issubclass(dm.InputError, ValueError)
    assert issubclass(dm.exceptions.UnknownNameError, dm.InputError)
    assert issubclass(dm.exceptions.MethodError, dm.InputError)
    assert issubclass(dm.UndefinedMetricWarning, UserWarning)
    assert issubclass(dm.CalibrationWarning, UserWarning)
    assert issubclass(dm.MissingnessWarning, UserWarning)


def run(code, cwd):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=cwd, capture_output=True, text=True, check=True
    )


def test_import_loads_no_optional_package(tmp_path):
    heavy = ["pandas", "polars", "pyarrow", "matplotlib", "sklearn", "scipy.stats", "jinja2", "typer", "rich"]
    loaded = run(f"import darkmetrics, sys; print([name for name in {heavy} if name in sys.modules])", tmp_path)
    assert loaded.stdout.strip() == "[]"


def test_import_and_evaluate_write_nothing(tmp_path):
    code = """
import darkmetrics as dm
result = dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed(0.5))
str(result), result.to_dict()
"""
    done = run(code, tmp_path)
    assert done.stdout == ""
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_evaluating_lists_loads_no_dataframe_package(tmp_path):
    code = """
import sys
from pathlib import Path
import darkmetrics as dm
dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed(0.5)).to_dict()
print([name for name in ("pandas", "polars", "pyarrow", "sklearn") if name in sys.modules])
"""
    assert run(code, tmp_path).stdout.strip() == "[]"


def test_import_leaves_the_global_random_state_alone(tmp_path):
    code = """
import random
import numpy as np
np.random.seed(1); random.seed(1)
before = (np.random.get_state()[1].tolist(), random.getstate())
import darkmetrics as dm
dm.evaluate([1, 0, None], [0.9, 0.4, 0.7], missingness=dm.missing.Fixed(0.5), method="monte_carlo", rng=0)
assert before == (np.random.get_state()[1].tolist(), random.getstate())
"""
    run(code, tmp_path)


def test_modules_are_reached_as_attributes_on_a_fresh_import(tmp_path):
    names = ["diagnosis", "distributions", "evaluation", "exceptions", "frames"]
    code = f"""
import importlib, sys
for name in {names}:
    for loaded in [one for one in sys.modules if one.partition(".")[0] == "darkmetrics"]:
        del sys.modules[loaded]
    dm = importlib.import_module("darkmetrics")
    print(getattr(dm, name).__name__)
"""
    assert run(code, tmp_path).stdout.splitlines() == [f"darkmetrics.{name}" for name in names]


def test_completion_shows_public_names_alone(tmp_path):
    code = "import darkmetrics as dm; dm.evaluate; print(*(name for name in dir(dm) if not name.startswith('__')))"
    shown = set(run(code, tmp_path).stdout.split())
    assert shown == set(dm.__all__)


def test_no_module_hides_behind_a_function():
    """Python sets a module on its package when it is imported, so that none may have the name of a public function."""
    functions = [name for name in dm.__all__ if inspect.isfunction(getattr(dm, name))]
    modules = {
        path.stem for path in Path(dm.__path__[0]).iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()
    }
    assert not modules.intersection(functions)


# How many parameters functions have, and how help shows them ---------------------------------------------------------

# Keywords of `verify` are those of `evaluate`, for an EvaluationSet.
ANY_KEYWORD = ("darkmetrics.verify",)
FUNCTIONS = [name for name, value in DOCUMENTED.items() if inspect.isfunction(value)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_has_few_parameters(name):
    limit = 17 if name == "darkmetrics.evaluate" else 20
    assert len(inspect.signature(DOCUMENTED[name]).parameters) <= limit


def test_help_begins_with_a_short_signature():
    text = pydoc.plain(pydoc.render_doc(dm.evaluate))
    signature = text[text.index("evaluate(") : text.index("-> 'Evaluation'")]
    assert len(textwrap.wrap(signature, 80)) <= 12


def test_no_parameter_is_another_name_of_one():
    """Words of other libraries are understood, but are no parameters, and no function takes any keyword."""
    words = {word: name for name, words in PARAMETERS.items() for word in words}
    for name in FUNCTIONS:
        parameters = inspect.signature(DOCUMENTED[name]).parameters
        kinds = {parameter.kind for parameter in parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds or name in ANY_KEYWORD
        assert [word for word in parameters if words.get(word) in parameters] == [], name


def test_completion_shows_at_most_35_names():
    shown = [name for name in dir(dm) if not name.startswith("_")]
    assert len(shown) <= 35
    assert shown == sorted(dm.__all__)


# Names before 0.1.0, which are gone: (`docs` has the history of names in the changelog alone).
OLD_NAMES = (
    *("evaluate_frame", "compare_frame", "label_models", "RefutedWarning"),
    *("FutureWarning", "variance_split", "wider_than", "bucket_effect", "coarsened", "from_frame", "labelled_at"),
    *("--worse", "--every", "--known ", "LateLabels", "LabelShift", "mechanisms.MCAR"),
)


@pytest.mark.parametrize("folder", ["src", "docs", "README.md"])
def test_no_old_name_is_left(folder):
    root = Path(__file__).parents[1] / folder
    files = [root] if root.is_file() else [*root.rglob("*.py"), *root.rglob("*.md")]
    assert files
    left = [
        f"{path.relative_to(root.parent)}: {name}"
        for path in files
        for name in OLD_NAMES
        if name in path.read_text(encoding="utf-8")
    ]
    assert left == []
