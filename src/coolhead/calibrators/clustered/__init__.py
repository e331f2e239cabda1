"""Cluster-level temperatures, the paper's section 4.2."""

from coolhead.calibrators.clustered.calibrators import (
    NearestClusterTemperature,
    RegressedTemperature,
)

__all__ = ["NearestClusterTemperature", "RegressedTemperature"]
