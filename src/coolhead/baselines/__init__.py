"""What the paper's methods are compared with."""

from coolhead.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.baselines",
    {
        "binning": [
            "BayesianBinning",
            "HistogramBinning",
            "IsotonicCalibration",
            "PlattScaling",
        ],
        "classwise": [
            "BiasCorrectedTemperature",
            "EnsembleTemperatureScaling",
            "MatrixScaling",
            "VectorScaling",
        ],
        "density_aware": ["DensityAwareTemperature"],
        "error_oracle": ["OracleErrorTemperature"],
        "multidomain": ["MultiDomainTemperature"],
        "outside": ["OutsideCalibrator"],
        "parametric": ["ParameterizedTemperature"],
        "transfer": [
            "CPCS",
            "ChosenDomainsTemperature",
            "TransCal",
            "WeightedClusterTemperature",
            "WeightedTemperature",
        ],
        "two_stage": ["TwoStageCalibration"],
    },
)
