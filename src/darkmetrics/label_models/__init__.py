"""Label models: from an evaluation set to probabilities of its missing labels, as weighted posterior nodes.

Import rule: a label model knows evaluation sets and calibrators; it knows no metric and no method.
"""

from darkmetrics.label_models.auto import Auto
from darkmetrics.label_models.base import LabelModel
from darkmetrics.label_models.calibrated import Calibrated
from darkmetrics.label_models.choice import label_model_from
from darkmetrics.label_models.features import Features
from darkmetrics.label_models.given import Given, Half, Prevalence
from darkmetrics.label_models.label_shift import LabelShift
from darkmetrics.label_models.late import LateLabels
from darkmetrics.label_models.propensity import Propensity
from darkmetrics.label_models.selection import Selection
from darkmetrics.label_models.tilted import Tilted
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
