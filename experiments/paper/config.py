"""The one configuration of the study."""

import hashlib
import json
import tomllib
from dataclasses import asdict, dataclass, fields, replace
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Config:
    """What is run; see config.toml."""

    seed: int
    sets: list[str]
    folds: int
    stratified: bool
    calibration_share: float
    missing: list[float]
    prevalences: list[float]
    metrics: list[str]
    resamples: list[int]
    bootstrap_resamples: int
    bins: int
    confidence_level: float
    swapped: list[str]
    ties: str
    algorithms: list[str]
    more_seeds: list[int]

    @classmethod
    def load(cls, *, quick: bool = False) -> "Config":
        """The configuration, or its quick slice."""
        settings = tomllib.loads((HERE / "config.toml").read_text())
        settings |= settings["quick"] if quick else {}
        return cls(**{field.name: settings[field.name] for field in fields(cls)})

    def other_choices(self) -> "Config":
        """The run with two choices made the other way."""
        return replace(self, **tomllib.loads((HERE / "config.toml").read_text())["other_choices"])

    def centre_runs(self) -> dict[str, list["Config"]]:
        """The runs with other random numbers, by the way in which folds are made."""
        ways = tomllib.loads((HERE / "config.toml").read_text())["centre"]
        return {
            way: [replace(self, **settings | {"seed": seed}) for seed in self.more_seeds or settings["more_seeds"]]
            for way, settings in ways.items()
        }

    @property
    def fingerprint(self) -> str:
        """Tells configurations apart, so that folds of one are never taken for folds of another.

        The study's own code counts as well. The library does not: delete the work folder after a change of its laws.
        """
        settings = {name: value for name, value in asdict(self).items() if name != "more_seeds"}
        code = "".join((HERE / name).read_text() for name in ("algorithms.py", "problems.py"))
        versions = [version(package) for package in ("darkmetrics", "scikit-learn")]
        return hashlib.sha256(json.dumps([settings, code, versions], sort_keys=True).encode()).hexdigest()[:8]
