"""Examples in docstrings and documentation may register metrics; each leaves the registry as it found it."""

import pytest

from darkmetrics.metrics import metric


@pytest.fixture(autouse=True)
def _same_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metric, "_REGISTRY", dict(metric._REGISTRY))
