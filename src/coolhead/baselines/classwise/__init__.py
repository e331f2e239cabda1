"""Methods with parameters for every class, or mixtures of softmaxes."""

from coolhead.baselines.classwise.ets import EnsembleTemperatureScaling
from coolhead.baselines.classwise.matrix import MatrixScaling
from coolhead.baselines.classwise.vector import BiasCorrectedTemperature, VectorScaling

__all__ = [
    "BiasCorrectedTemperature",
    "EnsembleTemperatureScaling",
    "MatrixScaling",
    "VectorScaling",
]
