"""Words that were replaced still work, with one warning that names the new one."""

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import darkmetrics as dm
from darkmetrics.label_models import Auto, Calibrated, LabelShift, Selection, label_model_from

RNG = np.random.default_rng(0)
SCORE = RNG.random(240)
KNOWN = (RNG.random(240) < SCORE).astype(float)
Y = np.where(RNG.random(240) < 0.3, np.nan, KNOWN)
TABLE = pd.DataFrame({"y": Y, "s": SCORE, "g": np.arange(240) % 2})
REFERENCE = dm.EvaluationSet(KNOWN, SCORE)
NAMES: dict[str, Any] = {"label": "y", "score": "s", "metrics": "recall"}

TAKES_REFERENCE: dict[str, Any] = {
    "evaluate": lambda **rows: dm.evaluate(Y, SCORE, metrics="recall", **rows).to_dict(),
    "evaluate_frame": lambda **rows: dm.evaluate_frame(TABLE, **NAMES, **rows).to_dict(),
    "evaluate_by": lambda **rows: dm.evaluate_by(TABLE, "g", **NAMES, **rows).to_dict(),
    "diagnose": lambda **rows: str(dm.diagnose(Y, SCORE, metrics="recall", **rows)),
    "backtest": lambda **rows: str(dm.backtest(KNOWN, SCORE, metrics="recall", n_repeats=2, rng=0, **rows)),
    "label_model_from": lambda **rows: vars(label_model_from("auto", **rows))["reference"],
    "Auto": lambda **rows: Auto(**rows).reference,
    "Calibrated": lambda **rows: Calibrated(**rows).reference,
    "LabelShift": lambda **rows: LabelShift(**rows).reference,
    "Selection": lambda **rows: Selection(**rows).reference,
}


@pytest.mark.parametrize("name", TAKES_REFERENCE)
def test_calibration_is_an_older_word_for_reference(name):
    expected = TAKES_REFERENCE[name](reference=REFERENCE)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = TAKES_REFERENCE[name](calibration=REFERENCE)
    assert found == expected
    (warning,) = caught
    assert warning.category is FutureWarning
    assert str(warning.message) == "calibration: deprecated, and will be removed. Pass reference= instead."
    assert warning.filename == __file__


@pytest.mark.parametrize("name", TAKES_REFERENCE)
def test_both_words_together_are_refused(name):
    with pytest.raises(dm.InputError, match=r"^calibration: an older word for reference, which is given too\."):
        TAKES_REFERENCE[name](reference=REFERENCE, calibration=REFERENCE)
