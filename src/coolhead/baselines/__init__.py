"""What the paper's methods are compared with."""

from coolhead.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.baselines",
    {
        "binning.bayesian": ["BayesianBinning"],
        "binning.histogram": ["HistogramBinning"],
        "binning.isotonic": ["IsotonicCalibration"],
        "binning.platt": ["PlattScaling"],
        "classwise.ets": ["EnsembleTemperatureScaling"],
        "classwise.matrix": ["MatrixScaling"],
        "classwise.vector": ["BiasCorrectedTemperature", "VectorScaling"],
        "density_aware": ["DensityAwareTemperature"],
        "error_oracle": ["OracleErrorTemperature"],
        "multidomain": ["MultiDomainTemperature"],
        "outside": ["OutsideCalibrator"],
        "parametric.calibrator": ["ParameterizedTemperature"],
        "transfer.cpcs": ["CPCS"],
        "transfer.transcal": ["TransCal"],
        "transfer.weighted": ["WeightedClusterTemperature", "WeightedTemperature"],
        "two_stage": ["TwoStageCalibration"],
    },
)
