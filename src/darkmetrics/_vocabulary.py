"""Words that users pass and several places share; the command line lists them without importing what they name."""

# Lengths of periods.
PERIODS = ("hour", "day", "week", "month", "quarter", "year")
# Ways to compute distributions.
METHODS = ("auto", "exact", "gaussian", "monte_carlo")
# Missingness mechanisms, and curves from scores to probabilities.
MECHANISMS = ("random", "by_score", "by_label", "by_score_and_label", "delayed", "unknown")
CALIBRATORS = ("flexible", "beta", "platt", "scaling_binning", "isotonic")
# What results are for.
SCOPES = ("rows", "population")
# How labels arrive, to `verify`; who is reviewed, to `Delayed`; which labels are learned from.
ARRIVALS = ("alike", "late", "any")
REVIEWED = ("all", "by_score", "propensity")
LABEL_SOURCES = ("all", "labeled", "reference")
# Corrections for several alerts, and kinds of disparity.
CORRECTIONS = ("bh", "by")
DISPARITIES = ("difference", "ratio", "equalized_odds")
