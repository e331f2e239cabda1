"""The paper's calibrators and our own; each learns a temperature T(x) > 0."""

from coolhead.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.calibrators",
    {
        "auto": ["AutoCalibrator"],
        "base": ["TemperatureCalibrator"],
        "classifier": ["CalibratedClassifier"],
        "clustered": ["NearestClusterTemperature", "RegressedTemperature"],
        "ensemble": ["TemperatureEnsemble"],
        "offset": ["OffsetTemperature"],
        "select": ["LeaveOneDomainOut", "SelectByDomain"],
        "shift_aware": ["ShiftAwareTemperature"],
        "temperature": ["TemperatureScaling"],
    },
)
