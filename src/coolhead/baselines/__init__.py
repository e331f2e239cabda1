"""What the paper's methods are compared with."""

from coolhead.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.baselines",
    {
        "error_oracle": ["OracleErrorTemperature"],
        "transfer": [
            "CPCS",
            "TransCal",
            "WeightedClusterTemperature",
            "WeightedTemperature",
        ],
        "classwise": [
            "BiasCorrectedTemperature",
            "EnsembleTemperatureScaling",
            "MatrixScaling",
            "VectorScaling",
        ],
        "binning": [
            "BayesianBinning",
            "HistogramBinning",
            "IsotonicCalibration",
            "PlattScaling",
        ],
        "multidomain": ["MultiDomainTemperature"],
        "parametric": ["ParameterizedTemperature"],
        "density_aware": ["DensityAwareTemperature"],
        "outside": ["OutsideCalibrator"],
        "two_stage": ["TwoStageCalibration"],
    },
)
