"""Methods that map one score to one probability: sigmoids, bins and steps."""

from coolhead.baselines.binning.bayesian import BayesianBinning
from coolhead.baselines.binning.histogram import HistogramBinning
from coolhead.baselines.binning.isotonic import IsotonicCalibration
from coolhead.baselines.binning.platt import PlattScaling

__all__ = [
    "BayesianBinning",
    "HistogramBinning",
    "IsotonicCalibration",
    "PlattScaling",
]
