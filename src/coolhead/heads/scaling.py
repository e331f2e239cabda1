"""Bring features to a common centre and one common scale."""

import numpy as np

from coolhead.numerics.blocks import row_blocks


def center_and_scale(
    features: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.float32]:
    """Return the mean of each column and one standard deviation for all of them.

    One scalar keeps the geometry of the features: columns that carry little stay
    small, where a scale per column would blow their noise up.

    Parameters
    ----------
    features : (n, d), any float dtype, may be memory-mapped
    rows : (m,) int
        Rows to use.

    Returns
    -------
    center : (d,) float32
    scale : float32 in (0, inf)
    """
    total = np.zeros(features.shape[1])
    for block in row_blocks(rows.size, features.shape[1]):
        total += features[rows[block]].sum(axis=0, dtype=np.float64)
    center = total / rows.size
    squares = 0.0
    with np.errstate(over="ignore"):  # told below
        for block in row_blocks(rows.size, features.shape[1]):
            squares += np.square(features[rows[block]] - center).sum()
        scale = np.float32(np.sqrt(squares / (rows.size * features.shape[1])))
        center = center.astype(np.float32)
    if not (np.isfinite(scale) and np.isfinite(center).all()):
        raise ValueError(
            "features reaches beyond 3e38; wanted numbers that single precision holds"
        )
    return center, scale if scale > 0 else np.float32(1.0)
