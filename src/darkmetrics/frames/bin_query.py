"""Score bins as a query: the formula of `_kernels.bin_grid`, in steps that every engine rounds alike."""

import sys
from typing import Any

import narwhals.stable.v2 as nw

from darkmetrics._kernels.bin_grid import HALF_ROOT

# Where scores go that are null, NaN or infinite: beyond every bin there can be.
NO_BIN = 2**30
# Indices of so many bins still fit into 32 bits.
MAX_BINS = 2**24
_LARGEST = sys.float_info.max


def with_bin(frame: Any, score_bins: int, column: str = "score", name: str = "bin") -> Any:
    """Return the frame with the bin of each score of a Float64 column; scores not finite are in `NO_BIN`.

    Each step is a column: engines that do not look for common parts of expressions would compute the roots five times.
    """
    score, distance, step = nw.col(column), nw.col("distance"), nw.col("step")
    half = score_bins // 2
    inside = distance >= 0.0
    # To the nearer end of [0, 1]: negative beyond it, and 0 for what has no bin (roots of NaN are errors somewhere).
    frame = frame.with_columns(
        distance=nw.when(score <= 0.5)
        .then(nw.when(score >= -_LARGEST).then(score).otherwise(nw.lit(0.0)))
        .otherwise(nw.when(score <= _LARGEST).then(1.0 - score).otherwise(nw.lit(0.0)))
    )
    size = score.abs()
    frame = frame.with_columns(
        step=nw.when(inside).then(distance).otherwise(nw.when(inside | (size <= 1.0)).then(size).otherwise(1.0 / size))
    )
    scale = nw.when(inside).then(nw.lit(HALF_ROOT * half)).otherwise(nw.lit(float(half)))
    for _ in range(2):
        frame = frame.with_columns(step=step.sqrt())
    frame = frame.with_columns(step=(step.sqrt() * scale).floor().cast(nw.Float64))
    frame = frame.with_columns(step=nw.when(step > half - 1.0).then(nw.lit(half - 1.0)).otherwise(step))
    outside = (
        nw.when(score > 1.0)
        .then(score_bins + half - 1.0 - step)
        .otherwise(nw.when(score >= -1.0).then(-1.0 - step).otherwise(step - float(score_bins)))
    )
    place = nw.when(inside).then(nw.when(score <= 0.5).then(step).otherwise(score_bins - 1.0 - step)).otherwise(outside)
    finite = (score >= -_LARGEST) & (score <= _LARGEST)
    # Whole numbers: PyArrow's hashes of whole floats collide, and grouping by them takes a hundred times as long.
    bin_id = nw.when(finite).then(place).otherwise(nw.lit(float(NO_BIN))).cast(nw.Int32)
    return frame.with_columns(bin_id.alias(name)).drop("distance", "step")
