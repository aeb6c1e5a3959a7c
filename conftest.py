"""Examples in docstrings and documentation may register metrics and draw; each leaves things as it found them."""

import gc
import os
import sys
from collections.abc import Generator, Iterator

import pytest

from darkmetrics.metrics import metric

# No window opens, wherever the tests run.
os.environ["MPLBACKEND"] = "Agg"


def pytest_configure(config: pytest.Config) -> None:
    """What was set aside is collected as the interpreter ends, after all else."""
    config.add_cleanup(gc.unfreeze)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Half a million objects, modules and tests, live to the end: no search for garbage goes through them again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _same_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric, "_REGISTRY", dict(metric._REGISTRY))


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
