"""The paper's study, run again with its algorithms and with ours: `python -m experiments.paper run`."""
