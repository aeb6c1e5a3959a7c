"""How often 90% intervals cover the truth, and how wide they are: one study of all missingness mechanisms.

A `Case` makes problems from seeds: rows with all labels, the labels that are observed, and the arguments of `evaluate`
that state the mechanism. Each module of this package lists the cases of one family in `CASES`; `__main__` runs them in
pieces that resume and writes `experiments/results/coverage.csv`. A family that is run with all its cases and seeds
replaces its own rows there. Every family has at least one control: a case that must not reach its coverage.

    python -m experiments.coverage                      all families
    python -m experiments.coverage reference delayed    two of them
    python -m experiments.coverage reference --case "top 5%" --seeds 20    without writing the results file
"""
