"""Why labels are missing: what to pass as `missingness=`.

Each object documents what it assumes, what it needs and what it cannot tell. Where defaults suffice a word does:
"random", "by_score", "by_label", "by_score_and_label", "delayed" or "unknown".
"""

from typing import Any

from darkmetrics.calls import suggest_call
from darkmetrics.missingness.base import Mechanism
from darkmetrics.missingness.by_label import ByLabel
from darkmetrics.missingness.by_score import ByScore, Random
from darkmetrics.missingness.by_score_and_label import ByScoreAndLabel
from darkmetrics.missingness.choice import mechanism_from
from darkmetrics.missingness.covariates import Covariates
from darkmetrics.missingness.delayed import Delayed
from darkmetrics.missingness.fixed import Fixed, TrainingPrevalence
from darkmetrics.missingness.mixture import Unknown
from darkmetrics.missingness.propensity import Propensity
from darkmetrics.missingness.reference import Reference
from darkmetrics.missingness.tilted import ExponentialTilt
from darkmetrics.posterior import Posterior

# Keywords of other libraries are understood, or answered with ours.
_KINDS: list[Any] = [ByLabel, ByScore, ByScoreAndLabel, Covariates, Delayed, ExponentialTilt, Fixed, Propensity, Random]
for _kind in [*_KINDS, Reference, Unknown]:
    _kind.__init__ = suggest_call(name=f"missing.{_kind.__name__}")(_kind.__init__)

# Words of statisticians, and the objects that they stand for.
_INSTEAD = {"MCAR": "Random()", "MAR": "ByScore()", "MNAR": "ByLabel()", "Labels": "Reference(labels, scores)"}


def __getattr__(name: str) -> object:
    hint = f" Use dm.missing.{_INSTEAD[name]}." if name in _INSTEAD else ""
    raise AttributeError(f"darkmetrics.missing has no {name!r}.{hint}")


__all__ = [
    "ByLabel",
    "ByScore",
    "ByScoreAndLabel",
    "Covariates",
    "Delayed",
    "ExponentialTilt",
    "Fixed",
    "Mechanism",
    "Posterior",
    "Propensity",
    "Random",
    "Reference",
    "TrainingPrevalence",
    "Unknown",
    "mechanism_from",
]
