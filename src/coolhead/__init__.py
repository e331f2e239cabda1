"""Honest confidence for classifiers in domains they have never seen.

Every name below is imported on first use, so that `import coolhead` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "numerics.inputs": [
        "logits_from_probabilities",
    ],
    "numerics.temperature": [
        "fit_temperature",
        "TemperatureFit",
        "Status",
    ],
    "calibrators.temperature": [
        "TemperatureScaling",
    ],
    "calibrators.clustered": [
        "NearestClusterTemperature",
        "RegressedTemperature",
    ],
    "calibrators.ensemble": [
        "TemperatureEnsemble",
    ],
    "calibrators.classifier": [
        "CalibratedClassifier",
    ],
    "metrics": [
        "expected_calibration_error",
        "classwise_calibration_error",
        "debiased_calibration_error",
        "maximum_calibration_error",
        "signed_calibration_gap",
        "kernel_calibration_error",
        "expected_calibration_error_null",
        "negative_log_likelihood",
        "brier_score",
        "top_label_brier_score",
        "calibration_gain",
        "improvement_ratio",
        "reliability_curve",
        "risk_coverage_curve",
        "draw_subsamples",
        "subsample_ece",
        "subsample_mean",
        "paired_bootstrap",
        "paired_bootstrap_mean",
        "is_significant",
        "pooled_sigma",
        "sigma_counts",
    ],
    "archive": [
        "DomainArchive",
        "load_archive",
    ],
    "datasets": [
        "load_dataset",
    ],
    "paper": [
        "paper_table",
    ],
}
_ROOMS = ["dask", "heads", "shift", "torch"]
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = [*_HOME, *_ROOMS]  # pyright: ignore[reportUnsupportedDunderAll]

if TYPE_CHECKING:
    from coolhead.archive import DomainArchive, load_archive
    from coolhead.calibrators.classifier import CalibratedClassifier
    from coolhead.calibrators.clustered import (
        NearestClusterTemperature,
        RegressedTemperature,
    )
    from coolhead.calibrators.ensemble import TemperatureEnsemble
    from coolhead.calibrators.temperature import TemperatureScaling
    from coolhead.datasets import load_dataset
    from coolhead.metrics import (
        brier_score,
        calibration_gain,
        classwise_calibration_error,
        debiased_calibration_error,
        draw_subsamples,
        expected_calibration_error,
        expected_calibration_error_null,
        improvement_ratio,
        is_significant,
        kernel_calibration_error,
        maximum_calibration_error,
        negative_log_likelihood,
        paired_bootstrap,
        paired_bootstrap_mean,
        pooled_sigma,
        reliability_curve,
        risk_coverage_curve,
        sigma_counts,
        signed_calibration_gap,
        subsample_ece,
        subsample_mean,
        top_label_brier_score,
    )
    from coolhead.numerics.inputs import logits_from_probabilities
    from coolhead.numerics.temperature import Status, TemperatureFit, fit_temperature
    from coolhead.paper import paper_table


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"coolhead.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"coolhead.{name}")
    raise AttributeError(f"module 'coolhead' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
