"""How much of a batch lies where the calibration data never was.

Only features are needed: no label, no domain, no second batch. A row is outside when
its distance to the nearest cluster centre exceeds the radius within which 99 % of
that cluster's own members lie.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from coolhead.shift.clusters import RADIUS_QUANTILE, find_regions, locate
from coolhead.shift.inputs import feature_rows


@dataclass(frozen=True)
class Coverage:
    """Where the rows of a batch lie relative to the calibration data.

    Attributes
    ----------
    share_outside : share of rows beyond the radius; about 0.01 without any shift.
    relative_distance : (n,) distance to the nearest centre over that radius.
    nearest : (n,) index of the nearest cluster.

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> found = ch.shift.coverage(data.features[300:] + 9, data.features[:300])
    >>> found.share_outside, found.nearest.shape
    (1.0, (300,))
    """

    share_outside: float
    relative_distance: np.ndarray
    nearest: np.ndarray

    @property
    def outside(self) -> np.ndarray:
        """(n,) whether each row lies outside."""
        return self.relative_distance > 1

    def __str__(self) -> str:
        return (
            f"{self.share_outside:.1%} of {len(self.nearest)} rows lie outside the "
            f"calibration data ({1 - RADIUS_QUANTILE:.0%} expected without shift); "
            f"median relative distance {np.median(self.relative_distance):.2f}"
        )


def coverage(
    batch: Any, calibration: Any, *, n_clusters: int = 8, random_state: int = 0
) -> Coverage:
    """Measure how far a batch lies outside the calibration data.

    Parameters
    ----------
    batch : (n, d) features, or an archive with them.
    calibration : what the batch is compared with: a fitted calibrator that uses
        features, its `clusters_`, or features (m, d), or an archive, to find regions
        in.
    n_clusters, random_state : used only when `calibration` are features.

    Returns
    -------
    Coverage

    Examples
    --------
    >>> import coolhead as ch
    >>> data = ch.datasets.simulate_domains([1.0, 1.0])
    >>> here, there = data.features[:300], data.features[300:] + 9
    >>> ch.shift.coverage(here, here).share_outside < 0.05
    True
    >>> ch.shift.coverage(there, here).share_outside
    1.0
    """
    if hasattr(calibration, "coverage"):
        return calibration.coverage(batch)
    regions = calibration
    if not hasattr(regions, "radii"):
        regions = find_regions(
            feature_rows(calibration, "calibration"),
            n_clusters=n_clusters,
            random_state=random_state,
        )
    centers = getattr(regions, "centers", None)
    width = None if centers is None else centers.shape[1]
    batch = feature_rows(batch, "batch", width, "calibration")
    nearest, relative = locate(regions, batch)
    return Coverage(float(np.mean(relative > 1)), relative, nearest)
