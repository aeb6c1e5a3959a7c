"""The configuration of the study."""

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
# Folds depend on these files, and on every setting but the sets: a fold is a fold of one set.
CODE = ("algorithms.py", "data_sets.py", "problems.py", "run.py")


@dataclass(frozen=True)
class Config:
    """Settings of one run; see config.toml."""

    seed: int
    sets: list[str]
    folds: int
    stratified: bool
    calibration_fraction: float
    missing: list[float]
    prevalences: list[float]
    metrics: list[str]
    resamples: list[int]
    bootstrap_resamples: int
    bins: int
    confidence_level: float
    swapped: bool
    algorithms: list[str]
    more_seeds: list[int]

    @classmethod
    def load(cls, *, quick: bool = False) -> "Config":
        """Return the configuration, or its quick slice."""
        settings = _settings()
        settings |= settings["quick"] if quick else {}
        return cls(**{field.name: settings[field.name] for field in fields(cls)})

    def swapped_classes(self) -> "Config":
        """Return the run with the classes of every set swapped."""
        return replace(self, **_settings()["swapped_classes"])

    def center_runs(self) -> dict[str, list["Config"]]:
        """Return the runs with other seeds, by the way of making folds."""
        return {
            way: [replace(self, **settings | {"seed": seed}) for seed in self.more_seeds or settings["more_seeds"]]
            for way, settings in _settings()["center"].items()
        }

    @property
    def fingerprint(self) -> str:
        """Hash of the settings and the study's code, so that folds of two configurations are never mixed up.

        The library is not part of it: delete the work folder after a change of its distributions.
        """
        settings = {name: value for name, value in asdict(self).items() if name not in {"more_seeds", "sets"}}
        code = "".join((HERE / name).read_text() for name in CODE)
        versions = [version(package) for package in ("darkmetrics", "scikit-learn")]
        return hashlib.sha256(json.dumps([settings, code, versions], sort_keys=True).encode()).hexdigest()[:8]


def stand_ins() -> dict[str, str]:
    """Return the sets that take the place of others, by the name of the other."""
    return dict(_settings()["stand_ins"])


def _settings() -> dict[str, Any]:
    return tomllib.loads((HERE / "config.toml").read_text())
