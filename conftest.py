"""Examples in docstrings and documentation may register metrics and draw; each leaves things as it found them."""

import os
import sys
from collections.abc import Iterator

import pytest

from darkmetrics.metrics import metric

# No window opens, wherever the tests run.
os.environ["MPLBACKEND"] = "Agg"


@pytest.fixture(autouse=True)
def _same_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric, "_REGISTRY", dict(metric._REGISTRY))


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
