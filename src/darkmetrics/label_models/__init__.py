"""Label models: from an evaluation set to probabilities of its missing labels, as weighted posterior nodes.

Import rule: a label model knows evaluation sets and calibrators; it knows no metric and no method.
"""

from darkmetrics.label_models.base import LabelModel, Nodes
from darkmetrics.label_models.choice import label_model_from
from darkmetrics.label_models.given import Given
from darkmetrics.label_models.maxent import Half, Prevalence

__all__ = ["Given", "Half", "LabelModel", "Nodes", "Prevalence", "label_model_from"]
