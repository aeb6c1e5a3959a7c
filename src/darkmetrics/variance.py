"""Where the spread of a metric on the rows comes from."""

import numpy as np

from darkmetrics._kernels.arrays import FloatArray
from darkmetrics.distribution import MetricDistribution


def variance_shares(law: MetricDistribution, shift: FloatArray | None) -> dict[str, float]:
    """Shares of the variance of a law: of the labels, of the calibration, and of the prevalence (`shift` by node)."""
    parts = law.by_node
    if parts is None or not law.var() > 0.0:
        return {"labels": 1.0, "calibration": 0.0, "prevalence": 0.0}
    within, between = float(parts.weight @ parts.var), float(parts.weight @ (parts.mean - law.mean()) ** 2)
    explained = 0.0
    if shift is not None and np.ptp(shift) > 0.0 and between > 0.0:
        # What a smooth function of the shift tells about the mean is due to the prevalence, the rest to calibration.
        shift = (shift - shift.mean()) / shift.std()
        root = np.sqrt(parts.weight)
        curve = np.column_stack([np.ones(shift.size), shift, shift**2]) * root[:, None]
        fitted = curve @ np.linalg.lstsq(curve, root * parts.mean, rcond=None)[0]
        left = float(((root * parts.mean - fitted) ** 2).sum())
        explained = max(0.0, between - left)
    total = within + between
    return {
        "labels": within / total,
        "calibration": (between - explained) / total,
        "prevalence": explained / total,
    }
