"""Engine 1: posterior draws of the probabilities of missing labels, and the likelihood that they are drawn from.

A missingness mechanism declares a `Model`: parameters with priors, decisions with outcomes, and cells of identical rows
with the histories that are compatible with what was observed of them. `fit_model` returns weighted posterior draws of
the parameters. `Posterior` has the probabilities of the missing labels that follow from them.

Import rule: this package knows kernels and evaluation sets; it knows no mechanism and no metric.
"""

from darkmetrics.posterior.draws import Posterior, columns_of
from darkmetrics.posterior.fit import FittedModel, approximate_log_evidence, fit_model
from darkmetrics.posterior.model import Cells, Model

__all__ = ["Cells", "FittedModel", "Model", "Posterior", "approximate_log_evidence", "columns_of", "fit_model"]
