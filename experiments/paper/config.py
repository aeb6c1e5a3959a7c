"""The one configuration of the study."""

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Config:
    """What is run; see config.toml."""

    seed: int
    sets: list[str]
    folds: int
    calibration_share: float
    missing: list[float]
    prevalences: list[float]
    metrics: list[str]
    resamples: list[int]
    bootstrap_resamples: int
    bins: int
    confidence_level: float

    @classmethod
    def load(cls, *, quick: bool = False) -> "Config":
        """The configuration, or its quick slice."""
        settings = tomllib.loads((HERE / "config.toml").read_text())
        settings |= settings.pop("quick") if quick else {}
        return cls(**{field.name: settings[field.name] for field in fields(cls)})
