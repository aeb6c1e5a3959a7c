"""Words that users say and that several places share; the command line lists them without importing what they name."""

# How long a period is.
PERIODS = ("hour", "day", "week", "month", "quarter", "year")
# How laws are found.
METHODS = ("auto", "exact", "gaussian", "monte_carlo")
# Why labels are missing, and the label model that goes with it.
MECHANISMS = {
    "random": "calibrated",
    "by_score": "calibrated",
    "by_label": "label_shift",
    "by_score_and_label": "selection",
    "late": "late",
    "unknown": "auto",
}
# Label models that need nothing but what a command line can give.
PLAIN_MODELS = ("auto", "calibrated", "label_shift", "selection", "late", "half", "prevalence")
