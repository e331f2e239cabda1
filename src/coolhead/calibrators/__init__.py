"""The paper's calibrators and our own; each learns a temperature T(x) > 0."""

from coolhead.extras import lazy_names

__getattr__, __dir__, __all__ = lazy_names(  # pyright: ignore
    "coolhead.calibrators",
    {
        "auto": ["AutoCalibrator"],
        "base": ["Calibrator", "TemperatureCalibrator"],
        "clustered": ["NearestClusterTemperature", "RegressedTemperature"],
        "ensemble": ["TemperatureEnsemble"],
        "select": ["LeaveOneDomainOut", "SelectByDomain"],
        "shift_aware": ["ShiftAwareTemperature"],
        "data": ["CalibrationData", "fit_with"],
        "temperature": ["Identity", "TemperatureScaling"],
    },
    moved={"CalibratedClassifier": "coolhead.CalibratedClassifier"},
)
