"""Methods that see unlabelled target data and say so."""

from coolhead.baselines.transfer.cpcs import CPCS
from coolhead.baselines.transfer.transcal import TransCal
from coolhead.baselines.transfer.weighted import (
    WeightedClusterTemperature,
    WeightedTemperature,
)

__all__ = ["CPCS", "TransCal", "WeightedClusterTemperature", "WeightedTemperature"]
