"""Label models: from an evaluation set to probabilities of its missing labels, as weighted posterior nodes.

Import rule: a label model knows evaluation sets and calibrators; it knows no metric and no method.
"""

from darkmetrics.missingness.base import LabelModel
from darkmetrics.missingness.by_label import LabelShift
from darkmetrics.missingness.by_score import Calibrated
from darkmetrics.missingness.by_score_and_label import Selection
from darkmetrics.missingness.choice import label_model_from
from darkmetrics.missingness.delayed import LateLabels
from darkmetrics.missingness.features import Features
from darkmetrics.missingness.given import Given, Half, Prevalence
from darkmetrics.missingness.mixture import Auto
from darkmetrics.missingness.propensity import Propensity
from darkmetrics.missingness.tilted import Tilted
from darkmetrics.posterior import Posterior

__all__ = [
    "Auto",
    "Calibrated",
    "Features",
    "Given",
    "Half",
    "LabelModel",
    "LabelShift",
    "LateLabels",
    "Posterior",
    "Prevalence",
    "Propensity",
    "Selection",
    "Tilted",
    "label_model_from",
]
