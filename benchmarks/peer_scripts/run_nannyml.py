"""NannyML's CBPE: labeled rows are its reference, all rows its analysis period, without their labels.

Its confidence band is three sampling errors wide; for a 90% interval they are 1.645 here.
"""

import logging
import os
import warnings

os.environ["NML_DISABLE_USAGE_LOGGING"] = "1"  # before the import: it reports its use otherwise

import nannyml as nml
import numpy as np
import pandas as pd
from harness import METRICS, THRESHOLD, Answer, main

FACTOR = 1.6448536269514722  # normal quantile of 0.95

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)


def estimate(label: np.ndarray, score: np.ndarray, resamples: int) -> Answer:
    rows = pd.DataFrame({"score": score, "decision": (score >= THRESHOLD).astype(int), "label": label})
    cbpe = nml.CBPE(
        metrics=list(METRICS),
        y_pred_proba="score",
        y_pred="decision",
        y_true="label",
        problem_type="classification_binary",
        chunk_number=1,
    )
    cbpe.fit(rows[rows["label"].notna()].astype({"label": int}).reset_index(drop=True))
    table = cbpe.estimate(rows.drop(columns="label")).filter(period="analysis").to_df()
    found = {}
    for name in METRICS:
        value, error = (float(table[name, column].iloc[-1]) for column in ("value", "sampling_error"))
        if np.isfinite(value):
            found[name] = (value, value - FACTOR * error, value + FACTOR * error)
    return found


if __name__ == "__main__":
    main("nannyml", estimate)
