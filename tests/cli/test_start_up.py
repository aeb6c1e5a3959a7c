"""What starting costs: names of the package are imported when they are used, and help needs none of them."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import darkmetrics as dm

HEAVY = ("numpy", "scipy", "matplotlib", "jinja2", "narwhals", "pandas", "polars", "pyarrow", "sklearn")


def output_of(code):
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


HELP = [["--help"], ["evaluate", "--help"], ["monitor", "--help"], ["curves", "--help"], ["--version"], []]


@pytest.fixture(scope="module")
def loaded_after_help():
    """The exit code of each, and what has been imported by then, in one process: nothing by all is nothing by each."""
    code = f"""
import sys
from darkmetrics.cli import run
for arguments in {HELP}:
    code = run(arguments)
    print("loaded", code, [name for name in {HEAVY} if name in sys.modules])
"""
    lines = [line for line in output_of(code).splitlines() if line.startswith("loaded ")]
    return dict(zip(map(tuple, HELP), lines, strict=True))


@pytest.mark.parametrize("arguments", HELP)
def test_help_imports_nothing_heavy(loaded_after_help, arguments):
    assert loaded_after_help[tuple(arguments)] == "loaded 0 []"


def test_importing_the_package_imports_nothing_heavy():
    code = f"import sys, darkmetrics; print([name for name in {(*HEAVY, 'typer', 'rich')} if name in sys.modules])"
    assert output_of(code) == "[]"


def test_an_evaluation_loads_only_the_parts_of_scipy_it_needs():
    code = """
import sys
import darkmetrics as dm
for model in ({"missingness": dm.missing.Fixed(0.5)}, {}):
    dm.evaluate([1, 0, None, 1, 0, 1] * 10, [0.9, 0.2, 0.7, 0.6, 0.4, 0.3] * 10, **model)
    print(sorted(name for name in sys.modules if name.startswith("scipy.") and name.count(".") == 1 and name[6] != "_"))
"""
    given, default = output_of(code).splitlines()
    assert given == "['scipy.special', 'scipy.version']"
    assert default == "['scipy.linalg', 'scipy.special', 'scipy.version']"


def test_a_small_file_is_read_without_loading_a_dataframe_package(csv_file):
    code = f"""
import sys
from darkmetrics.cli import run
run(["evaluate", {str(csv_file)!r}, "--prob", "0.5", "-m", "recall"])
print("loaded", [name for name in ("pandas", "polars", "pyarrow") if name in sys.modules])
"""
    assert output_of(code).splitlines()[-1] == "loaded []"


def test_type_checkers_and_the_interpreter_see_the_same_names():
    tree = ast.parse(Path(dm.__file__).read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: str(node.module) for node in imports for alias in node.names}
    assert sorted(seen) == sorted(dm.__all__)
    for name, module in seen.items():
        value = getattr(dm, name)
        expected = sys.modules[f"darkmetrics.{name}"] if module == "darkmetrics" else getattr(sys.modules[module], name)
        assert value is expected


def test_functions_keep_their_names_when_their_modules_are_imported_first():
    code = """
import darkmetrics as dm
from darkmetrics.backtesting import backtest
from darkmetrics.evaluating import evaluate
from darkmetrics.curves import threshold_curves
from darkmetrics.diagnosis import diagnose
import darkmetrics.paper.baselines
for function in (backtest, diagnose, evaluate, threshold_curves):
    assert getattr(dm, function.__name__) is function
    print(type(function).__name__)
"""
    assert output_of(code).split() == ["function"] * 4


def test_dir_and_star_show_every_public_name():
    assert set(dm.__all__) <= set(dir(dm))
    names = output_of("from darkmetrics import *; print(sorted(name for name in dir() if name[0] != '_'))")
    assert ast.literal_eval(names) == sorted(dm.__all__)


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"darkmetrics has no 'evaluat'\. Did you mean 'evaluate'\?"):
        dm.evaluat  # type: ignore[attr-defined]  # noqa: B018


def test_a_module_is_found_without_being_a_public_name():
    assert output_of("from darkmetrics import tables; print(tables.__name__)") == "darkmetrics.tables"


def test_without_its_packages_the_command_says_what_to_install():
    code = """
import sys
sys.modules["typer"] = None
from darkmetrics.__main__ import main
sys.stderr = sys.stdout
print(main())
"""
    said, code_ = output_of(code).splitlines()
    assert "pip install 'darkmetrics[cli]'" in said
    assert code_ == "2"
